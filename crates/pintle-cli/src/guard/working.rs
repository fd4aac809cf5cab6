//! One event of a host, worked: read, put to the hooks of its folder, answered in the host's words.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use pintle_domain::approval::{Approval, PersonAnswer};
use pintle_domain::checkpoint::{CheckpointKind, ObservedEvent};
use pintle_domain::id::{AgentId, CallId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::{Object, Value};
use pintle_domain::shell::LastRead;
use pintle_domain::tool::{ToolCall, ToolOutput};
use pintle_engine::{Approvals, Asker, Dispatcher, Stopped};
use pintle_guard::tools::{ToolClass, shell_texts};
use pintle_guard::{Answer, AskWay, GuardHost, GuardRuling, HookInput, HostCall, HostEvent, HostWhat};
use pintle_hook::frame::{Question, Ruled};
use pintle_host::mounted::GUARD_CHANNEL;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::begun::Begun;
use super::call_log;
use super::canary;
use super::folders::{Folders, InForce};
use super::host_program;
use super::kept_sessions::kept;
use super::known::{HostKnowledge, foreign, worked_at};
use super::open_matters::OpenMatters;
use super::places::GuardPlaces;
use super::proofs;
use super::rulings::{LOST_PROMPT, TOO_LATE, of_result, of_stopped, result_text, shaped};
use super::sessions::{Place, Sessions};

mod arming;
mod asked;
mod model;
mod subagent;
mod turns;
mod unread;

use subagent::{kind_of, task_of};

/// How long hooks have until the daemon says its first word; the client gives it a second more.
const FIRST_WORD: Duration = Duration::from_secs(27);

/// How much sooner than the client's deadline the daemon answers, where that is long.
const MARGIN: Duration = Duration::from_secs(1);

/// The door that events come in by, as their identity says it.
pub(super) const CHANNEL: &str = GUARD_CHANNEL;

/// Works events.
pub(crate) struct Desk {
    pub(super) folders: Arc<Folders>,
    pub(super) sessions: Sessions,
    /// What is open between two events.
    open: OpenMatters,
    pub(super) places: GuardPlaces,
    /// The home folder of the person.
    home: String,
    /// The folders of agents that are elsewhere than the table says.
    moved: Vec<String>,
    /// The programs of agents and our own, which no agent replaces.
    programs: Vec<String>,
    /// The sessions whose host is to be looked at.
    pub(super) begun: Begun,
    /// Whether a person lets agents change their own settings.
    self_edit: bool,
    /// What stood in the lock of daemons when this desk was made beside them; none where it is a daemon's own.
    beside: Option<Vec<u8>>,
    /// Whether it could not be read which sessions an earlier daemon knew.
    knows_not_all: bool,
}

/// One question of a hook, and who hears of it.
pub(crate) struct Asked<'a> {
    /// The question.
    pub(crate) question: &'a Question,
    /// The process of the host that started the hook, and since when that runs.
    pub(crate) process: Option<(u32, u64)>,
    /// Rung when a person is asked.
    pub(crate) held: mpsc::Sender<()>,
    /// Set when nobody waits for the answer any more.
    pub(crate) gone: CancellationToken,
}

impl Desk {
    /// A desk that asks the hooks of `folders`, for the person whose home folder is `home` and whose agents have the
    /// folders `moved`.
    pub(crate) fn new(folders: Arc<Folders>, places: GuardPlaces, (home, moved): (String, Vec<String>)) -> Self {
        let earlier = kept(&places.folder).inspect_err(|unknown| tracing::error!("{unknown}"));
        let (knows_not_all, sessions) = (earlier.is_err(), Sessions::going_on(earlier.unwrap_or_default()));
        let (open, begun, programs) = (OpenMatters::default(), Begun::default(), Vec::new());
        Self {
            folders,
            sessions,
            open,
            places,
            home,
            moved,
            programs,
            begun,
            self_edit: false,
            beside: None,
            knows_not_all,
        }
    }

    /// The same, which lets agents change their own settings: a person asked for it, for as long as this daemon runs.
    #[must_use]
    pub(crate) fn with_self_edit(self, self_edit: bool) -> Self {
        Self { self_edit, ..self }
    }

