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

/// The keys of `path` with dots between them; a key that could not stand bare in TOML is quoted.
pub fn dotted<S: AsRef<str>>(path: &[S]) -> String {
    let bare = |key: &str| !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let keys = path.iter().map(|key| match key.as_ref() {
        key if bare(key) => key.to_owned(),
        key => format!("{key:?}"),
    });
    keys.collect::<Vec<_>>().join(".")
}
