//! Which rows a signature vouches for.
//!
//! A signature proves its row and, over the hashes, all rows before it back to the last place where the chain breaks.
//! Rows before such a place are proven only by signatures before it.

use std::ops::RangeInclusive;

/// Most runs of unproven rows that are named; the rows of others are counted.
const MAX_RUNS: usize = 1000;

/// The account of what is proven and what is not.
#[derive(Debug, Default)]
pub(super) struct ProofTally {
    /// First and last of the rows that follow one another since the last signature or break.
    open: Option<(u64, u64)>,
    pub(super) up_to: Option<u64>,
    pub(super) rows: u64,
    pub(super) unproven: Vec<RangeInclusive<u64>>,
    pub(super) unproven_rows: u64,
}

impl ProofTally {
    /// Row `seq` follows the one before it.
    pub(super) fn extend(&mut self, seq: u64) {
        let from = self.open.map_or(seq, |(from, _)| from);
        self.open = Some((from, seq));
    }

    /// The chain breaks here: no later signature vouches for the rows so far.
    pub(super) fn cut(&mut self) {
        if let Some((from, to)) = self.open.take() {
            self.set_aside(from, to);
        }
    }

    /// A good signature vouches for the rows so far.
    pub(super) fn prove(&mut self) {
        if let Some((from, to)) = self.open.take() {
            self.rows += to - from + 1;
            self.up_to = Some(to);
        }
    }

    /// The row follows the one before it, and no signature can vouch for what it says.
    pub(super) fn extend_and_cut(&mut self, seq: u64) {
        self.extend(seq);
        self.cut();
    }

    /// Row `seq` stands somewhere else than in its place.
    pub(super) fn apart(&mut self, seq: u64) {
        self.set_aside(seq, seq);
    }

    fn set_aside(&mut self, from: u64, to: u64) {
        self.unproven_rows += to - from + 1;
        let room = self.unproven.len() < MAX_RUNS;
        match self.unproven.last_mut() {
            Some(last) if last.end().checked_add(1) == Some(from) => *last = *last.start()..=to,
            Some(_) | None if room => self.unproven.push(from..=to),
            Some(_) | None => {}
        }
    }
}
