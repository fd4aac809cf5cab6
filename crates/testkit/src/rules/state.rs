//! Everything that is kept, and what happens to rules.

use std::collections::BTreeMap;

use pintle_domain::audit::{AuditCheckpoint, AuditEntry};
use pintle_domain::breaker::BreakerRun;
use pintle_domain::execution::Execution;
use pintle_domain::id::{DEFAULT_TENANT, HookId, SENTINEL_TENANT, TenantId};
use pintle_domain::json::{Value, json};
use pintle_domain::rule::{HookScope, Rule};
use pintle_domain::store::{
    Actor, BudgetChange, LoggedChange, NO_HOOK, OpenBreaker, OutboxJob, RuleChange, StoreError, StoredRules, Tenant,
};

use super::account::Account;
use super::{RunsByHook, whole_micros};

/// When the tenants of a new store were made, for a store without a clock.
const FOUNDED: &str = "2026-01-01T00:00:00Z";

/// How what is encrypted begins.
const SEALED: &str = "aes-gcm:";

/// What stands for it in the change log.
const MASK: &str = "********";

/// What one mutex guards.
#[derive(Clone, Default)]
pub(super) struct RuleState {
    pub(super) epoch: u64,
    pub(super) hooks: BTreeMap<HookId, Rule>,
    /// Since when global hooks are off for one tenant.
    pub(super) trips: RunsByHook<String>,
    pub(super) runs: RunsByHook<BreakerRun>,
    pub(super) tenants: Vec<Tenant>,
    /// Oldest first.
    pub(super) log: Vec<LoggedChange>,
    pub(super) executions: Vec<Execution>,
    pub(super) budgets: BTreeMap<TenantId, Account>,
    pub(super) entries: Vec<AuditEntry>,
    pub(super) checkpoints: Vec<AuditCheckpoint>,
    pub(super) jobs: Vec<OutboxJob>,
}

impl RuleState {
    pub(super) fn fresh() -> Self {
        let tenant = |id: &str, slug: &str, name: &str| Tenant {
            id: TenantId::from(id),
            slug: slug.to_owned(),
            name: name.to_owned(),
            created_at: FOUNDED.to_owned(),
        };
        let tenants =
            vec![tenant(SENTINEL_TENANT, "global", "Global hooks"), tenant(DEFAULT_TENANT, "default", "Default")];
        Self { epoch: 1, tenants, ..Self::default() }
    }

    pub(super) fn rules(&self) -> StoredRules {
        let trip = |((hook, tenant), at): (&(HookId, TenantId), &String)| OpenBreaker {
            hook_id: hook.clone(),
            tenant_id: tenant.clone(),
            tripped_at: at.clone(),
        };
        StoredRules {
            epoch: self.epoch,
            hooks: self.hooks.values().cloned().collect(),
            trips: self.trips.iter().map(trip).collect(),
            runs: self.runs.iter().map(|((hook, tenant), run)| (hook.clone(), tenant.clone(), run.clone())).collect(),
            tenants: self.tenants.clone(),
            ..StoredRules::default()
        }
    }

    pub(super) fn knows(&self, tenant: &TenantId) -> Result<(), StoreError> {
        let known = self.tenants.iter().any(|known| known.id == *tenant);
        if known { Ok(()) } else { Err(StoreError::NotFound(format!("tenant not found: {tenant}"))) }
    }

    /// Carries one change out, and gives the version that it left.
    pub(super) fn change(&mut self, change: RuleChange, by: &Actor) -> Result<u32, StoreError> {
        match change {
            RuleChange::Create(hook) => self.create(*hook, by),
            RuleChange::Add(hook) => {
                if let Some(there) = self.hooks.values().find(|there| there.has_place_of(&hook)) {
                    return Err(StoreError::Conflict(format!("hook {} has its place", there.id)));
                }
                self.create(*hook, by)
            }
            RuleChange::Update { hook, if_version, action } => self.update(*hook, (if_version, action), by),
            RuleChange::Delete { id, reason } => self.delete(&id, &reason, by),
        }
    }

