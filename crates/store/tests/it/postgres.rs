//! PostgreSQL: the suites, and what is said of a database that cannot be used.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread;

use pintle_domain::id::{DEFAULT_TENANT, TenantId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::store::{ApprovalStore, RecordQuery, RecordStore, SessionStore, StoreError, TenantScope};
use pintle_store::sqlite::{MAX_GROUP_BATCHES, QUEUE_BATCHES};
use pintle_store::{Durability, Postgres};
use pintle_testkit::conformance::approvals::{approvals, call, moment, question, said};
use pintle_testkit::conformance::exchange::exchange;
use pintle_testkit::conformance::identity::identity;
use pintle_testkit::conformance::sessions::{append_of, appended, hand_over, key, queued, sessions};
use pintle_testkit::conformance::store::{event, keep, records};
use pintle_testkit::conformance::webhooks::webhooks;
use pintle_testkit::postgres::Server;

use crate::conformance::timings;
use crate::postgres_processes::until;
use crate::random::says_what_memory_says;

/// How many random sequences are played: the same SQL passes two thousand with SQLite.
const SEQUENCES: u32 = 60;

pub(crate) fn open(url: &str) -> Postgres {
    Postgres::open(url, Durability::Commit).unwrap_or_else(|e| panic!("{url}: {e}"))
}

fn refused(url: &str) -> String {
    match Postgres::open(url, Durability::Commit) {
        Err(why) => why.to_string(),
        Ok(store) => panic!("{store:?} was opened"),
    }
}

fn count(store: &Postgres) -> usize {
    store.find(&RecordQuery { limit: usize::MAX, ..RecordQuery::of(TenantScope::All) }).unwrap().len()
}

#[test]
fn postgres_passes_the_suites() {
    let server = Server::start();
    for durability in [Durability::Commit, Durability::BeforeEffect] {
        let url = server.fresh_database();
        let store = pintle_store::open(&url, Path::new("nowhere"), durability).unwrap();
        webhooks(&*store);
        records(&*store);
        approvals(&*store);
        sessions(&*store);
        identity(&*store);
        drop(store);
        // Another one finds what the first left.
        assert!(count(&open(&url)) > 100);
    }
    timings(&open(&server.fresh_database()));
    crate::turns::pages(&open(&server.fresh_database()));
    crate::turns::journal(&open(&server.fresh_database()));
    exchange(&open(&server.fresh_database()));
    says_what_memory_says(&open(&server.fresh_database()), 0, SEQUENCES);
    durability_is_how_a_commit_is_synced(&server);
    it_can_be_called_from_inside_a_runtime(&server);
    a_flood_is_answered_in_order(&server);
    dropping_the_store_writes_what_waits(&server);
    an_entry_that_could_not_be_read_again_is_refused_alone(&server);
    a_row_that_somebody_changed_is_named(&server);
}

/// Somebody turned it off for the user; only who asks for less is content.
fn durability_is_how_a_commit_is_synced(server: &Server) {
    let url = server.fresh_database();
    server.execute(&url, "ALTER ROLE pintle SET synchronous_commit = off");
    // A default sees what the writer's transaction is committed with.
    drop(open(&url));
    server.execute(
        &url,
        "ALTER TABLE events ADD COLUMN seen text; \
         ALTER TABLE events ALTER COLUMN seen SET DEFAULT current_setting('synchronous_commit')",
    );
    for durability in [Durability::Commit, Durability::BeforeEffect] {
        let store = Postgres::open(&url, durability).unwrap();
        keep(&store, vec![event(&TurnId::fresh())]).unwrap();
    }
    assert_eq!(server.execute(&url, "SELECT seen FROM events ORDER BY seq"), "off\non");
    server.execute(&url, "ALTER ROLE pintle RESET synchronous_commit");
}

fn it_can_be_called_from_inside_a_runtime(server: &Server) {
    let store = open(&server.fresh_database());
    let key = key(DEFAULT_TENANT, "s");
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
        let _hold = store.hold(&key).unwrap();
        appended(&store, append_of(&key, vec![queued("x")]));
        assert_eq!(store.journal(&key), Ok(vec![queued("x")]));
        assert_eq!(store.sessions(&key.tenant).unwrap().len(), 1);
    });
}

