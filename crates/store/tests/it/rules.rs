//! Rules, budgets and the outbox: what the model says, and several at once.

use std::collections::BTreeSet;
use std::env;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use jiff::{SignedDuration, Timestamp};
use pintle_domain::breaker::{BreakerOutcome, BreakerPolicy, BreakerRun};
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::json::Object;
use pintle_domain::rule::{Fallback, HandlerType, HookScope, Rule, Source};
use pintle_domain::store::{Actor, BudgetChange, OutboxJob, OutboxStore, RuleChange, StoreError, Tenant, TenantScope};
use pintle_store::keyring::{KeySource, Keyring};
use pintle_store::{Durability, Memory, Postgres, Sqlite, StoreKeys};
use pintle_testkit::conformance::rules::{RuleBackend, enqueued, rules};
use pintle_testkit::postgres::Server;

/// How many sequences are played with each store, unless [`SEQUENCES_VARIABLE`] says otherwise.
const SEQUENCES: u64 = 400;

/// Holds how many sequences are to be played: 10000 take a minute or two with each database.
const SEQUENCES_VARIABLE: &str = "PINTLE_RULES_SEQUENCES";

/// How many of them share a database at most: each leaves tenants, and everybody reads all of them.
const SHARE: u64 = 50;

/// How many databases are worked on at once.
const AT_ONCE: u64 = 2;

/// Plays all sequences with stores that `open` makes, each for a share of them.
fn says_what_the_model_says(name: &str, open: impl Fn() -> Box<dyn RuleBackend> + Sync) {
    let asked = env::var(SEQUENCES_VARIABLE).ok().map(|number| number.parse().expect(SEQUENCES_VARIABLE));
    let sequences: u64 = asked.unwrap_or(SEQUENCES);
    let part = |numbers: Range<u64>| {
        let starts = numbers.clone().step_by(SHARE as usize);
        starts.map(|start| rules(&*open(), start..numbers.end.min(start + SHARE))).sum::<usize>()
    };
    let half = sequences.div_ceil(AT_ONCE);
    let part = &part;
    let steps: usize = thread::scope(|scope| {
        let parts: Vec<_> = (0..AT_ONCE).map(|it| scope.spawn(move || part(it * half..(it + 1) * half))).collect();
        parts.into_iter().map(|it| it.join().unwrap_or_else(|why| std::panic::resume_unwind(why))).sum()
    });
    println!("{name}: {} sequences of {steps} steps in all", half * AT_ONCE);
}

/// Keys for a test.
pub(crate) fn sealing() -> StoreKeys {
    let source = KeySource {
        primary: Some(("PINTLE_ENCRYPTION_KEY", "0123456789abcdef".repeat(4).into())),
        old: None,
        file: None,
    };
    StoreKeys { keyring: Some(Arc::new(Keyring::open(&source).unwrap())), ..StoreKeys::default() }
}

#[test]
fn memory_says_what_the_model_says() {
    says_what_the_model_says("memory", || Box::new(Memory::new()));
}

/// A file that goes with its folder.
pub(crate) fn sqlite(folder: &Path) -> Sqlite {
    Sqlite::open_with(&folder.join("pintle.db"), Durability::Commit, sealing()).unwrap()
}

/// A database that a server has.
pub(crate) fn postgres(url: &str, durability: Durability) -> Postgres {
    Postgres::open_with(url, durability, sealing()).unwrap()
}

#[test]
fn a_file_says_what_the_model_says() {
    let folder = tempfile::tempdir().unwrap();
    says_what_the_model_says("SQLite", || {
        let own = tempfile::tempdir_in(folder.path()).unwrap();
        Box::new(sqlite(&own.keep()))
    });
}

#[test]
fn postgres_says_what_the_model_says() {
    let server = Server::start();
    says_what_the_model_says("PostgreSQL", || Box::new(postgres(&server.fresh_database(), Durability::Commit)));
}

/// How many threads work at the same time in the tests below.
const WORKERS: usize = 4;

fn now() -> Timestamp {
    "2026-11-22T10:00:00Z".parse().unwrap()
}

