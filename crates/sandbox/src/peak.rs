//! How much memory this process has had at most.
//!
//! When the engine has no memory for an error either, it throws `null`, which a script may throw as well; and by then
//! the memory is free again. The kernel remembers. What `getrusage` says of it counts the time before the process
//! became this program, so it is read from `/proc`.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::OnceLock;

use crate::limits;

/// The open file, since later no file can be opened; and the peak before the first script.
static START: OnceLock<Option<(File, usize)>> = OnceLock::new();

/// The page is about half as long.
const STATUS_BYTES: usize = 4096;

/// Called once, while files can be opened.
pub(crate) fn watch() {
    START.get_or_init(|| {
        let status = File::open("/proc/self/status").ok()?;
        let start_bytes = peak_bytes(&status)?;
        Some((status, start_bytes))
    });
}

/// Whether there was once so much memory as only a full heap explains. A process is replaced after such a run, so it
/// was this one.
pub(crate) fn heap_was_full() -> bool {
    let Some(Some((status, start_bytes))) = START.get() else { return false };
    peak_bytes(status).is_some_and(|peak| peak.saturating_sub(*start_bytes) > limits::HEAP_BYTES / 2)
}

fn peak_bytes(status: &File) -> Option<usize> {
    let mut page = [0; STATUS_BYTES];
    let size = status.read_at(&mut page, 0).ok()?;
    let text = String::from_utf8_lossy(&page[..size]);
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_stays_when_the_memory_is_gone() {
        let status = File::open("/proc/self/status").unwrap();
        let before = peak_bytes(&status).unwrap();
        let much = vec![1_u8; 64 << 20];
        assert!(much.iter().step_by(4096).all(|byte| *byte == 1));
        drop(much);
        assert!(peak_bytes(&status).unwrap() >= before.max(64 << 20));
    }
}
