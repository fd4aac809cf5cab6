//! What is kept of one execution of a rule: a row of the table `hook_executions`.

use jiff::Timestamp;

use crate::account::{Account, RewriteOutcome};
use crate::checkpoint::CheckpointKind;
use crate::fault::{Cause, Fault, FaultKind};
use crate::id::{HookId, TenantId, agent_uuid};
use crate::json::{Members, Object, Value};
use crate::record::{Change, EventRecord, HookOutcome, NotRun, Record};
use crate::rule::{Decision, HandlerType, RuleDetails};
use crate::verdict::VerdictKind;

mod hash;
mod output;
mod redact;

pub use hash::input_hash;
pub use output::{KeptOutput, OutputHead};
pub use redact::{MAX_TEXT_CHARS, masked, redacted};
pub(crate) use redact::{REDACTED, names_a_password, names_a_secret};

/// One execution. Its JSON, without the detail and the output, is what the audit chain keeps of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Execution {
    /// A UUID of version 7.
    pub id: String,
    /// Which hook; nothing once that is deleted.
    pub hook_id: Option<HookId>,
    /// The name of the hook at that time.
    pub hook_name: String,
    /// Its version then.
    pub hook_version: u32,
    /// The type of the handler that ran.
    pub handler_type: HandlerType,
    /// The tenant whose event it was.
    pub tenant_id: TenantId,
    /// The agent, as rules know it.
    pub agent_id: Option<String>,
    /// The key of the session.
    pub session_id: Option<String>,
    /// The turn.
    pub turn_id: Option<String>,
    /// The event.
    pub event_id: String,
    /// The id that ties the events of one outside request together.
    pub trace_id: Option<String>,
    /// Where.
    pub event: CheckpointKind,
    /// The tool, if any.
    pub tool_name: Option<String>,
    /// The call of the model, if any.
    pub tool_call_id: Option<String>,
    /// See [`input_hash`]; over what the last hook of the chain left.
    pub input_hash: Option<String>,
    /// The decision that is kept of the execution.
    pub decision: Decision,
    /// Why, redacted and cut.
    pub reason: Option<String>,
    /// The duration, in milliseconds.
    pub duration_ms: u64,
    /// The number of times that the call was tried again.
    pub retry: u32,
    /// The key that stays the same however often this row is written.
    pub dedup_key: Option<String>,
    /// The fault, redacted and cut.
    pub error: Option<String>,
    /// The fault, whole; encrypted where it is kept.
    pub error_detail: Option<Cause>,
    /// The beginning of what a command or a script wrote; encrypted where it is kept.
    pub output: Option<Box<KeptOutput>>,
    /// Everything else.
    pub metadata: Object,
    /// When.
    pub created_at: Timestamp,
}

impl Execution {
    /// Whether [`Execution::of`] makes a row of `record`; then its event has to say what it was about.
    pub fn is_left_by(record: &Record) -> bool {
        let leaves = match &record.outcome {
            HookOutcome::Said { .. } | HookOutcome::Failed { .. } | HookOutcome::NotRun(NotRun::Dropped) => true,
            HookOutcome::Told | HookOutcome::NotRun(_) => false,
        };
        leaves && record.stored.is_some()
    }

    /// The execution that is kept of `record`, a line of `event`; nothing if no rule ran there.
    pub fn of(event: &EventRecord, record: &Record) -> Option<Self> {
        let stored = record.stored.as_ref()?;
        let none = Account::default();
        let account = record.account.as_deref().unwrap_or(&none);
        let ended = Ended::of(&record.outcome, account)?;
        let (who, again) = (&event.who, if record.again { "#2" } else { "" });
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Some(Self {
            id: uuid::Uuid::now_v7().to_string(),
            hook_id: Some(stored.id.clone()),
            hook_name: cut(record.hook.as_str(), MAX_NAME_CHARS),
            hook_version: stored.version,
            handler_type: stored.handler,
            tenant_id: who.tenant_id.clone(),
            agent_id: Some(agent_uuid(&who.tenant_id, who.agent_id.as_str())),
            session_id: some(&cut(who.session_id.as_str(), MAX_SESSION_CHARS)),
            turn_id: some(who.turn_id.as_str()),
            event_id: event.event_id.to_string(),
            trace_id: some(&cut(who.trace_id.as_str(), MAX_TRACE_CHARS)),
            event: record.checkpoint,
            tool_name: event.tool.as_deref().map(|tool| cut(tool, MAX_TEXT_CHARS)),
            tool_call_id: who.tool_call_id.as_ref().map(|id| cut(id.as_str(), MAX_CALL_CHARS)),
            input_hash: Some(input_hash(event.tool.as_deref().unwrap_or_default(), event.input.as_deref())),
            decision: ended.decision,
            reason: ended.reason.map(|reason| redacted(&reason)),
            duration_ms: ended.took_ms,
            retry: account.retry,
            dedup_key: Some(format!("{}:{}{again}", stored.id, event.event_id)),
            error: ended.error.as_ref().map(|cause| redacted(cause.unredacted())),
            error_detail: ended.error,
            output: keeps_output(stored.handler).then(|| KeptOutput::of(account)).flatten(),
            metadata: metadata(event, record, (stored, account), ended.decision),
            created_at: event.at,
        })
    }