fn a_flood_is_answered_in_order(server: &Server) {
    let store = open(&server.fresh_database());
    let flood = QUEUE_BATCHES + MAX_GROUP_BATCHES + 7;
    let key = key(DEFAULT_TENANT, "flood");
    let (say, hear) = channel();
    for i in 0..flood {
        let say = say.clone();
        let done = Box::new(move |how| say.send((i, how)).unwrap());
        match i % 2 {
            0 => store.keep(vec![event(&TurnId::from("t"))], done),
            _ => store.append(append_of(&key, vec![queued(&i.to_string())]), done),
        }
    }
    let answers: Vec<(usize, Result<(), StoreError>)> = hear.iter().take(flood).collect();
    let why = format!("`{}` cannot be written fast enough: {QUEUE_BATCHES} batches wait already", store.name());
    let mut kept = Vec::new();
    for (i, how) in answers {
        match how {
            Ok(()) => kept.push(i),
            Err(error) => assert_eq!(error, StoreError::Unavailable(why.clone())),
        }
    }
    assert!(kept.len() >= QUEUE_BATCHES && kept.is_sorted(), "{} in the order of the calls", kept.len());
    let entries: Vec<_> = kept.iter().filter(|i| *i % 2 == 1).map(|i| queued(&i.to_string())).collect();
    assert_eq!(store.journal(&key), Ok(entries));
    assert_eq!(count(&store), kept.iter().filter(|i| *i % 2 == 0).count());
}

fn dropping_the_store_writes_what_waits(server: &Server) {
    let url = server.fresh_database();
    let store = open(&url);
    let answers: Vec<_> = (0..300)
        .map(|i| hand_over(&store, append_of(&key(DEFAULT_TENANT, "s"), vec![queued(&i.to_string())])))
        .collect();
    let hold = store.hold(&key(DEFAULT_TENANT, "held")).unwrap();
    drop(store);
    assert!(answers.iter().all(|answer| answer.try_recv() == Ok(Ok(()))), "all were told before the store was gone");
    let next = open(&url);
    assert_eq!(next.journal(&key(DEFAULT_TENANT, "s")).unwrap().len(), 300);
    // A hold outlives its store.
    assert!(matches!(next.hold(&key(DEFAULT_TENANT, "held")), Err(StoreError::Conflict(_))));
    drop(hold);
    drop(next.hold(&key(DEFAULT_TENANT, "held")).unwrap());
}

fn an_entry_that_could_not_be_read_again_is_refused_alone(server: &Server) {
    let url = server.fresh_database();
    let store = open(&url);
    let key = key(DEFAULT_TENANT, "s");
    // The database refuses one of them, whatever the reason.
    server.execute(&url, "ALTER TABLE journal ADD CHECK (body NOT LIKE '%poison%')");
    let answers: Vec<_> =
        ["first", "poison", "second"].map(|text| hand_over(&store, append_of(&key, vec![queued(text)]))).into();
    let answers: Vec<_> = answers.into_iter().map(|answer| answer.recv().unwrap()).collect();
    assert_eq!((&answers[0], &answers[2]), (&Ok(()), &Ok(())));
    let Err(StoreError::Unavailable(why)) = &answers[1] else { panic!("{:?}", answers[1]) };
    assert!(why.contains("violates check constraint") && !why.contains("poison"), "rows are not repeated: {why}");
    assert_eq!(store.journal(&key), Ok(["first", "second"].map(queued).into()));
}

