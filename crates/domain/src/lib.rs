//! The words and the rules of Pintle. Pure: no task, no clock, no file, no network.
//!
//! Five machines hold the rules: `Chain` (the hooks of one event), `Clearing` (one tool call), `Ledger` (the texts of
//! skills in a conversation), `Turn` (one prompt) and `Session` (the turns of one conversation). Each says what it needs
//! next and is told what came of it. What a turn is told is a fact, and the journal of facts is the session.
//!
//! Read in this order: [`checkpoint`] and [`verdict`] (what can be asked and answered), [`hook`] and [`fault`],
//! [`chain`] (how the hooks of one event reach a ruling), [`clearing`] (what a tool call needs before it may run),
//! [`turn`] (what the agent does next), [`session`] (what its journal keeps), [`record`] (the evidence).
//!
//! | module | holds |
//! |---|---|
//! | `id`, `identity`, `caller_role`, `person_name`, `unseen` | identifiers; whose event it is; names that cannot be mistaken for another, and invisible characters |
//! | `json` | values with exact digits in their order; reading, writing, canonical form, JSON Patch |
//! | `message`, `llm`, `tool`, `tool_schema`, `kept_message`, `kept_result` | a conversation, a model call, a tool call with its digest, long results by pages |
//! | `checkpoint` | the trait, the table `CHECKPOINTS` (`kind.rs`), one file per checkpoint, the events that hooks are only told (`runtime.rs`) |
//! | `verdict`, `reason`, `ruling`, `fault` | what one hook said, what the loop must do, why a hook gave no verdict |
//! | `hook`, `matcher`, `condition`, `roster` | a hook, the tools and events it wants, all hooks in running order |
//! | `rule`, `breaker`, `execution`, `account`, `health` | a stored rule, its breaker, one run of it, what its handler reports, the health of a hook |
//! | `chain`, `clearing`, `turn`, `session`, `ledger` | the machines |
//! | `skill`, `planning` | the texts of skills and their findings; whether a plan needs tools |
//! | `history` | a conversation that a front end keeps and sends back |
//! | `approval` | questions for a person, sealed against tampering (`seal.rs`); who refused (`refusal.rs`) |
//! | `shell`, `shell_word`, `shown_url`, `nearest`, `hex`, `mac` | facts about a shell text; ways to show and compare texts; keyed codes |
//! | `record`, `span`, `measure` | the evidence, and what traces and counters make of it |
//! | `audit`, `anchor` | the audit chain, and what is known about a store from outside it |
//! | `store`, `lease`, `node`, `webhook` | the storage ports; which node runs a session; events for other systems |
//!
//! The tests in `tests/simulation` play turns, hooks, faults and interruptions from a seed and check the laws of
//! `ARCHITECTURE.md`.

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
