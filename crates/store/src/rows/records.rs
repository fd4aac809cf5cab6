//! Events: keeping, finding and forgetting them.
//!
//! What the events of a turn have in common is a row of `turns`, what hooks had in common at many events is a row of
//! `hook_sets`. Both are written by whoever needs them first, and found by a digest of what they say.

use std::collections::{BTreeSet, HashSet};

use jiff::Timestamp;
use pintle_domain::hex::{hex, unhex};
use pintle_domain::store::{StoredEvent, StoredRecord};
use sha2::{Digest as _, Sha256};

use crate::body;
use crate::db::{Cell, Columns, Db, Dialect, Failure, Statement, limit_of};
use crate::refusal::swallowed;
use crate::timing::{HookTiming, Timings};

mod before;
pub(crate) mod ids;
mod parts;
pub(crate) mod query;
pub(crate) mod turns;

pub(crate) use before::{bring_over, take_back};

/// Keeps who acts in a turn.
pub(crate) const TURN: &str = "INSERT INTO turns (key, turn_id, tenant_id, agent_id, session_id, is_test, began) \
                    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (key) DO NOTHING";

const PROMPT: &str = "INSERT INTO turns (key, turn_id, tenant_id, agent_id, session_id, is_test, began, prompt) \
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (key) DO UPDATE SET prompt = excluded.prompt";

/// Keeps the hooks of events.
pub(crate) const SET: &str = "INSERT INTO hook_sets (digest, hooks, last_used) VALUES (?1, ?2, ?3) \
                   ON CONFLICT (digest) DO UPDATE SET last_used = excluded.last_used \
                   WHERE hook_sets.last_used < excluded.last_used";

/// Keeps an event.
pub(crate) const EVENT: &str = "INSERT INTO events (event_id, checkpoint, turn, at, event, iteration, tool_call_id, tool, ruling, \
                     text, permit, substituted, call, hooks, details) VALUES (?1, ?2, \
                     (SELECT number FROM turns WHERE key = ?3), ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, \
                     (SELECT number FROM hook_sets WHERE digest = ?14), ?15)";

/// The rulings that stopped something, or left it to a person; written as the index has it.
const STOPS: &str = "ruling IN ('ask', 'deny', 'abort_turn', 'hard_abort')";

/// Events with everything that is said of them elsewhere. The order of the tables is the order of looking.
const FOUND: &str = "SELECT e.seq, e.event_id, e.at, e.event, e.checkpoint, t.tenant_id, t.agent_id, t.session_id, \
                     t.turn_id, e.iteration, e.tool_call_id, e.tool, t.is_test, e.ruling, e.text, e.permit, \
                     e.substituted, e.call, s.hooks, e.details \
                     FROM events e CROSS JOIN turns t CROSS JOIN hook_sets s \
                     WHERE t.number = e.turn AND s.number = e.hooks";

/// The bytes of a digest that tell rows of a dictionary apart.
const KEY_BYTES: usize = 16;

const DAY_NANOS: i64 = 86_400 * 1_000_000_000;

/// The statements that keep `events`, those of one transaction.
pub(crate) fn inserts(events: impl Iterator<Item = StoredEvent>) -> Vec<Vec<Statement<'static>>> {
    let mut known = BTreeSet::new();
    events.map(|event| insert(event, &mut known)).collect()
}

