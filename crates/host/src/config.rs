//! Configuration: which files count, what is wrong in them, and what comes out.
//!
//! Read in this order: [`raw`] (every key), [`document`] (a file as a tree that knows its places), `check` (unknown
//! keys and wrong types), [`found`] (what a file may say that was merely found, and what only the user's own may), `layer`
//! (one file, entry by entry), [`trust`] (how far a found file counts), `discover` (which files there are), `resolve`
//! (layers into one [`Config`]), [`detect`] (providers that nobody configured).
//!
//! A bad entry is a [`Diagnostic`] and everything else loads; only a file that is missing or does not parse ends
//! the command.

pub mod adopted;
mod check;
pub mod commands;
pub mod detect;
pub mod diagnostic;
mod discover;
mod doors;
pub mod document;
pub mod found;
pub mod gateway;
mod guarded;
mod layer;
mod model;
pub mod places;
pub mod raw;
mod resolve;
mod rules;
pub mod trust;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pintle_agent::OnMissingTag;
use pintle_agent::ask::AskGate;
use pintle_agent::tools::ExecShell;
use pintle_dialects::claude::CommandEntry;
use pintle_dialects::process::config::ProcessEntry;
use pintle_dialects::process::config::entry::BuiltinEntry;
use pintle_domain::hook::{Hook, HookState};
use pintle_domain::json::Object;
use pintle_egress::Allow;
use pintle_providers::RemovalMode;
use pintle_providers::capabilities::Overrides;
use pintle_providers::{ToolMode, WireKind};
use pintle_skills::SkillSeals;
use pintle_store::Durability;
use url::Url;

pub use self::detect::Probe;
pub use self::diagnostic::{Diagnostic, Location};
use self::discover::Discovered;
pub use self::discover::twins;
use self::document::Document;
pub use self::gateway::{GatewayConfig, HttpLimits, TlsFiles, WebhookConfig};
pub use self::guarded::{GUARDED_HOSTS, GuardedAsk, GuardedClass, GuardedHost, RulesFrom, TeamKey};
#[cfg(test)]
use self::layer::Layer;
pub use self::model::{ModelRef, ModelRefError};
pub use self::places::Env;
use self::places::FolderFiles;
pub use self::raw::schema;
#[cfg(test)]
use self::resolve::Trusted;
pub use self::rules::{JudgeConfig, RetentionConfig, RulesConfig};
use self::trust::{SpawnSeal, TrustEntry};
use crate::error::HostError;
pub use doors::{
    DoorBudget, DoorLimit, DoorPrice, MODEL_DOORS, ModelDoorConfig, TOOL_DOOR_ASK_TIMEOUT, ToolDoorConfig,
};

/// Where records are kept unless configured otherwise, relative to the home folder.
const STORE_URL: &str = "sqlite://pintle.db";

/// The section of the store, as [`Config::broken`] knows it.
const STORE: &str = "store";

/// The options that the command line gives about configuration.
#[derive(Clone, Copy, Default)]
pub struct LoadOptions<'a> {
    /// `--config`: then the only file that is read.
    pub config: Option<&'a Path>,
    /// `--home`.
    pub home: Option<&'a Path>,
    /// The names of the hooks that are compiled in.
    pub builtins: &'a [&'a str],
    /// Looks for a model server on this machine, if no provider is configured.
    pub probe: Option<&'a Probe<'a>>,
}

/// The configuration that was loaded, and the parts that were not.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The configuration in force.
    pub config: Config,
    /// The findings, in the order of the files.
    pub diagnostics: Vec<Diagnostic>,
    /// One line for each file of which something is left out because it is not trusted, or never counts where it is.
    pub left_out: Vec<String>,
    /// The files that were read, the user's own first.
    pub files: Vec<PathBuf>,
    /// Those of them that count: the user's own or the one that was named, and the one that was accepted.
    pub in_force: Vec<PathBuf>,
}

