//! The MCP servers of a configuration: started beside the hooks, kept over a reload where nothing about them changed,
//! and what tools they bring.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use futures_util::future::{BoxFuture, join_all};
use pintle_agent::tools::Tools;
use pintle_domain::hex::hex;
use pintle_domain::json::{canonical, json};
use pintle_domain::llm::ToolDef;
use pintle_domain::shown_url::shown_url;
use pintle_domain::tool::{Annotations, CallPlace, ServerEntry, ToolOutput};
use pintle_engine::{Permit, Tool};
use pintle_mcp::{McpServer, ServerSpec, ServerStatus, Transport};
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::trust::{SpawnSeal, before_spawn};
use crate::config::{Config, McpReach, McpServerConfig};
use crate::mcp_names::{is_mcp, mcp_glob};

/// A server that runs, and what was accepted of it.
#[derive(Clone)]
pub struct RunningServer {
    server: Arc<McpServer>,
    /// The digest under which it was accepted: another one needs another start, even where it would run alike.
    accepted: Option<String>,
    /// What the configuration says of it: an approval of one of its calls is for exactly this.
    entry: ServerEntry,
}

/// Servers by name.
pub type ServersByName = BTreeMap<String, RunningServer>;

/// The servers of one host.
#[derive(Default)]
pub struct Servers {
    running: Mutex<ServersByName>,
    /// All that were ever started: one that was replaced goes on for turns that began with it.
    all: Mutex<Vec<Weak<McpServer>>>,
    tasks: TaskTracker,
}

impl Servers {
    /// Starts the servers of `config`, beside those that run; `vars` is the environment of a child. One that already runs
    /// in exactly this way is among them. Needs a runtime.
    pub fn start(
        &self,
        config: &Config,
        vars: impl Fn(&[String], &BTreeMap<String, String>) -> Vec<(OsString, OsString)>,
    ) -> ServersByName {
        let (before, mut running) = (self.remember(), ServersByName::new());
        for (name, server) in &config.mcp {
            let spec = spec(name, server, &vars);
            let accepted = server.seal.as_ref().map(|seal| seal.digest().to_owned());
            let started = match before.get(name) {
                Some(same) if *same.server.spec() == spec && same.accepted == accepted => same.server.clone(),
                Some(_) | None => self.launch(spec),
            };
            running.insert(name.clone(), RunningServer { server: started, accepted, entry: entry(name, server) });
        }
        running
    }

    fn launch(&self, spec: ServerSpec) -> Arc<McpServer> {
        let server = McpServer::start(spec, self.tasks.clone());
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|server| server.strong_count() > 0);
        all.push(Arc::downgrade(&server));
        server
    }

    fn remember(&self) -> ServersByName {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets `servers` be those whose tools are offered, and gives those that were. What is no longer needed closes when
    /// nobody uses its tools any more.
    pub fn put(&self, servers: ServersByName) -> ServersByName {
        std::mem::replace(&mut *self.running.lock().unwrap_or_else(PoisonError::into_inner), servers)
    }

    /// Waits for the first start of every server, all at once; answers those that cannot be used, and why.
    pub async fn ready(&self) -> Vec<(String, String)> {
        let running = self.remember();
        let waits = running.iter().map(|(name, started)| async move { (name.clone(), started.server.ready().await) });
        let ready = join_all(waits).await;
        ready.into_iter().filter_map(|(name, outcome)| Some((name, outcome.err()?))).collect()
    }

    /// The same for those of `servers` that do not run yet; the first that cannot be used, and why.
    pub async fn shaken(&self, servers: &ServersByName) -> Result<(), String> {
        let before = self.remember();
        for (name, started) in servers {
            let kept = before.get(name).is_some_and(|same| Arc::ptr_eq(&same.server, &started.server));
            if !kept && let Err(why) = started.server.ready().await {
                return Err(format!("MCP server \"{name}\": {why}"));
            }
        }
        Ok(())
    }

    /// The end of what the server called `name` wrote on its standard error; empty if it wrote nothing.
    pub fn stderr_tail(&self, name: &str) -> String {
        self.remember().get(name).map(|started| started.server.stderr_tail()).unwrap_or_default()
    }

    /// How each server is doing, by name.
    pub fn statuses(&self) -> Vec<(String, ServerStatus)> {
        self.remember().into_iter().map(|(name, started)| (name, started.server.status())).collect()
    }

    /// The tools that the servers have now.
    pub fn catalogue(&self) -> ToolCatalogue {
        let mut catalogue = ToolCatalogue::default();
        for (name, RunningServer { server, entry, .. }) in self.remember() {
            for tool in server.tools() {
                let called = tool.definition().function.name.clone();
                let held = Held { tool, server: server.clone(), entry: entry.clone() };
                catalogue.by_name.entry(called).or_default().push((name.clone(), Arc::new(held)));
            }
        }
        catalogue
    }

    /// Ends all servers, and waits until nothing of them is left.
    pub async fn close(&self) {
        let all = std::mem::take(&mut *self.all.lock().unwrap_or_else(PoisonError::into_inner));
        let all: Vec<Arc<McpServer>> = all.iter().filter_map(Weak::upgrade).collect();
        join_all(all.iter().map(|server| server.close())).await;
        self.tasks.close();
        self.tasks.wait().await;
    }
}

