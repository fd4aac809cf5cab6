//! How what a found file says stands, entry by entry.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::pintle_skills::SkillSeals;

use super::skills::{FoundSkills, expanded, path_of};
use super::{FileHashes, SpawnSeal, TrustStanding, TrustStore, entries, refused};
use crate::config::found::never_counting;
use crate::config::layer::Layer;
use crate::config::places::Env;

/// How the entries of a found file stand.
pub(in crate::config) struct Acceptance {
    /// By their path.
    standings: BTreeMap<String, TrustStanding>,
    /// What is checked before every spawn, by the path of the entry.
    seals: BTreeMap<String, SpawnSeal>,
    skills: FoundSkills,
    /// Whether anything of the file was ever accepted.
    pub(in crate::config) known: bool,
    /// Its keys that never count.
    pub(in crate::config) never: Vec<String>,
    /// What it names and what is not loaded, each with the reason.
    pub(in crate::config) refused: Vec<String>,
}

/// What counts of the skills that an agent of a found file names.
pub(in crate::config) struct AcceptedSkills {
    /// The folder of all of them.
    pub(in crate::config) dir: PathBuf,
    /// Those that were accepted.
    pub(in crate::config) seals: SkillSeals,
    /// The others, each with the reason.
    pub(in crate::config) others: BTreeMap<String, &'static str>,
}

impl Acceptance {
    /// How `layer` stands by what `store` has, where the user's own skills are in `own_skills`, if anywhere.
    pub(in crate::config) fn of(layer: &Layer, store: &TrustStore, own_skills: Option<&Path>, env: &Env) -> Self {
        let file = &layer.document.file;
        let search_path = env.vars.get("PATH").cloned();
        let (mut standings, mut seals) = (BTreeMap::new(), BTreeMap::new());
        let mut hashes = FileHashes::default();
        for entry in entries(layer) {
            let path = entry.path.clone();
            standings.insert(path.clone(), store.check(file, &entry, (search_path.as_deref(), &mut hashes)));
            if let Some(digest) = store.digest(file, &path) {
                seals.insert(path, SpawnSeal::new(entry, digest.to_owned(), search_path.clone()));
            }
        }
        let dir_counts = standings.get("skills") == Some(&TrustStanding::Trusted);
        let skills = FoundSkills::of(layer, own_skills, dir_counts);
        for entry in skills.entries() {
            let standing = store.check(file, &entry, (None, &mut hashes));
            standings.insert(entry.path, standing);
        }
        let (known, never) = (store.knows(file), never_counting(&layer.document.root));
        Self { standings, seals, refused: refused(layer, &skills), skills, known, never }
    }

    /// How the entry at `path` stands. What is not an entry of its own stands as its section does.
    pub(in crate::config) fn standing(&self, path: &str) -> TrustStanding {
        self.standings.get(path).cloned().unwrap_or(TrustStanding::Unknown)
    }

    /// The entries that somebody might accept, by path.
    pub(in crate::config) fn paths(&self) -> impl Iterator<Item = (&String, &TrustStanding)> {
        self.standings.iter()
    }

    /// What is checked before every spawn of the entry at `path`.
    pub(in crate::config) fn seal(&self, path: &str) -> Option<SpawnSeal> {
        self.seals.get(path).cloned()
    }

    /// The folder in which the file has its skills, if they are not the user's own.
    pub(in crate::config) fn skills_dir(&self) -> Option<&PathBuf> {
        self.skills.dir.as_ref()
    }

    /// What counts of the skills called `names`; none where they are the user's own.
    pub(in crate::config) fn skills(&self, names: &[String]) -> Option<AcceptedSkills> {
        let dir = self.skills.dir.clone()?;
        let named = expanded(names.iter(), &dir);
        let mut accepted = AcceptedSkills { dir, seals: SkillSeals::new(), others: BTreeMap::new() };
        for name in &named {
            let why = match (self.skills.skills.get(name), self.standing(&path_of(name))) {
                // It is not there, and is told of as such.
                (None, _) => continue,
                (Some(Ok(seal)), TrustStanding::Trusted) => {
                    accepted.seals.insert(name.clone(), Arc::new(seal.clone()));
                    continue;
                }
                (Some(Ok(_)), TrustStanding::Unknown) => "",
                (Some(Ok(_)), TrustStanding::Changed { .. }) => super::CHANGED,
                (Some(Err(_)), _) => "refused",
            };
            accepted.others.insert(name.clone(), why);
        }
        Some(accepted)
    }
}
