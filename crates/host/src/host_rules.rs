//! The rules of the store and of files, in force in this process: what they run on, and the rule admin where they are
//! managed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use pintle_domain::checkpoint::Duty;
use pintle_domain::hook::Hook;
use pintle_domain::id::AgentId;
use pintle_domain::rule::{Edition, Rule};
use pintle_domain::store::{StoreError, StoredRules};
use pintle_egress::Egress;
use pintle_engine::Engine;
use pintle_rule_runtime::{AdminSettings, KeyringVault, RuntimeSettings};
use pintle_rules::admin::RuleAdmin;
use pintle_rules::cache::{AgentNames, RuleCache};
use pintle_rules::handler::{CommandEnv, Evaluator, JudgeSettings, PoolLimits, RuleServices};
use pintle_store::keyring::signing::SigningSource;
use pintle_store::keyring::{KeySource, Keyring};
use pintle_store::{AnchorFile, Store, StoreKeys};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::blind;
use crate::config::{Config, Env, JudgeConfig, Loaded, commands};
use crate::config_store::open_store_with;
use crate::error::HostError;
use crate::judges::ModelJudges;
use crate::links;
use crate::provider_spec::provider_spec;
use crate::rule_files::{FileProblem, FiledRules};
use crate::rule_sync::{RuleSync, SyncReport};
use crate::scripts::launcher;
use crate::team_rules::{Beside, TeamGate, TeamSlot};

mod retention;
mod workspaces;

use workspaces::ByWorkspace;
pub use workspaces::Workspaces;

use retention::{RetentionTerms, forget_old};
pub use retention::{audit_term, event_term};

/// The variables that say what kind of host this is, the first that is set.
const EDITIONS: [&str; 2] = ["PINTLE_EDITION", "GOCLAW_EDITION"];

/// The store that nothing outlives.
const IN_MEMORY: &str = "memory:";

/// The message where jobs cannot be kept as they were to be.
const NO_OUTBOX: &str = "agent_hooks.outbox: \"durable\" needs an encryption key; until PINTLE_ENCRYPTION_KEY is set, \
                         what observers are told does not outlive this process";

/// The rules of one host: in force, and where they are managed.
pub struct HostRules {
    rule_env: RuleEnvironment,
    parts: Arc<RuleServices>,
    rule_cache: Arc<RuleCache>,
    store: Arc<dyn Store>,
    rule_admin: RuleAdmin,
    /// The problems of rules, a line each.
    pub diagnostics: Vec<String>,
    /// Which of that leaves something unguarded, or shut.
    pub unguarded: Vec<String>,
    of_files: OfFiles,
    team: TeamSlot,
    /// How long what hooks did is kept.
    terms: watch::Sender<RetentionTerms>,
    watching: CancellationToken,
}

/// What came of the rules of files.
#[derive(Default)]
struct OfFiles {
    /// Those that are not in order.
    bad: Vec<FileProblem>,
    /// Those that nobody accepted.
    strangers: Vec<Hook>,
    /// Those that are in force.
    filed: Vec<Rule>,
}

/// The rules of files of another configuration, read and not yet in force.
pub struct PreparedRules {
    rules: StoredRules,
    filed: FiledRules,
}

