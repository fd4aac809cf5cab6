//! A configuration in force: what every face of Pintle shares.
//!
//! [`config`] reads files, layers and trust into one [`config::Config`]; [`host::Host`] opens what it names (store,
//! engine, hooks, rules, judges, servers, skills) and makes its agents ready to work; [`reload`] puts another
//! configuration in its place. Nothing here prints or asks: a face does.
//!
//! | module | holds |
//! |---|---|
//! | `config` | discovery, parsing, trust and layering; its own head has the reading order |
//! | `host`, `mounted`, `builtins`, `scripts` | the host, its hooks, compiled-in hooks, the script worker |
//! | `config_store`, `conversations`, `home`, `files` | the store, conversations kept apart for a found folder, the home folder, media |
//! | `host_rules`, `rule_sync`, `rule_files`, `team_rules` | rules from the store, from files and from a team |
//! | `judges`, `provider_spec`, `servers`, `mcp_names`, `skill_sets`, `collector` | judges, providers, MCP servers, skills, the collector |
//! | `ready_agent`, `tool_names`, `blind` | agents ready to work, their tools, matchers that match none of them |
//! | `health` | the proofs of hooks, and the health of each |
//! | `protected`, `links`, `writers` | what no tool may touch, other names of those files, who else can write there |
//! | `node_config`, `session_config` | the digest that nodes compare; the configuration a session was run under |
//! | `changes`, `reload` | notices changed files; swaps the configuration whole or not at all |
//! | `error` | whose move it is after a failure |

pub mod blind;
pub mod builtins;
pub mod changes;
pub mod collector;
pub mod config;
mod config_store;
pub mod conversations;
pub mod error;
pub mod files;
pub mod health;
pub mod home;
pub mod host;
pub mod host_rules;
pub mod judges;
pub mod links;
pub mod mcp_names;
pub mod mounted;
mod protected;
mod provider_spec;
pub mod node_config;
pub mod ready_agent;
pub mod reload;
pub mod rule_files;
pub mod rule_sync;
pub mod scripts;
pub mod servers;
pub mod session_config;
pub mod skill_sets;
pub mod team_rules;
pub mod tool_names;
pub mod writers;

pub use error::{ErrorKind, HostError};
pub use host::Host;
pub use pintle_rule_runtime::{KeyringVault, TABLE};

/// The hidden command of a face's program by which it becomes a worker for scripts.
pub const SCRIPT_COMMAND: &str = "__script";
