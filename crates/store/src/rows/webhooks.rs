//! What others are to be told, as rows.

use jiff::Timestamp;
use pintle_domain::id::TenantId;
use pintle_domain::store::{RetryWhich, StoreError, StoredEndpoint};
use pintle_domain::webhook::{WebhookDelivery, WebhookEvent};

use crate::db::{Cell, Columns, Db, Dialect, Failure, Statement, limit_of};
use crate::refusal::swallowed;
use crate::rules;

/// The columns of a delivery.
const COLUMNS: &str = "id, endpoint_id, tenant_id, event, seq, data, at, attempts, next_at, failed_at, error";

/// Keeps deliveries with the next numbers. Receivers are taken in the order of their ids: then nobody who does the same
/// waits for somebody who waits.
pub(crate) fn post(db: &dyn Db, deliveries: &[WebhookDelivery]) -> Result<usize, Failure> {
    let mut sorted: Vec<&WebhookDelivery> = deliveries.iter().collect();
    sorted.sort_by(|a, b| (&a.endpoint, &a.id).cmp(&(&b.endpoint, &b.id)));
    let mut new = 0;
    for delivery in sorted {
        new += usize::from(post_one(db, delivery)?);
    }
    Ok(new)
}

fn post_one(db: &dyn Db, delivery: &WebhookDelivery) -> Result<bool, Failure> {
    let (id, endpoint) = (uuid(&delivery.id)?, uuid(&delivery.endpoint)?);
    let tenant = uuid(delivery.tenant.as_str())?;
    let sql = "INSERT INTO webhook_endpoints (id) VALUES (?1) ON CONFLICT (id) DO NOTHING";
    db.run(sql, &[(&endpoint).into()])?;
    // The row of the receiver is the queue of those who do the same.
    let raise = "UPDATE webhook_endpoints SET seq = seq + 1 WHERE id = ?1 AND stopped_at IS NULL \
                 AND NOT EXISTS (SELECT 1 FROM webhook_outbox WHERE webhook_outbox.id = ?2) \
                 AND NOT EXISTS (SELECT 1 FROM webhook_told WHERE webhook_told.id = ?2)";
    if db.run(raise, &[(&endpoint).into(), (&id).into()])? == 0 {
        return Ok(false);
    }
    let rows = db.run(
        "INSERT INTO webhook_outbox (id, endpoint_id, tenant_id, event, seq, data, at, attempts, next_at) \
         SELECT ?1, id, ?3, ?4, seq, ?5, ?6, ?7, ?8 FROM webhook_endpoints WHERE id = ?2 ON CONFLICT (id) DO NOTHING",
        &[
            (&id).into(),
            (&endpoint).into(),
            (&tenant).into(),
            delivery.event.word().into(),
            (&delivery.data).into(),
            rules::column(delivery.at).into(),
            delivery.attempts.into(),
            rules::column(delivery.next_at).into(),
        ],
    )?;
    if rows == 1 { Ok(true) } else { Err(swallowed("what others are to be told", "webhook_outbox")) }
}

/// Takes the oldest that are due: they are due again at `until`, so nobody else takes them before. With PostgreSQL, those
/// that somebody else takes at this moment are passed over.
pub(crate) fn take(
    db: &dyn Db,
    endpoints: &[String],
    (now, until): (Timestamp, Timestamp),
    limit: usize,
) -> Result<Vec<WebhookDelivery>, Failure> {
    let passing_over = match db.dialect() {
        Dialect::Sqlite => "",
        Dialect::Postgres => " FOR UPDATE OF webhook_outbox SKIP LOCKED",
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM webhook_outbox WHERE endpoint_id = ?1 AND next_at <= ?2 AND failed_at IS NULL \
         AND NOT EXISTS (SELECT 1 FROM webhook_endpoints e WHERE e.id = endpoint_id AND e.stopped_at IS NOT NULL) \
         ORDER BY next_at, seq LIMIT ?3{passing_over}"
    );
    let mut taken = Vec::new();
    for endpoint in endpoints {
        let cells = [uuid(endpoint)?.into(), rules::column(now).into(), limit_of(limit - taken.len()).into()];
        taken.extend(db.all(&sql, &cells, delivery)?);
        if taken.len() >= limit {
            break;
        }
    }
    let until = rules::whole_micros(until);
    let lease = |delivery: &WebhookDelivery| {
        let cells = vec![delivery.id.clone().into(), rules::column(until).into()];
        Statement::new("UPDATE webhook_outbox SET next_at = ?2 WHERE id = ?1", cells)
    };
    db.run_all(&taken.iter().map(lease).collect::<Vec<_>>())?;
    taken.iter_mut().for_each(|delivery| delivery.next_at = until);
    Ok(taken)
}

pub(crate) fn delivered(db: &dyn Db, id: &str) -> Result<(), Failure> {
    let id = uuid(id)?;
    let told = "INSERT INTO webhook_told (id, at) SELECT id, at FROM webhook_outbox WHERE id = ?1 \
                ON CONFLICT (id) DO NOTHING";
    db.run(told, &[(&id).into()])?;
    db.run("DELETE FROM webhook_outbox WHERE id = ?1", &[id.into()]).map(drop)
}

/// Until when everything that happened is kept.
pub(crate) fn cursor(db: &dyn Db) -> Result<Option<Timestamp>, Failure> {
    db.one("SELECT at FROM webhook_cursor WHERE id = 1", &[], |row| moment(&row.text("at")?))
}

