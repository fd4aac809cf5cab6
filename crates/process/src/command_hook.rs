//! Runs command hooks in Claude's wire: a program for each event.
//!
//! What a command is told and what its answer means stands in [`pintle_dialects::claude`]; what runs it in [`crate::command`].

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use pintle_dialects::claude::condition::RuleInput;
use pintle_dialects::claude::documents::{of_notice, of_subject};
use pintle_dialects::claude::{
    ClaudeEvent, CommandAnswer, CommandDecision, CommandEntry, CommandOutput, CommandStop, Documents, Surroundings,
};
use pintle_domain::account::{Account, HandlerAnswer};
use pintle_domain::checkpoint::{Notice, Subject};
use pintle_domain::fault::Fault;
use pintle_domain::hook::{Hook, OnFailure};
use pintle_domain::id::HookName;
use pintle_domain::identity::Identity;
use pintle_domain::json::Value;
use pintle_domain::matcher::Matcher;
use pintle_domain::record::NotRun;
use pintle_domain::tool::ToolCall;
use pintle_engine::deadlines::Deadlines;
use pintle_engine::handler::{Handler, HookCall, NoticeViews};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::command::{self, CommandEnd, CommandResult, CommandSpec, RunLimit};
use crate::hook::{SpawnCheck, unchecked};

mod told;

use told::{Told, reply};

/// How many notices wait for a command that is told things: a burst of a long turn, and a bound for one that is slow.
const MAX_WAITING: usize = 256;

/// How long commands may still work that are told something when the host closes.
const DRAIN_TIME: Duration = Duration::from_secs(10);

/// How much of an output is kept for somebody who tests a hook, in characters: a screen or two.
const SHOWN_CHARS: usize = 4000;

/// The variable in which commands find the folder that the agent works in.
const PROJECT_DIR: &str = "CLAUDE_PROJECT_DIR";

/// Where the work of an identity is done.
pub type ProjectOf = Arc<dyn Fn(&Identity) -> PathBuf + Send + Sync>;

/// The environment of the commands for an identity, where that is not the one of their entry.
pub type EnvOf = Arc<dyn Fn(&Identity) -> Option<Vec<(OsString, OsString)>> + Send + Sync>;

/// Everything that a command hook needs to run.
#[derive(Clone)]
pub struct CommandHookSpec {
    /// The hook's name.
    pub name: HookName,
    /// Which tools it is about.
    pub matcher: Option<Matcher>,
    /// How it is run, and for what.
    pub entry: CommandEntry,
    /// How long it may take where it is told something.
    pub timeout: Duration,
    /// Whether its faults let pass: then what it refused counts even where the rest cannot be read.
    pub fails_open: bool,
    /// The whole environment, but for the folder of the project.
    pub env: Vec<(OsString, OsString)>,
    /// The whole environment in its place, for who has one.
    pub env_of: EnvOf,
    /// The folder that the work is done in.
    pub project_of: ProjectOf,
    /// The folder in which the files that it names were accepted, where they were: it runs there and nowhere else, because
    /// a file of the same name in another folder is one that nobody has seen.
    pub accepted_in: Option<PathBuf>,
    /// The folder that `~` stands for in its conditions.
    pub home: Option<PathBuf>,
    /// Runs before every start.
    pub before_spawn: SpawnCheck,
}

impl CommandHookSpec {
    /// What `hook` needs to run, with `env` as its environment.
    pub fn new(hook: &Hook, entry: CommandEntry, env: Vec<(OsString, OsString)>, project_of: ProjectOf) -> Self {
        let stage = hook.stages.get(entry.event.checkpoint());
        let home = env.iter().find(|(name, _)| name == "HOME").map(|(_, home)| PathBuf::from(home));
        Self {
            name: hook.name.clone(),
            matcher: hook.matcher.clone(),
            timeout: stage.map_or_else(|| entry.event.timeout(), |stage| stage.timeout),
            fails_open: stage.is_some_and(|stage| stage.on_failure == OnFailure::Continue),
            entry,
            env,
            env_of: Arc::new(|_| None),
            project_of,
            accepted_in: None,
            home,
            before_spawn: unchecked(),
        }
    }

