//! The tail of the evidence: what calls left that waited for nothing but its commit, in one row each. Of its entries in
//! the audit chain the places are known, the hashes follow when it is folded: put into its tables, in the order of the
//! commits, before anything else is written or any evidence is read.
//!
//! Only in SQLite, where a transaction that touches one page is a fraction of one that touches twenty. So a row has a
//! page to itself, and is written over once it is folded.

mod code;

use pintle_domain::id::TenantId;
use pintle_domain::store::StoreError;

use super::super::audit::{Sealer, head};
use super::{Pending, Rows, put};
use crate::db::{Cell, Columns, Db, Dialect, Failure, Statement};
use crate::evidence::Note;

/// Most rows of a tail; whoever comes then folds them, which takes a millisecond or two.
pub(crate) const MAX_TAIL_ROWS: i64 = 64;

/// Bytes of evidence for which a row fills a page.
const PAGE_BYTES: usize = 3900;

/// Most bytes of a row: what is longer gains nothing here.
const MAX_ROW_BYTES: usize = 16 << 10;

/// Nothing is written where somebody else has folded or appended meanwhile: the number would be theirs.
const APPEND: &str = "INSERT INTO evidence_tail (slot, number, tenant_id, seq, entries, evidence) \
                      SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE (SELECT number FROM evidence_folded) = ?7 \
                      ON CONFLICT (slot) DO UPDATE SET number = excluded.number, tenant_id = excluded.tenant_id, \
                      seq = excluded.seq, entries = excluded.entries, evidence = excluded.evidence \
                      WHERE evidence_tail.number < excluded.number";

/// Those that are not folded.
const WAITING: &str = "FROM evidence_tail WHERE number > (SELECT number FROM evidence_folded)";

/// What a call leaves, as a row of the tail that has no place yet.
pub(crate) struct TailRow {
    tenant: TenantId,
    entries: u64,
    evidence: Vec<u8>,
}

/// The end of the tail, as whoever appended last knows it.
#[derive(Clone, Debug)]
pub(crate) struct TailEnd {
    /// Up to which number all is folded.
    pub(crate) folded: i64,
    /// How many rows are not.
    pub(crate) rows: i64,
    /// A chain, and the place in it of its next entry.
    pub(crate) next: Option<(TenantId, u64)>,
}

