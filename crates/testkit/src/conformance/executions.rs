//! What every store of executions has to do.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use jiff::Timestamp;
use pintle_domain::account::Account;
use pintle_domain::breaker::BreakerPolicy;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::execution::Execution;
use pintle_domain::fault::Fault;
use pintle_domain::hook::Family;
use pintle_domain::id::{DEFAULT_TENANT, HookId, TenantId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::Object;
use pintle_domain::record::{EventRecord, HookOutcome, NotRun, Record};
use pintle_domain::rule::{Decision, Fallback, HandlerType, Rights, RuleDetails};
use pintle_domain::store::{AuditStore, ExecutionQuery, ExecutionStore, RecordStore, StoreError, TenantScope};
use pintle_domain::verdict::VerdictKind;

use super::store::{event, hook, keep};

/// A store that keeps what hooks did, with everything that belongs to it.
pub trait EvidenceStore: RecordStore + ExecutionStore + AuditStore {}

impl<S: RecordStore + ExecutionStore + AuditStore> EvidenceStore for S {}

/// Makes a row of a hook, so that executions can name it.
pub type MakeHook<'a> = dyn Fn(&HookId) + 'a;

/// A tenant beside the default one.
pub const OTHER_TENANT: &str = "0193a5b0-7000-7000-8000-0000000000ff";

/// Runs the suite on a store that is empty and can encrypt.
///
/// # Panics
/// The store does not do what it has to.
pub fn executions(store: &dyn EvidenceStore, make_hook: &MakeHook<'_>) {
    assert_eq!(all(store), [], "the suite needs an empty store");
    an_execution_comes_back_whole(store, make_hook);
    only_what_ran_in_earnest_is_kept(store, make_hook);
    an_execution_is_kept_once(store, make_hook);
    whatever_does_not_fit_does_no_harm(store, make_hook);
    pages_of_every_selection_fit_together(store, make_hook);
    the_old_are_forgotten_in_batches(store);
}

/// An event at which the hook `id` ended as `outcome`.
pub fn ran(id: &HookId, outcome: HookOutcome) -> EventRecord {
    let turn = TurnId::fresh();
    EventRecord { tool: Some("exec".into()), hooks: vec![by(id, outcome)].into(), ..event(&turn) }
}

/// The line of the rule `id`.
pub fn by(id: &HookId, outcome: HookOutcome) -> Record {
    let stored = RuleDetails {
        id: id.clone(),
        tenant: TenantId::default_tenant(),
        version: 7,
        handler: HandlerType::Script,
        created_at: "2026-01-01T00:00:00Z".into(),
        condition: None,
        rights: Rights::Nothing,
        breaker: BreakerPolicy::All,
        on_trip: Fallback::Block,
        is_exception: false,
    };
    Record { family: Family::Rule, stored: Some(Arc::new(stored)), ..hook("guard", outcome) }
}

/// An answer.
pub fn said(word: VerdictKind) -> HookOutcome {
    HookOutcome::Said { word, reason: Some("mail ann@example.org".into()), took: Duration::from_millis(12) }
}

/// No answer.
pub fn failed() -> HookOutcome {
    HookOutcome::Failed { fault: Fault::broke("no"), became: VerdictKind::Deny, took: Duration::from_millis(3) }
}

/// All executions, newest first.
///
/// # Panics
/// The store cannot be read.
pub fn all(store: &dyn EvidenceStore) -> Vec<Execution> {
    list(store, &everything())
}

fn list(store: &dyn EvidenceStore, query: &ExecutionQuery) -> Vec<Execution> {
    store.executions(query).expect("the store can be read")
}

fn everything() -> ExecutionQuery {
    ExecutionQuery { limit: usize::MAX, ..ExecutionQuery::of(TenantScope::All) }
}

fn of_event(store: &dyn EvidenceStore, event: &EventRecord) -> Vec<Execution> {
    all(store).into_iter().filter(|it| it.event_id == event.event_id.as_str()).collect()
}

/// Keeps executions that belong to no event, and waits for it.
///
/// # Errors
/// What the store said.
///
/// # Panics
/// The store forgot to say.
pub fn keep_executions(store: &dyn ExecutionStore, executions: Vec<Execution>) -> Result<(), StoreError> {
    let (said, heard) = channel();
    store.keep_executions(executions, Box::new(move |how| said.send(how).expect("the test waits for it")));
    heard.recv().expect("`done` is called")
}

/// As a database keeps it.
pub fn kept_form(execution: &Execution) -> Execution {
    let created_at = Timestamp::from_microsecond(execution.created_at.as_microsecond()).expect("it was a moment");
    Execution { created_at, error_detail: None, output: None, ..execution.clone() }
}

fn an_execution_comes_back_whole(store: &dyn EvidenceStore, make_hook: &MakeHook<'_>) {
    let id = HookId::fresh();
    make_hook(&id);
    let mut event = ran(&id, failed());
    event.who.tool_call_id = Some("call_1".into());
    event.who.trace_id = "trace-1".into();
    event.input = Some(Arc::new(Object::from_iter([("cmd".to_owned(), "ls".into())])));
    let detail = format!("Bearer 12345678 in {}", "a long story ".repeat(100));
    event.hooks.whole_mut().next().expect("it has a line").account = Some(Box::new(Account {
        detail: Some(detail.as_str().into()),
        stdout_len: Some(5),
        stdout: Some("größe".into()),
        stderr: Some("password=hunter2\n\0\u{202e}".into()),
        http_status: Some(500),
        retry: 2,
        ..Account::default()
    }));
    let mut second = by(&id, said(VerdictKind::Ask));
    second.again = true;
    event.hooks.push(second);
    keep(store, vec![event.clone()]).expect("it is kept");

    let found = of_event(store, &event);
    assert_eq!(found.len(), 2, "one for each that ran");
    let words = |row: &Execution| ["decision", "effective"].map(|name| row.metadata[name].clone());
    let mut said: Vec<_> = found.iter().map(words).collect();
    said.sort_by_key(|words| words[0].to_string());
    assert_eq!(said, [["ask", "ask"], ["error", "block"]], "what was said, and what it counted for");
    for record in &event.hooks {
        let made = Execution::of(&event, &record).expect("it ran");
        let found = found.iter().find(|it| it.dedup_key == made.dedup_key).expect("it is there");
        let output = made.output.clone();
        assert_eq!(found, &kept_form(&Execution { id: found.id.clone(), ..made }));
        let whole = store.execution(&TenantScope::All, &found.id).expect("it can be read").expect("it is there");
        let expected = (!record.again).then(|| detail.as_str().into());
        assert_eq!(output.is_some(), !record.again, "the second wrote nothing");
        assert_eq!(whole, Execution { error_detail: expected, output, ..found.clone() });
        let own = TenantScope::from(&found.tenant_id);
        assert_eq!(store.execution(&own, &found.id), Ok(Some(whole)));
        for foreign in [OTHER_TENANT, "x"] {
            assert_eq!(store.execution(&TenantScope::One(foreign.into()), &found.id), Ok(None), "{foreign}");
        }
    }
    assert_eq!(store.execution(&TenantScope::All, &HookId::fresh().to_string()), Ok(None));
    assert_eq!(store.execution(&TenantScope::All, "no id"), Ok(None));
}

fn only_what_ran_in_earnest_is_kept(store: &dyn EvidenceStore, make_hook: &MakeHook<'_>) {
    let id = HookId::fresh();
    make_hook(&id);
    let mut test = ran(&id, said(VerdictKind::Deny));
    test.who.is_test = true;
    let not_run = ran(&id, HookOutcome::NotRun(NotRun::Disabled));
    let dropped = ran(&id, HookOutcome::NotRun(NotRun::Dropped));
    let mut foreign = ran(&id, said(VerdictKind::Deny));
    foreign.hooks.whole_mut().next().expect("it has a line").stored = None;
    let events = [test, not_run, dropped, foreign];
    keep(store, events.to_vec()).expect("they are kept");
    let counts = events.each_ref().map(|event| of_event(store, event).len());
    assert_eq!(counts, [0, 0, 1, 0]);
    let row = of_event(store, &events[2]).pop().expect("it was counted");
    assert_eq!((row.decision, row.error.as_deref()), (Decision::Error, Some("queue full")));
}

fn an_execution_is_kept_once(store: &dyn EvidenceStore, make_hook: &MakeHook<'_>) {
    let id = HookId::fresh();
    make_hook(&id);
    let event = ran(&id, said(VerdictKind::Continue));
    let made = Execution::of(&event, &event.hooks.to_vec()[0]).expect("it ran");
    let again = Execution { id: HookId::fresh().to_string(), ..made.clone() };
    let before = entries(store, DEFAULT_TENANT);
    keep_executions(store, vec![made.clone(), again.clone()]).expect("the second is passed over");
    keep_executions(store, vec![again]).expect("so is the third");
    keep(store, vec![event.clone()]).expect("and the fourth");
    assert_eq!(of_event(store, &event), [kept_form(&made)]);
    assert_eq!(entries(store, DEFAULT_TENANT), before + 1, "one entry for one row");
    let keyless = |id: &HookId| Execution { id: id.to_string(), dedup_key: None, ..made.clone() };
    let ids = [HookId::fresh(), HookId::fresh()];
    keep_executions(store, ids.iter().map(keyless).collect()).expect("they have no key");
    assert_eq!(of_event(store, &event).len(), 3);
}

fn entries(store: &dyn EvidenceStore, tenant: &str) -> usize {
    store.audit_entries(&TenantId::from(tenant), 0, usize::MAX).expect("the store can be read").len()
}

fn whatever_does_not_fit_does_no_harm(store: &dyn EvidenceStore, make_hook: &MakeHook<'_>) {
    let id = HookId::fresh();
    make_hook(&id);
    for text in ["\0", "\u{fdd0}1", "€", "'); DROP TABLE hook_executions; --", "\u{10ffff}\u{202e}\u{1b}[2J"] {
        let long = text.repeat(2000);
        let mut hostile =
            ran(&id, HookOutcome::Said { word: VerdictKind::Deny, reason: Some(long.clone()), took: Duration::MAX });
        hostile.tool = Some(long.clone());
        hostile.hooks.whole_mut().next().expect("it has a line").hook = long.as_str().into();
        hostile.who = Identity {
            trace_id: long.as_str().into(),
            session_id: long.as_str().into(),
            turn_id: text.into(),
            tool_call_id: Some(long.as_str().into()),
            ..hostile.who
        };
        keep(store, vec![hostile.clone()]).unwrap_or_else(|e| panic!("{text:?}: {e}"));
        let row = of_event(store, &hostile).pop().expect("it is kept");
        assert_eq!((row.turn_id, row.duration_ms), (None, i32::MAX.unsigned_abs().into()));
        let session = ExecutionQuery { session: Some(long.clone()), ..everything() };
        assert!(list(store, &session).iter().any(|it| it.id == row.id), "{text:?} finds its session");
        assert_eq!(row.hook_name.chars().count(), 255);
    }
    let good = ran(&id, said(VerdictKind::Continue));
    let mut homeless = ran(&id, said(VerdictKind::Continue));
    homeless.who.tenant_id = "nobody".into();
    let why = keep(store, vec![homeless]).map_err(|e| e.to_string());
    // Memory finds out when somebody looks.
    let said = "the store is unavailable: audit record could not be written: the tenant id \"nobody\" is not a UUID";
    assert!(why.is_ok() || why == Err(said.into()), "{why:?}");
    keep(store, vec![good.clone()]).expect("others are not harmed");
    assert_eq!(of_event(store, &good).len(), 1);
    for nobodys in [
        ExecutionQuery { hook: Some("x".into()), ..everything() },
        ExecutionQuery { tenant: TenantScope::One("x".into()), ..everything() },
        ExecutionQuery { agent: Some("x".into()), ..everything() },
        ExecutionQuery { limit: 0, ..everything() },
    ] {
        assert_eq!(list(store, &nobodys), []);
    }
    let after = Some(("yesterday".to_owned(), "x".to_owned()));
    let why = store.executions(&ExecutionQuery { after, ..everything() });
    assert!(matches!(why, Err(StoreError::NotFound(_))), "{why:?}");
}

/// Executions of every kind; several share a moment.
fn many(make_hook: &MakeHook<'_>) -> Vec<Execution> {
    let hooks: Vec<HookId> = (0..3).map(|_| HookId::fresh()).collect();
    hooks.iter().for_each(make_hook);
    let checkpoints = [CheckpointKind::PreToolUse, CheckpointKind::Stop, CheckpointKind::UserPromptSubmit];
    let start: Timestamp = "2026-03-01T00:00:00.25Z".parse().expect("RFC 3339");
    let one = |n: usize| {
        let outcome = if n.is_multiple_of(5) { failed() } else { said(VerdictKind::Continue) };
        let mut event = ran(&hooks[n % 3], outcome);
        event.at = start + Duration::from_millis(n as u64 / 4);
        event.hooks.whole_mut().next().expect("it has a line").checkpoint = checkpoints[n / 3 % 3];
        event.who.session_id = ["pages:1", "pages:2"][n / 2 % 2].into();
        event.who.agent_id = ["main", "helper"][n / 7 % 2].into();
        event.who.tenant_id = [DEFAULT_TENANT, OTHER_TENANT][n / 11 % 2].into();
        Execution::of(&event, &event.hooks.to_vec()[0]).expect("it ran")
    };
    (0..90).map(one).collect()
}

fn pages_of_every_selection_fit_together(store: &dyn EvidenceStore, make_hook: &MakeHook<'_>) {
    let mut kept = many(make_hook);
    keep_executions(store, kept.clone()).expect("they are kept");
    kept = kept.iter().map(kept_form).collect();
    kept.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
    let some = kept[40].clone();
    let day = ExecutionQuery {
        since: Some("2026-03-01T00:00:00Z".parse().expect("RFC 3339")),
        until: Some("2026-03-02T00:00:00Z".parse().expect("RFC 3339")),
        ..everything()
    };
    for filters in 0..256_u32 {
        let on = |bit: u32| filters >> bit & 1 == 1;
        let query = ExecutionQuery {
            tenant: if on(0) { TenantScope::from(&some.tenant_id) } else { TenantScope::All },
            hook: some.hook_id.clone().filter(|_| on(1)),
            name: on(7).then(|| some.hook_name.clone()),
            event: on(2).then_some(some.event),
            decision: on(3).then_some(some.decision),
            session: some.session_id.clone().filter(|_| on(4)),
            agent: some.agent_id.clone().filter(|_| on(5)),
            // Between two whole microseconds: what lies before is out, what lies behind is in.
            until: if on(6) { Some(some.created_at + Duration::from_nanos(300)) } else { day.until },
            ..day.clone()
        };
        let expected: Vec<&Execution> = kept.iter().filter(|it| matches(&query, it)).collect();
        assert!(!expected.is_empty(), "{query:?} finds at least the one it is made of");
        assert_eq!(pages(store, &query, 7).iter().collect::<Vec<_>>(), expected, "{query:?}");
    }
}

fn matches(query: &ExecutionQuery, it: &Execution) -> bool {
    query.tenant.has(&it.tenant_id)
        && query.hook.as_ref().is_none_or(|hook| Some(hook) == it.hook_id.as_ref())
        && query.name.as_ref().is_none_or(|name| *name == it.hook_name)
        && query.event.is_none_or(|event| event == it.event)
        && query.decision.is_none_or(|decision| decision == it.decision)
        && query.session.as_ref().is_none_or(|session| Some(session) == it.session_id.as_ref())
        && query.agent.as_ref().is_none_or(|agent| Some(agent) == it.agent_id.as_ref())
        && query.until.is_none_or(|until| it.created_at < until)
}

fn pages(store: &dyn EvidenceStore, query: &ExecutionQuery, limit: usize) -> Vec<Execution> {
    let mut found: Vec<Execution> = Vec::new();
    loop {
        let after = found.last().map(|last| (last.created_at.to_string(), last.id.clone()));
        let page = list(store, &ExecutionQuery { after, limit, ..query.clone() });
        let is_last = page.len() < limit;
        found.extend(page);
        if is_last {
            return found;
        }
    }
}

fn the_old_are_forgotten_in_batches(store: &dyn EvidenceStore) {
    let before = entries(store, DEFAULT_TENANT);
    let start: Timestamp = "2001-01-01T00:00:00Z".parse().expect("RFC 3339");
    let at = |n: u64| start + Duration::from_secs(n);
    let make = |n: u64| {
        let event = EventRecord { at: at(n), ..ran(&HookId::fresh(), failed()) };
        let made = Execution::of(&event, &event.hooks.to_vec()[0]).expect("it ran");
        // Of every other one only what its program wrote is encrypted.
        if n.is_multiple_of(2) { made } else { Execution { error_detail: None, output: Some(Box::default()), ..made } }
    };
    let made: Vec<Execution> = (0..10).map(make).collect();
    keep_executions(store, made.clone()).expect("they are kept");
    let left = || {
        let of = |it: &Execution| store.execution(&TenantScope::All, &it.id).expect("it can be read");
        let found: Vec<_> = made.iter().filter_map(of).collect();
        (found.len(), found.iter().filter(|it| it.has_detail()).count())
    };
    assert_eq!(left(), (10, 10));
    let forget = |rows, details, limit| store.forget(at(rows), at(details), limit).expect("it can be done");
    assert_eq!((forget(0, 0, 9), left()), (0, (10, 10)), "nothing is that old");
    assert_eq!((forget(4, 4, 3), left()), (4, (7, 6)), "three rows, and the detail of the fourth");
    assert_eq!((forget(4, 8, 100), left()), (5, (6, 2)));
    assert_eq!((forget(4, 8, 100), left()), (0, (6, 2)));
    assert_eq!((forget(100, 100, 4), left()), (6, (2, 0)));
    assert_eq!((forget(100, 100, 100), left()), (2, (0, 0)));
    assert_eq!(entries(store, DEFAULT_TENANT), before + 10, "the chain is another matter");
}
