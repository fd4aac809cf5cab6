//! One prompt worked to its end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use domain::checkpoint::user_prompt_submit::InputKind;
use domain::checkpoint::{AfterLlm, BeforeLlm, Checkpoint, ObservedEvent, RuntimeEvent, UserPromptSubmit};
use domain::id::{CallId, HookName};
use domain::identity::Identity;
use domain::json::Value;
use domain::llm::{LlmReply, LlmRequest, Usage};
use domain::ruling::{Aborted, DenialGround, Denied, Ruling};
use domain::tool::ToolCall;
use domain::verdict::{AbortScope, Never};
use engine::{Dispatcher, TurnCx};
use tokio_util::sync::CancellationToken;

use crate::host::Host;
use crate::known::Known;
use crate::outcome::{Completion, Refusal, Stop, Submitted};

mod calls;
mod delegating;
mod ending;
mod state;
mod subagent;

pub use state::TurnSnapshot;

use state::{Run, State};
use subagent::SubagentContext;

/// One prompt worked to its end: hooks, identity, approvals and cancellation in one.
///
/// Dropped before one of its ends, a turn that began ends as cancelled, so that observers hear of one end in any case; one
/// of whose calls waits for a person stays open, for somebody to go on with it.
pub struct Turn {
    host: Arc<Host>,
    hooks: Dispatcher,
    who: Identity,
    run: Arc<Run>,
    cancel: CancellationToken,
    state: Arc<Mutex<State>>,
    /// The turn that this one works for.
    subagent: Option<SubagentContext>,
}

impl Turn {
    pub(crate) fn new(host: Arc<Host>, who: Identity) -> Self {
        let run = Run { cancel: host.closing.child_token(), stopped: Mutex::default() };
        host.meets(&who.agent_id);
        let hooks = host.engine.dispatcher_for(&who.tenant_id);
        let cancel = run.cancel.child_token();
        Self { host, hooks, who, run: Arc::new(run), cancel, state: Arc::default(), subagent: None }
    }

    /// Where the message came from, for records and hooks: the channel, the conversation there, who wrote it.
    #[must_use]
    pub fn from(mut self, channel: &str, chat: &str, sender: &str) -> Self {
        channel.clone_into(&mut self.who.channel);
        chat.clone_into(&mut self.who.chat_id);
        sender.clone_into(&mut self.who.sender_id);
        self
    }

    /// The identity of whoever acts. Nothing that a hook answers changes it.
    pub fn identity(&self) -> &Identity {
        &self.who
    }

    /// Cancels the turn when it is set: hooks and tools that run are told.
    pub fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Puts the user's message to the gates. What they leave of it is what the model may read, with their notes.
    ///
    /// A message that comes in while the turn is worked is [`InputKind::Steering`]; it begins nothing.
    ///
    /// # Errors
    /// It goes no further.
    pub async fn begin(&self, prompt: &str, kind: InputKind) -> Result<Submitted, Stop> {
        self.go_on()?;
        if kind == InputKind::First {
            self.hooks.tell(&self.who, ObservedEvent::SessionStart);
        }
        let cx = self.cx(None);
        let subject = UserPromptSubmit { prompt: prompt.to_owned(), input_kind: kind };
        let (submitted, ruling, notes) = self.hooks.consult(&cx, subject).await;
        match ruling {
            Ruling::Proceed if self.is_unruled::<UserPromptSubmit>() => return Err(Stop::Cancelled),
            Ruling::Proceed => {}
            // A gate that was cancelled refuses too, but that is no verdict on the prompt.
            Ruling::Deny(denied) if denied.ground == DenialGround::Fault && self.cancel.is_cancelled() => {
                return Err(Stop::Cancelled);
            }
            Ruling::Deny(denied) => return Err(refused(&denied)),
            Ruling::Abort(aborted) => return Err(self.aborted(aborted)),
            Ruling::Respond { with: never, .. } | Ruling::Ask { why: never, .. } => match never {},
        }
        let prompt = submitted.prompt;
        if matches!(kind, InputKind::First | InputKind::Followup) {
            {
                let mut state = self.state();
                state.open.prompt.clone_from(&prompt);
                (state.begun, state.here) = (Some(Instant::now()), true);
            }
            self.tell(None, turn_start(&self.who, &prompt));
        }
        Ok(Submitted { prompt, notes })
    }

    /// Goes on with a turn that was left open, also by a process that was killed. Nobody is asked or told anything; its
    /// one end is told when it ends here.
    #[must_use]
    pub fn resumed(self, open: TurnSnapshot) -> Self {
        {
            let mut state = self.state();
            (state.open, state.begun, state.here) = (open, Some(Instant::now()), false);
        }
        self
    }

    /// The turn as it stands, to be kept by the host until it ends.
    pub fn snapshot(&self) -> TurnSnapshot {
        self.state().open.clone()
    }

