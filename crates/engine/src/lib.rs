//! Runs hooks, and is the only maker of permits.

pub mod egress;
pub mod handler;
pub mod handlers;
pub mod permit;
pub mod tool;
