//! The facade as an outside crate uses it: nothing of ours but `pintle`, and a store.

mod adding;
mod answering;
mod calls;
mod closing;
mod delegating;
mod host;
mod journal;
#[cfg(feature = "process")]
mod processes;
#[cfg(feature = "rules")]
mod rules;
mod stages;
mod tenants;
