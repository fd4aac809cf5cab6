//! Tables of somebody else's database on a server.

use crate::db::{Db, Failure};
use crate::foreign::{ForeignRows, Rows};
use crate::{Durability, StoreOpenError, body};

use super::base::Base;
use super::{Postgres, target};

impl Postgres {
    /// Reads the tables `wanted` and counts those of `counted`, at one moment. See [`crate::foreign::read`].
    pub(crate) fn foreign(url: &str, wanted: &[&str], counted: &[&str]) -> Result<ForeignRows, StoreOpenError> {
        let base = Base::new(target(url)?.written("the URL that you gave"), Durability::Commit)?;
        let link = base.connect()?;
        let read = || {
            // The server itself sees to it that nothing is written.
            link.script("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
            let found = all(&link, wanted, counted)?;
            link.script("COMMIT")?;
            Ok(found)
        };
        Ok(read().map_err(|failure| base.target.error(failure))?)
    }
}

fn all(db: &dyn Db, wanted: &[&str], counted: &[&str]) -> Result<ForeignRows, Failure> {
    let mut found = ForeignRows::default();
    for table in wanted {
        if is_there(db, table)? {
            found.tables.insert((*table).to_owned(), rows(db, table)?.finish());
        }
    }
    for table in counted {
        if is_there(db, table)? {
            let count = db.one(&format!("SELECT count(*) AS rows FROM \"{table}\""), &[], |row| row.count("rows"))?;
            found.counts.insert((*table).to_owned(), count.unwrap_or(0));
        }
    }
    Ok(found)
}

fn is_there(db: &dyn Db, table: &str) -> Result<bool, Failure> {
    let sql = format!("SELECT to_regclass('\"{table}\"')::text AS found");
    Ok(db.one(&sql, &[], |row| row.maybe_string("found"))?.flatten().is_some())
}

fn rows(db: &dyn Db, table: &str) -> Result<Rows, Failure> {
    let mut found = Rows::default();
    // As JSON, a row needs no column to be known.
    db.each(&format!("SELECT to_jsonb(t)::text AS row FROM \"{table}\" t"), &[], &mut |row| {
        let text = row.text("row")?;
        let object = body::read(&text).map_err(|why| Failure::Foreign { what: format!("a row of `{table}`"), why })?;
        found.push(table, object, text.len()).map_err(Failure::Said)
    })?;
    Ok(found)
}
