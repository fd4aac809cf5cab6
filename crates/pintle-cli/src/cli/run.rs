//! `pintle run`: one message, worked to its end.

use std::io::{IsTerminal as _, Read as _};

use clap::Args;

use super::turn::{self, DisplayOptions, Task};
use super::{Global, session, session_config, terminal};
use crate::error::CliError;

/// Largest message that is read from stdin: more than any model takes.
const MAX_MESSAGE_BYTES: u64 = 16 << 20;

/// Flags of `run`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct RunArgs {
    /// The message; read from stdin if absent
    message: Option<String>,
    /// The agent that works it
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// The session that the message belongs to, new or stored [default: a new one, named on stderr]
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
    /// Go on with a session of another agent: all that was said in it is sent to this one
    #[arg(long, requires = "session")]
    agent_changed: bool,
    /// Go on with a session that was worked under another configuration, or with guards that are gone
    #[arg(long, requires = "session")]
    config_changed: bool,
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

pub(super) fn run(global: &Global, args: RunArgs) -> Result<u8, CliError> {
    let message = message(args.message.as_deref())?;
    let shown = DisplayOptions { json: args.json, quiet: args.quiet };
    let runtime = terminal::runtime()?;
    runtime.block_on(async {
        let host = session::open(global, shown.watchers(global))?;
        session::servers(&host, args.agent.as_deref()).await?;
        let member = host.runner(args.agent.as_deref(), args.model.as_deref())?;
        let by = session::WorkedBy { agent: &member.settings().id, agent_changed: args.agent_changed };
        let conversation = session::conversation(&host, args.session.as_deref(), by)?;
        let mut conversation = session_config::continued(&host, conversation, args.config_changed)?;
        let guards = session::ready(&host, args.strict).await?;
        if !args.quiet && !args.json {
            terminal::note(&format!("session {}", conversation.key));
        }
        session::say_head(args.quiet || args.json, &guards);
        if let Some(open) = conversation.open_turn() {
            terminal::note(&format!("the turn {} was left open in this session, and ends now", open.turn_id));
        }
        let worked = turn::work(global, shown, (&host, &member), &mut conversation, Task::Message(&message)).await?;
        Ok(worked.unwrap_or_default())
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
