//! Fakes and conformance suites for the crates' own tests. A crate may have it among its dev-dependencies only.
//!
//! `conformance` has a suite for each port, which every implementation must pass; `rules` is a minimal store of rules.
//! `http` is a server on loopback, `postgres` a private database, `log` a log that tests can read, and `leftovers` finds
//! what a program leaves behind.

pub mod conformance;
pub mod http;
pub mod leftovers;
pub mod log;
pub mod postgres;
pub mod rules;
