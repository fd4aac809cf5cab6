//! How often this process has the disk write what it was given.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::libc;

static SYNCS: AtomicU64 = AtomicU64::new(0);

/// The syncs so far.
pub(crate) fn so_far() -> u64 {
    SYNCS.load(Ordering::SeqCst)
}

/// Stands in the place of the C library's function, which SQLite calls, and counts.
#[expect(unsafe_code, reason = "only the linker can put itself between SQLite and the C library")]
// SAFETY: it has the signature of the function that it stands for, and does what that does.
#[unsafe(no_mangle)]
extern "C" fn fsync(file: c_int) -> c_int {
    SYNCS.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the system call takes a number, and says so if it is that of no file.
    let done = unsafe { libc::syscall(libc::SYS_fsync, file) };
    c_int::try_from(done).unwrap_or(-1)
}

/// The same for the other function that syncs.
#[expect(unsafe_code, reason = "only the linker can put itself between SQLite and the C library")]
// SAFETY: it has the signature of the function that it stands for, and does what that does.
#[unsafe(no_mangle)]
extern "C" fn fdatasync(file: c_int) -> c_int {
    SYNCS.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the system call takes a number, and says so if it is that of no file.
    let done = unsafe { libc::syscall(libc::SYS_fdatasync, file) };
    c_int::try_from(done).unwrap_or(-1)
}
