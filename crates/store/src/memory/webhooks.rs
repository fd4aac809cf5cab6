//! What others are to be told, as values.

use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};

use jiff::Timestamp;
use pintle_domain::id::TenantId;
use pintle_domain::store::{Budget, FailedTurn, LoggedChange, RetryWhich, StoreError, StoredEndpoint, WebhookStore};
use pintle_domain::webhook::WebhookDelivery;

use super::Memory;
use crate::rules::whole_micros;

/// Receivers, and deliveries by their ids.
#[derive(Debug, Default)]
pub(super) struct WebhookTables {
    endpoints: BTreeMap<String, (u64, Option<Timestamp>)>,
    deliveries: BTreeMap<String, WebhookDelivery>,
    /// What was told, and when it happened.
    told: BTreeMap<String, Timestamp>,
    cursor: Option<Timestamp>,
}

impl Memory {
    fn webhooks(&self) -> MutexGuard<'_, WebhookTables> {
        self.webhooks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WebhookStore for Memory {
    fn post_webhooks(&self, mut deliveries: Vec<WebhookDelivery>) -> Result<usize, StoreError> {
        let mut tables = self.webhooks();
        deliveries.sort_by(|a, b| (&a.endpoint, &a.id).cmp(&(&b.endpoint, &b.id)));
        let mut new = 0;
        for delivery in deliveries {
            let is_there = tables.deliveries.contains_key(&delivery.id) || tables.told.contains_key(&delivery.id);
            let (seq, stopped) = tables.endpoints.entry(delivery.endpoint.clone()).or_default();
            if is_there || stopped.is_some() {
                continue;
            }
            *seq += 1;
            let kept = WebhookDelivery {
                seq: *seq,
                at: whole_micros(delivery.at),
                next_at: whole_micros(delivery.next_at),
                failed_at: None,
                error: None,
                ..delivery
            };
            tables.deliveries.insert(kept.id.clone(), kept);
            new += 1;
        }
        Ok(new)
    }

    fn take_webhooks(
        &self,
        endpoints: &[String],
        (now, until): (Timestamp, Timestamp),
        limit: usize,
    ) -> Result<Vec<WebhookDelivery>, StoreError> {
        let mut tables = self.webhooks();
        let WebhookTables { endpoints: known, deliveries, .. } = &mut *tables;
        let goes = |it: &WebhookDelivery| known.get(&it.endpoint).is_none_or(|(_, stopped)| stopped.is_none());
        let mut taken = Vec::new();
        for endpoint in endpoints {
            let mut due: Vec<&mut WebhookDelivery> = deliveries
                .values_mut()
                .filter(|it| it.endpoint == *endpoint && it.next_at <= now && it.failed_at.is_none() && goes(it))
                .collect();
            due.sort_by_key(|it| (it.next_at, it.seq));
            let take = |it: &mut WebhookDelivery| {
                it.next_at = whole_micros(until);
                it.clone()
            };
            taken.extend(due.into_iter().take(limit - taken.len()).map(take));
        }
        Ok(taken)
    }

    fn webhook_delivered(&self, id: &str) -> Result<(), StoreError> {
        let mut tables = self.webhooks();
        if let Some(delivery) = tables.deliveries.remove(id) {
            tables.told.insert(delivery.id, delivery.at);
        }
        Ok(())
    }

    fn rule_changes_since(&self, since: Timestamp, limit: usize) -> Result<Vec<LoggedChange>, StoreError> {
        Ok(self.changes_since(since, limit))
    }

    fn failed_turns(&self, since: Timestamp, limit: usize) -> Result<Vec<FailedTurn>, StoreError> {
        Ok(self.memory().failed_since(since, limit))
    }

    fn low_budgets(&self, since: Timestamp) -> Result<Vec<(TenantId, Budget)>, StoreError> {
        Ok(self.low_since(since))
    }

    fn webhook_cursor(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.webhooks().cursor)
    }

    fn advance_webhooks(&self, at: Timestamp, endpoints: &[String]) -> Result<(), StoreError> {
        let mut tables = self.webhooks();
        for endpoint in endpoints {
            tables.endpoints.entry(endpoint.clone()).or_default();
        }
        tables.cursor = tables.cursor.max(Some(whole_micros(at)));
        Ok(())
    }

    fn webhook_tried(&self, delivery: &WebhookDelivery) -> Result<(), StoreError> {
        if let Some(kept) = self.webhooks().deliveries.get_mut(&delivery.id) {
            kept.attempts = delivery.attempts;
            kept.next_at = whole_micros(delivery.next_at);
            kept.failed_at = delivery.failed_at.map(whole_micros);
            kept.error.clone_from(&delivery.error);
        }
        Ok(())
    }

    fn stop_webhook(&self, endpoint: &str, now: Timestamp) -> Result<(), StoreError> {
        if let Some((_, stopped)) = self.webhooks().endpoints.get_mut(endpoint) {
            stopped.get_or_insert(whole_micros(now));
        }
        Ok(())
    }

    fn webhook_endpoints(&self) -> Result<Vec<StoredEndpoint>, StoreError> {
        let tables = self.webhooks();
        let shown = |(id, (seq, stopped_at)): (&String, &(u64, Option<Timestamp>))| {
            let own = || tables.deliveries.values().filter(|it| it.endpoint == *id);
            let failed = own().filter(|it| it.failed_at.is_some()).count() as u64;
            let waiting = own().count() as u64 - failed;
            StoredEndpoint { id: id.clone(), seq: *seq, stopped_at: *stopped_at, waiting, failed }
        };
        Ok(tables.endpoints.iter().map(shown).collect())
    }

    fn webhook_deliveries(&self, limit: usize) -> Result<Vec<WebhookDelivery>, StoreError> {
        let mut all: Vec<WebhookDelivery> = self.webhooks().deliveries.values().cloned().collect();
        all.sort_by(|a, b| (b.at, &b.id).cmp(&(a.at, &a.id)));
        all.truncate(limit);
        Ok(all)
    }

    fn retry_webhooks(&self, which: RetryWhich<'_>, now: Timestamp) -> Result<u64, StoreError> {
        let mut tables = self.webhooks();
        if let RetryWhich::Endpoint(endpoint) = which
            && let Some((_, stopped)) = tables.endpoints.get_mut(endpoint)
        {
            *stopped = None;
        }
        let meant = |it: &&mut WebhookDelivery| match which {
            RetryWhich::WebhookDelivery(id) => it.id == id,
            RetryWhich::Endpoint(endpoint) => it.endpoint == endpoint,
        };
        let again = tables.deliveries.values_mut().filter(meant).map(|it| {
            it.attempts = 0;
            it.next_at = whole_micros(now);
            it.failed_at = None;
        });
        Ok(again.count() as u64)
    }

    fn forget_webhooks(&self, before: Timestamp) -> Result<u64, StoreError> {
        let mut tables = self.webhooks();
        let had = tables.deliveries.len();
        tables.deliveries.retain(|_, it| it.at >= before);
        Ok((had - tables.deliveries.len()) as u64)
    }
}
