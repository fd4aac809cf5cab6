//! Runs hooks, and is the only maker of permits.
//!
//! A host mounts its hooks on an [`Engine`], takes a [`Dispatcher`] for each turn, asks it at every checkpoint,
//! and runs a tool only with the [`Permit`] that [`Dispatcher::clear`] gave.

pub mod approvals;
pub mod deadlines;
pub mod dispatcher;
pub mod engine;
pub mod evidence;
pub mod handler;
pub mod live;
pub mod native;
pub mod permit;
pub mod rehearsal;
pub mod set;
pub mod telemetry;
pub mod tool;

pub use approvals::{Approvals, Asker, Clock, SystemClock};
pub use async_trait::async_trait;
pub use deadlines::Deadlines;
pub use dispatcher::{Clearance, Dispatcher, TakesFiles, TurnCx};
pub use domain;
pub use engine::Engine;
pub use evidence::{Forgetful, Watcher};
pub use native::{Answer, HookCx, HookError, NativeHook};
pub use permit::Permit;
pub use rehearsal::Rehearsal;
pub use set::Mount;
pub use telemetry::{Telemetry, Tracer};
pub use tool::Tool;
