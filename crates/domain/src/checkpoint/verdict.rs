//! The verdict of one hook. It is spelled by its checkpoint, and the checkpoint by it.

use super::Checkpoint;
use crate::reason::{Abort, AbortScope, Describe, Reason, VerdictKind};

/// What one hook said at the checkpoint `C`. Answers that `C` does not allow cannot be built.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict<C: Checkpoint> {
    /// Go on with the value as it is. Of an approver: approved.
    Continue,
    /// Go on with this instead.
    Modify(C::Modify),
    /// This is the result; do not run the tool.
    Respond(C::Respond),
    /// A human must say.
    Ask(C::Ask),
    /// No.
    Deny(C::Deny),
    /// Stop the turn, or more.
    Abort(C::Abort),
}

impl<C: Checkpoint<Deny = Reason>> Verdict<C> {
    /// No, because of `reason`.
    pub fn deny(reason: &str) -> Self {
        Self::Deny(Reason::new(reason))
    }
}

impl<C: Checkpoint<Abort = Abort>> Verdict<C> {
    /// End the turn with an error.
    pub fn abort_turn(reason: &str) -> Self {
        Self::Abort(Abort { abort_scope: AbortScope::Turn, reason: Reason::new(reason) })
    }

    /// Stop the whole run of the session.
    pub fn hard_abort(reason: &str) -> Self {
        Self::Abort(Abort { abort_scope: AbortScope::Run, reason: Reason::new(reason) })
    }
}

/// A verdict with what the reader of it noticed.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedVerdict<C: Checkpoint> {
    /// What was said.
    pub verdict: Verdict<C>,
    /// Likely mistakes in how it was said.
    pub warnings: Vec<String>,
    /// A rewrite that comes with an answer of another kind: an ask, or one that lets pass.
    pub rewrite: Option<Box<C::Modify>>,
    /// What the model is to read besides.
    pub context: Option<String>,
}

impl<C: Checkpoint> From<Verdict<C>> for ParsedVerdict<C> {
    fn from(verdict: Verdict<C>) -> Self {
        Self { verdict, warnings: Vec::new(), rewrite: None, context: None }
    }
}

impl<C: Checkpoint> Verdict<C> {
    /// Its word and reason, for the record.
    pub fn told(&self) -> (VerdictKind, Option<&Reason>) {
        match self {
            Self::Continue => (VerdictKind::Continue, None),
            Self::Modify(_) => (VerdictKind::Modify, None),
            Self::Respond(_) => (VerdictKind::Respond, None),
            Self::Ask(why) => why.told(VerdictKind::Ask),
            Self::Deny(why) => why.told(VerdictKind::Deny),
            Self::Abort(abort) => abort.told(VerdictKind::AbortTurn),
        }
    }
}
