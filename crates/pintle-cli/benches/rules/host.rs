//! A host with rules, wired as the program wires it.

use std::fs;
use std::sync::Arc;

use anyhow::Context as _;
use pintle_domain::id::AgentId;
use pintle_domain::rule::Rule;
use pintle_domain::store::{Actor, RecordStore, RuleChange};
use pintle_egress::{Egress, KeepAlive, Resolver};
use pintle_engine::{Dispatcher, Engine, NullStore};
use pintle_host::config::{Env, LoadOptions, load};
use pintle_host::host_rules::RuleEnvironment;
use pintle_rules::cache::RuleCache;
use pintle_rules::handler::RuleServices;
use pintle_rules::http::HttpSender;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::counted::Counted;
use crate::stage::turn;

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
    /// The rules.
    pub(crate) rows: Vec<Rule>,
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
    _rulebook: Arc<RuleCache>,
    pub(crate) store: Arc<Counted>,
    _folder: TempDir,
}

impl Host {
    pub(crate) fn open(runtime: &Runtime, plan: Plan) -> anyhow::Result<Self> {
        let _inside = runtime.enter();
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
        let rule_env = RuleEnvironment::of(&loaded.config, &env).map_err(said)?;
        let store = rule_env.open_store(&loaded.config).map_err(said)?;
        let by = Actor { name: "bench".into(), at: jiff::Timestamp::now(), reason: String::new() };
        let creates = plan.rows.into_iter().map(|row| RuleChange::Create(Box::new(row))).collect();
        store.change(creates, &by)?;
        let counted = Arc::new(Counted::new(store.clone()));
        let records: Arc<dyn RecordStore> = if plan.forgets { Arc::new(NullStore) } else { counted.clone() };
        let engine = Engine::new(records, Vec::new());
        let parts = rule_env.parts((&loaded.config, &env), (&engine, &store), None);
        let parts = Arc::into_inner(parts).context("nobody else has the parts yet")?;
        let mut parts = RuleServices { budgets: counted.clone(), ..parts };
        if let Some(resolver) = plan.resolver {
            let egress = Egress::new(loaded.config.agent_hooks.http_allow.clone()).with_resolver(resolver);
            parts.exchange = HttpSender::new(KeepAlive::new(egress), parts.deadlines.clone());
        }
        let agents = Arc::new(|| vec![AgentId::from("main")]);
        // Whoever looks for changes of other processes asks the store each second; no call waits for that.
        let (rule_cache, read) = RuleCache::open(counted.clone(), engine.live().clone(), Arc::new(parts), agents);
        read?;
        Ok(Self { engine, _rulebook: rule_cache, store: counted, _folder: folder })
    }

    /// The hooks of one turn.
    pub(crate) fn dispatcher(&self) -> Arc<Dispatcher> {
        Arc::new(self.engine.dispatcher(turn()))
    }

    /// Ends the hooks.
    pub(crate) fn close(self, runtime: &Runtime) {
        runtime.block_on(self.engine.close());
    }
}

fn said(error: pintle_host::HostError) -> anyhow::Error {
    anyhow::Error::msg(error.message)
}
