//! What the turns of an agent look like, as far as its settings alone say: what a turn has beside its conversation, what
//! a model is asked, what a plan becomes. It knows no clock and has no effect, so that a rehearsal says what a turn says.

use std::sync::Arc;

use pintle_domain::json::Rendered;
use pintle_domain::ledger::{MessageSource, Provenance};
use pintle_domain::llm::{LlmReply, LlmRequest, ToolDef};
use pintle_domain::message::{FROM_HOOK, Message, Role};
use pintle_domain::planning::{ToolNeed, stripped};
use pintle_domain::skill::Skills;
use pintle_domain::turn::{Fact, ToolUse, Turn, TurnFlow, TurnSetup};

use crate::settings::{AgentSettings, OnMissingTag};
use crate::tools::LOAD_SKILL;

/// How a model is asked.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum ModelRequest {
    /// For a plan: no tools.
    Plan,
    /// For the next step of the turn.
    Step,
    /// For the last words of a turn that was interrupted, or whose rounds are spent: no tools.
    LastWords,
    /// For something that the user does not see: no tools.
    Aside,
}

/// What a turn has beside its conversation; nothing if it is a plain one. `enabled` says whether tools are offered.
pub(super) fn equipment(
    settings: &AgentSettings,
    offered: &[Rendered<ToolDef>],
    skills: Skills,
    enabled: bool,
) -> Option<TurnSetup> {
    let flow = match &settings.planning {
        Some(planning) => TurnFlow::Planned(planning.prompts.clone()),
        None => TurnFlow::Direct,
    };
    // A tool that only reads what skills say makes no agent of a conversation.
    let own = offered.iter().any(|tool| tool.get().function.name != LOAD_SKILL);
    let tools = match (enabled, own) {
        (false, _) => ToolUse::Off,
        (true, false) => ToolUse::None,
        (true, true) => ToolUse::Own,
    };
    let plain = skills.is_empty() && flow == TurnFlow::Direct && tools != ToolUse::Off;
    (!plain).then_some(TurnSetup { skills, flow, tools })
}

/// Whether tools are offered in a call of `turn`.
pub(super) fn offers(turn: &Turn, asking: ModelRequest) -> bool {
    asking == ModelRequest::Step && turn.tool_use() != Some(ToolUse::Off)
}

/// What a model is asked in `turn` as it stands, before hooks see it.
pub(super) fn request(
    settings: &AgentSettings,
    offered: &[Rendered<ToolDef>],
    turn: &Turn,
    asking: ModelRequest,
) -> LlmRequest {
    let system = Some(&settings.system).filter(|text| !text.is_empty());
    let system = system.map(|text| Rendered::new(Message::text(Role::System, text.as_str())));
    let last = (asking == ModelRequest::LastWords).then(|| Rendered::new(sum_up(turn)));
    LlmRequest {
        model: settings.model.clone(),
        messages: system.into_iter().chain(turn.messages().iter().cloned()).chain(last).collect(),
        tools: if offers(turn, asking) { offered.to_vec() } else { Vec::new() },
        options: settings.options.clone(),
        graceful_terminal: asking == ModelRequest::LastWords,
    }
}

/// Asks for last words. It ends the list of that call alone, as a note of the host's own: it leaves between the marks in
/// which notes of hooks leave, and stands in no conversation.
fn sum_up(turn: &Turn) -> Message {
    let why = match turn.limit_reached() {
        Some(1) => "The one round of this turn is spent".to_owned(),
        Some(limit) => format!("All {limit} rounds of this turn are spent"),
        None => "The user wants this turn to come to an end".to_owned(),
    };
    let text = format!(
        "{why}: this is its last answer, and no tool can be used in it. Sum up for the user what was done, what came of \
         it, and what is still open."
    );
    let mut note = Message { origin: FROM_HOOK.into(), ..Message::text(Role::System, text) };
    note.private.from = Some(Arc::new(Provenance::new(MessageSource::Builtin, turn.iteration())));
    note
}

/// Whether the loop follows a plan that says `need` of tools.
pub(super) fn goes_on(settings: &AgentSettings, need: ToolNeed) -> bool {
    match need {
        ToolNeed::Tools => true,
        ToolNeed::Nothing => false,
        ToolNeed::Unsaid => {
            settings.planning.as_ref().is_some_and(|planning| planning.on_missing_tag == OnMissingTag::Loop)
        }
    }
}

/// What the plan `reply` of `model` is to its turn.
pub(super) fn plan(settings: &AgentSettings, reply: &LlmReply, model: &str, need_tool: bool) -> Fact {
    let content = stripped(&reply.content).trim().to_owned();
    // Without its thoughts: they belong to a call that is not gone on with.
    let dropped = need_tool && settings.planning.as_ref().is_some_and(|planning| !planning.record);
    let plan = LlmReply::text(if dropped { String::new() } else { content });
    Fact::Planned { message: plan.into_message(model).into(), need_tool, usage: reply.usage }
}
