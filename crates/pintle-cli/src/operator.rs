//! Commands that only a person may give: not the agent, and nothing that the agent started.
//!
//! Three things are asked for: a controlling terminal, which the `exec` tool does not give; no ancestor that is
//! Pintle, watches over a child of a host of agents, is a coding agent under guard, or is a command of `exec`; and no mark
//! of `exec` in the environment.
//! The second cannot be shaken off by clearing the environment or by forking away: whatever a child starts has the
//! child's adopter above it, and [`pintle_process::orphan_reaper`] ends what is left of one that was killed.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use pintle_process::child::ADOPTER_NAME;
use pintle_process::{INSIDE_EXEC, ProcessStat};

use crate::clean::styled;
use crate::error::CliError;
use crate::guard::kept_sessions::guarded;
use crate::guard::sessions::HostSession;

/// The exit code for an operator command that came from inside the agent or without a terminal.
const REFUSED: u8 = 5;

/// The controlling terminal of this process.
const TERMINAL: &str = "/dev/tty";

/// How many ancestors are looked at: a chain that is longer is not a person's.
const MAX_ANCESTORS: usize = 1000;

/// Longest environment of an ancestor that is searched for the mark, in bytes; the kernel allows a quarter of the
/// stack's limit, usually 2 MiB.
const MAX_ENVIRONMENT_BYTES: u64 = 8 << 20;

/// The home that this program was told.
static HOME: OnceLock<Option<PathBuf>> = OnceLock::new();

/// Keeps the folder that `--home` named: coding agents under guard are known there.
pub(crate) fn keep_home(named: Option<&Path>) {
    HOME.get_or_init(|| named.map(Path::to_owned));
}

/// Refuses unless a person gave this command.
///
/// # Errors
/// There is no controlling terminal, the agent is above this process, or nobody knows which agents run.
pub fn require() -> Result<(), CliError> {
    refuse_agents()?;
    open_terminal().map(drop)
}

/// Refuses where an agent is above this process. A script of a person's may go on without a terminal.
///
/// # Errors
/// The agent is above this process, or nobody knows which agents run.
pub fn refuse_agents() -> Result<(), CliError> {
    if std::env::var_os(INSIDE_EXEC).is_some() {
        return Err(refused("a command of the agent's `exec` tool started it"));
    }
    let agents = guarded(HOME.get().and_then(Option::as_deref))
        .map_err(|unknown| CliError { hints: unknown.hints, ..refused(&unknown.message) })?;
    agent_above(std::process::id(), &agents).map_or(Ok(()), |why| Err(refused(&why)))
}

