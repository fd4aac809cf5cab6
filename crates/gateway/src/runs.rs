//! The runs that are worked now, by their turns: what the engine tells of a turn finds whoever is to hear it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pintle_domain::checkpoint::{CheckpointKind, Notice, ObservedEvent, RuntimeEvent};
use pintle_domain::execution::masked;
use pintle_domain::id::TurnId;
use pintle_domain::identity::Identity;
use pintle_domain::json::{Value, json};
use pintle_domain::llm::Usage;
use pintle_domain::record::{EventRecord, HookOutcome, Record, stopper};
use pintle_engine::{ModelFailure, Watcher};
use tokio::sync::Notify;

use crate::counters::Counters;
use crate::frame::beginning_of;
use crate::outcome::AnswerEnd;
use crate::run::Run;

/// How much of the result of a tool clients are told, in characters. Source: the published protocol.
const MAX_RESULT_CHARS: usize = 1000;

/// The turns at work, those of sub-agents too.
#[derive(Default)]
pub(crate) struct Runs {
    turns: Mutex<HashMap<TurnId, Arc<Run>>>,
    pub(crate) counters: Counters,
    /// Rung when rules were asked something.
    bell: Notify,
    /// Whoever hears of what is refused.
    heard: OnceLock<OnBlocked>,
}

/// Called with what hooks refuse. Must not block.
pub(crate) type OnBlocked = Box<dyn Fn(&EventRecord) + Send + Sync>;

impl Runs {
    /// Lets `heard` be called with what hooks refuse.
    pub(crate) fn tell_blocked(&self, heard: OnBlocked) {
        // There is one gateway for each.
        drop(self.heard.set(heard));
    }

    /// Waits until rules were asked something.
    pub(crate) async fn rung(&self) {
        self.bell.notified().await;
    }

    /// `turn` is worked for `run`.
    pub(crate) fn remember(&self, turn: &TurnId, run: &Arc<Run>) {
        self.turns().insert(turn.clone(), run.clone());
    }

    /// The run is over, and with it everybody who worked for it.
    pub(crate) fn forget(&self, turn: &TurnId) {
        let mut turns = self.turns();
        let Some(run) = turns.remove(turn) else { return };
        turns.retain(|_, other| !Arc::ptr_eq(other, &run));
    }

    /// The run that the turn of `who` belongs to.
    fn of(&self, who: &Identity) -> Option<Arc<Run>> {
        let mut turns = self.turns();
        if let Some(run) = turns.get(&who.turn_id) {
            return Some(run.clone());
        }
        let run = turns.get(who.parent_turn_id.as_ref()?)?.clone();
        turns.insert(who.turn_id.clone(), run.clone());
        Some(run)
    }

    fn turns(&self) -> MutexGuard<'_, HashMap<TurnId, Arc<Run>>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher for Runs {
    fn noticed(&self, notice: &Notice) {
        let Some(run) = self.of(&notice.who) else { return };
        if matches!(notice.what, ObservedEvent::Runtime(RuntimeEvent::ToolExecStart { .. })) {
            run.had_effect();
        }
        let below = below(&notice.who);
        if let (ObservedEvent::Runtime(RuntimeEvent::LlmResponse { odd_end, .. }), None) = (&notice.what, below) {
            run.model_ended(AnswerEnd::of(*odd_end));
        }
        let Some(told) = told(notice) else { return };
        match told {
            Told::Event { kind, payload } => run.event_of(kind, Some(payload), below),
            Told::Call(payload) => {
                if below.is_none() {
                    run.was_intermediate();
                    let iteration = notice.who.iteration;
                    run.is_at(json!({ "phase": "tool", "tool": payload["name"], "iteration": iteration }));
                }
                run.event_of("tool.call", Some(payload), below);
            }
            Told::Activity(activity) if below.is_none() => run.does(activity),
            Told::Activity(activity) => run.event_of("activity", Some(activity), below),
        }
    }

    fn recorded(&self, record: &EventRecord) {
        self.counters.hooks(record);
        if record.hooks.iter().any(|hook| hook.stored.is_some()) {
            self.bell.notify_one();
        }
        if record.ruling.word.refuses()
            && let Some(heard) = self.heard.get()
        {
            heard(record);
        }
        let Some(run) = self.of(&record.who) else { return };
        run.hooks_took(record.hooks.iter().filter_map(|hook| hook.took()).sum());
        if let Some([call, result]) = unreadable(record) {
            let below = below(&record.who);
            if below.is_none() {
                run.was_intermediate();
            }
            run.event_of("tool.call", Some(call), below);
            run.event_of("tool.result", Some(result), below);
        }
        if let Some(payload) = blocked(record) {
            run.event_of("hook.blocked", Some(payload), below(&record.who));
        }
    }

    fn model_failed(&self, who: &Identity, failure: &ModelFailure<'_>) {
        let run = self.of(who);
        // What becomes of the model of a sub-agent is a result for the agent that it works for.
        if let Some(run) = run.as_ref().filter(|_| who.depth == 0) {
            run.model_failed(failure.class, failure.retry_after);
        }
        let why: String = masked(failure.why).chars().take(MAX_RESULT_CHARS).collect();
        tracing::warn!(
            model = failure.model,
            class = failure.class,
            agent = %who.agent_id,
            user = run.as_ref().map(|run| &*run.name.user),
            tenant = %who.tenant_id,
            turn = %who.turn_id,
            request = run.as_ref().and_then(|run| run.request()).map(beginning_of),
            "model.failed: {why}"
        );
    }

    fn used(&self, who: &Identity, usage: Usage) {
        if let Some(run) = self.of(who) {
            run.used(usage);
        }
    }
}

