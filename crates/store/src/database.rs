//! What a database is to the ports beyond its SQL: how one reads, writes and hands over there, and who holds a session.

use std::fmt;

use pintle_domain::store::{
    IdleStore, NullSubscription, OnRulesChanged, RuleSubscription, SessionHold, SessionKey, StoreError,
};

use crate::db::{Db, Failure};
use crate::room::Rooms;
use crate::rows::batch::Batch;
use crate::rows::sessions::HeldBy;
use crate::sealing::StoreKeys;

/// A store in a database. The ports are written once for all of them.
pub struct SqlStore<D>(pub(crate) D);

impl<D: fmt::Debug> fmt::Debug for SqlStore<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A database of one kind. What waits, blocks.
pub(crate) trait Database: Send + Sync {
    /// Reads, out of a transaction.
    fn read<T>(&self, work: impl FnOnce(&dyn Db) -> Result<T, Failure>) -> Result<T, StoreError>;

    /// The same for what is no evidence, such as sessions and members: it waits for nobody who puts evidence where it
    /// belongs.
    fn read_beside<T>(&self, work: impl FnOnce(&dyn Db) -> Result<T, Failure>) -> Result<T, StoreError> {
        self.read(work)
    }

    /// Reads what is evidence even of a database that was deleted meanwhile.
    fn list<T>(&self, work: impl FnOnce(&dyn Db) -> Result<T, Failure>) -> Result<T, StoreError> {
        self.read(work)
    }

    /// Reads in several statements what is true at one moment.
    fn read_at_once<T>(&self, work: impl FnMut(&dyn Db) -> Result<T, Failure>) -> Result<T, StoreError>;

    /// Does `work` in one transaction, once more if it stood in the way of another one, and waits for it.
    fn write<T>(&self, work: impl FnMut(&dyn Db) -> Result<T, Failure>) -> Result<T, StoreError>;

    /// Sees to it that what is committed survives a loss of power.
    fn settle(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Looks whether all of its file is whole, where it is one.
    fn check_pages(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Hands a batch to the writer. Never blocks.
    fn hand_over(&self, batch: Batch);

    /// The room for what is on its way to the writer.
    fn rooms(&self) -> &Rooms;

    /// What it is called in messages, without passwords.
    fn shown(&self) -> String;

    /// The keys that values are sealed with.
    fn sealing(&self) -> &StoreKeys;

    /// The store, if whoever waits for a record may write it in their own thread now.
    fn idle(&self) -> Option<Box<dyn IdleStore + '_>> {
        None
    }

    /// Takes a session for this process.
    fn hold(&self, key: &SessionKey) -> Result<Box<dyn SessionHold>, StoreError>;

    /// Who holds a session at the moment at which it is asked.
    fn held_by(&self, db: &dyn Db, key: &SessionKey) -> Result<Option<String>, Failure>;

    /// Who holds which session, to be asked for many of them.
    fn holders<'a>(&'a self, db: &'a dyn Db) -> Result<Box<HeldBy<'a>>, Failure>;

    /// The name of this store among the nodes that share the database.
    fn node_id(&self) -> &str;

    /// Whether several nodes may share the database.
    fn is_shared(&self) -> bool {
        false
    }

    /// The node called `name` works with this store.
    fn join(&self, _name: &str) {}

    /// The node that works or worked a session last, if one ever did.
    fn last_node(&self, _db: &dyn Db, _key: &SessionKey) -> Result<Option<String>, Failure> {
        Ok(None)
    }

    /// Calls `heard` when other nodes say something.
    fn listen_nodes(&self, _heard: OnRulesChanged) -> Box<dyn RuleSubscription> {
        Box::new(NullSubscription)
    }

    /// Calls `heard` when rules change, as far as the database tells.
    fn listen(&self, _heard: OnRulesChanged) -> Box<dyn RuleSubscription> {
        Box::new(NullSubscription)
    }
}
