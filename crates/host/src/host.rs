//! Wires a configuration into a host that runs: store, engine, hooks, and what its agents work with.
//! The agents themselves are made in [`crate::ready_agent`].

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::sync::{Arc, Mutex, PoisonError};

use pintle_agent::tools::{DELEGATE, ExecGuard, Protected, SPAWN, ToolEnv, Tools};
use pintle_domain::approval::ApprovalMode;
use pintle_domain::fault::{Fault, FaultKind};
use pintle_domain::health::Health;
use pintle_domain::history::HistoryKey;
use pintle_domain::id::TenantId;
use pintle_domain::measure::Metric;
use pintle_domain::store::SessionStore;
use pintle_egress::Egress;
use pintle_engine::evidence::Evidence;
use pintle_engine::{Approvals, Asker, Deadlines, Engine, Mount, Watcher};
use pintle_process::{ProcessHook, child_environment};
use pintle_providers::ProviderSpec;
use pintle_store::Store;

use crate::blind;
use crate::collector::{self, Collector};
use crate::config::trust::{FileHashes, before_spawn};
use crate::config::{
    self, AgentConfig, Config, Diagnostic, Env, LoadOptions, Loaded, LoadedHook, ProviderConfig, detect,
};
use crate::conversations::open_sessions;
use crate::error::HostError;
use crate::files::HostMedia;
use crate::health::{FailedStart, HealthFile};
use crate::home;
use crate::host_rules::{HostRules, PreparedRules, RuleEnvironment};
use crate::links;
use crate::mcp_names::is_mcp;
use crate::protected::protected;
use crate::servers::{Servers, ServersByName, is_wanted};
use crate::skill_sets::SkillSets;
use crate::writers;
use pintle_process::orphan_reaper::OrphanReaper;

pub use crate::config_store::open_store;
pub use crate::provider_spec::provider_spec;

/// The hidden command that `exec` is re-executed through, so that its confinement holds for the command alone.
pub const EXEC_COMMAND: &str = "__exec";

/// A process hook that runs, and what it was made of when it was started.
#[derive(Clone)]
pub struct RunningHook {
    process: Arc<ProcessHook>,
    /// The digest under which it was accepted: another one needs another child, even where it would run alike.
    accepted: Option<String>,
    /// The digest of its entry, its program and its files.
    content: Option<String>,
}

impl RunningHook {
    /// Its process.
    pub(crate) fn process(&self) -> &Arc<ProcessHook> {
        &self.process
    }
}

/// Process hooks that run, by name.
pub type RunningHooks = BTreeMap<String, RunningHook>;

/// A configuration in force.
pub struct Host {
    /// The configuration that was loaded.
    pub loaded: Loaded,
    /// The hooks.
    pub engine: Arc<Engine>,
    /// The records, the approvals, the rules, and the sessions unless a found folder keeps these.
    pub store: Arc<dyn Store>,
    /// The sessions.
    pub sessions: Arc<dyn SessionStore>,
    /// Where persons are asked.
    pub approvals: Arc<Approvals>,
    env: Env,
    orphans: OrphanReaper,
    running: Mutex<RunningHooks>,
    /// The MCP servers.
    pub servers: Servers,
    /// The files that tools and hooks hand over.
    pub files: HostMedia,
    /// The rules of the store and of files.
    pub host_rules: HostRules,
    /// The skills of its agents.
    pub skills: SkillSets,
    /// Signs what front ends keep; none where there is no encryption key.
    pub history_key: Option<HistoryKey>,
    /// Who is told what hooks do, if anybody is.
    collector: Option<Collector>,
}

