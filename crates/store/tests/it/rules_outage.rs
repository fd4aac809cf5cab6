//! A server that dies while rules are changed: what was acknowledged is there, what was not says so, and nobody opens the
//! store anew.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use jiff::Timestamp;
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::store::{
    Actor, AuditStore, BudgetStore, OutboxJob, OutboxStore, RuleChange, RuleStore, StoreError, StoredRules, TenantScope,
};
use pintle_store::{Durability, Postgres};
use pintle_testkit::conformance::rules::enqueued;
use pintle_testkit::postgres::Server;
use tokio_postgres::AsyncMessage;

use crate::postgres_processes::until;
use crate::rules::{hook, id, postgres};

/// How often the server is killed.
const ROUNDS: usize = 3;

/// How much has to be acknowledged before each kill.
const CHANGES: usize = 60;

/// How many change rules at the same time.
const WORKERS: usize = 3;

/// What is booked at a time.
const TOKENS: u64 = 10;

/// What came of the load so far.
#[derive(Default)]
struct Came {
    created: Vec<HookId>,
    tripped: Vec<HookId>,
    jobs: Vec<String>,
    booked: u64,
    /// Nobody knows what became of these.
    in_doubt: u64,
    refused: Vec<StoreError>,
}

fn now() -> Timestamp {
    "2026-11-22T10:00:00Z".parse().unwrap()
}

fn by() -> Actor {
    Actor { name: "cli".into(), at: now(), reason: String::new() }
}

/// Changes rules for ever, each time another hook, until `over`.
fn load(store: &Postgres, over: &AtomicBool, next: &AtomicU64, came: &Mutex<Came>) {
    let tenant = TenantId::default_tenant();
    while !over.load(Ordering::Relaxed) {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let hook = hook(number);
        let created = store.change(vec![RuleChange::Create(Box::new(hook.clone()))], &by());
        let tripped = created.is_ok().then(|| store.trip(&hook.id, &tenant, &by()));
        let booked = store.reserve(&tenant, TOKENS, now());
        let job = OutboxJob {
            id: id(number),
            tenant_id: tenant.clone(),
            hook_id: hook.id.clone(),
            event_id: id(0),
            payload: b"x".to_vec(),
            attempts: 0,
            next_at: now(),
        };
        let enqueued = enqueued(store, vec![job]);
        let mut came = came.lock().unwrap();
        match booked {
            Ok(booked) => came.booked += if booked { TOKENS } else { 0 },
            Err(why) => {
                came.in_doubt += TOKENS;
                came.refused.push(why);
            }
        }
        came.refused.extend(created.as_ref().err().cloned());
        came.refused.extend(enqueued.as_ref().err().cloned());
        if created.is_ok() {
            came.created.push(hook.id.clone());
        }
        if enqueued.is_ok() {
            came.jobs.push(id(number));
        }
        match tripped {
            Some(Ok(_)) => came.tripped.push(hook.id),
            Some(Err(why)) => came.refused.push(why),
            None => {}
        }
    }
}

/// Whatever is asked fails, and says which server.
fn everything_is_refused(store: &Postgres) {
    let (tenant, id) = (TenantId::default_tenant(), HookId::from(id(1).as_str()));
    let said = [
        store.rules().err(),
        store.epoch().err(),
        store.hook(&id).err(),
        store.change(vec![RuleChange::delete(id.clone())], &by()).err(),
        store.changes(&TenantScope::All, &id, 1).err(),
        store.trip(&id, &tenant, &by()).err(),
        store.reset(&id, None, &by()).err(),
        store.tenants().err(),
        store.budget(&tenant, now()).err(),
        store.settle(&tenant, 0, now()).err(),
        store.take_due(now(), now(), 1).err(),
        store.finish(id.as_str()).err(),
    ];
    for (which, said) in said.into_iter().enumerate() {
        let Some(StoreError::Unavailable(why)) = said else { panic!("call {which}: {said:?}") };
        assert!(why.contains(store.name()), "{why}");
    }
}

#[test]
fn no_acknowledged_change_is_lost_when_the_server_is_killed() {
    let mut server = Server::start();
    let store = postgres(&server.fresh_database(), Durability::BeforeEffect);
    let before = store.epoch().unwrap();
    let (over, next, came) = (AtomicBool::new(false), AtomicU64::new(1), Mutex::new(Came::default()));
    let acknowledged = || came.lock().unwrap().tripped.len();
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| load(&store, &over, &next, &came));
        }
        for _ in 0..ROUNDS {
            let before = acknowledged();
            until("the load goes on", || acknowledged() >= before + CHANGES);
            server.kill();
            let refused = came.lock().unwrap().refused.len();
            until("changes are refused", || came.lock().unwrap().refused.len() > refused);
            everything_is_refused(&store);
            server.restart();
        }
        let before = acknowledged();
        until("the load goes on after the last", || acknowledged() >= before + CHANGES);
        over.store(true, Ordering::Relaxed);
    });
    nothing_is_lost(&store, before, &came.into_inner().unwrap());
}

