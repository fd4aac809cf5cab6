//! The port to what others are told.

use jiff::Timestamp;
use pintle_domain::id::TenantId;
use pintle_domain::store::{Budget, FailedTurn, LoggedChange, RetryWhich, StoreError, StoredEndpoint, WebhookStore};
use pintle_domain::webhook::WebhookDelivery;

use crate::database::{Database, SqlStore};
use crate::rows::{budgets, hooks, journal, webhooks};

impl<D: Database> WebhookStore for SqlStore<D> {
    fn post_webhooks(&self, deliveries: Vec<WebhookDelivery>) -> Result<usize, StoreError> {
        self.0.write(|db| webhooks::post(db, &deliveries))
    }

    fn take_webhooks(
        &self,
        endpoints: &[String],
        times: (Timestamp, Timestamp),
        limit: usize,
    ) -> Result<Vec<WebhookDelivery>, StoreError> {
        self.0.write(|db| webhooks::take(db, endpoints, times, limit))
    }

    fn rule_changes_since(&self, since: Timestamp, limit: usize) -> Result<Vec<LoggedChange>, StoreError> {
        self.0.read(|db| hooks::changes_since(db, since, limit))
    }

    fn failed_turns(&self, since: Timestamp, limit: usize) -> Result<Vec<FailedTurn>, StoreError> {
        self.0.list(|db| journal::failed_since(db, since, limit))
    }

    fn low_budgets(&self, since: Timestamp) -> Result<Vec<(TenantId, Budget)>, StoreError> {
        self.0.read(|db| budgets::low_since(db, since))
    }

    fn webhook_cursor(&self) -> Result<Option<Timestamp>, StoreError> {
        self.0.read(|db| webhooks::cursor(db))
    }

    fn advance_webhooks(&self, at: Timestamp, endpoints: &[String]) -> Result<(), StoreError> {
        self.0.write(|db| webhooks::advance(db, at, endpoints))
    }

    fn webhook_delivered(&self, id: &str) -> Result<(), StoreError> {
        self.0.write(|db| webhooks::delivered(db, id))
    }

    fn webhook_tried(&self, delivery: &WebhookDelivery) -> Result<(), StoreError> {
        self.0.write(|db| webhooks::tried(db, delivery))
    }

    fn stop_webhook(&self, endpoint: &str, now: Timestamp) -> Result<(), StoreError> {
        self.0.write(|db| webhooks::stop(db, endpoint, now))
    }

    fn webhook_endpoints(&self) -> Result<Vec<StoredEndpoint>, StoreError> {
        self.0.read(|db| webhooks::endpoints(db))
    }

    fn webhook_deliveries(&self, limit: usize) -> Result<Vec<WebhookDelivery>, StoreError> {
        self.0.read(|db| webhooks::newest(db, limit))
    }

    fn retry_webhooks(&self, which: RetryWhich<'_>, now: Timestamp) -> Result<u64, StoreError> {
        self.0.write(|db| webhooks::retry(db, which, now))
    }

    fn forget_webhooks(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.0.write(|db| webhooks::forget(db, before))
    }
}
