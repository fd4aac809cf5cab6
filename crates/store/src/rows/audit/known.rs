//! A chain held against what is known of it outside of the store.

use pintle_domain::anchor::{Anchor, ChainSeen};
use pintle_domain::audit::{ChainHead, Hash};
use pintle_domain::id::TenantId;

use super::{head, last_signed, number};
use crate::anchor_file::AnchorNow;
use crate::db::{Db, Failure};

/// Which store it is.
pub(crate) fn store_id(db: &dyn Db) -> Result<String, Failure> {
    let found = db.one("SELECT store_id FROM store_identity WHERE id = 1", &[], |row| row.string("store_id"))?;
    found.ok_or_else(|| Failure::Foreign { what: "table `store_identity`".into(), why: "its row is gone".into() })
}

/// The chain of `tenant`, whose last row was `anchored`.
pub(crate) fn chain_seen(db: &dyn Db, tenant: &TenantId, anchored: u64) -> Result<ChainSeen, Failure> {
    let head: ChainHead = head(db, tenant)?;
    let hash = "SELECT hash FROM audit_log WHERE tenant_id = ?1 AND seq = ?2";
    let hash = db.one(hash, &[tenant.as_str().into(), number(anchored)], |row| row.string("hash"))?;
    let first = "SELECT seq FROM audit_log WHERE tenant_id = ?1 ORDER BY seq LIMIT 1";
    let first = db.one(first, &[tenant.as_str().into()], |row| row.count("seq"))?;
    let cut = first.map_or(head.seq, |first| first.saturating_sub(1));
    let anchored = match (hash, head.seq == anchored) {
        // What is no hash is not the one that was there.
        (Some(hash), _) => Some(hash.parse().unwrap_or(Hash::ZERO)),
        (None, true) => Some(head.hash),
        (None, false) => None,
    };
    let signed = last_signed(db, tenant)?.map_or(0, |link| link.seq);
    Ok(ChainSeen { head, anchored, cut, signed })
}

/// Why the chain of `tenant` is not relied on: it, or the whole store, is not what was known. That was read before the
/// transaction began, or while the chain is locked: others write there of rows that are not seen before.
pub(crate) fn doubt(db: &dyn Db, known: &AnchorNow, tenant: &TenantId) -> Result<Option<String>, Failure> {
    match (&known.shut, &known.anchor) {
        (Some(why), _) => Ok(Some(why.clone())),
        (None, None) => Ok(None),
        (None, Some(anchor)) => differs(db, anchor, (tenant, known.is_good)),
    }
}

/// Where the whole store has another name, whoever reads its rules compares the rest: `is_good` says that somebody did,
/// and found nothing.
fn differs(db: &dyn Db, anchor: &Anchor, (tenant, is_good): (&TenantId, bool)) -> Result<Option<String>, Failure> {
    if anchor.store_id != store_id(db)? {
        return Ok((!is_good).then(|| "the store is another one than the one that was known".to_owned()));
    }
    let Some(before) = anchor.chains.get(tenant) else { return Ok(None) };
    let seen = chain_seen(db, tenant, before.seq)?;
    Ok(anchor.differs(tenant, Some(&seen)).or_else(|| anchor.unsigned(tenant, seen.signed)))
}
