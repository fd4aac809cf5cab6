//! What every store of conversations has to do. It keeps records and questions too: they share its transactions.

mod entries;

use std::sync::mpsc::{Receiver, channel};
use std::thread;

use pintle_domain::approval::{Approval, ApprovalState};
use pintle_domain::checkpoint::runtime::TurnStatus;
use pintle_domain::id::{AgentId, CallId, DEFAULT_TENANT, SessionId, TenantId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::{Object, Value};
use pintle_domain::message::{Message, Role};
use pintle_domain::session::{JournalEntry, ReleaseReason};
use pintle_domain::store::{
    ApprovalStore, JournalAppend, RecordQuery, RecordStore, SessionKey, SessionPatch, SessionQuery, SessionRow,
    SessionSettings, SessionStore, StoreError, TenantScope,
};
use pintle_domain::tool::ToolCall;
use pintle_domain::turn::{Fact, MessageSender, WaitingMessage};

use super::approvals::{call, key_of, moment, question, said};
use super::store::event;

/// Runs the suite on an empty store.
///
/// # Panics
/// The store does not do what it has to.
pub fn sessions<S: SessionStore + ApprovalStore + RecordStore + ?Sized>(store: &S) {
    assert_eq!(rows(store, DEFAULT_TENANT), [], "the suite needs an empty store");
    entries::a_journal_comes_back_whole(store);
    entries::what_gates_replaced_goes_once_a_call_is_settled(store);
    entries::hostile_entries_are_only_entries(store);
    entries_stand_in_the_order_of_the_calls(store);
    many_may_append_at_once(store);
    a_row_tells_of_its_journal(store);
    what_is_said_of_a_session_stays(store);
    a_row_knows_what_a_killed_process_left(store);
    the_session_used_last_is_first(store);
    pages_make_up_the_listing(store);
    tenants_do_not_see_each_other(store);
    records_are_kept_with_their_entries(store);
    nothing_makes_no_session(store);
    a_session_is_held_by_one(store);
    a_deleted_session_is_gone(store);
    a_session_in_use_is_not_deleted(store);
    the_end_of_a_turn_ends_its_questions(store);
    only_a_turn_that_nobody_works_is_left(store);
}

/// The session `session` of `tenant`.
pub fn key(tenant: &str, session: &str) -> SessionKey {
    SessionKey { tenant: TenantId::from(tenant), session: SessionId::from(session) }
}

/// An append of `entries`, at [`moment`] 0, by the agent `main`.
pub fn append_of(key: &SessionKey, entries: Vec<JournalEntry>) -> JournalAppend {
    let agent = AgentId::from("main");
    let (worded, records) = (Vec::new(), Vec::new());
    JournalAppend { key: key.clone(), agent, parent: None, fence: None, at: moment(0), entries, worded, records }
}

/// The beginning of a turn.
pub fn begun(turn: &TurnId, prompt: &str) -> JournalEntry {
    let prompts = vec![Message::text(Role::User, prompt).into()];
    JournalEntry::Turn(Fact::Begun { turn_id: turn.clone(), prompts, max_iterations: 5, key: None })
}

/// The good end of a turn.
pub fn ended() -> JournalEntry {
    let (status, reply) = (TurnStatus::Completed, "done".into());
    JournalEntry::Turn(Fact::Ended { status, roll_back: false, error: None, reply })
}

/// A message that waits.
pub fn queued(text: &str) -> JournalEntry {
    JournalEntry::Turn(Fact::Queued(waiting(text)))
}

/// Hands `append` over; the answer comes through what is returned.
pub fn hand_over<S: SessionStore + ?Sized>(store: &S, append: JournalAppend) -> Receiver<Result<(), StoreError>> {
    let (say, hear) = channel();
    // Whoever does not listen does not want to know.
    store.append(append, Box::new(move |how| drop(say.send(how))));
    hear
}

/// Appends and waits until it is kept.
///
/// # Panics
/// The store does not keep it.
pub fn appended<S: SessionStore + ?Sized>(store: &S, append: JournalAppend) {
    hand_over(store, append).recv().expect("`done` is called").expect("it is kept");
}

fn waiting(text: &str) -> WaitingMessage {
    WaitingMessage { message: Message::text(Role::User, text).into(), from: MessageSender::Person, notes: Vec::new() }
}

fn journal<S: SessionStore + ?Sized>(store: &S, key: &SessionKey) -> Vec<JournalEntry> {
    store.journal(key).expect("it can be read")
}

fn rows<S: SessionStore + ?Sized>(store: &S, tenant: &str) -> Vec<SessionRow> {
    store.sessions(&TenantId::from(tenant)).expect("it can be read")
}

fn row<S: SessionStore + ?Sized>(store: &S, key: &SessionKey) -> SessionRow {
    let found = rows(store, key.tenant.as_str()).into_iter().find(|row| row.session_id == key.session.as_str());
    found.expect("it is listed")
}

/// A session with one turn that has ended.
fn used<S: SessionStore + ?Sized>(store: &S, key: &SessionKey, parent: Option<&str>) {
    let append = append_of(key, vec![begun(&TurnId::fresh(), "hello"), ended()]);
    appended(store, JournalAppend { parent: parent.map(SessionId::from), ..append });
}

fn entries_stand_in_the_order_of_the_calls<S: SessionStore + ?Sized>(store: &S) {
    let (one, two) = (key(DEFAULT_TENANT, "order-1"), key(DEFAULT_TENANT, "order-2"));
    let numbered = |n: usize| (0..3).map(|i| queued(&format!("{n}.{i}"))).collect::<Vec<_>>();
    let answers: Vec<_> = (0..50)
        .flat_map(|n| [hand_over(store, append_of(&one, numbered(n))), hand_over(store, append_of(&two, numbered(n)))])
        .collect();
    answers.into_iter().for_each(|answer| answer.recv().expect("`done` is called").expect("it is kept"));
    let expected: Vec<JournalEntry> = (0..50).flat_map(numbered).collect();
    assert_eq!(journal(store, &one), expected);
    assert_eq!(journal(store, &two), expected);
}

fn many_may_append_at_once<S: SessionStore + ?Sized>(store: &S) {
    let shared = key(DEFAULT_TENANT, "many");
    let (writers, each) = (4, 25);
    thread::scope(|scope| {
        for writer in 0..writers {
            let shared = &shared;
            scope.spawn(move || {
                for i in 0..each {
                    let pair = ["a", "b"].map(|half| queued(&format!("{writer} {i:02} {half}")));
                    appended(store, append_of(shared, pair.into()));
                }
            });
        }
    });
    let text = |entry: JournalEntry| match entry {
        JournalEntry::Turn(Fact::Queued(waiting)) => waiting.text().to_owned(),
        other @ (JournalEntry::Opened { .. }
        | JournalEntry::Closed { .. }
        | JournalEntry::Kept(_)
        | JournalEntry::Turn(_)) => {
            panic!("nobody appended {other:?}")
        }
    };
    let found: Vec<String> = journal(store, &shared).into_iter().map(text).collect();
    assert_eq!(found.len(), writers * each * 2);
    for pair in found.chunks(2) {
        assert_eq!((pair[0].strip_suffix('a'), pair[0].len()), (pair[1].strip_suffix('b'), pair[1].len()), "torn");
    }
    for writer in 0..writers {
        let of_writer: Vec<_> = found.iter().filter(|text| text.starts_with(&writer.to_string())).collect();
        assert!(of_writer.is_sorted(), "{of_writer:?}");
    }
}

fn what_is_said_of_a_session_stays<S: SessionStore + ?Sized>(store: &S) {
    let (mine, nobodys) = (key("said", "mine"), key("elsewhere", "mine"));
    let text = |text: &str| Some(text.to_owned());
    let patch = SessionPatch { label: text("the trip"), ..SessionPatch::default() };
    assert_eq!(store.patch_session(&mine, &patch), Ok(false), "nobody began it");
    assert_eq!(store.session_settings(&mine), Ok(None));
    used(store, &mine, None);
    assert_eq!(store.session_settings(&mine), Ok(Some(SessionSettings::default())));
    assert_eq!(store.patch_session(&mine, &patch), Ok(true));
    let metadata: Object = [("pinned".to_owned(), Value::from(true))].into_iter().collect();
    let further = SessionPatch { model: text("a/b"), metadata: Some(metadata.clone()), label: None };
    assert_eq!(store.patch_session(&mine, &further), Ok(true));
    assert_eq!(store.patch_session(&nobodys, &further), Ok(false), "it is another tenant's");
    used(store, &mine, None);
    let said = SessionSettings { label: "the trip".into(), model: "a/b".into(), metadata };
    assert_eq!(row(store, &mine).settings, said);
    let cleared = SessionPatch { label: text(""), model: text(""), metadata: None };
    assert_eq!(store.patch_session(&mine, &cleared), Ok(true));
    let left = SessionSettings { label: String::new(), model: String::new(), ..said };
    assert_eq!(store.session_settings(&mine), Ok(Some(left)));
}

fn a_row_tells_of_its_journal<S: SessionStore + ?Sized>(store: &S) {
    let key = key("rows", "row");
    let (first, second) = (TurnId::fresh(), TurnId::fresh());
    let opened = || JournalEntry::Opened { by: "pid 1".into(), under: None };
    appended(store, append_of(&key, vec![opened(), queued("early")]));
    let expected = SessionRow {
        session_id: "row".into(),
        agent_id: "main".into(),
        parent: None,
        created_at: "2026-01-02T03:04:05.678901234Z".into(),
        updated_at: "2026-01-02T03:04:05.678901234Z".into(),
        title: String::new(),
        turns: 0,
        open_turn: None,
        waiting: 0,
        held_by: None,
        last_end: None,
        settings: SessionSettings::default(),
    };
    assert_eq!(rows(store, "rows"), std::slice::from_ref(&expected));

    let append = append_of(&key, vec![begun(&first, "\n Clean\tthe\r\n\u{1b}kitchen "), queued("more")]);
    appended(store, JournalAppend { agent: AgentId::from("other"), at: moment(60), ..append });
    let expected = SessionRow {
        agent_id: "other".into(),
        updated_at: "2026-01-02T03:05:05.678901234Z".into(),
        title: "Clean the kitchen".into(),
        turns: 1,
        open_turn: Some(first.to_string()),
        ..expected
    };
    assert_eq!(rows(store, "rows"), std::slice::from_ref(&expected));

    // All in one: what counts is how it stands afterwards.
    let rest =
        vec![ended(), begun(&second, "And now?"), ended(), JournalEntry::Closed { cause: ReleaseReason::Waiting }];
    appended(store, JournalAppend { parent: Some(SessionId::from("late")), ..append_of(&key, rest) });
    let expected = SessionRow {
        agent_id: "main".into(),
        // The clock went back; the listing says what it said.
        updated_at: "2026-01-02T03:04:05.678901234Z".into(),
        turns: 2,
        open_turn: None,
        last_end: Some("waiting".into()),
        // Who has begun on their own does not become a helper.
        parent: None,
        ..expected
    };
    assert_eq!(rows(store, "rows"), std::slice::from_ref(&expected));

    appended(store, append_of(&key, vec![opened()]));
    assert_eq!(rows(store, "rows"), [expected], "the last end stands until the next");
    let long = self::key("rows", "long");
    appended(store, append_of(&long, vec![begun(&first, " \n"), ended(), begun(&second, &"é".repeat(1 << 20))]));
    assert_eq!(row(store, &long).title, format!("{}…", "é".repeat(79)), "the first prompt that says anything");
}

fn a_row_knows_what_a_killed_process_left<S: SessionStore + ApprovalStore + ?Sized>(store: &S) {
    let who = Identity { session_id: "killed".into(), ..Identity::top("main", "", TurnId::fresh()) };
    let key = key_of(&who);
    let opened = || JournalEntry::Opened { by: "pid 1".into(), under: None };
    appended(store, append_of(&key, vec![opened(), begun(&who.turn_id, "hello")]));
    store.ask(question("killed-1", &who, &call("{}")), moment(0)).expect("it can be asked");
    assert_eq!(row(store, &key).last_end, None);
    appended(store, append_of(&key, vec![opened()]));
    assert_eq!(row(store, &key).last_end.as_deref(), Some("killed"));
    let next = TurnId::fresh();
    appended(store, append_of(&key, vec![begun(&next, "again")]));
    let row = row(store, &key);
    assert_eq!((row.turns, row.open_turn, row.waiting), (2, Some(next.to_string()), 0));
    let question = store.approval(&TenantScope::All, "killed-1").expect("it can be read").expect("it is there");
    assert_eq!(question.state, ApprovalState::Void, "nobody comes back to a turn that another one followed");
}

fn the_session_used_last_is_first<S: SessionStore + ?Sized>(store: &S) {
    let at = |session: &str, seconds| {
        let append = append_of(&key("use", session), vec![queued("x")]);
        appended(store, JournalAppend { at: moment(seconds), ..append });
    };
    let listed = || rows(store, "use").into_iter().map(|row| row.session_id).collect::<Vec<_>>();
    // The clock goes back, and has more digits at times.
    at("b", 3);
    at("a", 2);
    at("c", 1);
    assert_eq!(listed(), ["c", "a", "b"]);
    at("b", 0);
    assert_eq!(listed(), ["b", "c", "a"]);
    assert_eq!(store.delete(&key("use", "b")), Ok(true));
    at("d", 0);
    at("a", 0);
    assert_eq!(listed(), ["a", "d", "c"]);
}

fn pages_make_up_the_listing<S: SessionStore + ?Sized>(store: &S) {
    (0..5).for_each(|n| used(store, &key(DEFAULT_TENANT, &format!("page-{n}")), (n == 2).then_some("page-1")));
    let listing = rows(store, DEFAULT_TENANT);
    let page = |after: Option<&str>, children, limit| {
        let query = SessionQuery { after: after.map(SessionId::from), children, limit };
        store.session_page(&TenantId::default_tenant(), &query).expect("it can be read")
    };
    for children in [true, false] {
        let whole: Vec<_> = listing.iter().filter(|row| children || row.parent.is_none()).cloned().collect();
        let (mut all, mut last) = (Vec::new(), None::<String>);
        loop {
            let next = page(last.as_deref(), children, 2);
            let Some(row) = next.last() else { break };
            last = Some(row.session_id.clone());
            all.extend(next);
        }
        assert_eq!(all, whole);
        assert_eq!(page(None, children, usize::MAX), whole);
    }
    assert_eq!(page(Some("page-3"), false, 1)[0].session_id, "page-1", "that of a sub-agent takes no place");
    assert_eq!(page(Some("page-nowhere"), true, 9), []);
    assert_eq!(page(None, true, 0), []);
}

fn tenants_do_not_see_each_other<S: SessionStore + ?Sized>(store: &S) {
    // Written behind each other, the names of both are the same.
    let (ours, theirs) = (key("ten", "ant"), key("te", "nant"));
    appended(store, append_of(&ours, vec![queued("ours")]));
    appended(store, append_of(&theirs, vec![queued("theirs")]));
    assert_eq!(journal(store, &ours), [queued("ours")]);
    assert_eq!(journal(store, &theirs), [queued("theirs")]);
    assert_eq!(journal(store, &key("ten", "nant")), []);
    assert_eq!(rows(store, "ten").len(), 1);
    let _ours = store.hold(&ours).expect("nobody has it");
    let _theirs = store.hold(&theirs).expect("it is another one");
    assert_eq!(row(store, &theirs).session_id, "nant");
}

fn records_are_kept_with_their_entries<S: SessionStore + RecordStore + ?Sized>(store: &S) {
    let (key, turn) = (key(DEFAULT_TENANT, "records"), TurnId::fresh());
    let records = vec![event(&turn), event(&turn)];
    appended(store, JournalAppend { records: records.clone(), ..append_of(&key, vec![queued("x")]) });
    for record in &records {
        let event_id = Some(record.event_id.to_string());
        let found = store
            .find(&RecordQuery { event_id, limit: 9, ..RecordQuery::of(TenantScope::All) })
            .expect("it can be read");
        assert_eq!(found.len(), 1);
    }
    assert_eq!(journal(store, &key), [queued("x")]);
}

fn nothing_makes_no_session<S: SessionStore + RecordStore + ?Sized>(store: &S) {
    let (key, record) = (key("nothing", "s"), event(&TurnId::fresh()));
    let event_id = Some(record.event_id.to_string());
    appended(store, JournalAppend { records: vec![record], ..append_of(&key, Vec::new()) });
    assert_eq!((journal(store, &key), rows(store, "nothing")), (vec![], vec![]));
    let found =
        store.find(&RecordQuery { event_id, limit: 9, ..RecordQuery::of(TenantScope::All) }).expect("it can be read");
    assert_eq!(found.len(), 1, "its records are kept all the same");
}

fn a_session_is_held_by_one<S: SessionStore + ?Sized>(store: &S) {
    let (mine, other) = (key("hold", "mine \"1\""), key("hold", "other"));
    let me = format!("process {}", std::process::id());
    let held = store.hold(&mine).expect("nobody has it, and it need not have begun");
    let why = format!(r#"session "mine \"1\"" is in use by {me}"#);
    assert_eq!(store.hold(&mine).err(), Some(StoreError::Conflict(why.clone())));
    assert_eq!(store.hold(&mine).err(), Some(StoreError::Conflict(why)), "asking does not take it away");
    appended(store, append_of(&mine, vec![queued("x")]));
    appended(store, append_of(&other, vec![queued("x")]));
    assert_eq!(row(store, &mine).held_by, Some(me.clone()));
    assert_eq!(row(store, &other).held_by, None);
    assert_eq!((store.holder(&mine), store.holder(&other)), (Ok(Some(me.clone())), Ok(None)));
    let second = store.hold(&other).expect("nobody has that one");
    drop(held);
    assert_eq!((row(store, &mine).held_by, row(store, &other).held_by), (None, Some(me)));
    drop(store.hold(&mine).expect("it was given back"));
    drop(second);
    assert_eq!(row(store, &other).held_by, None);
    let winners: Vec<_> = thread::scope(|scope| {
        let tries: Vec<_> = (0..8).map(|_| scope.spawn(|| store.hold(&mine).ok())).collect();
        tries.into_iter().filter_map(|it| it.join().expect("no panic")).collect()
    });
    assert_eq!(winners.len(), 1);
}

/// Asks about a call of its own in the turn of `who`, and says the id.
fn ask<S: ApprovalStore + ?Sized>(store: &S, who: &Identity, id: &str) -> String {
    let call = ToolCall { id: CallId::from(id), ..call("{}") };
    store.ask(question(id, who, &call), moment(0)).expect("it can be asked");
    id.to_owned()
}

fn found<S: ApprovalStore + ?Sized>(store: &S, id: &str) -> Option<Approval> {
    store.approval(&TenantScope::All, id).expect("it can be read")
}

fn a_deleted_session_is_gone<S: SessionStore + ApprovalStore + ?Sized>(store: &S) {
    let tenant = "gone";
    let (top, other) = (key(tenant, "top"), key(tenant, "other"));
    assert_eq!(store.delete(&top), Ok(false), "there is none");
    used(store, &top, None);
    // The chain closes, and a helper of a helper is one too.
    used(store, &key(tenant, "child"), Some("top"));
    used(store, &key(tenant, "grandchild"), Some("child"));
    used(store, &key(tenant, "ring-a"), Some("ring-b"));
    used(store, &key(tenant, "ring-b"), Some("ring-a"));
    used(store, &other, None);
    used(store, &key(tenant, "child of other"), Some("other"));
    let foreign = key("gone elsewhere", "child");
    used(store, &foreign, Some("top"));
    let in_session = |session: &str| Identity {
        tenant_id: TenantId::from(tenant),
        ..Identity::top("main", session, TurnId::from("t"))
    };
    let gone = ["top", "grandchild"].map(|session| ask(store, &in_session(session), &format!("gone-{session}")));
    let stays = ask(store, &in_session("other"), "gone-not");

    assert_eq!(store.delete(&key("gone elsewhere", "top")), Ok(false));
    assert_eq!(store.delete(&top), Ok(true));
    let listed: Vec<_> = rows(store, tenant).into_iter().map(|row| row.session_id).collect();
    assert_eq!(listed, ["child of other", "other", "ring-b", "ring-a"]);
    assert_eq!((journal(store, &top), journal(store, &key(tenant, "grandchild"))), (vec![], vec![]));
    assert_eq!(gone.map(|id| found(store, &id)), [None, None]);
    assert_eq!((journal(store, &foreign).len(), journal(store, &other).len()), (2, 2));
    assert!(found(store, &stays).is_some());
    assert_eq!(store.delete(&top), Ok(false));
    assert_eq!(store.delete(&key(tenant, "ring-a")), Ok(true));
    assert_eq!(rows(store, tenant).len(), 2);

    appended(store, append_of(&top, vec![queued("anew")]));
    assert_eq!(journal(store, &top), [queued("anew")]);
    assert_eq!(row(store, &top).turns, 0, "a new one of that name knows nothing of the old");
}

fn a_session_in_use_is_not_deleted<S: SessionStore + ?Sized>(store: &S) {
    let (top, child) = (key("in use", "top"), key("in use", "child"));
    used(store, &top, None);
    used(store, &child, Some("top"));
    for held in [&top, &child] {
        let hold = store.hold(held).expect("nobody has it");
        let why = format!("session {:?} is in use by process {}", held.session, std::process::id());
        assert_eq!(store.delete(&top), Err(StoreError::Conflict(why)));
        assert_eq!(rows(store, "in use").len(), 2);
        drop(hold);
    }
    let hold = store.hold(&top).expect("nobody has it");
    assert_eq!(store.delete(&child), Ok(true), "the helper's alone is not in use");
    drop(hold);
    assert_eq!(store.delete(&top), Ok(true));
}

fn the_end_of_a_turn_ends_its_questions<S: SessionStore + ApprovalStore + ?Sized>(store: &S) {
    let turn = TurnId::fresh();
    let who = Identity { session_id: "questions".into(), ..Identity::top("main", "", turn.clone()) };
    let elsewhere = Identity { session_id: "questions elsewhere".into(), ..who.clone() };
    let other_turn = Identity { turn_id: TurnId::fresh(), ..who.clone() };
    let key = key_of(&who);
    appended(store, append_of(&key, vec![ended(), begun(&turn, "hello")]));
    let ids = ["waits", "approved", "refused", "used"].map(|id| ask(store, &who, &format!("end-{id}")));
    let others = [ask(store, &elsewhere, "end-elsewhere"), ask(store, &other_turn, "end-other")];
    for (id, approve) in [(&ids[1], true), (&ids[2], false), (&ids[3], true)] {
        store.answer(&TenantScope::All, id, said(approve), moment(0)).expect("it waits");
    }
    store.use_up(&DEFAULT_TENANT.into(), &ids[3], moment(0)).expect("it is approved");
    assert_eq!(row(store, &key).waiting, 2);
    appended(store, append_of(&key, vec![queued("x"), JournalEntry::Closed { cause: ReleaseReason::Waiting }]));
    let states = |ids: &[String]| ids.iter().map(|id| found(store, id).expect("it is kept").state).collect::<Vec<_>>();
    assert_eq!(
        states(&ids),
        [ApprovalState::Waiting, ApprovalState::Approved, ApprovalState::Refused, ApprovalState::Used],
        "it goes on some day"
    );

    appended(store, append_of(&key, vec![ended()]));
    assert_eq!(states(&ids), [ApprovalState::Void, ApprovalState::Void, ApprovalState::Refused, ApprovalState::Used]);
    assert_eq!(states(&others), [ApprovalState::Waiting, ApprovalState::Waiting]);
    assert_eq!(row(store, &key).waiting, 1);
    let refused = |how: Result<(), StoreError>| matches!(how, Err(StoreError::Conflict(_)));
    assert!(refused(store.use_up(&DEFAULT_TENANT.into(), &ids[1], moment(0))), "leave ends with its turn");
    assert!(refused(store.answer(&TenantScope::All, &ids[0], said(true), moment(0)).map(drop)));
    appended(store, append_of(&key, vec![ended()]));
    assert_eq!(states(&others), [ApprovalState::Waiting, ApprovalState::Waiting], "what has not begun cannot end");
}

/// A turn that somebody works is nobody's to go on with, however quickly it begins and ends.
fn only_a_turn_that_nobody_works_is_left<S: SessionStore + ?Sized>(store: &S) {
    let is_busy = |key: &SessionKey| key.session.as_str().starts_with("busy-");
    thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|worker| scope.spawn(move || turns_of(store, worker))).collect();
        while workers.iter().any(|worker| !worker.is_finished()) {
            let left = store.left_turns().expect("it can be read");
            assert!(!left.iter().any(|turn| is_busy(&turn.key)), "{left:?}");
        }
    });
    let (lost, turn) = (key(DEFAULT_TENANT, "busy-lost"), TurnId::fresh());
    appended(store, append_of(&lost, vec![begun(&turn, "hello")]));
    let left = store.left_turns().expect("it can be read").into_iter().find(|turn| turn.key == lost);
    assert_eq!(left.map(|it| it.turn_id), Some(turn));
    appended(store, append_of(&lost, vec![ended()]));
}

/// Works turns, each in a session of its own.
fn turns_of<S: SessionStore + ?Sized>(store: &S, worker: usize) {
    for number in 0..25 {
        let key = key(DEFAULT_TENANT, &format!("busy-{worker}-{number}"));
        let held = store.hold(&key).expect("nobody has it");
        appended(store, append_of(&key, vec![begun(&TurnId::fresh(), "hello")]));
        appended(store, append_of(&key, vec![ended()]));
        drop(held);
    }
}
