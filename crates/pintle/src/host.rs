//! The host behind the handles: its engine, its stores, its tenants, and whoever asks a person.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use domain::id::TenantId;
use engine::Engine;
use engine::approvals::{Approvals as Asking, Asker};
use tokio::sync::Notify;

use crate::stores::Stores;

/// Everything that the handles of one host share.
pub(crate) struct Host {
    pub(crate) engine: Engine,
    pub(crate) stores: Stores,
    pub(crate) tools: Arc<BTreeSet<String>>,
    pub(crate) tenants: RwLock<BTreeSet<TenantId>>,
    pub(crate) ui: RwLock<Option<Arc<dyn Asker>>>,
    /// Rings whenever a question was answered through this host.
    pub(crate) answered: Notify,
}

impl Host {
    /// How a person is asked in a turn that begins now; nobody can be without a place for questions.
    pub(crate) fn asking(&self) -> Option<Arc<Asking>> {
        let ui = self.ui.read().unwrap_or_else(PoisonError::into_inner).clone();
        let store = self.stores.approvals.clone()?;
        Some(Arc::new(Asking::for_host(store, ui)))
    }
}
