//! Sealed values as rows, sealed anew with the key that seals now.

use pintle_domain::id::TenantId;
use pintle_domain::json::{Object, Value};
use pintle_domain::rule::Rule;

use super::{epoch, hooks};
use crate::db::{Cell, Db, Failure, limit_of};
use crate::keyring::{Keyring, SealedPlace};
use crate::{evidence, jsonb, rules};

/// Sorts before the id of every row.
const FIRST: &str = "00000000-0000-0000-0000-000000000000";

/// Sealed values that are whole columns. Secrets of hooks are members of their settings, which others know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealedColumn {
    /// The details of faults.
    Details,
    /// What programs wrote.
    Outputs,
    /// What hooks that only observe are still to be sent.
    Jobs,
}

/// What one batch came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RotationBatch {
    /// How many values there were.
    pub seen: usize,
    /// How many of them were sealed anew; the others were under the key already, or do not open.
    pub rewritten: usize,
    /// Those that do not open. They stay as they are.
    pub failed: Vec<UnopenedValue>,
    /// Where the next batch goes on; nothing after the last.
    pub next: Option<String>,
}

/// A value that does not open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnopenedValue {
    /// The row that it stands in.
    pub id: String,
    /// Why it does not.
    pub why: String,
}

/// Seals at most `limit` values anew, of rows after `after` in the order of ids.
pub(crate) fn column(
    db: &dyn Db,
    what: SealedColumn,
    keyring: &Keyring,
    (after, limit): (Option<&str>, usize),
) -> Result<RotationBatch, Failure> {
    let (read, write) = match what {
        SealedColumn::Details => (
            "SELECT id, tenant_id, error_detail AS sealed FROM hook_executions \
             WHERE error_detail IS NOT NULL AND id > ?1 ORDER BY id LIMIT ?2",
            "UPDATE hook_executions SET error_detail = ?2 WHERE id = ?1 AND error_detail = ?3",
        ),
        SealedColumn::Outputs => (
            "SELECT id, tenant_id, output AS sealed FROM hook_executions \
             WHERE output IS NOT NULL AND id > ?1 ORDER BY id LIMIT ?2",
            "UPDATE hook_executions SET output = ?2 WHERE id = ?1 AND output = ?3",
        ),
        SealedColumn::Jobs => (
            "SELECT id, tenant_id, payload AS sealed FROM hook_outbox WHERE id > ?1 ORDER BY id LIMIT ?2",
            "UPDATE hook_outbox SET payload = ?2 WHERE id = ?1 AND payload = ?3",
        ),
    };
    let found = db.all(read, &[after.unwrap_or(FIRST).into(), limit_of(limit).into()], |row| {
        Ok((row.string("id")?, row.string("tenant_id")?, row.maybe_bytes("sealed")?.unwrap_or_default()))
    })?;
    let mut rotated = RotationBatch::default();
    if found.len() == limit {
        rotated.next = found.last().map(|(id, _, _)| id.clone());
    }
    for (id, tenant, sealed) in found {
        rotated.seen += 1;
        if std::str::from_utf8(&sealed).is_ok_and(|text| keyring.is_current(text)) {
            continue;
        }
        match keyring.reseal_bytes(&place(what, &id, &tenant), &sealed) {
            Ok(None) => {}
            Ok(Some(fresh)) => {
                let (fresh, sealed) = (Cell::Bytes(fresh.into()), Cell::Bytes(sealed.into()));
                // A row that went or changed meanwhile is none of ours any more.
                rotated.rewritten += usize::from(db.run(write, &[id.into(), fresh, sealed])? == 1);
            }
            Err(why) => rotated.failed.push(UnopenedValue { id, why: why.to_string() }),
        }
    }
    Ok(rotated)
}

fn place(what: SealedColumn, id: &str, tenant: &str) -> SealedPlace {
    match what {
        SealedColumn::Details => evidence::place(evidence::DETAIL, id, &TenantId::from(tenant)),
        SealedColumn::Outputs => evidence::place(evidence::OUTPUT, id, &TenantId::from(tenant)),
        SealedColumn::Jobs => super::outbox::place(id, tenant),
    }
}

/// Writes `config` into the row of `before`, if that still has the config that it had. It is not a change of the rule: it
/// says the same as before, so its version, its history and its breaker stay. Who has it in memory reads it anew.
pub(crate) fn config(db: &dyn Db, before: &Rule, config: &Object) -> Result<bool, Failure> {
    epoch::raise(db)?;
    match hooks::by_id(db, &before.id)? {
        Some(now) if now.config == before.config => {}
        Some(_) | None => return Ok(false),
    }
    let unkeepable = |why: String| Failure::Said(rules::unkeepable(&format!("hook `{}`", before.id), &why));
    let text = jsonb::kept(db.dialect(), &Value::Object(config.clone())).map_err(unkeepable)?;
    let sql = "UPDATE agent_hooks SET config = ?2 WHERE id = ?1";
    Ok(db.run(sql, &[before.id.as_str().into(), text.into()])? == 1)
}