    /// The same, with `check` before every start.
    #[must_use]
    pub fn checked(self, check: SpawnCheck) -> Self {
        Self { before_spawn: check, ..self }
    }

    /// The same, with what `env_of` says as its environment, where that says anything.
    #[must_use]
    pub fn in_env_of(self, env_of: EnvOf) -> Self {
        Self { env_of, ..self }
    }

    /// The same, which runs in `folder` alone, if there is one: what it names was accepted as it is there.
    #[must_use]
    pub fn accepted_in(self, folder: Option<PathBuf>) -> Self {
        Self { accepted_in: folder, ..self }
    }

    /// The environment of its command for `who`.
    fn env_for(&self, who: &Identity) -> Vec<(OsString, OsString)> {
        (self.env_of)(who).unwrap_or_else(|| self.env.clone())
    }
}

/// A command hook.
pub struct CommandHook {
    spec: Arc<CommandHookSpec>,
    deadlines: Deadlines,
    tasks: TaskTracker,
    notices: mpsc::Sender<Arc<Notice>>,
    closing: CancellationToken,
}

/// One run of a command.
struct Run<'a> {
    spec: &'a CommandHookSpec,
    /// Its environment, but for the folder of the project.
    env: Vec<(OsString, OsString)>,
    /// The folder that it runs in, unless it is accepted in one.
    cwd: PathBuf,
    /// That of the project, unless it is accepted in one.
    project: PathBuf,
    tasks: &'a TaskTracker,
    deadlines: &'a Deadlines,
    cancel: &'a CancellationToken,
}

impl CommandHook {
    /// Mounts what `spec` says. What it is told is worked by a task of `tasks`.
    pub fn start(spec: CommandHookSpec, tasks: &TaskTracker, deadlines: &Deadlines) -> Arc<Self> {
        let (notices, queue) = mpsc::channel(MAX_WAITING);
        let (closing, spec) = (CancellationToken::new(), Arc::new(spec));
        if !spec.entry.event.is_asked() {
            let listener = Listener { spec: spec.clone(), tasks: tasks.clone(), deadlines: deadlines.clone() };
            tasks.spawn(listener.listen(queue, closing.clone()));
        }
        Arc::new(Self { spec, deadlines: deadlines.clone(), tasks: tasks.clone(), notices, closing })
    }

    /// Why the hook is not about this event, beside its matcher.
    fn not_about(&self, call: &HookCall<'_>, cwd: &Path) -> Option<NotRun> {
        let entry = &self.spec.entry;
        if let (Some(rule), Some(tool)) = (&entry.condition, call_of(call.subject)) {
            let shell = call.known.shell(&tool.tool, &tool.arguments);
            let seen = RuleInput { call: tool, shell: &shell, cwd, home: self.spec.home.as_deref(), real };
            if !rule.holds(&seen) {
                return Some(NotRun::Condition { text: rule.text().into() });
            }
        }
        match (&entry.about, call.subject) {
            (Some(about), Subject::SubagentStart(at)) if !about.is_match(at.agent.as_str()) => {
                Some(NotRun::Matcher { pattern: about.pattern().into(), value: at.agent.as_str().into() })
            }
            _ => None,
        }
    }

