//! The tapes that properties are tried on: all bytes drawn at once, so ten thousand cost little, and shrunk by
//! wiping whole stretches, since a wiped byte is always the plainest choice.

use std::fmt;

use proptest::prelude::Rng as _;
use proptest::strategy::{NewTree, Strategy, ValueTree};
use proptest::test_runner::TestRunner;

/// Length of a tape: enough for six hooks at seven checkpoints and what they say.
const LENGTH: usize = 256;

/// A tape as it is tried.
#[derive(Clone)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

/// Without the zeros at its end, as it can be pasted into a test.
impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.0.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        write!(f, "{:?}", &self.0[..end])
    }
}

/// Random tapes.
#[derive(Debug)]
pub(crate) struct Tapes;

impl Strategy for Tapes {
    type Tree = Wiping;
    type Value = Bytes;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let mut bytes = vec![0; LENGTH];
        // The runner's own generator is slow without optimisation; one draw of it seeds a quick one.
        fastrand::Rng::with_seed(runner.rng().next_u64()).fill(&mut bytes);
        Ok(Wiping { bytes, before: Vec::new(), at: 0, stretch: LENGTH / 2 })
    }
}

/// A tape that is wiped stretch by stretch, as long as the property still fails.
#[derive(Debug)]
pub(crate) struct Wiping {
    bytes: Vec<u8>,
    before: Vec<u8>,
    at: usize,
    stretch: usize,
}

impl ValueTree for Wiping {
    type Value = Bytes;

    fn current(&self) -> Bytes {
        Bytes(self.bytes.clone())
    }

    fn simplify(&mut self) -> bool {
        while self.stretch > 0 {
            let stretch = self.at..(self.at + self.stretch).min(LENGTH);
            self.at = stretch.end;
            if self.at == LENGTH {
                (self.at, self.stretch) = (0, self.stretch / 2);
            }
            if self.bytes[stretch.clone()].iter().any(|byte| *byte != 0) {
                self.before.clone_from(&self.bytes);
                self.bytes[stretch].fill(0);
                return true;
            }
        }
        false
    }

    fn complicate(&mut self) -> bool {
        if self.before.is_empty() {
            return false;
        }
        self.bytes = std::mem::take(&mut self.before);
        true
    }
}
