//! A daemon that guards for a test, and hooks that ask it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::env::{BEFORE_TOOL, PINTLE, TestEnv, answering};

/// A deadline that no answer of these tests comes near, in milliseconds.
pub(super) const LONG: u64 = 60_000;

/// Runs its arguments.
pub(super) const AGENT: &str = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)";

/// How long something is waited for that comes soon.
const PATIENCE: Duration = Duration::from_secs(60);

/// A daemon, ended when it is dropped.
pub(crate) struct Door {
    pub(crate) env: TestEnv,
    pub(crate) daemon: Child,
}

impl Drop for Door {
    fn drop(&mut self) {
        self.daemon.kill().ok();
        self.daemon.wait().ok();
    }
}

/// The hook, which is built beside the program.
pub(super) fn hook_program() -> PathBuf {
    let program = PathBuf::from(PINTLE).with_file_name("pintle-hook");
    assert!(program.exists(), "build it first: cargo build -p pintle-hook");
    program
}

/// A configuration with a hook that refuses calls whose line fits `pattern`.
pub(super) fn refusing(env: &TestEnv, pattern: &str) {
    let result = r#"{"action":"deny_tool","reason":"history is not ours to rewrite"}"#;
    let guard = env.write("config/pintle/guard.sh", &answering(&format!("{BEFORE_TOOL}{pattern}"), result));
    env.user_config(&format!(
        "[hooks.processes.keep-history]\nenabled = true\ncommand = ['sh', '{}']\nintercept = ['before_tool']\n",
        guard.display()
    ));
}

impl Door {
    pub(crate) fn open(env: TestEnv) -> Self {
        Self::serving(env, &[]).0
    }

    /// Ends the daemon, and starts another one with the same home.
    pub(crate) fn again(mut self) -> Self {
        self.daemon.kill().unwrap();
        self.daemon.wait().unwrap();
        Self::open(std::mem::replace(&mut self.env, TestEnv::new()))
    }

    /// With a model door besides, and where that is.
    pub(super) fn with_models(env: TestEnv) -> (Self, String) {
        let (door, address) = Self::serving(env, &["--http", "127.0.0.1:0"]);
        (door, address.expect("the model door says where it is"))
    }

    /// Which lets agents change their own settings.
    pub(super) fn with_self_edit(env: TestEnv) -> Self {
        Self::serving(env, &["--allow-self-edit"]).0
    }

    /// Where the agents of `bin` are on its path.
    pub(super) fn among_agents(env: TestEnv) -> Self {
        let path = format!("{}:{}", env.path("bin").display(), std::env::var("PATH").unwrap());
        let mut command = env.command(PINTLE);
        command.env("PATH", path);
        Self::launched(env, (command, &[])).0
    }

    fn serving(env: TestEnv, more: &[&str]) -> (Self, Option<String>) {
        let command = env.command(PINTLE);
        Self::launched(env, (command, more))
    }

    fn launched(env: TestEnv, (mut command, more): (Command, &[&str])) -> (Self, Option<String>) {
        command.args(["guard", "serve"]).args(more).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut door = Self { env, daemon: command.spawn().unwrap() };
        let has_models = more.contains(&"--http");
        let stderr = BufReader::new(door.daemon.stderr.take().unwrap());
        let (listens, heard) = mpsc::channel();
        // What it says is read to its end: nobody who is not heard goes on.
        thread::spawn(move || {
            let mut is_heard = false;
            for line in stderr.lines().map_while(Result::ok) {
                println!("daemon: {line}");
                if let Some((_, address)) = line.split_once("model door at http://") {
                    listens.send(address.strip_suffix("/door").map(str::to_owned)).ok();
                }
                if line.contains("guarding at") && !has_models && !is_heard {
                    is_heard = true;
                    listens.send(None).ok();
                }
            }
        });
        let address = heard.recv_timeout(PATIENCE).expect("the daemon listens");
        (door, address)
    }

    pub(super) fn folder(&self) -> PathBuf {
        self.env.path("data/pintle/guard")
    }

    /// The hook of Claude Code at `event`.
    pub(super) fn command(&self, event: &str, deadline_ms: u64) -> Command {
        // The agent: a process of its own, so that whoever answers in these tests is not below it.
        let mut command = self.env.command("python3");
        command.args(["-c", AGENT]).arg(hook_program());
        command.args(["--host", "claude", "--event", event, "--deadline", &deadline_ms.to_string()]);
        command.arg("--socket").arg(self.folder().join("guard.sock"));
        command.arg("--key-file").arg(self.folder().join("key"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// The words of the hook of `host` at `event`.
    pub(super) fn words(&self, host: &str, event: &str) -> Vec<String> {
        let folder = self.folder();
        let at = |name: &str| folder.join(name).display().to_string();
        let words = [
            ("--host", host.to_owned()),
            ("--event", event.to_owned()),
            ("--deadline", LONG.to_string()),
            ("--socket", at("guard.sock")),
            ("--key-file", at("key")),
        ];
        let words = words.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]);
        std::iter::once(hook_program().display().to_string()).chain(words).collect()
    }

    /// What the hook of `host` prints at `event` with `payload`.
    pub(super) fn asked(&self, host: &str, event: &str, payload: &Value) -> String {
        let mut command = self.env.command("python3");
        command.args(["-c", AGENT]).args(self.words(host, event));
        let seen = self.env.run(&mut command, &payload.to_string());
        assert_eq!(seen.code, Some(0), "{seen}");
        seen.out
    }

    /// Starts a hook with `payload`.
    pub(super) fn ask(&self, deadline_ms: u64, payload: &Value) -> Child {
        let event = payload["hook_event_name"].as_str().unwrap();
        let mut child = self.command(event, deadline_ms).spawn().unwrap();
        child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
        child
    }

    /// What the host gets for `payload`.
    pub(crate) fn told(&self, payload: &Value) -> Value {
        document(&self.ask(LONG, payload).wait_with_output().unwrap())
    }

    /// An event of the session `s`, which works in `here`.
    pub(crate) fn event(&self, name: &str, more: &Value) -> Value {
        let mut event = json!({
            "session_id": "s", "transcript_path": "/nowhere", "cwd": self.env.path("here"), "prompt_id": "p1",
            "permission_mode": "bypassPermissions", "hook_event_name": name,
        });
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    }

    /// A call of the shell.
    pub(crate) fn shell(&self, id: &str, command: &str) -> Value {
        let more =
            json!({"tool_name": "Bash", "tool_use_id": id, "tool_input": {"command": command, "description": "x"}});
        self.event("PreToolUse", &more)
    }
}

/// The only document that a hook printed.
pub(super) fn document(output: &Output) -> Value {
    let stdout = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Why a call was refused.
pub(crate) fn refusal(told: &Value) -> &str {
    let said = &told["hookSpecificOutput"];
    assert_eq!(said["permissionDecision"], "deny", "{told}");
    said["permissionDecisionReason"].as_str().unwrap()
}

/// Waits until `look` finds something.
pub(crate) fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "it does not come");
        std::thread::sleep(Duration::from_millis(20));
    }
}
