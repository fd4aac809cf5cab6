//! Where a host keeps what must outlive it.

use std::sync::Arc;

use domain::store::{ApprovalStore, RecordStore};
use engine::NullStore;

/// Where records and questions for persons are kept.
///
/// Without a place for questions nobody can be asked, and an ask refuses.
#[derive(Clone)]
pub struct Stores {
    pub(crate) records: Arc<dyn RecordStore>,
    pub(crate) approvals: Option<Arc<dyn ApprovalStore>>,
}

impl Stores {
    /// Keeps nothing: for hosts that need no evidence.
    pub fn none() -> Self {
        Self { records: Arc::new(NullStore), approvals: None }
    }

    /// Keeps records in `records`, and no questions.
    pub fn records(records: Arc<dyn RecordStore>) -> Self {
        Self { records, approvals: None }
    }

    /// The same places, and questions in `approvals`.
    #[must_use]
    pub fn with_approvals(self, approvals: Arc<dyn ApprovalStore>) -> Self {
        Self { approvals: Some(approvals), ..self }
    }
}

impl<S: RecordStore + ApprovalStore + 'static> From<Arc<S>> for Stores {
    fn from(store: Arc<S>) -> Self {
        Self { records: store.clone(), approvals: Some(store) }
    }
}
