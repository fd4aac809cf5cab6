//! The rules of the store and of files, in force in this process: what they run on, and the desk where they are managed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use domain::agent_hook::Edition;
use domain::checkpoint::Known;
use domain::id::{AgentId, DEFAULT_TENANT, HookId, HookName, SENTINEL_TENANT, TenantId};
use domain::json::Object;
use domain::shell::ShellFacts;
use domain::store::ExecutionStore as _;
use engine::Engine;
use engine::approvals::SystemClock;
use engine::desk::SealingVault;
use engine::desk::{Desk, DeskParts};
use engine::egress::{Egress, KeepAlive};
use engine::handlers::agent::{
    CommandSurroundings, Evaluator, JudgeSettings, Judges, Outbox, Parts, Pool, PoolLimits, ScriptCall, ScriptFailure,
    ScriptRan, Scripts, Vault,
};
use engine::handlers::http::Exchange;
use engine::rulebook::{Agents, Rulebook};
use futures_util::future::BoxFuture;
use jiff::SignedDuration;
use sandbox::{CompileError, Launcher, Sandbox, ScriptFault};
use store::keyring::signing::SigningKey;
use store::keyring::{Form, KeySource, Keyring, Place};
use store::{Sealing, Store};
use tokio_util::sync::CancellationToken;

use crate::boot::{Boot, Booted};
use crate::cli::SCRIPT_COMMAND;
use crate::config::{Config, Env, JudgeConfig, Loaded};
use crate::error::CliError;
use crate::host::{open_store_with, provider_spec};
use crate::judges::ModelJudges;

/// The variables that say what kind of host this is, the first that is set.
const EDITIONS: [&str; 2] = ["PINTLE_EDITION", "GOCLAW_EDITION"];

/// The store that nothing outlives.
const IN_MEMORY: &str = "memory:";

/// What is said where jobs cannot be kept as they were to be.
const NO_OUTBOX: &str = "agent_hooks.outbox: \"durable\" needs an encryption key; until PINTLE_ENCRYPTION_KEY is set, \
                         what observers are told does not outlive this process";

/// The rules of one host: in force, and where they are managed.
pub struct Book {
    grounds: Grounds,
    parts: Arc<Parts>,
    rulebook: Arc<Rulebook>,
    store: Arc<Store>,
    desk: Desk,
    /// What is wrong with rules, a line each.
    pub diagnostics: Vec<String>,
    watching: CancellationToken,
}

impl Book {
    /// Brings the rules of `store` up to date and puts them in force in `engine`. Blocks.
    pub fn open(grounds: Grounds, (loaded, env): (&Loaded, &Env), (engine, store): (&Engine, &Arc<Store>)) -> Self {
        let config = &loaded.config;
        let judges = ModelJudges::new(config, BTreeMap::new(), |name, provider| provider_spec(env, name, provider));
        let evaluator = (!config.providers.is_empty()).then(|| Arc::new(judges) as Arc<dyn Evaluator>);
        let parts = grounds.parts((config, env), (engine, store), evaluator);
        let booted = grounds.boot(config, store);
        let workspaces = grounds.workspaces.clone();
        let agents: Agents = Arc::new(move || workspaces.agents());
        let (rulebook, read) = Rulebook::open(store.clone(), engine.live().clone(), parts.clone(), agents.clone());
        let mut diagnostics = booted.diagnostics;
        diagnostics.extend(read.err().map(|error| format!("the rules of the store cannot be read: {error}")));
        if config.agent_hooks.durable_outbox && !grounds.has_outbox(config) {
            diagnostics.push(NO_OUTBOX.to_owned());
        }
        rulebook.hold(booted.files, booted.stubs);
        let desk = grounds.desk(config, (store, &rulebook, &parts, agents));
        let watching = CancellationToken::new();
        engine.tasks().spawn(rulebook.clone().watch(watching.clone()));
        engine.tasks().spawn(forget_old(store.clone(), Terms::of(config), watching.clone()));
        Self { grounds, parts, rulebook, store: store.clone(), desk, diagnostics, watching }
    }

