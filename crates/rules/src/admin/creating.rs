//! New hooks.

use std::collections::BTreeMap;

use crate::record;
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::json::Value;
use pintle_domain::rule::HookScope;
use pintle_domain::store::{RuleChange, StoredRules};

use super::judged::Case;
use super::{AdminError, Caller, CallerRole, RuleAdmin};

/// A hook that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedRule {
    /// Its id.
    pub id: HookId,
    /// Settings that are allowed and probably not meant.
    pub warnings: Vec<String>,
}

impl RuleAdmin {
    /// Makes a hook. It is in force when this returns.
    ///
    /// # Errors
    /// The first thing that is wrong with the record; or the caller may not.
    pub async fn create(&self, by: &Caller, record: &Value) -> Result<CreatedRule, AdminError> {
        let created = self.create_all(by, std::slice::from_ref(record)).await?;
        created.into_iter().next().ok_or_else(|| AdminError::invalid("invalid request: missing config payload"))
    }

    /// Makes several hooks, all or none.
    ///
    /// # Errors
    /// The first thing that is wrong with the first record that is not in order; or the caller may not.
    pub async fn create_all(&self, by: &Caller, records: &[Value]) -> Result<Vec<CreatedRule>, AdminError> {
        by.at_least(CallerRole::Admin, "create")?;
        let (by, records) = (by.clone(), records.to_vec());
        self.blocking(move |rule_admin| rule_admin.create_now(&by, &records)).await
    }

    fn create_now(&self, by: &Caller, records: &[Value]) -> Result<Vec<CreatedRule>, AdminError> {
        let rules = self.freshest()?;
        let mut beside: BTreeMap<TenantId, usize> = BTreeMap::new();
        let (mut created, mut changes) = (Vec::new(), Vec::new());
        for (place, record) in records.iter().enumerate() {
            let named = |refused| if records.len() == 1 { refused } else { in_place(refused, place, record) };
            let hook = self.new_hook(by, (&rules, Some(&beside)), record).map_err(named)?;
            *beside.entry(hook.hook.tenant_id.clone()).or_default() += 1;
            created.push(CreatedRule { id: hook.hook.id.clone(), warnings: hook.warnings });
            changes.push(RuleChange::Create(Box::new(hook.hook)));
        }
        if !changes.is_empty() {
            self.parts.hooks.change(changes, &self.actor(by))?;
            self.in_force()?;
        }
        Ok(created)
    }

    /// The row that a record is, its secrets encrypted.
    pub(super) fn new_hook(
        &self,
        by: &Caller,
        known: (&StoredRules, Option<&BTreeMap<TenantId, usize>>),
        record: &Value,
    ) -> Result<record::ValidRecord, AdminError> {
        let read = self.new_record(by, known, record)?;
        Ok(record::ValidRecord { hook: self.sealed(read.hook)?, ..read })
    }

    /// The row that a record is, its secrets as they were written.
    pub(super) fn new_record(
        &self,
        by: &Caller,
        (rules, beside): (&StoredRules, Option<&BTreeMap<TenantId, usize>>),
        record: &Value,
    ) -> Result<record::ValidRecord, AdminError> {
        let scope = record.get("scope").and_then(Value::as_str).and_then(HookScope::named);
        let home = if scope == Some(HookScope::Global) { TenantId::sentinel() } else { by.tenant.clone() };
        let beside = beside.map(|beside| beside.get(&home).copied().unwrap_or_default());
        let case = Case { by, rules, tenant: &by.tenant, beside };
        let new_row = self.new_row(by);
        Ok(self.judge(&case, &new_row, |around| record::read(record, around))?)
    }
}

/// The error about one record of several, with its place.
pub(super) fn in_place(refused: AdminError, place: usize, record: &Value) -> AdminError {
    let name = record.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
    let name = name.map(|name| format!(" ({name:?})")).unwrap_or_default();
    AdminError { message: format!("record {}{name}: {}", place + 1, refused.message), ..refused }
}
