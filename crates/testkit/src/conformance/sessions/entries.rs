//! Every kind of entry comes back as it was, whatever stands in it.

use pintle_domain::checkpoint::runtime::{ToolExecution, TurnStatus};
use pintle_domain::history::{ChangedMessage, RecalledHistory, WithheldReason};
use pintle_domain::id::{AgentId, DEFAULT_TENANT, HookName, TurnId};
use pintle_domain::json;
use pintle_domain::kept_result::KeptResult;
use pintle_domain::ledger::MsgId;
use pintle_domain::llm::Usage;
use pintle_domain::message::{CallPart, Message, ProviderData, Role, SystemPart};
use pintle_domain::planning::StepPrompts;
use pintle_domain::session::{JournalEntry, ReleaseReason, Session};
use pintle_domain::skill::{SkillHook, Skills, Timing, Voice};
use pintle_domain::store::{SessionKey, SessionStore};
use pintle_domain::turn::{Fact, MessageSender, ModelAnswer, ToolUse, TurnFlow, TurnSetup, WaitingMessage};

use super::{append_of, appended, begun, journal, key, queued, row, waiting};

/// A message that is larger than anybody writes by hand.
const LONG_BYTES: usize = 10 << 20;

/// What a turn has beside its conversation, with every member set.
fn equipment() -> TurnSetup {
    let hook = SkillHook {
        skill: "alpha".into(),
        name: "cite".into(),
        content: "say where it is from\n\u{2028}".into(),
        timing: Timing::AfterToolCall,
        role: Voice::System,
        persistent: true,
        tool_filter: vec!["read_file".into()],
    };
    let skills = Skills::new(vec![hook]).narrowed(&[]);
    TurnSetup { skills, flow: TurnFlow::Planned(StepPrompts::default()), tools: ToolUse::Own }
}

fn rich_answer() -> ModelAnswer {
    let execution = ToolExecution { name: "exec".into(), success: false, error_summary: Some("no".into()) };
    ModelAnswer {
        text: "4 °C".into(),
        media: vec!["a".into()],
        handled: true,
        execution: Some(execution),
        named: ["/srv/a.png".into()].into(),
        ..ModelAnswer::not_run("")
    }
}

