//! Events and turns by what is asked of them.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use jiff::Timestamp;
use pintle_domain::id::{EventId, TenantId};
use pintle_domain::store::{RecordQuery, StoredEvent, StoredTurn};

use super::{FOUND, STOPS, event, id_in, ids, moment_in, nanos_of};
use crate::db::{Cell, Db, Dialect, Failure, limit_of};

/// The most ids in one statement.
const MAX_IDS: usize = 200;

/// The most turns that one question is about.
const MAX_TURNS: usize = 1000;

/// The events that `query` asks for, newest last.
pub(crate) fn find(db: &dyn Db, query: &RecordQuery) -> Result<Vec<StoredEvent>, Failure> {
    let mut wanted = Wanted::default();
    if let Some(tenant) = query.tenant.one() {
        wanted.is("t.tenant_id = ", tenant.as_str().into());
    }
    if let Some(turns) = turns_of(db, query)? {
        let turns: Vec<String> = turns.iter().map(i64::to_string).collect();
        wanted.conditions.push(match turns.is_empty() {
            true => "FALSE".to_owned(),
            false => format!("e.turn IN ({})", turns.join(", ")),
        });
    }
    if let Some(call) = &query.call {
        wanted.is("e.tool_call_id = ", call.into());
    }
    if let Some(tool) = &query.tool {
        wanted.is("e.tool = ", tool.into());
    }
    if query.refused {
        wanted.conditions.push(format!("e.{STOPS}"));
    }
    if let Some(since) = query.since {
        let since = nanos_of(since);
        wanted.is("e.seq >= ", first_since(db, since)?.into());
        wanted.is("e.at >= ", since.into());
    }
    if let Some(hook) = &query.hook {
        let name = serde_json::to_string(hook).expect("a text is plain JSON");
        let function = match db.dialect() {
            Dialect::Sqlite => "instr",
            Dialect::Postgres => "strpos",
        };
        wanted.cells.push(format!("\"hook\":{name},").into());
        wanted.conditions.push(format!(
            "e.hooks IN (SELECT number FROM hook_sets WHERE {function}(hooks, ?{}) > 0)",
            wanted.cells.len()
        ));
    }
    let Some(prefix) = &query.event_id else {
        let mut found = wanted.all(db, "e.seq", query.limit)?;
        found.reverse();
        return Ok(found.into_iter().map(|(_, event)| event).collect());
    };
    // Each by its index: ids of version 7 stand in the order of time, so the last ones are the newest.
    let id = indexed(db.dialect(), "e.event_id");
    let mut found = Vec::new();
    for range in ids::ranges(prefix) {
        let mut ranged = wanted.clone();
        ranged.is(&format!("{id} >= "), Cell::Bytes(range.first.into()));
        ranged.is(&format!("{id} <= "), Cell::Bytes(range.last.into()));
        found.extend(ranged.all(db, &format!("{id} DESC, e.seq"), query.limit)?);
    }
    found.retain(|(_, event)| event.event_id.starts_with(prefix.as_str()));
    found.sort_by_key(|(seq, _)| *seq);
    let rest = found.len().saturating_sub(query.limit);
    Ok(found.into_iter().skip(rest).map(|(_, event)| event).collect())
}

/// Which of the events `told`, each with when it was, are gone though an older one is there.
pub(crate) fn missing(db: &dyn Db, told: &[(EventId, Timestamp)]) -> Result<Vec<EventId>, Failure> {
    let oldest = db.one("SELECT at FROM events ORDER BY seq LIMIT 1", &[], |row| row.int("at"))?;
    let Some(oldest) = oldest else { return Ok(Vec::new()) };
    let young: Vec<&EventId> = told.iter().filter(|(_, at)| nanos_of(*at) > oldest).map(|(id, _)| id).collect();
    // What the condition compares.
    let looked_at = match db.dialect() {
        Dialect::Sqlite => usize::MAX,
        Dialect::Postgres => ids::INDEXED_BYTES,
    };
    let mut gone = Vec::new();
    for some in young.chunks(MAX_IDS) {
        let bytes: Vec<Vec<u8>> = some.iter().map(|id| ids::bytes_of(id.as_str())).collect();
        let cells: Vec<Cell<'_>> = bytes.iter().map(|id| Cell::Bytes(id[..id.len().min(looked_at)].into())).collect();
        let numbers: Vec<String> = (1..=cells.len()).map(|number| format!("?{number}")).collect();
        let sql = format!(
            "SELECT event_id FROM events WHERE {} IN ({})",
            indexed(db.dialect(), "event_id"),
            numbers.join(", ")
        );
        let there: HashSet<Vec<u8>> =
            db.all(&sql, &cells, |row| Ok(row.maybe_bytes("event_id")?.unwrap_or_default()))?.into_iter().collect();
        gone.extend(some.iter().zip(&bytes).filter(|(_, id)| !there.contains(*id)).map(|(id, _)| (*id).clone()));
    }
    Ok(gone)
}

