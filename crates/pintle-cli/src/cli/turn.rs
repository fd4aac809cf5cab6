//! One turn for a script: worked to its end with the sub-agents that it left in the background, and what is printed.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pintle_agent::driver::TurnEnding;
use pintle_agent::{Conversation, TurnHandle, TurnReport, UserOutput};
use pintle_dialects::process::config::EventForm;
use pintle_dialects::process::wire;
use pintle_domain::checkpoint::{Notice, ObservedEvent, RuntimeEvent};
use pintle_domain::id::{CallId, TurnId};
use pintle_domain::json::Value;
use pintle_domain::record::EventRecord;
use pintle_domain::store::StoredCall;
use pintle_domain::verdict::VerdictKind;
use pintle_engine::Watcher;
use tokio_util::sync::CancellationToken;

use super::chat::screen::{Front, Screen};
use super::live::{LiveOutput, Notices};
use super::session::{self, INTERRUPTED, WAITING};
use super::stops::Stops;
use super::{Global, terminal};
use crate::clean::{foreign, prose};
use crate::error::CliError;
use crate::table::columns;
use crate::text::jobs_waiting;
use crate::timeline::Timeline;
use pintle_host::files::delivered;
use pintle_host::host::Host;
use pintle_host::ready_agent::ReadyAgent;

/// How a turn is shown.
pub(super) struct DisplayOptions {
    /// One event a line on stdout.
    json: bool,
    /// No timeline.
    quiet: bool,
    /// Where an answer is shown as it arrives: a terminal.
    live: Option<LiveScreen>,
}

/// A terminal that an answer is shown on as it arrives.
struct LiveScreen {
    screen: Arc<Screen>,
    /// Whether what the model thinks is shown.
    thinking: bool,
    _front: Front,
}

/// What is to be worked.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task<'a> {
    /// A message.
    Message(&'a str),
    /// The turn that is open, or, if none is, what waits in the session.
    GoOn,
}

/// Where what the user is to read goes.
#[derive(Clone)]
enum Shown {
    /// Onto a terminal, as it arrives.
    Live(Arc<LiveOutput>),
    /// To stdout, once, when the turn is over.
    AtTheEnd(Arc<AtTheEnd>),
}

/// Keeps what the user is to read until the turn is over: stdout is written once.
#[derive(Default)]
pub(super) struct AtTheEnd {
    kept: Mutex<BufferedOutput>,
    /// The home folder, below which delivered files are put; none where files cannot be handed over.
    home: Option<PathBuf>,
}

/// What was for the user.
#[derive(Default)]
struct BufferedOutput {
    /// Texts, and paths of files, a line each.
    lines: Vec<String>,
    /// The files alone.
    files: Vec<PathBuf>,
}

impl UserOutput for AtTheEnd {
    fn streams(&self) -> bool {
        false
    }

    fn delta(&self, _text: &str) {}

    fn for_user(&self, text: &str) {
        self.kept().lines.push(text.to_owned());
    }

    fn folder(&self) -> Option<PathBuf> {
        self.home.as_deref().map(delivered)
    }

    fn file(&self, path: &Path) {
        let mut kept = self.kept();
        kept.lines.push(path.display().to_string());
        kept.files.push(path.to_owned());
    }
}

impl AtTheEnd {
    /// One whose files go below `home`.
    pub(super) fn with_files(home: &Path) -> Self {
        Self { home: Some(home.to_owned()), ..Self::default() }
    }

    fn kept(&self) -> MutexGuard<'_, BufferedOutput> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The files that were for the user.
    fn files(&self) -> Vec<String> {
        self.kept().files.iter().map(|path| path.display().to_string()).collect()
    }

    /// What tools and hooks wanted the user to read, the paths of files for the user, then the reply, a line each.
    pub(super) fn text(&self, reply: &str) -> String {
        let kept = self.kept();
        let lines = kept.lines.iter().map(String::as_str).chain(Some(reply).filter(|reply| !reply.is_empty()));
        lines.map(|line| format!("{}\n", line.trim_end_matches('\n'))).collect()
    }
}

/// Prints events as they happen.
#[derive(Default)]
struct Events {
    /// The calls that hooks refused and of which it is not said yet that they did not run, as records keep them.
    refused: Mutex<BTreeMap<(TurnId, CallId), StoredCall>>,
}

