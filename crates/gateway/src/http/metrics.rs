//! `GET /metrics`: numbers for whoever scrapes.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Extension, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use pintle_domain::id::TenantId;
use pintle_domain::measure;
use pintle_rules::admin::CallerRole;

use super::refused::Refused;
use crate::Shared;
use crate::counters::gauge;
use crate::door::Visit;
use crate::error::ApiError;
use crate::roles;
use crate::wire::openai;

/// For administrators.
pub(crate) async fn show(
    State(shared): State<Arc<Shared>>,
    Extension(visit): Extension<Visit>,
    headers: HeaderMap,
) -> Response {
    let allowed =
        shared.signed_in(&headers, visit).await.and_then(|who| roles::allow_over_http(&who, "metrics").map(|_| who));
    match allowed {
        // Tenants never meet, in numbers neither.
        Ok(who) => text(&shared, Some(&who.tenant).filter(|_| who.role < CallerRole::Owner)).await,
        Err(error) => refused(error),
    }
}

/// The same for anybody, where nothing else is served.
pub(super) async fn show_to_anybody(State(shared): State<Arc<Shared>>) -> Response {
    text(&shared, None).await
}

/// All numbers; of those about tenants only the ones of `only`, if that is given.
async fn text(shared: &Arc<Shared>, only: Option<&TenantId>) -> Response {
    match shared.metrics(only).await {
        Ok(text) => {
            let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
            (StatusCode::OK, kind, text).into_response()
        }
        Err(error) => refused(error),
    }
}

fn refused(error: ApiError) -> Response {
    let refused = Refused::from(error);
    refused.response(&openai::error(&refused.error, &refused.code))
}

impl Shared {
    /// The numbers, as text.
    async fn metrics(self: &Arc<Self>, only: Option<&TenantId>) -> Result<String, ApiError> {
        let (mut metrics, tenants) = self.runs.counters.metrics();
        let of_hooks = self.host.read().await.gauges();
        let asked = Instant::now();
        let look = move |shared: &Self| -> Result<_, ApiError> {
            Ok((of_hooks(&tenants), shared.store.jobs_left()?, shared.desk.webhooks.left()?))
        };
        let (hooks, jobs, (untold, given_up)) = self.blocking(look).await?;
        let lag = asked.elapsed().as_millis();
        metrics.extend(hooks);
        let (connections, runs) = (self.hub.all(), self.lanes.all());
        let (mut frames, mut bytes, mut dropped) = (0, 0, 0);
        for connection in &connections {
            let waiting = connection.waiting();
            frames += waiting.frames;
            bytes += waiting.bytes;
            dropped += waiting.dropped;
        }
        let parked = runs.iter().filter(|run| run.waits().is_some()).count();
        metrics.extend([
            gauge("gateway_connections", "How many WebSocket connections are open.", connections.len()),
            gauge(
                "gateway_turns_running",
                "How many runs are worked, those that wait for a person included.",
                runs.len(),
            ),
            gauge("gateway_turns_waiting", "How many of them wait for a person.", parked),
            gauge(
                "gateway_requests_in_flight",
                "How many requests over the socket are worked.",
                self.life.requests.len(),
            ),
            gauge("gateway_door_answers", "How many models are asked through the door.", self.life.doors.len()),
            gauge("gateway_queue_frames", "How many frames wait to be written to connections that are open.", frames),
            gauge("gateway_queue_bytes", "How many bytes these have.", bytes),
            gauge("gateway_events_dropped", "How many events connections that are open did not get.", dropped),
            gauge(
                "gateway_outbox_jobs",
                "How many jobs of observers wait in the store.",
                usize::try_from(jobs).unwrap_or(usize::MAX),
            ),
            gauge(
                "gateway_webhooks_waiting",
                "How many webhook deliveries are to be made.",
                usize::try_from(untold).unwrap_or(usize::MAX),
            ),
            gauge(
                "gateway_webhooks_failed",
                "How many webhook deliveries were given up, and can be tried again.",
                usize::try_from(given_up).unwrap_or(usize::MAX),
            ),
            gauge(
                "gateway_store_lag_ms",
                "How long the store took for the last look, in milliseconds.",
                usize::try_from(lag).unwrap_or(usize::MAX),
            ),
        ]);
        if let Some(tenant) = only {
            metrics = metrics.into_iter().map(|metric| metric.seen_by(tenant.as_str())).collect();
        }
        Ok(measure::text(&metrics))
    }
}
