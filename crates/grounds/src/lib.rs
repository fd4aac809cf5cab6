//! What stored rules run on, for every host that keeps them in a store of ours: the program and the library share it.

mod scripts;
mod sealed;

use std::sync::{Arc, Weak};

use domain::agent_hook::Edition;
use domain::id::{SENTINEL_TENANT, TenantId};
use egress::{Egress, KeepAlive};
use engine::Engine;
use engine::approvals::SystemClock;
use engine::live::Live;
use rules::admin::{Desk, DeskParts, KnownOf, OwnsSession};
use rules::cache::{Agents, Rulebook};
use rules::handler::{CommandSurroundings, Evaluator, JudgeSettings, Judges, Outbox, Parts, Pool, PoolLimits};
use rules::http::Exchange;
use store::Store;
use store::keyring::Keyring;

pub use sandbox::Launcher;
pub use scripts::check_script;
pub use sealed::{Sealed, TABLE};

use scripts::scripts;

/// What a host says of itself to the rules of its store.
pub struct Surroundings {
    /// What kinds of hooks there are.
    pub edition: Edition,
    /// What commands see of the host.
    pub commands: CommandSurroundings,
    /// The guard in front of what requests may reach.
    pub egress: Egress,
    /// The program that runs scripts; without one there are no rules with scripts.
    pub worker: Option<Launcher>,
    /// Asks judges; none where no model is there.
    pub evaluator: Option<Arc<dyn Evaluator>>,
    /// Which model judges where a hook names none.
    pub judge: JudgeSettings,
    /// How much of what observers are told is worked off at once, and how much waits.
    pub limits: PoolLimits,
    /// Whether what observers are told is kept in the store until they heard it.
    pub outbox: bool,
}

/// Everything that the rules of `store` need to run in `engine`.
pub fn parts(around: Surroundings, (engine, store): (&Engine, &Arc<Store>), keyring: &Arc<Keyring>) -> Arc<Parts> {
    let tasks = engine.tasks().clone();
    Arc::new(Parts {
        edition: around.edition,
        deadlines: engine.deadlines().clone(),
        commands: around.commands,
        exchange: Exchange::new(KeepAlive::new(around.egress), engine.deadlines().clone()),
        scripts: scripts(around.worker),
        evaluator: around.evaluator,
        budgets: store.clone(),
        vault: Arc::new(Sealed(keyring.clone())),
        slug_of: {
            // What is in force holds these parts; they must not hold it.
            let live = Arc::downgrade(engine.live());
            Arc::new(move |tenant| slug_of(&live, tenant))
        },
        judges: Judges::default(),
        judge: around.judge,
        pool: if around.outbox {
            let outbox = Outbox { store: store.clone(), clock: Arc::new(SystemClock) };
            Pool::durable(around.limits, store.clone(), tasks.clone(), outbox)
        } else {
            Pool::new(around.limits, store.clone(), tasks.clone())
        },
        tasks,
    })
}

/// What a host knows of itself where rules are managed.
pub struct Counter {
    /// The agents of the host.
    pub agents: Agents,
    /// What is known of each of them.
    pub known_of: KnownOf,
    /// Whose sessions are whose.
    pub owns_session: OwnsSession,
    /// The guard in front of what requests may reach.
    pub egress: Egress,
}

/// The desk where the rules of `store` are managed that `rulebook` keeps in force.
pub fn desk(
    at: Counter,
    (store, keyring): (&Arc<Store>, &Arc<Keyring>),
    (rulebook, parts): (&Arc<Rulebook>, &Arc<Parts>),
) -> Desk {
    let Counter { agents, known_of, owns_session, egress } = at;
    Desk::new(DeskParts {
        hooks: store.clone(),
        executions: store.clone(),
        budgets: store.clone(),
        rulebook: rulebook.clone(),
        parts: parts.clone(),
        vault: Arc::new(Sealed(keyring.clone())),
        agents,
        known_of,
        check_url: Arc::new(move |slug, url| {
            egress.for_tenant(slug).check_url(url).map(|_| ()).map_err(|why| why.to_string())
        }),
        owns_session,
        clock: Arc::new(SystemClock),
    })
}

/// The name of a tenant in the operator's allow-list, as the rules in force have it; global hooks have none. A tenant
/// that these do not know has its id, which is in no list.
fn slug_of(live: &Weak<Live>, tenant: &TenantId) -> Option<String> {
    let known = || live.upgrade().and_then(|live| live.slug(tenant));
    (tenant.as_str() != SENTINEL_TENANT).then(|| known().unwrap_or_else(|| tenant.to_string()))
}

#[cfg(test)]
mod tests;
