//! Every key of the configuration, as it is written. The doc comments become the descriptions of the JSON Schema,
//! and the schema is what unknown keys and wrong types are checked against: a key exists here or nowhere.

mod doors;

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::OnceLock;

use pintle_dialects::process::config::raw::RawHooks;
use pintle_domain::json::{Object, Value};
use pintle_providers::WireKind;
use schemars::JsonSchema;
use serde::Deserialize;

pub use doors::{
    RawDoorBudget, RawDoorPrice, RawDoors, RawGuard, RawGuardedHost, RawModelDoor, RawRulesFrom, RawToolDoor,
};

/// Configuration of Pintle. TOML and JSON spell the same keys.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "pintle")]
pub struct RawConfig {
    /// Services that answer requests to models, by name.
    pub providers: Option<BTreeMap<String, RawProvider>>,
    /// Agents, by name.
    pub agents: Option<BTreeMap<String, RawAgent>>,
    /// Hooks.
    pub hooks: Option<RawHooks>,
    /// Servers of tools that speak the Model Context Protocol.
    pub mcp: Option<RawMcp>,
    /// The record of what hooks did.
    pub audit: Option<RawAudit>,
    /// Where the record is kept.
    pub store: Option<RawStore>,
    /// Settings of the built-in tools.
    pub tools: Option<RawTools>,
    /// Rules that are kept in the store or in files, and how they run.
    pub agent_hooks: Option<RawRules>,
    /// What kind of host this is, and how `pintle serve` is reached.
    pub gateway: Option<RawGateway>,
    /// Where skills are.
    pub skills: Option<RawSkills>,
    /// The model for work in the background, where nothing else says which.
    pub background: Option<RawJudge>,
    /// Who is told what hooks do and how long they take.
    pub telemetry: Option<RawTelemetry>,
    /// Doors through which agents of others come.
    pub doors: Option<RawDoors>,
    /// What `pintle guard` demands of coding agents, and whose rules hold here.
    pub guard: Option<RawGuard>,
}

/// Who is told what hooks do and how long they take. Nothing is sent unless an address is named.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawTelemetry {
    /// A collector that takes OTLP over HTTP, such as `http://localhost:4318`; spans go to `v1/traces` below it, numbers
    /// to `v1/metrics`. `OTEL_EXPORTER_OTLP_ENDPOINT` goes before it.
    pub otlp_endpoint: Option<String>,
}

/// A service that answers requests to models.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawProvider {
    /// What it speaks: one of [`WireKind::words`].
    #[schemars(extend("description" = WireKind::explained()))]
    pub kind: Option<String>,
    /// Where it is reached. Default: the service's own address.
    pub base_url: Option<String>,
    /// The name of the variable that holds the key; never the key itself.
    pub api_key_env: Option<String>,
    /// `native` (default), or `json_schema` for small models without tool calls; only for `openai`.
    pub tool_mode: Option<String>,
    /// The file of replies, relative to the folder of this file; only for `scripted`.
    pub script: Option<String>,
    /// What its models can do beyond text.
    pub capabilities: Option<RawCapabilities>,
}

/// What the models of a provider can do beyond text, and what they take in the middle of a conversation; for the
/// latter, what is left out is as the table of known models says.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawCapabilities {
    /// Whether they see images. Default: `true` for `anthropic`, and for `openai` at its own address with
    /// `tool_mode = "native"`; otherwise `false`.
    pub vision: Option<bool>,
    /// Where system messages may stand: `free` (anywhere), `placed` (where `placement` allows it), or `none`.
    pub mid_system: Option<String>,
    /// Where a system message may stand with `mid_system = "placed"`.
    pub placement: Option<RawPlacement>,
    /// Whether messages of the user and of the model must alternate.
    pub alternation: Option<bool>,
    /// Whether a message of the user may follow the result of a tool.
    pub user_after_tool: Option<bool>,
    /// The member that marks text which expires with the turn, if the provider has one. Counts with
    /// `prefix_bound_reasoning`.
    pub turn_scoped: Option<String>,
    /// Whether thoughts are bound to everything that was sent before them: then texts that leave the conversation stay
    /// in the requests of the turn, unless the agent says otherwise in `lowering.removal`.
    pub prefix_bound_reasoning: Option<bool>,
    /// How many cache breakpoints a request may have: 0 to 4.
    pub cache_breakpoints: Option<u8>,
}

/// The places of system messages.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawPlacement {
    /// What may stand before one: `user`, `assistant`, `tool`.
    #[serde(default)]
    pub after: Vec<String>,
    /// What may stand behind one: `user`, `assistant`, `end`.
    #[serde(default)]
    pub before: Vec<String>,
    /// Whether one may stand beside another one. Default: no.
    #[serde(default)]
    pub consecutive: bool,
}