/// Everything that happened until `at` is kept, for these receivers from then on.
pub(crate) fn advance(db: &dyn Db, at: Timestamp, endpoints: &[String]) -> Result<(), Failure> {
    for endpoint in endpoints {
        let sql = "INSERT INTO webhook_endpoints (id) VALUES (?1) ON CONFLICT (id) DO NOTHING";
        db.run(sql, &[uuid(endpoint)?.into()])?;
    }
    let sql = "INSERT INTO webhook_cursor (id, at) VALUES (1, ?1) ON CONFLICT (id) DO UPDATE SET at = excluded.at \
               WHERE webhook_cursor.at < excluded.at";
    db.run(sql, &[rules::column(at).into()]).map(drop)
}

pub(crate) fn tried(db: &dyn Db, delivery: &WebhookDelivery) -> Result<(), Failure> {
    let sql = "UPDATE webhook_outbox SET attempts = ?2, next_at = ?3, failed_at = ?4, error = ?5 WHERE id = ?1";
    let cells = [
        uuid(&delivery.id)?.into(),
        delivery.attempts.into(),
        rules::column(delivery.next_at).into(),
        delivery.failed_at.map(rules::column).into(),
        delivery.error.clone().into(),
    ];
    db.run(sql, &cells).map(drop)
}

pub(crate) fn stop(db: &dyn Db, endpoint: &str, now: Timestamp) -> Result<(), Failure> {
    let sql = "UPDATE webhook_endpoints SET stopped_at = ?2 WHERE id = ?1 AND stopped_at IS NULL";
    db.run(sql, &[uuid(endpoint)?.into(), rules::column(now).into()]).map(drop)
}

pub(crate) fn endpoints(db: &dyn Db) -> Result<Vec<StoredEndpoint>, Failure> {
    let sql = "SELECT e.id, e.seq, e.stopped_at, count(o.id) AS all_of_it, count(o.failed_at) AS failed \
               FROM webhook_endpoints e LEFT JOIN webhook_outbox o ON o.endpoint_id = e.id \
               GROUP BY e.id, e.seq, e.stopped_at ORDER BY e.id";
    db.all(sql, &[], |row| {
        let failed = row.count("failed")?;
        Ok(StoredEndpoint {
            id: row.string("id")?,
            seq: row.count("seq")?,
            stopped_at: row.maybe_text("stopped_at")?.map(|at| moment(&at)).transpose()?,
            waiting: row.count("all_of_it")?.saturating_sub(failed),
            failed,
        })
    })
}

pub(crate) fn newest(db: &dyn Db, limit: usize) -> Result<Vec<WebhookDelivery>, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM webhook_outbox ORDER BY at DESC, id DESC LIMIT ?1");
    db.all(&sql, &[limit_of(limit).into()], delivery)
}

pub(crate) fn retry(db: &dyn Db, which: RetryWhich<'_>, now: Timestamp) -> Result<u64, Failure> {
    let again = "UPDATE webhook_outbox SET attempts = 0, next_at = ?2, failed_at = NULL WHERE ";
    let now: Cell<'_> = rules::column(now).into();
    match which {
        RetryWhich::WebhookDelivery(id) => {
            let Some(id) = rules::uuid(id) else { return Ok(0) };
            db.run(&format!("{again}id = ?1"), &[id.into(), now])
        }
        RetryWhich::Endpoint(endpoint) => {
            let Some(endpoint) = rules::uuid(endpoint) else { return Ok(0) };
            db.run("UPDATE webhook_endpoints SET stopped_at = NULL WHERE id = ?1", &[(&endpoint).into()])?;
            db.run(&format!("{again}endpoint_id = ?1"), &[endpoint.into(), now])
        }
    }
}

pub(crate) fn forget(db: &dyn Db, before: Timestamp) -> Result<u64, Failure> {
    db.run("DELETE FROM webhook_told WHERE at < ?1", &[rules::column(before).into()])?;
    db.run("DELETE FROM webhook_outbox WHERE at < ?1", &[rules::column(before).into()])
}

fn delivery(row: &dyn Columns) -> Result<WebhookDelivery, Failure> {
    let event = row.string("event")?;
    let unknown = || foreign("event", "there is no such event".into());
    Ok(WebhookDelivery {
        id: row.string("id")?,
        endpoint: row.string("endpoint_id")?,
        tenant: TenantId::new(row.string("tenant_id")?),
        event: WebhookEvent::named(&event).ok_or_else(unknown)?,
        seq: row.count("seq")?,
        data: row.string("data")?,
        at: moment(&row.text("at")?)?,
        attempts: u32::try_from(row.count("attempts")?).unwrap_or(u32::MAX),
        next_at: moment(&row.text("next_at")?)?,
        failed_at: row.maybe_text("failed_at")?.map(|at| moment(&at)).transpose()?,
        error: row.maybe_string("error")?,
    })
}

fn moment(text: &str) -> Result<Timestamp, Failure> {
    text.parse().map_err(|error: jiff::Error| foreign("a time", error.to_string()))
}

fn foreign(what: &str, why: String) -> Failure {
    Failure::Foreign { what: format!("{what} of what others are to be told"), why }
}

fn uuid(text: &str) -> Result<String, Failure> {
    let bad = || StoreError::Unavailable(format!("`{}` is not a UUID", text.escape_debug()));
    rules::uuid(text).ok_or_else(|| Failure::Said(bad()))
}
