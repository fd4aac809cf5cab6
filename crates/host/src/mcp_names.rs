//! The names of tools of MCP servers.

use globset::{Glob, GlobMatcher};

/// What the names of all tools of MCP servers begin with.
const MCP: &str = "mcp_";

/// Whether `name`, of a tool or in `agents.NAME.tools`, is about tools of MCP servers.
pub fn is_mcp(name: &str) -> bool {
    name.starts_with(MCP)
}

/// Whether a matcher spells what the names of all tools of MCP servers begin with.
pub fn names_mcp(pattern: &str) -> bool {
    pattern.contains(MCP)
}

/// An entry of `agents.NAME.tools` about tools of MCP servers.
///
/// # Errors
/// It is not a glob: why.
pub fn mcp_glob(entry: &str) -> Result<GlobMatcher, String> {
    Glob::new(entry).map(|glob| glob.compile_matcher()).map_err(|error| error.kind().to_string())
}
