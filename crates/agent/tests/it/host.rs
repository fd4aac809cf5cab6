//! A host for tests: an engine, a scripted model that remembers its requests, tools in a folder of their own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use pintle_agent::tools::{ExecShell, Protected, ToolEnv, Tools};
use pintle_agent::{AgentSettings, Conversation, Models, Runner, TurnHandle, TurnReport, UserOutput};
use pintle_domain::checkpoint::{Notice, ObservedEvent, RuntimeEvent};
use pintle_domain::identity::Identity;
use pintle_domain::json::{Rendered, Value, json};
use pintle_domain::llm::{LlmReply, LlmRequest, Usage};
use pintle_domain::message::{Message, Role};
use pintle_domain::record::EventRecord;
use pintle_domain::store::RecordStore;
use pintle_egress::Egress;
use pintle_engine::{Engine, Mount, NullStore, Tool, Watcher};
use pintle_providers::scripted::Scripted;
use pintle_providers::{Delta, Provider, ProviderError, TurnPosition};
use tokio_util::sync::CancellationToken;

/// Everything that was seen of the turns of one host.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) notices: Mutex<Vec<Notice>>,
    pub(crate) records: Mutex<Vec<EventRecord>>,
    pub(crate) for_user: Mutex<Vec<String>>,
    pub(crate) deltas: Mutex<String>,
    /// What was thought, each with the text that was shown before it.
    pub(crate) thoughts: Mutex<Vec<(String, String)>>,
    /// The tokens of each call of a model.
    pub(crate) used: Mutex<Vec<u64>>,
    /// The pieces of each answer.
    pub(crate) pieces: Mutex<Vec<Vec<String>>>,
    /// Whether the last of them is complete.
    pub(crate) complete: AtomicBool,
}

impl Watcher for Seen {
    fn noticed(&self, notice: &Notice) {
        self.notices.lock().unwrap().push(notice.clone());
    }

    fn recorded(&self, record: &EventRecord) {
        self.records.lock().unwrap().push(record.clone());
    }

    fn used(&self, _who: &Identity, usage: Usage) {
        self.used.lock().unwrap().push(usage.total_tokens);
    }
}

impl UserOutput for Seen {
    fn streams(&self) -> bool {
        true
    }

    fn delta(&self, text: &str) {
        self.deltas.lock().unwrap().push_str(text);
        let mut pieces = self.pieces.lock().unwrap();
        if pieces.is_empty() || self.complete.swap(false, Ordering::Relaxed) {
            pieces.push(Vec::new());
        }
        pieces.last_mut().unwrap().push(text.to_owned());
    }

    fn thought(&self, text: &str) {
        let before = self.deltas.lock().unwrap().clone();
        self.thoughts.lock().unwrap().push((before, text.to_owned()));
    }

    fn answered(&self) {
        self.complete.store(true, Ordering::Relaxed);
    }

    fn for_user(&self, text: &str) {
        self.for_user.lock().unwrap().push(text.to_owned());
    }
}

impl Seen {
    /// The names of what was told, in order.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.notices.lock().unwrap().iter().map(|notice| notice.what.name()).collect()
    }

    /// How often something of this name was told.
    pub(crate) fn count(&self, name: &str) -> usize {
        self.names().iter().filter(|told| **told == name).count()
    }

    pub(crate) fn events(&self) -> Vec<RuntimeEvent> {
        let notices = self.notices.lock().unwrap();
        notices
            .iter()
            .filter_map(|notice| match &notice.what {
                ObservedEvent::Runtime(event) => Some(event.clone()),
                ObservedEvent::SessionStart
                | ObservedEvent::PostToolUse { .. }
                | ObservedEvent::SubagentStop { .. }
                | ObservedEvent::Stop { .. } => None,
            })
            .collect()
    }

    /// The payloads of the runtime events called `name`, with durations as zero.
    pub(crate) fn payloads(&self, name: &str) -> Vec<Value> {
        let events = self.events();
        events.iter().filter(|event| event.kind().name() == name).map(payload).collect()
    }

    /// `Stage: Message` of each error event.
    pub(crate) fn errors(&self) -> Vec<String> {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        self.payloads("error").iter().map(|e| format!("{}: {}", word(&e["Stage"]), word(&e["Message"]))).collect()
    }

    /// Name, round and call of everything that was told, in order.
    pub(crate) fn stamps(&self) -> Vec<String> {
        let notices = self.notices.lock().unwrap();
        let call = |notice: &Notice| notice.who.tool_call_id.as_ref().map_or("-".into(), ToString::to_string);
        notices.iter().map(|n| format!("{} {} {}", n.what.name(), n.who.iteration, call(n))).collect()
    }

    /// Everything that any event or record holds, as text.
    pub(crate) fn everything(&self) -> String {
        format!("{:?}{:?}", self.notices.lock().unwrap(), self.records.lock().unwrap())
    }
}

