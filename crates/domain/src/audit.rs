//! The audit chain: rows of which none can be altered, dropped, moved or put in without it showing.
//!
//! Each tenant has a chain of its own. A row's hash is taken over its body and the hash of the row before it, and the
//! body repeats every other column, so all of them are covered. From time to time the newest hash is signed: whoever
//! has the public key can [verify](Verifier) the rows without trusting the machine they come from.
//!
//! ```
//! use pintle_domain::audit::{AuditKind, ChainHead, append};
//! # let (tenant, now) = (pintle_domain::id::TenantId::from("default"), jiff::Timestamp::UNIX_EPOCH);
//! # let data = pintle_domain::json::Object::new();
//! // In one transaction: read the tenant's head (`ChainHead::GENESIS` if it has no rows), append, insert the entry.
//! let (entry, head) = append(&ChainHead::GENESIS, &tenant, now, AuditKind::Record, data)?;
//! assert_eq!((entry.seq, entry.hash), (1, head.hash));
//! # Ok::<_, pintle_domain::audit::AppendError>(())
//! ```

mod checkpoint;
mod line;
mod row_seal;
mod seal;
mod verify;

use std::fmt::{self, Write as _};
use std::str::FromStr;

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::hex::hex;
use crate::id::TenantId;
use crate::json::{self, Object, Value};

pub use checkpoint::{AuditCheckpoint, CHECKPOINT_EVERY, CHECKPOINT_ROWS, cut_at, due, due_at_stop};
pub use line::{AuditLine, AuditLineError, AuditLines, MAX_LINE_BYTES, read_line};
pub use row_seal::RowProof;
pub use seal::{ChangeKey, ChangeProof};
pub use verify::{AlteredPart, AuditFinding, Proof, TenantReport, Verifier, VerifyReport};

/// The kind of thing that a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AuditKind {
    /// One hook at one event.
    Record,
    /// One tool call that was cleared, with the digest of its permit.
    Decision,
    /// A hook was created, updated, deleted or switched.
    Change,
    /// A breaker tripped.
    Trip,
}

impl AuditKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Record, Self::Decision, Self::Change, Self::Trip];

    /// As it is written.
    pub fn word(self) -> &'static str {
        match self {
            Self::Record => "record",
            Self::Decision => "decision",
            Self::Change => "change",
            Self::Trip => "trip",
        }
    }
}

impl FromStr for AuditKind {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.word() == word);
        found.ok_or_else(|| format!("unknown kind `{}`; known: record, decision, change, trip", word.escape_debug()))
    }
}

/// A SHA-256, written as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hash([u8; 32]);

impl Hash {
    /// The hash that the first row of a chain has in place of a row before it.
    pub const ZERO: Self = Self([0; 32]);

    /// The hash of a row: `SHA-256(prev ‖ 0x0a ‖ body)`, with `prev` as it is written.
    pub fn of(prev: &Self, body: &str) -> Self {
        let mut sha = Sha256::new();
        sha.update(hex(&prev.0));
        sha.update(b"\n");
        sha.update(body);
        Self(sha.finalize().into())
    }

    /// As it is written.
    pub fn to_hex(&self) -> String {
        hex(&self.0)
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Hash {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || "a hash is 64 lower-case hex digits".to_owned();
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        if text.len() != 64 {
            return Err(bad());
        }
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let halves = digit(pair[0]).zip(digit(pair[1]));
            *byte = halves.map(|(high, low)| high << 4 | low).ok_or_else(bad)?;
        }
        Ok(Self(hash))
    }
}

/// The end of a chain: the number and hash of its newest row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainHead {
    /// The row's number; rows are counted from 1.
    pub seq: u64,
    /// Its hash.
    pub hash: Hash,
}

impl ChainHead {
    /// The end of a chain without rows.
    pub const GENESIS: Self = Self { seq: 0, hash: Hash::ZERO };
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// The tenant that owns the chain.
    pub tenant_id: TenantId,
    /// Its number in that chain.
    pub seq: u64,
    /// When, in whole microseconds.
    pub at: Timestamp,
    /// The kind of thing that the row is about.
    pub kind: AuditKind,
    /// Canonical JSON (RFC 8785): `{"at":…,"data":{…},"kind":…,"seq":…,"tenant_id":…}`.
    pub body: String,
    /// The hash of the row before it, or [`Hash::ZERO`].
    pub prev: Hash,
    /// Its own hash.
    pub hash: Hash,
}