impl Host {
    /// Opens the store and starts the hooks of `loaded`. Needs a runtime.
    ///
    /// # Errors
    /// The store cannot be opened, or two hooks have one name.
    pub fn open(env: Env, loaded: Loaded, watchers: Vec<Arc<dyn Watcher>>) -> Result<Self, HostError> {
        let config = &loaded.config;
        writers::keep_out(&env, &loaded).iter().for_each(|line| tracing::warn!("{line}"));
        links::mend(&config.home);
        links::second_names(&loaded).iter().for_each(|line| tracing::warn!("{line}"));
        let rule_env = RuleEnvironment::of(config, &env)?;
        let store = rule_env.open_store(config)?;
        let sessions = open_sessions(config, &store)?;
        if let Err(why) = home::close(&config.home) {
            tracing::info!("{why}");
        }
        let collector = Collector::open(config, &env);
        let evidence = Evidence::new(store.clone(), watchers, Deadlines::default()).writing_in_place();
        let evidence = match &collector {
            Some(collector) => evidence.traced_by(collector.tracer().clone()),
            None => evidence,
        };
        let engine = Arc::new(Engine::keeping(evidence));
        hide();
        let approvals = Arc::new(Approvals::new(store.clone(), ApprovalMode::Run));
        let (orphans, running) = (OrphanReaper::adopt(), Mutex::default());
        let (servers, files) = (Servers::default(), HostMedia::new(&loaded.config.home, store.clone()));
        let history_key = rule_env.keyring.history_key();
        let host_rules = HostRules::open(rule_env, (&loaded, &env), (&engine, &store));
        let skills = SkillSets::default();
        if let Some(collector) = &collector {
            collector.measure((&engine, &store), host_rules.parts());
        }
        let host = Self {
            loaded,
            engine,
            store,
            sessions,
            approvals,
            env,
            orphans,
            running,
            servers,
            files,
            host_rules,
            skills,
            history_key,
            collector,
        };
        host.skills.look(&host.loaded);
        let (mounts, hooks) = host.mounts(&host.loaded.config);
        host.put(hooks);
        host.engine.replace(mounts).map_err(|error| HostError::usage(error.to_string()))?;
        Ok(host)
    }

    /// Lets persons be asked as `mode` has it, by `asker` if one is there; without this, as [`ApprovalMode::Run`] has
    /// it. For the agents that are made from now on.
    pub fn ask_in(&mut self, mode: ApprovalMode, asker: Option<Arc<dyn Asker>>) {
        let approvals = Approvals::new(self.store.clone(), mode);
        self.approvals = Arc::new(match asker {
            Some(asker) => approvals.with_asker(asker),
            None => approvals,
        });
    }

    /// The mounts of the hooks of `config`, and their processes, started. One that already runs in exactly this way is
    /// kept: where its program or a file of its command is another one by now, it is not.
    pub fn mounts(&self, config: &Config) -> (Vec<Mount>, RunningHooks) {
        let before = self.running.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut running = RunningHooks::new();
        let (mut mounts, mut hashes) = (Vec::new(), FileHashes::default());
        for loaded in &config.hooks {
            let Some(entry) = loaded.child() else {
                mounts.push(self.mount_without_child(config, loaded));
                continue;
            };
            let (vars, _) = self.child_env(config, &entry.inherit_env, &entry.env);
            let spec = pintle_process::mounting::spec(&loaded.hook, entry, vars, before_spawn(loaded.seal.as_ref()));
            let name = loaded.hook.name.to_string();
            let accepted = loaded.seal.as_ref().map(|seal| seal.digest().to_owned());
            let content = loaded.digest(self.search_path(), &mut hashes);
            let process = match before.get(&name) {
                Some(same) if *same.process.spec() == spec && same.accepted == accepted && same.content == content => {
                    same.process.clone()
                }
                Some(_) | None => {
                    ProcessHook::start(spec, self.engine.tasks().clone(), self.engine.deadlines().clone())
                }
            };
            running.insert(name, RunningHook { process: process.clone(), accepted, content });
            mounts.push(Mount { hook: loaded.hook.clone(), handler: process });
        }
        (mounts, running)
    }

