//! The tool calls of a turn: cleared, run or answered by a hook, shown to the hooks that may change the result.

use std::any::Any;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::time::{Duration, Instant};

use domain::checkpoint::runtime::ToolExecution;
use domain::checkpoint::{AfterTool, CheckpointKind, ObservedEvent, RuntimeEvent};
use domain::clearing::GateNotes;
use domain::id::HookName;
use domain::ruling::Ruling;
use domain::tool::{ToolCall, ToolOutput};
use domain::turn::OUTCOME_UNKNOWN;
use engine::approvals::OpenQuestion;
use engine::{Clearance, Permit, TurnCx};
use futures_util::FutureExt as _;

use super::Turn;
use crate::call_journal::{CallKey, CallStanding, OpenCall};
use crate::executor::Executor;
use crate::outcome::{Done, Parked, Refusal, Stop};

/// The text in the place of a result whose turn was cancelled before every hook had seen it: what they would remove
/// reaches nobody.
const WITHHELD: &str =
    "The tool ran, and its result was withheld: the turn was cancelled before every hook had seen it.";
/// The refusal of a call whose use could not be written down.
const NOT_NOTED: &str = "the tool did not run: the journal of calls could not be written";
/// The refusal of a call that another task or process works on at this moment.
const AT_WORK: &str = "the tool did not run here: the call is being worked already";
/// The refusal of a call whose earlier question cannot be looked up: whoever cannot read what a person refused must run
/// nothing.
const NOT_LOOKED_UP: &str = "the tool did not run: what a person said of the call could not be read";
/// The text that the model reads when the host's tool failed: its own error is the host's, and may name what is not the
/// model's.
const FAILED: &str = "the tool failed";
/// How much of an error text stands in `turn_end`: a line of a listing.
const SUMMARY_BYTES: usize = 200;

/// The outcome of clearing a call that did not stop.
enum Cleared {
    Run(Permit, GateNotes),
    Done(Done),
}

/// Why the host's own tool has no result.
enum ToolFailure<E> {
    Own(E),
    Panic(Box<dyn Any + Send>),
}

/// A result on its way to the hooks and the loop.
struct Ran {
    call: ToolCall,
    output: ToolOutput,
    took: Duration,
    gate_notes: GateNotes,
}

impl Turn {
    /// Clears `call`, runs it with `tool`, and passes the result through the hooks.
    ///
    /// A call that [`Stop::Parked`] is made again with the same turn and call id, in another process if need be: once
    /// its question is answered it runs, once.
    ///
    /// # Errors
    /// It did not run, or its result reaches nobody; or `tool` failed.
    pub async fn call<X: Executor>(&self, call: ToolCall, tool: &X) -> Result<Done, Stop<X::Error>> {
        self.go_on()?;
        let _at_work = self.host.calls.token();
        if !self.is_run_by(&call.tool, tool) {
            // Nobody may answer for a tool that a hook brought but its owner.
            let refusal = Refusal { by: self.owner(&call.tool), ..Refusal::of_call(not_found(&call.tool), call) };
            return Err(self.passed_over(refusal));
        }
        let (mut kept, call) = match self.look_up(call).await? {
            Noted::Open(kept, call) => (kept, call),
            Noted::Done(done) => return Ok(done),
        };
        let (permit, gate_notes) = match self.cleared(call).await? {
            Cleared::Run(permit, gate_notes) => (permit, gate_notes),
            Cleared::Done(done) => {
                self.keep(&mut kept, &done.output).await;
                return Ok(done);
            }
        };
        // A hook may have put another tool in its place, and the permit is for that one.
        if !self.is_run_by(&permit.call().tool, tool) {
            let text = format!("hooks changed the tool to \"{}\", which does not run here", permit.call().tool);
            return Err(self.not_run(permit.into_call(), text, gate_notes.rewritten));
        }
        if let Some(kept) = &mut kept
            && let Err(error) = kept.used().await
        {
            tracing::error!("{NOT_NOTED}: {error}");
            return Err(self.not_run(permit.into_call(), NOT_NOTED.to_owned(), gate_notes.rewritten));
        }
        let (ran, failure) = self.executed(permit, tool, gate_notes).await;
        // What hooks would remove from a result is kept nowhere: it is their result that is kept.
        let after = self.after(ran).await;
        let output = match &after {
            Ok(done) => done.output.clone(),
            Err(stop) => ToolOutput::error(stop.text()),
        };
        self.keep(&mut kept, &output).await;
        // Hooks and observers saw every end of the tool, also one that is the host's own affair.
        match (after, failure) {
            (_, Some(ToolFailure::Panic(panic))) => resume_unwind(panic),
            (Err(stop @ (Stop::Aborted(_) | Stop::Cancelled)), Some(ToolFailure::Own(_))) => Err(stop),
            (_, Some(ToolFailure::Own(error))) => Err(Stop::Own(error)),
            (after, None) => after,
        }
    }

