//! Turns, page by page. However few fit a question, only so many are looked at for one page.

use std::collections::BTreeMap;

use jiff::Timestamp;
use pintle_domain::id::TenantId;
use pintle_domain::store::{StoredTurn, TurnOutcome, TurnPage, TurnQuery, TurnRow, WhichTurns};

use super::query::{Wanted, counts, indexed};
use super::{STOPS, id_in, ids, moment_in, nanos_of};
use crate::db::{Cell, Columns, Db, Dialect, Failure, limit_of};

/// How many turns are looked at for one page.
const WINDOW: usize = 2000;

/// The most turns of a page.
const MAX_PAGE: usize = 500;

/// What stands in the rows of hooks, one of which failed. No text of a hook stands there.
const FAILED: &str = "'\"fault\":\"'";

/// The page that `query` asks for.
pub(crate) fn page(db: &dyn Db, query: &TurnQuery) -> Result<TurnPage, Failure> {
    let limit = query.limit.min(MAX_PAGE);
    let mut wanted = window(db.dialect(), query);
    let order = if matches!(query.which, Some(WhichTurns::Below { .. })) { "" } else { " DESC" };
    let inner = format!(
        "SELECT number, turn_id, tenant_id, session_id, agent_id, began, prompt FROM turns WHERE NOT is_test{} \
         ORDER BY number{order} LIMIT {WINDOW}",
        wanted.joined()
    );
    let looked = format!("SELECT count(*) AS turns, min(number) AS last FROM ({inner}) AS looked_at");
    let looked = db.one(&looked, &wanted.cells, |row| Ok((row.count("turns")?, row.maybe_int("last")?)))?;
    wanted.conditions.clear();
    among(db.dialect(), query, &mut wanted);
    // One more than fits tells whether there is another page.
    wanted.cells.push(limit_of(limit + 1).into());
    let sql = format!(
        "SELECT * FROM ({inner}) AS t WHERE TRUE{} ORDER BY t.number{order} LIMIT ?{}",
        wanted.joined(),
        wanted.cells.len()
    );
    let mut found = db.all(&sql, &wanted.cells, |row| Ok((row.int("number")?, turn(row)?)))?;
    let next = if found.len() > limit {
        found.truncate(limit);
        found.last().map(|(number, _)| *number)
    } else {
        looked.filter(|(turns, _)| *turns >= WINDOW as u64).and_then(|(_, last)| last)
    };
    let numbers = || found.iter().map(|(number, _)| *number);
    let (mut counts, mut ends) = (counts(db, numbers())?, ends(db, numbers())?);
    let turns = found.into_iter().map(|(number, mut turn)| {
        (turn.calls, turn.refused, turn.waiting) = counts.remove(&number).unwrap_or_default();
        let end = ends.remove(&number).unwrap_or_default();
        TurnRow {
            place: number,
            turn,
            ended: end.at,
            status: end.status,
            error: end.error,
            reason: end.reason,
            asked: end.asked,
            faults: end.faults,
        }
    });
    Ok(TurnPage { turns: turns.collect(), next })
}

/// The conditions that a row of `turns` answers by itself.
fn window<'a>(dialect: Dialect, query: &'a TurnQuery) -> Wanted<'a> {
    let mut wanted = Wanted::default();
    if let Some(tenant) = query.tenant.one().map(TenantId::as_str) {
        wanted.is("tenant_id = ", tenant.into());
        if dialect == Dialect::Postgres {
            // The index has no more of it.
            wanted.is("substring(tenant_id from 1 for 64) = ", tenant.chars().take(64).collect::<String>().into());
        }
    }
    if let Some(agent) = &query.agent {
        wanted.is("agent_id = ", agent.into());
    }
    match &query.which {
        None => {}
        Some(WhichTurns::Turn(id)) => {
            let bytes = ids::bytes_of(id);
            wanted.is("turn_id = ", Cell::Bytes(bytes.clone().into()));
            if dialect == Dialect::Postgres {
                let first = bytes[..bytes.len().min(ids::INDEXED_BYTES)].to_vec();
                wanted.is(&format!("{} = ", indexed(dialect, "turn_id")), Cell::Bytes(first.into()));
            }
        }
        Some(WhichTurns::Session(session)) => wanted.is("session_id = ", session.into()),
        Some(WhichTurns::Part(part)) => {
            wanted.cells.push(part.into());
            wanted.conditions.push(format!("{}(session_id, ?{}) > 0", position(dialect), wanted.cells.len()));
        }
        Some(WhichTurns::Below { session, from }) => {
            wanted.is("number > ", (*from).into());
            wanted.cells.push(format!("{session}/").into());
            wanted.conditions.push(format!("{}(session_id, ?{}) = 1", position(dialect), wanted.cells.len()));
        }
    }
    let mut moment = |condition: &str, at: Option<Timestamp>| {
        if let Some(at) = at {
            wanted.is(condition, nanos_of(at).into());
        }
    };
    moment("began >= ", query.since);
    moment("began < ", query.until);
    if let Some(after) = query.after {
        wanted.is("number < ", after.into());
    }
    wanted
}

