//! What `run` and `chat` share: a host that is ready, an agent, and how a turn's end becomes an exit code.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use pintle_agent::driver::TurnEnding;
use pintle_agent::{Conversation, TurnReport};
use pintle_domain::approval::Approval;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::fault::Fault;
use pintle_domain::health::Health;
use pintle_domain::hook::Hook;
use pintle_domain::id::{AgentId, HookName, SessionId, TenantId};
use pintle_domain::lease::LEASE_TIME;
use pintle_domain::store::StoreError;
use pintle_domain::verdict::AbortScope;
use pintle_engine::Watcher;

use super::command_line::again;
pub(super) use super::command_line::{flags, word};
use super::{Global, terminal};
use crate::clean::{clean, prose};
use crate::error::{CliError, FAILED};
use crate::table::{columns, fold};
use pintle_host::config::Config;
use pintle_host::config::diagnostic::dotted;
use pintle_host::host::{Host, load};

/// The exit code for a turn or run that a hook stopped.
pub(super) const STOPPED: u8 = 3;
const NOTE: Style = AnsiColor::Yellow.on_default();

/// The exit code for a prompt that was refused.
pub(super) const BLOCKED: u8 = 4;
/// The exit code for a guard that is bad, down, unproven or untrusted.
pub(super) const UNGUARDED: u8 = 5;
/// The exit code for a turn in which a call waits for a person.
pub(super) const WAITING: u8 = 75;
/// The exit code for a turn that somebody interrupted.
pub(super) const INTERRUPTED: u8 = 130;

/// How far in the rest of a line stands that does not fit.
const HANG: usize = 9;

/// How many guards that are armed have a line each at the head of a timeline.
const MAX_GUARDS: usize = 5;

const DIM: Style = Style::new().dimmed();

/// How long hooks and MCP servers may take before somebody who waits is told what for.
const SILENCE: Duration = Duration::from_secs(3);

/// Longest key of a session, in bytes: it stands in listings and on command lines.
const MAX_KEY_BYTES: usize = 256;

/// How often a session that is in use is looked at again, a second in all. A child that a killed program was just about
/// to start may keep its hold for a moment.
const MAX_LOOKS: u32 = 20;

/// How long to wait between two looks: a person does not feel it.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Opens the configuration that the command line asks for and says what is wrong with it. Its hooks and its MCP servers
/// are started.
pub(super) fn open(global: &Global, watchers: Vec<Arc<dyn Watcher>>) -> Result<Host, CliError> {
    let host = open_hooks(global, watchers)?;
    host.start_servers(&host.loaded.config);
    Ok(host)
}

