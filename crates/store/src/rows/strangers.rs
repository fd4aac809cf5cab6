//! What somebody else did to the tables. A trigger, or a rule of PostgreSQL, can take away or change what was written
//! after the program was told that it is written; a foreign key that cascades can do so later, and without what keeps
//! rows unique or whole, what is written means something else. So each table has to have the shape that the steps of the
//! schema gave it, and nothing on it; nothing is written beside what is otherwise. What somebody keeps beside is theirs.
//!
//! It is looked for when rules are read and, within the transaction of the evidence, where it could have come since: in
//! SQLite when somebody else wrote to the file. In PostgreSQL what swallows is looked for behind the entries of the
//! chain, whose locks keep others from making one until the commit; the shape, which takes longer, only with the rules.

use std::sync::{Mutex, PoisonError};

use pintle_domain::store::StoreError;

use self::shape::{Difference, Parts};
use crate::db::{Columns, Db, Dialect, Failure, Statement};

mod shape;

/// Everything that there is, as one text: a line for each thing, its kind and its table first, so that no name of one
/// looks like another.
const IN_SQLITE: &str = "SELECT group_concat(type || char(31) || tbl_name || char(31) || name || char(31) \
                         || coalesce(sql, ''), char(30)) AS shape FROM sqlite_schema";

/// The tables of Pintle. Those of others in the same schema are theirs.
macro_rules! tables {
    () => {
        "('agent_hooks', 'api_keys', 'approvals', 'audit_checkpoints', 'audit_log', 'console_links', \
         'console_sessions', 'door_holds', 'door_spending', 'events', 'gateway_uses', 'hook_breakers', 'hook_changes', \
         'hook_epoch', 'hook_executions', 'hook_outbox', 'hook_sets', 'identity_epoch', 'journal', 'leases', \
         'members', 'node_mail', 'node_news', 'nodes', 'passed_texts', 'removed_members', 'repeats', 'sessions', \
         'store_identity', 'tenant_hook_budget', 'tenant_stops', 'tenants', 'turns', 'upload_pieces', 'uploads', \
         'webhook_cursor', 'webhook_endpoints', 'webhook_outbox', 'webhook_told')"
    };
}

/// The schema that Pintle works in.
macro_rules! here {
    () => {
        "(SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = pg_catalog.current_schema())"
    };
}

/// What swallows. A foreign key has triggers of the server's own.
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
             WHERE relnamespace = ",
            here!(),
            " AND place IN ",
            tables!(),
            " ORDER BY name LIMIT 1"
        )
    };
}

/// The shape, a row for each part: what stands in the catalogue as it is, and behind it what the server writes anew. Other
/// indexes than unique ones change nothing but how long something takes.
const SHAPE_IN_POSTGRES: &str = concat!(
    "SELECT c.relname::text AS place, part.what::text AS what, part.text::text AS text \
     FROM pg_catalog.pg_class c CROSS JOIN LATERAL (\
     SELECT 'table ' || c.relkind::text || c.relpersistence::text AS what, NULL AS text \
     UNION ALL SELECT 'column ' || a.attname::text || ' ' || pg_catalog.format_type(a.atttypid, a.atttypmod) \
     || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END \
     || CASE WHEN a.attidentity::text = '' THEN '' ELSE ' IDENTITY' END \
     || CASE WHEN a.attcollation = t.typcollation THEN '' ELSE ' COLLATE' END \
     || CASE WHEN d.adbin IS NULL THEN '' WHEN a.attgenerated::text = '' THEN ' DEFAULT' ELSE ' GENERATED' END, \
     pg_catalog.pg_get_expr(d.adbin, d.adrelid) \
     FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_type t ON t.oid = a.atttypid \
     LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum \
     WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
     UNION ALL SELECT 'constraint', pg_catalog.pg_get_constraintdef(n.oid) \
     FROM pg_catalog.pg_constraint n WHERE n.conrelid = c.oid AND n.contype IN ('p', 'u', 'f', 'c', 'x') \
     UNION ALL SELECT CASE WHEN i.indisvalid THEN 'unique index' ELSE 'unfinished unique index' END, \
     substring(pg_catalog.pg_get_indexdef(i.indexrelid) from ' USING (.*)') \
     FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND NOT EXISTS (\
     SELECT FROM pg_catalog.pg_constraint n WHERE n.conindid = i.indexrelid AND n.contype IN ('p', 'u', 'x'))\
     ) part WHERE c.relkind IN ('r', 'p') AND c.relnamespace = ",
    here!(),
    " AND c.relname IN ",
    tables!()
);

/// What a file held when its shape was right the last time: it is compared again whenever somebody else wrote to it.
static RIGHT: Mutex<String> = Mutex::new(String::new());

/// The step of the schema that the shapes are of: the newest one.
pub(crate) const SHAPE_OF: u32 = 73;

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
        match self.kind.as_str() {
            "trigger" | "rule" => shut(
                &format!("the table `{table}` has the {} `{name}`", self.kind),
                &format!("drop that {}", self.kind),
            ),
            "row security" => shut(&format!("the table `{table}` has row security"), "switch that off"),
            _ => shut(&format!("`{table}` is not a table any more"), "bring the right store back"),
        }
    }
}

