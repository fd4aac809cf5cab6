//! Rules that are kept in a store: in force while they change, managed by tenant.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::agent_hook::Edition;
use domain::checkpoint::Known;
use domain::id::{AgentId, TenantId};
use domain::json::Value;
use domain::llm::{LlmReply, LlmRequest};
use domain::store::{HookStore as _, StoreError, Tenant as Row};
use egress::{Allow, Egress};
use engine::Engine;
use futures_util::future::BoxFuture;
use grounds::{Counter, Launcher, Surroundings};
use rules::admin::{Caller, Desk, HistoryQuery, ListFilter, Refused, Role};
use rules::cache::{Agents, Rulebook};
use rules::handler::{CommandSurroundings, Evaluator, JudgeSettings, Judged, Parts, PoolLimits, Wanted};
use rules::judge::Question;
use rules::record::Lang;
use store::keyring::{ENV_KEYS, KeySource, Keyring};
use store::{Durability, Sealing, Store};
use tokio_util::sync::CancellationToken;

use crate::stage::Fut;
use crate::stores::Stores;

/// The word that makes the program `pintle` a worker for scripts.
const WORKER_COMMAND: &str = "__script";
/// What the worker alone is called, which needs no word.
const WORKER: &str = "pintle-script-worker";
/// A script that any worker runs.
const SAMPLE: &str = "function handle(event) { return {}; }";
/// Where a judge stands if a rule names nobody: the host decides then.
const THE_JUDGE: &str = "host";

/// A store of Pintle's own kinds, with the rules that are kept in it.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::path::Path;
///
/// let stores = pintle::Keep::at("sqlite://agent.db", Path::new("state")).key("0f…").open()?;
/// # Ok(())
/// # }
/// ```
pub struct Keep {
    url: String,
    folder: PathBuf,
    key: Option<String>,
    old_keys: Option<String>,
    durable: bool,
    commands: Option<bool>,
    worker: Option<PathBuf>,
    allowed: Vec<(String, Vec<u16>)>,
    judge: Option<Arc<dyn Judge>>,
}

/// A store with rules cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeepError {
    /// The URL names no store, or the store cannot be used.
    #[error("{0}")]
    Store(String),
    /// The key is none.
    #[error("{0}")]
    Key(String),
    /// The program that was to run scripts does not.
    #[error("`{program}` does not run scripts: {why}; name the program `pintle`, or `pintle-script-worker`")]
    Worker {
        /// The program.
        program: String,
        /// What became of a sample.
        why: String,
    },
    /// What requests were to reach cannot stand in a URL.
    #[error("{0}")]
    Allowed(String),
}

/// Asks a language model for the judgement that a rule of the type `prompt` wants.
pub trait Judge: Send + Sync + 'static {
    /// The answer to `request`, whose model is the one that the rule names. Dropped when the rule's time is over.
    fn judge<'a>(&'a self, request: LlmRequest) -> Fut<'a, Result<LlmReply, String>>;
}

impl Keep {
    /// The store at `url`: `sqlite://FILE`, with a relative file taken from `folder`, `postgres://…` or `memory:`.
    pub fn at(url: &str, folder: &Path) -> Self {
        Self {
            url: url.to_owned(),
            folder: folder.to_owned(),
            key: None,
            old_keys: None,
            durable: false,
            commands: None,
            worker: None,
            allowed: Vec::new(),
            judge: None,
        }
    }

