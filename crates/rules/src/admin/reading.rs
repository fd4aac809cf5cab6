//! Which hooks somebody sees, and how.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::record;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::id::{AgentId, HookId, TenantId, agent_uuid};
use pintle_domain::json::{Value, json};
use pintle_domain::rule::{HookScope, Rule};
use pintle_domain::store::StoredRules;

use super::{AdminError, AdminErrorCode, Caller, CallerRole, RuleAdmin};

/// The message about an agent that is none.
pub const INVALID_AGENT: &str = "invalid agentId";

/// Which hooks are wanted. Empty members ask for everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// Where they act.
    pub event: Option<CheckpointKind>,
    /// The scope of the rules that are wanted.
    pub scope: Option<HookScope>,
    /// An agent that they name: its UUID, or its key.
    pub agent: Option<String>,
    /// Whether they act.
    pub enabled: Option<bool>,
}

/// The rules as one caller may see them.
pub(super) struct View<'a> {
    pub(super) by: &'a Caller,
    pub(super) rules: Arc<StoredRules>,
}

impl RuleAdmin {
    /// The hooks that the caller sees and `filter` wants, in running order, as they are published.
    ///
    /// # Errors
    /// `invalid agentId`; or the store cannot be read and never could.
    pub async fn list(&self, by: &Caller, filter: &ListFilter) -> Result<Vec<Value>, AdminError> {
        by.at_least(CallerRole::Viewer, "list")?;
        let agent = filter.agent.as_deref().map(|agent| self.agent(&by.tenant, agent)).transpose()?;
        let view = self.view(by).await?;
        let wanted = |hook: &&Rule| {
            filter.event.is_none_or(|event| hook.event == event)
                && filter.scope.is_none_or(|scope| hook.scope == scope)
                && agent.as_ref().is_none_or(|(uuid, _)| hook.agent_ids.contains(uuid))
                && filter.enabled.is_none_or(|enabled| view.acts(hook) == enabled)
        };
        let mut hooks: Vec<&Rule> = view.visible().filter(wanted).collect();
        hooks.sort_by_key(|hook| (Reverse(hook.priority), &hook.created_at, &hook.id));
        Ok(hooks.into_iter().map(|hook| view.shown(hook)).collect())
    }

    /// One hook, as it is published.
    ///
    /// # Errors
    /// There is none, or the caller does not see it.
    pub async fn get(&self, by: &Caller, id: &str) -> Result<Value, AdminError> {
        by.at_least(CallerRole::Viewer, "get")?;
        let id = hook_id(id)?;
        let view = self.view(by).await?;
        Ok(view.shown(view.hook(&id)?))
    }

    /// The hook that people call `name`: by its id, or by its name if only one that the caller sees has it.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub async fn find(&self, by: &Caller, name: &str) -> Result<HookId, AdminError> {
        by.at_least(CallerRole::Viewer, "get")?;
        let view = self.view(by).await?;
        if let Ok(id) = hook_id(name) {
            return view.hook(&id).map(|hook| hook.id.clone());
        }
        let mut found: Vec<&HookId> = view.visible().filter(|hook| hook.name == name).map(|hook| &hook.id).collect();
        found.sort();
        match found.as_slice() {
            [] => Err(AdminError::no_hook(name)),
            [one] => Ok((*one).clone()),
            several => {
                let ids: Vec<&str> = several.iter().map(|id| id.as_str()).collect();
                Err(AdminError::invalid(format!("several hooks are called {name:?}; say which: {}", ids.join(", "))))
            }
        }
    }

    /// How many outcomes count towards the circuit breakers of the caller's tenant that are not open, by the hook.
    pub fn counted(&self, by: &Caller) -> BTreeMap<HookId, usize> {
        self.parts.rule_cache.counted(&by.tenant)
    }

    /// The rules as `by` may see them: those of the store, or, while it is lost, those in force.
    pub(super) async fn view<'a>(&self, by: &'a Caller) -> Result<View<'a>, AdminError> {
        let rules = self.blocking(Self::freshest).await?;
        Ok(View { by, rules })
    }

    /// Blocks.
    pub(super) fn freshest(&self) -> Result<Arc<StoredRules>, AdminError> {
        let looked = self.parts.rule_cache.refresh();
        let rules = self.parts.rule_cache.rules();
        match looked {
            // Every store has tenants, so there is nothing where it never could be read.
            Err(error) if rules.tenants.is_empty() => Err(error.into()),
            Ok(_) | Err(_) => Ok(rules),
        }
    }

    /// The agent that is meant by a UUID or by a key: its UUID, and its key if the host has it.
    pub(super) fn agent(&self, tenant: &TenantId, named: &str) -> Result<(String, Option<AgentId>), AdminError> {
        let agents = (self.parts.agents)();
        let of = |agent: &AgentId| agent_uuid(tenant, agent.as_str());
        if let Ok(uuid) = uuid::Uuid::parse_str(named) {
            let uuid = uuid.to_string();
            let known = agents.into_iter().find(|agent| of(agent) == uuid);
            return Ok((uuid, known));
        }
        let known = agents.into_iter().find(|agent| agent.as_str() == named);
        known.map(|agent| (of(&agent), Some(agent))).ok_or_else(|| AdminError::invalid(INVALID_AGENT))
    }
}