/// The configuration in force.
#[derive(Clone, Debug)]
pub struct Config {
    /// The folder of the state.
    pub home: PathBuf,
    /// Providers, by name.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// Agents, by name.
    pub agents: BTreeMap<String, AgentConfig>,
    /// Servers of tools, by name.
    pub mcp: BTreeMap<String, McpServerConfig>,
    /// Every hook: armed, switched off, untrusted or broken.
    pub hooks: Vec<LoadedHook>,
    /// Whether a turn may only start when every guard is well.
    pub strict_start: bool,
    /// When a record counts as kept.
    pub durability: Durability,
    /// `sqlite://FILE`, relative to the home folder, or `memory:`.
    pub store_url: String,
    /// The store of conversations, in the same form, where a found folder keeps its own.
    pub conversations_url: Option<String>,
    /// The folders of rules and of skills that found files name, accepted or not, and the files of the
    /// user's own configuration, in use or not: no tool may write there.
    pub found_folders: Vec<PathBuf>,
    /// The user's own state, where another one is in use: no tool may read or write there.
    pub own_home: Option<PathBuf>,
    /// Settings of the built-in tools.
    pub tools: ToolsConfig,
    /// Rules in the store and in files.
    pub agent_hooks: RulesConfig,
    /// How `pintle serve` is reached.
    pub gateway: GatewayConfig,
    /// The folder of skills, where a file names one.
    pub skills_dir: Option<PathBuf>,
    /// Further folders of skills: the user's own.
    pub more_skills: Vec<PathBuf>,
    /// Whether a system message in a history that a front end sends must be one that the host sent.
    pub verify_history: bool,
    /// The names of the variables that hold secrets, as far as the configuration says so.
    pub secrets: BTreeSet<String>,
    /// The model of agents that name none.
    pub default_model: Option<NamedRef>,
    /// The collector that a file names.
    pub otlp_endpoint: Option<String>,
    /// The vendors behind the model door, by name; what is not said holds as usual.
    pub model_doors: BTreeMap<String, ModelDoorConfig>,
    /// The classes of tools that an agent under guard must let be held.
    pub guard_require: BTreeSet<GuardedClass>,
    /// What differs for single coding agents under guard, by name.
    pub guard_hosts: BTreeMap<String, GuardedHost>,
    /// The gateway whose rules hold here, or what is wrong with how it is named.
    pub rules_from: Option<Result<RulesFrom, String>>,
    /// The MCP servers behind the tool door, by name; what is not said holds as usual.
    pub tool_doors: BTreeMap<String, ToolDoorConfig>,
    /// Agents, providers, doors and the store that are bad, by path, each with its diagnostic.
    pub broken: BTreeMap<String, String>,
}

/// A service that answers requests to models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderConfig {
    /// The kind of the provider.
    pub kind: ProviderConfigKind,
    /// The name of the variable that holds its key.
    pub api_key_env: Option<String>,
    /// Whether its models see images.
    pub vision: bool,
    /// The capabilities of its models in the middle of a conversation, where they are not the known ones.
    pub takes: Overrides,
}

/// The kind of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderConfigKind {
    /// A server.
    Server {
        /// The wire that it speaks, one that [has a server](WireKind::has_server).
        wire: WireKind,
        /// Where; its own address when absent.
        base_url: Option<Url>,
        /// How tools are offered.
        tool_mode: ToolMode,
    },
    /// A file of replies.
    Scripted {
        /// The file.
        script: PathBuf,
    },
}

/// A server of tools.
#[derive(Clone, Debug)]
pub struct McpServerConfig {
    /// How it is reached.
    pub reach: McpReach,
    /// Deadline of its handshake and of its list of tools, each.
    pub start_timeout: Duration,
    /// For a server that is trusted by its content: what is checked before every start.
    pub seal: Option<SpawnSeal>,
}

/// How a server of tools is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpReach {
    /// It is a child.
    Command {
        /// Program and arguments; no shell.
        argv: Vec<String>,
        /// Its working directory, absolute.
        dir: PathBuf,
        /// Variables laid over the environment that it inherits.
        env: BTreeMap<String, String>,
        /// Secret variables that are passed on to it.
        inherit_env: Vec<String>,
    },
    /// It runs somewhere.
    Url(Url),
}