/// `column`, as far as there is an index of it.
pub(super) fn indexed(dialect: Dialect, column: &str) -> String {
    match dialect {
        Dialect::Sqlite => column.to_owned(),
        Dialect::Postgres => format!("substring({column} from 1 for {})", ids::INDEXED_BYTES),
    }
}

/// Only the conditions that are asked for, so that each can use its index.
#[derive(Clone, Default)]
pub(super) struct Wanted<'a> {
    pub(super) conditions: Vec<String>,
    pub(super) cells: Vec<Cell<'a>>,
}

impl<'a> Wanted<'a> {
    pub(super) fn is(&mut self, condition: &str, cell: Cell<'a>) {
        self.cells.push(cell);
        self.conditions.push(format!("{condition}?{}", self.cells.len()));
    }

    pub(super) fn joined(&self) -> String {
        self.conditions.iter().map(|condition| format!(" AND {condition}")).collect()
    }

    /// The last by `order`, with their places, last first.
    fn all(mut self, db: &dyn Db, order: &str, limit: usize) -> Result<Vec<(i64, StoredEvent)>, Failure> {
        let conditions = self.joined();
        self.cells.push(limit_of(limit).into());
        let sql = format!("{FOUND}{conditions} ORDER BY {order} DESC LIMIT ?{}", self.cells.len());
        db.all(&sql, &self.cells, |row| Ok((row.int("seq")?, event(row)?)))
    }
}

/// The turns that a query is about; `None` if it is about any.
fn turns_of(db: &dyn Db, query: &RecordQuery) -> Result<Option<Vec<i64>>, Failure> {
    let mut asked: Option<BTreeSet<i64>> = None;
    let mut only = |turns: Vec<i64>| {
        let turns: BTreeSet<i64> = turns.into_iter().collect();
        asked = Some(match asked.take() {
            Some(before) => before.intersection(&turns).copied().collect(),
            None => turns,
        });
    };
    if query.last_turn {
        only(last_turn(db, query.tenant.one())?);
    }
    if let Some(prefix) = &query.turn {
        only(turns_named(db, prefix)?);
    }
    if let Some(session) = &query.session {
        let sql = "SELECT number FROM turns WHERE session_id = ?1 AND NOT is_test ORDER BY number DESC LIMIT 1";
        only(db.all(sql, &[session.into()], |row| row.int("number"))?);
    }
    Ok(asked.map(|turns| turns.into_iter().collect()))
}

fn turns_named(db: &dyn Db, prefix: &str) -> Result<Vec<i64>, Failure> {
    let id = indexed(db.dialect(), "turn_id");
    let mut found: Vec<(i64, String)> = Vec::new();
    for range in ids::ranges(prefix) {
        let sql =
            format!("SELECT number, turn_id FROM turns WHERE {id} >= ?1 AND {id} <= ?2 ORDER BY {id} DESC LIMIT ?3");
        let cells = [Cell::Bytes(range.first.into()), Cell::Bytes(range.last.into()), limit_of(MAX_TURNS).into()];
        found.extend(db.all(&sql, &cells, |row| Ok((row.int("number")?, id_in(row, "turn_id")?)))?);
    }
    found.retain(|(_, turn)| turn.starts_with(prefix));
    if found.is_empty()
        && let Some(end) = ids::end_of(prefix)
    {
        let digits = match db.dialect() {
            Dialect::Sqlite => "lower(hex(turn_id))",
            Dialect::Postgres => "encode(turn_id, 'hex')",
        };
        let sql = format!("SELECT number FROM turns WHERE {digits} LIKE '%' || ?1 ORDER BY number DESC LIMIT ?2");
        return db.all(&sql, &[end.into(), limit_of(MAX_TURNS).into()], |row| row.int("number"));
    }
    Ok(found.into_iter().map(|(number, _)| number).collect())
}

/// The rows of the newest turn that is not a test.
fn last_turn(db: &dyn Db, tenant: Option<&TenantId>) -> Result<Vec<i64>, Failure> {
    let mut wanted = Wanted::default();
    if let Some(tenant) = tenant {
        wanted.is("t.tenant_id = ", tenant.as_str().into());
    }
    let conditions = wanted.joined();
    let sql = format!(
        "SELECT t.turn_id FROM events e CROSS JOIN turns t WHERE t.number = e.turn AND NOT t.is_test{conditions} \
         ORDER BY e.seq DESC LIMIT 1"
    );
    let Some(turn) = db.one(&sql, &wanted.cells, |row| id_in(row, "turn_id"))? else { return Ok(Vec::new()) };
    let mut rows = Wanted { conditions: vec!["NOT t.is_test".into()], ..Wanted::default() };
    let mut bytes = ids::bytes_of(&turn);
    if db.dialect() == Dialect::Postgres {
        bytes.truncate(ids::INDEXED_BYTES);
    }
    rows.is(&format!("{} = ", indexed(db.dialect(), "t.turn_id")), Cell::Bytes(bytes.into()));
    let sql = format!("SELECT t.number, t.turn_id FROM turns t WHERE TRUE{}", rows.joined());
    let found = db.all(&sql, &rows.cells, |row| Ok((row.int("number")?, id_in(row, "turn_id")?)))?;
    Ok(found.into_iter().filter(|(_, id)| *id == turn).map(|(number, _)| number).collect())
}