impl HostRules {
    /// Brings the rules of `store` up to date and puts them in force in `engine`. Blocks.
    pub fn open(
        rule_env: RuleEnvironment,
        (loaded, env): (&Loaded, &Env),
        (engine, store): (&Engine, &Arc<dyn Store>),
    ) -> Self {
        let config = &loaded.config;
        let judges = ModelJudges::new(config, BTreeMap::new(), |name, provider| provider_spec(env, name, provider));
        let evaluator = (!config.providers.is_empty()).then(|| Arc::new(judges) as Arc<dyn Evaluator>);
        let parts = rule_env.parts((config, env), (engine, store), evaluator);
        if let Some(tracer) = engine.evidence().tracer() {
            parts.pool.trace_by(tracer.clone());
        }
        let mut sync_report = rule_env.syncing(config, store, |rule_sync| rule_sync.run());
        let read = sync_report.read.take();
        let workspaces = rule_env.workspaces.clone();
        let before = workspaces.clone();
        let at_work: AgentNames = Arc::new(move || before.ever());
        let agents: AgentNames = Arc::new(move || workspaces.agents());
        let live = engine.live().clone();
        let (rule_cache, read) = RuleCache::open_read(store.clone(), live, parts.clone(), at_work, read);
        let unread = read.err().map(|error| never_read(&error));
        let no_outbox = config.agent_hooks.durable_outbox && !rule_env.has_outbox(config);
        let rule_admin = rule_env.rule_admin(config, (store, &rule_cache, &parts, agents));
        let watching = CancellationToken::new();
        engine.tasks().spawn(rule_cache.clone().watch(watching.clone()));
        let (terms, terms_now) = watch::channel(RetentionTerms::of(&config.agent_hooks.kept));
        engine.tasks().spawn(forget_old(store.clone(), terms_now, watching.clone()));
        let mut team = TeamSlot::new(env, (&rule_cache, store), (engine.tasks(), &watching));
        team.take(config);
        let mut host_rules = Self {
            rule_env,
            parts,
            rule_cache,
            store: store.clone(),
            rule_admin,
            diagnostics: Vec::new(),
            unguarded: Vec::new(),
            of_files: OfFiles::default(),
            team,
            terms,
            watching,
        };
        host_rules.put(config, sync_report, unread);
        host_rules.diagnostics.extend(no_outbox.then(|| NO_OUTBOX.to_owned()));
        host_rules
    }

    /// Puts the rules of files in force, and shuts what cannot be read.
    fn put(&mut self, config: &Config, sync_report: SyncReport, unread: Option<String>) {
        self.team.hold(Beside { files: sync_report.files.clone(), stubs: sync_report.unasked() });
        let doubts = self.doubts();
        let wrong = || unread.iter().chain(&doubts).cloned();
        let rules = self.rule_cache.rules();
        let blind: Vec<_> = blind::of_rules(config, &rules.hooks, &self.rule_cache).collect();
        let replaceable: Vec<_> = commands::of_rules(&rules.hooks).collect();
        let named = || blind.iter().chain(&replaceable);
        let shut_nothing = named().filter(|(rule, _)| rule.event.duty() == Duty::Gate);
        // Why is said at every start.
        let unguarded = shut_nothing.map(|(rule, _)| rule.label().to_owned());
        self.unguarded = sync_report.unguarded().chain(wrong()).chain(unguarded).collect();
        self.diagnostics =
            sync_report.lines().into_iter().chain(wrong()).chain(named().map(|it| it.1.clone())).collect();
        self.of_files = OfFiles { bad: sync_report.bad, strangers: sync_report.strangers, filed: sync_report.files };
    }

    /// Rules of the store that are not as Pintle left them, and what is to be done, a line each.
    pub fn doubts(&self) -> Vec<String> {
        in_doubt(&self.rule_cache.rules())
    }

    /// The edition of the host.
    pub fn edition(&self) -> Edition {
        self.rule_env.edition
    }

    /// Where agents work.
    pub(crate) fn workspaces(&self) -> &Workspaces {
        &self.rule_env.workspaces
    }

    /// Where rules are managed.
    pub fn rule_admin(&self) -> &RuleAdmin {
        &self.rule_admin
    }

    /// Where the key comes from that signs here.
    pub fn signing(&self) -> &SigningSource {
        &self.rule_env.signing
    }

    /// The rules in force.
    pub fn rule_cache(&self) -> &Arc<RuleCache> {
        &self.rule_cache
    }

    /// The services that the rules run on.
    pub fn parts(&self) -> &Arc<RuleServices> {
        &self.parts
    }

    /// The rules that no row stands for: those of files that are not in order, as hooks that fail, those that nobody
    /// accepted, and those of a team that cannot run here.
    pub fn extra_hooks(&self) -> Vec<Hook> {
        let OfFiles { bad, strangers, .. } = &self.of_files;
        bad.iter().map(FileProblem::listed).chain(strangers.iter().cloned()).chain(self.team.shut_hooks()).collect()
    }

