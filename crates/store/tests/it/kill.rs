//! What was reported as kept is there after `kill -9`, and several processes can share a file.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::mpsc::sync_channel;

use domain::id::TurnId;
use domain::store::{RecordQuery, RecordStore};
use pintle_store::{Durability, Sqlite};
use testkit::conformance::store::{event, keep};

use crate::child::{self, KEPT};

/// How many batches the child that will be killed has under way.
const UNDER_WAY: usize = 32;

const ROUNDS: usize = 20;

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
    let found = store.find(&RecordQuery { limit: usize::MAX, ..RecordQuery::default() }).unwrap();
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
