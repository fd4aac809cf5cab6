//! Questions for a person: who is asked, and how they answer.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pintle_domain::approval::{Approval, ApprovalState, PersonAnswer};
use pintle_domain::id::TenantId;
use pintle_domain::store::{ApprovalQuery, ApprovalStore, StoreError, TenantScope};
use pintle_engine::approvals::Asker;

use crate::host::Host;
use crate::stage::Fut;

/// How often the store is looked at for an answer that another process gave.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Puts questions to a person who is there.
pub trait Ui: Send + Sync + 'static {
    /// Returns the answer, or `None` to leave the question open: the call is parked then, and others may still answer.
    /// There is no time limit; the future is dropped when another answer arrives or the turn is cancelled.
    fn ask<'a>(&'a self, question: &'a Approval) -> Fut<'a, Option<PersonAnswer>>;
}

/// A [`Ui`] as the engine asks it.
pub(crate) fn asking(ui: impl Ui) -> Arc<dyn Asker> {
    struct Asked<U>(U);

    #[async_trait]
    impl<U: Ui> Asker for Asked<U> {
        async fn ask(&self, approval: &Approval) -> Option<PersonAnswer> {
            self.0.ask(approval).await
        }
    }

    Arc::new(Asked(ui))
}

/// The questions about the calls of one tenant.
pub struct Approvals {
    host: Arc<Host>,
    store: Arc<dyn ApprovalStore>,
    tenant: TenantId,
}

impl Approvals {
    pub(crate) fn new(host: Arc<Host>, store: Arc<dyn ApprovalStore>, tenant: TenantId) -> Self {
        Self { host, store, tenant }
    }

    /// The newest `limit` questions, oldest first; with `waiting_only` those that are still to be answered. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn list(&self, waiting_only: bool, limit: usize) -> Result<Vec<Approval>, StoreError> {
        self.store
            .approvals(&ApprovalQuery { waiting_only, ..ApprovalQuery::newest(TenantScope::from(&self.tenant), limit) })
    }

    /// The question `id`; none if it is another tenant's. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn get(&self, id: &str) -> Result<Option<Approval>, StoreError> {
        self.store.approval(&TenantScope::from(&self.tenant), id)
    }

    /// Answers the question `id`, which is written whole. Blocks.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] also for a question of another tenant; [`StoreError::Conflict`] with why it cannot be
    /// answered; or the store cannot do it.
    pub fn answer(&self, id: &str, answer: PersonAnswer) -> Result<Approval, StoreError> {
        if self.get(id)?.is_none() {
            return Err(StoreError::NotFound(format!("there is no question `{id}`")));
        }
        let answered = self.store.answer(&TenantScope::from(&self.tenant), id, answer, jiff::Timestamp::now());
        self.host.answered.notify_waiters();
        answered
    }

    /// Waits until the question `id` is answered, used, void or expired (24 hours), and returns it. Looks at the store
    /// twice a second for answers of other processes.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], or the store cannot be read.
    pub async fn answered(&self, id: &str) -> Result<Approval, StoreError> {
        loop {
            // Before the look, so that an answer in between is not missed.
            let rung = self.host.answered.notified();
            let (store, of, wanted) = (self.store.clone(), TenantScope::from(&self.tenant), id.to_owned());
            let found = tokio::task::spawn_blocking(move || store.approval(&of, &wanted)).await;
            let found = found.map_err(|error| StoreError::Unavailable(format!("it failed: {error}")))??;
            let Some(approval) = found else {
                return Err(StoreError::NotFound(format!("there is no question `{id}`")));
            };
            if approval.state_at(jiff::Timestamp::now()) != ApprovalState::Waiting {
                return Ok(approval);
            }
            tokio::select! {
                () = rung => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }
}
