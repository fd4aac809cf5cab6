//! Files that are kept and have a second name that is no link: whoever changes them under that changes them.

use std::cell::OnceCell;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::MAX_ENTRIES;

/// A file by its device and number.
type FileId = (u64, u64);

/// The files that are kept and have more than one name. They are looked for once somebody asks for a file of that kind:
/// most have one name.
pub(super) struct SecondNames {
    /// The files that are kept, and the folders in which they lie.
    kept: Vec<PathBuf>,
    found: OnceCell<Vec<(FileId, PathBuf)>>,
}

impl SecondNames {
    /// Of the files `kept`, and of those in the folders among them.
    pub(super) fn of_kept(kept: Vec<PathBuf>) -> Self {
        Self { kept, found: OnceCell::new() }
    }

    /// The names under which the file `path` is kept, if it is one that has several.
    pub(super) fn of(&self, path: &Path) -> Vec<PathBuf> {
        // What leads somewhere ends with a slash, which no file may have.
        let path: PathBuf = path.components().collect();
        let Some(id) = several(&path) else { return Vec::new() };
        let found = self.found.get_or_init(|| self.kept.iter().flat_map(|kept| all(kept)).collect());
        found.iter().filter(|(other, named)| *other == id && *named != path).map(|(_, named)| named.clone()).collect()
    }
}

/// The files with several names at `kept`, or in that folder.
fn all(kept: &Path) -> Vec<(FileId, PathBuf)> {
    let known = |path: PathBuf| several(&path).map(|id| (id, path));
    match fs::read_dir(kept) {
        Ok(entries) => entries.take(MAX_ENTRIES).filter_map(|entry| known(entry.ok()?.path())).collect(),
        Err(_) => known(kept.to_owned()).into_iter().collect(),
    }
}

/// Which file lies at `path`, if it has several names.
fn several(path: &Path) -> Option<FileId> {
    let found = path.metadata().ok().filter(|found| found.is_file() && found.nlink() > 1)?;
    Some((found.dev(), found.ino()))
}
