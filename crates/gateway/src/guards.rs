//! How the hooks of a host stand, as the pages of the console show it: one word for each, and how many there are of it.

use std::collections::BTreeMap;

use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::fault::Fault;
use pintle_domain::health::{Health, Step};
use pintle_domain::hook::Hook;
use pintle_domain::id::TenantId;
use pintle_domain::json::{Value, json};
use pintle_domain::rule::{Fallback, HandlerType, HookScope, tripped};
use pintle_domain::store::Budget;
use pintle_host::Host;
use pintle_rules::condition;
use pintle_rules::judge::MAX_OUTPUT_TOKENS;

use crate::proofs::Proof;

/// How a hook stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GuardState {
    /// It is known that it does not work.
    Broken,
    /// Its circuit breaker is open.
    Tripped,
    /// Nobody knows that it works.
    Unproven,
    /// It does its work.
    Armed,
    /// It is switched off.
    Disabled,
}

impl GuardState {
    /// Every state.
    pub(crate) const ALL: [Self; 5] = [Self::Broken, Self::Tripped, Self::Unproven, Self::Armed, Self::Disabled];

    /// The word on the wire.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Broken => "broken",
            Self::Tripped => "tripped",
            Self::Unproven => "unproven",
            Self::Armed => "armed",
            Self::Disabled => "disabled",
        }
    }

    /// What `health` comes to.
    fn of(health: &Health) -> Self {
        match health {
            Health::Armed(_) => Self::Armed,
            Health::Disabled => Self::Disabled,
            Health::Unproven { step: Step::Breaker, .. } => Self::Tripped,
            Health::Unproven { step: Step::Answer | Step::Trust | Step::Scope | Step::Matcher, .. } => Self::Unproven,
            Health::Unproven { .. } => Self::Broken,
        }
    }
}

/// A hook in a listing of how hooks stand.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct GuardLine {
    pub(crate) name: String,
    pub(crate) family: &'static str,
    /// Of a rule.
    pub(crate) hook_id: Option<String>,
    pub(crate) events: Vec<String>,
    pub(crate) state: GuardState,
    /// The step of its proof that failed.
    pub(crate) step: Option<&'static str>,
    /// Why, for a person.
    pub(crate) why: Option<String>,
}

impl GuardLine {
    /// As it is shown; why something of the host fails may name its files, so `whole` is for those who run it.
    pub(crate) fn shown(&self, whole: bool) -> Value {
        let why = self.why.as_ref().filter(|_| whole || self.hook_id.is_some());
        json!({
            "name": self.name,
            "family": self.family,
            "hookId": self.hook_id,
            "events": self.events,
            "state": self.state.word(),
            "step": self.step,
            "why": why,
        })
    }

    /// The same of a hook of which a model judges, once `budget` pays for no answer any more: nobody is asked then, which
    /// counts as a fault.
    pub(crate) fn paid_by(self, budget: &Budget) -> Self {
        let could_act = matches!(self.state, GuardState::Armed | GuardState::Unproven);
        if !could_act || budget.remaining >= i64::from(MAX_OUTPUT_TOKENS) {
            return self;
        }
        let left = budget.remaining.max(0);
        let why = format!("{left} of {} tokens left until {}", budget.budget_total, budget.comes_back());
        Self { state: GuardState::Broken, step: Some("budget"), why: Some(why), ..self }
    }
}

/// Whose budget the rule `hook`, as it is published, spends, if it is on and a model judges: one that holds for everybody spends
/// that of whomever it acts for, here of `here`.
pub(crate) fn payer(here: &TenantId, hook: &Value) -> Option<TenantId> {
    if hook["enabled"] != true || hook["handler_type"] != HandlerType::Prompt.word() {
        return None;
    }
    match hook["scope"] == HookScope::Global.word() {
        true => Some(here.clone()),
        false => hook["tenant_id"].as_str().map(TenantId::new),
    }
}

/// Hooks of the configuration.
pub(crate) fn configured(host: &Host) -> Vec<GuardLine> {
    let running = host.running();
    let down: BTreeMap<String, Fault> =
        running.iter().filter_map(|(name, process)| Some((name.clone(), process.status().fault?))).collect();
    let health: BTreeMap<String, Health> =
        host.health(&down).into_iter().map(|(loaded, health)| (loaded.hook.name.to_string(), health)).collect();
    let line = |hook: &Hook| {
        let mut health = health.get(hook.name.as_str()).cloned();
        // What answered since it was started is proven, though the file says so only at the end.
        let answers = running.get(hook.name.as_str()).map(|process| process.status());
        if let (Some(Health::Unproven { step: Step::Answer, .. }), Some(status)) = (&health, &answers)
            && (status.answered_ago.is_some() || (status.up && is_only_told(hook)))
        {
            health = None;
        }
        let state = health.as_ref().map_or(GuardState::Armed, GuardState::of);
        let (step, why) = match health {
            Some(Health::Unproven { step, why }) => (Some(step.word()), Some(why)),
            Some(Health::Armed(_) | Health::Disabled) | None => (None, None),
        };
        let events = hook.stages.kinds().map(|kind| kind.name().to_owned()).collect();
        GuardLine { name: hook.name.to_string(), family: hook.family.word(), hook_id: None, events, state, step, why }
    };
    host.loaded.config.hooks.iter().map(|loaded| line(&loaded.hook)).collect()
}

