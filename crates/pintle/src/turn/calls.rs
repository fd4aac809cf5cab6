//! The tool calls of a turn: cleared, run or answered by a hook, shown to the hooks that may change the result.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use pintle_domain::checkpoint::runtime::ToolExecution;
use pintle_domain::checkpoint::{CheckpointKind, FinishedCall};
use pintle_domain::clearing::GateNotes;
use pintle_domain::id::CallId;
use pintle_domain::store::StoreError;
use pintle_domain::tool::{ToolCall, ToolOutput};
use pintle_domain::turn::OUTCOME_UNKNOWN;
use pintle_engine::approvals::OpenQuestion;
use pintle_engine::{Clearance, Dispatcher, Permit, Stopped};

use super::Turn;
use crate::call_journal::{CallKey, CallStanding, OpenCall};
use crate::executor::Executor;
use crate::outcome::{Done, Parked, Refusal, Stop};

/// The refusal of a call whose use could not be written down.
const NOT_NOTED: &str = "the tool did not run: the journal of calls could not be written";
/// The refusal of a call that another task or process works on at this moment.
const AT_WORK: &str = "the tool did not run here: this call is running already";
/// The refusal of a call whose earlier question cannot be looked up: whoever cannot read what a person refused must run
/// nothing.
const NOT_LOOKED_UP: &str = "the tool did not run: what a person said of the call could not be read";
/// The text that the model reads when the host's tool failed: its own error is the host's, and may name what is not the
/// model's.
const FAILED: &str = "the tool failed";

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

impl Turn {
    /// Clears `call`, runs it with `tool`, and passes the result through the hooks.
    ///
    /// A call that [`Stop::Parked`] is made again with the same turn and call id, in another process if need be: once
    /// its question is answered it runs, once.
    ///
    /// Do not drop the future: the tool would be dropped half-way. To stop it, set [`Turn::cancel`] and wait.
    ///
    /// # Errors
    /// [`Stop::Refused`]: it did not run, or it `ran` and its result is withheld; [`Stop::Parked`], [`Stop::Aborted`],
    /// [`Stop::Cancelled`]; [`Stop::Own`]: the error of `tool`.
    ///
    /// # Panics
    /// With the panic of `tool`, after hooks and observers have seen it as a failed result.
    pub async fn call<X: Executor>(&self, call: ToolCall, tool: &X) -> Result<Done, Stop<X::Error>> {
        // Counted first: whoever closes the host either waits for it, or it goes no further.
        let _at_work = self.host.calls.token();
        self.go_on()?;
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
        // Another call of the turn may have stopped it while this one was cleared, or somebody cancelled it.
        if let Err(stop) = self.go_on() {
            drop(self.not_run::<X::Error>(permit.into_call(), stop.text(), gate_notes.rewritten));
            return Err(stop);
        }
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
        let (ran, failure) = self.executed(permit, tool).await;
        // What hooks would remove from a result is kept nowhere: it is their result that is kept.
        let after = self.after(ran, gate_notes).await;
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
        // Counted first: whoever closes the host either waits for it, or it goes no further.
        let _at_work = self.host.calls.token();
        self.go_on()?;
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

    /// What the tool made of the call, before any hook has seen it.
    async fn executed<X: Executor>(&self, permit: Permit, tool: &X) -> (FinishedCall, Option<ToolFailure<X::Error>>) {
        let call = permit.call().clone();
        self.at(Some(&call.id)).tell_started(&call, None);
        let began = Instant::now();
        let result = AssertUnwindSafe(async { tool.execute(permit, self.cancel()).await }).catch_unwind().await;
        let took = began.elapsed();
        let (output, failure) = match result {
            Ok(Ok(output)) => (output, None),
            Ok(Err(error)) => (ToolOutput::error(FAILED), Some(ToolFailure::Own(error))),
            Err(panic) => (ToolOutput::error(FAILED), Some(ToolFailure::Panic(panic))),
        };
        (FinishedCall { call, output, by: None, took }, failure)
    }

    async fn cleared<E>(&self, call: ToolCall) -> Result<Cleared, Stop<E>> {
        let (hooks, id) = (self.at(Some(&call.id)), call.id.clone());
        let Ok(mut open) = self.open_questions(&hooks, &id).await else {
            return Err(self.not_run(call, NOT_LOOKED_UP.to_owned(), false));
        };
        let clearance = hooks.clear_resumed(call, &mut open).await;
        self.state().open.waiting.remove(&id);
        match clearance {
            Clearance::Run(permit, gate_notes) => Ok(Cleared::Run(permit, gate_notes)),
            Clearance::Substituted { call, output, by, took, gate_notes } => {
                hooks.tell_started(&call, Some(&by));
                let done = done(FinishedCall { call, output, by: Some(by), took }, gate_notes);
                Ok(Cleared::Done(self.settled(&hooks, done, took).await))
            }
            // A hook that was cancelled refuses too, but that is not a verdict.
            Clearance::Refused { .. } | Clearance::Waiting { .. } if self.cancel().is_cancelled() => {
                Err(self.cut_off())
            }
            Clearance::Waiting { approval, rewritten } => Err(self.parked(Parked { question: approval, rewritten })),
            Clearance::Refused { call, text, by, rewritten } => {
                Err(self.denied(Refusal { text, by, call: Some(call), rewritten, ran: false }))
            }
            Clearance::Abort { aborted, .. } => Err(self.aborted(aborted)),
        }
    }

    /// What persons were asked about the calls of this turn before: nothing, unless the turn was left open or `call` was
    /// asked about.
    async fn open_questions(
        &self,
        hooks: &Dispatcher,
        call: &CallId,
    ) -> Result<BTreeMap<String, OpenQuestion>, StoreError> {
        let asked_before = {
            let state = self.state();
            !state.here || state.open.asked.contains(call)
        };
        match hooks.approvals() {
            Some(approvals) if asked_before => {
                let read = approvals.unsettled(hooks.who()).await;
                read.inspect_err(|error| tracing::error!("{NOT_LOOKED_UP}: {error}"))
            }
            Some(_) | None => Ok(BTreeMap::new()),
        }
    }

    /// Shows the result of a call that ran to the hooks that may change it, and tells observers of what they left.
    async fn after<E>(&self, ran: FinishedCall, gate_notes: GateNotes) -> Result<Done, Stop<E>> {
        let hooks = self.at(Some(&ran.call.id));
        let took = ran.took;
        let (finished, stopped) = hooks.review(ran.call, ran.output, took).await;
        let done = self.settled(&hooks, done(finished, gate_notes), took).await;
        let by = match stopped {
            None => return Ok(done),
            Some(Stopped::Aborted(aborted)) => return Err(self.aborted(aborted)),
            Some(Stopped::Denied(denied)) => Some(denied.by),
            Some(Stopped::Cancelled) => None,
        };
        let refusal = Refusal::of_call(done.output.for_llm, done.call);
        Err(Stop::Refused(Box::new(Refusal { by, rewritten: done.rewritten, ran: true, ..refusal })))
    }

    /// Tells of a result that is final, and gives it back.
    async fn settled(&self, hooks: &Dispatcher, done: Done, took: Duration) -> Done {
        let (call, output, by) = (done.call.clone(), done.output.clone(), done.by.clone());
        let finished = FinishedCall { call, output, by, took };
        self.state().open.executions.push(finished.execution());
        hooks.tell_finished(finished).await;
        done
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
        self.at(Some(&call.id)).refused(CheckpointKind::PreToolUse, &text);
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
            self.at(Some(&call.id)).tell_skipped(call, &refusal.text, refusal.by.as_ref());
        }
        Stop::Refused(Box::new(refusal))
    }

