//! The folder of the demo, and what it is filled with.

use std::path::{Path, PathBuf};

use crate::error::CliError;

/// What the demo asks.
pub(super) const PROMPT: &str =
    "What is the weather in Beijing, what do my notes say, what is my key, and force-push main for me.";

/// The demo's files, as they are written.
const FILES: [(&str, &str); 8] = [
    ("pintle.toml", include_str!("../../demo/pintle.toml")),
    ("replies.json", include_str!("../../demo/replies.json")),
    ("weather.sh", include_str!("../../demo/weather.sh")),
    ("guard.sh", include_str!("../../demo/guard.sh")),
    ("redactor.sh", include_str!("../../demo/redactor.sh")),
    ("hooks.d/secrets.toml", include_str!("../../demo/secrets.toml")),
    ("workspace/notes.txt", include_str!("../../demo/notes.txt")),
    ("workspace/.env", include_str!("../../demo/env.txt")),
];

/// Where the demo's files stand; removed afterwards unless the user keeps them.
pub(super) struct Scratch {
    pub(super) folder: PathBuf,
    kept: bool,
}

impl Scratch {
    pub(super) fn new(keep: Option<PathBuf>) -> Result<Self, CliError> {
        let cwd = std::env::current_dir()
            .map_err(|error| CliError::failed(format!("the working directory cannot be read: {error}")))?;
        match keep {
            Some(folder) => Ok(Self { folder: cwd.join(folder), kept: true }),
            None => {
                let folder = std::env::temp_dir().join(format!("pintle-demo-{}", uuid::Uuid::new_v4()));
                Ok(Self { folder, kept: false })
            }
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !self.kept
            && self.folder.exists()
            && let Err(error) = std::fs::remove_dir_all(&self.folder)
        {
            tracing::warn!("the demo's files in {} stay: {error}", self.folder.display());
        }
    }
}

/// Refuses a folder with files that are not the demo's, since what the configuration in it says is run without being
/// accepted first. A folder that the demo made has all of its files, changed or not.
pub(super) fn check(folder: &Path) -> Result<(), CliError> {
    let mut entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(CliError::failed(format!("{} cannot be used: {error}", folder.display()))),
    };
    let is_ours = |name: &str| folder.join(name).symlink_metadata().is_ok_and(|of| of.is_file());
    let Some((missing, _)) = FILES.iter().find(|(name, _)| !is_ours(name)) else { return Ok(()) };
    if entries.next().is_none() {
        return Ok(());
    }
    let folder = folder.display();
    Err(CliError::usage(format!("{folder} is not a folder of the demo: it is not empty, and has no file `{missing}`"))
        .hint("name a folder that is new or empty")
        .hint("to run what is in it: `pintle trust` and `pintle run` there"))
}

/// Writes the demo's files. A file that the user changed is not overwritten.
pub(super) fn write(folder: &Path) -> Result<(), CliError> {
    let failed = |what: &Path, error: std::io::Error| {
        CliError::failed(format!("the demo's files cannot be written: {}: {error}", what.display()))
    };
    for (name, text) in FILES {
        let file = folder.join(name);
        let around = file.parent().unwrap_or(folder);
        std::fs::create_dir_all(around).map_err(|error| failed(around, error))?;
        if !file.exists() {
            std::fs::write(&file, text).map_err(|error| failed(&file, error))?;
        }
    }
    Ok(())
}
