//! A rule as a row of a listing.

use std::collections::BTreeMap;

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::health::{Health, Step};
use pintle_domain::id::{DEFAULT_TENANT, SENTINEL_TENANT, TenantId, agent_uuid};
use pintle_domain::json::{Value, json};
use pintle_domain::rule::{Fallback, tripped};
use pintle_domain::store::Tenant;
use pintle_rules::condition;

use super::super::stored::{blind, label, text};
use crate::clean::clean;
use crate::cli::command_line::complete;
use crate::moment::moment_of;
use crate::table::glued;
use pintle_host::config::Config;

const DIM: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const NOTE: Style = AnsiColor::Yellow.on_default();

/// The rules of a listing, in running order.
pub(in super::super) struct Rules {
    hooks: Vec<Value>,
    /// How each stands that is known not to do its work, by its id.
    health: BTreeMap<String, Health>,
    /// The configured agents, by what rules know them as.
    agents: BTreeMap<String, String>,
    /// The slugs of tenants, by their ids, where there are several.
    tenants: BTreeMap<String, String>,
}

impl Rules {
    /// Those of `hooks`. The `known` tenants are those of the store: the owner of global rules first.
    pub(in super::super) fn new(hooks: Vec<Value>, config: &Config, known: &[Tenant]) -> Self {
        let tenants: Vec<&str> = hooks.iter().map(|hook| text(hook, "tenant_id")).collect();
        let of = |tenant: &&str| {
            let tenant = TenantId::from(*tenant);
            config.agents.keys().map(move |key| (agent_uuid(&tenant, key), key.clone()))
        };
        let agents = tenants.iter().flat_map(of).collect();
        let of = |hook: &Value| standing(hook, || Some(blind(config, hook)?.health()));
        let health = hooks.iter().filter_map(|hook| Some((text(hook, "id").to_owned(), of(hook)?))).collect();
        let several = known.iter().skip(1).filter(|_| known.len() > 2);
        let tenants = several.map(|tenant| (tenant.id.to_string(), tenant.slug.clone())).collect();
        Self { health, agents, hooks, tenants }
    }

    /// Whether there are none but builtins.
    pub(super) fn are_shipped(&self) -> bool {
        self.hooks.iter().all(|hook| text(hook, "source") == "builtin")
    }

    /// The chain of `kind`.
    pub(super) fn at(&self, kind: CheckpointKind) -> impl Iterator<Item = &Value> {
        self.hooks.iter().filter(move |hook| text(hook, "event") == kind.name())
    }

    /// What stands after the priority: whether it acts, and when.
    pub(super) fn terms(&self, hook: &Value) -> String {
        let mut terms = vec![text(hook, "handler_type").to_owned(), self.scope(hook)];
        let tenant = text(hook, "tenant_id");
        match self.tenants.get(tenant) {
            Some(slug) => terms.push(format!("tenant {}", clean(slug))),
            None if [DEFAULT_TENANT, SENTINEL_TENANT].contains(&tenant) => {}
            None => terms.push(format!("tenant {}", clean(tenant))),
        }
        terms.push(format!("{} ms", hook["timeout_ms"]));
        if !text(hook, "matcher").is_empty() {
            terms.push(format!("matcher /{}/", clean(text(hook, "matcher"))));
        }
        if !text(hook, "if_expr").is_empty() {
            terms.push(format!("if {}", clean(text(hook, "if_expr"))));
        }
        terms.push(glued(&format!("version {}", hook["version"])));
        behind(&state(hook, self.health(hook)), &terms.join(", "))
    }

    /// How a rule stands, as far as is known without asking it; none for one that can do its work.
    pub(in super::super) fn health(&self, hook: &Value) -> Option<&Health> {
        self.health.get(text(hook, "id"))
    }

