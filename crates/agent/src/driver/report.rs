//! The report of a turn, as the host gets it.

use domain::approval::Approval;
use domain::id::TurnId;
use domain::ruling::{Aborted, Denied};
use domain::session::ReleaseReason;

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
