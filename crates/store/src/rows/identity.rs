//! Those who may ask, as rows: members, keys, links and sessions of the console, what they use.

pub(crate) mod acceptance;
pub(crate) mod console;
pub(crate) mod keys;
pub(crate) mod members;
pub(crate) mod other_key;
pub(crate) mod sealed_anew;
pub(crate) mod sealed_row;
pub(crate) mod seals;
pub(crate) mod uses;

use std::str::FromStr;

use jiff::Timestamp;
use pintle_domain::id::TenantId;
use pintle_domain::store::StoreError;

use crate::db::{Columns, Db, Failure};
use crate::rules;

/// What counts that something was taken away.
pub(crate) fn now(db: &dyn Db) -> Result<u64, Failure> {
    let found = db.one("SELECT epoch FROM identity_epoch WHERE id = 1", &[], |row| row.count("epoch"))?;
    found.ok_or_else(|| Failure::Foreign { what: "table `identity_epoch`".into(), why: "its row is gone".into() })
}

/// Something is taken away from somebody.
fn raise(db: &dyn Db) -> Result<(), Failure> {
    db.run("UPDATE identity_epoch SET epoch = epoch + 1 WHERE id = 1", &[]).map(drop)
}

/// The word in `column`, read.
fn word<T: FromStr<Err = String>>(row: &dyn Columns, column: &str) -> Result<T, Failure> {
    row.text(column)?.parse().map_err(|why| Failure::Foreign { what: format!("column `{column}`"), why })
}

/// The moment in `column` as it is shown.
fn shown_at(row: &dyn Columns, column: &str) -> Result<String, Failure> {
    maybe_at(row, column).map(Option::unwrap_or_default)
}

fn maybe_at(row: &dyn Columns, column: &str) -> Result<Option<String>, Failure> {
    let Some(text) = row.maybe_text(column)? else { return Ok(None) };
    let at: Result<Timestamp, _> = text.parse();
    at.map(|at| Some(rules::moment(at)))
        .map_err(|why| Failure::Foreign { what: format!("column `{column}`"), why: why.to_string() })
}

/// A moment that is shown, as a column has it.
fn column_of(at: &str) -> Result<String, Failure> {
    let moment: Result<Timestamp, _> = at.parse();
    moment
        .map(rules::column)
        .map_err(|why| Failure::Said(StoreError::Unavailable(format!("the moment \"{at}\" cannot be kept: {why}"))))
}

/// All rows of a query: those that can be read, and a line for each that cannot.
fn every<T>(
    db: &dyn Db,
    sql: &str,
    read: impl Fn(&dyn Columns) -> Result<T, Failure>,
) -> Result<(Vec<T>, Vec<String>), Failure> {
    let (mut rows, mut odd) = (Vec::new(), Vec::new());
    db.each(sql, &[], &mut |row| {
        match read(row) {
            Ok(row) => rows.push(row),
            Err(Failure::Foreign { what, why }) => odd.push(format!("a row grants nothing: {what}: {why}")),
            Err(other) => return Err(other),
        }
        Ok(())
    })?;
    Ok((rows, odd))
}

fn tenant_in(row: &dyn Columns) -> Result<TenantId, Failure> {
    row.string("tenant_id").map(TenantId::new)
}

/// An id as columns have it; nothing can be found under one that is not a UUID.
fn uuid(id: &str) -> Option<String> {
    rules::uuid(id)
}
