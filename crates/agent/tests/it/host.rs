//! A host for tests: an engine, a scripted model, the built-in tools in a folder of their own.

use std::sync::{Arc, Mutex};

use domain::checkpoint::{Notice, Observed, RuntimeEvent};
use domain::record::EventRecord;
use engine::egress::Egress;
use engine::{Engine, Forgetful, Mount, Watcher};
use pintle_agent::tools::{Protected, Tools, ToolsConfig};
use pintle_agent::{Conversation, Models, Outlet, Report, Runner, Settings};
use providers::scripted::Scripted;
use tokio_util::sync::CancellationToken;

/// Everything that was seen of the turns of one host.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) notices: Mutex<Vec<Notice>>,
    pub(crate) records: Mutex<Vec<EventRecord>>,
    pub(crate) for_user: Mutex<Vec<String>>,
    pub(crate) deltas: Mutex<String>,
}

impl Watcher for Seen {
    fn noticed(&self, notice: &Notice) {
        self.notices.lock().unwrap().push(notice.clone());
    }

    fn recorded(&self, record: &EventRecord) {
        self.records.lock().unwrap().push(record.clone());
    }
}

impl Outlet for Seen {
    fn streams(&self) -> bool {
        true
    }

    fn delta(&self, text: &str) {
        self.deltas.lock().unwrap().push_str(text);
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

    pub(crate) fn events(&self) -> Vec<RuntimeEvent> {
        let notices = self.notices.lock().unwrap();
        notices
            .iter()
            .filter_map(|notice| match &notice.what {
                Observed::Runtime(event) => Some(event.clone()),
                Observed::SessionStart | Observed::PostToolUse { .. } | Observed::Stop { .. } => None,
            })
            .collect()
    }
}

pub(crate) struct Host {
    pub(crate) engine: Arc<Engine>,
    pub(crate) runner: Runner,
    pub(crate) seen: Arc<Seen>,
    pub(crate) conversation: Conversation,
    pub(crate) folder: tempfile::TempDir,
}

impl Host {
    /// A host whose model plays `script`, with the tools called `tools`.
    pub(crate) fn new(script: &serde_json::Value, tools: &[&str]) -> Self {
        Self::with(script, tools, |settings| settings)
    }

    pub(crate) fn with(script: &serde_json::Value, tools: &[&str], change: impl FnOnce(Settings) -> Settings) -> Self {
        let scripted = Scripted::from_json(&script.to_string(), "test").unwrap();
        let models = Arc::new(Models::default().with("scripted", Arc::new(scripted)));
        Self::over(models, tools, change)
    }

    /// A host over `models`.
    pub(crate) fn over(models: Arc<Models>, tools: &[&str], change: impl FnOnce(Settings) -> Settings) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let seen = Arc::new(Seen::default());
        let engine = Arc::new(Engine::new(Arc::new(Forgetful), vec![seen.clone()]));
        let names: Vec<String> = tools.iter().map(|name| (*name).to_owned()).collect();
        let config = ToolsConfig {
            workspace: folder.path().to_owned(),
            protected: Protected::default(),
            exec_env: std::env::vars_os().collect(),
            exec_guard: None,
            egress: Egress::new(Vec::new()),
        };
        let tools = Arc::new(Tools::builtin(config, &names).unwrap());
        let settings = change(Settings::new("main", "scripted/test"));
        let runner = Runner::new(settings, models, tools, engine.clone());
        Self { engine, runner, seen, conversation: Conversation::new("test"), folder }
    }

    pub(crate) fn mount(&self, mounts: Vec<Mount>) {
        self.engine.replace(mounts).unwrap();
    }

    pub(crate) async fn turn(&mut self, prompt: &str) -> Report {
        let cancel = CancellationToken::new();
        self.runner.turn(&mut self.conversation, prompt, &*self.seen, &cancel).await
    }
}
