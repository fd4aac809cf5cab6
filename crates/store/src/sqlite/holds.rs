//! Who holds a session: the lock says whether, a row says who.

use std::sync::Arc;

use pintle_domain::store::{SessionKey, StoreError};
use rusqlite::Connection;

use super::holder::Holder;
use super::locks::{Held, Locks};
use crate::db::{Db, Failure};
use crate::refusal;

/// Takes `key`. The lock and its note belong together because both are taken while nobody else may write.
pub(super) fn hold(transaction: &Connection, locks: &Arc<Locks>, key: &SessionKey) -> Result<Held, Failure> {
    let Some(held) = locks.take(key).map_err(Failure::Said)? else {
        return Err(Failure::Said(in_use(transaction, key)?));
    };
    let me = Holder::me();
    transaction.run(
        "INSERT INTO holders (tenant_id, session_id, pid, started) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT DO UPDATE SET pid = excluded.pid, started = excluded.started",
        &[key.tenant.as_str().into(), key.session.as_str().into(), me.pid.into(), me.started.into()],
    )?;
    Ok(held)
}

fn in_use(db: &Connection, key: &SessionKey) -> Result<StoreError, Failure> {
    Ok(refusal::in_use(&key.session, &noted(db, key)?))
}

/// Who has `key`, if anybody has.
pub(super) fn held_by(db: &dyn Db, locks: &Locks, key: &SessionKey) -> Result<Option<String>, Failure> {
    if locks.is_taken(key).map_err(Failure::Said)? { noted(db, key).map(Some) } else { Ok(None) }
}

/// The name of whoever took `key` last.
fn noted(db: &dyn Db, key: &SessionKey) -> Result<String, Failure> {
    let sql = "SELECT pid, started FROM holders WHERE tenant_id = ?1 AND session_id = ?2";
    let holder = db.one(sql, &[key.tenant.as_str().into(), key.session.as_str().into()], |row| {
        let pid = u32::try_from(row.int("pid")?).ok();
        Ok(pid.map(|pid| (pid, row.maybe_int("started"))))
    })?;
    let Some((pid, started)) = holder.flatten() else { return Ok("another process".into()) };
    Ok(Holder { pid, started: started? }.name())
}
