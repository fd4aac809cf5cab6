//! The agents of one host, which can delegate to each other.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::driver::{MAX_CHILDREN, Runner};

/// Every agent of one configuration.
pub struct AgentRegistry {
    runners: BTreeMap<String, Runner>,
    slots: Arc<Semaphore>,
}

impl AgentRegistry {
    /// A team of `runners`, each under the name of its agent; of two with one name the last stays.
    pub fn new(runners: Vec<Runner>) -> Arc<Self> {
        Arc::new_cyclic(|registry| {
            let named = |runner: Runner| (runner.settings().id.to_string(), runner.in_registry(registry.clone()));
            let slots = Arc::new(Semaphore::new(MAX_CHILDREN));
            Self { runners: runners.into_iter().map(named).collect(), slots }
        })
    }

    /// The agent called `name`.
    pub fn runner(&self, name: &str) -> Option<&Runner> {
        self.runners.get(name)
    }

    /// The names of the agents.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.runners.keys().map(String::as_str)
    }

    /// How many sub-agents work now, in the background or not.
    pub fn at_work(&self) -> usize {
        MAX_CHILDREN.saturating_sub(self.slots.available_permits())
    }

    /// Waits until no sub-agent works. What each of them brought is delivered then, or waits in its session.
    pub async fn at_rest(&self) {
        let all = u32::try_from(MAX_CHILDREN).unwrap_or(u32::MAX);
        // The places are never closed.
        drop(self.slots.acquire_many(all).await);
    }

    /// Room for one more sub-agent, if there is any; it is given back when the result is dropped.
    pub(crate) fn slot(&self) -> Option<OwnedSemaphorePermit> {
        self.slots.clone().try_acquire_owned().ok()
    }
}
