//! What a journal folds to, as tables.

use std::collections::BTreeMap;

use super::*;
use crate::message::{CallPart, Role};
use crate::turn::{MessageSender, ModelAnswer, OUTCOME_UNKNOWN};

fn opened() -> JournalEntry {
    JournalEntry::Opened { by: "pid 1".into(), under: None }
}

fn closed(cause: ReleaseReason) -> JournalEntry {
    JournalEntry::Closed { cause }
}

fn kept(role: Role, text: &str) -> KeptMessage {
    Message::text(role, text).into()
}

fn begun(turn: &str, prompts: &[&str]) -> JournalEntry {
    let prompts = prompts.iter().map(|text| kept(Role::User, text)).collect();
    JournalEntry::Turn(Fact::Begun { turn_id: turn.into(), prompts, max_iterations: 5, key: None })
}

fn queued(text: &str) -> JournalEntry {
    JournalEntry::Turn(Fact::Queued(WaitingMessage {
        message: kept(Role::User, text),
        from: MessageSender::Person,
        notes: Vec::new(),
    }))
}

fn text(iteration: u32, text: &str) -> JournalEntry {
    let message = kept(Role::Assistant, text);
    JournalEntry::Turn(Fact::Replied {
        iteration,
        message,
        read_only: Vec::new(),
        terminal: false,
        owners: BTreeMap::new(),
        cut: false,
        usage: None,
    })
}

/// The model asks for one call of each of `tools`.
fn asks(iteration: u32, tools: &[&str]) -> JournalEntry {
    let tool_calls = tools.iter().map(|tool| CallPart::new(tool, tool, "{}")).collect();
    let message = Message { tool_calls, ..Message::text(Role::Assistant, "") }.into();
    JournalEntry::Turn(Fact::Replied {
        iteration,
        message,
        read_only: Vec::new(),
        terminal: false,
        owners: BTreeMap::new(),
        cut: false,
        usage: None,
    })
}

fn used(place: usize) -> JournalEntry {
    let (tool, digest) = ("exec".into(), "d".into());
    JournalEntry::Turn(Fact::Used { place, read_only: false, tool, digest, rewritten: None })
}

fn answered(place: usize, text: &str) -> JournalEntry {
    JournalEntry::Turn(Fact::Answered { place, answer: ModelAnswer::not_run(text) })
}

fn ended(status: TurnStatus, roll_back: bool) -> JournalEntry {
    JournalEntry::Turn(Fact::Ended { status, roll_back, error: None, reply: String::new() })
}

fn compacted(upto: usize, summary: &str) -> JournalEntry {
    JournalEntry::Turn(Fact::Compacted { upto, summary: Some(kept(Role::System, summary)) })
}

/// The conversation, what waits and the open turn: `one two | waiting | t1`.
fn came_to(entries: &[JournalEntry]) -> String {
    let session = Session::fold(entries.to_vec());
    let texts = |message: &Rendered<Message>| match &message.get().tool_calls[..] {
        [] => message.get().content.clone(),
        calls => format!("[{}]", calls.iter().map(|part| part.id.as_str()).collect::<Vec<_>>().join(" ")),
    };
    let messages: Vec<String> = session.messages().iter().map(texts).collect();
    let queue: Vec<&str> = session.queue().iter().map(WaitingMessage::text).collect();
    let inbox: Vec<&str> =
        session.open().map(|open| open.turn.waiting().map(WaitingMessage::text).collect()).unwrap_or_default();
    let open = session.open().map_or("-".to_owned(), |open| format!("{} {:?}", open.turn_id, inbox));
    format!("{} | {} | {open}", messages.join(", "), queue.join(", "))
}

fn check(entries: &[JournalEntry], expected: &str) {
    assert_eq!(came_to(entries), expected);
    // Entries that come one by one come to the same.
    let mut session = Session::default();
    for (at, entry) in entries.iter().enumerate() {
        session.apply(entry.clone());
        let whole = Session::fold(entries[..=at].to_vec());
        assert_eq!(format!("{session:?}"), format!("{whole:?}"));
    }
}

