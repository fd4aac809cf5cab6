//! What a tenant may spend in one month: arithmetic.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use pintle_domain::store::Budget;

/// The tokens that a tenant may spend a month unless somebody said otherwise; the databases' default too. Source: the
/// published format of budgets.
pub(crate) const TOTAL: i64 = 1_000_000;

/// Below one part in so many, little is left. Source: the published format of budgets.
const LITTLE: i128 = 5;

/// One tenant's month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    /// Its first day.
    pub(crate) month: Date,
    pub(crate) total: i64,
    /// The tokens that are spent or reserved.
    pub(crate) used: i64,
    /// Whether it was said this month that little is left.
    pub(crate) warned: bool,
}

/// The first day of the month of `now`, UTC.
pub(crate) fn month_of(now: Timestamp) -> Date {
    now.to_zoned(TimeZone::UTC).date().first_of_month()
}

impl Account {
    /// The first one of a tenant.
    pub(crate) fn fresh(now: Timestamp) -> Self {
        Self { month: month_of(now), total: TOTAL, used: 0, warned: false }
    }

    /// When its month began.
    pub(crate) fn begin(&self) -> Timestamp {
        self.month.to_zoned(TimeZone::UTC).map_or(Timestamp::MIN, |begin| begin.timestamp())
    }

    /// Begins the month of `now`, unless a later one has begun: of two clocks around midnight, the slower one does not
    /// give the whole budget anew.
    pub(crate) fn roll(&mut self, now: Timestamp) {
        if month_of(now) > self.month {
            *self = Self { total: self.total, ..Self::fresh(now) };
        }
    }

    /// Books `tokens`, if they fit.
    pub(crate) fn reserve(&mut self, tokens: u64) -> bool {
        let used = i64::try_from(tokens).ok().and_then(|tokens| self.used.checked_add(tokens));
        let fitting = used.filter(|used| *used <= self.total);
        self.used = fitting.unwrap_or(self.used);
        fitting.is_some()
    }

    /// Corrects what was booked. Says whether little is left, for the first time this month. What was booked last month
    /// may come back in this one, where it was never taken.
    pub(crate) fn settle(&mut self, delta: i64) -> bool {
        self.used = self.used.saturating_add(delta).max(0);
        let left = i128::from(self.total) - i128::from(self.used);
        let warns = left * LITTLE < i128::from(self.total) && !self.warned;
        self.warned |= warns;
        warns
    }

    /// As it is published.
    pub(crate) fn shown(&self) -> Budget {
        Budget {
            month_start: self.month.to_string(),
            budget_total: self.total,
            used: self.used,
            remaining: self.total.saturating_sub(self.used),
        }
    }
}
