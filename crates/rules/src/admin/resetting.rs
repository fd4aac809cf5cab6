//! Circuit breakers, closed by somebody.

use pintle_domain::id::{HookId, TenantId};
use pintle_domain::rule::{HookScope, Rule};

use super::changing::missing;
use super::reading::{View, hook_id, tenant};
use super::{AdminError, Caller, CallerRole, RuleAdmin};

impl RuleAdmin {
    /// Closes the circuit breaker of a hook and forgets what counts: of a global hook for the caller's tenant, or, for
    /// owners, for `tenant` or for everybody. Says whether the hook acts now.
    ///
    /// # Errors
    /// There is no such hook or tenant, the hook is no longer valid; or the caller may not.
    pub async fn reset(&self, by: &Caller, id: &str, tenant: Option<&TenantId>) -> Result<bool, AdminError> {
        by.at_least(CallerRole::Admin, "reset")?;
        let (by, id, tenant) = (by.clone(), hook_id(id)?, tenant.cloned());
        self.blocking(move |rule_admin| rule_admin.reset_named(&by, &id, tenant.as_ref())).await
    }

    fn reset_named(&self, by: &Caller, id: &HookId, only: Option<&TenantId>) -> Result<bool, AdminError> {
        let view = View { by, rules: self.freshest()? };
        let current = view.hook(id)?;
        if let Some(only) = only {
            if !by.is_master() {
                return Err(AdminError::no_master());
            }
            tenant(&view.rules, only)?;
        }
        self.reset_now(&view, current, only)
    }

    /// Closes the breakers of `current` that the caller may close.
    pub(super) fn reset_now(
        &self,
        view: &View<'_>,
        current: &Rule,
        only: Option<&TenantId>,
    ) -> Result<bool, AdminError> {
        let (by, id) = (view.by, &current.id);
        let only = match current.scope {
            HookScope::Global if by.is_master() => only,
            HookScope::Global => Some(&by.tenant),
            HookScope::Tenant | HookScope::Agent => None,
        };
        if current.tripped_at.is_some() {
            let hook = Rule { enabled: true, tripped_at: None, disabled_reason: String::new(), ..current.clone() };
            self.fit(by, &view.rules, &hook)?;
        }
        self.parts.rule_cache.release(id, only);
        self.parts.hooks.reset(id, only, &self.actor(by)).map_err(|error| missing(error, id))?;
        self.in_force()?;
        // Of a global hook nothing but the breaker is touched.
        Ok(current.enabled || current.tripped_at.is_some())
    }
}
