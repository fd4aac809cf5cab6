//! The runner of scripts, as the host provides it.

use std::time::Duration;

use futures_util::future::BoxFuture;
use pintle_domain::checkpoint::Duty;
use pintle_domain::json::Object;

/// Runs the scripts of hooks, somewhere they can do no harm.
pub trait Scripts: Send + Sync {
    /// Runs a script once. Dropping the future ends it.
    fn run<'a>(&'a self, call: ScriptCall<'a>) -> BoxFuture<'a, ScriptResult>;

    /// Says whether a script can be used. The error is the published message.
    fn check<'a>(&'a self, source: &'a str) -> BoxFuture<'a, Result<(), String>>;
}

/// One run of a script.
#[derive(Clone, Copy, Debug)]
pub struct ScriptCall<'a> {
    /// Whose slots it takes.
    pub tenant: &'a str,
    /// Whether somebody waits for it: observers begin behind gates.
    pub duty: Duty,
    /// The text of the script.
    pub source: &'a str,
    /// The event as JSON, in the words of scripts.
    pub event: &'a str,
    /// What the script has, from when it has its slot.
    pub timeout: Duration,
    /// What the caller has in all, waiting for the slot included.
    pub budget: Duration,
}

/// What a run of a script gave.
#[derive(Clone, Debug)]
pub struct ScriptResult {
    /// The object that it returned, or why there is none.
    pub returned: Result<Object, ScriptFailure>,
    /// What it wrote to its console.
    pub log: String,
    /// How long it waited for its slot, which is not part of its own time.
    pub waited: Duration,
}

/// Why a script gave nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptFailure {
    /// Its own time was over.
    TimedOut {
        /// That time.
        after: Duration,
    },
    /// It had no slot within the caller's time: this says nothing of the script.
    NoSlot {
        /// That time.
        waited: Duration,
    },
    /// It threw this: the first line of it.
    Threw(String),
    /// Everything else, in words.
    Failed(String),
}
