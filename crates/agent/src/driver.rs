//! Works turns: does what the pure turn asks for, notes what came of it, and reports back.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use domain::approval::Approval;
use domain::checkpoint::runtime::TurnStatus;
use domain::checkpoint::{AgentInfo, ObservedEvent, RuntimeEvent};
use domain::id::{HookName, TraceId, TurnId, agent_uuid};
use domain::identity::Identity;
use domain::json::Rendered;
use domain::llm::ToolDef;
use domain::message::{CallPart, Message, Role};
use domain::ruling::{Aborted, Denied};
use domain::session::{JournalEntry, OpenTurn, ReleaseReason};
use domain::skill::Skills;
use domain::store::StoreError;
use domain::tool::ToolOutput;
use domain::turn::{Fact, Turn, TurnEnd};
use engine::approvals::OpenQuestion;
use engine::{Approvals, Dispatcher, Engine, TurnCx};

use crate::agent_registry::AgentRegistry;
use crate::conversation::Conversation;
use crate::front_ends::FrontEnds;
use crate::media::{self, MediaStore};
use crate::models::Models;
use crate::settings::AgentSettings;
use crate::skills::{SkillSet, Tags, TextRequest, ToolNeedJudge};
use crate::tools::Tools;
use crate::turn_handle::TurnHandle;
use crate::user_output::UserOutput;

mod recovery;
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

use front_end::{FrontEndInput, Submitted, messages_of, submit};
use known::TurnAgentInfo;
use subturns::SubagentContext;
pub use subturns::{MAX_CHILDREN, MAX_DEPTH, SUBTURN_TIME};
use work::{Work, WorkExit};

/// One agent, ready to work turns.
pub struct Runner {
    settings: AgentSettings,
    models: Arc<Models>,
    tools: Arc<Tools>,
    offered: Vec<Rendered<ToolDef>>,
    engine: Arc<Engine>,
    approvals: Option<Arc<Approvals>>,
    /// Where files are kept that tools and hooks hand over.
    media: Option<Arc<MediaStore>>,
    /// The agents that this one may delegate to.
    registry: Weak<AgentRegistry>,
    /// The texts of its skills.
    skill_set: Arc<SkillSet>,
    /// Says whether a plan needs tools.
    need_tool: Arc<dyn ToolNeedJudge>,
    /// What is believed of histories that come with requests.
    front_ends: FrontEnds,
}

/// What came of one turn.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnReport {
    /// The turn.
    pub turn_id: TurnId,
    /// What the user reads at the end; empty when there is nothing to say. A user output that streams has shown it.
    pub reply: String,
    /// How it ended.
    pub ending: TurnEnding,
    /// What it and the sub-agents that it waited for were denied, a text each.
    pub denials: Vec<String>,
}

/// How a turn ended, as the host must know it.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnEnding {
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

impl TurnEnding {
    /// Why the work on a session would be over, if it were over with this.
    fn cause(&self) -> ReleaseReason {
        match self {
            Self::Completed | Self::Blocked(_) => ReleaseReason::Done,
            Self::Failed { .. } | Self::StoppedByHook(_) => ReleaseReason::Failed,
            Self::Cancelled => ReleaseReason::Interrupted,
            Self::Waiting(_) => ReleaseReason::Waiting,
        }
    }
}

/// What a turn is worked with.
#[derive(Clone)]
struct TurnEnv {
    hooks: Dispatcher,
    user_output: Arc<dyn UserOutput>,
    turn_handle: TurnHandle,
    /// The turn that this one works for.
    parent: Option<Identity>,
    /// Whose media its own turn may use beside its own.
    above: Option<media::MediaScope>,
    /// Who takes what comes too late for it: nobody goes on with the session of a sub-agent.
    upper: Option<Arc<SubagentContext>>,
}