/// Each worker has a store of its own, as a process has; together they book no more than there is.
fn nobody_overdraws(stores: &[Box<dyn RuleBackend>]) {
    let tenant = TenantId::default_tenant();
    stores[0]
        .set_budget(&tenant, &BudgetChange::to(1000, Actor { name: "cli".into(), at: now(), reason: String::new() }))
        .unwrap();
    let booked: usize = thread::scope(|scope| {
        let tenant = &tenant;
        let one = |store: &dyn RuleBackend| (0..60).filter(|_| store.reserve(tenant, 7, now()).unwrap()).count();
        let workers: Vec<_> = stores.iter().map(|store| scope.spawn(move || one(&**store))).collect();
        workers.into_iter().map(|it| it.join().unwrap()).sum()
    });
    let budget = stores[0].budget(&tenant, now()).unwrap();
    assert_eq!((booked, budget.used, budget.remaining), (142, 994, 6), "142 times 7 are 994");
    assert_eq!(stores[0].reserve(&tenant, 6, now()), Ok(true));
    let (left, warns) = stores[1].settle(&tenant, 5, now()).unwrap();
    assert_eq!((left.remaining, warns), (-5, true), "what was booked was too small");
    assert_eq!(stores[0].settle(&tenant, 0, now()).map(|(_, warns)| warns), Ok(false), "once a month");
}

/// Whoever takes a job is the only one until its time is over.
fn nobody_takes_the_job_of_another(stores: &[Box<dyn RuleBackend>]) {
    let job = |number: usize| OutboxJob {
        id: format!("0000000a-0000-7000-8000-{number:012x}"),
        tenant_id: TenantId::default_tenant(),
        hook_id: HookId::from(id(1).as_str()),
        event_id: id(2),
        payload: format!("job {number}").into_bytes(),
        attempts: 0,
        next_at: now(),
    };
    enqueued(&*stores[0], (0..200).map(job).collect()).unwrap();
    let until = now() + SignedDuration::from_secs(60);
    let mut taken: Vec<OutboxJob> = thread::scope(|scope| {
        let all = |store: &dyn RuleBackend| {
            let mut taken = Vec::new();
            loop {
                match store.take_due(now(), until, 3).unwrap() {
                    some if some.is_empty() => return taken,
                    some => taken.extend(some),
                }
            }
        };
        let workers: Vec<_> = stores.iter().map(|store| scope.spawn(move || all(&**store))).collect();
        workers.into_iter().flat_map(|it| it.join().unwrap()).collect()
    });
    taken.sort_by(|a, b| a.id.cmp(&b.id));
    assert_eq!(taken, (0..200).map(|number| OutboxJob { next_at: until, ..job(number) }).collect::<Vec<_>>());
    assert_eq!(stores[1].take_due(until, until, 1000).unwrap().len(), 200, "nobody finished them");
}

