//! What every record store has to do.

use std::thread;
use std::time::Duration;

use pintle_domain::account::Account;
use pintle_domain::checkpoint::{CheckpointKind, Snapshot};
use pintle_domain::fault::{Direction, Fault};
use pintle_domain::hook::Family;
use pintle_domain::id::{CallId, DEFAULT_TENANT, HookName, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::{self, Object};
use pintle_domain::record::{BudgetNeed, Change, EventRecord, EventRuling, HookOutcome, NotRun, Record};
use pintle_domain::store::{FailedComparison, RecordQuery, RecordStore, StoredEvent, StoredRecord, TenantScope};
use pintle_domain::tool::{Digest, ToolCall};
use pintle_domain::verdict::VerdictKind;

use super::kept::{by_id, everything, find, ids, kept};
pub use super::kept::{event, hook, keep};

/// Above this a patch is replaced by a note, as far as the suite is concerned; stores may draw the line lower.
const HUGE_PATCH_BYTES: usize = 1 << 20;

/// Runs the suite on an empty store.
///
/// # Panics
/// The store does not do what it has to.
pub fn records(store: &dyn RecordStore) {
    assert_eq!(find(store, &everything()), [], "the suite needs an empty store");
    an_event_comes_back_whole(store);
    the_hooks_of_an_event_come_back_whole(store);
    events_stand_in_the_order_of_keeping(store);
    super::selection::all(store);
    the_call_that_a_ruling_decided_on_comes_back(store);
    hostile_text_is_only_text(store);
    deep_and_huge_changes_stay_readable(store);
    many_may_keep_at_once(store);
    an_empty_batch_is_kept_too(store);
    whoever_finds_it_idle_may_write(store);
}

fn whoever_finds_it_idle_may_write(store: &dyn RecordStore) {
    let turn = TurnId::fresh();
    let [first, second, third] = [event(&turn), event(&turn), event(&turn)];
    kept(store, std::slice::from_ref(&first));
    let between = match store.idle() {
        Some(idle) => {
            idle.write(vec![second.clone()]).expect("nobody else writes").expect("the record is written");
            vec![second]
        }
        None => Vec::new(),
    };
    kept(store, std::slice::from_ref(&third));
    let wanted: Vec<String> =
        [&first].into_iter().chain(&between).chain([&third]).map(|event| event.event_id.to_string()).collect();
    let turn = RecordQuery { last_turn: true, ..everything() };
    assert_eq!(ids(&find(store, &turn)), wanted, "in the order of writing");
}

fn an_event_comes_back_whole(store: &dyn RecordStore) {
    let turn = TurnId::fresh();
    let call =
        ToolCall { id: CallId::from("call_1"), tool: "exec".into(), raw_tool: "Exec".into(), arguments: Object::new() };
    let mut cleared = event(&turn);
    cleared.who = Identity { iteration: 3, is_test: true, ..cleared.who.for_call(&call.id) };
    let permit = Digest::of(&cleared.who, &call);
    cleared.tool = Some(call.tool);
    cleared.ruling =
        EventRuling { word: VerdictKind::Respond, text: Some("4 °C".into()), permit: Some(permit), substituted: true };
    let mut told = event(&turn);
    told.checkpoint = CheckpointKind::Runtime;
    told.kind = Some("turn_start");
    kept(store, &[cleared.clone(), told.clone()]);

    let common = StoredEvent {
        event_id: told.event_id.to_string(),
        at: "2026-01-02T03:04:05.678901234Z".into(),
        event: "turn_start".into(),
        checkpoint: "runtime".into(),
        tenant_id: DEFAULT_TENANT.into(),
        agent_id: "main".into(),
        session_id: "cli:1".into(),
        turn_id: turn.to_string(),
        iteration: 0,
        tool_call_id: None,
        tool: None,
        is_test: false,
        ruling: "continue".into(),
        text: None,
        permit: None,
        substituted: false,
        call: None,
        hooks: Vec::new(),
    };
    assert_eq!(find(store, &by_id(&told.event_id)), std::slice::from_ref(&common));
    let expected = StoredEvent {
        event_id: cleared.event_id.to_string(),
        event: "pre_tool_use".into(),
        checkpoint: "pre_tool_use".into(),
        iteration: 3,
        tool_call_id: Some("call_1".into()),
        tool: Some("exec".into()),
        is_test: true,
        ruling: "respond".into(),
        text: Some("4 °C".into()),
        permit: Some(permit.to_string()),
        substituted: true,
        ..common
    };
    assert_eq!(find(store, &by_id(&cleared.event_id)), [expected]);
}

/// Each way in which a hook can end, and what is kept of it.
fn outcomes() -> Vec<(Record, StoredRecord)> {
    let took = Duration::from_nanos(1_234_567);
    let said = HookOutcome::Said { word: VerdictKind::Deny, reason: Some("no".into()), took };
    let failed = HookOutcome::Failed {
        fault: Fault::TooLarge { way: Direction::Reply, limit: 9 },
        became: VerdictKind::Deny,
        took,
    };
    let matcher = NotRun::Matcher { pattern: "writefile".into(), value: "write_file".into() };
    let not_run = |why: NotRun, reason: &str| {
        (HookOutcome::NotRun(why), StoredRecord { reason: Some(reason.into()), ..StoredRecord::default() })
    };
    let ran = StoredRecord { ran: true, ..StoredRecord::default() };
    let timed = StoredRecord { verdict: Some("deny".into()), duration_ms: Some(1.234), ..ran.clone() };
    let compared = FailedComparison { pattern: "writefile".into(), value: "write_file".into() };
    [
        (said, StoredRecord { reason: Some("no".into()), ..timed.clone() }),
        (
            failed,
            StoredRecord {
                fault: Some("too_large".into()),
                fault_detail: Some("sent a reply above 9 bytes".into()),
                ..timed
            },
        ),
        (HookOutcome::Told, ran),
        (
            HookOutcome::NotRun(matcher),
            StoredRecord {
                reason: Some("matcher said no".into()),
                compared: Some(compared),
                ..StoredRecord::default()
            },
        ),
        not_run(NotRun::Disabled, "disabled"),
        not_run(NotRun::OutOfScope, "out of scope"),
        (
            HookOutcome::NotRun(NotRun::Condition { text: "depth > 1".into() }),
            StoredRecord {
                reason: Some("condition said no".into()),
                value: Some("depth > 1".into()),
                ..StoredRecord::default()
            },
        ),
        (
            HookOutcome::NotRun(NotRun::CapReached { cap: 3 }),
            StoredRecord { reason: Some("cap reached".into()), value: Some("3".into()), ..StoredRecord::default() },
        ),
        not_run(NotRun::BreakerOpen { since: "2026-01-02T03:04:05Z".into() }, "breaker open"),
        (
            HookOutcome::NotRun(NotRun::Decided { by: HookName::from("first") }),
            StoredRecord {
                reason: Some("decided already".into()),
                by: Some("first".into()),
                ..StoredRecord::default()
            },
        ),
        budget_spent(),
        not_run(NotRun::Untrusted, "untrusted"),
        not_run(NotRun::Dropped, "dropped"),
    ]
    .into_iter()
    .enumerate()
    .map(|(i, (outcome, stored))| {
        let name = format!("hook-{i}");
        let record = hook(&name, outcome);
        let (family, checkpoint) = ("process".into(), "pre_tool_use".into());
        (record, StoredRecord { hook: name, family, checkpoint, ..stored })
    })
    .collect()
}

fn budget_spent() -> (HookOutcome, StoredRecord) {
    let (reason, value) = (Some("budget spent".into()), Some("9 tokens needed".into()));
    (
        HookOutcome::NotRun(NotRun::BudgetSpent(BudgetNeed { needed: 9, left: None })),
        StoredRecord { reason, value, ..StoredRecord::default() },
    )
}

/// A hook that did not run, which counted for something all the same.
fn in_its_place() -> (Record, StoredRecord) {
    let said = HookOutcome::Said {
        word: VerdictKind::Deny,
        reason: Some("tenant budget exceeded".into()),
        took: Duration::ZERO,
    };
    let account =
        Account { instead: Some(NotRun::BudgetSpent(BudgetNeed { needed: 9, left: None })), ..Account::default() };
    let record = Record { account: Some(Box::new(account)), ..hook("judge", said) };
    let stored = StoredRecord {
        hook: "judge".into(),
        family: "process".into(),
        checkpoint: "pre_tool_use".into(),
        reason: Some("budget spent".into()),
        value: Some("9 tokens needed".into()),
        verdict: Some("deny".into()),
        ..StoredRecord::default()
    };
    (record, stored)
}

fn the_hooks_of_an_event_come_back_whole(store: &dyn RecordStore) {
    let (mut records, mut expected): (Vec<_>, Vec<_>) = outcomes().into_iter().unzip();
    let before = json::parse(r#"{"n":1.10,"id":12345678901234567890123}"#).expect("JSON");
    let after = json::parse(r#"{"n":1.10,"id":12345678901234567890124}"#).expect("JSON");
    records[0].change = Some(Box::new(change(before, after)));
    records[0].warnings = vec!["`decison` is not a member".into()];
    records[0].again = true;
    records[0].family = Family::Native;
    let patch = r#"[{"op":"replace","path":"/arguments/value/id","value":12345678901234567890124}]"#;
    expected[0].change = Some(json::parse(patch).expect("JSON"));
    expected[0].warnings = vec!["`decison` is not a member".into()];
    expected[0].again = true;
    expected[0].family = "native".into();

    let (refused, stored) = in_its_place();
    records.push(refused);
    expected.push(stored);

    let event = EventRecord { hooks: records.into(), ..event(&TurnId::fresh()) };
    kept(store, std::slice::from_ref(&event));
    let found = find(store, &by_id(&event.event_id)).pop().expect("it was kept");
    for (found, expected) in found.hooks.iter().zip(&expected) {
        assert_eq!(found, expected, "{}", expected.hook);
    }
    assert_eq!(found.hooks.len(), expected.len());
}

fn change(before: pintle_domain::json::Value, after: pintle_domain::json::Value) -> Change {
    let call = |value| Snapshot::Call { tool: "exec".into(), arguments: Object::from_iter([("value".into(), value)]) };
    Change { before: call(before), after: call(after), places_only: false }
}

fn events_stand_in_the_order_of_keeping(store: &dyn RecordStore) {
    let turn = TurnId::fresh();
    let events: Vec<EventRecord> = (0..5).map(|_| event(&turn)).collect();
    // The order of ids and of times must not matter.
    let events: Vec<EventRecord> = events.into_iter().rev().collect();
    kept(store, &events[..3]);
    kept(store, &events[3..]);
    let kept: Vec<&str> = events.iter().map(|event| event.event_id.as_str()).collect();
    let newest = |limit| find(store, &RecordQuery { limit, ..RecordQuery::of(TenantScope::All) });
    assert_eq!(ids(&newest(5)), kept, "newest last");
    assert_eq!(ids(&newest(2)), kept[3..], "a limit keeps the newest");
    assert_eq!(newest(0), [], "at most none is none");
}

fn the_call_that_a_ruling_decided_on_comes_back(store: &dyn RecordStore) {
    let arguments = json::parse(r#"{"to":"ann@example.org","n":1.10}"#).expect("JSON");
    let input = arguments.as_object().cloned().map(std::sync::Arc::new);
    let decided = |word, input| EventRecord {
        input,
        tool: Some("mail".into()),
        ruling: EventRuling::word(word),
        ..event(&TurnId::fresh())
    };
    let events = [decided(VerdictKind::Deny, input.clone()), decided(VerdictKind::Continue, input)];
    kept(store, &events);
    let call = |i: usize| find(store, &by_id(&events[i].event_id)).pop().expect("it was kept").call;
    assert_eq!(call(0).map(|call| call.line()).as_deref(), Some(r#"{"to":"[REDACTED]","n":1.10}"#));
    assert_eq!(call(1), None, "nothing was decided there");
}

fn hostile_text_is_only_text(store: &dyn RecordStore) {
    let texts = ["'); DROP TABLE events; --", "nul \0 and \u{1b}[2J", "\u{10ffff}\u{202e}", "", &"€".repeat(400_000)];
    for text in texts {
        let mut hostile = event(&TurnId::new(text));
        hostile.tool = Some(text.into());
        hostile.ruling.text = Some(text.into());
        let took = Duration::MAX;
        hostile.hooks =
            vec![hook(text, HookOutcome::Said { word: VerdictKind::Continue, reason: Some(text.into()), took })].into();
        kept(store, std::slice::from_ref(&hostile));
        let query = RecordQuery { last_turn: true, tool: Some(text.into()), ..by_id(&hostile.event_id) };
        let found =
            find(store, &query).pop().unwrap_or_else(|| panic!("{:?} is found by the same text", text.get(..20)));
        let ruled = found.text.as_deref();
        let hook = &found.hooks[0];
        assert_eq!((found.turn_id.as_str(), ruled, hook.hook.as_str()), (text, Some(text), text));
        assert_eq!(hook.reason.as_deref(), Some(text));
    }
}

fn deep_and_huge_changes_stay_readable(store: &dyn RecordStore) {
    let nested = |levels: usize| json::parse(&format!("{}1{}", "[".repeat(levels), "]".repeat(levels)));
    let deepest = nested(json::MAX_DEPTH).expect("as deep as is read from outside");
    let deep = nested(json::MAX_DEPTH / 2).expect("less deep");
    let long = "x".repeat(HUGE_PATCH_BYTES);
    let null = pintle_domain::json::Value::Null;
    let ran = || hook("h", HookOutcome::Told);
    let changed =
        |after: pintle_domain::json::Value| Record { change: Some(Box::new(change(null.clone(), after))), ..ran() };
    let hooks = vec![changed(deepest), changed(deep.clone()), changed(long.into())];
    let event = EventRecord { hooks: hooks.into(), ..event(&TurnId::fresh()) };
    kept(store, std::slice::from_ref(&event));

    let found = find(store, &by_id(&event.event_id)).pop().expect("it was kept");
    let changes: Vec<_> = found.hooks.into_iter().map(|hook| hook.change.expect("it changed something")).collect();
    let note = |bytes: usize| pintle_domain::json::json!({ "omitted_bytes": bytes });
    let envelope = r#"[{"op":"replace","path":"/arguments/value","value":}]"#.len();
    assert_eq!(changes[0], note(envelope + 2 * json::MAX_DEPTH + 1));
    assert_eq!(changes[1], pintle_domain::json::json!([{"op": "replace", "path": "/arguments/value", "value": deep}]));
    assert_eq!(changes[2], note(envelope + HUGE_PATCH_BYTES + 2));
}

fn many_may_keep_at_once(store: &dyn RecordStore) {
    let (writers, each) = (4, 25);
    let turns: Vec<TurnId> = (0..writers).map(|_| TurnId::fresh()).collect();
    thread::scope(|scope| {
        for turn in &turns {
            scope.spawn(move || (0..each).for_each(|_| kept(store, &[event(turn), event(turn)])));
        }
    });
    let found = find(store, &everything());
    for turn in &turns {
        let of_turn: Vec<&str> =
            found.iter().filter(|event| event.turn_id == turn.as_str()).map(|event| event.event_id.as_str()).collect();
        assert_eq!(of_turn.len(), 2 * each);
        // Fresh ids ascend, and every writer waited for one batch before the next.
        assert!(of_turn.is_sorted(), "{of_turn:?}");
    }
}

fn an_empty_batch_is_kept_too(store: &dyn RecordStore) {
    let before = find(store, &everything()).len();
    assert_eq!(keep(store, Vec::new()), Ok(()));
    assert_eq!(find(store, &everything()).len(), before);
}