    /// The same, which keeps agents from replacing `programs`.
    #[must_use]
    pub(crate) fn with_programs(self, programs: Vec<String>) -> Self {
        Self { programs, ..self }
    }

    /// The same, for a command: nothing is kept once a daemon has written another `signature` into the lock.
    #[must_use]
    pub(crate) fn beside_daemons(self, signature: Vec<u8>) -> Self {
        Self { beside: Some(signature), ..self }
    }

    /// Ends the hooks of all folders.
    pub(crate) async fn close(&self) {
        self.folders.close().await;
    }

    /// What the hook says to its host.
    pub(crate) async fn answer(&self, asked: Asked<'_>) -> Ruled {
        let question = asked.question;
        let Some(host) = pintle_guard::host(&question.host) else {
            return refused(question, &format!("the host `{}` is unknown", question.host));
        };
        let input = HookInput {
            event: Some(&question.event),
            environment: &question.env,
            cwd: &question.cwd,
            stdin: &question.payload,
        };
        match host.read(&input) {
            Ok(event) => self.work(host, &event, asked).await,
            Err(malformed) => self.unread(host, &malformed, &asked).await,
        }
    }

    async fn work(&self, host: &'static GuardHost, event: &HostEvent, asked: Asked<'_>) -> Ruled {
        let place = self.sessions.place(event, asked.process, Timestamp::now());
        if place.is_new || place.is_moved {
            self.begin(event, &asked.question.env);
        }
        if place.is_new || place.is_moved || event.what == HostWhat::SessionEnd {
            self.keep_sessions();
        }
        if place.is_new
            && let Err(error) = call_log::forget_others(&self.places, || self.sessions.all())
        {
            tracing::warn!("what is kept of forgotten sessions cannot be removed: {error}");
        }
        self.note(event, None);
        // Both come once.
        let (rung, held) = mpsc::channel(2);
        let version = self.sessions.version(event.session_id().as_str());
        let cancel = asked.gone.child_token();
        let worked =
            WorkedEvent { desk: self, host, event, place: &place, cancel: cancel.clone(), version, way: AskWay::Hold };
        let ruling = worked.rule(rung);
        let (ruling, hooks) = in_time(ruling, asked, (held, cancel)).await;
        if let GuardRuling::ModifyInput { arguments, .. } = &ruling {
            self.note(event, Some(arguments));
        }
        let Answer { stdout, exit, stderr, degraded } = (host.adapter.encode)(event, &ruling);
        if let (Some(degraded), Some(hooks)) = (degraded, hooks) {
            let kind = worked_at(&event.what);
            let text = format!("degraded: {degraded}, because {} can express no more", host.name);
            hooks.noted(kind, &text);
        }
        if event.what == HostWhat::SessionEnd {
            self.open.ended(event.session_id().as_str());
        }
        Ruled { exit, stdout: stdout.into_bytes(), stderr: stderr.into_bytes() }
    }
}

impl Desk {
    /// Finds out in which version the host of a session runs that has begun, as far as that takes no time.
    fn begin(&self, event: &HostEvent, env: &[(String, String)]) {
        let name = event.session_id().to_string();
        let session = self.sessions.of(&name);
        let process = session.as_ref().and_then(|session| session.process).map(|(pid, _)| pid);
        // A project's settings can set the environment of hooks: what the program itself says counts before it.
        let packaged = || host_program::version_of_process(pintle_guard::host(event.host)?, process?);
        let version = packaged().or_else(|| host_program::said_version(env));
        // A session that somebody resumed may run in another one than before.
        self.sessions.runs_in(&name, version.as_deref());
        self.begun.add(name);
    }

    /// Keeps what is known of sessions for commands that run beside the daemon, and for the next one.
    pub(super) fn keep_sessions(&self) {
        // Agents that an earlier daemon knew may run: while the damaged file stands, nobody is taken for a person.
        if self.knows_not_all && self.places.sessions_file().exists() {
            return;
        }
        let kept = match &self.beside {
            None => self.sessions.keep(&self.places),
            Some(signature) => self.places.unless_guarded(signature, || self.sessions.keep(&self.places)),
        };
        if let Err(error) = kept {
            tracing::warn!("what is known of sessions cannot be kept: {error}");
        }
    }

