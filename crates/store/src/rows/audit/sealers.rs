//! Who sealed the newest entries about changes: a host with the keys at hand, or another one.

use pintle_domain::audit::{ChangeKey, ChangeProof, Hash};
use pintle_domain::json::Object;

use crate::db::{Db, Failure};

/// How many of the newest entries about changes are looked at: more than a host that has its keys goes without one of
/// its own among them.
const ENTRIES: usize = 200;

/// Of the newest entries about changes that have a seal, the newest first: whether it is one of `key`.
pub(crate) fn whose_seals(db: &dyn Db, key: Option<&ChangeKey>) -> Result<Vec<bool>, Failure> {
    let sql =
        format!("SELECT body, prev FROM audit_log WHERE kind = 'change' ORDER BY at DESC, seq DESC LIMIT {ENTRIES}");
    let mut found = Vec::new();
    db.each(&sql, &[], &mut |row| {
        // What cannot be read says nothing of a key; whoever verifies the chain names it.
        let Ok(body) = crate::body::read::<Object>(&row.text("body")?) else { return Ok(()) };
        let Ok(prev) = row.text("prev")?.parse::<Hash>() else { return Ok(()) };
        match ChangeKey::proof(key, &prev, &body) {
            ChangeProof::Sealed => found.push(true),
            ChangeProof::OtherKey => found.push(false),
            ChangeProof::Unsealed => {}
        }
        Ok(())
    })?;
    Ok(found)
}
