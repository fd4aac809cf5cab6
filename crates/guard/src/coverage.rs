//! What of a host's tools can be held, by what was seen of it.

use crate::tools::ToolClass;

/// How far the tools of one class are under guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardLevel {
    /// A call can be stopped, changed and recorded.
    Held,
    /// A call is recorded only.
    Seen,
    /// A call may pass unseen.
    Open,
    /// The host has no such tool of its own.
    Absent,
}

impl GuardLevel {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Seen => "seen",
            Self::Open => "open",
            Self::Absent => "none",
        }
    }
}

/// The way round of hosts that decide alone where a hook gives no answer.
pub(crate) const KILLED: &str = "if the shell around the hook is killed with SIGKILL, or the hook is stopped with \
                                 SIGSTOP until its timeout is over, the call runs";

/// The way round of hosts that refuse where a hook breaks, and not where it is late.
pub(crate) const STOPPED: &str = "if the hook is stopped with SIGSTOP until its timeout is over, the call runs";

/// The way round of hosts whose hooks cannot withhold what a tool gave.
pub(crate) const RESULT: &str = "what a tool gave reaches the model, whatever a hook says of it";

/// How far the tools of one class of a host are under guard, and the known ways round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolCoverage {
    /// The class.
    pub class: ToolClass,
    /// How far.
    pub level: GuardLevel,
    /// Ways round that are known, each in a few words.
    pub around: &'static [&'static str],
}