    /// Whose turns it is about.
    pub(in super::super) fn scope(&self, hook: &Value) -> String {
        let agents: Vec<String> = hook["agent_ids"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(|id| match self.agents.get(id) {
                Some(name) => clean(name),
                None => format!("{} (not configured)", clean(id)),
            })
            .collect();
        match agents.as_slice() {
            [] => text(hook, "scope").to_owned(),
            agents => format!("{} {}", text(hook, "scope"), agents.join(" ")),
        }
    }

    /// The hook as it is printed with `--json`.
    pub(super) fn json(&self, hook: &Value) -> Value {
        json!({
            "hook": label(hook),
            "id": hook["id"],
            "family": "agent",
            "origin": origin(hook),
            "scope": self.scope(hook),
            "tenant_id": hook["tenant_id"],
            "handler_type": hook["handler_type"],
            "priority": hook["priority"],
            "state": state_word(hook),
            "fault": fault(hook),
            "disabled_reason": hook["disabled_reason"],
            "tripped_at": hook["tripped_at"],
            "trips": hook.get("trips"),
            "matcher": Some(text(hook, "matcher")).filter(|matcher| !matcher.is_empty()),
            "if_expr": Some(text(hook, "if_expr")).filter(|condition| !condition.is_empty()),
            "timeout_ms": hook["timeout_ms"],
            "on_timeout": hook["on_timeout"],
            "version": hook["version"],
        })
    }
}

/// How a hook stands, and the `rest` behind it. What ends with a question is not part of a list.
pub(super) fn behind(health: &str, rest: &str) -> String {
    let asks = anstream::adapter::strip_str(health).to_string().ends_with('?');
    format!("{health}{}{rest}", if asks { " · " } else { ", " })
}

/// Who brought it.
pub(super) fn origin(hook: &Value) -> &str {
    match (text(hook, "source"), hook["created_by"].as_str()) {
        ("builtin", _) => "builtin",
        (_, Some(by)) if !by.is_empty() => by,
        (_, Some(_) | None) => "store",
    }
}

/// The word of a state in JSON: those of every other hook.
pub(in super::super) fn state_word(hook: &Value) -> &'static str {
    match (hook["tripped_at"].is_string(), hook["enabled"] == true) {
        (true, _) => "tripped",
        (false, false) => "disabled",
        (false, true) if fault(hook).is_some() => "broken",
        (false, true) => "armed",
    }
}

/// How the rule `hook` stands, whose matcher may be `blind`, as far as is known without asking it; none for one that can
/// do its work.
fn standing(hook: &Value, blind: impl FnOnce() -> Option<Health>) -> Option<Health> {
    match state_word(hook) {
        "tripped" => {
            let event = CheckpointKind::named(text(hook, "event")).unwrap_or(CheckpointKind::PreToolUse);
            let allows = text(hook, "on_trip") == Fallback::Allow.word();
            let on_trip = if allows { Fallback::Allow } else { Fallback::Block };
            Some(Health::unproven(Step::Breaker, tripped(&moment_of(text(hook, "tripped_at")), on_trip, event)))
        }
        "disabled" => Some(Health::Disabled),
        _ => match fault(hook) {
            Some(why) => Some(Health::unproven(Step::Condition, why)),
            None => blind(),
        },
    }
}

/// The state for people.
fn state(hook: &Value, health: Option<&Health>) -> String {
    let trips = hook["trips"].as_array().map(Vec::len).unwrap_or_default();
    match (health, text(hook, "disabled_reason")) {
        (Some(Health::Disabled), "") => format!("{DIM}off{DIM:#}"),
        (Some(Health::Disabled), why) => format!("{NOTE}off: {}{NOTE:#}", clean(why)),
        (Some(health), _) => format!("{BAD}{}{BAD:#}", complete(&clean(&health.words(Timestamp::now())))),
        (None, _) if trips == 1 => format!("{BAD}on, tripped for 1 tenant{BAD:#}"),
        (None, _) if trips > 1 => format!("{BAD}on, tripped for {trips} tenants{BAD:#}"),
        (None, _) => format!("{GOOD}on{GOOD:#}"),
    }
}

/// Why it cannot say whether it is asked: it fails at each event then.
pub(in super::super) fn fault(hook: &Value) -> Option<String> {
    let (matcher, condition) = (text(hook, "matcher"), text(hook, "if_expr"));
    let bad_matcher =
        Some(matcher).filter(|text| !text.is_empty()).and_then(|text| condition::compile_matcher(text).err());
    let bad_condition =
        || Some(condition).filter(|text| !text.is_empty()).and_then(|text| condition::compile(text).err());
    bad_matcher.or_else(bad_condition)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn the_state_says_why_a_hook_does_not_act() {
        let check = |hook: Value, word: &str, shown: &str| {
            let health = standing(&hook, || None);
            assert_eq!((state_word(&hook), plain(&state(&hook, health.as_ref())).as_str()), (word, shown), "{hook}");
        };
        check(json!({"enabled": true}), "armed", "on");
        check(json!({"enabled": false}), "disabled", "off");
        check(json!({"enabled": false, "disabled_reason": "no_agents"}), "disabled", "off: no_agents");
        check(json!({"enabled": false, "disabled_reason": "edition"}), "disabled", "off: edition");
        let tripped = json!({"enabled": false, "disabled_reason": "breaker", "tripped_at": "2026-11-22T06:44:00Z"});
        let at = "unproven: its circuit breaker tripped at 2026-11-22 06:44 UTC";
        check(tripped.clone(), "tripped", &format!("{at} and refuses every matching call"));
        let mut passes = tripped;
        passes["on_trip"] = json!("allow");
        check(passes, "tripped", &format!("{at} and lets every matching call pass"));
        check(json!({"enabled": true, "trips": [{}]}), "armed", "on, tripped for 1 tenant");
        let broken = json!({"enabled": true, "if_expr": "size("});
        let health = standing(&broken, || None);
        assert_eq!(state_word(&broken), "broken");
        assert!(plain(&state(&broken, health.as_ref())).starts_with("unproven: "), "{health:?}");
    }
}