    async fn answer(
        &self,
        call: &HookCall<'_>,
        account: &mut Account,
    ) -> Result<pintle_domain::checkpoint::Reply, Fault> {
        let project = (self.spec.project_of)(call.who);
        let cwd = call_of(call.subject).map_or("", |tool| tool.tool.as_str());
        let cwd = call.known.place(cwd).workspace.map_or_else(|| project.clone(), PathBuf::from);
        let passed_over = |why| {
            let account = Account { instead: Some(why), uncounted: true, ..Account::default() };
            (reply(call.subject, Told::default()), account)
        };
        if let Some(why) = self.not_about(call, &cwd) {
            let (said, instead) = passed_over(why);
            *account = instead;
            return Ok(said);
        }
        let around = Surroundings { who: call.who, cwd: &cwd };
        let wanted = (self.spec.entry.event, self.spec.matcher.as_ref());
        let documents = match of_subject(wanted, call.subject, around) {
            Ok(documents) => documents,
            // Whoever made the call made it so: what the entry says of faults counts for nothing.
            Err(why) => {
                let decision = CommandDecision::Deny(format!("no hook can be told of it: {why}"));
                let mut told = Told::of(1);
                told.take(CommandAnswer { decision, ..CommandAnswer::default() }, None);
                return Ok(reply(call.subject, told));
            }
        };
        let runs = match documents {
            Documents::None => {
                let (said, instead) = passed_over(NotRun::OutOfScope);
                *account = instead;
                return Ok(said);
            }
            Documents::One(document) => vec![(document, None)],
            Documents::OfCall(parts) => parts.into_iter().map(|(document, told)| (document, Some(told))).collect(),
        };
        let (tasks, deadlines, cancel) = (&self.tasks, &self.deadlines, call.cancel);
        let run = Run {
            env: self.spec.env_for(call.who),
            spec: &self.spec,
            cwd: cwd.clone(),
            project,
            tasks,
            deadlines,
            cancel,
        };
        let began = Instant::now();
        let (mut told, mut failed) = (Told::of(runs.len()), None);
        for (document, part) in runs {
            let left = call.timeout.saturating_sub(began.elapsed());
            match run.once(&document, (left, call.timeout), account).await {
                Ok(answer) => told.take(answer, part.as_ref().zip(call_of(call.subject))),
                // What lets pass here may not undo what the command says of another part.
                Err(fault) if self.spec.fails_open && fault != Fault::Cancelled => {
                    failed.get_or_insert(fault);
                }
                Err(fault) => return Err(fault),
            }
            if told.is_decided() {
                break;
            }
        }
        match failed {
            Some(fault) if told.lets_pass() => Err(fault),
            Some(_) | None => Ok(reply(call.subject, told)),
        }
    }
}

/// Where `path` leads to, as far as it is there: what does not exist yet may stand in a folder that is a link.
fn real(path: &Path) -> PathBuf {
    let found = path.ancestors().find_map(|above| {
        let folder = above.canonicalize().ok()?;
        Some(folder.join(path.strip_prefix(above).ok()?))
    });
    found.unwrap_or_else(|| path.to_owned())
}

/// The call of a tool that an event is about.
fn call_of(subject: Subject<'_>) -> Option<&ToolCall> {
    match subject {
        Subject::BeforeTool(at) => Some(&at.call),
        Subject::PreToolUse(at) => Some(&at.call),
        Subject::ApproveTool(at) => Some(&at.call),
        Subject::AfterTool(at) => Some(&at.call),
        Subject::UserPromptSubmit(_) | Subject::BeforeLlm(_) | Subject::AfterLlm(_) | Subject::SubagentStart(_) => None,
    }
}

impl Run<'_> {
    /// Runs the command with `document`, for at most the time `left` of `all`.
    async fn once(
        &self,
        document: &Value,
        (left, all): (Duration, Duration),
        account: &mut Account,
    ) -> Result<CommandAnswer, Fault> {
        let changed = |why: String| Fault::CannotStart { cause: why.into() };
        let still_same = (self.spec.before_spawn)().map_err(changed)?;
        let mut env = self.env.clone();
        env.retain(|(name, _)| name != PROJECT_DIR);
        let accepted_in = self.spec.accepted_in.as_ref();
        env.push((PROJECT_DIR.into(), accepted_in.unwrap_or(&self.project).into()));
        let argv = self.spec.entry.argv.iter().map(OsString::from).collect();
        let command = CommandSpec::of_program(argv, accepted_in.unwrap_or(&self.cwd).clone(), env);
        let limit = RunLimit { time: left, deadlines: self.deadlines };
        let payload = Bytes::from(document.to_string());
        let CommandResult { end, stdout, stderr, .. } = command.run(payload, limit, self.cancel, self.tasks).await;
        account.stdout_len = Some(account.stdout_len.unwrap_or_default() + stdout.len());
        account.stderr_len = Some(account.stderr_len.unwrap_or_default() + stderr.len());
        (account.stdout, account.stderr) = (shown(&stdout), shown(&stderr));
        // What it says counts only if it is the file that was looked at.
        still_same().map_err(changed)?;
        let output = CommandOutput { stop: stop(end, all), stdout: &stdout, stderr: &stderr };
        let answer = match CommandAnswer::read(self.spec.entry.event, &output) {
            Err(fault) if self.spec.fails_open && fault != Fault::Cancelled => {
                CommandAnswer::refusal_within(&stdout).ok_or(fault)
            }
            read => read,
        };
        if let Ok(CommandAnswer { message: Some(message), .. }) = &answer {
            tracing::info!(hook = %self.spec.name, "a command hook says: {message}");
        }
        answer
    }
}

