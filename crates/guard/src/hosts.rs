//! The hosts, one file each.

use crate::host::{GuardHost, InstallScope};
use crate::panic::PanicRow;
use crate::unguarded::UnguardedStart;

pub mod claude;
pub mod cline;
pub mod codex;
pub mod copilot;
pub mod gemini;
pub mod kimi;
pub mod opencode;
pub mod pi;
mod plugin;
pub mod qwen;
mod shape;

/// All hosts, in the order in which tables show them.
pub const HOSTS: &[&GuardHost] = &[
    &claude::CLAUDE,
    &codex::CODEX,
    &gemini::GEMINI,
    &qwen::QWEN,
    &copilot::COPILOT,
    &kimi::KIMI,
    &cline::CLINE,
    &opencode::OPENCODE,
    &pi::PI,
];

/// The panic denies of all hosts, apart from their rows: the client needs nothing else of this crate.
const PANICS: &[PanicRow] = &[
    claude::PANIC,
    codex::PANIC,
    gemini::PANIC,
    qwen::PANIC,
    copilot::PANIC,
    kimi::PANIC,
    cline::PANIC,
    opencode::PANIC,
    pi::PANIC,
];

/// What starts each of them without its hooks.
pub(crate) const UNGUARDED: &[UnguardedStart] = &[
    claude::UNGUARDED,
    codex::UNGUARDED,
    gemini::UNGUARDED,
    qwen::UNGUARDED,
    copilot::UNGUARDED,
    kimi::UNGUARDED,
    cline::UNGUARDED,
    opencode::UNGUARDED,
    pi::UNGUARDED,
];

/// The host that `--host` calls `id`.
pub fn host(id: &str) -> Option<&'static GuardHost> {
    HOSTS.iter().find(|row| row.id == id).copied()
}

/// The row of `host` where its settings of `scope` are of another form than those of a person.
pub fn in_scope(host: &'static GuardHost, scope: InstallScope) -> &'static GuardHost {
    let is_machine = scope == InstallScope::System && host.id == codex::CODEX.id;
    if is_machine { &codex::MACHINE } else { host }
}

/// What the client of `host` prints where nothing is objected to.
pub fn no_objection(host: &str) -> Option<&'static str> {
    PANICS.iter().find(|row| row.host == host).map(|row| row.passes)
}

/// What the client of `host` prints at `event` when it has no answer; the exit code is 0. Empty where the event cannot
/// be denied: there the host goes on after silence, and so after anything else.
pub fn panic_deny(host: &str, event: &str) -> &'static str {
    PANICS.iter().find(|row| row.host == host).map_or("", |row| row.deny(event))
}
