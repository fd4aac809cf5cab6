//! The socket of the daemon: a service manager's, or one that somebody removes.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use serde_json::json;

use super::door::{Door, refusal, refusing, wait_for};
use crate::env::{PINTLE, TestEnv};

/// systemd's own stand-in for itself, which makes a socket and starts the daemon for its first client.
struct Manager(Child);

impl Manager {
    fn of(env: &TestEnv, socket: &Path, mode: u32) -> Self {
        fs::create_dir_all(socket.parent().unwrap()).unwrap();
        let mut command = env.command("systemd-socket-activate");
        command.arg("--listen").arg(socket);
        for name in ["HOME", "PATH", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "PINTLE_HOME"] {
            if let Some(value) = command.get_envs().find(|(key, _)| *key == name).and_then(|(_, value)| value) {
                let pair = format!("--setenv={name}={}", value.to_str().unwrap());
                command.arg(pair);
            }
        }
        command.args([PINTLE, "guard", "serve"]).stdin(Stdio::null()).stderr(Stdio::piped()).process_group(0);
        let manager = Self(command.spawn().unwrap());
        wait_for(|| socket.exists().then_some(()));
        fs::set_permissions(socket, Permissions::from_mode(mode)).unwrap();
        manager
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // It becomes the daemon: one process.
        killpg(Pid::from_raw(self.0.id().try_into().unwrap()), Signal::SIGKILL).ok();
        self.0.wait().ok();
    }
}

fn socket(env: &TestEnv) -> PathBuf {
    env.path("data/pintle/guard/guard.sock")
}

#[test]
fn a_service_manager_hands_its_socket_over() {
    let env = TestEnv::new();
    refusing(&env, "*--force*");
    // An installation makes the key; so does a daemon.
    let mut door = Door::open(env);
    door.daemon.kill().unwrap();
    door.daemon.wait().unwrap();
    let listened = socket(&door.env);
    for left in [listened.clone(), door.folder().join("pid")] {
        fs::remove_file(left).unwrap();
    }
    let manager = Manager::of(&door.env, &listened, 0o600);
    // Nobody started a daemon yet: the first question does.
    assert!(!door.folder().join("pid").exists());
    assert_eq!(door.told(&door.shell("toolu_1", "git push")), json!({}));
    assert!(refusal(&door.told(&door.shell("toolu_2", "git push --force"))).contains("history"));
    let pid: i32 = fs::read_to_string(door.folder().join("pid")).unwrap().trim().parse().unwrap();
    assert_eq!(u32::try_from(pid).unwrap(), manager.0.id(), "the daemon is the one that the manager started");
    // What it leaves behind is the manager's: the next daemon gets the same socket.
    kill(Pid::from_raw(pid), Signal::SIGTERM).unwrap();
    wait_for(|| (!door.folder().join("pid").exists()).then_some(()));
    assert!(listened.exists());
}

#[test]
fn a_socket_that_others_may_open_is_not_taken() {
    let env = TestEnv::new();
    let listened = socket(&env);
    let mut manager = Manager::of(&env, &listened, 0o666);
    let client = UnixStream::connect(&listened).unwrap();
    let status = wait_for(|| manager.0.try_wait().unwrap());
    assert_eq!(status.code(), Some(1));
    let mut said = String::new();
    std::io::Read::read_to_string(manager.0.stderr.as_mut().unwrap(), &mut said).unwrap();
    assert!(said.contains("others may open it") && said.contains("SocketMode=0600"), "{said}");
    drop(client);
}

#[test]
fn a_socket_that_hooks_do_not_look_for_is_not_taken() {
    let env = TestEnv::new();
    let listened = env.path("elsewhere/guard.sock");
    let mut manager = Manager::of(&env, &listened, 0o600);
    let client = UnixStream::connect(&listened).unwrap();
    assert_eq!(wait_for(|| manager.0.try_wait().unwrap()).code(), Some(1));
    let mut said = String::new();
    std::io::Read::read_to_string(manager.0.stderr.as_mut().unwrap(), &mut said).unwrap();
    assert!(said.contains(&format!("ListenStream={}", socket(&env).display())), "{said}");
    drop(client);
}

#[test]
fn a_daemon_whose_socket_was_removed_makes_room_for_the_next_one() {
    let env = TestEnv::new();
    refusing(&env, "*--force*");
    let mut door = Door::open(env);
    assert_eq!(door.told(&door.shell("toolu_1", "git push")), json!({}));
    fs::remove_file(socket(&door.env)).unwrap();
    wait_for(|| door.daemon.try_wait().unwrap());
    assert!(refusal(&door.told(&door.shell("toolu_2", "git push --force"))).contains("history"));
    let pid: i32 = fs::read_to_string(door.folder().join("pid")).unwrap().trim().parse().unwrap();
    kill(Pid::from_raw(pid), Signal::SIGTERM).unwrap();
    wait_for(|| (!door.folder().join("guard.sock").exists()).then_some(()));
}

#[test]
fn the_units_are_such_that_systemd_takes_them() {
    let env = TestEnv::new();
    for name in ["pintle-guard.socket", "pintle-guard.service"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
        let unit = fs::read_to_string(root.join(name)).unwrap();
        env.write(name, &unit.replace("/usr/bin/pintle", PINTLE));
    }
    let mut command = Command::new("systemd-analyze");
    command.args(["verify", "--user", "--man=no"]).env("XDG_RUNTIME_DIR", env.path(""));
    let output =
        TestEnv::output(command.arg(env.path("pintle-guard.socket")).arg(env.path("pintle-guard.service")), "");
    let said = String::from_utf8_lossy(&output.stderr);
    let about_it: Vec<&str> = said.lines().filter(|line| line.contains("pintle-guard")).collect();
    assert!(output.status.success() && about_it.is_empty(), "{said}");
}
