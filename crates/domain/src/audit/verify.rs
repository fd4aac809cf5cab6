//! Checks chains as they are read, one row after the other: what is wrong, where, and how far it is proven.
//!
//! Rows of several tenants may be mixed. Those of one tenant stand in their order, each checkpoint after its row or
//! anywhere before it. Memory does not grow with the number of rows.

mod chain;
mod finding;
mod proven;
mod row;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use super::line::{AuditLine, AuditLineError};
use super::{AuditCheckpoint, AuditEntry};
use crate::id::TenantId;
use chain::Chain;
use row::ExaminedRow;

pub use finding::{AlteredPart, AuditFinding};

/// Most chains that are followed at once. Each takes little, but a hostile file could name one a line.
const MAX_TENANTS: usize = 100_000;

/// Most lines that cannot be read and are named; the others are counted.
const MAX_UNREADABLE: usize = 1000;

/// The worth of a signature, once it was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// It is that of the key.
    Good,
    /// It is not.
    Bad,
    /// The key is not among those at hand.
    UnknownKey,
}

/// Takes rows and checkpoints and concludes.
///
/// `check` is asked for the key id, the message and the signature of each checkpoint.
pub struct Verifier<'a> {
    check: &'a dyn Fn(&str, &[u8], &str) -> Proof,
    chains: BTreeMap<TenantId, Chain>,
    unreadable: Vec<AuditLineError>,
    more_unreadable: u64,
    passed_over: u64,
}

impl<'a> Verifier<'a> {
    /// A verifier that has seen nothing.
    pub fn new(check: &'a dyn Fn(&str, &[u8], &str) -> Proof) -> Self {
        Self { check, chains: BTreeMap::new(), unreadable: Vec::new(), more_unreadable: 0, passed_over: 0 }
    }

    /// The next line of an export.
    pub fn line(&mut self, line: Result<AuditLine, AuditLineError>) {
        match line {
            Ok(AuditLine::Entry(entry)) => self.entry(entry),
            Ok(AuditLine::Checkpoint(point)) => self.checkpoint(&point),
            Err(error) if self.unreadable.len() < MAX_UNREADABLE => self.unreadable.push(error),
            Err(_) => self.more_unreadable += 1,
        }
    }

    /// The next row.
    pub fn entry(&mut self, entry: AuditEntry) {
        let ExaminedRow { tenant, row } = row::examine(entry);
        match self.chain(tenant) {
            Some(chain) => chain.row(row),
            None => self.passed_over += 1,
        }
    }

    /// The next checkpoint.
    pub fn checkpoint(&mut self, point: &AuditCheckpoint) {
        let proof = (self.check)(&point.kid, &point.message(), &point.signature);
        match self.chain(point.tenant_id.clone()) {
            Some(chain) => chain.checkpoint(point, proof),
            None => self.passed_over += 1,
        }
    }

    fn chain(&mut self, tenant: TenantId) -> Option<&mut Chain> {
        let room = self.chains.len() < MAX_TENANTS || self.chains.contains_key(&tenant);
        room.then(|| self.chains.entry(tenant).or_default())
    }

    /// The report on all that was read. Nothing follows.
    pub fn finish(self) -> VerifyReport {
        let Self { chains, unreadable, more_unreadable, passed_over, check: _ } = self;
        let tenants = chains.into_iter().map(|(tenant, chain)| chain.finish(tenant)).collect();
        VerifyReport { tenants, unreadable, more_unreadable, passed_over }
    }
}

impl fmt::Debug for Verifier<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").field("chains", &self.chains).finish_non_exhaustive()
    }
}

/// The report of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifyReport {
    /// The chains, by tenant.
    pub tenants: Vec<TenantReport>,
    /// Lines that are neither an entry nor a checkpoint.
    pub unreadable: Vec<AuditLineError>,
    /// The number of further lines that cannot be read.
    pub more_unreadable: u64,
    /// Rows and checkpoints that were not checked, since they belong to more tenants than are followed.
    pub passed_over: u64,
}

/// The report of the check of one chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantReport {
    /// The tenant that owns the chain.
    pub tenant_id: TenantId,
    /// The number of rows that were read.
    pub rows: u64,
    /// The number of checkpoints that were read.
    pub checkpoints: u64,
    /// The lowest and the highest row that was read.
    pub span: Option<RangeInclusive<u64>>,
    /// The row whose signed checkpoint stands in for the rows that retention cut.
    pub anchor: Option<u64>,
    /// The last row that a signature proves.
    pub proven_to: Option<u64>,
    /// The number of rows that signatures prove.
    pub proven_rows: u64,
    /// The number of rows that no signature proves.
    pub unproven_rows: u64,
    /// Which these are; the rows after the last checkpoint are always among them.
    pub unproven: Vec<RangeInclusive<u64>>,
    /// The findings, by row.
    pub findings: Vec<AuditFinding>,
    /// The number of further findings.
    pub more_findings: u64,
}

impl VerifyReport {
    /// Whether nothing is wrong. Rows can still be unproven: see [`TenantReport::unproven`].
    pub fn is_intact(&self) -> bool {
        self.unreadable.is_empty() && self.passed_over == 0 && self.tenants.iter().all(|t| t.findings.is_empty())
    }
}

impl fmt::Display for VerifyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for error in &self.unreadable {
            writeln!(f, "{error}")?;
        }
        if self.more_unreadable > 0 {
            writeln!(f, "{} more lines cannot be read", self.more_unreadable)?;
        }
        if self.passed_over > 0 {
            writeln!(f, "{} lines of more than {MAX_TENANTS} tenants were not checked", self.passed_over)?;
        }
        self.tenants.iter().try_for_each(|tenant| tenant.fmt(f))
    }
}

impl fmt::Display for TenantReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wrong = self.findings.len() as u64 + self.more_findings;
        write!(f, "tenant {}: {}", self.tenant_id.as_str().escape_debug(), counted(self.rows, "row"))?;
        if let Some(span) = &self.span {
            write!(f, " ({})", range(span))?;
        }
        let verdict = if wrong == 0 { "intact".into() } else { counted(wrong, "finding") };
        writeln!(f, ", {}, {verdict}", counted(self.checkpoints, "checkpoint"))?;
        if let Some(anchor) = self.anchor {
            writeln!(f, "  rows up to {anchor} were cut; its signed checkpoint stands in for them")?;
        }
        for finding in &self.findings {
            writeln!(f, "  {finding}")?;
        }
        if self.more_findings > 0 {
            writeln!(f, "  and {} more", self.more_findings)?;
        }
        match self.proven_to {
            Some(seq) => writeln!(f, "  proven up to row {seq}: {}", counted(self.proven_rows, "row"))?,
            None => writeln!(f, "  nothing is proven")?,
        }
        if self.unproven_rows > 0 {
            let ranges: Vec<String> = self.unproven.iter().map(range).collect();
            writeln!(f, "  not proven: {} ({})", counted(self.unproven_rows, "row"), ranges.join(", "))?;
        }
        Ok(())
    }
}

fn counted(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn range(rows: &RangeInclusive<u64>) -> String {
    if rows.start() == rows.end() { rows.start().to_string() } else { format!("{} to {}", rows.start(), rows.end()) }
}

#[cfg(test)]
mod tests;