    /// Whether the rules of a team let anything pass.
    pub fn team_gate(&self) -> TeamGate {
        self.team.gate()
    }

    /// Asks the gateway of a team for its rules, unless another process of this home does, and waits for its first word;
    /// not for long.
    pub async fn follow_team(&self) {
        self.team.follow().await;
    }

    /// Reads the files with rules of another configuration. What runs stays as it is. Blocks.
    ///
    /// # Errors
    /// Something is wrong that was not wrong before, or the store cannot be read.
    pub fn prepare(&self, config: &Config) -> Result<PreparedRules, String> {
        let rules = self.store.rules().map_err(|error| format!("the rules of the store cannot be read: {error}"))?;
        let filed = self.rule_env.syncing(config, &self.store, |rule_sync| rule_sync.read(&rules));
        match filed.bad.iter().find(|bad| !self.of_files.bad.iter().any(|before| before.is_same(bad))) {
            Some(new) => Err(new.line()),
            None => Ok(PreparedRules { rules, filed }),
        }
    }

    /// The rules of files that are in force and that `prepared` has no more.
    pub fn gone(&self, config: &Config) -> Vec<String> {
        let Ok(rules) = self.store.rules() else { return Vec::new() };
        let filed = self.rule_env.syncing(config, &self.store, |rule_sync| rule_sync.read(&rules));
        let acts = |hook: &&Rule| hook.enabled;
        let is_gone = |hook: &&Rule| {
            let stays = filed.good.iter().any(|good| good.plain.id == hook.id && good.plain.enabled);
            !stays && !filed.bad.iter().any(|bad| bad.may_mean(hook))
        };
        self.of_files.filed.iter().filter(acts).filter(is_gone).map(|hook| hook.label().to_owned()).collect()
    }

    /// Takes another configuration: its agents, and its files with rules. Blocks.
    pub fn take(&mut self, config: &Config, prepared: PreparedRules) {
        self.rule_env.workspaces.take(config);
        self.terms.send_replace(RetentionTerms::of(&config.agent_hooks.kept));
        self.team.take(config);
        let PreparedRules { rules, filed } = prepared;
        let sync_report = self.rule_env.syncing(config, &self.store, |rule_sync| rule_sync.carry_out(&rules, filed));
        let unread =
            self.rule_cache.reload().err().map(|error| format!("the rules of the store cannot be read: {error}"));
        self.put(config, sync_report, unread);
        self.rule_cache.remount();
    }

    /// How many rows of hooks that only observe the store could not take.
    pub fn lost(&self) -> u64 {
        self.parts.pool.lost()
    }

    /// Sends what observers are still to be told of what happened before, for a program that is about to end: not for
    /// long.
    pub async fn send_due(&self) {
        self.parts.pool.send_due().await;
    }

    /// No longer looks for changes.
    pub fn close(&self) {
        self.watching.cancel();
        self.rule_cache.close();
        self.parts.pool.close();
    }
}

/// What the anchor says of the rules of a store, a line each.
pub fn in_doubt(rules: &StoredRules) -> Vec<String> {
    let acts = rules.doubts.iter().filter(|doubt| doubt.rule.acts);
    let doubts =
        acts.map(|doubt| format!("{}; what it guards stays shut; {}", doubt.text(), doubt.remedy(rules.is_of_server)));
    rules.shut.iter().cloned().chain(doubts).collect()
}

/// The file that knows the store of `config` from outside of it.
pub fn anchor(config: &Config) -> Option<Arc<AnchorFile>> {
    let is_kept = config.store_url != IN_MEMORY && config.bad_store().is_none();
    is_kept.then(|| Arc::new(AnchorFile::beside(&config.home, &config.store_url)))
}

/// Opens the store of `config` with what is known of it outside, and nothing to encrypt or sign with.
///
/// # Errors
/// It cannot be opened.
pub fn open_known_store(config: &Config, env: &Env) -> Result<Arc<dyn Store>, HostError> {
    open_store_with(config, StoreKeys { anchor: anchor(config), ..keys_to_tell(config, env) })
}

