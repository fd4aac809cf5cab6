//! Interrupts at each point of a turn: graceful ones, which leave the model a last word, and hard ones, which roll
//! back.

use super::*;

const SKIPPED: &str = "Skipped due to graceful interrupt.";

/// The last call of an interrupted turn says `goodbye`, and asks for tools that it was not offered.
fn last_call(turn: &mut Turn, expected: &str) {
    assert_eq!(step(turn), expected);
    turn.replied(LlmReply { content: "goodbye".into(), ..calls(&["write"]) }, "m", |_| false);
    report(turn, "skip 0: graceful interrupt requested");
    assert_eq!(step(turn), "end Completed \"goodbye\"");
    let messages = turn.messages();
    assert_eq!(messages[messages.len() - 1].get().content, SKIPPED);
}

#[test]
fn before_the_first_call_that_one_is_the_last() {
    let mut turn = turn(2);
    turn.apply(Fact::Interrupted);
    assert!(turn.is_interrupted());
    last_call(&mut turn, "model 1 last");
}

#[test]
fn during_the_model_call_its_calls_are_skipped_and_the_model_has_a_last_word() {
    let mut turn = turn(2);
    step(&mut turn);
    turn.apply(Fact::Interrupted);
    turn.replied(LlmReply { content: "let me see".into(), ..calls(&["read", "write"]) }, "m", |_| false);
    reports(&mut turn, &["skip 0: graceful interrupt requested", "skip 1: graceful interrupt requested"]);
    last_call(&mut turn, "model 2 last");
}

#[test]
fn during_the_model_call_a_text_is_the_answer() {
    let mut turn = turn(2);
    step(&mut turn);
    turn.apply(Fact::Interrupted);
    turn.replied(LlmReply::text("hello"), "m", |_| false);
    assert_eq!(step(&mut turn), "end Completed \"hello\"");
}

#[test]
fn before_each_clearing_the_rest_is_skipped() {
    for done in 0..3 {
        let mut turn = asking(&["write", "write", "write"]);
        for call in 0..done {
            reports(&mut turn, &[&format!("clear {call} write"), &format!("start {call}"), &format!("await {call}")]);
        }
        turn.apply(Fact::Interrupted);
        for call in done..3 {
            report(&mut turn, &format!("skip {call}: graceful interrupt requested"));
        }
        last_call(&mut turn, "model 2 last");
    }
}

#[test]
fn while_calls_run_they_are_finished() {
    let mut turn = asking(&["read", "read", "read"]);
    reports(&mut turn, &["clear 0 read", "start 0", "clear 1 read", "start 1"]);
    turn.apply(Fact::Interrupted);
    reports(&mut turn, &["skip 2: graceful interrupt requested", "await 0", "await 1"]);
    last_call(&mut turn, "model 2 last");
}

#[test]
fn after_the_batch_and_when_all_is_handled_the_model_has_a_last_word() {
    let mut turn = asking(&["write"]);
    reports(&mut turn, &["clear 0 write", "start 0", "await 0"]);
    turn.apply(Fact::Interrupted);
    last_call(&mut turn, "model 2 last");

    let mut turn = asking(&["write"]);
    step(&mut turn);
    turn.answered(0, handled("shown"));
    turn.apply(Fact::Interrupted);
    last_call(&mut turn, "model 2 last");
}

#[test]
fn the_limit_does_not_take_the_last_word() {
    let mut turn = asking(&["write"]);
    reports(&mut turn, &["clear 0 write", "start 0", "await 0"]);
    assert_eq!(step(&mut turn), "model 2");
    turn.replied(calls(&["write"]), "m", |_| false);
    turn.apply(Fact::Interrupted);
    report(&mut turn, "skip 0: graceful interrupt requested");
    last_call(&mut turn, "model 3 last");
    assert_eq!(turn.iteration(), 3);

    let mut none = self::turn(0);
    none.apply(Fact::Interrupted);
    last_call(&mut none, "model 1 last");
}

#[test]
fn handled_calls_of_the_last_call_are_skipped_too_and_deliver_nothing() {
    let mut turn = turn(2);
    turn.apply(Fact::Interrupted);
    step(&mut turn);
    turn.replied(calls(&["write"]), "m", |_| false);
    turn.answered(0, handled("shown"));
    assert_eq!(step(&mut turn), "end Completed \"\"");
    assert_eq!(said(turn), ["hi", "c0", "c0: shown"]);
}

#[test]
fn a_message_and_an_interrupt_together() {
    // The batch is skipped for the interrupt; the message enters, and the last word may be about it.
    for facts in [[says("why?"), Fact::Interrupted], [Fact::Interrupted, says("why?")]] {
        let mut turn = asking(&["write"]);
        facts.into_iter().for_each(|fact| turn.apply(fact));
        reports(&mut turn, &["skip 0: graceful interrupt requested", "inject why?"]);
        last_call(&mut turn, "model 2 last");
        assert_eq!(said(turn)[2..4], [format!("c0: {SKIPPED}"), "why?".into()]);
    }
    // What comes in during the last call waits for the next turn.
    let mut turn = turn(2);
    turn.apply(Fact::Interrupted);
    assert_eq!(step(&mut turn), "model 1 last");
    turn.apply(says("late"));
    turn.replied(calls(&["write"]), "m", |_| false);
    report(&mut turn, "skip 0: graceful interrupt requested");
    assert_eq!(step(&mut turn), "end Completed \"\"");
    assert_eq!(waits(&turn), ["late"]);
}

#[test]
fn a_hard_abort_at_each_point_rolls_back() {
    // Each is one step further than the one before it.
    let script = ["clear 0 read", "start 0", "clear 1 read", "start 1", "await 0", "await 1"];
    for done in 0..=script.len() {
        let mut turn = asking(&["read", "read"]);
        reports(&mut turn, &script[..done]);
        turn.apply(says("lost with it"));
        turn.end(TurnEnd::hard_aborted());
        for call in turn.running() {
            report(&mut turn, &format!("await {call}"));
        }
        assert_eq!(step(&mut turn), "end Aborted \"\" back", "after {done} steps");
        turn.apply(Fact::Interrupted);
        assert_eq!(step(&mut turn), "end Aborted \"\" back");
        assert_eq!(said(turn), [""; 0]);
    }
    let mut before = turn(2);
    before.end(TurnEnd::hard_aborted());
    assert_eq!(step(&mut before), "end Aborted \"\" back");
    let mut during = turn(2);
    assert_eq!(step(&mut during), "model 1");
    during.end(TurnEnd::hard_aborted());
    during.replied(LlmReply::text("late"), "m", |_| false);
    assert_eq!(step(&mut during), "end Aborted \"\" back");
    assert_eq!((said(before), said(during)), (Vec::new(), Vec::new()));
}

#[test]
fn an_interrupted_turn_can_still_be_rolled_back() {
    let mut turn = turn(2);
    turn.apply(Fact::Interrupted);
    assert_eq!(step(&mut turn), "model 1 last");
    turn.end(TurnEnd::hard_aborted());
    assert_eq!(step(&mut turn), "end Aborted \"\" back");
    assert_eq!(said(turn), [""; 0]);
}
