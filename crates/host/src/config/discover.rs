//! Which files make up a configuration: the user's own, and what is found from the working directory upwards.
//!
//! A file that nobody accepted contributes nothing and hides nothing: the search goes on above it, so that guards which
//! somebody accepted there stay in force whoever lays a file below them.

use std::path::{Path, PathBuf};

use super::diagnostic::{Diagnostic, Location};
use super::layer::Layer;
use super::places::{self, Env};
use super::resolve::Trusted;
use super::trust::{Acceptance, TrustStore};
use crate::error::HostError;

/// The files of a configuration.
#[derive(Default)]
pub(super) struct Discovered {
    /// Those that are read, in the order in which they are laid over each other.
    pub(super) layers: Vec<Trusted>,
    /// One line for each file that cannot count.
    pub(super) lines: Vec<String>,
    /// All of them, those that cannot count last.
    pub(super) files: Vec<PathBuf>,
    /// Those that count.
    pub(super) in_force: Vec<PathBuf>,
}

impl Discovered {
    /// The file that the user named, and no other.
    ///
    /// # Errors
    /// It is missing or does not parse.
    pub(super) fn named(file: &Path, env: &Env) -> Result<Self, HostError> {
        let layers = vec![Trusted::own(Layer::read(file, &env.cwd)?)];
        let files = vec![file.to_owned()];
        Ok(Self { layers, lines: Vec::new(), in_force: files.clone(), files })
    }

    /// The user's own file, and what is found around the working directory.
    ///
    /// # Errors
    /// The user's own file or one that was accepted cannot be read, two of either kind stand in one folder, or nobody
    /// can tell what was accepted.
    pub(super) fn around(env: &Env, home: &Path) -> Result<Self, HostError> {
        let mut all = Self::default();
        let own = places::own_file(env)?;
        if let Some(file) = &own {
            all.layers.push(Trusted::own(Layer::read(file, &env.cwd)?));
            all.files.push(file.clone());
            all.in_force.push(file.clone());
        }
        let folders = places::found(env, own.as_deref())?;
        if folders.is_empty() {
            return Ok(all);
        }
        let search = Search { env, store: TrustStore::open(home)?, own_skills: own_skills(&all.layers) };
        let mut nearest = None;
        for folder in folders {
            all.lines.extend(folder.links.iter().map(|link| search.link_line(link)));
            all.files.extend(folder.links.clone());
            let (accepted, others): (Vec<_>, Vec<_>) =
                folder.files.into_iter().partition(|file| search.store.knows(file));
            if let Some(file) = places::only_one(accepted)? {
                all.layers.push(search.read(&file)?);
                all.in_force.push(file.clone());
                all.files.push(file);
                all.lines.extend(others.iter().map(|other| not_trusted(other)));
                all.files.extend(others);
                break;
            }
            if !others.is_empty() && nearest.is_none() {
                nearest = Some(others);
            }
        }
        search.add_stranger(nearest.unwrap_or_default(), &mut all);
        Ok(all)
    }
}

/// What a search for files works with.
struct Search<'a> {
    env: &'a Env,
    store: TrustStore,
    own_skills: Option<PathBuf>,
}

impl Search<'_> {
    fn read(&self, file: &Path) -> Result<Trusted, HostError> {
        let (layer, _) = Layer::read(file, &self.env.cwd)?;
        let acceptance = Acceptance::of(&layer, &self.store, self.own_skills.as_deref(), self.env);
        Ok(Trusted::found(layer, acceptance))
    }

    /// Adds the nearest files of which nobody accepted anything: what one of them would do is named and recorded.
    fn add_stranger(&self, files: Vec<PathBuf>, all: &mut Discovered) {
        match files.as_slice() {
            [] => {}
            [file] => match self.read(file) {
                Ok(layer) => all.layers.push(layer),
                Err(error) => {
                    all.lines.push(format!("{}; it has not been accepted, so it does not count", error.message))
                }
            },
            [first, second, ..] => all.lines.push(format!(
                "{}, and neither has been accepted, so neither counts; remove one, or accept one with `pintle \
                 trust FILE`",
                places::both(first, second).message
            )),
        }
        all.files.extend(files);
    }

    /// A link's target was not found where the link is: whoever made the link chose where it would count.
    fn link_line(&self, link: &Path) -> String {
        let target = std::fs::canonicalize(link).unwrap_or_default();
        let void = if self.store.knows(&target) { "; if it was accepted through the link, that is void" } else { "" };
        format!(
            "{} is a link to {} and does not count: a found configuration counts in the folder where it stands{void}",
            link.display(),
            target.display()
        )
    }
}

fn not_trusted(file: &Path) -> String {
    format!("{} is not trusted, and the accepted file beside it counts alone", file.display())
}

/// The mistake of two files in one folder, of which neither counts: nobody can tell which one is meant.
pub fn twins(files: &[PathBuf]) -> Option<Diagnostic> {
    let twin = |file: &&PathBuf| files.iter().find(|other| other.parent() == file.parent() && *other != *file);
    let (first, second) = files.iter().find_map(|file| Some((file, twin(&file)?)))?;
    let message = format!("{}; keep one of them", places::both(first, second).message);
    let place = Location { file: second.clone(), line: 1, column: 1 };
    Some(Diagnostic { place, path: String::new(), message, nearest: None, guard: false })
}

/// The folder of skills that the user's own file names.
fn own_skills(layers: &[Trusted]) -> Option<PathBuf> {
    let named = |trusted: &Trusted| Some(trusted.layer.folder.join(trusted.layer.raw.skills_dir.as_ref()?));
    layers.iter().find_map(named)
}
