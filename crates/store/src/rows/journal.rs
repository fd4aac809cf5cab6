//! Journals: what an append changes, in the transaction of whoever calls, and reading one back.

use jiff::Timestamp;
use pintle_domain::id::{SessionId, TenantId, TurnId};
use pintle_domain::lease::Fence;
use pintle_domain::session::{JournalEntry, settle};
use pintle_domain::store::{FailedTurn, JournalAppend, SessionKey, StoreError};
use pintle_domain::turn::Fact;

use super::approvals;
use crate::body;
use crate::db::{Columns, Db, Dialect, Failure, Statement, limit_of};
use crate::progress::Progress;

/// An append with its entries as they are written.
pub(crate) struct Lines {
    append: JournalAppend,
    bodies: Vec<String>,
    /// What the newest answer of a model that was written before lets go of: the place of a call, the arguments that
    /// stand.
    settled: Vec<(usize, String)>,
}

/// The part of a session's row from before an append.
struct Before {
    number: i64,
    open_turn: Option<String>,
    opened: bool,
}

impl Lines {
    /// Writes the entries of `append` as JSON.
    pub(crate) fn of(mut append: JournalAppend) -> Result<Self, StoreError> {
        let worded = std::mem::take(&mut append.worded);
        let settled = settle(&mut append.entries, 0);
        // What requests bring along settles nothing, so it is what it was when it was put into words.
        if worded.len() == append.entries.len() && append.entries.iter().all(JournalEntry::is_of_a_request) {
            return Ok(Self { append, bodies: worded, settled });
        }
        let write = |(i, entry)| {
            body::write(entry).map_err(|why| {
                let session = &append.key.session;
                StoreError::Unavailable(format!("entry {} for session {session:?} cannot be kept: {why}", i + 1))
            })
        };
        let bodies = append.entries.iter().enumerate().map(write).collect::<Result<_, _>>()?;
        Ok(Self { append, bodies, settled })
    }

    /// The session that they belong to.
    pub(crate) fn key(&self) -> &SessionKey {
        &self.append.key
    }

    /// The lease that they were made under.
    pub(crate) fn fence(&self) -> Option<Fence> {
        self.append.fence
    }

    /// Puts them into the journal, and brings the session's row and its approvals up to date.
    pub(crate) fn insert(&self, db: &dyn Db) -> Result<(), Failure> {
        if self.bodies.is_empty() {
            return Ok(());
        }
        let JournalAppend { key, agent, at, .. } = &self.append;
        let now = at.to_string();
        let before = self.before(db, &now)?;
        self.settle(db, before.number)?;
        let progress = Progress::of(before.open_turn, before.opened, &self.append.entries);
        let mut statements: Vec<Statement<'_>> = Vec::with_capacity(self.bodies.len() + 1 + progress.ended.len());
        statements.extend(self.bodies.iter().map(|body| {
            let sql = "INSERT INTO journal (session, at, body) VALUES (?1, ?2, ?3)";
            Statement::new(sql, vec![before.number.into(), now.as_str().into(), body.into()])
        }));
        statements.push(Statement::new(
            update(db.dialect()),
            vec![
                before.number.into(),
                agent.as_str().into(),
                now.as_str().into(),
                progress.title.into(),
                i64::try_from(progress.turns).unwrap_or(i64::MAX).into(),
                progress.open_turn.into(),
                progress.opened.into(),
                progress.last_end.map(|cause| cause.word()).into(),
            ],
        ));
        statements.extend(progress.ended.iter().map(|turn| approvals::void_turn(key, turn)));
        let touched = db.run_each(&statements.iter().collect::<Vec<_>>())?;
        let is_lost = |(statement, rows): (&Statement<'_>, &u64)| {
            *rows != 1 && ["INSERT INTO journal ", "UPDATE sessions "].iter().any(|own| statement.sql.starts_with(own))
        };
        match statements.iter().zip(&touched).any(is_lost) {
            // Not a refusal: nothing of the transaction may count.
            true => {
                Err(Failure::Foreign { what: "table `journal`".into(), why: "a trigger took an entry away".into() })
            }
            false => Ok(()),
        }
    }

