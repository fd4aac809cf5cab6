//! Rows: the record of what hooks did, the journals of conversations and the questions for persons, kept in SQLite, in
//! PostgreSQL or in memory behind the same ports.
//!
//! [`open`] picks the backend by URL. What is handed over with [`RecordStore::keep`] or [`SessionStore::append`] is
//! written by a thread of the store; `done` is called once it is as durable as [`Durability`] says.
//!
//! | module | holds |
//! |---|---|
//! | `ports`, `rows` | the transaction behind each method; the SQL, written once for all databases |
//! | `db`, `database`, `migration` | what the databases share; the schema, step by step |
//! | `sqlite`, `postgres`, `memory` | the backends |
//! | `evidence`, `body`, `jsonb`, `progress`, `refusal` | evidence from records, JSON in columns, side effects of journal entries, error texts |
//! | `keyring`, `sealing`, `rotation` | secrets in rows, the keys, and changing them |
//! | `anchor_file`, `anchoring` | compares a store with its anchor |
//! | `lock_order`, `file_lock` | in which order locks are taken, and for how long those of files are waited for |
//! | `room`, `timing`, `rules`, `place`, `serving`, `foreign` | backpressure, hook timings, rule changes, locks, other programs' databases |

pub mod anchor_file;
mod anchoring;
mod body;
pub mod database;
mod db;
mod evidence;
pub mod file_lock;
pub mod foreign;
mod jsonb;
pub mod keyring;
mod lock_order;
pub mod memory;
mod migration;
mod place;
mod ports;
pub mod postgres;
mod progress;
mod refusal;
pub mod room;
pub mod rotation;
mod rows;
mod rules;
mod sealing;
mod serving;
pub mod sqlite;
pub mod timing;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use pintle_domain::id::{EventId, TenantId, TurnId};
use pintle_domain::json::Object;
use pintle_domain::node::NodeKeys;
use pintle_domain::rule::Rule;
use pintle_domain::shown_url::shown_url;
use pintle_domain::store::{
    Actor, ApprovalStore, AuditStore, BudgetStore, ExecutionStore, IdentityStore, NodeStore, OutboxStore, RecordStore,
    RepeatStore, RuleStore, SessionKey, SessionStore, SpendingStore, StoreError, StoredTurn, TurnPage, TurnQuery,
    UploadStore, WebhookStore,
};
use serde::Deserialize;

use keyring::Keyring;
use rows::rotation::{RotationBatch, SealedColumn};

pub use anchor_file::AnchorFile;
pub use body::MAX_BODY_BYTES;
pub use memory::Memory;
pub use postgres::Postgres;
pub use progress::MAX_TITLE_CHARS;
pub use sealing::StoreKeys;
pub use serving::ServeLock;
pub use sqlite::Sqlite;
pub use timing::HookTiming;

/// When a record counts as kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// It survives the death of the process: it is with the operating system.
    #[default]
    Commit,
    /// It survives the loss of power: it is on the disk.
    BeforeEffect,
}