fn nothing_is_lost(store: &Postgres, before: u64, came: &Came) {
    assert!(came.refused.iter().all(|why| matches!(why, StoreError::Unavailable(_))), "{:?}", came.refused);
    let StoredRules { epoch, hooks, .. } = store.rules().unwrap();
    let all: HashSet<&HookId> = hooks.iter().map(|hook| &hook.id).collect();
    let open: HashSet<&HookId> = hooks.iter().filter(|hook| hook.tripped_at.is_some()).map(|hook| &hook.id).collect();
    assert!(came.created.iter().all(|id| all.contains(id)), "a hook is lost");
    assert!(came.tripped.iter().all(|id| open.contains(id)), "a trip is lost");
    // Row, log, chain and epoch are one transaction, acknowledged or not.
    let changes = (hooks.len() + open.len()) as u64;
    assert_eq!(epoch, before + changes);
    let logged: usize = hooks.iter().map(|hook| store.changes(&TenantScope::All, &hook.id, 9).unwrap().len()).sum();
    let chain = store.audit_entries(&TenantId::default_tenant(), 0, usize::MAX).unwrap();
    assert_eq!((logged as u64, chain.len() as u64), (changes, changes));
    assert!(chain.windows(2).all(|two| two[0].hash == two[1].prev));
    let budget = store.budget(&TenantId::default_tenant(), now()).unwrap();
    let used = u64::try_from(budget.used).unwrap();
    assert!((came.booked..=came.booked + came.in_doubt).contains(&used), "{used} of {}", came.booked);
    let jobs: HashSet<String> =
        store.take_due(now(), now(), usize::MAX).unwrap().into_iter().map(|job| job.id).collect();
    assert!(came.jobs.iter().all(|id| jobs.contains(id)), "a job is lost");
}

/// What a client hears on the channel of rules while `work` is done, as soon as it is over.
fn heard(url: &str, work: impl FnOnce()) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, mut connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        let mut messages = Box::pin(stream::poll_fn(move |context| connection.poll_message(context)));
        let mut heard = Vec::new();
        // Messages come before the answer to what is asked next.
        let mut ask = async |sql: &'static str, heard: &mut Vec<String>| {
            let mut asked = pin!(client.batch_execute(sql));
            loop {
                tokio::select! {
                    biased;
                    Some(message) = messages.next() => {
                        if let AsyncMessage::Notification(it) = message.unwrap() {
                            heard.push(format!("{} {}", it.channel(), it.payload()));
                        }
                    }
                    answer = &mut asked => return answer.unwrap(),
                }
            }
        };
        ask("LISTEN pintle_hooks", &mut heard).await;
        work();
        ask("SELECT 1", &mut heard).await;
        heard
    })
}

#[test]
fn whoever_listens_hears_of_every_change_that_counts() {
    let server = Server::start();
    let url = server.fresh_database();
    let store = postgres(&url, Durability::Commit);
    let before = store.epoch().unwrap();
    let said = heard(&url, || {
        let create = || vec![RuleChange::Create(Box::new(hook(1)))];
        store.change(create(), &by()).unwrap();
        store.change(create(), &by()).unwrap_err();
        store.trip(&HookId::from(id(1).as_str()), &TenantId::default_tenant(), &by()).unwrap();
    });
    assert_eq!(said, [1, 2].map(|more| format!("pintle_hooks {}", before + more)));
}

/// How long somebody waits for what comes at once, before the test has failed.
const SOON: Duration = Duration::from_secs(60);

#[test]
fn a_change_of_another_process_is_heard_and_so_is_the_end_of_an_outage() {
    let mut server = Server::start();
    let url = server.fresh_database();
    let (own, other) = (postgres(&url, Durability::Commit), postgres(&url, Durability::Commit));
    let (say, heard) = mpsc::channel();
    let listening = own.listen(Box::new(move || say.send(()).unwrap_or_default()));
    let hears = |what: &str| heard.recv_timeout(SOON).expect(what);
    hears("what was before is read when the listening begins");
    assert!(listening.is_told());
    for number in 1..=3 {
        let epoch = own.epoch().unwrap();
        other.change(vec![RuleChange::Create(Box::new(hook(number)))], &by()).unwrap();
        hears("a change of somebody else");
        assert_eq!(own.epoch().unwrap(), epoch + 1, "it is there by the time that it is heard");
    }
    server.kill();
    hears("the line is cut");
    assert!(!listening.is_told());
    server.restart();
    hears("the line is there again");
    assert!(listening.is_told());
    other.change(vec![RuleChange::delete(HookId::from(id(1).as_str()))], &by()).unwrap();
    hears("a change after the outage");
    assert_eq!(own.rules().unwrap().hooks.len(), 2);
    drop(listening);
    // Its end is the end of the channel's other side.
    assert_eq!(heard.recv_timeout(SOON), Err(mpsc::RecvTimeoutError::Disconnected));
}

#[test]
fn a_store_goes_although_somebody_listens() {
    let server = Server::start();
    let store = postgres(&server.fresh_database(), Durability::Commit);
    let (say, heard) = mpsc::channel();
    let listening = store.listen(Box::new(move || say.send(()).unwrap_or_default()));
    heard.recv_timeout(SOON).unwrap();
    drop(store);
    assert_eq!(heard.recv_timeout(SOON), Err(mpsc::RecvTimeoutError::Disconnected));
    drop(listening);
}