    /// Where rules are managed.
    pub fn desk(&self) -> &Desk {
        &self.desk
    }

    /// The rules in force.
    pub fn rulebook(&self) -> &Arc<Rulebook> {
        &self.rulebook
    }

    /// What the rules run on.
    pub fn parts(&self) -> &Arc<Parts> {
        &self.parts
    }

    /// Takes another configuration: its agents, and its files with rules. Blocks.
    pub fn take(&mut self, config: &Config) {
        self.grounds.workspaces.take(config);
        let booted = self.grounds.boot(config, &self.store);
        self.diagnostics = booted.diagnostics;
        self.diagnostics.extend(self.rulebook.reload().err().map(|error| error.to_string()));
        self.rulebook.hold(booted.files, booted.stubs);
        self.rulebook.remount();
    }

    /// No longer looks for changes.
    pub fn close(&self) {
        self.watching.cancel();
        self.rulebook.close();
        self.parts.pool.close();
    }
}

/// How long what is kept of hooks is kept.
#[derive(Clone, Copy, Debug)]
struct Terms {
    rows: SignedDuration,
    details: SignedDuration,
}

impl Terms {
    fn of(config: &Config) -> Self {
        let days = |days: u32| SignedDuration::from_hours(i64::from(days) * 24);
        let hooks = &config.agent_hooks;
        Self {
            rows: days(hooks.retention_days.unwrap_or(RETENTION_DAYS)),
            details: days(hooks.error_detail_days.unwrap_or(DETAIL_DAYS)),
        }
    }
}

/// How long executions are kept. Source: agent hooks, retention.
const RETENTION_DAYS: u32 = 90;
/// How long the details of faults are kept. Source: the same.
const DETAIL_DAYS: u32 = 30;
/// How often it is looked for what is too old: what is kept an hour longer harms nobody.
const FORGET_EVERY: Duration = Duration::from_secs(3600);
/// How much is forgotten at a time, in rows: a pause of milliseconds for those who write.
const FORGET_ROWS: usize = 500;

