//! Sessions as rows: listing and deleting them. Who holds one is known outside.

use pintle_domain::id::{SessionId, TenantId};
use pintle_domain::json::Object;
use pintle_domain::store::{SessionKey, SessionPatch, SessionQuery, SessionRow, SessionSettings, StoreError};

use crate::body;
use crate::db::{Columns, Db, Dialect, Exclusive, Failure, Statement, limit_of};
use crate::refusal;
use crate::rows::exchange;

/// Who works on a session now, such as `process 4711`, if anybody does.
pub(crate) type HeldBy<'a> = dyn Fn(&SessionKey) -> Result<Option<String>, Failure> + 'a;

/// The session that `?2` names and all that began for it, however far down. `UNION` ends where a chain closes.
const FAMILY: &str = "WITH RECURSIVE family (session_id) AS (\
                        SELECT session_id FROM sessions WHERE tenant_id = ?1 AND session_id = ?2 \
                        UNION \
                        SELECT child.session_id FROM sessions AS child \
                        JOIN family ON child.tenant_id = ?1 AND child.parent = family.session_id\
                      ) SELECT session_id FROM family";

/// The statements for what goes with a session, in this order. The first changes nothing: it waits for whoever appends
/// right now, so that what they append goes too.
const GONE: [&str; 5] = [
    "UPDATE sessions SET turns = turns WHERE tenant_id = ?1 AND session_id = ?2",
    "DELETE FROM journal WHERE session IN (SELECT number FROM sessions WHERE tenant_id = ?1 AND session_id = ?2)",
    "DELETE FROM approvals WHERE tenant_id = ?1 AND session_id = ?2",
    "UPDATE turns SET prompt = NULL WHERE tenant_id = ?1 AND session_id = ?2 AND prompt IS NOT NULL",
    "DELETE FROM sessions WHERE tenant_id = ?1 AND session_id = ?2",
];

/// What listings say of a session.
const COLUMNS: &str = "SELECT session_id, agent_id, parent, created_at, updated_at, title, turns, open_turn, last_end, \
                       label, model, metadata, \
                       (SELECT count(*) FROM approvals AS it WHERE it.tenant_id = sessions.tenant_id \
                        AND it.session_id = sessions.session_id AND it.state = 'waiting') AS waiting FROM sessions";

/// The sessions of a tenant, the one used last first. Reads no journal.
pub(crate) fn list(db: &dyn Db, tenant: &TenantId, held_by: &HeldBy<'_>) -> Result<Vec<SessionRow>, Failure> {
    let sql = format!("{COLUMNS} WHERE tenant_id = ?1 ORDER BY last_entry DESC");
    let rows = db.all(&sql, &[tenant.as_str().into()], session)?;
    rows.into_iter().map(|row| with_holder(tenant, row, held_by)).collect()
}

/// A page of that listing. Whatever a page does not show is neither counted nor looked for.
pub(crate) fn page(
    db: &dyn Db,
    tenant: &TenantId,
    query: &SessionQuery,
    held_by: &HeldBy<'_>,
) -> Result<Vec<SessionRow>, Failure> {
    let sql = page_sql(db.dialect(), query);
    let mut cells = vec![tenant.as_str().into(), limit_of(query.limit).into()];
    cells.extend(query.after.as_ref().map(|after| after.as_str().into()));
    let rows = db.all(&sql, &cells, session)?;
    rows.into_iter().map(|row| with_holder(tenant, row, held_by)).collect()
}

/// The statement for a page: it ends at the last row that is shown, by the index of the newest.
fn page_sql(dialect: Dialect, query: &SessionQuery) -> String {
    let own = if query.children { "" } else { "AND parent IS NULL" };
    let after = match query.after {
        Some(_) => "AND last_entry < (SELECT last_entry FROM sessions WHERE tenant_id = ?1 AND session_id = ?3)",
        None => "",
    };
    // As far as there is an index of it.
    let begins = match dialect {
        Dialect::Sqlite => "",
        Dialect::Postgres => "AND substring(tenant_id from 1 for 64) = substring(?1 from 1 for 64)",
    };
    format!(
        "{COLUMNS} WHERE number IN (SELECT number FROM sessions WHERE tenant_id = ?1 {begins} {own} {after} \
         ORDER BY last_entry DESC LIMIT ?2) ORDER BY last_entry DESC"
    )
}

fn with_holder(tenant: &TenantId, row: SessionRow, held_by: &HeldBy<'_>) -> Result<SessionRow, Failure> {
    let key = SessionKey { tenant: tenant.clone(), session: SessionId::from(row.session_id.as_str()) };
    Ok(SessionRow { held_by: held_by(&key)?, ..row })
}