/// An agent.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawAgent {
    /// The model that it uses, as `PROVIDER/MODEL`.
    pub model: Option<String>,
    /// What the model is told first.
    pub system: Option<String>,
    /// The folder that file tools stay inside, relative to the folder of this file. Default: the working directory.
    pub workspace: Option<String>,
    /// Whether all nodes of a gateway see the same files there. Default `false`: a session of an agent with tools for
    /// files or commands stays on the node that began it.
    pub workspace_shared: Option<bool>,
    /// Tools that it is offered. Default: the read-only built-ins and every tool of the MCP servers; `exec` and writing
    /// tools must be named. Tools of MCP servers are named whole or by a glob: `mcp_files_*`.
    pub tools: Option<Vec<String>>,
    /// Model calls of one turn, at most. Default 50.
    #[schemars(range(min = 1))]
    pub max_iterations: Option<u32>,
    /// Tools whose every call waits for a person, as globs of their names: `exec`, `write_*`, `*`. Holds for what its
    /// sub-agents do, too.
    pub ask: Option<Vec<String>>,
    /// Who answers over the network what it asks: names of users, and roles (`viewer`, `operator`, `admin`, `owner`), which
    /// mean everybody who has at least that one. Default: whoever may answer approvals. The first file that says it counts.
    pub approvers: Option<Vec<String>>,
    /// Whether somebody else has to answer than the user whose conversation it is. Default `false`.
    pub other_than_asker: Option<bool>,
    /// How many tokens the model takes, about. Long conversations are summarised before they come near to it.
    /// Default: not known, so a conversation is shortened only when the model refuses it.
    pub context_tokens: Option<u32>,
    /// What it is good for: other agents read it when they choose whom to give a task to.
    pub description: Option<String>,
    /// Further models, in the order in which they are tried.
    pub fallbacks: Option<Vec<String>>,
    /// Whether text is shown before the hooks have seen the whole answer. Default `false`.
    pub stream_unreviewed: Option<bool>,
    /// Whether this agent is meant where none is named. Default `false`.
    pub default: Option<bool>,
    /// Options of every request to the model, such as `temperature` and `max_tokens`.
    #[schemars(with = "Option<BTreeMap<String, serde_json::Value>>")]
    pub options: Option<Object>,
    /// Skills that it has, by the names of their folders in `skills.dir` or `skills.dirs`, in order; `*` and `?` fit many.
    /// Default: none. Whatever else lies there has no effect.
    pub skills: Option<Vec<String>>,
    /// `direct` (default): the model works at once. `planned`: where there are tools, a call without tools comes first; it
    /// plans, or answers by itself.
    pub flow: Option<String>,
    /// What is said and done in turns that are planned.
    pub planning: Option<RawPlanning>,
    /// How the conversation reaches the model.
    pub lowering: Option<RawLowering>,
}

/// How the conversation reaches the model.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawLowering {
    /// What becomes of a text that leaves the conversation, with models whose thoughts are bound to everything before
    /// them: `freeze` (default): it stays in the requests of the turn; `strip_reasoning`: it leaves, and thoughts that
    /// were bound to it are not sent again. With other models a text always leaves.
    pub removal: Option<String>,
}

/// What is said and done in turns that are planned. A prompt that is empty is left out.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawPlanning {
    /// What ends the messages of the planning call. Default: asks for a plan, and for `<need_tool/>` or `<no_tool/>`.
    pub planning_prompt: Option<String>,
    /// What ends the messages of the first call with tools.
    pub first_step_prompt: Option<String>,
    /// What ends the messages of every later call with tools.
    pub agent_loop_prompt: Option<String>,
    /// What a plan is that says neither `<need_tool/>` nor `<no_tool/>`: `answer` (default), or `loop`: work follows.
    pub on_missing_tag: Option<String>,
    /// Whether the plan stays in the conversation. Default `true`.
    pub record: Option<bool>,
}

/// Where skills are.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawSkills {
    /// The folder with a folder for each skill, relative to the folder of this file. Default: `skills`; in a file that was
    /// found, `.agents/skills` where there is no `skills`.
    pub dir: Option<String>,
    /// Further folders of skills, for those that are not in `dir`; `~/` is the home of the user. Default:
    /// `~/.agents/skills`.
    pub dirs: Option<Vec<String>>,
    /// What a system message is in a history that a front end sends: `accept` (default) takes it as it is, `verify` takes
    /// it as the user's unless it is the text of a skill that the agent has, or signed by this host.
    pub history_trust: Option<String>,
}

/// Servers of tools that speak the Model Context Protocol.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawMcp {
    /// The servers, by name. A tool of the server `NAME` is called `mcp_NAME_TOOL`.
    pub servers: Option<BTreeMap<String, RawMcpServer>>,
}

