//! The runtime events: what happened in a run, told to observers and never asked about.

use std::time::Duration;

use serde::{Deserialize, Serialize, Serializer};

use crate::json::Object;
use crate::llm::OddEnd;

/// The most bytes of an error text in `turn_end`: a line of a listing.
const SUMMARY_BYTES: usize = 200;

/// Something that happened. Its JSON is the payload, members capitalised, without its kind.
///
/// # Example
///
/// ```
/// use pintle_domain::checkpoint::{RuntimeEvent, RuntimeKind};
///
/// let event = RuntimeEvent::LlmDelta { content_delta_len: 3, reasoning_delta_len: 0 };
/// assert_eq!(event.kind().name(), "llm_delta");
/// assert_eq!(pintle_domain::json::json!(event), pintle_domain::json::json!({"ContentDeltaLen": 3, "ReasoningDeltaLen": 0}));
/// assert_eq!(RuntimeKind::named("agent.llm.delta"), Some(event.kind()));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged, rename_all_fields = "PascalCase")]
#[expect(missing_docs, reason = "the members are those of the payload table in docs/protocols/process-hooks.md")]
pub enum RuntimeEvent {
    /// A turn begins.
    TurnStart {
        channel: String,
        #[serde(rename = "ChatID")]
        chat_id: String,
        user_message: String,
        media_count: usize,
    },
    /// A turn is over; exactly one for each start.
    TurnEnd {
        status: TurnStatus,
        iterations: u32,
        #[serde(serialize_with = "nanos")]
        duration: Duration,
        final_content_len: usize,
        user_message: String,
        final_content: String,
        tool_kinds: Vec<String>,
        tool_executions: Vec<ToolExecution>,
    },
    /// A request leaves for a provider, as the hooks left it.
    LlmRequest { model: String, messages_count: usize, tools_count: usize, max_tokens: u64, temperature: f64 },
    /// Some of an answer arrived; merged to at most four a second.
    LlmDelta { content_delta_len: usize, reasoning_delta_len: usize },
    /// An answer is there, as the hooks left it.
    LlmResponse {
        content_len: usize,
        tool_calls: usize,
        has_reasoning: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        odd_end: Option<OddEnd>,
    },
    /// A provider call is tried again.
    LlmRetry {
        attempt: u32,
        max_retries: u32,
        reason: RetryReason,
        error: String,
        #[serde(serialize_with = "nanos")]
        backoff: Duration,
    },
    /// The oldest messages gave way to something shorter.
    ContextCompress { reason: CompressReason, dropped_messages: usize, remaining_messages: usize },
    /// The oldest messages were summarised.
    SessionSummarize { summarized_messages: usize, kept_messages: usize, summary_len: usize, omitted_oversized: bool },
    /// A tool begins to run.
    ToolExecStart {
        tool: String,
        arguments: Object,
        #[serde(rename = "ToolCallID")]
        tool_call_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        hook: Option<String>,
    },
    /// A tool's result is settled.
    ToolExecEnd {
        tool: String,
        #[serde(serialize_with = "nanos")]
        duration: Duration,
        #[serde(rename = "ForLLMLen")]
        for_llm_len: usize,
        for_user_len: usize,
        is_error: bool,
        r#async: bool,
        #[serde(rename = "ToolCallID")]
        tool_call_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        hook: Option<String>,
        /// The first line of an error, for people who watch; whoever is told over a wire or later gets lengths.
        #[serde(skip)]
        error: Option<String>,
    },
    /// A call did not run.
    ToolExecSkipped {
        tool: String,
        reason: String,
        #[serde(rename = "ToolCallID")]
        tool_call_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        hook: Option<String>,
    },
    /// Messages that came in during the turn entered the conversation.
    SteeringInjected { count: usize, total_content_len: usize },
    /// A result that came too late for its turn waits for the next one.
    FollowUpQueued {
        source_tool: String,
        channel: String,
        #[serde(rename = "ChatID")]
        chat_id: String,
        content_len: usize,
    },
    /// A sub-agent begins.
    SubturnSpawn {
        #[serde(rename = "AgentID")]
        agent_id: String,
        /// The child's turn.
        label: String,
        #[serde(rename = "ParentTurnID")]
        parent_turn_id: String,
    },
    /// A sub-agent has ended.
    SubturnEnd {
        #[serde(rename = "AgentID")]
        agent_id: String,
        status: TurnStatus,
    },
    /// The result of a sub-agent has reached its parent.
    SubturnResultDelivered {
        target_channel: String,
        #[serde(rename = "TargetChatID")]
        target_chat_id: String,
        content_len: usize,
    },
    /// A sub-agent has lost the turn that it works for.
    SubturnOrphan {
        #[serde(rename = "ParentTurnID")]
        parent_turn_id: String,
        #[serde(rename = "ChildTurnID")]
        child_turn_id: String,
        reason: OrphanReason,
    },
    /// Somebody interrupted the turn.
    InterruptReceived {
        kind: InterruptKind,
        role: String,
        content_len: usize,
        queue_depth: usize,
        hint_len: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        hook: Option<String>,
    },
    /// Something failed.
    Error {
        /// `llm`, `session_save`, `session_restore` or `hook.STAGE`.
        stage: String,
        message: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        hook: Option<String>,
    },
}

