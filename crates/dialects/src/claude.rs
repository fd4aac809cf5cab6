//! Command hooks in Claude's wire: a program for each event, a document on its standard input, an answer by its exit code
//! and its output.
//!
//! Read in this order: [`event`] (the events, and where they happen here), [`config`] (what is written, and the hooks that
//! it becomes), [`tools`] (calls in Claude's words and back), [`condition`] (the `if` of an entry), [`documents`] (what a
//! command is given), [`answer`] (what it answered).

pub mod answer;
pub mod condition;
pub mod config;
pub mod documents;
pub mod event;
pub mod tools;

pub use answer::{CommandAnswer, CommandDecision, CommandOutput, CommandStop};
pub use condition::PermissionRule;
pub use config::{CommandEntry, RawClaudeGroup, RawClaudeHooks};
pub use documents::{Documents, Surroundings};
pub use event::ClaudeEvent;