/// The same without MCP servers.
pub(super) fn open_hooks(global: &Global, watchers: Vec<Arc<dyn Watcher>>) -> Result<Host, CliError> {
    let (env, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    for diagnostic in &loaded.diagnostics {
        terminal::warn(&prose(&diagnostic.to_string()));
    }
    for line in &loaded.left_out {
        terminal::warn(&prose(line));
    }
    let host = Host::open(env, loaded, watchers)?;
    for line in host.bad_rules() {
        terminal::warn(&prose(line));
    }
    Ok(host)
}

/// Waits for the MCP servers, so that the tools of `agent` are known, and tells of those that cannot be used.
///
/// # Errors
/// There is no such agent.
pub(super) async fn servers(host: &Host, agent: Option<&str>) -> Result<(), CliError> {
    // A name that nobody has is told at once.
    host.loaded.config.agent(agent)?;
    all_servers(host).await;
    Ok(())
}

/// The same for all agents.
pub(super) async fn all_servers(host: &Host) {
    let ready = host.servers_ready();
    tokio::pin!(ready);
    let down = match tokio::time::timeout(SILENCE, &mut ready).await {
        Ok(down) => down,
        Err(_elapsed) => {
            terminal::note("waiting for the MCP servers to start");
            ready.await
        }
    };
    for (name, why) in down {
        terminal::warn(&format!("MCP server \"{}\" cannot be used: {}", clean(&name), prose(&why)));
    }
    host.odd_tools().iter().for_each(|line| terminal::warn(&prose(line)));
}

/// Waits for the hooks, and refuses to go on if a guard cannot work and the user wants to know before the first turn.
/// How the guards stand, the worst first.
pub(super) async fn ready(host: &Host, strict: bool) -> Result<Vec<GuardHealth>, CliError> {
    let down: BTreeMap<String, Fault> = shaken(host).await.into_iter().collect();
    for (name, fault) in &down {
        terminal::warn(&format!("hook \"{}\" {}", clean(name), prose(&fault.explained().to_string())));
    }
    let standing = host.health(&down);
    let guards = standing.into_iter().filter(|(loaded, _)| guards(&loaded.hook));
    let mut guards: Vec<GuardHealth> = guards.map(|(loaded, health)| (loaded.hook.name.clone(), health)).collect();
    guards.sort_by_key(|(_, health)| health.severity());
    if !(strict || host.loaded.config.strict_start) {
        return Ok(guards);
    }
    if let Some(line) = pintle_host::links::second_names(&host.loaded).first() {
        let error = CliError { code: UNGUARDED, message: clean(line), hints: Vec::new() };
        return Err(error.hint("without --strict and strict_start the turn begins anyway"));
    }
    let bad = unfit(host, &guards);
    if bad.is_empty() {
        return Ok(guards);
    }
    let error = CliError {
        code: UNGUARDED,
        message: format!("guards that cannot work: {}", bad.join(", ")),
        hints: Vec::new(),
    };
    Err(error
        .hint("see `pintle doctor`; to begin all the same, leave out --strict or set `hooks.strict_start = false`"))
}

/// The guards with which a strict start does not go on, each once, however much is wrong with it; and why gates of the
/// store stay shut.
pub(super) fn unfit(host: &Host, guards: &[GuardHealth]) -> Vec<String> {
    let stopping = guards.iter().filter(|(_, health)| health.stops_a_strict_start());
    let found = host.loaded.diagnostics.iter().filter(|found| found.guard);
    let found = found.map(|found| hook_of(&host.loaded.config, &found.path).unwrap_or(&found.path));
    let named = stopping.map(|(name, _)| name.as_str()).chain(found);
    let mut unfit: Vec<String> = Vec::new();
    for name in named.chain(host.host_rules.unguarded.iter().map(String::as_str)) {
        if !unfit.iter().any(|known| known == name) {
            unfit.push(name.to_owned());
        }
    }
    unfit
}

/// The process hook that the key `path` is about.
fn hook_of<'a>(config: &'a Config, path: &str) -> Option<&'a str> {
    let names = config.hooks.iter().map(|loaded| loaded.hook.name.as_str());
    names.into_iter().find(|name| {
        let rest = path.strip_prefix(&dotted(&["hooks", "processes", *name]));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    })
}

/// A guard, and how it stands.
pub(super) type GuardHealth = (HookName, Health);

/// Whether a hook is there to stop tool calls.
fn guards(hook: &Hook) -> bool {
    [CheckpointKind::BeforeTool, CheckpointKind::ApproveTool].iter().any(|kind| hook.stages.get(*kind).is_some())
}

/// Waits for every process hook to shake hands or to fail, once; whoever waits for long is told for whom.
async fn shaken(host: &Host) -> Vec<(String, Fault)> {
    let ready = async { tokio::join!(host.ready(), host.host_rules.follow_team()).0 };
    tokio::pin!(ready);
    match tokio::time::timeout(SILENCE, &mut ready).await {
        Ok(down) => down,
        Err(_elapsed) => {
            let starting: Vec<String> = host.starting().iter().map(|name| clean(name)).collect();
            terminal::note(&format!("waiting for hooks to start: {}", starting.join(", ")));
            ready.await
        }
    }
}

