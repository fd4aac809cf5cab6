//! Works one turn: does what the pure turn asks for and reports back.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::checkpoint::runtime::TurnStatus;
use domain::checkpoint::{Checkpoint, Known, Observed, RuntimeEvent, UserPromptSubmit};
use domain::id::{HookName, TraceId, TurnId};
use domain::identity::Identity;
use domain::json::Rendered;
use domain::llm::ToolDef;
use domain::message::{Message, Role};
use domain::ruling::{Aborted, Denied, Ruling};
use domain::turn::{Answer, End, Step, Turn};
use engine::{Dispatcher, Engine, TurnCx};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::conversation::Conversation;
use crate::models::Models;
use crate::outlet::Outlet;
use crate::settings::Settings;
use crate::tools::Tools;

mod calls;
mod deltas;
mod model;

use calls::Flights;

/// What a call that ran when its turn was dropped leaves for the model.
const OUTCOME_UNKNOWN: &str = "outcome unknown: the turn was dropped while the tool ran";

/// One agent, ready to work turns.
pub struct Runner {
    settings: Settings,
    models: Arc<Models>,
    tools: Arc<Tools>,
    offered: Vec<Rendered<ToolDef>>,
    engine: Arc<Engine>,
}

/// What came of one turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The turn.
    pub turn_id: TurnId,
    /// What the user reads at the end; empty when there is nothing to say. An outlet that streams has shown it.
    pub reply: String,
    /// How it ended.
    pub ending: Ending,
}

/// How a turn ended, as the host must know it.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// With an answer.
    Completed,
    /// The prompt was refused before anything else saw it.
    Blocked(Denied),
    /// With an error at a stage, and its text.
    Failed {
        /// `llm` or `hook.STAGE`.
        stage: String,
        /// What happened.
        text: String,
    },
    /// A hook stopped the turn or the run.
    StoppedByHook(Aborted),
    /// Somebody cancelled it.
    Cancelled,
}

/// What one turn works with. Dropped before its end, it ends like a cancelled turn.
struct Work<'a> {
    runner: &'a Runner,
    conversation: &'a mut Conversation,
    hooks: Dispatcher,
    outlet: &'a dyn Outlet,
    cx: TurnCx,
    turn: Turn,
    flights: Flights,
    prompt: String,
    started: Instant,
    finished: bool,
}

/// What hooks' answers are checked against: the agent's tools and models, and who brought which tool.
struct KnownAgent {
    tools: Arc<Tools>,
    models: Arc<Models>,
    owners: BTreeMap<String, HookName>,
}

impl Known for KnownAgent {
    fn tool(&self, name: &str) -> Option<String> {
        if self.owners.contains_key(name) {
            return Some(name.to_owned());
        }
        self.tools.canonical(name).map(str::to_owned)
    }

    fn model(&self, model: &str) -> bool {
        self.models.resolve(model).is_ok()
    }

    fn owner(&self, name: &str) -> Option<HookName> {
        self.owners.get(name).cloned()
    }
}

impl Runner {
    /// An agent with these settings, models and tools, whose hooks are those of `engine`.
    pub fn new(settings: Settings, models: Arc<Models>, tools: Arc<Tools>, engine: Arc<Engine>) -> Self {
        let offered = tools.definitions().into_iter().cloned().map(Rendered::new).collect();
        Self { settings, models, tools, offered, engine }
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The tools.
    pub fn tools(&self) -> &Tools {
        &self.tools
    }

    /// A context for questions outside a turn: `doctor`, `hooks test`.
    pub fn context(&self, who: Identity) -> TurnCx {
        TurnCx { who, cancel: CancellationToken::new(), known: self.known(BTreeMap::new()) }
    }

    fn known(&self, owners: BTreeMap<String, HookName>) -> Arc<dyn Known> {
        Arc::new(KnownAgent { tools: self.tools.clone(), models: self.models.clone(), owners })
    }

    /// Works `prompt` to its end. `cancel` stops the turn; what it did so far stays in the conversation, also when
    /// this future is dropped before its end.
    pub async fn turn(
        &self,
        conversation: &mut Conversation,
        prompt: &str,
        outlet: &dyn Outlet,
        cancel: &CancellationToken,
    ) -> Report {
        let turn_id = TurnId::fresh();
        let who = Identity {
            channel: conversation.channel.clone(),
            chat_id: conversation.chat_id.clone(),
            trace_id: TraceId::from(turn_id.as_str()),
            ..Identity::top(self.settings.id.as_str(), conversation.key.as_str(), turn_id.clone())
        };
        // A hook that stops the run cancels this turn, not what its host may still want to do.
        let cx = TurnCx { cancel: cancel.child_token(), ..self.context(who) };
        let hooks = self.engine.dispatcher();
        if !std::mem::replace(&mut conversation.started, true) {
            hooks.tell(&cx.who, Observed::SessionStart);
        }
        let prompt = match submit(&hooks, &cx, prompt).await {
            Ok(prompt) => prompt,
            Err(ending) => return Report { turn_id, reply: String::new(), ending },
        };
        let end = Work::new(self, conversation, outlet, (hooks, cx), prompt).run().await;
        Report { turn_id, reply: end.reply.clone(), ending: ending(end) }
    }
}

/// Puts the prompt to the gates; what they leave of it goes on.
async fn submit(hooks: &Dispatcher, cx: &TurnCx, prompt: &str) -> Result<String, Ending> {
    match hooks.check(cx, UserPromptSubmit { prompt: prompt.to_owned() }).await {
        // A gate that was cancelled refuses too, but that is no verdict on the prompt.
        (_, Ruling::Deny(denied)) if denied.fault && cx.cancel.is_cancelled() => Err(Ending::Cancelled),
        (_, Ruling::Deny(denied)) => Err(Ending::Blocked(denied)),
        (submitted, Ruling::Proceed) => Ok(submitted.prompt),
        (_, Ruling::Respond { with: never, .. } | Ruling::Ask { why: never, .. }) => match never {},
        (_, Ruling::Abort(aborted)) => Err(Ending::StoppedByHook(aborted)),
    }
}

/// The moment, as messages carry it.
fn now() -> String {
    jiff::Timestamp::now().to_string()
}

fn ending(end: End) -> Ending {
    match (end.stopped_by, end.error, end.status) {
        (Some(aborted), _, _) => Ending::StoppedByHook(aborted),
        (None, Some((stage, text)), _) => Ending::Failed { stage, text },
        (None, None, TurnStatus::Completed) => Ending::Completed,
        (None, None, TurnStatus::Aborted | TurnStatus::Error) => Ending::Cancelled,
    }
}

/// The hooks of a checkpoint were not asked to their end, because the turn was cancelled.
struct Unruled<C>(C);

impl<'a> Work<'a> {
    fn new(
        runner: &'a Runner,
        conversation: &'a mut Conversation,
        outlet: &'a dyn Outlet,
        (hooks, cx): (Dispatcher, TurnCx),
        prompt: String,
    ) -> Self {
        let history = std::mem::take(&mut conversation.messages);
        let message = Message { created_at: Some(now()), ..Message::text(Role::User, prompt.clone()) };
        let turn = Turn::new(history, message, runner.settings.max_iterations);
        let flights = Flights::new(runner.engine.tasks().clone());
        let started = Instant::now();
        Self { runner, conversation, hooks, outlet, cx, turn, flights, prompt, started, finished: false }
    }

