//! The audit chains: one for each tenant, appended to within the transactions of what they are about.
//!
//! Whoever appends reads the head of the chain while nobody else can append to it: in SQLite nobody else writes, in
//! PostgreSQL a lock of the chain is held to the end of the transaction. It is taken last, after all locks of rows.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use pintle_domain::audit::{AuditCheckpoint, AuditEntry, ChainHead, ChangeKey};
use pintle_domain::id::TenantId;
use pintle_domain::store::StoreError;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::strangers;
use crate::db::{Cell, Columns, Db, Dialect, Exclusive, Failure, Statement, limit_of, moment};
use crate::evidence::Note;
use crate::refusal::swallowed;

mod known;
mod seal;
mod sealers;

pub(crate) use known::{chain_seen, doubt, store_id};
pub(crate) use seal::{Sealer, Signer, seal_all, unsealed};
pub(crate) use sealers::whose_seals;

/// A chain that grew.
#[derive(Debug)]
pub(crate) struct ChainGrowth {
    pub(crate) tenant: TenantId,
    /// Its end before.
    pub(crate) from: ChainHead,
    /// Its end now.
    pub(crate) to: ChainHead,
}

/// Appends entries, those of one tenant in their order.
pub(crate) fn append_all(db: &dyn Db, notes: &[&Note]) -> Result<Vec<ChainGrowth>, Failure> {
    append_sealed(db, notes, None)
}

/// The same, each sealed with `key` if there is one.
pub(crate) fn append_sealed(
    db: &dyn Db,
    notes: &[&Note],
    key: Option<&ChangeKey>,
) -> Result<Vec<ChainGrowth>, Failure> {
    let mut by_tenant: BTreeMap<&TenantId, Vec<&Note>> = BTreeMap::new();
    for note in notes {
        by_tenant.entry(note.draft.tenant_id()).or_default().push(note);
    }
    let (mut grown, mut statements) = (Vec::with_capacity(by_tenant.len()), Vec::with_capacity(notes.len()));
    // By the order of their names, so that two who append to the same chains do not wait for one another for ever.
    for (tenant, notes) in by_tenant {
        let from = lock_head(db, tenant)?;
        let mut to = from;
        for note in notes {
            // What was committed between them is gone: whoever verifies the chain is told which rows are missing.
            to.seq = to.seq.max(note.seq.map_or(0, |given| given.saturating_sub(1)));
            let (entry, next) = note
                .draft
                .append_sealed(&to, key)
                .map_err(|why| Failure::Said(StoreError::Unavailable(why.to_string())))?;
            statements.push(insert(tenant, entry, &note.at));
            to = next;
        }
        grown.push(ChainGrowth { tenant: tenant.clone(), from, to });
    }
    let look = strangers::look(db.dialect());
    let mut written = db.run_each(&statements.iter().chain(&look).collect::<Vec<_>>())?;
    if look.is_some_and(|_| written.pop() != Some(0)) {
        strangers::refuse(db)?;
    }
    match written.iter().all(|rows| *rows == 1) {
        true => Ok(grown),
        false => Err(swallowed("an entry of the audit chain", "audit_log")),
    }
}

fn insert<'a>(tenant: &'a TenantId, entry: AuditEntry, at: &'a str) -> Statement<'a> {
    let cells = vec![
        tenant.as_str().into(),
        number(entry.seq),
        at.into(),
        entry.kind.word().into(),
        entry.body.into(),
        entry.prev.to_hex().into(),
        entry.hash.to_hex().into(),
    ];
    let sql = "INSERT INTO audit_log (tenant_id, seq, at, kind, body, prev, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    Statement::new(sql, cells)
}

pub(super) fn number<'a>(seq: u64) -> Cell<'a> {
    i64::try_from(seq).unwrap_or(i64::MAX).into()
}

/// The end of a chain, which nobody else moves until the end of the transaction.
fn lock_head(db: &dyn Db, tenant: &TenantId) -> Result<ChainHead, Failure> {
    let hash: [u8; 32] = Sha256::digest(tenant.as_str()).into();
    let (first, _) = hash.split_first_chunk().expect("4 of 32 bytes");
    // Two chains of one number would wait for one another, and that is all.
    db.exclude(Exclusive::Chain(i32::from_be_bytes(*first)))?;
    head(db, tenant)
}

