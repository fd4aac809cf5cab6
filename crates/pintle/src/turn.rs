//! One prompt worked to its end.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use domain::chain::Note;
use domain::checkpoint::runtime::{ToolExecution, TurnStatus};
use domain::checkpoint::user_prompt_submit::InputKind;
use domain::checkpoint::{
    AfterLlm, AfterTool, BeforeLlm, Checkpoint, CheckpointKind, ObservedEvent, RuntimeEvent, UserPromptSubmit,
};
use domain::clearing::GateNotes;
use domain::id::{CallId, HookName};
use domain::identity::Identity;
use domain::json::Value;
use domain::llm::{LlmReply, LlmRequest, Usage};
use domain::ruling::{Aborted, Denied, Ruling};
use domain::tool::{ToolCall, ToolOutput};
use domain::verdict::Never;
use engine::{Clearance, Dispatcher, Permit, TurnCx};
use futures_util::FutureExt as _;
use tokio_util::sync::CancellationToken;

use crate::executor::Executor;
use crate::host::Host;
use crate::known::Known;
use crate::outcome::{Done, Refusal, Stop};

/// What a result leaves when its turn was cancelled before every hook had seen it.
const WITHHELD: &str =
    "The tool ran, and its result was withheld: the turn was cancelled before every hook had seen it.";

/// What the model reads of a tool that failed on the host's side.
const FAILED: &str = "the tool failed";

/// One prompt worked to its end: hooks, identity, approvals and cancellation in one.
///
/// Dropped before [`Turn::end`], a turn that began ends as aborted, so that observers hear of one end in any case; one
/// of whose calls waits for a person stays open, for somebody to go on with it.
pub struct Turn {
    host: Arc<Host>,
    hooks: Dispatcher,
    who: Identity,
    cancel: CancellationToken,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The hooks that brought a tool for the calls of the last answer.
    owners: BTreeMap<String, HookName>,
    iteration: u32,
    aborted: Option<Aborted>,
    /// The prompt, and when it came.
    begun: Option<(String, Instant)>,
    /// The calls that wait for a person.
    parked: BTreeSet<CallId>,
    /// The calls that have a result, and what models said that they cost.
    executions: Vec<ToolExecution>,
    usage: Usage,
}

/// An answer of a model that passed its hooks.
#[derive(Debug)]
#[must_use = "an answer that nobody reads was paid for"]
#[non_exhaustive]
pub struct Completion {
    /// The answer, as hooks left it.
    pub reply: LlmReply,
    /// The request that left, as hooks left it.
    pub model: String,
}

impl Turn {
    pub(crate) fn new(host: Arc<Host>, who: Identity) -> Self {
        let hooks = host.engine.dispatcher_for(&who.tenant_id);
        Self { host, hooks, who, cancel: CancellationToken::new(), state: Mutex::default() }
    }

    /// Where the message came from, for records and hooks: the channel, the conversation there, who wrote it.
    #[must_use]
    pub fn from(mut self, channel: &str, chat: &str, sender: &str) -> Self {
        channel.clone_into(&mut self.who.channel);
        chat.clone_into(&mut self.who.chat_id);
        sender.clone_into(&mut self.who.sender_id);
        self
    }

    /// Who acts. Nothing that a hook answers changes it.
    pub fn identity(&self) -> &Identity {
        &self.who
    }

