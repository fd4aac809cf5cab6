//! Runs the scripts that hooks bring, in processes that can be killed.
//!
//! A script is foreign JavaScript. It runs in a child process ([`worker_main`]) which has given up files, sockets and
//! everything else but computing, and which the host kills at the deadline: some loops of the engine's own code look
//! at no clock. Every run has a fresh engine of its own, so nothing of one run is seen by the next.
//!
//! [`Sandbox`] is the host's side: warm children, one run each at a time, in the order of the [`Slots`].
//!
//! `pool` and `slots` decide who runs when. `child` is the host's side of one child, `worker` the other side, `frame` the
//! protocol between them. `confine` drops a child's rights, `limits`, `depth` and `peak` bound it, `stage` is the engine of
//! one run, and `fault` says why a script gave no answer.

mod child;
mod confine;
mod depth;
mod fault;
mod frame;
mod peak;
mod pool;
mod slots;
mod stage;
mod worker;

pub mod limits;

pub use child::Launcher;
pub use fault::{CompileError, ScriptFault, SyntaxError};
pub use pool::{Sandbox, ScriptOutput, ScriptRun};
pub use slots::{Slot, Slots};
pub use worker::worker_main;