/// The end of a chain. Where retention has cut all rows, the checkpoint that stayed knows it.
pub(crate) fn head(db: &dyn Db, tenant: &TenantId) -> Result<ChainHead, Failure> {
    let row = match db.dialect() {
        // SQLite prepares a statement that orders anew whenever a bare parameter is bound, which costs more than running
        // it; behind the sign it does not.
        Dialect::Sqlite => "SELECT seq, hash FROM audit_log WHERE tenant_id = +?1 ORDER BY seq DESC LIMIT 1",
        Dialect::Postgres => "SELECT seq, hash FROM audit_log WHERE tenant_id = ?1 ORDER BY seq DESC LIMIT 1",
    };
    if let Some(link) = db.one(row, &[tenant.as_str().into()], link)? {
        return Ok(link);
    }
    Ok(last_signed(db, tenant)?.unwrap_or(ChainHead::GENESIS))
}

/// The head that the newest checkpoint of a chain is about.
fn last_signed(db: &dyn Db, tenant: &TenantId) -> Result<Option<ChainHead>, Failure> {
    let sql = "SELECT seq, hash FROM audit_checkpoints WHERE tenant_id = ?1 ORDER BY seq DESC LIMIT 1";
    db.one(sql, &[tenant.as_str().into()], link)
}

pub(super) fn link(row: &dyn Columns) -> Result<ChainHead, Failure> {
    let seq = row.count("seq")?;
    Ok(ChainHead { seq, hash: row.text("hash")?.parse().map_err(|why| foreign("audit row", seq, why))? })
}

fn foreign(what: &str, seq: u64, why: String) -> Failure {
    Failure::Foreign { what: format!("{what} {seq}"), why }
}

/// The entries of a chain from `from_seq` on, in order.
pub(crate) fn entries(db: &dyn Db, tenant: &TenantId, from_seq: u64, limit: usize) -> Result<Vec<AuditEntry>, Failure> {
    let Ok(id) = Uuid::parse_str(tenant.as_str()) else { return Ok(Vec::new()) };
    let sql = "SELECT seq, at, kind, body, prev, hash FROM audit_log WHERE tenant_id = ?1 AND seq >= ?2 \
               ORDER BY seq LIMIT ?3";
    db.all(sql, &[id.to_string().into(), number(from_seq), limit_of(limit).into()], |row| {
        let seq = row.count("seq")?;
        let foreign = |why| foreign("audit row", seq, why);
        Ok(AuditEntry {
            tenant_id: tenant.clone(),
            seq,
            at: at(row).map_err(foreign)?,
            kind: row.text("kind")?.parse().map_err(foreign)?,
            body: row.string("body")?,
            prev: row.text("prev")?.parse().map_err(foreign)?,
            hash: row.text("hash")?.parse().map_err(foreign)?,
        })
    })
}

fn at(row: &dyn Columns) -> Result<Timestamp, String> {
    let at = row.text("at").map_err(|_| "`at` is not text")?;
    at.parse().map_err(|_| format!("`at` is {at:?}"))
}

/// The checkpoints of a chain from that of row `from_seq` on, in order.
pub(crate) fn checkpoints(
    db: &dyn Db,
    tenant: &TenantId,
    from_seq: u64,
    limit: usize,
) -> Result<Vec<AuditCheckpoint>, Failure> {
    let Ok(id) = Uuid::parse_str(tenant.as_str()) else { return Ok(Vec::new()) };
    let sql = "SELECT seq, hash, at, kid, signature FROM audit_checkpoints WHERE tenant_id = ?1 AND seq >= ?2 \
               ORDER BY seq LIMIT ?3";
    let cells = [id.to_string().into(), number(from_seq), limit_of(limit).into()];
    db.all(sql, &cells, |row| checkpoint(tenant, row))
}

/// The last checkpoint of a chain.
pub(crate) fn last_checkpoint(db: &dyn Db, tenant: &TenantId) -> Result<Option<AuditCheckpoint>, Failure> {
    let Ok(id) = Uuid::parse_str(tenant.as_str()) else { return Ok(None) };
    let sql = "SELECT seq, hash, at, kid, signature FROM audit_checkpoints WHERE tenant_id = ?1 \
               ORDER BY seq DESC LIMIT 1";
    db.one(sql, &[id.to_string().into()], |row| checkpoint(tenant, row))
}

