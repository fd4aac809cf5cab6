//! Files with rules: the `*.toml` and `*.json` of a folder.

mod filed;
mod meant;
mod records;
mod strangers;

use std::path::{Path, PathBuf};

use records::bounded;

pub use filed::{FileContext, FileProblem, FiledRules, GATES, GoodRule, IN_FOLDER, folder_of};
pub use records::{RecordsError, RecordsFile};
pub use strangers::{mounted, strangers};

/// Most files that are read of one folder: more is a wrong folder.
const MAX_FILES: usize = 1000;

/// Forms that people write settings in, and in which no rules are read.
const LOOK_ALIKES: [&str; 4] = ["yaml", "yml", "json5", "jsonc"];

/// One file that was read, or why it could not be.
pub struct RuleFile {
    /// Its name, without its folder.
    pub name: String,
    /// The records that stand in it.
    pub read: Result<RecordsFile, RecordsError>,
}

/// The files of `folder` that hold rules, by name. A folder that is not there has none.
///
/// # Errors
/// It cannot be read, or holds too many.
pub fn listed(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let found = match std::fs::read_dir(folder) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("`{}` cannot be read: {error}", folder.display())),
    };
    let mut files: Vec<PathBuf> =
        found.filter_map(Result::ok).map(|entry| entry.path()).filter(|path| is_rules(path)).collect();
    files.sort();
    if files.len() > MAX_FILES {
        return Err(format!(
            "`{}` holds {} files of rules, at most {MAX_FILES} are read",
            folder.display(),
            files.len()
        ));
    }
    Ok(files)
}

/// Whether a file of this name holds rules.
pub fn is_rules(path: &Path) -> bool {
    has_suffix(path, &["toml", "json"])
}

/// The files of `folder` that somebody may take for rules and that hold none, by name: nobody reads them.
fn passed_over(folder: &Path) -> Vec<PathBuf> {
    let found = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    let mut files: Vec<PathBuf> = found.filter(|path| has_suffix(path, &LOOK_ALIKES)).take(MAX_FILES).collect();
    files.sort();
    files
}

fn has_suffix(path: &Path, suffixes: &[&str]) -> bool {
    let own = path.extension().and_then(std::ffi::OsStr::to_str).unwrap_or_default();
    suffixes.iter().any(|suffix| suffix.eq_ignore_ascii_case(own))
}

/// Whether reading `path` comes to an end: whoever opens a pipe waits for somebody who writes. What cannot be told is
/// for the reader to say.
fn is_readable(path: &Path) -> bool {
    std::fs::metadata(path).map_or(true, |found| found.is_file())
}

/// The text of `path` as far as it can be rules; empty where nobody could read it as such.
pub fn text_of(path: &Path) -> String {
    let open = || is_readable(path).then(|| std::fs::File::open(path).ok()).flatten();
    let bytes = open().and_then(|file| bounded(file).ok()).unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

/// Reads the files of `folder`.
///
/// # Errors
/// The folder cannot be read. A file that cannot be read is among the files.
pub fn read(folder: &Path) -> Result<Vec<RuleFile>, String> {
    let one = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let read = match is_readable(path) {
            true => RecordsFile::open(path),
            false => Err(RecordsError::new(path, "is no regular file")),
        };
        RuleFile { name, read }
    };
    Ok(listed(folder)?.iter().map(one).collect())
}