impl TurnEnv {
    fn top(hooks: Dispatcher, user_output: Arc<dyn UserOutput>, turn_handle: &TurnHandle) -> Self {
        Self { hooks, user_output, turn_handle: turn_handle.clone(), parent: None, above: None, upper: None }
    }
}

impl Runner {
    /// An agent with these settings, models and tools, whose hooks are those of `engine`.
    pub fn new(settings: AgentSettings, models: Arc<Models>, tools: Arc<Tools>, engine: Arc<Engine>) -> Self {
        let offered = tools.definitions().into_iter().cloned().map(Rendered::new).collect();
        let (registry, skill_set, need_tool) = (Weak::new(), Arc::new(SkillSet::new(Skills::none())), Arc::new(Tags));
        let (approvals, media, front_ends) = (None, None, FrontEnds::default());
        Self { settings, models, tools, offered, engine, approvals, media, registry, skill_set, need_tool, front_ends }
    }

    /// The same agent; the texts of its skills lie on `shelf`.
    #[must_use]
    pub fn with_skills(self, skill_set: Arc<SkillSet>) -> Self {
        Self { skill_set, ..self }
    }

    /// The same agent; requests may bring a history, of which `front_ends` says what is believed.
    #[must_use]
    pub fn with_front_ends(self, front_ends: FrontEnds) -> Self {
        Self { front_ends, ..self }
    }

