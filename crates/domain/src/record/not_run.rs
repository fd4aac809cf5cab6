//! The reasons for which a hook did not run.

use std::sync::Arc;

use crate::id::HookName;

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
    BudgetSpent {
        /// The tokens that the question could have taken.
        needed: u64,
    },
    /// It was asked as often in this turn as it may be.
    CapReached {
        /// How often that is.
        cap: u32,
    },
    /// Its queue was full; the event was dropped and counted.
    Dropped,
}
