//! The port to what others are told: an outbox.

use jiff::Timestamp;

use super::{Budget, LoggedChange, StoreError};
use crate::id::{SessionId, TenantId, TurnId};
use crate::webhook::WebhookDelivery;

/// A receiver as the store knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredEndpoint {
    /// See [`endpoint_id`](crate::webhook::endpoint_id).
    pub id: String,
    /// The number of the newest event that was kept for it.
    pub seq: u64,
    /// Since when nothing is sent to it, where it said that it wants nothing.
    pub stopped_at: Option<Timestamp>,
    /// How many deliveries are to be made.
    pub waiting: u64,
    /// How many were given up.
    pub failed: u64,
}

/// A turn that ended in an error, as its journal says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedTurn {
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// The agent whose turn it was.
    pub agent: String,
    /// The conversation.
    pub session: SessionId,
    /// Which turn.
    pub turn: TurnId,
    /// Where it failed: `llm`, or the hook that stopped it.
    pub stage: String,
    /// What the user was told.
    pub error: String,
    /// When it ended.
    pub at: Timestamp,
}

/// Which deliveries are to be tried anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryWhich<'a> {
    /// One, by its id.
    WebhookDelivery(&'a str),
    /// All of one receiver, which is sent to again if it was stopped.
    Endpoint(&'a str),
}

/// Keeps what others are to be told until they are. Every method blocks, shortly.
pub trait WebhookStore: Send + Sync {
    /// Keeps deliveries, each with the next number of its receiver. One that is there already stays as it is, and what is
    /// for a receiver that is stopped is not kept. Says how many are new.
    ///
    /// # Errors
    /// The store cannot do it.
    fn post_webhooks(&self, deliveries: Vec<WebhookDelivery>) -> Result<usize, StoreError>;

    /// The oldest `limit` deliveries to `endpoints` that are due, taken by this process until `until`.
    ///
    /// # Errors
    /// The store cannot do it.
    fn take_webhooks(
        &self,
        endpoints: &[String],
        times: (Timestamp, Timestamp),
        limit: usize,
    ) -> Result<Vec<WebhookDelivery>, StoreError>;

    /// The changes of rules since `since`, oldest first, at most `limit`.
    ///
    /// # Errors
    /// The store cannot be read.
    fn rule_changes_since(&self, since: Timestamp, limit: usize) -> Result<Vec<LoggedChange>, StoreError>;

    /// The turns that ended in an error since `since`, in sessions of their own, oldest first, at most `limit`.
    ///
    /// # Errors
    /// The store cannot be read.
    fn failed_turns(&self, since: Timestamp, limit: usize) -> Result<Vec<FailedTurn>, StoreError>;

    /// The budgets of which less than a fifth was left for the first time in their month since `since`.
    ///
    /// # Errors
    /// The store cannot be read.
    fn low_budgets(&self, since: Timestamp) -> Result<Vec<(TenantId, Budget)>, StoreError>;

    /// Until when everything that happened is kept for those who want to know; nothing where nobody looked yet.
    ///
    /// # Errors
    /// The store cannot be read.
    fn webhook_cursor(&self) -> Result<Option<Timestamp>, StoreError>;

    /// Everything that happened until `at` is kept. It never goes back. `endpoints` are known from then on.
    ///
    /// # Errors
    /// The store cannot do it.
    fn advance_webhooks(&self, at: Timestamp, endpoints: &[String]) -> Result<(), StoreError>;

    /// The delivery is made. Whoever keeps it once more keeps nothing.
    ///
    /// # Errors
    /// The store cannot do it.
    fn webhook_delivered(&self, id: &str) -> Result<(), StoreError>;

    /// Keeps the members of a delivery that an attempt changes: `attempts`, `next_at`, `failed_at`, `error`.
    ///
    /// # Errors
    /// The store cannot do it.
    fn webhook_tried(&self, delivery: &WebhookDelivery) -> Result<(), StoreError>;

    /// Nothing is sent to `endpoint` any more.
    ///
    /// # Errors
    /// The store cannot do it.
    fn stop_webhook(&self, endpoint: &str, now: Timestamp) -> Result<(), StoreError>;

    /// Every receiver that something was kept for, by its id.
    ///
    /// # Errors
    /// The store cannot be read.
    fn webhook_endpoints(&self) -> Result<Vec<StoredEndpoint>, StoreError>;

    /// The newest `limit` deliveries that are not made, newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    fn webhook_deliveries(&self, limit: usize) -> Result<Vec<WebhookDelivery>, StoreError>;

    /// Makes deliveries due now, as if they had not been tried. Says how many.
    ///
    /// # Errors
    /// The store cannot do it.
    fn retry_webhooks(&self, which: RetryWhich<'_>, now: Timestamp) -> Result<u64, StoreError>;

    /// Forgets deliveries of events before `before`. Says how many.
    ///
    /// # Errors
    /// The store cannot do it.
    fn forget_webhooks(&self, before: Timestamp) -> Result<u64, StoreError>;
}