    /// Puts `call`, which asks for a tool that a hook brought, to its owner.
    ///
    /// # Errors
    /// It has no result.
    pub async fn call_owned(&self, call: ToolCall) -> Result<Done, Stop> {
        self.go_on()?;
        let _at_work = self.host.calls.token();
        let (mut kept, call) = match self.look_up(call).await? {
            Noted::Open(kept, call) => (kept, call),
            Noted::Done(done) => return Ok(done),
        };
        match self.cleared(call).await? {
            Cleared::Done(done) => {
                self.keep(&mut kept, &done.output).await;
                Ok(done)
            }
            // Its owner did not answer, and nobody else may.
            Cleared::Run(permit, gate_notes) => {
                let text = not_found(&permit.call().tool);
                Err(self.not_run(permit.into_call(), text, gate_notes.rewritten))
            }
        }
    }

    /// Whether `executor` may run `tool`: it is the host's, and no hook brought one of that name.
    fn is_run_by<X: Executor>(&self, tool: &str, executor: &X) -> bool {
        executor.runs(tool) && self.host.tools.contains(tool) && self.owner(tool).is_none()
    }

    async fn executed<X: Executor>(
        &self,
        permit: Permit,
        tool: &X,
        gate_notes: GateNotes,
    ) -> (Ran, Option<ToolFailure<X::Error>>) {
        let call = permit.call().clone();
        self.tell_start(&call, None);
        let began = Instant::now();
        let result = AssertUnwindSafe(tool.execute(permit, &self.cancel)).catch_unwind().await;
        let took = began.elapsed();
        let (output, failure) = match result {
            Ok(Ok(output)) => (output, None),
            Ok(Err(error)) => (ToolOutput::error(FAILED), Some(ToolFailure::Own(error))),
            Err(panic) => (ToolOutput::error(FAILED), Some(ToolFailure::Panic(panic))),
        };
        (Ran { call, output, took, gate_notes }, failure)
    }

    async fn cleared<E>(&self, call: ToolCall) -> Result<Cleared, Stop<E>> {
        let (cx, id) = (self.cx(Some(&call)), call.id.clone());
        let clearance = self.hooks.clear(&cx, call).await;
        self.state().open.waiting.remove(&id);
        match clearance {
            Clearance::Run(permit, gate_notes) => self.still(&cx, permit, gate_notes).await,
            Clearance::Substituted { call, output, by, took, gate_notes } => {
                self.tell_start(&call, Some(&by));
                let ran = Ran { call, output, took, gate_notes };
                self.settled(&ran, Some(&by)).await;
                let Ran { call, output, gate_notes: GateNotes { notes, rewritten }, .. } = ran;
                Ok(Cleared::Done(Done { call, output, by: Some(by), notes, rewritten, kept: false }))
            }
            // A hook that was cancelled refuses too, but that is no verdict.
            Clearance::Refused { .. } | Clearance::Waiting { .. } if self.cancel.is_cancelled() => Err(self.cut_off()),
            Clearance::Waiting { approval, rewritten } => Err(self.parked(Parked { question: approval, rewritten })),
            Clearance::Refused { call, text, by, rewritten } => {
                Err(self.denied(Refusal { text, by, call: Some(call), rewritten, ran: false }))
            }
            Clearance::Abort { aborted, .. } => Err(self.aborted(aborted)),
        }
    }

