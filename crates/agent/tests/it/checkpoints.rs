//! Every checkpoint and every kind of runtime event has its emit site in the loop: scripted turns hit each row.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use pintle_agent::{AgentSettings, Conversation, TurnHandle};
use pintle_domain::checkpoint::runtime::RUNTIME_KINDS;
use pintle_domain::checkpoint::{
    AfterLlm, AfterTool, ApproveTool, BeforeLlm, BeforeTool, CHECKPOINTS, CheckpointKind, Duty, Notice, ObservedEvent,
    PreToolUse, SubagentStart, UserPromptSubmit,
};
use pintle_domain::json::{Value, json};
use pintle_domain::tool::ToolOutput;
use pintle_domain::verdict::Verdict;
use pintle_engine::{HookCx, NativeAnswer, NativeHook, async_trait};

use crate::hooks::OwnTool;
use crate::host::Recorder;
use crate::test_agents::{TestAgents, TestAgentsParts};

/// Counts how often it is reached, by checkpoint.
#[derive(Default)]
struct Counter {
    reached: Mutex<BTreeMap<CheckpointKind, usize>>,
    /// The payload of every runtime event, by kind.
    told: Mutex<BTreeMap<&'static str, Vec<Value>>>,
}

impl Counter {
    fn count<C: pintle_domain::checkpoint::Checkpoint>(&self, _at: &C) -> NativeAnswer<C> {
        *self.reached.lock().unwrap().entry(C::KIND).or_default() += 1;
        Ok(Verdict::Continue)
    }
}

#[async_trait]
impl NativeHook for Counter {
    fn stages(&self) -> Vec<CheckpointKind> {
        CHECKPOINTS.iter().map(|row| row.kind).collect()
    }

    async fn on_event(&self, notice: &Notice) {
        *self.reached.lock().unwrap().entry(notice.what.checkpoint()).or_default() += 1;
        if let ObservedEvent::Runtime(event) = &notice.what {
            self.told.lock().unwrap().entry(event.kind().name()).or_default().push(json!(event));
        }
    }

    async fn user_prompt_submit(&self, _cx: &HookCx<'_>, at: &UserPromptSubmit) -> NativeAnswer<UserPromptSubmit> {
        self.count(at)
    }

    async fn before_llm(&self, _cx: &HookCx<'_>, at: &BeforeLlm) -> NativeAnswer<BeforeLlm> {
        self.count(at)
    }

    async fn after_llm(&self, _cx: &HookCx<'_>, at: &AfterLlm) -> NativeAnswer<AfterLlm> {
        self.count(at)
    }

    async fn before_tool(&self, _cx: &HookCx<'_>, at: &BeforeTool) -> NativeAnswer<BeforeTool> {
        self.count(at)
    }

    async fn pre_tool_use(&self, _cx: &HookCx<'_>, at: &PreToolUse) -> NativeAnswer<PreToolUse> {
        self.count(at)
    }

    async fn approve_tool(&self, _cx: &HookCx<'_>, at: &ApproveTool) -> NativeAnswer<ApproveTool> {
        self.count(at)
    }

    async fn after_tool(&self, _cx: &HookCx<'_>, at: &AfterTool) -> NativeAnswer<AfterTool> {
        self.count(at)
    }

    async fn subagent_start(&self, _cx: &HookCx<'_>, at: &SubagentStart) -> NativeAnswer<SubagentStart> {
        self.count(at)
    }
}

/// The members of each payload; those behind a `?` are there when there is something to say.
const MEMBERS: [(&str, &str); 19] = [
    ("turn_start", "Channel ChatID UserMessage MediaCount"),
    ("turn_end", "Status Iterations Duration FinalContentLen UserMessage FinalContent ToolKinds ToolExecutions"),
    ("llm_request", "Model MessagesCount ToolsCount MaxTokens Temperature"),
    ("llm_delta", "ContentDeltaLen ReasoningDeltaLen"),
    ("llm_response", "ContentLen ToolCalls HasReasoning"),
    ("llm_retry", "Attempt MaxRetries Reason Error Backoff"),
    ("context_compress", "Reason DroppedMessages RemainingMessages"),
    ("session_summarize", "SummarizedMessages KeptMessages SummaryLen OmittedOversized"),
    ("tool_exec_start", "Tool Arguments ToolCallID ?Hook"),
    ("tool_exec_end", "Tool Duration ForLLMLen ForUserLen IsError Async ToolCallID ?Hook"),
    ("tool_exec_skipped", "Tool Reason ToolCallID ?Hook"),
    ("steering_injected", "Count TotalContentLen"),
    ("follow_up_queued", "SourceTool Channel ChatID ContentLen"),
    ("interrupt_received", "Kind Role ContentLen QueueDepth HintLen ?Hook"),
    ("subturn_spawn", "AgentID Label ParentTurnID"),
    ("subturn_end", "AgentID Status"),
    ("subturn_result_delivered", "TargetChannel TargetChatID ContentLen"),
    ("subturn_orphan", "ParentTurnID ChildTurnID Reason"),
    ("error", "Stage Message ?Hook"),
];

