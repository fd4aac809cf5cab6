//! Tables of somebody else's database, read as they are: whatever columns they have, and without writing anything.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use pintle_domain::json::{Number, Object, Value};
use pintle_domain::shown_url::shown_url;
use pintle_domain::store::StoreError;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use url::Url;

use crate::{Postgres, StoreOpenError, sqlite_file};

/// Most rows of one table that are read: a hundred times what one tenant may have of rules.
pub const MAX_ROWS: usize = 100_000;

/// Most bytes of one table that are read into memory.
pub const MAX_TABLE_BYTES: usize = 256 << 20;

/// The suffixes of the files that stand beside a database of SQLite while it is in use.
const COMPANIONS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// The rows that were read of a database.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForeignRows {
    /// The rows of each table that was asked for and is there; a member for each column.
    pub tables: BTreeMap<String, Vec<Object>>,
    /// How many rows each table has that was only to be counted and is there.
    pub counts: BTreeMap<String, u64>,
}

/// Reads the tables `wanted`, and counts the rows of those of `counted`, at one moment, from the database at `url`:
/// `sqlite://FILE`, taken from `folder` if it is relative, or `postgres://…`. Blocks.
///
/// # Errors
/// The URL is unknown; or the database cannot be read, or has more in one table than anybody's rules are.
pub fn read(url: &str, folder: &Path, wanted: &[&str], counted: &[&str]) -> Result<ForeignRows, StoreOpenError> {
    match url.split_once(':') {
        Some(("sqlite", rest)) => {
            let file = folder.join(sqlite_file(rest)?);
            Ok(of_file(&file, wanted, counted)?)
        }
        Some(("postgres" | "postgresql", _)) => Postgres::foreign(url, wanted, counted),
        // The rest of a foreign URL may hold a password, so only its scheme is repeated.
        Some((scheme, _)) => Err(StoreOpenError::Url(format!("unknown scheme `{scheme}`"))),
        None => Err(StoreOpenError::Url(format!("`{}` has no scheme", shown_url(url)))),
    }
}

/// The texts in `column` of those rows of `table`, in the SQLite file `file`, that have `value` in the column `named`, in
/// the order of `sorted`; of all rows where no value is given. Nothing where there is no such table. Blocks.
///
/// # Errors
/// The file cannot be read, or holds more than fits into memory.
pub fn texts(file: &Path, wanted: &ForeignTexts<'_>) -> Result<Vec<String>, StoreError> {
    let failed = |why: rusqlite::Error| StoreError::Unavailable(format!("`{}` cannot be read: {why}", file.display()));
    let connection = reading(file).map_err(failed)?;
    let ForeignTexts { table, column, sorted, only } = *wanted;
    if !is_there(&connection, table).map_err(failed)? {
        return Ok(Vec::new());
    }
    let (name, value) = only.unzip();
    let condition = name.map(|name| format!("WHERE \"{name}\" = ?1")).unwrap_or_default();
    let sql = format!("SELECT \"{column}\" FROM \"{table}\" {condition} ORDER BY \"{sorted}\"");
    let mut statement = connection.prepare(&sql).map_err(failed)?;
    let mut read = statement.query(rusqlite::params_from_iter(value)).map_err(failed)?;
    let (mut found, mut bytes) = (Vec::new(), 0_usize);
    while let Some(row) = read.next().map_err(failed)? {
        let value = row.get_ref(0).map_err(failed)?;
        bytes = bytes.saturating_add(size(value));
        if bytes > MAX_TABLE_BYTES {
            return Err(StoreError::Corrupt(format!(
                "`{}` has more than {MAX_TABLE_BYTES} bytes there",
                file.display()
            )));
        }
        match value {
            ValueRef::Text(text) | ValueRef::Blob(text) => found.push(String::from_utf8_lossy(text).into_owned()),
            ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => {}
        }
    }
    Ok(found)
}

/// Which texts of a foreign table are wanted; all names are those of the one who asks, never those of somebody else.
#[derive(Clone, Copy, Debug)]
pub struct ForeignTexts<'a> {
    /// The table.
    pub table: &'a str,
    /// The column.
    pub column: &'a str,
    /// The column by which they are in order.
    pub sorted: &'a str,
    /// A column, and what it has to have.
    pub only: Option<(&'a str, &'a str)>,
}

