//! Whether a hook is about an event.

use std::sync::Arc;

use super::{Chain, Pass};
use crate::checkpoint::{Checkpoint, Facts, Occasion};
use crate::condition::{Condition, Seen};
use crate::fault::Fault;
use crate::hook::{Hook, State};
use crate::id::HookName;
use crate::json::Object;
use crate::record::{NotRun, PassedOver, Why};
use crate::roster::Roster;

/// Whether the matcher and the condition of `hook` want an event about `facts`: if not why, and if that cannot be said,
/// the fault that this is.
pub fn wanted(
    hook: &Hook,
    event: &'static str,
    facts: &Facts<'_>,
    occasion: Occasion<'_>,
) -> Result<Option<Fault>, NotRun> {
    let about = About::new(*facts);
    about.wanted(hook, event, occasion).map_err(|why| why.of(hook, &about.value()))
}

impl<C: Checkpoint> Chain<'_, C> {
    /// Goes on to the next place of this pass whose hook is about this, with the fault that it is if that cannot be said.
    /// Those before it are recorded and passed over: mostly all of a row, so little is done for each of them.
    pub(super) fn pass_over(&mut self, roster: &Arc<Roster>) -> Option<(usize, Option<Fault>)> {
        let row = roster.at(C::KIND);
        let about = About::new(self.subject.facts());
        let owner = about.facts.tool.and_then(|(tool, _)| self.occasion.known.owner(tool));
        let mut over = Vec::new();
        let found = loop {
            let place = match &self.pass {
                Pass::First => Some(self.at),
                Pass::Again(places) => places.get(self.at).copied(),
            };
            let Some((place, number)) = place.and_then(|place| Some((place, *row.get(place)?))) else { break None };
            match self.wants(roster.hook(number), &about, owner.as_ref()) {
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
    fn wants(&self, hook: &Hook, about: &About<'_>, owner: Option<&HookName>) -> Result<Option<Fault>, Why> {
        match hook.state {
            State::Disabled => return Err(Why::Disabled),
            State::Untrusted => return Err(Why::Untrusted),
            State::Armed | State::Broken(_) | State::Tripped { .. } => {}
        }
        if !hook.scope.covers(self.occasion.known.acting_for()) {
            return Err(Why::OutOfScope);
        }
        if owner == Some(&hook.name) || self.subject.owner() == Some(&hook.name) {
            return Ok(None);
        }
        about.wanted(hook, C::KIND.name(), self.occasion)
    }
}

/// What the hooks of one event are compared with.
pub(super) struct About<'a> {
    pub(super) facts: Facts<'a>,
}

impl<'a> About<'a> {
    pub(super) fn new(facts: Facts<'a>) -> Self {
        Self { facts }
    }

    pub(super) fn wanted(
        &self,
        hook: &Hook,
        event: &'static str,
        occasion: Occasion<'_>,
    ) -> Result<Option<Fault>, Why> {
        match &hook.matcher {
            Some(_) if !hook.matches(&self.facts) => Err(Why::Matcher),
            Some(_) | None => meets(hook, event, &self.facts, occasion),
        }
    }

    /// What matchers are compared with, written out.
    pub(super) fn value(&self) -> Arc<str> {
        match self.facts.tool {
            Some((tool, raw)) if tool == raw => tool.into(),
            Some((tool, raw)) => format!("{tool} ({raw})").into(),
            None => "".into(),
        }
    }
}

/// Whether the condition of `hook` wants the event.
fn meets(hook: &Hook, event: &'static str, facts: &Facts<'_>, occasion: Occasion<'_>) -> Result<Option<Fault>, Why> {
    let condition = hook.stored.as_ref().and_then(|stored| stored.condition.as_ref());
    let Some(condition) = condition else { return Ok(None) };
    match holds(&**condition, event, facts, occasion) {
        Ok(true) => Ok(None),
        Ok(false) => Err(Why::Condition),
        Err(detail) => Ok(Some(Fault::ConditionFailed { detail })),
    }
}

/// Whether a condition holds.
fn holds(
    condition: &dyn Condition,
    event: &'static str,
    facts: &Facts<'_>,
    occasion: Occasion<'_>,
) -> Result<bool, String> {
    let Occasion { who, known } = occasion;
    let (tool, raw) = facts.tool.unwrap_or_default();
    let empty = Object::new();
    let shell = || known.shell(tool, facts.input.unwrap_or(&empty));
    condition.holds(&Seen {
        event,
        tool_name: tool,
        raw_tool_name: raw,
        tool_input: facts.input,
        raw_input: facts.prompt.unwrap_or_default(),
        depth: facts.depth.unwrap_or(who.depth),
        agent_id: known.agent_uuid(),
        session_id: who.session_id.as_str(),
        first_prompt: facts.first_prompt,
        shell: &shell,
    })
}