    /// The process hooks that run, by name.
    pub fn running(&self) -> BTreeMap<String, Arc<ProcessHook>> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.iter().map(|(name, running)| (name.clone(), running.process.clone())).collect()
    }

    /// Lets `hooks` be those that run, and gives those that did.
    pub(crate) fn put(&self, hooks: RunningHooks) -> RunningHooks {
        std::mem::replace(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner), hooks)
    }

    /// Waits for the first handshake of every process hook, all at once.
    pub async fn ready(&self) -> Vec<(String, Fault)> {
        let running = self.running();
        let waits = running.iter().map(|(name, process)| async move { (name.clone(), process.ready().await) });
        let ready = futures_util::future::join_all(waits).await;
        ready.into_iter().filter_map(|(name, outcome)| Some((name, outcome.err()?))).collect()
    }

    /// The names of the process hooks whose first start has not ended yet.
    pub fn starting(&self) -> Vec<String> {
        let running = self.running();
        running.into_iter().filter(|(_, process)| process.is_starting()).map(|(name, _)| name).collect()
    }

    /// How the hooks of the configuration stand that have something to prove, or are known not to work. `down` are those
    /// that did not come up.
    pub fn health(&self, down: &BTreeMap<String, Fault>) -> Vec<(&LoadedHook, Health)> {
        let kept = HealthFile::open(&self.loaded.config.home);
        let hooks = self.loaded.config.hooks.iter();
        let mut hashes = FileHashes::default();
        // What runs was looked at when it was started.
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let standing = hooks.filter_map(|loaded| {
            let started = running.get(loaded.hook.name.as_str()).and_then(|hook| hook.content.clone());
            let digest = started.or_else(|| loaded.digest(self.search_path(), &mut hashes));
            let down = down.get(loaded.hook.name.as_str());
            Some((loaded, kept.of(&self.loaded.config, (loaded, digest.as_deref()), down)?))
        });
        standing.collect()
    }

    /// Keeps which process hooks answered well, which did not come up, and which crashed and are down. Makes no home where
    /// there is none: who only tries a hook leaves nothing behind.
    pub fn keep_health(&self) {
        if !self.loaded.config.home.is_dir() {
            return;
        }
        let now = jiff::Timestamp::now();
        let mut kept = HealthFile::open(&self.loaded.config.home);
        let mut is_news = false;
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for (name, RunningHook { process, content, .. }) in &running {
            let Some(content) = content else { continue };
            let status = process.status();
            match (status.answered_ago, &status.fault) {
                (Some(ago), Some(fault)) if FaultKind::is_of_an_end(fault.kind().word()) => {
                    let stderr = process.stderr_tail();
                    kept.answered((name, content), now.checked_sub(ago).unwrap_or(now));
                    kept.fell(name, content, FailedStart { at: now, fault, stderr: &stderr });
                }
                (Some(ago), _) => kept.answered((name, content), now.checked_sub(ago).unwrap_or(now)),
                // One that is only told things has proven all that it can.
                (None, _) if status.up && process.spec().modes == ["observe"] => kept.answered((name, content), now),
                (None, Some(fault)) => {
                    let stderr = process.stderr_tail();
                    kept.fell(name, content, FailedStart { at: now, fault, stderr: &stderr });
                }
                (None, None) => continue,
            }
            is_news = true;
        }
        if is_news && let Err(error) = kept.save() {
            tracing::info!(%error, "what is known of hooks could not be kept");
        }
    }

    fn search_path(&self) -> Option<&OsStr> {
        self.env.vars.get("PATH").map(OsString::as_os_str)
    }

    /// Starts the MCP servers of `config`. One that already runs in exactly this way is kept.
    pub fn start_servers(&self, config: &Config) {
        self.servers.put(self.servers_of(config));
    }

    /// The MCP servers of `config`, started, and not yet among those whose tools are offered.
    pub(crate) fn servers_of(&self, config: &Config) -> ServersByName {
        self.servers.start(config, |inherit, env| self.child_env(config, inherit, env).0)
    }

    /// Waits for the first start of every MCP server, all at once: those that cannot be used, and why.
    pub async fn servers_ready(&self) -> Vec<(String, String)> {
        self.servers.ready().await
    }

    /// The oddities of the tools of MCP servers, a line each: names that two of them have, and entries of agents that
    /// mean no tool.
    pub fn odd_tools(&self) -> Vec<String> {
        let catalogue = self.servers.catalogue();
        let mut odd = catalogue.clashes();
        for agent in self.loaded.config.agents.values() {
            let unmatched = catalogue.unmatched(agent.tools.as_deref().unwrap_or_default());
            odd.extend(unmatched.iter().map(|entry| format!("agents.{}.tools: \"{entry}\" means no tool", agent.name)));
        }
        odd
    }

    /// The names of the tools of MCP servers that some agent is offered.
    pub fn server_tools(&self) -> BTreeSet<String> {
        let mut names = self.servers.catalogue().names();
        let agents = &self.loaded.config.agents;
        names.retain(|name| agents.values().any(|agent| is_wanted(name, agent.tools.as_deref())));
        names
    }

    /// The environment of a child, without secrets, and the names of those that were withheld.
    pub fn child_env(
        &self,
        config: &Config,
        inherit: &[String],
        extra: &BTreeMap<String, String>,
    ) -> (Vec<(OsString, OsString)>, Vec<String>) {
        let host = self.env.vars.iter().map(|(name, value)| (OsString::from(name), value.clone()));
        let child = child_environment(host, &config.secrets, inherit, extra);
        (child.vars, child.withheld)
    }

    /// The tools of `agent`: built-in ones, and those of MCP servers as these are now.
    ///
    /// # Errors
    /// One of them has not what it needs.
    pub fn tools(&self, agent: &AgentConfig) -> Result<Tools, HostError> {
        let mut tools = self.builtin_tools(agent)?;
        self.servers.catalogue().add_to(&mut tools, agent.tools.as_deref());
        let added = tools.add_skills(&self.skills.of(&agent.name), &self.protected());
        added.map_err(|error| HostError::usage(format!("agents.{}.skills: {error}", agent.name)))?;
        Ok(tools)
    }

    /// The built-in tools of `agent`.
    ///
    /// # Errors
    /// One of them has not what it needs.
    pub fn builtin_tools(&self, agent: &AgentConfig) -> Result<Tools, HostError> {
        let config = &self.loaded.config;
        let (exec_env, _) = self.child_env(config, &config.tools.exec_inherit_env, &BTreeMap::new());
        let tools = ToolEnv {
            workspace: agent.workspace.clone(),
            protected: self.protected(),
            exec_env,
            exec_shell: config.tools.exec_shell.clone(),
            exec_guard: std::env::current_exe()
                .ok()
                .map(|program| ExecGuard { program, args: vec![OsString::from(EXEC_COMMAND)] }),
            exec_unconfined: config.tools.exec_unconfined,
            egress: Egress::new(config.tools.web_fetch_allow.clone()),
            agents: others(config, agent),
        };
        let names = builtin_names(config, agent);
        Tools::builtin(tools, &names).map_err(|error| HostError::usage(format!("agents.{}.tools: {error}", agent.name)))
    }

    /// The files that no tool may change: the configuration, what hooks run, this program; and the home folder, not
    /// even read.
    pub fn protected(&self) -> Protected {
        protected(&self.loaded.config, &self.loaded.files)
    }

    /// The settings of a provider, with its key from the environment.
    pub fn provider_spec(&self, name: &str, provider: &ProviderConfig) -> ProviderSpec {
        provider_spec(&self.env, name, provider)
    }

    /// Puts the rules in force that were read for the configuration in force now. Says on the log what is wrong with them.
    pub fn rules_of_loaded(&mut self, prepared: PreparedRules) {
        self.host_rules.take(&self.loaded.config, prepared);
        self.host_rules.diagnostics.iter().for_each(|line| tracing::warn!("{line}"));
    }

    /// The surroundings that it was opened in.
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// The problems of the rules of the store and of files, a line each.
    pub fn bad_rules(&self) -> &[String] {
        &self.host_rules.diagnostics
    }

    /// Where rules are managed.
    pub fn rule_admin(&self) -> &pintle_rules::admin::RuleAdmin {
        self.host_rules.rule_admin()
    }

    /// Tells the numbers of its hooks that are not counted but looked at, for tenants that had events; the result blocks.
    pub fn gauges(&self) -> impl FnOnce(&[TenantId]) -> Vec<Metric> + Send + 'static {
        collector::gauges((&self.engine, &self.store), self.host_rules.parts())
    }

    /// Ends the hooks, and waits for what they leave.
    pub async fn close(&self) {
        self.keep_health();
        self.host_rules.close();
        tokio::join!(self.engine.close(), self.servers.close(), self.files.close());
        self.orphans.close().await;
        // Whatever else is quiet: a record with gaps must not be taken for a whole one.
        if let Some(line) = lost(self.engine.evidence().lost() + self.host_rules.lost()) {
            tracing::error!("{line}");
        }
        if let Some(collector) = &self.collector {
            collector.close().await;
        }
    }
}

