//! What counts of a configuration where several nodes work the same sessions: a digest for each agent, in which no path
//! of a machine is.

use std::collections::BTreeMap;
use std::fmt::Debug;

use pintle_agent::tools::{DELEGATE, SPAWN};
use sha2::{Digest, Sha256};

use crate::config::{AgentConfig, Config, HookKind, NamedRef};
use crate::host::builtin_names;
use crate::mcp_names::is_mcp;

/// The tools that touch nothing of a workspace.
const ANYWHERE: [&str; 3] = ["web_fetch", DELEGATE, SPAWN];

/// Whether the sessions of `agent` may be worked on any node: all see the same files, or it has no tool for files or
/// commands. Nobody knows what tools of MCP servers touch.
pub fn goes_anywhere(config: &Config, agent: &AgentConfig) -> bool {
    let touches = |name: &String| !ANYWHERE.contains(&name.as_str());
    let mcp =
        agent.tools.iter().flatten().any(|name| is_mcp(name)) || (agent.tools.is_none() && !config.mcp.is_empty());
    agent.workspace_shared || !(mcp || builtin_names(config, agent).iter().any(touches))
}

/// The digest of the whole configuration, and that of each agent.
pub fn digests(config: &Config) -> (String, BTreeMap<String, String>) {
    let agents: BTreeMap<String, String> =
        config.agents.values().map(|agent| (agent.name.clone(), of_agent(config, agent))).collect();
    (digest(&agents), agents)
}

fn of_agent(config: &Config, agent: &AgentConfig) -> String {
    let texts = |all: &[NamedRef]| all.iter().map(|one| one.text.clone()).collect::<Vec<_>>();
    let model = agent.model.as_ref().or(config.default_model.as_ref()).map(|model| &model.text);
    let own = (&agent.name, model, &agent.system, &agent.tools, agent.max_iterations, texts(&agent.ask));
    let more = (agent.context_tokens, &agent.description, texts(&agent.fallbacks), agent.stream_unreviewed);
    let rest = (pintle_domain::json::json!(agent.options).to_string(), texts(&agent.skills), agent.workspace_shared);
    let flow = (agent.flow, &agent.planning, agent.removal);
    let hooks: Vec<String> = config
        .hooks
        .iter()
        .map(|loaded| {
            let hook = &loaded.hook;
            let kind = match &loaded.kind {
                HookKind::Process(_) => "process",
                HookKind::Command(_) => "command",
                HookKind::Ask(_) => "ask",
                HookKind::Builtin(_) => "builtin",
                HookKind::Nothing => "nothing",
            };
            format!("{} {kind} {:?} {:?}", hook.name, hook.priority, hook.stages)
        })
        .collect();
    digest(&(own, more, rest, flow, hooks))
}

fn digest(of: &impl Debug) -> String {
    format!("{:x}", Sha256::digest(format!("{of:?}")))
}
