//! What is wrong with an entry, and where in it.

use std::fmt;

/// One thing that is wrong with an entry of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryProblem {
    /// The keys that lead to it; an element of a list is its index.
    pub path: Vec<String>,
    /// Whether the key or the value is wrong.
    pub at: MemberPart,
    /// What is wrong: what was expected, what stands there.
    pub message: String,
    /// The name that was probably meant.
    pub nearest: Option<String>,
}

/// Which part of a member is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberPart {
    /// Its name.
    Key,
    /// What it holds.
    Value,
}

impl EntryProblem {
    /// A problem with the value at `path`.
    pub fn new(path: &[&str], message: impl Into<String>) -> Self {
        let path = path.iter().map(|key| (*key).to_owned()).collect();
        Self { path, at: MemberPart::Value, message: message.into(), nearest: None }
    }

    /// The same, with what was probably meant instead of `got`.
    #[must_use]
    pub fn meant<'a>(mut self, got: &str, among: impl IntoIterator<Item = &'a str>) -> Self {
        self.nearest = pintle_domain::nearest::nearest(got, among).filter(|name| *name != got).map(str::to_owned);
        self
    }

    /// The same problem, seen from further outside.
    #[must_use]
    pub fn under(mut self, path: &[&str]) -> Self {
        self.path.splice(0..0, path.iter().map(|key| (*key).to_owned()));
        self
    }
}

/// The message, with the name that was probably meant.
impl fmt::Display for EntryProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.nearest {
            Some(nearest) => write!(f, "; did you mean \"{nearest}\"?"),
            None => Ok(()),
        }
    }
}
