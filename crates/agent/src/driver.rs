//! Works turns: does what the pure turn asks for, notes what came of it, and reports back.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use domain::approval::Approval;
use domain::checkpoint::runtime::TurnStatus;
use domain::checkpoint::{Known, Observed, RuntimeEvent};
use domain::id::{HookName, TraceId, TurnId, agent_uuid};
use domain::identity::Identity;
use domain::json::Rendered;
use domain::llm::ToolDef;
use domain::message::{CallPart, Message, Role};
use domain::ruling::{Aborted, Denied};
use domain::session::{Cause, Entry, OpenTurn};
use domain::skill::Skills;
use domain::store::StoreError;
use domain::tool::ToolOutput;
use domain::turn::{End, Fact, Turn};
use engine::approvals::Unsettled;
use engine::{Approvals, Dispatcher, Engine, TurnCx};

use crate::conversation::Conversation;
use crate::front_ends::FrontEnds;
use crate::helm::Helm;
use crate::media::{self, MediaStore};
use crate::models::Models;
use crate::outlet::Outlet;
use crate::settings::Settings;
use crate::skills::{NeedTool, Request, Shelf, Tags};
use crate::team::Team;
use crate::tools::Tools;

mod burials;
mod calls;
mod compact;
mod deltas;
mod files;
mod front_end;
mod known;
mod model;
mod planning;
mod polls;
pub mod rehearsal;
mod shape;
mod subturns;
mod texts;
mod work;

use front_end::{Received, Submitted, messages_of, submit};
use known::KnownAgent;
use subturns::Errand;
pub use subturns::{MAX_CHILDREN, MAX_DEPTH, SUBTURN_TIME};
use work::{Out, Work};

/// One agent, ready to work turns.
pub struct Runner {
    settings: Settings,
    models: Arc<Models>,
    tools: Arc<Tools>,
    offered: Vec<Rendered<ToolDef>>,
    engine: Arc<Engine>,
    approvals: Option<Arc<Approvals>>,
    /// Where files are kept that tools and hooks hand over.
    media: Option<Arc<MediaStore>>,
    /// The agents that this one may delegate to.
    team: Weak<Team>,
    /// The texts of its skills.
    shelf: Arc<Shelf>,
    /// Says whether a plan needs tools.
    need_tool: Arc<dyn NeedTool>,
    /// What is believed of histories that come with requests.
    front_ends: FrontEnds,
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
    /// What it and the sub-agents that it waited for were denied, a text each.
    pub denials: Vec<String>,
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
    /// It has not: a call waits for a person. [`Runner::resume`] goes on.
    Waiting(Box<Approval>),
}

impl Ending {
    /// Why the work on a session would be over, if it were over with this.
    fn cause(&self) -> Cause {
        match self {
            Self::Completed | Self::Blocked(_) => Cause::Done,
            Self::Failed { .. } | Self::StoppedByHook(_) => Cause::Failed,
            Self::Cancelled => Cause::Interrupted,
            Self::Waiting(_) => Cause::Waiting,
        }
    }
}

/// What a turn is worked with.
#[derive(Clone)]
struct Around {
    hooks: Dispatcher,
    outlet: Arc<dyn Outlet>,
    helm: Helm,
    /// The turn that this one works for.
    parent: Option<Identity>,
    /// Whose media its own turn may use beside its own.
    above: Option<media::Scope>,
    /// Who takes what comes too late for it: nobody goes on with the session of a sub-agent.
    upper: Option<Arc<Errand>>,
}

impl Around {
    fn top(hooks: Dispatcher, outlet: Arc<dyn Outlet>, helm: &Helm) -> Self {
        Self { hooks, outlet, helm: helm.clone(), parent: None, above: None, upper: None }
    }
}

