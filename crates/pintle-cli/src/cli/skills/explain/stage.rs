//! An agent without anything that runs: its settings, the tools that it is offered, its texts.

use pintle_agent::AgentSettings;
use pintle_agent::tools::{ExecShell, LOAD_SKILL, Protected, ToolEnv, Tools};
use pintle_domain::json::{Value, json};
use pintle_domain::llm::ToolDef;
use pintle_domain::skill::Skills;
use pintle_egress::Egress;

use crate::error::CliError;
use pintle_host::config::{AgentConfig, Config, FlowConfig, Loaded};
use pintle_host::host::{builtin_names, others};
use pintle_host::mcp_names::is_mcp;
use pintle_host::ready_agent;
use pintle_host::skill_sets::{scan, view};

/// What stands for a model where none can be had: a dry run asks none.
const NO_MODEL: &str = "dry/run";

/// What an agent's turns are made of, as far as the configuration says.
pub(super) struct Stage {
    pub(super) settings: AgentSettings,
    pub(super) offered: Vec<ToolDef>,
    pub(super) skills: Skills,
    /// What whoever reads the lists has to know.
    pub(super) notes: Vec<String>,
    planned: bool,
    agent: Option<AgentConfig>,
}

impl Stage {
    /// The agent `agent`.
    ///
    /// # Errors
    /// Its tools cannot be had.
    pub(super) fn of(loaded: &Loaded, agent: &AgentConfig) -> Result<Self, CliError> {
        let (config, scan) = (&loaded.config, scan(loaded, agent));
        let model = config.models(agent, None).ok().and_then(|models| models.into_iter().next());
        let model = model.map_or_else(|| NO_MODEL.to_owned(), |model| format!("{}/{}", model.provider, model.model));
        let bad = |error: &dyn std::fmt::Display| CliError::usage(format!("agents.{}.tools: {error}", agent.name));
        let nothing = ToolEnv {
            workspace: agent.workspace.clone(),
            protected: Protected::default(),
            exec_env: Vec::new(),
            exec_shell: ExecShell::default(),
            exec_guard: None,
            exec_unconfined: false,
            egress: Egress::new(Vec::new()),
            agents: others(config, agent),
        };
        let mut tools = Tools::builtin(nothing, &builtin_names(config, agent)).map_err(|error| bad(&error))?;
        let mut offered: Vec<ToolDef> = tools.definitions().into_iter().cloned().collect();
        let (served, notes) = served(config, agent);
        offered.extend(served);
        tools.add_skills(&scan, &Protected::default()).map_err(|error| bad(&error))?;
        offered.extend(tools.get(LOAD_SKILL).map(|tool| tool.definition().clone()));
        Ok(Self {
            settings: ready_agent::settings(agent, &scan, vec![model]),
            offered,
            skills: scan.hooks(),
            notes,
            planned: agent.flow == FlowConfig::Planned,
            agent: Some(agent.clone()),
        })
    }

    /// An agent that is in no configuration any more.
    pub(super) fn gone(name: &str) -> Self {
        let note = format!(
            "the agent `{name}` is not in the configuration; its system text and its tools are kept nowhere else, so \
             they are left out"
        );
        Self {
            settings: AgentSettings::new(name, NO_MODEL),
            offered: Vec::new(),
            skills: Skills::none(),
            notes: vec![note],
            planned: false,
            agent: None,
        }
    }

    /// The same for a turn that ran before.
    pub(super) fn recorded(mut self) -> Self {
        self.notes.insert(0, "the system text and the tools are those of now: a journal does not keep them".to_owned());
        self
    }

    /// Whether the agent may have a tool called `name`.
    pub(super) fn knows(&self, config: &Config, name: &str) -> bool {
        self.agent.as_ref().is_none_or(|agent| view(config, agent, |view| (view.knows)(name)))
    }

    /// The replies of a dry run for which nobody wrote any: a plan where the agent plans, a call of the first tool, one
    /// of the second, an answer.
    pub(super) fn script(&self) -> String {
        let own: Vec<&str> = self.offered.iter().map(|tool| tool.function.name.as_str()).collect();
        let own: Vec<&str> = own.into_iter().filter(|name| *name != LOAD_SKILL).collect();
        let call = |id: &str, name: &str| json!({"tool_calls": [{"id": id, "name": name, "arguments": {}}]});
        let mut replies = Vec::new();
        if let Some(first) = own.first() {
            if self.planned {
                replies.push(json!({"text": "[the plan stands here] <need_tool/>"}));
            }
            replies.push(call("c1", first));
            replies.push(call("c2", own.get(1).unwrap_or(first)));
        }
        replies.push(json!({"text": "[the answer stands here]"}));
        json!({"replies": Value::Array(replies)}).to_string()
    }
}

/// The tools of MCP servers that `agent` names, as far as they are known without asking the servers.
fn served(config: &Config, agent: &AgentConfig) -> (Vec<ToolDef>, Vec<String>) {
    let named: Vec<&String> = agent.tools.iter().flatten().filter(|name| is_mcp(name)).collect();
    let open = |name: &&String| name.contains(['*', '?', '[', '{']);
    let some = !config.mcp.is_empty() && (agent.tools.is_none() || !named.is_empty());
    let exact = named.iter().filter(|name| !open(name) && !config.mcp.is_empty());
    let offered: Vec<ToolDef> = exact.map(|name| ToolDef::new(name, "", json!({"type": "object"}))).collect();
    let left_out = agent.tools.is_none() || named.iter().any(open);
    let note = if left_out {
        "no MCP server is started for this, so of their tools only those are offered that the agent names in full"
    } else {
        "no MCP server is started for this, so its tools are offered without their descriptions"
    };
    (offered, some.then(|| note.to_owned()).into_iter().collect())
}