    /// The loop. Every way out of it passes `finish`, so there is exactly one `turn_end`.
    async fn run(mut self) -> End {
        self.tell(RuntimeEvent::TurnStart {
            channel: self.cx.who.channel.clone(),
            chat_id: self.cx.who.chat_id.clone(),
            user_message: self.prompt.clone(),
            media_count: 0,
        });
        loop {
            if self.cx.cancel.is_cancelled() {
                // An end that was decided already stands.
                self.turn.end(End::cancelled());
            }
            match self.turn.next() {
                Step::CallModel { iteration } => {
                    self.cx.who.iteration = iteration;
                    self.cx.who.tool_call_id = None;
                    self.call_model().await;
                }
                Step::Clear { call, part } => self.clear(call, part).await,
                Step::Start { call } => self.start(call),
                Step::Await { call } => self.land(call).await,
                Step::End(end) => {
                    self.finish(&end);
                    return end;
                }
            }
        }
    }

    fn tell(&self, what: impl Into<Observed>) {
        self.hooks.tell(&self.cx.who, what);
    }

    /// Asks the hooks of the checkpoint `C`. An abort counts also when the turn was cancelled meanwhile.
    async fn ask_hooks<C: Checkpoint>(&self, subject: C) -> Result<(C, Ruling<C>), Unruled<C>> {
        let (subject, ruling) = self.hooks.check(&self.cx, subject).await;
        let asked = self.hooks.set().roster().waits_at(C::KIND);
        if !self.cx.cancel.is_cancelled() || !asked || matches!(ruling, Ruling::Abort(_)) {
            Ok((subject, ruling))
        } else {
            Err(Unruled(subject))
        }
    }

    /// The turn must end because a hook said so.
    fn stop(&mut self, aborted: Aborted) {
        let end = End::stopped(aborted);
        if end.roll_back {
            self.cx.cancel.cancel();
        }
        self.turn.end(end);
    }

    /// The turn failed at `stage`.
    fn fail(&mut self, stage: &str, message: String) {
        self.turn.end(End::failed(stage, message));
    }

    /// Tells why the turn ended, the one `turn_end`, and `stop` after a turn that completed.
    fn finish(&mut self, end: &End) {
        self.finished = true;
        self.cx.who.tool_call_id = None;
        if let Some(event) = end.told() {
            self.tell(event);
        }
        self.cx.who.iteration = 0;
        let executions = self.turn.executions().to_vec();
        let mut tool_kinds: Vec<String> = executions.iter().map(|e| e.name.clone()).collect();
        tool_kinds.sort();
        tool_kinds.dedup();
        self.tell(RuntimeEvent::TurnEnd {
            status: end.status,
            iterations: self.turn.iteration(),
            duration: self.started.elapsed(),
            final_content_len: end.reply.len(),
            user_message: self.prompt.clone(),
            final_content: end.reply.clone(),
            tool_kinds,
            tool_executions: executions,
        });
        if end.status == TurnStatus::Completed {
            self.tell(Observed::Stop { reply: end.reply.clone() });
        }
    }

    /// Ends a turn that nobody works any more; its tools are told to stop and not waited for.
    fn abandon(&mut self) {
        self.cx.cancel.cancel();
        self.turn.end(End::cancelled());
        loop {
            match self.turn.next() {
                Step::Await { call } => self.turn.answered(call, Answer::not_run(OUTCOME_UNKNOWN)),
                Step::Clear { call, .. } | Step::Start { call } => {
                    self.turn.answered(call, Answer::not_run(domain::turn::CANCELLED));
                }
                // Turns that end call no model.
                Step::CallModel { .. } => {}
                Step::End(end) => return self.finish(&end),
            }
        }
    }
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.abandon();
        }
        self.conversation.messages = self.turn.take_messages();
    }
}
