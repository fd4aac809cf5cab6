//! Files that are kept and have a second name that is no link: whoever changes them under that changes them.

use std::cell::OnceCell;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// How many entries of a folder are looked at.
const MAX_ENTRIES: usize = 10_000;

/// A file by its device and number.
type FileId = (u64, u64);

/// How many folders are looked into one in another where Pintle keeps what is its own: what the guard remembers lies below.
const OWN_DEPTH: u8 = 2;

/// The files that are kept and have more than one name. They are looked for once somebody asks for a file of that kind:
/// most have one name.
pub(super) struct SecondNames {
    /// The files that are kept, and the folders in which they lie, each with how deep.
    kept: Vec<(PathBuf, u8)>,
    found: OnceCell<Vec<(FileId, PathBuf)>>,
}

impl SecondNames {
    /// Of settings of agents and of Pintle's `own` files: of each such file, and of those in each such folder.
    pub(super) fn of_kept(settings: Vec<PathBuf>, own: Vec<String>) -> Self {
        let own = own.into_iter().map(|path| (PathBuf::from(path), OWN_DEPTH));
        Self { kept: settings.into_iter().map(|path| (path, 0)).chain(own).collect(), found: OnceCell::new() }
    }

    /// The names under which the file `path` is kept, if it is one that has several.
    pub(super) fn of(&self, path: &Path) -> Vec<PathBuf> {
        // What leads somewhere ends with a slash, which no file may have.
        let path: PathBuf = path.components().collect();
        let Some(id) = several(&path) else { return Vec::new() };
        let found = self.found.get_or_init(|| self.kept.iter().flat_map(|(kept, depth)| all(kept, *depth)).collect());
        found.iter().filter(|(other, named)| *other == id && *named != path).map(|(_, named)| named.clone()).collect()
    }
}

/// The files with several names at `kept`, or in that folder and those in it, `depth` of them one in another.
fn all(kept: &Path, depth: u8) -> Vec<(FileId, PathBuf)> {
    let below = |path: PathBuf| match several(&path) {
        Some(id) => vec![(id, path)],
        None if depth > 0 => all(&path, depth - 1),
        None => Vec::new(),
    };
    match fs::read_dir(kept) {
        Ok(entries) => entries.take(MAX_ENTRIES).flatten().flat_map(|entry| below(entry.path())).collect(),
        Err(_) => several(kept).map(|id| (id, kept.to_owned())).into_iter().collect(),
    }
}

/// Which file lies at `path`, if it has several names.
fn several(path: &Path) -> Option<FileId> {
    let found = path.metadata().ok().filter(|found| found.is_file() && found.nlink() > 1)?;
    Some((found.dev(), found.ino()))
}
