//! Rows of members and keys that get another seal though they do not change: those of before there were seals, once, and
//! those of an older key, when somebody says so. Nobody else may do it: each host knows the keys that it has, and a row
//! under a new one is nothing to those that do not have it yet.

use pintle_domain::audit::{ChangeKey, RowProof};
use pintle_domain::id::TenantId;
use pintle_domain::json::Value;

use super::seals::{seal_key, seal_member};
use super::{keys, members};
use crate::db::{Db, Failure};
use crate::rows::audit::{head, whose_seals};

/// Seals the rows of before there were seals, unless any row has one: with that of `own` that sealed the newest entry
/// about changes of all that they sealed, so that all who know that entry know the rows as well; else with the first.
pub(crate) fn first(db: &dyn Db, own: &[&ChangeKey]) -> Result<(), Failure> {
    if any(db)? {
        return Ok(());
    }
    let mut newest: Option<(usize, &ChangeKey)> = None;
    for &one in own {
        let place = whose_seals(db, Some(one))?.iter().position(|is_own| *is_own);
        if let Some(place) = place.filter(|place| newest.is_none_or(|(before, _)| *place < before)) {
            newest = Some((place, one));
        }
    }
    let Some(key) = newest.map(|(_, one)| one).or(own.first().copied()) else { return Ok(()) };
    // What is taken now is as it is at the end of the chain.
    each(db, key, |tenant, _, seal| match seal {
        None => head(db, tenant).map(|head| Some(head.seq)),
        Some(_) => Ok(None),
    })
}

/// Seals with `key` what a key that is older than it sealed.
pub(crate) fn older(db: &dyn Db, key: &ChangeKey) -> Result<(), Failure> {
    each(db, key, |_, says, seal| {
        Ok(match ChangeKey::row_proof(Some(key), says, seal) {
            RowProof::Sealed { entry, is_current: false } => Some(entry),
            RowProof::Sealed { is_current: true, .. } | RowProof::Other | RowProof::Unsealed => None,
        })
    })
}

/// Seals each row with `key` for which `entry` gives a row of the chain of its tenant, told what it says and its seal.
fn each(
    db: &dyn Db,
    key: &ChangeKey,
    entry: impl Fn(&TenantId, &Value, Option<&str>) -> Result<Option<u64>, Failure>,
) -> Result<(), Failure> {
    for row in members::every(db)?.0 {
        if let Some(entry) = entry(&row.it.tenant, &row.says, row.seal.as_deref())? {
            seal_member(db, key, &row, entry)?;
        }
    }
    for row in keys::every(db)?.0 {
        if let Some(entry) = entry(&row.it.tenant, &row.says, row.seal.as_deref())? {
            seal_key(db, key, &row, entry)?;
        }
    }
    Ok(())
}

/// Whether any row has a seal: then those that have none are not of before.
fn any(db: &dyn Db) -> Result<bool, Failure> {
    let mut tables = ["members", "api_keys"].into_iter();
    tables.try_fold(false, |found, table| {
        let sql = format!("SELECT seal FROM {table} WHERE seal IS NOT NULL LIMIT 1");
        Ok(found || db.one(&sql, &[], |row| row.string("seal"))?.is_some())
    })
}
