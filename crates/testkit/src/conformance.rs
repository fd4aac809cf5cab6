//! One suite for each port: whatever stands behind it has to pass the same tests.

pub mod approvals;
pub mod audit;
pub mod executions;
pub mod rules;
pub mod sessions;
pub mod store;
