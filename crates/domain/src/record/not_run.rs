//! The reasons for which a hook did not run.

use std::fmt;
use std::sync::Arc;

use crate::id::HookName;

/// The tokens that a question to a judge could have taken, and what there was.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct BudgetNeed {
    /// The tokens that the question could have taken.
    pub needed: u64,
    /// What was left; nothing where that could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<BudgetLeft>,
}

/// What is left of the budget of a tenant.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct BudgetLeft {
    /// The tokens that are left.
    pub tokens: u64,
    /// All tokens of the month.
    pub of: u64,
    /// The tenant, by the name that people know.
    pub tenant: String,
    /// The day on which all of them are there again, as `2026-12-01`.
    pub until: String,
}

impl fmt::Display for BudgetNeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tokens needed", self.needed)?;
        let Some(BudgetLeft { tokens, of, tenant, until }) = &self.left else { return Ok(()) };
        write!(f, ", {tokens} of {of} left to tenant {tenant} until {until}")
    }
}

/// Why a hook did not run: a closed list.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum NotRun {
    /// Switched off.
    Disabled,
    /// Not registered for this kind of event, tenant or agent.
    OutOfScope,
    /// Its matcher said no.
    Matcher {
        /// The pattern. Shared with the matcher, as an event may leave it for each of fifty hooks.
        pattern: Arc<str>,
        /// The names it was compared with. Shared by the lines of one event.
        value: Arc<str>,
    },
    /// Its condition does not hold.
    Condition {
        /// The condition. Shared with it.
        text: Arc<str>,
    },
    /// Its circuit breaker is open.
    BreakerOpen {
        /// Since when, RFC 3339, UTC.
        since: String,
    },
    /// An earlier hook ended the chain.
    Decided {
        /// Which one.
        by: HookName,
    },
    /// From a configuration that nobody accepted.
    Untrusted,
    /// The hooks before it took all the time that the hooks of one event have together.
    ChainTimeSpent {
        /// How much that is, in milliseconds.
        ms: u64,
    },
    /// What judges may cost is used up.
    BudgetSpent(BudgetNeed),
    /// It was asked as often in this turn as it may be.
    CapReached {
        /// How often that is.
        cap: u32,
    },
    /// Its queue was full; the event was dropped and counted.
    Dropped,
}
