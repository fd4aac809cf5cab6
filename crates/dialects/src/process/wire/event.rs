//! What observers are told: the params of `hook.event` and of `hook.runtime_event`.

use pintle_domain::checkpoint::runtime::TurnStatus;
use pintle_domain::checkpoint::{Notice, ObservedEvent, RuntimeEvent};
use pintle_domain::identity::Identity;
use serde::Serialize;

use super::{Meta, nanos, parent, path, time};
use crate::process::config::EventForm;
use crate::process::frame::escape;

/// The params that tell of `notice`, in the form that the hook asked for; `None` if it is not a runtime event.
///
/// `seq` counts the events of this hook, dropped ones too; only `hook.event` carries it.
pub fn event_params(form: EventForm, notice: &Notice, seq: u64) -> Option<Vec<u8>> {
    Some(numbered(form, &event_view(form, notice)?, seq))
}

/// What all hooks of one form are told of `notice` alike, for [`numbered`]; `None` if it is not a runtime event.
pub fn event_view(form: EventForm, notice: &Notice) -> Option<Vec<u8>> {
    let ObservedEvent::Runtime(event) = &notice.what else { return None };
    let json = match form {
        EventForm::Hook => serde_json::to_vec(&HookEvent::of(notice, event, &event.kind().source())),
        EventForm::Runtime => serde_json::to_vec(&Runtime::of(notice, event)),
    };
    let mut view = escape(json.expect("our own types have string keys and no failing serialiser"));
    if form == EventForm::Hook {
        // The number is the last member.
        view.pop();
    }
    Some(view)
}

/// The params of one hook, of the view that all of its form share.
pub fn numbered(form: EventForm, view: &[u8], seq: u64) -> Vec<u8> {
    match form {
        EventForm::Hook => [view, format!(r#","Seq":{seq}}}"#).as_bytes()].concat(),
        EventForm::Runtime => view.to_vec(),
    }
}

/// `TracePath` of an event: errors that a hook caused come from the hooks.
fn event_path(event: &RuntimeEvent, who: &Identity) -> &'static str {
    if matches!(event, RuntimeEvent::Error { stage, .. } if stage.starts_with("hook.")) { "hooks" } else { path(who) }
}

/// The params of `hook.event`, but for the number.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct HookEvent<'a> {
    kind: &'static str,
    #[serde(serialize_with = "time")]
    time: jiff::Timestamp,
    meta: Meta<'a>,
    payload: Payload<'a>,
}

impl<'a> HookEvent<'a> {
    fn of(notice: &'a Notice, event: &'a RuntimeEvent, source: &'a str) -> Self {
        Self {
            kind: event.kind().name(),
            time: notice.at,
            meta: Meta::of(&notice.who, event_path(event, &notice.who), source),
            payload: Payload::of(event),
        }
    }
}

/// The payload of `hook.event`: without what only the runtime form adds to `turn_end`.
#[derive(Serialize)]
#[serde(untagged, rename_all_fields = "PascalCase")]
enum Payload<'a> {
    TurnEnd { status: TurnStatus, iterations: u32, duration: u64, final_content_len: usize },
    Whole(&'a RuntimeEvent),
}

impl<'a> Payload<'a> {
    fn of(event: &'a RuntimeEvent) -> Self {
        if let RuntimeEvent::TurnEnd { status, iterations, duration, final_content_len, .. } = event {
            Self::TurnEnd {
                status: *status,
                iterations: *iterations,
                duration: nanos(*duration),
                final_content_len: *final_content_len,
            }
        } else {
            Self::Whole(event)
        }
    }
}

/// The params of `hook.runtime_event`.
#[derive(Serialize)]
struct Runtime<'a> {
    id: &'a str,
    kind: String,
    #[serde(serialize_with = "time")]
    time: jiff::Timestamp,
    source: Source<'a>,
    scope: Scope<'a>,
    correlation: Correlation<'a>,
    severity: &'static str,
    payload: &'a RuntimeEvent,
    attrs: Attrs,
}

#[derive(Serialize)]
struct Source<'a> {
    component: &'static str,
    name: &'a str,
}

#[derive(Serialize)]
struct Scope<'a> {
    agent_id: &'a str,
    session_key: &'a str,
    turn_id: &'a str,
    channel: &'a str,
    chat_id: &'a str,
    sender_id: &'a str,
}

#[derive(Serialize)]
struct Correlation<'a> {
    trace_id: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    parent_turn_id: &'a str,
}

#[derive(Serialize)]
struct Attrs {
    agent_source: &'static str,
    iteration: u32,
}

impl<'a> Runtime<'a> {
    fn of(notice: &'a Notice, event: &'a RuntimeEvent) -> Self {
        let who = &notice.who;
        let kind = event.kind();
        Self {
            id: notice.event_id.as_str(),
            kind: format!("agent.{}", kind.runtime_name()),
            time: notice.at,
            source: Source { component: "agent", name: who.agent_id.as_str() },
            scope: Scope {
                agent_id: who.agent_id.as_str(),
                session_key: who.session_id.as_str(),
                turn_id: who.turn_id.as_str(),
                channel: &who.channel,
                chat_id: &who.chat_id,
                sender_id: &who.sender_id,
            },
            correlation: Correlation { trace_id: kind.source(), parent_turn_id: parent(who) },
            severity: severity(event),
            payload: event,
            attrs: Attrs { agent_source: event_path(event, who), iteration: who.iteration },
        }
    }
}

fn severity(event: &RuntimeEvent) -> &'static str {
    match event {
        RuntimeEvent::Error { .. } | RuntimeEvent::TurnEnd { status: TurnStatus::Error, .. } => "error",
        RuntimeEvent::LlmRetry { .. }
        | RuntimeEvent::ToolExecSkipped { .. }
        | RuntimeEvent::SubturnOrphan { .. }
        | RuntimeEvent::InterruptReceived { .. } => "warn",
        RuntimeEvent::TurnStart { .. }
        | RuntimeEvent::TurnEnd { status: TurnStatus::Completed | TurnStatus::Aborted, .. }
        | RuntimeEvent::LlmRequest { .. }
        | RuntimeEvent::LlmDelta { .. }
        | RuntimeEvent::LlmResponse { .. }
        | RuntimeEvent::ToolExecStart { .. }
        | RuntimeEvent::ToolExecEnd { .. }
        | RuntimeEvent::ContextCompress { .. }
        | RuntimeEvent::SessionSummarize { .. }
        | RuntimeEvent::SteeringInjected { .. }
        | RuntimeEvent::FollowUpQueued { .. }
        | RuntimeEvent::SubturnSpawn { .. }
        | RuntimeEvent::SubturnEnd { .. }
        | RuntimeEvent::SubturnResultDelivered { .. } => "info",
    }
}
