//! A hook that runs, and a daemon that is made up.

use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pintle_hook::frame::{self, DaemonAnswer, Question, Ruled};
use tempfile::TempDir;

pub(crate) const KEY: [u8; 32] = [5; 32];
pub(crate) const PAYLOAD: &str = r#"{"hook_event_name":"PreToolUse","tool_name":"Bash"}"#;

/// The places of one hook.
pub(crate) struct World {
    pub(crate) dir: TempDir,
}

/// What a hook left.
#[derive(Debug)]
pub(crate) struct Left {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) took: Duration,
}

impl World {
    pub(crate) fn new() -> Self {
        let world = Self { dir: tempfile::tempdir().unwrap() };
        fs::write(world.key(), KEY).unwrap();
        fs::set_permissions(world.key(), Permissions::from_mode(0o600)).unwrap();
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path("s")
    }

    pub(crate) fn key(&self) -> PathBuf {
        self.path("key")
    }

    /// The hook of Claude Code before a tool, which has `deadline_ms`.
    pub(crate) fn command(&self, deadline_ms: u64) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pintle-hook"));
        command.args(["--host", "claude", "--event", "PreToolUse", "--deadline", &deadline_ms.to_string()]);
        command.arg("--socket").arg(self.socket()).arg("--key-file").arg(self.key());
        command.current_dir(self.dir.path()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, deadline_ms: u64) -> Left {
        finish(self.command(deadline_ms).spawn().unwrap(), PAYLOAD.as_bytes())
    }

    /// Listens as a daemon that does `what` with the first who asks.
    pub(crate) fn daemon<T: Send + 'static>(
        &self,
        what: impl FnOnce(UnixStream) -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let listener = UnixListener::bind(self.socket()).unwrap();
        thread::spawn(move || what(listener.accept().unwrap().0))
    }
}

pub(crate) fn finish(mut child: Child, payload: &[u8]) -> Left {
    let began = Instant::now();
    let mut stdin = child.stdin.take().unwrap();
    // A hook that refuses early reads nothing.
    stdin.write_all(payload).ok();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    Left {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
        took: began.elapsed(),
    }
}

/// The bytes of the question.
pub(crate) fn asked(stream: &mut UnixStream) -> Vec<u8> {
    frame::read(stream).unwrap()
}

pub(crate) fn say(stream: &mut UnixStream, answer: &DaemonAnswer, question: &[u8]) {
    frame::write(stream, &answer.to_bytes(&KEY, question)).unwrap();
}

pub(crate) fn ruled(stdout: &str) -> DaemonAnswer {
    DaemonAnswer::Ruled(Ruled { exit: 0, stdout: stdout.into(), stderr: Vec::new() })
}

/// Waits until the hook goes away.
pub(crate) fn until_gone(stream: &mut UnixStream) {
    stream.read_to_end(&mut Vec::new()).unwrap_or_default();
}

/// The question in `bytes`.
pub(crate) fn question(bytes: &[u8]) -> Question {
    Question::of_bytes(bytes).unwrap()
}

/// Checks that the hook refused as it was built to, with nothing else on its standard output.
pub(crate) fn check_refused(left: &Left, why: &str) {
    assert_eq!(left.stdout, pintle_guard::panic_deny("claude", "PreToolUse"), "{left:?}");
    assert!(left.stdout.contains(r#""permissionDecision":"deny""#), "{left:?}");
    assert_eq!(left.code, Some(0), "{left:?}");
    assert!(left.stderr.contains(why), "{left:?}");
}

/// A file that only its owner may use.
pub(crate) fn own_file(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}
