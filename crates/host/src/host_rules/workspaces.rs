//! Where agents work, and what is known of them there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use pintle_agent::tools::ExecShell;
use pintle_domain::checkpoint::AgentInfo;
use pintle_domain::id::{AgentId, HookName};
use pintle_domain::json::Object;
use pintle_domain::shell::ShellFacts;

use crate::config::Config;

/// Where agents work, kept up to date over reloads.
#[derive(Clone, Default)]
pub struct Workspaces(Arc<RwLock<Places>>);

/// The agents of this process.
#[derive(Default)]
struct Places {
    now: BTreeSet<AgentId>,
    /// Each that there ever was, with where it works: a turn that is in progress when its agent goes keeps its rules.
    ever: BTreeMap<AgentId, PathBuf>,
}

impl Workspaces {
    /// Takes the agents of `config`.
    pub fn take(&self, config: &Config) {
        let agents = config.agents.values();
        self.put(agents.map(|agent| (AgentId::from(agent.name.as_str()), agent.workspace.clone())).collect());
    }

    fn put(&self, agents: BTreeMap<AgentId, PathBuf>) {
        let mut places = self.0.write().unwrap_or_else(PoisonError::into_inner);
        places.now = agents.keys().cloned().collect();
        places.ever.extend(agents);
    }

    /// The agents, by name.
    pub fn agents(&self) -> Vec<AgentId> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).now.iter().cloned().collect()
    }

    /// Those and all that there were before.
    pub(super) fn ever(&self) -> Vec<AgentId> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).ever.keys().cloned().collect()
    }

    /// The folder that `agent` works in.
    pub(crate) fn of(&self, agent: &AgentId) -> PathBuf {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner).ever.get(agent).cloned();
        known.or_else(|| std::env::current_dir().ok()).unwrap_or_default()
    }
}

/// The knowledge about an agent for a test of its hooks: the shell texts of `exec`, read in its workspace.
pub(super) struct ByWorkspace {
    pub(super) workspace: PathBuf,
    pub(super) shell: ExecShell,
    pub(super) agent_uuid: String,
}

impl AgentInfo for ByWorkspace {
    fn tool(&self, name: &str) -> Option<String> {
        Some(pintle_agent::tools::canonical_builtin(name).unwrap_or(name).to_owned())
    }

    fn model(&self, _model: &str) -> bool {
        true
    }

    fn owner(&self, _name: &str) -> Option<HookName> {
        None
    }

    fn agent_uuid(&self) -> &str {
        &self.agent_uuid
    }

    fn shell(&self, name: &str, arguments: &Object) -> Arc<ShellFacts> {
        let facts = pintle_agent::tools::shell_facts(name, arguments, &self.workspace, &self.shell);
        Arc::new(facts.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_is_gone_is_none_of_the_agents_but_its_turn_goes_on() {
        let of = |agents: [(&str, &str); 2]| agents.map(|(name, at)| (AgentId::from(name), PathBuf::from(at))).into();
        let named = |agents: Vec<AgentId>| agents.iter().map(ToString::to_string).collect::<Vec<_>>();
        let workspaces = Workspaces::default();
        workspaces.put(of([("coder", "/c"), ("main", "/m")]));
        workspaces.put(of([("main", "/n"), ("new", "/w")]));
        assert_eq!(named(workspaces.agents()), ["main", "new"]);
        assert_eq!(named(workspaces.ever()), ["coder", "main", "new"]);
        let at = |agent: &str| workspaces.of(&AgentId::from(agent)).display().to_string();
        assert_eq!([at("coder"), at("main"), at("new")], ["/c", "/n", "/w"]);
    }
}
