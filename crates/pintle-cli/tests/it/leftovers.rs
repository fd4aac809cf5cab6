//! Nothing that a command of the agent has started outlives its call, and nothing the program.

use std::process::Stdio;
use std::time::{Duration, Instant};

use pintle_testkit::leftovers::{self, WAYS, alive};

use super::env::{PINTLE, TestEnv};
use super::run::scripted;

/// A bound for what must happen: only a failing test ever waits that long.
const LONG: Duration = Duration::from_secs(60);

const EXEC: &str = "tools = ['exec']\n";

/// A number that stands in the command lines of one test alone.
fn mark() -> String {
    uuid::Uuid::new_v4().as_u128().to_string()
}

/// An agent that runs each of these commands once, in one turn.
fn running(commands: &[String]) -> TestEnv {
    let calls: Vec<_> = commands
        .iter()
        .map(|command| pintle_domain::json::json!({"name": "exec", "arguments": {"command": command, "timeout_s": 5}}))
        .collect();
    let asks = pintle_domain::json::json!({ "tool_calls": calls });
    scripted(&format!("{asks}, {}", super::run::DONE), EXEC)
}

/// Waits until nobody with `mark` is left, and says who is after all.
fn left_in_the_end(mark: &str) -> Vec<String> {
    let bound = Instant::now() + LONG;
    loop {
        let left = alive(mark);
        if left.is_empty() || Instant::now() > bound {
            return left;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_call_of_exec_leaves_nobody() {
    let (mark, env) = (mark(), TestEnv::new());
    let text = |(number, (_, way)): (usize, &(&str, &str))| {
        let folder = env.path(&format!("ways/{number}"));
        std::fs::create_dir_all(&folder).unwrap();
        // The call after it looks for what it has left.
        [leftovers::text(way, &folder, &mark, "echo gone"), format!("ps -eo args | grep '[1]000.{mark}' >>LEFT")]
    };
    let commands: Vec<String> = WAYS.iter().enumerate().flat_map(text).collect();
    let left = env.path("left").display().to_string();
    let commands: Vec<String> = commands.iter().map(|command| command.replace("LEFT", &left)).collect();
    let agent = running(&commands);
    let seen = agent.pintle(&["run", "go"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "All done.\n"), "{}", seen.err);
    assert_eq!(std::fs::read_to_string(left).unwrap(), "", "{}", seen.err);
    assert_eq!(alive(&mark), Vec::<String>::new());
}

#[test]
fn a_killed_program_leaves_nobody() {
    for (name, way) in WAYS {
        let (mark, env) = (mark(), TestEnv::new());
        let text = leftovers::text(way, &env.path(""), &mark, "trap '' TERM; while :; do sleep 1000; done");
        let agent = running(&[text]);
        let mut command = agent.command(PINTLE);
        let mut program = command
            .args(["run", "go"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let bound = Instant::now() + LONG;
        while !env.path("up").exists() {
            assert!(Instant::now() < bound, "{name}: it never came up");
            std::thread::yield_now();
        }
        program.kill().unwrap();
        program.wait().unwrap();
        assert_eq!(left_in_the_end(&mark), Vec::<String>::new(), "{name}");
    }
}

/// A command can kill or stop what watches over it, as anything of the same user. The program is behind that.
#[test]
fn whoever_kills_what_watches_over_it_leaves_nobody_either() {
    let (mark, env) = (mark(), TestEnv::new());
    let texts = ["kill -KILL $PPID; sleep 1000", "kill -STOP $PPID; exit 0", "kill -TERM $PPID; exit 0"];
    let commands = texts.map(|end| leftovers::text("setsid ./left &", &env.path(""), &mark, end));
    let agent = running(&commands);
    let seen = agent.pintle(&["run", "go"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "All done.\n"), "{}", seen.err);
    assert_eq!(alive(&mark), Vec::<String>::new());
}