impl Events {
    fn refused(&self) -> MutexGuard<'_, BTreeMap<(TurnId, CallId), StoredCall>> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The call that did not run, where a hook refused it; a turn that ends lets go of its own.
    fn refused_by(&self, notice: &Notice) -> Option<StoredCall> {
        let (ObservedEvent::Runtime(event), turn) = (&notice.what, &notice.who.turn_id) else { return None };
        if let RuntimeEvent::TurnEnd { .. } = event {
            self.refused().retain(|(of, _), _| of != turn);
        }
        let RuntimeEvent::ToolExecSkipped { tool_call_id, .. } = event else { return None };
        self.refused().remove(&(turn.clone(), CallId::from(tool_call_id.as_str())))
    }
}

impl Watcher for Events {
    fn recorded(&self, event: &EventRecord) {
        let word = event.ruling.word;
        if let (true, Some(call), Some(arguments)) =
            (event.ruling.stops() && word != VerdictKind::Ask, &event.who.tool_call_id, &event.input)
        {
            let key = (event.who.turn_id.clone(), call.clone());
            self.refused().insert(key, StoredCall::of(arguments));
        }
    }

    fn noticed(&self, notice: &Notice) {
        let refused = self.refused_by(notice);
        if let Some(line) = event_line(notice, refused.as_ref()) {
            // A reader that went away ends nothing; the turn goes on to its end.
            if let Err(error) = terminal::say(&line) {
                tracing::warn!("{error}");
            }
        }
    }
}

/// One event as `{"Kind","Time","Meta","Payload"}`, with the call that was `refused`, if it is about one.
fn event_line(notice: &Notice, refused: Option<&StoredCall>) -> Option<String> {
    let params = wire::event_params(EventForm::Hook, notice, 0)?;
    let mut event: Value = serde_json::from_slice(&params).ok()?;
    event.as_object_mut()?.shift_remove("Seq");
    if let (Some(call), Some(payload)) = (refused, event.get_mut("Payload").and_then(Value::as_object_mut)) {
        payload.insert("Call".to_owned(), pintle_domain::json::json!(call));
    }
    Some(format!("{event}\n"))
}

impl DisplayOptions {
    /// From now on everybody who writes goes through one screen, if stdout is a terminal and no JSON is wanted.
    pub(super) fn new(json: bool, quiet: bool, thinking: bool) -> Self {
        let live = (!json && io::stdout().is_terminal()).then(|| {
            let screen = Arc::new(Screen::default());
            LiveScreen { _front: Front::take(screen.clone()), screen, thinking }
        });
        Self { json, quiet, live }
    }

    /// Who watches the turn.
    pub(super) fn watchers(&self, global: &Global) -> Vec<Arc<dyn Watcher>> {
        match (self.json, self.quiet, &self.live) {
            (true, _, _) => vec![Arc::new(Events::default())],
            (false, true, _) => Vec::new(),
            (false, false, Some(live)) => vec![timeline(Notices(live.screen.clone()), global)],
            (false, false, None) => vec![timeline(anstream::stderr(), global)],
        }
    }

    fn output(&self, home: &Path) -> Shown {
        match &self.live {
            Some(live) => Shown::Live(Arc::new(LiveOutput::new(live.screen.clone(), home, live.thinking))),
            None => Shown::AtTheEnd(Arc::new(AtTheEnd::with_files(home))),
        }
    }
}

fn timeline(out: impl Write + Send + 'static, global: &Global) -> Arc<dyn Watcher> {
    let timeline = Timeline::new(out, global.verbose > 0).fitting(columns(io::stderr()));
    Arc::new(timeline.explained_by(Some(session::flags(global))))
}

impl Shown {
    fn user_output(&self) -> Arc<dyn UserOutput> {
        match self {
            Self::Live(live) => live.clone(),
            Self::AtTheEnd(at_the_end) => at_the_end.clone(),
        }
    }

    /// The files that were for the user and of which nothing is said yet.
    fn files(&self) -> Vec<String> {
        match self {
            Self::Live(_) => Vec::new(),
            Self::AtTheEnd(at_the_end) => at_the_end.files(),
        }
    }

