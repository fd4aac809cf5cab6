//! Reads what agents wrote down of a conversation, however long that is: a file of its own, or rows of a database that
//! holds those of all sessions.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use pintle_guard::transcript::{Transcript, TranscriptCall, transcript_calls};
use pintle_store::foreign::{ForeignTexts, texts};

use super::host_files::opened;
use super::session_files::FileState;

/// What the name of a database ends with.
const DATABASE: &str = "db";

/// What the name of the file ends with that a database writes to first.
const LOG: &str = "-wal";

/// Longest line that is read, in bytes: one holds a message, with its pictures; and the longest file that is read as one
/// document.
const MAX_LINE_BYTES: u64 = 16 << 20;

/// What was read of one file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct WrittenDown {
    /// The calls with a result.
    pub(super) calls: Vec<TranscriptCall>,
    /// Why some may be missing.
    pub(super) unread: Option<String>,
}

/// Whether `file` holds the conversations of all sessions.
pub(super) fn is_database(file: &Path) -> bool {
    file.extension().is_some_and(|end| end == DATABASE)
}

/// How `file` is; none where it is not there.
pub(super) fn state_of(file: &Path) -> Option<FileState> {
    let of = |file: &Path| {
        let metadata = fs::metadata(file).ok()?;
        let written = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?.as_millis();
        Some((metadata.len(), i64::try_from(written).ok()?))
    };
    let (bytes, written_ms) = of(file)?;
    let mut log = file.as_os_str().to_owned();
    log.push(LOG);
    let (more, later) = is_database(file).then(|| of(&PathBuf::from(log))).flatten().unwrap_or_default();
    Some(FileState { bytes: bytes + more, written_ms: written_ms.max(later) })
}

/// The sessions whose conversations are in the database `file`. Source: what OpenCode 1.18 keeps.
///
/// # Errors
/// It cannot be read.
pub(super) fn sessions_in(file: &Path) -> io::Result<Vec<String>> {
    let all = ForeignTexts { table: "session", column: "id", sorted: "time_created", only: None };
    texts(file, &all).map_err(io::Error::other)
}

/// What is written down in `file` of the session that its host calls `session`; nothing where it is not there.
///
/// # Errors
/// It cannot be read.
pub(super) fn written_down(file: &Path, session: &str) -> io::Result<WrittenDown> {
    let Some(opened) = opened(file)? else { return Ok(WrittenDown::default()) };
    if is_database(file) {
        let only = Some(("session_id", session));
        let parts = ForeignTexts { table: "part", column: "data", sorted: "time_created", only };
        let mut transcript = Transcript::default();
        for part in texts(file, &parts).map_err(io::Error::other)? {
            transcript.take(&part);
        }
        return Ok(WrittenDown { calls: transcript.calls(), unread: None });
    }
    let length = opened.metadata()?.len();
    read(opened, length, MAX_LINE_BYTES)
}

/// What `from`, of `length` bytes, holds, whose lines have at most `max` bytes. Bytes that are no text become signs for
/// that: a conversation with such a byte is no less read.
fn read(from: impl Read, length: u64, max: u64) -> io::Result<WrittenDown> {
    if length <= max {
        let mut bytes = Vec::new();
        // What is added meanwhile is read the next time.
        from.take(max).read_to_end(&mut bytes)?;
        return Ok(WrittenDown { calls: transcript_calls(&String::from_utf8_lossy(&bytes)), unread: None });
    }
    let (mut lines, mut line) = (BufReader::new(from), Vec::new());
    let (mut transcript, mut whole, mut long) = (Transcript::default(), 0_u64, 0_u64);
    let mut torn = 0_u64;
    loop {
        line.clear();
        let read = lines.by_ref().take(max).read_until(b'\n', &mut line)?;
        if read == 0 {
            break;
        }
        if line.last() != Some(&b'\n') && read as u64 >= max {
            long += 1;
            lines.skip_until(b'\n')?;
            continue;
        }
        match transcript.take(&String::from_utf8_lossy(&line)) {
            true => whole += 1,
            false => torn += 1,
        }
    }
    let unread = if whole <= torn {
        Some(format!("it could not be read: it has {length} bytes, and most of its lines are no documents"))
    } else {
        (long > 0).then(|| format!("lines of more than {max} bytes were not read: {long}"))
    };
    Ok(WrittenDown { calls: transcript.calls(), unread })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(id: &str) -> String {
        format!(
            "{{\"type\":\"tool_use\",\"id\":\"{id}\",\"name\":\"Bash\",\"input\":{{}}}}\n{{\"type\":\"tool_result\",\"tool_use_id\":\"{id}\",\"content\":\"out\"}}\n"
        )
    }

    #[test]
    fn neither_length_nor_bytes_hide_a_call() {
        let check = |bytes: &[u8], max: u64| {
            let found = read(bytes, bytes.len() as u64, max).unwrap();
            let ids: Vec<String> = found.calls.into_iter().filter_map(|call| call.id).collect();
            (ids.join(" "), found.unread.is_some())
        };
        let both = [written("a").into_bytes(), b"{\"text\": \"\xff\"}\n".to_vec(), written("b").into_bytes()].concat();
        let long = [written("a"), format!("\"{}\"\n", "x".repeat(500)), written("b"), "{\"half".to_owned()].concat();
        for max in [100, 10_000] {
            assert_eq!(check(&both, max), ("a b".into(), false), "{max}");
        }
        assert_eq!(check(long.as_bytes(), 10_000), ("a b".into(), false));
        assert_eq!(check(long.as_bytes(), 100), ("a b".into(), true));
        let document = format!("[\n{}\n]", "  {\n    \"a\":\n      1\n  },\n".repeat(200));
        assert_eq!(check(document.as_bytes(), 100), (String::new(), true));
        assert_eq!(check(b"", 100), (String::new(), false));
    }
}
