//! Which tools a hook is about.

use std::sync::Arc;

use globset::{Glob, GlobSet, GlobSetBuilder};
use regex::{Regex, RegexBuilder};

use crate::checkpoint::facts::Facts;

/// Largest compiled form of a pattern, in bytes: far above any sane pattern, far below a memory bomb.
pub const MAX_REGEX_BYTES: usize = 1 << 20;

/// An unanchored linear-time regular expression over the canonical and the raw tool name; one hit suffices.
#[derive(Clone, Debug)]
pub struct Matcher {
    regex: Regex,
    pattern: Arc<str>,
}

impl Matcher {
    /// Compiles `pattern`.
    ///
    /// # Errors
    /// What is wrong with the pattern, on one line.
    pub fn compile(pattern: &str) -> Result<Self, String> {
        RegexBuilder::new(pattern)
            .size_limit(MAX_REGEX_BYTES)
            .build()
            .map(|regex| Self { regex, pattern: pattern.into() })
            .map_err(|e| e.to_string().lines().last().unwrap_or_default().trim().to_owned())
    }

    /// The pattern as it was written.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// The pattern, for a record: copied nowhere.
    pub(crate) fn shared_pattern(&self) -> Arc<str> {
        self.pattern.clone()
    }

    /// Whether the tool called `name` is one of those that are meant.
    pub fn is_match(&self, name: &str) -> bool {
        self.regex.is_match(name)
    }

    /// Whether `facts` match. Where there is no tool, its name counts as empty.
    pub fn matches(&self, facts: &Facts<'_>) -> bool {
        match facts.tool {
            Some((canonical, raw)) => self.regex.is_match(canonical) || (raw != canonical && self.regex.is_match(raw)),
            None => self.regex.is_match(""),
        }
    }
}

/// Which tools a hook may answer in their place.
#[derive(Clone, Debug)]
pub enum RespondTools {
    /// Any tool.
    Any,
    /// Those that a glob names, and always the ones it owns.
    Only {
        /// The globs as they were written.
        globs: Vec<String>,
        /// The patterns, compiled.
        set: GlobSet,
    },
}

impl RespondTools {
    /// Compiles `globs`.
    ///
    /// # Errors
    /// What is wrong with which glob.
    pub fn only(globs: &[String]) -> Result<Self, String> {
        let mut set = GlobSetBuilder::new();
        for glob in globs {
            set.add(Glob::new(glob).map_err(|e| e.to_string())?);
        }
        let set = set.build().map_err(|e| e.to_string())?;
        Ok(Self::Only { globs: globs.to_vec(), set })
    }

    /// Whether a result for `tool` may be given.
    pub fn grants(&self, tool: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Only { set, .. } => set.is_match(tool),
        }
    }
}
