//! What an adopter tells the host, through a pipe.

use std::ffi::c_int;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use nix::errno::Errno;

/// What an adopter tells once its child runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    /// How the child ended.
    pub(crate) status: ExitStatus,
    /// Whether anything that it started is still there.
    pub(crate) is_left: bool,
}

impl Told {
    /// The size of each in bytes; a pipe hands them over whole.
    pub(crate) const BYTES: usize = size_of::<Words>();

    pub(crate) fn read(bytes: [u8; Self::BYTES]) -> Option<Self> {
        match words(bytes) {
            [ENDED, status, is_left] => Some(Self { status: ExitStatus::from_raw(status), is_left: is_left != 0 }),
            _ => None,
        }
    }
}

/// What an adopter writes at once: what it is about, then two numbers.
pub(super) type Words = [c_int; 3];
/// The child runs: its process id.
pub(super) const RUNS: c_int = 1;
/// There is no child: how far it got, and why.
pub(super) const FAILED: c_int = 2;
/// The child has ended: its status, and whether anything is left.
pub(super) const ENDED: c_int = 3;

/// Written by the adopter, which neither allocates nor panics.
pub(super) fn bytes(words: Words) -> [u8; Told::BYTES] {
    let mut bytes = [0; Told::BYTES];
    for (place, byte) in bytes.iter_mut().zip(words.iter().flat_map(|word| word.to_ne_bytes())) {
        *place = byte;
    }
    bytes
}

pub(super) fn words(bytes: [u8; Told::BYTES]) -> Words {
    let (numbers, _) = bytes.as_chunks::<{ size_of::<c_int>() }>();
    let mut words = Words::default();
    words.iter_mut().zip(numbers).for_each(|(word, number)| *word = c_int::from_ne_bytes(*number));
    words
}

/// Why there is no process, and how far it got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StartFailure {
    pub(crate) step: Step,
    pub(crate) errno: Errno,
}

/// What stands between a program and its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// There is no child yet.
    Begin,
    /// The adopter takes its group and its bond to the host.
    Adopt,
    /// The child takes its group, its bond to the adopter and its signals.
    Prepare,
    /// It goes to its folder.
    Folder,
    /// It runs its program.
    Run,
}

impl Step {
    pub(super) fn numbered(number: c_int) -> Self {
        let all = [Self::Begin, Self::Adopt, Self::Prepare, Self::Folder, Self::Run];
        all.into_iter().find(|step| *step as c_int == number).unwrap_or(Self::Begin)
    }

    pub(super) fn failed(self) -> impl Fn(Errno) -> StartFailure {
        move |errno| StartFailure { step: self, errno }
    }
}
