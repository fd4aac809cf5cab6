//! Signed checkpoints: what makes a chain evidence for somebody who does not trust the machine that wrote it.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::{Hash, Link, whole_micros};
use crate::id::TenantId;
use crate::json::{self, Object};

/// Most rows without a checkpoint. Rows behind the last one can be cut unseen, so it is a small number.
pub const CHECKPOINT_ROWS: u64 = 1000;

/// Longest that a row waits for a checkpoint, for the same reason.
pub const CHECKPOINT_EVERY: Duration = Duration::from_secs(60);

/// What a signed message begins with, so that a signature given for a checkpoint means nothing elsewhere.
const DOMAIN: &str = "pintle audit checkpoint 1\n";

/// One signature over everything up to a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Whose chain.
    pub tenant_id: TenantId,
    /// Up to which row.
    pub seq: u64,
    /// That row's hash.
    pub hash: Hash,
    /// When it was signed, in whole microseconds.
    pub at: Timestamp,
    /// Which key signed.
    pub kid: String,
    /// Ed25519 over [`Checkpoint::message`], in base64.
    pub signature: String,
}

impl Checkpoint {
    /// A checkpoint over everything up to `head`; `sign` turns the message into a signature of the key `kid`.
    pub fn signed(
        tenant: &TenantId,
        head: &Link,
        at: Timestamp,
        kid: &str,
        sign: impl FnOnce(&[u8]) -> String,
    ) -> Self {
        let (tenant_id, kid, at) = (tenant.clone(), kid.to_owned(), whole_micros(at));
        let mut made = Self { tenant_id, seq: head.seq, hash: head.hash, at, kid, signature: String::new() };
        made.signature = sign(&made.message());
        made
    }

    /// The row it names.
    pub fn link(&self) -> Link {
        Link { seq: self.seq, hash: self.hash }
    }

    /// The bytes that are signed: `pintle audit checkpoint 1`, a line break, and the members `at`, `hash`, `kid`,
    /// `seq` and `tenant_id` as canonical JSON.
    pub fn message(&self) -> Vec<u8> {
        let mut members = Object::new();
        members.insert("at".into(), self.at.to_string().into());
        members.insert("hash".into(), self.hash.to_string().into());
        members.insert("kid".into(), self.kid.as_str().into());
        members.insert("seq".into(), self.seq.into());
        members.insert("tenant_id".into(), self.tenant_id.as_str().into());
        format!("{DOMAIN}{}", json::canonical(&Value::Object(members))).into_bytes()
    }
}

/// Whether a checkpoint is due, with `rows` since the last one and `elapsed` since the first of these rows.
pub fn due(rows: u64, elapsed: Duration) -> bool {
    rows >= CHECKPOINT_ROWS || (rows > 0 && elapsed >= CHECKPOINT_EVERY)
}

/// Whether one is due as the program stops.
pub fn due_at_stop(rows: u64) -> bool {
    rows > 0
}
