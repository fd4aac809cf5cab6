//! Executions and the audit chains of this process alone.

use std::collections::BTreeSet;

use jiff::Timestamp;
use pintle_domain::audit::{AuditCheckpoint, AuditEntry, AuditKind};
use pintle_domain::execution::Execution;
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::json::Object;
use pintle_domain::store::{
    Actor, AuditStore, ExecutionQuery, ExecutionStore, OnKept, RuleStore, StoreError, TenantScope,
};

use super::Memory;
use crate::evidence::opened;

impl Memory {
    /// Appends an entry about `data` to the chain of `tenant`.
    pub(crate) fn note(
        &self,
        tenant: &TenantId,
        at: Timestamp,
        kind: AuditKind,
        data: Object,
    ) -> Result<(), StoreError> {
        self.history().note(tenant, at, kind, data)
    }
}

impl ExecutionStore for Memory {
    fn keep_executions(&self, executions: Vec<Execution>, done: OnKept) {
        let kept = self.history().keep(executions);
        done(kept);
    }

    fn executions(&self, query: &ExecutionQuery) -> Result<Vec<Execution>, StoreError> {
        let found = self.history().executions(query)?;
        let hooks: BTreeSet<HookId> = found.iter().filter_map(|it| it.hook_id.clone()).collect();
        let mut gone = BTreeSet::new();
        for id in hooks {
            if self.hook(&id)?.is_none() {
                gone.insert(id);
            }
        }
        if query.hook.is_some() && !gone.is_empty() {
            return Ok(Vec::new());
        }
        let outlives = |it: Execution| Execution { hook_id: it.hook_id.filter(|id| !gone.contains(id)), ..it };
        Ok(found.into_iter().map(outlives).collect())
    }

    fn execution(&self, of: &TenantScope, id: &str) -> Result<Option<Execution>, StoreError> {
        let mut history = self.history();
        let (found, sealing) = (history.execution(of, id), history.sealing.clone());
        drop(history);
        let Some(found) = found else { return Ok(None) };
        let mut execution = opened(found.execution, found.sealed, &sealing)?;
        if let Some(id) = &execution.hook_id
            && self.hook(id)?.is_none()
        {
            execution.hook_id = None;
        }
        Ok(Some(execution))
    }

    fn note_read(&self, execution: &Execution, by: &Actor) -> Result<(), StoreError> {
        self.note(&execution.tenant_id, by.at, AuditKind::Change, execution.read_by(&by.name, by.at))
    }

    fn forget(&self, rows_before: Timestamp, details_before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        Ok(self.history().forget(rows_before, details_before, limit))
    }
}

impl AuditStore for Memory {
    fn audit_entries(&self, tenant: &TenantId, from_seq: u64, limit: usize) -> Result<Vec<AuditEntry>, StoreError> {
        Ok(self.history().entries(tenant, from_seq, limit))
    }

    fn checkpoints(&self, tenant: &TenantId, from_seq: u64, limit: usize) -> Result<Vec<AuditCheckpoint>, StoreError> {
        Ok(self.history().checkpoints(tenant, from_seq, limit))
    }

    fn last_checkpoint(&self, tenant: &TenantId) -> Result<Option<AuditCheckpoint>, StoreError> {
        Ok(self.history().last_checkpoint(tenant))
    }

    fn audited(&self) -> Result<Vec<TenantId>, StoreError> {
        Ok(self.history().audited())
    }

    fn forget_audit(&self, tenant: &TenantId, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        Ok(self.history().forget_audit(tenant, before, limit))
    }
}
