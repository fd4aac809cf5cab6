//! What becomes of a rule when it is changed, tripped or reset, the same whichever store keeps it.

mod account;
mod diff;

use jiff::Timestamp;
use pintle_domain::anchor::AnchoredRule;
use pintle_domain::audit::AuditKind;
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::json::{Object, Value, canonical, json};
use pintle_domain::rule::{HookScope, Rule};
use pintle_domain::store::{Actor, BudgetChange, LoggedChange, NO_HOOK, StoreError, Tenant};
use uuid::Uuid;

use crate::evidence::{self, Note};

pub(crate) use crate::db::moment as column;
pub(crate) use account::{Account, month_of};
pub(crate) use diff::{deletion, diff, trips_diff};

/// The reason of a hook that its circuit breaker took out.
const BREAKER: &str = "breaker";

/// A moment as it is shown, without what no column keeps.
pub(crate) fn moment(at: Timestamp) -> String {
    whole_micros(at).to_string()
}

/// `at` without what is finer than a microsecond.
pub(crate) fn whole_micros(at: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(at.as_microsecond()).expect("it comes from a timestamp, so it is within its bounds")
}

/// A UUID as it is kept; `None` if `text` is none.
pub(crate) fn uuid(text: &str) -> Option<String> {
    Uuid::parse_str(text).ok().map(|uuid| uuid.to_string())
}

/// There is no such hook.
pub(crate) fn no_hook(id: &HookId) -> StoreError {
    StoreError::NotFound(format!("hook not found: {id}"))
}

/// There is no such tenant.
pub(crate) fn no_tenant(id: &TenantId) -> StoreError {
    StoreError::NotFound(format!("tenant not found: {id}"))
}

/// There is such a hook already.
pub(crate) fn hook_taken(id: &HookId) -> StoreError {
    StoreError::Conflict(format!("there is a hook `{id}` already; create it with a fresh id"))
}

/// Another hook is what a new one was to be.
pub(crate) fn place_taken(id: &HookId) -> StoreError {
    StoreError::Conflict(format!("the hook `{id}` has its tenant, scope, event and name already"))
}

/// There is a tenant with this id or this slug already.
pub(crate) fn tenant_taken(id: &TenantId, slug: &str) -> StoreError {
    StoreError::Conflict(format!("there is a tenant with the id `{id}` or the slug `{slug}` already"))
}

/// A row that is to be kept says something that no row can say.
pub(crate) fn unkeepable(what: &str, why: &str) -> StoreError {
    StoreError::Unavailable(format!("{what} cannot be kept: {why}"))
}

/// A new row. It may be older than the store: when it was made is its own.
pub(crate) fn created(hook: Rule, at: Timestamp) -> Result<Rule, StoreError> {
    Ok(Rule { version: 1, updated_at: moment(at), ..spelled(hook)? })
}

/// The row that follows `before`. What is open beside it for one tenant, and what counts, stays.
pub(crate) fn updated(before: &Rule, hook: Rule, if_version: Option<u32>, at: Timestamp) -> Result<Rule, StoreError> {
    if if_version.is_some_and(|wanted| wanted != before.version) {
        return Err(StoreError::Conflict(format!("version conflict: have {}", before.version)));
    }
    Ok(Rule {
        id: before.id.clone(),
        version: before.version.saturating_add(1),
        created_at: before.created_at.clone(),
        updated_at: moment(at),
        ..spelled(hook)?
    })
}

/// The row once its circuit breaker is open; `None` if it does not act anyway, or is open already: who switched it off
/// does not want it to answer, and the breaker answers.
pub(crate) fn tripped(before: &Rule, at: Timestamp) -> Option<Rule> {
    let after = || Rule {
        enabled: false,
        tripped_at: Some(moment(at)),
        disabled_reason: BREAKER.to_owned(),
        version: before.version.saturating_add(1),
        updated_at: moment(at),
        ..before.clone()
    };
    before.enabled.then(after)
}

/// The row once its circuit breaker is closed; `None` if it was not open: who switched it off otherwise has not changed
/// their mind.
pub(crate) fn closed(before: &Rule, at: Timestamp) -> Option<Rule> {
    let after = || Rule {
        enabled: true,
        tripped_at: None,
        disabled_reason: String::new(),
        version: before.version.saturating_add(1),
        updated_at: moment(at),
        ..before.clone()
    };
    before.tripped_at.is_some().then(after)
}

/// A change of a row, as the change log has it.
pub(crate) struct RowChange<'a> {
    /// The row as it stands now.
    pub(crate) hook: &'a Rule,
    /// The tenant in whose name it was changed.
    pub(crate) tenant: &'a TenantId,
    /// The name of what was done.
    pub(crate) action: &'a str,
    /// What is another than before.
    pub(crate) diff: Value,
}

impl<'a> RowChange<'a> {
    /// A change in the name of the tenant that the row belongs to.
    pub(crate) fn of(hook: &'a Rule, action: &'a str, diff: Value) -> Self {
        Self { hook, tenant: &hook.tenant_id, action, diff }
    }