/// The message about records that the store did not take.
fn lost(records: u64) -> Option<String> {
    let number = if records == 1 { "one record".to_owned() } else { format!("{records} records") };
    let line = || format!("the store did not take {number} of what hooks did: `pintle why` does not show all");
    (records > 0).then(line)
}

/// The agents that `agent` can give tasks to, each with what it is for.
pub fn others(config: &Config, agent: &AgentConfig) -> Vec<(String, String)> {
    let others = config.agents.values().filter(|other| other.name != agent.name);
    others.map(|other| (other.name.clone(), other.description.clone())).collect()
}

/// The names of the built-in tools that `agent` is offered.
pub fn builtin_names(config: &Config, agent: &AgentConfig) -> Vec<String> {
    let read_only = || pintle_agent::tools::READ_ONLY.map(str::to_owned).to_vec();
    let mut names = agent.tools.clone().unwrap_or_else(read_only);
    names.retain(|name| !is_mcp(name));
    if others(config, agent).is_empty() {
        // The configuration was told so: without another agent there is nobody to give a task to.
        names.retain(|name| ![DELEGATE, SPAWN].contains(&name.as_str()));
    }
    names
}

/// Loads what the command line asks for, with the surroundings of this process. Its findings have the matchers that are
/// about no tool.
///
/// # Errors
/// A file is missing or does not parse.
pub fn load(config: Option<&std::path::Path>, home: Option<&std::path::Path>) -> Result<(Env, Loaded), HostError> {
    let env = Env::of_process()?;
    let loaded = load_in(&env, config, home)?;
    Ok((env, loaded))
}

