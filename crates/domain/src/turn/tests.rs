//! What the driver must do next, as tables.

use super::*;
use crate::llm::LlmReply;

fn turn(max_iterations: u32) -> Turn {
    Turn::new(vec![Message::text(Role::System, "history").into()], Message::text(Role::User, "hi"), max_iterations)
}

/// A turn whose model asked for `tools`, named `c0`, `c1`…; those that begin with `read` change nothing.
fn asking(tools: &[&str]) -> Turn {
    let mut turn = turn(2);
    assert_eq!(turn.next(), Step::CallModel { iteration: 1 });
    turn.replied(calls(tools), "m", |tool| tool.starts_with("read"));
    turn
}

fn calls(tools: &[&str]) -> LlmReply {
    LlmReply::calls(tools.iter().enumerate().map(|(i, tool)| CallPart::new(&format!("c{i}"), tool, "{}")).collect())
}

fn answer(text: &str) -> Answer {
    let execution = ToolExecution { name: text.into(), success: true, error_summary: None };
    Answer { execution: Some(execution), ..Answer::not_run(text) }
}

fn handled(text: &str) -> Answer {
    Answer { handled: true, ..answer(text) }
}

/// The next steps, as short words: `clear 0`, `start 0`, `await 0`, `model 2`, `end …`.
fn step(turn: &mut Turn) -> String {
    match turn.next() {
        Step::CallModel { iteration } => format!("model {iteration}"),
        Step::Clear { call, part } => format!("clear {call} {}", part.function.name),
        Step::Start { call } => format!("start {call}"),
        Step::Await { call } => format!("await {call}"),
        Step::End(end) => match end.error {
            Some((stage, text)) => format!("end {:?} {stage}: {text}", end.status),
            None => format!("end {:?} {:?}{}", end.status, end.reply, if end.roll_back { " back" } else { "" }),
        },
    }
}

/// Everything in the conversation after the history, one message a line.
fn said(turn: Turn) -> Vec<String> {
    let messages = turn.into_messages();
    let line = |message: &Message| match message.role {
        Role::Tool => format!("{}: {}", message.tool_call_id, message.content),
        Role::System | Role::User | Role::Assistant if message.tool_calls.is_empty() => message.content.clone(),
        Role::System | Role::User | Role::Assistant => {
            message.tool_calls.iter().map(|part| part.id.as_str()).collect::<Vec<_>>().join(" ")
        }
    };
    messages.iter().skip(1).map(|message| line(message.get())).collect()
}

#[test]
fn a_text_ends_the_turn() {
    let mut turn = turn(5);
    assert_eq!(step(&mut turn), "model 1");
    turn.replied(LlmReply::text("hello"), "m", |_| false);
    assert_eq!(step(&mut turn), "end Completed \"hello\"");
    assert_eq!(step(&mut turn), "end Completed \"hello\"");
    assert_eq!(said(turn), ["hi", "hello"]);
}

#[test]
fn calls_are_cleared_one_after_another_and_writers_wait_for_all_before() {
    let mut turn = asking(&["write", "read", "read", "write"]);
    assert_eq!(step(&mut turn), "clear 0 write");
    assert_eq!(step(&mut turn), "clear 0 write");
    turn.cleared(0, false);
    assert_eq!(step(&mut turn), "start 0");
    // A writing call in flight lets nobody on, not even to be cleared.
    assert_eq!(step(&mut turn), "await 0");
    turn.answered(0, answer("w0"));
    assert_eq!(step(&mut turn), "clear 1 read");
    turn.cleared(1, true);
    assert_eq!(step(&mut turn), "start 1");
    // Read-only calls overlap.
    assert_eq!(step(&mut turn), "clear 2 read");
    turn.cleared(2, true);
    assert_eq!(step(&mut turn), "start 2");
    assert_eq!(step(&mut turn), "await 1");
    // They may end in any order; a writing call starts when all before it have ended.
    turn.answered(2, answer("r2"));
    assert_eq!(step(&mut turn), "await 1");
    turn.answered(1, answer("r1"));
    assert_eq!(step(&mut turn), "clear 3 write");
    turn.cleared(3, false);
    assert_eq!(step(&mut turn), "start 3");
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
    assert_eq!(step(&mut turn), "clear 1 read");
    turn.cleared(1, false);
    assert_eq!(step(&mut turn), "await 0");
    turn.answered(0, answer("r0"));
    assert_eq!(step(&mut turn), "start 1");
    assert_eq!(step(&mut turn), "await 1");
}

#[test]
fn a_refused_call_does_not_stop_the_batch() {
    let mut turn = asking(&["write", "write"]);
    step(&mut turn);
    turn.answered(0, Answer::not_run("denied"));
    assert_eq!(step(&mut turn), "clear 1 write");
    turn.answered(1, answer("substituted"));
    assert_eq!(step(&mut turn), "model 2");
    assert_eq!(said(turn), ["hi", "c0 c1", "c0: denied", "c1: substituted"]);
}

#[test]
fn an_abort_in_a_batch_answers_the_rest_with_its_text() {
    let mut turn = asking(&["read", "read", "read", "write"]);
    step(&mut turn);
    turn.cleared(0, true);
    step(&mut turn);
    step(&mut turn);
    turn.cleared(1, true);
    assert_eq!(step(&mut turn), "start 1");
    assert_eq!(step(&mut turn), "clear 2 read");
    turn.end(End::failed("hook.before_tool", "hook aborted turn during before_tool: no"));
    // A clearing that came through late starts nothing.
    turn.cleared(2, true);
    assert_eq!(step(&mut turn), "await 0");
    turn.answered(0, answer("r0"));
    assert_eq!(step(&mut turn), "await 1");
    turn.end(End::cancelled());
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
    step(&mut turn);
    turn.end(End::cancelled());
    assert!(turn.is_ending());
    turn.answered(0, answer("w0"));
    assert_eq!(step(&mut turn), "end Aborted \"\"");
    assert_eq!(said(turn), ["hi", "c0 c1", "c0: w0", "c1: Skipped because the turn was cancelled."]);
}

