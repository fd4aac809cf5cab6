//! The tool calls of one batch: cleared, run or answered by a hook, settled, delivered.

use std::time::Duration;

use pintle_domain::approval::Approval;
use pintle_domain::checkpoint::runtime::ToolExecution;
use pintle_domain::checkpoint::{CheckpointKind, FinishedCall};
use pintle_domain::clearing::GateNotes;
use pintle_domain::id::{CallId, HookName};
use pintle_domain::json::Object;
use pintle_domain::message::CallPart;
use pintle_domain::nearest::nearest;
use pintle_domain::record::EventRecord;
use pintle_domain::tool::{ToolCall, ToolOutput, UnusableMedia};
use pintle_domain::turn::{Fact, KeptMessage, ModelAnswer, OUTCOME_UNKNOWN};
use pintle_engine::{Clearance, Permit, Stopped};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::calls_in_progress::{CallInProgress, CallResult};
use super::files::ReceivedResult;
use super::messages::messages_of;
use super::report::nobody_said;
use super::subturns;
use super::work::Work;

/// The refusal of a call whose session may be another node's by now.
const NOT_OURS: &str = "the tool did not run: another node may work the session by now";

/// The refusal of a call whose use could not be written down.
const NOT_NOTED: &str = "the tool did not run: the session could not be written";