    /// Notes that the call of `event` was asked about, or made one with the arguments `changed`.
    fn note(&self, event: &HostEvent, changed: Option<&Object>) {
        if let HostWhat::Tool(tool) = &event.what
            && let Err(error) = call_log::note(&self.places, event, (tool, changed))
        {
            tracing::warn!("that a call was asked about cannot be kept: {error}");
        }
    }
}

/// The refusal that the client would print by itself, with the cause beside it.
fn refused(question: &Question, why: &str) -> Ruled {
    tracing::warn!("{} {}: refused: {why}", question.host, question.event);
    let stdout = pintle_guard::panic_deny(&question.host, &question.event).as_bytes().to_vec();
    Ruled { exit: 0, stdout, stderr: format!("pintle: refused: {why}\n").into_bytes() }
}

/// What `ruling` comes to before the hook's deadline: hooks that take longer are cut off, and then the call is refused.
async fn in_time(
    ruling: impl Future<Output = (GuardRuling, Option<Dispatcher>)>,
    asked: Asked<'_>,
    (mut rung, cancel): (mpsc::Receiver<RuleNews>, CancellationToken),
) -> (GuardRuling, Option<Dispatcher>) {
    let began = Instant::now();
    let whole = Duration::from_millis(asked.question.deadline_ms);
    let margin = MARGIN.min(whole / 4);
    let mut end = began + whole.saturating_sub(margin);
    let mut cut = end.min(began + FIRST_WORD);
    tokio::pin!(ruling);
    loop {
        tokio::select! {
            ruled = &mut ruling => return ruled,
            Some(news) = rung.recv() => match news {
                RuleNews::Within(limit) => {
                    end = end.min(began + limit);
                    cut = cut.min(end);
                }
                RuleNews::Held => {
                    cut = end;
                    asked.held.try_send(()).ok();
                }
            },
            () = sleep_until(cut), if !cancel.is_cancelled() => cancel.cancel(),
            // Who was cut off has half of what is left.
            () = sleep_until(cut + margin / 2) => return (GuardRuling::Deny { reason: TOO_LATE.into() }, None),
        }
    }
}

/// What is heard of a ruling before it is there.
enum RuleNews {
    /// The person wants it within this time.
    Within(Duration),
    /// A person is asked.
    Held,
}

/// Says that a person is asked, who answers elsewhere.
struct Bell(mpsc::Sender<RuleNews>);

#[async_trait]
impl Asker for Bell {
    async fn ask(&self, approval: &Approval) -> Option<PersonAnswer> {
        tracing::info!("approval {} waits for a person", approval.id);
        self.0.send(RuleNews::Held).await.ok();
        std::future::pending().await
    }
}

/// An event that is worked.
struct WorkedEvent<'a> {
    desk: &'a Desk,
    host: &'static GuardHost,
    event: &'a HostEvent,
    place: &'a Place,
    cancel: CancellationToken,
    /// The version of the host, where it says it.
    version: Option<String>,
    /// Who is asked about a call that needs a person.
    way: AskWay,
}

