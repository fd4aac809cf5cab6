//! Open files: how many there may be, and reading from one.

use std::io::{self, PipeReader};
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::sync::{Arc, OnceLock};

use nix::errno::Errno;
use nix::libc;
use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::files::OpenFiles;

/// What this process was allowed before it allowed itself more: soft and hard.
static BEFORE: OnceLock<(rlim_t, rlim_t)> = OnceLock::new();

/// Lets this process open as many files as the system allows it; its children get the limit that it began with. Only
/// whoever owns the process calls this, once it starts.
///
/// # Errors
/// The system tells no limit, or does not change it.
pub fn raise_open_files() -> io::Result<OpenFiles> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    let (before, _) = *BEFORE.get_or_init(|| (soft, hard));
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    Ok(OpenFiles { before, now: hard.max(soft) })
}

/// Gives the calling child the limit that this process began with: some programs go through every number that they may
/// open, or cannot use high ones. Allocates nothing and takes no lock.
pub(super) fn put_back_limit() -> Result<(), Errno> {
    BEFORE.get().map_or(Ok(()), |&(soft, hard)| setrlimit(Resource::RLIMIT_NOFILE, soft, hard))
}

/// A pipe of which the runtime says when there is something to read, while others have it, too. Needs a runtime with IO.
///
/// # Errors
/// The system does not watch it.
#[expect(unsafe_code, reason = "the safe form takes whatever has a number, and is to go")]
pub(crate) fn watched(pipe: Arc<PipeReader>) -> io::Result<AsyncFd<Arc<PipeReader>>> {
    // SAFETY: it owns its descriptor, which stays open, with the same number, as long as anybody has it.
    Ok(unsafe { AsyncFd::register_with_interest(pipe, Interest::READABLE) }?)
}

/// Appends to `room` what can be read at once, at most what it has capacity for. 0 at the end.
///
/// # Errors
/// Nothing can be read now ([`io::ErrorKind::WouldBlock`]), or ever.
#[expect(unsafe_code, reason = "the safe form wants the room zeroed before, which costs more than a short answer")]
pub(crate) fn read_into(pipe: BorrowedFd<'_>, room: &mut Vec<u8>) -> io::Result<usize> {
    let spare = room.spare_capacity_mut();
    loop {
        // SAFETY: the kernel writes at most that many bytes, into memory that is ours alone.
        let read = unsafe { libc::read(pipe.as_raw_fd(), spare.as_mut_ptr().cast(), spare.len()) };
        match (usize::try_from(read), Errno::last()) {
            (Ok(read), _) => {
                let filled = room.len() + read;
                // SAFETY: so many bytes have been written behind what was there, within the capacity.
                unsafe { room.set_len(filled) };
                return Ok(read);
            }
            (Err(_), Errno::EINTR) => {}
            (Err(_), errno) => return Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn what_is_there_is_appended_and_no_more_than_there_is_room_for() {
        let (hear, mut say) = io::pipe().unwrap();
        say.write_all(b"one, two, three").unwrap();
        let mut room = Vec::with_capacity(8);
        room.extend_from_slice(b"I: ");
        let spare = room.capacity() - room.len();
        assert_eq!(read_into(hear.as_fd(), &mut room).unwrap(), spare);
        assert_eq!(room, &b"I: one, two, three"[..3 + spare]);
        drop(say);
        room.reserve(64);
        assert_eq!(read_into(hear.as_fd(), &mut room).unwrap(), 15 - spare);
        assert_eq!(room, b"I: one, two, three");
        assert_eq!(read_into(hear.as_fd(), &mut room).unwrap(), 0, "the end");
    }
}
