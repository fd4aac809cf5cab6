//! The facade as an outside crate uses it.

#![cfg(test)]

mod adding;
mod answering;
mod calls;
mod closing;
mod delegating;
mod host;
mod journal;
#[cfg(feature = "process")]
mod processes;
mod renamed;
#[cfg(feature = "rules")]
mod rules;
mod stages;
mod tenants;
mod turns;
