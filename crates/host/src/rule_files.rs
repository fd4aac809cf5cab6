//! Files with rules: the `*.toml` and `*.json` of a folder.

mod filed;
pub(crate) mod folder;
mod meant;
mod records;
mod strangers;

use std::path::PathBuf;

use folder::is_readable;

pub use filed::{FileContext, FileProblem, FiledRules, GATES, GoodRule, IN_FOLDER, folder_of};
pub use folder::{RuleFolder, is_rules, listed};
pub use records::{RecordsError, RecordsFile};
pub use strangers::{mounted, strangers};

/// One file that was read, or why it could not be.
pub struct RuleFile {
    /// Its name, without its folder.
    pub name: String,
    /// The records that stand in it.
    pub read: Result<RecordsFile, RecordsError>,
}

/// Reads the files of `folder`.
///
/// # Errors
/// The folder cannot be read. A file that cannot be read is among the files.
pub fn read(folder: &RuleFolder) -> Result<Vec<RuleFile>, String> {
    let one = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let read = match is_readable(path) {
            true => RecordsFile::open(path),
            false => Err(RecordsError::new(path, "is not a regular file")),
        };
        RuleFile { name, read }
    };
    Ok(folder.files()?.iter().map(one).collect())
}
