//! What is spoken: params out, results in.
//!
//! Out: [`params`] of a call, [`event_params`] of a notification. In: [`hear`] a reply, or [`read`] its body alone;
//! [`welcome`] for the handshake.

use pintle_domain::checkpoint::{AskedKind, CheckpointKind, Subject};
use pintle_domain::id::{CallId, EventId};
use pintle_domain::identity::Identity;
use serde::{Serialize, Serializer};

use super::frame::escape;
use crate::compact::Json;
pub use event::{event_params, event_view, numbered};
pub use read::{hear, read, welcome};

mod echo;
mod event;
mod hint;
mod parts;
mod read;
mod reader;

/// Room for the members that every call carries, in bytes; names longer than usual only cost a second allocation.
const COMMON_BYTES: usize = 2048;

/// The method that asks a child at `kind`; `None` where process hooks do not act.
pub fn method(kind: CheckpointKind) -> Option<&'static str> {
    stage(kind).map(|(method, _)| method)
}

/// The method of a stage, and the point of the loop that `meta.Source` names.
fn stage(kind: CheckpointKind) -> Option<(&'static str, &'static str)> {
    match kind.asked() {
        Some(AskedKind::BeforeLlm) => Some(("hook.before_llm", "turn.llm.request")),
        Some(AskedKind::AfterLlm) => Some(("hook.after_llm", "turn.llm.response")),
        Some(AskedKind::BeforeTool) => Some(("hook.before_tool", "turn.tool.before")),
        Some(AskedKind::ApproveTool) => Some(("hook.approve_tool", "turn.tool.approve")),
        Some(AskedKind::AfterTool) => Some(("hook.after_tool", "turn.tool.after")),
        Some(AskedKind::UserPromptSubmit | AskedKind::PreToolUse | AskedKind::SubagentStart) | None => None,
    }
}

