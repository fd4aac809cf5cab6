//! The adopter: a process between the host and one child, by which nothing of the child outlives its use.
//!
//! Whatever a child starts can leave its group and its session, but not its ancestors: a process whose parent ends goes
//! to the nearest adoptive one, and that is the adopter. It reaps what comes to it, tells the host when the child has
//! ended, and leaves when nothing is left below it. On the host's order, or when the host is gone, it kills all of that
//! first. The host itself adopts nobody, so one child's leftovers are never mixed up with another's.
//!
//! It shares the host's memory, since a copy would cost more than most children do, and would keep growing while the
//! host goes on. So from the moment the host goes on, it makes system calls by itself (`raw.rs`), allocates nothing,
//! takes no lock, does not panic, and touches no memory but its own stack. All signals are blocked; it asks for those
//! that it wants.

use std::ffi::{CStr, c_int};

use nix::libc;

use super::raw::{self, Signals, Waited};

/// The host wants everything below to be asked to end.
pub(super) const ASK: c_int = libc::SIGTERM;
/// The host wants everything below to be killed.
pub(super) const END: c_int = libc::SIGUSR1;
/// A thread of the host has ended, and perhaps the host.
pub(super) const HANG_UP: c_int = libc::SIGHUP;

/// What it waits for.
const AWAITED: Signals = Signals::of([libc::SIGCHLD, ASK, END, HANG_UP]);
/// What it waits for once it kills.
const ENDS: Signals = Signals::of([libc::SIGCHLD]);

/// How many rounds of killing follow each other closely: whoever starts processes faster than they are found is met
/// in one of them.
const CLOSE_ROUNDS: u32 = 200;
/// How long it waits for an end between two of them, in milliseconds.
const CLOSE_MS: u32 = 1;
/// The same later, when what is left hangs in the kernel.
const LATER_MS: u32 = 20;
/// After so many rounds in a row in which nobody could be signalled it leaves: what is there belongs to another user.
const VAIN_ROUNDS: u32 = 100;
/// How many generations below its children are signalled in one round. Deeper ones come up as those above them end.
const GENERATIONS: u32 = 20;
/// What is read at once of a list of children, and of a folder.
const PIECE_BYTES: usize = 512;

/// Its own children, one after the other, as the kernel lists them.
const OWN_CHILDREN: &CStr = c"/proc/thread-self/children";
/// All processes, for kernels that do not list children.
const PROCESSES: &CStr = c"/proc";

/// Its life from the moment when `leader`, the child, runs. Answers its exit code.
pub(super) fn serve(host: c_int, leader: c_int, tell: impl Fn(c_int, bool)) -> c_int {
    loop {
        let signal = raw::next_signal(AWAITED, None);
        if signal == ASK {
            sweep(ASK);
        }
        if signal == END || (signal == HANG_UP && raw::parent() != host) {
            return end_all(leader, tell);
        }
        if !collect(leader, &tell) {
            return 0;
        }
    }
}

/// Reaps whoever has ended, and tells of the child. Whether anybody is left.
fn collect(leader: c_int, tell: &impl Fn(c_int, bool)) -> bool {
    let mut ended = None;
    let is_left = loop {
        match raw::wait() {
            Waited::Ended { pid, status } if pid == leader => ended = Some(status),
            Waited::Ended { .. } => {}
            Waited::Running => break true,
            Waited::Childless => break false,
        }
    };
    if let Some(status) = ended {
        tell(status, is_left);
    }
    is_left
}

/// Kills everything below until nothing is left.
fn end_all(leader: c_int, tell: impl Fn(c_int, bool)) -> c_int {
    let (mut rounds, mut vain) = (0_u32, 0);
    loop {
        vain = if sweep(libc::SIGKILL) { 0 } else { vain + 1 };
        if !collect(leader, &tell) {
            return 0;
        }
        if vain == VAIN_ROUNDS {
            return 1;
        }
        raw::next_signal(ENDS, Some(if rounds < CLOSE_ROUNDS { CLOSE_MS } else { LATER_MS }));
        rounds = rounds.saturating_add(1);
    }
}

/// Signals everything below, once each. Whether anybody was reached.
fn sweep(signal: c_int) -> bool {
    let mut is_reached = false;
    let is_listed = children(OWN_CHILDREN, &mut |child| is_reached |= signal_all(child, signal, GENERATIONS));
    if !is_listed {
        let own = raw::own();
        numbered(PROCESSES, &mut |pid| is_reached |= parent_of(pid) == Some(own) && raw::kill(pid, signal));
    }
    is_reached
}

/// Signals a process and what it has started, itself first so that it starts no more. Whether it was reached.
fn signal_all(pid: c_int, signal: c_int, generations: u32) -> bool {
    let is_reached = raw::kill(pid, signal);
    if generations > 0 {
        let threads = ProcPath::new(&[Part::Text(b"/proc/"), Part::Number(pid), Part::Text(b"/task")]);
        numbered(threads.text(), &mut |thread| {
            let words = [
                Part::Text(b"/proc/"),
                Part::Number(pid),
                Part::Text(b"/task/"),
                Part::Number(thread),
                Part::Text(b"/children"),
            ];
            children(ProcPath::new(&words).text(), &mut |child| {
                signal_all(child, signal, generations - 1);
            });
        });
    }
    is_reached
}

