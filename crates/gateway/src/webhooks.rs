//! Others are told what happens, by signed requests: at least once, for a day, whichever process notices it.
//!
//! What happens is kept in the store first, with an id that every process makes alike, so that several nodes keep it once.
//! Then it is taken for a while by one process, which sends it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use pintle_domain::id::TenantId;
use pintle_domain::json::{Value, json};
use pintle_domain::shown_url::shown_url;
use pintle_domain::store::{RetryWhich, StoreError, Tenant};
use pintle_domain::webhook::{AfterAttempt, WebhookDelivery, WebhookEvent, delivery_id, endpoint_id};
use pintle_host::config::{Env, GatewayConfig};
use pintle_store::Store;
use tokio::sync::Notify;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::bad_settings::BadSettings;
use crate::outage;

mod endpoint;
mod missed;
mod payload;

pub(crate) use endpoint::Endpoint;
pub(crate) use payload::{Blocked, Happened, head};

/// How long a delivery that was taken is this process's: an attempt, and as much time again to write what came of it.
const LEASE: SignedDuration = SignedDuration::from_secs(45);

/// How often it is looked for deliveries that others left, or that are due again.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How long what could not be kept waits before it is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// How often it is looked for what happened and was not kept, because whoever noticed it died.
const CATCH_UP_EVERY: Duration = Duration::from_secs(15);

/// How far behind the cursor that is looked for: what was under way then is written by now.
const BEHIND: SignedDuration = SignedDuration::from_secs(60);

/// Most deliveries that are sent at once.
const AT_ONCE: usize = 16;

/// Most events that wait for the store: what a lively hour brings. Further ones are lost, and that is said.
const MAX_WAITING: usize = 10_000;

/// How long what was given up is kept, so that somebody can try it again: a week of absence.
const KEPT: SignedDuration = SignedDuration::from_hours(8 * 24);

/// How often what is older is forgotten.
const SWEEP_EVERY: Duration = Duration::from_secs(3600);

/// Most deliveries that are listed.
const MAX_LISTED: usize = 200;

/// Tells others. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Webhooks {
    parts: Arc<Parts>,
    told: UnboundedSender<Happened>,
}

struct Parts {
    endpoints: Vec<Endpoint>,
    public: Option<Url>,
    store: Arc<dyn Store>,
    /// Rung when there is something to send.
    bell: Notify,
    /// Rung when something happened that is found in the store.
    happened: Notify,
}

/// What happened and is not kept yet.
pub(crate) type Waiting = UnboundedReceiver<Happened>;

/// The receivers of the configuration.
///
/// # Errors
/// An entry cannot work as it is.
pub(crate) fn endpoints(config: &GatewayConfig, env: &Env) -> Result<Vec<Endpoint>, BadSettings> {
    config.webhooks.iter().map(|entry| Endpoint::of(entry, env)).collect()
}

impl Webhooks {
    pub(crate) fn new(endpoints: Vec<Endpoint>, public: Option<Url>, store: Arc<dyn Store>) -> (Self, Waiting) {
        let (told, waiting) = unbounded_channel();
        (
            Self {
                parts: Arc::new(Parts { endpoints, public, store, bell: Notify::new(), happened: Notify::new() }),
                told,
            },
            waiting,
        )
    }

    /// Whether anybody wants to know of `event`.
    pub(crate) fn wanted(&self, event: WebhookEvent) -> bool {
        self.parts.endpoints.iter().any(|endpoint| endpoint.wants(event))
    }

    /// Something happened. Never blocks.
    pub(crate) fn happened(&self, what: Happened) {
        if self.wanted(what.event()) {
            // Nobody takes it only at the very end.
            drop(self.told.send(what));
        }
    }

    /// A turn ended in an error: its journal says so, and it is told from there, whatever becomes of this process.
    pub(crate) fn turn_failed(&self) {
        if self.wanted(WebhookEvent::TurnFailed) {
            self.parts.happened.notify_one();
        }
    }