fn a_row_that_somebody_changed_is_named(server: &Server) {
    let url = server.fresh_database();
    let store = open(&url);
    let (key, who) = (key(DEFAULT_TENANT, "s"), Identity::top("main", "s", TurnId::fresh()));
    appended(&store, append_of(&key, vec![queued("x")]));
    store.ask(question("a", &who, &call("{}")), moment(0)).unwrap();
    keep(&store, vec![event(&who.turn_id)]).unwrap();
    server.execute(
        &url,
        "UPDATE journal SET body = '\"later\"'; UPDATE approvals SET state = 'maybe'; UPDATE hook_sets SET hooks = '[{'; \
         UPDATE events SET event_id = '\\x0165'",
    );
    let foreign = |what: &str, why: &str| {
        StoreError::Corrupt(format!("{what} in `{}`: {why}; somebody else changed the row", store.name()))
    };
    let word = "unknown variant `later`, expected one of `opened`, `closed`, `turn`, `kept` at line 1 column 7";
    assert_eq!(store.journal(&key), Err(foreign("journal entry 1", word)));
    let word = "unknown variant `maybe`, expected one of `waiting`, `approved`, `refused`, `used`, `void`, `expired`";
    assert_eq!(store.answer(&TenantScope::All, "a", said(true), moment(0)), Err(foreign("approval `a`", word)));
    let why = "EOF while parsing an object at line 1 column 2";
    let all = RecordQuery { limit: 9, ..RecordQuery::of(TenantScope::All) };
    assert_eq!(store.find(&all), Err(foreign("event `e`", why)));
    // What is not read is not in the way, and connections are none the worse for it.
    assert_eq!(store.sessions(&TenantId::default_tenant()).unwrap().len(), 1);
}

