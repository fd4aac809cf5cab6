//! What belongs to the host and not to the agent.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::ToolError;

/// The files that no tool may touch: the configuration in force, the files that trust covers, the binary, the home
/// folder.
#[derive(Clone, Debug, Default)]
pub struct Protected {
    /// These, and what lies below folders among them, may be read, never changed. They need not exist: then they may
    /// not be created.
    pub files: Vec<PathBuf>,
    /// Nothing in or below these may be read or changed.
    pub dirs: Vec<PathBuf>,
    /// Nothing new may be made directly in these, where something that the host runs stands, by the name of what runs it:
    /// an interpreter loads what lies beside a script. What is there already may be changed.
    pub beside: BTreeMap<PathBuf, String>,
    /// File tools write no file of these names, wherever it would stand and whatever the case of its letters.
    pub names: Vec<String>,
}

/// Device and inode: what a file is, whatever it is called.
pub(super) type Identity = (u64, u64);

pub(super) fn identity(of: &fs::Metadata) -> Identity {
    (of.dev(), of.ino())
}

/// How many entries of the protected folders are looked at for another name of a file that has several.
/// Beyond it, such a file counts as protected.
const MAX_LINK_SEARCH: usize = 100_000;

/// [`Protected`], compared by canonical path and by identity.
#[derive(Debug)]
pub struct Guard {
    files: Vec<PathBuf>,
    dirs: Vec<PathBuf>,
    names: Vec<String>,
    beside: BTreeMap<PathBuf, String>,
}

/// The identities of what is protected, as of one call: a file that is replaced gets another one.
pub(super) struct Ids<'a> {
    guard: &'a Guard,
    files: HashSet<Identity>,
    dirs: HashSet<Identity>,
    /// The files below the protected folders; `None` when that is too much to look at.
    below: OnceCell<Option<HashSet<Identity>>>,
}

impl Protected {
    /// The canonical paths, of those that do not exist too.
    pub(super) fn resolved(&self) -> Self {
        Self {
            files: self.files.iter().map(|path| resolve(path)).collect(),
            dirs: self.dirs.iter().map(|path| resolve(path)).collect(),
            beside: self.beside.iter().map(|(path, of)| (resolve(path), of.clone())).collect(),
            names: self.names.clone(),
        }
    }
}

/// `path` with its existing part made canonical.
fn resolve(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for existing in absolute.ancestors() {
        if let Ok(canonical) = existing.canonicalize() {
            let rest = absolute.strip_prefix(existing).expect("an ancestor is a prefix");
            // An empty rest would leave a slash behind the name.
            return if rest.as_os_str().is_empty() { canonical } else { canonical.join(rest) };
        }
    }
    absolute
}

impl Guard {
    /// The guard of what is `protected`.
    pub fn new(protected: &Protected) -> Self {
        let Protected { files, dirs, beside, names } = protected.resolved();
        Self { files, dirs, names, beside }
    }

    /// Whether the opened `file` must not be read, whatever name it was opened by.
    pub fn hides(&self, file: &File) -> bool {
        self.ids().hides_opened(file)
    }

    pub(super) fn ids(&self) -> Ids<'_> {
        let ids =
            |paths: &[PathBuf]| paths.iter().filter_map(|path| fs::metadata(path).ok()).map(|m| identity(&m)).collect();
        Ids { guard: self, files: ids(&self.files), dirs: ids(&self.dirs), below: OnceCell::new() }
    }
}

impl Ids<'_> {
    /// Whether `id` is one of the protected folders.
    pub(super) fn is_dir(&self, id: Identity) -> bool {
        self.dirs.contains(&id)
    }

    /// Whether the real path `real` lies in a protected folder, by name or by what its parents are.
    pub(super) fn hides(&self, real: &Path) -> bool {
        let is_protected = |dir: &Path| fs::metadata(dir).is_ok_and(|m| self.dirs.contains(&identity(&m)));
        self.guard.dirs.iter().any(|dir| real.starts_with(dir)) || real.ancestors().any(is_protected)
    }

    /// Whether a file with several names has one of them in a protected folder.
    pub(super) fn hides_link(&self, of: &fs::Metadata) -> bool {
        if of.nlink() < 2 || self.dirs.is_empty() {
            return false;
        }
        let below = self.below.get_or_init(|| below(&self.guard.dirs));
        below.as_ref().is_none_or(|ids| ids.contains(&identity(of)))
    }

    /// Whether the opened `file` must not be read, by where it really is or by one of its other names. One of which
    /// nothing can be learned must not.
    pub(super) fn hides_opened(&self, file: &File) -> bool {
        let real = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
        file.metadata().map_or(true, |of| self.hides_link(&of)) || real.is_ok_and(|real| self.hides(&real))
    }

    /// # Errors
    /// When the opened file at the real path `real` must not be read.
    pub(super) fn check_read(&self, shown: &str, real: &Path, of: &fs::Metadata) -> Result<(), ToolError> {
        if self.hides(real) || self.hides_link(of) {
            return Err(ToolError::Protected(shown.into(), "read"));
        }
        Ok(())
    }

    /// Who runs something in the folder in which a write to `real` would make a new entry.
    fn beside(&self, real: &Path) -> Option<&str> {
        // The first folder that is missing would be the new entry, and else the file.
        let folder = real.ancestors().skip(1).find(|folder| folder.is_dir())?;
        let by_name = self.guard.beside.get(folder);
        let same = |of: &fs::Metadata, other: &Path| fs::metadata(other).is_ok_and(|m| identity(&m) == identity(of));
        let by_identity = || {
            let of = fs::metadata(folder).ok()?;
            self.guard.beside.iter().find(|(other, _)| same(&of, other)).map(|(_, who)| who)
        };
        by_name.or_else(by_identity).map(String::as_str)
    }

    /// # Errors
    /// When nothing may be written to the real path `real`, where `of` stands already if anything does.
    pub(super) fn check_write(&self, shown: &str, real: &Path, of: Option<&fs::Metadata>) -> Result<(), ToolError> {
        let same_file = |of: &fs::Metadata| self.files.contains(&identity(of)) || self.hides_link(of);
        let is_protected = |dir: &Path| fs::metadata(dir).is_ok_and(|m| self.files.contains(&identity(&m)));
        let named =
            self.guard.files.iter().any(|file| real.starts_with(file)) || real.ancestors().skip(1).any(is_protected);
        let name = real.file_name().unwrap_or_default();
        let reserved = self.guard.names.iter().any(|reserved| name.eq_ignore_ascii_case(reserved));
        if named || reserved || self.hides(real) || of.is_some_and(same_file) {
            return Err(ToolError::Protected(shown.into(), "change"));
        }
        match self.beside(real).filter(|_| of.is_none()) {
            Some(who) => Err(ToolError::Beside(shown.into(), who.to_owned())),
            None => Ok(()),
        }
    }
}

/// The identities of all files below `dirs`, unless they are too many.
fn below(dirs: &[PathBuf]) -> Option<HashSet<Identity>> {
    let mut ids = HashSet::new();
    let mut open = dirs.to_vec();
    let mut seen = 0;
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MAX_LINK_SEARCH {
                return None;
            }
            match entry.metadata() {
                Ok(of) if of.is_dir() => open.push(entry.path()),
                Ok(of) => drop(ids.insert(identity(&of))),
                // It is gone, or not ours to see, and then not ours to read either.
                Err(_) => {}
            }
        }
    }
    Some(ids)
}
