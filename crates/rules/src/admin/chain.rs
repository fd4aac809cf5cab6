//! Who would be asked about a call: for people who wonder.

use domain::breaker;
use domain::chain::wanted;
use domain::checkpoint::{AgentInfo, CheckpointKind, Duty, EventContext, Facts};
use domain::hook::{Hook, HookState};
use domain::id::{AgentId, HookName, TurnId};
use domain::identity::Identity;
use domain::json::{Object, Value, json};
use domain::record::NotRun;
use domain::rule::Rule;

use super::{AdminError, Caller, CallerRole, RuleAdmin};
use engine::hook_set::HookSet;

/// An event at which somebody wants to know the chain.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainQuery<'a> {
    /// Where.
    pub event: CheckpointKind,
    /// The agent of the turn: the UUID or the key of an agent; the host's first one unless it is said.
    pub agent: Option<&'a str>,
    /// The tool, under any of its names.
    pub tool: Option<&'a str>,
    /// Its arguments.
    pub input: Option<&'a Object>,
}

impl RuleAdmin {
    /// The rules of an event in running order, each with whether it would run, and if not why.
    ///
    /// # Errors
    /// `invalid agentId`; or no rules could ever be read.
    pub async fn chain(&self, by: &Caller, asking: ChainQuery<'_>) -> Result<Vec<Value>, AdminError> {
        by.at_least(CallerRole::Viewer, "chain")?;
        let agents = (self.parts.agents)();
        let agent = match asking.agent {
            Some(named) => self.agent(&by.tenant, named)?.1.unwrap_or_else(|| AgentId::from(named)),
            None => agents.first().cloned().unwrap_or_else(|| AgentId::from("")),
        };
        let view = self.view(by).await?;
        let known = (self.parts.known_of)(&by.tenant, &agent);
        let raw = asking.tool.unwrap_or_default();
        let canonical = known.meant(raw);
        let empty = Object::new();
        let facts = Facts {
            tool: asking.tool.map(|raw| (canonical.as_str(), raw)),
            input: asking.tool.map(|_| asking.input.unwrap_or(&empty)),
            ..Facts::default()
        };
        let who = Identity {
            tenant_id: by.tenant.clone(),
            is_test: true,
            ..Identity::top(agent.as_str(), "", TurnId::from(""))
        };
        let event_context = EventContext { who: &who, known: &*known };
        // These are the hooks that are asked, not others made from the same rows.
        let live = self.parts.rule_cache.live().rules();
        let set = HookSet::of(live.of(&by.tenant).iter());
        let hooks = set.roster().at(asking.event).iter().map(|number| set.roster().hook(*number));
        let line = |hook: &std::sync::Arc<Hook>| {
            let row = view.rules.hooks.iter().find(|row| hook.stored.as_ref().is_some_and(|own| own.id == row.id))?;
            let fate = fate(hook, row, asking.event, (&facts, event_context));
            Some(json!({
                "hookId": row.id,
                "name": row.name,
                "scope": row.scope,
                "priority": row.priority,
                "state": state(hook),
                "wouldRun": fate.is_none(),
                "reason": fate.unwrap_or_default(),
            }))
        };
        Ok(hooks.filter_map(line).collect())
    }
}

fn state(hook: &Hook) -> &'static str {
    match hook.state {
        HookState::Armed => "on",
        HookState::Disabled | HookState::Untrusted => "off",
        HookState::Tripped { .. } => "tripped",
        HookState::Broken(_) => "broken",
    }
}

/// Why the handler of `hook` would not run, if it would not.
fn fate(
    hook: &Hook,
    row: &Rule,
    event: CheckpointKind,
    (facts, event_context): (&Facts<'_>, EventContext<'_>),
) -> Option<String> {
    match &hook.state {
        HookState::Disabled if row.disabled_reason.is_empty() => return Some("switched off".to_owned()),
        HookState::Disabled => return Some(format!("switched off: {}", row.disabled_reason)),
        HookState::Untrusted => return Some("not accepted by anybody".to_owned()),
        HookState::Armed | HookState::Tripped { .. } | HookState::Broken(_) => {}
    }
    let acting = [event_context.who.agent_id.clone()];
    if !hook.scope.covers(&acting) {
        return Some("about other agents".to_owned());
    }
    match wanted(hook, event.name(), facts, event_context) {
        Err(NotRun::Matcher { pattern, value }) => {
            return Some(format!("its matcher {pattern:?} does not match {value:?}"));
        }
        Err(NotRun::Condition { text }) => return Some(format!("its if_expr is false: {text}")),
        Err(NotRun::Decided { by }) => return Some(decided(&by)),
        Err(
            NotRun::Disabled
            | NotRun::OutOfScope
            | NotRun::BreakerOpen { .. }
            | NotRun::Untrusted
            | NotRun::ChainTimeSpent { .. }
            | NotRun::BudgetSpent(_)
            | NotRun::CapReached { .. }
            | NotRun::Dropped,
        ) => return Some("about something else".to_owned()),
        Ok(Some(fault)) => return Some(faulty(event, &fault.explained().to_string())),
        Ok(None) => {}
    }
    match &hook.state {
        HookState::Tripped { since } => Some(breaker::refusal(row.label(), row.id.as_str(), since, row.breaker)),
        HookState::Broken(fault) => Some(faulty(event, &fault.explained().to_string())),
        HookState::Armed | HookState::Disabled | HookState::Untrusted => None,
    }
}

fn decided(by: &HookName) -> String {
    format!("hook \"{by}\" decides before it")
}

fn faulty(event: CheckpointKind, fault: &str) -> String {
    let then = if event.duty() == Duty::Gate { "blocks" } else { "is skipped" };
    format!("it {then}: it {fault}")
}

/// The knowledge about an agent of which the host says nothing: names are taken as they are.
pub struct UnknownAgent {
    /// The id under which rules know the agent.
    pub agent_uuid: String,
}

impl AgentInfo for UnknownAgent {
    fn tool(&self, name: &str) -> Option<String> {
        Some(name.to_owned())
    }

    fn model(&self, _model: &str) -> bool {
        true
    }

    fn owner(&self, _name: &str) -> Option<HookName> {
        None
    }

    fn agent_uuid(&self) -> &str {
        &self.agent_uuid
    }
}