/// The params of the call that asks about `subject`, as compact JSON without any character that breaks a line.
///
/// Messages and tools are copied as they were written before. A subject that process hooks are not asked about
/// has the common members only.
pub fn params(event_id: &EventId, at: jiff::Timestamp, who: &Identity, subject: Subject<'_>) -> Vec<u8> {
    let mut out = Json::with_capacity(COMMON_BYTES + size_of(subject));
    let source = stage(subject.kind()).map_or("", |(_, source)| source);
    write_meta(&mut out, &Meta::of(who, path(who), source));
    write_context(&mut out, event_id, at, who, subject);
    out.raw(r#","channel":"#).text(&who.channel).raw(r#","chat_id":"#).text(&who.chat_id);
    write_own(&mut out, subject);
    out.raw("}");
    escape(out.into_bytes())
}

/// How many bytes the own members of `subject` take, about.
fn size_of(subject: Subject<'_>) -> usize {
    match subject {
        Subject::BeforeLlm(asked) => {
            let mut scratch = Vec::new();
            let messages: usize = asked.request.messages.iter().map(|m| m.json_by_way_of(&mut scratch).len() + 1).sum();
            let tools: usize = asked.request.tools.iter().map(|tool| tool.json_by_way_of(&mut scratch).len() + 1).sum();
            messages + tools
        }
        Subject::AfterLlm(asked) => asked.response.content.len() + asked.response.reasoning_content.len(),
        Subject::AfterTool(asked) => asked.result.for_llm.len() + asked.result.for_user.len(),
        Subject::BeforeTool(_)
        | Subject::ApproveTool(_)
        | Subject::PreToolUse(_)
        | Subject::UserPromptSubmit(_)
        | Subject::SubagentStart(_) => 0,
    }
}

/// Writes the member `meta`, the first of all.
fn write_meta(out: &mut Json, meta: &Meta<'_>) {
    out.raw(r#"{"meta":{"AgentID":"#).text(meta.agent_id);
    out.raw(r#","TurnID":"#).text(meta.turn_id);
    out.raw(r#","ParentTurnID":"#).text(meta.parent_turn_id);
    out.raw(r#","SessionKey":"#).text(meta.session_key);
    out.raw(r#","Iteration":"#).serialised(&meta.iteration);
    out.raw(r#","TracePath":"#).text(meta.trace_path);
    out.raw(r#","Source":"#).text(meta.source).raw("}");
}

/// Writes the member `context`: the identity of this event, and where the message that began the turn came from.
/// What there is not is an empty string.
fn write_context(out: &mut Json, event_id: &EventId, at: jiff::Timestamp, who: &Identity, subject: Subject<'_>) {
    let about = who.tool_call_id.as_ref().or(call_id(subject));
    out.raw(r#","context":{"identity":{"event_id":"#).text(event_id.as_str());
    out.raw(r#","tenant_id":"#).text(who.tenant_id.as_str());
    out.raw(r#","agent_id":"#).text(who.agent_id.as_str());
    out.raw(r#","session_id":"#).text(who.session_id.as_str());
    out.raw(r#","turn_id":"#).text(who.turn_id.as_str());
    out.raw(r#","parent_turn_id":"#).text(parent(who));
    out.raw(r#","iteration":"#).serialised(&who.iteration);
    out.raw(r#","tool_call_id":"#).text(about.map_or("", |id| id.as_str()));
    out.raw(r#","depth":"#).serialised(&who.depth);
    out.raw(r#","channel":"#).text(&who.channel);
    out.raw(r#","chat_id":"#).text(&who.chat_id);
    out.raw(r#","trace_id":"#).text(who.trace_id.as_str());
    out.raw(r#","occurred_at":"#).time(at);
    if let Some(foreign) = &who.foreign {
        out.raw(r#","host":"#).text(&foreign.host);
        out.raw(r#","host_version":"#).text_or_null(foreign.version.as_deref());
        out.raw(r#","host_event":"#).text(&foreign.event);
        out.raw(r#","host_raw":"#).object(&foreign.raw);
    }
    out.raw(if who.is_test { r#","is_test":true}"# } else { "}" });
    out.raw(r#","inbound":{"channel":"#).text(&who.channel);
    out.raw(r#","chat_id":"#).text(&who.chat_id);
    out.raw(r#","sender_id":"#).text(&who.sender_id).raw("}}");
}

/// Writes the members that only the stage of `subject` has.
fn write_own(out: &mut Json, subject: Subject<'_>) {
    match subject {
        Subject::BeforeLlm(asked) => {
            let request = &asked.request;
            out.raw(r#","model":"#).text(&request.model);
            out.raw(r#","messages":"#).list(request.messages.iter().map(|message| message.json()));
            out.raw(r#","tools":"#).list(request.tools.iter().map(|tool| tool.json()));
            out.raw(r#","options":"#).object(&request.options);
            out.raw(r#","graceful_terminal":"#).serialised(&request.graceful_terminal);
        }
        Subject::AfterLlm(asked) => {
            out.raw(r#","model":"#).text(&asked.model).raw(r#","response":"#).serialised(&asked.response);
        }
        Subject::BeforeTool(asked) => write_call(out, &asked.call),
        Subject::ApproveTool(asked) => write_call(out, &asked.call),
        Subject::AfterTool(asked) => {
            write_call(out, &asked.call);
            out.raw(r#","result":"#).serialised(&asked.result);
            out.raw(r#","duration":"#).serialised(&nanos(asked.duration));
        }
        Subject::PreToolUse(_) | Subject::UserPromptSubmit(_) | Subject::SubagentStart(_) => {}
    }
}

fn write_call(out: &mut Json, call: &pintle_domain::tool::ToolCall) {
    out.raw(r#","tool":"#).text(&call.tool);
    out.raw(r#","arguments":"#).object(&call.arguments);
    out.raw(r#","tool_call_id":"#).text(call.id.as_str());
    out.raw(r#","raw_tool":"#).text(&call.raw_tool);
}

/// A duration as it stands on the wire: integer nanoseconds.
fn nanos(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Where in the host an event comes from, as `TracePath` says it.
fn path(who: &Identity) -> &'static str {
    if who.parent_turn_id.is_some() { "spawnSubTurn" } else { "runTurn" }
}

/// The member `meta`: always all seven.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Meta<'a> {
    #[serde(rename = "AgentID")]
    agent_id: &'a str,
    #[serde(rename = "TurnID")]
    turn_id: &'a str,
    #[serde(rename = "ParentTurnID")]
    parent_turn_id: &'a str,
    session_key: &'a str,
    iteration: u32,
    trace_path: &'a str,
    source: &'a str,
}

impl<'a> Meta<'a> {
    fn of(who: &'a Identity, trace_path: &'a str, source: &'a str) -> Self {
        Self {
            agent_id: who.agent_id.as_str(),
            turn_id: who.turn_id.as_str(),
            parent_turn_id: parent(who),
            session_key: who.session_id.as_str(),
            iteration: who.iteration,
            trace_path,
            source,
        }
    }
}

fn parent(who: &Identity) -> &str {
    who.parent_turn_id.as_ref().map_or("", |turn| turn.as_str())
}

/// The call of the model that `subject` is about.
fn call_id(subject: Subject<'_>) -> Option<&CallId> {
    match subject {
        Subject::BeforeTool(asked) => Some(&asked.call.id),
        Subject::PreToolUse(asked) => Some(&asked.call.id),
        Subject::ApproveTool(asked) => Some(&asked.call.id),
        Subject::AfterTool(asked) => Some(&asked.call.id),
        Subject::BeforeLlm(_) | Subject::AfterLlm(_) | Subject::UserPromptSubmit(_) | Subject::SubagentStart(_) => None,
    }
}

/// RFC 3339, UTC, nine digits of nanoseconds.
fn time<S: Serializer>(at: &jiff::Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{at:.9}"))
}
