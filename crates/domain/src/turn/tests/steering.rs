//! Messages that come in while the turn is worked, at each point at which one can.

use super::*;

const SKIPPED: &str = "Skipped due to queued user message.";

#[test]
fn before_the_first_call_it_is_part_of_the_first_request() {
    let mut turn = turn(2);
    turn.apply(says("and this"));
    turn.apply(says("and that"));
    assert_eq!(step(&mut turn), "inject and this, and that");
    report(&mut turn, "inject and this, and that");
    assert_eq!(step(&mut turn), "model 1");
    assert_eq!(waits(&turn), [""; 0]);
    assert_eq!(said(turn), ["hi", "and this", "and that"]);
}

#[test]
fn during_the_model_call_it_skips_the_whole_batch() {
    let mut turn = turn(2);
    step(&mut turn);
    turn.apply(says("stop"));
    turn.replied(calls(&["read", "write"]), "m", |_| false);
    let skip = |call| format!("skip {call}: queued user steering message");
    reports(&mut turn, &[&skip(0), &skip(1), "inject stop"]);
    assert_eq!(step(&mut turn), "model 2");
    assert_eq!(said(turn), ["hi", "c0 c1", &format!("c0: {SKIPPED}"), &format!("c1: {SKIPPED}"), "stop"]);
}

#[test]
fn before_each_clearing_it_skips_the_rest() {
    for done in 0..3 {
        let mut turn = asking(&["write", "write", "write"]);
        for call in 0..done {
            reports(&mut turn, &[&format!("clear {call} write"), &format!("start {call}"), &format!("await {call}")]);
        }
        turn.apply(says("stop"));
        for call in done..3 {
            report(&mut turn, &format!("skip {call}: queued user steering message"));
        }
        report(&mut turn, "inject stop");
        assert_eq!(step(&mut turn), "model 2");
        let answered = (0..3).map(|i| if i < done { format!("c{i}: r{i}") } else { format!("c{i}: {SKIPPED}") });
        let expected: Vec<String> =
            ["hi".to_owned(), "c0 c1 c2".into()].into_iter().chain(answered).chain(["stop".into()]).collect();
        assert_eq!(said(turn), expected);
    }
}

#[test]
fn a_call_that_is_cleared_or_being_cleared_is_worked_to_its_end() {
    let mut turn = asking(&["write", "write"]);
    assert_eq!(step(&mut turn), "clear 0 write");
    turn.apply(says("stop"));
    reports(&mut turn, &["clear 0 write", "start 0", "skip 1: queued user steering message", "await 0", "inject stop"]);

    let mut turn = asking(&["write", "write"]);
    report(&mut turn, "clear 0 write");
    turn.apply(says("stop"));
    reports(&mut turn, &["start 0", "skip 1: queued user steering message", "await 0", "inject stop"]);
}

#[test]
fn while_calls_run_they_are_finished_and_the_rest_is_skipped() {
    let mut turn = asking(&["read", "read", "read"]);
    reports(&mut turn, &["clear 0 read", "start 0", "clear 1 read", "start 1"]);
    turn.apply(says("stop"));
    reports(&mut turn, &["skip 2: queued user steering message", "await 0", "await 1", "inject stop"]);
    assert_eq!(step(&mut turn), "model 2");
    assert_eq!(said(turn), ["hi", "c0 c1 c2", "c0: r0", "c1: r1", &format!("c2: {SKIPPED}"), "stop"]);
}

#[test]
fn after_the_batch_it_enters_before_the_next_call() {
    let mut turn = asking(&["write"]);
    reports(&mut turn, &["clear 0 write", "start 0", "await 0"]);
    turn.apply(says("one more thing"));
    report(&mut turn, "inject one more thing");
    assert_eq!(step(&mut turn), "model 2");
    assert_eq!(said(turn), ["hi", "c0", "c0: r0", "one more thing"]);
}

#[test]
fn when_all_is_handled_the_model_is_asked_after_all() {
    for waits in [says("but"), brings("found")] {
        let mut turn = asking(&["write"]);
        step(&mut turn);
        turn.answered(0, handled("shown"));
        turn.apply(waits);
        assert!(step(&mut turn).starts_with("inject "));
        turn.apply(Fact::Injected { count: 1 });
        assert_eq!(step(&mut turn), "model 2");
        assert_eq!(said(turn)[..3], ["hi", "c0", "c0: shown"]);
    }
}