    /// Sends `request` to a model through `send`, as the hooks leave it, and gives back what they leave of the answer.
    /// Tools that hooks brought into the request are theirs to answer: [`Turn::call_owned`].
    ///
    /// # Errors
    /// Hooks stop it, or leave nothing to send; the turn is cancelled, which drops `send`; or `send` fails.
    pub async fn model<F, E>(
        &self,
        request: LlmRequest,
        send: impl FnOnce(LlmRequest) -> F + Send,
    ) -> Result<Completion, Stop<E>>
    where
        F: Future<Output = Result<LlmReply, E>> + Send,
    {
        {
            let mut state = self.state();
            state.open.round += 1;
            state.open.owners.clear();
        }
        let before = self.ask(&self.cx(None), BeforeLlm::new(request)).await?;
        if before.request.messages.is_empty() {
            let text = "the request has no messages left after `before_llm`";
            return Err(Stop::Refused(Box::new(Refusal::new(text, None))));
        }
        self.state().open.owners = before.owners;
        let request = before.request;
        self.tell(None, llm_request(&request));
        let model = request.model.clone();
        let response = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(self.cut_off()),
            sent = send(request) => sent.map_err(Stop::Own)?,
        };
        let after = self.ask(&self.cx(None), AfterLlm { model: model.clone(), response }).await?;
        let reply = after.response;
        self.spend(reply.usage);
        self.tell(
            None,
            RuntimeEvent::LlmResponse {
                content_len: reply.content.len(),
                tool_calls: reply.tool_calls.len(),
                has_reasoning: !(reply.reasoning_content.is_empty() && reply.reasoning.is_empty()),
            },
        );
        Ok(Completion { reply, model })
    }

    /// The hook that brought `tool` for the calls of the last answer.
    pub fn owner(&self, tool: &str) -> Option<HookName> {
        self.state().open.owners.get(tool).cloned()
    }

    /// Asks the hooks of a checkpoint that may only change its subject or stop the turn.
    async fn ask<C, E>(&self, cx: &TurnCx, subject: C) -> Result<C, Stop<E>>
    where
        C: Checkpoint<Respond = Never, Ask = Never>,
    {
        self.go_on()?;
        let (subject, ruling) = self.hooks.check(cx, subject).await;
        match ruling {
            Ruling::Abort(aborted) => Err(self.aborted(aborted)),
            Ruling::Proceed if self.is_unruled::<C>() => Err(self.cut_off()),
            Ruling::Proceed => Ok(subject),
            Ruling::Deny(denied) => Err(refused(&denied)),
            Ruling::Respond { with: never, .. } | Ruling::Ask { why: never, .. } => match never {},
        }
    }

    /// Whether anything more may happen in this turn.
    fn go_on<E>(&self) -> Result<(), Stop<E>> {
        match self.stopped_by() {
            Some(aborted) => Err(Stop::Aborted(aborted)),
            None if self.cancel.is_cancelled() => Err(Stop::Cancelled),
            None => Ok(()),
        }
    }

    /// Why a turn that is cancelled goes no further.
    fn cut_off<E>(&self) -> Stop<E> {
        self.stopped_by().map_or(Stop::Cancelled, Stop::Aborted)
    }

    /// The order of a hook that stops this turn.
    fn stopped_by(&self) -> Option<Aborted> {
        let own = self.state().aborted.clone();
        own.or_else(|| self.run.stopped.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Whether hooks of `C` may have been cut off before they said something.
    fn is_unruled<C: Checkpoint>(&self) -> bool {
        self.cancel.is_cancelled() && self.hooks.set().roster().waits_at(C::KIND)
    }

    fn cx(&self, call: Option<&ToolCall>) -> TurnCx {
        let (owners, iteration) = {
            let state = self.state();
            (state.open.owners.clone(), state.open.round)
        };
        let tool_call_id = call.map(|call| call.id.clone());
        let who = Identity { iteration, tool_call_id, ..self.who.clone() };
        let approvals = self.host.asking();
        let is_below = self.subagent.is_some();
        TurnCx {
            known: Arc::new(Known::new(self.host.tools.clone(), owners, &who)),
            who,
            cancel: self.cancel.clone(),
            // Whoever delegated waits for what a sub-agent brings, and cannot be parked in the middle of it.
            approvals: if is_below { approvals.map(|it| Arc::new(it.for_subagents())) } else { approvals },
            files: None,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change under this lock is complete before anything could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an order to stop; with the run, every turn of it stops, and what runs in them is told.
    fn aborted<E>(&self, aborted: Aborted) -> Stop<E> {
        self.state().aborted = Some(aborted.clone());
        if aborted.abort.abort_scope == AbortScope::Run {
            *self.run.stopped.lock().unwrap_or_else(PoisonError::into_inner) = Some(aborted.clone());
            self.run.cancel.cancel();
        }
        Stop::Aborted(aborted)
    }

    fn spend(&self, usage: Option<Usage>) {
        let Some(usage) = usage else { return };
        let sum = &mut self.state().open.usage;
        sum.prompt_tokens += usage.prompt_tokens;
        sum.completion_tokens += usage.completion_tokens;
        sum.total_tokens += usage.total_tokens;
    }

    fn tell(&self, call: Option<&CallId>, what: impl Into<ObservedEvent>) {
        let iteration = self.state().open.round;
        self.hooks.tell(&Identity { iteration, tool_call_id: call.cloned(), ..self.who.clone() }, what);
    }
}

fn refused<E>(denied: &Denied) -> Stop<E> {
    Stop::Refused(Box::new(Refusal::new(denied.text(), Some(denied.by.clone()))))
}

fn turn_start(who: &Identity, prompt: &str) -> RuntimeEvent {
    RuntimeEvent::TurnStart {
        channel: who.channel.clone(),
        chat_id: who.chat_id.clone(),
        user_message: prompt.to_owned(),
        media_count: 0,
    }
}

fn llm_request(request: &LlmRequest) -> RuntimeEvent {
    let number = |name: &str| request.options.get(name);
    RuntimeEvent::LlmRequest {
        model: request.model.clone(),
        messages_count: request.messages.len(),
        tools_count: request.tools.len(),
        max_tokens: number("max_tokens").and_then(Value::as_u64).unwrap_or_default(),
        temperature: number("temperature").and_then(Value::as_f64).unwrap_or_default(),
    }
}
