//! How hooks stand: what is wrong with each of a configuration, and the last good answers that are kept of it.
//!
//! A proof is kept in the home folder and not in the store, since it is about a child of this machine. It is shown and
//! never relied on: a call is asked about whatever is written here.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use pintle_domain::fault::Fault;
use pintle_domain::health::{Health, HookProof, Step};
use pintle_domain::hook::HookState;
use serde::{Deserialize, Serialize};

use crate::blind::BlindMatcher;
use crate::config::trust::is_changed;
use crate::config::{Config, HookKind, LoadedHook};

/// The name of the file in the home folder.
pub const FILE: &str = "health.json";

/// How many hooks are remembered, those first that were heard of last: more than anybody has, with some edits of each.
const MAX_HOOKS: usize = 1000;

/// Most of what a child wrote on its standard error that is kept, in bytes: a stack trace.
const MAX_TAIL_BYTES: usize = 4 << 10;

/// What is kept of hooks that ran.
#[derive(Clone, Debug)]
pub struct HealthFile {
    file: PathBuf,
    kept: Kept,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Kept {
    /// By name and digest.
    hooks: BTreeMap<String, KeptHealth>,
}

/// What is kept of one hook under one digest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct KeptHealth {
    /// When it answered well last, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answered: Option<String>,
    /// How it did not come up or crashed, if that was later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fell: Option<Fall>,
}

/// A hook that did not come up, or crashed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fall {
    /// When, RFC 3339.
    pub at: String,
    /// Why, as people read it.
    pub why: String,
    /// The end of what it wrote on its standard error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
}

impl KeptHealth {
    fn last(&self) -> &str {
        let fell = self.fell.as_ref().map(|fall| fall.at.as_str());
        fell.max(self.answered.as_deref()).unwrap_or_default()
    }
}

/// How a hook did not come up.
#[derive(Clone, Copy, Debug)]
pub struct FailedStart<'a> {
    /// When it was given up.
    pub at: Timestamp,
    /// Why.
    pub fault: &'a Fault,
    /// The end of what it wrote to its standard error.
    pub stderr: &'a str,
}