fn spec(
    name: &str,
    server: &McpServerConfig,
    vars: impl Fn(&[String], &BTreeMap<String, String>) -> Vec<(OsString, OsString)>,
) -> ServerSpec {
    let transport = match &server.reach {
        McpReach::Url(url) => Transport::Http { url: url.to_string() },
        McpReach::Command { argv, dir, env, inherit_env } => {
            Transport::Stdio { command: argv.clone(), dir: Some(dir.clone()), vars: vars(inherit_env, env) }
        }
    };
    ServerSpec {
        start_timeout: server.start_timeout,
        before_start: before_spawn(server.seal.as_ref()),
        ..ServerSpec::new(name, transport)
    }
}

/// The entry of a server as an approval is bound to it: everything that says which program answers.
fn entry(name: &str, server: &McpServerConfig) -> ServerEntry {
    let accepted = server.seal.as_ref().map(SpawnSeal::digest);
    let (runs, says) = match &server.reach {
        McpReach::Url(url) => (shown_url(url.as_str()), json!([name, "url", url.as_str(), accepted])),
        McpReach::Command { argv, dir, env, inherit_env } => {
            let dir = dir.canonicalize().unwrap_or_else(|_| dir.clone());
            let says = json!([name, "command", argv, dir.display().to_string(), env, inherit_env, accepted]);
            (argv.join(" "), says)
        }
    };
    let digest = hex(&Sha256::digest(canonical(&says).as_bytes()));
    ServerEntry { name: name.to_owned(), runs, digest }
}

/// A tool, and its server for as long as the tool can be called: a turn in progress keeps what it began with.
struct Held {
    tool: Arc<dyn Tool>,
    server: Arc<McpServer>,
    entry: ServerEntry,
}

impl Tool for Held {
    fn definition(&self) -> &ToolDef {
        self.tool.definition()
    }

    fn read_only(&self) -> bool {
        self.tool.read_only()
    }

    fn annotations(&self) -> Annotations {
        self.tool.annotations()
    }

    fn place(&self) -> CallPlace {
        CallPlace { server: Some(self.entry.clone()), ..CallPlace::default() }
    }

    fn run<'a>(&'a self, permit: Permit, cancel: &'a CancellationToken) -> BoxFuture<'a, ToolOutput> {
        self.tool.run(permit, cancel)
    }
}

/// The tools of all servers.
#[derive(Default)]
pub struct ToolCatalogue {
    /// Each name with the servers that have a tool which is called so here.
    by_name: BTreeMap<String, Vec<(String, Arc<Held>)>>,
}

impl ToolCatalogue {
    /// The names of the tools that can be called.
    pub fn names(&self) -> BTreeSet<String> {
        self.single().map(|(name, _)| name.to_owned()).collect()
    }

    /// The tools that can be called.
    pub fn definitions(&self) -> Vec<ToolDef> {
        self.single().map(|(_, held)| held.definition().clone()).collect()
    }

    /// How many tools each server has.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for (server, _) in self.by_name.values().flatten() {
            *counts.entry(server.clone()).or_default() += 1;
        }
        counts
    }

    /// Names that more than one server has: nobody could tell which is meant, so none of these is offered.
    pub fn clashes(&self) -> Vec<String> {
        let clashing = self.by_name.iter().filter(|(_, tools)| tools.len() > 1);
        let told = clashing.map(|(name, tools)| {
            let servers: Vec<&str> = tools.iter().map(|(server, _)| server.as_str()).collect();
            format!("the tool \"{name}\" is left out: the MCP servers {} have one of that name", servers.join(" and "))
        });
        told.collect()
    }

    /// Adds to `tools` what an agent is offered whose configuration names `wanted`: everything, where it names nothing.
    pub fn add_to(&self, tools: &mut Tools, wanted: Option<&[String]>) {
        for (name, held) in self.single().filter(|(name, _)| is_wanted(name, wanted)) {
            if let Err(error) = tools.add(held.clone()) {
                tracing::warn!(mcp = %held.server.spec().name, "the tool `{name}` is left out: {error}");
            }
        }
    }

    /// The entries of `wanted` about tools of MCP servers that mean none.
    pub fn unmatched<'a>(&self, wanted: &'a [String]) -> Vec<&'a str> {
        let means = |entry: &str| self.single().any(|(name, _)| matches(entry, name));
        wanted.iter().map(String::as_str).filter(|entry| is_mcp(entry) && !means(entry)).collect()
    }

    fn single(&self) -> impl Iterator<Item = (&str, &Arc<Held>)> {
        self.by_name.iter().filter_map(|(name, tools)| match tools.as_slice() {
            [(_, held)] => Some((name.as_str(), held)),
            [] | [_, ..] => None,
        })
    }
}

/// Whether an agent whose configuration names `wanted` is offered the tool `name`.
pub fn is_wanted(name: &str, wanted: Option<&[String]>) -> bool {
    wanted.is_none_or(|wanted| wanted.iter().any(|entry| is_mcp(entry) && matches(entry, name)))
}

/// What is not a glob was reported with the configuration, and means nothing.
fn matches(entry: &str, name: &str) -> bool {
    mcp_glob(entry).is_ok_and(|glob| glob.is_match(name))
}
