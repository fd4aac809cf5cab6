//! The report of a turn, as the host gets it.

use pintle_domain::approval::Approval;
use pintle_domain::id::TurnId;
use pintle_domain::ruling::{Aborted, Denied};
use pintle_domain::session::ReleaseReason;

/// What came of one turn.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnReport {
    /// The turn.
    pub turn_id: TurnId,
    /// What the user reads at the end; empty when there is nothing to say. A user output that streams has shown it.
    pub reply: String,
    /// How it ended.
    pub ending: TurnEnding,
    /// What it and the sub-agents that it waited for were denied, a text each.
    pub denials: Vec<String>,
    /// Whether it ended because all its rounds were spent.
    pub at_limit: bool,
}

impl TurnReport {
    /// A turn that failed at `stage` before it did anything.
    pub(super) fn failed(turn_id: TurnId, stage: &str, text: String) -> Self {
        Self::of(turn_id, TurnEnding::Failed { stage: stage.to_owned(), text })
    }

    /// A turn that ended before it did anything.
    pub(super) fn of(turn_id: TurnId, ending: TurnEnding) -> Self {
        Self { turn_id, reply: String::new(), ending, denials: Vec::new(), at_limit: false }
    }
}

/// How a turn ended, as the host must know it.
#[derive(Clone, Debug, PartialEq)]
pub enum TurnEnding {
    /// With an answer.
    Completed,
    /// The prompt was refused before anything else saw it.
    Blocked(Denied),
    /// With an error at a stage, and its text.
    Failed {
        /// `llm` or `hook.STAGE`.
        stage: String,
        /// What happened.
        text: String,
    },
    /// A hook stopped the turn or the run.
    StoppedByHook(Aborted),
    /// Somebody cancelled it.
    Cancelled,
    /// It has not: a call waits for a person. [`Runner::resume`](super::Runner::resume) goes on.
    Waiting(Box<Approval>),
}

impl TurnEnding {
    /// Why the work on a session would be over, if it were over with this.
    pub(super) fn cause(&self) -> ReleaseReason {
        match self {
            Self::Completed | Self::Blocked(_) => ReleaseReason::Done,
            Self::Failed { .. } | Self::StoppedByHook(_) => ReleaseReason::Failed,
            Self::Cancelled => ReleaseReason::Interrupted,
            Self::Waiting(_) => ReleaseReason::Waiting,
        }
    }
}

/// What is said of a call that a person must clear, where nobody did.
pub(super) fn nobody_said(approval: &Approval) -> String {
    format!("a person has to approve it first: {}", approval.reason)
}
