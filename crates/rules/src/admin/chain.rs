//! Who would be asked about a call: for people who wonder.

use std::sync::Arc;

use pintle_domain::breaker;
use pintle_domain::chain::wanted;
use pintle_domain::checkpoint::{AgentInfo, CheckpointKind, Duty, EventContext, Facts};
use pintle_domain::fault::Fault;
use pintle_domain::hook::{Hook, HookState};
use pintle_domain::id::{AgentId, HookName, TenantId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::{Object, Value, json};
use pintle_domain::record::NotRun;
use pintle_domain::rule::{Rule, Source};
use pintle_domain::shell::ShellFacts;

use super::{AdminError, Caller, CallerRole, RuleAdmin};
use pintle_engine::hook_set::HookSet;

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
        let setting = self.setting(by, &asking)?;
        let view = self.view(by).await?;
        let occasion = setting.occasion(&asking);
        // These are the hooks that are asked, not others made from the same rows.
        let live = self.parts.rule_cache.live().rules();
        let set = HookSet::of(live.of(&by.tenant).iter());
        let hooks = set.roster().at(asking.event).iter().map(|number| set.roster().hook(*number));
        let line = |hook: &std::sync::Arc<Hook>| {
            let row = view.rules.hooks.iter().find(|row| hook.stored.as_ref().is_some_and(|own| own.id == row.id))?;
            let fate = fate((hook, Some(row)), &occasion, &explained);
            Some((row.priority, chain_line(row, state(hook), fate)))
        };
        let mut lines: Vec<(i32, Value)> = hooks.filter_map(line).collect();
        // What is shipped and switched off is in no set; people look for it here as for any other that is off.
        let is_off = |row: &&Rule| row.source == Source::Builtin && !row.is_candidate() && row.event == asking.event;
        for row in view.rules.hooks.iter().filter(is_off) {
            let at = lines.partition_point(|(priority, _)| *priority > row.priority);
            lines.insert(at, (row.priority, chain_line(row, "off", Some(why_off(Some(row))))));
        }
        Ok(lines.into_iter().map(|(_, line)| line).collect())
    }

    /// Why each of `hooks`, which are no rules, would not run at such an event, or nothing if it would. In what way one is
    /// broken is told to those who run the host.
    ///
    /// # Errors
    /// `invalid agentId`.
    pub fn fates(
        &self,
        by: &Caller,
        asking: &ChainQuery<'_>,
        hooks: &[Arc<Hook>],
    ) -> Result<Vec<Option<String>>, AdminError> {
        by.at_least(CallerRole::Viewer, "chain")?;
        let setting = self.setting(by, asking)?;
        let occasion = setting.occasion(asking);
        let words: &dyn Fn(&Fault) -> String = if by.is_master() { &explained } else { &|_| "is broken".to_owned() };
        Ok(hooks.iter().map(|hook| fate((hook, None), &occasion, words)).collect())
    }

    /// What is known of the shell text that a call of `tool` by `agent` would run; nothing if it runs none.
    pub fn shell_facts(
        &self,
        (tenant, agent): (&TenantId, &AgentId),
        tool: &str,
        arguments: &Object,
    ) -> Option<Arc<ShellFacts>> {
        let facts = (self.parts.known_of)(tenant, agent).shell(tool, arguments);
        (*facts != ShellFacts::default()).then_some(facts)
    }

    /// The agent that is meant, and what is known of it.
    fn setting(&self, by: &Caller, asking: &ChainQuery<'_>) -> Result<Setting, AdminError> {
        let agent = self.meant_agent(by, asking.agent)?;
        let known = (self.parts.known_of)(&by.tenant, &agent);
        let canonical = known.meant(asking.tool.unwrap_or_default());
        let who = Identity {
            tenant_id: by.tenant.clone(),
            is_test: true,
            ..Identity::top(agent.as_str(), "", TurnId::from(""))
        };
        Ok(Setting { who, known, canonical, no_input: Object::new() })
    }

    /// The agent that somebody means: the host's first one unless it is said.
    ///
    /// # Errors
    /// `invalid agentId`.
    pub fn meant_agent(&self, by: &Caller, named: Option<&str>) -> Result<AgentId, AdminError> {
        let first = || (self.parts.agents)().first().cloned().unwrap_or_else(|| AgentId::from(""));
        match named {
            Some(named) => Ok(self.agent(&by.tenant, named)?.1.unwrap_or_else(|| AgentId::from(named))),
            None => Ok(first()),
        }
    }
}

/// What an event is compared with, beside its hooks.
struct Setting {
    who: Identity,
    known: Arc<dyn AgentInfo>,
    /// The name of its tool.
    canonical: String,
    no_input: Object,
}

/// An event as hooks are compared with it.
struct Occasion<'a> {
    event: CheckpointKind,
    facts: Facts<'a>,
    event_context: EventContext<'a>,
}

impl Setting {
    fn occasion<'a>(&'a self, asking: &ChainQuery<'a>) -> Occasion<'a> {
        Occasion { event: asking.event, facts: self.facts(asking), event_context: self.event_context() }
    }

    fn facts<'a>(&'a self, asking: &ChainQuery<'a>) -> Facts<'a> {
        Facts {
            tool: asking.tool.map(|raw| (self.canonical.as_str(), raw)),
            input: asking.tool.map(|_| asking.input.unwrap_or(&self.no_input)),
            ..Facts::default()
        }
    }

    fn event_context(&self) -> EventContext<'_> {
        EventContext { who: &self.who, known: &*self.known }
    }
}

/// A rule as a chain has it; it would run where nothing is against it.
fn chain_line(row: &Rule, state: &str, fate: Option<String>) -> Value {
    json!({
        "hookId": row.id,
        "name": row.name,
        "scope": row.scope,
        "priority": row.priority,
        "state": state,
        "wouldRun": fate.is_none(),
        "reason": fate.unwrap_or_default(),
    })
}

/// Why a hook that is switched off does not run; `row` is what is kept of a rule.
fn why_off(row: Option<&Rule>) -> String {
    let reason = row.map(|row| row.disabled_reason.as_str()).filter(|reason| !reason.is_empty());
    reason.map_or_else(|| "switched off".to_owned(), |reason| format!("switched off: {reason}"))
}

fn state(hook: &Hook) -> &'static str {
    match hook.state {
        HookState::Armed => "on",
        HookState::Disabled | HookState::Untrusted => "off",
        HookState::Tripped { .. } => "tripped",
        HookState::Broken(_) => "broken",
    }
}

fn explained(fault: &Fault) -> String {
    fault.explained().to_string()
}

/// Why the handler of `hook` would not run, if it would not; `row` is what is kept of a rule, and `words` says a fault.
fn fate(
    (hook, row): (&Hook, Option<&Rule>),
    occasion: &Occasion<'_>,
    words: &dyn Fn(&Fault) -> String,
) -> Option<String> {
    let Occasion { event, facts, event_context } = occasion;
    let (event, event_context) = (*event, *event_context);
    match &hook.state {
        HookState::Disabled => return Some(why_off(row)),
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
        Ok(Some(fault)) => return Some(faulty(event, &words(&fault))),
        Ok(None) => {}
    }
    match &hook.state {
        HookState::Tripped { since } => {
            row.map(|row| breaker::refusal(row.label(), row.id.as_str(), since, row.breaker))
        }
        HookState::Broken(fault) => Some(faulty(event, &words(fault))),
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