/// The keys that tell what a host with `config` sealed. None is made: what is only looked at stays as it is.
pub fn keys_to_tell(config: &Config, env: &Env) -> StoreKeys {
    let file = Some(config.home.join(pintle_store::keyring::KEY_FILE)).filter(|file| file.is_file());
    let file = file.filter(|_| edition(config, env).is_ok_and(|edition| edition == Edition::Lite));
    let keyring = Keyring::open(&KeySource::new(|name| env.vars.get(name).cloned(), file)).ok();
    let signing = signing(config, env);
    let signing = signing.is_there().then(|| signing.key().ok()).flatten();
    let (keyring, signing) = (keyring.map(Arc::new), signing.map(Arc::new));
    StoreKeys { keyring, signing, ..StoreKeys::default() }.only_to_tell()
}

/// The message where no rules could be read yet, with what to do about it.
fn never_read(error: &StoreError) -> String {
    let until = match error {
        StoreError::Corrupt(_) => "fix or delete that row with a tool for databases; until then every gate stays shut",
        StoreError::Unavailable(_) | StoreError::NotFound(_) | StoreError::Conflict(_) => {
            "until they can every gate stays shut"
        }
    };
    format!("the rules of the store cannot be read: {error}; {until}")
}

/// The kind of host that `config` and the environment make.
///
/// # Errors
/// The environment names one that there is not.
pub fn edition(config: &Config, env: &Env) -> Result<Edition, HostError> {
    edition_of((config.agent_hooks.edition, &config.store_url), env)
}

/// The same of what the configuration says of the edition and of the store.
fn edition_of((written, store_url): (Option<Edition>, &str), env: &Env) -> Result<Edition, HostError> {
    for name in EDITIONS {
        if let Some(word) = env.text(name).filter(|word| !word.is_empty()) {
            return Edition::named(word)
                .ok_or_else(|| HostError::usage(format!("{name} is \"{word}\", expected lite or standard")));
        }
    }
    let by_store = if store_url.starts_with("postgres") { Edition::Standard } else { Edition::Lite };
    Ok(written.unwrap_or(by_store))
}

/// The keys of `config`'s secrets: from the environment, or, on lite, from a file of the state, which is mended first if
/// somebody opened it to others or gave it a second name.
///
/// # Errors
/// A key is none, or the file cannot be used.
pub fn keyring(config: &Config, env: &Env, edition: Edition) -> Result<Keyring, HostError> {
    links::mend(&config.home);
    let file = match edition {
        Edition::Lite => Some(config.home.join(pintle_store::keyring::KEY_FILE)),
        Edition::Standard => None,
    };
    let source = KeySource::new(|name| env.vars.get(name).cloned(), file);
    Keyring::open(&source).map_err(|error| HostError::failed(error.to_string()))
}

/// Where the key comes from that signs the audit chain of `config`.
pub fn signing(config: &Config, env: &Env) -> SigningSource {
    SigningSource::new(|name| env.vars.get(name).cloned(), &config.home)
}

/// The environment that the rules of one host run on.
pub struct RuleEnvironment {
    /// The edition.
    pub edition: Edition,
    /// Encrypts and decrypts.
    pub keyring: Arc<Keyring>,
    /// Where the key that signs comes from.
    pub signing: SigningSource,
    /// Where agents work.
    pub workspaces: Workspaces,
}

impl RuleEnvironment {
    /// The environment that `config` and the process environment make.
    ///
    /// # Errors
    /// An edition that there is not, or a key that is none.
    pub fn of(config: &Config, env: &Env) -> Result<Self, HostError> {
        let edition = edition(config, env)?;
        let workspaces = Workspaces::default();
        workspaces.take(config);
        // A store in memory keeps no secret longer than this process lives.
        let keyring = match config.store_url.as_str() {
            IN_MEMORY => Keyring::open(&KeySource::default()).map_err(|error| HostError::failed(error.to_string()))?,
            _ => keyring(config, env, edition)?,
        };
        Ok(Self { edition, keyring: Arc::new(keyring), signing: signing(config, env), workspaces })
    }

