//! The account of one tenant with the model.

use jiff::civil::Date;
use pintle_domain::store::Budget;

/// One tenant's.
#[derive(Clone)]
pub(super) struct Account {
    pub(super) month: Date,
    pub(super) total: i64,
    pub(super) used: i64,
    /// Whether it was said this month that little is left.
    pub(super) warned: bool,
}

impl Account {
    pub(super) fn shown(&self) -> Budget {
        Budget {
            month_start: self.month.to_string(),
            budget_total: self.total,
            used: self.used,
            remaining: self.total.saturating_sub(self.used),
        }
    }
}