impl View<'_> {
    /// Owners see all, others their own and what is everybody's.
    fn sees(&self, hook: &Rule) -> bool {
        self.by.is_master() || hook.scope == HookScope::Global || hook.tenant_id == self.by.tenant
    }

    /// The rules that the caller sees.
    pub(super) fn visible(&self) -> impl Iterator<Item = &Rule> {
        self.rules.hooks.iter().filter(|hook| self.sees(hook))
    }

    /// The hook `id`, if the caller sees it.
    pub(super) fn hook(&self, id: &HookId) -> Result<&Rule, AdminError> {
        // All are looked at, so that it takes as long whether it is there, somebody else's or nowhere.
        let found = self
            .rules
            .hooks
            .iter()
            .fold(None, |found, hook| if self.sees(hook) & (hook.id == *id) { Some(hook) } else { found });
        found.ok_or_else(|| AdminError::no_hook(id.as_str()))
    }

    /// Since when a global hook is off for `tenant`.
    pub(super) fn trip_of(&self, hook: &Rule, tenant: &TenantId) -> Option<&str> {
        let trips = self.rules.trips.iter().filter(|trip| trip.hook_id == hook.id && trip.tenant_id == *tenant);
        trips.map(|trip| trip.tripped_at.as_str()).next()
    }

    /// Since when a global hook is off for the caller's tenant alone. An owner has the row as it is: what they see is
    /// what they write.
    fn off_since(&self, hook: &Rule) -> Option<&str> {
        self.trip_of(hook, &self.by.tenant).filter(|_| !self.by.is_master())
    }

    /// Whether the hook acts for the caller's tenant.
    fn acts(&self, hook: &Rule) -> bool {
        hook.enabled && self.off_since(hook).is_none()
    }

    /// The hook as it counts for the caller's tenant.
    fn overlaid<'b>(&self, hook: &'b Rule) -> Cow<'b, Rule> {
        match self.off_since(hook) {
            Some(since) => Cow::Owned(Rule { enabled: false, tripped_at: Some(since.to_owned()), ..hook.clone() }),
            None => Cow::Borrowed(hook),
        }
    }

    /// The hook as it is published to the caller.
    pub(super) fn shown(&self, hook: &Rule) -> Value {
        let is_master = self.by.is_master();
        let mut shown = record::shown(&self.overlaid(hook), !is_master);
        if is_master && hook.scope == HookScope::Global {
            let own = self.rules.trips.iter().filter(|trip| trip.hook_id == hook.id);
            let trip = |trip: &pintle_domain::store::OpenBreaker| json!({"tenant_id": trip.tenant_id, "tripped_at": trip.tripped_at});
            shown["trips"] = own.map(trip).collect();
        }
        shown
    }
}

/// Reads the id of a hook.
pub(super) fn hook_id(text: &str) -> Result<HookId, AdminError> {
    let uuid = uuid::Uuid::parse_str(text).map_err(|_| AdminError::invalid("invalid hook ID"))?;
    Ok(HookId::new(uuid.to_string()))
}

/// Refuses a tenant that is not there.
pub(super) fn tenant(rules: &StoredRules, id: &TenantId) -> Result<(), AdminError> {
    let known = rules.tenants.iter().any(|tenant| tenant.id == *id);
    let missing = || AdminError::new(AdminErrorCode::NotFound, format!("tenant not found: {id}"));
    if known { Ok(()) } else { Err(missing()) }
}