    /// Encrypts what is secret in rules: a key of 32 bytes in hex or base64. Without one, rules with secrets are errors.
    #[must_use]
    pub fn key(self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self }
    }

    /// Keys that only open what was encrypted before, separated by commas.
    #[must_use]
    pub fn old_keys(self, keys: &str) -> Self {
        Self { old_keys: Some(keys.to_owned()), ..self }
    }

    /// Records survive the loss of power, and not only the death of the process.
    #[must_use]
    pub fn synced(self) -> Self {
        Self { durable: true, ..self }
    }

    /// Whether rules may run commands. Without a word from you they may where the store is one file or memory, and not
    /// where it is a database of a server, which others write to.
    #[must_use]
    pub fn commands(self, allowed: bool) -> Self {
        Self { commands: Some(allowed), ..self }
    }

    /// Runs scripts of rules by `program`: `pintle`, or `pintle-script-worker`. Without it, adding a rule with a script is
    /// an error.
    #[must_use]
    pub fn scripts_by(self, program: &Path) -> Self {
        Self { worker: Some(program.to_owned()), ..self }
    }

    /// Lets requests of rules reach this host of the inner network, at these ports; none are the usual ones.
    #[must_use]
    pub fn may_reach(mut self, host: &str, ports: &[u16]) -> Self {
        self.allowed.push((host.to_owned(), ports.to_vec()));
        self
    }

    /// Asks `judge` where a rule wants a judgement. Without one such a rule fails, which keeps its gate shut.
    #[must_use]
    pub fn judged_by(self, judge: impl Judge) -> Self {
        Self { judge: Some(Arc::new(judge)), ..self }
    }

    /// Opens the store, and tries the program for scripts. Blocks.
    ///
    /// # Errors
    /// What is wrong with the URL, the key, the store or the program.
    pub fn open(self) -> Result<Stores, KeepError> {
        let lookup = |name: &str| {
            let said = if name == ENV_KEYS[0] { &self.key } else { &None };
            let old = if name == store::keyring::ENV_OLD_KEYS { &self.old_keys } else { &None };
            said.as_ref().or(old.as_ref()).map(Into::into)
        };
        let keyring =
            Keyring::open(&KeySource::new(lookup, None)).map_err(|error| KeepError::Key(error.to_string()))?;
        let keyring = Arc::new(keyring);
        let worker = self.worker.as_deref().map(tried).transpose()?;
        let allowed: Result<Vec<Allow>, _> =
            self.allowed.iter().map(|(host, ports)| Allow::host(host, ports.clone())).collect();
        let allowed = allowed.map_err(|error| KeepError::Allowed(error.to_string()))?;
        let durability = if self.durable { Durability::BeforeEffect } else { Durability::Commit };
        let sealing = Sealing { keyring: Some(keyring.clone()), signing: None };
        let kept = store::open_with(&self.url, &self.folder, durability, sealing);
        let kept = Arc::new(kept.map_err(|error| KeepError::Store(error.to_string()))?);
        let commands = self.commands.unwrap_or(!self.url.starts_with("postgres"));
        let ground = Ground {
            store: kept.clone(),
            keyring,
            edition: if commands { Edition::Lite } else { Edition::Standard },
            folder: self.folder,
            worker,
            egress: Egress::new(allowed),
            judge: self.judge,
        };
        Ok(Stores { rules: Some(Arc::new(ground)), ..Stores::from(kept) })
    }
}

/// How `program` is started as a worker, after it was tried.
fn tried(program: &Path) -> Result<Launcher, KeepError> {
    let alone = program.file_name().is_some_and(|name| name == WORKER);
    let args = if alone { Vec::new() } else { vec![WORKER_COMMAND.into()] };
    let worker = Launcher { program: program.into(), args, vars: Vec::new() };
    let bad = |why: String| KeepError::Worker { program: program.display().to_string(), why };
    grounds::check_script(worker.clone(), SAMPLE).map_err(bad)?;
    Ok(worker)
}

/// What the rules of a host stand on until it is opened.
pub(crate) struct Ground {
    store: Arc<Store>,
    keyring: Arc<Keyring>,
    edition: Edition,
    folder: PathBuf,
    worker: Option<Launcher>,
    egress: Egress,
    judge: Option<Arc<dyn Judge>>,
}

/// The rules of one host, in force.
pub(crate) struct Book {
    store: Arc<Store>,
    rulebook: Arc<Rulebook>,
    parts: Arc<Parts>,
    desk: Desk,
    agents: Arc<Mutex<BTreeSet<AgentId>>>,
}

