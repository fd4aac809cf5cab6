//! Other people's formats, to and from our words. Pure.
//!
//! Foreign bytes are parsed here, with bounds on size and depth. Past this point values have types.
//!
//! | module | holds |
//! |---|---|
//! | `process/config` | the `hooks` section and the hooks it defines; a bad entry becomes a stub |
//! | `process/frame` | JSON-RPC lines and envelopes; ids recovered from broken lines |
//! | `process/wire` | params out (`event.rs`), results in (`read.rs`, `parts.rs`), echoed members (`echo.rs`), spelling hints (`hint.rs`) |
//! | `claude` | command hooks in Claude's wire: configuration, the `if` condition, tool names, documents out, answers in |
//! | `skill` | a skill's manifest, with every way it can be wrong; its texts and names |
//! | `tree` | keys and values that remember their position in the file |
//! | `compact` | writes outgoing JSON piece by piece |
//!
//! Members of a wire are never removed: a hook that worked yesterday works tomorrow.

pub mod claude;
pub mod command;
pub mod compact;
pub mod process;
pub mod skill;
pub mod tree;
