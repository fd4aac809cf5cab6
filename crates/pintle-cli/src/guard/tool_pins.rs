//! What servers behind the tool door said of their tools when they were first used: a file for each in the home folder.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::time::Duration;

use pintle_doors::mcp::ToolPins;
use pintle_store::file_lock::FileLock;

use super::host_files::text_of;
use super::places::GuardPlaces;

/// The folder of these files, in that of the guard.
const FOLDER: &str = "mcp";

/// How long other proxies before the same server are waited for, each of which reads and writes a small file.
const LOCK_TIME: Duration = Duration::from_secs(2);

/// The file of one server.
#[derive(Clone, Debug)]
pub(crate) struct PinFile {
    folder: PathBuf,
    server: String,
}

impl PinFile {
    /// That of `server`, whose name was checked.
    pub(crate) fn of(places: &GuardPlaces, server: &str) -> Self {
        Self { folder: places.folder.join(FOLDER), server: server.to_owned() }
    }

    fn file(&self) -> PathBuf {
        self.folder.join(format!("{}.json", self.server))
    }

    /// The servers that have a file in the same folder, by their names.
    pub(crate) fn known(&self) -> Vec<String> {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let names = files.filter_map(|file| Some(file.file_name().to_str()?.strip_suffix(".json")?.to_owned()));
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names
    }

    /// What stands in it; nothing if it is not there.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn read(&self) -> io::Result<ToolPins> {
        match text_of(&self.file())? {
            Some(text) => ToolPins::of_text(&text).map_err(|why| {
                io::Error::other(format!("{} is not what `pintle mcp` writes: {why}", self.file().display()))
            }),
            None => Ok(ToolPins::default()),
        }
    }

    /// Lets `work` change what stands in it. Several proxies before one server take turns.
    ///
    /// # Errors
    /// It cannot be read or written.
    pub(crate) fn change<T>(&self, work: impl FnOnce(&mut ToolPins) -> T) -> io::Result<T> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let lock = self.folder.join(format!("{}.lock", self.server));
        let _alone = FileLock::take(&lock, LOCK_TIME)
            .map_err(|why| io::Error::other(format!("{} cannot be locked: {why}", lock.display())))?;
        let mut pins = self.read()?;
        let before = pins.clone();
        let came = work(&mut pins);
        if pins != before {
            // Whole or not at all.
            let beside = self.folder.join(format!("{}.new", self.server));
            let mut made = File::options().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
            made.write_all(pins.to_text().as_bytes())?;
            made.sync_all()?;
            fs::rename(beside, self.file())?;
        }
        Ok(came)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_domain::tool::Annotations;
    use pintle_doors::mcp::{OnChange, ToolDefinition};

    #[test]
    fn what_is_pinned_is_kept_and_a_foreign_file_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let places = GuardPlaces { socket: dir.path().join("s"), folder: dir.path().join("guard") };
        let file = PinFile::of(&places, "time");
        assert_eq!(file.read().unwrap(), ToolPins::default());
        let tool = ToolDefinition {
            name: "now".into(),
            digest: "1".into(),
            shown: "{}".into(),
            annotations: Annotations::default(),
        };
        file.change(|pins| pins.see(std::slice::from_ref(&tool), OnChange::Ask)).unwrap();
        let kept = file.read().unwrap();
        assert_ne!(kept, ToolPins::default());
        fs::write(file.file(), "{").unwrap();
        assert!(file.change(|pins| pins.see(&[tool], OnChange::Ask)).is_err());
        assert_eq!(fs::read_to_string(file.file()).unwrap(), "{");
    }
}