impl Book {
    /// Puts the rules of `ground` in force in `engine`, and looks for changes until `closing` is set. Blocks.
    pub(crate) fn open(ground: &Ground, engine: &Engine, closing: &CancellationToken) -> Result<Self, StoreError> {
        let folder = ground.folder.clone();
        let evaluator = ground.judge.clone().map(|judge| Arc::new(Judging(judge)) as Arc<dyn Evaluator>);
        let around = Surroundings {
            edition: ground.edition,
            commands: CommandSurroundings {
                vars: std::env::vars_os().collect(),
                operator_env: Vec::new(),
                secrets: BTreeSet::new(),
                workspace_of: Arc::new(move |_| folder.clone()),
            },
            egress: ground.egress.clone(),
            worker: ground.worker.clone(),
            evaluator,
            judge: JudgeSettings::default(),
            limits: PoolLimits::default(),
            outbox: false,
        };
        let parts = grounds::parts(around, (engine, &ground.store), &ground.keyring);
        let known: Arc<Mutex<BTreeSet<AgentId>>> = Arc::default();
        let met = known.clone();
        let agents: Agents = Arc::new(move || lock(&met).iter().cloned().collect());
        let (rulebook, read) =
            Rulebook::open(ground.store.clone(), engine.live().clone(), parts.clone(), agents.clone());
        read?;
        let counter = Counter {
            agents,
            known_of: Arc::new(|tenant, agent| Arc::new(Named(domain::id::agent_uuid(tenant, agent.as_str())))),
            // Whoever has a tenant's handle is the host itself.
            owns_session: Arc::new(|_, _| true),
            egress: ground.egress.clone(),
        };
        let desk = grounds::desk(counter, (&ground.store, &ground.keyring), (&rulebook, &parts));
        engine.tasks().spawn(rulebook.clone().watch(closing.clone()));
        Ok(Self { store: ground.store.clone(), rulebook, parts, desk, agents: known })
    }

    /// Takes notice of an agent: rules that name it hold for its turns from the first one on.
    pub(crate) fn meets(&self, agent: &AgentId) {
        if lock(&self.agents).insert(agent.clone()) {
            self.rulebook.remount();
        }
    }

    /// The tenant that is called so, or has this id.
    pub(crate) fn tenant(&self, name: &str) -> Option<TenantId> {
        let rules = self.rulebook.rules();
        let found = rules.tenants.iter().find(|row| row.slug == name || row.id.as_str() == name);
        found.map(|row| row.id.clone())
    }

    /// Writes a new tenant. Blocks.
    pub(crate) fn add_tenant(&self, name: &str) -> Result<TenantId, StoreError> {
        if let Some(known) = self.tenant(name) {
            return Ok(known);
        }
        let id = TenantId::new(uuid::Uuid::now_v7().to_string());
        let created_at = jiff::Timestamp::now().to_string();
        let row = Row { id: id.clone(), slug: name.to_owned(), name: name.to_owned(), created_at };
        self.store.add_tenant(&row)?;
        self.rulebook.reload()?;
        Ok(id)
    }

    /// How many rows of rules that only observe the store could not take.
    pub(crate) fn lost(&self) -> u64 {
        self.parts.pool.lost()
    }

    /// No longer writes what is left, after what observers are told was worked off.
    pub(crate) fn close(&self) {
        self.rulebook.close();
        self.parts.pool.close();
    }

