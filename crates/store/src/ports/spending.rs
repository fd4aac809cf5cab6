//! The port to what is spent at model doors.

use jiff::Timestamp;
use jiff::civil::Date;
use pintle_domain::store::{
    SpendingAccount, SpendingHold, SpendingRoom, SpendingStanding, SpendingStore, SpentSum, StoreError,
};

use crate::database::{Database, SqlStore};
use crate::rows::spending;

impl<D: Database> SpendingStore for SqlStore<D> {
    fn spent_at_doors(&self, account: &SpendingAccount) -> Result<SpentSum, StoreError> {
        self.0.read_beside(|db| spending::spent(db, account))
    }

    fn spend_at_doors(&self, account: &SpendingAccount, more: SpentSum) -> Result<(), StoreError> {
        self.0.write(|db| spending::spend(db, account, more))
    }

    fn hold_spending(
        &self,
        hold: &SpendingHold,
        room: SpendingRoom,
        at: (Timestamp, Timestamp),
    ) -> Result<SpendingStanding, StoreError> {
        self.0.write(|db| spending::hold(db, hold, room, at))
    }

    fn settle_spending(&self, id: &str, account: &SpendingAccount, more: SpentSum) -> Result<(), StoreError> {
        self.0.write(|db| spending::settle(db, id, account, more))
    }

    fn keep_spending_holds(&self, node: &str, until: Timestamp) -> Result<(), StoreError> {
        self.0.write(|db| spending::keep(db, node, until))
    }

    fn forget_spending(&self, day: Date) -> Result<(), StoreError> {
        self.0.write(|db| spending::forget(db, day))
    }
}