fn is_only_told(hook: &Hook) -> bool {
    hook.stages.kinds().all(|kind| kind.duty() == pintle_domain::checkpoint::Duty::Observer)
}

/// Whether the rule `hook`, as it is published, holds in `tenant`.
pub(crate) fn holds_for(tenant: &TenantId, hook: &Value) -> bool {
    hook["scope"] == HookScope::Global.word() || hook["tenant_id"] == tenant.as_str()
}

/// The rule `hook`, as it is published, as it counts in `tenant`, or else in any: owners have the row of one that holds for
/// everybody as it is, and beside it the tenants in which its breaker is open.
pub(crate) fn counting_in(tenant: Option<&TenantId>, mut hook: Value) -> Value {
    let is_meant = |trip: &&Value| tenant.is_none_or(|tenant| trip["tenant_id"] == tenant.as_str());
    let since = hook["trips"].as_array().into_iter().flatten().find(is_meant).map(|trip| trip["tripped_at"].clone());
    if let Some(since) = since {
        hook["tripped_at"] = since;
    }
    hook
}

/// The step at which a rule fails that was asked and did not answer.
const FAULT: &str = "fault";

/// The rule `hook`, as it is published; `proof` says what is known of it as it is.
pub(crate) fn stored(hook: &Value, proof: Proof) -> GuardLine {
    let text = |name: &str| hook[name].as_str().unwrap_or_default();
    let fault = bad(text("matcher"), text("if_expr"));
    let (state, step, why) = match (hook["tripped_at"].as_str(), hook["enabled"] == true, fault) {
        (Some(since), ..) => {
            let event = CheckpointKind::named(text("event")).unwrap_or(CheckpointKind::PreToolUse);
            let on_trip = if text("on_trip") == Fallback::Allow.word() { Fallback::Allow } else { Fallback::Block };
            (GuardState::Tripped, Some(Step::Breaker.word()), Some(tripped(since, on_trip, event)))
        }
        (None, false, _) => (GuardState::Disabled, None, None),
        (None, true, Some(why)) => (GuardState::Broken, Some(Step::Condition.word()), Some(why)),
        (None, true, None) => match proof {
            Proof::Answered => (GuardState::Armed, None, None),
            Proof::Nothing => (GuardState::Unproven, Some(Step::Answer.word()), None),
            Proof::Faulted(fault) => (GuardState::Broken, Some(FAULT), fault.map(|fault| fault.text)),
        },
    };
    let name = if text("name").is_empty() { text("id") } else { text("name") };
    GuardLine {
        name: name.to_owned(),
        family: pintle_domain::hook::Family::Rule.word(),
        hook_id: Some(text("id").to_owned()),
        events: vec![text("event").to_owned()],
        state,
        step,
        why,
    }
}

/// Why a rule cannot say whether it is asked.
fn bad(matcher: &str, expression: &str) -> Option<String> {
    let bad_matcher = (!matcher.is_empty()).then(|| condition::compile_matcher(matcher).err()).flatten();
    bad_matcher.or_else(|| (!expression.is_empty()).then(|| condition::compile(expression).err()).flatten())
}

