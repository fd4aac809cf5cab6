//! What is spent at model doors, as values.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use pintle_domain::store::{
    SpendingAccount, SpendingHold, SpendingRoom, SpendingStanding, SpendingStore, SpentSum, StoreError,
};

use super::Memory;

/// What was spent, and what is held until when.
#[derive(Debug, Default)]
pub(super) struct DoorAccounts {
    spent: BTreeMap<SpendingAccount, SpentSum>,
    holds: BTreeMap<String, (SpendingHold, Timestamp)>,
}

fn add(sum: &mut SpentSum, more: SpentSum) {
    sum.tokens = sum.tokens.saturating_add(more.tokens);
    sum.nano_dollars = sum.nano_dollars.saturating_add(more.nano_dollars);
}

impl SpendingStore for Memory {
    fn spent_at_doors(&self, account: &SpendingAccount) -> Result<SpentSum, StoreError> {
        Ok(self.spending().spent.get(account).copied().unwrap_or_default())
    }

    fn spend_at_doors(&self, account: &SpendingAccount, more: SpentSum) -> Result<(), StoreError> {
        let tenant = self.known_tenant(&account.tenant)?;
        let mut all = self.spending();
        add(all.spent.entry(SpendingAccount { tenant, ..account.clone() }).or_default(), more);
        Ok(())
    }

    fn hold_spending(
        &self,
        hold: &SpendingHold,
        room: SpendingRoom,
        (now, until): (Timestamp, Timestamp),
    ) -> Result<SpendingStanding, StoreError> {
        let tenant = self.known_tenant(&hold.account.tenant)?;
        let hold = SpendingHold { account: SpendingAccount { tenant, ..hold.account.clone() }, ..hold.clone() };
        let mut all = self.spending();
        let spent = all.spent.get(&hold.account).copied().unwrap_or_default();
        let mut held = SpentSum::default();
        for (other, until) in all.holds.values() {
            let (theirs, own) = (&other.account, &hold.account);
            if (&theirs.tenant, &theirs.vendor, &theirs.payer) == (&own.tenant, &own.vendor, &own.payer) && *until > now
            {
                add(&mut held, other.most);
            }
        }
        let has_room = room.has_room(spent, held);
        if has_room {
            all.holds.insert(hold.id.clone(), (hold, until));
        }
        Ok(SpendingStanding { spent, held, has_room })
    }

    fn settle_spending(&self, id: &str, account: &SpendingAccount, more: SpentSum) -> Result<(), StoreError> {
        let was_there = self.spending().holds.remove(id).is_some();
        if was_there && more != SpentSum::default() { self.spend_at_doors(account, more) } else { Ok(()) }
    }

    fn keep_spending_holds(&self, node: &str, until: Timestamp) -> Result<(), StoreError> {
        for (_, kept) in self.spending().holds.values_mut().filter(|(hold, _)| hold.node == node) {
            *kept = until;
        }
        Ok(())
    }

    fn forget_spending(&self, day: Date) -> Result<(), StoreError> {
        let mut all = self.spending();
        all.spent.retain(|account, _| account.day >= day);
        all.holds.retain(|_, (_, until)| until.to_zoned(TimeZone::UTC).date() >= day);
        Ok(())
    }
}