fn stop(end: CommandEnd, all: Duration) -> CommandStop {
    match end {
        CommandEnd::Exit(code) => CommandStop::Exit(code),
        CommandEnd::Signal(signal) => CommandStop::Signal(signal),
        CommandEnd::TimedOut => CommandStop::TimedOut(all),
        CommandEnd::Cancelled => CommandStop::Cancelled,
        CommandEnd::TooMuch { .. } => CommandStop::TooMuch(command::MAX_OUTPUT_BYTES),
        CommandEnd::CannotStart(why) => CommandStop::CannotStart(why),
    }
}

fn shown(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN_CHARS * 4)]);
    (!bytes.is_empty()).then(|| text.chars().take(SHOWN_CHARS).collect())
}

impl Handler for CommandHook {
    fn ask<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, HandlerAnswer> {
        Box::pin(async move {
            if call.cancel.is_cancelled() {
                return Err(Fault::Cancelled).into();
            }
            let mut account = Account::default();
            let heard = self.answer(&call, &mut account).await;
            HandlerAnswer { heard, account: Some(Box::new(account)) }
        })
    }

    fn tell(&self, notice: &Arc<Notice>, _views: &NoticeViews) -> bool {
        self.notices.try_send(notice.clone()).is_ok()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.closing.cancel();
        Box::pin(async {})
    }
}

impl Drop for CommandHook {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

/// Tells a command what happened, one thing after another.
struct Listener {
    spec: Arc<CommandHookSpec>,
    tasks: TaskTracker,
    deadlines: Deadlines,
}

impl Listener {
    /// Tells what is queued. What is there when the hook closes is told still, all of it within [`DRAIN_TIME`].
    async fn listen(self, mut queue: mpsc::Receiver<Arc<Notice>>, closing: CancellationToken) {
        let late = CancellationToken::new();
        let out_of_time = async {
            closing.cancelled().await;
            self.deadlines.at(Instant::now() + DRAIN_TIME).await;
        };
        let each = async {
            loop {
                let notice = tokio::select! {
                    biased;
                    notice = queue.recv() => notice,
                    () = closing.cancelled() => return,
                };
                let Some(notice) = notice else { return };
                self.tell(&notice, &late).await;
            }
        };
        tokio::select! {
            biased;
            () = each => {}
            () = out_of_time => tracing::warn!(hook = %self.spec.name, "a command took too long to hear what was left at its end"),
        }
    }

    async fn tell(&self, notice: &Notice, cancel: &CancellationToken) {
        let spec = &self.spec;
        let project = (spec.project_of)(&notice.who);
        let Some((document, about)) = of_notice(spec.entry.event, notice, &project) else { return };
        if spec.entry.about.as_ref().is_some_and(|matcher| !matcher.is_match(&about)) {
            return;
        }
        let (tasks, deadlines) = (&self.tasks, &self.deadlines);
        let run = Run { env: spec.env_for(&notice.who), spec, cwd: project.clone(), project, tasks, deadlines, cancel };
        let mut account = Account::default();
        if let Err(fault) = run.once(&document, (spec.timeout, spec.timeout), &mut account).await {
            let event: ClaudeEvent = spec.entry.event;
            tracing::warn!(
                "hooks.observer_failed: hook \"{}\" at {}: it {}",
                spec.name,
                event.name(),
                fault.explained()
            );
        }
    }
}
