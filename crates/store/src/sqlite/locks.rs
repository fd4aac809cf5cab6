//! Who works on which session: one byte of a lock file for each, held by the kernel for as long as the process lives.
//!
//! The locks are those of an open file description (`F_OFD_SETLK`): they end with its last handle, so with the
//! process, however that ends, and no program that it starts inherits them, since handles are closed on exec.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use pintle_domain::store::{SessionHold, SessionKey, StoreError};

use crate::place::place;

/// The lock file of one store, and what this store holds of it.
#[derive(Debug)]
pub(super) struct Locks {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Open from the first question about a lock for as long as the store, and each hold, lives.
    file: Option<File>,
    /// Locks of one description do not exclude each other, so its own are noted here.
    held: HashSet<i64>,
}

/// The lock of one session.
#[derive(Debug)]
pub(super) struct Held {
    locks: Arc<Locks>,
    place: i64,
}

impl SessionHold for Held {}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.locks.state();
        if state.held.remove(&self.place)
            && let Some(file) = &state.file
        {
            // If it failed, the lock would end with the store.
            let released = fcntl(file, FcntlArg::F_OFD_SETLK(&range(libc::F_UNLCK, self.place)));
            debug_assert!(released.is_ok(), "{released:?}");
        }
    }
}

impl Locks {
    /// The locks beside the database at `path`. Makes nothing yet.
    pub(super) fn beside(path: &Path) -> Self {
        // SQLite names its own companions in the same way.
        let mut name = path.as_os_str().to_owned();
        name.push("-lock");
        Self { path: name.into(), state: Mutex::default() }
    }

    /// Takes the lock of `key`, unless somebody has it.
    pub(super) fn take(self: &Arc<Self>, key: &SessionKey) -> Result<Option<Held>, StoreError> {
        let place = place(key);
        let mut state = self.state();
        let file = self.opened(&mut state, true)?.ok_or_else(|| self.failed(&ErrorKind::NotFound.into()))?;
        // On a file that another process cannot find, a lock keeps nobody away.
        if fs::metadata(&self.path).ok().map(|it| (it.dev(), it.ino())) != inode(file) {
            return Err(StoreError::Unavailable(format!(
                "`{}` was moved or deleted while in use; restart the program",
                self.path.display()
            )));
        }
        if state.held.contains(&place) {
            return Ok(None);
        }
        let file = state.file.as_ref().expect("it was opened above");
        match fcntl(file, FcntlArg::F_OFD_SETLK(&range(libc::F_WRLCK, place))) {
            Ok(_) => {}
            Err(Errno::EAGAIN | Errno::EACCES) => return Ok(None),
            Err(e) => return Err(self.failed(&e.into())),
        }
        state.held.insert(place);
        Ok(Some(Held { locks: self.clone(), place }))
    }

    /// Whether anybody has the lock of `key` now.
    pub(super) fn is_taken(&self, key: &SessionKey) -> Result<bool, StoreError> {
        let place = place(key);
        let mut state = self.state();
        if state.held.contains(&place) {
            return Ok(true);
        }
        // Without a file, nobody ever took a lock.
        let Some(file) = self.opened(&mut state, false)? else { return Ok(false) };
        let mut asked = range(libc::F_WRLCK, place);
        fcntl(file, FcntlArg::F_OFD_GETLK(&mut asked)).map_err(|e| self.failed(&e.into()))?;
        Ok(asked.l_type != libc::F_UNLCK as libc::c_short)
    }

    fn opened<'a>(&self, state: &'a mut State, make: bool) -> Result<Option<&'a File>, StoreError> {
        if state.file.is_none() {
            // The standard library opens every file so that it is closed on exec.
            match OpenOptions::new().read(true).write(true).create(make).truncate(false).mode(0o600).open(&self.path) {
                Ok(file) => state.file = Some(file),
                Err(e) if e.kind() == ErrorKind::NotFound && !make => {}
                Err(e) => return Err(self.failed(&e)),
            }
        }
        Ok(state.file.as_ref())
    }

    fn failed(&self, error: &Error) -> StoreError {
        StoreError::Unavailable(format!(
            "`{}` cannot be locked: {error}; check the file's owner and mode, and that the folder is a local one",
            self.path.display()
        ))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic leaves at most a lock that is held and not noted, which keeps others away until the store ends.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn inode(file: &File) -> Option<(u64, u64)> {
    file.metadata().ok().map(|it| (it.dev(), it.ino()))
}

/// One byte, in the form of the system. The process must be 0 for locks of a description.
fn range(kind: i32, place: i64) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: place,
        l_len: 1,
        l_pid: 0,
    }
}