#[test]
fn after_the_last_text_it_waits_for_the_next_turn() {
    let mut turn = turn(2);
    step(&mut turn);
    turn.apply(says("during"));
    turn.replied(LlmReply::text("hello"), "m", |_| false);
    turn.apply(says("after"));
    assert_eq!(step(&mut turn), "end Completed \"hello\"");
    turn.apply(says("late"));
    assert_eq!(step(&mut turn), "end Completed \"hello\"");
    assert_eq!(waits(&turn), ["during", "after", "late"]);
    assert_eq!(turn.take_waiting().len(), 3);
    assert_eq!(waits(&turn), [""; 0]);
    assert_eq!(said(turn), ["hi", "hello"]);
}

#[test]
fn at_the_iteration_limit_it_waits_for_the_next_turn() {
    let mut turn = asking(&["write"]);
    reports(&mut turn, &["clear 0 write", "start 0", "await 0"]);
    assert_eq!(step(&mut turn), "model 2");
    turn.replied(calls(&["write"]), "m", |_| false);
    turn.apply(says("go on"));
    report(&mut turn, "skip 0: queued user steering message");
    assert_eq!(step(&mut turn), "model 3 last");
    turn.replied(LlmReply::text("so far"), "m", |_| false);
    assert_eq!(step(&mut turn), "end Error llm: iteration limit 2 reached");
    assert_eq!(waits(&turn), ["go on"]);
}

#[test]
fn what_a_sub_agent_brings_skips_nothing_and_enters_with_the_next_round() {
    let mut turn = asking(&["write", "write"]);
    turn.apply(brings("found"));
    reports(&mut turn, &["clear 0 write", "start 0", "await 0", "clear 1 write", "start 1", "await 1", "inject found"]);
    // Where a person waits as well, the batch is skipped for them, and both enter in their order.
    let mut turn = asking(&["write"]);
    turn.apply(brings("found"));
    turn.apply(says("stop"));
    reports(&mut turn, &["skip 0: queued user steering message", "inject found, stop"]);
}

#[test]
fn only_what_was_told_of_enters() {
    let mut turn = turn(2);
    turn.apply(says("one"));
    let TurnStep::Inject { waiting } = turn.next() else { panic!("one waits") };
    turn.apply(says("two"));
    turn.apply(Fact::Injected { count: waiting.len() });
    assert_eq!(step(&mut turn), "inject two");
    // More than there are is all there are.
    turn.apply(Fact::Injected { count: 9 });
    assert_eq!(step(&mut turn), "model 1");
    assert_eq!(said(turn), ["hi", "one", "two"]);
}

#[test]
fn nothing_enters_between_a_call_and_its_answer() {
    let mut turn = asking(&["write"]);
    turn.apply(says("stop"));
    turn.apply(Fact::Injected { count: 1 });
    assert_eq!(waits(&turn), ["stop"]);
    reports(&mut turn, &["skip 0: queued user steering message", "inject stop"]);
}

#[test]
fn a_roll_back_leaves_what_waits_to_the_driver_who_tells_of_it() {
    let mut turn = asking(&["write"]);
    turn.apply(says("stop"));
    turn.end(TurnEnd::hard_aborted());
    assert_eq!(step(&mut turn), "end Aborted \"\" back");
    assert_eq!(turn.take_waiting().iter().map(WaitingMessage::text).collect::<Vec<_>>(), ["stop"]);
}

#[test]
fn the_words_are_those_of_the_page() {
    assert_eq!(SkipReason::Steering.text(), "Skipped due to queued user message.");
    assert_eq!(SkipReason::Steering.reason(), "queued user steering message");
    assert_eq!(SkipReason::Graceful.text(), "Skipped due to graceful interrupt.");
    assert_eq!(SkipReason::Graceful.reason(), "graceful interrupt requested");
    assert_eq!(DELIVERED, "Requested output delivered via tool attachment.");
    assert_eq!(OUTCOME_UNKNOWN, "outcome unknown: the process ended while the tool ran");
}
