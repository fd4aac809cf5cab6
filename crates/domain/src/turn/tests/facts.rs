//! Facts as they are kept, and turns that are made of them again.

use super::*;
use crate::checkpoint::runtime::TurnStatus;
use crate::history::{ChangedMessage, RecalledHistory, RecalledMessage, WithheldReason};
use crate::kept_result::KeptResult;
use crate::llm::Usage;
use crate::planning::StepPrompts;
use crate::session::{JournalEntry, ReleaseReason, Session, settle};

/// A message with everything that a message can have, exact digits and private blocks among it.
fn rich() -> KeptMessage {
    let foreign: crate::json::Value =
        serde_json::from_str(r#"{"n":0.10000000000000000001,"big":123456789012345678901234567890,"e":1E+2}"#).unwrap();
    let part = CallPart {
        extra_content: Some(foreign.clone()),
        ..CallPart::new("c1", "exec", r#"{"n":1.0,"m":10000000000000000000000001}"#)
    };
    let system =
        crate::message::SystemPart { kind: "text".into(), text: "t".into(), cache_control: Some(foreign.clone()) };
    KeptMessage::from(Message {
        reasoning_content: "hm".into(),
        media: vec!["media://1".into()],
        attachments: vec![foreign.clone()],
        system_parts: vec![system],
        tool_calls: vec![part],
        tool_call_id: "c0".into(),
        model_name: "m".into(),
        created_at: Some("2026-01-01T00:00:00Z".into()),
        private: ProviderData::of(vec![foreign, crate::json::json!({"signature": "\u{2028}é"})]),
        ..Message::text(Role::Assistant, "a\nb\0")
    })
}

fn used(place: usize) -> Fact {
    Fact::Used { place, read_only: true, tool: "exec".into(), digest: "d".into(), rewritten: None }
}

fn ended(status: TurnStatus, roll_back: bool, reply: &str) -> Fact {
    Fact::Ended { status, roll_back, error: None, reply: reply.into() }
}

fn equipment(flow: TurnFlow) -> TurnSetup {
    TurnSetup { skills: crate::ledger::tests::skills().narrowed(&["beta".into()]), flow, tools: ToolUse::Own }
}

fn last_of(with: &TurnSetup) -> crate::ledger::MsgId {
    let with = TurnSetup { skills: crate::ledger::tests::skills(), ..with.clone() };
    let mut turn = turn(2);
    turn.apply(Fact::Equipped { with: Box::new(with) });
    turn.to_announce()[0].id
}

fn rich_answer() -> ModelAnswer {
    let execution = ToolExecution { name: "exec".into(), success: false, error_summary: Some("no".into()) };
    ModelAnswer {
        text: "t".into(),
        media: vec!["m".into()],
        handled: true,
        execution: Some(execution),
        named: ["/srv/a.png".into()].into(),
        ..ModelAnswer::not_run("")
    }
}

/// Every fact and every entry, each with and without what may be missing.
fn entries() -> Vec<JournalEntry> {
    let failed = (TurnStatus::Error, Some(("llm".to_owned(), "gone".to_owned())));
    let from = MessageSender::Subturn { agent: "helper".into(), turn_id: "t2".into() };
    let (hook, skill) = (Some("tone".to_owned()), Some("alpha".to_owned()));
    let from_a_hook = RecalledMessage { message: rich(), hook, skill };
    let withheld = vec![
        ChangedMessage { place: 1, why: WithheldReason::UnknownCall },
        ChangedMessage { place: 2, why: WithheldReason::Rewritten },
    ];
    let facts = vec![
        Fact::TakenBack,
        Fact::Stopped { iteration: 2, message: rich() },
        Fact::Recalled(RecalledHistory { keep: 0, messages: Vec::new(), withheld: Vec::new() }),
        Fact::Recalled(RecalledHistory { keep: 3, messages: vec![from_a_hook], withheld }),
        Fact::Begun { turn_id: "t1".into(), prompts: vec![rich(), rich()], max_iterations: u32::MAX, key: None },
        Fact::Equipped { with: Box::new(equipment(TurnFlow::Direct)) },
        Fact::Equipped {
            with: Box::new(TurnSetup { tools: ToolUse::Off, ..equipment(TurnFlow::Planned(StepPrompts::default())) }),
        },
        Fact::Planned { message: rich(), need_tool: true, usage: Some(Usage::told(9, 2, None)) },
        Fact::Announced { upto: last_of(&equipment(TurnFlow::Direct)) },
        Fact::Queued(WaitingMessage { message: rich(), from: MessageSender::Person, notes: Vec::new() }),
        Fact::Queued(WaitingMessage { message: rich(), from, notes: Vec::new() }),
        Fact::Injected { count: 2 },
        Fact::Interrupted,
        Fact::Replied {
            iteration: 3,
            message: rich(),
            read_only: vec![true, false],
            terminal: false,
            owners: BTreeMap::new(),
            cut: false,
            usage: None,
        },
        Fact::Replied {
            iteration: 3,
            message: rich(),
            read_only: Vec::new(),
            terminal: true,
            owners: [("web".to_owned(), "h".into())].into(),
            cut: false,
            usage: Some(Usage::told(9, 2, None)),
        },
        used(1),
        Fact::Answered { place: 0, answer: rich_answer() },
        Fact::Answered { place: 0, answer: ModelAnswer::not_run("no").about("exec") },
        Fact::Compacted { upto: 4, summary: Some(rich()) },
        Fact::Compacted { upto: 4, summary: None },
        Fact::Trimmed { at: 2, text: "begin".into() },
        ended(TurnStatus::Completed, false, "bye"),
        ended(TurnStatus::Aborted, true, ""),
        Fact::Ended { status: failed.0, roll_back: false, error: failed.1, reply: String::new() },
    ];
    let causes = [
        ReleaseReason::Done,
        ReleaseReason::Failed,
        ReleaseReason::Interrupted,
        ReleaseReason::Waiting,
        ReleaseReason::Killed,
    ];
    let closed = causes.map(|cause| JournalEntry::Closed { cause });
    facts
        .into_iter()
        .map(JournalEntry::Turn)
        .chain([JournalEntry::Opened { by: "pid 4711".into(), under: None }])
        .chain([JournalEntry::Kept(KeptResult { id: 7, text: "a\nb".into() })])
        .chain(closed)
        .collect()
}

#[test]
fn every_entry_comes_back_from_its_json_digit_for_digit() {
    for entry in entries() {
        let text = serde_json::to_string(&entry).unwrap();
        let back: JournalEntry = serde_json::from_str(&text).unwrap();
        assert_eq!(back, entry);
        assert_eq!(serde_json::to_string(&back).unwrap(), text);
    }
    let text = serde_json::to_string(&rich()).unwrap();
    for digits in ["0.10000000000000000001", "123456789012345678901234567890", "signature"] {
        assert!(text.contains(digits), "{digits} is lost: {text}");
    }
}

#[test]
fn what_an_answer_cost_stands_with_it() {
    let usage = Some(Usage::told(9, 2, None));
    let reply = LlmReply { usage, ..LlmReply::text("hi") };
    let fact = turn(2).reply_fact(reply, "m", |_| false);
    assert!(matches!(fact, Fact::Replied { usage: kept, .. } if kept == usage));
}

#[test]
fn what_is_absent_is_left_out_and_may_be_missing() {
    let json = |fact: &Fact| serde_json::to_string(fact).unwrap();
    assert_eq!(json(&ended(TurnStatus::Completed, false, "")), r#"{"ended":{"status":"completed","roll_back":false}}"#);
    assert_eq!(json(&used(0)), r#"{"used":{"place":0,"read_only":true,"tool":"exec","digest":"d"}}"#);
    let plain =
        r#"{"replied":{"iteration":1,"message":{"message":{"role":"assistant","content":"x"}},"read_only":[]}}"#;
    let fact: Fact = serde_json::from_str(plain).unwrap();
    assert_eq!(json(&fact), plain);
    assert!(matches!(fact, Fact::Replied { terminal: false, .. }));
}

#[test]
fn a_message_keeps_its_private_blocks_on_the_way_through_a_fact() {
    let message = Message::from(rich());
    assert_eq!(message.private.blocks.len(), 2);
    assert_eq!(KeptMessage::from(message.clone()), rich());
    let mut turn = turn(2);
    turn.apply(Fact::Queued(WaitingMessage { message: rich(), from: MessageSender::Person, notes: Vec::new() }));
    turn.apply(Fact::Injected { count: 1 });
    let entered = turn.messages()[2].get();
    assert_eq!(entered.private.blocks, message.private.blocks);
    assert_eq!(KeptMessage::from(entered.clone()), rich());
}

/// A turn that is made of facts alone, after its prompt.
fn folded(facts: Vec<Fact>) -> Turn {
    let mut turn = turn(2);
    facts.into_iter().for_each(|fact| turn.apply(fact));
    turn
}

fn replied(iteration: u32, tools: &[&str], terminal: bool) -> Fact {
    let message = calls(tools).into_message("m").into();
    let read_only = tools.iter().map(|tool| tool.starts_with("read")).collect();
    Fact::Replied { iteration, message, read_only, terminal, owners: BTreeMap::new(), cut: false, usage: None }
}

fn answered(place: usize, answer: ModelAnswer) -> Fact {
    Fact::Answered { place, answer }
}

#[test]
fn a_killed_turn_goes_on_where_it_was() {
    let mut turn =
        folded(vec![replied(1, &["read", "read", "write"], false), used(0), used(1), answered(1, answer("r1"))]);
    assert_eq!(turn.running(), [0]);
    assert_eq!(turn.part(0).unwrap().id, "c0");
    // What ran when its process ended is not run again; what was not used is cleared anew.
    assert_eq!(step(&mut turn), "await 0");
    turn.answered(0, ModelAnswer::not_run(OUTCOME_UNKNOWN));
    reports(&mut turn, &["clear 2 write", "start 2", "await 2"]);
    assert_eq!(step(&mut turn), "model 2");
    assert_eq!(said(turn)[2..], [format!("c0: {OUTCOME_UNKNOWN}"), "c1: r1".into(), "c2: r2".into()]);
}

#[test]
fn what_a_gate_took_out_of_a_call_stays_out_when_its_answer_is_lost() {
    let Fact::Used { place, read_only, tool, digest, .. } = used(0) else { unreachable!() };
    let used = Fact::Used { place, read_only, tool, digest, rewritten: Some(r#"{"key":"[gone]"}"#.into()) };
    let text = serde_json::to_string(&used).unwrap();
    assert_eq!(serde_json::from_str::<Fact>(&text).unwrap(), used);
    let mut turn = folded(vec![replied(1, &["write"], false), used]);
    assert_eq!(step(&mut turn), "await 0");
    turn.answered(0, ModelAnswer::not_run(OUTCOME_UNKNOWN));
    assert_eq!(step(&mut turn), "model 2");
    let asked = turn.messages().iter().find(|message| !message.get().tool_calls.is_empty()).unwrap();
    assert_eq!(asked.get().tool_calls[0].function.arguments, r#"{"key":"[gone]"}"#);
}

/// The arguments of the calls in the last answer of a model.
fn arguments(turn: &Turn) -> Vec<String> {
    let asked = turn.messages().iter().rfind(|message| !message.get().tool_calls.is_empty()).unwrap();
    asked.get().tool_calls.iter().map(|part| part.function.arguments.clone()).collect()
}

fn rewritten(place: usize, arguments: &str) -> Fact {
    Fact::Rewritten { place, arguments: arguments.into() }
}

#[test]
fn what_a_gate_took_out_is_not_in_the_conversation_while_a_call_waits_and_the_call_is_cleared_from_the_beginning() {
    let mut turn = folded(vec![replied(1, &["write", "write"], false), rewritten(1, "{\"n\":1}")]);
    assert_eq!(arguments(&turn), ["{}", "{\"n\":1}"]);
    assert_eq!((turn.rewritten(0), turn.rewritten(1)), (None, Some("{\"n\":1}")));
    assert_eq!(turn.part(1).unwrap().function.arguments, "{}", "what is cleared again is what the model wrote");
    assert_eq!(turn.cut_off(), [], "the turn goes on");
    // Cleared once more, it may be left alone.
    turn.apply(rewritten(1, "{}"));
    assert_eq!(arguments(&turn), ["{}", "{}"]);
}

#[test]
fn the_end_lets_go_of_what_gates_replaced_in_calls_that_it_cuts_off() {
    let batch = vec![replied(1, &["read", "read", "write", "write"], false), used(0)];
    let places = (0..3).map(|place| rewritten(place, "{\"n\":1}")).collect();
    let mut turn = folded([batch, places, vec![answered(1, answer("r1"))]].concat());
    turn.end(TurnEnd::failed("hook.before_tool", "no further"));
    // The first runs and is waited for, the second has its answer, and nobody changed the last.
    let expected = ModelAnswer { rewritten: Some("{\"n\":1}".into()), ..ModelAnswer::not_run("no further") };
    assert_eq!(turn.cut_off(), [(2, expected)]);
    turn.end(TurnEnd::hard_aborted());
    assert_eq!(turn.cut_off()[0].1.text, CANCELLED);
}

#[test]
fn what_gates_replaced_goes_out_of_the_answer_of_the_model_once_the_call_is_settled() {
    let kept = |entries: &[JournalEntry]| serde_json::to_string(entries).unwrap();
    let asked = |iteration| {
        let parts = ["secret-0", "secret-1"].map(|text| CallPart::new(text, "exec", &format!("{{\"k\":\"{text}\"}}")));
        let private = ProviderData::of(vec!["secret-0 secret-1".into()]);
        let tool_calls = parts.into_iter().map(|part| CallPart { id: "c".into(), ..part }).collect();
        let message = Message { tool_calls, private, ..Message::text(Role::Assistant, "") }.into();
        let (read_only, owners) = (vec![false; 2], BTreeMap::new());
        JournalEntry::Turn(Fact::Replied {
            iteration,
            message,
            read_only,
            terminal: false,
            owners,
            cut: false,
            usage: None,
        })
    };
    let used = |place, rewritten: Option<&str>| {
        let Fact::Used { read_only, tool, digest, .. } = used(place) else { unreachable!() };
        JournalEntry::Turn(Fact::Used { place, read_only, tool, digest, rewritten: rewritten.map(str::to_owned) })
    };
    let refused = ModelAnswer { rewritten: Some("{\"k\":2}".into()), ..ModelAnswer::not_run("no") };
    let (first, second) = (JournalEntry::Turn(answered(0, answer("r"))), JournalEntry::Turn(answered(1, refused)));
    let all = [asked(1), used(0, Some("{\"k\":1}")), second, first, asked(2), used(0, None)];
    for new in 1..4 {
        let mut entries = all.to_vec();
        assert_eq!(settle(&mut entries, new), []);
        assert!(kept(&entries[..1]).contains("secret-0") == (new > 1), "settled from {new} on");
        assert!(kept(&entries[..1]).contains("secret-1") == (new > 2), "settled from {new} on");
        assert_eq!(entries[1..], all[1..]);
        let conversation = |entries: &[JournalEntry]| {
            let (prompts, max_iterations) = (Vec::new(), 5);
            let begun = Fact::Begun { turn_id: "t".into(), prompts, max_iterations, key: None };
            let session = Session::fold(std::iter::once(JournalEntry::Turn(begun)).chain(entries.iter().cloned()));
            format!("{:?}", session.messages())
        };
        assert_eq!(conversation(&entries), conversation(&all), "the conversation is the same with and without");
        assert!(conversation(&all).contains("secret-0"), "the second answer is not settled");
    }
    // An answer that is not among them is somebody else's to settle.
    let mut rest = all[1..].to_vec();
    assert_eq!(settle(&mut rest, 0), [(0, "{\"k\":1}".into()), (1, "{\"k\":2}".into())]);
    assert_eq!(rest, all[1..]);
    // Nor is one changed that has no such call.
    let mut odd = vec![asked(1), used(7, Some("{}"))];
    assert_eq!(settle(&mut odd, 1), []);
    assert_eq!(odd[0], asked(1));
}

#[test]
fn a_turn_that_was_killed_during_a_model_call_calls_again_in_the_same_round() {
    assert_eq!(step(&mut folded(Vec::new())), "model 1");
    let mut turn = folded(vec![replied(1, &["write"], false), answered(0, answer("w"))]);
    assert_eq!(step(&mut turn), "model 2");
    let mut turn = folded(vec![replied(1, &["write"], false), answered(0, answer("w")), Fact::Interrupted]);
    assert_eq!(step(&mut turn), "model 2 last");
}

#[test]
fn an_interrupt_before_the_answer_is_told_from_one_during_the_call() {
    let mut during = folded(vec![Fact::Interrupted, replied(1, &["write"], false)]);
    report(&mut during, "skip 0: graceful interrupt requested");
    assert_eq!(step(&mut during), "model 2 last");
    let mut before = folded(vec![Fact::Interrupted, replied(1, &["write"], true)]);
    report(&mut before, "skip 0: graceful interrupt requested");
    assert_eq!(step(&mut before), "end Completed \"\"");
}

#[test]
fn an_end_answers_whatever_is_open() {
    let begun = || vec![replied(1, &["write", "write"], false), used(0)];
    let mut turn = folded([begun(), vec![ended(TurnStatus::Aborted, false, "")]].concat());
    assert_eq!(turn.running(), [0; 0]);
    assert_eq!(step(&mut turn), "end Aborted \"\"");
    assert_eq!(said(turn)[2..], [format!("c0: {OUTCOME_UNKNOWN}"), format!("c1: {CANCELLED}")]);

    let error = Some(("hook.before_tool".into(), "no further".into()));
    let fact = Fact::Ended { status: TurnStatus::Error, roll_back: false, error, reply: String::new() };
    let turn = folded([begun(), vec![fact]].concat());
    assert_eq!(said(turn)[3], "c1: no further");
    let turn = folded([begun(), vec![ended(TurnStatus::Aborted, true, "")]].concat());
    assert_eq!(said(turn), [""; 0]);
}

#[test]
fn a_delivered_turn_says_so_again_whatever_came_in_before_its_end_was_kept() {
    let handled = |late: Vec<Fact>| {
        let batch = vec![replied(1, &["write"], false), answered(0, handled("shown"))];
        said(folded([batch, late, vec![ended(TurnStatus::Completed, false, "")]].concat()))
    };
    let expected = ["hi", "c0", "c0: shown", DELIVERED];
    assert_eq!(handled(Vec::new()), expected);
    assert_eq!(handled(vec![says("late")]), expected);
    assert_eq!(handled(vec![Fact::Interrupted]), expected);
    // Ends of other kinds deliver nothing, and neither does a batch that was not handled.
    let batch = || vec![replied(1, &["write"], false), answered(0, self::handled("shown"))];
    let turn = folded([batch(), vec![ended(TurnStatus::Aborted, false, "")]].concat());
    assert_eq!(said(turn), ["hi", "c0", "c0: shown"]);
    let last_word = vec![Fact::Interrupted, replied(1, &["write"], true), answered(0, ModelAnswer::not_run("skipped"))];
    let turn = folded([last_word, vec![ended(TurnStatus::Completed, false, "")]].concat());
    assert_eq!(said(turn), ["hi", "c0", "c0: skipped"]);
}

#[test]
fn an_end_that_is_told_again_changes_nothing() {
    let mut turn = turn(2);
    step(&mut turn);
    turn.replied(LlmReply::text("hello"), "m", |_| false);
    assert_eq!(step(&mut turn), "end Completed \"hello\"");
    turn.apply(ended(TurnStatus::Completed, false, "hello"));
    turn.apply(ended(TurnStatus::Aborted, true, ""));
    assert_eq!(step(&mut turn), "end Completed \"hello\"");
    assert_eq!(said(turn), ["hi", "hello"]);
}

#[test]
fn who_brought_which_tool_is_known_as_long_as_its_calls_are_worked() {
    let by = |hook: &str| BTreeMap::from([("web".to_owned(), crate::id::HookName::from(hook))]);
    let reply = |iteration, owners| {
        let message = calls(&["web"]).into_message("m").into();
        Fact::Replied { iteration, message, read_only: vec![false], terminal: false, owners, cut: false, usage: None }
    };
    let mut turn = folded(vec![reply(1, by("first"))]);
    assert_eq!(turn.owners(), &by("first"));
    turn.apply(reply(1, by("stray")));
    assert_eq!(turn.owners(), &by("first"), "a reply that does not fit changes nothing");
    turn.apply(answered(0, answer("r")));
    turn.apply(reply(2, by("second")));
    assert_eq!(turn.owners(), &by("second"));
}

#[test]
fn what_does_not_fit_changes_nothing() {
    let mut turn = asking(&["write"]);
    for fact in [replied(1, &["write"], false), used(7), answered(7, answer("?")), Fact::Injected { count: 1 }] {
        turn.apply(fact);
    }
    reports(&mut turn, &["clear 0 write", "start 0", "await 0"]);
    turn.apply(used(0));
    turn.apply(answered(0, answer("twice")));
    assert_eq!(step(&mut turn), "model 2");
    assert_eq!(said(turn), ["hi", "c0", "c0: r0"]);
}

#[test]
fn a_call_of_no_model_is_worked_and_its_answer_is_the_end() {
    let of_call = || Turn::of_call(CallPart::new("x1", "write", "{}"), false);
    let mut turn = of_call();
    reports(&mut turn, &["clear 0 write", "start 0", "await 0"]);
    assert_eq!(turn.iteration(), 1);
    assert_eq!(step(&mut turn), "end Completed \"r0\"");
    assert_eq!(turn.executions().len(), 1);

    let mut refused = of_call();
    step(&mut refused);
    refused.answered(0, ModelAnswer::not_run("denied"));
    assert_eq!(step(&mut refused), "end Completed \"denied\"");

    let mut shown = of_call();
    step(&mut shown);
    shown.answered(0, handled("shown"));
    assert_eq!(step(&mut shown), "end Completed \"shown\"");

    let mut interrupted = of_call();
    interrupted.apply(Fact::Interrupted);
    report(&mut interrupted, "skip 0: graceful interrupt requested");
    assert_eq!(step(&mut interrupted), "end Completed \"Skipped due to graceful interrupt.\"");

    let mut stopped = of_call();
    stopped.end(TurnEnd::failed("hook.before_tool", "no"));
    assert_eq!(step(&mut stopped), "end Error hook.before_tool: no");
}
