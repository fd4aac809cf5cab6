//! Whether a hook is about an event.

use std::sync::Arc;

use crate::checkpoint::{Facts, Occasion};
use crate::condition::{Condition, Seen};
use crate::fault::Fault;
use crate::hook::Hook;
use crate::json::Object;
use crate::record::{NotRun, Why};

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