impl Work<'_> {
    /// Clears the call that the model wrote in `part`. If a person must say first, the question comes back.
    pub(super) async fn clear(&mut self, place: usize, part: CallPart) -> Option<Box<Approval>> {
        let id = CallId::from(part.id.as_str());
        self.hooks.set_call(Some(id.clone()));
        let raw_tool = part.function.name.clone();
        let tool = self.hooks.known().meant(&raw_tool);
        let mut call = ToolCall { id, tool, raw_tool, arguments: Object::new() };
        match part.arguments() {
            Ok(arguments) => call.arguments = arguments,
            Err(why) => {
                // No hook denied it: it is not a call. Whoever looks for what an agent tried finds it all the same.
                let text = format!("the tool did not run: {why}");
                self.tell_unreadable(&call, text.clone());
                self.pass_over(place, &call, text, None);
                return None;
            }
        }
        let clearance = self.hooks.clear_resumed(call, &mut self.flights.unsettled).await;
        self.note_rewrite(place, &clearance);
        match clearance {
            Clearance::Run(permit, gate_notes) => {
                self.flights.gate_notes_by_place.insert(place, gate_notes);
                self.turn.cleared(place, self.changes_nothing(permit.call()));
                self.flights.permits.insert(place, permit);
            }
            Clearance::Substituted { call, output, by, took, gate_notes } => {
                self.flights.gate_notes_by_place.insert(place, gate_notes);
                // Its result stands in the tool's place; `approve_tool` and `after_tool` are skipped.
                let done = FinishedCall { call, output, by: Some(by), took };
                self.hooks.tell_started(&done.call, done.by.as_ref());
                let named = Self::named_by_hooks(&done.output, None);
                self.settle(place, done, (Vec::new(), named)).await;
            }
            // A hook that was cancelled refuses too, but that is not a verdict: the call is left to the turn's end.
            Clearance::Refused { .. } | Clearance::Waiting { .. } if self.hooks.cancel().is_cancelled() => {}
            Clearance::Waiting { approval, .. } if self.kept => return Some(approval),
            Clearance::Waiting { approval, .. } => {
                // Nobody could go on with it.
                let call = approval.call();
                self.refuse(place, &call, nobody_said(&approval), Some(approval.by));
            }
            Clearance::Refused { call, text, by, rewritten } => {
                self.flights.gate_notes_by_place.insert(place, GateNotes { notes: Vec::new(), rewritten });
                self.refuse(place, &call, text, by);
            }
            Clearance::Abort { aborted, .. } => self.stop(aborted),
        }
        None
    }

    /// Notes what gates put in the place of the model's arguments: it holds whatever becomes of the call.
    fn note_rewrite(&mut self, place: usize, clearance: &Clearance) {
        let (arguments, rewritten) = clearance.left();
        // A call that is cleared once more may be left alone this time.
        if rewritten || self.turn.rewritten(place).is_some() {
            let arguments = pintle_domain::json::json!(arguments).to_string();
            drop(self.note(Fact::Rewritten { place, arguments }));
        }
    }

    /// Lets go of what gates replaced in calls that the end of the turn cuts off.
    pub(super) fn settle_cut_off(&mut self) {
        for (place, answer) in self.turn.cut_off() {
            self.answered(place, answer);
        }
    }

    fn changes_nothing(&self, call: &ToolCall) -> bool {
        self.hooks.known().owner(&call.tool).is_none()
            && self.runner.tools.get(&call.tool).is_some_and(|tool| tool.read_only())
    }

    fn refuse(&mut self, place: usize, call: &ToolCall, text: String, by: Option<HookName>) {
        self.denials.push(format!("{}: {text}", call.tool));
        self.pass_over(place, call, text, by);
    }

    fn pass_over(&mut self, place: usize, call: &ToolCall, text: String, by: Option<HookName>) {
        self.hooks.tell_skipped(call, &text, by.as_ref());
        self.last = Some(ToolOutput::error(&text));
        // What was said for a call that goes on is void; that a gate changed its arguments is not.
        let rewritten =
            self.flights.gate_notes_by_place.remove(&place).and_then(|gate_notes| rewritten(&gate_notes, call));
        self.answered(place, ModelAnswer { rewritten, ..ModelAnswer::not_run(text) }.about(call.tool.as_str()));
    }

    /// Notes that the permit is used, then lets the cleared call run; others may be cleared meanwhile.
    pub(super) async fn start(&mut self, place: usize) {
        let Some(permit) = self.flights.permits.remove(&place) else {
            let answer = ModelAnswer::not_run("the call was not cleared");
            return self.answered(place, answer.about(self.tool_at(place)));
        };
        let call = permit.call().clone();
        // Another call may have been settled since this one was cleared.
        self.hooks.set_call(Some(call.id.clone()));
        let used = Fact::Used {
            place,
            read_only: self.changes_nothing(&call),
            tool: call.tool.clone(),
            digest: permit.digest().to_string(),
            rewritten: self.flights.gate_notes_by_place.get(&place).and_then(|gate_notes| rewritten(gate_notes, &call)),
        };
        if self.note(used).kept().await.is_err() {
            return self.pass_over(place, &call, NOT_NOTED.into(), None);
        }
        if !self.conversation.is_ours() {
            return self.pass_over(place, &call, NOT_OURS.into(), None);
        }
        self.tell_missing(&call);
        self.hooks.tell_started(&call, None);
        let handle = self.launch(permit);
        self.flights.running.insert(place, CallInProgress { call, handle });
    }

    /// Keeps why a call comes to nothing that has a permit and no tool: hooks are asked about it as about any other.
    fn tell_unreadable(&self, call: &ToolCall, text: String) {
        let mut record = EventRecord {
            kind: Some("arguments_unreadable"),
            tool: Some(call.tool.clone()),
            ..self.blank(CheckpointKind::BeforeTool, Some(text))
        };
        record.who.tool_call_id = Some(call.id.clone());
        self.hooks.keep(vec![record]);
    }

    fn tell_missing(&self, call: &ToolCall) {
        let tools = &self.runner.tools;
        let text = match self.hooks.known().owner(&call.tool) {
            Some(owner) => format!("only the hook `{owner}` may answer for `{}`, and it did not", call.tool),
            None if tools.get(&call.tool).is_some() => return,
            None => {
                let names = tools.definitions().into_iter().map(|tool| tool.function.name.as_str());
                let near = nearest(&call.tool, names).map(|near| format!("; did you mean `{near}`?"));
                format!("the agent has no tool `{}`{}", call.tool, near.unwrap_or_default())
            }
        };
        let mut record = EventRecord {
            kind: Some("tool_missing"),
            tool: Some(call.tool.clone()),
            ..self.blank(CheckpointKind::ApproveTool, Some(text))
        };
        record.who.tool_call_id = Some(call.id.clone());
        self.hooks.keep(vec![record]);
    }

    fn launch(&self, permit: Permit) -> JoinHandle<CallResult> {
        let started = Instant::now();
        let ran = move |output, denials| CallResult { output, took: started.elapsed(), denials };
        let tool = permit.call().tool.clone();
        // Nobody may answer for an injected tool but its owner, so no built-in of that name runs in its place.
        if self.hooks.known().owner(&tool).is_some() {
            return self.flights.tasks.spawn(async move { ran(not_found(&tool), Vec::new()) });
        }
        let (tools, cancel) = (self.runner.tools.clone(), self.hooks.cancel().clone());
        if subturns::is_subagent_tool(&tool) && tools.get(&tool).is_some() {
            let subagent = self.subagent();
            return self.flights.tasks.spawn(async move {
                let brought = match tools.check(&permit) {
                    Ok(()) => subagent.run(permit).await,
                    Err(reason) => subturns::SubagentResult::failed(reason),
                };
                ran(brought.output, brought.denials)
            });
        }
        if let Some(sending) = self.sending(permit.call()) {
            return self.flights.tasks.spawn(async move {
                let checked = tools.check(&permit);
                ran(
                    match checked {
                        Ok(()) => sending.await,
                        Err(reason) => ToolOutput::error(reason),
                    },
                    Vec::new(),
                )
            });
        }
        if let Some(page) = self.page(permit.call()) {
            return self
                .flights
                .tasks
                .spawn(async move { ran(tools.check(&permit).map_or_else(ToolOutput::error, |()| page), Vec::new()) });
        }
        let standing = self.conversation.standing();
        self.flights.tasks.spawn(async move {
            // The last look before the effect.
            if !standing.is_ours() {
                return ran(ToolOutput::error(NOT_OURS), Vec::new());
            }
            ran(tools.run(permit, &cancel).await, Vec::new())
        })
    }

    /// A call that ran when its process ended: nobody knows what became of it.
    pub(super) fn lose(&mut self, place: usize) {
        let part = self.turn.part(place).cloned();
        let name = part.as_ref().map(|part| part.function.name.clone()).unwrap_or_default();
        let execution = ToolExecution::new(&name, Some(OUTCOME_UNKNOWN));
        let answer = ModelAnswer { execution: Some(execution), ..ModelAnswer::not_run(OUTCOME_UNKNOWN) };
        self.answered(place, answer.about(self.tool_at(place)));
    }

    /// The call at `place` as it was cleared, as far as its turn keeps that.
    pub(super) fn call_at(&self, place: usize) -> Option<ToolCall> {
        let mut part = self.turn.part(place)?.clone();
        if let Some(left) = self.turn.rewritten(place) {
            part.function.arguments = left.to_owned();
        }
        let (id, arguments) = (CallId::from(part.id.as_str()), part.arguments().ok()?);
        Some(ToolCall { id, tool: self.tool_at(place), raw_tool: part.function.name, arguments })
    }

    /// The canonical name of the tool that the model asked for.
    pub(super) fn tool_at(&self, place: usize) -> String {
        let raw = self.turn.part(place).map(|part| part.function.name.as_str()).unwrap_or_default();
        self.hooks.known().meant(raw)
    }

    /// Waits for the running call, lets `after_tool` see its result, and settles it.
    pub(super) async fn land(&mut self, place: usize) {
        let Some(CallInProgress { call, handle }) = self.flights.running.remove(&place) else {
            let answer = ModelAnswer::not_run("the call did not start");
            return self.answered(place, answer.about(self.tool_at(place)));
        };
        self.hooks.set_call(Some(call.id.clone()));
        let CallResult { output, took, denials } = match handle.await {
            Ok(ran) => ran,
            Err(error) => {
                let output = ToolOutput::error(format!("the tool failed: {error}"));
                CallResult { output, took: Duration::ZERO, denials: Vec::new() }
            }
        };
        self.denials.extend(denials);
        let ReceivedResult { output, unusable } = self.files.receive(output.for_hooks(), None).await;
        let before = output.clone();
        let (finished, stopped) = self.hooks.review(call, output, took).await;
        // What stands in the place of a result that was withheld came with no media.
        let unusable = if stopped.is_none() { unusable } else { Vec::new() };
        let named = Self::named_by_hooks(&finished.output, Some(&before));
        self.settle(place, finished, (unusable, named)).await;
        if let Some(Stopped::Aborted(aborted)) = stopped {
            self.stop(aborted);
        }
    }

    /// Delivers a result that is final: to the user, the model, observers. `unusable` are media that it came with,
    /// `named` the paths that hooks named with it.
    async fn settle(&mut self, place: usize, done: FinishedCall, (unusable, named): (Vec<UnusableMedia>, Vec<String>)) {
        let mut received = self.files.receive(done.output, done.by.as_ref()).await;
        received.unusable.extend(unusable);
        let said = received.output.for_llm.len();
        let delivered = self.deliver(received).await;
        let done = FinishedCall { output: self.bounded(delivered, said), ..done };
        let gate_notes = self.flights.gate_notes_by_place.remove(&place).unwrap_or_default();
        // What the user has got rides on no message.
        let media = if done.output.response_handled { Vec::new() } else { done.output.media.clone() };
        let answer = ModelAnswer {
            text: done.output.for_llm.clone(),
            media,
            handled: done.output.response_handled,
            execution: Some(done.execution()),
            rewritten: rewritten(&gate_notes, &done.call),
            tool: Some(done.call.tool.clone()),
            named: named.clone().into(),
            notes: messages_of(gate_notes.notes).map(KeptMessage::from).collect(),
        };
        self.conversation.session.name(named);
        self.last = Some(done.output.clone());
        self.hooks.tell_finished(done).await;
        self.answered(place, answer);
    }
}

/// The arguments of `call` as JSON text, if a gate put something else there than the model wrote.
fn rewritten(gate_notes: &GateNotes, call: &ToolCall) -> Option<String> {
    gate_notes.rewritten.then(|| pintle_domain::json::json!(call.arguments).to_string())
}

fn not_found(tool: &str) -> ToolOutput {
    ToolOutput::error(format!("tool \"{tool}\" not found"))
}