    fn create(&mut self, hook: Rule, by: &Actor) -> Result<u32, StoreError> {
        self.knows(&hook.tenant_id)?;
        if self.hooks.contains_key(&hook.id) {
            return Err(StoreError::Conflict(format!("hook {} exists already", hook.id)));
        }
        let hook = Rule { version: 1, updated_at: at(by), ..hook };
        let diff = diff(None, Some(&hook));
        self.log((&hook, &hook.tenant_id), "created", diff, by);
        self.hooks.insert(hook.id.clone(), hook);
        Ok(1)
    }

    fn update(&mut self, hook: Rule, (if_version, action): (Option<u32>, &str), by: &Actor) -> Result<u32, StoreError> {
        self.knows(&hook.tenant_id)?;
        let old = self.row(&hook.id)?;
        if if_version.is_some_and(|wanted| wanted != old.version) {
            return Err(StoreError::Conflict(format!("version conflict: have {}", old.version)));
        }
        let hook = Rule { version: old.version + 1, created_at: old.created_at.clone(), updated_at: at(by), ..hook };
        let diff = diff(Some(&old), Some(&hook));
        self.log((&hook, &hook.tenant_id), action, diff, by);
        let version = hook.version;
        self.hooks.insert(hook.id.clone(), hook);
        Ok(version)
    }

    fn delete(&mut self, id: &HookId, reason: &str, by: &Actor) -> Result<u32, StoreError> {
        let old = self.row(id)?;
        let mut diff = diff(Some(&old), None);
        if let (false, Some(operations)) = (reason.is_empty(), diff.as_array_mut()) {
            operations.insert(0, json!({"op": "add", "path": "/disabled_reason", "value": reason}));
        }
        self.log((&Rule { version: 0, ..old.clone() }, &old.tenant_id), "deleted", diff, by);
        self.trips.retain(|(hook, _), _| hook != id);
        self.runs.retain(|(hook, _), _| hook != id);
        self.hooks.remove(id);
        let own = self.executions.iter_mut().filter(|row| row.hook_id.as_ref() == Some(id));
        own.for_each(|row| row.hook_id = None);
        Ok(0)
    }

    /// Opens a breaker.
    pub(super) fn trip(&mut self, id: &HookId, tenant: &TenantId, by: &Actor) -> Result<u64, StoreError> {
        let old = self.row(id)?;
        if old.scope != HookScope::Global {
            self.runs.retain(|(hook, _), _| hook != id);
            if !old.enabled {
                return Ok(self.epoch);
            }
            let new = Rule {
                enabled: false,
                tripped_at: Some(at(by)),
                disabled_reason: "breaker".to_owned(),
                version: old.version + 1,
                updated_at: at(by),
                ..old.clone()
            };
            let diff = diff(Some(&old), Some(&new));
            self.log((&new, &new.tenant_id), "tripped", diff, by);
            self.hooks.insert(id.clone(), new);
        } else {
            let key = (id.clone(), tenant.clone());
            self.runs.remove(&key);
            if !old.enabled || self.trips.contains_key(&key) {
                return Ok(self.epoch);
            }
            let before = self.open_for(id);
            self.trips.insert(key, at(by));
            let diff = patch(&before, &self.open_for(id));
            self.log((&old, tenant), "tripped", diff, by);
        }
        self.epoch += 1;
        Ok(self.epoch)
    }

