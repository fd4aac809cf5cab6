//! The file form of a chain: JSON Lines, each an entry or a checkpoint.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{AuditCheckpoint, AuditEntry, Hash, MAX_BODY_BYTES, MAX_SEQ};
use crate::id::TenantId;

/// Longest line, in bytes without its break: the quotes and backslashes of a body are escaped once more, and the
/// other members are short.
pub const MAX_LINE_BYTES: usize = 2 * MAX_BODY_BYTES + 4096;

/// Longest tenant id, key id or signature, in bytes; those in use stay below 100.
pub(super) const MAX_WORD_BYTES: usize = 256;

/// Longest complaint about a line, in characters: it may repeat a name from the line.
const MAX_WHY_CHARS: usize = 300;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditLine {
    /// A row.
    Entry(AuditEntry),
    /// A signature; it stands after its row.
    Checkpoint(AuditCheckpoint),
}

/// A line that is neither an entry nor a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct AuditLineError {
    /// Its number, counted from 1.
    pub line: u64,
    /// The reason why the line cannot be read.
    pub why: String,
}

/// The member that tells the two apart; everything else is passed over here.
#[derive(Deserialize)]
struct Tag {
    r#type: Type,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Type {
    Entry,
    Checkpoint,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryLine {
    r#type: Type,
    tenant_id: String,
    seq: u64,
    at: String,
    kind: String,
    body: String,
    prev: String,
    hash: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckpointLine {
    r#type: Type,
    tenant_id: String,
    seq: u64,
    hash: String,
    at: String,
    kid: String,
    signature: String,
}

impl fmt::Display for AuditLine {
    /// The line as it is exported, without a line break.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let json = match self {
            Self::Entry(entry) => serde_json::to_string(&EntryLine {
                r#type: Type::Entry,
                tenant_id: entry.tenant_id.to_string(),
                seq: entry.seq,
                at: entry.at.to_string(),
                kind: entry.kind.word().into(),
                body: entry.body.clone(),
                prev: entry.prev.to_string(),
                hash: entry.hash.to_string(),
            }),
            Self::Checkpoint(point) => serde_json::to_string(&CheckpointLine {
                r#type: Type::Checkpoint,
                tenant_id: point.tenant_id.to_string(),
                seq: point.seq,
                hash: point.hash.to_string(),
                at: point.at.to_string(),
                kid: point.kid.clone(),
                signature: point.signature.clone(),
            }),
        };
        f.write_str(&json.expect("texts and numbers always serialise"))
    }
}

/// Reads the line with this number, given without its break. Its body is left as it stands: it is what was hashed.
///
/// # Errors
/// It is too long, no JSON, or not exactly an entry or a checkpoint.
pub fn read_line(number: u64, bytes: &[u8]) -> Result<AuditLine, AuditLineError> {
    read(bytes).map_err(|why| AuditLineError { line: number, why })
}

fn read(bytes: &[u8]) -> Result<AuditLine, String> {
    if bytes.len() > MAX_LINE_BYTES {
        return Err(too_long());
    }
    let text = std::str::from_utf8(bytes).map_err(|e| format!("byte {} is not UTF-8", e.valid_up_to() + 1))?;
    if !text.trim_ascii_start().starts_with('{') {
        return Err("it is not a JSON object".into());
    }
    // The type is read first, so that everything after it is read with one known shape.
    match from_json::<Tag>(text)?.r#type {
        Type::Entry => entry(from_json(text)?).map(AuditLine::Entry),
        Type::Checkpoint => checkpoint(from_json(text)?).map(AuditLine::Checkpoint),
    }
}

fn entry(line: EntryLine) -> Result<AuditEntry, String> {
    Ok(AuditEntry {
        tenant_id: TenantId::new(word("tenant_id", line.tenant_id)?),
        seq: seq(line.seq)?,
        at: at(&line.at)?,
        kind: line.kind.parse().map_err(|why| format!("`kind`: {why}"))?,
        body: line.body,
        prev: hash("prev", &line.prev)?,
        hash: hash("hash", &line.hash)?,
    })
}

fn checkpoint(line: CheckpointLine) -> Result<AuditCheckpoint, String> {
    Ok(AuditCheckpoint {
        tenant_id: TenantId::new(word("tenant_id", line.tenant_id)?),
        seq: seq(line.seq)?,
        hash: hash("hash", &line.hash)?,
        at: at(&line.at)?,
        kid: word("kid", line.kid)?,
        signature: word("signature", line.signature)?,
    })
}

fn from_json<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|e| {
        // The number of the line is known better by the caller than by the parser, which sees a single one.
        let why = e.to_string().replace(" at line 1 column", " at column");
        // It may repeat a name from the line, which is not to act on the terminal of whoever reads it.
        why.chars().take(MAX_WHY_CHARS).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
    })
}

fn word(member: &str, text: String) -> Result<String, String> {
    let fits = !text.is_empty() && text.len() <= MAX_WORD_BYTES && !text.contains(char::is_control);
    if fits { Ok(text) } else { Err(format!("`{member}` is not 1 to {MAX_WORD_BYTES} bytes of plain text")) }
}

fn seq(number: u64) -> Result<u64, String> {
    let fits = (1..=MAX_SEQ).contains(&number);
    if fits { Ok(number) } else { Err(format!("`seq` is {number}; rows are counted from 1 to {MAX_SEQ}")) }
}

fn at(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| "`at` is not a time such as `2026-01-31T12:00:00.5Z`".into())
}

fn hash(member: &str, text: &str) -> Result<Hash, String> {
    text.parse().map_err(|why| format!("`{member}`: {why}"))
}

fn too_long() -> String {
    format!("longer than {MAX_LINE_BYTES} bytes")
}

/// Cuts what is read from a file, in pieces of any size, into lines. No more than one line is kept, and of a line
/// that is too long nothing. Empty lines are passed over; they count.
#[derive(Debug, Default)]
pub struct AuditLines {
    number: u64,
    partial: Vec<u8>,
    over: bool,
}

impl AuditLines {
    /// Takes the next piece of the file; `each` gets every line that ends in it.
    pub fn feed(&mut self, piece: &[u8], mut each: impl FnMut(Result<AuditLine, AuditLineError>)) {
        let mut rest = piece;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            self.keep(&rest[..end]);
            self.end_line(&mut each);
            rest = &rest[end + 1..];
        }
        self.keep(rest);
    }

    /// The file is over; `each` gets its last line, if it has no break.
    pub fn end(mut self, mut each: impl FnMut(Result<AuditLine, AuditLineError>)) {
        if self.over || !self.partial.is_empty() {
            self.end_line(&mut each);
        }
    }

    fn keep(&mut self, part: &[u8]) {
        self.over |= self.partial.len() + part.len() > MAX_LINE_BYTES;
        if self.over {
            self.partial = Vec::new();
        } else {
            self.partial.extend_from_slice(part);
        }
    }

    fn end_line(&mut self, each: &mut impl FnMut(Result<AuditLine, AuditLineError>)) {
        self.number += 1;
        let (number, over) = (self.number, std::mem::take(&mut self.over));
        if over {
            each(Err(AuditLineError { line: number, why: too_long() }));
        } else if !self.partial.is_empty() {
            each(read_line(number, &self.partial));
        }
        self.partial.clear();
    }
}
