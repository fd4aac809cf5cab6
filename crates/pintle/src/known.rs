//! Tools and agents as hooks see them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use pintle_domain::checkpoint::AgentInfo;
use pintle_domain::id::{AgentId, HookName, agent_uuid};
use pintle_domain::identity::Identity;

/// The knowledge about a host that resolves models by itself.
pub(crate) struct Known {
    /// The host's own tools.
    tools: Arc<BTreeSet<String>>,
    /// The hooks that brought a tool for the calls of the last answer.
    owners: BTreeMap<String, HookName>,
    /// For whom it acts, the agent at work first.
    agents: Vec<AgentId>,
    agent_uuid: String,
}

impl Known {
    pub(crate) fn new(tools: Arc<BTreeSet<String>>, owners: BTreeMap<String, HookName>, who: &Identity) -> Self {
        let agents = std::iter::once(&who.agent_id).chain(&who.ancestors).cloned().collect();
        Self { tools, owners, agents, agent_uuid: agent_uuid(&who.tenant_id, who.agent_id.as_str()) }
    }
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
        &self.agents
    }

    fn agent_uuid(&self) -> &str {
        &self.agent_uuid
    }
}
