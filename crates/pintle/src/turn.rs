//! One prompt worked to its end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use pintle_domain::checkpoint::user_prompt_submit::InputKind;
use pintle_domain::checkpoint::{AfterLlm, BeforeLlm, Checkpoint, ObservedEvent, RuntimeEvent};
use pintle_domain::id::{CallId, HookName};
use pintle_domain::identity::Identity;
use pintle_domain::llm::{LlmReply, LlmRequest, OddEnd};
use pintle_domain::ruling::Aborted;
use pintle_domain::verdict::{AbortScope, Never};
use pintle_engine::{Dispatcher, Stopped};
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
    run: Arc<Run>,
    state: Arc<Mutex<State>>,
    /// The turn that this one works for.
    subagent: Option<SubagentContext>,
}

impl Turn {
    pub(crate) fn new(host: Arc<Host>, who: Identity) -> Self {
        let run = Run { cancel: host.closing.child_token(), stopped: Mutex::default() };
        host.meets(&who.agent_id);
        let hooks = host.engine.dispatcher(who).with_cancel(run.cancel.child_token());
        Self { host, hooks, run: Arc::new(run), state: Arc::default(), subagent: None }
    }

    /// Where the message came from, for records and hooks: the channel, the conversation there, who wrote it.
    #[must_use]
    pub fn from(mut self, channel: &str, chat: &str, sender: &str) -> Self {
        self.hooks = self.hooks.clone().with_origin(channel, chat, sender);
        self
    }

    /// The identity of whoever acts. Nothing that a hook answers changes it.
    pub fn identity(&self) -> &Identity {
        self.hooks.who()
    }

    /// Cancels the turn when it is set: hooks and tools that run are told.
    pub fn cancel(&self) -> &CancellationToken {
        self.hooks.cancel()
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
            self.hooks.tell(ObservedEvent::SessionStart);
        }
        let (prompt, notes) = self.at(None).submit(prompt, kind).await.map_err(|stopped| self.stopped(stopped))?;
        if matches!(kind, InputKind::First | InputKind::Followup) {
            {
                let mut state = self.state();
                state.open.prompt.clone_from(&prompt);
                (state.begun, state.here) = (Some(Instant::now()), true);
            }
            self.tell(None, RuntimeEvent::turn_start(self.identity(), &prompt));
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
        let before = self.pass(BeforeLlm::new(request)).await?;
        let before = before.sendable().map_err(|why| Stop::Refused(Box::new(Refusal::new(why, None))))?;
        self.state().open.owners = before.owners;
        let request = before.request;
        self.tell(None, RuntimeEvent::llm_request(&request));
        let model = request.model.clone();
        let response = tokio::select! {
            biased;
            () = self.cancel().cancelled() => return Err(self.cut_off()),
            sent = send(request) => sent.map_err(Stop::Own)?,
        };
        let odd_end = OddEnd::of(&response);
        let reply = self.pass(AfterLlm { model: model.clone(), response }).await?.response;
        self.state().open.usage.add(reply.usage);
        self.tell(None, RuntimeEvent::llm_response(&reply, odd_end));
        Ok(Completion { reply, model })
    }

    /// The hook that brought `tool` for the calls of the last answer.
    pub fn owner(&self, tool: &str) -> Option<HookName> {
        self.state().open.owners.get(tool).cloned()
    }

    /// Asks the hooks of a checkpoint that may only change its subject or stop the turn.
    async fn pass<C, E>(&self, subject: C) -> Result<C, Stop<E>>
    where
        C: Checkpoint<Respond = Never, Ask = Never>,
    {
        self.go_on()?;
        self.at(None).pass(subject).await.map_err(|(_, stopped)| self.stopped(stopped))
    }

    /// What the loop is told of something that goes no further.
    fn stopped<E>(&self, stopped: Stopped) -> Stop<E> {
        match stopped {
            Stopped::Denied(denied) => Stop::Refused(Box::new(Refusal::new(denied.text(), Some(denied.by)))),
            Stopped::Aborted(aborted) => self.aborted(aborted),
            Stopped::Cancelled => self.cut_off(),
        }
    }

    /// Whether anything more may happen in this turn.
    fn go_on<E>(&self) -> Result<(), Stop<E>> {
        match self.stopped_by() {
            Some(aborted) => Err(Stop::Aborted(aborted)),
            None if self.cancel().is_cancelled() => Err(Stop::Cancelled),
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

    /// The hooks of the turn, in the round that it is in, for `call` if it is about one.
    fn at(&self, call: Option<&CallId>) -> Dispatcher {
        let (owners, iteration) = {
            let state = self.state();
            (state.open.owners.clone(), state.open.round)
        };
        let approvals = self.host.asking();
        // Whoever delegated waits for what a sub-agent brings, and cannot be parked in the middle of it.
        let is_below = self.subagent.is_some();
        let approvals = if is_below { approvals.map(|it| Arc::new(it.for_subagents())) } else { approvals };
        let known = Known::new(self.host.tools.clone(), owners, self.identity());
        let mut hooks = self.hooks.clone().with_known(Arc::new(known)).with_approvals(approvals);
        hooks.set_iteration(iteration);
        hooks.set_call(call.cloned());
        hooks
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

    fn tell(&self, call: Option<&CallId>, what: impl Into<ObservedEvent>) {
        let mut hooks = self.hooks.clone();
        hooks.set_iteration(self.state().open.round);
        hooks.set_call(call.cloned());
        hooks.tell(what);
    }
}