/// The payload of `event`, with its duration as zero.
pub(crate) fn payload(event: &RuntimeEvent) -> Value {
    let mut payload = json!(event);
    if let Some(duration) = payload.get_mut("Duration") {
        *duration = json!(0);
    }
    payload
}

/// A provider that remembers what it was asked.
pub(crate) struct Recorder {
    inner: Arc<dyn Provider>,
    pub(crate) asked: Mutex<Vec<(String, LlmRequest)>>,
}

impl Recorder {
    pub(crate) fn over(inner: Arc<dyn Provider>) -> Arc<Self> {
        Arc::new(Self { inner, asked: Mutex::default() })
    }

    /// A recorder over a script.
    pub(crate) fn playing(script: &Value) -> Arc<Self> {
        Self::over(Arc::new(Scripted::from_json(&script.to_string(), "test").unwrap()))
    }

    pub(crate) fn models(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|(model, _)| model.clone()).collect()
    }

    /// The request number `n`.
    pub(crate) fn request(&self, n: usize) -> LlmRequest {
        self.asked.lock().unwrap()[n].1.clone()
    }

    pub(crate) fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl Provider for Recorder {
    fn call<'a>(
        &'a self,
        model: &'a str,
        request: &'a LlmRequest,
        on_delta: &'a (dyn Fn(Delta<'_>) + Send + Sync),
    ) -> BoxFuture<'a, Result<LlmReply, ProviderError>> {
        self.asked.lock().unwrap().push((model.to_owned(), request.clone()));
        self.inner.call(model, request, on_delta)
    }

    fn call_in_turn<'a>(
        &'a self,
        model: &'a str,
        request: &'a LlmRequest,
        turn: TurnPosition<'a>,
        on_delta: &'a (dyn Fn(Delta<'_>) + Send + Sync),
    ) -> BoxFuture<'a, Result<LlmReply, ProviderError>> {
        self.asked.lock().unwrap().push((model.to_owned(), request.clone()));
        self.inner.call_in_turn(model, request, turn, on_delta)
    }
}

/// What a host is made of.
pub(crate) struct Parts {
    pub(crate) model: Arc<Recorder>,
    pub(crate) models: Option<Arc<Models>>,
    pub(crate) builtin: Vec<&'static str>,
    pub(crate) own: Vec<Arc<dyn Tool>>,
    pub(crate) store: Arc<dyn RecordStore>,
    pub(crate) settings: AgentSettings,
}

impl Parts {
    /// A host whose model plays `replies`, without tools.
    pub(crate) fn of(replies: Value) -> Self {
        Self {
            model: Recorder::playing(&json!({ "replies": replies })),
            models: None,
            builtin: Vec::new(),
            own: Vec::new(),
            store: Arc::new(NullStore),
            settings: AgentSettings::new("main", "scripted/test"),
        }
    }

    #[must_use]
    pub(crate) fn own(mut self, tool: Arc<dyn Tool>) -> Self {
        self.own.push(tool);
        self
    }

    pub(crate) fn host(self) -> Host {
        let folder = tempfile::tempdir().unwrap();
        let seen = Arc::new(Seen::default());
        let engine = Arc::new(Engine::new(self.store, vec![seen.clone()]));
        let names: Vec<String> = self.builtin.iter().map(|name| (*name).to_owned()).collect();
        let config = ToolEnv {
            workspace: folder.path().to_owned(),
            protected: Protected::default(),
            exec_env: std::env::vars_os().collect(),
            exec_shell: ExecShell::default(),
            exec_guard: None,
            exec_unconfined: true,
            egress: Egress::new(Vec::new()),
            agents: Vec::new(),
        };
        let mut tools = Tools::builtin(config, &names).unwrap();
        for tool in self.own {
            tools.add(tool).unwrap();
        }
        let models = self.models.unwrap_or_else(|| Arc::new(Models::default().with("scripted", self.model.clone())));
        let tools = Arc::new(tools);
        let runner = Runner::new(self.settings, models.clone(), tools.clone(), engine.clone());
        Host { engine, runner, seen, model: self.model, models, tools, conversation: Conversation::new("test"), folder }
    }
}

