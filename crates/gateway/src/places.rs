//! Who gets a place among what all nodes count together.

use std::sync::Arc;

use pintle_domain::id::{TenantId, TurnId};
use pintle_domain::store::{GatewayUse, TurnRoom, UseKind};

use crate::Shared;
use crate::error::ApiError;
use crate::principal::Principal;
use crate::quotas::Place;
use crate::session_name::part_of;

/// Turns in flight of one tenant. Source: the page of the gateway.
const MAX_TURNS: u32 = 50;

/// Turns of one user that wait for a person: half of those of their tenant, so that nobody alone keeps all others out.
const MAX_WAITING_A_USER: u32 = MAX_TURNS / 2;

/// Open connections of one key. Source: the page of the gateway.
const MAX_CONNECTIONS: u32 = 200;

/// How long to wait before the same is tried again: whoever is gone is found out about within seconds.
const TRY_AGAIN_MS: u64 = 1000;

impl Shared {
    /// The turn `turn` of `user` in `tenant`, if they may have one more.
    pub(crate) async fn turn_of(
        self: &Arc<Self>,
        tenant: &TenantId,
        user: &str,
        turn: &TurnId,
    ) -> Result<Place, ApiError> {
        let one = self.turn_use(tenant, user, turn);
        let taken = self.count_turn(one, (MAX_WAITING_A_USER, MAX_TURNS)).await?;
        taken.ok_or_else(|| {
            let why = format!(
                "too many turns in flight: at most {MAX_TURNS} a tenant, and {MAX_WAITING_A_USER} of one user that wait \
                 for an approval"
            );
            ApiError::exhausted(why, TRY_AGAIN_MS)
        })
    }

    /// The same of a turn that somebody left, which was counted before: it goes on however many there are.
    pub(crate) async fn left_turn_of(self: &Arc<Self>, tenant: &TenantId, user: &str, turn: &TurnId) -> Option<Place> {
        let counted = self.count_turn(self.turn_use(tenant, user, turn), (u32::MAX, u32::MAX)).await;
        counted.inspect_err(|error| tracing::warn!(%error, "a turn that goes on is not counted")).ok().flatten()
    }

    fn turn_use(&self, tenant: &TenantId, user: &str, turn: &TurnId) -> GatewayUse {
        GatewayUse {
            id: turn.to_string(),
            kind: UseKind::Turn,
            tenant: tenant.clone(),
            who: user.to_owned(),
            node: self.guests.quotas.node.clone(),
        }
    }

    /// Counts `one`, unless `own` turns of its user wait for a person or its tenant has `all`.
    async fn count_turn(self: &Arc<Self>, one: GatewayUse, (own, all): (u32, u32)) -> Result<Option<Place>, ApiError> {
        let user = part_of(&one.who);
        self.blocking(move |shared| {
            let turns = TurnRoom { limit: all, user: &user };
            Ok(shared.guests.quotas.take(&*shared.store, &one, (own, Some(turns)))?)
        })
        .await
    }

    /// A connection of `who`, if their key may have one more; nothing for whoever is not counted.
    pub(crate) async fn connection_of(self: &Arc<Self>, who: &Principal) -> Result<Option<Place>, ApiError> {
        let Some(counted) = who.credential.counted_for() else { return Ok(None) };
        match self.count_connection(&who.tenant, counted).await? {
            Some(place) => Ok(Some(place)),
            None => {
                Err(ApiError::exhausted(format!("too many connections: at most {MAX_CONNECTIONS} a key"), TRY_AGAIN_MS))
            }
        }
    }

    async fn count_connection(self: &Arc<Self>, tenant: &TenantId, counted: String) -> Result<Option<Place>, ApiError> {
        let one = GatewayUse {
            id: uuid::Uuid::now_v7().to_string(),
            kind: UseKind::Connection,
            tenant: tenant.clone(),
            who: counted,
            node: self.guests.quotas.node.clone(),
        };
        self.blocking(move |shared| Ok(shared.guests.quotas.take(&*shared.store, &one, (MAX_CONNECTIONS, None))?)).await
    }
}