    /// The journal's knowledge of `call`.
    async fn look_up<E>(&self, call: ToolCall) -> Result<Noted, Stop<E>> {
        let Some(journal) = self.host.stores.calls.clone() else { return Ok(Noted::Open(None, call)) };
        let key = CallKey::of(self.identity(), &call.id);
        let opened = tokio::task::spawn_blocking(move || journal.open(&key)).await;
        match opened {
            Ok(Ok(CallStanding::Here(open))) => Ok(Noted::Open(Some(Noting(Some(open))), call)),
            Ok(Ok(CallStanding::Finished(output))) => {
                self.state().open.waiting.remove(&call.id);
                Ok(Noted::Done(Done { call, output, by: None, notes: Vec::new(), rewritten: false, kept: true }))
            }
            Ok(Ok(CallStanding::AtWork)) => Err(self.passed_over(Refusal::of_call(AT_WORK, call))),
            Ok(Ok(CallStanding::Unknown)) => {
                let lost = ToolExecution::new(&call.tool, Some(OUTCOME_UNKNOWN));
                let mut state = self.state();
                state.open.waiting.remove(&call.id);
                state.open.executions.push(lost);
                drop(state);
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
        work: impl FnOnce(&mut dyn OpenCall) -> Result<(), StoreError> + Send + 'static,
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

/// The result for the loop.
fn done(finished: FinishedCall, gate_notes: GateNotes) -> Done {
    let (FinishedCall { call, output, by, .. }, GateNotes { notes, rewritten }) = (finished, gate_notes);
    Done { call, output, by, notes, rewritten, kept: false }
}
