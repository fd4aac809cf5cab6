//! Executions: keeping, listing and forgetting them.

use jiff::Timestamp;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::execution::Execution;
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::rule::{Decision, HandlerType};
use pintle_domain::store::{ExecutionQuery, StoreError, TenantScope};
use uuid::Uuid;

use crate::body;
use crate::db::{Cell, Columns, Db, Dialect, Failure, Statement, limit_of, moment};
use crate::evidence::{SealedTexts, fit_session};
use crate::refusal::swallowed;

const COLUMNS: &str = "id, hook_id, hook_name, hook_version, handler_type, tenant_id, agent_id, session_id, turn_id, \
                       event_id, trace_id, event, tool_name, tool_call_id, input_hash, decision, reason, duration_ms, \
                       retry, dedup_key, error, metadata, created_at";

/// The condition in place of a filter that names nothing that can be there.
const NOTHING: &str = "FALSE";

macro_rules! insert {
    ($hook:literal) => {
        insert!($hook, "", "")
    };
    ($hook:literal, $column:literal, $value:literal) => {
        concat!(
            "INSERT INTO hook_executions (id, hook_id, hook_name, hook_version, handler_type, tenant_id, agent_id, \
             session_id, turn_id, event_id, trace_id, event, tool_name, tool_call_id, input_hash, decision, reason, \
             duration_ms, retry, dedup_key, error, error_detail, metadata, created_at",
            $column,
            ") VALUES (?1, ",
            $hook,
            ", ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24",
            $value,
            ") ON CONFLICT DO NOTHING"
        )
    };
}

/// Keeps an execution in SQLite: nearly always the hook is there, and SQLite looks for it anyway.
pub(crate) const SQLITE_INSERT: &str = insert!("?2");
/// The same for one whose hook is gone.
pub(crate) const SQLITE_ORPHAN: &str = insert!("(SELECT id FROM agent_hooks WHERE id = ?2)");
/// Keeps one with what its program wrote.
pub(crate) const SQLITE_INSERT_OUTPUT: &str = insert!("?2", ", output", ", ?25");
/// The same for one whose hook is gone.
pub(crate) const SQLITE_ORPHAN_OUTPUT: &str =
    insert!("(SELECT id FROM agent_hooks WHERE id = ?2)", ", output", ", ?25");

/// The statement that keeps `execution`, with what is encrypted of it as `sealed`; one that is there already is left as
/// it is. It outlives its hook, which may be gone already, or be deleted at this moment.
pub(crate) fn insert(execution: Execution, sealed: SealedTexts, dialect: Dialect) -> Statement<'static> {
    let (sql, orphan) = match (dialect, &sealed.output) {
        (Dialect::Sqlite, None) => (SQLITE_INSERT, Some(SQLITE_ORPHAN)),
        (Dialect::Sqlite, Some(_)) => (SQLITE_INSERT_OUTPUT, Some(SQLITE_ORPHAN_OUTPUT)),
        // A statement that fails would take its transaction with it.
        (Dialect::Postgres, None) => (insert!("(SELECT id FROM agent_hooks WHERE id = ?2 FOR KEY SHARE)"), None),
        (Dialect::Postgres, Some(_)) => {
            (insert!("(SELECT id FROM agent_hooks WHERE id = ?2 FOR KEY SHARE)", ", output", ", ?25"), None)
        }
    };
    let metadata = serde_json::to_string(&execution.metadata).expect("JSON values are plain JSON");
    let mut cells = vec![
        execution.id.into(),
        execution.hook_id.map(|id| id.as_str().to_owned()).into(),
        execution.hook_name.into(),
        execution.hook_version.into(),
        execution.handler_type.word().into(),
        execution.tenant_id.as_str().to_owned().into(),
        execution.agent_id.into(),
        execution.session_id.into(),
        execution.turn_id.into(),
        execution.event_id.into(),
        execution.trace_id.into(),
        execution.event.name().into(),
        execution.tool_name.into(),
        execution.tool_call_id.into(),
        execution.input_hash.into(),
        execution.decision.word().into(),
        execution.reason.into(),
        i64::try_from(execution.duration_ms).unwrap_or(i64::MAX).into(),
        execution.retry.into(),
        execution.dedup_key.into(),
        execution.error.into(),
        sealed.detail.map_or(Cell::Null, |detail| Cell::Bytes(detail.into())),
        metadata.into(),
        moment(execution.created_at).into(),
    ];
    cells.extend(sealed.output.map(|output| Cell::Bytes(output.into())));
    Statement { sql, cells, orphan }
}

