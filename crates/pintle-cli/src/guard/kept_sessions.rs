//! The sessions that a daemon kept, for whoever asks beside it: which agents run, or that nobody knows.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use pintle_host::config::Env;

use super::host_files::opened;
use super::places::{SESSIONS_FILE, folder_of};
use super::sessions::HostSession;
use crate::error::CliError;

/// The sessions that a daemon kept in `folder`; none where none did.
///
/// # Errors
/// Its file cannot be read, or is damaged: which agents run is unknown then.
pub(crate) fn kept(folder: &Path) -> Result<Vec<HostSession>, CliError> {
    let file = folder.join(SESSIONS_FILE);
    let sessions = |mut opened: File| -> io::Result<Vec<HostSession>> {
        let mut bytes = Vec::new();
        opened.read_to_end(&mut bytes)?;
        Ok(serde_json::from_slice(&bytes)?)
    };
    let read = opened(&file).and_then(|found| found.map_or(Ok(Vec::new()), sessions));
    read.map_err(|error| {
        let message = format!("nobody knows which agents run under guard: {} cannot be read: {error}", file.display());
        CliError::failed(message).hint("end all agents under guard, then remove that file")
    })
}

/// The sessions whose hosts a daemon of the home `named` (`--home`) guards, or of the usual one.
///
/// # Errors
/// There is no home, or what its daemon kept is unknown.
pub(crate) fn guarded(named: Option<&Path>) -> Result<Vec<HostSession>, CliError> {
    kept(&folder_of(&Env::of_process()?, named)?)
}

/// The processes of the agents that a daemon of the home `named` guards, or of the usual one, as far as they run.
///
/// # Errors
/// Why they are unknown.
pub(crate) fn running_agents(named: Option<&Path>) -> Result<Vec<(u32, u64)>, CliError> {
    let sessions = guarded(named)?;
    Ok(sessions.iter().filter(|session| session.runs()).filter_map(|session| session.process).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use nix::sys::stat::Mode;
    use nix::unistd::mkfifo;

    use super::*;

    #[test]
    fn a_file_that_cannot_be_read_is_not_taken_for_no_sessions() {
        let dir = tempfile::tempdir().unwrap();
        assert!(kept(dir.path()).unwrap().is_empty());
        let file = dir.path().join(SESSIONS_FILE);
        fs::write(&file, "[]").unwrap();
        assert!(kept(dir.path()).unwrap().is_empty());
        for damaged in ["", "[", "{}", "[{\"session\": \"claude:s\"}]"] {
            fs::write(&file, damaged).unwrap();
            let why = kept(dir.path()).unwrap_err();
            assert!(why.message.contains(&file.display().to_string()), "{damaged}: {why}");
        }
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert!(kept(dir.path()).is_err());
        // Whoever waited for the other end of a pipe would wait for ever.
        fs::remove_dir(&file).unwrap();
        mkfifo(&file, Mode::S_IRWXU).unwrap();
        assert!(kept(dir.path()).unwrap_err().message.contains("not a regular file"));
    }
}
