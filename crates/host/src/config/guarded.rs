//! What is said of the coding agents under guard: what is demanded of them, and what differs for one.

use std::time::Duration;

/// A class of an agent's tools, as the configuration names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GuardedClass {
    /// Runs a shell text.
    Shell,
    /// Writes, edits or deletes files.
    FileWrite,
    /// Reads or searches files.
    FileRead,
    /// Asks the web.
    Web,
    /// Belongs to an MCP server.
    Mcp,
    /// Starts or steers a sub-agent.
    Subagent,
    /// Any other.
    Other,
}

impl GuardedClass {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Shell, Self::FileWrite, Self::FileRead, Self::Web, Self::Mcp, Self::Subagent, Self::Other];

    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::FileWrite => "file_write",
            Self::FileRead => "file_read",
            Self::Web => "web",
            Self::Mcp => "mcp",
            Self::Subagent => "subagent",
            Self::Other => "other",
        }
    }

    /// The one that is called `word`.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.word() == word)
    }
}

/// The coding agents that can be guarded, by the names that `pintle guard --host` gives them.
pub const GUARDED_HOSTS: [&str; 9] =
    ["claude", "codex", "gemini", "qwen", "copilot", "kimi", "cline", "opencode", "pi"];

/// What becomes of a call that a person has to allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardedAsk {
    /// The agent asks the person before it.
    Host,
    /// It waits for an answer from elsewhere.
    Hold,
    /// It is refused at once.
    Deny,
}

/// What differs for one agent under guard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuardedHost {
    /// The agent of the configuration that it stands for.
    pub agent: Option<String>,
    /// How long it waits for a ruling at most.
    pub deadline: Option<Duration>,
    /// What becomes of a call that needs a person.
    pub ask: Option<GuardedAsk>,
    /// The same where nobody sits before it.
    pub headless_ask: Option<GuardedAsk>,
    /// Whether its hooks let everything run when no daemon can be reached.
    pub allows_away: bool,
}