impl Runner {
    /// An agent with these settings, models and tools, whose hooks are those of `engine`.
    pub fn new(settings: Settings, models: Arc<Models>, tools: Arc<Tools>, engine: Arc<Engine>) -> Self {
        let offered = tools.definitions().into_iter().cloned().map(Rendered::new).collect();
        let (team, shelf, need_tool) = (Weak::new(), Arc::new(Shelf::new(Skills::none())), Arc::new(Tags));
        let (approvals, media, front_ends) = (None, None, FrontEnds::default());
        Self { settings, models, tools, offered, engine, approvals, media, team, shelf, need_tool, front_ends }
    }

    /// The same agent; the texts of its skills lie on `shelf`.
    #[must_use]
    pub fn with_skills(self, shelf: Arc<Shelf>) -> Self {
        Self { shelf, ..self }
    }

    /// The same agent; requests may bring a history, of which `front_ends` says what is believed.
    #[must_use]
    pub fn with_front_ends(self, front_ends: FrontEnds) -> Self {
        Self { front_ends, ..self }
    }

    /// The same agent; `need_tool` says whether its plans need tools.
    #[must_use]
    pub fn with_need_tool(self, need_tool: Arc<dyn NeedTool>) -> Self {
        Self { need_tool, ..self }
    }

    /// The same agent; where a person must say, they are asked through `approvals`.
    #[must_use]
    pub fn with_approvals(self, approvals: Arc<Approvals>) -> Self {
        Self { approvals: Some(approvals), ..self }
    }

    /// The same agent; files that tools and hooks hand over are kept in `media`.
    #[must_use]
    pub fn with_media(self, media: Arc<MediaStore>) -> Self {
        Self { media: Some(media), ..self }
    }

    /// The same agent as a member of `team`.
    #[must_use]
    pub(crate) fn in_team(self, team: Weak<Team>) -> Self {
        Self { team, ..self }
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
        let known = self.known(BTreeMap::new(), &who);
        TurnCx { known, ..TurnCx::new(who) }
    }

    fn known(&self, owners: BTreeMap<String, HookName>, who: &Identity) -> Arc<dyn Known> {
        let agents = std::iter::once(&who.agent_id).chain(&who.ancestors).cloned().collect();
        let agent_uuid = agent_uuid(&who.tenant_id, who.agent_id.as_str());
        Arc::new(KnownAgent::new((self.tools.clone(), self.models.clone()), owners, agents, agent_uuid))
    }

    /// Works what is asked for to its end, after what waits in the conversation. What it did so far stays in the conversation,
    /// also when this future is dropped before its end. A turn that was left open by another process ends first.
    pub async fn turn(
        &self,
        conversation: &mut Conversation,
        request: impl Into<Request<'_>>,
        outlet: Arc<dyn Outlet>,
        helm: &Helm,
    ) -> Report {
        let around = Around::top(self.engine.dispatcher(), outlet, helm);
        self.work(conversation, Some(request.into()), around, TurnId::fresh()).await
    }

    /// Works what waits in the conversation, if anything does: messages that came in too late for their turn, and
    /// results of sub-agents.
    pub async fn go_on(&self, conversation: &mut Conversation, outlet: Arc<dyn Outlet>, helm: &Helm) -> Option<Report> {
        if conversation.queue().is_empty() {
            return None;
        }
        let around = Around::top(self.engine.dispatcher(), outlet, helm);
        Some(self.work(conversation, None, around, TurnId::fresh()).await)
    }

    /// Goes on with the turn that has begun and not ended, if there is one: it waits for a person, or the process that
    /// worked it died. Calls that ran then are not run again.
    pub async fn resume(
        &self,
        conversation: &mut Conversation,
        outlet: Arc<dyn Outlet>,
        helm: &Helm,
    ) -> Option<Report> {
        let around = Around::top(self.engine.dispatcher(), outlet, helm);
        let cx = self.turn_cx(conversation, conversation.open_turn()?.turn_id.clone(), &around);
        self.bury_children(conversation, &around).await;
        self.open(conversation, &around.hooks, &cx.who);
        let unsettled = match unsettled(&cx).await {
            Ok(unsettled) => unsettled,
            // Whoever cannot read what a person refused must run nothing; the turn stays as it is.
            Err(error) => {
                let ending = Ending::Failed { stage: "session_restore".into(), text: error.to_string() };
                conversation.now_is(ending.cause());
                let turn_id = cx.who.turn_id;
                return Some(Report { turn_id, reply: String::new(), ending, denials: Vec::new() });
            }
        };
        conversation.begin_work();
        let open = conversation.session.take_open()?;
        // Its owners hold for the calls of the batch that was under way.
        let cx = TurnCx { known: self.known(open.turn.owners().clone(), &cx.who), ..cx };
        let mut work = Work::new(self, conversation, around, cx, open);
        // Whoever worked it before told of these.
        drop(work.turn.take_events());
        work.give_up_running();
        work.flights.unsettled = unsettled;
        Some(self.report(work).await)
    }

