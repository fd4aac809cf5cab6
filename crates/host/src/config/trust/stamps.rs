//! Whether the files that were read before a start are the ones that were run.
//!
//! An interpreter opens its script by a path, some time after the path was looked at. So each file is looked at twice:
//! its digest is made of an open descriptor, whose stamp is kept, and the path has to lead to that stamp once the child has
//! read what it runs: at its handshake, or at the end of a command. No program can set back when an inode was last changed
//! or moved, so a file that was swapped in between and swapped back is seen, too. A folder above it that was moved away and
//! back is not.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use super::CHANGED;

/// Which file it is, and when it was last written, moved, linked or given other rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    device: u64,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl FileStamp {
    pub(super) fn of(file: &Metadata) -> Self {
        Self { device: file.dev(), inode: file.ino(), bytes: file.size(), changed: (file.ctime(), file.ctime_nsec()) }
    }
}

/// The files of an entry as they were when they were read.
#[derive(Debug, Default)]
pub struct FileStamps(pub(super) BTreeMap<PathBuf, FileStamp>);

impl FileStamps {
    /// Whether each path still leads to the file that was read.
    ///
    /// # Errors
    /// The detail of the fault that one does not.
    pub fn check(&self) -> Result<(), String> {
        let is_same =
            |(path, stamp): (&PathBuf, &FileStamp)| path.metadata().is_ok_and(|now| FileStamp::of(&now) == *stamp);
        if self.0.iter().all(is_same) { Ok(()) } else { Err(CHANGED.to_owned()) }
    }
}
