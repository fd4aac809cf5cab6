//! The vendors behind the model door and the servers behind the tool door, as a configuration has them.

use std::time::Duration;

use globset::GlobMatcher;

/// The vendors behind the model door.
pub const MODEL_DOORS: [&str; 3] = ["anthropic", "gemini", "openai"];

/// A vendor behind the model door.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelDoorConfig {
    /// Where it is reached, if a file says it.
    pub base_url: Option<String>,
    /// Whether a sentence stands in the place of a refused call; otherwise the door answers the model.
    pub deny_as_text: bool,
    /// The tools that may run there.
    pub hosted: Vec<String>,
}

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
    /// How long a call waits for a person.
    pub ask_timeout: Duration,
}

impl Default for ToolDoorConfig {
    fn default() -> Self {
        Self { tools: None, hide: Vec::new(), allows_change: false, ask_timeout: TOOL_DOOR_ASK_TIMEOUT }
    }
}

impl ToolDoorConfig {
    /// Whether the tool that its server calls `name` is shown.
    pub fn shows(&self, name: &str) -> bool {
        let is_meant = |globs: &[GlobMatcher]| globs.iter().any(|glob| glob.is_match(name));
        self.tools.as_deref().is_none_or(is_meant) && !is_meant(&self.hide)
    }
}
