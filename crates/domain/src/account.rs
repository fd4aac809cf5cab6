//! What a handler tells of how it came to its answer, for the record.

use crate::checkpoint::Reply;
use crate::fault::Fault;
use crate::record::not_run::NotRun;

/// What one call of a handler left behind beside its answer. All of it is optional: kinds of handlers differ.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// Whether what it says is nothing about the hook itself: a cap or a budget spoke in its place.
    pub uncounted: bool,
    /// Why it did not run, where that spoke in its place: an open circuit breaker, a spent budget.
    pub instead: Option<NotRun>,
    /// The fault in the handler's own words, whole.
    pub detail: Option<String>,
    /// Bytes on its standard output.
    pub stdout_len: Option<usize>,
    /// Bytes on its standard error.
    pub stderr_len: Option<usize>,
    /// The beginning of its standard output, for somebody who tests it.
    pub stdout: Option<String>,
    /// The beginning of its standard error or of its log, for somebody who tests it.
    pub stderr: Option<String>,
    /// The status of the HTTP response.
    pub http_status: Option<u16>,
    /// Whether the response was no JSON.
    pub non_json: bool,
    /// Whether the answer is an earlier one.
    pub cached: bool,
    /// Whether the judge saw an attempt to talk it into something.
    pub injection_detected: bool,
    /// The model that judged.
    pub model: Option<String>,
    /// What that cost.
    pub tokens: Option<u64>,
    /// How often it was tried again.
    pub retry: u32,
    /// What became of a rewrite.
    pub rewrite: Option<RewriteOutcome>,
    /// Whether the context is dropped that it wanted to add.
    pub context_dropped: bool,
}

/// What became of a rewrite that a hook sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RewriteOutcome {
    /// It is in force.
    Applied,
    /// It is not, for want of the right; these parts of it, or all.
    Dropped(String),
}

/// What came of one call of a handler.
#[derive(Clone, Debug)]
pub struct HandlerAnswer {
    /// Its answer, or why there is none.
    pub heard: Result<Reply, Fault>,
    /// How it came to it, where it tells.
    pub account: Option<Box<Account>>,
}

impl From<Result<Reply, Fault>> for HandlerAnswer {
    fn from(heard: Result<Reply, Fault>) -> Self {
        Self { heard, account: None }
    }
}