#[test]
fn an_opening_is_held_until_it_is_closed() {
    let held = |entries: &[JournalEntry]| {
        let session = Session::fold(entries.to_vec());
        (session.has_begun(), session.is_held(), session.last_cause().map(ReleaseReason::word))
    };
    assert_eq!(held(&[]), (false, false, None));
    assert_eq!(held(&[opened()]), (true, true, None));
    for (cause, word) in [
        (ReleaseReason::Done, "done"),
        (ReleaseReason::Failed, "failed"),
        (ReleaseReason::Interrupted, "interrupted"),
        (ReleaseReason::Waiting, "waiting"),
        (ReleaseReason::Killed, "killed"),
    ] {
        assert_eq!(held(&[opened(), closed(cause)]), (true, false, Some(word)));
        assert_eq!(serde_json::to_string(&cause).unwrap(), format!("\"{word}\""));
        assert_eq!(held(&[opened(), closed(cause), opened()]), (true, true, Some(word)));
    }
    // An opening that nobody closed was that of a process which was killed.
    assert_eq!(held(&[opened(), opened()]), (true, true, Some("killed")));
    assert_eq!(
        held(&[opened(), closed(ReleaseReason::Killed), opened(), closed(ReleaseReason::Done)]),
        (true, false, Some("done"))
    );
}

#[test]
fn turns_follow_one_another() {
    let first = vec![opened(), begun("t1", &["hi"]), text(1, "hello"), ended(TurnStatus::Completed, false)];
    check(&first, "hi, hello |  | -");
    let second = [begun("t2", &["and", "then"]), asks(1, &["a", "b"]), answered(0, "ra"), answered(1, "rb")];
    let both = [first, second.to_vec()].concat();
    check(&both, "hi, hello, and, then, [a b] |  | t2 []");
    assert_eq!(Session::fold(both.clone()).open().unwrap().prompt, "and\n\nthen");
    let rest = [text(2, "done"), ended(TurnStatus::Completed, false), closed(ReleaseReason::Done)];
    check(&[both, rest.to_vec()].concat(), "hi, hello, and, then, [a b], ra, rb, done |  | -");
}

#[test]
fn what_is_queued_outside_a_turn_waits_for_the_next_one_and_is_taken_once() {
    let waiting = vec![opened(), queued("one"), queued("two")];
    check(&waiting, " | one, two | -");
    let taken = [waiting.clone(), vec![begun("t1", &["one", "two", "three"])]].concat();
    check(&taken, "one, two, three |  | t1 []");
    // What came in while the turn was being prepared is not lost with its beginning.
    let late = [waiting, vec![queued("late"), begun("t1", &["one", "two"])]].concat();
    check(&late, "one, two | late | t1 []");
    let rest = [text(1, "hello"), ended(TurnStatus::Completed, false), begun("t2", &["late"])];
    check(&[late, rest.to_vec()].concat(), "one, two, hello, late |  | t2 []");
    // Of two that say the same, one prompt takes one.
    check(&[queued("go"), queued("go"), begun("t1", &["go"])], "go | go | t1 []");
}

#[test]
fn what_is_queued_in_a_turn_and_not_taken_waits_for_the_next_one() {
    let turn =
        vec![begun("t1", &["hi"]), queued("one"), queued("two"), JournalEntry::Turn(Fact::Injected { count: 1 })];
    check(&turn, "hi, one |  | t1 [\"two\"]");
    let end = [text(1, "hello"), queued("three"), ended(TurnStatus::Completed, false)];
    let ended = [turn, end.to_vec()].concat();
    check(&ended, "hi, one, hello | two, three | -");
    check(&[ended, vec![queued("four")]].concat(), "hi, one, hello | two, three, four | -");
}

#[test]
fn a_killed_turn_stands_open_and_can_be_ended_by_whoever_comes_next() {
    let killed = vec![
        opened(),
        begun("t1", &["hi"]),
        asks(1, &["a", "b", "c"]),
        used(0),
        answered(0, "ra"),
        queued("wait"),
        used(1),
        closed(ReleaseReason::Killed),
        opened(),
    ];
    check(&killed, "hi, [a b c] |  | t1 [\"wait\"]");
    assert_eq!(Session::fold(killed.clone()).open().unwrap().turn.running(), [1]);
    let aborted = [killed.clone(), vec![ended(TurnStatus::Aborted, false)]].concat();
    let cancelled = "Skipped because the turn was cancelled.";
    let expected = format!("hi, [a b c], ra, {OUTCOME_UNKNOWN}, {cancelled} | wait | -");
    check(&aborted, &expected);
    // A turn that begins while another one stands open finds that one ended: nothing of it is lost.
    let expected = format!("hi, [a b c], ra, {OUTCOME_UNKNOWN}, {cancelled}, wait |  | t2 []");
    check(&[killed, vec![begun("t2", &["wait"])]].concat(), &expected);
}

