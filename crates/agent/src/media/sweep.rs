//! Takes away what nobody has used for a while.

use std::fs;
use std::io;
use std::path::Path;
use std::time::SystemTime;

use super::about::MediaInfo;
use super::reference::{DRAFT, GONE, Id};
use super::{MediaStore, expired};

impl MediaStore {
    /// Removes every medium that was last used more than [`TTL`](super::TTL) before `now` and is not held; returns how
    /// many. What is held counts as used now, so that another process with the same folder leaves it alone too.
    /// What the store did not make is not touched; what cannot be removed is logged and left to the next sweep.
    ///
    /// # Errors
    /// The folder cannot be listed.
    pub fn sweep(&self, now: SystemTime) -> io::Result<usize> {
        let mut removed = 0;
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if !entry.file_type()?.is_dir() {
                continue;
            }
            match self.sweep_one(&entry.path(), name, now) {
                Ok(gone) => removed += usize::from(gone),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => tracing::warn!(folder = %entry.path().display(), %error, "media cannot be swept"),
            }
        }
        Ok(removed)
    }

    /// Whether the medium in the folder `path` was removed.
    fn sweep_one(&self, path: &Path, name: &str, now: SystemTime) -> io::Result<bool> {
        if let Some(id) = Id::of_folder(name) {
            return self.sweep_medium(path, id, now);
        }
        let left_over = |prefix: &str| name.strip_prefix(prefix).is_some_and(|id| Id::of_folder(id).is_some());
        // A draft may be in the middle of being written, by another process too.
        if left_over(GONE) || (left_over(DRAFT) && expired(path.symlink_metadata()?.modified()?, now)) {
            fs::remove_dir_all(path)?;
        }
        Ok(false)
    }

    fn sweep_medium(&self, path: &Path, id: Id, now: SystemTime) -> io::Result<bool> {
        if self.holds.has(&id) {
            MediaInfo::touch(path, now).map_err(|why| io::Error::other(why.to_string()))?;
            return Ok(false);
        }
        let gone = self.folder.join(id.gone());
        let take = || {
            let last_use = MediaInfo::last_use(path).or_else(|_| path.symlink_metadata()?.modified())?;
            // Renamed first: whoever comes for it now finds nothing rather than half of it.
            if expired(last_use, now) { fs::rename(path, &gone).map(|()| true) } else { Ok(false) }
        };
        let taken = self.holds.unless_held(&id, take).transpose()?.unwrap_or(false);
        if taken {
            fs::remove_dir_all(gone)?;
        }
        Ok(taken)
    }
}
