//! Whether a hook is about an event.

use std::sync::Arc;

use super::{Chain, Pass};
use crate::checkpoint::{Checkpoint, EventContext, Facts};
use crate::condition::ConditionInput;
use crate::fault::Fault;
use crate::hook::{Hook, HookState};
use crate::id::HookName;
use crate::json::Object;
use crate::record::{NotRun, PassedOver, Why};
use crate::roster::Roster;
use crate::shell::ShellFacts;

/// Whether the matcher and the condition of `hook` want an event about `facts`: if not why, and if that cannot be said,
/// the fault that this is.
pub fn wanted(
    hook: &Hook,
    event: &'static str,
    facts: &Facts<'_>,
    event_context: EventContext<'_>,
) -> Result<Option<Fault>, NotRun> {
    let (shell, none) = (|| shell(facts, event_context), None);
    let about = EventProfile { facts: *facts, seen: seen(event, facts, event_context, &shell), matching: none };
    about.wanted(hook, 0).map_err(|why| why.of(hook, &about.value()))
}

impl<C: Checkpoint> Chain<'_, C> {
    /// Goes on to the next place of this pass whose hook is about this, with the fault that it is if that cannot be said.
    /// Those before it are recorded and passed over: mostly all of a row, so little is done for each of them.
    pub(super) fn pass_over(&mut self, roster: &Arc<Roster>) -> Option<(usize, Option<Fault>)> {
        let row = roster.at(C::KIND);
        let (facts, event_context) = (self.subject.facts(), self.event_context);
        let shell = || shell(&facts, event_context);
        let matching = roster.matching(C::KIND, &facts);
        let about = EventProfile { facts, seen: seen(C::KIND.name(), &facts, event_context, &shell), matching };
        let owner = about.facts.tool.and_then(|(tool, _)| self.event_context.known.owner(tool));
        let mut over = Vec::new();
        let found = loop {
            let place = match &self.pass {
                Pass::First => Some(self.at),
                Pass::Again(places) => places.get(self.at).copied(),
            };
            let Some((place, number)) = place.and_then(|place| Some((place, *row.get(place)?))) else { break None };
            match self.wants((roster.hook(number), place), &about, owner.as_ref()) {
                Ok(fault) => break Some((place, fault)),
                Err(why) => {
                    if over.is_empty() {
                        over.reserve(row.len() - place);
                    }
                    over.push((number, why));
                }
            }
            self.at += 1;
        };
        if matches!(self.pass, Pass::First) && !over.is_empty() {
            self.records.pass_over(PassedOver::new(roster.clone(), C::KIND, about.value()).with(over));
        }
        found
    }

    /// Whether `hook` is about this: if not why, and if that cannot be said, the fault that this is.
    /// A hook that brought the tool always is, at any stage.
    fn wants(
        &self,
        (hook, place): (&Hook, usize),
        about: &EventProfile<'_>,
        owner: Option<&HookName>,
    ) -> Result<Option<Fault>, Why> {
        match hook.state {
            HookState::Disabled => return Err(Why::Disabled),
            HookState::Untrusted => return Err(Why::Untrusted),
            HookState::Armed | HookState::Broken(_) | HookState::Tripped { .. } => {}
        }
        if !hook.scope.covers(self.event_context.known.acting_for()) {
            return Err(Why::OutOfScope);
        }
        if owner == Some(&hook.name) || self.subject.owner() == Some(&hook.name) {
            return Ok(None);
        }
        about.wanted(hook, place)
    }
}

/// The profile of an event that its hooks are compared with.
struct EventProfile<'a> {
    facts: Facts<'a>,
    /// The view of the event that conditions get.
    seen: ConditionInput<'a>,
    /// Which places of the row have a matcher that lets it pass, where that is known.
    matching: Option<Arc<[bool]>>,
}

impl EventProfile<'_> {
    /// Whether `hook` wants this, which stands at `place` of the row.
    fn wanted(&self, hook: &Hook, place: usize) -> Result<Option<Fault>, Why> {
        let matches = || match &self.matching {
            Some(matching) => matching[place],
            None => hook.matches(&self.facts),
        };
        if hook.matcher.is_some() && !matches() { Err(Why::Matcher) } else { self.meets(hook) }
    }

    /// Whether the condition of `hook` wants this.
    fn meets(&self, hook: &Hook) -> Result<Option<Fault>, Why> {
        let condition = hook.stored.as_ref().and_then(|stored| stored.condition.as_ref());
        let Some(condition) = condition else { return Ok(None) };
        match condition.holds(&self.seen) {
            Ok(true) => Ok(None),
            Ok(false) => Err(Why::Condition),
            Err(detail) => Ok(Some(Fault::ConditionFailed { cause: detail.into() })),
        }
    }

    /// The value that matchers are compared with, written out.
    fn value(&self) -> Arc<str> {
        match self.facts.tool {
            Some((tool, raw)) if tool == raw => tool.into(),
            Some((tool, raw)) => format!("{tool} ({raw})").into(),
            None => "".into(),
        }
    }
}

/// The view of an event that conditions get.
fn seen<'a>(
    event: &'static str,
    facts: &Facts<'a>,
    EventContext { who, known }: EventContext<'a>,
    shell: &'a (dyn Fn() -> Arc<ShellFacts> + Sync),
) -> ConditionInput<'a> {
    let (tool, raw) = facts.tool.unwrap_or_default();
    ConditionInput {
        event,
        tool_name: tool,
        raw_tool_name: raw,
        tool_input: facts.input,
        raw_input: facts.prompt.unwrap_or_default(),
        depth: facts.depth.unwrap_or(who.depth),
        agent_id: known.agent_uuid(),
        session_id: who.session_id.as_str(),
        first_prompt: facts.first_prompt,
        shell,
    }
}

/// The facts about the shell text of a call.
fn shell(facts: &Facts<'_>, event_context: EventContext<'_>) -> Arc<ShellFacts> {
    let (tool, _) = facts.tool.unwrap_or_default();
    let empty = Object::new();
    event_context.known.shell(tool, facts.input.unwrap_or(&empty))
}
