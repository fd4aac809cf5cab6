//! The skills that a found file brings: folders of files, each of which may enter a request.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pintle_dialects::skill::name;
use pintle_domain::json::json;
use pintle_domain::skill::seal::SkillSeal;
use pintle_skills::{ReadLimits, SkillFolder, fitting, is_glob};

use super::TrustEntry;
use crate::config::layer::Layer;

/// The folder of skills that counts where no file names one, beside the file that enables them.
pub(in crate::config) const SKILLS: &str = "skills";

/// Where a project keeps skills that it shares with other hosts.
const SHARED: &str = ".agents/skills";

/// The skills that the agents of a found file name and that lie where this file says.
#[derive(Clone, Debug, Default)]
pub(in crate::config) struct FoundSkills {
    /// The folder of all of them; none where they are the user's own.
    pub(in crate::config) dir: Option<PathBuf>,
    /// Each with its files, or why it cannot count.
    pub(in crate::config) skills: BTreeMap<String, Result<SkillSeal, String>>,
}

impl FoundSkills {
    /// The skills of `layer`, where the user's own are in `own`, if anywhere. Its `skills.dir` counts if `dir_counts`.
    pub(in crate::config) fn of(layer: &Layer, own: Option<&Path>, dir_counts: bool) -> Self {
        let named: BTreeSet<&String> =
            layer.raw.agents.values().filter_map(|agent| agent.skills.as_ref()).flatten().collect();
        let dir = match layer.raw.skills_dir.as_ref().filter(|_| dir_counts) {
            Some(dir) => layer.folder.join(dir),
            None if own.is_none() => beside(&layer.folder),
            None => return Self::default(),
        };
        let mut skills = BTreeMap::new();
        for name in expanded(named.into_iter(), &dir).into_iter().filter(|name| name::component(name).is_ok()) {
            let folder = dir.join(&name);
            // What is not there is told by those who look for skills.
            if folder.is_dir() {
                let sealed = seal(&folder, &layer.folder);
                skills.insert(name, sealed);
            }
        }
        Self { dir: Some(dir), skills }
    }

    /// The skills as they are accepted.
    pub(in crate::config) fn entries(&self) -> Vec<TrustEntry> {
        let good = self.skills.iter().filter_map(|(name, seal)| Some((name, seal.as_ref().ok()?)));
        let entry = |(name, seal): (&String, &SkillSeal)| TrustEntry {
            path: path_of(name),
            value: json!({ "files": seal.to_json() }),
            command: None,
            places: Vec::new(),
        };
        good.map(entry).collect()
    }
}

/// The folder of skills of a found file in `folder` that names none: what the project shares with other hosts counts where
/// it has none for this one alone. Either way nothing of it counts that nobody accepted.
fn beside(folder: &Path) -> PathBuf {
    let (own, shared) = (folder.join(SKILLS), folder.join(SHARED));
    if !own.is_dir() && shared.is_dir() { shared } else { own }
}

/// `names` with the skills in `dir` that globs among them stand for.
pub(super) fn expanded<'a>(names: impl Iterator<Item = &'a String>, dir: &Path) -> BTreeSet<String> {
    let expand = |name: &String| match is_glob(name) {
        true => fitting(name, std::iter::once(dir)),
        false => vec![name.clone()],
    };
    names.flat_map(expand).collect()
}

/// The files of the skill in `folder`, which has to lie in `root`.
fn seal(folder: &Path, root: &Path) -> Result<SkillSeal, String> {
    if leads_out(folder, root) {
        return Err(format!("leads out of {}", root.display()));
    }
    let opened = SkillFolder::open(folder, ReadLimits::default()).map_err(|error| error.to_string())?;
    opened.seal().map_err(|error| error.to_string())
}

/// What a skill is called among what is accepted; no section has a blank in its name.
pub(in crate::config) fn path_of(skill: &str) -> String {
    format!("skill {skill}")
}

/// Whether `path` really lies somewhere else than in the folder `root`.
pub(crate) fn leads_out(path: &Path, root: &Path) -> bool {
    match (path.canonicalize(), root.canonicalize()) {
        (Ok(path), Ok(root)) => !path.starts_with(root),
        (Err(_), _) | (_, Err(_)) => false,
    }
}
