//! The rules of a team in a host, whose configuration may name another gateway while it runs, or none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pintle_domain::hook::Hook;
use pintle_domain::id::AgentId;
use pintle_rules::cache::RuleCache;
use pintle_store::Store;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Beside, KeeperPlaces, TeamFolder, TeamGate, TeamKeeper};
use crate::config::{Config, Env};

/// Keeps the rules of the team in force that the configuration names.
pub(crate) struct TeamSlot {
    running: Option<RunningTeam>,
    env: Env,
    rule_cache: Arc<RuleCache>,
    store: Arc<dyn Store>,
    tasks: TaskTracker,
    watching: CancellationToken,
    /// Whether this process asks the gateway.
    follows: AtomicBool,
}

/// The rules of a team, kept in force.
struct RunningTeam {
    keeper: Arc<TeamKeeper>,
    stop: CancellationToken,
}

impl TeamSlot {
    /// One in which nothing is in force before the first [`hold`](Self::hold); what it begins ends with `watching`.
    pub(crate) fn new(
        env: &Env,
        (rule_cache, store): (&Arc<RuleCache>, &Arc<dyn Store>),
        (tasks, watching): (&TaskTracker, &CancellationToken),
    ) -> Self {
        Self {
            running: None,
            env: env.clone(),
            rule_cache: rule_cache.clone(),
            store: store.clone(),
            tasks: tasks.clone(),
            watching: watching.clone(),
            follows: AtomicBool::new(false),
        }
    }

    /// Takes the gateway that `config` names, and its agents. Blocks.
    pub(crate) fn take(&mut self, config: &Config) {
        let agents: Vec<AgentId> = config.agents.values().map(|agent| AgentId::from(agent.name.as_str())).collect();
        let is_same = match (&self.running, &config.rules_from) {
            (Some(running), Some(from)) => running.keeper.is_for(from, &agents),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        if is_same {
            return;
        }
        if let Some(before) = self.running.take() {
            before.stop.cancel();
            before.keeper.end();
        }
        let Some(from) = &config.rules_from else { return };
        let (folder, rule_cache, store) = (TeamFolder::of(&config.home), &self.rule_cache, &self.store);
        let places = KeeperPlaces { folder, env: &self.env, rule_cache, store, agents };
        let keeper = Arc::new(TeamKeeper::new(from.clone(), places));
        let stop = self.watching.child_token();
        self.tasks.spawn(keeper.clone().watch(stop.clone()));
        self.running = Some(RunningTeam { keeper, stop });
        if self.follows.load(Ordering::Relaxed) {
            self.begin();
        }
    }

    /// Puts the rules of the team in force beside `beside`. Blocks.
    pub(crate) fn hold(&self, beside: Beside) {
        match &self.running {
            Some(running) => running.keeper.hold(beside),
            None => self.rule_cache.hold(beside.files, beside.stubs),
        }
    }

    /// Asks the gateway for its rules, unless another process of this home does, and waits for its first word; not for
    /// long.
    pub(crate) async fn follow(&self) {
        self.follows.store(true, Ordering::Relaxed);
        self.begin();
        if let Some(running) = &self.running {
            running.keeper.first_word().await;
        }
    }

    fn begin(&self) {
        if let Some(running) = &self.running {
            self.tasks.spawn(running.keeper.clone().follow(running.stop.clone()));
        }
    }

    /// Whether it lets anything pass.
    pub(crate) fn gate(&self) -> TeamGate {
        TeamGate(self.running.as_ref().map(|running| running.keeper.clone()))
    }

    /// What of the team keeps something shut, as a listing shows it.
    pub(crate) fn shut_hooks(&self) -> Vec<Hook> {
        self.running.iter().flat_map(|running| running.keeper.shut_hooks()).collect()
    }
}
