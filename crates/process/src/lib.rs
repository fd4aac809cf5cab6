//! Children of the host: what starts them, what they say, and what makes sure that nothing of them is left.
//!
//! [`hook`] runs process hooks, [`command`] the commands of rules,
//! [`command_hook`] those of command hooks, [`child`] starts anything else that speaks over pipes.
//!
//! | module | holds |
//! |---|---|
//! | `spawn`, `starters` | starts a child below an adopter, from a thread that lives as long as the host: the kernel ties the child's life to it |
//! | `platform` | system-specific code, and our only `unsafe`; another system would be a file beside `linux.rs` |
//! | `group`, `orphan_reaper` | a child and everything it starts, and how they all end |
//! | `supervision`, `restart` | restarts a child; decides when (pure) |
//! | `environment`, `files` | the variables a child inherits, with the one list of secrets; the limit on open files |
//! | `stderr` | logs a child's standard error and keeps the end of it |
//! | `hook` | process hooks: supervisor, handshake (`hello.rs`), pending calls (`session.rs`), reader, writer, event queue |
//! | `mounting` | turns an entry of the configuration into a hook in force |

pub mod child;
pub mod command;
pub mod command_hook;
pub mod environment;
pub mod files;
mod group;
pub mod hook;
pub mod mounting;
pub mod orphan_reaper;
mod platform;
mod restart;
mod spawn;
mod starters;
mod stderr;
pub mod supervision;

pub use command_hook::{CommandHook, CommandHookSpec};
pub use environment::{ChildEnv, INSIDE_EXEC, child_environment, first_environment};
pub use hook::{ProcessHook, ProcessSpec, SpawnCheck};
pub use mounting::{EntryError, mount, mount_entry};
pub use platform::{PeerProcess, ProcessStat, give_back_code, peer_of_pid, peer_of_tcp, raise_open_files};
