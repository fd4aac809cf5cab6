//! What a store says of itself to whoever knew it before.

use std::collections::{BTreeMap, BTreeSet};

use domain::anchor::{Anchor, AnchoredRule, ChainSeen, RuleEntry, RuleLeft, StoreSeen};
use domain::audit::{ChainHead, Hash};
use domain::id::{HookId, TenantId};
use domain::json::{self, Object, Value};
use domain::rule::Rule;
use domain::store::StoredRules;

use super::audit::{audited, head, number};
use crate::db::{Db, Failure};

/// The member of an entry that counts the changes of rules.
pub(super) const EPOCH: &str = "epoch";

/// The member of an entry that says how it left the rule.
pub(super) const ROW: &str = "row";

/// What `anchor` is compared with. In one transaction with what was `found`, or the parts do not fit together.
pub(crate) fn seen(db: &dyn Db, anchor: Option<&Anchor>, found: &StoredRules) -> Result<StoreSeen, Failure> {
    let store_id = db.one("SELECT store_id FROM store_identity WHERE id = 1", &[], |row| row.string("store_id"))?;
    let store_id = store_id
        .ok_or_else(|| Failure::Foreign { what: "table `store_identity`".into(), why: "its row is gone".into() })?;
    let unreadable: BTreeSet<&HookId> = found.doubts.iter().map(|odd| &odd.hook).collect();
    let rules = found.hooks.iter().filter(|rule| !unreadable.contains(&rule.id));
    let mut seen = StoreSeen {
        store_id,
        epoch: found.epoch,
        rules: rules.map(|rule| (rule.id.clone(), AnchoredRule::of(rule, &trips_of(rule, found)))).collect(),
        unreadable: found.doubts.clone(),
        tenants: found.tenants.iter().map(|tenant| (tenant.id.clone(), tenant.slug.clone())).collect(),
        ..StoreSeen::default()
    };
    let anchor = anchor.filter(|anchor| anchor.store_id == seen.store_id);
    let mut tenants: BTreeSet<TenantId> = audited(db)?.into_iter().collect();
    tenants.extend(anchor.iter().flat_map(|anchor| anchor.chains.keys().cloned()));
    for tenant in tenants {
        let before = anchor.and_then(|anchor| anchor.chains.get(&tenant));
        let chain = chain(db, &tenant, before.map_or(0, |before| before.seq))?;
        changes(db, &tenant, before.map_or(0, |before| before.read_to), &mut seen.changes)?;
        seen.chains.insert(tenant, chain);
    }
    Ok(seen)
}

fn trips_of(rule: &Rule, found: &StoredRules) -> BTreeMap<TenantId, String> {
    let own = found.trips.iter().filter(|trip| trip.hook_id == rule.id);
    own.map(|trip| (trip.tenant_id.clone(), trip.tripped_at.clone())).collect()
}

/// The chain of `tenant`, whose last row was `anchored`.
fn chain(db: &dyn Db, tenant: &TenantId, anchored: u64) -> Result<ChainSeen, Failure> {
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
    Ok(ChainSeen { head, anchored, cut })
}

/// What the rows of a chain behind `read_to` say of rules.
fn changes(db: &dyn Db, tenant: &TenantId, read_to: u64, into: &mut Vec<RuleEntry>) -> Result<(), Failure> {
    let sql = "SELECT seq, body, prev, hash FROM audit_log WHERE tenant_id = ?1 AND seq > ?2 \
               AND kind IN ('change', 'trip') ORDER BY seq";
    db.each(sql, &[tenant.as_str().into(), number(read_to)], &mut |row| {
        let (seq, body) = (row.count("seq")?, row.text("body")?);
        let hash = |column: &str| Ok::<_, Failure>(row.text(column)?.parse::<Hash>().ok());
        // An entry that was changed says nothing.
        let is_whole = hash("prev")?.zip(hash("hash")?).is_some_and(|(prev, hash)| Hash::of(&prev, &body) == hash);
        into.extend(is_whole.then(|| entry(seq, &body)).flatten());
        Ok(())
    })
}

fn entry(seq: u64, body: &str) -> Option<RuleEntry> {
    let body: Object = crate::body::read(body).ok()?;
    let data = body.get("data")?.as_object()?;
    let hook = HookId::from(data.get("hook_id")?.as_str()?);
    let epoch = data.get(EPOCH).and_then(Value::as_u64);
    let left = match data.get(ROW) {
        None => RuleLeft::Unsaid,
        Some(Value::Null) => RuleLeft::Gone,
        Some(rule) => RuleLeft::As(Box::new(json::from_value(rule.clone()).ok()?)),
    };
    Some(RuleEntry { order: (epoch.unwrap_or(0), seq), hook, left })
}