#[test]
fn a_turn_that_was_killed_goes_on_from_its_journal() {
    let entries = vec![begun("t1", &["hi"]), asks(1, &["a"]), used(0), answered(0, "ra")];
    let mut session = Session::fold(entries);
    let open = session.open_mut().unwrap();
    assert_eq!(open.turn.next(), crate::turn::TurnStep::CallModel { iteration: 2, terminal: false });
    session.apply(text(2, "done"));
    session.apply(ended(TurnStatus::Completed, false));
    assert_eq!(session.messages().len(), 4);
    assert!(session.open().is_none());
}

#[test]
fn a_roll_back_goes_to_where_the_turn_began_and_drops_what_waited() {
    let before = vec![begun("t1", &["hi"]), text(1, "hello"), ended(TurnStatus::Completed, false)];
    let turn = [
        begun("t2", &["more"]),
        queued("a"),
        JournalEntry::Turn(Fact::Injected { count: 1 }),
        queued("b"),
        asks(1, &["x"]),
    ];
    let aborted = [before, turn.to_vec(), vec![used(0), ended(TurnStatus::Aborted, true)]].concat();
    check(&aborted, "hi, hello |  | -");
    check(&[aborted, vec![queued("c")]].concat(), "hi, hello | c | -");
}

#[test]
fn a_compaction_in_a_turn_is_undone_by_its_roll_back_and_kept_otherwise() {
    let before =
        vec![begun("t1", &["hi"]), text(1, "hello"), ended(TurnStatus::Completed, false), begun("t2", &["more"])];
    let compacted = [before, vec![compacted(2, "sum")]].concat();
    check(&compacted, "sum, more |  | t2 []");
    check(&[compacted.clone(), vec![ended(TurnStatus::Aborted, true)]].concat(), "hi, hello |  | -");
    check(&[compacted, vec![text(1, "bye"), ended(TurnStatus::Completed, false)]].concat(), "sum, more, bye |  | -");
}

#[test]
fn a_compaction_outside_a_turn_parts_no_call_from_its_answer() {
    let entries = vec![
        begun("t1", &["hi"]),
        asks(1, &["a"]),
        answered(0, "ra"),
        text(2, "done"),
        ended(TurnStatus::Completed, false),
    ];
    let cut = |upto| came_to(&[entries.clone(), vec![compacted(upto, "sum")]].concat());
    assert_eq!(cut(0), "hi, [a], ra, done |  | -");
    assert_eq!(cut(1), "sum, [a], ra, done |  | -");
    assert_eq!(cut(2), "sum, [a], ra, done |  | -");
    assert_eq!(cut(3), "sum, done |  | -");
    assert_eq!(cut(4), "sum |  | -");
    assert_eq!(cut(99), "sum |  | -");
    let dropped = JournalEntry::Turn(Fact::Compacted { upto: 3, summary: None });
    check(&[entries, vec![dropped]].concat(), "done |  | -");
}

#[test]
fn what_belongs_to_no_turn_changes_nothing() {
    let strays = [
        text(1, "x"),
        answered(0, "x"),
        used(0),
        ended(TurnStatus::Aborted, true),
        JournalEntry::Turn(Fact::Interrupted),
    ];
    check(&strays, " |  | -");
    check(&[vec![queued("a")], strays.to_vec()].concat(), " | a | -");
}

#[test]
fn texts_that_stand_for_a_while_only_are_nothing_that_was_said() {
    let with = crate::turn::TurnSetup {
        skills: crate::ledger::tests::skills(),
        flow: crate::turn::TurnFlow::Direct,
        tools: crate::turn::ToolUse::Own,
    };
    let equipped = JournalEntry::Turn(Fact::Equipped { with: Box::new(with) });
    let mut session = Session::fold([begun("t1", &["hi"]), equipped, asks(1, &["x"])]);
    let said = |session: &Session| -> Vec<String> { session.said().map(|message| message.content.clone()).collect() };
    assert_eq!(session.messages().len(), 5);
    assert_eq!(said(&session)[..2], ["hi", "tone"]);
    assert_eq!(said(&session).len(), 3);
    session.apply(ended(TurnStatus::Completed, false));
    assert_eq!(said(&session).len(), session.messages().len());
}

