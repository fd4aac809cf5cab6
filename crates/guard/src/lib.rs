//! Guards the coding agents that people already use: what their hooks are told, what they take as an answer, and where
//! they are configured. One file for each agent, in `hosts`; everything here but the doors is pure.

pub mod answer;
pub mod asking;
mod braces;
pub mod clients;
pub mod coverage;
pub mod event;
mod expanded;
mod filled;
mod foreign_arguments;
pub mod host;
pub mod hosts;
mod in_code;
pub mod measured;
mod no_paths;
mod own_commands;
mod panic;
mod path_pattern;
mod program_name;
pub mod protects;
pub mod ruling;
pub mod settings;
mod shell_text;
pub mod shell_tools;
pub mod speech;
mod taken;
pub mod tools;
pub mod transcript;
pub mod trial;
mod unguarded;
mod unpacked;
mod unread;
mod wire;
mod wrapping;

pub use answer::{Answer, Degraded};
pub use asking::{AskWay, AskWishes, ask_way};
pub use event::{HookInput, HostCall, HostEvent, HostWhat, Malformed, Subagent};
pub use host::{ClientEntry, EntryDaemon, GuardHost, HostRefusals};
pub use hosts::copilot::is_sent_later;
pub use hosts::qwen::is_blank_prompt;
pub use hosts::{HOSTS, host, in_scope, no_objection, panic_deny};
pub use path_pattern::{path_named, pattern_means};
pub use protects::{FindsFiles, GuardedFiles, OnDisk, protects, protects_behind};
pub use ruling::{GuardRuling, RulingWord};
pub use unread::{session_said, unread_deny};
pub use wire::mcp_name;
