//! The desk and the rulebook over the model of a store.

mod actions;
mod breakers;
mod chains;
mod handlers;
mod history;
mod isolation;
mod methods;
mod rulebook;
mod secrets;
mod stage;
mod trying;
