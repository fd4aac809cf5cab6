//! What belongs to the host and not to the agent: the one place that says which files may be read, sent and changed,
//! for file tools, for texts of skills, for files that hooks hand over, and, as paths, for what commands are confined by.

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
    /// These, and what lies below folders among them, may be read by their own names, never changed. They need not
    /// exist: then they may not be created.
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
        self.ids().hides_opened(file, Ids::is_hidden)
    }

    /// Says of an opened file, as of now, whether no skill may hold it: what may not be read, and a configuration in force
    /// by its own name too, where the folder of a skill leads to that of the configuration.
    pub fn hides_from_skills(&self) -> impl Fn(&File) -> bool + '_ {
        let ids = self.ids();
        move |file| ids.hides_opened(file, |ids, real, of| ids.is_hidden(real, of) || ids.is_configuration(real))
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
    fn hides_link(&self, of: &fs::Metadata) -> bool {
        if of.nlink() < 2 || self.dirs.is_empty() {
            return false;
        }
        let below = self.below.get_or_init(|| below(&self.guard.dirs));
        below.as_ref().is_none_or(|ids| ids.contains(&identity(of)))
    }

    /// Whether the opened `file` is hidden, as `is_hidden` says of its real path and of what it is. One of which nothing
    /// can be learned is.
    fn hides_opened(&self, file: &File, is_hidden: impl Fn(&Self, &Path, &fs::Metadata) -> bool) -> bool {
        let real = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
        real.and_then(|real| Ok((real, file.metadata()?))).map_or(true, |(real, of)| is_hidden(self, &real, &of))
    }

    /// Whether what stands at the real path `real` must not be read: it lies in a protected folder, by this name or by
    /// another one, or is a protected file by another name than its own. Whoever made that name had it in mind.
    fn is_hidden(&self, real: &Path, of: &fs::Metadata) -> bool {
        self.hides(real) || self.hides_link(of) || self.is_second_name(real, of)
    }

    /// Whether `real` is another name of a protected file.
    fn is_second_name(&self, real: &Path, of: &fs::Metadata) -> bool {
        let is_own_name = || self.guard.files.iter().any(|file| file == real);
        of.nlink() > 1 && self.files.contains(&identity(of)) && !is_own_name()
    }

    /// Whether `real` is a file that the host reads, by a name that it looks for.
    fn is_configuration(&self, real: &Path) -> bool {
        self.is_reserved(real) && self.guard.files.iter().any(|file| file == real)
    }

    /// Whether `real` has a name that the host looks for.
    fn is_reserved(&self, real: &Path) -> bool {
        let name = real.file_name().unwrap_or_default();
        self.guard.names.iter().any(|reserved| name.eq_ignore_ascii_case(reserved))
    }

    /// # Errors
    /// When the opened file at the real path `real` must not be read.
    pub(super) fn check_read(&self, shown: &str, real: &Path, of: &fs::Metadata) -> Result<(), ToolError> {
        if self.is_hidden(real, of) {
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

    /// Whether the real path `real`, where `of` stands if anything does, belongs to the host: one of its files or folders,
    /// by name or by identity, or a file of a name that it reads.
    fn is_the_hosts(&self, real: &Path, of: Option<&fs::Metadata>) -> bool {
        let same_file = |of: &fs::Metadata| self.files.contains(&identity(of)) || self.hides_link(of);
        let is_protected = |dir: &Path| fs::metadata(dir).is_ok_and(|m| self.files.contains(&identity(&m)));
        let named =
            self.guard.files.iter().any(|file| real.starts_with(file)) || real.ancestors().skip(1).any(is_protected);
        named || self.is_reserved(real) || self.hides(real) || of.is_some_and(same_file)
    }

    /// # Errors
    /// When the opened file must not leave this machine, by where it really is or by what it is. What can be read may
    /// still belong to the host.
    pub(super) fn check_send(&self, shown: &str, file: &File, of: &fs::Metadata) -> Result<(), ToolError> {
        let failed = |e| ToolError::io("send", shown, e);
        let real = fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).map_err(failed)?;
        if self.is_the_hosts(&real, Some(of)) {
            return Err(ToolError::Protected(shown.into(), "send"));
        }
        Ok(())
    }

    /// # Errors
    /// When nothing may be written to the real path `real`, where `of` stands already if anything does.
    pub(super) fn check_write(&self, shown: &str, real: &Path, of: Option<&fs::Metadata>) -> Result<(), ToolError> {
        if self.is_the_hosts(real, of) {
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
