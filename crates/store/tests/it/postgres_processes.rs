//! Several processes at one server: who holds a session, and who is let go on after an interruption.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::Child;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use pintle_domain::id::{DEFAULT_TENANT, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::store::{
    ApprovalStore, JournalAppend, SessionHold, SessionKey, SessionStore, StoreError, TenantScope,
};
use pintle_store::{Durability, Postgres};
use pintle_testkit::conformance::approvals::{call, moment, question, said};
use pintle_testkit::conformance::sessions::{append_of, appended, hand_over, key, queued};
use pintle_testkit::postgres::Server;

use crate::child::{self, KEPT};
use crate::postgres::open;

/// How long something may take that another process or the server does by itself: it takes milliseconds.
const SOON: Duration = Duration::from_secs(30);

fn session() -> SessionKey {
    key(DEFAULT_TENANT, "shared")
}

/// The URL of the child, if this process is one.
fn url() -> Option<String> {
    child::file().map(|url| url.into_os_string().into_string().unwrap())
}

fn start(name: &str, url: &str) -> Child {
    child::start_with_input(&format!("postgres_processes::{name}"), Path::new(url))
}

/// Says `what` to the parent, then waits until the parent has gone or kills it.
fn say_and_stay(what: &str) {
    println!("{KEPT}{what}");
    std::io::stdout().flush().unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// What the child says first.
fn heard(child: &mut Child) -> String {
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines().map(Result::unwrap);
    let mut said = lines.filter_map(|line| line.split_once(KEPT).map(|(_, what)| what.to_owned()));
    said.next().expect("the child says something")
}

/// Waits until `it` is so: the server notices the end of a process by itself.
pub(crate) fn until(what: &str, mut it: impl FnMut() -> bool) {
    let end = Instant::now() + SOON;
    while !it() {
        assert!(Instant::now() < end, "{what}: not after {SOON:?}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn held_by(store: &Postgres) -> Option<String> {
    holder(store, &session())
}

/// Who holds a session that has begun. Asking takes nothing from anybody.
fn holder(store: &Postgres, key: &SessionKey) -> Option<String> {
    let rows = store.sessions(&key.tenant).unwrap();
    rows.into_iter().find(|row| row.session_id == key.session.as_str()).unwrap().held_by
}

#[test]
fn a_session_is_held_until_its_process_dies() {
    if let Some(url) = url() {
        let store = open(&url);
        let _hold = store.hold(&session()).unwrap();
        return say_and_stay("held");
    }
    let server = Server::start();
    let url = server.fresh_database();
    let store = open(&url);
    appended(&store, append_of(&session(), vec![queued("x")]));
    let mut child = start("a_session_is_held_until_its_process_dies", &url);
    assert_eq!(heard(&mut child), "held");
    let name = format!("process {}", child.id());
    let conflict = StoreError::Conflict(format!("session \"shared\" is in use by {name}"));
    assert_eq!(store.hold(&session()).err(), Some(conflict.clone()));
    assert_eq!(store.delete(&session()), Err(conflict));
    assert_eq!(held_by(&store), Some(name));
    drop(store.hold(&key(DEFAULT_TENANT, "another")).expect("only the one is held"));

    child.kill().unwrap();
    child.wait().unwrap();
    until("the lease ends with its process", || held_by(&store).is_none());
    let hold = store.hold(&session()).expect("it ran out");
    assert_eq!(held_by(&store), Some(format!("process {}", std::process::id())));
    // Another store of this process is somebody else too.
    let other = open(&url);
    assert!(matches!(other.hold(&session()), Err(StoreError::Conflict(_))));
    assert_eq!(held_by(&other), held_by(&store));
    drop(hold);
    drop(other.hold(&session()).expect("it was given back"));
}

#[test]
fn processes_share_a_database() {
    let who = Identity::top("main", "shared", TurnId::from("t"));
    if let Some(url) = url() {
        let store = open(&url);
        for i in 0..25 {
            let pair = ["a", "b"].map(|half| queued(&format!("{} {i} {half}", std::process::id())));
            appended(&store, append_of(&session(), pair.into()));
        }
        let used = store.use_up(&DEFAULT_TENANT.into(), "asked-1", moment(1));
        assert!(matches!(used, Ok(()) | Err(StoreError::Conflict(_))), "{used:?}");
        return println!("{KEPT}{}", if used.is_ok() { "used" } else { "late" });
    }
    let server = Server::start();
    let url = server.fresh_database();
    // They also make the schema together.
    let names = ["processes_make_the_schema_together"; 3];
    let mut makers: Vec<_> = names.iter().map(|name| start(name, &url)).collect();
    makers.iter_mut().for_each(|maker| assert_eq!(heard(maker), "made"));
    makers.into_iter().for_each(|mut maker| assert!(maker.wait().unwrap().success()));
    let store = open(&url);
    store.ask(question("asked-1", &who, &call("{}")), moment(0)).unwrap();
    store.answer(&TenantScope::All, "asked-1", said(true), moment(1)).unwrap();
    let mut children: Vec<_> = (0..4).map(|_| start("processes_share_a_database", &url)).collect();
    let mut said: Vec<_> = children.iter_mut().map(heard).collect();
    children.into_iter().for_each(|mut child| assert!(child.wait().unwrap().success()));
    said.sort();
    assert_eq!(said, ["late", "late", "late", "used"]);
    let entries = store.journal(&session()).unwrap();
    assert_eq!(entries.len(), 4 * 25 * 2);
    let texts: Vec<String> = entries.iter().map(|entry| format!("{entry:?}")).collect();
    assert!(texts.chunks(2).all(|pair| pair[0].replace(" a\"", " b\"") == pair[1]), "no append is torn");
}

#[test]
fn processes_make_the_schema_together() {
    let Some(url) = url() else { return };
    drop(open(&url));
    println!("{KEPT}made");
}

/// An append that is made under what `hold` says.
fn under(hold: &dyn SessionHold, key: &SessionKey, text: &str) -> JournalAppend {
    JournalAppend { fence: hold.fence(), ..append_of(key, vec![queued(text)]) }
}

#[test]
fn who_lost_a_session_meanwhile_cannot_append_to_it() {
    let server = Server::start();
    let url = server.fresh_database();
    server.execute(&url, "CREATE ROLE ada LOGIN SUPERUSER");
    let (ours, theirs) = (open(&url.replace("pintle@", "ada@")), open(&url));
    let (key, kept, other) = (session(), key(DEFAULT_TENANT, "kept"), key(DEFAULT_TENANT, "other"));
    let (hold, hold_kept) = (ours.hold(&key).unwrap(), ours.hold(&kept).unwrap());
    appended(&ours, under(&*hold, &key, "before"));
    appended(&ours, under(&*hold_kept, &kept, "before"));
    let (say, lost) = channel();
    hold.on_lost(Box::new(move || say.send(()).unwrap()));

    // Only cut off: it comes back by itself and has what it had.
    let cut = "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE usename = 'ada'";
    server.execute(&url, cut);
    until("writing works again", || hand_over(&ours, under(&*hold, &key, "more")).recv().unwrap().is_ok());
    assert!(hold.stands() && hold_kept.stands());
    assert_eq!(holder(&theirs, &key), Some(format!("process {}", std::process::id())));

    // The lease of one runs out as if nobody had renewed it, and somebody else comes, and goes.
    server.execute(&url, "UPDATE leases SET expires_ms = 0 WHERE session_id = 'shared'");
    let next = theirs.hold(&key).expect("its lease ran out");
    assert!(next.fence() > hold.fence(), "a fence only grows");
    let me = std::process::id();
    let why =
        format!("session \"shared\" was taken by process {me} meanwhile: what this process had of it has run out");
    assert_eq!(hand_over(&ours, under(&*hold, &key, "late")).recv().unwrap(), Err(StoreError::Conflict(why.clone())));
    appended(&theirs, under(&*next, &key, "theirs"));
    drop(next);
    assert_eq!(hand_over(&ours, under(&*hold, &key, "late")).recv().unwrap(), Err(StoreError::Conflict(why)));
    lost.recv_timeout(SOON).expect("the next renewal finds out");
    assert!(!hold.stands() && hold_kept.stands(), "only the one");
    let texts = ours.journal(&key).unwrap();
    assert_eq!((texts.first(), texts.last()), (Some(&queued("before")), Some(&queued("theirs"))));
    // The others are as they were.
    appended(&ours, under(&*hold_kept, &kept, "x"));
    appended(&ours, append_of(&other, vec![queued("x")]));
    drop(hold);
    let again = ours.hold(&key).expect("it is free");
    appended(&ours, under(&*again, &key, "again"));
}

#[test]
fn a_lease_that_nobody_renews_is_lost_before_somebody_else_may_have_it() {
    let server = Server::start();
    let url = server.fresh_database();
    let ours = open(&url);
    let hold = ours.hold(&session()).unwrap();
    let (say, lost) = channel();
    hold.on_lost(Box::new(move || say.send(Instant::now()).unwrap()));
    thread::sleep(Duration::from_secs(4));
    assert!(hold.stands(), "it was renewed");
    // Connections stay, and answers stay away.
    let silent = Instant::now();
    server.freeze();
    let gave_up = lost.recv_timeout(SOON).expect("the clock says so, whoever hangs");
    assert!(!hold.stands());
    let after = gave_up - silent;
    println!("gave up {after:?} after the last answer");
    assert!(Duration::from_secs(3) < after && after < Duration::from_millis(7500), "{after:?}");
    server.go_on();
}

#[test]
fn all_leases_are_renewed_with_one_statement() {
    let server = Server::start();
    let url = server.fresh_database();
    let store = open(&url);
    let holds: Vec<_> =
        (0..300).map(|n| store.hold(&key(DEFAULT_TENANT, &format!("many-{n}"))).expect("nobody has it")).collect();
    let written = "SELECT sum(n_tup_upd) FROM pg_stat_user_tables WHERE relname = 'leases'";
    let live = "SELECT count(*) FROM leases WHERE expires_ms > extract(epoch FROM clock_timestamp()) * 1000 + 8000";
    until("all are renewed", || server.execute(&url, live) == "300");
    thread::sleep(Duration::from_secs(4));
    assert!(holds.iter().all(|hold| hold.stands()), "{}", server.execute(&url, written));
    let fences: BTreeSet<_> = holds.iter().map(|hold| hold.fence()).collect();
    assert_eq!(fences.len(), 300, "none is used twice");
    drop(holds);
    assert_eq!(server.execute(&url, "SELECT count(*) FROM leases WHERE owner IS NOT NULL"), "0");
}

#[test]
fn the_next_release_and_this_one_share_a_database_and_the_one_after_does_not() {
    let server = Server::start();
    let url = server.fresh_database();
    let before = open(&url);
    // What a step of the next release does: it adds, and says which level that is.
    server.execute(
        &url,
        "ALTER TABLE sessions ADD COLUMN later TEXT; CREATE TABLE later (n INT); \
         UPDATE pintle_schema SET number = 90, level = level + 1",
    );
    let after = open(&url);
    for store in [&before, &after] {
        let hold = store.hold(&session()).unwrap();
        appended(store, under(&*hold, &session(), "x"));
    }
    assert_eq!(after.journal(&session()).unwrap().len(), 2);
    server.execute(&url, "UPDATE pintle_schema SET level = level + 1");
    let why = Postgres::open(&url, Durability::Commit).expect_err("two releases apart").to_string();
    assert!(why.contains("was written by a newer Pintle: it has schema 90"), "{why}");
}

#[test]
fn nothing_is_changed_under_a_node_that_is_two_releases_older() {
    let server = Server::start();
    let url = server.fresh_database();
    drop(open(&url));
    // A step is missing, and a node of long ago works with what is there.
    let now = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    server.execute(
        &url,
        &format!(
            "UPDATE pintle_schema SET number = 69; \
             INSERT INTO nodes (id, name, level, since_ms, seen_ms, state, cut) \
             VALUES ('0193a5b0-7000-7000-8000-0000000000aa', 'old', 0, {now}, {now}, '{{}}', '[]')"
        ),
    );
    let why = Postgres::open(&url, Durability::Commit).expect_err("two releases apart").to_string();
    assert!(why.contains("the node `old` works with") && why.contains("stop it first"), "{why}");
    assert_eq!(server.execute(&url, "SELECT number FROM pintle_schema"), "69");
}
