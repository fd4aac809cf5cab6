//! What is wrong with a configuration, and where.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

/// A place in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Location {
    /// The file.
    pub file: PathBuf,
    /// Its line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}

/// One thing that is wrong; the rest of the configuration is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Where.
    pub place: Location,
    /// The keys that lead there, with dots; empty for the whole file.
    pub path: String,
    /// The message: what was expected and what stands there.
    pub message: String,
    /// The name that was probably meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<String>,
    /// Whether it is about hooks that are switched on: something may stay unguarded, or shut.
    pub guard: bool,
}

/// `FILE:LINE:COL: PATH: message`.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.place)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.said())
    }
}

impl Diagnostic {
    /// The message, with the name that was probably meant.
    pub fn said(&self) -> String {
        match &self.nearest {
            Some(nearest) => format!("{}; did you mean \"{nearest}\"?", self.message),
            None => self.message.clone(),
        }
    }
}

/// The section of the agents under guard.
pub const GUARD: &str = "guard";

/// What stands below it, and says nothing at the top of a file.
const BELOW_GUARD: [&str; 3] = ["hosts", "require", "rules_from"];

impl Diagnostic {
    /// Whether it is about agents under guard: what is said of them, or what was probably to be.
    pub fn is_about_guard(&self) -> bool {
        self.path.split('.').next() == Some(GUARD) || self.is_meant_for_guard()
    }

    /// Whether it is about a key at the top of a file that is none there and was probably meant for agents under guard.
    pub(super) fn is_meant_for_guard(&self) -> bool {
        let is_key = !self.path.is_empty() && !self.path.contains('.');
        is_key && (self.nearest.as_deref() == Some(GUARD) || BELOW_GUARD.contains(&self.path.as_str()))
    }
}

/// The keys of `path` with dots between them; a key that could not stand bare in TOML is quoted.
pub fn dotted<S: AsRef<str>>(path: &[S]) -> String {
    let bare = |key: &str| !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let keys = path.iter().map(|key| match key.as_ref() {
        key if bare(key) => key.to_owned(),
        key => format!("{key:?}"),
    });
    keys.collect::<Vec<_>>().join(".")
}