impl HealthFile {
    /// What is kept in `home`. What cannot be read is nothing: a hook is proven again by its next answer.
    pub fn open(home: &Path) -> Self {
        let file = home.join(FILE);
        let kept = fs::read(&file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        Self { file, kept }
    }

    /// The hook under this name and digest answered well at `at`.
    pub fn answered(&mut self, (name, digest): (&str, &str), at: Timestamp) {
        let answered = Some(at.to_string());
        self.kept.hooks.insert(key(name, digest), KeptHealth { answered, fell: None });
    }

    /// The hook under this name and digest did not come up.
    pub fn fell(&mut self, name: &str, digest: &str, FailedStart { at, fault, stderr }: FailedStart<'_>) {
        let masked = pintle_domain::execution::masked(stderr);
        let cut = masked.char_indices().map(|(start, _)| start).find(|start| masked.len() - start <= MAX_TAIL_BYTES);
        let tail = masked[cut.unwrap_or(masked.len())..].to_owned();
        let fall = Fall { at: at.to_string(), why: fault.explained().to_string(), stderr: tail };
        self.kept.hooks.entry(key(name, digest)).or_default().fell = Some(fall);
    }

    /// How the hook did not come up as it is now, if it did not when it was started last.
    pub fn fall(&self, name: &str, digest: &str) -> Option<&Fall> {
        self.kept.hooks.get(&key(name, digest))?.fell.as_ref()
    }

    /// How `loaded` of `config` stands under `digest`, whose child ended its start in `down`. None for a hook that runs
    /// in this process, if nothing is wrong with it: there is nothing to prove.
    pub fn of(
        &self,
        config: &Config,
        (loaded, digest): (&LoadedHook, Option<&str>),
        down: Option<&Fault>,
    ) -> Option<Health> {
        if let Some(bad) = standing(&loaded.hook.state, down) {
            return Some(bad);
        }
        if let Some(blind) = BlindMatcher::of_loaded(config, loaded) {
            return Some(blind.health());
        }
        match &loaded.kind {
            HookKind::Process(_) => Some(self.kept_of(loaded.hook.name.as_str(), digest)),
            HookKind::Command(_) | HookKind::Builtin(_) | HookKind::Ask(_) | HookKind::Nothing => None,
        }
    }

    fn kept_of(&self, name: &str, digest: Option<&str>) -> Health {
        let kept = digest.and_then(|digest| self.kept.hooks.get(&key(name, digest)));
        if let Some(KeptHealth { answered, fell: Some(fall) }) = kept {
            return match answered {
                Some(_) => Health::unproven(Step::Answer, format!("it answered, then {}", fall.why)),
                None => Health::unproven(Step::Hello, fall.why.clone()),
            };
        }
        let answered = kept.and_then(|kept| kept.answered.as_ref()?.parse().ok());
        match answered {
            Some(at) => Health::Armed(HookProof { at, refused: None }),
            None if self.answered_once(name) => Health::outdated(),
            None => Health::unanswered(),
        }
    }

    /// Whether a hook of this name ever answered well, under whichever digest.
    fn answered_once(&self, name: &str) -> bool {
        let of_name = |key: &str| key.rsplit_once(' ').is_some_and(|(known, _)| known == name);
        self.kept.hooks.iter().any(|(key, kept)| kept.answered.is_some() && of_name(key))
    }

    /// Writes the file, whole or not at all. What another program keeps in the same moment may be lost; the next answer
    /// proves a hook again.
    ///
    /// # Errors
    /// The home folder cannot be written.
    pub fn save(mut self) -> io::Result<()> {
        while self.kept.hooks.len() > MAX_HOOKS {
            let oldest = self.kept.hooks.iter().min_by_key(|(_, kept)| kept.last()).map(|(key, _)| key.clone());
            self.kept.hooks.remove(&oldest.unwrap_or_default());
        }
        let home = self.file.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(home)?;
        let part = home.join(format!(".{FILE}.{}", uuid::Uuid::now_v7()));
        let text = serde_json::to_vec_pretty(&self.kept)?;
        let mut open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
        let written = open.write_all(&text).and_then(|()| fs::rename(&part, &self.file));
        written.inspect_err(|_| drop(fs::remove_file(&part)))
    }
}

/// What is wrong with a hook in `state` whose child ended its start in `down`. One that is not what was accepted fails
/// for that, wherever it was noticed.
pub fn standing(state: &HookState, down: Option<&Fault>) -> Option<Health> {
    let fault = match (state, down) {
        (HookState::Broken(fault), _) | (_, Some(fault)) => Some(fault),
        (HookState::Armed | HookState::Disabled | HookState::Untrusted | HookState::Tripped { .. }, None) => None,
    };
    match fault.filter(|fault| is_changed(fault)) {
        Some(fault) => Some(Health::unproven(Step::Trust, format!("it {}; see `pintle trust`", fault.explained()))),
        None => Health::standing(state, down),
    }
}

fn key(name: &str, digest: &str) -> String {
    format!("{name} {digest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_is_of_one_digest_and_a_fall_takes_it_back() {
        let home = tempfile::tempdir().unwrap();
        let at: Timestamp = "2026-11-22T09:00:00Z".parse().unwrap();
        let mut file = HealthFile::open(home.path());
        file.answered(("g", "1"), at);
        file.save().unwrap();
        let mut file = HealthFile::open(home.path());
        let proven = Health::Armed(HookProof { at, refused: None });
        assert_eq!(file.kept_of("g", Some("1")), proven);
        for (name, digest, expected) in [
            ("g", Some("2"), Health::outdated()),
            ("g", None, Health::outdated()),
            ("h", Some("1"), Health::unanswered()),
        ] {
            assert_eq!(file.kept_of(name, digest), expected, "{name} {digest:?}");
        }
        let fault = Fault::CannotStart { cause: "gone".into() };
        let stderr = format!("{}password=hunter2 end", "x".repeat(MAX_TAIL_BYTES));
        file.fell("g", "1", FailedStart { at, fault: &fault, stderr: &stderr });
        assert_eq!(
            file.kept_of("g", Some("1")),
            Health::unproven(Step::Answer, "it answered, then could not start: gone")
        );
        let stderr = &file.fall("g", "1").unwrap().stderr;
        assert!(stderr.ends_with(" end") && stderr.len() <= MAX_TAIL_BYTES && !stderr.contains("hunter2"), "{stderr}");
        file.answered(("g", "1"), at);
        assert_eq!((file.kept_of("g", Some("1")), file.fall("g", "1")), (proven, None));
    }

    #[test]
    fn a_file_that_cannot_be_read_proves_nothing_and_only_so_many_hooks_are_kept() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(FILE), "{").unwrap();
        let mut file = HealthFile::open(home.path());
        assert_eq!(file.kept, Kept::default());
        let at = |second: i64| Timestamp::from_second(1_700_000_000 + second).unwrap();
        (0..=MAX_HOOKS as i64).for_each(|number| file.answered((&number.to_string(), "1"), at(number)));
        file.save().unwrap();
        let file = HealthFile::open(home.path());
        let known = |name: &str| file.kept_of(name, Some("1")).is_armed();
        assert_eq!((file.kept.hooks.len(), known("0"), known("1")), (MAX_HOOKS, false, true));
    }
}
