//! The port to what is spent at model doors.

use jiff::Timestamp;
use jiff::civil::Date;

use super::StoreError;
use crate::id::TenantId;

/// Whose spending is counted, where, and on which day of UTC.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpendingAccount {
    /// The tenant.
    pub tenant: TenantId,
    /// The vendor that is asked.
    pub vendor: String,
    /// What those who pay together are counted by.
    pub payer: String,
    /// The day.
    pub day: Date,
}

/// How much was spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpentSum {
    /// Tokens, read and written.
    pub tokens: u64,
    /// Billionths of a dollar.
    pub nano_dollars: u64,
}

/// What a request under way may come to: it counts until somebody knows what it came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpendingHold {
    /// Its id, a UUID.
    pub id: String,
    /// Whose spending it will be.
    pub account: SpendingAccount,
    /// The most that it is taken to come to.
    pub most: SpentSum,
    /// The process that has the request.
    pub node: String,
}

/// How much room an account has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpendingRoom {
    /// Tokens, where they have a limit.
    pub tokens: Option<u64>,
    /// Billionths of a dollar, where they have a limit.
    pub nano_dollars: Option<u64>,
    /// What the request holds already, which is not in its own way.
    pub own: SpentSum,
}

impl SpendingRoom {
    /// Whether there is room for somebody beside what was `spent` and what is `held`.
    #[must_use]
    pub fn has_room(&self, spent: SpentSum, held: SpentSum) -> bool {
        let below = |limit: Option<u64>, spent: u64, held: u64, own: u64| {
            limit.is_none_or(|limit| spent.saturating_add(held.saturating_sub(own)) < limit)
        };
        below(self.tokens, spent.tokens, held.tokens, self.own.tokens)
            && below(self.nano_dollars, spent.nano_dollars, held.nano_dollars, self.own.nano_dollars)
    }
}

/// What an account looked like before somebody asked for room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpendingStanding {
    /// What was spent of it.
    pub spent: SpentSum,
    /// What was held for requests under way.
    pub held: SpentSum,
    /// Whether there was room, so that the hold was made.
    pub has_room: bool,
}

/// What is spent, over all processes of a store.
pub trait SpendingStore: Send + Sync {
    /// What was spent of `account`. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn spent_at_doors(&self, account: &SpendingAccount) -> Result<SpentSum, StoreError>;

    /// Counts `more` to `account`. Blocks.
    ///
    /// # Errors
    /// There is no such tenant, or the store cannot do it.
    fn spend_at_doors(&self, account: &SpendingAccount, more: SpentSum) -> Result<(), StoreError>;

    /// Makes `hold`, which counts from the first moment to the second, unless what was spent and what all hold leaves no
    /// room. Nobody gets in between. Blocks.
    ///
    /// # Errors
    /// There is no such tenant, or the store cannot do it.
    fn hold_spending(
        &self,
        hold: &SpendingHold,
        room: SpendingRoom,
        at: (Timestamp, Timestamp),
    ) -> Result<SpendingStanding, StoreError>;

    /// Lets the hold `id` go, and counts `more` to `account` in its place; nothing where it went before. Blocks.
    ///
    /// # Errors
    /// There is no such tenant, or the store cannot do it.
    fn settle_spending(&self, id: &str, account: &SpendingAccount, more: SpentSum) -> Result<(), StoreError>;

    /// Counts all holds of `node` until `until`. Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    fn keep_spending_holds(&self, node: &str, until: Timestamp) -> Result<(), StoreError>;

    /// Forgets what was spent before `day`, and the holds that ended before it. Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    fn forget_spending(&self, day: Date) -> Result<(), StoreError>;
}
