//! What every store of questions for persons has to do.

use std::thread;

use jiff::{SignedDuration, Timestamp};
use pintle_domain::approval::{Approval, ApprovalStanding, ApprovalState, LIFETIME_SECONDS, PersonAnswer};
use pintle_domain::clearing::ApprovalQuestion;
use pintle_domain::id::{CallId, DEFAULT_TENANT, HookName, SessionId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::{self, Object};
use pintle_domain::store::{ApprovalQuery, ApprovalStore, SessionKey, StoreError, TenantScope};
use pintle_domain::tool::ToolCall;

/// Runs the suite on an empty store.
///
/// # Panics
/// The store does not do what it has to.
pub fn approvals<S: ApprovalStore + ?Sized>(store: &S) {
    assert_eq!(
        store.approvals(&ApprovalQuery::newest(TenantScope::All, usize::MAX)),
        Ok(Vec::new()),
        "the suite needs an empty store"
    );
    a_question_comes_back_whole(store);
    the_same_call_does_not_ask_twice(store);
    an_approval_is_used_once(store);
    a_refusal_stands(store);
    time_passes(store);
    a_changed_call_is_a_new_question(store);
    only_the_same_call_of_the_model_counts(store);
    the_first_answer_stands(store);
    an_id_may_be_cut_short(store);
    an_id_is_given_once(store);
    what_is_anothers_is_not_there(store);
    the_newest_are_listed(store);
    one_of_many_wins(store);
}

/// The moment that the suites begin at, and so many seconds.
///
/// # Panics
/// There is no such moment.
pub fn moment(seconds: i64) -> Timestamp {
    let begin: Timestamp = "2026-01-02T03:04:05.678901234Z".parse().expect("RFC 3339");
    begin.checked_add(SignedDuration::from_secs(seconds)).expect("a moment")
}

/// A call of `exec` with `arguments`, which are a JSON object.
///
/// # Panics
/// They are none.
pub fn call(arguments: &str) -> ToolCall {
    let arguments = json::parse(arguments).expect("JSON").as_object().cloned().expect("an object");
    ToolCall { id: CallId::from("call_1"), tool: "exec".into(), raw_tool: "Exec".into(), arguments }
}

/// The question `id` about `call`, asked at [`moment`] 0.
pub fn question(id: &str, who: &Identity, call: &ToolCall) -> Approval {
    let question = ApprovalQuestion { call, by: &HookName::from("guard"), why: &"it deletes".into() };
    Approval::question(id.into(), who, question, moment(0))
}

/// What a person says.
pub fn said(approve: bool) -> PersonAnswer {
    PersonAnswer { approve, by: "ada".into(), note: "as we said".into() }
}

/// The session of `who`.
pub fn key_of(who: &Identity) -> SessionKey {
    SessionKey { tenant: who.tenant_id.clone(), session: who.session_id.clone() }
}

/// Somebody in a turn of their own.
fn somebody() -> Identity {
    Identity::top("main", "cli:1", TurnId::fresh())
}

/// Asks about the call `{"n":NUMBER}`, with a fresh id that begins with `id`.
fn ask<S: ApprovalStore + ?Sized>(store: &S, id: &str, who: &Identity, number: u32) -> ApprovalStanding {
    ask_at(store, id, who, &call(&format!(r#"{{"n":{number}}}"#)), 0)
}

fn ask_at<S: ApprovalStore + ?Sized>(
    store: &S,
    id: &str,
    who: &Identity,
    call: &ToolCall,
    seconds: i64,
) -> ApprovalStanding {
    store.ask(question(id, who, call), moment(seconds)).expect("it can be asked")
}

fn state<S: ApprovalStore + ?Sized>(store: &S, id: &str) -> ApprovalState {
    store.approval(&TenantScope::All, id).expect("it can be read").expect("it is there").state
}

fn conflict<T: std::fmt::Debug>(how: Result<T, StoreError>) -> String {
    match how {
        Err(StoreError::Conflict(why)) => why,
        other => panic!("expected a conflict, got {other:?}"),
    }
}

fn a_question_comes_back_whole<S: ApprovalStore + ?Sized>(store: &S) {
    let nested = format!("{}1{}", "[".repeat(json::MAX_DEPTH - 1), "]".repeat(json::MAX_DEPTH - 1));
    for (i, arguments) in [
        r#"{"amount":12345678901234567890.10,"huge":1e400,"tiny":-0.0,"one":1.0}"#.to_owned(),
        r#"{"z":1,"a":"nul \u0000 and \ufffd and \ud83d\ude00 '); DROP TABLE approvals; --"}"#.to_owned(),
        format!(r#"{{"deep":{nested}}}"#),
        format!(r#"{{"long":"{}"}}"#, "\\u0000€".repeat(1 << 18)),
    ]
    .into_iter()
    .enumerate()
    {
        let mut who = somebody();
        who.session_id = SessionId::from("nul \0 '%\u{202e}");
        let id = format!("whole-\0-{i}");
        let asked = question(&id, &who, &call(&arguments));
        let standing = store.ask(asked.clone(), moment(0));
        assert!(standing == Ok(ApprovalStanding::Waiting(Box::new(asked.clone()))), "number {i} does not wait");
        assert!(store.approval(&TenantScope::All, &id) == Ok(Some(asked.clone())), "number {i} is not found");
        let answered = store.answer(&TenantScope::All, &id, said(true), moment(1)).expect("it can be answered");
        let expected = Approval {
            state: ApprovalState::Approved,
            answered_by: Some("ada".into()),
            note: "as we said".into(),
            ..asked
        };
        assert!(answered == expected, "number {i} is not answered");
        assert!(store.approval(&TenantScope::All, &id) == Ok(Some(expected)), "number {i} is not kept answered");
    }
    assert_eq!(store.approval(&TenantScope::All, "whole-"), Ok(None), "an id is found whole");
}

fn the_same_call_does_not_ask_twice<S: ApprovalStore + ?Sized>(store: &S) {
    let who = somebody();
    let first = ask(store, "twice-a", &who, 1);
    assert_eq!(ask(store, "twice-b", &who, 1), first, "the first question waits");
    assert_eq!(store.approval(&TenantScope::All, "twice-b"), Ok(None), "the second is not kept");
}

fn an_approval_is_used_once<S: ApprovalStore + ?Sized>(store: &S) {
    let who = somebody();
    ask(store, "once-a", &who, 1);
    let waiting = conflict(store.use_up(&DEFAULT_TENANT.into(), "once-a", moment(0)));
    assert_eq!(waiting, "approval `once-a` cannot be used: it is waiting, not approved");
    store.answer(&TenantScope::All, "once-a", said(true), moment(1)).expect("it waits");
    let approved = ApprovalStanding::Approved { id: "once-a".into() };
    assert_eq!(ask(store, "once-b", &who, 1), approved);
    assert_eq!(ask(store, "once-c", &who, 1), approved, "looking at it is no use");
    assert_eq!(store.use_up(&DEFAULT_TENANT.into(), "once-a", moment(2)), Ok(()));
    assert_eq!(state(store, "once-a"), ApprovalState::Used);
    let used = conflict(store.use_up(&DEFAULT_TENANT.into(), "once-a", moment(2)));
    assert_eq!(used, "approval `once-a` cannot be used: it is used, not approved");
    assert!(
        matches!(ask(store, "once-d", &who, 1), ApprovalStanding::Waiting(it) if it.id == "once-d"),
        "it is asked again"
    );
    assert_eq!(state(store, "once-a"), ApprovalState::Used, "what was used stays used");
    assert!(
        matches!(store.use_up(&DEFAULT_TENANT.into(), "once", moment(2)), Err(StoreError::NotFound(_))),
        "an id is used whole"
    );
}

fn a_refusal_stands<S: ApprovalStore + ?Sized>(store: &S) {
    let who = somebody();
    ask(store, "no-a", &who, 1);
    store.answer(&TenantScope::All, "no-a", said(false), moment(1)).expect("it waits");
    let refused = ApprovalStanding::Refused { by: Some("ada".into()), note: "as we said".into() };
    assert_eq!(ask(store, "no-b", &who, 1), refused);
    let late = ask_at(store, "no-c", &who, &call(r#"{"n":1}"#), 2 * LIFETIME_SECONDS);
    assert_eq!(late, refused, "a no does not run out");
    conflict(store.use_up(&DEFAULT_TENANT.into(), "no-a", moment(1)));
    assert_eq!(state(store, "no-a"), ApprovalState::Refused);
}

fn time_passes<S: ApprovalStore + ?Sized>(store: &S) {
    let (who, same) = (somebody(), call(r#"{"n":1}"#));
    ask(store, "late-a", &who, 1);
    let in_time = ask_at(store, "late-b", &who, &same, LIFETIME_SECONDS - 1);
    assert!(matches!(in_time, ApprovalStanding::Waiting(_)), "{in_time:?}");
    assert_eq!(ask_at(store, "late-c", &who, &same, LIFETIME_SECONDS), ApprovalStanding::Expired);
    let why = conflict(store.answer(&TenantScope::All, "late-a", said(true), moment(LIFETIME_SECONDS)));
    let until = "approval `late-a` cannot be answered: it expired at 2026-01-03T03:04:05.678901234Z";
    assert_eq!(why, until);
    assert_eq!(state(store, "late-a"), ApprovalState::Waiting, "time passes without anybody writing it down");

    store.answer(&TenantScope::All, "late-a", said(true), moment(LIFETIME_SECONDS - 1)).expect("there is time left");
    let why = conflict(store.use_up(&DEFAULT_TENANT.into(), "late-a", moment(LIFETIME_SECONDS)));
    assert_eq!(why, "approval `late-a` cannot be used: it is expired, not approved");
    assert_eq!(state(store, "late-a"), ApprovalState::Approved);
    assert_eq!(store.use_up(&DEFAULT_TENANT.into(), "late-a", moment(LIFETIME_SECONDS - 1)), Ok(()));
}

fn a_changed_call_is_a_new_question<S: ApprovalStore + ?Sized>(store: &S) {
    let who = somebody();
    ask(store, "change-a", &who, 1);
    store.answer(&TenantScope::All, "change-a", said(true), moment(1)).expect("it waits");
    let ApprovalStanding::Waiting(second) = ask(store, "change-b", &who, 2) else {
        panic!("another call must be asked about")
    };
    assert_eq!(second.changed_from, Some(Object::from_iter([("n".into(), 1.into())])));
    assert_eq!(store.approval(&TenantScope::All, "change-b"), Ok(Some(*second)), "what changed is kept");
    assert_eq!(state(store, "change-a"), ApprovalState::Void, "leave for the one is none for the other");
    conflict(store.use_up(&DEFAULT_TENANT.into(), "change-a", moment(1)));
    let why = conflict(store.answer(&TenantScope::All, "change-a", said(true), moment(1)));
    assert_eq!(why, "approval `change-a` cannot be answered: it is void: the call changed or its turn is over");
    // Digits count.
    let respelled = ask_at(store, "change-c", &who, &call(r#"{"n":2.0}"#), 0);
    assert!(matches!(respelled, ApprovalStanding::Waiting(it) if it.id == "change-c"));
    assert_eq!(state(store, "change-b"), ApprovalState::Void);
}

fn only_the_same_call_of_the_model_counts<S: ApprovalStore + ?Sized>(store: &S) {
    let who = somebody();
    ask(store, "apart", &who, 1);
    store.answer(&TenantScope::All, "apart", said(true), moment(0)).expect("it waits");
    let others = [
        ("tenant", Identity { tenant_id: "acme".into(), ..who.clone() }),
        ("session", Identity { session_id: "cli:2".into(), ..who.clone() }),
        ("turn", Identity { turn_id: TurnId::fresh(), ..who.clone() }),
    ];
    for (what, other) in others {
        let standing = ask(store, &format!("apart-{what}"), &other, 1);
        assert!(matches!(standing, ApprovalStanding::Waiting(_)), "another {what} has another approval: {standing:?}");
    }
    let other_call = ToolCall { id: CallId::from("call_2"), ..call(r#"{"n":1}"#) };
    assert!(matches!(ask_at(store, "apart-call", &who, &other_call, 0), ApprovalStanding::Waiting(_)));
    assert_eq!(state(store, "apart"), ApprovalState::Approved, "the others' questions do not touch it");
}

fn the_first_answer_stands<S: ApprovalStore + ?Sized>(store: &S) {
    ask(store, "first", &somebody(), 1);
    let first = store.answer(&TenantScope::All, "first", said(true), moment(1)).expect("it waits");
    let other = PersonAnswer { approve: false, by: "bob".into(), note: "no!".into() };
    let why = conflict(store.answer(&TenantScope::All, "first", other, moment(1)));
    assert_eq!(why, "approval `first` cannot be answered: it was approved already, by ada");
    assert_eq!(store.approval(&TenantScope::All, "first"), Ok(Some(first)), "the second answer changes nothing");
}

fn an_id_may_be_cut_short<S: ApprovalStore + ?Sized>(store: &S) {
    for id in ["cut%1-a", "cut%1-b", "cut%2", "cut%2-longer", "cuz\u{10ffff}"] {
        ask(store, id, &somebody(), 1);
    }
    let answered = |id: &str| store.answer(&TenantScope::All, id, said(true), moment(0)).map(|it| it.id);
    assert_eq!(conflict(answered("cut%1")), "several approvals have ids that begin with `cut%1`; give more of it");
    assert_eq!(answered("cut%1-b"), Ok("cut%1-b".into()));
    assert_eq!(answered("cut%2"), Ok("cut%2".into()), "a whole id counts before the beginning of another");
    assert_eq!(answered("cut%2-"), Ok("cut%2-longer".into()));
    assert_eq!(answered("cuz"), Ok("cuz\u{10ffff}".into()));
    for unknown in ["cut_1-a", "cut%3", "CUT%1-a", "%", "", "cut%2-longer-still"] {
        assert!(matches!(answered(unknown), Err(StoreError::NotFound(_))), "`{unknown}` is nobody's");
    }
    assert_eq!(state(store, "cut%1-a"), ApprovalState::Waiting);
}

fn an_id_is_given_once<S: ApprovalStore + ?Sized>(store: &S) {
    let (first, second) = (somebody(), somebody());
    ask(store, "given", &first, 1);
    let before = store.approval(&TenantScope::All, "given");
    let why = conflict(store.ask(question("given", &second, &call("{}")), moment(0)));
    assert_eq!(why, "there is an approval `given` already; ask with a fresh id");
    // Nor where it would make the earlier one void.
    conflict(store.ask(question("given", &first, &call("{}")), moment(0)));
    assert_eq!(store.approval(&TenantScope::All, "given"), before);
}

fn what_is_anothers_is_not_there<S: ApprovalStore + ?Sized>(store: &S) {
    let who = somebody();
    ask(store, "foreign-a", &who, 1);
    let (own, foreign) = (TenantScope::from(&who.tenant_id), TenantScope::One("acme".into()));
    let unknown = |how: Result<Approval, StoreError>, id: &str| {
        let why = how.expect_err("it is another tenant's").to_string();
        assert_eq!(why, store.answer(&own, id, said(true), moment(1)).expect_err("it is nowhere").to_string());
    };
    assert_eq!(store.approval(&foreign, "foreign-a"), Ok(None));
    assert!(store.answer(&foreign, "foreign-a", said(true), moment(1)).is_err());
    // Nor by the beginning of its id, and none of another tenant makes the own one ambiguous.
    assert!(store.answer(&foreign, "foreign-", said(true), moment(1)).is_err());
    unknown(store.answer(&foreign, "nowhere", said(true), moment(1)), "nowhere");
    let acme = Identity { tenant_id: "acme".into(), ..somebody() };
    ask(store, "foreign-b", &acme, 1);
    assert_eq!(store.answer(&own, "foreign-", said(true), moment(1)).map(|it| it.id), Ok("foreign-a".to_owned()));
    let why = store.use_up(&acme.tenant_id, "foreign-a", moment(2));
    assert!(matches!(why, Err(StoreError::NotFound(_))), "{why:?}");
    assert_eq!(state(store, "foreign-a"), ApprovalState::Approved, "nothing of it changed");
    assert_eq!(store.use_up(&who.tenant_id, "foreign-a", moment(2)), Ok(()));
}

fn the_newest_are_listed<S: ApprovalStore + ?Sized>(store: &S) {
    // The order of ids must not matter.
    for id in ["list-c", "list-a", "list-d", "list-b"] {
        ask(store, id, &somebody(), 1);
    }
    store.answer(&TenantScope::All, "list-d", said(false), moment(0)).expect("it waits");
    let ids = |waiting_only, limit| -> Vec<String> {
        let query = ApprovalQuery { waiting_only, ..ApprovalQuery::newest(TenantScope::All, limit) };
        store.approvals(&query).expect("it can be read").into_iter().map(|it| it.id).collect()
    };
    let of = |tenant: &str, limit| -> Vec<String> {
        let query = ApprovalQuery::newest(TenantScope::One(tenant.into()), limit);
        store.approvals(&query).expect("it can be read").into_iter().map(|it| it.id).collect()
    };
    assert_eq!(of(somebody().tenant_id.as_str(), 2), ["list-d", "list-b"], "a tenant sees its own");
    assert_eq!(of("nobody", usize::MAX), [""; 0], "and nothing of another");
    for (tenant, found) in [(somebody().tenant_id.as_str(), 1), ("nobody", 0)] {
        let (tenant, id) = (TenantScope::One(tenant.into()), Some("list-d".to_owned()));
        let query = ApprovalQuery { id, ..ApprovalQuery::newest(tenant, 9) };
        assert_eq!(store.approvals(&query).expect("it can be read").len(), found, "one by its id, of its tenant only");
    }
    assert_eq!(ids(false, 4), ["list-c", "list-a", "list-d", "list-b"], "oldest first");
    assert_eq!(ids(false, 2), ["list-d", "list-b"], "a limit keeps the newest");
    assert_eq!(ids(true, 3), ["list-c", "list-a", "list-b"], "what was answered does not wait");
    assert_eq!(ids(true, 0), [""; 0]);
    assert!(ids(false, usize::MAX).len() > 4);
    let mut waiting = store.approvals(&ApprovalQuery::waiting(TenantScope::All, usize::MAX)).expect("it can be read");
    waiting.retain(|it| it.state != ApprovalState::Waiting);
    assert_eq!(waiting, []);
}

fn one_of_many_wins<S: ApprovalStore + ?Sized>(store: &S) {
    let tries = 8;
    let who = somebody();
    // All come with the same question: one of theirs is kept.
    let ids: Vec<String> = (0..tries).map(|i| format!("race-{i}")).collect();
    let kept = at_once(&ids, |id| match ask(store, id, &who, 1) {
        ApprovalStanding::Waiting(it) => it.id,
        other @ (ApprovalStanding::Approved { .. } | ApprovalStanding::Refused { .. } | ApprovalStanding::Expired) => {
            panic!("nobody answered yet: {other:?}")
        }
    });
    assert!(kept.iter().all(|id| *id == kept[0]), "{kept:?}");
    let answers = at_once(&ids, |by| {
        let said = PersonAnswer { approve: true, by: by.into(), note: String::new() };
        store.answer(&TenantScope::All, &kept[0], said, moment(0)).map(|it| it.answered_by.expect("somebody")).ok()
    });
    let winners: Vec<_> = answers.into_iter().flatten().collect();
    assert_eq!(winners.len(), 1, "{winners:?}");
    let answered = store.approval(&TenantScope::All, &kept[0]).expect("it can be read").expect("it is there");
    assert_eq!(answered.answered_by.as_ref(), Some(&winners[0]));
    let uses = at_once(&ids, |_| store.use_up(&DEFAULT_TENANT.into(), &kept[0], moment(0)).is_ok());
    assert_eq!(uses.iter().filter(|used| **used).count(), 1);
}

/// Does `work` for each of `who` in a thread of its own.
fn at_once<T: Send>(who: &[String], work: impl Fn(&str) -> T + Sync) -> Vec<T> {
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> = who.iter().map(|it| scope.spawn(move || work(it))).collect();
        threads.into_iter().map(|it| it.join().expect("no panic")).collect()
    })
}