    /// A call that may run, unless a person was asked about it before and has not said yes: a no stays a no, and a
    /// question stays open, also when no hook asks any more.
    async fn still<E>(&self, cx: &TurnCx, permit: Permit, gate_notes: GateNotes) -> Result<Cleared, Stop<E>> {
        let asked_before = {
            let state = self.state();
            !state.here || state.open.asked.contains(&permit.call().id)
        };
        let (true, Some(approvals)) = (asked_before && permit.approval().is_none(), &cx.approvals) else {
            return Ok(Cleared::Run(permit, gate_notes));
        };
        let mut unsettled = match approvals.unsettled(&cx.who).await {
            Ok(unsettled) => unsettled,
            Err(error) => {
                tracing::error!("{NOT_LOOKED_UP}: {error}");
                return Err(self.not_run(permit.into_call(), NOT_LOOKED_UP.to_owned(), gate_notes.rewritten));
            }
        };
        match unsettled.remove(&permit.digest().to_string()) {
            None => Ok(Cleared::Run(permit, gate_notes)),
            Some(OpenQuestion::Waiting(question)) => {
                let text = "a person was asked about this call and has not answered";
                self.hooks.refused(&cx.who, CheckpointKind::PreToolUse, text);
                Err(self.parked(Parked { question, rewritten: gate_notes.rewritten }))
            }
            Some(OpenQuestion::No(text)) => {
                self.hooks.refused(&cx.who, CheckpointKind::PreToolUse, &text);
                let refusal = Refusal::of_call(text, permit.into_call());
                Err(self.denied(Refusal { rewritten: gate_notes.rewritten, ..refusal }))
            }
        }
    }

    /// Shows the result of a call that ran to the hooks that may change it, and tells observers of what they left.
    async fn after<E>(&self, ran: Ran) -> Result<Done, Stop<E>> {
        let Ran { call, output, took, gate_notes } = ran;
        let cx = self.cx(Some(&call));
        let subject = AfterTool { call: call.clone(), result: output, duration: took };
        let (after, ruling) = self.hooks.check(&cx, subject).await;
        let withheld = match ruling {
            Ruling::Abort(aborted) => Some((aborted.text(), Some(aborted.by.clone()), Some(aborted))),
            Ruling::Proceed if self.is_unruled::<AfterTool>() => Some((WITHHELD.to_owned(), None, None)),
            Ruling::Proceed => None,
            Ruling::Respond { with: never, .. } | Ruling::Ask { why: never, .. } => match never {},
            Ruling::Deny(denied) => Some((denied.text(), Some(denied.by), None)),
        };
        let Some((text, by, abort)) = withheld else {
            let left = Ran { call: after.call, output: after.result, took, gate_notes };
            self.settled(&left, None).await;
            let GateNotes { notes, rewritten } = left.gate_notes;
            return Ok(Done { call: left.call, output: left.output, by: None, notes, rewritten, kept: false });
        };
        let left = Ran { call, output: ToolOutput::error(&text), took, gate_notes };
        self.settled(&left, None).await;
        match abort {
            Some(aborted) => Err(self.aborted(aborted)),
            None => {
                let refusal = Refusal::of_call(text, left.call);
                let rewritten = left.gate_notes.rewritten;
                Err(Stop::Refused(Box::new(Refusal { by, rewritten, ran: true, ..refusal })))
            }
        }
    }

    /// Tells of a result that is final.
    async fn settled(&self, ran: &Ran, by: Option<&HookName>) {
        let Ran { call, output, took, .. } = ran;
        self.state().open.executions.push(execution(call, output));
        self.tell(
            Some(&call.id),
            RuntimeEvent::ToolExecEnd {
                tool: call.tool.clone(),
                duration: *took,
                for_llm_len: output.for_llm.len(),
                for_user_len: output.for_user.len(),
                is_error: output.is_error,
                r#async: output.is_async,
                tool_call_id: call.id.to_string(),
                hook: by.map(ToString::to_string),
            },
        );
        self.hooks.room(&self.who, CheckpointKind::PostToolUse).await;
        let (call, output, duration) = (call.clone(), output.clone(), *took);
        let id = call.id.clone();
        self.tell(Some(&id), ObservedEvent::PostToolUse { call, output, duration, substituted: by.is_some() });
    }

    fn tell_start(&self, call: &ToolCall, by: Option<&HookName>) {
        self.tell(
            Some(&call.id),
            RuntimeEvent::ToolExecStart {
                tool: call.tool.clone(),
                arguments: call.arguments.clone(),
                tool_call_id: call.id.to_string(),
                hook: by.map(ToString::to_string),
            },
        );
    }

    /// Notes that a call waits for a person.
    fn parked<E>(&self, parked: Parked) -> Stop<E> {
        let mut state = self.state();
        state.open.asked.insert(parked.question.tool_call_id.clone());
        state.open.waiting.insert(parked.question.tool_call_id.clone());
        Stop::Parked(parked)
    }

    /// A call that hooks let pass and that does not run all the same: the record says so, too.
    fn not_run<E>(&self, call: ToolCall, text: String, rewritten: bool) -> Stop<E> {
        self.hooks.refused(&self.cx(Some(&call)).who, CheckpointKind::PreToolUse, &text);
        self.passed_over(Refusal { rewritten, ..Refusal::of_call(text, call) })
    }

