//! What hooks may know of the agent whose turn it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use pintle_domain::checkpoint::AgentInfo;
use pintle_domain::id::{AgentId, HookName};
use pintle_domain::json::Object;
use pintle_domain::shell::{LastRead, ShellFacts};
use pintle_domain::tool::{Annotations, CallPlace};

use crate::models::Models;
use crate::tools::{Tools, canonical_among, canonical_builtin};

/// The knowledge that hooks' answers are checked against: the agent's tools and models, who brought which tool, whom
/// it works for.
pub(super) struct TurnAgentInfo {
    tools: Arc<Tools>,
    models: Arc<Models>,
    owners: BTreeMap<String, HookName>,
    agents: Vec<AgentId>,
    /// The id under which rules know the agent.
    agent_uuid: String,
    read: LastRead,
}

impl TurnAgentInfo {
    pub(super) fn new(
        (tools, models): (Arc<Tools>, Arc<Models>),
        owners: BTreeMap<String, HookName>,
        agents: Vec<AgentId>,
        agent_uuid: String,
    ) -> Self {
        Self { tools, models, owners, agents, agent_uuid, read: LastRead::default() }
    }
}

impl AgentInfo for TurnAgentInfo {
    fn tool(&self, name: &str) -> Option<String> {
        if self.owners.contains_key(name) {
            return Some(name.to_owned());
        }
        self.tools.canonical(name).map(str::to_owned)
    }

    fn meant(&self, name: &str) -> String {
        let brought = || self.owners.keys().map(String::as_str);
        let tool = self.tool(name).or_else(|| canonical_among(name, brought).map(str::to_owned));
        tool.unwrap_or_else(|| canonical_builtin(name).unwrap_or(name).to_owned())
    }

    fn model(&self, model: &str) -> bool {
        self.models.resolve(model).is_ok()
    }

    fn owner(&self, name: &str) -> Option<HookName> {
        self.owners.get(name).cloned()
    }

    fn annotations(&self, name: &str) -> Annotations {
        match self.owners.contains_key(name) {
            true => Annotations::default(),
            false => self.tools.get(name).map(|tool| tool.annotations()).unwrap_or_default(),
        }
    }

    fn place(&self, name: &str) -> CallPlace {
        match self.owners.contains_key(name) {
            true => CallPlace::default(),
            false => self.tools.get(name).map(|tool| tool.place()).unwrap_or_default(),
        }
    }

    fn acting_for(&self) -> &[AgentId] {
        &self.agents
    }

    fn agent_uuid(&self) -> &str {
        &self.agent_uuid
    }

    fn shell(&self, name: &str, arguments: &Object) -> Arc<ShellFacts> {
        if self.owners.contains_key(name) {
            return Arc::default();
        }
        let read = || Arc::new(self.tools.shell_facts(name, arguments).unwrap_or_default());
        self.read.facts(name, arguments, read)
    }
}
