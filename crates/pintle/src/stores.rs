//! Where a host keeps what must outlive it.

use std::sync::Arc;

use pintle_domain::store::{ApprovalStore, RecordStore};
use pintle_engine::NullStore;

use crate::call_journal::CallJournal;
#[cfg(feature = "rules")]
use crate::rule_source::RuleSource;

/// Where records, questions for persons and the journal of calls are kept.
///
/// Without a place for questions nobody can be asked, and an ask refuses. Without a journal of calls, a call whose
/// process died while its tool ran may run again when it is made again.
#[derive(Clone)]
pub struct Stores {
    pub(crate) records: Arc<dyn RecordStore>,
    pub(crate) approvals: Option<Arc<dyn ApprovalStore>>,
    pub(crate) calls: Option<Arc<dyn CallJournal>>,
    #[cfg(feature = "rules")]
    pub(crate) rules: Option<Arc<RuleSource>>,
}

impl Stores {
    /// Keeps nothing: for hosts that need no evidence.
    pub fn none() -> Self {
        Self::records(Arc::new(NullStore))
    }

    /// Keeps records in `records`, and no questions.
    pub fn records(records: Arc<dyn RecordStore>) -> Self {
        Self {
            records,
            approvals: None,
            calls: None,
            #[cfg(feature = "rules")]
            rules: None,
        }
    }

    /// Keeps records in `records`, and everything else where it is kept.
    #[must_use]
    pub fn with_records(self, records: Arc<dyn RecordStore>) -> Self {
        Self { records, ..self }
    }

    /// Keeps questions in `approvals`.
    #[must_use]
    pub fn with_approvals(self, approvals: Arc<dyn ApprovalStore>) -> Self {
        Self { approvals: Some(approvals), ..self }
    }

    /// Keeps in `calls` which calls ran: then no call runs twice, whatever happens to a process.
    #[must_use]
    pub fn with_calls(self, calls: impl CallJournal + 'static) -> Self {
        Self { calls: Some(Arc::new(calls)), ..self }
    }
}

impl<S: RecordStore + ApprovalStore + 'static> From<Arc<S>> for Stores {
    fn from(store: Arc<S>) -> Self {
        Self::records(store.clone()).with_approvals(store)
    }
}