/// Whether each statement that keeps an execution touched its row, or the row was there before. A trigger of somebody
/// else's may have swallowed it.
///
/// # Errors
/// One did not: nothing of the transaction may count.
pub(crate) fn all_written(db: &dyn Db, statements: &[Statement<'_>], touched: &[u64]) -> Result<(), Failure> {
    for (statement, _) in statements.iter().zip(touched).filter(|(_, touched)| **touched == 0) {
        if !statement.sql.starts_with("INSERT INTO hook_executions ") {
            continue;
        }
        let (id, dedup_key) = (statement.cells[0].clone(), statement.cells[19].clone());
        let sql = "SELECT id FROM hook_executions WHERE id = ?1 OR dedup_key = ?2";
        if db.all(sql, &[id, dedup_key], |row| row.string("id"))?.is_empty() {
            return Err(swallowed("the record of a rule", "hook_executions"));
        }
    }
    Ok(())
}

/// The executions that `query` asks for, newest first.
pub(crate) fn list(db: &dyn Db, query: &ExecutionQuery) -> Result<Vec<Execution>, Failure> {
    let (sql, cells) = select(query).map_err(Failure::Said)?;
    db.all(&sql, &cells, execution)
}

/// Only the conditions that are asked for, so that each can use its index.
fn select(query: &ExecutionQuery) -> Result<(String, Vec<Cell<'_>>), StoreError> {
    let mut wanted = Wanted::default();
    wanted.id("tenant_id", query.tenant.one().map(TenantId::as_str));
    wanted.id("hook_id", query.hook.as_ref().map(HookId::as_str));
    wanted.id("agent_id", query.agent.as_deref());
    wanted.is("hook_name =", query.name.as_deref().map(Cell::from));
    wanted.is("event =", query.event.map(|event| event.name().into()));
    wanted.is("decision =", query.decision.map(|decision| decision.word().into()));
    wanted.is("session_id =", query.session.as_deref().map(|session| fit_session(session).into()));
    wanted.is("created_at >=", query.since.map(|at| moment(micros_up(at)).into()));
    wanted.is("created_at <", query.until.map(|at| moment(micros_up(at)).into()));
    if let Some((at, id)) = &query.after {
        let (at, id) = place(at, id)?;
        wanted.cells.extend([moment(at).into(), id.into()]);
        let n = wanted.cells.len();
        wanted.conditions.push(format!("(created_at, id) < (?{}, ?{n})", n - 1));
    }
    wanted.cells.push(limit_of(query.limit).into());
    let (limit, conditions) = (wanted.cells.len(), wanted.conditions.join(" AND "));
    let conditions = if conditions.is_empty() { "TRUE" } else { &conditions };
    let sql = format!(
        "SELECT {COLUMNS} FROM hook_executions WHERE {conditions} ORDER BY created_at DESC, id DESC LIMIT ?{limit}"
    );
    Ok((sql, wanted.cells))
}

#[derive(Default)]
struct Wanted<'a> {
    conditions: Vec<String>,
    cells: Vec<Cell<'a>>,
}

impl<'a> Wanted<'a> {
    fn is(&mut self, condition: &str, cell: Option<Cell<'a>>) {
        if let Some(cell) = cell {
            self.cells.push(cell);
            self.conditions.push(format!("{condition} ?{}", self.cells.len()));
        }
    }

    /// What is not a UUID is nobody's id.
    fn id(&mut self, column: &str, id: Option<&str>) {
        match id.map(Uuid::parse_str) {
            Some(Ok(id)) => self.is(&format!("{column} ="), Some(id.to_string().into())),
            Some(Err(_)) => self.conditions.push(NOTHING.to_owned()),
            None => {}
        }
    }
}

/// A place in a listing.
///
/// # Errors
/// It is none.
pub(crate) fn place(at: &str, id: &str) -> Result<(Timestamp, String), StoreError> {
    let place = at.parse::<Timestamp>().ok().zip(Uuid::parse_str(id).ok());
    let place = place.map(|(at, id)| (at, id.to_string()));
    place.ok_or_else(|| StoreError::NotFound(format!("no execution stands at {at:?}, {id:?}; list from the beginning")))
}

