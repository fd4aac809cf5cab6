//! Starts the daemon where none listens, from what the installation wrote beside the key.
//!
//! The file `start` beside the key file holds the program, its words and its whole environment, so that nothing of the
//! hook's own environment counts: a project's settings can set that.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use nix::fcntl::{Flock, FlockArg, OFlag};

use crate::key::{self, NEVER_WAITS};
use crate::waiting::Waiting;

/// The name of the file that says how the daemon is started, beside the key file.
pub const START_FILE: &str = "start";

/// The name of the file whose age says when a hook last started a daemon.
const MARK_FILE: &str = "started";

/// The name of the file in which a daemon that a hook started writes what it has to say, beside the key file.
pub const LOG_FILE: &str = "log";

/// How long after a start nobody starts another one: a daemon that ends at once must not be started for every call.
const EVERY: Duration = Duration::from_secs(2);

/// How long a daemon that was started is waited for: a release listens after some 10 ms, and whoever waits holds the agent
/// up. A debug build on a busy machine was seen to need half a second.
const WAIT: Duration = if cfg!(debug_assertions) { Duration::from_secs(3) } else { Duration::from_millis(150) };

/// How often a hook looks whether the daemon listens.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(3);

/// Longest file that says how the daemon is started, in bytes; an environment with a long path takes some thousands.
const MAX_START_BYTES: u64 = 1 << 20;

/// The socket, the key and the start of one daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundDaemon {
    /// Where it listens.
    pub socket: PathBuf,
    /// The file with its key.
    pub key_file: PathBuf,
    /// How it is started where nothing beside the key says so.
    pub first: Option<Start>,
}

/// How the daemon is started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// The program and its words.
    pub argv: Vec<String>,
    /// Its whole environment.
    pub env: Vec<(String, String)>,
}

impl Start {
    /// As it is kept: each word, an empty one, each variable; a zero byte behind each.
    pub fn to_bytes(&self) -> Vec<u8> {
        let words = self.argv.iter().cloned().chain([String::new()]);
        let variables = self.env.iter().map(|(name, value)| format!("{name}={value}"));
        words.chain(variables).flat_map(|text| [text.into_bytes(), vec![0]].concat()).collect()
    }

    /// As it was kept.
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut parts = text.strip_suffix('\0')?.split('\0');
        let argv: Vec<String> = parts.by_ref().take_while(|word| !word.is_empty()).map(str::to_owned).collect();
        let variable = |text: &str| text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        let env = parts.map(variable).collect::<Option<_>>()?;
        (!argv.is_empty()).then_some(Self { argv, env })
    }

    /// From the file in which it is kept.
    pub(crate) fn read(kept: File) -> io::Result<Self> {
        let mut bytes = Vec::new();
        kept.take(MAX_START_BYTES).read_to_end(&mut bytes)?;
        Self::of_bytes(&bytes).ok_or_else(|| io::Error::other("it does not say how the daemon is started"))
    }
}

/// Starts `daemon`, unless somebody did just now.
///
/// # Errors
/// Nothing says how, or it cannot be started.
pub(crate) fn start(daemon: &FoundDaemon) -> io::Result<()> {
    let folder = daemon.key_file.parent().unwrap_or(Path::new("/"));
    let mut options = File::options();
    let mark = options.create(true).truncate(false).write(true).custom_flags(NEVER_WAITS.bits());
    let mark = mark.open(folder.join(MARK_FILE))?;
    // Whoever holds it starts one now.
    let Ok(mark) = Flock::lock(mark, FlockArg::LockExclusiveNonblock) else { return Ok(()) };
    let metadata = mark.metadata()?;
    let is_recent = metadata.len() > 0 && metadata.modified()?.elapsed().is_ok_and(|ago| ago < EVERY);
    if is_recent {
        return Ok(());
    }
    let start = match &daemon.first {
        Some(first) => first.clone(),
        None => Start::read(key::own(&folder.join(START_FILE))?)?,
    };
    // Of no length: nobody has started one yet.
    mark.set_len(1)?;
    mark.set_modified(SystemTime::now())?;
    // Nothing that this process leaves may hold the standard output that the host reads to its end. The daemon makes a
    // session of its own, and nobody waits for it: it is init's when this process has ended.
    Command::new(&start.argv[0])
        .args(&start.argv[1..])
        .env_clear()
        .envs(start.env)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log(folder).map_or_else(|_| Stdio::null(), Stdio::from))
        .spawn()
        .map(drop)
}

/// Where the daemon writes what it has to say: for its user alone, behind what is there. The daemon keeps it small.
fn log(folder: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).append(true).mode(0o600).custom_flags((OFlag::O_NOFOLLOW | NEVER_WAITS).bits());
    options.open(folder.join(LOG_FILE))
}

/// Whether nobody listens at all. Somebody else who does is another matter.
pub(crate) fn is_away(error: &io::Error) -> bool {
    [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused].contains(&error.kind())
}

/// Tries `connect` until the daemon that was started listens.
///
/// # Errors
/// It does not, or nobody waits any more.
pub(crate) fn wait(waiting: &Waiting, connect: impl Fn() -> io::Result<UnixStream>) -> io::Result<UnixStream> {
    let began = Instant::now();
    loop {
        match connect() {
            Err(error) if is_away(&error) && began.elapsed() < WAIT => {
                waiting.pause(LOOK_EVERY)?;
            }
            connected => return connected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_the_daemon_is_started_is_kept_whole() {
        let start = Start {
            argv: vec!["/usr/bin/pintle".into(), "guard".into(), "a b\nc".into()],
            env: vec![("PATH".into(), "/bin".into()), ("EMPTY".into(), String::new()), ("EQ".into(), "a=b".into())],
        };
        assert_eq!(Start::of_bytes(&start.to_bytes()), Some(start));
        for bad in [&b""[..], b"\0", b"x", b"a\0\0noequals\0"] {
            assert_eq!(Start::of_bytes(bad), None, "{bad:?}");
        }
    }
}
