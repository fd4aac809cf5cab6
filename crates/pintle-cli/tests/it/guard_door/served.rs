//! The hook door of a gateway: hooks ask `pintle serve` where that runs.

use std::fs::{self, Permissions};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::asks::waiting;
use super::door::{Door, LONG, document, refusal, wait_for};
use super::install::{pintle, with_claude};
use crate::env::{BEFORE_TOOL, PINTLE, TestEnv, answering};
use crate::run::{DONE, scripted};

/// How long a line is waited for that comes soon.
const PATIENCE: Duration = Duration::from_secs(60);

/// A gateway that ends as soon as it is told.
const GATEWAY: &str = "[gateway]\ndrain_delay_s = 0\n";

/// Has a hook in `env` that refuses forced pushes, and says what it was started with as `MARK`.
fn marking(env: &TestEnv) {
    let result = r#"{"action":"deny_tool","reason":"history stays, MARK='"${MARK:-none}"'"}"#;
    let guard = env.write("config/pintle/guard.sh", &answering(&format!("{BEFORE_TOOL}*--force*"), result));
    env.user_config(&format!(
        "{GATEWAY}[hooks.processes.keep-history]\nenabled = true\ncommand = ['sh', '{}']\nintercept = ['before_tool']\n",
        guard.display()
    ));
}

/// Has a guard of this account in `env`, whose daemon is gone again.
fn set_up(env: TestEnv) -> TestEnv {
    let mut door = Door::open(env);
    end(&mut door.daemon);
    std::mem::replace(&mut door.env, TestEnv::new())
}

/// Ends a process in order.
fn end(child: &mut Child) {
    signal(child.id(), Signal::SIGTERM);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

fn signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid.try_into().unwrap()), signal).unwrap();
}

/// `pintle serve`, as what hooks ask.
struct Served {
    door: Door,
    lines: Receiver<String>,
}

impl Served {
    fn start(env: TestEnv) -> Self {
        let mut command = env.command(PINTLE);
        command.args(["serve", "--listen", "127.0.0.1:0"]).env("MARK", "of the gateway");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut daemon = command.spawn().unwrap();
        let stderr = BufReader::new(daemon.stderr.take().unwrap());
        let (said, lines) = mpsc::channel();
        // To its end, whether or not a test listens.
        thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                println!("gateway: {line}");
                said.send(line).ok();
            }
        });
        Self { door: Door { env, daemon }, lines }
    }

    /// The next line with `wanted` in it.
    fn until(&self, wanted: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("`{wanted}` is never said"));
            if line.contains(wanted) {
                return line;
            }
        }
    }

    /// All that it said since, once it has ended in order.
    fn ended(mut self) -> (TestEnv, String) {
        end(&mut self.door.daemon);
        let said: Vec<String> = self.lines.iter().collect();
        (std::mem::replace(&mut self.door.env, TestEnv::new()), said.join("\n"))
    }
}

