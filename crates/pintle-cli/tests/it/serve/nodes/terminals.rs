//! A terminal on the PostgreSQL of the nodes: a session of a program that was killed is free after its lease.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pintle_testkit::postgres::Server as Database;

use crate::env::PINTLE;
use crate::run::scripted;

/// How long a lease lasts, and the time of a busy machine to start a program.
const FREE_AFTER: Duration = Duration::from_secs(10 + 20);

#[test]
fn after_a_kill_it_is_said_when_the_session_is_free() {
    let database = Database::start();
    let slow = r#"{"text": ["a", "b"], "delay_ms": 600000}, {"text": "free", "repeat": true}"#;
    let env = scripted(slow, &format!("[store]\nurl = '{}'\n", database.fresh_database()));
    let mut command = env.command(PINTLE);
    command.args(["run", "--session", "s", "hello"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("→ model")), "it waits for its model");
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGKILL).unwrap();
    child.wait().unwrap();
    let killed = Instant::now();

    let seen = env.pintle(&["run", "--session", "s", "again"]);
    assert_eq!(seen.code, Some(1), "{seen:?}");
    assert!(seen.err.contains("session \"s\" is in use by"), "{seen:?}");
    let said = "if that process was killed, the session is free after at most [time]";
    assert!(seen.err.contains(said), "{seen:?}");
    // A script is played from its beginning by every program, so nobody goes on with it here.
    loop {
        let seen = env.pintle(&["sessions", "list"]);
        if !seen.out.contains("in use by") {
            break;
        }
        assert!(killed.elapsed() < FREE_AFTER, "{seen:?}");
    }
}