    pub(crate) fn desk(&self) -> &Desk {
        &self.desk
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change under these locks is complete before anything could panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The host's judge as rules ask it.
struct Judging(Arc<dyn Judge>);

impl Evaluator for Judging {
    fn judge<'a>(&'a self, wanted: Wanted<'a>, question: Question) -> BoxFuture<'a, Result<Judged, String>> {
        let model = format!("{}/{}", wanted.provider.unwrap_or(THE_JUDGE), wanted.model);
        Box::pin(async move {
            let request = LlmRequest { model: wanted.model.to_owned(), ..question.to(&model) };
            Ok(Judged { reply: self.0.judge(request).await?, model })
        })
    }
}

/// What is known of an agent for a test of its rules.
struct Named(String);

impl Known for Named {
    fn tool(&self, name: &str) -> Option<String> {
        Some(name.to_owned())
    }

    fn model(&self, _model: &str) -> bool {
        true
    }

    fn owner(&self, _name: &str) -> Option<domain::id::HookName> {
        None
    }

    fn agent_uuid(&self) -> &str {
        &self.0
    }
}

/// The rules of one tenant, where they are managed. What is written is in force when a method returns, also for turns in
/// progress.
pub struct Rules {
    desk: Desk,
    by: Caller,
}

/// Why something is not done with a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RuleError {
    /// The kind, for programs: `INVALID_REQUEST`, `NOT_FOUND`, `FAILED_PRECONDITION`, `UNAVAILABLE` and the like.
    pub code: &'static str,
    /// For people.
    pub message: String,
}

impl From<Refused> for RuleError {
    fn from(refused: Refused) -> Self {
        Self { code: refused.code.word(), message: refused.message }
    }
}

/// A rule that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its id.
    pub id: String,
    /// Settings that are allowed and probably not meant.
    pub warnings: Vec<String>,
}

impl Rules {
    pub(crate) fn new(desk: Desk, tenant: TenantId) -> Self {
        let by = Caller { tenant, role: Role::Admin, name: "host".to_owned(), user: None, lang: Lang::Cli };
        Self { desk, by }
    }

    /// The same, as this person: the log of changes names them.
    #[must_use]
    pub fn by(self, name: &str) -> Self {
        Self { by: Caller { name: name.to_owned(), ..self.by }, ..self }
    }

    /// Writes a rule, as a record of the published form.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub async fn create(&self, record: &Value) -> Result<Written, RuleError> {
        let created = self.desk.create(&self.by, record).await?;
        Ok(Written { id: created.id.to_string(), warnings: created.warnings })
    }

    /// Changes these members of a rule.
    ///
    /// # Errors
    /// There is no such rule of this tenant, or what is wrong with the change.
    pub async fn update(&self, id: &str, members: &Value) -> Result<Written, RuleError> {
        let updated = self.desk.update(&self.by, id, members, None).await?;
        Ok(Written { id: id.to_owned(), warnings: updated.warnings })
    }

    /// Switches a rule on or off.
    ///
    /// # Errors
    /// There is no such rule of this tenant.
    pub async fn enable(&self, id: &str, enabled: bool) -> Result<(), RuleError> {
        self.desk.toggle(&self.by, id, enabled).await?;
        Ok(())
    }

    /// Closes the circuit breaker of a rule.
    ///
    /// # Errors
    /// There is no such rule of this tenant.
    pub async fn reset(&self, id: &str) -> Result<(), RuleError> {
        self.desk.reset(&self.by, id, None).await?;
        Ok(())
    }

    /// Deletes a rule.
    ///
    /// # Errors
    /// There is no such rule of this tenant.
    pub async fn delete(&self, id: &str) -> Result<(), RuleError> {
        Ok(self.desk.delete(&self.by, id).await?)
    }

    /// The rules that hold for this tenant, secrets left out.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn list(&self) -> Result<Vec<Value>, RuleError> {
        Ok(self.desk.list(&self.by, &ListFilter::default()).await?)
    }

    /// One rule.
    ///
    /// # Errors
    /// There is no such rule of this tenant.
    pub async fn get(&self, id: &str) -> Result<Value, RuleError> {
        Ok(self.desk.get(&self.by, id).await?)
    }

    /// What the rules did last, newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn history(&self, limit: usize) -> Result<Vec<Value>, RuleError> {
        let query = HistoryQuery { limit: Some(limit), ..HistoryQuery::default() };
        Ok(self.desk.history(&self.by, &query).await?.executions)
    }

    /// Sets what judges may cost this tenant in a month, in tokens.
    ///
    /// # Errors
    /// It is no number of tokens, or the store cannot be written.
    pub async fn set_budget(&self, tokens: i64) -> Result<(), RuleError> {
        // The host itself owns all of its tenants; whoever it hands these rules to does not.
        let owner = Caller { role: Role::Owner, ..self.by.clone() };
        self.desk.set_budget(&owner, &self.by.tenant, tokens).await?;
        Ok(())
    }
}
