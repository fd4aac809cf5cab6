//! What was reported as kept is there after `kill -9`, and several processes can share a file.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::mpsc::sync_channel;

use pintle_domain::id::{DEFAULT_TENANT, TurnId};
use pintle_domain::session::JournalEntry;
use pintle_domain::store::{JournalAppend, RecordQuery, RecordStore, SessionKey, SessionStore, TenantScope};
use pintle_store::{Durability, Sqlite};
use pintle_testkit::conformance::sessions::{append_of, key, queued};
use pintle_testkit::conformance::store::{event, keep};

use crate::child::{self, KEPT};

/// How many batches the child that will be killed has under way.
const UNDER_WAY: usize = 32;

const ROUNDS: usize = 20;

/// How many entries one append has in the test of journals.
const ENTRIES: usize = 3;

/// How many processes share a file.
const PROCESSES: usize = 4;

/// How many events each of them keeps.
const EVENTS: usize = 100;

/// Keeps records for ever and prints each id once it is kept.
fn keep_until_killed(file: &Path) {
    let store = Sqlite::open(file, Durability::Commit).unwrap();
    let turn = TurnId::fresh();
    let (finished, wait) = sync_channel(UNDER_WAY);
    (0..UNDER_WAY).for_each(|_| finished.send(()).unwrap());
    loop {
        wait.recv().unwrap();
        let event = event(&turn);
        let id = event.event_id.clone();
        let finished = finished.clone();
        store.keep(
            vec![event],
            Box::new(move |how| {
                how.unwrap();
                println!("{KEPT}{id}");
                finished.send(()).unwrap();
            }),
        );
    }
}

/// The ids of the events that `file` holds.
fn held(file: &Path) -> HashSet<String> {
    let store = Sqlite::open(file, Durability::Commit).unwrap();
    let found = store.find(&RecordQuery { limit: usize::MAX, ..RecordQuery::of(TenantScope::All) }).unwrap();
    found.into_iter().map(|event| event.event_id).collect()
}

#[test]
fn what_is_kept_survives_kill_9() {
    if let Some(file) = child::file() {
        return keep_until_killed(&file);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pintle.db");
    let mut kept = HashSet::new();
    for round in 0..ROUNDS {
        let mut child = child::start("kill::what_is_kept_survives_kill_9", &file);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        // Another moment in each round; the child does not wait for us, so it is in the midst of something.
        let before = kept.len();
        for line in lines.by_ref() {
            kept.extend(line.strip_prefix(KEPT).map(str::to_owned));
            if kept.len() > before + round * 37 {
                break;
            }
        }
        child.kill().unwrap();
        // What it printed before it died counts too, unless it died within the line.
        let rest: Vec<String> = lines.collect();
        child.wait().unwrap();
        kept.extend(
            rest.iter().filter_map(|line| line.strip_prefix(KEPT)).filter(|id| id.len() == 36).map(str::to_owned),
        );
        assert!(kept.len() > before + round * 37, "the child of round {round} ended by itself: {rest:?}");
        let held = held(&file);
        let lost: Vec<_> = kept.difference(&held).collect();
        assert!(lost.is_empty(), "round {round} lost {lost:?}");
    }
}

#[test]
fn processes_share_a_file() {
    if let Some(file) = child::file() {
        let store = Sqlite::open(&file, Durability::Commit).unwrap();
        let turn = TurnId::fresh();
        return (0..EVENTS).for_each(|_| keep(&store, vec![event(&turn)]).unwrap());
    }
    let folder = tempfile::tempdir().unwrap();
    // They also make the file together.
    let file = folder.path().join("shared/pintle.db");
    let children: Vec<_> = (0..PROCESSES).map(|_| child::start("kill::processes_share_a_file", &file)).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    assert_eq!(held(&file).len(), PROCESSES * EVENTS);
}

fn session() -> SessionKey {
    key(DEFAULT_TENANT, "killed")
}

/// Appends for ever, on where the journal ends, and prints the number of each append once it is kept.
fn append_until_killed(file: &Path) {
    let store = Sqlite::open(file, Durability::Commit).unwrap();
    let _hold = store.hold(&session()).unwrap();
    let turn = TurnId::fresh();
    let (finished, wait) = sync_channel(UNDER_WAY);
    (0..UNDER_WAY).for_each(|_| finished.send(()).unwrap());
    for number in store.journal(&session()).unwrap().len() / ENTRIES.. {
        wait.recv().unwrap();
        let finished = finished.clone();
        store.append(
            JournalAppend { records: vec![event(&turn)], ..append_of(&session(), entries(number)) },
            Box::new(move |how| {
                how.unwrap();
                println!("{KEPT}{number};");
                finished.send(()).unwrap();
            }),
        );
    }
}

/// The entries of the append `number`.
fn entries(number: usize) -> Vec<JournalEntry> {
    (0..ENTRIES).map(|i| queued(&format!("{number}.{i}"))).collect()
}

#[test]
fn a_journal_survives_kill_9_in_whole_appends() {
    if let Some(file) = child::file() {
        return append_until_killed(&file);
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pintle.db");
    for round in 0..ROUNDS {
        let mut child = child::start("kill::a_journal_survives_kill_9_in_whole_appends", &file);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        // A line counts up to its `;`: the child may die within it.
        let mut numbers = lines.filter_map(|line| line.strip_prefix(KEPT)?.strip_suffix(';')?.parse::<usize>().ok());
        let seen = numbers.by_ref().take(1 + round * 29).last().expect("the child appends");
        child.kill().unwrap();
        let last = numbers.last().unwrap_or(seen);
        child.wait().unwrap();
        let found = Sqlite::open(&file, Durability::Commit).unwrap().journal(&session()).unwrap();
        assert!(found.len() >= (last + 1) * ENTRIES, "round {round} lost some of {last}: {}", found.len());
        let appends = found.len() / ENTRIES;
        assert_eq!(found, (0..appends).flat_map(entries).collect::<Vec<_>>(), "round {round}");
        assert_eq!(held(&file).len(), appends, "round {round}: a record for each append, and no other");
    }
}
