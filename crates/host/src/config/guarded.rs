//! What may be demanded of the coding agents under guard.

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
