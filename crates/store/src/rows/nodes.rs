//! Nodes, and what they say to each other, as rows.

use pintle_domain::id::{AgentId, SessionId, TenantId, TurnId};
use pintle_domain::lease::Fence;
use pintle_domain::node::{GONE_AFTER, NodeState, SeenNode};
use pintle_domain::store::{LeftTurn, Letter, LetterKind, SessionKey, Steerer};

use crate::db::{Columns, Db, Dialect, Failure};

/// Where nodes that share a database listen for each other.
pub(crate) const CHANNEL: &str = "pintle_nodes";

/// How long news stay: far longer than it takes to find those that were missed.
const NEWS_TIME_MS: i64 = 60_000;

/// How long the row of a node stays that ended without a word: whoever looks for it finds it the next day.
const SILENT_TIME_MS: i64 = 86_400_000;

/// Gives one lease back, if it is still that one.
pub(crate) const RELEASE: &str = "UPDATE leases SET owner = NULL WHERE place = ?1 AND fence = ?2 AND owner = ?3";

/// A fence as the database has it.
pub(crate) fn as_int(fence: Fence) -> i64 {
    i64::try_from(fence.0).unwrap_or(i64::MAX)
}

/// The clock of the database, in milliseconds since 1970.
pub(crate) fn now_ms(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
        Dialect::Postgres => "(extract(epoch FROM clock_timestamp()) * 1000)::bigint",
    }
}

/// Says that a node begins: the row of the same name before it goes, and the sessions that its end cut come back.
pub(crate) fn join(db: &dyn Db, state: &NodeState) -> Result<Vec<String>, Failure> {
    let before = "SELECT cut FROM nodes WHERE name = ?1 AND id <> ?2 AND seen_ms = 0 ORDER BY since_ms";
    let cut = db.all(before, &[(&state.name).into(), (&state.id).into()], |row| row.string("cut"))?;
    // One that ended without a word is silent by now, and in a file there is no other one.
    let silent = match db.dialect() {
        Dialect::Sqlite => "seen_ms >= 0".to_owned(),
        Dialect::Postgres => format!("seen_ms < {} - {}", now_ms(db.dialect()), GONE_AFTER.as_millis()),
    };
    db.run(&format!("DELETE FROM nodes WHERE name = ?1 AND {silent}"), &[(&state.name).into()])?;
    beat(db, state)?;
    Ok(cut.iter().flat_map(|cut| serde_json::from_str::<Vec<String>>(cut).unwrap_or_default()).collect())
}

/// Says that a node is there. What is long over goes.
pub(crate) fn beat(db: &dyn Db, state: &NodeState) -> Result<(), Failure> {
    let now = now_ms(db.dialect());
    let text = serde_json::to_string(state).unwrap_or_default();
    db.run(
        &format!(
            "INSERT INTO nodes (id, name, level, since_ms, seen_ms, state, cut) \
             VALUES (?1, ?2, ?3, {now}, {now}, ?4, '[]') ON CONFLICT (id) DO UPDATE SET name = excluded.name, \
             level = excluded.level, seen_ms = excluded.seen_ms, state = excluded.state"
        ),
        &[(&state.id).into(), (&state.name).into(), state.level.into(), text.as_str().into()],
    )?;
    db.run(&format!("DELETE FROM nodes WHERE seen_ms > 0 AND seen_ms < {now} - {SILENT_TIME_MS}"), &[])?;
    if db.dialect() == Dialect::Postgres {
        db.run(&format!("DELETE FROM node_news WHERE at_ms < {now} - {NEWS_TIME_MS}"), &[])?;
    }
    Ok(())
}

