//! The calls of one batch: what is cleared, started and awaited when.

use super::*;

#[test]
fn calls_are_cleared_one_after_another_and_writers_wait_for_all_before() {
    let mut turn = asking(&["write", "read", "read", "write"]);
    assert_eq!(step(&mut turn), "clear 0 write");
    assert_eq!(step(&mut turn), "clear 0 write");
    turn.cleared(0, false);
    assert_eq!(step(&mut turn), "start 0");
    turn.started(0);
    // A writing call in flight lets nobody on, not even to be cleared.
    assert_eq!(step(&mut turn), "await 0");
    turn.answered(0, answer("w0"));
    assert_eq!(step(&mut turn), "clear 1 read");
    turn.cleared(1, true);
    assert_eq!(step(&mut turn), "start 1");
    turn.started(1);
    // Read-only calls overlap.
    assert_eq!(step(&mut turn), "clear 2 read");
    turn.cleared(2, true);
    assert_eq!(step(&mut turn), "start 2");
    turn.started(2);
    assert_eq!(step(&mut turn), "await 1");
    // They may end in any order; a writing call starts when all before it have ended.
    turn.answered(2, answer("r2"));
    assert_eq!(step(&mut turn), "await 1");
    turn.answered(1, answer("r1"));
    assert_eq!(step(&mut turn), "clear 3 write");
    turn.cleared(3, false);
    assert_eq!(step(&mut turn), "start 3");
    turn.started(3);
    turn.answered(3, answer("w3"));
    assert_eq!(step(&mut turn), "model 2");
    assert_eq!(turn.executions().iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["w0", "r1", "r2", "w3"]);
    assert_eq!(said(turn), ["hi", "c0 c1 c2 c3", "c0: w0", "c1: r1", "c2: r2", "c3: w3"]);
}

#[test]
fn a_call_that_became_a_writing_one_waits_for_the_reading_ones() {
    let mut turn = asking(&["read", "read", "read"]);
    step(&mut turn);
    turn.cleared(0, true);
    assert_eq!(step(&mut turn), "start 0");
    turn.started(0);
    assert_eq!(step(&mut turn), "clear 1 read");
    turn.cleared(1, false);
    assert_eq!(step(&mut turn), "await 0");
    turn.answered(0, answer("r0"));
    assert_eq!(step(&mut turn), "start 1");
    turn.started(1);
    assert_eq!(step(&mut turn), "await 1");
}

#[test]
fn a_refused_call_does_not_stop_the_batch() {
    let mut turn = asking(&["write", "write"]);
    step(&mut turn);
    turn.answered(0, ModelAnswer::not_run("denied"));
    assert_eq!(step(&mut turn), "clear 1 write");
    turn.answered(1, answer("substituted"));
    assert_eq!(step(&mut turn), "model 2");
    assert_eq!(said(turn), ["hi", "c0 c1", "c0: denied", "c1: substituted"]);
}
