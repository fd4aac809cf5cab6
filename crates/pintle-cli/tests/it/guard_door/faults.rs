//! Whatever dies, hangs or is wrong: the host refuses the call.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use super::door::{Door, LONG, document, refusal, refusing, wait_for};
use crate::env::{BEFORE_TOOL, TestEnv};

/// A hook that never answers about a call.
fn hanging(env: &TestEnv) {
    let hang = format!(
        r#"while IFS= read -r line; do
  id=${{line#*'"id":'}}; id=${{id%%,*}}
  case $line in {BEFORE_TOOL}) touch '{}'; sleep 1000 ;; esac
  printf '{{"jsonrpc":"2.0","id":%s,"result":{{}}}}\n' "$id"
done
"#,
        env.path("asked").display()
    );
    let guard = env.write("config/pintle/guard.sh", &hang);
    env.user_config(&format!(
        "[hooks]\nenabled = true\n[hooks.defaults]\ninterceptor_timeout_ms = 900000\n[hooks.processes.slow]\nenabled = true\ncommand = ['sh', '{}']\nintercept = ['before_tool']\n",
        guard.display()
    ));
}

#[test]
fn hooks_that_hang_are_cut_off_before_the_deadline() {
    let env = TestEnv::new();
    hanging(&env);
    let door = Door::open(env);
    let began = Instant::now();
    let told = document(&door.ask(1500, &door.shell("toolu_1", "ls")).wait_with_output().unwrap());
    refusal(&told);
    // It is the daemon that says so: the hook would say that nobody answered.
    assert!(!told.to_string().contains("did not answer, so"), "{told}");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[test]
fn a_daemon_that_is_killed_while_it_works_leaves_a_refusal() {
    let env = TestEnv::new();
    hanging(&env);
    let mut door = Door::open(env);
    let hook = door.ask(LONG, &door.shell("toolu_1", "ls"));
    wait_for(|| door.env.path("asked").exists().then_some(()));
    door.daemon.kill().unwrap();
    door.daemon.wait().unwrap();
    refusal(&document(&hook.wait_with_output().unwrap()));
}

#[test]
fn a_daemon_that_is_gone_is_started_by_the_next_hook() {
    let env = TestEnv::new();
    refusing(&env, "*--force*");
    let mut door = Door::open(env);
    door.daemon.kill().unwrap();
    door.daemon.wait().unwrap();
    assert_eq!(door.told(&door.shell("toolu_1", "git push")), json!({}));
    assert!(refusal(&door.told(&door.shell("toolu_2", "git push --force"))).contains("history"));
    // A session stays where it began, whichever daemon answers.
    let mut elsewhere = door.shell("toolu_3", "git push --force");
    elsewhere["cwd"] = json!(door.env.path("home"));
    assert!(refusal(&door.told(&elsewhere)).contains("history"));
    // What it has to say is kept, for its user alone.
    let log = door.folder().join("log");
    assert!(std::fs::read_to_string(&log).unwrap().contains("guarding at"));
    assert_eq!(std::fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(door.env.pintle(&["guard", "status"]).out.contains("guard/log"));
    // The one that a hook started is nobody's child.
    let pid = std::fs::read_to_string(door.folder().join("pid")).unwrap();
    kill(Pid::from_raw(pid.trim().parse().unwrap()), Signal::SIGTERM).unwrap();
    wait_for(|| (!door.folder().join("guard.sock").exists()).then_some(()));
}

#[test]
fn a_daemon_that_cannot_be_started_leaves_a_refusal() {
    let mut door = Door::open(TestEnv::new());
    door.daemon.kill().unwrap();
    door.daemon.wait().unwrap();
    std::fs::remove_file(door.folder().join("start")).unwrap();
    refusal(&door.told(&door.shell("toolu_1", "ls")));
}

#[test]
fn a_configuration_that_does_not_load_refuses_and_says_why() {
    let env = TestEnv::new();
    env.user_config("this is no TOML\n");
    let door = Door::open(env);
    let told = door.told(&door.shell("toolu_1", "ls"));
    assert!(refusal(&told).contains("does not load") && refusal(&told).contains("pintle.toml"), "{told}");
    // As soon as it does, calls go on.
    door.env.user_config("");
    assert_eq!(door.told(&door.shell("toolu_2", "ls")), json!({}));
}

#[test]
fn a_payload_that_is_none_is_refused() {
    let door = Door::open(TestEnv::new());
    let mut child = door.command("PreToolUse", LONG).spawn().unwrap();
    drop(child.stdin.take());
    let output = child.wait_with_output().unwrap();
    refusal(&document(&output));
    assert!(String::from_utf8(output.stderr).unwrap().contains("not one JSON object"));
}

#[test]
fn a_payload_that_says_something_twice_is_refused() {
    let door = Door::open(TestEnv::new());
    let payload = door.shell("toolu_1", "ls").to_string();
    let twice = payload.replacen("\"command\":", "\"command\":\"rm -rf x\",\"command\":", 1);
    assert_ne!(twice, payload);
    let mut child = door.command("PreToolUse", LONG).spawn().unwrap();
    child.stdin.take().unwrap().write_all(twice.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    refusal(&document(&output));
    assert!(String::from_utf8(output.stderr).unwrap().contains("`command` stands twice"));
}

#[test]
fn whatever_cannot_be_read_is_refused_for_what_it_is_and_stands_in_the_record() {
    let door = Door::open(TestEnv::new());
    assert_eq!(door.told(&door.shell("toolu_1", "ls")), json!({}));
    let call = door.shell("toolu_2", "MARK").to_string();
    let many = format!("\"MARK\",\"x\":[{}0]", "{},".repeat(300_000));
    let deep = format!("\"MARK\",\"x\":{}{}", "[".repeat(600), "]".repeat(600));
    let long = format!("\"{}\"", "x".repeat(17 << 20));
    for (with, said, kept) in [
        (&b"\"\xff\""[..], "is not UTF-8", "is not UTF-8"),
        (b"\"\\ud800\"".as_slice(), "is not one JSON object", "is not one JSON object"),
        (b"\"ls\",\"command\":\"rm\"".as_slice(), "a name stands twice", "`command` stands twice"),
        (many.as_bytes(), "more than 200,000 JSON values", "more than 200000 JSON values"),
        (deep.as_bytes(), "nested deeper than 512 levels", "nested deeper than 512 levels"),
        (long.as_bytes(), "longer than 16 MiB", "longer than 16777216 bytes"),
    ] {
        let (before, behind) = call.split_once("\"MARK\"").unwrap();
        let payload = [before.as_bytes(), with, behind.as_bytes()].concat();
        let began = Instant::now();
        let mut child = door.command("PreToolUse", LONG).spawn().unwrap();
        // It stops to read where it is too long.
        child.stdin.take().unwrap().write_all(&payload).ok();
        let told = document(&child.wait_with_output().unwrap());
        assert!(refusal(&told).contains(said) && refusal(&told).ends_with("so this call is refused."), "{told}");
        assert!(began.elapsed() < Duration::from_secs(20), "{said}: {:?}", began.elapsed());
        wait_for(|| door.env.pintle(&["why", "--denied"]).out.contains(kept).then_some(()));
    }
    // An event that names no session stands in the record all the same.
    let mut child = door.command("PreToolUse", LONG).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"[]").unwrap();
    assert!(refusal(&document(&child.wait_with_output().unwrap())).contains("is not one JSON object"));
    wait_for(|| door.env.pintle(&["why", "claude:unknown"]).out.contains("another value").then_some(()));
    let shown = door.env.pintle(&["why", "claude:s"]).out;
    assert!(shown.contains("longer than") && !shown.contains("nothing blocked"), "{shown}");
}

#[test]
fn a_second_daemon_of_the_same_home_is_refused() {
    let door = Door::open(TestEnv::new());
    let seen = door.env.pintle(&["guard", "serve"]);
    assert_eq!(seen.code, Some(1), "{seen}");
    let said = format!("another daemon guards with this home (pid {})", door.daemon.id());
    assert!(seen.err.contains(&said), "{seen}");
}

#[test]
fn a_person_ends_the_daemon_and_nobody_else_does_so() {
    let mut door = Door::open(TestEnv::new());
    let seen = door.env.pintle(&["guard", "stop"]);
    assert!(seen.code == Some(5) && door.daemon.try_wait().unwrap().is_none(), "{seen}");
    let pid = door.daemon.id();
    let seen = door.env.on_terminal("", &["guard", "stop"]);
    assert!(seen.code == Some(0) && seen.out.contains(&format!("the daemon (pid {pid}) has ended")), "{seen}");
    assert_eq!(door.daemon.wait().unwrap().code(), Some(0), "in order");
    let seen = door.env.on_terminal("", &["guard", "stop"]);
    assert!(seen.code == Some(0) && seen.out.contains("no daemon guards with this home"), "{seen}");
}

#[test]
fn a_guard_that_is_down_refuses_what_it_was_to_guard() {
    let env = TestEnv::new();
    env.user_config(
        "[hooks.processes.gone]\nenabled = true\ncommand = ['/nowhere/guard']\nintercept = ['before_tool']\n",
    );
    let door = Door::open(env);
    assert!(refusal(&door.told(&door.shell("toolu_1", "ls"))).contains("gone"));
}

/// Connects to a socket as a user, and says whether the other end hangs up at once.
const CONNECTS: &str = "
import os, socket, sys
os.setuid(int(sys.argv[2]))
s = socket.socket(socket.AF_UNIX)
try:
    s.connect(sys.argv[1])
except PermissionError:
    print('may not')
    sys.exit()
s.settimeout(float(sys.argv[3]))
try:
    print('hangs up' if s.recv(1) == b'' else 'says something')
except TimeoutError:
    print('waits')
";

#[test]
fn the_socket_and_the_key_are_their_users_alone() {
    use std::fs::{Permissions, metadata, set_permissions};

    let door = Door::open(TestEnv::new());
    let (folder, socket) = (door.folder(), door.folder().join("guard.sock"));
    for (file, mode) in [(&folder, 0o700), (&socket, 0o600), (&folder.join("key"), 0o600)] {
        assert_eq!(metadata(file).unwrap().permissions().mode() & 0o777, mode, "{}", file.display());
    }
    let own = nix::unistd::geteuid();
    let connects = |uid: u32, seconds: &str| {
        let mut command = door.env.command("python3");
        command.args(["-c", CONNECTS]).arg(&socket).args([&uid.to_string(), seconds]);
        door.env.run(&mut command, "").out
    };
    assert_eq!(connects(own.as_raw(), "1"), "waits\n", "it waits for the question of its own user");
    // Only root can be somebody else.
    if !own.is_root() {
        return;
    }
    assert_eq!(connects(65534, "30"), "may not\n");
    // And where the files would let others in, the daemon does not.
    let top = door.env.path("");
    for file in socket.ancestors().take_while(|file| file.starts_with(&top)) {
        set_permissions(file, Permissions::from_mode(0o777)).unwrap();
    }
    assert_eq!(connects(65534, "30"), "hangs up\n");
}
