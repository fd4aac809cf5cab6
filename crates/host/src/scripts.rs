//! Scripts of hooks, which this program itself runs as a worker.

use pintle_rule_runtime::Launcher;

use crate::SCRIPT_COMMAND;

/// This program as a worker for scripts.
pub(crate) fn launcher() -> Launcher {
    Launcher { program: "/proc/self/exe".into(), args: vec![SCRIPT_COMMAND.into()], vars: Vec::new() }
}

/// Says whether a script can be used, for whoever cannot wait in a runtime.
///
/// # Errors
/// The published message.
pub fn check_script(source: &str) -> Result<(), String> {
    pintle_rule_runtime::check_script(launcher(), source)
}
