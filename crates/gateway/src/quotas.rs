//! What is counted over all nodes, by rows: turns in flight, open connections.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::id::TenantId;
use domain::store::{GatewayUse, UseKind};
use jiff::{SignedDuration, Timestamp};

use crate::Shared;
use crate::error::ApiError;
use crate::principal::Principal;

/// Turns in flight of one tenant. Source: the page of the gateway.
const MAX_TURNS: u32 = 50;

/// Open connections of one key. Source: the page of the gateway.
const MAX_CONNECTIONS: u32 = 200;

/// How long a row counts that its node does not keep: then the node is gone.
pub(crate) const KEPT: SignedDuration = SignedDuration::from_secs(30);

/// How often a node keeps its rows: it may miss one time.
pub(crate) const KEEP_EVERY: Duration = Duration::from_secs(10);

/// How long to wait before the same is tried again: turns take seconds.
const TRY_AGAIN_MS: u64 = 1000;

/// What this node has.
pub(crate) struct Quotas {
    /// This process among all nodes.
    pub(crate) node: String,
    ended: Arc<Mutex<Vec<String>>>,
}

impl Default for Quotas {
    fn default() -> Self {
        Self { node: uuid::Uuid::now_v7().to_string(), ended: Arc::default() }
    }
}

impl Quotas {
    /// The ids of those that ended since the last time.
    pub(crate) fn ended(&self) -> Vec<String> {
        std::mem::take(&mut *self.ended.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One that is counted for as long as this lives.
pub(crate) struct Place {
    id: String,
    ended: Arc<Mutex<Vec<String>>>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let id = std::mem::take(&mut self.id);
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).push(id);
    }
}

impl Shared {
    /// A turn of `tenant`, if it may have one more.
    pub(crate) async fn turn_of(self: &Arc<Self>, tenant: &TenantId) -> Result<Place, ApiError> {
        let taken = self.take(UseKind::Turn, tenant, (String::new(), MAX_TURNS)).await?;
        taken.ok_or_else(|| {
            ApiError::exhausted(format!("too many turns in flight: at most {MAX_TURNS} a tenant"), TRY_AGAIN_MS)
        })
    }

    /// A connection of `who`, if their key may have one more; nothing for whoever is not counted.
    pub(crate) async fn connection_of(self: &Arc<Self>, who: &Principal) -> Result<Option<Place>, ApiError> {
        let Some(counted) = who.credential.counted_for() else { return Ok(None) };
        match self.take(UseKind::Connection, &who.tenant, (counted, MAX_CONNECTIONS)).await? {
            Some(place) => Ok(Some(place)),
            None => {
                Err(ApiError::exhausted(format!("too many connections: at most {MAX_CONNECTIONS} a key"), TRY_AGAIN_MS))
            }
        }
    }

    async fn take(
        self: &Arc<Self>,
        kind: UseKind,
        tenant: &TenantId,
        (counted, limit): (String, u32),
    ) -> Result<Option<Place>, ApiError> {
        let quotas = &self.guests.quotas;
        let one = GatewayUse {
            id: uuid::Uuid::now_v7().to_string(),
            kind,
            tenant: tenant.clone(),
            who: counted,
            node: quotas.node.clone(),
        };
        let place = Place { id: one.id.clone(), ended: quotas.ended.clone() };
        let taken = self
            .blocking(move |shared| {
                let now = Timestamp::now();
                // What ended here need not wait for its turn.
                shared.store.end_uses(&shared.guests.quotas.ended())?;
                Ok(shared.store.take_use(&one, limit, (now, now + KEPT))?)
            })
            .await?;
        Ok(taken.then_some(place))
    }
}
