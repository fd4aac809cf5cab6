//! What one hook is told: enough to run it and to record it, now or after a restart.

use std::sync::Arc;

use bytes::Bytes;
use pintle_domain::checkpoint::{CheckpointKind, Notice};
use pintle_domain::id::{AgentId, CallId, EventId, SessionId, TenantId, TraceId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::Object;
use pintle_domain::record::{EventRecord, EventRuling, RecordLines};
use pintle_domain::verdict::VerdictKind;
use serde::{Deserialize, Serialize};

/// An event as a hook is told of it.
pub(super) struct Telling {
    pub(super) event_id: EventId,
    pub(super) at: jiff::Timestamp,
    pub(super) who: Identity,
    pub(super) event: CheckpointKind,
    pub(super) tool: Option<String>,
    pub(super) input: Option<Object>,
    /// The payload that the hook is sent.
    pub(super) payload: Bytes,
}

/// A telling as it is kept in a store. Of the identity only what running and recording need: the rest stands in the
/// payload.
#[derive(Serialize, Deserialize)]
struct KeptTelling {
    event_id: EventId,
    at: jiff::Timestamp,
    event: String,
    tenant_id: TenantId,
    agent_id: AgentId,
    session_id: SessionId,
    turn_id: TurnId,
    trace_id: TraceId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<CallId>,
    #[serde(default)]
    iteration: u32,
    #[serde(default)]
    is_test: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input: Option<Object>,
    payload: String,
}

impl Telling {
    /// The telling that hooks get of `notice`; nothing of events that rules do not observe.
    pub(super) fn of(notice: &Notice) -> Option<Self> {
        let payload = Bytes::from(crate::payload::of_notice(notice)?);
        let facts = notice.what.facts();
        Some(Self {
            event_id: notice.event_id.clone(),
            at: notice.at,
            who: notice.who.clone(),
            event: notice.what.checkpoint(),
            tool: facts.tool.map(|(tool, _)| tool.to_owned()),
            input: facts.input.cloned(),
            payload,
        })
    }

    /// The event, for the record.
    pub(super) fn record(&self) -> EventRecord {
        EventRecord {
            event_id: self.event_id.clone(),
            at: self.at,
            checkpoint: self.event,
            kind: None,
            who: self.who.clone(),
            tool: self.tool.clone(),
            input: self.input.clone().map(Arc::new),
            ruling: EventRuling::word(VerdictKind::Continue),
            hooks: RecordLines::default(),
        }
    }

    /// As it is kept.
    ///
    /// # Errors
    /// It cannot be put into words.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        let who = &self.who;
        serde_json::to_vec(&KeptTelling {
            event_id: self.event_id.clone(),
            at: self.at,
            event: self.event.name().to_owned(),
            tenant_id: who.tenant_id.clone(),
            agent_id: who.agent_id.clone(),
            session_id: who.session_id.clone(),
            turn_id: who.turn_id.clone(),
            trace_id: who.trace_id.clone(),
            tool_call_id: who.tool_call_id.clone(),
            iteration: who.iteration,
            is_test: who.is_test,
            tool: self.tool.clone(),
            input: self.input.clone(),
            payload: String::from_utf8_lossy(&self.payload).into_owned(),
        })
    }

    /// The telling that `bytes` keep.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
        // An input may be nested deeper than readers usually go.
        let kept: KeptTelling =
            pintle_domain::json::from_value(pintle_domain::json::parse(text)?).map_err(|error| error.to_string())?;
        let event =
            CheckpointKind::named(&kept.event).ok_or_else(|| format!("there is no event \"{}\"", kept.event))?;
        let who = Identity {
            tenant_id: kept.tenant_id,
            trace_id: kept.trace_id,
            tool_call_id: kept.tool_call_id,
            iteration: kept.iteration,
            is_test: kept.is_test,
            ..Identity::top(kept.agent_id.as_str(), kept.session_id.as_str(), kept.turn_id)
        };
        Ok(Self {
            event_id: kept.event_id,
            at: kept.at,
            who,
            event,
            tool: kept.tool,
            input: kept.input,
            payload: Bytes::from(kept.payload),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use pintle_domain::checkpoint::ObservedEvent;
    use pintle_domain::json::json;
    use pintle_domain::tool::{ToolCall, ToolOutput};

    use super::*;

    fn notice() -> Notice {
        let deep = (0..200).fold(json!([]), |inner, _| json!([inner]));
        let arguments = json!({"cmd": "é\u{0}\"", "deep": deep, "1": 12345678901234567890u64, "0": 0.1});
        let arguments = arguments.as_object().unwrap().clone();
        let call = ToolCall { id: "c1".into(), tool: "exec".into(), raw_tool: "bash".into(), arguments };
        let output = ToolOutput::ok("done");
        let who = Identity { is_test: true, iteration: 2, ..Identity::top("main", "s", TurnId::from("t")) };
        Notice {
            event_id: EventId::fresh(),
            at: "2026-11-22T09:00:00.123456789Z".parse().unwrap(),
            who: who.for_call(&"c1".into()),
            what: ObservedEvent::PostToolUse { call, output, duration: Duration::ZERO, substituted: false },
        }
    }

    #[test]
    fn what_is_kept_is_told_and_recorded_as_if_it_had_never_been_kept() {
        let telling = Telling::of(&notice()).unwrap();
        let again = Telling::from_bytes(&telling.to_bytes().unwrap()).unwrap();
        assert_eq!(again.payload, telling.payload);
        let of = |telling: &Telling| format!("{:?}", telling.record());
        assert_eq!(of(&again), of(&telling));
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let read = |bytes: &[u8]| Telling::from_bytes(bytes).map(drop).unwrap_err();
        assert!(read(b"{").starts_with("EOF while parsing"));
        assert!(read(b"\xff").starts_with("invalid utf-8"));
        assert!(read(b"{}").starts_with("missing field `event_id`"));
        let bytes = Telling::of(&notice()).unwrap().to_bytes().unwrap();
        let other = String::from_utf8(bytes).unwrap().replace("post_tool_use\",\"tenant", "pre_coffee\",\"tenant");
        assert_eq!(read(other.as_bytes()), "there is no event \"pre_coffee\"");
    }
}
