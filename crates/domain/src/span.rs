//! What a run looks like in a trace: turns, in them tool calls, in these the runs of hooks.
//!
//! Every id is made from what the span is about, so another process that goes on with a turn, or does what the outbox
//! of a dead one kept, names the same parents. Source: the published format of traces.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use crate::account::Account;
use crate::checkpoint::CheckpointKind;
use crate::execution::{Ended, QUEUE_FULL, redacted};
use crate::hook::Family;
use crate::id::{CallId, TenantId, TurnId};
use crate::identity::Identity;
use crate::record::{EventRecord, HookOutcome, NotRun, Record};
use crate::rule::RuleDetails;

mod traces;

pub use traces::{MAX_OPEN_CALLS, MAX_OPEN_TURNS, OpenSpans};

/// Names a trace: everything that belongs to one outside request. Never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceKey(pub u128);

/// Names a span within its trace. Never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanKey(pub u64);

/// A stretch of time in which one thing was worked.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// The trace that the span belongs to.
    pub trace: TraceKey,
    /// Itself.
    pub key: SpanKey,
    /// The span that it was done for; nothing for a turn that a person began.
    pub parent: Option<SpanKey>,
    /// The name of the span, such as `hook.command.pre_tool_use`.
    pub name: String,
    /// When it began.
    pub start: Timestamp,
    /// When it was over; never before it began.
    pub end: Timestamp,
    /// The status in which the span ended.
    pub status: SpanStatus,
    /// The subject of the span, for those who count.
    pub about: SpanSubject,
    /// Everything else, each name once.
    pub attributes: Vec<(&'static str, AttributeValue)>,
}

/// The status in which a span ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanStatus {
    /// As it should.
    Completed,
    /// It did not happen, or nobody knows how it ended; that is not a fault.
    Open(&'static str),
    /// It failed; redacted and cut where somebody said why.
    Error(Option<String>),
}

/// The subject of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpanSubject {
    /// A turn.
    Turn,
    /// A tool call of a turn.
    Call,
    /// One run of a hook.
    Hook {
        /// The type of the handler: `command`, `http`, `prompt`, `script`, `process`, `native` or `skill`.
        handler_type: &'static str,
        /// At which event.
        event: &'static str,
        /// The decision of the hook.
        decision: &'static str,
        /// The tenant whose event it was.
        tenant: TenantId,
        /// The time that the run took.
        took: Duration,
    },
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttributeValue {
    /// A text.
    Text(String),
    /// A number.
    Number(i64),
}

