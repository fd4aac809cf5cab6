//! Rows of members and keys that somebody takes as they are: each is named, told in the audit chain, and sealed.

use pintle_domain::audit::{AuditKind, ChangeKey};
use pintle_domain::id::TenantId;
use pintle_domain::json::{Value, canonical};
use pintle_domain::store::{Actor, ApiKey, IdentityAction, IdentityChange, Member};

use super::sealed_row::SealedRow;
use super::seals::{LastSaid, RowDoubt, RowSeals, named, seal_key, seal_member, slug, slugs};
use super::{keys, members};
use crate::db::{Db, Failure};
use crate::evidence::{self, Note};
use crate::rows::audit::head;
use crate::rules;
use crate::sealing::StoreKeys;

/// A row that is taken.
pub(crate) struct TakenRow {
    row: Row,
    /// What is said of it; nothing where it counts, and is only sealed behind the end of the chain that is there now.
    told: Option<Told>,
}

enum Row {
    Member(SealedRow<Member>),
    Key(SealedRow<ApiKey>),
}

struct Told {
    /// What it is from now on.
    line: String,
    /// Why it did not count.
    why: String,
}

/// The rows that are taken: those in doubt, and those of which the chain that is there tells nothing yet, as after an
/// older copy. All other rows stay under the seals that they have, whichever of the keys here that is. Until the end of
/// the transaction nobody else changes any.
pub(crate) fn found(db: &dyn Db, keys: &StoreKeys) -> Result<Vec<TakenRow>, Failure> {
    lock(db)?;
    let (seals, slugs) = (RowSeals::of(keys), slugs(db)?);
    let mut found = Vec::new();
    for row in members::every(db)?.0 {
        let doubt = seals.member_doubt(db, &row)?;
        if doubt.is_none() && seals.is_within(&row, head(db, &chain_of(&row.it.tenant))?.seq) {
            continue;
        }
        let last = seals.last_of_member(db, &row.it, 0)?.map(|last| said_of_member(&last));
        let called = format!("the member {} of tenant {}", named(&row.it.user), slug(&slugs, &row.it.tenant));
        let state = member_state(row.it.role.word(), row.it.disabled_at.is_none());
        let told = doubt.map(|doubt| Told::of((called.as_str(), state.as_str()), doubt, last));
        found.push(TakenRow { row: Row::Member(row), told });
    }
    for row in keys::every(db)?.0 {
        let doubt = seals.key_doubt(db, &row)?;
        if doubt.is_none() && seals.is_within(&row, head(db, &chain_of(&row.it.tenant))?.seq) {
            continue;
        }
        let last = seals.last_of_key(db, &row.it, 0)?.map(|last| said_of_key(&last));
        let (id, owner) = (named(&row.it.id), named(&row.it.owner));
        let called = format!("the API key {id} of {owner} in tenant {}", slug(&slugs, &row.it.tenant));
        let told = doubt.map(|doubt| Told::of((called.as_str(), key_state(row.it.revoked_at.is_some())), doubt, last));
        found.push(TakenRow { row: Row::Key(row), told });
    }
    Ok(found)
}

/// Locks of rows come before the lock of a chain.
fn lock(db: &dyn Db) -> Result<(), Failure> {
    let for_update = db.dialect().for_update();
    for rows in
        ["SELECT seal FROM members ORDER BY tenant_id, user_id", "SELECT seal FROM api_keys ORDER BY tenant_id, id"]
    {
        db.each(&format!("{rows}{for_update}"), &[], &mut |_| Ok(()))?;
    }
    Ok(())
}

/// What the audit chain says of the rows that are taken.
pub(crate) fn notes(rows: &[TakenRow], by: &Actor) -> Result<Vec<Note>, Failure> {
    let told = rows.iter().filter_map(|taken| taken.told.as_ref().map(|told| (&taken.row, told)));
    told.map(|(row, told)| {
        let change = match row {
            Row::Member(row) => IdentityChange::MemberAccepted(&row.it),
            Row::Key(row) => IdentityChange::KeyAccepted(&row.it),
        };
        note(&change, &told.why, by)
    })
    .collect()
}

/// The entry that says that somebody takes what `change` is about, which did not count for the reason `why`.
pub(crate) fn note(change: &IdentityChange<'_>, why: &str, by: &Actor) -> Result<Note, Failure> {
    let data = change.data(&Actor { reason: why.to_owned(), ..by.clone() });
    let note = evidence::note(&chain_of(change.tenant()), by.at, AuditKind::Change, &canonical(&data.into()));
    note.map_err(Failure::Said)
}

/// Seals the rows that are taken, as they are at the end of the chain. What is taken of them, for people.
pub(crate) fn seal(db: &dyn Db, key: &ChangeKey, rows: &[TakenRow]) -> Result<Vec<String>, Failure> {
    let end = |tenant: &TenantId| head(db, &chain_of(tenant)).map(|head| head.seq);
    for taken in rows {
        match &taken.row {
            Row::Member(row) => seal_member(db, key, row, end(&row.it.tenant)?)?,
            Row::Key(row) => seal_key(db, key, row, end(&row.it.tenant)?)?,
        }
    }
    Ok(rows.iter().filter_map(|taken| taken.told.as_ref()).map(|told| told.line.clone()).collect())
}

/// The tenant in whose chain it is told: the own one, unless that is none.
pub(crate) fn chain_of(tenant: &TenantId) -> TenantId {
    rules::uuid(tenant.as_str()).map_or_else(TenantId::default_tenant, TenantId::new)
}

impl Told {
    fn of((called, state): (&str, &str), doubt: RowDoubt, last: Option<String>) -> Self {
        let last = last.unwrap_or_else(|| "the audit chain here says nothing of it".to_owned());
        let why = format!("{}; {last}", doubt.why_before());
        Self { line: format!("{called}, from now on {state}: {why}"), why }
    }
}

fn member_state(role: &str, is_enabled: bool) -> String {
    format!("{role}, {}", if is_enabled { "enabled" } else { "disabled" })
}

fn key_state(is_revoked: bool) -> &'static str {
    if is_revoked { "revoked" } else { "live" }
}

fn said_of_member(last: &LastSaid) -> String {
    let role = last.data.get("role").and_then(Value::as_str).unwrap_or_default();
    let is_enabled = last.data.get("enabled").and_then(Value::as_bool).unwrap_or(true);
    let state = match action(last) == Some(IdentityAction::MemberRemoved) {
        true => "removed".to_owned(),
        false => member_state(role, is_enabled),
    };
    format!("the audit chain last said {state} (row {})", last.entry)
}

fn said_of_key(last: &LastSaid) -> String {
    let action = action(last);
    let is_revoked = last.data.get("revoked").and_then(Value::as_bool).unwrap_or(false);
    let state = match action == Some(IdentityAction::MemberRemoved) {
        true => "that its owner was removed",
        false => key_state(is_revoked || action == Some(IdentityAction::KeyRevoked)),
    };
    format!("the audit chain last said {state} (row {})", last.entry)
}

fn action(last: &LastSaid) -> Option<IdentityAction> {
    IdentityAction::named(last.data.get("action")?.as_str()?)
}