/// A server of tools: a `command` that is started, or a `url` where one runs.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawMcpServer {
    /// Whether it is used. Default `true`.
    pub enabled: Option<bool>,
    /// The program and its arguments; no shell. It speaks over its standard input and output.
    pub command: Option<Vec<String>>,
    /// Where a server runs that speaks streamable HTTP, such as `https://example.com/mcp`.
    pub url: Option<String>,
    /// The working directory of `command`. Default: the folder of this file.
    pub dir: Option<String>,
    /// Variables laid over the environment that `command` inherits.
    pub env: Option<BTreeMap<String, String>>,
    /// Secret variables that are passed on to `command`, by exact name.
    pub inherit_env: Option<Vec<String>>,
    /// How long its handshake and its list of tools may take. Default 30000.
    #[schemars(range(min = 1))]
    pub start_timeout_ms: Option<i64>,
}

/// The record of what hooks did.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawAudit {
    /// `commit` (default): a record survives the end of the process; `before_effect`: the loss of power too.
    pub durability: Option<String>,
}

/// Where the record is kept.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawStore {
    /// `sqlite://FILE`, relative to the home folder, `postgres://USER:PASSWORD@HOST/DATABASE`, or `memory:`. Default
    /// `sqlite://pintle.db`. `?schema=NAME` behind the database says in which schema the tables stand.
    pub url: Option<String>,
}

/// Settings of the built-in tools.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawTools {
    /// Running commands.
    pub exec: Option<RawExec>,
    /// Fetching pages.
    pub web_fetch: Option<RawWebFetch>,
}

/// Running commands.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawExec {
    /// The shell that runs commands, an absolute path. Default: `/bin/sh`.
    pub shell: Option<String>,
    /// Secret variables that commands see nevertheless, by exact name.
    pub inherit_env: Option<Vec<String>>,
    /// Whether commands may run where the kernel has no Landlock, which would keep them from Pintle's own data and from
    /// answering for a person. Default false: `exec` is refused there. Counts in your own configuration and in a file
    /// named with `-c`, never in one that was found.
    pub unconfined: Option<bool>,
}

/// Fetching pages.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawWebFetch {
    /// Exceptions to the rule that private addresses are out of reach.
    pub allow: Option<Vec<RawAllow>>,
}

/// An exception: a host or a network, on all usual ports or on those named.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawAllow {
    /// A host name, as in a URL.
    pub host: Option<String>,
    /// A network such as `10.1.0.0/16`, or a single address.
    pub cidr: Option<String>,
    /// Ports. Default: the usual ones.
    pub ports: Option<Vec<u16>>,
}

/// Rules that are kept in the store or in files, and how they run.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RawAgentHooks")]
pub struct RawRules {
    /// A folder of files with rules (`*.toml`, `*.json`), relative to the folder of this file.
    pub dir: Option<String>,
    /// Built-in rules that are forced off, by id.
    pub builtin_disable: Option<Vec<String>>,
    /// Secret variables that command hooks may list nevertheless, by exact name.
    pub command_env: Option<Vec<String>>,
    /// `memory` (default), or `durable`: what observers are told survives a restart, and is tried up to five times.
    pub outbox: Option<String>,
    /// How long events and executions are kept, in days. Default 90.
    #[schemars(range(min = 1))]
    pub retention_days: Option<u32>,
    /// How long the encrypted details of faults are kept, in days. Default 30.
    #[schemars(range(min = 1))]
    pub error_detail_days: Option<u32>,
    /// How long the audit chain is kept, in days. It is cut at a signed checkpoint, which stays. Default: as
    /// `retention_days`.
    #[schemars(range(min = 1))]
    pub audit_retention_days: Option<u32>,
    /// How many observers run at once. Default 16.
    #[schemars(range(min = 1))]
    pub workers: Option<u32>,
    /// How many observers wait. Default 512.
    #[schemars(range(min = 2))]
    pub queue: Option<u32>,
    /// The model of judges whose hook names none that this host has.
    pub prompt: Option<RawJudge>,
    /// Requests of hooks.
    pub http: Option<RawRuleHttp>,
}

/// Which model to ask.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawJudge {
    /// The provider, by its name under `providers`.
    pub provider: Option<String>,
    /// The model, as that provider knows it.
    pub model: Option<String>,
}

/// Requests of hooks.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RawHookHttp")]
pub struct RawRuleHttp {
    /// Exceptions to the rule that private addresses are out of reach.
    pub allow: Option<Vec<RawRuleAllow>>,
}

