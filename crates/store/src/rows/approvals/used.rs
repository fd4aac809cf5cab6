//! Approvals held against the audit chain: whoever puts the row of one back as it was before its use does not put the
//! entry about that use out of the chain.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use pintle_domain::approval::{APPROVAL_USED, Approval, ApprovalFlaw, ApprovalState, used_approval};
use pintle_domain::audit::{AuditKind, ChainHead, Hash};
use pintle_domain::id::TenantId;
use pintle_domain::json::{Object, canonical};

use crate::body;
use crate::db::{Db, Failure, moment};
use crate::evidence::{Note, has_chain, note};
use crate::rows::audit;
use crate::rows::audit::{ChainGrowth, number};
use crate::sealing::Proofs;

/// How far clocks of machines that share a database may be apart: what was signed so short before a question is not
/// taken for older than it.
const CLOCKS_APART: SignedDuration = SignedDuration::from_hours(1);

/// Writes into the chain what became of `approval`.
pub(super) fn record(
    db: &dyn Db,
    approval: &Approval,
    (became, now): (Object, Timestamp),
) -> Result<Vec<ChainGrowth>, Failure> {
    if !has_chain(&approval.tenant_id) {
        return Ok(Vec::new());
    }
    let data = canonical(&became.into());
    let note: Note = note(&approval.tenant_id, now, AuditKind::Change, &data).map_err(Failure::Said)?;
    audit::append_all(db, &[&note])
}

/// What the chain of one tenant says since a moment.
#[derive(Default)]
struct Since {
    used: BTreeSet<String>,
    is_broken: bool,
}

/// Names the flaw of each of `found` that would give leave at `now`, and that the chain says was used.
pub(super) fn examine(db: &dyn Db, proofs: &Proofs, found: &mut [Approval], now: Timestamp) -> Result<(), Failure> {
    let gives_leave = |it: &Approval| it.state_at(now) == ApprovalState::Approved;
    let tenants: BTreeSet<TenantId> =
        found.iter().filter(|it| gives_leave(it) && has_chain(&it.tenant_id)).map(|it| it.tenant_id.clone()).collect();
    for tenant in tenants {
        let own = || found.iter().filter(|it| gives_leave(it) && it.tenant_id == tenant);
        let Some(first) = own().map(|it| it.asked_at).min() else { continue };
        let since = since(db, proofs, &tenant, first)?;
        for it in found.iter_mut().filter(|it| gives_leave(it) && it.tenant_id == tenant) {
            it.flaw = if since.used.contains(&it.id) {
                Some(ApprovalFlaw::UsedBefore)
            } else {
                since.is_broken.then_some(ApprovalFlaw::BrokenChain)
            };
        }
    }
    Ok(())
}

/// Reads the chain of `tenant` from the last own signature before `first` on. Where nothing signs, only what it says is
/// looked for: nothing would prove that it says all.
fn since(db: &dyn Db, proofs: &Proofs, tenant: &TenantId, first: Timestamp) -> Result<Since, Failure> {
    let mut since = Since::default();
    let Some(signing) = &proofs.signing else {
        let sql = "SELECT body FROM audit_log WHERE tenant_id = ?1 AND kind IN ('change', 'trip')";
        db.each(sql, &[tenant.as_str().into()], &mut |row| {
            since.take(&row.text("body")?);
            Ok(())
        })?;
        return Ok(since);
    };
    let before = first.checked_sub(CLOCKS_APART).unwrap_or(Timestamp::MIN);
    let sql = "SELECT seq, hash, at, kid, signature FROM audit_checkpoints WHERE tenant_id = ?1 AND at < ?2 \
               AND kid = ?3 ORDER BY seq DESC LIMIT 1";
    let cells = [tenant.as_str().into(), moment(before).into(), signing.kid().into()];
    let point = db.one(sql, &cells, |row| audit::checkpoint(tenant, row))?;
    let from = point.as_ref().map(|point| ChainHead { seq: point.seq, hash: point.hash });
    // The same key signs the same thing the same way.
    let is_signed = |from: &ChainHead| {
        point.as_ref().is_some_and(|it| signing.checkpoint(tenant, from, it.at).signature == it.signature)
    };
    since.is_broken = from.as_ref().is_some_and(|from| !is_signed(from));
    // Whoever forges the rest of a chain deletes the signatures over it.
    if let Some(anchor) = &proofs.anchor {
        since.is_broken |= audit::doubt(db, anchor, tenant)?.is_some();
    }
    let from = match from {
        Some(from) => from,
        None => beginning(db, tenant)?,
    };
    let mut last = Some(from.hash);
    let sql = "SELECT body, prev, hash FROM audit_log WHERE tenant_id = ?1 AND seq > ?2 ORDER BY seq";
    db.each(sql, &[tenant.as_str().into(), number(from.seq)], &mut |row| {
        let (body, prev, hash) = (row.text("body")?, row.text("prev")?, row.text("hash")?);
        let (prev, hash) = (prev.parse::<Hash>().ok(), hash.parse::<Hash>().ok());
        let follows = last.is_some() && prev == last;
        let is_whole = prev.is_some_and(|prev| hash == Some(Hash::of(&prev, &body)));
        since.is_broken |= !follows || !is_whole;
        since.take(&body);
        last = hash;
        Ok(())
    })?;
    Ok(since)
}

/// What the first row of the chain follows: nothing, or where retention has cut it the checkpoint that stayed.
fn beginning(db: &dyn Db, tenant: &TenantId) -> Result<ChainHead, Failure> {
    let sql = "SELECT seq, hash FROM audit_checkpoints WHERE tenant_id = ?1 ORDER BY seq LIMIT 1";
    let oldest = db.one(sql, &[tenant.as_str().into()], audit::link)?;
    let sql = "SELECT seq FROM audit_log WHERE tenant_id = ?1 ORDER BY seq LIMIT 1";
    let first = db.one(sql, &[tenant.as_str().into()], |row| row.count("seq"))?;
    let is_cut = |point: &ChainHead| first.is_none_or(|first| first > point.seq);
    Ok(oldest.filter(is_cut).unwrap_or(ChainHead::GENESIS))
}

impl Since {
    /// Takes what the body of an entry says of a use. One that says something of the kind and cannot be read hides a use.
    fn take(&mut self, body: &str) {
        // Nearly every entry is about something else, and need not be read.
        if !body.contains(APPROVAL_USED) {
            return;
        }
        match body::read::<Object>(body) {
            Ok(body) => self.used.extend(used_approval(&body).map(str::to_owned)),
            Err(_) => self.is_broken = true,
        }
    }
}