/// The statements that keep `event`; `known` are the keys of the rows that stand there by then.
fn insert(event: StoredEvent, known: &mut BTreeSet<[u8; KEY_BYTES]>) -> Vec<Statement<'static>> {
    let at = nanos(&event.at);
    let mut statements = Vec::with_capacity(3);
    let who = TurnOwner {
        tenant: &event.tenant_id,
        agent: &event.agent_id,
        session: &event.session_id,
        turn: &event.turn_id,
        is_test: event.is_test,
    };
    let turn = who.key();
    if known.insert(turn) {
        statements.push(Statement::new(TURN, who.cells(at)));
    }
    let (hooks, details) = parts::split(event.hooks);
    let set = key([hooks.as_bytes()]);
    if known.insert(set) {
        let cells = vec![blob(&set), hooks.into(), at.div_euclid(DAY_NANOS).into()];
        statements.push(Statement::new(SET, cells));
    }
    let call = event.call.map(|call| serde_json::to_string(&call).expect("JSON values are plain JSON"));
    let cells = vec![
        Cell::Bytes(ids::bytes_of(&event.event_id).into()),
        event.checkpoint.clone().into(),
        blob(&turn),
        at.into(),
        (event.event != event.checkpoint).then_some(event.event).into(),
        event.iteration.into(),
        event.tool_call_id.into(),
        event.tool.into(),
        event.ruling.into(),
        event.text.into(),
        event.permit.map_or(Cell::Null, |permit| Cell::Bytes(permit_bytes(&permit).into())),
        event.substituted.into(),
        call.into(),
        blob(&set),
        details.into(),
    ];
    statements.push(Statement::new(EVENT, cells));
    statements
}

/// Who acts in a turn, and in which.
pub(crate) struct TurnOwner<'a> {
    pub(crate) tenant: &'a str,
    pub(crate) agent: &'a str,
    pub(crate) session: &'a str,
    pub(crate) turn: &'a str,
    pub(crate) is_test: bool,
}

impl TurnOwner<'_> {
    fn key(&self) -> [u8; KEY_BYTES] {
        let is_test = [u8::from(self.is_test)];
        key([self.tenant, self.agent, self.session, self.turn].map(str::as_bytes).into_iter().chain([&is_test[..]]))
    }

    fn cells(&self, began: i64) -> Vec<Cell<'static>> {
        vec![
            blob(&self.key()),
            Cell::Bytes(ids::bytes_of(self.turn).into()),
            self.tenant.to_owned().into(),
            self.agent.to_owned().into(),
            self.session.to_owned().into(),
            self.is_test.into(),
            began.into(),
        ]
    }

    /// The statement that keeps how its prompt begins.
    pub(crate) fn prompted(&self, at: Timestamp, prompt: String) -> Statement<'static> {
        let mut cells = self.cells(nanos_of(at));
        cells.push(prompt.into());
        Statement::new(PROMPT, cells)
    }
}

/// The most rows that a writer remembers; it starts anew then, which costs a statement a row.
const MAX_KNOWN: usize = 10_000;

/// The rows of `turns` and `hook_sets` that one writer has written, by the day: a row that events of today point at is
/// not forgotten today.
#[derive(Debug, Default)]
pub(crate) struct KnownRows(HashSet<([u8; KEY_BYTES], i64)>);

impl KnownRows {
    /// Whether `statement` has to run; from then on it is known. If its transaction comes to nothing, nothing is.
    pub(crate) fn is_new(&mut self, statement: &Statement<'_>) -> bool {
        let day = match (statement.sql, statement.cells.as_slice()) {
            (TURN, [.., Cell::Int(began)]) => began.div_euclid(DAY_NANOS),
            (SET, [.., Cell::Int(day)]) => *day,
            _ => return true,
        };
        let Some(Cell::Bytes(key)) = statement.cells.first() else { return true };
        let Some(key) = key.first_chunk::<KEY_BYTES>() else { return true };
        if self.0.len() >= MAX_KNOWN {
            self.0.clear();
        }
        self.0.insert((*key, day))
    }

    /// Knows nothing any more.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }
}

/// Tells what `parts` say from all that others say.
fn key<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; KEY_BYTES] {
    let mut sha = Sha256::new();
    for part in parts {
        sha.update((part.len() as u64).to_be_bytes());
        sha.update(part);
    }
    let digest: [u8; 32] = sha.finalize().into();
    *digest.first_chunk().expect("16 of 32 bytes")
}

