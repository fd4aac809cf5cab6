//! `pintle chat`: a conversation in the terminal.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
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

use super::{Global, session, terminal};
use crate::error::CliError;
use crate::host::Host;
use crate::reload::reload;
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

/// Shows an answer as it arrives.
#[derive(Default)]
struct Live {
    shown: AtomicBool,
}

impl Live {
    fn write(&self, text: &str) {
        let mut out = anstream::stdout();
        if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
            tracing::debug!("stdout is closed");
        }
    }
}

impl Outlet for Live {
    fn streams(&self) -> bool {
        true
    }

    fn delta(&self, text: &str) {
        self.shown.store(true, Ordering::Relaxed);
        self.write(text);
    }

    fn for_user(&self, text: &str) {
        self.write(&format!("{}\n", text.trim_end_matches('\n')));
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
    let watchers: Vec<Arc<dyn Watcher>> =
        if args.quiet { Vec::new() } else { vec![Arc::new(Timeline::new(anstream::stderr(), global.verbose > 0))] };
    let mut host = session::open(global, watchers)?;
    let mut runner = host.runner(args.agent.as_deref(), args.model.as_deref())?;
    session::ready(&host, args.strict).await?;
    let mut conversation = session::conversation(&runner);
    let model = &runner.settings().model;
    terminal::note(&format!("session {}, agent {}, model {model}", conversation.key, runner.settings().id));
    if std::io::stdin().is_terminal() {
        terminal::note("Ctrl-C stops an answer, Ctrl-D ends the conversation.");
    }
    let mut lines = read_lines();
    let (changed, mut changes) = mpsc::channel(1);
    let _watch = watch_files(&host, changed)?;
    let mut hang_ups = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())
        .map_err(|error| CliError::failed(format!("SIGHUP cannot be handled: {error}")))?;
    loop {
        prompt();
        tokio::select! {
            line = lines.recv() => match line {
                None => break,
                Some(line) if line.trim().is_empty() => continue,
                Some(line) => {
                    say(&runner, &mut conversation, &line).await?;
                    continue;
                }
            },
            _ = tokio::signal::ctrl_c() => break,
            Some(()) = changes.recv() => {
                tokio::time::sleep(SETTLE).await;
                // What is left of the same burst.
                while changes.try_recv().is_ok() {}
            }
            Some(()) = hang_ups.recv() => {}
        }
        match reload(&host, global.config.as_deref(), global.home.as_deref()).await {
            Ok(loaded) => {
                host.loaded = loaded;
                runner = host.runner(args.agent.as_deref(), args.model.as_deref())?;
                terminal::note("the changed configuration is in force");
            }
            Err(error) => terminal::complain(&error),
        }
    }
    host.close().await;
    Ok(0)
}

fn prompt() {
    if std::io::stdin().is_terminal() {
        let mut out = anstream::stderr();
        // Without a terminal there is no prompt to miss.
        drop(write!(out, "{PROMPT}>{PROMPT:#} ").and_then(|()| out.flush()));
    }
}

/// One turn; Ctrl-C stops it.
async fn say(runner: &Runner, conversation: &mut Conversation, line: &str) -> Result<(), CliError> {
    let live = Live::default();
    let cancel = CancellationToken::new();
    let report = {
        let turn = runner.turn(conversation, line, &live, &cancel);
        tokio::pin!(turn);
        tokio::select! {
            report = &mut turn => report,
            _ = tokio::signal::ctrl_c() => {
                cancel.cancel();
                turn.await
            }
        }
    };
    let (_, complaint) = session::verdict(&report);
    if let Some(complaint) = complaint {
        terminal::note(&complaint);
    }
    let streamed = live.shown.load(Ordering::Relaxed);
    match (report.ending, streamed) {
        (Ending::Completed, true) => terminal::say("\n"),
        (Ending::Completed, false) if report.reply.is_empty() => Ok(()),
        (Ending::Completed, false) => terminal::say(&format!("{}\n", report.reply.trim_end_matches('\n'))),
        (Ending::Blocked(_) | Ending::Failed { .. } | Ending::StoppedByHook(_) | Ending::Cancelled, _) => Ok(()),
    }
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
    let files: Vec<PathBuf> = host.loaded.files.clone();
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
