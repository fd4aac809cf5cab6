//! The file: making it for its owner only, its settings, its schema, and what its errors mean.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use nix::unistd::{AccessFlags, access};
use pintle_domain::approval::ApprovalKey;
use pintle_domain::store::StoreError;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::Durability;
use crate::db::Failure;
use crate::lock_order::{LockRank, RankedGuard, RankedMutex};
use crate::migration::{self, NEWEST};
use crate::rows::backlog::UnwrittenBatch;

/// How long a connection waits for another process that writes. A commit takes milliseconds; one that takes longer
/// than this belongs to a process that hangs.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How often opening is tried while other processes make the same file. Changing the journal mode cannot wait by
/// itself, and it takes milliseconds, once in the life of a file.
const OPEN_TRIES: u32 = 100;

/// Between two tries: longer than making the file takes, and too short to be felt.
const OPEN_PAUSE: Duration = Duration::from_millis(20);

/// At so many pages of the log, 64 MiB, a writer moves them into the file itself: far more than gathers while a disk works at all, and little
/// beside the file of a machine that writes so much.
pub(super) const MAX_LOG_PAGES: i64 = 16_384;

/// At so many pages of the log, whoever has just synced a commit moves them into the file: SQLite's own number.
const SYNCED_LOG_PAGES: i64 = 1000;

/// How long it is looked whether a file is whole: some gigabytes, on any disk.
const LONGEST_CHECK: Duration = Duration::from_secs(10);

/// What SQLite says of a file that is whole.
const WHOLE: &str = "ok";

/// Marks a file as Pintle's in its header: the letters `pntl`.
const APPLICATION_ID: i64 = 0x706e_746c;

/// Held while a file is made: closing any handle of a file drops the locks that this process has on it, so a handle
/// that only makes the file must be closed before another thread opens it as a database.
static MAKING: Mutex<()> = Mutex::new(());

/// The writing and the reading connection to `path`.
pub(super) fn open(
    path: &Path,
    durability: Durability,
    key: Option<&ApprovalKey>,
) -> Result<(Connection, Connection), StoreError> {
    let writing = open_at(path, durability, (NEWEST, key))?;
    let reading = reading(path).map_err(|e| failed(path, &e))?;
    Ok((writing, reading))
}

/// The schema that a file is brought to, and the key that questions of before are sealed with on the way.
type Goal<'a> = (u32, Option<&'a ApprovalKey>);

/// A writing connection to `path`, which is brought to the schema `to`.
pub(super) fn open_at(path: &Path, durability: Durability, to: Goal<'_>) -> Result<Connection, StoreError> {
    make(path)?;
    let mut tried = 0;
    loop {
        match writing(path, durability, to) {
            Err(Failure::Sqlite(e)) if is_busy(&e) && tried < OPEN_TRIES => {
                tried += 1;
                thread::sleep(OPEN_PAUSE);
            }
            Err(failure) => return Err(into_error(failure, path)),
            Ok(connection) => return Ok(connection),
        }
    }
}

/// The file as it was when it was opened.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    /// Device and number of the file.
    inode: (u64, u64),
    /// Who of this process writes now. SQLite lets those who wait sleep and look again, which a busy writer can
    /// outlast; here they are woken.
    writing: RankedMutex<()>,
}

impl Place {
    /// The file that stands at `path` now.
    pub(super) fn of(path: &Path) -> Result<Self, StoreError> {
        let inode = inode(path).ok_or_else(|| gone(path))?;
        Ok(Self { path: path.to_owned(), inode, writing: RankedMutex::new(LockRank::Turn, ()) })
    }