/// Every kind of entry, with every member set.
fn every_entry() -> Vec<JournalEntry> {
    let full = Message {
        reasoning_content: "hm".into(),
        media: vec!["media://1".into()],
        attachments: vec![json::parse(r#"{"id":12345678901234567890.10}"#).expect("JSON")],
        system_parts: vec![SystemPart {
            kind: "text".into(),
            text: "be kind".into(),
            cache_control: Some(json::parse(r#"{"ttl":1.0}"#).expect("JSON")),
        }],
        tool_calls: vec![CallPart {
            extra_content: Some(json::parse(r#"[1e400,-0.0]"#).expect("JSON")),
            ..CallPart::new("call_1", "exec", r#"{"n": 1.50}"#)
        }],
        tool_call_id: "call_0".into(),
        model_name: "m".into(),
        created_at: Some("2026-01-02T03:04:05Z".into()),
        private: ProviderData::of(vec![json::parse(r#"{"signature":"x","n":1.10}"#).expect("JSON")]),
        ..Message::text(Role::Assistant, "I will")
    };
    let from = MessageSender::Subturn { agent: AgentId::from("helper"), turn_id: TurnId::from("t0") };
    let withheld = vec![ChangedMessage { place: 7, why: WithheldReason::Refused }];
    let (prompts, key) = (vec![full.clone().into()], Some("k".into()));
    let facts = [
        Fact::Queued(WaitingMessage { message: full.clone().into(), from, notes: Vec::new() }),
        Fact::Recalled(RecalledHistory { keep: 2, messages: vec![full.clone().into()], withheld }),
        Fact::Begun { turn_id: TurnId::fresh(), prompts, max_iterations: 20, key },
        Fact::Equipped { with: Box::new(equipment()) },
        Fact::Planned { message: full.clone().into(), need_tool: true, usage: None },
        Fact::Announced { upto: MsgId::default() },
        Fact::Stopped { iteration: 2, message: full.clone().into() },
        Fact::TakenBack,
        Fact::Queued(waiting("also")),
        Fact::Injected { count: 1 },
        Fact::Interrupted,
        Fact::Replied {
            iteration: 1,
            message: full.clone().into(),
            read_only: vec![true],
            terminal: true,
            owners: [("exec".into(), HookName::from("guard"))].into(),
            cut: false,
            usage: Some(Usage::told(9, 2, None)),
        },
        Fact::Used { place: 0, read_only: true, tool: "exec".into(), digest: "00ff".into(), rewritten: None },
        Fact::Rewritten { place: 0, arguments: "{}".into() },
        Fact::Answered { place: 0, answer: rich_answer() },
        Fact::Compacted { upto: 2, summary: Some(full.into()) },
        Fact::Compacted { upto: 1, summary: None },
        Fact::Trimmed { at: 3, text: "begin".into() },
        Fact::Ended {
            status: TurnStatus::Error,
            roll_back: true,
            error: Some(("llm".into(), "gone".into())),
            reply: "sorry".into(),
        },
    ];
    let mut entries = vec![JournalEntry::Opened { by: "pid 4711".into(), under: None }];
    entries.extend(facts.map(JournalEntry::Turn));
    let causes = [
        ReleaseReason::Done,
        ReleaseReason::Failed,
        ReleaseReason::Interrupted,
        ReleaseReason::Waiting,
        ReleaseReason::Killed,
    ];
    entries.push(JournalEntry::Kept(KeptResult { id: 1, text: "a long\nresult".into() }));
    entries.extend(causes.map(|cause| JournalEntry::Closed { cause }));
    entries
}

pub(super) fn a_journal_comes_back_whole<S: SessionStore + ?Sized>(store: &S) {
    let key = key(DEFAULT_TENANT, "whole");
    assert_eq!(journal(store, &key), [], "there is none yet");
    let entries = every_entry();
    appended(store, append_of(&key, entries[..4].to_vec()));
    appended(store, append_of(&key, entries[4..].to_vec()));
    let found = journal(store, &key);
    for (found, entry) in found.iter().zip(&entries) {
        assert_eq!(found, entry);
    }
    assert_eq!(found.len(), entries.len());
    let folded = |entries: Vec<JournalEntry>| format!("{:?}", Session::fold(entries));
    assert_eq!(folded(found), folded(entries));
}

/// The answer of a model with two calls, whose arguments say `secret-0` and `secret-1`, and so does what its provider
/// keeps of it.
fn asked(iteration: u32) -> JournalEntry {
    let call = |n| CallPart::new(&format!("c{n}"), "exec", &format!(r#"{{"command":"secret-{n}"}}"#));
    let tool_calls = vec![call(0), call(1)];
    let private = ProviderData::of(vec!["secret-0 secret-1".into()]);
    let message = Message { tool_calls, private, ..Message::text(Role::Assistant, "I will") }.into();
    let (read_only, owners) = (vec![false; 2], [].into());
    JournalEntry::Turn(Fact::Replied {
        iteration,
        message,
        read_only,
        terminal: false,
        owners,
        cut: false,
        usage: None,
    })
}

/// The call at `place` is used, with other arguments than the model's.
fn used_as(place: usize, command: &str) -> JournalEntry {
    let rewritten = Some(format!(r#"{{"command":"{command}"}}"#));
    JournalEntry::Turn(Fact::Used { place, read_only: false, tool: "exec".into(), digest: "00ff".into(), rewritten })
}

pub(super) fn what_gates_replaced_goes_once_a_call_is_settled<S: SessionStore + ?Sized>(store: &S) {
    let (key, other) = (key(DEFAULT_TENANT, "settled"), key(DEFAULT_TENANT, "settled-not"));
    let kept = |key: &SessionKey| serde_json::to_string(&journal(store, key)).expect("it is JSON");
    let holds = |key: &SessionKey| ["secret-0", "secret-1"].map(|secret| kept(key).contains(secret));
    appended(store, append_of(&other, vec![begun(&TurnId::fresh(), "hi"), asked(1)]));
    appended(store, append_of(&key, vec![begun(&TurnId::fresh(), "hi"), asked(1)]));
    let waits = Fact::Rewritten { place: 1, arguments: "{}".into() };
    appended(store, append_of(&key, vec![JournalEntry::Turn(waits)]));
    assert_eq!(holds(&key), [true, true], "a call that waits is cleared again from what the model wrote");
    appended(store, append_of(&key, vec![used_as(0, "clean")]));
    assert_eq!(holds(&key), [false, true]);
    let answer = ModelAnswer { rewritten: Some("{}".into()), ..ModelAnswer::not_run("no") };
    appended(store, append_of(&key, vec![JournalEntry::Turn(Fact::Answered { place: 1, answer }), asked(2)]));
    assert_eq!(holds(&key), [true, true], "the second answer of the model is another one");
    // In one append, and to the first answer before.
    appended(store, append_of(&key, vec![used_as(0, "clean"), used_as(1, "clean"), asked(3), used_as(0, "clean")]));
    let left = journal(store, &key);
    let calls = |entry: &JournalEntry| match entry {
        JournalEntry::Turn(Fact::Replied { message, .. }) => {
            let commands = message.message.tool_calls.iter().map(|part| part.function.arguments.clone());
            Some((commands.collect::<Vec<_>>(), message.private.len()))
        }
        JournalEntry::Turn(_) | JournalEntry::Opened { .. } | JournalEntry::Closed { .. } | JournalEntry::Kept(_) => {
            None
        }
    };
    let (clean, raw) = (r#"{"command":"clean"}"#.to_owned(), r#"{"command":"secret-1"}"#.to_owned());
    assert_eq!(
        left.iter().filter_map(calls).collect::<Vec<_>>(),
        [(vec![clean.clone(), "{}".into()], 0), (vec![clean.clone(), clean.clone()], 0), (vec![clean, raw], 0)]
    );
    assert_eq!(left.len(), 10, "nothing else is touched");
    assert_eq!(holds(&other), [true, true], "nor is another session");
    [key, other].iter().for_each(|key| assert_eq!(store.delete(key), Ok(true)));
}

pub(super) fn hostile_entries_are_only_entries<S: SessionStore + ?Sized>(store: &S) {
    let nested = format!("{}1{}", "[".repeat(json::MAX_DEPTH), "]".repeat(json::MAX_DEPTH));
    let deepest = json::parse(&nested).expect("as deep as is read from outside");
    let part = CallPart { extra_content: Some(deepest.clone()), ..CallPart::new("", "", "{\u{0}") };
    let part_of_system = SystemPart { kind: "text".into(), text: String::new(), cache_control: Some(deepest.clone()) };
    let deep = Message {
        attachments: vec![deepest.clone()],
        system_parts: vec![part_of_system],
        tool_calls: vec![part],
        private: ProviderData::of(vec![deepest]),
        ..Message::text(Role::User, "")
    };
    let key = key("'); DROP TABLE journal; --", "nul \0 and \u{1b}[2J\u{202e}\u{10ffff}");
    let turn_id = TurnId::from("");
    let mut entries = vec![JournalEntry::Turn(Fact::Begun {
        turn_id: turn_id.clone(),
        prompts: vec![deep.clone().into(), deep.clone().into()],
        max_iterations: u32::MAX,
        key: None,
    })];
    let origin = MessageSender::Subturn { agent: AgentId::from("\0"), turn_id };
    entries.push(JournalEntry::Turn(Fact::Queued(WaitingMessage {
        message: deep.into(),
        from: origin,
        notes: Vec::new(),
    })));
    let escaped = LONG_BYTES / 10;
    let long = ["€\u{fffd}".repeat(LONG_BYTES / 6), "\0".repeat(escaped), "\"\\".repeat(escaped / 2)];
    entries.extend(long.map(|text| queued(&text)));
    entries.extend(
        ["\u{fffd}\u{fffe}\u{85}\u{2028}", r"\ud800", r#"{"$serde_json::private::Number":"5"}"#, ""].map(queued),
    );
    appended(store, append_of(&key, entries.clone()));
    let found = journal(store, &key);
    for (i, (found, entry)) in found.iter().zip(&entries).enumerate() {
        assert!(found == entry, "entry {i} became another one");
    }
    assert_eq!(found.len(), entries.len());
    let row = row(store, &key);
    assert_eq!((row.open_turn.as_deref(), row.title.as_str()), (Some(""), ""));
    assert_eq!(store.delete(&key), Ok(true));
}