    /// Opens the store of `config` with its keys. One that signs is made beside the state; without it the audit chain
    /// has no checkpoints, and `doctor` says so.
    ///
    /// # Errors
    /// The store cannot be opened.
    pub fn open_store(&self, config: &Config) -> Result<Arc<dyn Store>, HostError> {
        let signing = match config.store_url.as_str() {
            IN_MEMORY => None,
            _ => match self.signing.key() {
                Ok(key) => Some(key),
                // Whoever gave a key means that one.
                Err(error) if self.signing.is_given() => return Err(HostError::usage(error.to_string())),
                Err(error) => {
                    tracing::warn!("the audit chain has no checkpoints: {error}");
                    None
                }
            },
        };
        let keyring = Some(self.keyring.clone());
        let signing = signing.map(Arc::new);
        open_store_with(config, StoreKeys { keyring, signing, changes: None, anchor: anchor(config) })
    }

    /// Does something with the rules of the files of `config`.
    fn syncing<T>(&self, config: &Config, store: &Arc<dyn Store>, work: impl FnOnce(&RuleSync<'_>) -> T) -> T {
        let sealed = KeyringVault(self.keyring.clone());
        let agents = config.agents.values().map(|agent| AgentId::from(agent.name.as_str())).collect();
        work(&RuleSync { config, edition: self.edition, store: &**store, sealed: &sealed, agents })
    }

    fn rule_admin(
        &self,
        config: &Config,
        (store, rule_cache, parts, agents): (&Arc<dyn Store>, &Arc<RuleCache>, &Arc<RuleServices>, AgentNames),
    ) -> RuleAdmin {
        let (workspaces, shell) = (self.workspaces.clone(), config.tools.exec_shell.clone());
        let settings = AdminSettings {
            agents,
            known_of: Arc::new(move |tenant, agent| {
                let (workspace, shell) = (workspaces.of(agent), shell.clone());
                let agent_uuid = pintle_domain::id::agent_uuid(tenant, agent.as_str());
                Arc::new(ByWorkspace { workspace, shell, agent_uuid })
            }),
            // Whoever manages rules from the command line is the operator of this host.
            owns_session: Arc::new(|_, _| true),
            egress: Egress::new(config.agent_hooks.http_allow.clone()),
        };
        pintle_rule_runtime::rule_admin(settings, store, &self.keyring, rule_cache, parts)
    }

    /// Whether what observers are told is kept in the store until they heard it. A store on disk takes it only sealed.
    fn has_outbox(&self, config: &Config) -> bool {
        config.agent_hooks.durable_outbox && (self.keyring.can_seal() || config.store_url == IN_MEMORY)
    }

    /// Everything that rules need to run in `engine`.
    pub fn parts(
        &self,
        (config, env): (&Config, &Env),
        (engine, store): (&Engine, &Arc<dyn Store>),
        evaluator: Option<Arc<dyn Evaluator>>,
    ) -> Arc<RuleServices> {
        let hooks = &config.agent_hooks;
        let limits = PoolLimits::default();
        let limits =
            PoolLimits { workers: hooks.workers.unwrap_or(limits.workers), queue: hooks.queue.unwrap_or(limits.queue) };
        let workspaces = self.workspaces.clone();
        let settings = RuntimeSettings {
            edition: self.edition,
            commands: CommandEnv {
                vars: env.vars.iter().map(|(name, value)| (OsString::from(name), value.clone())).collect(),
                operator_env: hooks.command_env.clone(),
                secrets: config.secrets.clone(),
                workspace_of: Arc::new(move |agent| workspaces.of(agent)),
            },
            egress: Egress::new(hooks.http_allow.clone()),
            worker: Some(launcher()),
            evaluator,
            judge: JudgeSettings { prompt: named(&hooks.judge), background: named(&hooks.background) },
            limits,
            outbox: self.has_outbox(config),
        };
        pintle_rule_runtime::services(settings, engine, store, &self.keyring)
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

#[cfg(test)]
mod tests;
