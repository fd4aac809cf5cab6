//! One tenant's chain, row by row.
//!
//! A row that does not follow is held until the next one tells why: if that one follows the held row, rows are missing
//! before it; else the held row stands too early, and is set aside until its place comes.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::finding::{AlteredPart, AuditFinding};
use super::proven::ProofTally;
use super::row::{Fit, Row};
use super::{Proof, TenantReport};
use crate::audit::{AuditCheckpoint, ChainHead, Hash};
use crate::id::TenantId;

/// Most findings that are named for one tenant; the others are counted.
const MAX_FINDINGS: usize = 1000;

/// Most rows that are set aside because they stand too early. A file that is merely shuffled has few.
const MAX_EARLY: usize = 1024;

/// Most gaps that are kept open for rows that stand too late, for the same reason.
const MAX_GAPS: usize = 1024;

/// Most checkpoints that wait for their row: those of a hundred million rows.
const MAX_WAITING: usize = 100_000;

/// The state of one chain, as far as it was read.
#[derive(Debug, Default)]
pub(super) struct Chain {
    /// The last row that was linked; none until the first one is.
    head: Option<ChainHead>,
    /// Set while the hash of that row does not fit to its body.
    doubt: Option<Doubt>,
    /// The row before this one in the file, whatever its place.
    shown: Option<u64>,
    span: Option<(u64, u64)>,
    held: Option<Held>,
    early: BTreeMap<u64, Held>,
    /// First and last number of what is missing.
    gaps: BTreeMap<u64, u64>,
    waiting: BTreeMap<u64, Vec<Point>>,
    anchor: Option<u64>,
    proven: ProofTally,
    findings: Vec<AuditFinding>,
    counts: Counts,
}

#[derive(Debug, Default)]
struct Counts {
    rows: u64,
    checkpoints: u64,
    waiting: usize,
    more_findings: u64,
}

/// A row whose place has not come.
#[derive(Debug)]
struct Held {
    row: Row,
    after: Option<u64>,
}

/// A row whose hash does not fit, until the next one tells what was altered.
#[derive(Debug)]
struct Doubt {
    seq: u64,
    given: Hash,
    made: Hash,
    /// Whether the row before it is missing, so that its `prev` may be wrong too.
    after_gap: bool,
    inside: Vec<AuditFinding>,
}

/// A checkpoint whose row has not come.
#[derive(Clone, Copy, Debug)]
struct Point {
    hash: Hash,
    signed: bool,
    /// Whether it stands before all rows, where an anchor stands.
    leads: bool,
}

impl Chain {
    /// The next row.
    pub(super) fn row(&mut self, row: Row) {
        self.counts.rows += 1;
        let (seq, after) = (row.seq, self.shown.replace(row.seq));
        self.span = Some(self.span.map_or((seq, seq), |(low, high)| (low.min(seq), high.max(seq))));
        if let Some(ahead) = self.held.take() {
            let missing = ahead.row.seq.checked_add(1) == Some(seq) || self.early.len() >= MAX_EARLY;
            if missing {
                self.jump(ahead.row);
            } else {
                self.set_aside(ahead);
            }
        }
        self.place(Held { row, after });
    }

    fn place(&mut self, held: Held) {
        let seq = held.row.seq;
        self.draw_early(seq);
        let head = self.head_before(seq);
        if Some(seq) == head.seq.checked_add(1) {
            self.link(held.row, false);
        } else if seq > head.seq {
            self.held = Some(held);
        } else {
            self.behind(&held);
        }
    }

    /// The head, or what the chain begins with if its first row is `seq`: the last signed checkpoint before it.
    fn head_before(&self, seq: u64) -> ChainHead {
        self.head.unwrap_or_else(|| {
            let mut before = self.waiting.range(..seq).rev();
            let signed =
                before.find_map(|(seq, points)| points.iter().find(|p| p.signed && p.leads).map(|p| (*seq, p.hash)));
            signed.map_or(ChainHead::GENESIS, |(seq, hash)| ChainHead { seq, hash })
        })
    }

    /// Fixes what the chain begins with.
    fn begin(&mut self, seq: u64) -> ChainHead {
        let head = self.head_before(seq);
        if self.head.is_none() && head.seq > 0 {
            self.anchor = Some(head.seq);
            self.proven.up_to = Some(head.seq);
        }
        self.head = Some(head);
        head
    }

