//! Looks through the folders of skills: what is in them becomes texts in force, and what is wrong becomes findings.
//!
//! A folder of a skill is a stranger's. Everything in it is opened below the folder's own handle, nothing that is not a
//! regular file is read, nothing is waited for, and every size has a bound. Looking never fails: what cannot be used is
//! left out, as little as possible of it.
//!
//! `folder.rs` opens files, `choosing.rs` finds a skill by name or glob, `front.rs` reads the head of a `SKILL.md`,
//! `reading.rs` reads one skill. This file repeats the scan and remembers the last good result.

mod choosing;
mod folder;
mod front;
mod reading;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pintle_dialects::skill::manifest::AgentView;
use pintle_domain::skill::SkillHook;
use pintle_domain::skill::finding::{FileRefusal, Finding, FindingCode};
use pintle_domain::skill::scan::{Scan, Skill};
use pintle_domain::skill::seal::SkillSeal;

pub use self::choosing::{fitting, is_glob, is_skill};
use self::folder::BODY;
pub use self::folder::{IsHidden, ReadLimits, SkillFileError, SkillFolder, folders};
pub use self::reading::MAX_BODY_BYTES;
use self::reading::{ReadSkill, look};

/// What is looked for.
#[derive(Clone, Copy)]
pub struct SkillSelection<'a> {
    /// The folder that the folders of skills stand in.
    pub dir: &'a Path,
    /// Further ones, for skills that are not there: the user's own, in order.
    pub more: &'a [PathBuf],
    /// The enabled skills, in order; names and globs.
    pub enabled: &'a [String],
    /// The agent that enables them; none where nobody says.
    pub agent: Option<AgentView<'a>>,
    /// What somebody accepted of each, by name; none where the folder is the user's own. A skill that is not among
    /// them has no files.
    pub seals: Option<&'a SkillSeals>,
    /// Which files are hidden; none without it.
    pub hidden: Option<IsHidden<'a>>,
}

/// What somebody accepted of skills, by name.
pub type SkillSeals = BTreeMap<String, Arc<SkillSeal>>;

impl<'a> SkillSelection<'a> {
    /// The skills of the user's own folder `dir`, for no agent in particular.
    pub fn of(dir: &'a Path, enabled: &'a [String]) -> Self {
        Self { dir, more: &[], enabled, agent: None, seals: None, hidden: None }
    }
}

impl fmt::Debug for SkillSelection<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SkillSelection").field("dir", &self.dir).field("enabled", &self.enabled).finish_non_exhaustive()
    }
}

/// The hooks of the enabled skills, in running order, and what is wrong with these skills.
pub fn scan_hooks(enabled: &[String], dir: &Path) -> Scan {
    let mut scanner = Scanner::default();
    scanner.look(SkillSelection::of(dir, enabled));
    Arc::unwrap_or_clone(scanner.current)
}

/// What a skill says to the model that loads it: the body of its `SKILL.md` with where its folder is and what else is in
/// it, or all of another file of its folder, the case of whose letters does not matter.
///
/// # Errors
/// There is no such skill any more, or the file is refused.
pub fn body(folder: &Path, file: Option<&str>, limits: ReadLimits<'_>) -> Result<String, SkillFileError> {
    let opened = SkillFolder::open(folder, limits)
        .map_err(|error| SkillFileError { why: FileRefusal::Missing, detail: error.to_string() })?;
    let path = file.unwrap_or(BODY);
    let bytes = opened.read_alike(Path::new(path), MAX_BODY_BYTES)?;
    let text = String::from_utf8(bytes).map_err(|_| SkillFileError::plain(FileRefusal::NotUtf8))?;
    if text.contains('\0') {
        return Err(SkillFileError::plain(FileRefusal::Nul));
    }
    Ok(if path == BODY { about(front::body(&text), folder, &opened) } else { text })
}

