//! Executions and the audit chains in a file.

use domain::audit::{AuditCheckpoint, AuditEntry};
use domain::execution::Execution;
use domain::id::TenantId;
use domain::store::{AuditStore, ExecutionQuery, ExecutionStore, OnKept, StoreError};
use jiff::Timestamp;

use super::Sqlite;
use crate::evidence::opened;
use crate::rows::batch::Batch;
use crate::rows::{audit, executions};

impl ExecutionStore for Sqlite {
    fn keep_executions(&self, executions: Vec<Execution>, done: OnKept) {
        self.hand_over(Batch::executions(executions, done).patient(None));
    }

    fn executions(&self, query: &ExecutionQuery) -> Result<Vec<Execution>, StoreError> {
        self.list(|db| executions::list(db, query))
    }

    fn execution(&self, id: &str) -> Result<Option<Execution>, StoreError> {
        let found = self.list(|db| executions::by_id(db, id))?;
        found.map(|(execution, detail)| opened(execution, detail, &self.sealing)).transpose()
    }

    fn forget(&self, rows_before: Timestamp, details_before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.write(|db| executions::forget(db, rows_before, details_before, limit))
    }
}

impl AuditStore for Sqlite {
    fn audit_entries(&self, tenant: &TenantId, from_seq: u64, limit: usize) -> Result<Vec<AuditEntry>, StoreError> {
        self.list(|db| audit::entries(db, tenant, from_seq, limit))
    }

    fn checkpoints(&self, tenant: &TenantId, from_seq: u64, limit: usize) -> Result<Vec<AuditCheckpoint>, StoreError> {
        self.list(|db| audit::checkpoints(db, tenant, from_seq, limit))
    }

    fn last_checkpoint(&self, tenant: &TenantId) -> Result<Option<AuditCheckpoint>, StoreError> {
        self.list(|db| audit::last_checkpoint(db, tenant))
    }

    fn audited(&self) -> Result<Vec<TenantId>, StoreError> {
        self.list(|db| audit::audited(db))
    }

    fn forget_audit(&self, tenant: &TenantId, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let Some(last) = self.list(|db| audit::cut_at(db, tenant, before))? else { return Ok(0) };
        self.write(|db| audit::cut_some(db, tenant, last, limit))
    }
}