/// The nodes that are there or were lately, the oldest first.
pub(crate) fn all(db: &dyn Db) -> Result<Vec<SeenNode>, Failure> {
    let sql = format!(
        "SELECT since_ms, {} - seen_ms AS silent_ms, state FROM nodes WHERE seen_ms > 0 ORDER BY since_ms, id",
        now_ms(db.dialect())
    );
    let read = |row: &dyn Columns| {
        let foreign =
            |why: serde_json::Error| Failure::Foreign { what: "a row of `nodes`".into(), why: why.to_string() };
        let state = serde_json::from_str(&row.text("state")?).map_err(foreign)?;
        Ok(SeenNode { state, since_ms: row.int("since_ms")?, silent_ms: row.int("silent_ms")? })
    };
    db.all(&sql, &[], read)
}

/// Says that a node ends, and which sessions that cut.
pub(crate) fn leave(db: &dyn Db, id: &str, cut: &[String]) -> Result<(), Failure> {
    if cut.is_empty() {
        return db.run("DELETE FROM nodes WHERE id = ?1", &[id.into()]).map(drop);
    }
    let cut = serde_json::to_string(cut).unwrap_or_default();
    db.run("UPDATE nodes SET seen_ms = 0, cut = ?2 WHERE id = ?1", &[id.into(), cut.as_str().into()]).map(drop)
}

/// Leaves a letter for whoever works the session now, if anybody does.
pub(crate) fn post(db: &dyn Db, letter: &Letter) -> Result<bool, Failure> {
    let now = now_ms(db.dialect());
    let sender = letter.by.as_ref().map(|by| serde_json::to_string(by).expect("names are plain JSON"));
    let posted = db.run(
        &format!(
            "INSERT INTO node_mail (tenant_id, session_id, at_ms, kind, body, sender) SELECT ?1::text, ?2::text, {now}, \
             ?3::text, ?4::text, ?5::text WHERE EXISTS (SELECT FROM leases WHERE tenant_id = ?1 AND session_id = ?2 AND owner IS NOT NULL \
             AND expires_ms > {now})"
        ),
        &[
            letter.key.tenant.as_str().into(),
            letter.key.session.as_str().into(),
            letter.kind.word().into(),
            (&letter.body).into(),
            sender.into(),
        ],
    )?;
    if posted > 0 {
        ring(db)?;
    }
    Ok(posted > 0)
}

/// The sessions of `tenant` that somebody works.
pub(crate) fn worked(db: &dyn Db, tenant: &TenantId) -> Result<Vec<SessionId>, Failure> {
    let sql = format!(
        "SELECT session_id FROM leases WHERE tenant_id = ?1 AND owner IS NOT NULL AND expires_ms > {}",
        now_ms(db.dialect())
    );
    db.all(&sql, &[tenant.as_str().into()], |row| row.string("session_id").map(SessionId::new))
}

/// Takes the letters for sessions that the store `owner` works.
pub(crate) fn collect(db: &dyn Db, owner: &str) -> Result<Vec<Letter>, Failure> {
    let sql = format!(
        "DELETE FROM node_mail AS mail USING leases WHERE leases.tenant_id = mail.tenant_id \
         AND leases.session_id = mail.session_id AND leases.owner = ?1 AND leases.expires_ms > {} \
         RETURNING mail.seq, mail.tenant_id, mail.session_id, mail.kind, mail.body, mail.sender",
        now_ms(db.dialect())
    );
    letters(db, &sql, &[owner.into()])
}

/// Takes the letters whose session nobody works any more, for the node called `node`: those of sessions that another one
/// worked last only where that is gone.
pub(crate) fn stranded(db: &dyn Db, node: &str) -> Result<Vec<Letter>, Failure> {
    let (now, gone) = (now_ms(db.dialect()), GONE_AFTER.as_millis());
    let sql = format!(
        "DELETE FROM node_mail AS mail WHERE NOT EXISTS (SELECT FROM leases WHERE leases.tenant_id = mail.tenant_id \
         AND leases.session_id = mail.session_id AND (owner IS NOT NULL AND expires_ms > {now} \
         OR leases.node <> ?1 AND EXISTS (SELECT FROM nodes WHERE nodes.name = leases.node \
         AND seen_ms > {now} - {gone}))) RETURNING mail.seq, mail.tenant_id, mail.session_id, mail.kind, mail.body, mail.sender"
    );
    letters(db, &sql, &[node.into()])
}