/// `body` behind what a model needs to follow it: where the folder is that paths in it are about, and what is there.
fn about(body: &str, folder: &Path, opened: &SkillFolder<'_>) -> String {
    let (files, more) = opened.files();
    let others: Vec<String> = files.into_iter().filter(|file| !file.eq_ignore_ascii_case(BODY)).collect();
    if others.is_empty() {
        return body.to_owned();
    }
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let more = if more == 0 { String::new() } else { format!(", and {more} more") };
    format!(
        "[The folder of this skill is {}. Relative paths below are about it; commands need the whole path. Beside \
         SKILL.md it holds: {}{more}]\n\n{body}",
        folder.display(),
        others.join(", ")
    )
}

/// Looks again and again, and remembers what was good.
#[derive(Clone, Debug, Default)]
pub struct Scanner {
    dir: PathBuf,
    more: Vec<PathBuf>,
    current: Arc<Scan>,
    /// The hooks of each skill whose manifest could be read the last time.
    good: BTreeMap<String, Vec<SkillHook>>,
}

impl Scanner {
    /// The folders of skills where it looked the last time.
    pub fn dirs(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(&self.dir).chain(&self.more).map(PathBuf::as_path)
    }

    /// What was found the last time.
    pub fn current(&self) -> &Arc<Scan> {
        &self.current
    }

    /// Looks anew. Returns whether anything differs from the time before.
    ///
    /// A skill whose manifest cannot be read any more keeps the hooks that it had, marked stale; a faulty entry falls
    /// alone, and a skill that is gone has none.
    pub fn look(&mut self, wanted: SkillSelection<'_>) -> bool {
        if self.dir != wanted.dir {
            self.good.clear();
            self.dir = wanted.dir.to_owned();
        }
        self.more = wanted.more.to_vec();
        let mut good = BTreeMap::new();
        let mut scan = Scan::default();
        let mut seen: Vec<&str> = Vec::new();
        let names = wanted.names();
        for (name, _) in &names {
            if seen.contains(&name.as_str()) {
                let message = format!("the skill `{name}` is listed twice; the first one counts");
                scan.findings.push(Finding::new(FindingCode::S3, name, message));
                continue;
            }
            seen.push(name);
            let ReadSkill { skill, findings, broken } = look(wanted, name);
            let Some(mut skill) = skill else {
                scan.findings.extend(findings);
                continue;
            };
            let earlier = self.good.get(name).filter(|_| broken);
            scan.findings.extend(findings.into_iter().map(|found| with_outcome(found, broken, earlier.is_some())));
            if let Some(earlier) = earlier {
                (skill.hooks, skill.stale) = (earlier.clone(), true);
            }
            if skill.stale || !broken {
                good.insert(name.clone(), skill.hooks.clone());
            }
            scan.skills.push(skill);
        }
        let namesakes = namesakes(&scan.skills);
        scan.findings.extend(namesakes);
        self.good = good;
        let changed = *self.current != scan;
        if changed {
            self.current = Arc::new(scan);
        }
        changed
    }
}

/// What is wrong with a whole manifest, with what became of its hooks.
fn with_outcome(mut found: Finding, broken: bool, stale: bool) -> Finding {
    let of_the_file = matches!(found.code, FindingCode::F2 | FindingCode::F3 | FindingCode::F4 | FindingCode::F9);
    if broken && of_the_file {
        let outcome =
            if stale { "the hooks that it had before stay in force" } else { "none of its hooks is in force" };
        found.message = format!("{}; {outcome}", found.message);
    }
    found
}

/// Hooks of two skills that have one name: both fire, and a front end that shows names cannot tell them apart.
fn namesakes(skills: &[Skill]) -> Vec<Finding> {
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    let mut found = Vec::new();
    for hook in skills.iter().flat_map(|skill| &skill.hooks) {
        match first.get(hook.name.as_str()) {
            Some(other) if *other != hook.skill => {
                let message = format!("the skill `{other}` has a hook `{}` as well; both go in", hook.name);
                found.push(Finding::new(FindingCode::W5, &hook.skill, message));
            }
            Some(_) => {}
            None => drop(first.insert(&hook.name, &hook.skill)),
        }
    }
    found
}
