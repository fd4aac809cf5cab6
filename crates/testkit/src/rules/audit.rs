//! The audit chain of the model. Its rows are those of the stores but for what is random in these: identifiers, and the
//! fingerprint of an encrypted detail, which is not here.

use jiff::Timestamp;
use pintle_domain::audit::{self, AuditCheckpoint, AuditEntry, AuditKind, ChainHead, cut_at};
use pintle_domain::execution::Execution;
use pintle_domain::id::TenantId;
use pintle_domain::json::{Object, Value, json};
use pintle_domain::store::{Actor, AuditStore, LoggedChange, StoreError};

use super::MemoryRules;
use super::state::RuleState;

impl MemoryRules {
    /// Adds a checkpoint, as a store does from time to time.
    ///
    /// # Panics
    /// The store was broken down by the test.
    pub fn add_checkpoint(&self, checkpoint: AuditCheckpoint) {
        self.rule_state().expect("the test has not broken it down").checkpoints.push(checkpoint);
    }
}

impl RuleState {
    pub(super) fn audit_change(&mut self, line: &LoggedChange, at: Timestamp) {
        let kind = if line.action == "tripped" { AuditKind::Trip } else { AuditKind::Change };
        let data = match json!(line) {
            Value::Object(data) => data,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Object::new(),
        };
        self.audit(&line.tenant_id, at, kind, data);
    }

    pub(super) fn audit_execution(&mut self, row: &Execution) {
        self.audit(&row.tenant_id, row.created_at, AuditKind::Record, row.to_json());
    }

    pub(super) fn audit_read(&mut self, execution: &Execution, by: &Actor) {
        self.audit(&execution.tenant_id, by.at, AuditKind::Change, execution.read_by(&by.name, by.at));
    }

    fn audit(&mut self, tenant: &TenantId, at: Timestamp, kind: AuditKind, data: Object) {
        let own = self.entries.iter().filter(|entry| entry.tenant_id == *tenant);
        let anchor = self.checkpoints.iter().filter(|point| point.tenant_id == *tenant).map(AuditCheckpoint::link);
        let ends = own.map(|entry| ChainHead { seq: entry.seq, hash: entry.hash }).chain(anchor);
        let head = ends.max_by_key(|link| link.seq).unwrap_or(ChainHead::GENESIS);
        let (entry, _) = audit::append(&head, tenant, at, kind, data).expect("rows of tests are short");
        self.entries.push(entry);
    }
}

impl AuditStore for MemoryRules {
    fn audit_entries(&self, tenant: &TenantId, from_seq: u64, limit: usize) -> Result<Vec<AuditEntry>, StoreError> {
        let rule_state = self.rule_state()?;
        let wanted = |entry: &&AuditEntry| entry.tenant_id == *tenant && entry.seq >= from_seq;
        Ok(rule_state.entries.iter().filter(wanted).take(limit).cloned().collect())
    }

    fn checkpoints(&self, tenant: &TenantId, from_seq: u64, limit: usize) -> Result<Vec<AuditCheckpoint>, StoreError> {
        let rule_state = self.rule_state()?;
        let mut own: Vec<AuditCheckpoint> =
            rule_state.checkpoints.iter().filter(|point| point.tenant_id == *tenant).cloned().collect();
        own.sort_by_key(|point| point.seq);
        Ok(own.into_iter().filter(|point| point.seq >= from_seq).take(limit).collect())
    }

    fn last_checkpoint(&self, tenant: &TenantId) -> Result<Option<AuditCheckpoint>, StoreError> {
        Ok(self.checkpoints(tenant, 0, usize::MAX)?.pop())
    }

    fn audited(&self) -> Result<Vec<TenantId>, StoreError> {
        let mut tenants: Vec<TenantId> =
            self.rule_state()?.entries.iter().map(|entry| entry.tenant_id.clone()).collect();
        tenants.sort();
        tenants.dedup();
        Ok(tenants)
    }

    fn forget_audit(&self, tenant: &TenantId, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let points = self.checkpoints(tenant, 0, usize::MAX)?;
        let mut rule_state = self.rule_state()?;
        let first = rule_state.entries.iter().filter(|entry| entry.tenant_id == *tenant).map(|entry| entry.seq).min();
        let anchor = first.and_then(|first| cut_at(&points, (first, before), limit));
        let Some(anchor) = anchor else { return Ok(0) };
        let many = rule_state.entries.len();
        rule_state.entries.retain(|entry| entry.tenant_id != *tenant || entry.seq > anchor);
        rule_state.checkpoints.retain(|point| point.tenant_id != *tenant || point.seq >= anchor);
        Ok(many - rule_state.entries.len())
    }
}