impl Rows {
    /// These rows as one of the tail, without the statements that `is_new` does not name; `None` where they are no
    /// evidence of one chain, or too long.
    pub(crate) fn as_tail(&self, is_new: &mut dyn FnMut(&Statement<'_>) -> bool) -> Option<TailRow> {
        let tenant = self.notes.first()?.note.draft.tenant_id();
        let is_one_chain = self.notes.iter().all(|pending| pending.note.draft.tenant_id() == tenant);
        let has_kinds = self.statements.iter().all(|statement| code::kind_of(statement).is_some());
        if self.lines.is_some() || self.tried || !is_one_chain || !has_kinds {
            return None;
        }
        let notes: Vec<&Note> = self.notes.iter().map(|pending| &pending.note).collect();
        if self.bytes() + notes.iter().map(|note| note.draft.beginning().len()).sum::<usize>() > MAX_ROW_BYTES {
            return None;
        }
        let statements: Vec<_> = self.statements.iter().filter(|statement| is_new(statement)).collect();
        let mut evidence = code::written(&statements, &notes)?;
        evidence.resize(evidence.len().max(PAGE_BYTES), 0);
        Some(TailRow { tenant: tenant.clone(), entries: notes.len() as u64, evidence })
    }
}

/// Commits a row behind `end`, which then knows it: one statement, which is a transaction by itself. Says whether it was
/// written; if not, somebody else moved the end.
pub(crate) fn append(db: &dyn Db, end: &mut TailEnd, row: TailRow) -> Result<bool, Failure> {
    let seq = match &end.next {
        Some((tenant, seq)) if *tenant == row.tenant => *seq,
        // Rows of another chain do not move the end of this one.
        Some(_) if end.rows > 0 => return Ok(false),
        Some(_) | None => head(db, &row.tenant)?.seq + 1,
    };
    let number = end.folded.saturating_add(end.rows).saturating_add(1);
    let place = |number: u64| Cell::from(i64::try_from(number).unwrap_or(i64::MAX));
    let cells = [
        number.rem_euclid(MAX_TAIL_ROWS).into(),
        number.into(),
        row.tenant.as_str().into(),
        place(seq),
        place(row.entries),
        Cell::Bytes(row.evidence.as_slice().into()),
        end.folded.into(),
    ];
    if db.run(APPEND, &cells)? != 1 {
        return Ok(false);
    }
    end.rows += 1;
    end.next = Some((row.tenant, seq + row.entries));
    Ok(true)
}

/// Whether there is a tail, as far as its first row tells.
pub(crate) fn is_there(db: &dyn Db) -> Result<bool, Failure> {
    let sql = "SELECT t.number FROM evidence_folded f CROSS JOIN evidence_tail t \
               WHERE t.slot = (f.number + 1) % 64 AND t.number > f.number";
    match db.dialect() {
        Dialect::Sqlite => Ok(db.one(sql, &[], |row| row.int("number"))?.is_some()),
        Dialect::Postgres => Ok(false),
    }
}

/// How many entries of each chain are in the tail: kept, and not hashed yet.
pub(crate) fn unhashed(db: &dyn Db) -> Result<Vec<(TenantId, u64)>, Failure> {
    if db.dialect() == Dialect::Postgres {
        return Ok(Vec::new());
    }
    let sql = format!("SELECT tenant_id, sum(entries) AS entries {WAITING} GROUP BY tenant_id ORDER BY tenant_id");
    db.all(&sql, &[], |row| Ok((TenantId::from(&*row.text("tenant_id")?), row.count("entries")?)))
}

/// Puts the tail where it belongs, if there is one, and says up to which number all is folded then. Whoever does it has
/// the file alone; the chains that grew are `sealer`'s to know.
///
/// # Errors
/// A row is none that this program wrote, or the database failed: nothing of the transaction may count.
pub(crate) fn fold(db: &dyn Db, sealer: &mut Sealer) -> Result<i64, Failure> {
    let sql = format!("SELECT number, tenant_id, seq, evidence {WAITING} ORDER BY number");
    let found = db.all(&sql, &[], |row| Ok((row.int("number")?, rows_of(row)?)))?;
    if let Some((last, _)) = found.last() {
        let rows: Vec<&Rows> = found.iter().map(|(_, rows)| rows).collect();
        // Whoever committed them may be gone, and what they knew with them.
        put(db, &rows, sealer, &mut |_| true)?;
        db.run("UPDATE evidence_folded SET number = ?1", &[(*last).into()])?;
        return Ok(*last);
    }
    let folded = db.one("SELECT number FROM evidence_folded", &[], |row| row.int("number"))?;
    folded.ok_or_else(|| Failure::Foreign { what: "table `evidence_folded`".into(), why: "its row is gone".into() })
}

/// Up to which number all is folded, if nothing of it is left and nothing waits.
pub(crate) fn settled(db: &dyn Db) -> Result<Option<i64>, Failure> {
    let sql = "SELECT f.number FROM evidence_folded f WHERE NOT EXISTS \
               (SELECT 1 FROM evidence_tail t WHERE t.number > f.number OR t.evidence <> zeroblob(length(t.evidence)))";
    db.one(sql, &[], |row| row.int("number"))
}

/// Leaves nothing of what was folded in the tail. The rows keep their pages.
pub(crate) fn wipe(db: &dyn Db) -> Result<(), Failure> {
    let sql = "UPDATE evidence_tail SET evidence = zeroblob(length(evidence)) \
               WHERE number <= (SELECT number FROM evidence_folded)";
    db.run(sql, &[]).map(drop)
}

fn rows_of(row: &dyn Columns) -> Result<Rows, Failure> {
    let (tenant, first) = (TenantId::from(&*row.text("tenant_id")?), row.count("seq")?);
    let evidence = row.maybe_bytes("evidence")?.unwrap_or_default();
    let Some((statements, notes)) = code::read(&evidence, &tenant) else {
        let slot = row.int("number")?.rem_euclid(MAX_TAIL_ROWS);
        return Err(Failure::Said(StoreError::Corrupt(format!(
            "row {slot} of `evidence_tail` is not what Pintle committed, and no call can be recorded behind it: keep a \
             copy for whoever looks into it, then delete the row, and `pintle audit verify` names what is missing"
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
