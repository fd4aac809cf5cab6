//! The configurations of the folders that hosts work in, kept warm: loaded as for `run`, with the same trust, read again
//! when their files change, and dropped when nobody asks for long.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use pintle_domain::id::{TenantId, agent_uuid};
use pintle_engine::Engine;
use pintle_guard::tools::ToolClass;
use pintle_host::changes::Changes;
use pintle_host::config::diagnostic::GUARD;
use pintle_host::config::{Config, Env, GUARDED_HOSTS, GuardedClass, GuardedHost, ModelDoorConfig, ToolDoorConfig};
use pintle_host::host::load_in;
use pintle_host::reload::{ConfigSource, prepare, take};
use pintle_host::team_rules::TeamGate;
use pintle_host::{Host, HostError};
use pintle_store::Store;
use tokio::sync::{Notify, OnceCell, mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long a configuration is kept that nobody asks for: an agent that thinks for a while finds its hooks warm.
const IDLE: Duration = Duration::from_secs(15 * 60);

/// Most folders whose configurations are kept at once; each has its own hooks, which are processes.
const MAX_FOLDERS: usize = 32;

/// How long a new session waits until the configuration of its folder was looked at again.
const LOOK_TIME: Duration = Duration::from_secs(5);

/// The agent whose hooks are asked where a configuration has none.
const AGENT: &str = "main";

/// What a question needs of a configuration.
#[derive(Clone)]
pub(crate) struct InForce {
    /// The hooks.
    pub(crate) engine: Arc<Engine>,
    /// The records and the approvals.
    pub(crate) store: Arc<dyn Store>,
    /// The agent that the host stands for.
    pub(crate) agent: String,
    /// The id under which rules know it.
    pub(crate) agent_uuid: String,
    /// The files and folders of Pintle's that are in use: no agent under guard may change them.
    pub(crate) own: Vec<String>,
    /// The vendors behind the model door.
    pub(crate) model_doors: BTreeMap<String, ModelDoorConfig>,
    /// The doors that are bad, by path, each with what is wrong with it.
    pub(crate) broken_doors: BTreeMap<String, String>,
    /// The servers behind the tool door.
    pub(crate) tool_doors: BTreeMap<String, ToolDoorConfig>,
    /// The classes of tools that an agent must let be held.
    pub(crate) required: Vec<ToolClass>,
    /// What differs for single agents under guard, by name.
    pub(crate) hosts: BTreeMap<String, GuardedHost>,
    /// The agents under guard of which that cannot be known, each with what is wrong.
    pub(crate) broken_hosts: BTreeMap<String, String>,
    /// Whether the rules of a team let anything pass.
    pub(crate) team: TeamGate,
}

/// The classes of tools that a configuration demands to be held, as the table of agents has them.
pub(crate) fn required(config: &Config) -> Vec<ToolClass> {
    let class = |class: &GuardedClass| match class {
        GuardedClass::Shell => ToolClass::Shell,
        GuardedClass::FileWrite => ToolClass::FileWrite,
        GuardedClass::FileRead => ToolClass::FileRead,
        GuardedClass::Web => ToolClass::Web,
        GuardedClass::Mcp => ToolClass::Mcp,
        GuardedClass::Subagent => ToolClass::Subagent,
        GuardedClass::Other => ToolClass::Other,
    };
    config.guard_require.iter().map(class).collect()
}

impl InForce {
    /// The agent that the host called `id` stands for, and the id under which rules know it.
    pub(crate) fn stands_for(&self, id: &str) -> (&str, String) {
        match self.hosts.get(id).and_then(|host| host.agent.as_deref()) {
            Some(agent) => (agent, agent_uuid(&TenantId::default_tenant(), agent)),
            None => (&self.agent, self.agent_uuid.clone()),
        }
    }

    fn of(host: &Host) -> Self {
        let agent = host.loaded.config.agent(None).map_or_else(|_| AGENT.to_owned(), |agent| agent.name.clone());
        let agent_uuid = agent_uuid(&TenantId::default_tenant(), &agent);
        let (model_doors, tool_doors) = (host.loaded.config.model_doors.clone(), host.loaded.config.tool_doors.clone());
        let of_doors = |(path, _): &(&String, &String)| path.split('.').next() == Some("doors");
        let broken = host.loaded.config.broken.iter().filter(of_doors);
        let broken_doors = broken.map(|(path, why)| (path.clone(), why.clone())).collect();
        let protected = host.protected();
        let own = protected.files.iter().chain(&protected.dirs).filter_map(|path| Some(path.to_str()?.to_owned()));
        Self {
            engine: host.engine.clone(),
            store: host.store.clone(),
            agent,
            agent_uuid,
            own: own.collect(),
            model_doors,
            required: required(&host.loaded.config),
            hosts: host.loaded.config.guard_hosts.clone(),
            broken_hosts: broken_hosts(&host.loaded.config),
            tool_doors,
            broken_doors,
            team: host.host_rules.team_gate(),
        }
    }
}

/// The agents under guard of which it cannot be known what differs for them: nothing of them may go on. Where nobody can
/// read what was said of all, that is every one.
pub(crate) fn broken_hosts(config: &Config) -> BTreeMap<String, String> {
    let unread = config.broken.iter().filter_map(|(path, why)| Some((path.strip_prefix("guard.hosts.")?, why.clone())));
    let mut broken: BTreeMap<String, String> = unread.map(|(name, why)| (name.to_owned(), why)).collect();
    for (name, host) in &config.guard_hosts {
        if let Some(agent) = host.agent.as_deref().filter(|agent| config.agent(Some(agent)).is_err()) {
            broken.insert(name.clone(), format!("`guard.hosts.{name}.agent` names `{agent}`, which is no agent here"));
        }
    }
    if let Some(why) = config.broken.get(GUARD) {
        for name in GUARDED_HOSTS {
            broken.entry(name.to_owned()).or_insert_with(|| why.clone());
        }
    }
    broken
}

/// A configuration that is kept.
struct Warm<T = InForce> {
    in_force: RwLock<Arc<T>>,
    used: Mutex<Instant>,
    look: mpsc::Sender<oneshot::Sender<()>>,
}

type Entry<T = InForce> = Arc<OnceCell<Arc<Warm<T>>>>;

/// Forgets the configuration `warm` of `folder` if nobody has asked for it for long, or works with it, at the time `now`.
fn forget_idle<T>(
    all: &Mutex<BTreeMap<PathBuf, Entry<T>>>,
    (folder, warm): (&Path, &Arc<Warm<T>>),
    now: Instant,
) -> bool {
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    let mut used = warm.used.lock().unwrap_or_else(PoisonError::into_inner);
    let asked = Arc::strong_count(&warm.in_force.read().unwrap_or_else(PoisonError::into_inner)) > 1;
    if now.duration_since(*used) < IDLE || asked {
        // Looked at again after another while.
        *used = now;
        return false;
    }
    let is_ours = |entry: &Entry<T>| entry.get().is_some_and(|kept| Arc::ptr_eq(kept, warm));
    if all.get(folder).is_some_and(is_ours) {
        all.remove(folder);
    }
    true
}

/// The configurations, by folder.
pub(crate) struct Folders {
    env: Env,
    config: Option<PathBuf>,
    home: Option<PathBuf>,
    warm: Arc<Mutex<BTreeMap<PathBuf, Entry>>>,
    /// Wakes who waits for a change.
    changed: Arc<Notify>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Folders {
    /// Folders whose configurations are found as `config` and `home` (`--config`, `--home`) and the variables of `env`
    /// say.
    pub(crate) fn new(env: Env, config: Option<PathBuf>, home: Option<PathBuf>) -> Self {
        let (config, home) = (config.map(|file| env.cwd.join(file)), home.map(|dir| env.cwd.join(dir)));
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        Self { env, config, home, warm: Arc::default(), changed: Arc::default(), tasks, stop }
    }

    /// The surroundings of whoever works in `folder`.
    pub(crate) fn env_in(&self, folder: &Path) -> Env {
        Env { cwd: folder.to_owned(), ..self.env.clone() }
    }

    /// What is in force in `folder`; a session that `is_new` looks first whether that is still so.
    ///
    /// # Errors
    /// Its configuration does not load.
    pub(crate) async fn of(&self, folder: &Path, is_new: bool) -> Result<Arc<InForce>, HostError> {
        let entry = self.entry(folder);
        let was_there = entry.initialized();
        let warm = entry.get_or_try_init(|| self.load(folder)).await?.clone();
        *warm.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        if is_new && was_there {
            let (told, looked) = oneshot::channel();
            if warm.look.try_send(told).is_ok() {
                // What takes longer holds for the next call.
                tokio::time::timeout(LOOK_TIME, looked).await.ok();
            }
        }
        let in_force = warm.in_force.read().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(in_force)
    }

    fn entry(&self, folder: &Path) -> Entry {
        let mut warm = self.warm.lock().unwrap_or_else(PoisonError::into_inner);
        if warm.len() >= MAX_FOLDERS && !warm.contains_key(folder) {
            let used =
                |entry: &Entry| entry.get().map(|warm| *warm.used.lock().unwrap_or_else(PoisonError::into_inner));
            let oldest = warm.iter().min_by_key(|(_, entry)| used(entry)).map(|(folder, _)| folder.clone());
            // Whoever keeps it sees that nobody does any more.
            oldest.map(|oldest| warm.remove(&oldest));
        }
        warm.entry(folder.to_owned()).or_default().clone()
    }

    async fn load(&self, folder: &Path) -> Result<Arc<Warm>, HostError> {
        let env = self.env_in(folder);
        let loaded = load_in(&env, self.config.as_deref(), self.home.as_deref())?;
        for line in loaded.diagnostics.iter().map(ToString::to_string).chain(loaded.left_out.clone()) {
            tracing::warn!("{}: {line}", folder.display());
        }
        let host = Host::open(env, loaded, Vec::new())?;
        host.bad_rules().iter().for_each(|line| tracing::warn!("{}: {line}", folder.display()));
        let changes = Changes::of(&host)?;
        let (down, ()) = tokio::join!(host.ready(), host.host_rules.follow_team());
        // Hooks that are down are faults of their own calls.
        for (name, fault) in down {
            tracing::warn!("{}: hook \"{name}\" {}", folder.display(), fault.explained());
        }
        let (look, looks) = mpsc::channel(1);
        let in_force = RwLock::new(Arc::new(InForce::of(&host)));
        let warm = Arc::new(Warm { in_force, used: Mutex::new(Instant::now()), look });
        let keeper = Keeper {
            folder: folder.to_owned(),
            source: (self.config.clone(), self.home.clone()),
            warm: warm.clone(),
            all: self.warm.clone(),
            changed: self.changed.clone(),
            stop: self.stop.clone(),
        };
        self.tasks.spawn(keeper.keep(host, changes, looks));
        Ok(warm)
    }

    /// Asks each configuration that is kept what it would ask at a call, and says in `at` which one it is that does not
    /// answer. Stores of a server have bounds of their own.
    pub(crate) async fn look(&self, at: &Mutex<String>) {
        let kept: Vec<(PathBuf, Arc<Warm>)> = {
            let warm = self.warm.lock().unwrap_or_else(PoisonError::into_inner);
            warm.iter().filter_map(|(folder, entry)| Some((folder.clone(), entry.get()?.clone()))).collect()
        };
        for (folder, warm) in kept {
            let store = warm.in_force.read().unwrap_or_else(PoisonError::into_inner).store.clone();
            if store.is_shared() {
                continue;
            }
            *at.lock().unwrap_or_else(PoisonError::into_inner) = format!("the store of {}", folder.display());
            // A store that answers with an error answers.
            tokio::task::spawn_blocking(move || store.epoch().is_ok()).await.ok();
        }
        at.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Waits until a configuration that is kept changed. One waits at a time.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Ends all of them.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Keeps one configuration.
struct Keeper {
    folder: PathBuf,
    source: (Option<PathBuf>, Option<PathBuf>),
    warm: Arc<Warm>,
    all: Arc<Mutex<BTreeMap<PathBuf, Entry>>>,
    changed: Arc<Notify>,
    stop: CancellationToken,
}

impl Keeper {
    async fn keep(self, mut host: Host, mut changes: Changes, mut looks: mpsc::Receiver<oneshot::Sender<()>>) {
        loop {
            let used = *self.warm.used.lock().unwrap_or_else(PoisonError::into_inner);
            tokio::select! {
                () = self.stop.cancelled() => break,
                () = tokio::time::sleep_until(used + IDLE) => {
                    if forget_idle(&self.all, (self.folder.as_path(), &self.warm), Instant::now()) {
                        break;
                    }
                }
                () = changes.next() => {
                    changes.settle().await;
                    self.reload(&mut host, &mut changes).await;
                }
                Some(told) = looks.recv() => {
                    self.reload(&mut host, &mut changes).await;
                    told.send(()).ok();
                }
            }
        }
        // Calls that are being cleared have what they began with: they end first, or their hooks do.
        host.close().await;
    }

    async fn reload(&self, host: &mut Host, changes: &mut Changes) {
        let (config, home) = (self.source.0.as_deref(), self.source.1.as_deref());
        let prepared = prepare(host, ConfigSource { config, home }).await;
        let taken = prepared.and_then(|prepared| take(host, prepared, |host| Ok(InForce::of(host))));
        match taken {
            Ok(reloaded) => {
                *self.warm.in_force.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(reloaded.agent);
                self.changed.notify_one();
            }
            Err(error) => tracing::warn!("{}: {error}", self.folder.display()),
        }
        if let Err(error) = changes.follow(host) {
            tracing::warn!("{}: {error}", self.folder.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_goes_when_nobody_asked_for_it_for_long() {
        let (folder, began) = (Path::new("/w"), Instant::now());
        let warm = || {
            let (look, _) = mpsc::channel(1);
            Arc::new(Warm { in_force: RwLock::new(Arc::new("rules")), used: Mutex::new(began), look })
        };
        let (ours, newer) = (warm(), warm());
        let kept = |warm: &Arc<Warm<&'static str>>| {
            let entry: Entry<&'static str> = Arc::new(OnceCell::from(warm.clone()));
            Mutex::new(BTreeMap::from([(folder.to_owned(), entry)]))
        };
        let all = kept(&ours);
        let second = Duration::from_secs(1);
        // Asked for within the time, then by somebody who still works with it.
        assert!(!forget_idle(&all, (folder, &ours), began + IDLE - second));
        let working = ours.in_force.read().unwrap().clone();
        assert!(!forget_idle(&all, (folder, &ours), began + IDLE * 2));
        drop(working);
        assert_eq!(all.lock().unwrap().len(), 1);
        assert!(!forget_idle(&all, (folder, &ours), began + IDLE * 3 - second));
        assert!(forget_idle(&all, (folder, &ours), began + IDLE * 4));
        assert!(all.lock().unwrap().is_empty());
        // What was loaded anew in its place stays.
        let all = kept(&newer);
        assert!(forget_idle(&all, (folder, &ours), began + IDLE * 5));
        assert_eq!(all.lock().unwrap().len(), 1);
    }
}
