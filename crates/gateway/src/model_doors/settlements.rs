//! What was spent at the doors and is not yet in the store.

use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::SignedDuration;
use pintle_domain::store::{SpendingAccount, SpentSum, StoreError};
use pintle_store::Store;

/// How long a hold counts that its node does not keep: then the node is gone. Longer than clocks of nodes differ.
pub(crate) const HELD: SignedDuration = SignedDuration::from_mins(5);

/// What is to be counted.
#[derive(Clone, Debug)]
pub(super) struct Settlement {
    /// The hold in whose place it comes, if there is one.
    pub(super) hold: Option<String>,
    pub(super) account: SpendingAccount,
    pub(super) more: SpentSum,
}

/// What was spent here, and is not yet in the store.
#[derive(Debug, Default)]
pub(crate) struct Settlements {
    waiting: Mutex<Vec<Settlement>>,
    /// Whoever writes has it: who comes after that finds in the store what waited before.
    writing: Mutex<()>,
}

impl Settlements {
    pub(super) fn waiting(&self) -> MutexGuard<'_, Vec<Settlement>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts what waits. What cannot be counted waits for the next time. Blocks.
    ///
    /// # Errors
    /// The store could not do all of it.
    pub(crate) fn settle(&self, store: &dyn Store) -> Result<(), StoreError> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = std::mem::take(&mut *self.waiting()).into_iter();
        let mut failed = Ok(());
        while let Some(one) = left.next() {
            let done = match &one.hold {
                Some(hold) => store.settle_spending(hold, &one.account, one.more),
                None => store.spend_at_doors(&one.account, one.more),
            };
            if let Err(error) = done {
                self.waiting().push(one);
                if matches!(error, StoreError::Unavailable(_)) {
                    self.waiting().extend(left.by_ref());
                }
                failed = Err(error);
            }
        }
        failed
    }
}

#[cfg(test)]
mod tests {
    use pintle_domain::id::TenantId;
    use pintle_domain::store::SpendingStore as _;
    use pintle_store::Memory;

    use super::*;

    #[test]
    fn what_could_not_be_counted_is_counted_the_next_time() {
        let (settlements, store) = (Settlements::default(), Memory::new());
        let account = |tenant: TenantId| SpendingAccount {
            tenant,
            vendor: "openai".into(),
            payer: "key:a".into(),
            day: jiff::civil::date(2026, 11, 26),
        };
        let one = |tenant: TenantId| {
            let more = SpentSum { tokens: 5, nano_dollars: 7 };
            Settlement { hold: None, account: account(tenant), more }
        };
        let own = TenantId::default_tenant();
        settlements.waiting().extend([one(TenantId::from("0193a5b0-7000-7000-8000-00000000ffff")), one(own.clone())]);
        settlements.settle(&store).unwrap_err();
        assert_eq!(settlements.waiting().len(), 1, "it is not lost, and in nobody's way");
        let counted = SpentSum { tokens: 5, nano_dollars: 7 };
        assert_eq!(store.spent_at_doors(&account(own.clone())), Ok(counted));
        // The store can do it again.
        settlements.waiting().iter_mut().for_each(|one| one.account.tenant = own.clone());
        settlements.settle(&store).unwrap();
        assert_eq!(store.spent_at_doors(&account(own)), Ok(SpentSum { tokens: 10, nano_dollars: 14 }));
        assert!(settlements.waiting().is_empty());
    }
}