    /// Whether it has something that is encrypted where it is kept: who reads that is recorded.
    pub fn has_detail(&self) -> bool {
        self.error_detail.is_some() || self.output.is_some()
    }

    /// The text that the audit chain keeps: the members of [`to_json`](Self::to_json), with the hashes of the detail
    /// and of the output as they are kept, as canonical JSON. What has no output says nothing of one, as ever. It is
    /// written for every execution, so no tree of values is made of it first.
    pub fn to_canonical(&self, detail_sha256: Option<&str>, output_sha256: Option<&str>) -> String {
        let mut members = Members::with_capacity(CANONICAL_BYTES);
        members.text("agent_id", self.agent_id.as_deref());
        members.text("created_at", Some(&self.created_at.to_string()));
        members.text("decision", Some(self.decision.word()));
        members.text("dedup_key", self.dedup_key.as_deref());
        members.number("duration_ms", self.duration_ms);
        members.text("error", self.error.as_deref());
        members.text("error_detail_sha256", detail_sha256);
        members.text("event", Some(self.event.name()));
        members.text("event_id", Some(&self.event_id));
        members.text("handler_type", Some(self.handler_type.word()));
        members.text("hook_id", self.hook_id.as_ref().map(HookId::as_str));
        members.text("hook_name", Some(&self.hook_name));
        members.number("hook_version", self.hook_version.into());
        members.text("id", Some(&self.id));
        members.text("input_hash", self.input_hash.as_deref());
        members.object("metadata", &self.metadata);
        if output_sha256.is_some() {
            members.text("output_sha256", output_sha256);
        }
        members.text("reason", self.reason.as_deref());
        members.number("retry", self.retry.into());
        members.text("session_id", self.session_id.as_deref());
        members.text("tenant_id", Some(self.tenant_id.as_str()));
        members.text("tool_call_id", self.tool_call_id.as_deref());
        members.text("tool_name", self.tool_name.as_deref());
        members.text("trace_id", self.trace_id.as_deref());
        members.text("turn_id", self.turn_id.as_deref());
        members.finish()
    }

    /// What the audit chain keeps of it that `by` read what is encrypted. It has no member `hook_id`: by that name the
    /// chain says how changes left a rule, and this is none.
    pub fn read_by(&self, by: &str, at: Timestamp) -> Object {
        let mut members = Object::new();
        members.insert("action".to_owned(), DETAIL_READ.into());
        members.insert("actor".to_owned(), by.into());
        members.insert("at".to_owned(), at.to_string().into());
        members.insert("execution_id".to_owned(), self.id.as_str().into());
        members.insert("hook_name".to_owned(), self.hook_name.as_str().into());
        members.insert("tenant_id".to_owned(), self.tenant_id.as_str().into());
        members
    }

    /// The row as JSON, without the detail of the fault and without the output.
    pub fn to_json(&self) -> Object {
        let value = crate::json::json!({
            "id": self.id,
            "hook_id": self.hook_id,
            "hook_name": self.hook_name,
            "hook_version": self.hook_version,
            "handler_type": self.handler_type,
            "tenant_id": self.tenant_id,
            "agent_id": self.agent_id,
            "session_id": self.session_id,
            "turn_id": self.turn_id,
            "event_id": self.event_id,
            "trace_id": self.trace_id,
            "event": self.event,
            "tool_name": self.tool_name,
            "tool_call_id": self.tool_call_id,
            "input_hash": self.input_hash,
            "decision": self.decision,
            "reason": self.reason,
            "duration_ms": self.duration_ms,
            "retry": self.retry,
            "dedup_key": self.dedup_key,
            "error": self.error,
            "metadata": self.metadata,
            "created_at": self.created_at.to_string(),
        });
        match value {
            Value::Object(members) => members,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Object::new(),
        }
    }
}