/// The agent and turn of a sub-agent.
fn below(who: &Identity) -> Option<(&str, &TurnId)> {
    (who.depth > 0).then(|| (who.agent_id.as_str(), &who.turn_id))
}

/// What a client is told.
enum Told {
    Event { kind: &'static str, payload: Value },
    Call(Value),
    Activity(Value),
}

fn told(notice: &Notice) -> Option<Told> {
    let iteration = notice.who.iteration;
    let event = |kind, payload| Some(Told::Event { kind, payload });
    match &notice.what {
        ObservedEvent::PostToolUse { call, output, substituted, .. } => {
            let result: String = output.for_llm.chars().take(MAX_RESULT_CHARS).collect();
            let mut payload = json!({ "name": call.tool, "id": call.id, "is_error": output.is_error, "arguments": call.arguments, "result": result });
            if *substituted {
                payload["answeredByHook"] = json!(true);
            }
            event("tool.result", payload)
        }
        ObservedEvent::SessionStart | ObservedEvent::SubagentStop { .. } | ObservedEvent::Stop { .. } => None,
        ObservedEvent::Runtime(what) => match what {
            RuntimeEvent::LlmRequest { .. } => {
                Some(Told::Activity(json!({ "phase": "thinking", "iteration": iteration })))
            }
            RuntimeEvent::ToolExecStart { tool, arguments, tool_call_id, .. } => {
                Some(Told::Call(json!({ "name": tool, "id": tool_call_id, "arguments": arguments })))
            }
            RuntimeEvent::ContextCompress { .. } | RuntimeEvent::SessionSummarize { .. } => {
                Some(Told::Activity(json!({ "phase": "compacting", "iteration": iteration })))
            }
            RuntimeEvent::LlmRetry { attempt, max_retries, .. } => {
                event("run.retrying", json!({ "attempt": attempt, "maxAttempts": max_retries }))
            }
            RuntimeEvent::TurnStart { .. }
            | RuntimeEvent::TurnEnd { .. }
            | RuntimeEvent::LlmDelta { .. }
            | RuntimeEvent::LlmResponse { .. }
            | RuntimeEvent::ToolExecEnd { .. }
            | RuntimeEvent::ToolExecSkipped { .. }
            | RuntimeEvent::SteeringInjected { .. }
            | RuntimeEvent::FollowUpQueued { .. }
            | RuntimeEvent::SubturnSpawn { .. }
            | RuntimeEvent::SubturnEnd { .. }
            | RuntimeEvent::SubturnResultDelivered { .. }
            | RuntimeEvent::SubturnOrphan { .. }
            | RuntimeEvent::InterruptReceived { .. }
            | RuntimeEvent::Error { .. } => None,
        },
    }
}

/// A call that no hook was asked about and no tool ran for, and its result: nobody could read its arguments.
fn unreadable(record: &EventRecord) -> Option<[Value; 2]> {
    let id = record.who.tool_call_id.as_ref().filter(|_| record.kind == Some("arguments_unreadable"))?;
    let why = record.ruling.text.as_deref().unwrap_or_default();
    let result: String = why.chars().take(MAX_RESULT_CHARS).collect();
    let call = json!({ "name": record.tool, "id": id, "arguments": {} });
    Some([call, json!({ "name": record.tool, "id": id, "is_error": true, "arguments": {}, "result": result })])
}

/// The hook that stopped what an event was about.
pub(crate) struct StoppedBy {
    pub(crate) hook_id: Option<String>,
    pub(crate) hook: String,
    pub(crate) checkpoint: CheckpointKind,
    pub(crate) reason: String,
}

impl StoppedBy {
    /// Who stopped it, if it was stopped.
    pub(crate) fn of(record: &EventRecord) -> Option<Self> {
        if !record.ruling.word.refuses() {
            return None;
        }
        let text = record.ruling.text.clone().unwrap_or_default();
        let place = stopper(record.hooks.whole().map(|hook| hook.outcome.word()), record.ruling.text.as_deref());
        let Some(by) = place.and_then(|at| record.hooks.whole().nth(at)) else {
            return Some(Self { hook_id: None, hook: String::new(), checkpoint: record.checkpoint, reason: text });
        };
        let reason = match &by.outcome {
            HookOutcome::Said { word, reason, .. } if word.refuses() => reason.clone(),
            HookOutcome::Failed { became, fault, .. } if became.refuses() => Some(fault.told()),
            HookOutcome::Said { .. } | HookOutcome::Failed { .. } | HookOutcome::Told | HookOutcome::NotRun(_) => None,
        };
        let (hook_id, hook) = (hook_id(by), by.hook.to_string());
        Some(Self { hook_id, hook, checkpoint: by.checkpoint, reason: reason.unwrap_or(text) })
    }
}

fn blocked(record: &EventRecord) -> Option<Value> {
    let StoppedBy { hook_id, hook, checkpoint, reason } = StoppedBy::of(record)?;
    // People read it, as they read what is kept; the model has it as the hook said it.
    let reason = masked(&reason);
    let mut payload = json!({ "hookId": hook_id, "name": hook, "event": at_name(checkpoint), "reason": reason });
    if let Some(call) = &record.who.tool_call_id {
        payload["toolCallId"] = json!(call);
        if let Some(tool) = &record.tool {
            payload["tool"] = json!(tool);
        }
        if let Some(input) = &record.input {
            payload["arguments"] = json!(input);
        }
    }
    Some(payload)
}

fn hook_id(record: &Record) -> Option<String> {
    record.stored.as_ref().map(|stored| stored.id.to_string())
}

fn at_name(at: CheckpointKind) -> &'static str {
    at.name()
}