/// Collects rows within the bounds.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    rows: Vec<Object>,
    bytes: usize,
}

impl Rows {
    /// One more row, which took so many bytes.
    pub(crate) fn push(&mut self, table: &str, row: Object, bytes: usize) -> Result<(), StoreError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.rows.len() >= MAX_ROWS || self.bytes > MAX_TABLE_BYTES {
            return Err(StoreError::Corrupt(format!(
                "table `{table}` has more than {MAX_ROWS} rows or {MAX_TABLE_BYTES} bytes, which are no rules"
            )));
        }
        self.rows.push(row);
        Ok(())
    }

    /// All of them.
    pub(crate) fn finish(self) -> Vec<Object> {
        self.rows
    }
}

fn of_file(file: &Path, wanted: &[&str], counted: &[&str]) -> Result<ForeignRows, StoreError> {
    let failed = |why: rusqlite::Error| StoreError::Unavailable(format!("`{}` cannot be read: {why}", file.display()));
    if !file.is_file() {
        return Err(StoreError::Unavailable(format!("there is no file `{}`", file.display())));
    }
    let mut connection = reading(file).map_err(failed)?;
    // One moment for all tables.
    let moment = connection.transaction().map_err(failed)?;
    let mut found = ForeignRows::default();
    for table in wanted {
        if is_there(&moment, table).map_err(failed)? {
            found.tables.insert((*table).to_owned(), rows(&moment, table, file)?);
        }
    }
    for table in counted {
        if is_there(&moment, table).map_err(failed)? {
            let sql = format!("SELECT count(*) FROM \"{table}\"");
            let count: i64 = moment.query_row(&sql, [], |row| row.get(0)).map_err(failed)?;
            found.counts.insert((*table).to_owned(), u64::try_from(count).unwrap_or(0));
        }
    }
    Ok(found)
}

/// A connection that changes neither the file nor what stands beside it. To read a file that is in use takes its
/// companions; one that is not in use is opened without making any.
fn reading(file: &Path) -> rusqlite::Result<Connection> {
    let in_use = COMPANIONS.iter().any(|end| beside(file, end).exists());
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let absolute = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    match Url::from_file_path(&absolute) {
        Ok(url) if !in_use => {
            Connection::open_with_flags(format!("{url}?immutable=1"), flags | OpenFlags::SQLITE_OPEN_URI)
        }
        Ok(_) | Err(()) => Connection::open_with_flags(file, flags),
    }
}

fn beside(file: &Path, end: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(end);
    name.into()
}

fn is_there(connection: &Connection, table: &str) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) FROM sqlite_schema WHERE name = ?1 AND type IN ('table', 'view')";
    connection.query_row(sql, [table], |row| row.get::<_, i64>(0)).map(|found| found > 0)
}

fn rows(connection: &Connection, table: &str, file: &Path) -> Result<Vec<Object>, StoreError> {
    let failed = |why: rusqlite::Error| {
        StoreError::Unavailable(format!("table `{table}` of `{}` cannot be read: {why}", file.display()))
    };
    let mut statement = connection.prepare(&format!("SELECT * FROM \"{table}\"")).map_err(failed)?;
    let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
    let mut found = Rows::default();
    let mut read = statement.query([]).map_err(failed)?;
    while let Some(row) = read.next().map_err(failed)? {
        let (mut object, mut bytes) = (Object::new(), 0);
        for (i, column) in columns.iter().enumerate() {
            let value = row.get_ref(i).map_err(failed)?;
            bytes += column.len() + size(value);
            object.insert(column.clone(), json(value));
        }
        found.push(table, object, bytes)?;
    }
    Ok(found.finish())
}

fn size(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => 8,
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
    }
}

fn json(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => Number::from_f64(number).map_or(Value::Null, Value::Number),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned().into(),
    }
}

#[cfg(test)]
mod tests {
    use pintle_domain::json::json;
    use pintle_testkit::postgres::Server;

    use super::*;

