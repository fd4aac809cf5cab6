//! The epoch of the rules, as a row: what counts the changes.

use crate::db::{Db, Dialect, Failure};

/// Where processes that share a database of PostgreSQL listen for changes.
pub(crate) const CHANNEL: &str = "pintle_hooks";

/// What counts the changes.
pub(crate) fn now(db: &dyn Db) -> Result<u64, Failure> {
    let found = db.one("SELECT epoch FROM hook_epoch WHERE id = 1", &[], |row| row.count("epoch"))?;
    found.ok_or_else(no_epoch)
}

/// Raises the epoch and tells the processes that listen. Nobody else changes rules until the end of the transaction.
pub(crate) fn raise(db: &dyn Db) -> Result<u64, Failure> {
    let sql = "UPDATE hook_epoch SET epoch = epoch + 1 WHERE id = 1 RETURNING epoch";
    let epoch = db.one(sql, &[], |row| row.count("epoch"))?.ok_or_else(no_epoch)?;
    if db.dialect() == Dialect::Postgres {
        db.script(&format!("NOTIFY {CHANNEL}, '{epoch}'"))?;
    }
    Ok(epoch)
}

fn no_epoch() -> Failure {
    Failure::Foreign { what: "table `hook_epoch`".into(), why: "its row is gone".into() }
}

/// Nothing was changed that others have to read.
pub(crate) fn lower(db: &dyn Db, raised: u64) -> Result<u64, Failure> {
    // Nobody has seen the number: it is still this transaction's.
    db.run("UPDATE hook_epoch SET epoch = epoch - 1 WHERE id = 1", &[])?;
    Ok(raised.saturating_sub(1))
}