/// Forgets what is too old, some at a time, until it is cancelled.
async fn forget_old(store: Arc<Store>, terms: Terms, cancel: CancellationToken) {
    loop {
        let forgetful = store.clone();
        let forgotten = tokio::task::spawn_blocking(move || {
            let now = jiff::Timestamp::now();
            forgetful.forget(now - terms.rows, now - terms.details, FORGET_ROWS)
        });
        let more = match forgotten.await {
            Ok(Ok(rows)) => rows >= FORGET_ROWS,
            Ok(Err(error)) => {
                tracing::warn!("old executions could not be forgotten: {error}");
                false
            }
            Err(_) => return,
        };
        let pause = if more { Duration::from_millis(10) } else { FORGET_EVERY };
        tokio::select! {
            () = cancel.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// The kind of host that `config` and the environment make.
///
/// # Errors
/// The environment names one that there is not.
pub fn edition(config: &Config, env: &Env) -> Result<Edition, CliError> {
    for name in EDITIONS {
        if let Some(word) = env.text(name).filter(|word| !word.is_empty()) {
            return Edition::named(word)
                .ok_or_else(|| CliError::usage(format!("{name} is \"{word}\", expected lite or standard")));
        }
    }
    let by_store = if config.store_url.starts_with("postgres") { Edition::Standard } else { Edition::Lite };
    Ok(config.agent_hooks.edition.unwrap_or(by_store))
}

/// The keys of `config`'s secrets: from the environment, or, on lite, from a file of the state.
///
/// # Errors
/// A key is none, or the file cannot be used.
pub fn keyring(config: &Config, env: &Env, edition: Edition) -> Result<Keyring, CliError> {
    let file = match edition {
        Edition::Lite => Some(config.home.join(store::keyring::KEY_FILE)),
        Edition::Standard => None,
    };
    let source = KeySource::new(|name| env.vars.get(name).cloned(), file);
    Keyring::open(&source).map_err(|error| CliError::failed(error.to_string()))
}

/// Where agents work, kept up to date over reloads.
#[derive(Clone, Default)]
pub struct Workspaces(Arc<RwLock<BTreeMap<AgentId, PathBuf>>>);

impl Workspaces {
    /// Takes the agents of `config`.
    pub fn take(&self, config: &Config) {
        let agents = config.agents.values();
        let found = agents.map(|agent| (AgentId::from(agent.name.as_str()), agent.workspace.clone())).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = found;
    }

    /// The agents, by name.
    pub fn agents(&self) -> Vec<AgentId> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    fn of(&self, agent: &AgentId) -> PathBuf {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner).get(agent).cloned();
        known.or_else(|| std::env::current_dir().ok()).unwrap_or_default()
    }
}

/// What the rules of one host run on.
pub struct Grounds {
    /// The edition.
    pub edition: Edition,
    /// Encrypts and decrypts.
    pub keyring: Arc<Keyring>,
    /// Where agents work.
    pub workspaces: Workspaces,
}

impl Grounds {
    /// What `config` and the environment say.
    ///
    /// # Errors
    /// An edition that there is not, or a key that is none.
    pub fn of(config: &Config, env: &Env) -> Result<Self, CliError> {
        let edition = edition(config, env)?;
        let workspaces = Workspaces::default();
        workspaces.take(config);
        // A store in memory keeps no secret longer than this process lives.
        let keyring = match config.store_url.as_str() {
            IN_MEMORY => Keyring::open(&KeySource::default()).map_err(|error| CliError::failed(error.to_string()))?,
            _ => keyring(config, env, edition)?,
        };
        Ok(Self { edition, keyring: Arc::new(keyring), workspaces })
    }

    /// Opens the store of `config` with its keys. One that signs is made beside the state; without it the audit chain
    /// has no checkpoints, and `doctor` says so.
    ///
    /// # Errors
    /// The store cannot be opened.
    pub fn open_store(&self, config: &Config) -> Result<Arc<Store>, CliError> {
        let signing = match config.store_url.as_str() {
            IN_MEMORY => None,
            _ => SigningKey::open_or_create(&config.home)
                .map_err(|error| tracing::warn!("the audit chain has no checkpoints: {error}"))
                .ok(),
        };
        open_store_with(config, Sealing { keyring: Some(self.keyring.clone()), signing: signing.map(Arc::new) })
    }

    fn boot(&self, config: &Config, store: &Arc<Store>) -> Booted {
        let sealed = Sealed(self.keyring.clone());
        let agents = self.workspaces.agents();
        Boot { config, edition: self.edition, store: &**store, sealed: &sealed, agents }.run()
    }

    fn desk(
        &self,
        config: &Config,
        (store, rulebook, parts, agents): (&Arc<Store>, &Arc<Rulebook>, &Arc<Parts>, Agents),
    ) -> Desk {
        let egress = Egress::new(config.agent_hooks.http_allow.clone());
        let workspaces = self.workspaces.clone();
        Desk::new(DeskParts {
            hooks: store.clone(),
            executions: store.clone(),
            budgets: store.clone(),
            rulebook: rulebook.clone(),
            parts: parts.clone(),
            vault: Arc::new(Sealed(self.keyring.clone())),
            agents,
            known_of: Arc::new(move |tenant, agent| Arc::new(ByWorkspace::new(tenant, agent, workspaces.of(agent)))),
            check_url: Arc::new(move |slug, url| {
                egress.for_tenant(slug).check_url(url).map(|_| ()).map_err(|why| why.to_string())
            }),
            // Whoever manages rules from the command line is the operator of this host.
            owns_session: Arc::new(|_, _| true),
            clock: Arc::new(SystemClock),
        })
    }

    /// Whether what observers are told is kept in the store until they heard it. A store on disk takes it only sealed.
    fn has_outbox(&self, config: &Config) -> bool {
        config.agent_hooks.durable_outbox && (self.keyring.can_seal() || config.store_url == IN_MEMORY)
    }

    /// Everything that stored hooks need to run in `engine`.
    pub fn parts(
        &self,
        (config, env): (&Config, &Env),
        (engine, store): (&Engine, &Arc<Store>),
        evaluator: Option<Arc<dyn Evaluator>>,
    ) -> Arc<Parts> {
        let hooks = &config.agent_hooks;
        let limits = PoolLimits::default();
        let limits =
            PoolLimits { workers: hooks.workers.unwrap_or(limits.workers), queue: hooks.queue.unwrap_or(limits.queue) };
        let workspaces = self.workspaces.clone();
        Arc::new(Parts {
            edition: self.edition,
            tasks: engine.tasks().clone(),
            deadlines: engine.deadlines().clone(),
            commands: CommandSurroundings {
                vars: env.vars.iter().map(|(name, value)| (OsString::from(name), value.clone())).collect(),
                operator_env: hooks.command_env.clone(),
                secrets: config.secrets.clone(),
                workspace_of: Arc::new(move |agent| workspaces.of(agent)),
            },
            exchange: Exchange::new(KeepAlive::new(Egress::new(hooks.http_allow.clone())), engine.deadlines().clone()),
            scripts: Arc::new(InSandbox(Sandbox::new(launcher()))),
            evaluator,
            budgets: store.clone(),
            vault: Arc::new(Sealed(self.keyring.clone())),
            slug_of: Arc::new(slug_of),
            judges: Judges::default(),
            judge: JudgeSettings { prompt: named(&hooks.judge), background: named(&hooks.background) },
            pool: if self.has_outbox(config) {
                let outbox = Outbox { store: store.clone(), clock: Arc::new(SystemClock) };
                Pool::durable(limits, store.clone(), engine.tasks().clone(), outbox)
            } else {
                Pool::new(limits, store.clone(), engine.tasks().clone())
            },
        })
    }
}

/// `PROVIDER/MODEL`, or the one of them that is said.
fn named(judge: &JudgeConfig) -> Option<String> {
    match (&judge.provider, &judge.model) {
        (Some(provider), Some(model)) => Some(format!("{provider}/{model}")),
        (Some(one), None) | (None, Some(one)) => Some(one.clone()),
        (None, None) => None,
    }
}

/// The name of a tenant in the operator's allow-list; global hooks have none.
fn slug_of(tenant: &TenantId) -> Option<String> {
    match tenant.as_str() {
        SENTINEL_TENANT => None,
        DEFAULT_TENANT => Some("default".to_owned()),
        other => Some(other.to_owned()),
    }
}

/// This program as a worker for scripts.
fn launcher() -> Launcher {
    Launcher { program: "/proc/self/exe".into(), args: vec![SCRIPT_COMMAND.into()], vars: Vec::new() }
}

/// What is known of an agent for a test of its hooks: the shell texts of `exec`, read in its workspace.
struct ByWorkspace {
    workspace: PathBuf,
    agent_uuid: String,
}

impl ByWorkspace {
    fn new(tenant: &TenantId, agent: &AgentId, workspace: PathBuf) -> Self {
        Self { workspace, agent_uuid: domain::id::agent_uuid(tenant, agent.as_str()) }
    }
}

impl Known for ByWorkspace {
    fn tool(&self, name: &str) -> Option<String> {
        Some(agent::tools::canonical_builtin(name).unwrap_or(name).to_owned())
    }

    fn model(&self, _model: &str) -> bool {
        true
    }

    fn owner(&self, _name: &str) -> Option<HookName> {
        None
    }

    fn agent_uuid(&self) -> &str {
        &self.agent_uuid
    }

    fn shell(&self, name: &str, arguments: &Object) -> Arc<ShellFacts> {
        let facts = agent::tools::shell_facts(name, arguments, &self.workspace);
        Arc::new(facts.unwrap_or_default())
    }
}

/// Runs the scripts of hooks in processes of their own.
struct InSandbox(Sandbox);

impl Scripts for InSandbox {
    fn run<'a>(&'a self, call: ScriptCall<'a>) -> BoxFuture<'a, ScriptRan> {
        Box::pin(async move {
            let ScriptCall { tenant, source, event, timeout, budget } = call;
            let ran = self.0.run(sandbox::Call { tenant, source, event, timeout, budget }).await;
            ScriptRan { returned: ran.returned.map_err(failure), log: ran.log }
        })
    }

    fn check<'a>(&'a self, source: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move { self.0.compile(source).await.map_err(|error| bare(&error)) })
    }
}

