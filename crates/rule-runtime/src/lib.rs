//! The services that stored rules run on, for every host that keeps them in a store of ours: the program and the library
//! share them, because `rules` knows no store and no sandbox.
//!
//! `keyring_vault.rs` holds the secrets in rows; `scripts.rs` is the sandbox, if there is one.

mod keyring_vault;
mod scripts;

use std::sync::{Arc, Weak};

use pintle_domain::id::{SENTINEL_TENANT, TenantId};
use pintle_domain::rule::Edition;
use pintle_egress::{Egress, KeepAlive};
use pintle_engine::Engine;
use pintle_engine::approvals::SystemClock;
use pintle_engine::live_rules::LiveRules;
use pintle_rules::admin::{AgentInfoOf, OwnsSession, RuleAdmin, RuleAdminServices};
use pintle_rules::cache::{AgentNames, RuleCache};
use pintle_rules::handler::{
    CommandEnv, Evaluator, JudgeSettings, Judges, ObserverPool, Outbox, PoolLimits, RuleServices,
};
use pintle_rules::http::HttpSender;
use pintle_store::Store;
use pintle_store::keyring::Keyring;

pub use keyring_vault::{KeyringVault, TABLE};
pub use pintle_sandbox::Launcher;
pub use scripts::check_script;

use scripts::scripts;

/// The surroundings of rules, as their host has them.
pub struct RuntimeSettings {
    /// What kinds of rules there are.
    pub edition: Edition,
    /// What commands see of the host.
    pub commands: CommandEnv,
    /// The guard in front of what requests may reach.
    pub egress: Egress,
    /// The program that runs scripts; without one there are no rules with scripts.
    pub worker: Option<Launcher>,
    /// Asks judges; none where no model is there.
    pub evaluator: Option<Arc<dyn Evaluator>>,
    /// Which model judges where a rule names none.
    pub judge: JudgeSettings,
    /// How much of what observers are told is worked off at once, and how much waits.
    pub limits: PoolLimits,
    /// Whether what observers are told is kept in the store until they heard it.
    pub outbox: bool,
}

/// Everything that the rules of `store` need to run in `engine`.
pub fn services(
    settings: RuntimeSettings,
    engine: &Engine,
    store: &Arc<dyn Store>,
    keyring: &Arc<Keyring>,
) -> Arc<RuleServices> {
    let tasks = engine.tasks().clone();
    Arc::new(RuleServices {
        edition: settings.edition,
        deadlines: engine.deadlines().clone(),
        commands: settings.commands,
        exchange: HttpSender::new(KeepAlive::new(settings.egress), engine.deadlines().clone()),
        scripts: scripts(settings.worker),
        evaluator: settings.evaluator,
        budgets: store.clone(),
        vault: Arc::new(KeyringVault(keyring.clone())),
        slug_of: {
            // What is in force holds these services; they must not hold it.
            let live = Arc::downgrade(engine.live());
            Arc::new(move |tenant| slug_of(&live, tenant))
        },
        judges: Judges::default(),
        judge: settings.judge,
        pool: if settings.outbox {
            let outbox = Outbox { store: store.clone(), clock: Arc::new(SystemClock) };
            ObserverPool::durable(settings.limits, store.clone(), tasks.clone(), outbox)
        } else {
            ObserverPool::new(settings.limits, store.clone(), tasks.clone())
        },
        tasks,
    })
}

/// The knowledge of a host about itself, where rules are managed.
pub struct AdminSettings {
    /// The agents of the host.
    pub agents: AgentNames,
    /// The knowledge about each of them.
    pub known_of: AgentInfoOf,
    /// The check of who owns a session.
    pub owns_session: OwnsSession,
    /// The guard in front of what requests may reach.
    pub egress: Egress,
}

/// The place where the rules of `store` are managed that `rule_cache` keeps in force.
pub fn rule_admin(
    settings: AdminSettings,
    store: &Arc<dyn Store>,
    keyring: &Arc<Keyring>,
    rule_cache: &Arc<RuleCache>,
    services: &Arc<RuleServices>,
) -> RuleAdmin {
    let AdminSettings { agents, known_of, owns_session, egress } = settings;
    RuleAdmin::new(RuleAdminServices {
        hooks: store.clone(),
        executions: store.clone(),
        budgets: store.clone(),
        rule_cache: rule_cache.clone(),
        parts: services.clone(),
        vault: Arc::new(KeyringVault(keyring.clone())),
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
fn slug_of(live: &Weak<LiveRules>, tenant: &TenantId) -> Option<String> {
    let known = || live.upgrade().and_then(|live| live.slug(tenant));
    (tenant.as_str() != SENTINEL_TENANT).then(|| known().unwrap_or_else(|| tenant.to_string()))
}

#[cfg(test)]
mod tests {
    use pintle_engine::live_rules::RulesByTenant;

    use super::*;

    #[test]
    fn a_tenant_is_called_what_the_rules_in_force_call_it() {
        let live = Arc::new(LiveRules::default());
        let of = |tenant: &str| slug_of(&Arc::downgrade(&live), &TenantId::from(tenant));
        let acme = "0193a5b0-7000-7000-8000-00000000000a";
        assert_eq!((of(SENTINEL_TENANT), of(acme).as_deref()), (None, Some(acme)), "nobody knows it yet");
        let named = |slug: &str| RulesByTenant {
            slugs: [(TenantId::from(acme), slug.to_owned())].into(),
            ..RulesByTenant::default()
        };
        live.replace(named("acme"));
        assert_eq!((of(SENTINEL_TENANT), of(acme).as_deref()), (None, Some("acme")));
        live.replace(named("acme-2"));
        assert_eq!(of(acme).as_deref(), Some("acme-2"));
        // Where nothing is in force any more, nobody has the rights of global hooks.
        assert_eq!(slug_of(&Weak::new(), &TenantId::from(acme)).as_deref(), Some(acme));
    }
}
