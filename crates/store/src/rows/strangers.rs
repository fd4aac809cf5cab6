//! What somebody else put on the tables: a trigger, or a rule of PostgreSQL, can take away or change what was written
//! after the program was told that it is written. No step of the schema makes any, so each that stands there is a
//! stranger, and nothing is written beside one.
//!
//! It is looked for when rules are read and, within the transaction of the evidence, where it could have come since: in
//! SQLite when somebody else wrote to the file, in PostgreSQL behind the entries of the chain, whose locks keep others
//! from making one until the commit.

use domain::store::StoreError;

use crate::db::{Db, Dialect, Failure, Statement};

/// A table with another answer to conflicts than its statements have, or one that is none, swallows without a trigger. No
/// step of the schema has that word, so it is looked for alone: a comment may stand before and behind it.
const IN_SQLITE: &str = "SELECT CASE type WHEN 'trigger' THEN 'trigger' WHEN 'view' THEN 'view' ELSE 'clause' END \
                         AS kind, name, tbl_name AS place FROM sqlite_schema WHERE tbl_name COLLATE NOCASE IN \
                         ('agent_hooks', 'approvals', 'audit_checkpoints', 'audit_log', 'events', 'evidence_folded', \
                         'evidence_tail', 'holders', 'hook_breakers', 'hook_changes', 'hook_epoch', 'hook_executions', \
                         'hook_outbox', 'hook_sets', 'journal', 'pintle_schema', 'sessions', 'store_identity', \
                         'tenant_hook_budget', 'tenants', 'turns') \
                         AND (type IN ('trigger', 'view') OR (type = 'table' \
                         AND (sql LIKE '%CONFLICT%' OR sql NOT LIKE 'CREATE TABLE%'))) ORDER BY name LIMIT 1";

/// Tables of others in the same schema are theirs. A foreign key has triggers of the server's own.
macro_rules! in_postgres {
    ($what:literal) => {
        concat!(
            "SELECT ",
            $what,
            " FROM (SELECT 'trigger' AS kind, t.tgname::text AS name, c.relname::text AS place, c.relnamespace \
             FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid \
             WHERE NOT t.tgisinternal AND t.tgenabled <> 'D' \
             UNION ALL SELECT 'rule', r.rulename::text, c.relname::text, c.relnamespace \
             FROM pg_catalog.pg_rewrite r JOIN pg_catalog.pg_class c ON c.oid = r.ev_class \
             WHERE r.rulename <> '_RETURN' AND r.ev_enabled <> 'D' \
             UNION ALL SELECT CASE WHEN c.relrowsecurity THEN 'row security' ELSE 'view' END, c.relname::text, \
             c.relname::text, c.relnamespace FROM pg_catalog.pg_class c \
             WHERE c.relrowsecurity OR c.relkind NOT IN ('r', 'p', 'i', 'I', 'S', 't')) found \
             WHERE relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = pg_catalog.current_schema()) \
             AND place IN ('audit_log', 'audit_checkpoints', 'events', 'turns', 'hook_sets', 'hook_executions', \
             'agent_hooks', 'hook_breakers', 'hook_changes', 'hook_epoch', 'approvals', 'journal', 'sessions', \
             'tenants') ORDER BY name LIMIT 1"
        )
    };
}

/// Something that Pintle did not make.
#[derive(Debug)]
struct Stranger {
    kind: String,
    name: String,
    table: String,
}

impl Stranger {
    fn text(&self) -> String {
        let (table, name) = (self.table.escape_debug(), self.name.escape_debug());
        let what = match self.kind.as_str() {
            "trigger" | "rule" => format!("the table `{table}` has the {} `{name}`", self.kind),
            "clause" => format!("the table `{table}` says itself what comes of a conflict"),
            "row security" => format!("the table `{table}` has row security"),
            _ => format!("`{table}` is no table any more"),
        };
        let mend = match self.kind.as_str() {
            "trigger" | "rule" => format!("drop that {}", self.kind),
            "row security" => "switch that off".to_owned(),
            _ => "bring the right store back".to_owned(),
        };
        format!(
            "{what}, which Pintle did not make, so nothing says that what is written there stays; every gate stays shut \
             until somebody does so: {mend}, then see `pintle audit verify`"
        )
    }
}

/// Why the tables are not to be relied on, in words; nothing where they are as the steps of the schema made them.
pub(crate) fn found(db: &dyn Db) -> Result<Option<String>, Failure> {
    let sql = match db.dialect() {
        Dialect::Sqlite => IN_SQLITE,
        Dialect::Postgres => in_postgres!("kind, name, place"),
    };
    let stranger = db.one(sql, &[], |row| {
        Ok(Stranger { kind: row.string("kind")?, name: row.string("name")?, table: row.string("place")? })
    })?;
    Ok(stranger.map(|stranger| stranger.text()))
}

/// Refuses to write where there is one.
pub(crate) fn refuse(db: &dyn Db) -> Result<(), Failure> {
    match found(db)? {
        Some(why) => Err(Failure::Said(StoreError::Corrupt(why))),
        None => Ok(()),
    }
}

/// What a transaction runs behind its other statements; where it finds a row, [`refuse`] has the words. Nothing where
/// nobody can have made one since it was looked for last.
pub(crate) fn look(dialect: Dialect) -> Option<Statement<'static>> {
    match dialect {
        Dialect::Sqlite => None,
        Dialect::Postgres => Some(Statement::new(in_postgres!("1"), Vec::new())),
    }
}
