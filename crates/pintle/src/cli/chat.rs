//! `pintle chat`: a conversation in the terminal.

use std::io::{self, BufRead as _, IsTerminal as _, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agent::driver::Ending;
use agent::{Conversation, Outlet, Runner};
use anstyle::{AnsiColor, Style};
use clap::Args;
use engine::Watcher;
use notify::Watcher as _;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::session::{self, INTERRUPTED};
use super::stops::{Stop, Stops};
use super::{Global, terminal};
use crate::error::CliError;
use crate::host::Host;
use crate::reload::{Wanted, reload};
use crate::timeline::Timeline;

const PROMPT: Style = AnsiColor::Green.on_default().bold();

/// How long a burst of changes to a file may go on before it is read: editors write twice and rename.
const SETTLE: Duration = Duration::from_millis(300);

/// How many lines may be typed ahead: a pasted page.
const MAX_TYPED_AHEAD: usize = 64;

/// Flags of `chat`.
#[derive(Debug, Args)]
pub struct ChatArgs {
    /// The agent to talk to
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Another model than the agent's own
    #[arg(long, value_name = "PROVIDER/MODEL")]
    model: Option<String>,
    /// No timeline
    #[arg(short, long)]
    quiet: bool,
    /// Do not start when a guard is bad, down or untrusted
    #[arg(long)]
    strict: bool,
}

/// Whether an answer is in the middle of a line.
#[derive(Clone, Default)]
struct OpenLine(Arc<AtomicBool>);

impl OpenLine {
    fn write(&self, text: &str) {
        let mut out = anstream::stdout();
        if out.write_all(terminal::foreign(text).as_bytes()).and_then(|()| out.flush()).is_err() {
            tracing::debug!("stdout is closed");
        }
        if !text.is_empty() {
            self.0.store(!text.ends_with('\n'), Ordering::Relaxed);
        }
    }

    fn end(&self) {
        if self.0.load(Ordering::Relaxed) {
            self.write("\n");
        }
    }

    /// Ends the line where a notice would go on in it: on the terminal that shows both streams.
    fn make_way(&self) {
        if io::stdout().is_terminal() && io::stderr().is_terminal() {
            self.end();
        }
    }
}

/// Standard error for notices, each on a line of its own.
struct Notices<W> {
    open: OpenLine,
    out: W,
}

impl<W: Write> Write for Notices<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.open.make_way();
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Shows an answer as it arrives.
struct Live<'a> {
    open: &'a OpenLine,
    shown: AtomicBool,
}

impl Outlet for Live<'_> {
    fn streams(&self) -> bool {
        true
    }

    fn delta(&self, text: &str) {
        self.shown.store(true, Ordering::Relaxed);
        self.open.write(text);
    }

    fn answered(&self) {
        self.open.end();
    }

    fn for_user(&self, text: &str) {
        self.open.end();
        self.open.write(&format!("{}\n", text.trim_end_matches('\n')));
    }
}

pub(super) fn run(global: &Global, args: &ChatArgs) -> Result<u8, CliError> {
    let runtime = terminal::runtime()?;
    let code = runtime.block_on(talk(global, args));
    // The thread that reads stdin may wait for a line that never comes.
    runtime.shutdown_background();
    code
}

