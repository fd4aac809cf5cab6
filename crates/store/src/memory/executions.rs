//! Executions and the audit chains of this process alone.

use domain::audit::{Checkpoint, Entry, Kind};
use domain::execution::Execution;
use domain::id::TenantId;
use domain::json::Object;
use domain::store::{AuditStore, Done, ExecutionQuery, ExecutionStore, StoreError};
use jiff::Timestamp;

use super::Memory;
use crate::evidence::opened;

impl Memory {
    /// Appends an entry about `data` to the chain of `tenant`.
    pub(crate) fn note(&self, tenant: &TenantId, at: Timestamp, kind: Kind, data: Object) -> Result<(), StoreError> {
        self.history().note(tenant, at, kind, data)
    }
}

impl ExecutionStore for Memory {
    fn keep_executions(&self, executions: Vec<Execution>, done: Done) {
        let kept = self.history().keep(executions);
        done(kept);
    }

    fn executions(&self, query: &ExecutionQuery) -> Result<Vec<Execution>, StoreError> {
        self.history().executions(query)
    }

    fn execution(&self, id: &str) -> Result<Option<Execution>, StoreError> {
        let mut history = self.history();
        let found = history.execution(id);
        found.map(|it| opened(it.execution, it.detail, &history.sealing)).transpose()
    }

    fn forget(&self, rows_before: Timestamp, details_before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        Ok(self.history().forget(rows_before, details_before, limit))
    }
}

impl AuditStore for Memory {
    fn audit_entries(&self, tenant: &TenantId, from_seq: u64, limit: usize) -> Result<Vec<Entry>, StoreError> {
        Ok(self.history().entries(tenant, from_seq, limit))
    }

    fn checkpoints(&self, tenant: &TenantId) -> Result<Vec<Checkpoint>, StoreError> {
        Ok(self.history().checkpoints(tenant))
    }

    fn audited(&self) -> Result<Vec<TenantId>, StoreError> {
        Ok(self.history().audited())
    }

    fn forget_audit(&self, tenant: &TenantId, before: Timestamp) -> Result<usize, StoreError> {
        Ok(self.history().forget_audit(tenant, before))
    }
}