/// Loads the same in other surroundings, such as another folder.
///
/// # Errors
/// A file is missing or does not parse.
pub fn load_in(
    env: &Env,
    config: Option<&std::path::Path>,
    home: Option<&std::path::Path>,
) -> Result<Loaded, HostError> {
    let probe = |address| detect::ask_ollama(address);
    let mut loaded = config::load(env, &LoadOptions { config, home, builtins: &[], probe: Some(&probe) })?;
    let blind = blind::findings(env, &loaded.config, &loaded.files);
    loaded.diagnostics.extend(blind);
    Ok(loaded)
}

/// The file that [`load`] could not read, and why.
pub fn unreadable(config: Option<&std::path::Path>) -> Option<Diagnostic> {
    config::unreadable(&Env::of_process().ok()?, config)
}

/// Keeps children of the same user from reading this process's memory and first environment through `/proc`, and with
/// it what was withheld from them. Root reads them all the same.
fn hide() {
    if let Err(error) = nix::sys::prctl::set_dumpable(false) {
        tracing::warn!(%error, "other processes of this user can read what children do not inherit");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_with_gaps_is_not_taken_for_a_whole_one() {
        assert_eq!(lost(0), None);
        assert!(lost(1).unwrap().starts_with("the store did not take one record of"));
        assert!(lost(3).unwrap().starts_with("the store did not take 3 records of"));
    }
}
