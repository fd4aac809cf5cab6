//! Nodes that are killed, or stand still for longer than their leases last, while others talk to them.
//!
//! `PINTLE_NODE_ROUNDS=20 cargo nextest run -p pintle-cli nodes::dying` plays twenty of each, with a node that stands
//! still for half a minute.

use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::load::{Load, settled};
use super::pair::{Node, Nodes};

/// How often a node is killed or stopped in the suite.
const ROUNDS: usize = 1;

/// How long a node stands still in the suite: longer than a lease lasts, and than it takes to find out.
const STILL: Duration = Duration::from_secs(14);

/// The same where more rounds are asked for.
const LONG_STILL: Duration = Duration::from_secs(30);

fn rounds() -> Option<usize> {
    std::env::var("PINTLE_NODE_ROUNDS").ok().and_then(|text| text.parse().ok())
}

/// Lets clients talk while `each` hurts one of two nodes again and again; then looks at what they were told.
fn play(rounds: usize, mut each: impl FnMut(&Nodes, &mut Vec<Node>, usize)) {
    let nodes = Nodes::new();
    let mut pair = vec![nodes.start("a"), nodes.start("b")];
    let load = Load::default();
    load.turn_to(&pair);
    let began = Instant::now();
    load.while_talking(|| {
        for round in 0..rounds {
            thread::sleep(Duration::from_millis(1500 + 137 * (round as u64 % 7)));
            each(&nodes, &mut pair, round);
            load.turn_to(&pair);
        }
        thread::sleep(Duration::from_secs(2));
    });
    let took = began.elapsed();
    settled(&nodes, &pair[0], &load);
    let verified =
        nodes.env.pintle(&["-c", &nodes.env.path("config/pintle/a.toml").display().to_string(), "audit", "verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    println!("{rounds} rounds in {took:?}");
}

#[test]
fn a_node_that_is_killed_leaves_nothing_undone_and_nothing_done_twice() {
    let times = rounds().unwrap_or(ROUNDS);
    play(times, |nodes, pair, round| {
        let victim = round % 2;
        let name = ["a", "b"][victim];
        pair[victim].signal(Signal::SIGKILL);
        // The other one works alone for a while, longer than it takes to find out.
        thread::sleep(Duration::from_secs(14));
        pair[victim] = nodes.start(name);
    });
}

#[test]
fn a_node_that_stands_still_does_nothing_under_a_lease_that_it_lost() {
    let (times, still) = rounds().map_or((ROUNDS, STILL), |times| (times, LONG_STILL));
    play(times, |nodes, pair, round| {
        let victim = round % 2;
        pair[victim].signal(Signal::SIGSTOP);
        let stopped = nodes.ask("SELECT (extract(epoch FROM clock_timestamp()) * 1000000000)::bigint");
        thread::sleep(still);
        let before = nodes.ask("SELECT count(*) FROM leases WHERE owner IS NOT NULL");
        pair[victim].signal(Signal::SIGCONT);
        println!("stood still at {stopped}; {before} leases were others' when it went on");
    });
}
