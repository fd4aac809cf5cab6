//! The port to what is spent at model doors.

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

    /// Forgets what was spent before `day`. Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    fn forget_spending(&self, day: Date) -> Result<(), StoreError>;
}
