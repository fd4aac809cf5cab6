//! How the homes in the fixtures came to be: with the program of their day, command by command.

use std::fs;
use std::process::Stdio;
use std::sync::mpsc::channel;
use std::time::Duration;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use pintle_domain::approval::Approval;

use super::world::{Kind, World, copy, fixtures};

/// How long the call that is to be killed may take to begin, on a machine that builds something meanwhile.
const BEGINS: Duration = Duration::from_secs(60);

/// A home of each of the things that a store keeps.
pub(super) fn make(kind: Kind) -> World {
    let world = World::of(&fixtures().join("recipe"), kind);
    rules(&world);
    let endpoint = world.endpoint();
    for message in ["print one word", "push it", "ask the helper", "write five files"] {
        world.out(&["run", "--quiet", "--session", "well", message]);
    }
    let id = parked(&world, "asked", "run it when somebody says so");
    world.operate(&["approvals", "approve", &id]);
    assert_eq!(world.out(&["sessions", "resume", "--quiet", "asked"]), "It ran after all.\n");
    let id = parked(&world, "refused", "run it with a pencil");
    world.operate(&["approvals", "refuse", &id, "--note", "'use ink'"]);
    assert_eq!(world.out(&["sessions", "resume", "--quiet", "refused"]), "Ink it is.\n");
    parked(&world, "parked", "run it some day");
    killed(&world);
    drop(endpoint);
    settle(&world);
    world
}

/// Rules of each kind, one that is off, one that was changed; a budget; a configuration that was accepted.
fn rules(world: &World) {
    world.operate(&["trust"]);
    world.operate(&["hooks", "add", "../rules.toml"]);
    match world.kind {
        Kind::Sqlite => drop(world.operate(&["hooks", "add", "../commands.toml"])),
        // A server means edition standard, which runs no commands.
        Kind::Postgres => {}
    }
    world.operate(&["hooks", "disable", "switched-off"]);
    world.operate(&["hooks", "set", "no-force-push", "priority=20", "timeout_ms=4000"]);
    world.operate(&["budget", "set", "500000"]);
}

/// A turn whose call waits for a person: the id of the question.
fn parked(world: &World, session: &str, message: &str) -> String {
    let seen = world.said(&["run", "--quiet", "--agent", "careful", "--session", session, message]);
    assert_eq!(seen.code, Some(75), "{seen}");
    waiting(world)
}

/// The question that waits.
pub(super) fn waiting(world: &World) -> String {
    let list: pintle_domain::json::Value = serde_json::from_str(&world.out(&["approvals", "list", "--json"])).unwrap();
    assert_eq!(list.as_array().map(Vec::len), Some(1), "{list}");
    list[0]["id"].as_str().unwrap().to_owned()
}

/// A turn that is killed while its tool runs.
fn killed(world: &World) {
    let pipe = world.env.path("work/begun");
    mkfifo(&pipe, Mode::S_IRWXU).unwrap();
    let mut program = world.command(&["run", "--quiet", "--session", "killed", "run for long"]);
    let mut program = program.stdout(Stdio::null()).spawn().unwrap();
    let (say, hear) = channel();
    let ears = pipe.clone();
    std::thread::spawn(move || say.send(fs::read_to_string(ears)));
    assert_eq!(hear.recv_timeout(BEGINS).unwrap().unwrap(), "begun\n");
    program.kill().unwrap();
    program.wait().unwrap();
    fs::remove_file(pipe).unwrap();
}

/// What a home of any day and any machine needs: a question that nobody is too late for, and an answer by nobody in
/// particular.
fn settle(world: &World) {
    let waiting: Vec<Approval> = serde_json::from_str(&world.out(&["approvals", "list", "--json"])).unwrap();
    let patient = Approval { expires_at: "2999-01-01T00:00:00Z".parse().unwrap(), ..waiting[0].clone() };
    let seal = world.keyring().approval_key().unwrap().seal(&patient);
    let body = serde_json::to_string(&patient).unwrap().replace('\'', "''");
    world.execute(&format!("UPDATE approvals SET body = '{body}', seal = '{seal}' WHERE state = 'waiting'"));
    world.execute("UPDATE approvals SET answered_by = 'operator' WHERE answered_by IS NOT NULL");
}

/// Keeps a home as the fixture `name`, which must be new: what makes a home worth keeping is its age.
pub(super) fn keep(world: &World, name: &str) {
    let to = fixtures().join(name).join(world.kind.word());
    assert!(!to.exists(), "{} is there already", to.display());
    let recipe = fixtures().join("recipe");
    copy(&recipe.join("config"), &to.join("config"));
    for folder in ["here", "work", "data"] {
        copy(&world.env.path(folder), &to.join(folder));
    }
    if let Some(dump) = world.dump() {
        fs::write(to.join("dump.sql"), dump).unwrap();
    }
}