    /// Runs one call of somebody who is no model, past everything that a call of a model passes. It is no part of the
    /// conversation, and a question for a person that nobody answers here refuses it.
    pub async fn call(
        &self,
        conversation: &mut Conversation,
        part: CallPart,
        outlet: Arc<dyn Outlet>,
        helm: &Helm,
    ) -> ToolOutput {
        let around = Around::top(self.engine.dispatcher(), outlet, helm);
        let turn_id = TurnId::fresh();
        let cx = self.turn_cx(conversation, turn_id.clone(), &around);
        self.open(conversation, &around.hooks, &cx.who);
        let read_only = self.tools.canonical(&part.function.name).and_then(|name| self.tools.get(name));
        let read_only = read_only.is_some_and(|tool| tool.read_only());
        let open = OpenTurn { turn_id, prompt: String::new(), turn: Turn::of_call(part, read_only) };
        let mut work = Work::new(self, conversation, around, cx, open).apart();
        work.begin();
        let out = work.run().await;
        match (out, work.take_last()) {
            (Out::End(End { error: Some((_, text)), .. }), _) => ToolOutput::error(text),
            (Out::End(End { stopped_by: Some(aborted), .. }), _) => ToolOutput::error(aborted.text()),
            (Out::Parked(approval), _) => ToolOutput::error(nobody_said(&approval)),
            (Out::End(_), Some(output)) => output,
            (Out::End(_), None) => ToolOutput::error(domain::turn::CANCELLED),
        }
    }

    async fn work(
        &self,
        conversation: &mut Conversation,
        request: Option<Request<'_>>,
        around: Around,
        turn_id: TurnId,
    ) -> Report {
        let cx = self.turn_cx(conversation, turn_id.clone(), &around);
        self.bury(conversation, &around).await;
        self.open(conversation, &around.hooks, &cx.who);
        let received = match request {
            None => Ok(Received::default()),
            Some(request) => self.receive(conversation, request, (&around, &cx)).await,
        };
        let mut received = match received {
            Ok(received) => received,
            Err(ending) => {
                conversation.now_is(ending.cause());
                return Report { turn_id, reply: String::new(), ending, denials: Vec::new() };
            }
        };
        conversation.begin_work();
        let (recalled, text) = (received.recalled.take().map(Fact::Recalled), received.text().map(str::to_owned));
        let prompts = received.prompts(conversation);
        let begun = Fact::Begun {
            turn_id: turn_id.clone(),
            prompts: prompts.iter().cloned().map(Into::into).collect(),
            max_iterations: self.settings.max_iterations,
        };
        let equipped = self.equipment(request).map(|with| Fact::Equipped { with: Box::new(with) });
        let entries: Vec<Entry> = recalled.into_iter().chain([begun]).chain(equipped).map(Entry::Turn).collect();
        drop(conversation.journal.write(&self.settings.id, entries.clone()));
        entries.into_iter().for_each(|entry| conversation.session.apply(entry));
        let Some(open) = conversation.session.take_open() else {
            let (stage, text) = ("session_save".to_owned(), "the turn could not begin".to_owned());
            return Report {
                turn_id,
                reply: String::new(),
                ending: Ending::Failed { stage, text },
                denials: Vec::new(),
            };
        };
        let work = Work::new(self, conversation, around, cx, open);
        if let Some(text) = text {
            work.tell_started(&text);
        }
        work.begin();
        self.report(work).await
    }