/// Why nothing is written, and how to `mend` it.
fn shut(what: &str, mend: &str) -> String {
    format!(
        "{what}, which Pintle did not make, so nothing says that what is written there stays; every gate stays shut \
         until somebody does so: {mend}, then see `pintle audit verify`"
    )
}

fn misshapen(difference: &Difference) -> String {
    shut(&difference.to_string(), "make it as it was, or bring the right store back")
}

/// Why the tables are not to be relied on, in words; nothing where they are as the steps of the schema made them.
pub(crate) fn found(db: &dyn Db) -> Result<Option<String>, Failure> {
    match db.dialect() {
        Dialect::Sqlite => found_in_file(db),
        Dialect::Postgres => {
            let read = |row: &dyn Columns| {
                Ok(Stranger { kind: row.string("kind")?, name: row.string("name")?, table: row.string("place")? })
            };
            if let Some(stranger) = db.one(in_postgres!("kind, name, place"), &[], read)? {
                return Ok(Some(stranger.text()));
            }
            if is_newer(db)? {
                // The next release may have added to them.
                return Ok(None);
            }
            let seen = parts_on_server(db)?;
            Ok(shape::in_postgres().difference(&seen).map(|difference| misshapen(&difference)))
        }
    }
}

/// Whether a newer program has changed the schema.
fn is_newer(db: &dyn Db) -> Result<bool, Failure> {
    let number = db.one("SELECT number FROM pintle_schema", &[], |row| row.count("number"))?;
    Ok(number.is_some_and(|number| number > u64::from(SHAPE_OF)))
}

fn parts_on_server(db: &dyn Db) -> Result<Parts, Failure> {
    let mut parts = Parts::default();
    db.each(SHAPE_IN_POSTGRES, &[], &mut |row| {
        parts.add(&row.text("place")?, shape::catalogued(&row.text("what")?, row.maybe_text("text")?.as_deref()));
        Ok(())
    })?;
    Ok(parts)
}

fn found_in_file(db: &dyn Db) -> Result<Option<String>, Failure> {
    let text = text_of_file(db)?;
    let mut right = RIGHT.lock().unwrap_or_else(PoisonError::into_inner);
    if *right == text {
        return Ok(None);
    }
    let expected = shape::in_sqlite();
    let difference = match parts_in_file(&text, |table| expected.has(table)) {
        Ok(seen) => expected.difference(&seen),
        Err(stranger) => return Ok(Some(stranger.text())),
    };
    if difference.is_none() {
        *right = text;
    }
    Ok(difference.map(|difference| misshapen(&difference)))
}

fn text_of_file(db: &dyn Db) -> Result<String, Failure> {
    Ok(db.one(IN_SQLITE, &[], |row| row.maybe_string("shape"))?.flatten().unwrap_or_default())
}

/// The parts of the tables that are `ours`, of what a file holds.
///
/// # Errors
/// There is something else on one of them, or in its place.
fn parts_in_file(text: &str, ours: impl Fn(&str) -> bool) -> Result<Parts, Stranger> {
    let mut parts = Parts::default();
    for thing in text.split('\u{1e}') {
        let mut columns = thing.splitn(4, '\u{1f}').map(str::to_owned);
        let mut column = || columns.next().unwrap_or_default();
        let (kind, table, name, sql) = (column(), column().to_ascii_lowercase(), column(), column());
        match kind.as_str() {
            _ if !ours(&table) => {}
            "trigger" | "view" => return Err(Stranger { kind, name, table }),
            "table" => shape::declared(&sql).into_iter().for_each(|part| parts.add(&table, part)),
            // Other indexes change nothing but how long something takes.
            _ => shape::unique(&sql).into_iter().for_each(|part| parts.add(&table, part)),
        }
    }
    Ok(parts)
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pintle_testkit::postgres::Server;

    use super::*;
    use crate::Durability;
    use crate::database::Database as _;
    use crate::postgres::Postgres;
    use crate::sqlite::Sqlite;

    /// The variable that writes the shapes down that the steps of the schema come to now.
    const KEEP: &str = "PINTLE_KEEP_SHAPE";

    fn check(name: &str, known: &Parts, seen: &Parts) {
        if std::env::var_os(KEEP).is_some() {
            let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/rows/strangers").join(name);
            std::fs::write(file, seen.lines()).unwrap();
            return;
        }
        assert_eq!(known, seen, "{name} is not what the steps of the schema come to; write it anew with {KEEP}=1");
    }

    #[test]
    fn what_is_written_down_is_what_the_steps_of_the_schema_make() {
        let folder = tempfile::tempdir().unwrap();
        let store = Sqlite::open(&folder.path().join("pintle.db"), Durability::Commit).unwrap();
        let seen = store
            .0
            .read(|db| Ok(parts_in_file(&text_of_file(db)?, |table| !table.starts_with("sqlite_")).unwrap()))
            .unwrap();
        check("sqlite.txt", shape::in_sqlite(), &seen);
        let server = Server::start();
        let store = Postgres::open(&server.fresh_database(), Durability::Commit).unwrap();
        let seen = store.0.read(|db| parts_on_server(db)).unwrap();
        check("postgres.txt", shape::in_postgres(), &seen);
    }
}
