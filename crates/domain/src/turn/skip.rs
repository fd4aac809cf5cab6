//! Why a call is passed over.

/// Why a call of a batch is not even cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// A message came in while the batch was worked.
    Steering,
    /// Somebody wants the turn to come to an end.
    Graceful,
}

impl SkipReason {
    /// The tool message.
    pub fn text(self) -> &'static str {
        match self {
            Self::Steering => "Skipped due to queued user message.",
            Self::Graceful => "Skipped due to graceful interrupt.",
        }
    }

    /// The reason in the event.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Steering => "queued user steering message",
            Self::Graceful => "graceful interrupt requested",
        }
    }
}