/// The function that says where a text stands in another.
fn position(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "instr",
        Dialect::Postgres => "strpos",
    }
}

/// The conditions that the events of a turn answer.
fn among<'a>(dialect: Dialect, query: &'a TurnQuery, wanted: &mut Wanted<'a>) {
    let function = position(dialect);
    let event = |condition: &str| format!("EXISTS (SELECT 1 FROM events e WHERE e.turn = t.number AND {condition})");
    let hooks = |condition: &str| event(&format!("e.hooks IN (SELECT number FROM hook_sets WHERE {condition})"));
    let failed = hooks(&format!("{function}(hooks, {FAILED}) > 0"));
    if let Some(tool) = &query.tool {
        wanted.cells.push(tool.into());
        wanted.conditions.push(event(&format!("e.tool = ?{}", wanted.cells.len())));
    }
    if let Some(hook) = &query.hook {
        let name = serde_json::to_string(hook).expect("a text is plain JSON");
        wanted.cells.push(format!("\"hook\":{name},").into());
        wanted.conditions.push(hooks(&format!("{function}(hooks, ?{}) > 0", wanted.cells.len())));
    }
    if let Some(words) = &query.words {
        let quoted = serde_json::to_string(words).expect("a text is plain JSON");
        wanted.cells.push(words.into());
        let plain = wanted.cells.len();
        wanted.cells.push(quoted[1..quoted.len() - 1].to_owned().into());
        wanted.conditions.push(event(&format!(
            "({function}(lower(e.text), lower(?{plain})) > 0 OR {function}(lower(e.details), lower(?{})) > 0)",
            plain + 1
        )));
    }
    let stops = event(&format!("e.{STOPS}"));
    match query.came_to {
        None => {}
        Some(TurnOutcome::Allowed) => wanted.conditions.push(format!("NOT {stops} AND NOT {failed}")),
        Some(TurnOutcome::Blocked) => wanted.conditions.push(event(&format!("e.{STOPS} AND e.ruling <> 'ask'"))),
        Some(TurnOutcome::Asked) => wanted.conditions.push(event("e.ruling = 'ask'")),
        Some(TurnOutcome::Faulted) => wanted.conditions.push(failed),
    }
}

fn turn(row: &dyn Columns) -> Result<StoredTurn, Failure> {
    Ok(StoredTurn {
        turn_id: id_in(row, "turn_id")?,
        tenant_id: row.string("tenant_id")?,
        session_id: row.string("session_id")?,
        agent_id: row.string("agent_id")?,
        began: moment_in(row, "began")?,
        prompt: row.maybe_string("prompt")?.filter(|prompt| !prompt.is_empty()),
        calls: 0,
        refused: 0,
        waiting: 0,
    })
}

/// How a turn ended.
#[derive(Default)]
struct End {
    at: Option<String>,
    status: Option<String>,
    error: Option<String>,
    reason: Option<String>,
    asked: u64,
    faults: u64,
}

fn ends(db: &dyn Db, turns: impl Iterator<Item = i64>) -> Result<BTreeMap<i64, End>, Failure> {
    let turns: Vec<String> = turns.map(|number| number.to_string()).collect();
    if turns.is_empty() {
        return Ok(BTreeMap::new());
    }
    let (turns, function) = (turns.join(", "), position(db.dialect()));
    let sql = format!(
        "SELECT e.turn, count(DISTINCT CASE WHEN e.ruling = 'ask' THEN e.tool_call_id END) AS asked, \
         count(CASE WHEN {function}(s.hooks, {FAILED}) > 0 THEN 1 END) AS faults \
         FROM events e JOIN hook_sets s ON s.number = e.hooks WHERE e.turn IN ({turns}) GROUP BY e.turn"
    );
    let found = db.all(&sql, &[], |row| {
        Ok((row.int("turn")?, End { asked: row.count("asked")?, faults: row.count("faults")?, ..End::default() }))
    })?;
    let mut ends: BTreeMap<i64, End> = found.into_iter().collect();
    let sql = format!(
        "SELECT turn, at, event, text FROM events WHERE turn IN ({turns}) AND (event IN ('turn_end', 'error') OR {STOPS}) \
         ORDER BY seq"
    );
    let mut last = |row: &dyn Columns| {
        let (turn, text) = (row.int("turn")?, row.maybe_string("text")?);
        let end = ends.entry(turn).or_default();
        match row.maybe_text("event")?.as_deref() {
            Some("turn_end") => (end.at, end.status) = (Some(moment_in(row, "at")?), text),
            Some("error") => end.error = text.or_else(|| end.error.take()),
            Some(_) | None => end.reason = text.or_else(|| end.reason.take()),
        }
        Ok(())
    };
    db.each(&sql, &[], &mut last)?;
    // An error that the turn got over is not what it ended with.
    ends.values_mut().filter(|end| end.at.is_some() && end.status.is_none()).for_each(|end| end.error = None);
    Ok(ends)
}