    /// Cancels the turn when it is set: hooks and tools that run are told.
    pub fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Puts the user's message to the gates. What they leave of it is what the model may read, with their notes.
    ///
    /// # Errors
    /// It goes no further.
    pub async fn begin(
        &self,
        prompt: &str,
        kind: InputKind,
    ) -> Result<(String, Vec<Note>), Stop<std::convert::Infallible>> {
        if kind == InputKind::First {
            self.hooks.tell(&self.who, ObservedEvent::SessionStart);
        }
        let cx = self.cx(None);
        let subject = UserPromptSubmit { prompt: prompt.to_owned(), input_kind: kind };
        let (submitted, ruling, notes) = self.hooks.consult(&cx, subject).await;
        match ruling {
            Ruling::Proceed => {}
            Ruling::Deny(denied) => return Err(self.refused(&denied)),
            Ruling::Abort(aborted) => return Err(self.aborted(aborted)),
            Ruling::Respond { with: never, .. } | Ruling::Ask { why: never, .. } => match never {},
        }
        self.state().begun = Some((submitted.prompt.clone(), Instant::now()));
        self.tell(RuntimeEvent::TurnStart {
            channel: self.who.channel.clone(),
            chat_id: self.who.chat_id.clone(),
            user_message: submitted.prompt.clone(),
            media_count: 0,
        });
        Ok((submitted.prompt, notes))
    }