#[test]
fn a_session_knows_the_key_that_asked_for_the_turn_which_began_last() {
    let begun = |key: Option<&str>| {
        let (prompts, key) = (Vec::new(), key.map(str::to_owned));
        JournalEntry::Turn(Fact::Begun { turn_id: "t".into(), prompts, max_iterations: 5, key })
    };
    let mut session = Session::fold([begun(Some("k"))]);
    assert_eq!(session.asked_with(), Some("k"));
    session.apply(ended(TurnStatus::Completed, false));
    session.apply(begun(None));
    assert_eq!(session.asked_with(), None, "another credential asked for this one");
}

#[test]
fn a_session_knows_the_configuration_under_which_it_was_worked_last() {
    let under = |config: &[&str], guards: &[&str], digest: &str| WorkedUnder {
        config: config.iter().map(ToString::to_string).collect(),
        guards: guards.iter().map(ToString::to_string).collect(),
        digest: digest.to_owned(),
    };
    let before = under(&["/a"], &["g", "h"], "1");
    let another = |files, gone: &[&str]| {
        let gone = gone.iter().map(ToString::to_string).collect();
        ConfigDrift::Another { files, gone }
    };
    for (now, drift) in [
        (before.clone(), ConfigDrift::None),
        (under(&["/a"], &["g", "h"], "2"), ConfigDrift::Edited),
        (under(&["/a"], &["f", "g", "h"], "2"), ConfigDrift::Edited),
        (under(&["/a"], &["h"], "2"), another(false, &["g"])),
        (under(&["/a", "/b"], &["g", "h"], "1"), another(true, &[])),
        (under(&[], &[], ""), another(true, &["g", "h"])),
    ] {
        assert_eq!(now.drift(&before), drift, "{now:?}");
    }
    let opened_under = |under| JournalEntry::Opened { by: "pid 1".into(), under };
    // A host that says nothing changes nothing.
    let entries = [opened_under(Some(before.clone())), closed(ReleaseReason::Done), opened_under(None)];
    let read: Vec<JournalEntry> =
        entries.iter().map(|entry| serde_json::from_str(&serde_json::to_string(entry).unwrap()).unwrap()).collect();
    assert_eq!(Session::fold(read).worked_under(), Some(&before));
    let old: JournalEntry = serde_json::from_str(r#"{"opened":{"by":"pid 1"}}"#).unwrap();
    assert_eq!(old, opened());
}

#[test]
fn a_turn_that_was_stopped_can_be_taken_back_until_the_next_one_begins() {
    use TurnStatus::{Aborted, Completed};
    let stopped = |text: &str| JournalEntry::Turn(Fact::Stopped { iteration: 1, message: kept(Role::Assistant, text) });
    let back = || JournalEntry::Turn(Fact::TakenBack);
    let first = [opened(), begun("t1", &["hi"]), text(1, "hello"), ended(Completed, false)];
    let second = [begun("t2", &["go"]), stopped("so f"), queued("and fast"), ended(Aborted, false)];
    let with = |more: Vec<JournalEntry>| Session::fold(first.iter().chain(&second).cloned().chain(more));
    let said = |session: &Session| session.said().map(|it| it.content.clone()).collect::<Vec<_>>();
    let session = with(Vec::new());
    assert_eq!((said(&session), session.queue().len()), (["hi", "hello", "go", "so f"].map(String::from).into(), 1));
    assert!(session.can_take_back());
    let session = with(vec![back()]);
    assert_eq!((said(&session), session.queue().len()), (["hi", "hello"].map(String::from).into(), 0));
    // Once, and nothing of what was said after it.
    let session = with(vec![begun("t3", &["more"]), text(1, "yes"), ended(Completed, false), back()]);
    assert!(!session.can_take_back());
    assert_eq!(said(&session).len(), 6);
    assert_eq!(said(&with(vec![back(), back()])).len(), 2);
    // While a turn is open there is nothing to take back.
    assert_eq!(said(&with(vec![begun("t3", &["more"]), back()])).len(), 5);
}
