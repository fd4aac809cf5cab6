//! The folder of files with rules, before anybody reads what stands in them. It knows nothing of a configuration.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::config::trust::leads_out;

/// Largest file that is read, in bytes: a thousand hooks with long scripts.
pub(super) const MAX_BYTES: u64 = 8 << 20;

/// Most files that are read of one folder: more is a wrong folder.
const MAX_FILES: usize = 1000;

/// Forms that people write settings in, and in which no rules are read.
const LOOK_ALIKES: [&str; 4] = ["yaml", "yml", "json5", "jsonc"];

/// A folder of files with rules, and whose word it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFolder {
    /// The folder.
    pub dir: PathBuf,
    /// The folder that nothing of it may lead out of, where it was merely found.
    root: Option<PathBuf>,
}

impl RuleFolder {
    /// A folder that the user named.
    pub fn own(dir: PathBuf) -> Self {
        Self { dir, root: None }
    }

    /// A folder that a file names which was found in `root`.
    pub fn found(dir: PathBuf, root: &Path) -> Self {
        Self { dir, root: Some(root.to_owned()) }
    }

    /// Whether `path` is none of what was found.
    fn is_elsewhere(&self, path: &Path) -> bool {
        self.root.as_ref().is_some_and(|root| leads_out(path, root))
    }

    /// Whether it is none of what was found, as a whole.
    pub fn is_out(&self) -> bool {
        self.is_elsewhere(&self.dir)
    }

    /// Its files, as [`listed`] has them, without those that lead out.
    ///
    /// # Errors
    /// It cannot be read, or holds too many.
    pub fn files(&self) -> Result<Vec<PathBuf>, String> {
        if self.is_out() {
            return Ok(Vec::new());
        }
        let mut files = listed(&self.dir)?;
        files.retain(|file| !self.is_elsewhere(file));
        Ok(files)
    }

    /// What of it is not read because it leads out, each with the reason.
    pub fn refused(&self) -> Vec<String> {
        let out = |path: &Path, what: &str| {
            let root = self.root.as_deref().unwrap_or(path).display();
            format!("the {what} {} leads out of {root}", path.display())
        };
        if self.is_out() {
            return vec![out(&self.dir, "folder of rules")];
        }
        let files = listed(&self.dir).unwrap_or_default();
        files.iter().filter(|file| self.is_elsewhere(file)).map(|file| out(file, "file of rules")).collect()
    }
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
pub(super) fn passed_over(folder: &Path) -> Vec<PathBuf> {
    let found = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    let mut files: Vec<PathBuf> = found.filter(|path| is_look_alike(path)).take(MAX_FILES).collect();
    files.sort();
    files
}

/// Whether `path` is named like a form in which no rules are read.
pub(super) fn is_look_alike(path: &Path) -> bool {
    has_suffix(path, &LOOK_ALIKES)
}

fn has_suffix(path: &Path, suffixes: &[&str]) -> bool {
    let own = path.extension().and_then(std::ffi::OsStr::to_str).unwrap_or_default();
    suffixes.iter().any(|suffix| suffix.eq_ignore_ascii_case(own))
}

/// Whether reading `path` comes to an end: whoever opens a pipe waits for somebody who writes. What cannot be told is
/// for the reader to say.
pub(super) fn is_readable(path: &Path) -> bool {
    std::fs::metadata(path).map_or(true, |found| found.is_file())
}

/// The text of `path` as far as it can be rules; empty where nobody could read it as such.
pub(crate) fn text_of(path: &Path) -> String {
    let open = || is_readable(path).then(|| std::fs::File::open(path).ok()).flatten();
    let bytes = open().and_then(|file| bounded(file).ok()).unwrap_or_default();
    String::from_utf8(bytes).unwrap_or_default()
}

/// Reads no more than a file of rules may have, and one byte.
pub(super) fn bounded(from: impl std::io::Read) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
