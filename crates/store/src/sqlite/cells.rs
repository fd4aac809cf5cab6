//! A connection of SQLite as a [`Db`].

use std::borrow::Cow;
use std::ptr;

use rusqlite::ffi::SQLITE_CONSTRAINT_FOREIGNKEY;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{CachedStatement, Connection, Row, ToSql, params_from_iter};

use crate::db::{Cell, Columns, Db, Dialect, Exclusive, Failure, Statement, Take};

impl ToSql for Cell<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::Owned(Value::Null),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
            Self::Int(number) => ToSqlOutput::Owned(Value::Integer(*number)),
            Self::Flag(flag) => ToSqlOutput::Owned(Value::Integer((*flag).into())),
            Self::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        })
    }
}

impl Columns for Row<'_> {
    fn maybe_text(&self, column: &str) -> Result<Option<Cow<'_, str>>, Failure> {
        let text = self.get_ref(column)?.as_str_or_null().map_err(rusqlite::Error::from)?;
        Ok(text.map(Cow::Borrowed))
    }

    fn maybe_int(&self, column: &str) -> Result<Option<i64>, Failure> {
        Ok(self.get(column)?)
    }

    fn maybe_bytes(&self, column: &str) -> Result<Option<Vec<u8>>, Failure> {
        Ok(self.get(column)?)
    }

    fn flag(&self, column: &str) -> Result<bool, Failure> {
        Ok(self.get(column)?)
    }
}

/// Whether nothing was written because a row was not there that the new one was to point at.
fn is_orphan(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == SQLITE_CONSTRAINT_FOREIGNKEY)
}

impl Db for Connection {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn run(&self, sql: &str, cells: &[Cell<'_>]) -> Result<u64, Failure> {
        Ok(self.prepare_cached(sql)?.execute(params_from_iter(cells))? as u64)
    }

    fn run_each(&self, statements: &[&Statement<'_>]) -> Result<Vec<u64>, Failure> {
        // There are few kinds of them, and looking for one takes a part of the time that running it does.
        let mut kinds: Vec<(&str, CachedStatement<'_>)> = Vec::new();
        let run = |statement: &&Statement<'_>| {
            let known = kinds.iter().position(|(sql, _)| ptr::eq(*sql, statement.sql));
            let known = match known {
                Some(known) => known,
                None => {
                    kinds.push((statement.sql, self.prepare_cached(statement.sql)?));
                    kinds.len() - 1
                }
            };
            match (kinds[known].1.execute(params_from_iter(&statement.cells)), statement.orphan) {
                (Err(error), Some(orphan)) if is_orphan(&error) => self.run(orphan, &statement.cells),
                (touched, _) => Ok(touched? as u64),
            }
        };
        statements.iter().map(run).collect()
    }

    fn each(&self, sql: &str, cells: &[Cell<'_>], take: &mut Take<'_>) -> Result<(), Failure> {
        let mut statement = self.prepare_cached(sql)?;
        let mut rows = statement.query(params_from_iter(cells))?;
        while let Some(row) = rows.next()? {
            take(row)?;
        }
        Ok(())
    }

    fn script(&self, sql: &str) -> Result<(), Failure> {
        Ok(self.execute_batch(sql)?)
    }

    /// Whoever writes has the file alone.
    fn exclude(&self, _what: Exclusive) -> Result<(), Failure> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_value_comes_back() {
        let connection = Connection::open_in_memory().unwrap();
        let db: &dyn Db = &connection;
        db.script("CREATE TABLE kinds (number INTEGER, flag INTEGER, bytes BLOB, text TEXT) STRICT").unwrap();
        let bytes = Cell::Bytes(vec![0, 255, 0xfd].into());
        let row = |number: Option<i64>| vec![number.into(), true.into(), bytes.clone(), "nul \0".into()];
        let sql = "INSERT INTO kinds VALUES (?1, ?2, ?3, ?4)";
        db.run_all(&[
            Statement::new(sql, row(Some(i64::MIN))),
            Statement::new(sql, vec![Cell::Null, false.into(), Cell::Null, Cell::Null]),
        ])
        .unwrap();
        let read = |row: &dyn Columns| {
            Ok((row.maybe_int("number")?, row.flag("flag")?, row.maybe_bytes("bytes")?, row.maybe_string("text")?))
        };
        let found = db.all("SELECT * FROM kinds ORDER BY rowid", &[], read).unwrap();
        let full = (Some(i64::MIN), true, Some(vec![0, 255, 0xfd]), Some("nul \0".to_owned()));
        assert_eq!(found, [full, (None, false, None, None)]);
        let missing = db.one("SELECT text FROM kinds WHERE text IS NULL", &[], |row| row.string("text"));
        assert!(matches!(missing, Err(Failure::Foreign { what, .. }) if what == "column `text`"));
    }

    #[test]
    fn a_row_that_points_at_nothing_is_written_in_its_other_form() {
        let connection = Connection::open_in_memory().unwrap();
        let db: &dyn Db = &connection;
        db.script(
            "PRAGMA foreign_keys = ON; CREATE TABLE hooks (id TEXT PRIMARY KEY) STRICT; INSERT INTO hooks VALUES ('a'); \
             CREATE TABLE runs (n INTEGER PRIMARY KEY, hook TEXT REFERENCES hooks (id)) STRICT",
        )
        .unwrap();
        let orphan = Some("INSERT INTO runs VALUES (?1, (SELECT id FROM hooks WHERE id = ?2))");
        let run = |n: i64, hook: &'static str, orphan| Statement {
            sql: "INSERT INTO runs VALUES (?1, ?2)",
            cells: vec![n.into(), hook.into()],
            orphan,
        };
        let runs = [run(1, "a", orphan), run(2, "gone", orphan), run(3, "a", orphan)];
        assert_eq!(db.run_each(&runs.iter().collect::<Vec<_>>()).unwrap(), [1, 1, 1]);
        let found = db.all("SELECT hook FROM runs ORDER BY n", &[], |row| row.maybe_string("hook")).unwrap();
        assert_eq!(found, [Some("a".to_owned()), None, Some("a".to_owned())]);
        // Whatever else is wrong stays wrong, and so is a row that has no other form.
        for wrong in [run(1, "gone", orphan), run(4, "gone", None)] {
            assert!(matches!(db.run_each(&[&wrong]), Err(Failure::Sqlite(_))), "{wrong:?}");
        }
    }
}