/// The action of an entry of the audit chain: somebody read what is encrypted of an execution.
pub const DETAIL_READ: &str = "detail_read";

/// The bytes that an execution without long texts takes as JSON; a longer one lets its text grow.
const CANONICAL_BYTES: usize = 1536;

/// The fault of an observer that was not told, since too many waited before it.
pub const QUEUE_FULL: &str = "queue full";

/// The width of the column, in characters.
const MAX_NAME_CHARS: usize = 255;
/// The width of the column, in characters.
const MAX_SESSION_CHARS: usize = 500;
/// The width of the column, in characters.
const MAX_TRACE_CHARS: usize = 64;
/// The width of the column, in characters.
const MAX_CALL_CHARS: usize = 128;

/// Whether what a handler of this type wrote is kept: of requests and judges there is nothing of the kind.
fn keeps_output(handler: HandlerType) -> bool {
    match handler {
        HandlerType::Command | HandlerType::Script => true,
        HandlerType::Http | HandlerType::Prompt => false,
    }
}

fn cut(text: &str, chars: usize) -> String {
    // A text of no more bytes has no more characters.
    if text.len() <= chars { text.to_owned() } else { text.chars().take(chars).collect() }
}

/// The end of an execution.
pub(crate) struct Ended {
    pub(crate) decision: Decision,
    /// Why, whole.
    pub(crate) reason: Option<String>,
    /// The fault, whole.
    pub(crate) error: Option<Cause>,
    took_ms: u64,
}

impl Ended {
    pub(crate) fn of(outcome: &HookOutcome, account: &Account) -> Option<Self> {
        match outcome {
            HookOutcome::Said { word, reason, took } => {
                let decision = match word {
                    VerdictKind::Inject | VerdictKind::Continue | VerdictKind::Modify | VerdictKind::Respond => {
                        Decision::Allow
                    }
                    VerdictKind::Ask => Decision::Ask,
                    VerdictKind::Deny | VerdictKind::AbortTurn | VerdictKind::HardAbort => Decision::Block,
                };
                let reason = reason.clone().or_else(|| account.allowed.clone());
                Some(Self { decision, reason, error: None, took_ms: millis(*took) })
            }
            HookOutcome::Failed { fault, took, .. } => {
                let timed_out = fault.kind() == FaultKind::TimedOut;
                let decision = if timed_out { Decision::Timeout } else { Decision::Error };
                let error = account.detail.clone().unwrap_or_else(|| fault.whole());
                Some(Self { decision, reason: None, error: Some(error), took_ms: millis(*took) })
            }
            HookOutcome::NotRun(NotRun::Dropped) => {
                let error = Some(Cause::from(QUEUE_FULL));
                Some(Self { decision: Decision::Error, reason: None, error, took_ms: 0 })
            }
            HookOutcome::Told | HookOutcome::NotRun(_) => None,
        }
    }
}

fn millis(took: std::time::Duration) -> u64 {
    u64::try_from(took.as_millis()).unwrap_or(u64::MAX)
}

fn metadata(
    event: &EventRecord,
    record: &Record,
    (stored, account): (&RuleDetails, &Account),
    decision: Decision,
) -> Object {
    let mut members = Object::new();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            members.insert(name.to_owned(), value);
        }
    };
    let yes = |is: bool| is.then_some(Value::Bool(true));
    put("matcher_matched", Some(Value::Bool(true)));
    // A condition that failed came to nothing.
    let failed = matches!(&record.outcome, HookOutcome::Failed { fault: Fault::ConditionFailed { .. }, .. });
    put("cel_eval_result", yes(stored.condition.is_some() && !failed));
    put("stdout_len", account.stdout_len.map(Value::from));
    put("stderr_len", account.stderr_len.map(Value::from));
    put("http_status", account.http_status.map(Value::from));
    put("prompt_model", account.model.clone().map(Value::from));
    put("prompt_tokens", account.tokens.map(Value::from));
    put("trace_id", Some(Value::from(event.who.trace_id.as_str())));
    put("cached", yes(account.cached));
    put("injection_detected", yes(account.injection_detected));
    put("non_json", yes(account.non_json));
    put("breaker", yes(matches!(account.instead, Some(NotRun::BreakerOpen { .. }))));
    put("pass", record.again.then(|| Value::from(2)));
    put("decision", Some(Value::from(decision.word())));
    put("effective", effective(&record.outcome, decision).map(|counted| Value::from(counted.word())));
    put("fault", fault(&record.outcome).map(Value::from));
    put(
        "rewrite",
        account.rewrite.as_ref().map(|rewrite| match rewrite {
            RewriteOutcome::Applied => Value::from("applied"),
            RewriteOutcome::Dropped(why) => Value::from(format!("dropped: {why}")),
        }),
    );
    put("context", account.context_dropped.then(|| Value::from("dropped")));
    put("chain_time", yes(matches!(account.instead, Some(NotRun::ChainTimeSpent { .. }))));
    put("slot_wait_ms", (!account.slot_wait.is_zero()).then(|| Value::from(millis(account.slot_wait))));
    put("cap", yes(matches!(account.instead, Some(NotRun::CapReached { .. }))));
    // Names of members stand in them, and a name can be an address or a key.
    let paths = |change: &Change| change.paths().iter().map(|path| masked(path).into_owned()).collect::<Vec<_>>();
    put("changed_paths", record.change.as_deref().map(|change| Value::from(paths(change))));
    members
}