/// What is wrong with a script; whoever validates a record says that it is one.
fn bare(error: &CompileError) -> String {
    let text = error.to_string();
    text.strip_prefix("script compile error: ").map_or(text.clone(), str::to_owned)
}

fn failure(fault: ScriptFault) -> ScriptFailure {
    match fault {
        ScriptFault::Timeout { after_ms } => {
            ScriptFailure::TimedOut { after: std::time::Duration::from_millis(after_ms) }
        }
        ScriptFault::NoSlot { waited_ms } => {
            ScriptFailure::NoSlot { waited: std::time::Duration::from_millis(waited_ms) }
        }
        other @ (ScriptFault::Syntax(_)
        | ScriptFault::NoHandle
        | ScriptFault::NotObject
        | ScriptFault::Threw(_)
        | ScriptFault::OutOfMemory
        | ScriptFault::TooDeep
        | ScriptFault::ReturnTooLarge { .. }
        | ScriptFault::Unreadable(_)
        | ScriptFault::EventTooLarge { .. }
        | ScriptFault::SourceTooLarge { .. }
        | ScriptFault::Ended(_)
        | ScriptFault::Engine(_)) => ScriptFailure::Failed(other.to_string()),
    }
}

/// Opens and seals the secrets of rows.
pub struct Sealed(pub Arc<Keyring>);