    /// How many deliveries to the receivers of the configuration are to be made, and how many were given up. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    pub(crate) fn left(&self) -> Result<(u64, u64), StoreError> {
        if self.parts.endpoints.is_empty() {
            return Ok((0, 0));
        }
        let stored = self.parts.store.webhook_endpoints()?;
        let known = stored.iter().filter(|it| self.parts.endpoints.iter().any(|endpoint| endpoint.id == it.id));
        Ok(known.fold((0, 0), |(waiting, failed), it| (waiting + it.waiting, failed + it.failed)))
    }

    /// Looks at once for what is due.
    pub(crate) fn ring(&self) {
        self.parts.bell.notify_one();
    }

    /// Keeps what happens, until `stop`; then what still waits, once.
    pub(crate) async fn keep(self, mut waiting: Waiting, stop: CancellationToken) {
        loop {
            let first = tokio::select! {
                first = waiting.recv() => first,
                () = stop.cancelled() => waiting.try_recv().ok(),
            };
            let Some(first) = first else { return };
            let mut batch = vec![first];
            while let Ok(next) = waiting.try_recv() {
                batch.push(next);
            }
            if batch.len() > MAX_WAITING {
                tracing::error!(lost = batch.len() - MAX_WAITING, "webhooks.lost: the store was too slow");
                batch.truncate(MAX_WAITING);
            }
            self.keep_batch(Arc::new(batch), &stop).await;
        }
    }

    async fn keep_batch(&self, batch: Arc<Vec<Happened>>, stop: &CancellationToken) {
        loop {
            let (parts, events) = (self.parts.clone(), batch.clone());
            let kept = tokio::task::spawn_blocking(move || parts.post(&events, Timestamp::now())).await;
            match kept {
                Ok(Ok(new)) => {
                    if new > 0 {
                        self.ring();
                    }
                    return;
                }
                Ok(Err(error)) => outage::told(&error, "webhook events could not be stored yet"),
                Err(error) => return tracing::error!("webhooks.lost: {error}"),
            }
            if stop.is_cancelled() {
                return tracing::error!(lost = batch.len(), "webhooks.lost: the store did not answer");
            }
            tokio::select! {
                () = tokio::time::sleep(TRY_AGAIN) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// Finds again what was not kept, at once and from then on, until `stop`.
    pub(crate) async fn catch_up(self, stop: CancellationToken) {
        if self.parts.endpoints.is_empty() {
            return;
        }
        let mut ticks = tokio::time::interval(CATCH_UP_EVERY);
        let mut known: Option<Vec<String>> = None;
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = self.parts.happened.notified() => {}
                () = stop.cancelled() => return,
            }
            let (parts, before) = (self.parts.clone(), known.clone());
            let done = tokio::task::spawn_blocking(move || parts.catch_up(before)).await;
            match done {
                Ok(Ok((all, new))) => {
                    known = Some(all);
                    if new > 0 {
                        self.ring();
                    }
                }
                Ok(Err(error)) => outage::told(&error, "webhook events could not be looked for"),
                Err(error) => tracing::error!("webhook events could not be looked for: {error}"),
            }
        }
    }

    /// Sends what is due, until `stop`.
    pub(crate) async fn deliver(self, stop: CancellationToken) {
        if self.parts.endpoints.is_empty() {
            return;
        }
        let sent = async {
            let mut sweep = tokio::time::interval(SWEEP_EVERY);
            loop {
                tokio::select! {
                    () = self.parts.bell.notified() => {}
                    () = tokio::time::sleep(LOOK_EVERY) => {}
                    _ = sweep.tick() => self.sweep().await,
                }
                while self.send_due().await == AT_ONCE {}
            }
        };
        tokio::select! {
            () = sent => {}
            // What is on its way is sent again by whoever comes next.
            () = stop.cancelled() => {}
        }
    }

    /// Sends some of what is due. Says how many.
    async fn send_due(&self) -> usize {
        let ids: Vec<String> = self.parts.endpoints.iter().map(|endpoint| endpoint.id.clone()).collect();
        let taken = self
            .blocking(move |store| {
                let now = Timestamp::now();
                store.take_webhooks(&ids, (now, now + LEASE), AT_ONCE)
            })
            .await;
        let taken = taken.unwrap_or_else(|error| {
            tracing::debug!("due webhook deliveries could not be read: {error}");
            Vec::new()
        });
        join_all(taken.iter().map(|delivery| self.send(delivery))).await;
        taken.len()
    }

    async fn send(&self, delivery: &WebhookDelivery) {
        let Some(endpoint) = self.parts.endpoints.iter().find(|endpoint| endpoint.id == delivery.endpoint) else {
            return;
        };
        let attempt = endpoint.send(delivery, Timestamp::now()).await;
        let now = Timestamp::now();
        let after = attempt.then(delivery.attempts, now, spread());
        let delivery = delivery.clone();
        let kept = self.blocking(move |store| settle(store, delivery, after, now)).await;
        if let Err(error) = kept {
            tracing::warn!("the result of a webhook could not be stored, so it will be sent again: {error}");
        }
    }

    async fn sweep(&self) {
        let forgot = self.blocking(|store| store.forget_webhooks(Timestamp::now() - KEPT)).await;
        if let Err(error) = forgot {
            tracing::debug!("old webhook deliveries could not be deleted: {error}");
        }
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let parts = self.parts.clone();
        let done = tokio::task::spawn_blocking(move || work(&*parts.store)).await;
        done.unwrap_or_else(|error| Err(StoreError::Unavailable(error.to_string())))
    }
}

