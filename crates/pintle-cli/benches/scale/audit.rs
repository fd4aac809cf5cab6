//! Proving and exporting a long audit chain: the program itself, beside the least that anybody could do with the rows.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use pintle_domain::hex::hex;
use pintle_domain::id::DEFAULT_TENANT;
use rusqlite::{Connection, Row};
use sha2::{Digest as _, Sha256};

use crate::filled::Filled;
use crate::report::{Report, Side, shown};
use crate::role::{Role, in_surroundings_of};

/// The program takes at most so many times as long.
const MOST_TIMES: f64 = 2.0;
/// The most memory that it may ever have, in KiB.
const MOST_KIB: u64 = 50 << 10;
/// Every entry, as its columns have it.
const SELECT: &str = "SELECT seq, at, kind, body, prev, hash FROM audit_log WHERE tenant_id = ?1 ORDER BY seq";
/// What stands behind a line of the floor, so that its file has as many bytes as ours.
const FILLING: &[u8] = &[b' '; 4096];

pub(crate) fn audit(report: &mut Report, filled: &Filled) -> anyhow::Result<()> {
    // What waits beside its tables is brought there.
    filled.store.unhashed()?;
    let entries = counted(&filled.file())?;
    let verify = ["audit", "verify", "--config", "pintle.toml", "--home", "data"];
    let mut proven = |times| ran(filled, &verify, times);
    let mut hashed = |times| hashed(&filled.file(), entries, times);
    compared(report, &format!("{entries} entries: `audit verify`"), [&mut proven, &mut hashed])?;
    peak(report, &format!("{entries} entries: `audit verify`, memory"), (filled, &verify))?;

    let written = filled.home.path().join("audit.jsonl");
    let export = ["audit", "export", "--config", "pintle.toml", "--home", "data", "--output", "audit.jsonl"];
    ran(filled, &export, 1)?;
    let bytes = fs::metadata(&written)?.len();
    let mut exported = |times| ran(filled, &export, times);
    let mut copied = |times| copied(filled, (entries, bytes), times);
    compared(report, &format!("{entries} entries: `audit export`"), [&mut exported, &mut copied])?;
    peak(report, &format!("{entries} entries: `audit export`, memory"), (filled, &export))?;
    fs::remove_file(written)?;
    Ok(())
}

/// The number of entries: whoever looked for the time of calls before left some more.
fn counted(file: &Path) -> anyhow::Result<usize> {
    let count = "SELECT count(*) FROM audit_log WHERE tenant_id = ?1";
    let entries: i64 = Connection::open(file)?.query_row(count, [DEFAULT_TENANT], |row| row.get(0))?;
    Ok(usize::try_from(entries)?)
}

fn compared(report: &mut Report, what: &str, sides: [Side<'_>; 2]) -> anyhow::Result<()> {
    let [ours, bare] = report.medians(1, sides)?;
    let ratio = ours.div_duration_f64(bare);
    let cells = [shown(ours), shown(bare), format!("{ratio:.2}"), format!("<= {MOST_TIMES}")];
    report.row(what, cells, Some(ratio <= MOST_TIMES));
    Ok(())
}

/// How long the program takes, from its start to its end.
fn ran(filled: &Filled, arguments: &[&str], times: usize) -> anyhow::Result<Duration> {
    let start = Instant::now();
    for _ in 0..times {
        let output = in_surroundings_of(filled.home.path(), PINTLE).args(arguments).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "`{}` failed: {said}", arguments.join(" "));
    }
    Ok(start.elapsed())
}

/// The program.
const PINTLE: &str = env!("CARGO_BIN_EXE_pintle");

fn peak(report: &mut Report, what: &str, (filled, arguments): (&Filled, &[&str])) -> anyhow::Result<()> {
    let home = filled.home.path().to_str().context("the temporary folder has a name")?;
    let words: Vec<&str> = ["peak", home, PINTLE].into_iter().chain(arguments.iter().copied()).collect();
    let [kib] = Role::said(&words)?;
    report.limited(what, kib, MOST_KIB, |kib| format!("{:.1} MiB", kib as f64 / 1024.0));
    Ok(())
}

/// Reads the entries and hashes each with the one before.
fn hashed(file: &Path, entries: usize, times: usize) -> anyhow::Result<Duration> {
    each_entry(file, (entries, times), |row| {
        let text = |column| row.get_ref(column)?.as_str().map_err(anyhow::Error::from);
        let (body, prev) = (text(3)?, text(4)?);
        let hash = Sha256::new().chain_update(prev).chain_update("\n").chain_update(body).finalize();
        ensure!(hex(&hash) == text(5)?, "an entry is not what it was");
        Ok(())
    })
}

/// Reads the entries and writes them to a file of so many bytes, which is synced.
fn copied(filled: &Filled, (entries, bytes): (usize, u64), times: usize) -> anyhow::Result<Duration> {
    let path = filled.home.path().join("bare.jsonl");
    let each = usize::try_from(bytes)? / entries;
    let mut out = BufWriter::new(File::create(&path)?);
    let read = each_entry(&filled.file(), (entries, times), |row| {
        let mut length = 1;
        for column in 1..=5 {
            let text = row.get_ref(column)?.as_bytes()?;
            out.write_all(text)?;
            length += text.len();
        }
        out.write_all(&FILLING[..each.saturating_sub(length).min(FILLING.len())])?;
        Ok(out.write_all(b"\n")?)
    })?;
    let start = Instant::now();
    let file = out.into_inner().map_err(|error| error.into_error())?;
    file.sync_all()?;
    let took = read + start.elapsed();
    fs::remove_file(path)?;
    Ok(took)
}

/// How long it takes to hand each entry to `take`, so many times.
fn each_entry(
    file: &Path,
    (entries, times): (usize, usize),
    mut take: impl FnMut(&Row<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<Duration> {
    let start = Instant::now();
    for _ in 0..times {
        let connection = Connection::open(file)?;
        let mut statement = connection.prepare(SELECT)?;
        let (mut rows, mut seen) = (statement.query([DEFAULT_TENANT])?, 0);
        while let Some(row) = rows.next()? {
            take(row)?;
            seen += 1;
        }
        ensure!(seen == entries, "{seen} of {entries} entries are there");
    }
    Ok(start.elapsed())
}
