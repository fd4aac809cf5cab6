//! Hooks that stand in no list of a turn, and why.

use pintle_agent::driver::rehearsal::RehearsedTurn;
use pintle_domain::ledger::Provenance;
use pintle_domain::skill::{SkillHook, Timing};
use pintle_domain::turn::ToolUse;

/// A hook that stood in no list.
pub(super) struct AbsentHook {
    pub(super) skill: String,
    pub(super) name: String,
    pub(super) timing: Timing,
    /// Whether it cannot in any turn like this one: whatever the model says.
    pub(super) never: bool,
    pub(super) why: String,
}

/// The hooks that stand in no list of `went`, in running order. `knows` says whether the agent may have a tool.
pub(super) fn of(went: &RehearsedTurn, knows: impl Fn(&str) -> bool) -> Vec<AbsentHook> {
    let stood: Vec<Provenance> = went
        .calls
        .iter()
        .flat_map(|call| &call.request.messages)
        .filter(|message| message.get().id().is_some())
        .map(|message| message.get().provenance())
        .collect();
    let stands = |hook: &&SkillHook| {
        stood.iter().any(|from| (from.skill.as_ref(), from.hook.as_ref()) == (Some(&hook.skill), Some(&hook.name)))
    };
    let absent = went.skills.hooks.iter().filter(|hook| !stands(hook));
    absent
        .map(|hook| {
            let (never, why) = why(hook, went, &knows);
            AbsentHook { skill: hook.skill.clone(), name: hook.name.clone(), timing: hook.timing, never, why }
        })
        .collect()
}

fn why(hook: &SkillHook, went: &RehearsedTurn, knows: &impl Fn(&str) -> bool) -> (bool, String) {
    if went.skills.off.contains(&hook.skill) {
        return (true, "its skill is switched off for this turn".into());
    }
    if hook.timing == Timing::BeforePlanning && !went.planned {
        return (true, "the flow is `direct`: nothing is planned".into());
    }
    let loops = match (hook.timing, went.tools) {
        (Timing::AfterUserInput, _) | (_, ToolUse::Own) => None,
        (_, ToolUse::None) => Some("the agent has no tools of its own: there is a single call"),
        (_, ToolUse::Off) => Some("no tools are offered in this turn: there is a single call"),
    };
    if let Some(why) = loops {
        return (true, why.into());
    }
    match hook.timing {
        Timing::AfterToolCall if !hook.tool_filter.is_empty() => {
            let filter = hook.tool_filter.join(", ");
            if hook.tool_filter.iter().any(|tool| knows(tool)) {
                (false, format!("no call of {filter}"))
            } else {
                (true, format!("the agent has no tool of its filter: {filter}"))
            }
        }
        Timing::AfterToolCall => (false, "no call of a tool, or no model call after it".into()),
        Timing::AfterUserInput | Timing::BeforePlanning | Timing::BeforeFirstAgent | Timing::BeforeEachAgent => {
            (false, "the turn ended before".into())
        }
    }
}