/// The head of a timeline: how the guards stand, a line each for those that are not armed, and one for the others.
pub(super) fn head(guards: &[GuardHealth]) -> Vec<String> {
    let now = Timestamp::now();
    let line = |names: &str, words: &str| format!("  {DIM}guard{DIM:#}  {names}  {words}");
    let (armed, others): (Vec<_>, Vec<_>) = guards.iter().partition(|(_, health)| health.is_armed());
    let mut lines: Vec<String> = others
        .iter()
        .filter(|(_, health)| *health != Health::Disabled)
        .map(|(name, health)| line(&clean(name.as_str()), &format!("{NOTE}{}{NOTE:#}", prose(&health.words(now)))))
        .collect();
    if armed.len() <= MAX_GUARDS {
        lines.extend(armed.iter().map(|(name, health)| line(&clean(name.as_str()), &prose(&health.words(now)))));
    } else {
        lines.push(line(&format!("{} more", armed.len()), "armed; `pintle hooks list` says since when"));
    }
    lines
}

/// Prints the head of the timeline, unless nobody wants one.
pub(super) fn say_head(quiet: bool, guards: &[GuardHealth]) {
    if !quiet {
        let columns = columns(std::io::stderr());
        head(guards).iter().for_each(|line| terminal::note(&fold(line, columns, HANG)));
    }
}

/// Who works a conversation from now on.
#[derive(Clone, Copy)]
pub(super) struct WorkedBy<'a> {
    /// The agent.
    pub(super) agent: &'a AgentId,
    /// Whether a person said that it may be another one than before.
    pub(super) agent_changed: bool,
}

/// The refusal to send what was said to one agent to another one, whose model, tools and people it was not meant for.
fn anothers(key: &str, before: &AgentId, now: &AgentId) -> CliError {
    let (before, now) = (clean(before.as_str()), clean(now.as_str()));
    CliError::failed(format!(
        "session \"{}\" is a conversation with the agent \"{before}\", not with \"{now}\"",
        clean(key)
    ))
    .hint(format!("to go on with \"{before}\": `{}`", again(&[("--agent", Some(&before))])))
    .hint(format!("to send all that was said in it to \"{now}\": `{}`", again(&[("--agent-changed", None)])))
}

/// The session under `key`, new or stored, or a new one of a key of its own; taken for this process alone.
///
/// # Errors
/// The key cannot be one or is that of a sub-agent's session, it is another agent's conversation, another process
/// works on it, or the store cannot be read.
pub(super) fn conversation(host: &Host, key: Option<&str>, by: WorkedBy<'_>) -> Result<Conversation, CliError> {
    let mut before = None;
    let key = match key {
        None => format!("cli:{}", uuid::Uuid::new_v4()),
        Some(key) => {
            check_key(key)?;
            let rows = host.sessions.sessions(&tenant()).map_err(|error| CliError::failed(error.to_string()))?;
            let row = rows.iter().find(|row| row.session_id == key);
            before = row.map(|row| AgentId::from(row.agent_id.as_str())).filter(|before| before != by.agent);
            if let Some(parent) = row.and_then(|row| row.parent.as_deref()) {
                return Err(CliError::failed(format!("session \"{key}\" is that of a sub-agent"))
                    .hint(format!("go on with the session that started it: {}", word(parent))));
            }
            if let Some(before) = before.as_ref().filter(|_| !by.agent_changed) {
                return Err(anothers(key, before, by.agent));
            }
            key.to_owned()
        }
    };
    let key = SessionId::new(key);
    let mut opened = Conversation::open(host.sessions.clone(), key.clone());
    for _ in 0..MAX_LOOKS {
        if !matches!(opened, Err(StoreError::Conflict(_))) {
            break;
        }
        std::thread::sleep(LOOK_AGAIN);
        opened = Conversation::open(host.sessions.clone(), key.clone());
    }
    let opened = opened.map_err(|error| match error {
        StoreError::Conflict(why) => {
            let error = CliError::failed(why).hint("wait until it is done, or take another session with --session KEY");
            match host.store.is_shared() {
                true => error.hint(format!(
                    "if that process was killed, the session is free after at most {} s",
                    LEASE_TIME.as_secs()
                )),
                false => error,
            }
        }
        error @ (StoreError::Unavailable(_) | StoreError::Corrupt(_) | StoreError::NotFound(_)) => {
            CliError::failed(error.to_string())
        }
    })?;
    Ok(match before {
        Some(before) => opened.taken_from(before),
        None => opened,
    })
}

