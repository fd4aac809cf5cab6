//! One turn for a script: worked to its end with the sub-agents that it left in the background, and what is printed.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent::driver::TurnEnding;
use agent::{Conversation, TurnHandle, TurnReport, UserOutput};
use dialects::process::config::EventForm;
use dialects::process::wire;
use domain::checkpoint::Notice;
use engine::Watcher;
use tokio_util::sync::CancellationToken;

use super::session::{self, INTERRUPTED, WAITING};
use super::stops::Stops;
use super::{Global, terminal};
use crate::clean::{foreign, prose};
use crate::error::CliError;
use crate::table::columns;
use crate::timeline::Timeline;
use host::files::delivered;
use host::host::Host;
use host::ready_agent::ReadyAgent;

/// How a turn is shown.
#[derive(Clone, Copy, Debug)]
pub(super) struct DisplayOptions {
    /// One event a line on stdout.
    pub(super) json: bool,
    /// No timeline.
    pub(super) quiet: bool,
}

/// What is to be worked.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task<'a> {
    /// A message.
    Message(&'a str),
    /// The turn that is open, or, if none is, what waits in the session.
    GoOn,
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
struct Events;

impl Watcher for Events {
    fn noticed(&self, notice: &Notice) {
        if let Some(line) = event_line(notice) {
            // A reader that went away ends nothing; the turn goes on to its end.
            if let Err(error) = terminal::say(&line) {
                tracing::warn!("{error}");
            }
        }
    }
}

/// One event as `{"Kind","Time","Meta","Payload"}`.
fn event_line(notice: &Notice) -> Option<String> {
    let params = wire::event_params(EventForm::Hook, notice, 0)?;
    let mut event: domain::json::Value = serde_json::from_slice(&params).ok()?;
    event.as_object_mut()?.shift_remove("Seq");
    Some(format!("{event}\n"))
}

impl DisplayOptions {
    /// Who watches the turn.
    pub(super) fn watchers(self, global: &Global) -> Vec<Arc<dyn Watcher>> {
        match (self.json, self.quiet) {
            (true, _) => vec![Arc::new(Events)],
            (false, true) => Vec::new(),
            (false, false) => {
                let timeline =
                    Timeline::new(anstream::stderr(), global.verbose > 0).fitting(columns(std::io::stderr()));
                vec![Arc::new(timeline.explained_by(Some(session::flags(global))))]
            }
        }
    }
}

/// Works `task`, closes the host, and prints what came of it. `None` if there was nothing to go on with.
pub(super) async fn work(
    global: &Global,
    shown: DisplayOptions,
    (host, member): (&Host, &ReadyAgent),
    conversation: &mut Conversation,
    task: Task<'_>,
) -> Result<Option<u8>, CliError> {
    let user_output = Arc::new(AtTheEnd::with_files(member.home()));
    let cancel = CancellationToken::new();
    let turn_handle = TurnHandle::new(&cancel);
    let mut stops = Stops::listen(true)?;
    let turn = async {
        let out: Arc<dyn UserOutput> = user_output.clone();
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
    host.close().await;
    // Every task has ended, and what it brought is there.
    let waiting = conversation.queue().len();
    let key = conversation.key.to_string();
    let Some(report) = report else { return Ok(None) };
    let code = told(global, shown, &user_output, &report, &key)?;
    if code == WAITING && host.loaded.config.forgets_conversations() {
        terminal::note("warning: the store is `memory:`, so the session and its question end here; see store.url");
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

/// Stdout stays empty, and what was delivered before the end is there all the same.
fn note_files(user_output: &AtTheEnd) {
    user_output.files().iter().for_each(|file| terminal::note(&format!("delivered before the end: {}", prose(file))));
}

/// Prints how the turn ended.
fn told(
    global: &Global,
    shown: DisplayOptions,
    user_output: &AtTheEnd,
    report: &TurnReport,
    key: &str,
) -> Result<u8, CliError> {
    let (code, complaint) = session::verdict(report);
    if let Some(complaint) = complaint {
        terminal::note(&complaint);
    }
    match (&report.ending, shown.json) {
        (TurnEnding::Completed, true) => {
            let reply =
                domain::json::json!({"Kind": "reply", "Payload": {"text": report.reply, "media": user_output.files()}});
            terminal::say(&format!("{reply}\n"))?;
        }
        (TurnEnding::Completed, false) => terminal::say(&foreign(&user_output.text(&report.reply)))?,
        (TurnEnding::Waiting(approval), json) => {
            session::next_steps(global, key, approval).iter().for_each(|line| terminal::note(line));
            if json {
                note_files(user_output);
            } else {
                // What was shown before the call is not shown again when the turn goes on.
                terminal::say(&foreign(&user_output.text("")))?;
            }
        }
        (
            TurnEnding::Blocked(_) | TurnEnding::Failed { .. } | TurnEnding::StoppedByHook(_) | TurnEnding::Cancelled,
            _,
        ) => {
            note_files(user_output);
        }
    }
    Ok(code)
}