#[test]
fn a_batch_that_was_handled_ends_the_turn_without_another_model_call() {
    let mut turn = asking(&["write", "write"]);
    step(&mut turn);
    turn.answered(0, handled("a"));
    step(&mut turn);
    turn.answered(1, handled("b"));
    assert_eq!(step(&mut turn), "end Completed \"\"");
    assert_eq!(said(turn), ["hi", "c0 c1", "c0: a", "c1: b", "Requested output delivered via tool attachment."]);

    let mut turn = asking(&["write", "write"]);
    step(&mut turn);
    turn.answered(0, handled("a"));
    step(&mut turn);
    turn.answered(1, answer("b"));
    assert_eq!(step(&mut turn), "model 2");
}

#[test]
fn an_end_during_a_handled_batch_stores_no_delivery() {
    let mut turn = asking(&["write"]);
    step(&mut turn);
    turn.answered(0, handled("a"));
    turn.end(End::cancelled());
    assert_eq!(step(&mut turn), "end Aborted \"\"");
    assert_eq!(said(turn), ["hi", "c0", "c0: a"]);
}

#[test]
fn the_iteration_limit_ends_the_turn_as_an_error() {
    let mut turn = asking(&["write"]);
    step(&mut turn);
    turn.answered(0, answer("one"));
    assert_eq!(step(&mut turn), "model 2");
    turn.replied(calls(&["write"]), "m", |_| false);
    step(&mut turn);
    turn.answered(0, answer("two"));
    assert_eq!(step(&mut turn), "end Error llm: iteration limit 2 reached");
    assert_eq!(turn.iteration(), 2);
    assert_eq!(said(turn), ["hi", "c0", "c0: one", "c0", "c0: two"]);
}

#[test]
fn a_hard_abort_rolls_back_and_beats_any_other_end() {
    let mut turn = asking(&["write"]);
    turn.end(End::cancelled());
    turn.end(End::hard_aborted());
    turn.end(End::failed("llm", "late"));
    assert_eq!(step(&mut turn), "end Aborted \"\" back");
    assert_eq!(said(turn), [""; 0]);
}

#[test]
fn nothing_changes_an_end_that_was_told() {
    let mut turn = turn(1);
    step(&mut turn);
    turn.replied(LlmReply::text("hello"), "m", |_| false);
    // The driver does not know yet: a hard abort still counts.
    turn.end(End::hard_aborted());
    assert_eq!(step(&mut turn), "end Aborted \"\" back");

    let mut turn = self::turn(1);
    step(&mut turn);
    turn.replied(LlmReply::text("hello"), "m", |_| false);
    assert_eq!(step(&mut turn), "end Completed \"hello\"");
    turn.end(End::hard_aborted());
    turn.replied(LlmReply::text("late"), "m", |_| false);
    turn.answered(0, answer("late"));
    assert_eq!(step(&mut turn), "end Completed \"hello\"");
    assert_eq!(said(turn), ["hi", "hello"]);
}

#[test]
fn a_reply_that_comes_after_the_end_is_not_stored() {
    let mut turn = turn(1);
    step(&mut turn);
    turn.end(End::failed("hook.after_llm", "hook aborted turn during after_llm: no"));
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
fn calls_without_an_id_of_their_own_get_one() {
    let mut turn = turn(1);
    step(&mut turn);
    let ids = ["x", "", "x", "call_1_1", ""];
    let parts = ids.iter().map(|id| CallPart::new(id, "write", "{}")).collect();
    let blocks = vec![serde_json::json!("as the provider wrote it")];
    let reply = LlmReply { private: Private { blocks }, ..LlmReply::calls(parts) };
    turn.replied(reply, "m", |_| false);
    for call in 0..ids.len() {
        let Step::Clear { part, .. } = turn.next() else { panic!("call {call} waits") };
        turn.answered(call, Answer::not_run(part.id));
    }
    step(&mut turn);
    assert_eq!(turn.messages()[2].get().private, Private::default());
    assert_eq!(
        said(turn),
        [
            "hi",
            "x call_1_2 call_1_3 call_1_1 call_1_4",
            "x: x",
            "call_1_2: call_1_2",
            "call_1_3: call_1_3",
            "call_1_1: call_1_1",
            "call_1_4: call_1_4"
        ]
    );
}

#[test]
fn an_order_of_a_hook_ends_the_turn_and_says_so() {
    let order = |extent| Aborted {
        by: "guard".into(),
        at: crate::checkpoint::CheckpointKind::BeforeTool,
        abort: crate::verdict::Abort { extent, reason: "too far".into() },
    };
    let text = "hook aborted turn during before_tool: too far";
    let turn_only = End::stopped(order(Extent::Turn));
    assert_eq!(turn_only.error, Some(("hook.before_tool".into(), text.into())));
    let error =
        RuntimeEvent::Error { stage: "hook.before_tool".into(), message: text.into(), hook: Some("guard".into()) };
    assert_eq!((turn_only.status, turn_only.roll_back, turn_only.told()), (TurnStatus::Error, false, Some(error)));
    let run = End::stopped(order(Extent::Run));
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
    assert_eq!(End::failed("llm", "gone").told(), Some(failed));
    assert_eq!((End::cancelled().told(), End::completed("hi").told()), (None, None));
}
