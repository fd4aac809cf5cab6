//! The port to what is spent at model doors.

use domain::store::{SpendingAccount, SpendingStore, SpentSum, StoreError};
use jiff::civil::Date;

use crate::database::{Database, SqlStore};
use crate::rows::spending;

impl<D: Database> SpendingStore for SqlStore<D> {
    fn spent_at_doors(&self, account: &SpendingAccount) -> Result<SpentSum, StoreError> {
        self.0.read_beside(|db| spending::spent(db, account))
    }

    fn spend_at_doors(&self, account: &SpendingAccount, more: SpentSum) -> Result<(), StoreError> {
        self.0.write(|db| spending::spend(db, account, more))
    }

    fn forget_spending(&self, day: Date) -> Result<(), StoreError> {
        self.0.write(|db| spending::forget(db, day))
    }
}
