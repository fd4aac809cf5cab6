//! What judges cost, and who changed what.

use pintle_domain::id::TenantId;
use pintle_domain::json::{Value, json};
use pintle_domain::rule::HookScope;
use pintle_domain::store::{Budget, BudgetChange, LoggedChange, StoreError};

use super::changing::said;
use super::history::scope_of;
use super::reading::hook_id;
use super::{AdminError, AdminErrorCode, Caller, CallerRole, RuleAdmin};

impl RuleAdmin {
    /// The budget that the caller's tenant may still spend on judges this month.
    ///
    /// # Errors
    /// The store cannot do it.
    pub async fn budget(&self, by: &Caller) -> Result<Budget, AdminError> {
        by.at_least(CallerRole::Viewer, "budget.get")?;
        let tenant = by.tenant.clone();
        self.blocking(move |rule_admin| Ok(rule_admin.parts.budgets.budget(&tenant, rule_admin.now())?)).await
    }

    /// Sets what a tenant may spend on judges a month, and why, which stands in the change log.
    ///
    /// # Errors
    /// There is no such tenant, or the number is negative; or the caller is no owner.
    pub async fn set_budget(
        &self,
        by: &Caller,
        tenant: &TenantId,
        (total, reason): (i64, &str),
    ) -> Result<Budget, AdminError> {
        if !by.is_master() {
            return Err(AdminError::no_master());
        }
        if total < 0 {
            return Err(AdminError::invalid(format!("budgetTotal must be >= 0, got {total}")));
        }
        let id = uuid::Uuid::parse_str(tenant.as_str()).map_err(|_| AdminError::invalid("invalid tenantId"))?;
        let tenant = TenantId::new(id.to_string());
        let change = BudgetChange { total, by: self.actor(by), reason: said(reason)?.to_owned() };
        self.blocking(move |rule_admin| {
            let set = rule_admin.parts.budgets.set_budget(&tenant, &change);
            set.map_err(|error| match error {
                StoreError::NotFound(_) => {
                    AdminError::new(AdminErrorCode::NotFound, format!("tenant not found: {tenant}"))
                }
                StoreError::Unavailable(_) | StoreError::Corrupt(_) | StoreError::Conflict(_) => error.into(),
            })
        })
        .await
    }

    /// The newest `limit` changes of a hook, also of one that is deleted, newest first. Those that are about other
    /// tenants, and the settings of global hooks, are for owners.
    ///
    /// # Errors
    /// There is no such hook; or the store cannot be read.
    pub async fn changes(&self, by: &Caller, id: &str, limit: usize) -> Result<Vec<LoggedChange>, AdminError> {
        by.at_least(CallerRole::Viewer, "get")?;
        let id = hook_id(id)?;
        let view = self.view(by).await?;
        let (is_master, of) = (by.is_master(), scope_of(by));
        let found = view.hook(&id).map(|hook| hook.scope);
        // Of one that was deleted all lines say whose it was.
        let most = if is_master { limit } else { usize::MAX };
        let lines = self.blocking(move |rule_admin| Ok(rule_admin.parts.hooks.changes(&of, &id, most)?)).await?;
        let hides = match found {
            Ok(scope) => !is_master && scope == HookScope::Global,
            // One that was deleted is known by its lines; where there is none that `by` sees, it never was.
            Err(missing) if lines.is_empty() => return Err(missing),
            Err(_) => !is_master && lines.iter().any(|line| line.tenant_id == TenantId::sentinel()),
        };
        let shown = |line: LoggedChange| if hides { without_settings(line) } else { line };
        Ok(lines.into_iter().take(limit).map(shown).collect())
    }
}

/// The line without what it says about `config` and about the breakers of others.
pub(super) fn without_settings(mut line: LoggedChange) -> LoggedChange {
    let Some(operations) = line.diff.as_array_mut() else { return line };
    let hidden = |path: &str| {
        ["/config", "/trips"]
            .iter()
            .any(|own| path.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    };
    operations.retain(|operation| !operation["path"].as_str().is_some_and(hidden));
    for operation in operations {
        if let Some(Value::Object(row)) = operation.get_mut("value")
            && row.contains_key("config")
        {
            row.insert("config".to_owned(), json!({}));
            row.insert("config_hidden".to_owned(), json!(true));
        }
    }
    line
}