    fn object(value: Value) -> Object {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_file_is_read_as_it_is_and_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("up stream.db");
        let sql = "CREATE TABLE hooks (id TEXT, enabled INTEGER, config BLOB, share REAL, matcher TEXT);
                   INSERT INTO hooks VALUES ('a', 1, x'7b7d', 0.5, NULL);
                   CREATE TABLE hook_executions (id TEXT); INSERT INTO hook_executions VALUES ('1'), ('2');";
        Connection::open(&file).unwrap().execute_batch(&format!("PRAGMA journal_mode = WAL; {sql}")).unwrap();
        let before = fs::read(&file).unwrap();
        let found =
            read("sqlite://up stream.db", folder.path(), &["hooks", "agent_hooks"], &["hook_executions"]).unwrap();
        let row = object(json!({"id": "a", "enabled": 1, "config": "{}", "share": 0.5, "matcher": null}));
        assert_eq!(found.tables, BTreeMap::from([("hooks".to_owned(), vec![row])]));
        assert_eq!(found.counts, BTreeMap::from([("hook_executions".to_owned(), 2)]));
        assert_eq!(fs::read(&file).unwrap(), before);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing was made beside it");
    }

    #[test]
    fn what_another_process_has_not_folded_in_yet_is_read_too() {
        let folder = tempfile::tempdir().unwrap();
        let writer = Connection::open(folder.path().join("live.db")).unwrap();
        writer
            .execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE hooks (id TEXT); INSERT INTO hooks VALUES ('a')")
            .unwrap();
        let found = read("sqlite://live.db", folder.path(), &["hooks"], &[]).unwrap();
        assert_eq!(found.tables["hooks"], [object(json!({"id": "a"}))]);
        writer.execute("INSERT INTO hooks VALUES ('b')", []).unwrap();
    }

    #[test]
    fn texts_of_one_column_are_read_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("live.db");
        let sql = "CREATE TABLE part (id TEXT, at INT, data TEXT);
                   INSERT INTO part VALUES ('a', 2, 'second'), ('b', 3, 'other'), ('a', 1, 'first'), ('a', 4, NULL);";
        Connection::open(&file).unwrap().execute_batch(sql).unwrap();
        let of = |table: &str, only: Option<(&str, &str)>| {
            texts(&file, &ForeignTexts { table, column: "data", sorted: "at", only }).unwrap()
        };
        assert_eq!(of("part", Some(("id", "a"))), ["first", "second"]);
        assert_eq!(of("part", None), ["first", "second", "other"]);
        assert_eq!(of("none", None), [""; 0]);
        let wrong = ForeignTexts { table: "part", column: "none", sorted: "at", only: None };
        assert!(texts(&folder.path().join("none.db"), &wrong).is_err());
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("letter.txt"), "Dear Ada, this is no database, whatever its name says.").unwrap();
        let check = |url: &str| read(url, folder.path(), &["hooks"], &[]).unwrap_err().to_string();
        assert!(check("sqlite://none.db").contains("there is no file"));
        assert!(check("sqlite://letter.txt").contains("file is not a database"));
        assert!(check("mysql://ada:secret@db/x").starts_with("store url: unknown scheme `mysql`"));
    }

    #[test]
    fn rows_of_a_server_have_their_types_as_json() {
        let server = Server::start();
        let url = server.fresh_database();
        server.execute(
            &url,
            "CREATE TABLE hooks (id UUID, agent_ids UUID[], enabled BOOL, config JSONB, at TIMESTAMPTZ, n INT);
             INSERT INTO hooks VALUES ('0193a5b0-7000-7000-8000-0000000000aa',
               ARRAY['0193a5b0-7000-7000-8000-0000000000ab'::uuid], true, '{\"url\": \"https://a\"}', NULL, 7)",
        );
        let found = read(&url, Path::new("/"), &["hooks", "agents"], &["hooks"]).unwrap();
        let row = object(json!({
            "id": "0193a5b0-7000-7000-8000-0000000000aa", "agent_ids": ["0193a5b0-7000-7000-8000-0000000000ab"],
            "enabled": true, "config": {"url": "https://a"}, "at": null, "n": 7,
        }));
        assert_eq!(found.tables, BTreeMap::from([("hooks".to_owned(), vec![row])]));
        assert_eq!(found.counts["hooks"], 1);
    }
}