    async fn report(&self, mut work: Work<'_>) -> Report {
        let out = work.run().await;
        let (turn_id, denials) = (work.turn_id().clone(), work.take_denials());
        let (reply, ending) = match out {
            Out::End(end) => (end.reply.clone(), ending(end)),
            Out::Parked(approval) => (String::new(), Ending::Waiting(approval)),
        };
        work.now_is(ending.cause());
        Report { turn_id, reply, ending, denials }
    }

    fn turn_cx(&self, conversation: &Conversation, turn_id: TurnId, around: &Around) -> TurnCx {
        let top = Identity::top(self.settings.id.as_str(), conversation.key.as_str(), turn_id.clone());
        let mut who = Identity {
            channel: conversation.channel.clone(),
            chat_id: conversation.chat_id.clone(),
            trace_id: TraceId::from(turn_id.as_str()),
            ..top
        };
        if let Some(parent) = &around.parent {
            who.parent_turn_id = Some(parent.turn_id.clone());
            who.depth = parent.depth + 1;
            who.trace_id = parent.trace_id.clone();
            who.sender_id.clone_from(&parent.sender_id);
            who.ancestors = std::iter::once(&parent.agent_id).chain(&parent.ancestors).cloned().collect();
        }
        let below = around.parent.is_some();
        let approvals = self.approvals.clone();
        let approvals = if below { approvals.map(|it| Arc::new(it.for_subagents())) } else { approvals };
        TurnCx { cancel: around.helm.token().child_token(), approvals, ..self.context(who) }
    }

    /// Notes that this process works on the session, and tells of it if the session is new.
    fn open(&self, conversation: &mut Conversation, hooks: &Dispatcher, who: &Identity) {
        let new = !conversation.session.has_begun();
        let Some(entries) = conversation.opening(&self.settings.id) else { return };
        let records = if new { hooks.tell_apart(who, Observed::SessionStart) } else { Vec::new() };
        drop(conversation.journal.note(&self.settings.id, entries, records, hooks));
    }

    /// Ends a turn that nobody goes on with: it gets its one `turn_end`, and so do those of a dead process that worked
    /// for this session.
    async fn bury(&self, conversation: &mut Conversation, around: &Around) {
        self.bury_children(conversation, around).await;
        self.bury_turn(conversation, around).await;
    }

    /// Ends the open turn of the session alone.
    async fn bury_turn(&self, conversation: &mut Conversation, around: &Around) {
        let Some(turn_id) = conversation.open_turn().map(|open| open.turn_id.clone()) else { return };
        let cx = self.turn_cx(conversation, turn_id, around);
        self.open(conversation, &around.hooks, &cx.who);
        conversation.begin_work();
        // Nothing is waited for between these two, so nobody can drop a turn that is in neither place.
        let Some(open) = conversation.session.take_open() else { return };
        Work::new(self, conversation, around.clone(), cx, open).lay_down().await;
    }
}

/// What is said of a call that a person must clear, where nobody did.
fn nobody_said(approval: &Approval) -> String {
    format!("a person must say first: {}", approval.reason)
}

/// A message of the user's.
fn user(text: String) -> Message {
    Message { created_at: Some(now()), ..Message::text(Role::User, text) }
}

/// What persons were asked about the calls of a turn that was left open.
async fn unsettled(cx: &TurnCx) -> Result<BTreeMap<String, Unsettled>, StoreError> {
    match &cx.approvals {
        Some(approvals) => approvals.unsettled(&cx.who).await,
        None => Ok(BTreeMap::new()),
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

/// What a turn is told to begin with.
fn turn_start(who: &Identity, prompt: &str) -> RuntimeEvent {
    RuntimeEvent::TurnStart {
        channel: who.channel.clone(),
        chat_id: who.chat_id.clone(),
        user_message: prompt.to_owned(),
        media_count: 0,
    }
}