fn letters(db: &dyn Db, sql: &str, cells: &[crate::db::Cell<'_>]) -> Result<Vec<Letter>, Failure> {
    let read = |row: &dyn Columns| {
        let kind = row.string("kind")?;
        let foreign = || Failure::Foreign { what: "a row of `node_mail`".into(), why: format!("kind `{kind}`") };
        let (key, kind) = (key(row)?, LetterKind::of(&kind).ok_or_else(foreign)?);
        let by = match sender(row.maybe_text("sender")?.as_deref()) {
            Ok(by) => by,
            // Whether they may still say it cannot be known, so nobody hears it.
            Err(why) => {
                tracing::warn!(session = %key.session, "security.message_taken_back: who sent it cannot be read: {why}");
                return Ok(None);
            }
        };
        Ok(Some((row.int("seq")?, Letter { key, kind, body: row.string("body")?, by })))
    };
    let mut found: Vec<_> = db.all(sql, cells, read)?.into_iter().flatten().collect();
    found.sort_by_key(|(seq, _)| *seq);
    Ok(found.into_iter().map(|(_, letter)| letter).collect())
}

/// Who left a letter, as its row says; nobody where a node left it that does not say so.
fn sender(text: Option<&str>) -> Result<Option<Steerer>, serde_json::Error> {
    text.map(serde_json::from_str).transpose()
}

/// Tells every node.
pub(crate) fn tell(db: &dyn Db, id: &str, news: &[String]) -> Result<(), Failure> {
    let sql = format!("INSERT INTO node_news (at_ms, node, body) VALUES ({}, ?1, ?2)", now_ms(db.dialect()));
    for body in news {
        db.run(&sql, &[id.into(), body.into()])?;
    }
    ring(db)
}

/// What others told, newest last, as far as nobody can have missed it yet: their numbers and texts.
pub(crate) fn news(db: &dyn Db, id: &str) -> Result<Vec<(i64, String)>, Failure> {
    let sql = "SELECT seq, body FROM node_news WHERE node <> ?1 ORDER BY seq";
    db.all(sql, &[id.into()], |row| Ok((row.int("seq")?, row.string("body")?)))
}

/// Rings at every node; the words stand in rows.
fn ring(db: &dyn Db) -> Result<(), Failure> {
    db.script(&format!("NOTIFY {CHANNEL}"))
}

/// The turns that have begun and not ended, of sessions that no sub-agent began.
pub(crate) fn open_turns(db: &dyn Db) -> Result<Vec<LeftTurn>, Failure> {
    let sql = "SELECT tenant_id, session_id, agent_id, open_turn, opened FROM sessions \
               WHERE open_turn IS NOT NULL AND parent IS NULL ORDER BY last_entry";
    db.all(sql, &[], |row| {
        Ok(LeftTurn {
            key: key(row)?,
            agent: AgentId::from(row.string("agent_id")?.as_str()),
            turn_id: TurnId::from(row.string("open_turn")?.as_str()),
            died: row.flag("opened")?,
            node: None,
        })
    })
}

fn key(row: &dyn Columns) -> Result<SessionKey, Failure> {
    Ok(SessionKey {
        tenant: TenantId::from(row.string("tenant_id")?.as_str()),
        session: SessionId::from(row.string("session_id")?.as_str()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_that_cannot_be_read_is_not_nobody() {
        let anna = Steerer { user: "anna".to_owned(), key: Some("k".to_owned()) };
        assert_eq!(sender(None).unwrap(), None);
        assert_eq!(sender(Some(r#"{"user":"anna","key":"k"}"#)).unwrap(), Some(anna));
        for text in ["", "{", "null", "{}", r#"{"key":"k"}"#] {
            assert!(sender(Some(text)).is_err(), "{text}");
        }
    }
}
