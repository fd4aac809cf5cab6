//! `pintle run`: one message, worked to its end.

use clap::Args;

use super::turn::{self, DisplayOptions, Task};
use super::{Global, message, session, session_config, terminal};
use crate::error::CliError;

/// Flags of `run`.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct RunArgs {
    /// The message; read from stdin if absent. Beside a message, what a file or a pipe brings on stdin stands behind it
    /// as a marked block
    message: Option<String>,
    /// Read nothing from stdin
    #[arg(long)]
    no_stdin: bool,
    /// The agent that runs it
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// The session that the message belongs to, new or stored [default: a new one, named on stderr]
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
    /// Go on with a session of another agent: all that was said in it is sent to this one
    #[arg(long, requires = "session")]
    agent_changed: bool,
    /// Go on with a session that ran under another configuration, or with guards that are gone
    #[arg(long, requires = "session")]
    config_changed: bool,
    /// Another model than the agent's own
    #[arg(long, value_name = "PROVIDER/MODEL")]
    model: Option<String>,
    /// Print one event a line on stdout instead of the reply and the timeline
    #[arg(long)]
    json: bool,
    /// On a terminal: show what the model thinks, not only how much
    #[arg(long)]
    thinking: bool,
    /// No timeline
    #[arg(short, long)]
    quiet: bool,
    /// Refuse to start when a guard is broken, down or untrusted
    #[arg(long)]
    strict: bool,
}

pub(super) fn run(global: &Global, args: RunArgs) -> Result<u8, CliError> {
    let message = message::of(args.message.as_deref(), args.no_stdin)?;
    let shown = DisplayOptions::new(args.json, args.quiet, args.thinking);
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
        let worked = turn::work(global, &shown, (&host, &member), &mut conversation, Task::Message(&message)).await?;
        Ok(worked.unwrap_or_default())
    })
}
