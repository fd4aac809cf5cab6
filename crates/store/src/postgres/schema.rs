//! What is settled before a connection is used, and the schema of the database.

use std::time::Duration;

use pintle_domain::approval::ApprovalKey;
use pintle_domain::node::{GONE_AFTER, may_share};
use pintle_domain::store::StoreError;

use super::link::{LOCK_TIMEOUT, Link};
use super::target::Target;
use crate::Durability;
use crate::db::{Db, Exclusive, Failure};
use crate::migration::{self, NEWEST, level_of};
use crate::rows::nodes::now_ms;

/// After so long the server ends a statement of ours: before we stop waiting for it, so that we hear why.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(25);

/// After so long the server ends a transaction in which nothing is asked: its process stands still, and others wait for
/// its locks, for as long as [`LOCK_TIMEOUT`] at most.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3);

/// Settles how a fresh connection behaves.
pub(super) fn greet(link: &Link, target: &Target, durability: Durability) -> Result<(), Failure> {
    let (lock, statement, idle) = (LOCK_TIMEOUT.as_millis(), STATEMENT_TIMEOUT.as_millis(), IDLE_TIMEOUT.as_millis());
    let synchronous = match durability {
        // As the server has it; `on` unless somebody chose otherwise.
        Durability::Commit => "",
        Durability::BeforeEffect => "SET synchronous_commit = on;",
    };
    link.script(&format!(
        "SET lock_timeout = {lock}; SET statement_timeout = {statement}; \
         SET idle_in_transaction_session_timeout = {idle}; SET client_min_messages = warning; {synchronous}"
    ))?;
    let encoding = (link as &dyn Db)
        .one("SELECT current_setting('server_encoding') AS encoding", &[], |row| row.string("encoding"))?;
    if encoding.as_deref() == Some("UTF8") {
        return Ok(());
    }
    Err(Failure::Said(StoreError::Unavailable(format!(
        "`{}` has the encoding {}, which cannot hold every text; make the database with `createdb --encoding UTF8 \
         --template template0`",
        target.name(),
        encoding.unwrap_or_default()
    ))))
}

/// The schema in which the tables of Pintle stand, or are to be made: that of the URL, else the only one of the search
/// path that has them, else the first one there.
pub(super) fn home(link: &Link, target: &Target) -> Result<String, Failure> {
    if let Some(named) = target.schema() {
        return Ok(named.to_owned());
    }
    let sql = "SELECT n.nspname::text AS name FROM pg_catalog.pg_class c \
               JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
               WHERE c.relname = 'pintle_schema' AND n.nspname = ANY (pg_catalog.current_schemas(false)) ORDER BY 1";
    let mut found = (link as &dyn Db).all(sql, &[], |row| row.string("name"))?;
    match (found.pop(), found.as_slice()) {
        (Some(only), []) => Ok(only),
        (Some(last), others) => Err(Failure::Said(StoreError::Unavailable(format!(
            "`{}` has tables of Pintle in the schemas {} and {last}: say which one with `?schema=NAME` in `store.url`",
            target.name(),
            others.join(", ")
        )))),
        (None, _) => {
            let sql = "SELECT pg_catalog.current_schema()::text AS name";
            let first = (link as &dyn Db).one(sql, &[], |row| row.maybe_string("name"))?.flatten();
            first.ok_or_else(|| {
                let name = target.name();
                Failure::Said(StoreError::Unavailable(format!(
                    "`{name}` has no schema for tables: name one that is there with `?schema=NAME` in `store.url`"
                )))
            })
        }
    }
}

/// Works in the schema `name` and no other, temporary tables last.
pub(super) fn pin(link: &Link, name: &str) -> Result<(), Failure> {
    let wanted = format!("\"{}\", pg_temp", name.replace('"', "\"\""));
    link.script(&format!("SET search_path TO {wanted}"))?;
    let sql = "SELECT pg_catalog.current_schema()::text AS name";
    let now = (link as &dyn Db).one(sql, &[], |row| row.maybe_string("name"))?.flatten();
    if now.as_deref() == Some(name) {
        return Ok(());
    }
    Err(Failure::Said(StoreError::Unavailable(format!("there is no schema `{}` to work in", name.escape_debug()))))
}

