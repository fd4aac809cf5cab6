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
pub mod hook_set;
pub mod live_rules;
pub mod native;
pub mod permit;
pub mod telemetry;
pub mod tool;
pub mod trial;

pub use approvals::{Approvals, Asker, Clock, SystemClock};
pub use async_trait::async_trait;
pub use deadlines::Deadlines;
pub use dispatcher::{AsNamed, Clearance, Dispatcher, FileSink, Stopped};
pub use domain;
pub use engine::Engine;
pub use evidence::{ModelFailure, ModelSwitch, NullStore, Watcher};
pub use hook_set::Mount;
pub use native::{HookCx, HookError, NativeAnswer, NativeHook};
pub use permit::Permit;
pub use telemetry::{Telemetry, Tracer};
pub use tool::Tool;
pub use trial::HookTrial;