impl Parts {
    /// Keeps what happened since the cursor, for those in `known`, else for those that the store knows: whoever is new hears
    /// of what comes. The receivers that are known then, and how many deliveries are new. Blocks.
    fn catch_up(&self, known: Option<Vec<String>>) -> Result<(Vec<String>, usize), StoreError> {
        let now = Timestamp::now();
        let known = match known {
            Some(known) => known,
            None => self.store.webhook_endpoints()?.into_iter().map(|it| it.id).collect(),
        };
        let (new, reached) = match self.store.webhook_cursor()? {
            Some(cursor) => {
                let of_known = || self.endpoints.iter().filter(|endpoint| known.contains(&endpoint.id));
                let since = cursor.checked_sub(BEHIND).unwrap_or(cursor);
                let events = missed::missed(&*self.store, since, |event| of_known().any(|it| it.wants(event)))?;
                (self.post_for(&of_known().collect::<Vec<_>>(), &events, now)?, cursor.max(now))
            }
            // What was before the first look is nobody's news.
            None => (0, now + BEHIND),
        };
        let all: Vec<String> = self.endpoints.iter().map(|endpoint| endpoint.id.clone()).collect();
        self.store.advance_webhooks(reached, &all)?;
        Ok((all, new))
    }

    /// Keeps what happened for everybody who wants to know of it. Says how many deliveries are new. Blocks.
    fn post(&self, events: &[Happened], now: Timestamp) -> Result<usize, StoreError> {
        self.post_for(&self.endpoints.iter().collect::<Vec<_>>(), events, now)
    }

    /// The same for some of them.
    fn post_for(&self, endpoints: &[&Endpoint], events: &[Happened], now: Timestamp) -> Result<usize, StoreError> {
        if events.is_empty() {
            return Ok(0);
        }
        let filters = self.endpoints.iter().any(|endpoint| endpoint.tenant.is_some());
        let tenants = if filters { self.store.tenants()? } else { Vec::new() };
        let mut deliveries = Vec::new();
        for happened in events {
            let told = happened.told(self.public.as_ref());
            let wanting = endpoints.iter().filter(|endpoint| {
                endpoint.wants(told.event) && is_of(&tenants, endpoint.tenant.as_deref(), &told.tenant)
            });
            deliveries.extend(wanting.map(|endpoint| WebhookDelivery {
                id: delivery_id(&endpoint.id, told.event, &told.key),
                endpoint: endpoint.id.clone(),
                tenant: told.tenant.clone(),
                event: told.event,
                seq: 0,
                data: told.data.to_string(),
                at: told.at.unwrap_or(now),
                attempts: 0,
                next_at: now,
                failed_at: None,
                error: None,
            }));
        }
        self.store.post_webhooks(deliveries)
    }
}

/// Whether an event of `tenant` is for whoever wants those of the tenant `slug`. What is about all tenants, such as a
/// change of a global rule, is about each of them, as over the socket.
fn is_of(tenants: &[Tenant], slug: Option<&str>, tenant: &TenantId) -> bool {
    let is_about = |known: &Tenant| known.id == *tenant || *tenant == TenantId::sentinel();
    let is_it = |slug: &str| tenants.iter().any(|known| known.slug == slug && is_about(known));
    slug.is_none_or(is_it)
}

