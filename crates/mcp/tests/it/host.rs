//! What runs the tools of a server here, and where the parts of others are.

#![expect(clippy::unwrap_used, reason = "a step that fails fails its test")]

use std::ffi::OsString;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pintle_domain::id::{CallId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::Value;
use pintle_domain::tool::{ToolCall, ToolOutput};
use pintle_engine::dispatcher::Clearance;
use pintle_engine::{Engine, NullStore, Tool};
use pintle_mcp::{McpServer, ServerSpec, Transport};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long anything here may take before a test gives up on it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// A folder of `./pintle test`'s installation.
pub(crate) fn installed(path: &str) -> PathBuf {
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/mcp").join(path);
    assert!(found.exists(), "{} is not installed: run `./pintle test --install` once, which does it", found.display());
    found
}

pub(crate) fn fixture(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name).to_str().unwrap().to_owned()
}

pub(crate) fn python() -> String {
    installed("venv/bin/python").to_str().unwrap().to_owned()
}

/// A server under test, whose processes carry a mark in their environment.
pub(crate) struct Guest {
    pub(crate) server: Arc<McpServer>,
    tasks: TaskTracker,
    mark: String,
}

impl Guest {
    /// Starts `command`, with a folder of its own.
    pub(crate) fn start(name: &str, command: &[&str], folder: &Path, limit: Duration) -> Self {
        let mark = format!("PINTLE_MCP_TEST={}", folder.display());
        let (key, value) = mark.split_once('=').unwrap();
        let vars: Vec<(OsString, OsString)> = [("PATH", std::env::var("PATH").unwrap().as_str()), (key, value)]
            .map(|(name, value)| (name.into(), value.into()))
            .into();
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        let transport = Transport::Stdio { command, dir: Some(folder.to_owned()), vars };
        let spec = ServerSpec { start_timeout: limit, ..ServerSpec::new(name, transport) };
        let tasks = TaskTracker::new();
        Self { server: McpServer::start(spec, tasks.clone()), tasks, mark }
    }

    /// Connects to `url`.
    pub(crate) fn connect(name: &str, url: String) -> Self {
        let tasks = TaskTracker::new();
        let spec = ServerSpec::new(name, Transport::Http { url });
        Self { server: McpServer::start(spec, tasks.clone()), tasks, mark: "none=".into() }
    }

    pub(crate) async fn ready(&self) -> Result<(), String> {
        tokio::time::timeout(PATIENCE, self.server.ready()).await.expect("its first start ends in something")
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.server.tools().iter().map(|tool| tool.definition().function.name.clone()).collect()
    }

    pub(crate) fn tool(&self, name: &str) -> Arc<dyn Tool> {
        let found = self.server.tools().into_iter().find(|tool| tool.definition().function.name == name);
        found.unwrap_or_else(|| panic!("no tool `{name}` among {:?}", self.names()))
    }

    /// Clears and runs a call, as an agent does.
    pub(crate) async fn call(&self, name: &str, arguments: &str) -> ToolOutput {
        run(self.tool(name), arguments, CancellationToken::new()).await
    }

    /// The running processes of the server: the child and all that it started.
    pub(crate) fn processes(&self) -> Vec<Pid> {
        marked(&self.mark)
    }

    /// Stops the server, so that it reads nothing more.
    pub(crate) fn freeze(&self) -> Pid {
        let [pid] = self.processes()[..] else { panic!("expected one process: {:?}", self.processes()) };
        kill(pid, Signal::SIGSTOP).unwrap();
        pid
    }

    /// Closes the server; nothing of it may be left.
    pub(crate) async fn close(self) {
        tokio::time::timeout(PATIENCE, self.server.close()).await.expect("closing ends");
        self.tasks.close();
        tokio::time::timeout(PATIENCE, self.tasks.wait()).await.expect("no task stays behind");
        assert_eq!(self.processes(), [], "no process stays behind");
    }
}

/// Clears and runs one call.
pub(crate) async fn run(tool: Arc<dyn Tool>, arguments: &str, cancel: CancellationToken) -> ToolOutput {
    let Value::Object(arguments) = pintle_domain::json::parse(arguments).unwrap() else {
        panic!("no object: {arguments}")
    };
    let name = tool.definition().function.name.clone();
    let call = ToolCall { id: CallId::from("c1"), tool: name.clone(), raw_tool: name, arguments };
    let engine = Engine::new(Arc::new(NullStore), Vec::new());
    let hooks = engine.dispatcher(Identity::top("a", "s", TurnId::from("t")));
    let Clearance::Run(permit, _) = hooks.clear(call).await else { panic!("nobody refuses it") };
    tokio::time::timeout(2 * PATIENCE, tool.run(permit, &cancel)).await.expect("a call ends")
}

/// Waits until something lies in the pipe that `pid` reads from, without taking it.
pub(crate) async fn until_written(pid: Pid) {
    let waiting = tokio::task::spawn_blocking(move || {
        let pipe = std::fs::File::open(format!("/proc/{pid}/fd/0")).unwrap();
        let mut fds = [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::try_from(PATIENCE).unwrap()).unwrap()
    });
    assert_eq!(waiting.await.unwrap(), 1, "nothing was written");
}

/// Waits until `happened` says so.
pub(crate) async fn until(what: &str, happened: impl Fn() -> bool) {
    let turned = tokio::time::timeout(PATIENCE, async {
        while !happened() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    turned.await.unwrap_or_else(|_| panic!("it never happened: {what}"));
}

/// Processes, zombies aside, with `mark` in their environment.
fn marked(mark: &str) -> Vec<Pid> {
    let pids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_marked = |pid: &i32| {
        let vars = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        vars.split(|byte| *byte == 0).any(|var| var == mark.as_bytes())
    };
    pids.filter(is_marked).map(Pid::from_raw).collect()
}
