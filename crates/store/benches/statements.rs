//! How many statements and syncs of the disk the records of tool calls take in SQLite.
//!
//! `cargo xtask bench -- --count` counts; anything else keeps the records of one call.

use std::ffi::{c_char, c_int};
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;

use anyhow::{Context as _, ensure};
use pintle_domain::store::RecordStore as _;
use pintle_store::{Durability, Sqlite};
use pintle_testkit::conformance::audit::cleared;
use rusqlite::auto_extension::{init_auto_extension, register_auto_extension};
use rusqlite::trace::{TraceEvent, TraceEventCodes};
use rusqlite::{Connection, ffi};

/// Calls that are recorded, each when the one before is.
const CALLS: usize = 100;

static STATEMENTS: AtomicU64 = AtomicU64::new(0);
static SYNCS: AtomicU64 = AtomicU64::new(0);

fn main() -> ExitCode {
    match count() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("statements: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn count() -> anyhow::Result<()> {
    let has = |word: &str| std::env::args().any(|argument| argument == word);
    if has("--list") {
        return Ok(());
    }
    trace_every_connection()?;
    let counts = has("--bench") && !has("--test");
    for (durability, name) in [(Durability::Commit, "commit"), (Durability::BeforeEffect, "before_effect")] {
        let [statements, syncs] = kept(durability, if counts { CALLS } else { 1 })?;
        for (unit, count) in [("statements", statements), ("syncs", syncs)].into_iter().filter(|_| counts) {
            let line = pintle_domain::json::json!({
                "unit": unit,
                "case": format!("records/{CALLS}_calls/{name}"),
                "count": count,
            });
            writeln!(std::io::stdout(), "{line}").context("the output is closed")?;
        }
    }
    Ok(())
}

/// Keeps the records of so many calls in a fresh file; how many statements and syncs that took.
fn kept(durability: Durability, calls: usize) -> anyhow::Result<[u64; 2]> {
    let folder = tempfile::tempdir()?;
    let store = Sqlite::open(&folder.path().join("pintle.db"), durability)?;
    let (say, hear) = channel();
    let keep = || {
        let say = say.clone();
        store.keep(cleared(), Box::new(move |how| drop(say.send(how))));
        hear.recv().context("the store forgot to say")?.map_err(anyhow::Error::from)
    };
    // What a connection prepares, it prepares at the first call.
    keep()?;
    let counted = || [&STATEMENTS, &SYNCS].map(|count| count.load(Ordering::SeqCst));
    let before = counted();
    for _ in 0..calls {
        keep()?;
    }
    let after = counted();
    ensure!(after[0] > before[0], "no statement was seen");
    Ok([after[0] - before[0], after[1] - before[1]])
}

/// Has every connection of this process count its statements.
fn trace_every_connection() -> anyhow::Result<()> {
    fn trace(mut connection: Connection) -> rusqlite::Result<()> {
        connection.trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(seen))
    }
    #[expect(unsafe_code, reason = "extensions of SQLite are functions of C")]
    // SAFETY: SQLite calls it with a connection that it has just opened, and with a place for a message.
    unsafe extern "C" fn extension(
        connection: *mut ffi::sqlite3,
        message: *mut *mut c_char,
        _: *const ffi::sqlite3_api_routines,
    ) -> c_int {
        // SAFETY: the arguments are as they came; nothing is opened or closed, and no extension is added.
        unsafe { init_auto_extension(connection, message, trace) }
    }
    #[expect(unsafe_code, reason = "extensions of SQLite are functions of C")]
    // SAFETY: the function stays where it is, and no connection is open yet.
    unsafe {
        register_auto_extension(extension)?;
    }
    Ok(())
}

fn seen(event: TraceEvent<'_>) {
    // What triggers do is part of the statement that they belong to.
    if let TraceEvent::Stmt(_, sql) = event
        && !sql.starts_with("--")
    {
        STATEMENTS.fetch_add(1, Ordering::SeqCst);
    }
}

/// Stands in the place of the C library's function, which SQLite calls, and counts.
#[expect(unsafe_code, reason = "only the linker can put itself between SQLite and the C library")]
// SAFETY: it has the signature of the function that it stands for, and does what that does.
#[unsafe(no_mangle)]
extern "C" fn fsync(file: c_int) -> c_int {
    SYNCS.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the system call takes a number, and says so if it is that of no file.
    let done = unsafe { nix::libc::syscall(nix::libc::SYS_fsync, file) };
    c_int::try_from(done).unwrap_or(-1)
}

/// The same for the other function that syncs.
#[expect(unsafe_code, reason = "only the linker can put itself between SQLite and the C library")]
// SAFETY: it has the signature of the function that it stands for, and does what that does.
#[unsafe(no_mangle)]
extern "C" fn fdatasync(file: c_int) -> c_int {
    SYNCS.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the system call takes a number, and says so if it is that of no file.
    let done = unsafe { nix::libc::syscall(nix::libc::SYS_fdatasync, file) };
    c_int::try_from(done).unwrap_or(-1)
}