/// Keeps what came of an attempt.
fn settle(store: &dyn Store, delivery: WebhookDelivery, after: AfterAttempt, now: Timestamp) -> Result<(), StoreError> {
    let attempts = delivery.attempts + 1;
    match after {
        AfterAttempt::Delivered => store.webhook_delivered(&delivery.id),
        AfterAttempt::Again { at, error } => {
            store.webhook_tried(&WebhookDelivery { attempts, next_at: at, error: Some(error), ..delivery })
        }
        AfterAttempt::GivenUp { error } => {
            tracing::error!(id = delivery.id, "webhooks.given_up: {error}");
            store.webhook_tried(&WebhookDelivery { attempts, failed_at: Some(now), error: Some(error), ..delivery })
        }
        AfterAttempt::Stop => {
            tracing::warn!(
                endpoint = delivery.endpoint,
                "webhooks.stopped: it answered 410; see `pintle webhooks list`"
            );
            store.stop_webhook(&delivery.endpoint, now)?;
            let error = Some("it answered 410".to_owned());
            store.webhook_tried(&WebhookDelivery { attempts, failed_at: Some(now), error, ..delivery })
        }
    }
}

/// A random number up to 255.
fn spread() -> u8 {
    uuid::Uuid::now_v7().into_bytes()[15]
}

/// The receivers of `config` and what is to be told them, as it is published. Blocks.
///
/// # Errors
/// The store cannot be read.
pub fn webhook_list(config: &GatewayConfig, store: &dyn Store) -> Result<Value, StoreError> {
    let known = store.webhook_endpoints()?;
    let endpoints = config.webhooks.iter().map(|entry| {
        let id = endpoint_id(entry.url.as_str());
        let stands = known.iter().find(|known| known.id == id).cloned().unwrap_or_default();
        json!({
            "id": id,
            "url": shown_url(entry.url.as_str()),
            "events": entry.events,
            "tenant": entry.tenant,
            "seq": stands.seq,
            "waiting": stands.waiting,
            "failed": stands.failed,
            "stoppedAt": stands.stopped_at,
        })
    });
    let deliveries = store.webhook_deliveries(MAX_LISTED)?;
    let deliveries = deliveries.iter().map(|delivery| {
        json!({
            "id": delivery.id,
            "endpointId": delivery.endpoint,
            "tenantId": delivery.tenant,
            "event": delivery.event,
            "seq": delivery.seq,
            "at": delivery.at,
            "attempts": delivery.attempts,
            "nextAt": delivery.failed_at.is_none().then_some(delivery.next_at),
            "failedAt": delivery.failed_at,
            "error": delivery.error,
        })
    });
    Ok(json!({ "endpoints": endpoints.collect::<Vec<_>>(), "deliveries": deliveries.collect::<Vec<_>>() }))
}

/// Makes the delivery, or everything for the receiver, with this id due now. Says how many deliveries; nothing where there
/// is no such id. Blocks.
///
/// # Errors
/// The store cannot do it.
pub fn webhook_retry(store: &dyn Store, id: &str) -> Result<Option<u64>, StoreError> {
    let now = Timestamp::now();
    let one = store.retry_webhooks(RetryWhich::WebhookDelivery(id), now)?;
    if one > 0 {
        return Ok(Some(one));
    }
    let is_known = store.webhook_endpoints()?.iter().any(|known| known.id == id);
    is_known.then(|| store.retry_webhooks(RetryWhich::Endpoint(id), now)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_wants_the_events_of_a_tenant_hears_of_global_rules() {
        let tenant = |id: &str, slug: &str| Tenant {
            id: id.into(),
            slug: slug.into(),
            name: String::new(),
            created_at: String::new(),
        };
        let (acme, other) = ("0193a5b0-7000-7000-8000-00000000000a", "0193a5b0-7000-7000-8000-00000000000b");
        let tenants = [tenant(acme, "acme"), tenant(other, "other")];
        for (slug, of, expected) in [
            (Some("acme"), TenantId::from(acme), true),
            (Some("acme"), TenantId::from(other), false),
            (Some("acme"), TenantId::sentinel(), true),
            // There is no such tenant.
            (Some("nobody"), TenantId::sentinel(), false),
            (None, TenantId::from(other), true),
        ] {
            assert_eq!(is_of(&tenants, slug, &of), expected, "{slug:?} {of}");
        }
    }
}
