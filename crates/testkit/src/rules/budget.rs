//! The budgets of the model.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use pintle_domain::id::TenantId;
use pintle_domain::store::{Budget, BudgetChange, BudgetStore, StoreError};

use super::MemoryRules;
use super::account::Account;
use super::state::RuleState;

/// What a tenant may spend a month unless somebody said otherwise. Source: the seed.
const TOTAL: i64 = 1_000_000;

impl RuleState {
    /// The account of `tenant` in the month of `now`, or in a later one if somebody with a faster clock was there.
    fn account(&mut self, tenant: &TenantId, now: Timestamp) -> Result<&mut Account, StoreError> {
        self.knows(tenant)?;
        let month = now.to_zoned(TimeZone::UTC).date().first_of_month();
        let fresh = || Account { month, total: TOTAL, used: 0, warned: false };
        let account = self.budgets.entry(tenant.clone()).or_insert_with(fresh);
        if month > account.month {
            *account = Account { total: account.total, ..fresh() };
        }
        Ok(account)
    }
}

impl BudgetStore for MemoryRules {
    fn budget(&self, tenant: &TenantId, now: Timestamp) -> Result<Budget, StoreError> {
        Ok(self.rule_state()?.account(tenant, now)?.shown())
    }

    fn reserve(&self, tenant: &TenantId, tokens: u64, now: Timestamp) -> Result<bool, StoreError> {
        let mut rule_state = self.rule_state()?;
        let account = rule_state.account(tenant, now)?;
        let used = i64::try_from(tokens).ok().and_then(|tokens| account.used.checked_add(tokens));
        let fitting = used.filter(|used| *used <= account.total);
        if let Some(used) = fitting {
            account.used = used;
        }
        Ok(fitting.is_some())
    }

    fn settle(&self, tenant: &TenantId, delta: i64, now: Timestamp) -> Result<(Budget, bool), StoreError> {
        let mut rule_state = self.rule_state()?;
        let account = rule_state.account(tenant, now)?;
        // What was reserved last month may come back in this one, where it was never taken.
        account.used = account.used.saturating_add(delta).max(0);
        let left = i128::from(account.total) - i128::from(account.used);
        let low = left * 5 < i128::from(account.total) && !account.warned;
        account.warned |= low;
        Ok((account.shown(), low))
    }

    fn set_budget(&self, tenant: &TenantId, change: &BudgetChange) -> Result<Budget, StoreError> {
        let mut rule_state = self.rule_state()?;
        let account = rule_state.account(tenant, change.by.at)?;
        let before = std::mem::replace(&mut account.total, change.total);
        let shown = account.shown();
        rule_state.log_budget(tenant, before, change);
        Ok(shown)
    }
}
