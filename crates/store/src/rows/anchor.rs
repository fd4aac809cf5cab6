//! What a store says of itself to whoever knew it before.

use std::collections::{BTreeMap, BTreeSet};

use pintle_domain::anchor::{Anchor, AnchoredRule, RuleEntry, RuleLeft, StoreSeen};
use pintle_domain::audit::{ChangeKey, Hash};
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::json::{self, Object, Value};
use pintle_domain::rule::Rule;
use pintle_domain::store::StoredRules;

use super::audit::{audited, chain_seen, number, store_id};
use crate::db::{Columns, Db, Failure};

/// The member of an entry that counts the changes of rules.
pub(super) const EPOCH: &str = "epoch";

/// The member of an entry that says how it left the rule.
pub(super) const ROW: &str = "row";

/// What `anchor` is compared with, entries examined with `key`. In one transaction with what was `found`, or the parts do
/// not fit together.
pub(crate) fn seen(
    db: &dyn Db,
    (anchor, key): (Option<&Anchor>, Option<&ChangeKey>),
    found: &StoredRules,
) -> Result<StoreSeen, Failure> {
    let store_id = store_id(db)?;
    let unreadable: BTreeSet<&HookId> = found.doubts.iter().map(|odd| &odd.hook).collect();
    let rules = found.hooks.iter().filter(|rule| !unreadable.contains(&rule.id));
    let mut seen = StoreSeen {
        store_id,
        epoch: found.epoch,
        rules: rules.map(|rule| (rule.id.clone(), AnchoredRule::of(rule, &trips_of(rule, found)))).collect(),
        is_keyed: key.is_some(),
        unreadable: found.doubts.clone(),
        tenants: found.tenants.iter().map(|tenant| (tenant.id.clone(), tenant.slug.clone())).collect(),
        ..StoreSeen::default()
    };
    let own = anchor.filter(|anchor| anchor.store_id == seen.store_id);
    let mut tenants: BTreeSet<TenantId> = audited(db)?.into_iter().collect();
    tenants.extend(own.iter().flat_map(|own| own.chains.keys().cloned()));
    for tenant in tenants {
        // Whatever the store calls itself now, that row tells whether its chain is the one that was known.
        let before = anchor.and_then(|anchor| anchor.chains.get(&tenant));
        let chain = chain_seen(db, &tenant, before.map_or(0, |before| before.seq))?;
        let goes_on = anchor.is_some_and(|anchor| anchor.differs(&tenant, Some(&chain)).is_none());
        let read = before.filter(|_| goes_on).map(|it| Read { to: it.read_to, but: &it.unproven });
        changes(db, (&tenant, key), read.as_ref(), &mut seen.changes)?;
        seen.chains.insert(tenant, chain);
    }
    Ok(seen)
}

fn trips_of(rule: &Rule, found: &StoredRules) -> BTreeMap<TenantId, String> {
    let own = found.trips.iter().filter(|trip| trip.hook_id == rule.id);
    own.map(|trip| (trip.tenant_id.clone(), trip.tripped_at.clone())).collect()
}

/// What was read of a chain before.
struct Read<'a> {
    /// The last row.
    to: u64,
    /// Rows up to that one that said nothing, since nothing proved them.
    but: &'a BTreeSet<u64>,
}

/// What the rows of a chain say of rules that were not read.
fn changes(
    db: &dyn Db,
    (tenant, key): (&TenantId, Option<&ChangeKey>),
    read: Option<&Read<'_>>,
    into: &mut Vec<RuleEntry>,
) -> Result<(), Failure> {
    let mut take = |row: &dyn Columns| {
        let (seq, body) = (row.count("seq")?, row.text("body")?);
        let hash = |column: &str| Ok::<_, Failure>(row.text(column)?.parse::<Hash>().ok());
        // An entry that was changed says nothing.
        let whole = hash("prev")?.zip(hash("hash")?).filter(|(prev, hash)| Hash::of(prev, &body) == *hash);
        into.extend(whole.and_then(|(prev, _)| entry((tenant, seq), (&prev, &body), key)));
        Ok(())
    };
    for seq in read.iter().flat_map(|read| read.but) {
        let sql = "SELECT seq, body, prev, hash FROM audit_log WHERE tenant_id = ?1 AND seq = ?2 \
                   AND kind IN ('change', 'trip')";
        db.each(sql, &[tenant.as_str().into(), number(*seq)], &mut take)?;
    }
    let sql = "SELECT seq, body, prev, hash FROM audit_log WHERE tenant_id = ?1 AND seq > ?2 \
               AND kind IN ('change', 'trip') ORDER BY seq";
    db.each(sql, &[tenant.as_str().into(), number(read.map_or(0, |read| read.to))], &mut take)
}

fn entry((tenant, seq): (&TenantId, u64), (prev, body): (&Hash, &str), key: Option<&ChangeKey>) -> Option<RuleEntry> {
    let body: Object = crate::body::read(body).ok()?;
    let proof = ChangeKey::proof(key, prev, &body);
    let data = body.get("data")?.as_object()?;
    let hook = HookId::from(data.get("hook_id")?.as_str()?);
    let epoch = data.get(EPOCH).and_then(Value::as_u64);
    let left = match data.get(ROW) {
        None => RuleLeft::Unsaid,
        Some(Value::Null) => RuleLeft::Gone,
        Some(rule) => RuleLeft::As(Box::new(json::from_value(rule.clone()).ok()?)),
    };
    Some(RuleEntry { order: (epoch.unwrap_or(0), seq), tenant: tenant.clone(), proof, hook, left })
}
