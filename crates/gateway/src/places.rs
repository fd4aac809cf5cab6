//! Who gets a place among what all nodes count together.

use std::sync::Arc;

use domain::id::TenantId;
use domain::store::{GatewayUse, UseKind};

use crate::Shared;
use crate::error::ApiError;
use crate::principal::Principal;
use crate::quotas::Place;

/// Turns in flight of one tenant. Source: the page of the gateway.
const MAX_TURNS: u32 = 50;

/// Open connections of one key. Source: the page of the gateway.
const MAX_CONNECTIONS: u32 = 200;

/// How long to wait before the same is tried again: turns take seconds.
const TRY_AGAIN_MS: u64 = 1000;

impl Shared {
    /// A turn of `tenant`, if it may have one more.
    pub(crate) async fn turn_of(self: &Arc<Self>, tenant: &TenantId) -> Result<Place, ApiError> {
        let taken = self.count(UseKind::Turn, tenant, (String::new(), MAX_TURNS)).await?;
        taken.ok_or_else(|| {
            ApiError::exhausted(format!("too many turns in flight: at most {MAX_TURNS} a tenant"), TRY_AGAIN_MS)
        })
    }

    /// A connection of `who`, if their key may have one more; nothing for whoever is not counted.
    pub(crate) async fn connection_of(self: &Arc<Self>, who: &Principal) -> Result<Option<Place>, ApiError> {
        let Some(counted) = who.credential.counted_for() else { return Ok(None) };
        match self.count(UseKind::Connection, &who.tenant, (counted, MAX_CONNECTIONS)).await? {
            Some(place) => Ok(Some(place)),
            None => {
                Err(ApiError::exhausted(format!("too many connections: at most {MAX_CONNECTIONS} a key"), TRY_AGAIN_MS))
            }
        }
    }

    async fn count(
        self: &Arc<Self>,
        kind: UseKind,
        tenant: &TenantId,
        (counted, limit): (String, u32),
    ) -> Result<Option<Place>, ApiError> {
        let one = GatewayUse {
            id: uuid::Uuid::now_v7().to_string(),
            kind,
            tenant: tenant.clone(),
            who: counted,
            node: self.guests.quotas.node.clone(),
        };
        self.blocking(move |shared| Ok(shared.guests.quotas.take(&*shared.store, &one, limit)?)).await
    }
}