/// An agent.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// Its name.
    pub name: String,
    /// The model that it uses; the default one when absent.
    pub model: Option<NamedRef>,
    /// The system text that the model is told first.
    pub system: Option<String>,
    /// The folder that file tools stay inside, absolute.
    pub workspace: PathBuf,
    /// Whether all nodes of a gateway see the same files there.
    pub workspace_shared: bool,
    /// Tools that it is offered, those of MCP servers as globs; the read-only built-ins and all of MCP servers when absent.
    pub tools: Option<Vec<String>>,
    /// Model calls of one turn, at most.
    pub max_iterations: u32,
    /// Globs of tools whose every call waits for a person; of every file that says something about the agent.
    pub ask: Vec<NamedRef>,
    /// Who answers what it asks over the network.
    pub approvers: ApproversConfig,
    /// How many tokens the model takes, about; 0 when nobody knows.
    pub context_tokens: u32,
    /// The purpose of the agent, told to other agents; may be empty.
    pub description: String,
    /// Further models, in the order in which they are tried.
    pub fallbacks: Vec<NamedRef>,
    /// Whether text is shown before the hooks have seen the whole answer.
    pub stream_unreviewed: bool,
    /// Whether this agent is meant where none is named.
    pub default: bool,
    /// Options of every request to the model.
    pub options: Object,
    /// The skills that it has, in order.
    pub skills: Vec<NamedRef>,
    /// The folder that the folders of these stand in.
    pub skills_dir: PathBuf,
    /// What somebody accepted of each, where they were merely found.
    pub skill_seals: Option<SkillSeals>,
    /// How its turns go.
    pub flow: FlowConfig,
    /// The settings of turns that are planned.
    pub planning: PlanningConfig,
    /// The treatment on the wire of a text that left the conversation, where thoughts are bound to it.
    pub removal: RemovalMode,
}

/// Who answers over the network what an agent asks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApproversConfig {
    /// Names of users, and roles, which mean everybody who has at least that one; whoever may answer approvals when absent.
    pub named: Option<Vec<String>>,
    /// Whether it has to be somebody else than the user whose conversation it is.
    pub other_than_asker: bool,
}

/// How the turns of an agent go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlowConfig {
    /// The model works at once.
    #[default]
    Direct,
    /// Where there are tools, a call without tools comes first.
    Planned,
}

/// The settings of turns that are planned. A prompt that nobody wrote is the host's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanningConfig {
    /// The prompt that ends the messages of the planning call.
    pub planning_prompt: Option<String>,
    /// The prompt that ends the messages of the first call with tools.
    pub first_step_prompt: Option<String>,
    /// The prompt that ends the messages of every later call with tools.
    pub agent_loop_prompt: Option<String>,
    /// The meaning of a plan that does not say whether tools are needed.
    pub on_missing_tag: OnMissingTag,
    /// Whether the plan stays in the conversation.
    pub record: bool,
}

impl Default for PlanningConfig {
    fn default() -> Self {
        let (planning_prompt, first_step_prompt, agent_loop_prompt) = (None, None, None);
        Self {
            planning_prompt,
            first_step_prompt,
            agent_loop_prompt,
            on_missing_tag: OnMissingTag::Answer,
            record: true,
        }
    }
}

/// A name that is looked up later, and where it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRef {
    /// The name as it is written.
    pub text: String,
    /// Its place; none for names that are not from a file.
    pub place: Option<Location>,
    /// The keys that lead to it.
    pub path: Vec<String>,
}

/// Settings of the built-in tools.
#[derive(Clone, Debug, Default)]
pub struct ToolsConfig {
    /// The shell that runs commands.
    pub exec_shell: ExecShell,
    /// Secret variables that commands see nevertheless.
    pub exec_inherit_env: Vec<String>,
    /// Whether commands may run where the kernel cannot confine them.
    pub exec_unconfined: bool,
    /// The addresses that `web_fetch` may reach beyond public ones.
    pub web_fetch_allow: Vec<Allow>,
}

/// A hook and what runs it.
#[derive(Clone, Debug)]
pub struct LoadedHook {
    /// The hook.
    pub hook: Hook,
    /// The kind of handler that runs it.
    pub kind: HookKind,
    /// For a hook that is trusted by its content: what is checked before every spawn.
    pub seal: Option<SpawnSeal>,
    /// What its child is made of, trusted by content or not.
    pub content: Option<TrustEntry>,
}

/// The kind of handler that runs a hook.
#[derive(Clone, Debug)]
pub enum HookKind {
    /// A child process.
    Process(ProcessEntry),
    /// Code that is compiled in.
    Builtin(BuiltinEntry),
    /// A command that is run for each event.
    Command(CommandEntry),
    /// The gate of `agents.NAME.ask`.
    Ask(AskGate),
    /// Nothing: it is switched off, untrusted or broken.
    Nothing,
}

