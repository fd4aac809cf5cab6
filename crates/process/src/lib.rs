//! Children of the host: what starts them, what they say, and what sees to it that nothing of them is left.
//!
//! [`hook`] runs process hooks, [`command`] the commands of rules,
//! [`command_hook`] those of command hooks, [`child`] starts anything else that speaks over pipes.

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
