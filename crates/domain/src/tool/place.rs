//! Where a call runs, as far as that depends on the configuration and not on the call.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Where a call runs. A person approves the call there, and nowhere else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallPlace {
    /// The real path of the folder that it works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The shell that reads its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shell: Option<String>,
    /// The MCP server whose tool it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerEntry>,
}

/// An MCP server, as a configuration has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerEntry {
    /// Its name.
    pub name: String,
    /// Its command or address, for people.
    pub runs: String,
    /// SHA-256 over everything that its entry says, in hex.
    pub digest: String,
}

impl CallPlace {
    /// The place of a call that works in the folder `workspace`.
    pub fn in_folder(workspace: impl fmt::Display) -> Self {
        Self { workspace: Some(workspace.to_string()), ..Self::default() }
    }

    /// Whether the call runs alike wherever it runs.
    pub fn is_anywhere(&self) -> bool {
        *self == Self::default()
    }

    /// What is another there than here, each with both sides: for whoever approved the call there.
    pub fn differs_from(&self, before: &Self) -> Option<String> {
        let server = |place: &Self| place.server.as_ref().map(|server| format!("`{}`", server.runs));
        let sides = [
            ("its workspace", self.workspace.clone(), before.workspace.clone()),
            ("its shell", self.shell.clone(), before.shell.clone()),
            ("its server", server(self), server(before)),
        ];
        let other = sides.into_iter().find(|(_, now, then)| now != then);
        let side = |side: Option<String>| side.unwrap_or_else(|| "none".to_owned());
        match other {
            Some((what, now, then)) => Some(format!("{what} is {} now, and was {}", side(now), side(then))),
            None if self != before => Some("the entry of its server changed".to_owned()),
            None => None,
        }
    }
}