fn session(row: &dyn Columns) -> Result<SessionRow, Failure> {
    Ok(SessionRow {
        session_id: row.string("session_id")?,
        agent_id: row.string("agent_id")?,
        parent: row.maybe_string("parent")?,
        created_at: row.string("created_at")?,
        updated_at: row.string("updated_at")?,
        title: row.string("title")?,
        turns: row.count("turns")?,
        open_turn: row.maybe_string("open_turn")?,
        waiting: row.count("waiting")?,
        held_by: None,
        last_end: row.maybe_string("last_end")?,
        settings: said(row)?,
    })
}

/// What somebody said of a session.
fn said(row: &dyn Columns) -> Result<SessionSettings, Failure> {
    let foreign = |why| Failure::Foreign { what: "column `metadata`".into(), why };
    let metadata: Option<Object> =
        row.maybe_text("metadata")?.map(|text| body::read(&text).map_err(foreign)).transpose()?;
    Ok(SessionSettings {
        label: row.maybe_string("label")?.unwrap_or_default(),
        model: row.maybe_string("model")?.unwrap_or_default(),
        metadata: metadata.unwrap_or_default(),
    })
}

/// What somebody said of the session `key`, if there is one.
pub(crate) fn settings(db: &dyn Db, key: &SessionKey) -> Result<Option<SessionSettings>, Failure> {
    let sql = "SELECT label, model, metadata FROM sessions WHERE tenant_id = ?1 AND session_id = ?2";
    db.one(sql, &[key.tenant.as_str().into(), key.session.as_str().into()], said)
}

/// Changes that. Whether there is such a session.
pub(crate) fn patch(db: &dyn Db, key: &SessionKey, patch: &SessionPatch) -> Result<bool, Failure> {
    let unkeepable =
        |why| Failure::Said(StoreError::Unavailable(format!("the metadata of a session cannot be kept: {why}")));
    let metadata = patch.metadata.as_ref().map(body::write).transpose().map_err(unkeepable)?;
    let sql = "UPDATE sessions SET label = coalesce(?3, label), model = coalesce(?4, model), \
               metadata = coalesce(?5, metadata) WHERE tenant_id = ?1 AND session_id = ?2";
    let changed = db.run(
        sql,
        &[
            key.tenant.as_str().into(),
            key.session.as_str().into(),
            patch.label.as_deref().into(),
            patch.model.as_deref().into(),
            metadata.into(),
        ],
    )?;
    Ok(changed > 0)
}

/// Deletes a session and those that began for it. Nobody can take one meanwhile.
pub(crate) fn delete(db: &dyn Db, key: &SessionKey, held_by: &HeldBy<'_>) -> Result<bool, Failure> {
    db.exclude(Exclusive::Sessions)?;
    let tenant = key.tenant.as_str();
    let family = db.all(FAMILY, &[tenant.into(), key.session.as_str().into()], |row| row.string("session_id"))?;
    for session in &family {
        let member = SessionKey { tenant: key.tenant.clone(), session: SessionId::from(session.as_str()) };
        if let Some(by) = held_by(&member)? {
            return Err(Failure::Said(refusal::in_use(&member.session, &by)));
        }
    }
    let of_family = |sql| family.iter().map(move |it| Statement::new(sql, vec![tenant.into(), it.into()]));
    // A fence is never used twice, so nothing that was made under the lease is taken for something of its successor.
    let holder = match db.dialect() {
        Dialect::Sqlite => "DELETE FROM holders WHERE tenant_id = ?1 AND session_id = ?2",
        Dialect::Postgres => "DELETE FROM leases WHERE tenant_id = ?1 AND session_id = ?2",
    };
    let gone: Vec<_> = GONE.into_iter().chain(exchange::GONE).chain([holder]).flat_map(of_family).collect();
    db.run_all(&gone)?;
    Ok(!family.is_empty())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::migration::NEWEST;

    #[test]
    fn a_page_looks_at_no_session_that_it_does_not_show() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pintle.db");
        crate::migrate_to(&format!("sqlite://{}", file.display()), Path::new("/"), NEWEST).unwrap();
        let connection = rusqlite::Connection::open(file).unwrap();
        for (children, after) in [(false, None), (true, None), (false, Some("s")), (true, Some("s"))] {
            let query = SessionQuery { children, after: after.map(SessionId::from), limit: 20 };
            let sql = format!("EXPLAIN QUERY PLAN {}", page_sql(Dialect::Sqlite, &query));
            let mut plan = connection.prepare(&sql).unwrap();
            let cells = ["t", "20", "s"].into_iter().take(plan.parameter_count());
            let steps = plan.query_map(rusqlite::params_from_iter(cells), |row| row.get::<_, String>(3)).unwrap();
            let steps: Vec<String> = steps.map(Result::unwrap).collect();
            assert!(steps.iter().any(|step| step.contains("sessions_by_newest (tenant_id=?")), "{steps:#?}");
            assert!(!steps.iter().any(|step| step.contains("SCAN")), "{steps:#?}");
        }
    }
}