/// An exception for hooks: a host or a network, on all usual ports or on those named, for some tenants.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "RawHookAllow")]
pub struct RawRuleAllow {
    /// A host name, as in a URL.
    pub host: Option<String>,
    /// A network such as `10.1.0.0/16`, or a single address.
    pub cidr: Option<String>,
    /// Ports. Default: the usual ones.
    pub ports: Option<Vec<u16>>,
    /// Tenants, by slug; `*` for everyone. Default: global hooks and the tenant `default`.
    pub tenants: Option<Vec<String>>,
}

/// What kind of host this is, and how `pintle serve` is reached.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawGateway {
    /// Where it listens: `ADDRESS:PORT` or `unix:PATH`. `--listen` goes before it. Default: `127.0.0.1:18790`.
    pub listen: Option<Vec<String>>,
    /// The name of the variable that holds the gateway token; never the token itself. Whoever has it is an administrator.
    pub token_env: Option<String>,
    /// The users who own the host, with that token. Default: `system`.
    pub owner_ids: Option<Vec<String>>,
    /// Origins of other pages that may ask, such as `https://chat.example.org`.
    pub allowed_origins: Option<Vec<String>>,
    /// The proxies in front of it, as addresses or networks such as `10.0.0.0/8`: what they say of who asks is believed.
    pub trusted_proxies: Option<Vec<String>>,
    /// The address under which people know it, such as `https://pintle.example.org`.
    pub public_url: Option<String>,
    /// The files of its certificate.
    pub tls: Option<RawTls>,
    /// How many requests a minute each key may make, and each user of whoever has the token, on each node. Default: 600.
    pub requests_per_minute: Option<NonZeroU32>,
    /// How many seconds a request over HTTP waits for somebody to answer an approval. Default: 120.
    pub approval_wait_s: Option<u32>,
    /// Longest body of a request, in bytes; uploads have a limit of their own, 25 MiB. Default: 10485760.
    pub max_body: Option<u32>,
    /// Most that the files have which clients of one tenant handed over, in MiB. Default: 1024.
    pub media_quota_mb: Option<u32>,
    /// Where numbers are told to whoever asks at `/metrics`: `ADDRESS:PORT` or `unix:PATH`. Without it only administrators
    /// ask, at the other addresses.
    pub metrics_listen: Option<String>,
    /// How many seconds it goes on as before once it is to end, so that balancers see it. Default: 5.
    pub drain_delay_s: Option<u32>,
    /// How many seconds turns may go on after that. Default: 30.
    pub drain_s: Option<u32>,
    /// Who is told what happens, by signed requests. Each file adds its own.
    pub webhooks: Option<Vec<RawWebhook>>,
    /// What this node is called among those that share a database, the same after each start. Default: the machine and
    /// the folder of the state.
    pub node: Option<String>,
    /// `lite` (one tenant, command hooks) or `standard` (several tenants, no command hooks). Default: `lite` with SQLite,
    /// `standard` with PostgreSQL. `PINTLE_EDITION` goes before it.
    pub edition: Option<String>,
}

/// Somebody who is told what happens.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawWebhook {
    /// Where, such as `https://example.org/pintle`. Requests go to this host and port, whatever it resolves to, and to no
    /// other: redirects are not followed.
    pub url: Option<String>,
    /// Of which events: `execution.blocked`, `approval.created`, `approval.decided`, `breaker.tripped`, `budget.low`,
    /// `hook.changed`, `turn.failed`.
    pub events: Option<Vec<String>>,
    /// The name of the variable that holds the secret, `whsec_` and base64; never the secret itself. While rotating it
    /// holds two, with a space between them.
    pub secret_env: Option<String>,
    /// The tenant whose events are meant, by its slug. Default: every tenant's.
    pub tenant: Option<String>,
}

/// The files of a certificate, relative to the folder of this file.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawTls {
    /// The chain of certificates, in PEM.
    pub cert: Option<String>,
    /// Its private key, in PEM.
    pub key: Option<String>,
}

/// The JSON Schema of the configuration.
pub fn schema() -> Value {
    cached_schema().clone()
}

/// The same, made once.
pub(super) fn cached_schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| schemars::schema_for!(RawConfig).to_value().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undescribed(schema: &Value, path: &str, found: &mut Vec<String>) {
        for (key, member) in schema["properties"].as_object().into_iter().flatten() {
            if member.get("description").is_none() && !path.contains("EachStage") {
                found.push(format!("{path}.{key}"));
            }
        }
        for (name, definition) in schema["$defs"].as_object().into_iter().flatten() {
            undescribed(definition, name, found);
        }
    }

    #[test]
    fn every_key_is_described() {
        let mut found = Vec::new();
        undescribed(cached_schema(), "", &mut found);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn no_table_takes_unknown_keys() {
        for (name, definition) in cached_schema()["$defs"].as_object().unwrap() {
            if definition.get("properties").is_some() {
                assert_eq!(definition["additionalProperties"], Value::Bool(false), "{name}");
            }
        }
    }
}