    /// The one name of it that all links lead to, so that there is one lock file, as there is one log of SQLite.
    pub(super) fn real_path(&self) -> Result<PathBuf, StoreError> {
        fs::canonicalize(&self.path).map_err(|_| gone(&self.path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Syncs the log of SQLite. It has no locks, unlike the file itself, so it may be opened and closed.
    pub(super) fn settle(&self) -> Result<(), StoreError> {
        let mut log = self.real_path()?.into_os_string();
        log.push("-wal");
        match fs::File::open(&log).and_then(|log| log.sync_data()) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(StoreError::Unavailable(format!("`{}` cannot be synced: {error}", self.path.display())))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Waits until nobody else of this process writes. What is returned is kept until the end of the transaction.
    pub(super) fn turn(&self) -> RankedGuard<'_, ()> {
        // A panic rolls its transaction back as it unwinds.
        self.writing.lock()
    }

    /// The same, unless somebody else does.
    pub(super) fn turn_if_free(&self) -> Option<RankedGuard<'_, ()>> {
        self.writing.try_lock()
    }

    /// A file that was deleted takes rows without a word, and they are gone with the process.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        if inode(&self.path) == Some(self.inode) { Ok(()) } else { Err(gone(&self.path)) }
    }
}

fn inode(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

fn gone(path: &Path) -> StoreError {
    StoreError::Unavailable(format!("`{}` was moved or deleted while in use; restart the program", path.display()))
}

/// What is said of a failure of the file at `path`.
pub(super) fn into_error(failure: Failure, path: &Path) -> StoreError {
    match failure {
        Failure::Sqlite(error) => failed(path, &error),
        Failure::Said(error) => error,
        Failure::Foreign { what, why } => {
            StoreError::Corrupt(format!("{what} in `{}`: {why}; somebody else changed the file", path.display()))
        }
        // A file has no server; whoever mixes them up hears of it.
        Failure::Postgres(error) => StoreError::Unavailable(format!("`{}`: {error}", path.display())),
        Failure::Silence => StoreError::Unavailable(format!("`{}` did not answer", path.display())),
    }
}

/// Another process was faster.
pub(super) fn overtaken(path: &Path) -> StoreError {
    StoreError::Unavailable(format!("another process wrote to `{}` at the same moment; try again", path.display()))
}

/// The same for a batch: whether it may be written later is a question of the fault.
pub(super) fn into_unwritten(failure: Failure, path: &Path) -> UnwrittenBatch {
    let passes = match &failure {
        Failure::Sqlite(error) => passes(error),
        Failure::Said(_) | Failure::Foreign { .. } | Failure::Postgres(_) | Failure::Silence => false,
    };
    UnwrittenBatch { why: into_error(failure, path), passes }
}

/// Whether somebody else is in the way, or the disk.
fn passes(error: &rusqlite::Error) -> bool {
    let disk = matches!(error.sqlite_error_code(), Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure));
    disk || is_busy(error)
}

/// One more writing connection to a file that was opened before, for those who wait for what they write.
pub(super) fn another(place: &Place, durability: Durability) -> Result<Connection, Failure> {
    let connection = connect(&place.path)?;
    set_durability(&connection, durability)?;
    // Only now is it certain which file that is.
    place.check().map_err(Failure::Said)?;
    Ok(connection)
}

/// Does `work` in one writing transaction; what it wrote stays only if it comes to something.
pub(super) fn transact<T>(
    connection: &mut Connection,
    work: impl FnOnce(&Connection) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let writing = Writing::begin(connection)?;
    let done = work(writing.0)?;
    writing.commit()?;
    Ok(done)
}

/// A writing transaction, of which nothing stays unless it is committed. Its statements are read once in the life of a
/// connection.
struct Writing<'c>(&'c Connection);

impl<'c> Writing<'c> {
    /// Waits for whoever writes. The connection has no other transaction.
    fn begin(connection: &'c mut Connection) -> rusqlite::Result<Self> {
        connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        Ok(Self(connection))
    }

    fn commit(self) -> rusqlite::Result<()> {
        self.0.prepare_cached("COMMIT")?.execute([]).map(drop)
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        // Some failures have rolled it back already. What cannot be rolled back is gone with the connection.
        if !self.0.is_autocommit() {
            self.0.execute_batch("ROLLBACK").unwrap_or_default();
        }
    }
}

