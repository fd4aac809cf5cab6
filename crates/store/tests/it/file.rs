//! The file itself: who may read it, and what is said of one that cannot be used.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use pintle_domain::id::TurnId;
use pintle_domain::store::{RecordQuery, RecordStore, StoreError, TenantScope};
use pintle_store::{Durability, Sqlite, Store as _};
use pintle_testkit::conformance::store::{event, keep};
use rusqlite::Connection;

fn open(path: &Path) -> Result<Sqlite, StoreError> {
    Sqlite::open(path, Durability::Commit)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn only_the_owner_can_read_it() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("a/b");
    let store = open(&folder.join("pintle.db")).unwrap();
    keep(&store, vec![event(&TurnId::fresh())]).unwrap();
    let modes: Vec<_> = ["", "pintle.db", "pintle.db-wal", "pintle.db-shm"]
        .into_iter()
        .map(|name| format!("{name} {:o}", mode(&folder.join(name))))
        .collect();
    assert_eq!(modes, [" 700", "pintle.db 600", "pintle.db-wal 600", "pintle.db-shm 600"]);
    assert_eq!(mode(&home.path().join("a")), 0o700);
}

#[test]
fn garbage_is_named_with_a_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pintle.db");
    fs::write(&file, "these are not the rows you are looking for".repeat(100)).unwrap();
    let said = open(&file).unwrap_err();
    let StoreError::Corrupt(why) = said else { panic!("{said}") };
    let file = file.display();
    assert!(why.starts_with(&format!("`{file}` is damaged or no SQLite database (")), "{why}");
    let ways = ["`pintle store restore FILE`", "move it away, with its `-wal` and `-shm`", "`pintle store forget`"];
    assert!(ways.iter().all(|way| why.contains(way)), "{why}");
}

#[test]
fn damage_in_the_middle_is_found_when_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pintle.db");
    let store = open(&file).unwrap();
    keep(&store, (0..2000).map(|_| event(&TurnId::fresh())).collect()).unwrap();
    assert_eq!(store.check_pages(), Ok(()));
    drop(store);
    let mut bytes = fs::read(&file).unwrap();
    // The first half has the schema, without which nothing can be opened.
    let half = bytes.len() / 2;
    bytes[half..].fill(0xa5);
    fs::write(&file, bytes).unwrap();
    let all = RecordQuery { limit: usize::MAX, ..RecordQuery::of(TenantScope::All) };
    let store = open(&file).unwrap();
    for said in [store.check_pages().unwrap_err(), store.find(&all).unwrap_err()] {
        assert!(matches!(said, StoreError::Corrupt(_)), "{said}");
    }
}

#[test]
fn a_row_that_somebody_changed_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("pintle.db")).unwrap();
    let kept = event(&TurnId::fresh());
    keep(&store, vec![kept.clone()]).unwrap();
    let all = RecordQuery { limit: usize::MAX, ..RecordQuery::of(TenantScope::All) };
    for (hooks, why) in [
        ("[{", "EOF while parsing an object at line 1 column 2".to_owned()),
        (&*"[".repeat(100_000), "nested deeper than 520 levels".to_owned()),
    ] {
        Connection::open(store.path()).unwrap().execute("UPDATE hook_sets SET hooks = ?1", [hooks]).unwrap();
        let file = store.path().display();
        let expected = StoreError::Corrupt(format!(
            "event `{}` in `{file}`: {why}; somebody else changed the file",
            kept.event_id
        ));
        assert_eq!(store.find(&all), Err(expected.clone()));
        assert_eq!(store.hook_timings(9), Err(expected));
    }
}

#[test]
fn a_newer_schema_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pintle.db");
    drop(open(&file).unwrap());
    let behind = Connection::open(&file).unwrap();
    let known: i64 = behind.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    behind.pragma_update(None, "user_version", 99).unwrap();
    drop(behind);
    let before = fs::read(&file).unwrap();
    let why = format!(
        "`{}` was written by a newer Pintle: it has schema 99, this program knows {known}; update the program, or \
         name another file in `store.url`",
        file.display()
    );
    assert_eq!(open(&file).unwrap_err(), StoreError::Unavailable(why));
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
fn another_programs_database_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("photos.db");
    Connection::open(&file).unwrap().execute_batch("CREATE TABLE photos (id)").unwrap();
    let before = fs::read(&file).unwrap();
    let why = format!("`{}` is another program's database; name a new file in `store.url`", file.display());
    assert_eq!(open(&file).unwrap_err(), StoreError::Unavailable(why));
    assert_eq!(fs::read(&file).unwrap(), before);
}

#[test]
fn a_place_that_cannot_be_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let below = file.join("pintle.db");
    let said = open(&below).unwrap_err().to_string();
    assert!(said.contains(&format!("`{}` cannot be made", below.display())), "{said}");
    let said = open(folder.path()).unwrap_err().to_string();
    assert!(said.contains(&format!("`{}`", folder.path().display())), "{said}");
}

#[test]
fn a_file_that_was_deleted_takes_no_records() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join("pintle.db")).unwrap();
    keep(&store, vec![event(&TurnId::fresh())]).unwrap();
    fs::remove_file(store.path()).unwrap();
    let why = format!("`{}` was moved or deleted while in use; restart the program", store.path().display());
    assert_eq!(keep(&store, vec![event(&TurnId::fresh())]), Err(StoreError::Unavailable(why)));
}