    /// Closes breakers and clears runs.
    pub(super) fn reset(&mut self, id: &HookId, tenant: Option<&TenantId>, by: &Actor) -> Result<u64, StoreError> {
        let old = self.row(id)?;
        let only = tenant.filter(|_| old.scope == HookScope::Global);
        let meant = |(hook, of): &(HookId, TenantId)| hook == id && only.is_none_or(|only| only == of);
        let open = old.tripped_at.is_some() || self.trips.keys().any(meant);
        if !open && !self.runs.keys().any(meant) {
            return Ok(self.epoch);
        }
        let before = self.open_for(id);
        self.trips.retain(|key, _| !meant(key));
        self.runs.retain(|key, _| !meant(key));
        if old.tripped_at.is_some() {
            let new = Rule {
                enabled: true,
                tripped_at: None,
                disabled_reason: String::new(),
                version: old.version + 1,
                updated_at: at(by),
                ..old.clone()
            };
            let diff = diff(Some(&old), Some(&new));
            self.log((&new, &new.tenant_id), "reset", diff, by);
            self.hooks.insert(id.clone(), new);
        } else if open {
            let diff = patch(&before, &self.open_for(id));
            self.log((&old, only.unwrap_or(&old.tenant_id)), "reset", diff, by);
        }
        self.epoch += 1;
        Ok(self.epoch)
    }

    fn row(&self, id: &HookId) -> Result<Rule, StoreError> {
        self.hooks.get(id).cloned().ok_or_else(|| StoreError::NotFound(format!("hook not found: {id}")))
    }

    /// For whom a global hook is off, as its owner sees it.
    fn open_for(&self, id: &HookId) -> Value {
        let own = self.trips.iter().filter(|((hook, _), _)| hook == id);
        let trips: Vec<Value> = own.map(|((_, tenant), at)| json!({ "tenant_id": tenant, "tripped_at": at })).collect();
        json!({ "trips": trips })
    }

    /// One line about a budget.
    pub(super) fn log_budget(&mut self, tenant: &TenantId, before: i64, change: &BudgetChange) {
        let mut diff = Vec::new();
        if before != change.total {
            diff.push(json!({"op": "replace", "path": "/budget_total", "value": change.total}));
        }
        if !change.reason.is_empty() {
            diff.push(json!({"op": "replace", "path": "/reason", "value": change.reason}));
        }
        self.epoch += 1;
        let line = LoggedChange {
            id: uuid::Uuid::now_v7().to_string(),
            tenant_id: tenant.clone(),
            hook_id: NO_HOOK.into(),
            at: at(&change.by),
            actor: change.by.name.clone(),
            action: "updated".to_owned(),
            version: 0,
            diff: diff.into(),
        };
        self.audit_change(&line, change.by.at);
        self.log.push(line);
    }

    /// One line in the change log and in the audit chain of `tenant`, whom it is about.
    fn log(&mut self, (hook, tenant): (&Rule, &TenantId), action: &str, diff: Value, by: &Actor) {
        let line = LoggedChange {
            id: uuid::Uuid::now_v7().to_string(),
            tenant_id: tenant.clone(),
            hook_id: hook.id.clone(),
            at: at(by),
            actor: by.name.clone(),
            action: action.to_owned(),
            version: hook.version,
            diff,
        };
        self.audit_change(&line, by.at);
        self.log.push(line);
    }
}

fn at(by: &Actor) -> String {
    whole_micros(by.at).to_string()
}

/// What differs between two contents of a row, as a JSON Patch: without its version and its times, which are in the line,
/// and with a mask for everything that is encrypted.
pub fn diff(before: Option<&Rule>, after: Option<&Rule>) -> Value {
    let shown = |hook: Option<&Rule>| match hook.map(|hook| json!(hook)) {
        Some(Value::Object(mut members)) => {
            members.retain(|name, _| !["version", "created_at", "updated_at"].contains(&name.as_str()));
            masked(Value::Object(members))
        }
        Some(_) | None => Value::Null,
    };
    patch(&shown(before), &shown(after))
}

fn patch(before: &Value, after: &Value) -> Value {
    pintle_domain::json::diff(before, after)
}

fn masked(value: Value) -> Value {
    match value {
        Value::String(text) if text.starts_with(SEALED) => Value::from(MASK),
        Value::Array(items) => items.into_iter().map(masked).collect(),
        Value::Object(members) => members.into_iter().map(|(name, value)| (name, masked(value))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}
