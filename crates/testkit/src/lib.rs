//! Fakes and conformance suites for the crates' own tests.

pub mod conformance;
pub mod http;
pub mod leftovers;
pub mod log;
pub mod postgres;
pub mod rules;
