//! How commands end: by signals, without anybody who reads, and what is left of them then.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};

use super::env::{PINTLE, TestEnv};
use super::run::{DONE, LISTS, scripted};

/// A hook that cannot start, which is logged.
const GONE: &str = "[hooks.processes.gone]\nenabled = true\ncommand = ['no-such-program']\nintercept = ['before_tool']\n\
                    timeout_ms = 100\n";

/// A hook that says what nobody asked for, which is logged.
const NOISY: &str = "[hooks.processes.noisy]\nenabled = true\nintercept = ['before_llm']\npair = false\n\
                     command = ['sh', 'noisy.sh']\n";

const TICKS: &str = r#"yes tick | head -n 200
id=1
while read -r line; do
  echo "{\"id\":$id,\"result\":{}}"
  id=$((id + 1))
done
"#;

fn troubled() -> TestEnv {
    let env = scripted(&format!("{LISTS},{LISTS},{DONE}"), &format!("{GONE}{NOISY}"));
    env.write("config/pintle/noisy.sh", TICKS);
    env
}

/// A stream whose reader is gone.
fn unread() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

#[test]
fn a_lost_stderr_ends_nothing() {
    for lost in [unread, full] {
        let env = troubled();
        let mut run = env.command(PINTLE);
        run.args(["run", "hello"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(lost());
        let output = run.spawn().unwrap().wait_with_output().unwrap();
        assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stdout).as_ref()), (Some(0), "All done.\n"));
    }
}

#[test]
fn the_same_fact_is_told_once() {
    let env = troubled();
    for args in [&["run", "--quiet", "hello"][..], &["run", "--json", "hello"]] {
        let seen = env.pintle(args);
        assert_eq!(seen.err.matches("no-such-program").count(), 1, "{}", seen.err);
        assert!(!seen.err.contains("the hook is"), "{}", seen.err);
        assert_eq!(seen.err.matches("tick").count(), 10, "5 lines, each with its reason: {}", seen.err);
        assert!(seen.err.contains("further lines of this child answered nothing hook=noisy more=195"), "{}", seen.err);
    }
}

#[test]
fn help_that_nobody_reads_is_no_mistake() {
    let env = TestEnv::new();
    for (stdout, code) in [(unread(), 0), (full(), 1)] {
        let mut help = env.command(PINTLE);
        let output = help.arg("--help").stdout(stdout).stderr(Stdio::piped()).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{err}");
        assert_eq!(err.contains("error: stdout cannot be written"), code == 1, "{err}");
    }
    assert_eq!(env.pintle(&["--nonsense"]).code, Some(2));
}

/// A turn in which a command runs, and a pipe that is held open for as long as any part of it is there.
struct Working {
    _env: TestEnv,
    child: Child,
    held: BufReader<File>,
}

impl Working {
    fn begin(command: &str) -> Self {
        let shell = "exec 9>held; sh -c 'echo here >&9; sleep 977; true'; true";
        let call = pintle_domain::json::json!({"tool_calls": [{"name": "exec", "arguments": {"command": shell}}]});
        let env = scripted(&format!("{call},{DONE}"), "tools = ['exec']\n");
        mkfifo(&env.path("here/held"), Mode::S_IRWXU).unwrap();
        let mut pintle = env.command(PINTLE);
        pintle.args([command, "--quiet"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = pintle.spawn().unwrap();
        std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"hello\n").unwrap();
        if command == "run" {
            drop(child.stdin.take());
        }
        let mut held = BufReader::new(File::open(env.path("here/held")).unwrap());
        let mut line = String::new();
        held.read_line(&mut line).unwrap();
        assert_eq!(line, "here\n");
        Self { _env: env, child, held }
    }

    /// Sends `signal`, and waits until nothing of the command is left.
    fn end(mut self, signal: Signal) -> std::process::ExitStatus {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), signal).unwrap();
        let status = self.child.wait().unwrap();
        self.held.read_to_end(&mut Vec::new()).unwrap();
        status
    }
}

#[test]
fn a_signal_ends_the_turn_and_the_command_in_it() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        assert_eq!(Working::begin("run").end(signal).code(), Some(130), "{signal}");
    }
    assert_eq!(Working::begin("chat").end(Signal::SIGTERM).code(), Some(130));
}

#[test]
fn a_killed_host_takes_its_command_along() {
    for command in ["run", "chat"] {
        assert_eq!(Working::begin(command).end(Signal::SIGKILL).signal(), Some(9));
    }
}