    /// Takes the row that follows the head by its number.
    fn link(&mut self, row: Row, after_gap: bool) {
        let seq = row.seq;
        if let Some(copy) = self.early.remove(&seq) {
            self.find(AuditFinding::Again { seq, after: copy.after });
            self.proven.apart(seq);
        }
        self.begin(seq);
        self.settle(Some(&row.prev));
        let fit = row.fit(&self.begin(seq).hash);
        match fit {
            Fit::Whole => self.proven.extend(seq),
            Fit::Prev => {
                self.find(AuditFinding::Altered { seq, member: AlteredPart::Prev });
                self.proven.extend(seq);
            }
            Fit::Unlinked => {
                self.find(AuditFinding::Unlinked { seq });
                self.proven.cut();
                self.proven.extend(seq);
            }
            Fit::Broken => {
                self.find(AuditFinding::Altered { seq, member: AlteredPart::Several });
                self.proven.extend_and_cut(seq);
            }
            Fit::Doubtful => {
                let inside = row.inside.clone();
                self.doubt = Some(Doubt { seq, given: row.hash, made: row.made, after_gap, inside });
            }
        }
        // What a body says counts once it is known to be what was hashed.
        if matches!(fit, Fit::Whole | Fit::Prev | Fit::Unlinked) {
            row.inside.into_iter().for_each(|finding| self.find(finding));
        }
        self.head = Some(ChainHead { seq, hash: row.hash });
        for point in self.waiting.remove(&seq).unwrap_or_default() {
            self.counts.waiting -= 1;
            self.compare(point);
        }
    }

    /// Settles what was altered, now that the thing after the doubtful row, a row or a checkpoint, names its hash as
    /// `named`.
    fn settle(&mut self, named: Option<&Hash>) {
        let Some(Doubt { seq, given, made, after_gap, inside }) = self.doubt.take() else { return };
        if named == Some(&made) {
            self.find(AuditFinding::Altered { seq, member: AlteredPart::Hash });
            inside.into_iter().for_each(|finding| self.find(finding));
            self.head = Some(ChainHead { seq, hash: made });
            self.proven.extend(seq);
            return;
        }
        let member = match (named == Some(&given), after_gap) {
            (true, false) => AlteredPart::Body,
            (true, true) => AlteredPart::BodyOrPrev,
            (false, false) => AlteredPart::BodyOrHash,
            (false, true) => AlteredPart::Several,
        };
        self.find(AuditFinding::Altered { seq, member });
        self.proven.extend_and_cut(seq);
    }

    /// Goes on with `row` though rows before it are missing.
    fn jump(&mut self, row: Row) {
        self.draw_early(row.seq);
        let head = self.begin(row.seq);
        let gap = head.seq.saturating_add(1)..=row.seq.saturating_sub(1);
        if gap.is_empty() {
            return self.link(row, false);
        }
        self.settle(None);
        self.open_gap(*gap.start(), *gap.end());
        self.proven.cut();
        self.head = Some(ChainHead { seq: *gap.end(), hash: row.prev });
        self.link(row, true);
    }

    /// Links the rows that were set aside and whose place has come, up to but without row `before`.
    fn draw_early(&mut self, before: u64) {
        while let Some(next) = self.head.and_then(|head| head.seq.checked_add(1)).filter(|next| *next < before) {
            let Some(Held { row, after }) = self.early.remove(&next) else { return };
            self.find(AuditFinding::OutOfOrder { seq: next, after });
            self.link(row, false);
        }
    }

    fn set_aside(&mut self, mut held: Held) {
        let seq = held.row.seq;
        held.row.body = None;
        if let Some(copy) = self.early.insert(seq, held) {
            self.find(AuditFinding::Again { seq, after: copy.after });
            self.proven.apart(seq);
        }
    }

    /// Takes a row whose place is past.
    fn behind(&mut self, held: &Held) {
        let (seq, after) = (held.row.seq, held.after);
        self.proven.apart(seq);
        if self.close_gap(seq) || self.is_cut(seq) {
            self.find(AuditFinding::OutOfOrder { seq, after });
        } else {
            self.find(AuditFinding::Again { seq, after });
        }
        if held.row.is_whole() {
            held.row.inside.iter().for_each(|finding| self.find(finding.clone()));
        } else {
            self.find(AuditFinding::Altered { seq, member: AlteredPart::BodyOrHash });
        }
    }

    fn open_gap(&mut self, from: u64, to: u64) {
        if from > to {
            return;
        }
        if self.gaps.len() < MAX_GAPS {
            self.gaps.insert(from, to);
        } else {
            self.find(AuditFinding::Dropped { from, to });
        }
    }

