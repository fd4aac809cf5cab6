//! What keys spend at the doors, counted in the store: for all nodes, and across restarts.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use jiff::civil::Date;
use pintle_domain::store::{SpendingAccount, SpendingHold, SpendingRoom, SpentSum};
use pintle_doors::spending::{HeldElsewhere, Holding, Limit, NANOS_IN_MILLI, SpendingWish, Spent};
use pintle_doors::tokens::Tokens;
use uuid::Uuid;

use super::settlements::{HELD, Settlement};
use crate::Shared;
use crate::error::ApiError;
use crate::rare_line::RareLine;

static NOT_COUNTED: RareLine = RareLine::new();

impl Shared {
    /// Holds what a request may come to. Whoever hangs up meanwhile leaves nothing held.
    pub(super) async fn hold_spending(
        self: &Arc<Self>,
        account: SpendingAccount,
        (wish, limit): (SpendingWish, Limit),
    ) -> Result<Holding, ApiError> {
        let (id, node) = (Uuid::now_v7().to_string(), self.guests.quotas.node.clone());
        let hold = SpendingHold { id, account, most: sum(wish.most), node };
        let room = SpendingRoom {
            tokens: limit.tokens,
            nano_dollars: limit.milli_dollars.map(|milli| milli.saturating_mul(NANOS_IN_MILLI)),
            own: sum(wish.own),
        };
        let held = StoreHold { shared: self.clone(), account: hold.account.clone(), id: Some(hold.id.clone()) };
        self.blocking(move |shared| {
            let mut held = held;
            // What ended here before is counted before, or its hold would be in the way.
            if let Err(error) = shared.desk.model_doors.settlements.settle(&*shared.store) {
                tracing::debug!(%error, "what answers cost is counted later");
            }
            let now = Timestamp::now();
            let found = shared.store.hold_spending(&hold, room, (now, now + HELD))?;
            if found.has_room {
                return Ok(Holding::Held(Box::new(held)));
            }
            held.id = None;
            Ok(Holding::Full { spent: spent(found.spent), held: spent(found.held) })
        })
        .await
    }

    /// Counts `more`, in the place of a hold if there was one. Nobody waits for it, but nothing ends before it.
    pub(super) fn spends(self: &Arc<Self>, hold: Option<String>, account: SpendingAccount, more: SpentSum) {
        self.desk.model_doors.settlements.waiting().push(Settlement { hold, account, more });
        let shared = self.clone();
        self.life.doors.spawn(async move { shared.settle_spending().await });
    }

    /// Counts what waits to be counted.
    pub(crate) async fn settle_spending(self: &Arc<Self>) {
        let settled = self.blocking(|shared| Ok(shared.desk.model_doors.settlements.settle(&*shared.store)?)).await;
        if let Err(error) = settled
            && let Some(more) = NOT_COUNTED.due(Instant::now())
        {
            tracing::warn!(
                more,
                "what answers cost could not be counted for other nodes, and is tried again: {}",
                error.message
            );
        }
    }
}

/// What is held in the store for a request.
struct StoreHold {
    shared: Arc<Shared>,
    account: SpendingAccount,
    /// Its id, until somebody knows what the request came to.
    id: Option<String>,
}

impl HeldElsewhere for StoreHold {
    fn settle(mut self: Box<Self>, day: Date, spent: Spent) {
        let (id, account) = (self.id.take(), SpendingAccount { day, ..self.account.clone() });
        self.shared.spends(id, account, sum(spent));
    }
}

impl Drop for StoreHold {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.shared.spends(Some(id), self.account.clone(), SpentSum::default());
        }
    }
}

pub(super) const fn sum(spent: Spent) -> SpentSum {
    SpentSum { tokens: spent.tokens.all(), nano_dollars: spent.nano_dollars }
}

/// Which tokens were read does not matter to a limit.
fn spent(sum: SpentSum) -> Spent {
    Spent { tokens: Tokens { read: sum.tokens, ..Tokens::default() }, nano_dollars: sum.nano_dollars }
}