fn blob(bytes: &[u8]) -> Cell<'static> {
    Cell::Bytes(bytes.to_vec().into())
}

/// A moment of the kept form. One that nobody can read is the beginning of time: it was written by somebody else.
fn nanos(at: &str) -> i64 {
    at.parse().map_or(0, nanos_of)
}

fn nanos_of(at: Timestamp) -> i64 {
    let nanos = at.as_nanosecond();
    i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}

fn permit_bytes(permit: &str) -> Vec<u8> {
    unhex(permit).unwrap_or_else(|| permit.as_bytes().to_vec())
}

/// Whether the event that one of `statements` keeps is there already. `false` where they keep none.
pub(crate) fn is_there(db: &dyn Db, statements: &[Statement<'_>]) -> Result<bool, Failure> {
    let event = statements.iter().find(|statement| statement.sql == EVENT);
    let Some([event_id, checkpoint, ..]) = event.map(|event| event.cells.as_slice()) else { return Ok(false) };
    // By the index that each database has.
    let sql = match db.dialect() {
        Dialect::Sqlite => "SELECT seq FROM events WHERE event_id = ?1 AND checkpoint = ?2",
        Dialect::Postgres => {
            "SELECT seq FROM events WHERE substring(event_id from 1 for 64) = substring(?1::bytea from 1 for 64) \
             AND event_id = ?1 AND checkpoint = ?2"
        }
    };
    let found = db.all(sql, &[event_id.clone(), checkpoint.clone()], |row| row.int("seq"))?;
    Ok(!found.is_empty())
}

/// Whether each statement that keeps an event touched its row. A trigger of somebody else's may have swallowed it.
///
/// # Errors
/// One did not: nothing of the transaction may count.
pub(crate) fn all_written(statements: &[Statement<'_>], touched: &[u64]) -> Result<(), Failure> {
    let is_swallowed = |(statement, touched): (&Statement<'_>, &u64)| statement.sql == EVENT && *touched != 1;
    match statements.iter().zip(touched).any(is_swallowed) {
        true => Err(swallowed("the record of an event", "events")),
        false => Ok(()),
    }
}

/// Forgets at most `limit` of the oldest events if they are older than `before`, and once none of those is left, what
/// only they used. Says how many events went.
pub(crate) fn forget(db: &dyn Db, before: Timestamp, limit: usize) -> Result<usize, Failure> {
    let before = nanos_of(before);
    // From the oldest on, so that nothing is looked for where nothing is old.
    let gone = db.run(
        "DELETE FROM events WHERE seq IN (SELECT seq FROM (SELECT seq, at FROM events ORDER BY seq LIMIT ?2) AS oldest \
         WHERE at < ?1)",
        &[before.into(), limit_of(limit).into()],
    )?;
    let gone = usize::try_from(gone).unwrap_or(usize::MAX);
    if gone < limit {
        db.run(
            "DELETE FROM turns WHERE began < ?1 AND number < coalesce((SELECT min(turn) FROM events), number + 1)",
            &[before.into()],
        )?;
        db.run(
            "DELETE FROM hook_sets WHERE last_used < ?1 AND number NOT IN (SELECT hooks FROM events)",
            &[before.div_euclid(DAY_NANOS).into()],
        )?;
    }
    Ok(gone)
}

/// How long hooks took, over the newest `limit` events that are no tests.
pub(crate) fn hook_timings(db: &dyn Db, limit: usize) -> Result<Vec<HookTiming>, Failure> {
    let mut timings = Timings::default();
    db.each(&timed(), &[limit_of(limit).into()], &mut |row| {
        timings.add(&moment_in(row, "at")?, hooks_in(row)?);
        Ok(())
    })?;
    Ok(timings.finish())
}

/// The statement for the newest events that are no tests. It reads no more of them than it returns, however many there are.
fn timed() -> String {
    format!("{FOUND} AND NOT t.is_test ORDER BY e.seq DESC LIMIT ?1")
}

fn event(row: &dyn Columns) -> Result<StoredEvent, Failure> {
    let checkpoint = row.string("checkpoint")?;
    let call = row.maybe_text("call")?.map(|call| body::read(&call)).transpose();
    Ok(StoredEvent {
        event_id: id_in(row, "event_id")?,
        at: moment_in(row, "at")?,
        event: row.maybe_string("event")?.unwrap_or_else(|| checkpoint.clone()),
        checkpoint,
        tenant_id: row.string("tenant_id")?,
        agent_id: row.string("agent_id")?,
        session_id: row.string("session_id")?,
        turn_id: id_in(row, "turn_id")?,
        iteration: u32::try_from(row.int("iteration")?).unwrap_or(u32::MAX),
        tool_call_id: row.maybe_string("tool_call_id")?,
        tool: row.maybe_string("tool")?,
        is_test: row.flag("is_test")?,
        ruling: row.string("ruling")?,
        text: row.maybe_string("text")?,
        permit: row.maybe_bytes("permit")?.map(|permit| permit_text(&permit)),
        substituted: row.flag("substituted")?,
        call: call.map_err(|why| unreadable(row, why))?,
        hooks: hooks_in(row)?,
    })
}

fn permit_text(permit: &[u8]) -> String {
    match str::from_utf8(permit) {
        // A digest that is text by accident is still one.
        Ok(text) if permit.len() != 32 => text.to_owned(),
        Ok(_) | Err(_) => hex(permit),
    }
}

fn hooks_in(row: &dyn Columns) -> Result<Vec<StoredRecord>, Failure> {
    parts::joined(&row.text("hooks")?, row.maybe_text("details")?.as_deref()).map_err(|why| unreadable(row, why))
}

fn id_in(row: &dyn Columns, column: &str) -> Result<String, Failure> {
    let bytes = row.maybe_bytes(column)?.unwrap_or_default();
    ids::id_of(&bytes).map_err(|why| Failure::Foreign { what: format!("column `{column}`"), why })
}

fn moment_in(row: &dyn Columns, column: &str) -> Result<String, Failure> {
    let nanos = row.int(column)?;
    let at = Timestamp::from_nanosecond(nanos.into());
    at.map(|at| at.to_string())
        .map_err(|why| Failure::Foreign { what: format!("column `{column}`"), why: why.to_string() })
}

fn unreadable(row: &dyn Columns, why: String) -> Failure {
    Failure::Foreign { what: format!("event `{}`", id_in(row, "event_id").unwrap_or_default()), why }
}

#[cfg(test)]
mod tests {
    use pintle_domain::id::TurnId;
    use pintle_testkit::conformance::store::{event, keep};
    use rusqlite::{Connection, StatementStatus};

    use super::*;
    use crate::{Durability, Sqlite};

    /// The steps of the database in which it reads what `hooks list` shows of a store with `events`, in turns of ten.
    fn steps(events: usize, limit: i64) -> i32 {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s.db");
        let store = Sqlite::open(&file, Durability::Commit).unwrap();
        for _ in 0..events / 10 {
            let turn = TurnId::fresh();
            keep(&store, (0..10).map(|_| event(&turn)).collect()).unwrap();
        }
        drop(store);
        let connection = Connection::open(&file).unwrap();
        let mut statement = connection.prepare(&timed()).unwrap();
        let mut rows = statement.query([limit]).unwrap();
        let mut found = 0;
        while rows.next().unwrap().is_some() {
            found += 1;
        }
        assert_eq!(found, limit);
        drop(rows);
        statement.get_status(StatementStatus::VmStep)
    }

    #[test]
    fn what_hooks_list_reads_does_not_grow_with_the_store() {
        let (few, many) = (steps(200, 100), steps(4000, 100));
        assert_eq!(few, many, "as many steps for the newest 100 of 200 events as of 4,000");
        assert!(few > 100 * 5, "something was read: {few}");
    }
}
