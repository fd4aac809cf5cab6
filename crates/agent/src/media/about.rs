//! The description beside a medium. Its time of change is the last use.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::SystemTime;

use pintle_domain::id::{SessionId, TenantId};
use serde::{Deserialize, Serialize};

use super::{MAX_MEDIUM_BYTES, MediaError, PLAIN, create, name};

/// Its file. No medium has a name that begins with a dot.
const FILE: &str = ".about.json";
/// The longest description that is read: its texts are short, and only a file that is not ours is longer.
const MAX_ABOUT_BYTES: u64 = 64 * 1024;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MediaInfo {
    pub(super) file_name: String,
    pub(super) content_type: String,
    pub(super) source: String,
    pub(super) tenant: TenantId,
    pub(super) session: SessionId,
    pub(super) size_bytes: u64,
    pub(super) sha256: String,
}

impl MediaInfo {
    pub(super) fn write(&self, folder: &Path, now: SystemTime) -> io::Result<()> {
        let mut file = create(&folder.join(FILE))?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.set_modified(now)
    }

    /// The description in `folder`, and the last use.
    pub(super) fn read(folder: &Path) -> Result<(Self, SystemTime), MediaError> {
        let opened = File::options().read(true).custom_flags(PLAIN).open(folder.join(FILE));
        let file = opened.map_err(|error| unknown_or(MediaError::Read, error))?;
        let metadata = file.metadata().map_err(MediaError::Read)?;
        let mut text = Vec::new();
        file.take(MAX_ABOUT_BYTES).read_to_end(&mut text).map_err(MediaError::Read)?;
        let about: Self = serde_json::from_slice(&text).map_err(|_| MediaError::Changed)?;
        // Only a name that we gave leads to a file of ours.
        if !name::is_safe(&about.file_name) || about.size_bytes > MAX_MEDIUM_BYTES {
            return Err(MediaError::Changed);
        }
        Ok((about, metadata.modified().map_err(MediaError::Read)?))
    }

    /// When the medium in `folder` was last used.
    pub(super) fn last_use(folder: &Path) -> io::Result<SystemTime> {
        folder.join(FILE).symlink_metadata()?.modified()
    }

    /// Notes that the medium in `folder` is used `now`.
    pub(super) fn touch(folder: &Path, now: SystemTime) -> Result<(), MediaError> {
        let opened = File::options().write(true).custom_flags(PLAIN).open(folder.join(FILE));
        opened.and_then(|file| file.set_modified(now)).map_err(|error| unknown_or(MediaError::Keep, error))
    }
}

/// A description that is not there describes nothing that anybody knows.
fn unknown_or(otherwise: fn(io::Error) -> MediaError, error: io::Error) -> MediaError {
    if error.kind() == io::ErrorKind::NotFound { MediaError::Unknown } else { otherwise(error) }
}
