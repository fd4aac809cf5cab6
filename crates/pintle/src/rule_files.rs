//! Files with rules: the `*.toml` and `*.json` of a folder, as values.

use std::path::{Path, PathBuf};

use serde_json::Value;

/// Most files that are read of one folder: more is a wrong folder.
const MAX_FILES: usize = 1000;

/// Largest file that is read, in bytes: a thousand rules with long scripts.
const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// One file that was read, or why it could not be.
pub(crate) struct RuleFile {
    /// Its name, without its folder.
    pub name: String,
    /// What stands in it.
    pub read: Result<Value, String>,
}

/// The files of `folder` that hold rules, by name. A folder that is not there has none.
///
/// # Errors
/// It cannot be read, or holds too many.
pub(crate) fn listed(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let found = match std::fs::read_dir(folder) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("`{}` cannot be read: {error}", folder.display())),
    };
    let is_rules = |path: &PathBuf| path.extension().is_some_and(|suffix| suffix == "toml" || suffix == "json");
    let mut files: Vec<PathBuf> = found.filter_map(Result::ok).map(|entry| entry.path()).filter(is_rules).collect();
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

/// Reads the files of `folder`.
///
/// # Errors
/// The folder cannot be read. A file that cannot be read is among the files.
pub(crate) fn read(folder: &Path) -> Result<Vec<RuleFile>, String> {
    Ok(listed(folder)?.iter().map(|path| one(path)).collect())
}

/// Reads one file, TOML or JSON by its name.
pub(crate) fn one(path: &Path) -> RuleFile {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    RuleFile { name, read: value(path).map_err(|why| format!("{}: {why}", path.display())) }
}

fn value(path: &Path) -> Result<Value, String> {
    let size = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > MAX_FILE_BYTES {
        return Err(format!("it has {size} bytes, at most {MAX_FILE_BYTES} are read"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    if path.extension().is_some_and(|suffix| suffix == "json") { json(&text) } else { toml_text(&text) }
}

/// Reads rules from a text in JSON.
///
/// # Errors
/// What is wrong, and where.
pub(crate) fn json(text: &str) -> Result<Value, String> {
    domain::json::parse(text).map_err(|error| error.to_string())
}

/// Reads rules from a text in TOML.
///
/// # Errors
/// What is wrong, and where.
pub(crate) fn toml_text(text: &str) -> Result<Value, String> {
    let table: toml::Table = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
    serde_json::to_value(table).map_err(|error| error.to_string())
}