/// A checkpoint of the chain of `tenant`, as its row has it.
pub(super) fn checkpoint(tenant: &TenantId, row: &dyn Columns) -> Result<AuditCheckpoint, Failure> {
    let seq = row.count("seq")?;
    let foreign = |why| foreign("audit checkpoint", seq, why);
    Ok(AuditCheckpoint {
        tenant_id: tenant.clone(),
        seq,
        hash: row.text("hash")?.parse().map_err(foreign)?,
        at: at(row).map_err(foreign)?,
        kid: row.string("kid")?,
        signature: STANDARD.encode(row.maybe_bytes("signature")?.unwrap_or_default()),
    })
}

/// The tenants that have a chain. Each is one step in an index, however long their chains are.
pub(crate) fn audited(db: &dyn Db) -> Result<Vec<TenantId>, Failure> {
    let sql = "SELECT tenant_id FROM audit_log WHERE tenant_id > ?1 ORDER BY tenant_id LIMIT 1";
    let after = |last: &str| db.one(sql, &[last.into()], |row| row.string("tenant_id"));
    let mut found: Vec<TenantId> = Vec::new();
    let nil = Uuid::nil().to_string();
    while let Some(next) = after(found.last().map_or(&nil, |last| last.as_str()))? {
        found.push(TenantId::from(next.as_str()));
    }
    Ok(found)
}

/// The row at which the chain of `tenant` may be cut: that of the newest checkpoint before `before`.
pub(crate) fn cut_at(db: &dyn Db, tenant: &TenantId, before: Timestamp) -> Result<Option<u64>, Failure> {
    let Ok(id) = Uuid::parse_str(tenant.as_str()) else { return Ok(None) };
    let sql = "SELECT seq FROM audit_checkpoints WHERE tenant_id = ?1 AND at < ?2 ORDER BY seq DESC LIMIT 1";
    db.one(sql, &[id.to_string().into(), moment(before).into()], |row| row.count("seq"))
}

/// How many rows of a chain went, 0 once nothing is left to be cut, and up to which one.
type Cut = (usize, Option<u64>);

/// Cuts the chain of `tenant` at a checkpoint no later than row `last`, at most `limit` rows; more only where
/// checkpoints stand farther apart.
pub(crate) fn cut_some(db: &dyn Db, tenant: &TenantId, last: u64, limit: usize) -> Result<Cut, Failure> {
    let Ok(id) = Uuid::parse_str(tenant.as_str()) else { return Ok((0, None)) };
    let id = id.to_string();
    let one = |sql: &str, cells: &[Cell<'_>]| db.one(sql, cells, |row| row.count("seq"));
    let first = one("SELECT seq FROM audit_log WHERE tenant_id = ?1 ORDER BY seq LIMIT 1", &[(&id).into()])?;
    let Some(first) = first.filter(|first| *first <= last) else { return Ok((0, None)) };
    // A chain is cut where a signature stands in for what is gone, and nowhere else.
    let near = "SELECT seq FROM audit_checkpoints WHERE tenant_id = ?1 AND seq >= ?2 AND seq <= ?3 \
                ORDER BY seq DESC LIMIT 1";
    let next = "SELECT seq FROM audit_checkpoints WHERE tenant_id = ?1 AND seq >= ?2 AND seq <= ?3 \
                ORDER BY seq LIMIT 1";
    let up_to = |sql, end| one(sql, &[(&id).into(), number(first), number(end)]);
    // The row `first` is one of them.
    let within = first.saturating_add(u64::try_from(limit).unwrap_or(u64::MAX)).saturating_sub(1);
    let stop = match up_to(near, last.min(within))? {
        Some(stop) => stop,
        None => match up_to(next, last)? {
            Some(stop) => stop,
            None => return Ok((0, None)),
        },
    };
    let cells = [(&id).into(), number(stop)];
    db.run("DELETE FROM audit_checkpoints WHERE tenant_id = ?1 AND seq < ?2", &cells)?;
    let gone = db.run("DELETE FROM audit_log WHERE tenant_id = ?1 AND seq <= ?2", &cells)?;
    Ok((usize::try_from(gone).unwrap_or(usize::MAX), Some(stop)))
}