    /// A refusal that somebody meant: it stands among what the turn was denied.
    fn denied<E>(&self, refusal: Refusal) -> Stop<E> {
        if let Some(call) = &refusal.call {
            self.state().open.denials.push(format!("{}: {}", call.tool, refusal.text));
        }
        self.passed_over(refusal)
    }

    /// Tells of a call that does not run.
    fn passed_over<E>(&self, refusal: Refusal) -> Stop<E> {
        if let Some(call) = &refusal.call {
            self.tell(
                Some(&call.id),
                RuntimeEvent::ToolExecSkipped {
                    tool: call.tool.clone(),
                    reason: refusal.text.clone(),
                    tool_call_id: call.id.to_string(),
                    hook: refusal.by.as_ref().map(ToString::to_string),
                },
            );
        }
        Stop::Refused(Box::new(refusal))
    }

    /// The journal's knowledge of `call`.
    async fn look_up<E>(&self, call: ToolCall) -> Result<Noted, Stop<E>> {
        let Some(journal) = self.host.stores.calls.clone() else { return Ok(Noted::Open(None, call)) };
        let key = CallKey::of(&self.who, &call.id);
        let opened = tokio::task::spawn_blocking(move || journal.open(&key)).await;
        match opened {
            Ok(Ok(CallStanding::Here(open))) => Ok(Noted::Open(Some(Noting(Some(open))), call)),
            Ok(Ok(CallStanding::Finished(output))) => {
                Ok(Noted::Done(Done { call, output, by: None, notes: Vec::new(), rewritten: false, kept: true }))
            }
            Ok(Ok(CallStanding::AtWork)) => Err(self.passed_over(Refusal::of_call(AT_WORK, call))),
            Ok(Ok(CallStanding::Unknown)) => {
                let lost = execution(&call, &ToolOutput::error(OUTCOME_UNKNOWN));
                self.state().open.executions.push(lost);
                Err(Stop::Refused(Box::new(Refusal { ran: true, ..Refusal::of_call(OUTCOME_UNKNOWN, call) })))
            }
            Ok(Err(error)) => {
                tracing::error!("{NOT_NOTED}: {error}");
                Err(self.passed_over(Refusal::of_call(NOT_NOTED, call)))
            }
            Err(error) => {
                tracing::error!("{NOT_NOTED}: {error}");
                Err(self.passed_over(Refusal::of_call(NOT_NOTED, call)))
            }
        }
    }

    /// Keeps the result of a call. If that fails the call has run all the same; nobody will run it again.
    async fn keep(&self, kept: &mut Option<Noting>, output: &ToolOutput) {
        if let Some(kept) = kept
            && let Err(error) = kept.finished(output.clone()).await
        {
            tracing::error!("the result of a call could not be kept: {error}");
        }
    }
}

/// The answer of the journal of calls.
enum Noted {
    /// It may be worked here.
    Open(Option<Noting>, ToolCall),
    /// It was worked, and this is what it came to.
    Done(Done),
}

/// The line of one call in the journal, away while a thread writes it.
struct Noting(Option<Box<dyn OpenCall>>);

impl Noting {
    async fn used(&mut self) -> Result<(), String> {
        self.write(|line| line.used()).await
    }

    async fn finished(&mut self, output: ToolOutput) -> Result<(), String> {
        self.write(move |line| line.finished(&output)).await
    }

    async fn write(
        &mut self,
        work: impl FnOnce(&mut dyn OpenCall) -> Result<(), domain::store::StoreError> + Send + 'static,
    ) -> Result<(), String> {
        let mut line = self.0.take().ok_or("its writer is gone")?;
        let written = tokio::task::spawn_blocking(move || {
            let written = work(&mut *line);
            (line, written)
        });
        let (line, written) = written.await.map_err(|error| error.to_string())?;
        self.0 = Some(line);
        written.map_err(|error| error.to_string())
    }
}

fn not_found(tool: &str) -> String {
    format!("tool \"{tool}\" not found")
}

fn execution(call: &ToolCall, output: &ToolOutput) -> ToolExecution {
    ToolExecution {
        name: call.tool.clone(),
        success: !output.is_error,
        error_summary: output.is_error.then(|| summary(&output.for_llm)),
    }
}

/// The beginning of an error text, on one line.
fn summary(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let mut end = line.len().min(SUMMARY_BYTES);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    line[..end].to_owned()
}