/// Makes the file and its folder for their owner only. SQLite gives its `-wal` and `-shm` the mode of the file.
fn make(path: &Path) -> Result<(), StoreError> {
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let cannot = |what: &Path, e: std::io::Error| {
        StoreError::Unavailable(format!(
            "`{}` cannot be made: {e}; choose another place in `store.url`",
            what.display()
        ))
    };
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty() && !folder.exists()) {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|e| cannot(folder, e))?;
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(file) => drop(file),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
        Err(e) => return Err(cannot(path, e)),
    }
    Ok(())
}

fn writing(path: &Path, durability: Durability, to: Goal<'_>) -> Result<Connection, Failure> {
    let mut connection = connect(path)?;
    check_owner(&mut connection, path)?;
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode != "wal" {
        return Err(Failure::Said(StoreError::Unavailable(format!(
            "`{}` stands on a file system without shared memory (journal mode `{mode}`); choose a local folder",
            path.display()
        ))));
    }
    set_durability(&connection, durability)?;
    migrate(&mut connection, path, to)?;
    Ok(connection)
}

fn set_durability(connection: &Connection, durability: Durability) -> rusqlite::Result<()> {
    let (synchronous, log_pages) = match durability {
        Durability::Commit => ("NORMAL", MAX_LOG_PAGES),
        Durability::BeforeEffect => ("FULL", SYNCED_LOG_PAGES),
    };
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "wal_autocheckpoint", log_pages)
}

fn reading(path: &Path) -> rusqlite::Result<Connection> {
    let connection = connect(path)?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    // Without CREATE: the file is made by `make`, with its mode, or not at all.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // What is taken out of a row, or with one, is not to stand in the file all the same.
    connection.pragma_update(None, "secure_delete", true)?;
    Ok(connection)
}

/// Refuses another program's database before anything in it changes.
fn check_owner(connection: &mut Connection, path: &Path) -> Result<(), Failure> {
    // One transaction for both: another process may be making the tables right now.
    let transaction = connection.transaction()?;
    let owner: i64 = transaction.query_row("PRAGMA application_id", [], |row| row.get(0))?;
    let tables: i64 = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    transaction.finish()?;
    if owner == APPLICATION_ID || (owner == 0 && tables == 0) {
        return Ok(());
    }
    Err(Failure::Said(StoreError::Unavailable(format!(
        "`{}` is another program's database; name a new file in `store.url`",
        path.display()
    ))))
}

/// Brings the file to the schema `to`, all or nothing.
fn migrate(connection: &mut Connection, path: &Path, (to, key): Goal<'_>) -> Result<(), Failure> {
    let to = i64::from(to);
    // A file that is up to date is not locked for it.
    if schema_of(connection)? == to {
        return Ok(());
    }
    transact(connection, |transaction| {
        // Another process may have been faster.
        let seen = schema_of(transaction)?;
        if !migration::is_known(seen) {
            return Err(Failure::Said(StoreError::Unavailable(format!(
                "`{}` was written by a newer Pintle: it has schema {seen}, this program knows {NEWEST}; \
                 update the program, or name another file in `store.url`",
                path.display()
            ))));
        }
        migration::run(transaction, seen, to, key)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", to)?;
        Ok(())
    })
}

fn schema_of(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Looks whether the pages of the file at `path` are whole. What takes too long is left.
pub(super) fn check_pages(path: &Path) -> Result<(), StoreError> {
    let connection = reading(path).map_err(|e| failed(path, &e))?;
    let interrupt = connection.get_interrupt_handle();
    let (checking, checked) = channel::<()>();
    let clock = thread::spawn(move || {
        if checked.recv_timeout(LONGEST_CHECK) == Err(RecvTimeoutError::Timeout) {
            interrupt.interrupt();
        }
    });
    let found = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get::<_, String>(0));
    drop(checking);
    // It does nothing that could panic, and nothing that this waits for.
    drop(clock.join());
    match found {
        Ok(word) if word == WHOLE => Ok(()),
        Ok(what) => Err(damaged(path, what.lines().last().unwrap_or_default())),
        Err(e) if e.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) => Ok(()),
        Err(e) => Err(failed(path, &e)),
    }
}

