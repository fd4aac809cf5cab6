//! The history of the model.

use jiff::Timestamp;
use pintle_domain::execution::Execution;
use pintle_domain::store::{Actor, ExecutionQuery, ExecutionStore, OnKept, StoreError, TenantScope};

use super::state::RuleState;
use super::{MemoryRules, whole_micros};

impl RuleState {
    /// Takes a row in, unless it is there already.
    fn keep(&mut self, mut row: Execution) {
        let same =
            |other: &Execution| other.id == row.id || (row.dedup_key.is_some() && other.dedup_key == row.dedup_key);
        if self.executions.iter().any(same) {
            return;
        }
        row.created_at = whole_micros(row.created_at);
        self.audit_execution(&row);
        // A hook may be gone by the time its row is written.
        row.hook_id = row.hook_id.filter(|id| self.hooks.contains_key(id));
        self.executions.push(row);
    }
}

impl ExecutionStore for MemoryRules {
    fn keep_executions(&self, executions: Vec<Execution>, done: OnKept) {
        let kept = self.transaction(|rule_state| {
            executions.into_iter().for_each(|row| rule_state.keep(row));
            Ok(())
        });
        done(kept);
    }

    fn executions(&self, query: &ExecutionQuery) -> Result<Vec<Execution>, StoreError> {
        let rule_state = self.rule_state()?;
        let after = match &query.after {
            Some((at, id)) => Some((moment(at)?, id.as_str())),
            None => None,
        };
        let wanted = |row: &&Execution| {
            let same = |wanted: &Option<String>, own: &Option<String>| wanted.is_none() || wanted == own;
            query.tenant.has(&row.tenant_id)
                && query.hook.as_ref().is_none_or(|hook| row.hook_id.as_ref() == Some(hook))
                && query.name.as_ref().is_none_or(|name| row.hook_name == *name)
                && query.event.is_none_or(|event| row.event == event)
                && query.decision.is_none_or(|decision| row.decision == decision)
                && same(&query.session, &row.session_id)
                && same(&query.agent, &row.agent_id)
                && query.since.is_none_or(|since| row.created_at >= since)
                && query.until.is_none_or(|until| row.created_at < until)
                && after.is_none_or(|after| (row.created_at, row.id.as_str()) < after)
        };
        let mut found: Vec<&Execution> = rule_state.executions.iter().filter(wanted).collect();
        found.sort_by(|a, b| (b.created_at, &b.id).cmp(&(a.created_at, &a.id)));
        let brief = |row: &Execution| Execution { error_detail: None, output: None, ..row.clone() };
        Ok(found.into_iter().take(query.limit).map(brief).collect())
    }

    fn execution(&self, of: &TenantScope, id: &str) -> Result<Option<Execution>, StoreError> {
        let is_it = |row: &&Execution| of.has(&row.tenant_id) && row.id == id;
        Ok(self.rule_state()?.executions.iter().find(is_it).cloned())
    }

    fn note_read(&self, execution: &Execution, by: &Actor) -> Result<(), StoreError> {
        self.transaction(|rule_state| {
            rule_state.audit_read(execution, by);
            Ok(())
        })
    }

    fn forget(&self, rows_before: Timestamp, details_before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        let mut rule_state = self.rule_state()?;
        rule_state.executions.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
        let rows = rule_state.executions.iter().take(limit).take_while(|row| row.created_at < rows_before).count();
        rule_state.executions.drain(..rows);
        let old = rule_state.executions.iter_mut().take_while(|row| row.created_at < details_before);
        let details = old.filter(|row| row.has_detail()).take(limit);
        let details = details.map(|row| (row.error_detail, row.output) = (None, None)).count();
        Ok(rows + details)
    }
}

fn moment(text: &str) -> Result<Timestamp, StoreError> {
    text.parse().map_err(|error| StoreError::Corrupt(format!("`{text}` is not a moment: {error}")))
}