/// The decision that the outcome counted for: what was said, or what a fault became.
fn effective(outcome: &HookOutcome, decision: Decision) -> Option<Decision> {
    match outcome {
        HookOutcome::Said { .. } => Some(decision),
        HookOutcome::Failed { became, .. } => {
            let shuts = matches!(became, VerdictKind::Deny | VerdictKind::AbortTurn | VerdictKind::HardAbort);
            Some(if shuts { Decision::Block } else { Decision::Allow })
        }
        HookOutcome::Told | HookOutcome::NotRun(_) => None,
    }
}

fn fault(outcome: &HookOutcome) -> Option<&'static str> {
    match outcome {
        HookOutcome::Failed { fault, .. } => Some(fault.kind().word()),
        HookOutcome::Said { .. } | HookOutcome::Told | HookOutcome::NotRun(_) => None,
    }
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::json::{canonical, json};

    fn check(execution: &Execution, detail: Option<&str>) {
        let mut expected = execution.to_json();
        expected.insert("error_detail_sha256".into(), detail.into());
        assert_eq!(execution.to_canonical(detail, None), canonical(&expected.clone().into()));
        expected.insert("output_sha256".into(), "00fe".into());
        assert_eq!(execution.to_canonical(detail, Some("00fe")), canonical(&expected.into()));
    }

    #[test]
    fn the_chain_keeps_what_the_row_says() {
        let metadata = json!({ "trace_id": "t", "changed_paths": ["/b", "/a"], "pass": 2, "\u{e000}": 1.50 });
        let text = |text: &str| Some(text.to_owned());
        let full = Execution {
            id: "0193a5b0-7000-7000-8000-0000000000aa".into(),
            hook_id: Some("0193a5b0-7000-7000-8000-0000000000bb".into()),
            hook_name: "guard \"1\"".into(),
            hook_version: u32::MAX,
            handler_type: HandlerType::Script,
            tenant_id: TenantId::default_tenant(),
            agent_id: text("a"),
            session_id: text("s\n"),
            turn_id: text("t"),
            event_id: "e".into(),
            trace_id: text("0af7"),
            event: CheckpointKind::PreToolUse,
            tool_name: text("exec"),
            tool_call_id: text("call_1"),
            input_hash: text("b018"),
            decision: Decision::Timeout,
            reason: text("größer"),
            duration_ms: u64::MAX,
            retry: 1,
            dedup_key: text("h:e#2"),
            error: text("\u{1f}"),
            error_detail: Some("only in the row".into()),
            output: Some(Box::default()),
            metadata: metadata.as_object().unwrap().clone(),
            created_at: "2026-01-31T12:00:00.5Z".parse().unwrap(),
        };
        check(&full, Some("00ff"));
        let none = Execution {
            hook_id: None,
            agent_id: None,
            session_id: None,
            turn_id: None,
            trace_id: None,
            tool_name: None,
            tool_call_id: None,
            input_hash: None,
            reason: None,
            dedup_key: None,
            error: None,
            metadata: Object::new(),
            ..full
        };
        check(&none, None);
    }

    #[test]
    fn texts_are_cut_by_characters() {
        assert_eq!([cut("größe", 7), cut("größe", 5), cut("größe", 3), cut("", 0)], ["größe", "größe", "grö", ""]);
    }
}