/// The file at `path` is damaged, and what to do.
fn damaged(path: &Path, why: &str) -> StoreError {
    StoreError::Corrupt(format!(
        "`{}` is damaged or no SQLite database ({why}); put a copy in its place with `pintle store restore FILE`; without \
         one, move it away, with its `-wal` and `-shm`, and start again: a new one is made, and where guards are lost with \
         the old one, its gates stay shut until `pintle store forget`",
        path.display()
    ))
}

/// Those of the files of SQLite that this account may not read and write, or their owner may not.
fn out_of_reach(path: &Path) -> Vec<String> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let files = ["", "-wal", "-shm"].map(|ending| {
        let mut file = path.clone().into_os_string();
        file.push(ending);
        PathBuf::from(file)
    });
    let is_shut = |file: &&PathBuf| {
        let Ok(found) = fs::metadata(file) else { return false };
        let may = access(file.as_path(), AccessFlags::R_OK | AccessFlags::W_OK);
        found.is_file() && (found.mode() & 0o600 != 0o600 || may.is_err())
    };
    files.iter().filter(is_shut).map(|file| format!("`{}`", file.display())).collect()
}

/// What `error` means for whoever uses `path`.
pub(super) fn failed(path: &Path, error: &rusqlite::Error) -> StoreError {
    if matches!(error.sqlite_error_code(), Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt)) {
        return damaged(path, &error.to_string());
    }
    let shut = out_of_reach(path);
    let path = path.display();
    if is_busy(error) {
        let seconds = BUSY_TIMEOUT.as_secs();
        return StoreError::Unavailable(format!(
            "`{path}` was locked by another process for {seconds} s; find it with `fuser {path}`"
        ));
    }
    if shut.is_empty() {
        return StoreError::Unavailable(format!(
            "`{path}`: {error}; check the disk's space and the file's owner and mode"
        ));
    }
    let shut = shut.join(", ");
    StoreError::Unavailable(format!("`{path}`: {error}; correct the owner and mode (0600) of {shut}"))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use rusqlite::ffi;

    use super::*;

    #[test]
    fn durability_is_how_a_commit_is_synced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pintle.db");
        for (durability, expected) in [(Durability::Commit, ("wal", 1)), (Durability::BeforeEffect, ("wal", 2))] {
            let (writing, _) = open(&path, durability, None).unwrap();
            let mode: String = writing.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
            let level: i64 = writing.query_row("PRAGMA synchronous", [], |row| row.get(0)).unwrap();
            assert_eq!((mode.as_str(), level), expected);
        }
    }

    #[test]
    fn each_file_of_a_wrong_mode_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("pintle.db");
        let _open = open(&path, Durability::Commit, None).unwrap();
        let error = rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_READONLY), None);
        let said = |shut: &str| failed(&path, &error).to_string().ends_with(shut);
        assert!(said("check the disk's space and the file's owner and mode"));
        for ending in ["-wal", "-shm"] {
            let file = format!("{}{ending}", path.display());
            fs::set_permissions(file, Permissions::from_mode(0o400)).unwrap();
        }
        let file = path.display();
        assert!(said(&format!("correct the owner and mode (0600) of `{file}-wal`, `{file}-shm`")));
    }

    #[test]
    fn the_reading_connection_cannot_write() {
        let folder = tempfile::tempdir().unwrap();
        let (_writing, reading) = open(&folder.path().join("pintle.db"), Durability::Commit, None).unwrap();
        let said = reading.execute("DELETE FROM events", []).unwrap_err();
        assert_eq!(said.sqlite_error_code(), Some(ErrorCode::ReadOnly));
    }
}
