//! The oldest messages give way to a summary, and come back when the turn is rolled back.

use super::*;

fn history(texts: &[&str]) -> Vec<Rendered<Message>> {
    texts.iter().map(|text| Message::text(Role::User, *text).into()).collect()
}

/// A turn over `one two three`, whose first model call is under way.
fn begun() -> Turn {
    let mut turn = Turn::new(history(&["one", "two", "three"]), Message::text(Role::User, "hi"), 3);
    assert_eq!(step(&mut turn), "model 1");
    turn
}

fn compacted(upto: usize, summary: Option<&str>) -> Fact {
    Fact::Compacted { upto, summary: summary.map(|text| Message::text(Role::System, text).into()) }
}

fn texts(messages: &[Rendered<Message>]) -> Vec<&str> {
    messages.iter().map(|message| message.get().content.as_str()).collect()
}

#[test]
fn a_summary_stands_in_the_place_of_what_went() {
    let check = |upto, summary, expected: &[&str], base| {
        let mut turn = begun();
        turn.apply(compacted(upto, summary));
        assert_eq!((texts(turn.messages()), turn.base()), (expected.to_vec(), base), "{upto} {summary:?}");
        turn.replied(LlmReply::text("bye"), "m", |_| false);
        assert_eq!(step(&mut turn), "end Completed \"bye\"");
        assert_eq!(texts(&turn.into_messages()), [expected, &["bye"]].concat());
    };
    check(2, Some("sum"), &["sum", "three", "hi"], 2);
    check(2, None, &["three", "hi"], 1);
    check(3, Some("sum"), &["sum", "hi"], 1);
    check(0, Some("sum"), &["one", "two", "three", "hi"], 3);
    // Messages of the turn itself may go as well; there are no more than there are.
    check(4, Some("sum"), &["sum"], 1);
    check(99, None, &[], 0);
}

#[test]
fn a_roll_back_brings_back_what_went() {
    let mut turn = begun();
    turn.apply(compacted(2, Some("first")));
    turn.apply(compacted(2, Some("second")));
    assert_eq!(texts(turn.messages()), ["second", "hi"]);
    turn.end(TurnEnd::hard_aborted());
    step(&mut turn);
    assert_eq!(texts(&turn.into_messages()), ["one", "two", "three"]);

    let mut turn = begun();
    turn.apply(compacted(99, None));
    turn.end(TurnEnd::cancelled());
    step(&mut turn);
    assert_eq!(texts(&turn.into_messages()), [""; 0]);
}

#[test]
fn no_call_is_parted_from_its_answer() {
    let mut turn = asking(&["write", "write"]);
    for call in 0..2 {
        reports(&mut turn, &[&format!("clear {call} write"), &format!("start {call}"), &format!("await {call}")]);
    }
    assert_eq!(step(&mut turn), "model 2");
    // history, hi, the calls, two answers: a cut between the last three moves back before them.
    for upto in [2, 3, 4] {
        let mut cut = turn.clone();
        cut.apply(compacted(upto, None));
        assert_eq!(cut.messages().len(), 3, "{upto}");
    }
    turn.apply(compacted(5, None));
    assert_eq!(turn.messages().len(), 0);
}

#[test]
fn the_message_whose_calls_are_worked_stays() {
    let mut turn = asking(&["write"]);
    turn.apply(compacted(99, Some("sum")));
    reports(&mut turn, &["clear 0 write", "start 0", "await 0"]);
    assert_eq!(step(&mut turn), "model 2");
    assert_eq!(said(turn), ["c0", "c0: r0"]);
}
