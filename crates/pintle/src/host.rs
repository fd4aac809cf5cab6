//! The host behind the handles: its engine, its stores, its tenants, and whoever asks a person.

use std::collections::BTreeSet;
use std::sync::{Arc, PoisonError, RwLock};

use pintle_domain::id::{AgentId, TenantId};
use pintle_domain::store::StoreError;
use pintle_engine::Engine;
use pintle_engine::approvals::{Approvals as Asking, Asker};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

#[cfg(feature = "rules")]
use crate::rules_in_force::RulesInForce;
use crate::stores::Stores;

/// The name of the tenant of a host without tenants; its id is another.
const DEFAULT: &str = "default";

/// Everything that the handles of one host share.
pub(crate) struct Host {
    pub(crate) engine: Engine,
    pub(crate) stores: Stores,
    pub(crate) tools: Arc<BTreeSet<String>>,
    pub(crate) tenants: RwLock<BTreeSet<TenantId>>,
    pub(crate) ui: RwLock<Option<Arc<dyn Asker>>>,
    /// Rings whenever a question was answered through this host.
    pub(crate) answered: Notify,
    /// The rules that are kept in its store.
    #[cfg(feature = "rules")]
    pub(crate) rules: Option<RulesInForce>,
    /// Calls that are being worked.
    pub(crate) calls: TaskTracker,
    /// Set when it is closed: every turn is cancelled with it.
    pub(crate) closing: CancellationToken,
}

impl Host {
    /// How a person is asked in a turn that begins now; nobody can be without a place for questions.
    pub(crate) fn asking(&self) -> Option<Arc<Asking>> {
        let ui = self.ui.read().unwrap_or_else(PoisonError::into_inner).clone();
        let store = self.stores.approvals.clone()?;
        Some(Arc::new(Asking::for_host(store, ui)))
    }

    /// The id of the tenant called `name`, if it is known.
    pub(crate) fn tenant(&self, name: &str) -> Option<TenantId> {
        #[cfg(feature = "rules")]
        if let Some(rules) = &self.rules {
            // The store alone says who there is: whoever it does not know would have the rules for everybody only.
            return rules.tenant(name).or_else(|| (name == DEFAULT).then(TenantId::default_tenant));
        }
        let id = named(name);
        let is_known = self.tenants.read().unwrap_or_else(PoisonError::into_inner).contains(&id);
        is_known.then_some(id)
    }

    /// Makes a tenant known, if it is not. Blocks where rules are kept in a store.
    pub(crate) fn add_tenant(&self, name: &str) -> Result<TenantId, StoreError> {
        #[cfg(feature = "rules")]
        if let Some(rules) = &self.rules {
            return rules.add_tenant(name);
        }
        let id = named(name);
        self.tenants.write().unwrap_or_else(PoisonError::into_inner).insert(id.clone());
        Ok(id)
    }

    /// Takes notice of an agent, before its first turn.
    pub(crate) fn meets(&self, agent: &AgentId) {
        #[cfg(feature = "rules")]
        if let Some(rules) = &self.rules {
            rules.meets(agent);
        }
        #[cfg(not(feature = "rules"))]
        let _no_rules = agent;
    }

    /// Takes no new work.
    pub(crate) fn stop(&self) {
        self.closing.cancel();
        #[cfg(feature = "rules")]
        if let Some(rules) = &self.rules {
            rules.close();
        }
        self.calls.close();
    }

    /// How many records no store could take.
    pub(crate) fn lost(&self) -> u64 {
        let lost = self.engine.evidence().lost();
        #[cfg(feature = "rules")]
        let lost = lost + self.rules.as_ref().map_or(0, RulesInForce::lost);
        lost
    }
}

/// Whoever drops everything without closing leaves no task that looks at a store for ever.
impl Drop for Host {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

/// The id of a tenant of a host that gives out ids itself.
fn named(name: &str) -> TenantId {
    if name == DEFAULT { TenantId::default_tenant() } else { TenantId::from(name) }
}
