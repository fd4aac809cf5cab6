//! Model calls and whole batches.

use super::*;

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
    turn.end(TurnEnd::cancelled());
    assert_eq!(step(&mut turn), "end Aborted \"\"");
    assert_eq!(said(turn), ["hi", "c0", "c0: a"]);
}

#[test]
fn at_the_iteration_limit_the_model_sums_up_and_the_turn_ends_as_an_error() {
    let mut turn = asking(&["write"]);
    step(&mut turn);
    turn.answered(0, answer("one"));
    assert_eq!(step(&mut turn), "model 2");
    turn.replied(calls(&["write"]), "m", |_| false);
    step(&mut turn);
    turn.answered(0, answer("two"));
    assert_eq!(step(&mut turn), "model 3 last");
    assert_eq!(turn.limit_reached(), Some(2));
    turn.replied(LlmReply::text("so far: two"), "m", |_| false);
    assert_eq!(turn.next(), TurnStep::End(TurnEnd::at_limit(2, "so far: two")));
    assert_eq!(step(&mut turn), "end Error llm: iteration limit 2 reached");
    assert_eq!(said(turn), ["hi", "c0", "c0: one", "call_2_0", "call_2_0: two", "so far: two"]);
}

#[test]
fn a_call_in_the_last_words_at_the_limit_is_passed_over() {
    let mut turn = turn(0);
    assert_eq!(step(&mut turn), "model 1 last");
    turn.replied(LlmReply { content: "one more".into(), ..calls(&["write"]) }, "m", |_| false);
    report(&mut turn, "skip 0: iteration limit reached");
    assert_eq!(turn.next(), TurnStep::End(TurnEnd::at_limit(0, "one more")));
}

#[test]
fn an_answer_that_is_stopped_stands_as_far_as_it_came() {
    let mut turn = asking(&["write"]);
    step(&mut turn);
    turn.answered(0, answer("one"));
    assert_eq!(step(&mut turn), "model 2");
    let message = Message::text(Role::Assistant, "so f").into();
    turn.apply(Fact::Stopped { iteration: 2, message });
    assert_eq!(step(&mut turn), "end Aborted \"\"");
    assert_eq!(said(turn), ["hi", "c0", "c0: one", "so f"]);
}

#[test]
fn calls_without_an_id_of_their_own_get_one() {
    let mut turn = turn(1);
    step(&mut turn);
    let ids = ["x", "", "x", "call_1_1", ""];
    let parts = ids.iter().map(|id| CallPart::new(id, "write", "{}")).collect();
    let blocks = vec![crate::json::json!("as the provider wrote it")];
    let reply = LlmReply { private: ProviderData::of(blocks), ..LlmReply::calls(parts) };
    turn.replied(reply, "m", |_| false);
    for call in 0..ids.len() {
        let TurnStep::Clear { part, .. } = turn.next() else { panic!("call {call} waits") };
        turn.answered(call, ModelAnswer::not_run(part.id));
    }
    step(&mut turn);
    assert_eq!(turn.messages()[2].get().private, ProviderData::default());
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
