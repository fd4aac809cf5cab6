//! Which tools a hook is about.

use std::sync::Arc;

use globset::{Glob, GlobSet, GlobSetBuilder};
use regex_automata::meta::{self, Regex};
use regex_automata::nfa::thompson::WhichCaptures;

use crate::checkpoint::facts::Facts;

mod names;

/// Largest compiled form of a pattern, in bytes: far above any sane pattern, far below a memory bomb.
pub const MAX_REGEX_BYTES: usize = 1 << 20;

/// An unanchored linear-time regular expression over the canonical and the raw tool name; one hit suffices.
#[derive(Clone, Debug)]
pub struct Matcher {
    meant: Meant,
    pattern: Arc<str>,
    spelling: Option<Spelling>,
}

/// The further names that somebody else's dialect has for a tool, by its canonical and its raw name.
pub type Spelling = fn(&str, &str) -> Vec<String>;

#[derive(Clone, Debug)]
enum Meant {
    /// These names, one of which is the whole name: what most patterns are about.
    Names(Arc<[Box<str>]>),
    /// Whatever an expression finds.
    Found(Regex),
}

impl Matcher {
    /// Compiles `pattern`.
    ///
    /// # Errors
    /// What is wrong with the pattern, on one line.
    pub fn compile(pattern: &str) -> Result<Self, String> {
        if let Some(names) = names::named_by(pattern) {
            return Ok(Self { meant: Meant::Names(names.into()), pattern: pattern.into(), spelling: None });
        }
        // Tables of each pattern, and the pattern turned round that they need, would cost a start of many rules more
        // than all the rest, and names are short.
        let bounds = meta::Config::new().nfa_size_limit(Some(MAX_REGEX_BYTES)).which_captures(WhichCaptures::None);
        let bounds = bounds.dfa(false).hybrid(false);
        let regex = Regex::builder().configure(bounds).build(pattern).map_err(|error| said(&error))?;
        Ok(Self { meant: Meant::Found(regex), pattern: pattern.into(), spelling: None })
    }

    /// The same, written as `pattern` in a dialect that has the further names of `spelling` for tools: one hit suffices.
    #[must_use]
    pub fn spelled(self, pattern: &str, spelling: Spelling) -> Self {
        Self { pattern: pattern.into(), spelling: Some(spelling), ..self }
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
        match &self.meant {
            Meant::Names(names) => names.iter().any(|one| **one == *name),
            Meant::Found(regex) => regex.is_match(name),
        }
    }

    /// Whether `facts` match. Where there is no tool, its name counts as empty.
    pub fn matches(&self, facts: &Facts<'_>) -> bool {
        match facts.tool {
            Some((canonical, raw)) => {
                let spelled = |spelling: Spelling| spelling(canonical, raw).iter().any(|name| self.is_match(name));
                self.is_match(canonical)
                    || (raw != canonical && self.is_match(raw))
                    || self.spelling.is_some_and(spelled)
            }
            None => self.is_match(""),
        }
    }
}

/// What is wrong with a pattern, on one line.
fn said(error: &meta::BuildError) -> String {
    match (error.size_limit(), error.syntax_error()) {
        (Some(limit), _) => format!("Compiled regex exceeds size limit of {limit} bytes."),
        (None, Some(syntax)) => syntax.to_string().lines().last().unwrap_or_default().trim().to_owned(),
        (None, None) => error.to_string(),
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
    /// No tool.
    pub fn none() -> Self {
        Self::Only { globs: Vec::new(), set: GlobSet::empty() }
    }

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