/// Loads the configuration.
///
/// # Errors
/// A file is missing or does not parse, unless it was found and nobody accepted it; two that count stand in one folder;
/// or there is no home folder.
pub fn load(env: &Env, options: &LoadOptions<'_>) -> Result<Loaded, HostError> {
    let home = env.home(options.home)?;
    let Discovered { mut layers, mut lines, files, in_force } = match options.config {
        Some(file) => Discovered::named(file, env)?,
        None => Discovered::around(env, &home)?,
    };
    let (mut config, left_out) = resolve::resolve(&mut layers, env, &home, options)?;
    lines.extend(left_out);
    let mut diagnostics = resolve::diagnostics(layers);
    diagnostics.extend(adopted::add(&mut config, env));
    Ok(Loaded { config, diagnostics, left_out: lines, files, in_force })
}

/// The file that [`load`] could not read, and why.
pub fn unreadable(env: &Env, config: Option<&Path>) -> Option<Diagnostic> {
    let files = match config {
        Some(file) => vec![file.to_owned()],
        None => {
            let own = places::own_file(env).ok().flatten();
            let found = places::found(env, None).unwrap_or_default().into_iter().flat_map(|folder| folder.files);
            own.into_iter().chain(found).collect()
        }
    };
    files.iter().find_map(|file| parsed(env, file).err())
}

/// `file`, taken from the working directory, as a tree that knows its places.
///
/// # Errors
/// It is missing or does not parse.
pub fn parsed(env: &Env, file: &Path) -> Result<Document, Diagnostic> {
    let bytes = places::read(&env.cwd.join(file)).map_err(|error| {
        let place = Location { file: file.to_owned(), line: 1, column: 1 };
        Diagnostic { place, path: String::new(), message: error.message, nearest: None, guard: false }
    })?;
    Document::parse(file, &bytes)
}

/// The file that lines for the configuration belong in, and whether it counts only once it is accepted: the nearest
/// one from the working directory upwards, else the user's own, which need not be there yet.
///
/// # Errors
/// Two stand in one folder.
pub fn file_in_force(env: &Env) -> Result<Option<(PathBuf, bool)>, HostError> {
    let own = places::own_file(env)?;
    let nearest = places::found(env, own.as_deref())?.into_iter().find(|folder| !folder.files.is_empty());
    if let Some(FolderFiles { files, .. }) = nearest {
        return Ok(places::only_one(files)?.map(|found| (found, true)));
    }
    Ok(own.or_else(|| Some(env.config_folder()?.join("pintle.toml"))).map(|file| (file, false)))
}

impl Config {
    fn empty(home: PathBuf) -> Self {
        Self {
            home,
            providers: BTreeMap::new(),
            agents: BTreeMap::new(),
            mcp: BTreeMap::new(),
            hooks: Vec::new(),
            strict_start: false,
            durability: Durability::default(),
            store_url: STORE_URL.to_owned(),
            conversations_url: None,
            found_folders: Vec::new(),
            own_home: None,
            tools: ToolsConfig::default(),
            agent_hooks: RulesConfig::default(),
            gateway: GatewayConfig::default(),
            skills_dir: None,
            more_skills: Vec::new(),
            verify_history: false,
            secrets: BTreeSet::new(),
            default_model: None,
            otlp_endpoint: None,
            model_doors: BTreeMap::new(),
            guard_require: BTreeSet::new(),
            guard_hosts: BTreeMap::new(),
            rules_from: None,
            tool_doors: BTreeMap::new(),
            broken: BTreeMap::new(),
        }
    }

    /// The problem of the store, if it is bad: then there is none.
    pub fn bad_store(&self) -> Option<&str> {
        self.broken.get(STORE).map(String::as_str)
    }

    /// Whether conversations are kept no longer than this process lives.
    pub fn forgets_conversations(&self) -> bool {
        self.conversations_url.as_ref().unwrap_or(&self.store_url) == "memory:"
    }

    /// Lets nothing be kept: for commands whose events are nobody's record.
    pub fn keep_nothing(&mut self) {
        self.broken.remove(STORE);
        self.store_url = "memory:".to_owned();
        self.conversations_url = None;
    }

    /// The hooks that were to guard tools and cannot be asked: bad ones and untrusted ones.
    pub fn unguarded(&self) -> impl Iterator<Item = &LoadedHook> {
        use pintle_domain::checkpoint::CheckpointKind::{ApproveTool, BeforeTool, PreToolUse};
        self.hooks.iter().filter(|loaded| {
            let guards =
                [BeforeTool, PreToolUse, ApproveTool].iter().any(|kind| loaded.hook.stages.get(*kind).is_some());
            guards && matches!(loaded.hook.state, HookState::Broken(_) | HookState::Untrusted)
        })
    }
}

#[cfg(test)]
mod tests;
