//! What a handler tells of how it came to its answer, for the record.

use std::time::Duration;

use crate::checkpoint::Reply;
use crate::fault::{Cause, Fault};
use crate::record::not_run::NotRun;

/// The account that one call of a handler left behind beside its answer. All of it is optional: kinds of handlers
/// differ.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// Whether what it says is nothing about the hook itself: a cap or a budget spoke in its place.
    pub uncounted: bool,
    /// Why it did not run, where that spoke in its place: an open circuit breaker, a spent budget.
    pub instead: Option<NotRun>,
    /// The fault in the handler's own words, whole, where they say more than the fault does.
    pub detail: Option<Cause>,
    /// Bytes on its standard output.
    pub stdout_len: Option<usize>,
    /// Bytes on its standard error.
    pub stderr_len: Option<usize>,
    /// The beginning of its standard output, for somebody who tests it and for the record.
    pub stdout: Option<String>,
    /// The same of its standard error or of its log.
    pub stderr: Option<String>,
    /// Whether no record may have those: a hook took out what they may hold.
    pub hides_output: bool,
    /// The status of the HTTP response.
    pub http_status: Option<u16>,
    /// Whether the response was not JSON.
    pub non_json: bool,
    /// Whether the answer is an earlier one.
    pub cached: bool,
    /// Whether the judge saw an attempt to talk it into something.
    pub injection_detected: bool,
    /// The model that judged.
    pub model: Option<String>,
    /// The tokens that the model took for the answer.
    pub tokens: Option<u64>,
    /// The number of times that the call was tried again.
    pub retry: u32,
    /// How long it waited for a place to run. That is of the time of its chain, and no part of the hook's own.
    pub slot_wait: Duration,
    /// The outcome of the handler's rewrite, if it sent one.
    pub rewrite: Option<RewriteOutcome>,
    /// The reason that it gave for letting pass, which a ruling has no place for.
    pub allowed: Option<String>,
    /// Whether the context is dropped that it wanted to add.
    pub context_dropped: bool,
}

/// The outcome of a rewrite that a hook sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RewriteOutcome {
    /// It is in force.
    Applied,
    /// It is not, for want of the right; these parts of it, or all.
    Dropped(String),
}

/// The answer of one call of a handler, with its account.
#[derive(Clone, Debug)]
pub struct HandlerAnswer {
    /// Its answer, or why there is none.
    pub heard: Result<Reply, Fault>,
    /// The handler's account of how it came to the answer, where it tells.
    pub account: Option<Box<Account>>,
}

impl From<Result<Reply, Fault>> for HandlerAnswer {
    fn from(heard: Result<Reply, Fault>) -> Self {
        Self { heard, account: None }
    }
}