/// A text without its breaks.
fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_gateway_hears_the_hooks_of_an_installed_guard() {
    let env = with_claude("2.1.330");
    marking(&env);
    let seen = pintle(&env, &["guard", "install", "--host", "claude", "--yes"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    let served = Served::start(env);
    let (door, pid) = (&served.door, served.door.daemon.id());
    let line = served.until("hook door: ");
    assert!(line.ends_with(&door.folder().join("guard.sock").display().to_string()), "{line}");
    assert_eq!(door.told(&door.shell("toolu_1", "git push")), json!({}));
    // Of the gateway's surroundings, hooks of agents see nothing.
    let told = door.told(&door.shell("toolu_2", "git push --force"));
    assert!(refusal(&told).contains("history stays, MARK=none"), "{told}");

    let seen = pintle(&door.env, &["guard", "status", "--host", "claude"]);
    assert!(seen.out.contains(&format!("runs as part of `pintle serve` (pid {pid})")), "{seen}");
    let seen = pintle(&door.env, &["guard", "status", "--host", "claude", "--json"]);
    let status: Value = serde_json::from_str(&seen.out).unwrap();
    assert_eq!(status["daemon"]["command"], "pintle serve", "{status}");
    assert_eq!(status["daemon"]["pid"], pid, "{status}");
    let said = format!("belongs to `pintle serve` (pid {pid}), and ends with it");
    let seen = door.env.on_terminal("", &["guard", "stop"]);
    assert!(seen.code == Some(1) && on_one_line(&seen.out).contains(&said), "{seen}");
    let seen = door.env.pintle(&["guard", "serve"]);
    assert!(seen.code == Some(1) && on_one_line(&seen.err).contains(&said), "{seen}");
    // Whoever ends what stands there means a daemon.
    assert!(!door.folder().join("pid").exists());
    assert_eq!(door.told(&door.shell("toolu_3", "git push")), json!({}));
}

#[test]
fn after_a_gateway_the_next_hook_starts_a_daemon() {
    let env = TestEnv::new();
    marking(&env);
    let mut served = Served::start(set_up(env));
    served.until("hook door: ");
    assert_eq!(served.door.told(&served.door.shell("toolu_1", "git push")), json!({}));
    end(&mut served.door.daemon);
    let door = &served.door;
    assert!(!door.folder().join("guard.sock").exists());
    let told = door.told(&door.shell("toolu_2", "git push --force"));
    assert!(refusal(&told).contains("history stays"), "{told}");
    let pid: u32 = fs::read_to_string(door.folder().join("pid")).unwrap().trim().parse().unwrap();
    let seen = door.env.pintle(&["guard", "status", "--host", "claude"]);
    assert!(seen.out.contains(&format!("runs (pid {pid})")), "{seen}");
    signal(pid, Signal::SIGTERM);
    wait_for(|| (!door.folder().join("guard.sock").exists()).then_some(()));
}

#[test]
fn a_call_that_is_held_is_answered_before_a_gateway_ends() {
    let mut served = Served::start(set_up(scripted(DONE, &format!("ask = ['exec']\n{GATEWAY}"))));
    served.until("hook door: ");
    let hook = served.door.ask(LONG, &served.door.shell("toolu_1", "make"));
    wait_for(|| waiting(&served.door));
    end(&mut served.door.daemon);
    let told = document(&hook.wait_with_output().unwrap());
    refusal(&told);
    assert!(waiting(&served.door).is_some(), "the question stays");
}

#[test]
fn a_gateway_says_which_other_process_guards() {
    let env = TestEnv::new();
    marking(&env);
    let mut door = Door::open(env);
    let pid = door.daemon.id();
    let served = Served::start(std::mem::replace(&mut door.env, TestEnv::new()));
    served.until(&format!("hook door: another daemon guards with this home (pid {pid})"));
    let asking = &served.door;
    assert!(refusal(&asking.told(&asking.shell("toolu_1", "git push --force"))).contains("history stays"));
    assert!(asking.folder().join("pid").exists(), "what the daemon wrote down stays");
}

#[test]
fn what_keeps_the_hook_door_shut_keeps_no_gateway_from_serving() {
    let shut = |env: TestEnv, why: &str| {
        let served = Served::start(env);
        served.until("listening at http");
        let line = served.until("the hook door stays shut, and hooks start a daemon of their own");
        assert!(line.contains(why), "{line}");
        served.ended().0
    };
    let env = TestEnv::new();
    env.user_config(GATEWAY);
    let env = set_up(env);
    let key = env.path("data/pintle/guard/key");
    fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    let env = shut(env, "others may read or change it");
    fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    // A service manager listens, and starts the daemon for whoever asks: the gateway leaves it its socket.
    let socket = env.path("data/pintle/guard/guard.sock");
    let manager = UnixListener::bind(&socket).unwrap();
    let env = shut(env, "a service manager does");
    assert!(socket.exists());
    drop((manager, env));
}

#[test]
fn where_nobody_set_a_guard_up_no_gateway_has_a_hook_door() {
    let env = TestEnv::new();
    env.user_config(GATEWAY);
    let served = Served::start(env);
    served.until("listening at http");
    let (env, said) = served.ended();
    assert!(!said.contains("hook door") && !env.path("data/pintle/guard/lock").exists(), "{said}");
}