/// A store of any kind: all that the product keeps, behind one handle.
pub trait Store:
    RecordStore
    + SessionStore
    + ApprovalStore
    + RuleStore
    + BudgetStore
    + OutboxStore
    + ExecutionStore
    + AuditStore
    + IdentityStore
    + UploadStore
    + RepeatStore
    + SpendingStore
    + WebhookStore
    + NodeStore
    + fmt::Debug
{
    /// How long hooks took, over the newest `limit` events that are no tests. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn hook_timings(&self, limit: usize) -> Result<Vec<HookTiming>, StoreError>;

    /// The newest `limit` turns that are no tests and began no earlier than `since`, newest first. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn turns(
        &self,
        tenant: Option<&TenantId>,
        since: Option<Timestamp>,
        limit: usize,
    ) -> Result<Vec<StoredTurn>, StoreError>;

    /// The turns that `query` asks for. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn turn_page(&self, query: &TurnQuery) -> Result<TurnPage, StoreError>;

    /// Forgets at most `limit` events that are older than `before`, the oldest first, and what only they used. Says how
    /// many. Blocks.
    ///
    /// # Errors
    /// The store cannot be written.
    fn forget_events(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError>;

    /// Which of the events `told`, each with when it was, are gone though an older one is still there: what is forgotten
    /// goes from the oldest on. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn missing_events(&self, told: &[(EventId, Timestamp)]) -> Result<Vec<EventId>, StoreError>;

    /// Seals at most `limit` values of `what` with the key of `keyring` that seals now, of rows after `after`, in one
    /// transaction. Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    fn rotate(
        &self,
        what: SealedColumn,
        keyring: &Keyring,
        after: Option<&str>,
        limit: usize,
    ) -> Result<RotationBatch, StoreError>;

    /// Writes `config`, which says the same in other ciphertexts, into the row of `before`, unless somebody changed it
    /// meanwhile, and says whether it did. The version and the history of the rule stay. Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    fn rotate_config(&self, before: &Rule, config: &Object) -> Result<bool, StoreError>;

    /// Makes void what waits or was not used of the questions about calls of the session `key`, and notes `why` at each,
    /// where it is said: for whoever keeps its journal elsewhere, or ends its turn. Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    fn void_session(&self, key: &SessionKey, why: Option<&str>) -> Result<(), StoreError>;

    /// Forgets the uploads that the session `key` took and the requests about it: for whoever keeps its journal elsewhere.
    /// Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    fn forget_session(&self, key: &SessionKey) -> Result<(), StoreError>;

    /// At most `limit` turns that have not ended, with their sessions, of which persons answered a question and no other
    /// waits: they can go on. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn decided_turns(&self, limit: usize) -> Result<Vec<(SessionKey, TurnId)>, StoreError>;

    /// Which keys the store works with.
    fn key_ids(&self) -> NodeKeys;

    /// The members, keys and sessions of the console that grant nothing, and what to do: a line each, or one line for all
    /// where another key sealed them. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn identity_doubts(&self) -> Result<Vec<String>, StoreError>;

    /// Why nothing may be sealed here, if another key than those at hand sealed the store. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn other_key(&self) -> Result<Option<String>, StoreError>;

    /// Seals the rows of members and keys with the key of `keyring` that seals now, where an older one
    /// of it did, or that of this machine. Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    fn reseal_identities(&self, keyring: &Keyring) -> Result<(), StoreError>;

    /// Takes the store as it is found, with the rules, members and keys that something other than Pintle changed, and says what was taken.
    /// Blocks.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] where guards are lost or a row is none; or the store cannot do it.
    fn accept(&self, by: &Actor) -> Result<Vec<String>, StoreError>;

    /// Looks whether all of the file is whole, where there is one, for as long as a person waits. Blocks.
    ///
    /// # Errors
    /// A part of it is damaged, or it cannot be read.
    fn check_pages(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Why a store could not be opened.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreOpenError {
    /// The URL is not one of those known; the configuration has to change.
    #[error(
        "store url: {0}; expected `sqlite://FILE` (relative to the home folder, or absolute), \
             `postgres://USER:PASSWORD@HOST/DATABASE` or `memory:`"
    )]
    Url(String),
    /// There is no such schema.
    #[error("there is no schema {number}; expected one of 0, {known}")]
    Schema {
        /// The number that was asked for.
        number: u32,
        /// Those that there are.
        known: String,
    },
    /// The URL is good, the store behind it is not.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Opens the store at `url`: `sqlite://FILE`, with a relative file taken from `home`, `postgres://…` or `memory:`.
///
/// # Errors
/// The URL is unknown, or the store cannot be used as it is.
pub fn open(url: &str, home: &Path, durability: Durability) -> Result<Arc<dyn Store>, StoreOpenError> {
    open_with(url, home, durability, StoreKeys::default())
}

/// Opens a store with keys.
///
/// # Errors
/// As [`open`].
pub fn open_with(
    url: &str,
    home: &Path,
    durability: Durability,
    sealing: StoreKeys,
) -> Result<Arc<dyn Store>, StoreOpenError> {
    match url.split_once(':') {
        Some(("memory", "")) => Ok(Arc::new(Memory::with_sealing(sealing))),
        Some(("memory", rest)) => Err(StoreOpenError::Url(format!("nothing may follow `memory:`, got `{rest}`"))),
        Some(("sqlite", rest)) => Ok(Arc::new(Sqlite::open_with(&home.join(sqlite_file(rest)?), durability, sealing)?)),
        Some(("postgres" | "postgresql", _)) => Ok(Arc::new(Postgres::open_with(url, durability, sealing)?)),
        // The rest of a foreign URL may hold a password, so only its scheme is repeated.
        Some((scheme, _)) => Err(StoreOpenError::Url(format!("unknown scheme `{scheme}`"))),
        None => Err(StoreOpenError::Url(format!("`{}` has no scheme", shown_url(url)))),
    }
}