/// No change is lost between two who change the same hook, and epochs are as many as changes.
fn versions_are_handed_out_once(stores: &[Box<dyn RuleBackend>]) {
    let by = |name: &str| Actor { name: name.to_owned(), at: now(), reason: String::new() };
    let before = stores[0].change(vec![RuleChange::Create(Box::new(hook(1)))], &by("cli")).unwrap().epoch;
    let epochs: BTreeSet<u64> = thread::scope(|scope| {
        let one = |store: &dyn RuleBackend, worker: usize| -> Vec<u64> {
            let change = |step: usize| {
                let name = format!("{worker}.{step}");
                let hook = Box::new(Rule { name: name.clone(), ..hook(1) });
                let update = RuleChange::Update { hook, if_version: None, action: "updated" };
                // Some run against others for their locks, too.
                store.keep_run(&HookId::from(id(1).as_str()), &TenantId::default_tenant(), &run(), now()).unwrap();
                store.change(vec![update], &by(&name)).unwrap().epoch
            };
            (0..25).map(change).collect()
        };
        let workers: Vec<_> =
            stores.iter().enumerate().map(|(it, store)| scope.spawn(move || one(&**store, it))).collect();
        workers.into_iter().flat_map(|it| it.join().unwrap()).collect()
    });
    let changes = (25 * WORKERS) as u64;
    assert_eq!(epochs, (before + 1..=before + changes).collect());
    let rules = stores[1].rules().unwrap();
    assert_eq!((rules.epoch, rules.hooks.len(), rules.runs.len()), (before + changes, 1, 1));
    assert_eq!(u64::from(rules.hooks[0].version), 1 + changes);
    let log = stores[2].changes(&TenantScope::All, &rules.hooks[0].id, 1000).unwrap();
    let other = TenantScope::One(TenantId::from("0193a5b0-7000-7000-8000-00000000000a"));
    assert_eq!(stores[2].changes(&other, &rules.hooks[0].id, 1000).unwrap().len(), 0);
    let own = TenantScope::One(TenantId::default_tenant());
    assert_eq!(stores[2].changes(&own, &rules.hooks[0].id, 1000).unwrap().len(), log.len());
    let versions: BTreeSet<u32> = log.iter().map(|line| line.version).collect();
    assert_eq!((log.len(), versions.len()), (1 + 25 * WORKERS, 1 + 25 * WORKERS));
    // The chain has all of them, whole.
    let chain = stores[0].audit_entries(&TenantId::default_tenant(), 0, 1000).unwrap();
    assert!(chain.len() > 25 * WORKERS && chain.windows(2).all(|two| two[0].hash == two[1].prev));
}

/// Of those who add the same hook at the same time, one does; what has another name, or none, is another hook.
fn nobody_adds_a_hook_twice(stores: &[Box<dyn RuleBackend>]) {
    let by = Actor { name: "cli".into(), at: now(), reason: String::new() };
    let add = |number: u64, name: &str| {
        let rule = Rule { id: HookId::fresh(), name: name.to_owned(), ..hook(number) };
        vec![RuleChange::Add(Box::new(rule))]
    };
    let before = stores[0].rules().unwrap().hooks.len();
    let (added, by) = (&add, &by);
    for round in 0..10 {
        let name = format!("added {round}");
        let name = &name;
        let good = thread::scope(|scope| {
            let one = move |store: &dyn RuleBackend| match store.change(added(2, name.as_str()), by) {
                Ok(_) => true,
                Err(StoreError::Conflict(_)) => false,
                Err(error) => panic!("{error}"),
            };
            let workers: Vec<_> = stores.iter().map(|store| scope.spawn(move || one(&**store))).collect();
            workers.into_iter().map(|it| it.join().unwrap()).filter(|good| *good).count()
        });
        assert_eq!(good, 1, "round {round}");
    }
    assert_eq!(stores[1].rules().unwrap().hooks.len(), before + 10);
    for name in ["", "", "one more"] {
        stores[0].change(added(2, name), by).unwrap();
    }
}

fn several_at_once(open: impl Fn() -> Box<dyn RuleBackend>) {
    let stores: Vec<Box<dyn RuleBackend>> = (0..WORKERS).map(|_| open()).collect();
    nobody_overdraws(&stores);
    nobody_takes_the_job_of_another(&stores);
    versions_are_handed_out_once(&stores);
    nobody_adds_a_hook_twice(&stores);
}

#[test]
fn several_stores_share_a_file() {
    let folder = tempfile::tempdir().unwrap();
    several_at_once(|| Box::new(sqlite(folder.path())));
}

#[test]
fn several_stores_share_a_database() {
    let server = Server::start();
    let url = server.fresh_database();
    several_at_once(|| Box::new(postgres(&url, Durability::Commit)));
}

