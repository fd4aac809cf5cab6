//! What a question selects.

use pintle_domain::id::{CallId, EventId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::record::{EventRecord, EventRuling, HookOutcome};
use pintle_domain::store::{RecordQuery, RecordStore, TenantScope};
use pintle_domain::verdict::VerdictKind;

use super::kept::{event, everything, find, hook, ids, kept};

pub(super) fn all(store: &dyn RecordStore) {
    an_id_may_be_cut_short(store);
    a_tool_selects_its_events(store);
    the_last_turn_is_never_a_test(store);
    turns_calls_sessions_and_hooks_select_their_events(store);
    refusals_and_times_select_their_events(store);
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
    let none = || RecordQuery::of(TenantScope::All);
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
    let of_turn = RecordQuery { turn: Some(turn.to_string()), limit: 99, ..RecordQuery::of(TenantScope::All) };
    let refused = find(store, &RecordQuery { refused: true, ..of_turn.clone() });
    let wanted: Vec<&str> =
        events.iter().zip(words).filter(|(_, (_, stops))| *stops).map(|(event, _)| event.event_id.as_str()).collect();
    assert_eq!(ids(&refused), wanted);
    let newest = find(store, &RecordQuery { refused: true, limit: 1, ..RecordQuery::of(TenantScope::All) });
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