pub(crate) struct Host {
    pub(crate) engine: Arc<Engine>,
    pub(crate) runner: Runner,
    pub(crate) seen: Arc<Seen>,
    pub(crate) model: Arc<Recorder>,
    models: Arc<Models>,
    tools: Arc<Tools>,
    pub(crate) conversation: Conversation,
    pub(crate) folder: tempfile::TempDir,
}

impl Host {
    /// A host whose model plays `script`, with the built-in tools called `tools`.
    pub(crate) fn new(script: &Value, tools: &[&'static str]) -> Self {
        Parts { builtin: tools.to_vec(), ..Parts::of(script["replies"].clone()) }.host()
    }

    /// A host over `models`.
    pub(crate) fn over(
        models: Arc<Models>,
        tools: &[&'static str],
        change: impl FnOnce(AgentSettings) -> AgentSettings,
    ) -> Self {
        let parts = Parts::of(json!([]));
        let settings = change(parts.settings.clone());
        Parts { models: Some(models), builtin: tools.to_vec(), settings, ..parts }.host()
    }

    pub(crate) fn mount(&self, mounts: Vec<Mount>) {
        self.engine.replace(mounts).unwrap();
    }

    /// The same host with other settings.
    pub(crate) fn remake(&mut self, settings: AgentSettings) {
        self.runner = Runner::new(settings, self.models.clone(), self.tools.clone(), self.engine.clone());
    }

    pub(crate) async fn turn(&mut self, prompt: &str) -> TurnReport {
        self.turn_until(prompt, &CancellationToken::new()).await
    }

    pub(crate) async fn turn_until(&mut self, prompt: &str, cancel: &CancellationToken) -> TurnReport {
        self.turn_by(prompt, &TurnHandle::new(cancel)).await
    }

    pub(crate) async fn turn_by(&mut self, prompt: &str, turn_handle: &TurnHandle) -> TurnReport {
        self.runner.turn(&mut self.conversation, prompt, self.seen.clone(), turn_handle).await
    }

    /// The conversation, one message a line.
    pub(crate) fn said(&self) -> Vec<String> {
        lines(self.conversation.messages())
    }

    /// The messages of the model request number `n`, one a line.
    pub(crate) fn asked(&self, n: usize) -> Vec<String> {
        lines(&self.model.request(n).messages)
    }

    /// The text of the tool message that answers `call`.
    pub(crate) fn result(&self, call: &str) -> String {
        let found = self.conversation.messages().iter().find(|message| message.get().tool_call_id == call);
        found.map(|message| message.get().content.clone()).unwrap_or_default()
    }

    /// The conversation can be sent on.
    pub(crate) fn is_valid(&self) -> bool {
        valid(self.conversation.messages())
    }
}

/// Whether the conversation can be sent on: every call of the model has exactly one tool message, right after it.
pub(crate) fn valid(messages: &[Rendered<Message>]) -> bool {
    let mut waiting: Vec<&str> = Vec::new();
    for message in messages.iter().map(Rendered::get) {
        match message.role {
            Role::Tool if waiting.first() == Some(&message.tool_call_id.as_str()) => drop(waiting.remove(0)),
            Role::Tool => return false,
            Role::System | Role::User | Role::Assistant if !waiting.is_empty() => return false,
            Role::System | Role::User | Role::Assistant => {
                waiting = message.tool_calls.iter().map(|part| part.id.as_str()).collect();
            }
        }
    }
    waiting.is_empty()
}

/// Messages, one a line.
pub(crate) fn lines(messages: &[Rendered<Message>]) -> Vec<String> {
    messages.iter().map(|message| line(message.get())).collect()
}

fn line(message: &Message) -> String {
    let who = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => message.tool_call_id.as_str(),
    };
    let calls: Vec<String> = message
        .tool_calls
        .iter()
        .map(|part| format!("{}={}({})", part.id, part.function.name, part.function.arguments))
        .collect();
    match calls.is_empty() {
        true => format!("{who}: {}", message.content),
        false => format!("{who}: {}[{}]", message.content, calls.join(" ")),
    }
}
