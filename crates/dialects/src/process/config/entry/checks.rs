//! The checks of single keys; what they find is collected, so that one look shows every mistake.

use std::collections::BTreeSet;

use pintle_domain::checkpoint::runtime::RUNTIME_KINDS;
use pintle_domain::checkpoint::{CheckpointKind, RuntimeKind};
use pintle_domain::matcher::{Matcher, RespondTools};

use super::intercepted;
use crate::process::config::problem::EntryProblem;
use crate::process::config::raw::{OneOrMany, RawProcess};
use crate::process::config::stages::{INTERCEPTS, NamedStages};

/// What is found wrong while an entry is read.
#[derive(Default)]
pub(super) struct Problems(pub(super) Vec<EntryProblem>);

impl Problems {
    pub(super) fn take<T>(&mut self, key: &str, read: Option<Result<T, String>>) -> Option<T> {
        match read? {
            Ok(value) => Some(value),
            Err(message) => {
                self.0.push(EntryProblem::new(&[key], message));
                None
            }
        }
    }

    pub(super) fn intercept(&mut self, raw: &RawProcess) -> NamedStages {
        let mut named = Vec::new();
        for (i, name) in raw.intercept.iter().flatten().enumerate().filter(|(_, name)| !name.is_empty()) {
            match intercepted(name) {
                Some(kind) if named.contains(&kind) => {}
                Some(kind) => named.push(kind),
                None => self.0.push(
                    EntryProblem::new(&["intercept", &i.to_string()], format!("unsupported intercept \"{name}\""))
                        .meant(name, INTERCEPTS.map(CheckpointKind::name)),
                ),
            }
        }
        NamedStages::new(named, raw.pair.unwrap_or(true))
    }

    /// What it observes: nothing, everything (`Some(None)`), or those kinds.
    pub(super) fn observe(&mut self, raw: &RawProcess) -> Option<Option<BTreeSet<RuntimeKind>>> {
        let names = raw.observe.as_ref().filter(|names| !names.is_empty())?;
        let mut kinds = BTreeSet::new();
        let mut all = false;
        for (i, name) in names.iter().enumerate() {
            match (name.as_str(), RuntimeKind::named(name)) {
                ("" | "*" | "all", _) => all = true,
                (_, Some(kind)) => drop(kinds.insert(kind)),
                (_, None) => self.0.push(
                    EntryProblem::new(&["observe", &i.to_string()], format!("unsupported observe event \"{name}\""))
                        .meant(name, RUNTIME_KINDS.iter().flat_map(|row| [row.1, row.2])),
                ),
            }
        }
        Some((!all).then_some(kinds))
    }

    pub(super) fn command(&mut self, raw: &RawProcess) {
        let command = raw.command.as_deref().unwrap_or_default();
        if command.first().is_none_or(|program| program.trim().is_empty()) {
            self.0.push(EntryProblem::new(&["command"], "command is required"));
        }
        if let Some(i) = command.iter().position(|word| word.contains('\0')) {
            self.0.push(EntryProblem::new(&["command", &i.to_string()], "must not hold a NUL character"));
        }
    }

    /// The keys that take one of a few words, and the environment.
    pub(super) fn words(&mut self, raw: &RawProcess) {
        for (key, value, known) in
            [("transport", &raw.transport, &["stdio", ""][..]), ("events", &raw.events, &["hook", "runtime"])]
        {
            if let Some(word) = value.as_ref().filter(|word| !known.contains(&word.as_str())) {
                let problem = EntryProblem::new(&[key], format!("unsupported {key} \"{word}\""));
                self.0.push(problem.meant(word, known.iter().copied().filter(|known| !known.is_empty())));
            }
        }
        for (name, value) in raw.env.iter().flatten() {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                self.0.push(EntryProblem::new(&["env", name], "not a variable: no `=` in its name, no NUL character"));
            }
        }
    }

    pub(super) fn matcher(&mut self, pattern: Option<&str>) -> Option<Matcher> {
        let compiled =
            pattern.map(|pattern| Matcher::compile(pattern).map_err(|why| format!("invalid matcher: {why}")));
        self.take("matcher", compiled)
    }

    pub(super) fn respond(&mut self, raw: Option<&OneOrMany>) -> RespondTools {
        let globs = match raw {
            None => return RespondTools::Any,
            Some(OneOrMany::One(word)) if word == "any" => return RespondTools::Any,
            Some(OneOrMany::One(glob)) => std::slice::from_ref(glob),
            Some(OneOrMany::Many(globs)) => globs,
        };
        let compiled = RespondTools::only(globs).map_err(|why| format!("invalid respond: {why}"));
        self.take("respond", Some(compiled)).unwrap_or(RespondTools::Any)
    }
}