    /// Sends `request` to a model through `send`, as the hooks leave it, and gives back what they leave of the answer.
    /// Tools that hooks brought into the request are theirs to answer: [`Turn::call_owned`].
    ///
    /// # Errors
    /// Hooks stop it, or `send` fails.
    pub async fn model<F, E>(
        &self,
        request: LlmRequest,
        send: impl FnOnce(LlmRequest) -> F + Send,
    ) -> Result<Completion, Stop<E>>
    where
        F: Future<Output = Result<LlmReply, E>> + Send,
    {
        self.state().iteration += 1;
        let before = self.ask(&self.cx(None), BeforeLlm::new(request)).await?;
        self.state().owners = before.owners;
        let request = before.request;
        let number = |name: &str| request.options.get(name);
        self.tell(RuntimeEvent::LlmRequest {
            model: request.model.clone(),
            messages_count: request.messages.len(),
            tools_count: request.tools.len(),
            max_tokens: number("max_tokens").and_then(Value::as_u64).unwrap_or_default(),
            temperature: number("temperature").and_then(Value::as_f64).unwrap_or_default(),
        });
        let model = request.model.clone();
        let response = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(Stop::Cancelled),
            response = send(request) => response.map_err(Stop::Own)?,
        };
        let after = self.ask(&self.cx(None), AfterLlm { model: model.clone(), response }).await?;
        let reply = after.response;
        if let Some(usage) = reply.usage {
            let mut state = self.state();
            state.usage.prompt_tokens += usage.prompt_tokens;
            state.usage.completion_tokens += usage.completion_tokens;
            state.usage.total_tokens += usage.total_tokens;
        }
        self.tell(RuntimeEvent::LlmResponse {
            content_len: reply.content.len(),
            tool_calls: reply.tool_calls.len(),
            has_reasoning: !(reply.reasoning_content.is_empty() && reply.reasoning.is_empty()),
        });
        Ok(Completion { reply, model })
    }

    /// Clears `call`, runs it with `tool`, and passes the result through the hooks.
    ///
    /// A call that [`Stop::Parked`] is made again with the same turn and call id, in another process if need be: once
    /// its question is answered it runs, once.
    ///
    /// # Errors
    /// It did not run, or its result reaches nobody; or `tool` failed.
    pub async fn call<X: Executor>(&self, call: ToolCall, tool: &X) -> Result<Done, Stop<X::Error>> {
        if call.tool != tool.tool() || !self.host.tools.contains(tool.tool()) {
            let text = format!("tool \"{}\" not found", call.tool);
            return Err(self.skipped(Refusal { text, by: None, call: Some(call), rewritten: false, ran: false }));
        }
        if let Some(owner) = self.owner(&call.tool) {
            // Nobody may answer for a tool that a hook brought but its owner.
            let text = format!("tool \"{}\" not found", call.tool);
            let refusal = Refusal { text, by: Some(owner), call: Some(call), rewritten: false, ran: false };
            return Err(self.skipped(refusal));
        }
        let (permit, gate_notes) = match self.cleared(call).await? {
            Cleared::Run(permit, gate_notes) => (permit, gate_notes),
            Cleared::Done(done) => return Ok(done),
        };
        let call = permit.call().clone();
        // A hook may have put another tool in its place, and the permit is for that one.
        if call.tool != tool.tool() {
            let text = format!("hooks changed the tool to \"{}\", which does not run here", call.tool);
            return Err(self.not_run(call, text, gate_notes.rewritten));
        }
        self.tell_start(&call, None);
        let began = Instant::now();
        let result = AssertUnwindSafe(tool.execute(permit, &self.cancel)).catch_unwind().await;
        let took = began.elapsed();
        let failed = || ToolOutput::error(FAILED);
        // Hooks and observers see every end of a tool, also one that is the host's own affair.
        match result {
            Ok(Ok(output)) => self.after(call, output, took, gate_notes).await,
            Ok(Err(error)) => match self.after::<X::Error>(call, failed(), took, gate_notes).await {
                Err(stop @ (Stop::Aborted(_) | Stop::Cancelled)) => Err(stop),
                Ok(_) | Err(Stop::Refused(_) | Stop::Parked(_) | Stop::Own(_)) => Err(Stop::Own(error)),
            },
            Err(panic) => {
                drop(self.after::<X::Error>(call, failed(), took, gate_notes).await);
                resume_unwind(panic)
            }
        }
    }

    /// Puts `call`, which asks for a tool that a hook brought, to its owner.
    ///
    /// # Errors
    /// It has no result.
    pub async fn call_owned(&self, call: ToolCall) -> Result<Done, Stop<std::convert::Infallible>> {
        match self.cleared(call).await? {
            Cleared::Done(done) => Ok(done),
            Cleared::Run(permit, gate_notes) => {
                let call = permit.into_call();
                let text = format!("tool \"{}\" not found", call.tool);
                Err(self.not_run(call, text, gate_notes.rewritten))
            }
        }
    }

    /// The hook that brought `tool` for the calls of the last answer.
    pub fn owner(&self, tool: &str) -> Option<HookName> {
        self.state().owners.get(tool).cloned()
    }

    /// Ends the turn: observers hear how, and with what the user was left.
    pub fn end(self, status: TurnStatus, reply: &str) {
        self.finish(status, reply);
    }

    fn finish(&self, status: TurnStatus, reply: &str) {
        let State { begun, iteration: iterations, executions, usage, .. } = std::mem::take(&mut *self.state());
        let Some((prompt, began)) = begun else { return };
        let kinds: BTreeSet<String> = executions.iter().map(|execution| execution.name.clone()).collect();
        self.hooks.tell(
            &self.who,
            RuntimeEvent::TurnEnd {
                status,
                iterations,
                duration: began.elapsed(),
                final_content_len: reply.len(),
                user_message: prompt,
                final_content: reply.to_owned(),
                tool_kinds: kinds.into_iter().collect(),
                tool_executions: executions,
            },
        );
        if status == TurnStatus::Completed {
            let (reply, duration) = (reply.to_owned(), began.elapsed());
            self.hooks.tell(&self.who, ObservedEvent::Stop { reply, iterations, usage, duration });
        }
    }

    async fn cleared<E>(&self, call: ToolCall) -> Result<Cleared, Stop<E>> {
        if let Some(aborted) = self.state().aborted.clone() {
            return Err(Stop::Aborted(aborted));
        }
        if self.cancel.is_cancelled() {
            return Err(Stop::Cancelled);
        }
        let (cx, id) = (self.cx(Some(&call)), call.id.clone());
        let clearance = self.hooks.clear(&cx, call).await;
        if !matches!(clearance, Clearance::Waiting { .. }) {
            self.state().parked.remove(&id);
        }
        match clearance {
            Clearance::Run(permit, gate_notes) => Ok(Cleared::Run(permit, gate_notes)),
            Clearance::Substituted { call, output, by, took, gate_notes } => {
                self.tell_start(&call, Some(&by));
                self.tell_end(&call, &output, took, Some(&by));
                self.told(call.clone(), output.clone(), took, true).await;
                let GateNotes { notes, rewritten } = gate_notes;
                Ok(Cleared::Done(Done { call, output, by: Some(by), notes, rewritten }))
            }
            // A hook that was cancelled refuses too, but that is no verdict.
            Clearance::Refused { .. } | Clearance::Waiting { .. } if self.cancel.is_cancelled() => Err(Stop::Cancelled),
            Clearance::Waiting { approval, .. } => {
                self.state().parked.insert(id);
                Err(Stop::Parked(approval))
            }
            Clearance::Refused { call, text, by, rewritten } => {
                Err(self.skipped(Refusal { text, by, call: Some(call), rewritten, ran: false }))
            }
            Clearance::Abort { aborted, .. } => Err(self.aborted(aborted)),
        }
    }

    /// Shows the result of a call that ran to the hooks that may change it, and tells observers of what they left.
    async fn after<E>(
        &self,
        call: ToolCall,
        output: ToolOutput,
        took: Duration,
        gate_notes: GateNotes,
    ) -> Result<Done, Stop<E>> {
        let cx = self.cx(Some(&call));
        let subject = AfterTool { call: call.clone(), result: output, duration: took };
        let (after, ruling) = self.hooks.check(&cx, subject).await;
        let withheld = match ruling {
            Ruling::Abort(aborted) => Some((aborted.text(), Some(aborted.by.clone()), Some(aborted))),
            Ruling::Deny(denied) => Some((denied.text(), Some(denied.by), None)),
            Ruling::Proceed if self.is_unruled::<AfterTool>() => Some((WITHHELD.to_owned(), None, None)),
            Ruling::Proceed => None,
            Ruling::Respond { with: never, .. } | Ruling::Ask { why: never, .. } => match never {},
        };
        let Some((text, by, abort)) = withheld else {
            self.tell_end(&after.call, &after.result, took, None);
            self.told(after.call.clone(), after.result.clone(), took, false).await;
            let GateNotes { notes, rewritten } = gate_notes;
            return Ok(Done { call: after.call, output: after.result, by: None, notes, rewritten });
        };
        let output = ToolOutput::error(&text);
        self.tell_end(&call, &output, took, None);
        self.told(call.clone(), output, took, false).await;
        match abort {
            Some(aborted) => Err(self.aborted(aborted)),
            None => {
                Err(Stop::Refused(Refusal { text, by, call: Some(call), rewritten: gate_notes.rewritten, ran: true }))
            }
        }
    }

    /// Asks the hooks of a checkpoint that may only change its subject or stop the turn.
    async fn ask<C, E>(&self, cx: &TurnCx, subject: C) -> Result<C, Stop<E>>
    where
        C: Checkpoint<Respond = Never, Ask = Never>,
    {
        if let Some(aborted) = self.state().aborted.clone() {
            return Err(Stop::Aborted(aborted));
        }
        let (subject, ruling) = self.hooks.check(cx, subject).await;
        match ruling {
            Ruling::Proceed if self.is_unruled::<C>() => Err(Stop::Cancelled),
            Ruling::Proceed => Ok(subject),
            Ruling::Deny(denied) => Err(self.refused(&denied)),
            Ruling::Abort(aborted) => Err(self.aborted(aborted)),
            Ruling::Respond { with: never, .. } | Ruling::Ask { why: never, .. } => match never {},
        }
    }

    /// Whether hooks of `C` may have been cut off before they said something.
    fn is_unruled<C: Checkpoint>(&self) -> bool {
        self.cancel.is_cancelled() && self.hooks.set().roster().waits_at(C::KIND)
    }

    fn cx(&self, call: Option<&ToolCall>) -> TurnCx {
        let (owners, iteration) = {
            let state = self.state();
            (state.owners.clone(), state.iteration)
        };
        let tool_call_id = call.map(|call| call.id.clone());
        let who = Identity { iteration, tool_call_id, ..self.who.clone() };
        TurnCx {
            known: Arc::new(Known { tools: self.host.tools.clone(), owners, agent: [who.agent_id.clone()] }),
            who,
            cancel: self.cancel.clone(),
            approvals: self.host.asking(),
            files: None,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change under this lock is complete before anything could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refused<E>(&self, denied: &Denied) -> Stop<E> {
        let by = Some(denied.by.clone());
        Stop::Refused(Refusal { text: denied.text(), by, call: None, rewritten: false, ran: false })
    }

    fn aborted<E>(&self, aborted: Aborted) -> Stop<E> {
        self.state().aborted = Some(aborted.clone());
        Stop::Aborted(aborted)
    }

    /// A call that hooks let pass and that does not run all the same: the record says so, too.
    fn not_run<E>(&self, call: ToolCall, text: String, rewritten: bool) -> Stop<E> {
        self.hooks.refused(&self.cx(Some(&call)).who, CheckpointKind::PreToolUse, &text);
        self.skipped(Refusal { text, by: None, call: Some(call), rewritten, ran: false })
    }

    fn skipped<E>(&self, refusal: Refusal) -> Stop<E> {
        if let Some(call) = &refusal.call {
            self.tell_about(
                call,
                RuntimeEvent::ToolExecSkipped {
                    tool: call.tool.clone(),
                    reason: refusal.text.clone(),
                    tool_call_id: call.id.to_string(),
                    hook: refusal.by.as_ref().map(ToString::to_string),
                },
            );
        }
        Stop::Refused(refusal)
    }

    fn tell(&self, what: impl Into<ObservedEvent>) {
        let iteration = self.state().iteration;
        self.hooks.tell(&Identity { iteration, ..self.who.clone() }, what);
    }

    fn tell_about(&self, call: &ToolCall, what: impl Into<ObservedEvent>) {
        self.hooks.tell(&self.cx(Some(call)).who, what);
    }

    fn tell_start(&self, call: &ToolCall, by: Option<&HookName>) {
        self.tell_about(
            call,
            RuntimeEvent::ToolExecStart {
                tool: call.tool.clone(),
                arguments: call.arguments.clone(),
                tool_call_id: call.id.to_string(),
                hook: by.map(ToString::to_string),
            },
        );
    }

    fn tell_end(&self, call: &ToolCall, output: &ToolOutput, duration: Duration, by: Option<&HookName>) {
        let error_summary = output.is_error.then(|| output.for_llm.lines().next().unwrap_or_default().to_owned());
        let execution = ToolExecution { name: call.tool.clone(), success: !output.is_error, error_summary };
        self.state().executions.push(execution);
        self.tell_about(
            call,
            RuntimeEvent::ToolExecEnd {
                tool: call.tool.clone(),
                duration,
                for_llm_len: output.for_llm.len(),
                for_user_len: output.for_user.len(),
                is_error: output.is_error,
                r#async: output.is_async,
                tool_call_id: call.id.to_string(),
                hook: by.map(ToString::to_string),
            },
        );
    }

    async fn told(&self, call: ToolCall, output: ToolOutput, duration: Duration, substituted: bool) {
        self.hooks.room(&self.who, CheckpointKind::PostToolUse).await;
        let who = self.cx(Some(&call)).who;
        self.hooks.tell(&who, ObservedEvent::PostToolUse { call, output, duration, substituted });
    }
}

/// However a turn is left, its observers hear of one end, unless it waits for a person.
impl Drop for Turn {
    fn drop(&mut self) {
        if self.state().parked.is_empty() {
            self.finish(TurnStatus::Aborted, "");
        }
    }
}

/// What clearing a call came to, if it did not stop.
enum Cleared {
    Run(Permit, GateNotes),
    Done(Done),
}