fn nanos<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

/// The status in which a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TurnStatus {
    /// With an answer.
    Completed,
    /// With an error that the user is told.
    Error,
    /// Because somebody stopped it.
    Aborted,
}

/// Why a provider call is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words say it")]
pub enum RetryReason {
    Timeout,
    Network,
    RateLimit,
    ServerError,
    ContextLimit,
}

impl RetryReason {
    /// The word on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Network => "network",
            Self::RateLimit => "rate_limit",
            Self::ServerError => "server_error",
            Self::ContextLimit => "context_limit",
        }
    }
}

/// Why the oldest messages gave way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CompressReason {
    /// The conversation came near to what the model takes.
    ProactiveBudget,
    /// The model refused the conversation as too long.
    LlmRetry,
    /// They were summarised.
    Summarize,
}

/// Why a sub-agent has lost the turn that it works for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OrphanReason {
    /// The turn ended; the result came later.
    ParentFinished,
    /// The turn ended while the sub-agent works.
    ParentFinishedWaiting,
    /// The sub-agent failed in a way that it could not report.
    Panic,
}

/// The way in which somebody interrupted a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InterruptKind {
    /// A message came in while the turn was worked.
    Steering,
    /// The turn is to come to an end: one more model call, without tools.
    Graceful,
    /// The run stops at once.
    HardAbort,
}

/// One line of `ToolExecutions` in the payload of `turn_end`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolExecution {
    /// The tool.
    pub name: String,
    /// Whether it succeeded.
    pub success: bool,
    /// The beginning of its error text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_summary: Option<String>,
}

impl ToolExecution {
    /// The line of a call of `tool` that succeeded, or failed with `error`: of that, the beginning of its first line.
    pub fn new(tool: &str, error: Option<&str>) -> Self {
        let summary = |text: &str| {
            let line = text.lines().next().unwrap_or_default();
            line[..line.floor_char_boundary(SUMMARY_BYTES)].to_owned()
        };
        Self { name: tool.to_owned(), success: error.is_none(), error_summary: error.map(summary) }
    }
}

/// The kind of a runtime event. The table has every name that a configuration may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the words say it")]
pub enum RuntimeKind {
    TurnStart,
    TurnEnd,
    LlmRequest,
    LlmDelta,
    LlmResponse,
    LlmRetry,
    ContextCompress,
    SessionSummarize,
    ToolExecStart,
    ToolExecEnd,
    ToolExecSkipped,
    SteeringInjected,
    FollowUpQueued,
    InterruptReceived,
    SubturnSpawn,
    SubturnEnd,
    SubturnResultDelivered,
    SubturnOrphan,
    Error,
}

/// Every kind, with its two names: in `hook.event`, and after `agent.` in `hook.runtime_event`.
pub const RUNTIME_KINDS: [(RuntimeKind, &str, &str); 19] = [
    (RuntimeKind::TurnStart, "turn_start", "turn.start"),
    (RuntimeKind::TurnEnd, "turn_end", "turn.end"),
    (RuntimeKind::LlmRequest, "llm_request", "llm.request"),
    (RuntimeKind::LlmDelta, "llm_delta", "llm.delta"),
    (RuntimeKind::LlmResponse, "llm_response", "llm.response"),
    (RuntimeKind::LlmRetry, "llm_retry", "llm.retry"),
    (RuntimeKind::ContextCompress, "context_compress", "context.compress"),
    (RuntimeKind::SessionSummarize, "session_summarize", "session.summarize"),
    (RuntimeKind::ToolExecStart, "tool_exec_start", "tool.exec_start"),
    (RuntimeKind::ToolExecEnd, "tool_exec_end", "tool.exec_end"),
    (RuntimeKind::ToolExecSkipped, "tool_exec_skipped", "tool.exec_skipped"),
    (RuntimeKind::SteeringInjected, "steering_injected", "steering.injected"),
    (RuntimeKind::FollowUpQueued, "follow_up_queued", "follow_up.queued"),
    (RuntimeKind::InterruptReceived, "interrupt_received", "interrupt.received"),
    (RuntimeKind::SubturnSpawn, "subturn_spawn", "subturn.spawn"),
    (RuntimeKind::SubturnEnd, "subturn_end", "subturn.end"),
    (RuntimeKind::SubturnResultDelivered, "subturn_result_delivered", "subturn.result_delivered"),
    (RuntimeKind::SubturnOrphan, "subturn_orphan", "subturn.orphan"),
    (RuntimeKind::Error, "error", "error"),
];

