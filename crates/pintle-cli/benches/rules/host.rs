//! A host with stored hooks, wired as the program wires it.

use std::fs;
use std::sync::Arc;

use anyhow::Context as _;
use domain::agent_hook::AgentHook;
use domain::id::AgentId;
use domain::store::{Actor, HookChange, HookStore as _, RecordStore};
use egress::{Egress, KeepAlive, Resolver};
use engine::{Dispatcher, Engine, Forgetful};
use host::config::{Env, LoadOptions, load};
use host::stored_rules::Grounds;
use rules::cache::Rulebook;
use rules::handler::Parts;
use rules::http::Exchange;
use tempfile::TempDir;

use crate::counted::Counted;
use crate::stage::Stage;

const CONFIG: &str = r#"
[agents.main]
model = "scripted/m"
workspace = "workspace"

[providers.scripted]
kind = "scripted"
script = "replies.json"
"#;
const REPLIES: &str = r#"{ "replies": [{ "text": "Nobody asked." }] }"#;

/// What differs between hosts.
#[derive(Default)]
pub(crate) struct Plan {
    /// The stored hooks.
    pub(crate) rows: Vec<AgentHook>,
    /// More of the configuration.
    pub(crate) config: String,
    /// Resolves names in the place of the system.
    pub(crate) resolver: Option<Arc<dyn Resolver>>,
    /// Whether records go nowhere, instead of to the store.
    pub(crate) forgets: bool,
}

/// A store in a file, and an engine with its hooks in force.
pub(crate) struct Host {
    engine: Engine,
    /// Counts what becomes of hooks, as in the program: nobody else holds it.
    _rulebook: Arc<Rulebook>,
    pub(crate) store: Arc<Counted>,
    _folder: TempDir,
}

impl Host {
    pub(crate) fn open(stage: &Stage, plan: Plan) -> anyhow::Result<Self> {
        let _inside = stage.runtime.enter();
        let folder = tempfile::tempdir()?;
        fs::create_dir(folder.path().join("workspace"))?;
        fs::write(folder.path().join("replies.json"), REPLIES)?;
        let file = folder.path().join("pintle.toml");
        fs::write(&file, format!("{CONFIG}{}", plan.config))?;
        let vars = [("HOME", folder.path().as_os_str()), ("PATH", "/usr/local/bin:/usr/bin:/bin".as_ref())];
        let vars = vars.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let env = Env { vars, cwd: folder.path().to_owned() };
        let home = folder.path().join("data");
        let options = LoadOptions { config: Some(&file), home: Some(&home), ..LoadOptions::default() };
        let loaded = load(&env, &options).map_err(said)?;
        anyhow::ensure!(loaded.diagnostics.is_empty(), "the configuration: {:?}", loaded.diagnostics);
        let grounds = Grounds::of(&loaded.config, &env).map_err(said)?;
        let store = grounds.open_store(&loaded.config).map_err(said)?;
        let by = Actor { name: "bench".into(), at: jiff::Timestamp::now() };
        let creates = plan.rows.into_iter().map(|row| HookChange::Create(Box::new(row))).collect();
        store.change(creates, &by)?;
        let counted = Arc::new(Counted::new(store.clone()));
        let records: Arc<dyn RecordStore> = if plan.forgets { Arc::new(Forgetful) } else { counted.clone() };
        let engine = Engine::new(records, Vec::new());
        let parts = grounds.parts((&loaded.config, &env), (&engine, &store), None);
        let parts = Arc::into_inner(parts).context("nobody else has the parts yet")?;
        let mut parts = Parts { budgets: counted.clone(), ..parts };
        if let Some(resolver) = plan.resolver {
            let egress = Egress::new(loaded.config.agent_hooks.http_allow.clone()).with_resolver(resolver);
            parts.exchange = Exchange::new(KeepAlive::new(egress), parts.deadlines.clone());
        }
        let agents = Arc::new(|| vec![AgentId::from("main")]);
        // Whoever looks for changes of other processes asks the store each second; no call waits for that.
        let (rulebook, read) = Rulebook::open(counted.clone(), engine.live().clone(), Arc::new(parts), agents);
        read?;
        Ok(Self { engine, _rulebook: rulebook, store: counted, _folder: folder })
    }

    /// The hooks in force, for one turn.
    pub(crate) fn dispatcher(&self) -> Arc<Dispatcher> {
        Arc::new(self.engine.dispatcher())
    }

    /// Ends the hooks.
    pub(crate) fn close(self, stage: &Stage) {
        stage.runtime.block_on(self.engine.close());
    }
}

fn said(error: host::HostError) -> anyhow::Error {
    anyhow::Error::msg(error.message)
}
