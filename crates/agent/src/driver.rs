//! Works one turn: does what the pure turn asks for and reports back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use domain::checkpoint::runtime::{InterruptKind, TurnStatus};
use domain::checkpoint::{Known, Observed, RuntimeEvent, UserPromptSubmit};
use domain::id::{HookName, TraceId, TurnId};
use domain::identity::Identity;
use domain::json::Rendered;
use domain::llm::ToolDef;
use domain::message::{Message, Role};
use domain::ruling::{Aborted, Denied, Ruling};
use domain::turn::{End, Step, Turn};
use domain::verdict::Extent;
use engine::{Dispatcher, Engine, TurnCx};
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
    /// What the user reads at the end; empty when there is nothing to say.
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

/// What one turn works with.
struct Work<'a> {
    runner: &'a Runner,
    hooks: Dispatcher,
    outlet: &'a dyn Outlet,
    cx: TurnCx,
    turn: Turn,
    flights: Flights,
    stopped_by: Option<Aborted>,
    prompt: String,
    started: Instant,
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

    /// Works `prompt` to its end. `cancel` stops the turn; what it did so far stays in the conversation.
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
        let submitted = UserPromptSubmit { prompt: prompt.to_owned() };
        let prompt = match hooks.check(&cx, submitted).await {
            (submitted, Ruling::Proceed) => submitted.prompt,
            (_, Ruling::Deny(denied)) => {
                return Report { turn_id, reply: String::new(), ending: Ending::Blocked(denied) };
            }
            (_, Ruling::Respond { with: never, .. } | Ruling::Ask { why: never, .. }) => match never {},
            (_, Ruling::Abort(aborted)) => {
                return Report { turn_id, reply: String::new(), ending: Ending::StoppedByHook(aborted) };
            }
        };
        let history = std::mem::take(&mut conversation.messages);
        let message = Message { created_at: Some(now()), ..Message::text(Role::User, prompt.clone()) };
        let turn = Turn::new(history, message, self.settings.max_iterations);
        let flights = Flights::new(self.engine.tasks().clone());
        let started = Instant::now();
        let mut work = Work { runner: self, hooks, outlet, cx, turn, flights, stopped_by: None, prompt, started };
        let end = work.run().await;
        conversation.messages = work.turn.into_messages();
        Report { turn_id, reply: end.reply.clone(), ending: ending(end, work.stopped_by) }
    }
}

/// The moment, as messages carry it.
fn now() -> String {
    jiff::Timestamp::now().to_string()
}

fn ending(end: End, stopped_by: Option<Aborted>) -> Ending {
    match (stopped_by, end.error, end.status) {
        (Some(aborted), _, _) => Ending::StoppedByHook(aborted),
        (None, Some((stage, text)), _) => Ending::Failed { stage, text },
        (None, None, TurnStatus::Completed) => Ending::Completed,
        (None, None, TurnStatus::Aborted | TurnStatus::Error) => Ending::Cancelled,
    }
}

impl Work<'_> {
    /// The loop. Every way out of it passes `finish`, so there is exactly one `turn_end`.
    async fn run(&mut self) -> End {
        self.tell(RuntimeEvent::TurnStart {
            channel: self.cx.who.channel.clone(),
            chat_id: self.cx.who.chat_id.clone(),
            user_message: self.prompt.clone(),
            media_count: 0,
        });
        loop {
            if self.cx.cancel.is_cancelled() && !self.turn.is_ending() {
                self.turn.end(End::cancelled());
            }
            match self.turn.next() {
                Step::CallModel { iteration } => {
                    self.cx.who.iteration = iteration;
                    self.call_model().await;
                }
                Step::Clear { call, part } => self.clear(call, part).await,
                Step::Start { call } => self.start(call),
                Step::Await { call } => self.land(call).await,
                Step::End(end) => return self.finish(end),
            }
        }
    }

    fn tell(&self, what: impl Into<Observed>) {
        self.hooks.tell(&self.cx.who, what);
    }

    /// The turn must end because a hook said so.
    fn stop(&mut self, aborted: Aborted) {
        let hook = Some(aborted.by.to_string());
        match aborted.abort.extent {
            Extent::Turn => {
                let stage = format!("hook.{}", aborted.at.name());
                self.tell(RuntimeEvent::Error { stage: stage.clone(), message: aborted.text(), hook });
                self.turn.end(End::failed(stage, aborted.text()));
            }
            Extent::Run => {
                self.tell(RuntimeEvent::InterruptReceived {
                    kind: InterruptKind::HardAbort,
                    role: "hook".into(),
                    content_len: 0,
                    queue_depth: 0,
                    hint_len: aborted.abort.reason.as_str().len(),
                    hook,
                });
                self.turn.end(End::hard_aborted());
                self.cx.cancel.cancel();
            }
        }
        self.stopped_by.get_or_insert(aborted);
    }

    /// The turn failed at `stage`.
    fn fail(&mut self, stage: &str, message: String) {
        self.tell(RuntimeEvent::Error { stage: stage.into(), message: message.clone(), hook: None });
        self.turn.end(End::failed(stage, message));
    }

    /// The one `turn_end`, and `stop` after a turn that completed.
    fn finish(&mut self, end: End) -> End {
        self.cx.who.tool_call_id = None;
        let iterations = self.turn.iteration();
        if let Some((stage, message)) = &end.error
            && self.stopped_by.is_none()
            && iterations >= self.runner.settings.max_iterations
            && message.starts_with("iteration limit")
        {
            self.tell(RuntimeEvent::Error { stage: stage.clone(), message: message.clone(), hook: None });
        }
        let executions = self.turn.executions().to_vec();
        let mut tool_kinds: Vec<String> = executions.iter().map(|e| e.name.clone()).collect();
        tool_kinds.sort();
        tool_kinds.dedup();
        self.tell(RuntimeEvent::TurnEnd {
            status: end.status,
            iterations,
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
        end
    }
}
