//! What is spoken: params out, results in.
//!
//! Out: [`params`] of a call, [`event_params`] of a notification. In: [`hear`] a reply, or [`read`] its body alone;
//! [`welcome`] for the handshake.

use domain::checkpoint::{CheckpointKind, Subject};
use domain::id::{CallId, EventId};
use domain::identity::Identity;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::frame::escape;
pub use event::event_params;
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
    match kind {
        CheckpointKind::BeforeLlm => Some(("hook.before_llm", "turn.llm.request")),
        CheckpointKind::AfterLlm => Some(("hook.after_llm", "turn.llm.response")),
        CheckpointKind::BeforeTool => Some(("hook.before_tool", "turn.tool.before")),
        CheckpointKind::ApproveTool => Some(("hook.approve_tool", "turn.tool.approve")),
        CheckpointKind::AfterTool => Some(("hook.after_tool", "turn.tool.after")),
        CheckpointKind::SessionStart
        | CheckpointKind::UserPromptSubmit
        | CheckpointKind::PreToolUse
        | CheckpointKind::PostToolUse
        | CheckpointKind::Stop
        | CheckpointKind::Runtime => None,
    }
}

/// The params of the call that asks about `subject`, as compact JSON without any character that breaks a line.
///
/// Messages and tools are copied as they were written before. A subject that process hooks are not asked about
/// has the common members only.
pub fn params(event_id: &EventId, at: jiff::Timestamp, who: &Identity, subject: Subject<'_>) -> Vec<u8> {
    let mut out = Vec::with_capacity(COMMON_BYTES + size_of(subject));
    let params = Params { event_id, at, who, subject };
    serde_json::to_writer(&mut out, &params).expect("our own types have string keys, and memory takes every write");
    escape(out)
}

/// How many bytes the own members of `subject` take, about.
fn size_of(subject: Subject<'_>) -> usize {
    match subject {
        Subject::BeforeLlm(asked) => {
            let messages: usize = asked.request.messages.iter().map(|message| message.json().get().len() + 1).sum();
            let tools: usize = asked.request.tools.iter().map(|tool| tool.json().get().len() + 1).sum();
            messages + tools
        }
        Subject::AfterLlm(asked) => asked.response.content.len() + asked.response.reasoning_content.len(),
        Subject::AfterTool(asked) => asked.result.for_llm.len() + asked.result.for_user.len(),
        Subject::BeforeTool(_) | Subject::ApproveTool(_) | Subject::PreToolUse(_) | Subject::UserPromptSubmit(_) => 0,
    }
}

struct Params<'a> {
    event_id: &'a EventId,
    at: jiff::Timestamp,
    who: &'a Identity,
    subject: Subject<'a>,
}

impl Serialize for Params<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let who = self.who;
        let source = stage(self.subject.kind()).map_or("", |(_, source)| source);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("meta", &Meta::of(who, path(who), source))?;
        map.serialize_entry("context", &Context::of(self))?;
        map.serialize_entry("channel", &who.channel)?;
        map.serialize_entry("chat_id", &who.chat_id)?;
        write_own(&mut map, self.subject)?;
        map.end()
    }
}

/// Writes the members that only the stage of `subject` has.
fn write_own<M: SerializeMap>(map: &mut M, subject: Subject<'_>) -> Result<(), M::Error> {
    match subject {
        Subject::BeforeLlm(asked) => {
            let request = &asked.request;
            map.serialize_entry("model", &request.model)?;
            map.serialize_entry("messages", &request.messages)?;
            map.serialize_entry("tools", &request.tools)?;
            map.serialize_entry("options", &request.options)?;
            map.serialize_entry("graceful_terminal", &request.graceful_terminal)
        }
        Subject::AfterLlm(asked) => {
            map.serialize_entry("model", &asked.model)?;
            map.serialize_entry("response", &asked.response)
        }
        Subject::BeforeTool(asked) => write_call(map, &asked.call),
        Subject::ApproveTool(asked) => write_call(map, &asked.call),
        Subject::AfterTool(asked) => {
            write_call(map, &asked.call)?;
            map.serialize_entry("result", &asked.result)?;
            map.serialize_entry("duration", &nanos(asked.duration))
        }
        Subject::PreToolUse(_) | Subject::UserPromptSubmit(_) => Ok(()),
    }
}

fn write_call<M: SerializeMap>(map: &mut M, call: &domain::tool::ToolCall) -> Result<(), M::Error> {
    map.serialize_entry("tool", &call.tool)?;
    map.serialize_entry("arguments", &call.arguments)?;
    map.serialize_entry("tool_call_id", &call.id)?;
    map.serialize_entry("raw_tool", &call.raw_tool)
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

/// The member `context`.
#[derive(Serialize)]
struct Context<'a> {
    identity: Stamp<'a>,
    inbound: Inbound<'a>,
}

/// The identity of one event. What there is not is an empty string.
#[derive(Serialize)]
struct Stamp<'a> {
    event_id: &'a EventId,
    tenant_id: &'a str,
    agent_id: &'a str,
    session_id: &'a str,
    turn_id: &'a str,
    parent_turn_id: &'a str,
    iteration: u32,
    tool_call_id: &'a str,
    depth: u8,
    channel: &'a str,
    chat_id: &'a str,
    trace_id: &'a str,
    #[serde(serialize_with = "time")]
    occurred_at: jiff::Timestamp,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_test: bool,
}

/// Where the message that began the turn came from.
#[derive(Serialize)]
struct Inbound<'a> {
    channel: &'a str,
    chat_id: &'a str,
    sender_id: &'a str,
}

impl<'a> Context<'a> {
    fn of(call: &Params<'a>) -> Self {
        let who = call.who;
        let about = who.tool_call_id.as_ref().or(call_id(call.subject));
        Self {
            identity: Stamp {
                event_id: call.event_id,
                tenant_id: who.tenant_id.as_str(),
                agent_id: who.agent_id.as_str(),
                session_id: who.session_id.as_str(),
                turn_id: who.turn_id.as_str(),
                parent_turn_id: parent(who),
                iteration: who.iteration,
                tool_call_id: about.map_or("", |id| id.as_str()),
                depth: who.depth,
                channel: &who.channel,
                chat_id: &who.chat_id,
                trace_id: who.trace_id.as_str(),
                occurred_at: call.at,
                is_test: who.is_test,
            },
            inbound: Inbound { channel: &who.channel, chat_id: &who.chat_id, sender_id: &who.sender_id },
        }
    }
}

/// The call of the model that `subject` is about.
fn call_id(subject: Subject<'_>) -> Option<&CallId> {
    match subject {
        Subject::BeforeTool(asked) => Some(&asked.call.id),
        Subject::PreToolUse(asked) => Some(&asked.call.id),
        Subject::ApproveTool(asked) => Some(&asked.call.id),
        Subject::AfterTool(asked) => Some(&asked.call.id),
        Subject::BeforeLlm(_) | Subject::AfterLlm(_) | Subject::UserPromptSubmit(_) => None,
    }
}

/// RFC 3339, UTC, nine digits of nanoseconds.
fn time<S: Serializer>(at: &jiff::Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{at:.9}"))
}
