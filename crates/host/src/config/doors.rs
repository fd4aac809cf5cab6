//! The vendors behind the model door, and the servers behind the tool door, as a configuration has them.

use std::collections::BTreeMap;
use std::time::Duration;

use globset::GlobMatcher;

/// The vendors behind the model door.
pub const MODEL_DOORS: [&str; 3] = ["anthropic", "gemini", "openai"];

/// How long a call waits for a person at the tool door: the longest that clients wait by default.
pub const TOOL_DOOR_ASK_TIMEOUT: Duration = Duration::from_secs(600);

/// An MCP server behind the tool door.
#[derive(Clone, Debug)]
pub struct ToolDoorConfig {
    /// The tools that are shown; all, if nothing is said.
    pub tools: Option<Vec<GlobMatcher>>,
    /// The tools that are hidden all the same.
    pub hide: Vec<GlobMatcher>,
    /// Whether a tool whose definition changed stays; otherwise a person is asked.
    pub allows_change: bool,
    /// Whether the client asks its person, too, where it can.
    pub asks_client: bool,
    /// How long a call waits for a person.
    pub ask_timeout: Duration,
}

impl Default for ToolDoorConfig {
    fn default() -> Self {
        let (tools, hide, ask_timeout) = (None, Vec::new(), TOOL_DOOR_ASK_TIMEOUT);
        Self { tools, hide, allows_change: false, asks_client: false, ask_timeout }
    }
}

impl ToolDoorConfig {
    /// Whether the tool that its server calls `name` is shown.
    pub fn shows(&self, name: &str) -> bool {
        let is_meant = |globs: &[GlobMatcher]| globs.iter().any(|glob| glob.is_match(name));
        self.tools.as_deref().is_none_or(is_meant) && !is_meant(&self.hide)
    }
}

/// What a million tokens of a model cost, in thousandths of a dollar.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DoorPrice {
    /// Those that it reads.
    pub input_milli: u64,
    /// Those of them that it has read before.
    pub cached_milli: u64,
    /// Those that it writes.
    pub output_milli: u64,
}

/// How much may be spent in one span; without a limit, as much as anybody likes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DoorLimit {
    /// In tokens.
    pub tokens: Option<u64>,
    /// In thousandths of a dollar.
    pub milli_dollars: Option<u64>,
}

/// How much may be spent at a vendor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DoorBudget {
    /// By one session.
    pub session: DoorLimit,
    /// By one key on one day.
    pub day: DoorLimit,
    /// What models cost, by their names.
    pub prices: BTreeMap<String, DoorPrice>,
}

/// A vendor behind the model door.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelDoorConfig {
    /// Where it is reached, if a file says it.
    pub base_url: Option<String>,
    /// Whether a sentence stands in the place of a refused call; otherwise the door answers the model.
    pub deny_as_text: bool,
    /// The tools that may run there.
    pub hosted: Vec<String>,
    /// The variable with the operator's key for it, for those who come to a gateway with a key of Pintle's.
    pub key_env: Option<String>,
    /// The tenant of those who come to a gateway from its own machine with a key of the vendor's; nobody may without it.
    pub tenant: Option<String>,
    /// How much may be spent there.
    pub budget: DoorBudget,
}
