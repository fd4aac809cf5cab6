//! Signed checkpoints: what makes a chain evidence for somebody who does not trust the machine that wrote it.

use std::time::Duration;

use jiff::Timestamp;

use super::{ChainHead, Hash, whole_micros};
use crate::id::TenantId;
use crate::json::{self, Object, Value};

/// Most rows without a checkpoint. Rows behind the last one can be cut unseen, so it is a small number.
pub const CHECKPOINT_ROWS: u64 = 1000;

/// Longest that a row waits for a checkpoint, for the same reason.
pub const CHECKPOINT_EVERY: Duration = Duration::from_secs(60);

/// The text that a signed message begins with, so that a signature given for a checkpoint means nothing elsewhere.
const DOMAIN: &str = "pintle audit checkpoint 1\n";

/// One signature over everything up to a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditCheckpoint {
    /// The tenant that owns the chain.
    pub tenant_id: TenantId,
    /// Up to which row.
    pub seq: u64,
    /// That row's hash.
    pub hash: Hash,
    /// When it was signed, in whole microseconds.
    pub at: Timestamp,
    /// Which key signed.
    pub kid: String,
    /// Ed25519 over [`AuditCheckpoint::message`], in base64.
    pub signature: String,
}

impl AuditCheckpoint {
    /// A checkpoint over everything up to `head`; `sign` turns the message into a signature of the key `kid`.
    pub fn signed(
        tenant: &TenantId,
        head: &ChainHead,
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
    pub fn link(&self) -> ChainHead {
        ChainHead { seq: self.seq, hash: self.hash }
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

/// The row at which a chain is cut that begins with row `first`, so that what was signed before `before` is forgotten:
/// that of the last of `points` within `limit` rows, else of the next one. A chain is cut where a signature stands in
/// for what is gone, and nowhere else.
pub fn cut_at(points: &[AuditCheckpoint], (first, before): (u64, Timestamp), limit: usize) -> Option<u64> {
    let old = points.iter().filter(|point| point.at < before).map(|point| point.seq).max()?;
    let within = first.saturating_add(u64::try_from(limit).unwrap_or(u64::MAX)).saturating_sub(1);
    let places = || points.iter().map(|point| point.seq).filter(|seq| (first..=old).contains(seq));
    places().filter(|seq| *seq <= within).max().or_else(|| places().min())
}

/// Whether one is due as the program stops.
pub fn due_at_stop(rows: u64) -> bool {
    rows > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_cut_at_an_old_signature_and_not_many_rows_at_once() {
        let at = |second: i64| Timestamp::from_second(second).expect("a small number");
        let point = |seq: u64| {
            let head = ChainHead { seq, hash: Hash::ZERO };
            AuditCheckpoint::signed(&TenantId::default_tenant(), &head, at(seq as i64), "k", |_| String::new())
        };
        let points = [10, 20, 30, 90].map(point);
        let check = |first: u64, before: i64, limit: usize, cut: Option<u64>| {
            assert_eq!(cut_at(&points, (first, at(before)), limit), cut, "from {first}, before {before}, {limit} rows");
        };
        check(1, 10, 100, None);
        check(1, 11, 100, Some(10));
        check(1, 31, 100, Some(30));
        check(1, 31, 20, Some(20));
        check(1, 31, 19, Some(10));
        check(1, 31, 0, Some(10));
        check(11, 31, 10, Some(20));
        check(31, 31, 100, None);
        check(31, 100, 5, Some(90));
        assert_eq!(cut_at(&[], (1, at(100)), 9), None);
    }
}
