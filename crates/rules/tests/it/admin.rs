//! The rule admin and the rule cache over the model of a store.

mod actions;
mod breakers;
mod chains;
mod exceptions;
mod handlers;
mod history;
mod importing;
mod isolation;
mod methods;
mod rule_cache;
mod secrets;
mod stage;
mod trying;
