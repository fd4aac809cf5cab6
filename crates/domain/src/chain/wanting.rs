//! Whether a hook is about an event.

use std::cell::OnceCell;
use std::sync::Arc;

use crate::checkpoint::{Facts, Occasion};
use crate::condition::{Condition, Seen};
use crate::fault::Fault;
use crate::hook::Hook;
use crate::json::Object;
use crate::record::NotRun;

/// Whether the matcher and the condition of `hook` want an event about `facts`: if not why, and if that cannot be said,
/// the fault that this is.
pub fn wanted(
    hook: &Hook,
    event: &'static str,
    facts: &Facts<'_>,
    occasion: Occasion<'_>,
) -> Result<Option<Fault>, NotRun> {
    About::new(*facts).wanted(hook, event, occasion)
}

/// What the hooks of one event are compared with. The name of its tool is written out once for all that do not match.
pub(super) struct About<'a> {
    pub(super) facts: Facts<'a>,
    name: OnceCell<Arc<str>>,
}

impl<'a> About<'a> {
    pub(super) fn new(facts: Facts<'a>) -> Self {
        Self { facts, name: OnceCell::new() }
    }

    pub(super) fn wanted(
        &self,
        hook: &Hook,
        event: &'static str,
        occasion: Occasion<'_>,
    ) -> Result<Option<Fault>, NotRun> {
        match &hook.matcher {
            Some(matcher) if !hook.matches(&self.facts) => {
                Err(NotRun::Matcher { pattern: matcher.shared_pattern(), value: self.name() })
            }
            Some(_) | None => meets(hook, event, &self.facts, occasion),
        }
    }

    fn name(&self) -> Arc<str> {
        let written = || match self.facts.tool {
            Some((tool, raw)) if tool == raw => tool.into(),
            Some((tool, raw)) => format!("{tool} ({raw})").into(),
            None => "".into(),
        };
        self.name.get_or_init(written).clone()
    }
}

/// Whether the condition of `hook` wants the event.
fn meets(hook: &Hook, event: &'static str, facts: &Facts<'_>, occasion: Occasion<'_>) -> Result<Option<Fault>, NotRun> {
    let condition = hook.stored.as_ref().and_then(|stored| stored.condition.as_ref());
    let Some(condition) = condition else { return Ok(None) };
    match holds(&**condition, event, facts, occasion) {
        Ok(true) => Ok(None),
        Ok(false) => Err(NotRun::Condition { text: condition.text().clone() }),
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
