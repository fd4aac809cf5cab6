//! The points of the flow at which texts of skills go in.

use serde::{Deserialize, Serialize};

/// At which point of the flow a text goes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timing {
    /// Once per request, behind the message of the user; stays to the end.
    AfterUserInput,
    /// Before the planning call; leaves after it.
    BeforePlanning,
    /// Before the first call of the loop; leaves after the loop.
    BeforeFirstAgent,
    /// Before each call of the loop; leaves before the next one.
    BeforeEachAgent,
    /// After a batch of tool calls, for each of them; leaves before the next such point.
    AfterToolCall,
}

impl Timing {
    /// All of them, in the order in which a request passes them.
    pub const ALL: [Self; 5] = [
        Self::AfterUserInput,
        Self::BeforePlanning,
        Self::BeforeEachAgent,
        Self::BeforeFirstAgent,
        Self::AfterToolCall,
    ];

    /// The word in manifests, frames and listings.
    pub fn word(self) -> &'static str {
        match self {
            Self::AfterUserInput => "after_user_input",
            Self::BeforePlanning => "before_planning",
            Self::BeforeFirstAgent => "before_first_agent",
            Self::BeforeEachAgent => "before_each_agent",
            Self::AfterToolCall => "after_tool_call",
        }
    }
}