/// Says whether a script can be used, for whoever cannot wait in a runtime: in a sandbox of its own.
///
/// # Errors
/// The published message.
pub fn check_script(source: &str) -> Result<(), String> {
    let check = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("scripts cannot be checked: {error}"))?;
        runtime.block_on(Sandbox::new(launcher()).compile(source)).map_err(|error| bare(&error))
    };
    std::thread::scope(|scope| {
        let checked = scope.spawn(check).join();
        checked.unwrap_or_else(|_| Err("scripts cannot be checked: the check panicked".into()))
    })
}

impl Sealed {
    /// The value at `path` of the row `hook`, encrypted.
    ///
    /// # Errors
    /// There is no key, or none that can.
    pub fn seal_value(&self, hook: &HookId, tenant: &TenantId, path: &str, plain: &str) -> Result<String, String> {
        let place = Place::new(TABLE, hook.as_str(), tenant.as_str(), path);
        self.0.seal(&place, plain.as_bytes()).map_err(|error| error.to_string())
    }
}

impl SealingVault for Sealed {
    fn seal(&self, hook: &HookId, tenant: &TenantId, path: &str, plain: &str) -> Result<String, String> {
        self.seal_value(hook, tenant, path, plain)
    }
}

/// The table that rows stand in, as their secrets are bound to it.
pub(crate) const TABLE: &str = "agent_hooks";

impl Vault for Sealed {
    fn open(&self, hook: &HookId, tenant: &TenantId, path: &str, text: &str) -> Result<String, String> {
        let place = Place::new(TABLE, hook.as_str(), tenant.as_str(), path);
        let opened = self.0.open_value(&place, text).map_err(|error| error.to_string())?;
        if opened.form == Form::Unsealed {
            tracing::warn!(hook_id = %hook, path, "crypto.unencrypted_value_read");
        }
        opened.plain.as_str().map(str::to_owned).map_err(|error| error.to_string())
    }
}