#[test]
fn what_cannot_be_used_is_named_without_the_password() {
    let mut server = Server::start();
    let hba = server.data().join("pg_hba.conf");
    let trust = fs::read_to_string(&hba).unwrap();
    fs::write(&hba, format!("host all ada 127.0.0.1/32 scram-sha-256\n{trust}")).unwrap();
    server.execute("postgres", "CREATE ROLE ada LOGIN PASSWORD 'right'; SELECT pg_reload_conf()");
    let (port, url) = (server.port(), server.fresh_database());
    let database = url.rsplit_once('/').unwrap().1.to_owned();
    let name = format!("postgres://127.0.0.1:{port}/{database}");
    let at = |user: &str, rest: &str| format!("postgres://{user}@127.0.0.1:{port}/{rest}");

    assert_eq!(
        refused(&at("ada:sesame", &database)),
        format!(
            "the store is unavailable: `{name}` refused the connection: password authentication failed for user \"ada\"; check \
             user and password in `store.url`, and `pg_hba.conf`"
        )
    );
    let may_not = refused(&at("ada:right", &database));
    assert!(may_not.contains("permission denied for schema public; give the user the right"), "{may_not}");
    let nowhere = refused(&at("pintle", "nowhere"));
    assert!(nowhere.contains("\"nowhere\" does not exist; make it with `createdb`"), "{nowhere}");
    let secret = refused(&at("pintle:sesame", &format!("{database}?sslmode=require")));
    assert!(secret.contains(&format!("`{name}` cannot be reached")) && secret.contains("TLS"), "{secret}");

    server.execute("postgres", "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
    let latin = refused(&server.url("latin"));
    assert!(latin.contains("has the encoding LATIN1, which cannot hold every text; make"), "{latin}");
    server.execute(&url, "CREATE TABLE sessions (photo bytea)");
    let foreign = refused(&url);
    let words =
        "is another program's database (relation \"sessions\" already exists); name an empty one in `store.url`";
    assert!(foreign.contains(words), "{foreign}");
    assert_eq!(server.execute(&url, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"), "1", "left alone");
    let newer = server.fresh_database();
    drop(open(&newer));
    let known = server.execute(&newer, "SELECT number FROM pintle_schema");
    server.execute(&newer, "UPDATE pintle_schema SET number = 99, level = 9");
    let words = format!("was written by a newer Pintle: it has schema 99, this program knows {known}; update");
    assert!(refused(&newer).contains(&words), "{}", refused(&newer));

    server.kill();
    let gone = refused(&at("pintle:sesame", &database));
    assert!(gone.contains(&format!("`{name}` cannot be reached: ")) && gone.contains("refused"), "{gone}");
    for said in [may_not, nowhere, secret, latin, foreign, gone] {
        assert!(!said.contains("sesame") && !said.contains("right@"), "{said}");
    }
}

#[test]
fn a_server_that_hangs_is_given_up() {
    let server = Server::start();
    let url = server.fresh_database();
    let store = open(&url);
    let all = RecordQuery { limit: 9, ..RecordQuery::of(TenantScope::All) };
    assert_eq!(store.find(&all), Ok(vec![]));
    server.freeze();
    // The kernel still takes connections for it.
    assert!(refused(&url).contains("did not answer for 5 s; check the server and the way to it"));
    server.go_on();
    drop(open(&url));
}

#[test]
fn a_lock_of_somebody_else_is_waited_for_and_named() {
    let server = Server::start();
    let url = server.fresh_database();
    let store = open(&url);
    let who = Identity::top("main", "s", TurnId::fresh());
    let ask = |id: &str| store.ask(question(id, &who, &call("{}")), moment(0));
    thread::scope(|scope| {
        let lock = |seconds: u32| {
            let sql = format!("BEGIN; LOCK TABLE approvals; SELECT 'slept' FROM pg_sleep({seconds})");
            let other = scope.spawn({
                let (server, url) = (&server, &url);
                move || server.execute(url, &sql)
            });
            let held = "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted \
                        AND relation = 'approvals'::regclass";
            until("the table is locked", || server.execute(&url, held) == "1");
            other
        };
        let other = lock(60);
        let why = format!("`{}` was locked by another process for 5 s; find it in `pg_stat_activity`", store.name());
        assert_eq!(ask("a"), Err(StoreError::Unavailable(why)));
        // What needs no such lock is not in the way.
        keep(&store, vec![event(&who.turn_id)]).unwrap();
        let end = "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)%' \
                   AND pid <> pg_backend_pid()";
        server.execute(&url, end);
        assert!(other.join().is_err(), "it was cut off");
        let other = lock(1);
        assert!(ask("a").is_ok(), "waited for");
        assert_eq!(other.join().unwrap(), "slept");
    });
}

/// Makes a certificate for 127.0.0.1, and its key, with the names that the server looks for.
fn make_certificate(folder: &Path) -> [PathBuf; 2] {
    let [key, certificate] = ["server.key", "server.crt"].map(|name| folder.join(name));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=pintle test", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
        .arg(&key)
        .arg("-out")
        .arg(&certificate)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    [key, certificate]
}

#[test]
fn the_way_to_the_server_can_be_secret() {
    let mut server = Server::start();
    let [key, certificate] = make_certificate(&server.data());
    [&key, &certificate].into_iter().for_each(|file| server.own(file));
    let elsewhere = tempfile::tempdir().unwrap();
    let [_, stranger] = make_certificate(elsewhere.path());
    fs::write(server.data().join("postgresql.auto.conf"), "ssl = on\n").unwrap();
    server.restart();
    let url = server.fresh_database();
    let port = server.port();
    let other_name = url.replace("127.0.0.1", "localhost");
    let root = certificate.display();
    let encrypted = |url: &str| {
        let _store = open(url);
        server.execute(
            &url[..url.find('?').unwrap()],
            "SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity \
             USING (pid) WHERE application_name = 'pintle'",
        )
    };
    assert_eq!(encrypted(&format!("{url}?sslmode=disable")), "f");
    assert_eq!(encrypted(&format!("{url}?sslmode=prefer")), "t");
    assert_eq!(encrypted(&format!("{other_name}?sslmode=require")), "t");
    assert_eq!(encrypted(&format!("{url}?sslmode=verify-full&sslrootcert={root}")), "t");
    let strange = refused(&format!("{other_name}?sslmode=verify-full&sslrootcert={root}"));
    assert!(
        strange.contains(&format!("`postgres://localhost:{port}/")) && strange.contains("certificate"),
        "{strange}"
    );
    let unknown = refused(&format!("{url}?sslmode=verify-full&sslrootcert={}", stranger.display()));
    assert!(unknown.contains("certificate"), "{unknown}");
}
