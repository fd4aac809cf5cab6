//! System calls that do not go through the C library. It writes the number of an error where the calling thread keeps
//! its own, and a process that shares the host's memory has no such place: it would write into that of a thread of the
//! host.

use std::ffi::{CStr, c_int, c_long};
use std::ptr;

use nix::libc;

/// What a process is made with that goes on by these calls alone: where they bypass the C library it may share the
/// host's memory, elsewhere it gets a copy.
pub(super) const MEMORY: c_int =
    if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) { libc::CLONE_VM } else { 0 };

/// Size of the kernel's set of signals.
const SIGNAL_SET_BYTES: usize = 8;

/// One system call. What comes back is the kernel's word: a negative error number, or the result.
#[expect(unsafe_code, reason = "there is no safe form that keeps away from the C library")]
fn call(number: c_long, words: [usize; 4]) -> isize {
    let [one, two, three, four] = words;
    let said: isize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the callers below pass numbers, and pointers to memory that they own for as long as the call takes. The
    // kernel clobbers the two registers that are named.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number as isize => said,
            in("rdi") one, in("rsi") two, in("rdx") three, in("r10") four,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above; this processor's call clobbers no register but that of the result.
    unsafe {
        std::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") one as isize => said,
            in("x1") two, in("x2") three, in("x3") four,
            options(nostack),
        );
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        // SAFETY: as above. The memory is a copy here, and so is the place of the error number.
        let result = unsafe { libc::syscall(number, one, two, three, four) };
        said = if result < 0 { -(nix::errno::Errno::last_raw() as isize) } else { result as isize };
    }
    said
}

/// A negative error number, or a result that fits: ids, counts and signals do.
fn short(said: isize) -> c_int {
    c_int::try_from(said).unwrap_or(c_int::MAX)
}

/// The word in which the kernel takes a number; it reads no more of it than it needs.
const fn word(number: c_int) -> usize {
    number as isize as usize
}

/// A set of signals, in the kernel's form.
#[derive(Clone, Copy)]
pub(super) struct Signals(u64);

impl Signals {
    pub(super) const fn of<const N: usize>(signals: [c_int; N]) -> Self {
        let (mut set, mut at) = (0, 0);
        while at < N {
            set |= 1 << (signals[at] - 1);
            at += 1;
        }
        Self(set)
    }
}

/// The next of `signals`, which have to be blocked; a negative number if none came within `most_ms` milliseconds.
pub(super) fn next_signal(signals: Signals, most_ms: Option<u32>) -> c_int {
    let most = most_ms.map(|most| [u64::from(most / 1000), u64::from(most % 1000) * 1_000_000]);
    // On every processor with these calls a time is two words of the machine.
    let time = most.map(|[seconds, nanos]| [seconds as usize, nanos as usize]);
    let time = time.as_ref().map_or(ptr::null(), ptr::from_ref);
    let set = ptr::from_ref(&signals.0);
    short(call(libc::SYS_rt_sigtimedwait, [set as usize, 0, time as usize, SIGNAL_SET_BYTES]))
}

/// Sends a signal; whether the kernel took it.
pub(super) fn kill(pid: c_int, signal: c_int) -> bool {
    call(libc::SYS_kill, [word(pid), word(signal), 0, 0]) == 0
}

/// What became of the wait for children.
pub(super) enum Waited {
    /// This one has ended, with this status.
    Ended { pid: c_int, status: c_int },
    /// There are some, and all of them run.
    Running,
    /// There is none.
    Childless,
}

/// Reaps one child that has ended, of any kind.
pub(super) fn wait() -> Waited {
    let mut status: c_int = 0;
    let place = ptr::from_mut(&mut status) as usize;
    match short(call(libc::SYS_wait4, [word(-1), place, word(libc::WNOHANG | libc::__WALL), 0])) {
        0 => Waited::Running,
        pid if pid > 0 => Waited::Ended { pid, status },
        // The only other error is that somebody wants it to be tried again, which no call here can meet.
        _ => Waited::Childless,
    }
}

/// The process that made this one, or has adopted it.
pub(super) fn parent() -> c_int {
    short(call(libc::SYS_getppid, [0; 4]))
}

/// This process.
pub(super) fn own() -> c_int {
    short(call(libc::SYS_getpid, [0; 4]))
}

/// Opens a file or folder for reading; a negative number if that fails.
pub(super) fn open(path: &CStr) -> c_int {
    let flags = word(libc::O_RDONLY | libc::O_CLOEXEC);
    short(call(libc::SYS_openat, [word(libc::AT_FDCWD), path.as_ptr() as usize, flags, 0]))
}

/// Reads into `room`. Says how much, none at the end and after an error.
pub(super) fn read(file: c_int, room: &mut [u8]) -> usize {
    let said = call(libc::SYS_read, [word(file), room.as_mut_ptr() as usize, room.len(), 0]);
    usize::try_from(said).unwrap_or(0)
}

/// Reads entries of a folder into `room`, in the kernel's form. Says how many bytes, none at the end and after an error.
pub(super) fn entries(folder: c_int, room: &mut [u8]) -> usize {
    let said = call(libc::SYS_getdents64, [word(folder), room.as_mut_ptr() as usize, room.len(), 0]);
    usize::try_from(said).unwrap_or(0)
}

/// Writes `bytes`, which are fewer than a pipe takes at once. Whoever does not listen any more hears nothing.
pub(super) fn write(file: c_int, bytes: &[u8]) {
    call(libc::SYS_write, [word(file), bytes.as_ptr() as usize, bytes.len(), 0]);
}

pub(super) fn close(file: c_int) {
    call(libc::SYS_close, [word(file), 0, 0, 0]);
}
