//! Jobs of hooks that only observe, as rows.

use jiff::Timestamp;
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::store::{OutboxJob, StoreError};

use crate::db::{Cell, Columns, Db, Dialect, Failure, Statement, limit_of};
use crate::keyring::{DecryptError, SealError, SealedPlace};
use crate::refusal::swallowed;
use crate::rules;
use crate::sealing::StoreKeys;

/// A job as it is written. Made before a transaction begins, since others wait for that.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    id: String,
    tenant_id: String,
    hook_id: String,
    event_id: String,
    payload: Vec<u8>,
    attempts: u32,
    next_at: String,
}

impl Job {
    /// Puts a job into words, its payload sealed.
    ///
    /// # Errors
    /// It has an id that no column takes, or its payload cannot be sealed: what a hook is sent is not kept as it is.
    pub(crate) fn of(job: &OutboxJob, sealing: &StoreKeys) -> Result<Self, StoreError> {
        let what = format!("job `{}`", job.id);
        let id = |name: &str, text: &str| {
            let bad = || rules::unkeepable(&what, &format!("its {name} `{}` is not a UUID", text.escape_debug()));
            rules::uuid(text).ok_or_else(bad)
        };
        let (own, tenant_id) = (id("id", &job.id)?, id("tenant_id", job.tenant_id.as_str())?);
        let keyring = sealing.keyring.as_ref().ok_or(SealError::NotConfigured);
        let payload = keyring
            .and_then(|keyring| keyring.seal_bytes(&place(&own, &tenant_id), &job.payload))
            .map_err(|why| rules::unkeepable(&what, &why.to_string()))?;
        Ok(Self {
            hook_id: id("hook_id", job.hook_id.as_str())?,
            event_id: id("event_id", &job.event_id)?,
            id: own,
            tenant_id,
            payload,
            attempts: job.attempts,
            next_at: rules::column(job.next_at),
        })
    }

    /// Writes it; one that is there already stays as it is.
    pub(crate) fn insert(self) -> Statement<'static> {
        Statement::new(
            "INSERT INTO hook_outbox (id, tenant_id, hook_id, event_id, payload, attempts, next_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (id) DO NOTHING",
            vec![
                self.id.into(),
                self.tenant_id.into(),
                self.hook_id.into(),
                self.event_id.into(),
                Cell::Bytes(self.payload.into()),
                self.attempts.into(),
                self.next_at.into(),
            ],
        )
    }
}

pub(super) fn place(id: &str, tenant: &str) -> SealedPlace {
    SealedPlace::new("hook_outbox", id, tenant, "payload")
}

/// Takes the oldest jobs that are due: they are due again at `until`, so nobody else takes them before. With PostgreSQL,
/// those that somebody else takes at this moment are passed over.
pub(crate) fn take_due(db: &dyn Db, (now, until): (Timestamp, Timestamp), limit: usize) -> Result<Vec<Job>, Failure> {
    let passing_over = match db.dialect() {
        Dialect::Sqlite => "",
        Dialect::Postgres => " FOR UPDATE SKIP LOCKED",
    };
    let sql = format!(
        "SELECT id, tenant_id, hook_id, event_id, payload, attempts FROM hook_outbox WHERE next_at <= ?1 \
         ORDER BY next_at, id LIMIT ?2{passing_over}"
    );
    let next_at = rules::column(until);
    let jobs = db.all(&sql, &[rules::column(now).into(), limit_of(limit).into()], |row| job(row, &next_at))?;
    let take = |job| {
        let Job { id, next_at, .. }: &Job = job;
        Statement::new("UPDATE hook_outbox SET next_at = ?2 WHERE id = ?1", vec![id.into(), next_at.into()])
    };
    db.run_all(&jobs.iter().map(take).collect::<Vec<_>>())?;
    Ok(jobs)
}

fn job(row: &dyn Columns, next_at: &str) -> Result<Job, Failure> {
    Ok(Job {
        id: row.string("id")?,
        tenant_id: row.string("tenant_id")?,
        hook_id: row.string("hook_id")?,
        event_id: row.string("event_id")?,
        payload: row.maybe_bytes("payload")?.unwrap_or_default(),
        attempts: row.int("attempts").map(|attempts| u32::try_from(attempts).unwrap_or(u32::MAX))?,
        next_at: next_at.to_owned(),
    })
}

/// The jobs that were taken, their payload opened. One that does not open is left out and said, since nobody could do
/// it: it is due again and again until somebody brings the key back.
pub(crate) fn opened(jobs: Vec<Job>, sealing: &StoreKeys) -> Vec<OutboxJob> {
    jobs.into_iter().filter_map(|job| open(job, sealing)).collect()
}

fn open(job: Job, sealing: &StoreKeys) -> Option<OutboxJob> {
    let keyring = sealing.keyring.as_ref().ok_or(DecryptError::NotConfigured);
    match keyring.and_then(|keyring| keyring.open_bytes(&place(&job.id, &job.tenant_id), &job.payload)) {
        Ok(opened) => Some(OutboxJob {
            tenant_id: TenantId::new(job.tenant_id),
            hook_id: HookId::new(job.hook_id),
            event_id: job.event_id,
            payload: opened.plain.as_bytes().to_vec(),
            attempts: job.attempts,
            next_at: job.next_at.parse().ok()?,
            id: job.id,
        }),
        Err(why) => {
            tracing::error!(job = job.id, tenant = job.tenant_id, "hooks.outbox_unreadable: {why}");
            None
        }
    }
}

/// Whether each statement that keeps a job touched its row, or the row was there before.
///
/// # Errors
/// One did not: nothing of the transaction may count.
pub(crate) fn all_written(db: &dyn Db, statements: &[Statement<'_>], touched: &[u64]) -> Result<(), Failure> {
    for (statement, _) in statements.iter().zip(touched).filter(|(_, touched)| **touched == 0) {
        if !statement.sql.starts_with("INSERT INTO hook_outbox ") {
            continue;
        }
        let sql = "SELECT id FROM hook_outbox WHERE id = ?1";
        if db.all(sql, &statement.cells[..1], |row| row.string("id"))?.is_empty() {
            return Err(swallowed("a job for an observer", "hook_outbox"));
        }
    }
    Ok(())
}

/// The job is over, whoever did it.
pub(crate) fn jobs_left(db: &dyn Db) -> Result<u64, Failure> {
    let rows = db.all("SELECT COUNT(*) AS jobs FROM hook_outbox", &[], |row| row.int("jobs"))?;
    Ok(rows.first().map_or(0, |jobs| u64::try_from(*jobs).unwrap_or_default()))
}

pub(crate) fn finish(db: &dyn Db, id: &str) -> Result<(), Failure> {
    let Some(id) = rules::uuid(id) else { return Ok(()) };
    db.run("DELETE FROM hook_outbox WHERE id = ?1", &[id.into()]).map(drop)
}

/// The job is to be done at `next_at`, unless it is over.
pub(crate) fn try_again(db: &dyn Db, id: &str, attempts: u32, next_at: Timestamp) -> Result<(), Failure> {
    let Some(id) = rules::uuid(id) else { return Ok(()) };
    let sql = "UPDATE hook_outbox SET attempts = ?2, next_at = ?3 WHERE id = ?1";
    db.run(sql, &[id.into(), attempts.into(), rules::column(next_at).into()]).map(drop)
}
