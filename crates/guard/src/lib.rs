//! Guards the coding agents that people already use: what their hooks are told, what they accept as an answer, and where
//! they are configured. Pure: text in, text out.
//!
//! | module | holds |
//! |---|---|
//! | `hosts`, `host` | one file and one row per agent; the type of that row |
//! | `event`, `tools`, `wire` | an event of any host in one form; its tools by our names; reading its members |
//! | `ruling`, `speech`, `answer`, `panic` | the engine's conclusion, put in words the host understands or the next stricter ones; what the hook prints, even when nobody answers |
//! | `asking`, `clients` | whether a host asks its user; agents that come in by another door |
//! | `coverage`, `measured` | how far each class of tools can be held, in general and on this machine |
//! | `protects`, `path_pattern` | the first rule: what a guarded agent must not touch |
//! | `unguarded`, `own_commands`, `ended` | commands that start an agent without hooks, answer for a person, or stop the guard |
//! | `runners`, `in_code`, `typed`, `braces`, `expanded`, `set_variables`, `made_names`, `program_name` | the places where such commands hide |
//! | `documents`, `filled`, `taken`, `unpacked`, `no_paths` | what commands write, copy and unpack, and where |
//! | `foreign_arguments`, `foreign_texts`, `shell_tools` | arguments of tools that no host provides |
//! | `settings`, `shell_text`, `wrapping` | adds our entries to a host's files and removes them again |
//! | `transcript`, `unread` | hosts' own transcripts; events that cannot be read |
//! | `trial` | running a host against a model of ours, in four wires |

pub mod answer;
pub mod asking;
mod braces;
pub mod clients;
pub mod coverage;
mod documents;
mod ended;
pub mod event;
mod expanded;
mod filled;
mod foreign_arguments;
mod foreign_texts;
pub mod host;
pub mod hosts;
mod in_code;
mod made_names;
pub mod measured;
mod no_paths;
mod own_commands;
mod panic;
mod path_pattern;
mod program_name;
pub mod protects;
pub mod ruling;
mod runners;
mod set_variables;
pub mod settings;
mod shell_text;
pub mod shell_tools;
pub mod speech;
mod taken;
pub mod tools;
pub mod transcript;
pub mod trial;
mod typed;
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
pub use protects::{FindsFiles, GuardedFiles, OnDisk, PathKind, protects, protects_behind};
pub use ruling::{GuardRuling, RulingWord};
pub use unread::{session_said, unread_deny};
pub use wire::mcp_name;
