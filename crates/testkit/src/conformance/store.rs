//! What every record store has to do.

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use domain::account::Account;
use domain::checkpoint::{CheckpointKind, Snapshot};
use domain::fault::{Direction, Fault};
use domain::hook::Family;
use domain::id::{CallId, DEFAULT_TENANT, EventId, HookName, TurnId};
use domain::identity::Identity;
use domain::json::{self, Object};
use domain::record::{Change, EventRecord, EventRuling, HookOutcome, NotRun, Record, RecordLines};
use domain::store::{FailedComparison, RecordQuery, RecordStore, StoreError, StoredEvent, StoredRecord};
use domain::tool::{Digest, ToolCall};
use domain::verdict::VerdictKind;

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
    an_id_may_be_cut_short(store);
    a_tool_selects_its_events(store);
    the_last_turn_is_never_a_test(store);
    turns_calls_sessions_and_hooks_select_their_events(store);
    refusals_and_times_select_their_events(store);
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

/// An event of a tool call in `turn`, without hooks.
pub fn event(turn: &TurnId) -> EventRecord {
    let at = "2026-01-02T03:04:05.678901234Z".parse().expect("RFC 3339");
    EventRecord {
        event_id: EventId::fresh(),
        at,
        checkpoint: CheckpointKind::PreToolUse,
        kind: None,
        who: Identity::top("main", "cli:1", turn.clone()),
        tool: None,
        input: None,
        ruling: EventRuling::word(VerdictKind::Continue),
        hooks: RecordLines::default(),
    }
}

/// A record of a hook that ended as `outcome`.
pub fn hook(name: &str, outcome: HookOutcome) -> Record {
    Record {
        hook: HookName::from(name),
        family: Family::Process,
        checkpoint: CheckpointKind::PreToolUse,
        outcome,
        warnings: Vec::new(),
        change: None,
        again: false,
        account: None,
        stored: None,
    }
}

/// Keeps `records` and waits until they are kept.
///
/// # Errors
/// What the store said.
///
/// # Panics
/// The store forgot to say.
pub fn keep(store: &dyn RecordStore, records: Vec<EventRecord>) -> Result<(), StoreError> {
    let (said, heard) = channel();
    store.keep(records, Box::new(move |how| said.send(how).expect("the test waits for it")));
    heard.recv().expect("`done` is called")
}

fn find(store: &dyn RecordStore, query: &RecordQuery) -> Vec<StoredEvent> {
    store.find(query).expect("the store can be read")
}

fn everything() -> RecordQuery {
    RecordQuery { limit: usize::MAX, ..RecordQuery::default() }
}

fn by_id(id: &EventId) -> RecordQuery {
    RecordQuery { event_id: Some(id.to_string()), ..everything() }
}

fn ids(events: &[StoredEvent]) -> Vec<&str> {
    events.iter().map(|event| event.event_id.as_str()).collect()
}

