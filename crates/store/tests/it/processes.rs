//! Several processes at one file: who holds a session, and answers that come from elsewhere.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pintle_domain::approval::{ApprovalStanding, ApprovalState, PersonAnswer};
use pintle_domain::id::{DEFAULT_TENANT, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::store::{ApprovalStore, SessionKey, SessionStore, StoreError, TenantScope};
use pintle_store::{Durability, Sqlite};
use pintle_testkit::conformance::approvals::{call, moment, question, said};
use pintle_testkit::conformance::sessions::{append_of, appended, key, queued};

use crate::child::{self, KEPT};

fn open(file: &Path) -> Sqlite {
    Sqlite::open(file, Durability::Commit).unwrap()
}

fn session() -> SessionKey {
    key(DEFAULT_TENANT, "shared")
}

/// Says `what` to the parent, then waits until the parent has gone or kills it.
fn say_and_stay(what: &str) {
    println!("{KEPT}{what}");
    std::io::stdout().flush().unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// What the child says first. Its output stays open: it would fail where nobody reads.
fn heard(child: &mut Child) -> String {
    let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines().map(Result::unwrap);
    // The test program has begun the line with the name of the test.
    let mut said = lines.filter_map(|line| line.split_once(KEPT).map(|(_, what)| what.to_owned()));
    said.next().expect("the child says something")
}

fn held_by(store: &Sqlite) -> Option<String> {
    store.sessions(&session().tenant).unwrap().into_iter().find(|row| row.session_id == "shared").unwrap().held_by
}

#[test]
fn a_session_is_held_until_its_process_dies() {
    if let Some(file) = child::file() {
        let store = open(&file);
        let _hold = store.hold(&session()).unwrap();
        return say_and_stay("held");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pintle.db");
    let store = open(&file);
    appended(&store, append_of(&session(), vec![queued("x")]));
    let mut child = child::start_with_input("processes::a_session_is_held_until_its_process_dies", &file);
    assert_eq!(heard(&mut child), "held");
    let name = format!("process {}", child.id());
    let conflict = StoreError::Conflict(format!("session \"shared\" is in use by {name}"));
    assert_eq!(store.hold(&session()).err(), Some(conflict.clone()));
    assert_eq!(store.delete(&session()), Err(conflict));
    assert_eq!(held_by(&store), Some(name));
    drop(store.hold(&key(DEFAULT_TENANT, "another")).expect("only the one is held"));

    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(held_by(&store), None, "the note alone says nothing");
    let hold = store.hold(&session()).expect("the kernel gave it back");
    assert_eq!(held_by(&store), Some(format!("process {}", std::process::id())));
    // Another store of this process is somebody else too, also by another name of the file.
    let link = folder.path().join("link.db");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    for other in [&file, &link] {
        let why = open(other).hold(&session()).err().expect("it is held");
        assert!(matches!(why, StoreError::Conflict(_)), "{why}");
        assert_eq!(held_by(&open(other)), held_by(&store));
    }
    drop(hold);
    drop(open(&link).hold(&session()).expect("it was given back"));
}

#[test]
fn a_program_that_outlives_the_holder_holds_nothing() {
    if let Some(file) = child::file() {
        let store = open(&file);
        let _hold = store.hold(&session()).unwrap();
        let quiet = || Stdio::null();
        let mut sleeper =
            Command::new("sleep").arg("60").stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn().unwrap();
        say_and_stay(&sleeper.id().to_string());
        return drop(sleeper.wait());
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pintle.db");
    let mut child = child::start_with_input("processes::a_program_that_outlives_the_holder_holds_nothing", &file);
    let sleeper = Pid::from_raw(heard(&mut child).parse().unwrap());
    let store = open(&file);
    assert!(store.hold(&session()).is_err());
    child.kill().unwrap();
    child.wait().unwrap();
    kill(sleeper, None).expect("it lives on");
    let hold = store.hold(&session());
    kill(sleeper, Signal::SIGKILL).unwrap();
    drop(hold.expect("the sleeper has no part in it"));
}

#[test]
fn a_hold_outlives_its_store() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pintle.db");
    let store = open(&file);
    let hold = store.hold(&session()).unwrap();
    drop(store);
    let store = open(&file);
    assert!(store.hold(&session()).is_err());
    drop(hold);
    drop(store.hold(&session()).expect("it was given back"));
}

#[test]
fn an_answer_from_another_process_is_seen() {
    let who = Identity::top("main", "shared", TurnId::from("t"));
    let of = |id: &str| question(id, &who, &call(r#"{"n":1}"#));
    if let Some(file) = child::file() {
        let store = open(&file);
        // The question was asked over there, and its id may be cut short.
        store.answer(&TenantScope::All, "asked", said(true), moment(1)).unwrap();
        return println!("{KEPT}answered");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pintle.db");
    let store = open(&file);
    assert!(matches!(store.ask(of("asked-1"), moment(0)), Ok(ApprovalStanding::Waiting(_))));
    let mut child = child::start("processes::an_answer_from_another_process_is_seen", &file);
    assert_eq!(heard(&mut child), "answered");
    assert!(child.wait().unwrap().success());

    let answered = store.approval(&TenantScope::All, "asked-1").unwrap().unwrap();
    assert_eq!((answered.state, answered.answered_by.as_deref()), (ApprovalState::Approved, Some("ada")));
    let late = PersonAnswer { approve: false, by: "bob".into(), note: "no".into() };
    let why = "approval `asked-1` cannot be answered: it was approved already, by ada";
    assert_eq!(store.answer(&TenantScope::All, "asked-1", late, moment(1)), Err(StoreError::Conflict(why.into())));
    assert_eq!(store.approval(&TenantScope::All, "asked-1"), Ok(Some(answered)));
    assert_eq!(store.ask(of("asked-2"), moment(1)), Ok(ApprovalStanding::Approved { id: "asked-1".into() }));
    assert_eq!(store.use_up(&DEFAULT_TENANT.into(), "asked-1", moment(1)), Ok(()));
}

#[test]
fn one_of_many_processes_may_use_an_approval() {
    let who = Identity::top("main", "shared", TurnId::from("t"));
    if let Some(file) = child::file() {
        let store = open(&file);
        let used = store.use_up(&DEFAULT_TENANT.into(), "asked-1", moment(1));
        assert!(matches!(used, Ok(()) | Err(StoreError::Conflict(_))), "{used:?}");
        return println!("{KEPT}{}", if used.is_ok() { "used" } else { "late" });
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pintle.db");
    let store = open(&file);
    store.ask(question("asked-1", &who, &call("{}")), moment(0)).unwrap();
    store.answer(&TenantScope::All, "asked-1", said(true), moment(1)).unwrap();
    let name = "processes::one_of_many_processes_may_use_an_approval";
    let mut children: Vec<_> = (0..4).map(|_| child::start(name, &file)).collect();
    let mut said: Vec<_> = children.iter_mut().map(heard).collect();
    children.into_iter().for_each(|mut child| assert!(child.wait().unwrap().success()));
    said.sort();
    assert_eq!(said, ["late", "late", "late", "used"]);
}