impl SpanStatus {
    /// The word in the attribute `status`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Open(word) => word,
            Self::Error(_) => "error",
        }
    }
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for AttributeValue {
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl TraceKey {
    /// The trace of `who`: `trace_id` itself where that is a UUID or 32 hexadecimal digits, so that a trace which began
    /// outside goes on; otherwise made from it, or from the turn where there is none.
    pub fn of(who: &Identity) -> Self {
        let text = if who.trace_id.as_str().is_empty() { who.turn_id.as_str() } else { who.trace_id.as_str() };
        let named = Uuid::try_parse(text).ok().map(|id| id.as_u128());
        let made = || digest(&["trace", text]);
        Self(named.filter(|key| *key != 0).unwrap_or_else(made).max(1))
    }
}

impl SpanKey {
    /// The span of a turn.
    pub fn of_turn(tenant: &TenantId, turn: &TurnId) -> Self {
        Self::made(&["turn", tenant.as_str(), turn.as_str()])
    }

    /// The span of a tool call. Models use ids again in later rounds of a turn.
    pub fn of_call(who: &Identity, call: &CallId) -> Self {
        let round = who.iteration.to_string();
        Self::made(&["call", who.tenant_id.as_str(), who.turn_id.as_str(), &round, call.as_str()])
    }

    /// The span that an event at `kind` belongs to: the tool call that it is about, else the turn.
    pub fn above(who: &Identity, kind: CheckpointKind) -> Self {
        match &who.tool_call_id {
            Some(call) if kind.is_about_a_call() => Self::of_call(who, call),
            Some(_) | None => Self::of_turn(&who.tenant_id, &who.turn_id),
        }
    }

    fn made(parts: &[&str]) -> Self {
        let bytes = digest(parts).to_be_bytes();
        let [a, b, c, d, e, f, g, h, ..] = bytes;
        Self(u64::from_be_bytes([a, b, c, d, e, f, g, h]).max(1))
    }
}

/// The first half of the SHA-256 over `parts`, each behind its length.
fn digest(parts: &[&str]) -> u128 {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    let (mut half, whole) = ([0; 16], hash.finalize());
    half.copy_from_slice(&whole[..16]);
    u128::from_be_bytes(half)
}

/// The time that the run of a hook took that leaves a span; nothing for one that did not run, or of which nothing is
/// expected.
pub fn time_of(record: &Record) -> Option<Duration> {
    let dropped = record.outcome == HookOutcome::NotRun(NotRun::Dropped);
    record.took().or(dropped.then_some(Duration::ZERO))
}

/// The span of the run that `record`, a line of `event`, tells of, which began at `start`. Nothing if nobody ran, or in
/// a test.
pub fn of_hook(event: &EventRecord, record: &Record, start: Timestamp) -> Option<Span> {
    let took = time_of(record).filter(|_| !event.who.is_test)?;
    let none = Account::default();
    let account = record.account.as_deref().unwrap_or(&none);
    let ended = Ended::of(&record.outcome, account)?;
    let (who, stored) = (&event.who, record.stored.as_deref());
    let handler_type = handler_type(record.family, stored);
    let at = if record.checkpoint == CheckpointKind::Runtime { event.kind } else { None };
    let at = at.unwrap_or(record.checkpoint.name());
    let decision = ended.decision.word();
    // A span leaves for a collector, which is not a person.
    let error = match &record.outcome {
        HookOutcome::Failed { fault, .. } => Some(fault.phrase().to_string()),
        HookOutcome::NotRun(NotRun::Dropped) => Some(QUEUE_FULL.to_owned()),
        HookOutcome::Said { .. } | HookOutcome::Told | HookOutcome::NotRun(_) => None,
    };
    let (retry, pass) = (account.retry.to_string(), if record.again { "2" } else { "1" });
    let hook = stored.map_or(record.hook.as_str(), |stored| stored.id.as_str());
    let key = SpanKey::made(&["hook", event.event_id.as_str(), hook, record.checkpoint.name(), pass, &retry]);
    let status = if error.is_some() { SpanStatus::Error(error.clone()) } else { SpanStatus::Completed };
    let mut attributes = identity(who, &status, took);
    attributes.push(("metadata.decision", decision.into()));
    attributes.push(("event_id", event.event_id.as_str().into()));
    attributes.push(("hook_name", record.hook.as_str().into()));
    if let Some(stored) = stored {
        attributes.push(("hook_id", stored.id.as_str().into()));
        attributes.push(("hook_version", u64::from(stored.version).into()));
    }
    let mut put =
        |name: &'static str, value: Option<AttributeValue>| attributes.extend(value.map(|value| (name, value)));
    put("tool_name", event.tool.as_deref().map(AttributeValue::from));
    put("tool_call_id", who.tool_call_id.as_ref().map(|id| id.as_str().into()));
    put("retry", (account.retry > 0).then(|| u64::from(account.retry).into()));
    put("pass", record.again.then_some(AttributeValue::Number(2)));
    put("reason", ended.reason.as_deref().map(|reason| redacted(reason).into()));
    put("error", error.map(AttributeValue::from));
    Some(Span {
        trace: TraceKey::of(who),
        key,
        parent: Some(SpanKey::above(who, record.checkpoint)),
        name: format!("hook.{handler_type}.{at}"),
        start,
        end: later(start, took),
        status,
        about: SpanSubject::Hook { handler_type, event: at, decision, tenant: who.tenant_id.clone(), took },
        attributes,
    })
}

/// The type of a hook's handler, in the word of rows where it has one.
fn handler_type(family: Family, stored: Option<&RuleDetails>) -> &'static str {
    stored.map_or(family.word(), |stored| stored.handler.word())
}

/// The attributes that every span has.
fn identity(who: &Identity, status: &SpanStatus, took: Duration) -> Vec<(&'static str, AttributeValue)> {
    vec![
        ("status", status.word().into()),
        ("duration_ms", u64::try_from(took.as_millis()).unwrap_or(u64::MAX).into()),
        ("tenant_id", who.tenant_id.as_str().into()),
        ("agent_id", who.agent_id.as_str().into()),
        ("session_id", who.session_id.as_str().into()),
        ("turn_id", who.turn_id.as_str().into()),
        ("trace_id", who.trace_id.as_str().into()),
    ]
}

/// The moment `time` after `start`, as far as there is one.
fn later(start: Timestamp, time: Duration) -> Timestamp {
    SignedDuration::try_from(time).ok().and_then(|time| start.checked_add(time).ok()).unwrap_or(start)
}

/// The moment `time` before `end`, as far as there is one.
fn earlier(end: Timestamp, time: Duration) -> Timestamp {
    SignedDuration::try_from(time).ok().and_then(|time| end.checked_sub(time).ok()).unwrap_or(end)
}

/// The time from `start` to `end`; nothing if the clock was set back.
fn between(start: Timestamp, end: Timestamp) -> Duration {
    Duration::try_from(end.duration_since(start)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
