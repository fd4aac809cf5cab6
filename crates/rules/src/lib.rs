//! Rules: their records, their administration, their cache, and what runs them.
//!
//! [`record`] reads a rule as people write it, [`condition`] its expression, [`payload`] and [`reply`] the words of its
//! handlers. [`admin`] changes rules, [`cache`] keeps them in force, [`handler`] runs them. [`team`] is how they go from a
//! gateway to the machines of a team.

pub mod admin;
pub mod builtin;
pub mod cache;
pub mod condition;
pub mod handler;
pub mod http;
pub mod judge;
pub mod payload;
pub mod record;
pub mod reply;
pub mod team;