    /// Whether row `seq` was missing; it no longer is.
    fn close_gap(&mut self, seq: u64) -> bool {
        let around = self.gaps.range(..=seq).next_back().map(|(from, to)| (*from, *to));
        let Some((from, to)) = around.filter(|(_, to)| *to >= seq) else { return false };
        self.gaps.remove(&from);
        self.open_gap(from, seq - 1);
        self.open_gap(seq + 1, to);
        true
    }

    /// The next checkpoint.
    pub(super) fn checkpoint(&mut self, point: &AuditCheckpoint, proof: Proof) {
        self.counts.checkpoints += 1;
        let (seq, kid) = (point.seq, point.kid.clone());
        let (hash, leads) = (point.hash, self.counts.rows == 0);
        let point = match proof {
            Proof::Good => Point { hash, signed: true, leads },
            Proof::UnknownKey => {
                self.find(AuditFinding::UnknownKey { seq, kid });
                Point { hash, signed: false, leads }
            }
            Proof::Bad => return self.find(AuditFinding::BadSignature { seq, kid }),
        };
        match self.head {
            Some(head) if head.seq == seq => self.compare(point),
            Some(head) if seq < head.seq => self.late(seq),
            Some(_) | None if self.counts.waiting < MAX_WAITING => {
                self.counts.waiting += 1;
                self.waiting.entry(seq).or_default().push(point);
            }
            Some(_) | None => self.find(AuditFinding::Misplaced { seq, after: self.shown }),
        }
    }

    /// A checkpoint whose row is past, which matters if that row was there.
    fn late(&mut self, seq: u64) {
        let missing = self.gaps.range(..=seq).next_back().is_some_and(|(_, to)| *to >= seq);
        if !missing && !self.is_cut(seq) {
            self.find(AuditFinding::Misplaced { seq, after: self.shown });
        }
    }

    /// Whether row `seq` is one of those that the anchor stands in for.
    fn is_cut(&self, seq: u64) -> bool {
        self.anchor.is_some_and(|anchor| seq <= anchor)
    }

    /// Holds a checkpoint against the head, whose row it names.
    fn compare(&mut self, point: Point) {
        self.settle(Some(&point.hash));
        let Some(head) = self.head else { return };
        if point.hash != head.hash {
            self.find(AuditFinding::Mismatch { seq: head.seq });
            if point.signed {
                self.proven.cut();
            }
        } else if point.signed {
            self.proven.prove();
        }
    }

    fn find(&mut self, finding: AuditFinding) {
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(finding);
        } else {
            self.counts.more_findings += 1;
        }
    }

    /// The report on the chain, which is that of `tenant_id`.
    pub(super) fn finish(mut self, tenant_id: TenantId) -> TenantReport {
        if let Some(held) = self.held.take() {
            self.jump(held.row);
        }
        while let Some((seq, Held { row, after })) = self.early.pop_first() {
            if self.head_before(seq).seq < seq {
                self.find(AuditFinding::OutOfOrder { seq, after });
                self.jump(row);
            } else {
                self.behind(&Held { row, after });
            }
        }
        self.settle(None);
        self.cut_off();
        for (from, to) in std::mem::take(&mut self.gaps) {
            // Without an anchor a chain begins with row 1.
            let none_before = from == 1;
            self.find(if none_before {
                AuditFinding::NoAnchor { first: to + 1 }
            } else {
                AuditFinding::Dropped { from, to }
            });
        }
        self.proven.cut();
        self.findings.sort_by_key(AuditFinding::seq);
        self.proven.unproven.sort_by_key(|run| *run.start());
        TenantReport {
            tenant_id,
            rows: self.counts.rows,
            checkpoints: self.counts.checkpoints,
            span: self.span.map(|(low, high)| RangeInclusive::new(low, high)),
            anchor: self.anchor,
            proven_to: self.proven.up_to,
            proven_rows: self.proven.rows,
            unproven_rows: self.proven.unproven_rows,
            unproven: self.proven.unproven,
            findings: self.findings,
            more_findings: self.counts.more_findings,
        }
    }

    /// Rows that somebody signed for and that are not there.
    fn cut_off(&mut self) {
        let last_signed = self.waiting.iter().rev().find(|(_, points)| points.iter().any(|p| p.signed));
        let Some(signed) = last_signed.map(|(seq, _)| *seq) else { return };
        match self.head {
            Some(head) if signed > head.seq => self.find(AuditFinding::CutOff { last: head.seq, signed }),
            Some(_) => {}
            // Retention may cut all rows; the checkpoint stays.
            None => {
                self.anchor = Some(signed);
                self.proven.up_to = Some(signed);
            }
        }
    }
}