/// Hands out the process ids in a file that the kernel writes; whether there is such a file.
fn children(path: &CStr, each: &mut dyn FnMut(c_int)) -> bool {
    let file = raw::open(path);
    if file < 0 {
        return false;
    }
    let mut piece = [0; PIECE_BYTES];
    let mut number = None;
    loop {
        let read = raw::read(file, &mut piece);
        for byte in piece.iter().take(read) {
            number = match (digit(*byte), number) {
                (Some(digit), number) => Some(longer(number.unwrap_or(0), digit)),
                (None, Some(pid)) => {
                    each(pid);
                    None
                }
                (None, None) => None,
            };
        }
        if read == 0 {
            break;
        }
    }
    if let Some(pid) = number {
        each(pid);
    }
    raw::close(file);
    true
}

/// Hands out the numbers among the names in a folder.
fn numbered(path: &CStr, each: &mut dyn FnMut(c_int)) {
    /// Where the length of an entry stands, and its name, which ends in a zero byte.
    const LENGTH_AT: usize = 16;
    const NAME_AT: usize = 19;
    let folder = raw::open(path);
    if folder < 0 {
        return;
    }
    let mut piece = [0; PIECE_BYTES];
    loop {
        let read = raw::entries(folder, &mut piece);
        let mut rest = piece.get(..read).unwrap_or_default();
        while let (Some([low, high]), Some(name)) = (rest.get(LENGTH_AT..LENGTH_AT + 2), rest.get(NAME_AT..)) {
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            if let Some(number) = number(name) {
                each(number);
            }
            rest = rest.get(usize::from(u16::from_ne_bytes([*low, *high])).max(1)..).unwrap_or_default();
        }
        if read == 0 {
            break;
        }
    }
    raw::close(folder);
}

/// The parent of a process, where the kernel does not list children.
fn parent_of(pid: c_int) -> Option<c_int> {
    let path = ProcPath::new(&[Part::Text(b"/proc/"), Part::Number(pid), Part::Text(b"/stat")]);
    let file = raw::open(path.text());
    if file < 0 {
        return None;
    }
    let mut piece = [0; PIECE_BYTES];
    let read = raw::read(file, &mut piece);
    raw::close(file);
    // The second field is the name in parentheses and may hold anything; then come state and parent.
    let mut after_name = piece.get(..read)?.rsplit(|byte| *byte == b')').next()?.split(|byte| *byte == b' ');
    number(after_name.nth(2)?)
}

fn digit(byte: u8) -> Option<c_int> {
    byte.is_ascii_digit().then(|| c_int::from(byte.wrapping_sub(b'0')))
}

fn longer(number: c_int, digit: c_int) -> c_int {
    number.wrapping_mul(10).wrapping_add(digit)
}

fn number(name: &[u8]) -> Option<c_int> {
    let start = (!name.is_empty()).then_some(0)?;
    name.iter().try_fold(start, |number, byte| Some(longer(number, digit(*byte)?)))
}

/// A part of a path below `/proc`.
enum Part {
    Text(&'static [u8]),
    Number(c_int),
}

/// A path below `/proc`, made without an allocation.
struct ProcPath {
    /// Longer than any of them, and zeroes where the path ends.
    bytes: [u8; 64],
    length: usize,
}

impl ProcPath {
    fn new(parts: &[Part]) -> Self {
        let mut path = Self { bytes: [0; 64], length: 0 };
        for part in parts {
            match part {
                Part::Text(text) => text.iter().for_each(|byte| path.push(*byte)),
                Part::Number(number) => path.push_number(*number),
            }
        }
        path
    }

    fn push(&mut self, byte: u8) {
        // The last byte stays zero.
        if self.length + 1 < self.bytes.len()
            && let Some(place) = self.bytes.get_mut(self.length)
        {
            *place = byte;
            self.length += 1;
        }
    }

    fn push_number(&mut self, number: c_int) {
        let mut power = 1_000_000_000;
        let mut begun = false;
        while power > 0 {
            let digit = number / power % 10;
            begun |= digit != 0 || power == 1;
            if begun {
                self.push(b'0'.wrapping_add(u8::try_from(digit).unwrap_or(0)));
            }
            power /= 10;
        }
    }

    fn text(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_written_without_an_allocation() {
        for number in [0, 7, 10, 4_194_304, c_int::MAX] {
            let path = ProcPath::new(&[Part::Text(b"/proc/"), Part::Number(number), Part::Text(b"/task")]);
            assert_eq!(path.text().to_str().unwrap(), format!("/proc/{number}/task"));
        }
        let long = ProcPath::new(&[Part::Text(&[b'x'; 100])]);
        assert_eq!(long.text().to_bytes(), [b'x'; 63]);
    }

    #[test]
    fn processes_and_their_parents_are_found() {
        let own = c_int::try_from(std::process::id()).unwrap();
        assert_eq!((raw::own(), parent_of(own)), (own, Some(raw::parent())));
        assert_eq!(parent_of(c_int::MAX), None);
        let mut found = false;
        numbered(PROCESSES, &mut |pid| found |= pid == own);
        assert!(found);
        assert_eq!([&b"12"[..], b"1x", b"", b"self"].map(number), [Some(12), None, None, None]);
    }

    #[test]
    fn many_children_are_all_handed_out() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("children");
        let expected: Vec<c_int> = (1..1000).collect();
        let text: String = expected.iter().map(|pid| format!("{pid} ")).collect();
        // The kernel ends the list with a blank; one that ends otherwise is read as well.
        for text in [text.as_str(), text.trim_end()] {
            std::fs::write(&file, text).unwrap();
            let mut found = Vec::new();
            let path = std::ffi::CString::new(file.to_str().unwrap()).unwrap();
            assert!(children(&path, &mut |pid| found.push(pid)));
            assert_eq!(found, expected);
        }
        assert!(!children(c"/no/such/file", &mut |pid| panic!("{pid}")));
    }
}
