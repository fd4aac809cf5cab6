//! A hook that nobody answers starts the daemon, once, and never with the output that the host reads.

use std::fs::Permissions;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use pintle_hook::start::Start;

use crate::hook::{PAYLOAD, World, check_refused, finish, own_file};

/// Lets hooks of `world` start a shell that does `text`.
fn start_with(world: &World, text: &str) {
    let argv = ["/bin/sh", "-c", text].map(str::to_owned).to_vec();
    let start = Start { argv, env: vec![("PATH".into(), "/usr/bin:/bin".into()), ("MARK".into(), "its own".into())] };
    own_file(&world.path("start"), &start.to_bytes());
}

#[test]
fn a_daemon_is_started_with_nothing_of_the_hook() {
    let world = World::new();
    let (out, done) = (world.path("out"), world.path("done"));
    // It outlives the hook, and holds nothing of it open.
    let text = format!(
        "{{ env; readlink /proc/self/fd/1; pwd; }} > '{}'; mv '{}' '{}'; sleep 5",
        out.display(),
        out.display(),
        done.display()
    );
    start_with(&world, &text);
    let mut command = world.command(10_000);
    command.env("SECRET", "of the host");
    let left = finish(command.spawn().unwrap(), PAYLOAD.as_bytes());
    check_refused(&left, "refused: ");
    assert!(left.took < Duration::from_millis(4500), "the output ends with the hook: {left:?}");
    let mut said = String::new();
    std::fs::File::open(done).unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("MARK=its own") && !said.contains("SECRET"), "{said}");
    assert!(said.trim_end().ends_with('/'), "{said}");
}

#[test]
fn a_daemon_that_ends_at_once_is_not_started_for_every_hook() {
    let world = World::new();
    start_with(&world, &format!("echo started >> '{}'", world.path("starts").display()));
    let hooks: Vec<_> = (0..4).map(|_| world.command(1000).spawn().unwrap()).collect();
    for hook in hooks {
        check_refused(&finish(hook, PAYLOAD.as_bytes()), "refused: ");
    }
    assert_eq!(std::fs::read_to_string(world.path("starts")).unwrap(), "started\n");
}

#[test]
fn what_others_may_write_starts_nothing() {
    let world = World::new();
    start_with(&world, &format!("echo started >> '{}'", world.path("starts").display()));
    std::fs::set_permissions(world.path("start"), Permissions::from_mode(0o666)).unwrap();
    check_refused(&world.run(1000), "others may read or change it");
    assert!(!world.path("starts").exists());
}