    /// Writes what is not shown yet.
    fn say(&self, reply: &str) -> Result<(), CliError> {
        match self {
            Self::Live(live) => {
                live.answered();
                Ok(())
            }
            Self::AtTheEnd(at_the_end) => terminal::say(&foreign(&at_the_end.text(reply))),
        }
    }
}

/// Works `task`, closes the host, and prints what came of it. `None` if there was nothing to go on with.
pub(super) async fn work(
    global: &Global,
    shown: &DisplayOptions,
    (host, member): (&Host, &ReadyAgent),
    conversation: &mut Conversation,
    task: Task<'_>,
) -> Result<Option<u8>, CliError> {
    let output = shown.output(member.home());
    let cancel = CancellationToken::new();
    let turn_handle = TurnHandle::new(&cancel);
    let mut stops = Stops::listen(true)?;
    let turn = async {
        let out = output.user_output();
        match task {
            Task::Message(message) => Some(member.turn(conversation, message, out, &turn_handle).await),
            Task::GoOn if conversation.open_turn().is_some() => member.resume(conversation, out, &turn_handle).await,
            Task::GoOn => member.go_on(conversation, out, &turn_handle).await,
        }
    };
    let (report, mut asked) = stops.work(turn, &cancel).await;
    if member.at_work() > 0 {
        if asked.is_none() {
            terminal::note("sub-agents still work in the background; Ctrl-C stops them");
        }
        asked = asked.max(stops.work(member.at_rest(), &cancel).await.1);
    }
    if asked.is_none() {
        host.host_rules.send_due().await;
    }
    host.close().await;
    note_jobs(host);
    // Every task has ended, and what it brought is there.
    let waiting = conversation.queue().len();
    let key = conversation.key.to_string();
    let Some(report) = report else { return Ok(None) };
    let code = told(global, shown.json, &output, &report, &key)?;
    if code == WAITING && host.loaded.config.forgets_conversations() {
        terminal::warn("the store is `memory:`, so the session and its question end here; see store.url");
    }
    if waiting > 0 && !matches!(report.ending, TurnEnding::Waiting(_)) {
        let what = if waiting == 1 { "a message waits" } else { "messages wait" };
        let flags = session::flags(global);
        terminal::note(&format!(
            "{what} in the session; to go on with it: pintle sessions resume {}{flags}",
            session::word(&key)
        ));
    }
    Ok(Some(if asked.is_some() && code == 0 { INTERRUPTED } else { code }))
}

/// What observers are still to be told of, once nobody works on it any more.
fn note_jobs(host: &Host) {
    if !host.loaded.config.agent_hooks.durable_outbox {
        return;
    }
    match host.store.jobs_left() {
        Ok(0) => {}
        Ok(jobs) => terminal::note(&jobs_waiting(jobs)),
        Err(error) => terminal::warn(&format!("what waits in the outbox cannot be read: {error}")),
    }
}

/// Stdout stays empty, and what was delivered before the end is there all the same.
fn note_files(output: &Shown) {
    output.files().iter().for_each(|file| terminal::note(&format!("delivered before the end: {}", prose(file))));
}

/// Prints how the turn ended.
fn told(global: &Global, json: bool, output: &Shown, report: &TurnReport, key: &str) -> Result<u8, CliError> {
    if let Shown::Live(live) = output {
        live.answered();
    }
    let (code, complaint) = session::verdict(report);
    if let Some(complaint) = complaint {
        terminal::note(&complaint);
    }
    match &report.ending {
        TurnEnding::Failed { .. } if report.reply.is_empty() => note_files(output),
        // At the limit of its rounds a turn has failed, and yet there is something to read.
        TurnEnding::Completed | TurnEnding::Failed { .. } if json => {
            let reply = pintle_domain::json::json!({"Kind": "reply", "Payload": {"text": report.reply, "media": output.files()}});
            terminal::say(&format!("{reply}\n"))?;
        }
        TurnEnding::Completed | TurnEnding::Failed { .. } => output.say(&report.reply)?,
        TurnEnding::Waiting(approval) => {
            session::next_steps(global, key, approval).iter().for_each(|line| terminal::note(line));
            if json {
                note_files(output);
            } else {
                // What was shown before the call is not shown again when the turn goes on.
                output.say("")?;
            }
        }
        TurnEnding::Blocked(_) | TurnEnding::StoppedByHook(_) | TurnEnding::Cancelled => note_files(output),
    }
    Ok(code)
}