fn kept(store: &dyn RecordStore, records: &[EventRecord]) {
    keep(store, records.to_vec()).expect("the records are kept");
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
        not_run(NotRun::BudgetSpent, "budget spent"),
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

/// A hook that did not run, which counted for something all the same.
fn in_its_place() -> (Record, StoredRecord) {
    let said = HookOutcome::Said {
        word: VerdictKind::Deny,
        reason: Some("tenant budget exceeded".into()),
        took: Duration::ZERO,
    };
    let account = Account { instead: Some(NotRun::BudgetSpent), ..Account::default() };
    let record = Record { account: Some(Box::new(account)), ..hook("judge", said) };
    let stored = StoredRecord {
        hook: "judge".into(),
        family: "process".into(),
        checkpoint: "pre_tool_use".into(),
        reason: Some("budget spent".into()),
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
    records[0].warnings = vec!["`decison` is no member".into()];
    records[0].again = true;
    records[0].family = Family::Native;
    let patch = r#"[{"op":"replace","path":"/arguments/value/id","value":12345678901234567890124}]"#;
    expected[0].change = Some(json::parse(patch).expect("JSON"));
    expected[0].warnings = vec!["`decison` is no member".into()];
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

fn change(before: domain::json::Value, after: domain::json::Value) -> Change {
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
    let newest = |limit| find(store, &RecordQuery { limit, ..RecordQuery::default() });
    assert_eq!(ids(&newest(5)), kept, "newest last");
    assert_eq!(ids(&newest(2)), kept[3..], "a limit keeps the newest");
    assert_eq!(newest(0), [], "at most none is none");
}

fn an_id_may_be_cut_short(store: &dyn RecordStore) {
    let turn = TurnId::fresh();
    let named = |id: &str| EventRecord { event_id: EventId::from(id), ..event(&turn) };
    kept(store, &[named("zz%1-a"), named("zz%1-b"), named("zz%2"), named("zzz")]);
    let starting = |id: &str| {
        let found = find(store, &RecordQuery { event_id: Some(id.into()), ..everything() });
        found.into_iter().map(|event| event.event_id).collect::<Vec<_>>()
    };
    assert_eq!(starting("zz%1"), ["zz%1-a", "zz%1-b"]);
    assert_eq!(starting("zz%2"), ["zz%2"]);
    assert_eq!(starting("zz_"), [""; 0], "no sign is a wildcard");
    assert_eq!(starting("%"), [""; 0]);
    assert_eq!(starting("zz%2-longer"), [""; 0]);
    assert_eq!(find(store, &RecordQuery { event_id: Some("zz".into()), limit: 1, ..everything() })[0].event_id, "zzz");
}

fn a_tool_selects_its_events(store: &dyn RecordStore) {
    let turn = TurnId::fresh();
    let about = |tool: &str| EventRecord { tool: Some(tool.into()), ..event(&turn) };
    let events = [about("fetch"), event(&turn), about("fetch_all"), about("fetch")];
    kept(store, &events);
    let of = |tool: &str, limit| find(store, &RecordQuery { tool: Some(tool.into()), limit, ..everything() });
    assert_eq!(ids(&of("fetch", 9)), [events[0].event_id.as_str(), events[3].event_id.as_str()]);
    assert_eq!(ids(&of("fetch", 1)), [events[3].event_id.as_str()]);
    assert_eq!(of("fetc", 9), []);
}

fn the_last_turn_is_never_a_test(store: &dyn RecordStore) {
    let (old, new) = (TurnId::fresh(), TurnId::fresh());
    let in_new = |tool: &str| EventRecord { tool: Some(tool.into()), ..event(&new) };
    let mut test = event(&TurnId::fresh());
    test.who.is_test = true;
    let events = [event(&old), in_new("a"), event(&old), in_new("b"), in_new("c"), test];
    kept(store, &events);
    let last = |query: RecordQuery| find(store, &RecordQuery { last_turn: true, ..query });
    let id = |i: usize| events[i].event_id.as_str();
    assert_eq!(ids(&last(everything())), [id(1), id(3), id(4)]);
    assert_eq!(ids(&last(RecordQuery { limit: 2, ..everything() })), [id(3), id(4)]);
    assert_eq!(ids(&last(RecordQuery { tool: Some("b".into()), ..everything() })), [id(3)]);
    let elsewhere = RecordQuery { event_id: Some(id(0).into()), ..everything() };
    assert_eq!(last(elsewhere), [], "every condition has to hold");
}

fn turns_calls_sessions_and_hooks_select_their_events(store: &dyn RecordStore) {
    let (first, second) = (TurnId::fresh(), TurnId::fresh());
    let in_session = |turn: &TurnId, session: &str| EventRecord {
        who: Identity::top("selected", session, turn.clone()),
        ..event(turn)
    };
    let of_call = |call: &str| EventRecord {
        who: Identity::top("selected", "s-2", second.clone()).for_call(&CallId::from(call)),
        ..event(&second)
    };
    let with_hook =
        |name: &str| EventRecord { hooks: vec![hook(name, HookOutcome::Told)].into(), ..in_session(&first, "s-1") };
    let mut test = in_session(&TurnId::fresh(), "s-2");
    test.who.is_test = true;
    let events = [
        in_session(&first, "s-1"),
        with_hook("selected"),
        with_hook("selected \" too"),
        of_call("call-a"),
        of_call("call-b"),
        of_call("call-a"),
        test,
    ];
    kept(store, &events);
    let check = |query: RecordQuery, wanted: &[usize]| {
        let wanted: Vec<&str> = wanted.iter().map(|i| events[*i].event_id.as_str()).collect();
        assert_eq!(ids(&find(store, &RecordQuery { limit: 99, ..query.clone() })), wanted, "{query:?}");
    };
    let none = RecordQuery::default;
    check(RecordQuery { turn: Some(first.to_string()), ..none() }, &[0, 1, 2]);
    check(RecordQuery { turn: Some(second.as_str()[..30].to_owned()), ..none() }, &[3, 4, 5]);
    check(RecordQuery { turn: Some(second.as_str()[28..].to_owned()), ..none() }, &[3, 4, 5]);
    check(RecordQuery { turn: Some(second.as_str()[20..].to_owned()), ..none() }, &[3, 4, 5]);
    check(RecordQuery { turn: Some("no such turn".into()), ..none() }, &[]);
    check(RecordQuery { call: Some("call-a".into()), ..none() }, &[3, 5]);
    check(RecordQuery { call: Some("call".into()), ..none() }, &[]);
    check(RecordQuery { session: Some("s-1".into()), ..none() }, &[0, 1, 2]);
    check(RecordQuery { session: Some("s-2".into()), ..none() }, &[3, 4, 5]);
    check(RecordQuery { session: Some("s-2".into()), call: Some("call-b".into()), ..none() }, &[4]);
    check(RecordQuery { session: Some("s-1".into()), turn: Some(second.to_string()), ..none() }, &[]);
    check(RecordQuery { session: Some("s".into()), ..none() }, &[]);
    check(RecordQuery { hook: Some("selected".into()), ..none() }, &[1]);
    check(RecordQuery { hook: Some("selected \" too".into()), ..none() }, &[2]);
    check(RecordQuery { hook: Some("select".into()), ..none() }, &[]);
}

fn refusals_and_times_select_their_events(store: &dyn RecordStore) {
    let turn = TurnId::fresh();
    let at = |text: &str, word: VerdictKind| EventRecord {
        at: text.parse().expect("RFC 3339"),
        ruling: EventRuling::word(word),
        ..event(&turn)
    };
    let words = [
        (VerdictKind::Continue, false),
        (VerdictKind::Deny, true),
        (VerdictKind::Ask, true),
        (VerdictKind::Modify, false),
        (VerdictKind::AbortTurn, true),
        (VerdictKind::HardAbort, true),
        (VerdictKind::Respond, false),
        (VerdictKind::Inject, false),
    ];
    let events: Vec<EventRecord> =
        words.iter().enumerate().map(|(i, (word, _))| at(&format!("2027-01-02T03:04:0{i}.5Z"), *word)).collect();
    kept(store, &events);
    let of_turn = RecordQuery { turn: Some(turn.to_string()), limit: 99, ..RecordQuery::default() };
    let refused = find(store, &RecordQuery { refused: true, ..of_turn.clone() });
    let wanted: Vec<&str> =
        events.iter().zip(words).filter(|(_, (_, stops))| *stops).map(|(event, _)| event.event_id.as_str()).collect();
    assert_eq!(ids(&refused), wanted);
    let newest = find(store, &RecordQuery { refused: true, limit: 1, ..RecordQuery::default() });
    assert_eq!(ids(&newest), [events[5].event_id.as_str()]);
    let since = |text: &str| {
        let query = RecordQuery { since: Some(text.parse().expect("RFC 3339")), ..of_turn.clone() };
        find(store, &query).len()
    };
    assert_eq!(since("2027-01-02T03:04:05.5Z"), 3, "the moment itself counts");
    assert_eq!(since("2027-01-02T03:04:05.500000001Z"), 2);
    assert_eq!(since("2020-01-01T00:00:00Z"), 8);
    assert_eq!(since("2030-01-01T00:00:00Z"), 0);
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
    let null = domain::json::Value::Null;
    let ran = || hook("h", HookOutcome::Told);
    let changed = |after: domain::json::Value| Record { change: Some(Box::new(change(null.clone(), after))), ..ran() };
    let hooks = vec![changed(deepest), changed(deep.clone()), changed(long.into())];
    let event = EventRecord { hooks: hooks.into(), ..event(&TurnId::fresh()) };
    kept(store, std::slice::from_ref(&event));

    let found = find(store, &by_id(&event.event_id)).pop().expect("it was kept");
    let changes: Vec<_> = found.hooks.into_iter().map(|hook| hook.change.expect("it changed something")).collect();
    let note = |bytes: usize| domain::json::json!({ "omitted_bytes": bytes });
    let envelope = r#"[{"op":"replace","path":"/arguments/value","value":}]"#.len();
    assert_eq!(changes[0], note(envelope + 2 * json::MAX_DEPTH + 1));
    assert_eq!(changes[1], domain::json::json!([{"op": "replace", "path": "/arguments/value", "value": deep}]));
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
