//! A connection of SQLite as a [`Db`].

use std::borrow::Cow;

use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, Row, ToSql, params_from_iter};

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

impl Db for Connection {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn run(&self, sql: &str, cells: &[Cell<'_>]) -> Result<u64, Failure> {
        Ok(self.prepare_cached(sql)?.execute(params_from_iter(cells))? as u64)
    }

    fn run_each(&self, statements: &[&Statement<'_>]) -> Result<Vec<u64>, Failure> {
        statements.iter().map(|statement| self.run(statement.sql, &statement.cells)).collect()
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
            Statement { sql, cells: row(Some(i64::MIN)) },
            Statement { sql, cells: vec![Cell::Null, false.into(), Cell::Null, Cell::Null] },
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
}