/// The first moment not before `at` that a column can hold.
fn micros_up(at: Timestamp) -> Timestamp {
    let micros = at.as_microsecond() + i64::from(at.as_nanosecond() % 1000 > 0);
    // The last microsecond of all time has nothing behind it.
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX)
}

/// An execution, and what is encrypted of it as it stands in the row.
pub(crate) type WithSealed = (Execution, SealedTexts);

/// The execution `id` of `of`.
pub(crate) fn by_id(db: &dyn Db, of: &TenantScope, id: &str) -> Result<Option<WithSealed>, Failure> {
    if Uuid::parse_str(id).is_err() {
        return Ok(None);
    }
    let mut wanted = Wanted::default();
    wanted.id("id", Some(id));
    wanted.id("tenant_id", of.one().map(TenantId::as_str));
    let conditions = wanted.conditions.join(" AND ");
    let sql = format!("SELECT {COLUMNS}, error_detail, output FROM hook_executions WHERE {conditions}");
    db.one(&sql, &wanted.cells, |row| {
        let sealed = SealedTexts { detail: row.maybe_bytes("error_detail")?, output: row.maybe_bytes("output")? };
        Ok((execution(row)?, sealed))
    })
}

/// Forgets the oldest executions, and what is encrypted of the oldest that are left, at most `limit` of each.
pub(crate) fn forget(
    db: &dyn Db,
    rows_before: Timestamp,
    details_before: Timestamp,
    limit: usize,
) -> Result<usize, Failure> {
    let rows = "DELETE FROM hook_executions WHERE id IN \
                (SELECT id FROM hook_executions WHERE created_at < ?1 ORDER BY created_at LIMIT ?2)";
    let details = "UPDATE hook_executions SET error_detail = NULL, output = NULL WHERE id IN \
                   (SELECT id FROM hook_executions WHERE (error_detail IS NOT NULL OR output IS NOT NULL) \
                   AND created_at < ?1 ORDER BY created_at LIMIT ?2)";
    let gone = |sql, before| db.run(sql, &[moment(micros_up(before)).into(), limit_of(limit).into()]);
    let gone = gone(rows, rows_before)? + gone(details, details_before)?;
    Ok(usize::try_from(gone).unwrap_or(usize::MAX))
}

fn execution(row: &dyn Columns) -> Result<Execution, Failure> {
    let foreign =
        |why: String| Failure::Foreign { what: format!("execution `{}`", row.string("id").unwrap_or_default()), why };
    let unknown = |column: &str, word: &str| foreign(format!("`{column}` is {word:?}"));
    let (handler, event, decision) = (row.text("handler_type")?, row.text("event")?, row.text("decision")?);
    let at = row.text("created_at")?;
    let number = |column| Ok::<_, Failure>(u32::try_from(row.int(column)?).unwrap_or(0));
    Ok(Execution {
        id: row.string("id")?,
        hook_id: row.maybe_text("hook_id")?.map(|id| HookId::from(&*id)),
        hook_name: row.string("hook_name")?,
        hook_version: number("hook_version")?,
        handler_type: HandlerType::named(&handler).ok_or_else(|| unknown("handler_type", &handler))?,
        tenant_id: TenantId::from(&*row.text("tenant_id")?),
        agent_id: row.maybe_string("agent_id")?,
        session_id: row.maybe_string("session_id")?,
        turn_id: row.maybe_string("turn_id")?,
        event_id: row.string("event_id")?,
        trace_id: row.maybe_string("trace_id")?,
        event: CheckpointKind::named(&event).ok_or_else(|| unknown("event", &event))?,
        tool_name: row.maybe_string("tool_name")?,
        tool_call_id: row.maybe_string("tool_call_id")?,
        input_hash: row.maybe_string("input_hash")?,
        decision: Decision::named(&decision).ok_or_else(|| unknown("decision", &decision))?,
        reason: row.maybe_string("reason")?,
        duration_ms: row.count("duration_ms")?,
        retry: number("retry")?,
        dedup_key: row.maybe_string("dedup_key")?,
        error: row.maybe_string("error")?,
        error_detail: None,
        output: None,
        metadata: body::read(&row.text("metadata")?).map_err(foreign)?,
        created_at: at.parse().map_err(|_| unknown("created_at", &at))?,
    })
}