    /// Takes out of what was written before what gates replaced since.
    fn settle(&self, db: &dyn Db, session: i64) -> Result<(), Failure> {
        if self.settled.is_empty() {
            return Ok(());
        }
        let newest = "SELECT seq, body FROM journal WHERE session = ?1 AND body LIKE '{\"turn\":{\"replied\":%' \
                      ORDER BY seq DESC LIMIT 1";
        let row = db.one(newest, &[session.into()], |row| Ok((row.int("seq")?, row.text("body")?.to_string())))?;
        let Some((seq, body)) = row else { return Ok(()) };
        // Nobody but the owner of this entry is refused for it.
        let broken = |why| Failure::Said(StoreError::Corrupt(format!("journal entry {seq}: {why}")));
        let mut fact = match body::read(&body).map_err(broken)? {
            JournalEntry::Turn(fact) => fact,
            JournalEntry::Opened { .. } | JournalEntry::Closed { .. } | JournalEntry::Kept(_) => return Ok(()),
        };
        for (place, arguments) in &self.settled {
            Fact::settle(&mut fact, *place, arguments);
        }
        let left = body::write(&JournalEntry::Turn(fact)).map_err(broken)?;
        if left != body {
            db.run("UPDATE journal SET body = ?2 WHERE seq = ?1", &[seq.into(), left.as_str().into()])?;
        }
        Ok(())
    }

    /// How the session stands; it begins with its first entries.
    fn before(&self, db: &dyn Db, now: &str) -> Result<Before, Failure> {
        let key = &self.append.key;
        if let Some(before) = before(db, key)? {
            return Ok(before);
        }
        db.run(
            "INSERT INTO sessions (tenant_id, session_id, agent_id, parent, created_at, updated_at, title, turns, \
             opened, last_entry) VALUES (?1, ?2, ?3, ?4, ?5, ?5, '', 0, ?6, 0) ON CONFLICT DO NOTHING",
            &[
                key.tenant.as_str().into(),
                key.session.as_str().into(),
                self.append.agent.as_str().into(),
                self.append.parent.as_ref().map(|it| it.as_str()).into(),
                now.into(),
                false.into(),
            ],
        )?;
        before(db, key)?.ok_or_else(|| Failure::Foreign {
            what: format!("session {:?}", key.session),
            why: "it was made and is not there".into(),
        })
    }
}

fn before(db: &dyn Db, key: &SessionKey) -> Result<Option<Before>, Failure> {
    let sql = format!(
        "SELECT number, open_turn, opened FROM sessions WHERE tenant_id = ?1 AND session_id = ?2{}",
        db.dialect().for_update()
    );
    db.one(&sql, &[key.tenant.as_str().into(), key.session.as_str().into()], |row| {
        Ok(Before {
            number: row.int("number")?,
            open_turn: row.maybe_string("open_turn")?,
            opened: row.flag("opened")?,
        })
    })
}

fn update(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => {
            "UPDATE sessions SET agent_id = ?2, updated_at = ?3, title = CASE title WHEN '' THEN ?4 ELSE title END, \
             turns = turns + ?5, open_turn = ?6, opened = ?7, last_end = coalesce(?8, last_end), \
             last_entry = last_insert_rowid() WHERE number = ?1"
        }
        Dialect::Postgres => {
            "UPDATE sessions SET agent_id = ?2, updated_at = ?3, title = CASE title WHEN '' THEN ?4 ELSE title END, \
             turns = turns + ?5, open_turn = ?6, opened = ?7, last_end = coalesce(?8, last_end), \
             last_entry = currval('journal_seq') WHERE number = ?1"
        }
    }
}

/// The journal of a session, oldest first.
pub(crate) fn read(db: &dyn Db, key: &SessionKey) -> Result<Vec<JournalEntry>, Failure> {
    let number = "SELECT number FROM sessions WHERE tenant_id = ?1 AND session_id = ?2";
    let number = db.one(number, &[key.tenant.as_str().into(), key.session.as_str().into()], |row| row.int("number"))?;
    let Some(number) = number else { return Ok(Vec::new()) };
    db.all("SELECT seq, body FROM journal WHERE session = ?1 ORDER BY seq", &[number.into()], entry)
}