/// Asks on the controlling terminal; only `y` and `yes` accept.
///
/// # Errors
/// There is no controlling terminal, or it cannot be read.
pub fn confirm(question: &str) -> Result<bool, CliError> {
    let mut terminal = open_terminal()?;
    let failed = |error: io::Error| CliError::failed(format!("the terminal cannot be used: {error}"));
    terminal.write_all(format!("{} [y/N] ", styled(question)).as_bytes()).map_err(failed)?;
    let mut line = String::new();
    BufReader::new(terminal).read_line(&mut line).map_err(failed)?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

fn open_terminal() -> Result<File, CliError> {
    File::options()
        .read(true)
        .write(true)
        .open(TERMINAL)
        .map_err(|_| refused("there is no controlling terminal").hint("run it in a terminal of your own"))
}

fn refused(why: &str) -> CliError {
    CliError { code: REFUSED, message: format!("only a person may do this, and {why}"), hints: Vec::new() }
}

/// Why an ancestor of `pid` shows that the agent, or one of the sessions `guarded`, is above it.
fn agent_above(pid: u32, guarded: &[HostSession]) -> Option<String> {
    let own = fs::metadata("/proc/self/exe").ok();
    let mut pid = parent(pid)?;
    for _ in 0..MAX_ANCESTORS {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        if is_pintle(&folder, own.as_ref()) {
            return Some(format!("process {pid}, which is Pintle, is above it"));
        }
        if let Some(host) = guarded.iter().find(|session| is_of(session, pid)) {
            return Some(format!(
                "process {pid}, the coding agent `{}` that is under guard, is above it (where that is no agent, somebody \
                 tried a hook below it: give the command in a terminal that it did not open)",
                host.host
            ));
        }
        if is_marked(&folder) {
            return Some(format!("process {pid}, a command of the agent's `exec` tool, is above it"));
        }
        match parent(pid) {
            Some(above) if above > 0 => pid = above,
            Some(_) | None => return None,
        }
    }
    Some("its ancestors have no end".to_owned())
}

/// Whether `pid` is the process of a coding agent, and not one that has its number by now.
fn is_of(session: &HostSession, pid: u32) -> bool {
    session.process.is_some_and(|(process, _)| process == pid) && session.runs()
}

/// Whether the process runs the same program as this one, or watches over a child of any program that hosts agents. Of
/// a host that hides its own files only the name is seen.
fn is_pintle(folder: &Path, own: Option<&fs::Metadata>) -> bool {
    let is_called = |name: &[u8]| fs::read(folder.join("comm")).is_ok_and(|own| own.trim_ascii_end() == name);
    if is_called(ADOPTER_NAME.to_bytes()) {
        return true;
    }
    match (fs::metadata(folder.join("exe")), own) {
        (Ok(theirs), Some(own)) => (theirs.dev(), theirs.ino()) == (own.dev(), own.ino()),
        (Ok(_), None) => false,
        (Err(_), _) => is_called(b"pintle"),
    }
}

/// Whether the process was started with the mark that every command of `exec` finds in its environment.
fn is_marked(folder: &Path) -> bool {
    let Ok(environ) = File::open(folder.join("environ")) else { return false };
    let mut environ = BufReader::new(io::Read::take(environ, MAX_ENVIRONMENT_BYTES));
    let mut variable = Vec::new();
    while environ.read_until(0, &mut variable).is_ok_and(|read| read > 0) {
        let name = variable.split(|byte| *byte == b'=').next().unwrap_or_default();
        if name == INSIDE_EXEC.as_bytes() {
            return true;
        }
        variable.clear();
    }
    false
}

/// The process that started `pid`, or that adopted it.
fn parent(pid: u32) -> Option<u32> {
    Some(ProcessStat::of(pid)?.parent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_process::child::Launch;
    use std::process::{Command, Stdio};

    /// A process that waits for its input to end.
    struct Waiting(std::process::Child);

    impl Drop for Waiting {
        fn drop(&mut self) {
            drop(self.0.kill().and_then(|()| self.0.wait()));
        }
    }

    fn waiting(marked: bool) -> Waiting {
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped()).env_clear().env("A", "x=PINTLE_INSIDE_EXEC=1");
        if marked {
            command.env(INSIDE_EXEC, "1");
        }
        Waiting(command.spawn().unwrap())
    }

    #[test]
    fn a_command_of_exec_is_known_by_its_first_environment() {
        for marked in [true, false] {
            let child = waiting(marked);
            let folder = PathBuf::from(format!("/proc/{}", child.0.id()));
            assert_eq!(is_marked(&folder), marked);
            assert!(!is_pintle(&folder, fs::metadata("/proc/self/exe").ok().as_ref()));
            assert_eq!(parent(child.0.id()), Some(std::process::id()));
        }
        assert!(is_pintle(Path::new("/proc/self"), fs::metadata("/proc/self/exe").ok().as_ref()));
    }

    #[tokio::test]
    async fn what_another_host_of_agents_started_has_a_known_process_above() {
        let argv = ["/bin/cat".into()].to_vec();
        let launch = Launch { argv, dir: None, vars: Vec::new() };
        let (mut child, pipes) = pintle_process::child::Child::start(&launch).await.unwrap();
        let adopter = PathBuf::from(format!("/proc/{}", parent(child.id()).unwrap()));
        // Whatever program the host runs, which is this one here.
        assert!(is_pintle(&adopter, None));
        assert!(!is_pintle(Path::new("/proc/self"), None));
        drop(pipes);
        child.ended().await;
        child.end_all().await;
    }

    #[test]
    fn a_child_of_this_program_has_it_above() {
        let child = waiting(false);
        let expected = format!("process {}, which is Pintle, is above it", std::process::id());
        assert_eq!(agent_above(child.0.id(), &[]), Some(expected));
    }
}
