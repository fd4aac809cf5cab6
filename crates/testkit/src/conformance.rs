//! One suite for each port: whatever stands behind it has to pass the same tests.

pub mod approvals;
pub mod audit;
pub mod exchange;
pub mod executions;
mod kept;
pub mod rules;
mod selection;
pub mod sessions;
pub mod store;
pub mod webhooks;
