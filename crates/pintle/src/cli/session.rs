//! What `run` and `chat` share: a host that is ready, an agent, and how a turn's end becomes an exit code.

use std::sync::Arc;

use agent::driver::Ending;
use agent::{Conversation, Report, Runner};
use domain::id::SessionId;
use domain::verdict::Extent;
use engine::Watcher;

use super::{Global, terminal};
use crate::clean::{clean, prose};
use crate::error::{CliError, FAILED};
use crate::host::{Host, load};

/// The exit code for a turn or run that a hook stopped.
pub(super) const STOPPED: u8 = 3;
/// The exit code for a prompt that was refused.
pub(super) const BLOCKED: u8 = 4;
/// The exit code for a guard that is bad, down, unproven or untrusted.
pub(super) const UNGUARDED: u8 = 5;
/// The exit code for a turn that somebody interrupted.
pub(super) const INTERRUPTED: u8 = 130;

/// Opens the configuration that the command line asks for and says what is wrong with it.
pub(super) fn open(global: &Global, watchers: Vec<Arc<dyn Watcher>>) -> Result<Host, CliError> {
    let (env, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    for diagnostic in &loaded.diagnostics {
        terminal::note(&format!("warning: {}", prose(&diagnostic.to_string())));
    }
    for line in &loaded.left_out {
        terminal::note(&format!("warning: {}", prose(line)));
    }
    Host::open(env, loaded, watchers)
}

/// Waits for the hooks, and refuses to go on if a guard cannot work and the user wants to know before the first turn.
pub(super) async fn ready(host: &Host, strict: bool) -> Result<(), CliError> {
    let down = host.ready().await;
    for (name, fault) in &down {
        terminal::note(&format!("warning: hook \"{}\" {}", clean(name), prose(&fault.to_string())));
    }
    if !(strict || host.loaded.config.strict_start) {
        return Ok(());
    }
    let mut bad: Vec<String> = host.loaded.config.unguarded().map(|loaded| loaded.hook.name.to_string()).collect();
    let guards = |name: &str| {
        use domain::checkpoint::CheckpointKind::{ApproveTool, BeforeTool};
        let hooks = &host.loaded.config.hooks;
        hooks.iter().any(|loaded| {
            loaded.hook.name.as_str() == name
                && [BeforeTool, ApproveTool].iter().any(|kind| loaded.hook.stages.get(*kind).is_some())
        })
    };
    bad.extend(host.loaded.diagnostics.iter().filter(|found| found.guard).map(|found| found.path.clone()));
    bad.extend(down.into_iter().map(|(name, _)| name).filter(|name| guards(name)));
    if bad.is_empty() {
        return Ok(());
    }
    let error = CliError {
        code: UNGUARDED,
        message: format!("guards that cannot work: {}", bad.join(", ")),
        hints: Vec::new(),
    };
    Err(error.hint("see `pintle doctor`; without --strict and strict_start these guards refuse what they guard"))
}

/// A new conversation on the command line.
pub(super) fn conversation(runner: &Runner) -> Conversation {
    let conversation = Conversation::new(SessionId::new(format!("cli:{}", uuid::Uuid::new_v4())));
    tracing::info!("session {} of agent {}", conversation.key, runner.settings().id);
    conversation
}

/// The exit code of a turn, and what the user is told on stderr.
pub(super) fn verdict(report: &Report) -> (u8, Option<String>) {
    match &report.ending {
        Ending::Completed => (0, None),
        Ending::Blocked(denied) => (BLOCKED, Some(prose(&denied.text()))),
        Ending::Failed { text, .. } => (FAILED, Some(format!("Error processing message: {}", prose(text)))),
        Ending::StoppedByHook(aborted) => {
            let text = prose(&aborted.text());
            let told = match aborted.abort.extent {
                Extent::Turn => format!("Error processing message: {text}"),
                Extent::Run => text,
            };
            (STOPPED, Some(told))
        }
        Ending::Cancelled => (INTERRUPTED, Some("interrupted".into())),
    }
}
