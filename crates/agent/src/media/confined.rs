//! Files that a hook points at.
//!
//! A path is looked up once, which opens nothing yet: no fifo blocks and no device acts. What was found is judged by
//! its kind and by its real path as the kernel knows it, and then this very file is opened, whatever stands under the
//! path by now.

use std::fs::{self, File, FileType};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

use super::{Hides, MAX_MEDIUM_BYTES, MediaError, bounded};

/// A regular file that lies where it may.
#[derive(Debug)]
pub(super) struct Located {
    /// Names the file without having it open.
    place: File,
    size_bytes: u64,
}

/// Looks up the regular file at `path`, whose real path must lie below `dir`, and which `hides` must not say of: who can
/// write into the folder of a hook could give one of the host's own files a second name there.
pub(super) fn locate(path: &Path, dir: &Path, hides: Option<Hides<'_>>) -> Result<Located, MediaError> {
    let dir = dir.canonicalize().map_err(MediaError::Dir)?;
    let path_only = OFlag::O_PATH.bits();
    let place = File::options().read(true).custom_flags(path_only).open(path).map_err(MediaError::Read)?;
    let metadata = place.metadata().map_err(MediaError::Read)?;
    let real = fs::read_link(link(&place)).map_err(MediaError::Read)?;
    if !real.starts_with(&dir) {
        return Err(MediaError::Outside(dir));
    }
    if !metadata.is_file() {
        return Err(MediaError::NotAFile(kind(metadata.file_type())));
    }
    // The path of a file without a name says nothing about where it is.
    if metadata.nlink() == 0 {
        return Err(MediaError::Read(io::ErrorKind::NotFound.into()));
    }
    if hides.is_some_and(|hides| hides(&place)) {
        return Err(MediaError::Protected);
    }
    Ok(Located { place, size_bytes: metadata.len() })
}

impl Located {
    /// The content. The file may grow meanwhile, so the bound is kept while reading too.
    pub(super) fn read(&self) -> Result<Vec<u8>, MediaError> {
        if self.size_bytes > MAX_MEDIUM_BYTES {
            return Err(MediaError::TooLarge);
        }
        let quiet = (OFlag::O_NONBLOCK | OFlag::O_NOCTTY).bits();
        bounded(File::options().read(true).custom_flags(quiet).open(link(&self.place)).map_err(MediaError::Read)?)
    }
}

/// The kernel's own link to what is open.
fn link(open: &File) -> PathBuf {
    format!("/proc/self/fd/{}", open.as_raw_fd()).into()
}

fn kind(of: FileType) -> &'static str {
    if of.is_dir() {
        "folder"
    } else if of.is_fifo() {
        "named pipe"
    } else if of.is_socket() {
        "socket"
    } else if of.is_char_device() || of.is_block_device() {
        "device"
    } else {
        "special file"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file is swapped for a link to another one between the look and the reading.
    #[test]
    fn what_was_judged_is_what_is_read() {
        let root = tempfile::tempdir().unwrap();
        let (dir, secret) = (root.path().join("dir"), root.path().join("secret"));
        fs::create_dir(&dir).unwrap();
        fs::write(&secret, "secret").unwrap();
        let path = dir.join("a.txt");
        fs::write(&path, "public").unwrap();
        let located = locate(&path, &dir, None).unwrap();
        fs::rename(&path, dir.join("b.txt")).unwrap();
        std::os::unix::fs::symlink(&secret, &path).unwrap();
        assert_eq!(located.read().unwrap(), b"public");
        assert!(matches!(locate(&path, &dir, None).unwrap_err(), MediaError::Outside(_)));
    }

    #[test]
    fn a_file_that_grows_meets_the_bound_while_it_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "x").unwrap();
        let located = locate(&path, dir.path(), None).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(MAX_MEDIUM_BYTES + 1).unwrap();
        assert!(matches!(located.read().unwrap_err(), MediaError::TooLarge));
    }

    #[test]
    fn a_file_without_a_name_lies_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let open = File::create(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(matches!(locate(&link(&open), dir.path(), None).unwrap_err(), MediaError::Read(_)));
    }
}