/// The first `limit` entries of `turn`, with their moments.
pub(crate) fn of_turn(
    db: &dyn Db,
    key: &SessionKey,
    turn: &TurnId,
    limit: usize,
) -> Result<Vec<(Timestamp, JournalEntry)>, Failure> {
    let number = "SELECT number FROM sessions WHERE tenant_id = ?1 AND session_id = ?2";
    let number = db.one(number, &[key.tenant.as_str().into(), key.session.as_str().into()], |row| row.int("number"))?;
    let Some(number) = number else { return Ok(Vec::new()) };
    let begun = serde_json::to_string(turn.as_str()).expect("a text is plain JSON");
    let begun = format!("{{\"turn\":{{\"begun\":{{\"turn_id\":{begun},%");
    let first = "SELECT max(seq) AS seq FROM journal WHERE session = ?1 AND body LIKE ?2";
    let first = db.one(first, &[number.into(), begun.into()], |row| row.maybe_int("seq"))?.flatten();
    let Some(first) = first else { return Ok(Vec::new()) };
    let sql = "SELECT seq, at, body FROM journal WHERE session = ?1 AND seq >= ?2 ORDER BY seq LIMIT ?3";
    let found = db.all(sql, &[number.into(), first.into(), limit_of(limit).into()], |row| {
        let at = row.text("at")?.parse::<Timestamp>().map_err(|error| unreadable(row, error.to_string()))?;
        Ok((at, entry(row)?))
    })?;
    Ok(of_one_turn(found))
}

/// The turns that ended in an error since `since`, in sessions that no agent began for another.
pub(crate) fn failed_since(db: &dyn Db, since: Timestamp, limit: usize) -> Result<Vec<FailedTurn>, Failure> {
    // What was told of a session before is in none of its newer entries.
    let ended = "SELECT s.tenant_id, s.session_id, s.agent_id, j.session, j.seq, j.at, j.body FROM sessions s \
                 JOIN journal j ON j.session = s.number WHERE s.parent IS NULL AND s.updated_at >= ?1 AND j.at >= ?1 \
                 AND j.body LIKE '{\"turn\":{\"ended\":{\"status\":\"error\"%' ORDER BY j.seq LIMIT ?2";
    let begun = "SELECT seq, body FROM journal WHERE session = ?1 AND seq < ?2 \
                 AND body LIKE '{\"turn\":{\"begun\":%' ORDER BY seq DESC LIMIT 1";
    let found = db.all(ended, &[since.to_string().into(), limit_of(limit).into()], |row| {
        let at = row.text("at")?.parse::<Timestamp>().map_err(|error| unreadable(row, error.to_string()))?;
        let key = SessionKey {
            tenant: TenantId::new(row.string("tenant_id")?),
            session: SessionId::new(row.string("session_id")?),
        };
        Ok((key, row.string("agent_id")?, (row.int("session")?, row.int("seq")?), at, entry(row)?))
    })?;
    let mut failed = Vec::new();
    for (key, agent, (session, seq), at, ended) in found {
        let JournalEntry::Turn(Fact::Ended { error: Some((stage, error)), .. }) = ended else { continue };
        let begun = db.one(begun, &[session.into(), seq.into()], entry)?;
        let Some(JournalEntry::Turn(Fact::Begun { turn_id, .. })) = begun else { continue };
        let SessionKey { tenant, session } = key;
        failed.push(FailedTurn { tenant, agent, session, turn: turn_id, stage, error, at });
    }
    Ok(failed)
}

fn entry(row: &dyn Columns) -> Result<JournalEntry, Failure> {
    body::read(&row.text("body")?).map_err(|why| unreadable(row, why))
}

fn unreadable(row: &dyn Columns, why: String) -> Failure {
    Failure::Foreign { what: format!("journal entry {}", row.int("seq").unwrap_or_default()), why }
}

/// Of entries that begin with those of a turn, those of that turn.
pub(crate) fn of_one_turn(
    entries: impl IntoIterator<Item = (Timestamp, JournalEntry)>,
) -> Vec<(Timestamp, JournalEntry)> {
    let (mut turn, mut is_over) = (Vec::new(), false);
    for (at, entry) in entries {
        if is_over || (!turn.is_empty() && begins(&entry, None)) {
            break;
        }
        is_over = matches!(entry, JournalEntry::Turn(Fact::Ended { .. }));
        turn.push((at, entry));
    }
    turn
}

/// Whether a turn begins with `entry`: this one, if one is named.
pub(crate) fn begins(entry: &JournalEntry, turn: Option<&str>) -> bool {
    match entry {
        JournalEntry::Turn(Fact::Begun { turn_id, .. }) => turn.is_none_or(|turn| turn_id.as_str() == turn),
        JournalEntry::Turn(_) | JournalEntry::Opened { .. } | JournalEntry::Closed { .. } | JournalEntry::Kept(_) => {
            false
        }
    }
}
