//! The words and the rules of Pintle. Pure: no task, no clock, no file, no network.
//!
//! Read in this order: [`checkpoint`] and [`verdict`] (what can be asked and said), [`hook`] and [`fault`],
//! [`chain`] (a row of hooks concludes), [`clearing`] (what one tool call still needs before it may run),
//! [`skill`] (texts that skills bring), [`ledger`] (when they stand in a conversation), [`planning`] (whether tools are
//! needed), [`turn`] (what the agent does next), [`session`] (what its journal keeps), [`history`] (what a
//! front end keeps), [`approval`] (what a person is asked),
//! [`record`] (the evidence), [`span`] and [`measure`] (what others see of it).

pub mod hex;
mod mac;
pub mod nearest;
pub mod id;
pub mod caller_role;
pub mod unseen;
pub mod person_name;
pub mod identity;
pub mod json;
mod kept_message;
pub mod message;
pub mod llm;
pub mod tool;
pub mod tool_schema;
pub mod kept_result;
pub mod checkpoint;
mod reason;
pub mod verdict;
pub mod ruling;
pub mod fault;
pub mod shell;
pub mod shell_word;
pub mod shown_url;
pub mod condition;
pub mod matcher;
pub mod hook;
pub mod account;
pub mod rule;
pub mod breaker;
pub mod roster;
pub mod chain;
pub mod clearing;
pub mod skill;
pub mod ledger;
pub mod planning;
pub mod turn;
pub mod session;
pub mod lease;
pub mod node;
pub mod health;
pub mod history;
pub mod approval;
pub mod record;
pub mod execution;
pub mod span;
pub mod measure;
pub mod audit;
pub mod anchor;
pub mod store;
pub mod webhook;
#[cfg(test)]
pub(crate) mod testing;
