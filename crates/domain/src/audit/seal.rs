//! Seals on entries about rules: a hash can be made by anybody who can write to the store, a seal only by a host.

use std::fmt;

use super::{AppendError, AuditEntry, ChainHead, DraftEntry, Hash};
use crate::json::{self, Object, Value};
use crate::mac::SealKey;

/// The purpose for which the key is derived.
const INFO: &[u8] = b"pintle-change-1";

/// What is sealed begins so.
const MESSAGE: &str = "pintle audit seal 1";

/// The member of `data` that is the seal.
const SEAL: &str = "seal";

/// The key that seals entries about rules, and older ones whose seals still hold. It is not printed.
#[derive(Clone)]
pub struct ChangeKey(pub(super) SealKey);

/// What proves that a host wrote an entry about a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeProof {
    /// The seal of a key that is known here.
    Sealed,
    /// A seal of another key, or one that somebody made up.
    OtherKey,
    /// Nothing.
    Unsealed,
}

impl ChangeKey {
    /// The key that belongs to a secret of the host.
    pub fn of(secret: &[u8]) -> Self {
        Self(SealKey::of(secret, INFO))
    }

    /// This key, which also takes what `older` sealed.
    #[must_use]
    pub fn and_older(self, older: &Self) -> Self {
        Self(self.0.and_older(&older.0))
    }

    /// What proves the entry with this `body` behind the row with the hash `prev`; with no `key`, nothing does.
    pub fn proof(key: Option<&Self>, prev: &Hash, body: &Object) -> ChangeProof {
        let mut unsealed = body.clone();
        let seal = unsealed.get_mut("data").and_then(Value::as_object_mut).and_then(|data| data.shift_remove(SEAL));
        let Some(Value::String(seal)) = seal else { return ChangeProof::Unsealed };
        match key.is_some_and(|key| key.0.holds(&message(prev, unsealed), &seal)) {
            true => ChangeProof::Sealed,
            false => ChangeProof::OtherKey,
        }
    }

    /// `body` behind the row with the hash `prev`, with its seal in it; nothing if that is no body.
    fn sealed(&self, prev: &Hash, body: &str) -> Option<String> {
        let Value::Object(mut body) = json::parse(body).ok()? else { return None };
        let seal = self.0.seal(&message(prev, body.clone()));
        body.get_mut("data")?.as_object_mut()?.insert(SEAL.to_owned(), seal.into());
        Some(json::canonical(&Value::Object(body)))
    }
}

impl fmt::Debug for ChangeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChangeKey(…)")
    }
}

/// Everything that a seal is over. The row before is part of it, so that no entry can be written once more, neither
/// behind itself nor in another chain.
fn message(prev: &Hash, unsealed: Object) -> Vec<u8> {
    [MESSAGE, &prev.to_hex(), &json::canonical(&Value::Object(unsealed))].join("\n").into_bytes()
}

impl DraftEntry {
    /// The row that it is behind `head`, sealed with `key` if there is one, and the new head.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn append_sealed(
        &self,
        head: &ChainHead,
        key: Option<&ChangeKey>,
    ) -> Result<(AuditEntry, ChainHead), AppendError> {
        let (entry, next) = self.append(head)?;
        let Some(body) = key.and_then(|key| key.sealed(&entry.prev, &entry.body)) else { return Ok((entry, next)) };
        let hash = Hash::of(&head.hash, &body);
        Ok((AuditEntry { body, hash, ..entry }, ChainHead { hash, ..next }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::AuditKind;
    use crate::id::TenantId;

    fn key() -> ChangeKey {
        ChangeKey::of(&[7; 32])
    }

    /// An entry behind the row 4 of a chain.
    fn entry(data: &str, key: Option<&ChangeKey>) -> AuditEntry {
        let head = ChainHead { seq: 4, hash: Hash::of(&Hash::ZERO, "4") };
        let draft = DraftEntry::new(&TenantId::from("t"), jiff::Timestamp::UNIX_EPOCH, AuditKind::Change, data);
        let (entry, next) = draft.append_sealed(&head, key).unwrap();
        assert_eq!((next.seq, next.hash), (5, Hash::of(&head.hash, &entry.body)), "the hash covers the seal");
        entry
    }

    fn proof(key: &ChangeKey, prev: &Hash, body: &str) -> ChangeProof {
        let Value::Object(body) = json::parse(body).unwrap() else { panic!("{body}") };
        ChangeKey::proof(Some(key), prev, &body)
    }

    #[test]
    fn a_seal_is_that_of_its_key_on_its_entry_in_its_place() {
        use ChangeProof::{OtherKey, Sealed, Unsealed};
        let data = r#"{"action":"updated","epoch":3,"hook_id":"h","row":{"digest":"d","n":1.50},"version":2}"#;
        let sealed = entry(data, Some(&key()));
        assert!(sealed.body.contains(r#""row":{"digest":"d","n":1.50},"seal":""#), "{}", sealed.body);
        assert_eq!(proof(&key(), &sealed.prev, &sealed.body), Sealed);
        let newer = ChangeKey::of(&[8; 32]);
        assert_eq!(proof(&newer, &sealed.prev, &sealed.body), OtherKey);
        assert_eq!(proof(&newer.and_older(&key()), &sealed.prev, &sealed.body), Sealed);
        assert_eq!(proof(&key(), &sealed.hash, &sealed.body), OtherKey, "behind another row");
        for (part, other) in [
            ("updated", "deleted"),
            ("\"d\"", "\"e\""),
            ("\"t\"", "\"u\""),
            (":5", ":6"),
            (":3", ":4"),
            ("1970", "1971"),
        ] {
            let edited = sealed.body.replacen(part, other, 1);
            assert_ne!(edited, sealed.body);
            assert_eq!(proof(&key(), &sealed.prev, &edited), OtherKey, "{part}");
        }
        let bare = entry(data, None);
        assert_eq!(proof(&key(), &bare.prev, &bare.body), Unsealed);
        let made_up = bare.body.replace(r#""version":2"#, r#""seal":"AAAA","version":2"#);
        assert_eq!(proof(&key(), &bare.prev, &made_up), OtherKey);
        assert_eq!(proof(&key(), &bare.prev, &made_up.replace(r#""AAAA""#, "7")), Unsealed, "no text is a seal");
        assert_eq!(format!("{:?}", key()), "ChangeKey(…)");
    }
}
