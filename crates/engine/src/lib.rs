//! Runs hooks, and is the only maker of permits.
//!
//! A host mounts its hooks on an [`Engine`], takes a [`Dispatcher`] for each turn, asks it at every checkpoint,
//! and runs a tool only with the [`Permit`] that [`Dispatcher::clear`] gave.
//!
//! | module | holds |
//! |---|---|
//! | `engine` | the hooks of a host: mounted, replaced whole, closed |
//! | `dispatcher` | the handle of a turn: its identity (`handle.rs`), clearing a call (`clear.rs`), the rest of the path that all loops share (`run.rs`) |
//! | `handler` | the port `Handler`, and the cache of subjects rendered for a wire |
//! | `native` | hooks in Rust: deadline, panic fence, queue of notices |
//! | `hook_set`, `live_rules` | the hooks in force; a turn keeps its configured ones, while stored rules change under it |
//! | `approvals` | parks a question, asks whoever is there, picks up answers given elsewhere |
//! | `permit`, `tool` | the permit, and the trait of the tools that run with it |
//! | `evidence` | records on their way to the store and to watchers |
//! | `deadlines` | one timer for all deadlines |
//! | `telemetry`, `trial` | the port for spans and counters; one question to one hook, for `hooks test` |
//!
//! **Time.** Pure code takes durations as arguments. Every question has the deadline of its stage, and the gates of one
//! event share ten seconds.
//!
//! **Tasks.** `Engine::tasks` tracks the tasks of handlers and tools; `Engine::close` ends the handlers within their own
//! bounds and joins everything. A lint forbids `tokio::spawn`.
//!
//! **Evidence.** Records come from `Chain` and `Clearing`, not from handlers, so even a hook that was never reached has one.
//! Only a permit waits for the commit; everything else waits at most for room. What the store cannot take is counted.

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
pub use engine::Engine;
pub use evidence::{ModelFailure, ModelSwitch, NullStore, Watcher};
pub use hook_set::Mount;
pub use native::{HookCx, HookError, NativeAnswer, NativeHook};
pub use permit::Permit;
pub use pintle_domain;
pub use telemetry::{Telemetry, Tracer};
pub use tool::Tool;
pub use trial::HookTrial;