    /// The change in the name of `tenant`.
    pub(crate) fn within(self, tenant: &'a TenantId) -> Self {
        Self { tenant, ..self }
    }
}

/// The line of the change log about a change.
pub(crate) fn logged(change: RowChange<'_>, by: &Actor) -> LoggedChange {
    let RowChange { hook, tenant, action, diff } = change;
    LoggedChange {
        id: Uuid::now_v7().to_string(),
        tenant_id: tenant.clone(),
        hook_id: hook.id.clone(),
        at: moment(by.at),
        actor: by.name.clone(),
        action: action.to_owned(),
        version: hook.version,
        diff,
    }
}

/// The line about a budget, which was `before`.
pub(crate) fn budget_line(tenant: &TenantId, before: i64, change: &BudgetChange) -> LoggedChange {
    let shown = |total: i64, reason: Option<&str>| json!({"budget_total": total, "reason": reason.unwrap_or_default()});
    LoggedChange {
        id: Uuid::now_v7().to_string(),
        tenant_id: tenant.clone(),
        hook_id: NO_HOOK.into(),
        at: moment(change.by.at),
        actor: change.by.name.clone(),
        action: UPDATED.to_owned(),
        version: 0,
        diff: pintle_domain::json::diff(&shown(before, None), &shown(change.total, Some(&change.reason))),
    }
}

/// The line about a rule that somebody else changed, and that is taken so.
pub(crate) fn taken(known: &AnchoredRule, (id, kept): (&HookId, Option<&Rule>), by: &Actor) -> LoggedChange {
    LoggedChange {
        id: Uuid::now_v7().to_string(),
        tenant_id: kept.map_or(&known.tenant_id, |rule| &rule.tenant_id).clone(),
        hook_id: id.clone(),
        at: moment(by.at),
        actor: by.name.clone(),
        action: if kept.is_some() { UPDATED } else { DELETED }.to_owned(),
        version: kept.map_or(0, |rule| rule.version),
        diff: diff(None, kept),
    }
}

/// The entry that the audit chain gets of a line of the change log.
pub(crate) fn noted(line: &LoggedChange) -> (AuditKind, Object) {
    let kind = if line.action == TRIPPED { AuditKind::Trip } else { AuditKind::Change };
    match pintle_domain::json::to_value(line) {
        Ok(Value::Object(data)) => (kind, data),
        Ok(_) | Err(_) => unreachable!("a line is a struct of texts, numbers and JSON"),
    }
}

/// The entry of the audit chain about a line of the change log.
pub(crate) fn note(line: &LoggedChange, at: Timestamp) -> Result<Note, StoreError> {
    let (kind, data) = noted(line);
    evidence::note(&line.tenant_id, at, kind, &canonical(&data.into()))
}

/// Words of the change log that the store itself says.
pub(crate) const CREATED: &str = "created";
const UPDATED: &str = "updated";
pub(crate) const DELETED: &str = "deleted";
pub(crate) const TRIPPED: &str = "tripped";
pub(crate) const RESET: &str = "reset";

/// Whether the circuit breaker of a hook stands in its row, and not beside it for each tenant.
pub(crate) fn trips_itself(hook: &Rule) -> bool {
    hook.scope != HookScope::Global
}

/// Its ids and moments as they are kept.
fn spelled(hook: Rule) -> Result<Rule, StoreError> {
    let what = format!("hook `{}`", hook.id);
    let id = |name: &str, text: &str| {
        uuid(text).ok_or_else(|| unkeepable(&what, &format!("its {name} `{}` is not a UUID", text.escape_debug())))
    };
    let since = |name: &str, text: &String| {
        let at: Timestamp = text.parse().map_err(|e| unkeepable(&what, &format!("its {name}: {e}")))?;
        Ok(moment(at))
    };
    Ok(Rule {
        id: HookId::new(id("id", hook.id.as_str())?),
        tenant_id: TenantId::new(id("tenant_id", hook.tenant_id.as_str())?),
        agent_ids: hook.agent_ids.iter().map(|agent| id("agent_ids", agent)).collect::<Result<_, _>>()?,
        tripped_at: hook.tripped_at.as_ref().map(|text| since("tripped_at", text)).transpose()?,
        created_at: since("created_at", &hook.created_at)?,
        ..hook
    })
}

/// `tenant` as it is kept.
pub(crate) fn tenant(tenant: &Tenant) -> Result<Tenant, StoreError> {
    let what = format!("tenant `{}`", tenant.slug);
    let id = uuid(tenant.id.as_str())
        .ok_or_else(|| unkeepable(&what, &format!("its id `{}` is not a UUID", tenant.id.as_str().escape_debug())))?;
    let at: Timestamp = tenant.created_at.parse().map_err(|e| unkeepable(&what, &format!("its created_at: {e}")))?;
    Ok(Tenant { id: TenantId::new(id), created_at: moment(at), ..tenant.clone() })
}
