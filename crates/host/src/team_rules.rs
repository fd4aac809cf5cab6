//! The rules of a team, which a gateway signs for the machines that it guards: kept beside the state, in force in this
//! process, asked for again and again, and told back what they did.
//!
//! [`kept`] is what stands in the files, [`standing`] what follows from that (pure), [`asking`] one question to the
//! gateway, [`following`] the task that asks, [`telling`] what goes back; [`TeamKeeper`] puts it in force, and
//! [`slot`] is its place in a host.

mod asking;
mod following;
mod kept;
mod slot;
mod standing;
mod telling;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use notify::Watcher as _;
use pintle_domain::hook::{Hook, Scope};
use pintle_domain::id::AgentId;
use pintle_domain::rule::Rule;
use pintle_domain::store::{Actor, RuleChange, StoreError};
use pintle_rules::cache::{ExtraHook, GuardedEvents, RuleCache, stub};
use pintle_rules::condition::compile_matcher;
use pintle_rules::team::{TeamRule, is_of_team};
use pintle_store::Store;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::config::{Env, RulesFrom};
use crate::rule_files::GATES;

pub use kept::{Contact, TeamFolder, Told};
pub(crate) use slot::TeamSlot;
pub use standing::{TeamInForce, TeamStanding};

/// The pause between looks at the files although the system tells of changes: a notification may be lost.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// How long the first word of a gateway is waited for before the last good rules count: it answers at once, or is away.
const FIRST_WORD: Duration = Duration::from_secs(2);

/// Who changes the rows of a team's rules, in the change log.
const ACTOR: &str = "system:team";

/// What rules are in force beside those of the team.
#[derive(Clone, Default)]
pub(crate) struct Beside {
    /// The rules of files.
    pub(crate) files: Vec<Rule>,
    /// What keeps gates shut, or is not asked.
    pub(crate) stubs: Vec<ExtraHook>,
}

/// What a process has in force of a team.
#[derive(Clone, Default)]
struct Held {
    beside: Beside,
    rules: Vec<Rule>,
    stubs: Vec<ExtraHook>,
    /// What it was made of; none before the first [`TeamKeeper::hold`].
    standing: Option<TeamStanding>,
    /// Whether another keeper has its place.
    is_over: bool,
}

/// Keeps the rules of a team in force in one process.
pub(crate) struct TeamKeeper {
    from: Result<RulesFrom, String>,
    folder: TeamFolder,
    env: Env,
    rule_cache: Arc<RuleCache>,
    store: Arc<dyn Store>,
    agents: Vec<AgentId>,
    held: Mutex<Held>,
    /// Why nothing passes, where that is so: apart from what is held, which stays locked while the store is written to.
    shut: Mutex<Option<String>>,
    /// Rung when the files may have changed.
    changed: Notify,
    /// Whether the gateway has said its first word, or it is known that it will not soon.
    heard: watch::Sender<bool>,
}

/// Whether a team lets anything pass, for whoever can say the reason to an agent: hooks that fail tell it only that they
/// do.
#[derive(Clone, Default)]
pub struct TeamGate(Option<Arc<TeamKeeper>>);

impl TeamGate {
    /// Why nothing passes, where that is so now.
    pub fn shut(&self) -> Option<String> {
        self.0.as_ref()?.shut_because()
    }
}

/// Where a keeper puts rules in force.
pub(crate) struct KeeperPlaces<'a> {
    pub(crate) folder: TeamFolder,
    pub(crate) env: &'a Env,
    pub(crate) rule_cache: &'a Arc<RuleCache>,
    pub(crate) store: &'a Arc<dyn Store>,
    pub(crate) agents: Vec<AgentId>,
}

impl TeamKeeper {
    /// Keeps the rules of the gateway `from`. Nothing is in force yet.
    pub(crate) fn new(from: Result<RulesFrom, String>, places: KeeperPlaces<'_>) -> Self {
        Self {
            from,
            folder: places.folder,
            env: places.env.clone(),
            rule_cache: places.rule_cache.clone(),
            store: places.store.clone(),
            agents: places.agents,
            held: Mutex::default(),
            shut: Mutex::default(),
            changed: Notify::new(),
            heard: watch::Sender::new(false),
        }
    }