/// Brings the database to the schema `to`, all or nothing.
pub(super) fn migrate(link: &Link, target: &Target, (to, key): (u32, Option<&ApprovalKey>)) -> Result<(), Failure> {
    let to = i64::from(to);
    // A database that is up to date is not locked for it.
    if schema_of(link)? == to {
        return Ok(());
    }
    link.transact(|link| {
        link.exclude(Exclusive::Schema)?;
        // Another process may have been faster.
        let seen = schema_of(link)?;
        if !migration::is_known(seen) {
            // What the next release adds is in nobody's way.
            if level_in(link)?.is_some_and(|level| may_share(level, level_of(NEWEST))) {
                return Ok(());
            }
            return Err(Failure::Said(StoreError::Unavailable(format!(
                "`{}` was written by a newer Pintle: it has schema {seen}, this program knows {NEWEST}; update the \
                 program, or name another database in `store.url`",
                target.name()
            ))));
        }
        if seen >= i64::from(WITH_NODES) && to > seen {
            alone_enough(link, target)?;
        }
        // Giving everything to a tenant takes as long as there is data.
        link.script(
            "SET LOCAL statement_timeout = 0; CREATE TABLE IF NOT EXISTS pintle_schema (number INT NOT NULL); \
             ALTER TABLE pintle_schema ADD COLUMN IF NOT EXISTS level INT",
        )?;
        migration::run(link, seen, to, key)?;
        if to == 0 {
            return link.script("DROP TABLE pintle_schema");
        }
        link.run("DELETE FROM pintle_schema", &[])?;
        if to < i64::from(WITH_NODES) {
            // As it was: builds of that time do not know of levels.
            link.script("ALTER TABLE pintle_schema DROP COLUMN level")?;
            return link.run("INSERT INTO pintle_schema (number) VALUES (?1)", &[to.into()]).map(drop);
        }
        let level = level_of(u32::try_from(to).unwrap_or(0));
        link.run("INSERT INTO pintle_schema (number, level) VALUES (?1, ?2)", &[to.into(), level.into()]).map(drop)
    })
}

/// The step that lets nodes know of each other.
const WITH_NODES: u32 = 61;

/// Refuses to change what nodes of a release before the last one still work with.
fn alone_enough(link: &dyn Db, target: &Target) -> Result<(), Failure> {
    let sql = format!(
        "SELECT name, level FROM nodes WHERE seen_ms > {} - {} ORDER BY level LIMIT 1",
        now_ms(link.dialect()),
        GONE_AFTER.as_millis()
    );
    let oldest = link.one(&sql, &[], |row| Ok((row.string("name")?, row.count("level")?)))?;
    match oldest {
        Some((node, level)) if !may_share(u32::try_from(level).unwrap_or(0), level_of(NEWEST)) => {
            Err(Failure::Said(StoreError::Unavailable(format!(
                "the node `{node}` works with `{}`, and it is older than the release before this one: stop it first, or \
                 update one release at a time",
                target.name()
            ))))
        }
        Some(_) | None => Ok(()),
    }
}

/// The level that the database says that it has.
fn level_in(link: &dyn Db) -> Result<Option<u32>, Failure> {
    // A database of before has no such column.
    let sql = "SELECT coalesce((to_jsonb(found) ->> 'level')::bigint, 0) AS level FROM pintle_schema AS found";
    Ok(link.one(sql, &[], |row| row.count("level"))?.and_then(|level| u32::try_from(level).ok()))
}

fn schema_of(link: &dyn Db) -> Result<i64, Failure> {
    // Not `to_regclass`, which may remember what was before another process made it.
    let sql =
        "SELECT EXISTS (SELECT FROM pg_class WHERE relname = 'pintle_schema' AND pg_table_is_visible(oid)) AS there";
    let there = link.one(sql, &[], |row| row.flag("there"))?;
    if there != Some(true) {
        return Ok(0);
    }
    Ok(link.one("SELECT number FROM pintle_schema", &[], |row| row.int("number"))?.unwrap_or(0))
}