impl WorkedEvent<'_> {
    /// What the hooks conclude, and their handle.
    async fn rule(mut self, news: mpsc::Sender<RuleNews>) -> (GuardRuling, Option<Dispatcher>) {
        let desk = self.desk;
        let canary = self.canary();
        if let Some(nonce) = &canary {
            proofs::heard(&desk.places, nonce);
        }
        let canary = canary.as_deref().map(canary::refusal);
        let folder = &self.place.workspace;
        let in_force = match desk.folders.of(folder, self.place.is_new).await {
            Ok(in_force) => in_force,
            Err(error) => {
                tracing::warn!("{}: {error}", folder.display());
                let reason = canary.unwrap_or_else(|| {
                    format!("the configuration of {} does not load: {}", folder.display(), error.message)
                });
                return (GuardRuling::Deny { reason }, None);
            }
        };
        self.way = self.way(&in_force);
        if let Some(limit) = in_force.hosts.get(self.host.id).and_then(|it| it.deadline) {
            news.send(RuleNews::Within(limit)).await.ok();
        }
        let hooks = self.hooks(&in_force, news);
        // Before any rule: with what is protected the agent would take the guard away, or answer for a person.
        let reason = match canary {
            Some(reason) => Some(reason),
            None => self.protects(self.event, &in_force, &hooks).await,
        };
        if let Some(reason) = reason {
            self.refused(&hooks, CheckpointKind::PreToolUse, &reason);
            return (GuardRuling::Deny { reason }, Some(hooks));
        }
        if let Some(reason) = self.not_armed(&in_force).await {
            self.refused(&hooks, worked_at(&self.event.what), &reason);
            return (GuardRuling::Deny { reason }, Some(hooks));
        }
        if self.place.is_new {
            hooks.tell(ObservedEvent::SessionStart);
        }
        if self.place.is_new_turn {
            // Once a turn, for all of its calls: their permits bind nobody, because the host runs the tools.
            let version = self.version.as_deref().unwrap_or("of an unknown version");
            let process = self.desk.sessions.process(self.event.session_id().as_str());
            let typed = if process.is_none() { "; the hook was started by no process of the agent" } else { "" };
            let text = format!("door: hook; executor: host, {} {version}; bound: no{typed}", self.host.name);
            hooks.noted(worked_at(&self.event.what), &text);
        }
        if let HostWhat::ToolDone { failed, .. } = &self.event.what {
            self.has_run(&in_force, *failed).await;
        }
        let ruling = self.ask(&in_force, &hooks).await;
        (ruling, Some(hooks))
    }

    /// The nonce of a canary: the daemon itself refuses it, whatever the hooks say.
    fn canary(&self) -> Option<String> {
        let HostWhat::Tool(tool) = &self.event.what else { return None };
        let texts = self.host.tool(&tool.native).map(|row| shell_texts(row, &tool.arguments)).unwrap_or_default();
        texts.into_iter().find_map(canary::nonce).map(str::to_owned)
    }

    /// The hooks of the event.
    fn hooks(&self, in_force: &InForce, news: mpsc::Sender<RuleNews>) -> Dispatcher {
        let session = self.event.session_id();
        // Anybody may ask in an agent's name: hooks have the surroundings of its own program alone.
        let is_agent = |(pid, _): &(u32, u64)| host_program::is_of(self.host, *pid);
        let process = self.desk.sessions.process(session.as_str()).filter(is_agent);
        let (agent, agent_uuid) = in_force.stands_for(self.host.id);
        let top = Identity::top(agent, session.as_str(), TurnId::new(self.place.turn.as_str()));
        let who = Identity { depth: u8::from(self.event.subagent.is_some()), ..top };
        let known = HostKnowledge {
            tool: self.event.tool().and_then(|tool| self.host.tool(&tool.native)),
            cwd: PathBuf::from(&self.event.cwd),
            workspace: self.place.workspace.clone(),
            agent: AgentId::from(agent),
            agent_uuid,
            read: LastRead::default(),
        };
        // Where nobody waits here, the question is kept, and the call comes back with it.
        let bell = (self.way == AskWay::Hold).then(|| -> Arc<dyn Asker> { Arc::new(Bell(news)) });
        let approvals = Approvals::for_host(in_force.store.clone(), bell);
        let mut hooks = in_force
            .engine
            .dispatcher(who)
            .with_origin(CHANNEL, self.host.id, "user")
            .with_foreign(foreign(self.event, self.version.as_deref(), process))
            .with_cancel(self.cancel.clone())
            .with_known(Arc::new(known))
            .with_approvals(Some(Arc::new(approvals)))
            .asking_by_content();
        hooks.set_call(self.place.call.as_deref().map(CallId::new));
        hooks
    }

    async fn ask(&self, in_force: &InForce, hooks: &Dispatcher) -> GuardRuling {
        match &self.event.what {
            HostWhat::Tool(tool) => self.clear(in_force, hooks, tool).await,
            HostWhat::ToolDone { tool, result, failed } => self.review(hooks, tool, (result, *failed)).await,
            HostWhat::Prompt { .. } if self.place.goes_on => GuardRuling::NoObjection,
            HostWhat::Prompt { text } => self.submit(hooks, text).await,
            HostWhat::PromptSent { text } => match self.desk.open.take_prompt(self.event.session_id().as_str()) {
                Some(open) => GuardRuling::ModifyPrompt { text: open.sent(text) },
                None => GuardRuling::NoObjection,
            },
            HostWhat::Permission { tool } => self.permission(in_force, hooks, tool).await,
            HostWhat::BeforeModel { request } => self.before_model(hooks, request).await,
            HostWhat::AfterModel { request, response } => self.after_model(hooks, request, response).await,
            HostWhat::Stop { text, .. } => {
                self.stop(hooks, text.as_deref().unwrap_or_default());
                GuardRuling::NoObjection
            }
            HostWhat::SubagentStop { text, .. } => {
                self.subagent_stop(hooks, text.as_deref().unwrap_or_default());
                GuardRuling::NoObjection
            }
            HostWhat::SessionStart
            | HostWhat::SessionEnd
            | HostWhat::SubagentStart
            | HostWhat::ConfigChange { .. }
            | HostWhat::Other => GuardRuling::NoObjection,
        }
    }

    /// Keeps that the guard itself refused this event at `kind`, with the call that it is about.
    fn refused(&self, hooks: &Dispatcher, kind: CheckpointKind, reason: &str) {
        match self.event.tool() {
            Some(tool) => hooks.refused_call(kind, &self.call(tool), reason),
            None => hooks.refused(kind, reason),
        }
    }

    fn call(&self, tool: &HostCall) -> ToolCall {
        ToolCall {
            id: CallId::new(self.place.call.as_deref().unwrap_or_default()),
            tool: tool.canonical.clone(),
            raw_tool: tool.native.clone(),
            arguments: tool.arguments.clone(),
        }
    }

    async fn clear(&self, in_force: &InForce, hooks: &Dispatcher, tool: &HostCall) -> GuardRuling {
        if self.desk.open.has_lost_prompt(self.event.session_id().as_str()) {
            hooks.refused_call(CheckpointKind::PreToolUse, &self.call(tool), LOST_PROMPT);
            return GuardRuling::Deny { reason: LOST_PROMPT.into() };
        }
        let call = self.call(tool);
        let ruling = self.told(in_force, hooks, (hooks.clear(call.clone()).await, tool)).await;
        if tool.class != ToolClass::Subagent || ruling.stops() {
            return ruling;
        }
        let call = match &ruling {
            GuardRuling::ModifyInput { arguments, .. } => ToolCall { arguments: arguments.clone(), ..call },
            GuardRuling::NoObjection
            | GuardRuling::Allow
            | GuardRuling::Deny { .. }
            | GuardRuling::Ask { .. }
            | GuardRuling::Respond { .. }
            | GuardRuling::ModifyResult { .. }
            | GuardRuling::ModifyPrompt { .. }
            | GuardRuling::ModifyRequest { .. }
            | GuardRuling::AbortTurn { .. }
            | GuardRuling::AbortRun { .. }
            | GuardRuling::Inject { .. } => call,
        };
        match self.begin(hooks, call).await {
            Some(refusal) => refusal,
            None => ruling,
        }
    }

    /// Why the sub-agent that `call` is to start does not begin.
    async fn begin(&self, hooks: &Dispatcher, call: ToolCall) -> Option<GuardRuling> {
        let (agent, task) = (kind_of(&call.arguments), task_of(&call.arguments));
        let start = match hooks.subagent(AgentId::from(agent.as_str()), &task, Some(call)) {
            Ok(start) => start,
            Err(why) => return Some(GuardRuling::Deny { reason: why.to_owned() }),
        };
        hooks.pass(start).await.err().map(|(_, stopped)| of_stopped(&stopped))
    }

    async fn review(&self, hooks: &Dispatcher, tool: &HostCall, (result, failed): (&Value, bool)) -> GuardRuling {
        let text = result_text(result);
        let output = ToolOutput { is_error: failed, ..ToolOutput::ok(text.as_str()) };
        let took_ms = self.event.host_raw.get("duration_ms").and_then(Value::as_u64);
        let took = Duration::from_millis(took_ms.unwrap_or_default());
        let (finished, stopped) = hooks.review(self.call(tool), output, took).await;
        let left = finished.output.for_llm.clone();
        hooks.tell_finished(finished).await;
        let replaced = |text: String| GuardRuling::ModifyResult { shaped: shaped(result, &text), text, added: None };
        match stopped {
            Some(stopped @ Stopped::Aborted(_)) => of_stopped(&stopped),
            Some(Stopped::Denied(_) | Stopped::Cancelled) => replaced(left),
            None => of_result(result, &text, left),
        }
    }
}
