//! Several agents in one host, whose model is a closure or a script.

use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use pintle_agent::tools::{ExecShell, Protected, ToolEnv, Tools};
use pintle_agent::{AgentRegistry, AgentSettings, Conversation, Models, Runner, SkillSet, TurnHandle, TurnReport};
use pintle_domain::json::{Value, json};
use pintle_domain::llm::{LlmReply, LlmRequest};
use pintle_domain::message::CallPart;
use pintle_domain::skill::Skills;
use pintle_domain::store::RecordStore;
use pintle_egress::Egress;
use pintle_engine::{Approvals, Engine, Mount, NullStore, Tool};
use pintle_providers::{Delta, Provider, ProviderError};

use crate::host::{Recorder, Seen, lines};

type Think = Box<dyn Fn(&str, &LlmRequest) -> BoxFuture<'static, Result<LlmReply, ProviderError>> + Send + Sync>;

/// A model that is a closure over its name and the request.
pub(crate) struct Mind(Think);

impl Mind {
    /// A model that answers at once.
    pub(crate) fn quick(think: impl Fn(&str, &LlmRequest) -> LlmReply + Send + Sync + 'static) -> Arc<Recorder> {
        Self::slow(move |model, request| std::future::ready(think(model, request)).boxed())
    }

    /// A model that answers when its future does.
    pub(crate) fn slow(
        think: impl Fn(&str, &LlmRequest) -> BoxFuture<'static, LlmReply> + Send + Sync + 'static,
    ) -> Arc<Recorder> {
        let think: Think = Box::new(move |model, request| think(model, request).map(Ok).boxed());
        Recorder::over(Arc::new(Self(think)))
    }
}

impl Provider for Mind {
    fn call<'a>(
        &'a self,
        model: &'a str,
        request: &'a LlmRequest,
        _on_delta: &'a (dyn Fn(Delta<'_>) + Send + Sync),
    ) -> BoxFuture<'a, Result<LlmReply, ProviderError>> {
        (self.0)(model, request)
    }
}

/// A model's call number `n` of `tool`.
pub(crate) fn call(n: usize, tool: &str, arguments: &Value) -> CallPart {
    CallPart::new(&format!("c{n}"), tool, &arguments.to_string())
}

/// An answer of a model that gives `task` to `agent`, by `tool`.
pub(crate) fn hands(tool: &str, agent: &str, task: &str) -> LlmReply {
    LlmReply::calls(vec![call(1, tool, &json!({"agent": agent, "task": task}))])
}

/// Whether a request follows what a tool said.
pub(crate) fn after_tools(request: &LlmRequest) -> bool {
    request.messages.last().is_some_and(|message| !message.get().tool_call_id.is_empty())
}

/// What the last message of a request says.
pub(crate) fn last(request: &LlmRequest) -> String {
    request.messages.last().map(|message| message.get().content.clone()).unwrap_or_default()
}

/// What a crew is made of.
pub(crate) struct TestAgentsParts {
    pub(crate) model: Arc<Recorder>,
    pub(crate) agents: Vec<&'static str>,
    pub(crate) own: Vec<Arc<dyn Tool>>,
    pub(crate) records: Arc<dyn RecordStore>,
    pub(crate) approvals: Option<Approvals>,
    pub(crate) change: Box<dyn Fn(AgentSettings) -> AgentSettings>,
    /// The texts of every agent's skills.
    pub(crate) skills: Skills,
}

impl TestAgentsParts {
    pub(crate) fn of(model: Arc<Recorder>, agents: &[&'static str]) -> Self {
        Self {
            model,
            agents: agents.to_vec(),
            own: Vec::new(),
            records: Arc::new(NullStore),
            approvals: None,
            change: Box::new(|settings| settings),
            skills: Skills::none(),
        }
    }

    #[must_use]
    pub(crate) fn own(mut self, tool: Arc<dyn Tool>) -> Self {
        self.own.push(tool);
        self
    }

    pub(crate) fn test_agents(self) -> TestAgents {
        let folder = tempfile::tempdir().unwrap();
        let seen = Arc::new(Seen::default());
        let engine = Arc::new(Engine::new(self.records.clone(), vec![seen.clone()]));
        let models = Arc::new(Models::default().with("mind", self.model.clone()));
        let approvals = self.approvals.map(Arc::new);
        let runners = self.agents.iter().map(|name| {
            let config = ToolEnv {
                workspace: folder.path().to_owned(),
                protected: Protected::default(),
                exec_env: Vec::new(),
                exec_shell: ExecShell::default(),
                exec_guard: None,
                exec_unconfined: true,
                egress: Egress::new(Vec::new()),
                agents: self.agents.iter().map(|name| ((*name).to_owned(), String::new())).collect(),
            };
            let mut tools = Tools::builtin(config, &["delegate".into(), "spawn".into()]).unwrap();
            for tool in &self.own {
                tools.add(tool.clone()).unwrap();
            }
            let settings = (self.change)(AgentSettings::new(name, &format!("mind/{name}")));
            let runner = Runner::new(settings, models.clone(), Arc::new(tools), engine.clone());
            let runner = runner.with_skills(Arc::new(SkillSet::new(self.skills.clone())));
            match &approvals {
                Some(approvals) => runner.with_approvals(approvals.clone()),
                None => runner,
            }
        });
        let registry = AgentRegistry::new(runners.collect());
        TestAgents { engine, seen, model: self.model, registry, folder }
    }
}

/// Several agents, each called `mind/NAME` by the model.
pub(crate) struct TestAgents {
    pub(crate) engine: Arc<Engine>,
    pub(crate) seen: Arc<Seen>,
    pub(crate) model: Arc<Recorder>,
    pub(crate) registry: Arc<AgentRegistry>,
    pub(crate) folder: tempfile::TempDir,
}

impl TestAgents {
    pub(crate) fn mount(&self, mounts: Vec<Mount>) {
        self.engine.replace(mounts).unwrap();
    }

    pub(crate) fn main(&self) -> &Runner {
        self.registry.runner("main").unwrap()
    }

    /// A turn of the agent `main`.
    pub(crate) async fn turn(&self, conversation: &mut Conversation, prompt: &str) -> TurnReport {
        self.turn_by(conversation, prompt, &TurnHandle::default()).await
    }

    pub(crate) async fn turn_by(
        &self,
        conversation: &mut Conversation,
        prompt: &str,
        turn_handle: &TurnHandle,
    ) -> TurnReport {
        self.main().turn(conversation, prompt, self.seen.clone(), turn_handle).await
    }

    pub(crate) async fn go_on(&self, conversation: &mut Conversation) -> Option<TurnReport> {
        self.main().go_on(conversation, self.seen.clone(), &TurnHandle::default()).await
    }

    /// Waits until no sub-agent works any more.
    pub(crate) async fn settled(&self) {
        self.engine.close().await;
    }
}

/// The conversation, one message a line.
pub(crate) fn said(conversation: &Conversation) -> Vec<String> {
    lines(conversation.messages())
}