/// Longest body of a row, in bytes: the arguments of a call of 10 MiB, even if they must be escaped, take less.
pub const MAX_BODY_BYTES: usize = 32 << 20;

/// Highest number of a row: beyond it, JSON readers that count in doubles take two rows for one.
pub const MAX_SEQ: u64 = (1 << 53) - 1;

/// Why a row cannot be appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The body is longer than what can be exported and read again.
    #[error("audit record could not be written: {0} bytes of JSON, more than {MAX_BODY_BYTES}")]
    TooLong(usize),
    /// The head is no head of a chain that was written here.
    #[error("audit record could not be written: the chain ends at row {0}, and no chain is as long; verify it")]
    Full(u64),
}

/// The row that follows `head` in the chain of `tenant`, and the new head.
///
/// Pure, so whoever calls it reads `head` and inserts the row in one transaction; the primary key (tenant, seq) then
/// refuses a second row in the same place. `at` loses what is finer than a microsecond, since databases keep no more.
///
/// # Errors
/// The row could not be exported, or `head` is none.
pub fn append(
    head: &ChainHead,
    tenant: &TenantId,
    at: Timestamp,
    kind: AuditKind,
    data: Object,
) -> Result<(AuditEntry, ChainHead), AppendError> {
    DraftEntry::new(tenant, at, kind, &json::canonical(&Value::Object(data))).append(head)
}

/// A row whose place in a chain is not known yet. Whoever holds up others between reading a head and inserting the row
/// that follows it makes this before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftEntry {
    tenant_id: TenantId,
    at: Timestamp,
    kind: AuditKind,
    /// Its body up to its number, and what follows that.
    body: [String; 2],
}

impl DraftEntry {
    /// About `data`, which is canonical JSON already: an object as [`json::canonical`] writes it.
    pub fn new(tenant: &TenantId, at: Timestamp, kind: AuditKind, data: &str) -> Self {
        let at = whole_micros(at);
        // The members stand in their canonical order; a moment and the word of a kind need no escapes.
        let word = kind.word();
        let mut before = String::with_capacity(data.len() + ENVELOPE_BYTES);
        write!(before, r#"{{"at":"{at}","data":{data},"kind":"{word}","seq":"#).expect("a text takes everything");
        Self { tenant_id: tenant.clone(), at, kind, body: [before, ending(tenant)] }
    }

    /// The kind of thing that the entry is about.
    pub fn kind(&self) -> AuditKind {
        self.kind
    }

    /// Its body up to its number: with the tenant, the moment and the kind, everything that it is.
    pub fn beginning(&self) -> &str {
        &self.body[0]
    }

    /// The entry whose body begins so. Whether it says the same as `at` and `kind`, whoever verifies the chain finds.
    pub fn of_beginning(tenant: &TenantId, at: Timestamp, kind: AuditKind, beginning: String) -> Self {
        Self { tenant_id: tenant.clone(), at: whole_micros(at), kind, body: [beginning, ending(tenant)] }
    }

    /// The tenant whose chain the entry is for.
    pub fn tenant_id(&self) -> &TenantId {
        &self.tenant_id
    }

    /// When it happened, in whole microseconds.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// The row that it is behind `head`, and the new head.
    ///
    /// # Errors
    /// As [`append`].
    pub fn append(&self, head: &ChainHead) -> Result<(AuditEntry, ChainHead), AppendError> {
        if head.seq >= MAX_SEQ {
            return Err(AppendError::Full(head.seq));
        }
        let (seq, at, kind) = (head.seq + 1, self.at, self.kind);
        let [before, behind] = &self.body;
        let body = [before, seq.to_string().as_str(), behind].concat();
        if body.len() > MAX_BODY_BYTES {
            return Err(AppendError::TooLong(body.len()));
        }
        let hash = Hash::of(&head.hash, &body);
        let entry = AuditEntry { tenant_id: self.tenant_id.clone(), seq, at, kind, body, prev: head.hash, hash };
        Ok((entry, ChainHead { seq, hash }))
    }
}

/// What follows the number.
fn ending(tenant: &TenantId) -> String {
    let tenant_id = json::canonical(&tenant.as_str().into());
    format!(r#","tenant_id":{tenant_id}}}"#)
}

/// The bytes that a row takes beside its data; one with a longer name of a tenant lets its text grow.
const ENVELOPE_BYTES: usize = 160;

fn whole_micros(at: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(at.as_microsecond()).expect("it comes from a timestamp, so it is within its bounds")
}

#[cfg(test)]
mod tests;
