//! The tail of the evidence: what calls left that waited for nothing but its commit, in one row each. Of its entries in
//! the audit chain the places are known, the hashes follow when it is folded: put into its tables, in the order of the
//! commits, before anything else is written or any evidence is read.
//!
//! Only in SQLite, where a transaction that touches one page is a fraction of one that touches twenty.

mod code;

use domain::id::TenantId;
use domain::store::StoreError;

use super::super::audit::Sealer;
use super::{Pending, Rows, put};
use crate::db::{Cell, Columns, Db, Dialect, Failure, Statement};
use crate::evidence::Note;
use crate::refusal::swallowed;

/// Behind the last row of the tail, else behind that of the chain, else behind the signature of what was cut. Behind
/// the sign no statement is prepared anew for a parameter that is bound.
const APPEND: &str = "INSERT INTO evidence_tail (tenant_id, seq, entries, evidence) VALUES (?1, coalesce( \
                      (SELECT seq + entries FROM evidence_tail WHERE tenant_id = +?1 ORDER BY number DESC LIMIT 1), \
                      (SELECT seq + 1 FROM audit_log WHERE tenant_id = +?1 ORDER BY seq DESC LIMIT 1), \
                      (SELECT seq + 1 FROM audit_checkpoints WHERE tenant_id = +?1 ORDER BY seq DESC LIMIT 1), 1), \
                      ?2, ?3)";

/// Most bytes of a row: what is longer gains nothing here.
const MAX_ROW_BYTES: usize = 64 << 10;

/// A row of the tail before it is written.
pub(crate) struct TailRow(Statement<'static>);

impl Rows {
    /// These rows as one of the tail, without the statements that `is_new` does not name; `None` where they are no
    /// evidence of one chain, or too long.
    pub(crate) fn as_tail(&self, is_new: &mut dyn FnMut(&Statement<'_>) -> bool) -> Option<TailRow> {
        if self.lines.is_some() || self.tried {
            return None;
        }
        let tenant = self.notes.first()?.note.draft.tenant_id();
        if self.notes.iter().any(|pending| pending.note.draft.tenant_id() != tenant) {
            return None;
        }
        let notes: Vec<&Note> = self.notes.iter().map(|pending| &pending.note).collect();
        let bytes = self.bytes() + notes.iter().map(|note| note.draft.beginning().len()).sum::<usize>();
        if bytes > MAX_ROW_BYTES || self.statements.iter().any(|statement| code::kind_of(statement).is_none()) {
            return None;
        }
        let statements: Vec<_> = self.statements.iter().filter(|statement| is_new(statement)).collect();
        let evidence = code::written(&statements, &notes)?;
        let entries = i64::try_from(notes.len()).ok()?;
        let cells = vec![tenant.as_str().to_owned().into(), entries.into(), Cell::Bytes(evidence.into())];
        Some(TailRow(Statement::new(APPEND, cells)))
    }
}

/// Commits a row of the tail: one statement, which is a transaction by itself.
pub(crate) fn append(db: &dyn Db, row: &TailRow) -> Result<(), Failure> {
    match db.run(row.0.sql, &row.0.cells)? {
        1 => Ok(()),
        _ => Err(swallowed("the evidence of a call", "evidence_tail")),
    }
}

/// Whether there is a tail.
pub(crate) fn is_there(db: &dyn Db) -> Result<bool, Failure> {
    match db.dialect() {
        Dialect::Sqlite => {
            Ok(db.one("SELECT number FROM evidence_tail LIMIT 1", &[], |row| row.int("number"))?.is_some())
        }
        Dialect::Postgres => Ok(false),
    }
}

/// How many entries of each chain are in the tail: kept, and not hashed yet.
pub(crate) fn unhashed(db: &dyn Db) -> Result<Vec<(TenantId, u64)>, Failure> {
    if !is_there(db)? {
        return Ok(Vec::new());
    }
    let sql = "SELECT tenant_id, sum(entries) AS entries FROM evidence_tail GROUP BY tenant_id ORDER BY tenant_id";
    db.all(sql, &[], |row| Ok((TenantId::from(&*row.text("tenant_id")?), row.count("entries")?)))
}

/// Puts the tail where it belongs, if there is one. Whoever does it has the file alone; the chains that grew are
/// `sealer`'s to know.
///
/// # Errors
/// A row is none that this program wrote, or the database failed: nothing of the transaction may count.
pub(crate) fn fold(db: &dyn Db, sealer: &mut Sealer) -> Result<(), Failure> {
    if !is_there(db)? {
        return Ok(());
    }
    let sql = "SELECT number, tenant_id, seq, evidence FROM evidence_tail ORDER BY number";
    let found = db.all(sql, &[], |row| Ok((row.int("number")?, rows_of(row)?)))?;
    let Some((last, _)) = found.last() else { return Ok(()) };
    let rows: Vec<&Rows> = found.iter().map(|(_, rows)| rows).collect();
    // Whoever committed them may be gone, and what they knew with them.
    put(db, &rows, sealer, &mut |_| true)?;
    db.run("DELETE FROM evidence_tail WHERE number <= ?1", &[(*last).into()]).map(drop)
}

fn rows_of(row: &dyn Columns) -> Result<Rows, Failure> {
    let (tenant, first) = (TenantId::from(&*row.text("tenant_id")?), row.count("seq")?);
    let evidence = row.maybe_bytes("evidence")?.unwrap_or_default();
    let Some((statements, notes)) = code::read(&evidence, &tenant) else {
        let what = format!("row {} of `evidence_tail`", row.int("number")?);
        let why = "it is not what Pintle committed".to_owned();
        return Err(Failure::Said(StoreError::Corrupt(format!(
            "{what}: {why}; no call can be recorded behind it: keep a copy for whoever looks into it, then delete the \
             row, and `pintle audit verify` names the entries that are missing"
        ))));
    };
    // What was committed has its place, also where its execution is there already.
    let place = |(i, mut note): (u64, Note)| {
        note.seq = Some(first.saturating_add(i));
        Pending { note, statement: None }
    };
    let notes = (0..).zip(notes).map(place).collect();
    Ok(Rows { lines: None, statements, notes, tried: false })
}
