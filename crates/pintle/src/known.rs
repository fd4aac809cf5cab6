//! What hooks may rely on about a host.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use domain::checkpoint::AgentInfo;
use domain::id::{AgentId, HookName};

/// What is known of a host that resolves models by itself.
pub(crate) struct Known {
    /// The host's own tools.
    pub(crate) tools: Arc<BTreeSet<String>>,
    /// The hooks that brought a tool for the calls of the last answer.
    pub(crate) owners: BTreeMap<String, HookName>,
    /// For whom it acts.
    pub(crate) agent: [AgentId; 1],
}

impl AgentInfo for Known {
    fn tool(&self, name: &str) -> Option<String> {
        (self.tools.contains(name) || self.owners.contains_key(name)).then(|| name.to_owned())
    }

    fn model(&self, _model: &str) -> bool {
        true
    }

    fn owner(&self, name: &str) -> Option<HookName> {
        self.owners.get(name).cloned()
    }

    fn acting_for(&self) -> &[AgentId] {
        &self.agent
    }
}