/// The level of the schema that this program knows: programs of one level and of the next work with one database.
pub fn schema_level() -> u32 {
    migration::level_of(migration::NEWEST)
}

/// Takes the store at `url`, as [`open`] reads it, to the schema with this number, up or down; 0 is nothing at all.
/// What only a newer schema has room for is lost on the way down. Nothing else may use the store meanwhile.
///
/// # Errors
/// The URL is unknown, there is no schema of that number, or the store cannot be used as it is.
pub fn migrate_to(url: &str, home: &Path, number: u32) -> Result<(), StoreOpenError> {
    if !migration::is_known(number.into()) {
        let known: Vec<String> = migration::MIGRATIONS.iter().map(|step| step.number.to_string()).collect();
        return Err(StoreOpenError::Schema { number, known: known.join(", ") });
    }
    match url.split_once(':') {
        Some(("sqlite", rest)) => Ok(Sqlite::migrate(&home.join(sqlite_file(rest)?), number)?),
        Some(("postgres" | "postgresql", _)) => Postgres::migrate(url, number),
        Some(("memory", _)) => Err(StoreOpenError::Url("`memory:` has no schema".into())),
        Some((scheme, _)) => Err(StoreOpenError::Url(format!("unknown scheme `{scheme}`"))),
        None => Err(StoreOpenError::Url(format!("`{}` has no scheme", shown_url(url)))),
    }
}

fn sqlite_file(rest: &str) -> Result<&str, StoreOpenError> {
    let file =
        rest.strip_prefix("//").ok_or_else(|| StoreOpenError::Url("`sqlite:` is not followed by `//`".into()))?;
    if file.is_empty() || file.ends_with('/') {
        return Err(StoreOpenError::Url(format!("`sqlite://{file}` names no file")));
    }
    if file.contains(['?', '#', '\0']) {
        return Err(StoreOpenError::Url(format!("`sqlite://{file}` has options, and there are none")));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(url: &str) -> String {
        open(url, Path::new("nowhere"), Durability::Commit).expect_err(url).to_string()
    }

    #[test]
    fn a_bad_url_says_what_is_known() {
        let known = "; expected `sqlite://FILE` (relative to the home folder, or absolute), \
                     `postgres://USER:PASSWORD@HOST/DATABASE` or `memory:`";
        for (url, what) in [
            ("mysql://ada:secret@db/x", "unknown scheme `mysql`"),
            ("postgres://ada:secret@db", "of PostgreSQL: it names no database"),
            ("postgresql:ada:secret", "of PostgreSQL: the scheme is not followed by `//`"),
            ("pintle.db", "`pintle.db` has no scheme"),
            ("sqlite:pintle.db", "`sqlite:` is not followed by `//`"),
            ("sqlite://", "`sqlite://` names no file"),
            ("sqlite://folder/", "`sqlite://folder/` names no file"),
            ("sqlite://a.db?mode=ro", "`sqlite://a.db?mode=ro` has options, and there are none"),
            ("memory:x", "nothing may follow `memory:`, got `x`"),
        ] {
            assert_eq!(refused(url), format!("store url: {what}{known}"));
        }
    }

    #[test]
    fn a_relative_file_stands_in_home_and_an_absolute_one_where_it_says() {
        let home = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        drop(open("sqlite://deep/pintle.db", home.path(), Durability::Commit).unwrap());
        assert!(home.path().join("deep/pintle.db").is_file());
        let file = other.path().join("abs.db");
        drop(open(&format!("sqlite://{}", file.display()), home.path(), Durability::BeforeEffect).unwrap());
        assert!(file.is_file());
        assert!(open("memory:", home.path(), Durability::Commit).is_ok());
    }
}
