//! Whether a store was sealed with another key than those at hand. What a host with the wrong key seals, no other host
//! takes, so it is refused before anything is written.

use pintle_domain::audit::{ChangeKey, RowProof};
use pintle_domain::json::Value;
use pintle_domain::store::StoreError;

use super::{keys, members};
use crate::db::{Db, Failure};
use crate::keyring::ENV_KEYS;
use crate::keyring::signing::ENV_SIGNING_KEY;
use crate::rows::audit::whose_seals;

/// The sentence about a store that another key sealed.
pub(crate) fn sentence() -> String {
    format!(
        "the key here differs from the one that sealed this store: no other host would take what is written with it; set \
         `{}` (or `{ENV_SIGNING_KEY}`, where hosts share that one) as it is set for the hosts of this store, or put the \
         file with the key back",
        ENV_KEYS[0]
    )
}

/// Refuses to seal anything with `key` in a store that another key sealed.
pub(crate) fn refuse(db: &dyn Db, key: Option<&ChangeKey>) -> Result<(), Failure> {
    match key.map(|key| is_other(db, Some(key))).transpose()? {
        Some(true) => Err(Failure::Said(StoreError::Conflict(sentence()))),
        Some(false) | None => Ok(()),
    }
}

/// Whether another key than `key` sealed what is in the store: members and keys of which not one holds here. A single
/// row may have been changed by somebody, so the newest entry about changes has to be another key's as well. Where there
/// is no such row, nobody can tell: a key that was replaced seals the entries of before, and nothing seals them anew.
pub(crate) fn is_other(db: &dyn Db, key: Option<&ChangeKey>) -> Result<bool, Failure> {
    Ok(rows_hold(db, key)? == Some(false) && whose_seals(db, key)?.first() != Some(&true))
}

/// The same as far as it can be told where there is no such row, either.
pub(crate) fn may_be_other(db: &dyn Db, key: Option<&ChangeKey>) -> Result<bool, Failure> {
    let hold = rows_hold(db, key)?;
    if hold == Some(true) {
        return Ok(false);
    }
    let newest = whose_seals(db, key)?.first().copied();
    Ok(if hold.is_some() { newest != Some(true) } else { newest == Some(false) })
}

/// Whether any member or key holds here; nothing where none has a seal.
fn rows_hold(db: &dyn Db, key: Option<&ChangeKey>) -> Result<Option<bool>, Failure> {
    let rows: Vec<(Value, Option<String>)> = members::every(db)?
        .0
        .into_iter()
        .map(|row| (row.says, row.seal))
        .chain(keys::every(db)?.0.into_iter().map(|row| (row.says, row.seal)))
        .collect();
    let mut hold = None;
    for (says, seal) in &rows {
        match ChangeKey::row_proof(key, says, seal.as_deref()) {
            RowProof::Sealed { .. } => return Ok(Some(true)),
            RowProof::Other => hold = Some(false),
            RowProof::Unsealed => {}
        }
    }
    Ok(hold)
}
