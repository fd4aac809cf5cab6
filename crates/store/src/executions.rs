//! Executions and the audit chains of whichever store it is.

use domain::audit::{AuditCheckpoint, AuditEntry};
use domain::execution::Execution;
use domain::id::TenantId;
use domain::store::{AuditStore, ExecutionQuery, ExecutionStore, OnKept, StoreError};
use jiff::Timestamp;

use crate::Store;

impl Store {
    fn history(&self) -> &dyn ExecutionStore {
        match self {
            Self::Sqlite(store) => store,
            Self::Postgres(store) => store,
            Self::Memory(store) => store,
        }
    }

    fn chains(&self) -> &dyn AuditStore {
        match self {
            Self::Sqlite(store) => store,
            Self::Postgres(store) => store,
            Self::Memory(store) => store,
        }
    }
}

impl ExecutionStore for Store {
    fn keep_executions(&self, executions: Vec<Execution>, done: OnKept) {
        self.history().keep_executions(executions, done);
    }

    fn executions(&self, query: &ExecutionQuery) -> Result<Vec<Execution>, StoreError> {
        self.history().executions(query)
    }

    fn execution(&self, id: &str) -> Result<Option<Execution>, StoreError> {
        self.history().execution(id)
    }

    fn forget(&self, rows_before: Timestamp, details_before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.history().forget(rows_before, details_before, limit)
    }
}

impl AuditStore for Store {
    fn audit_entries(&self, tenant: &TenantId, from_seq: u64, limit: usize) -> Result<Vec<AuditEntry>, StoreError> {
        self.chains().audit_entries(tenant, from_seq, limit)
    }

    fn checkpoints(&self, tenant: &TenantId, from_seq: u64, limit: usize) -> Result<Vec<AuditCheckpoint>, StoreError> {
        self.chains().checkpoints(tenant, from_seq, limit)
    }

    fn last_checkpoint(&self, tenant: &TenantId) -> Result<Option<AuditCheckpoint>, StoreError> {
        self.chains().last_checkpoint(tenant)
    }

    fn audited(&self) -> Result<Vec<TenantId>, StoreError> {
        self.chains().audited()
    }

    fn forget_audit(&self, tenant: &TenantId, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        self.chains().forget_audit(tenant, before, limit)
    }
}