/// The first place at which events are no older than `since`, as far as clocks never went back. Looks at few rows.
fn first_since(db: &dyn Db, since: i64) -> Result<i64, Failure> {
    let one = |sql: &str, cells: &[Cell<'_>]| db.one(sql, cells, |row| Ok((row.int("seq")?, row.int("at")?)));
    let Some((mut low, _)) = one("SELECT seq, at FROM events ORDER BY seq LIMIT 1", &[])? else { return Ok(0) };
    let Some((mut high, _)) = one("SELECT seq, at FROM events ORDER BY seq DESC LIMIT 1", &[])? else { return Ok(0) };
    while low < high {
        let middle = low + (high - low) / 2;
        match one("SELECT seq, at FROM events WHERE seq >= ?1 ORDER BY seq LIMIT 1", &[middle.into()])? {
            Some((seq, at)) if at < since => low = seq + 1,
            Some(_) | None => high = middle,
        }
    }
    Ok(low)
}

/// The newest `limit` turns that are no tests and not older than `since`, newest first.
pub(crate) fn turns(
    db: &dyn Db,
    tenant: Option<&TenantId>,
    since: Option<Timestamp>,
    limit: usize,
) -> Result<Vec<StoredTurn>, Failure> {
    let mut wanted = Wanted { conditions: vec!["NOT is_test".into()], ..Wanted::default() };
    if let Some(tenant) = tenant {
        wanted.is("tenant_id = ", tenant.as_str().into());
    }
    if let Some(since) = since {
        wanted.is("began >= ", nanos_of(since).into());
    }
    let conditions = wanted.joined();
    wanted.cells.push(limit_of(limit.min(MAX_TURNS)).into());
    let sql = format!(
        "SELECT number, turn_id, tenant_id, session_id, agent_id, began, prompt FROM turns \
         WHERE TRUE{conditions} ORDER BY number DESC LIMIT ?{}",
        wanted.cells.len()
    );
    let mut found = db.all(&sql, &wanted.cells, |row| {
        let turn = StoredTurn {
            turn_id: id_in(row, "turn_id")?,
            tenant_id: row.string("tenant_id")?,
            session_id: row.string("session_id")?,
            agent_id: row.string("agent_id")?,
            began: moment_in(row, "began")?,
            prompt: row.maybe_string("prompt")?.filter(|prompt| !prompt.is_empty()),
            calls: 0,
            refused: 0,
            waiting: 0,
        };
        Ok((row.int("number")?, turn))
    })?;
    let mut counts = counts(db, found.iter().map(|(number, _)| *number))?;
    for (number, turn) in &mut found {
        (turn.calls, turn.refused, turn.waiting) = counts.remove(number).unwrap_or_default();
    }
    Ok(found.into_iter().map(|(_, turn)| turn).collect())
}

/// How many calls there were in each turn, how much was refused, and how much a person was asked about and never said.
pub(super) fn counts(db: &dyn Db, turns: impl Iterator<Item = i64>) -> Result<BTreeMap<i64, (u64, u64, u64)>, Failure> {
    let turns: Vec<String> = turns.map(|number| number.to_string()).collect();
    if turns.is_empty() {
        return Ok(BTreeMap::new());
    }
    let sql = format!(
        "SELECT turn, count(tool_call_id) AS calls, sum(refused) AS refused, \
         sum(CASE WHEN asked > 0 AND done = 0 AND refused = 0 THEN 1 ELSE 0 END) AS waiting FROM \
         (SELECT turn, tool_call_id, max(CASE WHEN ruling = 'ask' THEN 1 ELSE 0 END) AS asked, \
         max(CASE WHEN {STOPS} AND ruling <> 'ask' THEN 1 ELSE 0 END) AS refused, \
         max(CASE WHEN permit IS NOT NULL OR ruling = 'respond' THEN 1 ELSE 0 END) AS done \
         FROM events WHERE turn IN ({}) GROUP BY turn, tool_call_id) AS calls_of_turns GROUP BY turn",
        turns.join(", ")
    );
    let found = db.all(&sql, &[], |row| {
        Ok((row.int("turn")?, (row.count("calls")?, row.count("refused")?, row.count("waiting")?)))
    })?;
    Ok(found.into_iter().collect())
}
