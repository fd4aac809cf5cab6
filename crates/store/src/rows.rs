//! The ports as SQL, once for both databases.
//!
//! A module has the port's transactions as functions of a [`Db`](crate::db::Db). Where the databases differ, it asks
//! for the dialect; what is sure to differ (who holds a session, and how that is found out) comes from outside.

pub(crate) mod anchor;
pub(crate) mod approvals;
pub(crate) mod audit;
pub(crate) mod backlog;
pub(crate) mod batch;
pub(crate) mod budgets;
pub(crate) mod epoch;
pub(crate) mod exchange;
pub(crate) mod executions;
pub(crate) mod group;
pub(crate) mod hooks;
pub(crate) mod identity;
pub(crate) mod journal;
pub(crate) mod nodes;
pub(crate) mod outbox;
pub(crate) mod records;
pub(crate) mod rotation;
pub(crate) mod sessions;
pub(crate) mod spending;
pub(crate) mod strangers;
pub(crate) mod tenants;
pub(crate) mod webhooks;