/// The tenant of the command line.
pub(super) fn tenant() -> TenantId {
    TenantId::default_tenant()
}

/// Refuses a key that nobody could type again.
fn check_key(key: &str) -> Result<(), CliError> {
    let bad = if key.trim().is_empty() {
        "it is empty".to_owned()
    } else if key.chars().any(char::is_control) {
        "it has control characters".to_owned()
    } else if key.len() > MAX_KEY_BYTES {
        format!("it is longer than {MAX_KEY_BYTES} bytes")
    } else {
        return Ok(());
    };
    Err(CliError::usage(format!("--session: the key of a session is a short name, and {bad}")))
}

/// What to type when a call of the session `key` waits for a person.
pub(super) fn next_steps(global: &Global, key: &str, approval: &Approval) -> Vec<String> {
    let flags = flags(global);
    vec![
        format!("  pintle approvals approve {}{flags}", approval.id),
        format!("  pintle approvals refuse {} --note \"why\"{flags}", approval.id),
        format!("  pintle sessions resume {}{flags}", word(key)),
    ]
}

/// The exit code of a turn, and what the user is told on stderr.
pub(super) fn verdict(report: &TurnReport) -> (u8, Option<String>) {
    match &report.ending {
        TurnEnding::Completed => (0, None),
        TurnEnding::Blocked(denied) => (BLOCKED, Some(prose(&denied.text()))),
        TurnEnding::Failed { text, .. } => (FAILED, Some(format!("Error processing message: {}", prose(text)))),
        TurnEnding::StoppedByHook(aborted) => {
            let text = prose(&aborted.text());
            let told = match aborted.abort.abort_scope {
                AbortScope::Turn => format!("Error processing message: {text}"),
                AbortScope::Run => text,
            };
            (STOPPED, Some(told))
        }
        TurnEnding::Cancelled => (INTERRUPTED, Some("interrupted".into())),
        TurnEnding::Waiting(approval) => (WAITING, Some(waits(approval))),
    }
}

/// What waits for a person, and why.
fn waits(approval: &Approval) -> String {
    let arguments = serde_json::to_string(&approval.arguments).unwrap_or_default();
    let call = clean(&format!("{} {arguments}", approval.tool));
    let why = if approval.reason.is_empty() { String::new() } else { format!(": {}", prose(&approval.reason)) };
    let changed = approval.changed_from.as_ref().map_or("", |_| "\nthe call changed since it was asked about before");
    let again = approval.again_because.as_ref().map(|why| format!("\n{}", prose(why))).unwrap_or_default();
    format!(
        "{NOTE}waiting for a person:{NOTE:#} {call}\nhook \"{}\" asks{why}{changed}{again}",
        clean(approval.by.as_str())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_goes_through_a_shell_as_it_is() {
        for (text, expected) in
            [("cli:a-1", "cli:a-1"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("", "''"), ("$HOME;x", "'$HOME;x'")]
        {
            assert_eq!(word(text), expected);
        }
    }

    #[test]
    fn a_key_is_a_short_name() {
        assert_eq!(check_key("work on läden"), Ok(()));
        for (key, why) in [(" ", "it is empty"), ("a\nb", "control"), (&*"x".repeat(257), "longer than 256 bytes")] {
            let error = check_key(key).unwrap_err();
            assert!(error.code == 2 && error.message.contains(why), "{error}");
        }
    }
}