    /// Puts what the files say in force, beside `beside`. Blocks.
    pub(crate) fn hold(&self, beside: Beside) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).beside = beside;
        self.look(true);
    }

    /// Puts nothing in force any more: another one does. Blocks.
    pub(crate) fn end(&self) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).is_over = true;
    }

    /// Looks at the files, and puts what they say in force if that is something else. Blocks.
    fn look(&self, is_sure: bool) {
        // Under the lock: of two that look, the last one counts.
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let standing = TeamStanding::of(&self.from, &self.folder);
        // Before it is known what else is in force, nothing takes its place.
        let is_settled = held.standing.as_ref().is_none_or(|before| before.is_same(&standing));
        if held.is_over || !is_sure && is_settled {
            return;
        }
        (held.rules, held.stubs) = self.parts(&standing);
        if let Err(error) = self.mirror(&held.rules) {
            tracing::warn!(
                "the rules of the team could not be kept in the store, so their breakers are forgotten: {error}"
            );
        }
        match &standing {
            TeamStanding::InForce(team) => {
                tracing::info!(
                    rules = held.rules.len(),
                    version = team.statement.version,
                    "the rules of the team are in force"
                );
            }
            TeamStanding::Shut { why } => tracing::warn!("every gate is shut: {why}"),
        }
        let why = match &standing {
            TeamStanding::Shut { why } => Some(why.clone()),
            TeamStanding::InForce(_) => None,
        };
        *self.shut.lock().unwrap_or_else(PoisonError::into_inner) = why;
        held.standing = Some(standing);
        let Held { beside, rules, stubs, .. } = held.clone();
        self.rule_cache.hold([beside.files, rules].concat(), [beside.stubs, stubs].concat());
        drop(held);
    }

    /// The rules that a standing puts in force, and what it keeps shut.
    fn parts(&self, standing: &TeamStanding) -> (Vec<Rule>, Vec<ExtraHook>) {
        let team = match standing {
            TeamStanding::InForce(team) => team,
            TeamStanding::Shut { why } => {
                let mounted = stub(("rules of the team", "team"), why, GuardedEvents::everything(&GATES));
                return (Vec::new(), vec![ExtraHook { tenant: None, mounted }]);
            }
        };
        let (mut good, mut shut) = (Vec::new(), Vec::new());
        for rule in &team.rules {
            match rule.row(&team.from) {
                Ok(row) => good.push(row),
                Err(why) => shut.push(self.shut(rule, &team.from, &why.to_string())),
            }
        }
        (good, shut)
    }

    /// What stands in the place of a rule that cannot run here.
    fn shut(&self, rule: &TeamRule, from: &str, why: &str) -> ExtraHook {
        let matcher = match rule.when.matcher.as_str() {
            "" => None,
            // One that is none matches everything.
            pattern => compile_matcher(pattern).ok(),
        };
        let scope = match &rule.agents {
            None => Scope::Everyone,
            Some(names) => {
                let meant = |agent: &&AgentId| names.iter().any(|name| name == agent.as_str());
                Scope::Agents(self.agents.iter().filter(meant).cloned().collect())
            }
        };
        let guarded = GuardedEvents { kinds: rule.event().into_iter().collect(), matcher, scope };
        ExtraHook { tenant: None, mounted: stub((rule.label(), &format!("team:{from}")), why, guarded) }
    }

    /// Lets the store have a row of each rule, for its breaker and its history. One that is gone keeps its row: what it
    /// did is still to be told.
    fn mirror(&self, rules: &[Rule]) -> Result<(), StoreError> {
        if rules.is_empty() {
            return Ok(());
        }
        let stored = self.store.rules()?;
        if stored.shut.is_some() {
            return Ok(());
        }
        let changes: Vec<RuleChange> = rules
            .iter()
            .filter_map(|rule| match stored.hooks.iter().find(|row| row.id == rule.id) {
                None => Some(RuleChange::Create(Box::new(rule.clone()))),
                Some(row) if is_like(row, rule) => None,
                Some(row) => {
                    let hook = Rule {
                        enabled: row.tripped_at.is_none(),
                        tripped_at: row.tripped_at.clone(),
                        disabled_reason: row.disabled_reason.clone(),
                        created_at: row.created_at.clone(),
                        ..rule.clone()
                    };
                    Some(RuleChange::Update { hook: Box::new(hook), if_version: None, action: "updated" })
                }
            })
            .collect();
        if changes.is_empty() {
            return Ok(());
        }
        let by = Actor { name: ACTOR.to_owned(), at: Timestamp::now(), reason: String::new() };
        match self.store.change(changes, &by) {
            // Another process of this home was faster.
            Ok(_) | Err(StoreError::Conflict(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Puts changes of the files in force until it is cancelled.
    pub(crate) async fn watch(self: Arc<Self>, cancel: CancellationToken) {
        let keeper = Arc::downgrade(&self);
        let bell = move |event: notify::Result<notify::Event>| {
            let is_reading = event.is_ok_and(|event| matches!(event.kind, notify::EventKind::Access(_)));
            if let Some(keeper) = keeper.upgrade().filter(|_| !is_reading) {
                keeper.changed.notify_waiters();
            }
        };
        if let Err(error) = self.folder.make() {
            tracing::warn!("the folder of the team's rules cannot be made: {error}");
        }
        let mut watch = notify::recommended_watcher(bell);
        let watched = match &mut watch {
            Ok(watch) => watch.watch(self.folder.path(), notify::RecursiveMode::NonRecursive),
            Err(_) => Ok(()),
        };
        if watch.is_err() || watched.is_err() {
            tracing::info!("changes of the team's rules are only looked for every few seconds");
        }
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // What changes while it looks is looked at next.
            changed.as_mut().enable();
            let keeper = self.clone();
            // A task that panics left what was in force.
            tokio::task::spawn_blocking(move || keeper.look(false)).await.ok();
            tokio::select! {
                () = cancel.cancelled() => return,
                () = changed => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }

    /// Whether it is for the gateway `from` and these agents.
    pub(crate) fn is_for(&self, from: &Result<RulesFrom, String>, agents: &[AgentId]) -> bool {
        self.from == *from && self.agents == agents
    }

    /// Why nothing passes, where that is so.
    fn shut_because(&self) -> Option<String> {
        self.shut.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What of the team keeps something shut, as a listing shows it.
    pub(crate) fn shut_hooks(&self) -> Vec<Hook> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.stubs.iter().map(|it| (*it.mounted.hook).clone()).collect()
    }
}

/// Whether a row says what a rule of the team says, but for what the store adds and its breaker.
fn is_like(row: &Rule, rule: &Rule) -> bool {
    let plain = |hook: &Rule| Rule {
        version: 0,
        tripped_at: None,
        enabled: true,
        disabled_reason: String::new(),
        created_at: String::new(),
        updated_at: String::new(),
        created_by: None,
        ..hook.clone()
    };
    is_of_team(row).is_some() && plain(row) == plain(rule)
}
