//! The agents of a configuration, made ready to work: each with its models, its tools, and the others beside it.
//!
//! Only the agent that was asked for has to be usable. Another one whose model or tools cannot be had is there all the
//! same, and whoever gives it a task reads why it cannot work.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use pintle_agent::driver::SUBTURN_TIME;
use pintle_agent::tools::{DELEGATE, READ_ONLY, SPAWN, Tools};
use pintle_agent::{AgentRegistry, AgentSettings, FrontEnds, Models, Planning, Runner, SkillSet};
use pintle_domain::llm::{LlmReply, LlmRequest, ToolDef};
use pintle_domain::planning::StepPrompts;
use pintle_domain::skill::scan::Scan;
use pintle_providers::{Delta, Provider, ProviderError};

use crate::config::{AgentConfig, FlowConfig, PlanningConfig};
use crate::error::HostError;
use crate::host::Host;

/// How long the sub-agents in the background are waited for: what each of them may take, and a minute for their ends.
const BACKGROUND_TIME: Duration = SUBTURN_TIME.saturating_add(Duration::from_secs(60));

/// The provider of an agent that cannot be used.
const UNUSABLE: &str = "unusable";

/// An agent that is ready to work, among those that it may give tasks to.
pub struct ReadyAgent {
    registry: Arc<AgentRegistry>,
    name: String,
    home: PathBuf,
    /// The tools that the MCP servers offered when it was made.
    served: Vec<ToolDef>,
}

impl Deref for ReadyAgent {
    type Target = Runner;

    fn deref(&self) -> &Runner {
        self.registry.runner(&self.name).expect("`Host::runner` put it into the team")
    }
}

impl ReadyAgent {
    /// The folder of the state.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// How many sub-agents work now.
    pub fn at_work(&self) -> usize {
        self.registry.at_work()
    }

    /// Waits until no sub-agent works in the background any more, or until all had their time.
    pub async fn at_rest(&self) {
        if tokio::time::timeout(BACKGROUND_TIME, self.registry.at_rest()).await.is_err() {
            tracing::warn!("sub-agents go on beyond their time; they are left");
        }
    }
}

/// Providers by name, or why they cannot be had.
type ConnectedProviders = BTreeMap<String, Result<Arc<dyn Provider>, String>>;

impl Host {
    /// The agent called `name`, or the one that is meant without a name, with `model` in place of its own; beside it,
    /// if any agent gives tasks to others, all agents.
    ///
    /// # Errors
    /// There is no such agent, or its models or tools cannot be had.
    pub fn runner(&self, name: Option<&str>, model: Option<&str>) -> Result<ReadyAgent, HostError> {
        let config = &self.loaded.config;
        let chosen = config.agent(name)?;
        // Looked at first: what comes between this and the making of the agent is met at the next look.
        let served = self.servers.catalogue().definitions();
        let connected = self.connected();
        let mut runners = vec![self.usable(chosen, model, &connected)?];
        let delegates = |agent: &AgentConfig| {
            let tools = agent.tools.as_deref().unwrap_or_default();
            tools.iter().any(|tool| [DELEGATE, SPAWN].contains(&tool.as_str()))
        };
        if config.agents.values().any(delegates) {
            let others = config.agents.values().filter(|agent| agent.name != chosen.name);
            runners.extend(others.map(|agent| {
                self.usable(agent, None, &connected).unwrap_or_else(|why| self.unusable(agent, why.message))
            }));
        }
        Ok(ReadyAgent {
            registry: AgentRegistry::new(runners),
            name: chosen.name.clone(),
            home: config.home.clone(),
            served,
        })
    }

    /// Whether the MCP servers offer other tools now than when `member` was made.
    pub fn has_other_tools(&self, member: &ReadyAgent) -> bool {
        self.servers.catalogue().definitions() != member.served
    }

    /// The agent called `name`, or the one that is meant without a name, to run its built-in tools for somebody who is
    /// no model: without models, and without others to give tasks to.
    ///
    /// # Errors
    /// There is no such agent, or its tools cannot be had.
    pub fn worker(&self, name: Option<&str>) -> Result<Runner, HostError> {
        let mut agent = self.loaded.config.agent(name)?.clone();
        let tools = agent.tools.take().unwrap_or_else(|| READ_ONLY.map(str::to_owned).to_vec());
        agent.tools = Some(tools.into_iter().filter(|name| ![DELEGATE, SPAWN].contains(&name.as_str())).collect());
        let settings = AgentSettings::new(&agent.name, &format!("{UNUSABLE}/{UNUSABLE}"));
        Ok(self.agent(settings, Models::default(), self.builtin_tools(&agent)?))
    }

