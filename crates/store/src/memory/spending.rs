//! What is spent at model doors, as values.

use domain::store::{SpendingAccount, SpendingStore, SpentSum, StoreError};
use jiff::civil::Date;

use super::Memory;

impl SpendingStore for Memory {
    fn spent_at_doors(&self, account: &SpendingAccount) -> Result<SpentSum, StoreError> {
        Ok(self.spending().get(account).copied().unwrap_or_default())
    }

    fn spend_at_doors(&self, account: &SpendingAccount, more: SpentSum) -> Result<(), StoreError> {
        let tenant = self.known_tenant(&account.tenant)?;
        let mut all = self.spending();
        let sum = all.entry(SpendingAccount { tenant, ..account.clone() }).or_default();
        sum.tokens = sum.tokens.saturating_add(more.tokens);
        sum.nano_dollars = sum.nano_dollars.saturating_add(more.nano_dollars);
        Ok(())
    }

    fn forget_spending(&self, day: Date) -> Result<(), StoreError> {
        self.spending().retain(|account, _| account.day >= day);
        Ok(())
    }
}
