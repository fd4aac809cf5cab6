//! A small soak of every day: clients that do nothing, clients that talk, and a server that stands still twice meanwhile.
//! `cargo xtask soak` is the large one.

use std::time::Duration;

use pintle_soak::Plan;

use crate::env::PINTLE;

#[test]
fn a_server_that_stands_still_now_and_then_fails_nobody() {
    let plan = Plan {
        program: PINTLE.into(),
        floor: None,
        idle: 200,
        turns: 20,
        rounds: 3,
        length: Duration::from_secs(60),
        pauses: 2,
    };
    let report = pintle_soak::run(&plan).unwrap();
    println!("{report}");
    assert_eq!((report.heard.failed.as_slice(), report.broken()), ([].as_slice(), Vec::new()));
    assert!(report.heard.turns >= plan.turns * plan.rounds && report.heard.pieces.count() > 0);
}
