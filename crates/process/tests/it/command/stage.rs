//! The stage on which commands perform: a folder, an environment, runs.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use pintle_engine::deadlines::Deadlines;
use pintle_process::command::{CommandResult, CommandSpec, RunLimit};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A bound for what must happen: only a failing test ever waits that long.
pub(super) const LONG: Duration = Duration::from_secs(60);

pub(super) struct Stage {
    pub(super) folder: tempfile::TempDir,
    pub(super) tasks: TaskTracker,
    pub(super) cancel: CancellationToken,
    pub(super) deadlines: Deadlines,
}

impl Stage {
    pub(super) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            tasks: TaskTracker::new(),
            cancel: CancellationToken::new(),
            deadlines: Deadlines::default(),
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn spec(&self, command: &str) -> CommandSpec {
        CommandSpec::new(command.to_owned(), self.folder.path().to_owned(), env())
    }

    /// So much time, by the clock of this stage.
    pub(super) fn limit(&self, time: Duration) -> RunLimit<'_> {
        RunLimit { time, deadlines: &self.deadlines }
    }

    /// Runs `command` with this payload and a generous deadline.
    pub(super) async fn run_with(&self, command: &str, payload: impl Into<Bytes>) -> CommandResult {
        self.spec(command).run(payload.into(), self.limit(LONG), &self.cancel, &self.tasks).await
    }

    pub(super) async fn run(&self, command: &str) -> CommandResult {
        self.run_with(command, "{}").await
    }

    /// A pipe with a name, in which a command can say where it is.
    pub(super) fn fifo(&self, name: &str) {
        nix::unistd::mkfifo(&self.path(name), nix::sys::stat::Mode::S_IRWXU).unwrap();
    }

    /// The first line that is written into the pipe `name`, and, behind it, the wait until nobody holds it open.
    pub(super) fn line(&self, name: &str) -> JoinHandle<(String, impl FnOnce() -> String + Send + use<>)> {
        let path = self.path(name);
        tokio::task::spawn_blocking(move || {
            let mut pipe = BufReader::new(OpenOptions::new().read(true).open(path).unwrap());
            let mut line = String::new();
            pipe.read_line(&mut line).unwrap();
            let rest = move || {
                let mut rest = String::new();
                pipe.read_to_string(&mut rest).unwrap();
                rest
            };
            (line.trim().to_owned(), rest)
        })
    }

    /// Waits until everything that was to be cleaned up is.
    pub(super) async fn cleaned(&self) {
        self.tasks.close();
        tokio::time::timeout(LONG, self.tasks.wait()).await.expect("it does not take that long");
    }
}

/// What a command needs to find its programs.
pub(super) fn env() -> Vec<(OsString, OsString)> {
    vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())]
}

/// Whether nothing is left of the group of the process `leader`. What was killed may take a moment to vanish, and the
/// dead whom others inherit are theirs to bury.
pub(super) fn is_gone(leader: &str) -> bool {
    let bound = Instant::now() + LONG;
    while is_there(leader) {
        if Instant::now() > bound {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

fn is_there(leader: &str) -> bool {
    let (leader, own) = (leader.parse::<u32>().unwrap().to_string(), std::process::id().to_string());
    let is_left = |stat: &str| {
        // `pid (name) state parent group …`, and the name may hold anything.
        let mut fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
        let (state, parent, group) = (fields.next().unwrap(), fields.next().unwrap(), fields.next().unwrap());
        group == leader && (parent == own || !matches!(state, "Z" | "X"))
    };
    let processes = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path().join("stat"));
    // Whoever is not a process, or none any more, has nothing to read.
    processes.filter_map(|stat| std::fs::read_to_string(stat).ok()).any(|stat| is_left(&stat))
}

pub(super) fn text(bytes: &Bytes) -> &str {
    std::str::from_utf8(bytes).unwrap()
}