impl RuntimeKind {
    /// The name in `hook.event`.
    pub fn name(self) -> &'static str {
        RUNTIME_KINDS[self as usize].1
    }

    /// The name after `agent.` in `hook.runtime_event`.
    pub fn runtime_name(self) -> &'static str {
        RUNTIME_KINDS[self as usize].2
    }

    /// The kind that either spelling names, with or without `agent.`.
    pub fn named(name: &str) -> Option<Self> {
        let bare = name.strip_prefix("agent.").unwrap_or(name);
        RUNTIME_KINDS.iter().find(|(_, hook, runtime)| *hook == name || *runtime == bare).map(|row| row.0)
    }

    /// The point in the loop that emits it: the runtime name without `exec_`,
    /// after `turn.` unless it begins with `turn` or `subturn`.
    pub fn source(self) -> String {
        let name = self.runtime_name().replace("exec_", "");
        if name.starts_with("turn") || name.starts_with("subturn") { name } else { format!("turn.{name}") }
    }
}

impl RuntimeEvent {
    /// Its kind.
    pub fn kind(&self) -> RuntimeKind {
        match self {
            Self::TurnStart { .. } => RuntimeKind::TurnStart,
            Self::TurnEnd { .. } => RuntimeKind::TurnEnd,
            Self::LlmRequest { .. } => RuntimeKind::LlmRequest,
            Self::LlmDelta { .. } => RuntimeKind::LlmDelta,
            Self::LlmResponse { .. } => RuntimeKind::LlmResponse,
            Self::LlmRetry { .. } => RuntimeKind::LlmRetry,
            Self::ContextCompress { .. } => RuntimeKind::ContextCompress,
            Self::SessionSummarize { .. } => RuntimeKind::SessionSummarize,
            Self::ToolExecStart { .. } => RuntimeKind::ToolExecStart,
            Self::ToolExecEnd { .. } => RuntimeKind::ToolExecEnd,
            Self::ToolExecSkipped { .. } => RuntimeKind::ToolExecSkipped,
            Self::SteeringInjected { .. } => RuntimeKind::SteeringInjected,
            Self::FollowUpQueued { .. } => RuntimeKind::FollowUpQueued,
            Self::SubturnSpawn { .. } => RuntimeKind::SubturnSpawn,
            Self::SubturnEnd { .. } => RuntimeKind::SubturnEnd,
            Self::SubturnResultDelivered { .. } => RuntimeKind::SubturnResultDelivered,
            Self::SubturnOrphan { .. } => RuntimeKind::SubturnOrphan,
            Self::InterruptReceived { .. } => RuntimeKind::InterruptReceived,
            Self::Error { .. } => RuntimeKind::Error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_name_a_kind_and_rows_stand_in_order() {
        for (i, (kind, hook, runtime)) in RUNTIME_KINDS.iter().enumerate() {
            assert_eq!(*kind as usize, i);
            assert_eq!(RuntimeKind::named(hook), Some(*kind));
            assert_eq!(RuntimeKind::named(runtime), Some(*kind));
            assert_eq!(RuntimeKind::named(&format!("agent.{runtime}")), Some(*kind));
        }
        assert_eq!(RuntimeKind::ToolExecStart.source(), "turn.tool.start");
        assert_eq!(RuntimeKind::Error.source(), "turn.error");
        assert_eq!(RuntimeKind::SubturnSpawn.source(), "subturn.spawn");
    }

    #[test]
    fn a_payload_has_capitalised_members() {
        let event = RuntimeEvent::ToolExecEnd {
            tool: "echo".into(),
            duration: Duration::from_millis(15),
            for_llm_len: 2,
            for_user_len: 0,
            is_error: false,
            r#async: false,
            tool_call_id: "c1".into(),
            hook: None,
            error: None,
        };
        assert_eq!(
            serde_json::to_string(&event).unwrap(),
            r#"{"Tool":"echo","Duration":15000000,"ForLLMLen":2,"ForUserLen":0,"IsError":false,"Async":false,"ToolCallID":"c1"}"#
        );
    }
}