/// How many of `lines` stand how.
pub(crate) fn counts(lines: &[GuardLine]) -> Value {
    let count = |state: GuardState| lines.iter().filter(|line| line.state == state).count();
    GuardState::ALL.into_iter().map(|state| (state.word().to_owned(), json!(count(state)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proofs::LastFault;

    #[test]
    fn a_rule_stands_as_its_row_says() {
        for (hook, state, step) in [
            (json!({"id": "1", "enabled": true}), GuardState::Unproven, Some("answer")),
            (json!({"id": "1", "enabled": false}), GuardState::Disabled, None),
            (
                json!({"id": "1", "enabled": false, "tripped_at": "2026-11-22T06:44:00Z"}),
                GuardState::Tripped,
                Some("breaker"),
            ),
            (json!({"id": "1", "enabled": true, "if_expr": "size("}), GuardState::Broken, Some("condition")),
            (json!({"id": "1", "enabled": true, "matcher": "("}), GuardState::Broken, Some("condition")),
        ] {
            let line = stored(&hook, Proof::Nothing);
            assert_eq!((line.state, line.step), (state, step), "{hook}");
            // That it answered once proves nothing where it cannot now.
            let proven = stored(&hook, Proof::Answered).state;
            assert_eq!(proven, if state == GuardState::Unproven { GuardState::Armed } else { state }, "{hook}");
            let fault = LastFault { tenant: TenantId::new("a"), text: "server error 502".into() };
            let failed = stored(&hook, Proof::Faulted(Some(fault)));
            assert_eq!(failed.state, if state == GuardState::Unproven { GuardState::Broken } else { state }, "{hook}");
            let says = (failed.step, failed.why.as_deref()) == (Some("fault"), Some("server error 502"));
            assert_eq!(says, state == GuardState::Unproven, "{hook}");
        }
    }

    #[test]
    fn a_judge_whose_budget_is_spent_is_not_armed() {
        let here = TenantId::new("here");
        let judge = json!({"id": "1", "enabled": true, "handler_type": "prompt", "scope": "tenant", "tenant_id": "a"});
        let with = |name: &str, value: &str| {
            let mut hook = judge.clone();
            hook[name] = json!(value);
            hook
        };
        assert_eq!(payer(&here, &judge), Some(TenantId::new("a")));
        assert_eq!(payer(&here, &with("scope", "global")), Some(here.clone()));
        assert_eq!(payer(&here, &with("handler_type", "script")), None);
        assert_eq!(payer(&here, &json!({"enabled": false, "handler_type": "prompt"})), None);
        let budget = |remaining| Budget {
            month_start: "2026-11-01".to_owned(),
            budget_total: 1_000,
            used: 1_000 - remaining,
            remaining,
        };
        for proof in [Proof::Answered, Proof::Nothing] {
            let line = stored(&judge, proof).paid_by(&budget(100));
            assert_eq!((line.state, line.step), (GuardState::Broken, Some("budget")));
            assert_eq!(line.why.as_deref(), Some("100 of 1000 tokens left until 2026-12-01"));
        }
        assert_eq!(stored(&judge, Proof::Answered).paid_by(&budget(600)).state, GuardState::Armed);
        let off = stored(&json!({"id": "1", "enabled": false}), Proof::Answered);
        assert_eq!(off.paid_by(&budget(-5)).state, GuardState::Disabled);
    }

    #[test]
    fn a_tenant_has_its_own_rules_and_those_for_all() {
        for (hook, holds) in [
            (json!({"scope": "tenant", "tenant_id": "a"}), true),
            (json!({"scope": "agent", "tenant_id": "a"}), true),
            (json!({"scope": "global", "tenant_id": "all"}), true),
            (json!({"scope": "tenant", "tenant_id": "b"}), false),
        ] {
            assert_eq!(holds_for(&TenantId::new("a"), &hook), holds, "{hook}");
        }
    }

    #[test]
    fn a_rule_for_everybody_is_tripped_where_its_breaker_is_open() {
        let trips = json!([{"tenant_id": "a", "tripped_at": "2026-11-22T06:44:00Z"}]);
        let hook = json!({"id": "1", "scope": "global", "enabled": true, "tripped_at": null, "trips": trips});
        let [a, b] = ["a", "b"].map(TenantId::new);
        for (tenant, state) in
            [(Some(&a), GuardState::Tripped), (Some(&b), GuardState::Armed), (None, GuardState::Tripped)]
        {
            assert_eq!(stored(&counting_in(tenant, hook.clone()), Proof::Answered).state, state, "{tenant:?}");
        }
        let own = json!({"id": "1", "scope": "tenant", "enabled": false, "tripped_at": "2026-11-22T06:44:00Z"});
        assert_eq!(counting_in(Some(&a), own.clone()), own);
    }

    #[test]
    fn health_is_one_word() {
        for (health, state) in [
            (Health::Disabled, GuardState::Disabled),
            (Health::unanswered(), GuardState::Unproven),
            (Health::unproven(Step::Trust, ""), GuardState::Unproven),
            (Health::unproven(Step::Breaker, ""), GuardState::Tripped),
            (Health::unproven(Step::Spawn, ""), GuardState::Broken),
        ] {
            assert_eq!(GuardState::of(&health), state, "{health:?}");
        }
        let line = GuardLine { hook_id: None, why: Some("/secret/place".into()), ..stored(&json!({}), Proof::Nothing) };
        assert_eq!(line.shown(false)["why"], Value::Null);
        assert_eq!(line.shown(true)["why"], "/secret/place");
    }
}