async fn talk(global: &Global, args: &ChatArgs) -> Result<u8, CliError> {
    let open = OpenLine::default();
    let notices = Notices { open: open.clone(), out: anstream::stderr() };
    let watchers: Vec<Arc<dyn Watcher>> =
        if args.quiet { Vec::new() } else { vec![Arc::new(Timeline::new(notices, global.verbose > 0))] };
    let mut host = session::open(global, watchers)?;
    // Watched before anything is said, so that no change after the first word is missed.
    let (changed, mut changes) = mpsc::channel(1);
    let _watch = watch_files(&host, changed)?;
    let (agent, model) = (args.agent.as_deref(), args.model.as_deref());
    let wanted = Wanted { config: global.config.as_deref(), home: global.home.as_deref(), agent, model };
    let mut runner = host.runner(agent, model)?;
    session::ready(&host, args.strict).await?;
    let mut conversation = session::conversation(&runner);
    let model = &runner.settings().model;
    terminal::note(&format!("session {}, agent {}, model {model}", conversation.key, runner.settings().id));
    if std::io::stdin().is_terminal() {
        terminal::note("Ctrl-C stops an answer, Ctrl-D ends the conversation.");
    }
    let mut lines = read_lines();
    let mut stops = Stops::listen(false)?;
    let mut hang_ups = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())
        .map_err(|error| CliError::failed(format!("SIGHUP cannot be handled: {error}")))?;
    let asked = loop {
        prompt();
        // A change comes before a line that was typed ahead.
        tokio::select! {
            biased;
            stop = stops.next() => break Some(stop),
            Some(()) = hang_ups.recv() => {}
            Some(()) = changes.recv() => {
                tokio::time::sleep(SETTLE).await;
                // What is left of the same burst.
                while changes.try_recv().is_ok() {}
            }
            line = lines.recv() => match line {
                None => break None,
                Some(line) if line.trim().is_empty() => continue,
                Some(line) => {
                    match say(&runner, &mut conversation, &line, &open, &mut stops).await? {
                        Some(Stop::Program) => break Some(Stop::Program),
                        Some(Stop::Turn) | None => continue,
                    }
                }
            },
        }
        match reload(&mut host, wanted).await {
            Ok((changed, later)) => {
                runner = changed;
                terminal::note("the changed configuration is in force");
                for key in later {
                    terminal::note(&format!("warning: {key} takes effect at the next start"));
                }
            }
            Err(error) => terminal::complain(&error),
        }
    };
    host.close().await;
    Ok(if asked == Some(Stop::Program) { INTERRUPTED } else { 0 })
}

fn prompt() {
    if std::io::stdin().is_terminal() {
        let mut out = anstream::stderr();
        // Without a terminal there is no prompt to miss.
        drop(write!(out, "{PROMPT}>{PROMPT:#} ").and_then(|()| out.flush()));
    }
}

/// One turn; a signal stops it, and is answered.
async fn say(
    runner: &Runner,
    conversation: &mut Conversation,
    line: &str,
    open: &OpenLine,
    stops: &mut Stops,
) -> Result<Option<Stop>, CliError> {
    let live = Live { open, shown: AtomicBool::new(false) };
    let cancel = CancellationToken::new();
    let (report, asked) = stops.work(runner.turn(conversation, line, &live, &cancel), &cancel).await;
    open.end();
    let (_, complaint) = session::verdict(&report);
    if let Some(complaint) = complaint {
        terminal::note(&complaint);
    }
    let streamed = live.shown.load(Ordering::Relaxed);
    match (report.ending, streamed) {
        (Ending::Completed, false) if !report.reply.is_empty() => {
            terminal::say(&terminal::foreign(&format!("{}\n", report.reply.trim_end_matches('\n'))))?;
        }
        (Ending::Completed, _)
        | (Ending::Blocked(_) | Ending::Failed { .. } | Ending::StoppedByHook(_) | Ending::Cancelled, _) => {}
    }
    Ok(asked)
}

/// Reads stdin on a thread of its own, which may wait for ever. The channel closes at the end of input.
fn read_lines() -> mpsc::Receiver<String> {
    let (sender, lines) = mpsc::channel(MAX_TYPED_AHEAD);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// Wakes the conversation when a configuration file changes. Folders are watched, since editors rename.
fn watch_files(host: &Host, changed: mpsc::Sender<()>) -> Result<notify::RecommendedWatcher, CliError> {
    // The watch reports absolute paths, and one that was given with -c may be relative.
    let files: Vec<PathBuf> = host.loaded.files.iter().filter_map(|file| std::path::absolute(file).ok()).collect();
    let folders: Vec<PathBuf> = files.iter().filter_map(|file| file.parent().map(PathBuf::from)).collect();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let Ok(event) = event else { return };
        let reading = matches!(event.kind, notify::EventKind::Access(_));
        if !reading && event.paths.iter().any(|path| files.contains(path)) {
            // A full queue holds a change already.
            if changed.try_send(()).is_err() {
                tracing::debug!("a change is noted already");
            }
        }
    })
    .map_err(|error| CliError::failed(format!("configuration files cannot be watched: {error}")))?;
    for folder in folders {
        if let Err(error) = watcher.watch(&folder, notify::RecursiveMode::NonRecursive) {
            terminal::note(&format!("warning: changes in {} are not seen: {error}", folder.display()));
        }
    }
    Ok(watcher)
}
