//! Why a call is passed over.

/// Why a call of a batch is not even cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// A message came in while the batch was worked.
    Steering,
    /// Somebody wants the turn to come to an end.
    Graceful,
    /// All rounds of the turn are spent: this was the call that sums up.
    Limit,
    /// The model's answer ended before the call was complete.
    Cut,
}

impl SkipReason {
    /// The tool message.
    pub fn text(self) -> &'static str {
        match self {
            Self::Steering => "Skipped due to queued user message.",
            Self::Graceful => "Skipped due to graceful interrupt.",
            Self::Limit => "Skipped due to the iteration limit.",
            Self::Cut => {
                "The tool did not run: your answer reached its longest length before this call was complete. Make the \
                 call again with shorter arguments, or in several smaller steps."
            }
        }
    }

    /// The reason in the event.
    pub fn reason(self) -> &'static str {
        match self {
            Self::Steering => "queued user steering message",
            Self::Graceful => "graceful interrupt requested",
            Self::Limit => "iteration limit reached",
            Self::Cut => "the answer was cut before this call was complete",
        }
    }
}
