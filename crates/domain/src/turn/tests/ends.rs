//! Every way a turn ends before it is done.

use super::*;
use crate::checkpoint::RuntimeEvent;
use crate::checkpoint::runtime::{InterruptKind, TurnStatus};
use crate::ruling::Aborted;
use crate::verdict::AbortScope;

#[test]
fn an_abort_in_a_batch_answers_the_rest_with_its_text() {
    let mut turn = asking(&["read", "read", "read", "write"]);
    step(&mut turn);
    turn.cleared(0, true);
    reports(&mut turn, &["start 0", "clear 1 read", "start 1"]);
    assert_eq!(step(&mut turn), "clear 2 read");
    turn.end(TurnEnd::failed("hook.before_tool", "hook aborted turn during before_tool: no"));
    // A clearing that came through late starts nothing.
    turn.cleared(2, true);
    assert_eq!(step(&mut turn), "await 0");
    turn.answered(0, answer("r0"));
    assert_eq!(step(&mut turn), "await 1");
    turn.end(TurnEnd::cancelled());
    turn.answered(1, answer("r1"));
    let end = "end Error hook.before_tool: hook aborted turn during before_tool: no";
    assert_eq!(step(&mut turn), end);
    assert_eq!(step(&mut turn), end);
    let text = "hook aborted turn during before_tool: no";
    let rest = [format!("c2: {text}"), format!("c3: {text}")];
    assert_eq!(said(turn), ["hi", "c0 c1 c2 c3", "c0: r0", "c1: r1", &rest[0], &rest[1]]);
}

#[test]
fn a_cancelled_batch_says_so_to_the_model() {
    let mut turn = asking(&["write", "write"]);
    step(&mut turn);
    turn.cleared(0, false);
    report(&mut turn, "start 0");
    turn.end(TurnEnd::cancelled());
    assert!(turn.is_ending());
    turn.answered(0, answer("w0"));
    assert_eq!(step(&mut turn), "end Aborted \"\"");
    assert_eq!(said(turn), ["hi", "c0 c1", "c0: w0", "c1: Skipped because the turn was cancelled."]);
}

#[test]
fn a_hard_abort_rolls_back_and_beats_any_other_end() {
    let mut turn = asking(&["write"]);
    turn.end(TurnEnd::cancelled());
    turn.end(TurnEnd::hard_aborted());
    turn.end(TurnEnd::failed("llm", "late"));
    assert_eq!(step(&mut turn), "end Aborted \"\" back");
    assert_eq!(said(turn), [""; 0]);
}

#[test]
fn nothing_changes_an_end_that_was_told() {
    let mut turn = turn(1);
    step(&mut turn);
    turn.replied(LlmReply::text("hello"), "m", |_| false);
    // The driver does not know yet: a hard abort still counts.
    turn.end(TurnEnd::hard_aborted());
    assert_eq!(step(&mut turn), "end Aborted \"\" back");

    let mut turn = self::turn(1);
    step(&mut turn);
    turn.replied(LlmReply::text("hello"), "m", |_| false);
    assert_eq!(step(&mut turn), "end Completed \"hello\"");
    turn.end(TurnEnd::hard_aborted());
    turn.replied(LlmReply::text("late"), "m", |_| false);
    turn.answered(0, answer("late"));
    assert_eq!(step(&mut turn), "end Completed \"hello\"");
    assert_eq!(said(turn), ["hi", "hello"]);
}

#[test]
fn a_reply_that_comes_after_the_end_is_not_stored() {
    let mut turn = turn(1);
    step(&mut turn);
    turn.end(TurnEnd::failed("hook.after_llm", "hook aborted turn during after_llm: no"));
    turn.replied(calls(&["write"]), "m", |_| false);
    assert_eq!(step(&mut turn), "end Error hook.after_llm: hook aborted turn during after_llm: no");
    assert_eq!(said(turn), ["hi"]);
}

#[test]
fn a_driver_that_lost_the_model_call_ends_the_turn() {
    let mut turn = turn(1);
    step(&mut turn);
    assert_eq!(step(&mut turn), "end Aborted \"\"");
}

#[test]
fn an_order_of_a_hook_ends_the_turn_and_says_so() {
    let order = |abort_scope| Aborted {
        by: "guard".into(),
        at: crate::checkpoint::CheckpointKind::BeforeTool,
        abort: crate::verdict::Abort { abort_scope, reason: "too far".into() },
    };
    let text = "hook aborted turn during before_tool: too far";
    let turn_only = TurnEnd::stopped(order(AbortScope::Turn));
    assert_eq!(turn_only.error, Some(("hook.before_tool".into(), text.into())));
    let error =
        RuntimeEvent::Error { stage: "hook.before_tool".into(), message: text.into(), hook: Some("guard".into()) };
    assert_eq!((turn_only.status, turn_only.roll_back, turn_only.told()), (TurnStatus::Error, false, Some(error)));
    let run = TurnEnd::stopped(order(AbortScope::Run));
    let interrupt = RuntimeEvent::InterruptReceived {
        kind: InterruptKind::HardAbort,
        role: "hook".into(),
        content_len: 0,
        queue_depth: 0,
        hint_len: 7,
        hook: Some("guard".into()),
    };
    assert_eq!((run.status, run.roll_back, run.told()), (TurnStatus::Aborted, true, Some(interrupt)));
    let failed = RuntimeEvent::Error { stage: "llm".into(), message: "gone".into(), hook: None };
    assert_eq!(TurnEnd::failed("llm", "gone").told(), Some(failed));
    assert_eq!((TurnEnd::cancelled().told(), TurnEnd::completed("hi").told()), (None, None));
}