#[test]
fn what_a_hook_is_sent_is_encrypted_in_a_row() {
    let folder = tempfile::tempdir().unwrap();
    let job = OutboxJob {
        id: id(7),
        tenant_id: TenantId::default_tenant(),
        hook_id: HookId::from(id(1).as_str()),
        event_id: id(2),
        payload: b"the prompt of a person".to_vec(),
        attempts: 0,
        next_at: now(),
    };
    let store = sqlite(folder.path());
    enqueued(&store, vec![job.clone()]).unwrap();
    let bare = rusqlite::Connection::open(folder.path().join("pintle.db")).unwrap();
    let kept: Vec<u8> = bare.query_row("SELECT payload FROM hook_outbox", [], |row| row.get(0)).unwrap();
    assert!(kept.starts_with(b"aes-gcm:"), "{:?}", String::from_utf8_lossy(&kept));
    // Moved to another row, it does not open, and is nobody's job.
    bare.execute("UPDATE hook_outbox SET id = ?1", [id(8)]).unwrap();
    assert_eq!(store.take_due(now(), now(), 9), Ok(Vec::new()));
    bare.execute("UPDATE hook_outbox SET id = ?1", [id(7)]).unwrap();
    assert_eq!(store.take_due(now(), now(), 9), Ok(vec![job.clone()]));
    drop(store);
    let keyless = Sqlite::open(&folder.path().join("pintle.db"), Durability::Commit).unwrap();
    let refused = enqueued(&keyless, vec![job]).unwrap_err().to_string();
    assert!(refused.contains("encryption key not configured"), "{refused}");
}

#[test]
fn what_no_row_can_say_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let stores: [Box<dyn RuleBackend>; 2] = [Box::new(Memory::new()), Box::new(sqlite(folder.path()))];
    let by = Actor { name: "cli".into(), at: now(), reason: String::new() };
    for store in stores {
        let refused = |hook: Rule| {
            let why = store.change(vec![RuleChange::Create(Box::new(hook))], &by).unwrap_err().to_string();
            why.strip_prefix("the store is unavailable: ").unwrap_or(&why).to_owned()
        };
        let id = id(1);
        let bad = Rule { id: HookId::from("x\n"), ..hook(1) };
        assert_eq!(refused(bad), "hook `x\n` cannot be kept: its id `x\\n` is not a UUID");
        let bad = Rule { agent_ids: vec!["main".into()], ..hook(1) };
        assert_eq!(refused(bad), format!("hook `{id}` cannot be kept: its agent_ids `main` is not a UUID"));
        let bad = refused(Rule { created_at: "yesterday".into(), ..hook(1) });
        assert!(bad.starts_with(&format!("hook `{id}` cannot be kept: its created_at: ")), "{bad}");
        let bad = Rule { tenant_id: TenantId::from("ada"), ..hook(1) };
        assert!(refused(bad).contains("its tenant_id `ada` is not a UUID"));
        assert_eq!(store.hook(&HookId::from("x")), Ok(None));
        assert_eq!(store.rules().unwrap().hooks, []);
        let before = store.epoch().unwrap();
        let tenant = Tenant { id: "t".into(), slug: "t".into(), name: "T".into(), created_at: now().to_string() };
        assert!(store.add_tenant(&tenant).unwrap_err().to_string().contains("tenant `t` cannot be kept: its id `t`"));
        assert_eq!(store.epoch(), Ok(before));
    }
}

/// An identifier of a test.
pub(crate) fn id(number: u64) -> String {
    format!("0000000b-0000-7000-8000-{number:012x}")
}

fn run() -> BreakerRun {
    let mut run = BreakerRun::default();
    run.take(BreakerPolicy::All, BreakerOutcome::Block, now());
    run
}

/// A hook of the only tenant.
pub(crate) fn hook(number: u64) -> Rule {
    Rule {
        id: HookId::from(id(number).as_str()),
        tenant_id: TenantId::default_tenant(),
        agent_ids: Vec::new(),
        event: CheckpointKind::PreToolUse,
        handler_type: HandlerType::Script,
        scope: HookScope::Tenant,
        name: "guard".into(),
        config: Object::new(),
        matcher: String::new(),
        if_expr: String::new(),
        timeout_ms: 5000,
        on_timeout: Fallback::Block,
        priority: 0,
        enabled: true,
        version: 1,
        source: Source::User,
        may_rewrite: false,
        breaker: BreakerPolicy::All,
        on_trip: Fallback::Block,
        tripped_at: None,
        disabled_reason: String::new(),
        metadata: Object::new(),
        created_by: None,
        created_at: "2026-01-31T12:00:00Z".into(),
        updated_at: "2026-01-31T12:00:00Z".into(),
    }
}