    /// The same agent; `need_tool` says whether its plans need tools.
    #[must_use]
    pub fn with_need_tool(self, need_tool: Arc<dyn ToolNeedJudge>) -> Self {
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
    pub(crate) fn in_registry(self, registry: Weak<AgentRegistry>) -> Self {
        Self { registry, ..self }
    }

    /// The settings.
    pub fn settings(&self) -> &AgentSettings {
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

    fn known(&self, owners: BTreeMap<String, HookName>, who: &Identity) -> Arc<dyn AgentInfo> {
        let agents = std::iter::once(&who.agent_id).chain(&who.ancestors).cloned().collect();
        let agent_uuid = agent_uuid(&who.tenant_id, who.agent_id.as_str());
        Arc::new(TurnAgentInfo::new((self.tools.clone(), self.models.clone()), owners, agents, agent_uuid))
    }

    /// Works what is asked for to its end, after what waits in the conversation. What it did so far stays in the conversation,
    /// also when this future is dropped before its end. A turn that was left open by another process ends first.
    pub async fn turn(
        &self,
        conversation: &mut Conversation,
        request: impl Into<TextRequest<'_>>,
        user_output: Arc<dyn UserOutput>,
        turn_handle: &TurnHandle,
    ) -> TurnReport {
        let turn_env = TurnEnv::top(self.engine.dispatcher(), user_output, turn_handle);
        self.work(conversation, Some(request.into()), turn_env, TurnId::fresh()).await
    }

    /// Works what waits in the conversation, if anything does: messages that came in too late for their turn, and
    /// results of sub-agents.
    pub async fn go_on(
        &self,
        conversation: &mut Conversation,
        user_output: Arc<dyn UserOutput>,
        turn_handle: &TurnHandle,
    ) -> Option<TurnReport> {
        if conversation.queue().is_empty() {
            return None;
        }
        let turn_env = TurnEnv::top(self.engine.dispatcher(), user_output, turn_handle);
        Some(self.work(conversation, None, turn_env, TurnId::fresh()).await)
    }

    /// Goes on with the turn that has begun and not ended, if there is one: it waits for a person, or the process that
    /// worked it died. Calls that ran then are not run again.
    pub async fn resume(
        &self,
        conversation: &mut Conversation,
        user_output: Arc<dyn UserOutput>,
        turn_handle: &TurnHandle,
    ) -> Option<TurnReport> {
        let turn_env = TurnEnv::top(self.engine.dispatcher(), user_output, turn_handle);
        let cx = self.turn_cx(conversation, conversation.open_turn()?.turn_id.clone(), &turn_env);
        self.recover_children(conversation, &turn_env).await;
        self.open(conversation, &turn_env.hooks, &cx.who);
        let unsettled = match unsettled(&cx).await {
            Ok(unsettled) => unsettled,
            // Whoever cannot read what a person refused must run nothing; the turn stays as it is.
            Err(error) => {
                let ending = TurnEnding::Failed { stage: "session_restore".into(), text: error.to_string() };
                conversation.now_is(ending.cause());
                let turn_id = cx.who.turn_id;
                return Some(TurnReport { turn_id, reply: String::new(), ending, denials: Vec::new() });
            }
        };
        conversation.begin_work();
        let open = conversation.session.take_open()?;
        // Its owners hold for the calls of the batch that was under way.
        let cx = TurnCx { known: self.known(open.turn.owners().clone(), &cx.who), ..cx };
        let mut work = Work::new(self, conversation, turn_env, cx, open);
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
        user_output: Arc<dyn UserOutput>,
        turn_handle: &TurnHandle,
    ) -> ToolOutput {
        let turn_env = TurnEnv::top(self.engine.dispatcher(), user_output, turn_handle);
        let turn_id = TurnId::fresh();
        let cx = self.turn_cx(conversation, turn_id.clone(), &turn_env);
        self.open(conversation, &turn_env.hooks, &cx.who);
        let read_only = self.tools.canonical(&part.function.name).and_then(|name| self.tools.get(name));
        let read_only = read_only.is_some_and(|tool| tool.read_only());
        let open = OpenTurn { turn_id, prompt: String::new(), turn: Turn::of_call(part, read_only) };
        let mut work = Work::new(self, conversation, turn_env, cx, open).apart();
        work.begin();
        let out = work.run().await;
        match (out, work.take_last()) {
            (WorkExit::End(TurnEnd { error: Some((_, text)), .. }), _) => ToolOutput::error(text),
            (WorkExit::End(TurnEnd { stopped_by: Some(aborted), .. }), _) => ToolOutput::error(aborted.text()),
            (WorkExit::Parked(approval), _) => ToolOutput::error(nobody_said(&approval)),
            (WorkExit::End(_), Some(output)) => output,
            (WorkExit::End(_), None) => ToolOutput::error(domain::turn::CANCELLED),
        }
    }

    async fn work(
        &self,
        conversation: &mut Conversation,
        request: Option<TextRequest<'_>>,
        turn_env: TurnEnv,
        turn_id: TurnId,
    ) -> TurnReport {
        let cx = self.turn_cx(conversation, turn_id.clone(), &turn_env);
        self.recover(conversation, &turn_env).await;
        self.open(conversation, &turn_env.hooks, &cx.who);
        let received = match request {
            None => Ok(FrontEndInput::default()),
            Some(request) => self.receive(conversation, request, (&turn_env, &cx)).await,
        };
        let mut received = match received {
            Ok(received) => received,
            Err(ending) => {
                conversation.now_is(ending.cause());
                return TurnReport { turn_id, reply: String::new(), ending, denials: Vec::new() };
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
        let entries: Vec<JournalEntry> =
            recalled.into_iter().chain([begun]).chain(equipped).map(JournalEntry::Turn).collect();
        drop(conversation.journal.write(&self.settings.id, entries.clone()));
        entries.into_iter().for_each(|entry| conversation.session.apply(entry));
        let Some(open) = conversation.session.take_open() else {
            let (stage, text) = ("session_save".to_owned(), "the turn could not begin".to_owned());
            return TurnReport {
                turn_id,
                reply: String::new(),
                ending: TurnEnding::Failed { stage, text },
                denials: Vec::new(),
            };
        };
        let work = Work::new(self, conversation, turn_env, cx, open);
        if let Some(text) = text {
            work.tell_started(&text);
        }
        work.begin();
        self.report(work).await
    }

    async fn report(&self, mut work: Work<'_>) -> TurnReport {
        let out = work.run().await;
        let (turn_id, denials) = (work.turn_id().clone(), work.take_denials());
        let (reply, ending) = match out {
            WorkExit::End(end) => (end.reply.clone(), ending(end)),
            WorkExit::Parked(approval) => (String::new(), TurnEnding::Waiting(approval)),
        };
        work.now_is(ending.cause());
        TurnReport { turn_id, reply, ending, denials }
    }

    fn turn_cx(&self, conversation: &Conversation, turn_id: TurnId, turn_env: &TurnEnv) -> TurnCx {
        let top = Identity::top(self.settings.id.as_str(), conversation.key.as_str(), turn_id.clone());
        let mut who = Identity {
            channel: conversation.channel.clone(),
            chat_id: conversation.chat_id.clone(),
            trace_id: TraceId::from(turn_id.as_str()),
            ..top
        };
        if let Some(parent) = &turn_env.parent {
            who.parent_turn_id = Some(parent.turn_id.clone());
            who.depth = parent.depth + 1;
            who.trace_id = parent.trace_id.clone();
            who.sender_id.clone_from(&parent.sender_id);
            who.ancestors = std::iter::once(&parent.agent_id).chain(&parent.ancestors).cloned().collect();
        }
        let below = turn_env.parent.is_some();
        let approvals = self.approvals.clone();
        let approvals = if below { approvals.map(|it| Arc::new(it.for_subagents())) } else { approvals };
        TurnCx { cancel: turn_env.turn_handle.token().child_token(), approvals, ..self.context(who) }
    }

    /// Notes that this process works on the session, and tells of it if the session is new.
    fn open(&self, conversation: &mut Conversation, hooks: &Dispatcher, who: &Identity) {
        let new = !conversation.session.has_begun();
        let Some(entries) = conversation.opening(&self.settings.id) else { return };
        let records = if new { hooks.tell_apart(who, ObservedEvent::SessionStart) } else { Vec::new() };
        drop(conversation.journal.note(&self.settings.id, entries, records, hooks));
    }

    /// Ends a turn that nobody goes on with: it gets its one `turn_end`, and so do those of a dead process that worked
    /// for this session.
    async fn recover(&self, conversation: &mut Conversation, turn_env: &TurnEnv) {
        self.recover_children(conversation, turn_env).await;
        self.recover_turn(conversation, turn_env).await;
    }

    /// Ends the open turn of the session alone.
    async fn recover_turn(&self, conversation: &mut Conversation, turn_env: &TurnEnv) {
        let Some(turn_id) = conversation.open_turn().map(|open| open.turn_id.clone()) else { return };
        let cx = self.turn_cx(conversation, turn_id, turn_env);
        self.open(conversation, &turn_env.hooks, &cx.who);
        conversation.begin_work();
        // Nothing is waited for between these two, so nobody can drop a turn that is in neither place.
        let Some(open) = conversation.session.take_open() else { return };
        Work::new(self, conversation, turn_env.clone(), cx, open).lay_down().await;
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
async fn unsettled(cx: &TurnCx) -> Result<BTreeMap<String, OpenQuestion>, StoreError> {
    match &cx.approvals {
        Some(approvals) => approvals.unsettled(&cx.who).await,
        None => Ok(BTreeMap::new()),
    }
}

/// The moment, as messages carry it.
fn now() -> String {
    jiff::Timestamp::now().to_string()
}

fn ending(end: TurnEnd) -> TurnEnding {
    match (end.stopped_by, end.error, end.status) {
        (Some(aborted), _, _) => TurnEnding::StoppedByHook(aborted),
        (None, Some((stage, text)), _) => TurnEnding::Failed { stage, text },
        (None, None, TurnStatus::Completed) => TurnEnding::Completed,
        (None, None, TurnStatus::Aborted | TurnStatus::Error) => TurnEnding::Cancelled,
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
