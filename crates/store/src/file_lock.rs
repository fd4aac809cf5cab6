//! Locks of files: taken within a time, with the name of whoever has them where that takes longer.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::sys::stat::{major, minor};
use thiserror::Error;

/// How often it is tried. Whoever has such a lock writes one small file.
const PAUSE: Duration = Duration::from_millis(2);

/// Why a file could not be locked.
#[derive(Debug, Error)]
pub enum FileLockError {
    /// Somebody else has had the lock for all of the time.
    #[error("{holder} has held it for more than {} ms", waited.as_millis())]
    Held {
        /// Who, for a person.
        holder: String,
        /// How long was waited.
        waited: Duration,
    },
    /// The file cannot be opened or locked at all.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A lock that only one process has, until it is dropped.
#[derive(Debug)]
pub struct FileLock(#[expect(dead_code, reason = "the lock goes when its file is closed")] Flock<File>);

impl FileLock {
    /// Takes the lock of the file at `path`, which is made (0600) where it is missing, and waits for others up to `limit`.
    ///
    /// # Errors
    /// Another one holds it for longer, or the file cannot be opened.
    pub fn take(path: &Path, limit: Duration) -> Result<Self, FileLockError> {
        let began = Instant::now();
        let mut file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)?;
        loop {
            file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => return Ok(Self(lock)),
                Err((file, Errno::EWOULDBLOCK | Errno::EINTR)) => file,
                Err((_, errno)) => return Err(io::Error::from(errno).into()),
            };
            if began.elapsed() >= limit {
                return Err(FileLockError::Held { holder: holder(&file), waited: limit });
            }
            thread::sleep(PAUSE);
        }
    }
}

/// Who has the lock of `file`, as far as the system says so.
fn holder(file: &File) -> String {
    let found = file.metadata().ok().and_then(|file| {
        let id = format!("{:02x}:{:02x}:{}", major(file.dev()), minor(file.dev()), file.ino());
        holder_of(&id, &fs::read_to_string("/proc/locks").ok()?)
    });
    match found {
        Some(pid) if pid == std::process::id() => "this process itself".into(),
        Some(pid) => format!("process {pid}"),
        None => "another process".into(),
    }
}

/// The process that has the lock of the file `id` in `locks`, the text of `/proc/locks`: number, `FLOCK`, `ADVISORY`,
/// `WRITE`, process, file. Those that wait have `->` before the kind.
fn holder_of(id: &str, locks: &str) -> Option<u32> {
    let held = |line: &str| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, "FLOCK", _, _, pid, file, ..] = words.as_slice() else { return None };
        // Nought is a process of another namespace.
        (*file == id).then(|| pid.parse().ok().filter(|pid| *pid != 0)).flatten()
    };
    locks.lines().find_map(held)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_too_long_is_told_for_whom() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        let limit = Duration::from_millis(20);
        let held = FileLock::take(&path, limit).unwrap();
        let began = Instant::now();
        let said = FileLock::take(&path, limit).unwrap_err().to_string();
        assert!(began.elapsed() >= limit);
        assert!(said.ends_with("has held it for more than 20 ms"), "{said}");
        drop(held);
        FileLock::take(&path, limit).unwrap();
        assert!(matches!(FileLock::take(folder.path(), limit), Err(FileLockError::Io(_))));
    }

    #[test]
    fn the_holder_is_read_from_the_table_of_the_kernel() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 fe:00:12 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 812 fe:00:12 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 9 fe:00:12 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 0 fe:00:13 0 EOF\n";
        assert_eq!(holder_of("fe:00:12", locks), Some(812));
        assert_eq!(holder_of("fe:00:13", locks), None, "a process of another namespace has no number here");
        assert_eq!(holder_of("fe:00:14", locks), None);
    }
}