    /// The reasons that keep agents and providers from being used, one line each.
    pub fn unusables(&self) -> BTreeSet<String> {
        let connected = self.connected();
        let agents = self.loaded.config.agents.values();
        let agents = agents.filter_map(|agent| self.usable(agent, None, &connected).err()).map(|error| error.message);
        agents.chain(connected.values().filter_map(|provider| provider.as_ref().err().cloned())).collect()
    }

    fn usable(
        &self,
        agent: &AgentConfig,
        model: Option<&str>,
        connected: &ConnectedProviders,
    ) -> Result<Runner, HostError> {
        let mut named = Vec::new();
        for found in self.loaded.config.models(agent, model)? {
            if let Some(Err(why)) = connected.get(&found.provider) {
                return Err(HostError::usage(why.clone()));
            }
            // The part before the first slash is the provider's name.
            named.push(format!("{}/{}", found.provider, found.model));
        }
        let skills = self.skills.of(&agent.name);
        let settings = settings(agent, &skills, named);
        let good = connected.iter().filter_map(|(name, provider)| Some((name, provider.as_ref().ok()?)));
        let models = good.fold(Models::default(), |models, (name, provider)| models.with(name, provider.clone()));
        let runner = self.agent(settings, models, self.tools(agent)?);
        Ok(runner.with_skills(Arc::new(SkillSet::new(skills.hooks()))))
    }

    /// An agent that says in each turn why it cannot work.
    fn unusable(&self, agent: &AgentConfig, why: String) -> Runner {
        let settings = AgentSettings::new(&agent.name, &format!("{UNUSABLE}/{UNUSABLE}"));
        self.agent(settings, Models::default().with(UNUSABLE, Arc::new(Unusable(why))), Tools::default())
    }

    fn agent(&self, settings: AgentSettings, models: Models, tools: Tools) -> Runner {
        let runner = Runner::new(settings, Arc::new(models), Arc::new(tools), self.engine.clone());
        let front_ends = FrontEnds {
            key: self.history_key.clone(),
            verify: self.loaded.config.verify_history,
            passed: Some(self.store.clone()),
        };
        let runner = runner.with_approvals(self.approvals.clone()).with_front_ends(front_ends);
        match self.files.store() {
            Some(media) => runner.with_media(media),
            None => runner,
        }
    }

    fn connected(&self) -> ConnectedProviders {
        let providers = self.loaded.config.providers.iter();
        providers
            .map(|(name, provider)| {
                let connected = pintle_providers::connect(&self.provider_spec(name, provider));
                (name.clone(), connected.map_err(|error| format!("providers.{name}: {error}")))
            })
            .collect()
    }
}

/// The settings of `agent`, which has the skills of `scan` and asks `models`, in order.
pub fn settings(agent: &AgentConfig, scan: &Scan, models: Vec<String>) -> AgentSettings {
    let mut models = models.into_iter();
    let mut settings = AgentSettings::new(&agent.name, &models.next().unwrap_or_default());
    settings.fallbacks = models.collect();
    settings.system = scan.catalogue().ending(agent.system.as_deref().unwrap_or_default());
    settings.options = agent.options.clone();
    settings.max_iterations = agent.max_iterations;
    settings.context_tokens = agent.context_tokens.into();
    settings.stream_unreviewed = agent.stream_unreviewed;
    settings.planning = planning(agent);
    settings.removal = agent.removal;
    settings
}

/// How the turns of `agent` are planned, if they are.
fn planning(agent: &AgentConfig) -> Option<Planning> {
    let PlanningConfig { planning_prompt, first_step_prompt, agent_loop_prompt, on_missing_tag, record } =
        agent.planning.clone();
    let own = StepPrompts::default();
    let planning = Planning {
        prompts: StepPrompts {
            planning: planning_prompt.unwrap_or(own.planning),
            first_step: first_step_prompt.unwrap_or(own.first_step),
            agent_loop: agent_loop_prompt.unwrap_or(own.agent_loop),
        },
        on_missing_tag,
        record,
    };
    (agent.flow == FlowConfig::Planned).then_some(planning)
}

/// Stands for the models of an agent that cannot be used.
struct Unusable(String);

impl Provider for Unusable {
    fn call<'a>(
        &'a self,
        _model: &'a str,
        _request: &'a LlmRequest,
        _on_delta: &'a (dyn Fn(Delta<'_>) + Send + Sync),
    ) -> BoxFuture<'a, Result<LlmReply, ProviderError>> {
        Box::pin(async { Err(ProviderError::Final { message: self.0.clone() }) })
    }
}
