//! The rules of a team: as a gateway signs them for the machines that it guards, as such a machine reads them, and what
//! comes back of them. Pure.
//!
//! [`statement`] is what is signed and how it is read, [`rule`] one rule on its way, [`record`] one record on its way
//! back.

pub mod record;
pub mod rule;
pub mod statement;

pub use record::{MAX_RECORDS, MachineName, TeamRecord, is_told};
pub use rule::{CannotRun, TeamRule, Withheld, is_of_team};
pub use statement::{
    FORMAT, KnownTeam, MAX_STATEMENT_BYTES, SignedStatement, TeamFault, TeamStatement, TeamTenant, digest, message,
};
