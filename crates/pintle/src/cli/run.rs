//! `pintle run`: one message, worked to its end.

use std::io::{IsTerminal as _, Read as _};
use std::sync::{Arc, Mutex, PoisonError};

use agent::Outlet;
use agent::driver::Ending;
use clap::Args;
use dialects::process::config::EventForm;
use dialects::process::wire;
use domain::checkpoint::Notice;
use engine::Watcher;
use tokio_util::sync::CancellationToken;

use super::stops::Stops;
use super::{Global, session, terminal};
use crate::error::CliError;
use crate::timeline::Timeline;

/// Largest message that is read from stdin: more than any model takes.
const MAX_MESSAGE_BYTES: u64 = 16 << 20;

/// Flags of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The message; read from stdin if absent
    message: Option<String>,
    /// The agent that works it
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Another model than the agent's own
    #[arg(long, value_name = "PROVIDER/MODEL")]
    model: Option<String>,
    /// Print one event a line on stdout instead of the reply and the timeline
    #[arg(long)]
    json: bool,
    /// No timeline
    #[arg(short, long)]
    quiet: bool,
    /// Do not start when a guard is bad, down or untrusted
    #[arg(long)]
    strict: bool,
}

/// Keeps what the user is to read until the turn is over: stdout is written once.
#[derive(Default)]
pub(super) struct AtTheEnd(Mutex<Vec<String>>);

impl Outlet for AtTheEnd {
    fn streams(&self) -> bool {
        false
    }

    fn delta(&self, _text: &str) {}

    fn for_user(&self, text: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(text.to_owned());
    }
}

impl AtTheEnd {
    /// What tools and hooks wanted the user to read, then the reply, a line each.
    pub(super) fn text(&self, reply: &str) -> String {
        let said = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = said.iter().map(String::as_str).chain(Some(reply).filter(|reply| !reply.is_empty()));
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
    let mut event: serde_json::Value = serde_json::from_slice(&params).ok()?;
    event.as_object_mut()?.shift_remove("Seq");
    Some(format!("{event}\n"))
}

pub(super) fn run(global: &Global, args: RunArgs) -> Result<u8, CliError> {
    let message = message(args.message.as_deref())?;
    let runtime = terminal::runtime()?;
    runtime.block_on(async {
        let watchers: Vec<Arc<dyn Watcher>> = match (args.json, args.quiet) {
            (true, _) => vec![Arc::new(Events)],
            (false, true) => Vec::new(),
            (false, false) => vec![Arc::new(Timeline::new(anstream::stderr(), global.verbose > 0))],
        };
        let host = session::open(global, watchers)?;
        let runner = host.runner(args.agent.as_deref(), args.model.as_deref())?;
        session::ready(&host, args.strict).await?;
        let mut conversation = session::conversation(&runner);
        if !args.quiet && !args.json {
            terminal::note(&format!("session {}", conversation.key));
        }
        let cancel = CancellationToken::new();
        let outlet = AtTheEnd::default();
        let mut stops = Stops::listen(true)?;
        let turn = runner.turn(&mut conversation, &message, &outlet, &cancel);
        let (report, _asked) = stops.work(turn, &cancel).await;
        host.close().await;
        let (code, complaint) = session::verdict(&report);
        if let Some(complaint) = complaint {
            terminal::note(&complaint);
        }
        match (&report.ending, args.json) {
            (Ending::Completed, true) => {
                let reply = serde_json::json!({"Kind": "reply", "Payload": {"text": report.reply, "media": []}});
                terminal::say(&format!("{reply}\n"))?;
            }
            (Ending::Completed, false) => terminal::say(&terminal::foreign(&outlet.text(&report.reply)))?,
            (Ending::Blocked(_) | Ending::Failed { .. } | Ending::StoppedByHook(_) | Ending::Cancelled, _) => {}
        }
        Ok(code)
    })
}

/// What stands on stdin, whole.
fn piped() -> Result<String, CliError> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .take(MAX_MESSAGE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| CliError::failed(format!("stdin cannot be read: {error}")))?;
    if bytes.len() as u64 > MAX_MESSAGE_BYTES {
        return Err(CliError::usage(format!("the message on stdin is longer than {MAX_MESSAGE_BYTES} bytes"))
            .hint("put it into a file in the workspace, and ask the agent to read that"));
    }
    String::from_utf8(bytes).map_err(|_| CliError::usage("stdin is not valid UTF-8; a message is text"))
}

/// The message of the command line, or what stands on stdin.
fn message(given: Option<&str>) -> Result<String, CliError> {
    let text = match given {
        Some(text) if text != "-" => text.to_owned(),
        Some(_) | None => {
            if given.is_none() && std::io::stdin().is_terminal() {
                return Err(CliError::usage("there is no message")
                    .hint("write it behind `pintle run`, or pipe it in")
                    .hint("for a conversation: `pintle chat`"));
            }
            piped()?
        }
    };
    if text.trim().is_empty() {
        return Err(CliError::usage("the message is empty"));
    }
    Ok(text.trim_end_matches('\n').to_owned())
}