/// What the model says to whom, in order: the first line whose `when` holds and that is left.
fn script() -> Value {
    let hands = |id: &str, tool: &str| json!({"id": id, "name": tool, "arguments": {"agent": "helper", "task": tool}});
    let work = |id: &str| json!({"id": id, "name": "work", "arguments": {}});
    json!({"replies": [
        {"when": {"anywhere": "Summarise the following"}, "text": "in short"},
        {"when": {"model": "helper", "contains": "spawn"}, "delay_ms": 60_000, "text": "found it, late"},
        {"when": {"model": "helper"}, "text": "found it"},
        {"when": {"anywhere": "first"}, "error": {"kind": "server_error", "message": "busy"}},
        {"when": {"anywhere": "first"}, "tool_calls": [work("c1"), work("c2")]},
        {"when": {"anywhere": "first"}, "tool_calls": [hands("c3", "delegate"), hands("c4", "spawn")]},
        {"when": {"anywhere": "first"}, "text": ["do", "ne ", "x".repeat(2000)]},
        {"when": {"anywhere": "broken"}, "error": {"kind": "final", "message": "no"}},
    ]})
}

/// An agent with a sub-agent, whose tool says something to its turn the first time.
fn test_agents(turn_handle: &TurnHandle) -> TestAgents {
    let (turn_handle, said) = (turn_handle.clone(), Mutex::new(false));
    let work = OwnTool::new(
        "work",
        false,
        Box::new(move |_, _| {
            if !std::mem::replace(&mut *said.lock().unwrap(), true) {
                turn_handle.steer("and more").unwrap();
            }
            std::future::ready(ToolOutput::ok("hi")).boxed()
        }),
    );
    let mut parts = TestAgentsParts::of(Recorder::playing(&script()), &["main", "helper"]).own(work);
    parts.change = Box::new(|settings| AgentSettings { context_tokens: 600, ..settings });
    parts.test_agents()
}

/// A whole day: retries, steering, sub-agents, a compaction, a failure.
async fn day() -> (Arc<Counter>, TestAgents) {
    let turn_handle = TurnHandle::default();
    let test_agents = test_agents(&turn_handle);
    let counter = Arc::new(Counter::default());
    test_agents.mount(vec![test_agents.engine.native("counter", 0, counter.clone())]);
    let mut conversation = Conversation::new("s");
    test_agents.turn_by(&mut conversation, "first", &turn_handle).await;
    test_agents.turn(&mut conversation, "broken").await;
    // The sub-agent in the background takes a minute, by a clock that need not be waited for.
    tokio::time::sleep(Duration::from_secs(120)).await;
    test_agents.settled().await;
    (counter, test_agents)
}

#[tokio::test(start_paused = true)]
async fn every_checkpoint_has_its_emit_site() {
    let (counter, test_agents) = day().await;
    let reached = counter.reached.lock().unwrap().clone();
    // Nobody is asked where texts go in; that it happened is in the record.
    let asked = CHECKPOINTS.iter().filter(|row| row.duty != Duty::Injector);
    for row in asked {
        assert!(reached.get(&row.kind).is_some_and(|count| *count > 0), "nothing reaches {}: {reached:?}", row.name);
    }
    // The record knows of each as well.
    let skilled = crate::skills::every_point().await;
    let seen = [&test_agents.seen, &skilled.seen].map(|seen| seen.records.lock().unwrap().clone());
    let recorded: BTreeSet<CheckpointKind> = seen.iter().flatten().map(|record| record.checkpoint).collect();
    assert_eq!(recorded, CHECKPOINTS.iter().map(|row| row.kind).collect());
    // Once per session: one of the user's, and one of each sub-agent.
    assert_eq!(reached[&CheckpointKind::SessionStart], 1 + reached[&CheckpointKind::SubagentStart]);
    assert_eq!(reached[&CheckpointKind::SubagentStop], reached[&CheckpointKind::SubagentStart]);
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_runtime_event_is_told_with_its_members() {
    let (counter, _crew) = day().await;
    let told = counter.told.lock().unwrap().clone();
    for (_, name, _) in &RUNTIME_KINDS {
        let (_, members) = MEMBERS.iter().find(|(row, _)| row == name).unwrap();
        let payloads = told.get(name).map(Vec::as_slice).unwrap_or_default();
        assert!(!payloads.is_empty(), "nothing tells of {name}: {:?}", told.keys());
        let always: BTreeSet<&str> = members.split(' ').filter(|member| !member.starts_with('?')).collect();
        let all: BTreeSet<&str> = members.split(' ').map(|member| member.trim_start_matches('?')).collect();
        for payload in payloads {
            let has: BTreeSet<&str> = payload.as_object().unwrap().keys().map(String::as_str).collect();
            assert!(always.is_subset(&has) && has.is_subset(&all), "{name}: {payload}");
        }
    }
    assert_eq!(told.len(), RUNTIME_KINDS.len());
}
