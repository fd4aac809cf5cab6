//! Keeps one server alive: opens a link, shakes hands, lists the tools, notices the end, begins anew.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use pintle_engine::Tool;
use pintle_process::child::Restarts;
use pintle_process::supervision::Supervisor;
use rmcp::RoleClient;
use rmcp::service::{Peer, RunningService};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::link::{Link, Process, Trouble};
use super::listing;
use super::shared::{CALL_TIMEOUT, ServerLine, Shared};
use super::visitor::Visitor;

/// How long the output of a child that ended is still read: an answer written before the end counts, and whoever else
/// holds the pipe open does not delay the next start any longer.
const DRAIN: Duration = Duration::from_secs(1);

/// The least time from one listing of changed tools to the next: what changes faster is not read by anybody.
const LIST_PAUSE: Duration = Duration::from_secs(1);

type Running = RunningService<RoleClient, Visitor>;

/// Keeps one server alive.
pub(super) struct ServerSupervisor {
    shared: Arc<Shared>,
    tasks: TaskTracker,
    restarts: Restarts,
    life: u64,
    /// The cause that was logged last, unless the server came up since.
    told: Option<String>,
}

/// How the use of a link ended.
enum LinkEnd {
    /// The child ended.
    Left,
    /// It is of no use for this cause.
    Useless(String),
    /// The server is being closed.
    Closing,
}

impl Supervisor for ServerSupervisor {
    /// One life of the server.
    async fn one_life(&mut self) -> Option<Instant> {
        self.life += 1;
        let (shared, tasks) = (self.shared.clone(), self.tasks.clone());
        let opened = tokio::select! {
            biased;
            () = shared.server.closing().cancelled() => return None,
            opened = Link::open(&shared.spec, &shared.stderr, &tasks) => opened,
        };
        let Link { door, mut process } = match opened {
            Ok(link) => link,
            Err(cause) => return Some(self.fell(cause)),
        };
        let visitor = Visitor { server: shared.spec.name.clone(), changed: Arc::new(Notify::new()) };
        let changed = visitor.changed.clone();
        let mut up = false;
        let end = match self.greet(door.greet(visitor), process.as_mut()).await {
            Ok(running) => self.use_it(running, &changed, process.as_mut(), &mut up).await,
            Err(end) => end,
        };
        let cause = self.end(end, process, up).await?;
        Some(self.fell(cause))
    }
}

impl ServerSupervisor {
    pub(super) fn new(shared: Arc<Shared>, tasks: TaskTracker) -> Self {
        Self { shared, tasks, restarts: Restarts::default(), life: 0, told: None }
    }

    /// Shakes hands, as long as the child lives and the time is not up.
    async fn greet(
        &self,
        greeting: impl Future<Output = Result<Running, Trouble>> + Send,
        process: Option<&mut Process>,
    ) -> Result<Running, LinkEnd> {
        let limit = self.shared.spec.start_timeout;
        let mut greeting = pin!(timeout(limit, greeting));
        let mut process = process;
        let greeted = tokio::select! {
            biased;
            () = self.shared.server.closing().cancelled() => return Err(LinkEnd::Closing),
            greeted = &mut greeting => greeted,
            () = gone(process.as_deref_mut()) => return Err(LinkEnd::Left),
        };
        match greeted {
            Ok(Ok(running)) => match process {
                Some(process) => process.is_same().await.map(|()| running).map_err(LinkEnd::Useless),
                None => Ok(running),
            },
            Ok(Err(why)) => Err(self.judge(why, process).await),
            Err(_elapsed) => Err(LinkEnd::Useless(format!("it did not shake hands within {limit:?}"))),
        }
    }

    /// A child that is ending closes its pipes first, so what broke off is seen before its end.
    async fn judge(&self, trouble: Trouble, process: Option<&mut Process>) -> LinkEnd {
        match trouble {
            Trouble::Refused(why) => LinkEnd::Useless(why),
            Trouble::Cut(why) => match timeout(DRAIN, gone(process)).await {
                Ok(()) => LinkEnd::Left,
                Err(_elapsed) => LinkEnd::Useless(why),
            },
        }
    }

    /// Lists the tools and lets the server work until something happens to it.
    async fn use_it(
        &mut self,
        running: Running,
        changed: &Notify,
        process: Option<&mut Process>,
        up: &mut bool,
    ) -> LinkEnd {
        let stop = running.cancellation_token();
        let peer = running.peer().clone();
        let mut process = process;
        let mut over = pin!(running.waiting());
        let deadline = Instant::now() + self.shared.spec.start_timeout;
        let listed = tokio::select! {
            biased;
            () = self.shared.server.closing().cancelled() => Err(LinkEnd::Closing),
            listed = timeout_at(deadline, listing::list(&peer, &self.shared)) => match listed {
                Ok(Ok(tools)) => Ok(tools),
                Ok(Err(why)) => Err(self.judge(why, process.as_deref_mut()).await),
                Err(_elapsed) => Err(LinkEnd::Useless("it did not list its tools in time".into())),
            },
            () = gone(process.as_deref_mut()) => Err(LinkEnd::Left),
        };
        let end = match listed {
            Err(end) => end,
            Ok(tools) => {
                *up = true;
                let trouble = self.rise(tools, &peer);
                tokio::select! {
                    biased;
                    () = self.shared.server.closing().cancelled() => LinkEnd::Closing,
                    () = gone(process.as_deref_mut()) => LinkEnd::Left,
                    () = trouble.cancelled() => LinkEnd::Useless("it could not be reached any more".into()),
                    _quit = &mut over => {
                        let trouble = Trouble::Cut("it closed its output and stayed".into());
                        return self.judge(trouble, process).await;
                    },
                    never = self.keep_listed(&peer, changed) => match never {},
                }
            }
        };
        if matches!(end, LinkEnd::Left) && timeout(DRAIN, &mut over).await.is_ok() {
            return end;
        }
        stop.cancel();
        if timeout(DRAIN, over).await.is_err() {
            tracing::warn!(mcp = %self.shared.spec.name, "its connection does not end");
        }
        end
    }

    /// The server can be called.
    fn rise(&mut self, tools: Vec<Arc<dyn Tool>>, peer: &Peer<RoleClient>) -> CancellationToken {
        self.told = None;
        self.restarts.came_up(Instant::now());
        tracing::debug!(mcp = %self.shared.spec.name, tools = tools.len(), "a server is up");
        self.shared.set_tools(tools);
        let trouble = CancellationToken::new();
        self.shared.server.rise(ServerLine { peer: peer.clone(), life: self.life, trouble: trouble.clone() });
        trouble
    }

    /// Lists the tools again whenever the server says that they changed, for ever.
    async fn keep_listed(&self, peer: &Peer<RoleClient>, changed: &Notify) -> std::convert::Infallible {
        loop {
            changed.notified().await;
            let next = Instant::now() + LIST_PAUSE;
            match timeout(CALL_TIMEOUT, listing::list(peer, &self.shared)).await {
                Ok(Ok(tools)) => self.shared.set_tools(tools),
                Ok(Err(Trouble::Refused(why) | Trouble::Cut(why))) => {
                    tracing::warn!(mcp = %self.shared.spec.name, why, "its changed tools are not known")
                }
                Err(_elapsed) => tracing::warn!(mcp = %self.shared.spec.name, "it did not list its changed tools"),
            }
            tokio::time::sleep_until(next).await;
        }
    }

    /// Sees off what is left of a life. Answers why the server is down; `None` if it is being closed.
    async fn end(&self, end: LinkEnd, process: Option<Process>, up: bool) -> Option<String> {
        let before = if up { "" } else { " before it listed its tools" };
        match end {
            LinkEnd::Closing => {
                self.shared.server.shut();
                if let Some(mut process) = process {
                    if !process.leaves().await {
                        tracing::info!(mcp = %self.shared.spec.name, "it did not leave and is killed");
                    }
                    process.reap().await;
                }
                None
            }
            LinkEnd::Left => {
                let end = match process {
                    Some(process) => process.reap().await,
                    None => "the connection ended".into(),
                };
                Some(format!("it {end}{before}"))
            }
            LinkEnd::Useless(cause) => {
                self.shared.server.sink(cause.clone());
                if let Some(mut process) = process {
                    process.leaves().await;
                    process.reap().await;
                }
                Some(cause)
            }
        }
    }

    /// The server is down; answers when the next one is due.
    fn fell(&mut self, cause: String) -> Instant {
        let now = Instant::now();
        let due = now + self.restarts.went_down(now, fastrand::f64());
        let name = &self.shared.spec.name;
        if !self.shared.server.has_begun() {
            // Of the first start `ready` tells, and who starts a server says it in words of its own.
            tracing::info!(mcp = %name, ?cause, "the MCP server did not start");
        } else if self.told.as_ref() == Some(&cause) {
            tracing::debug!(mcp = %name, ?cause, "the MCP server is still down");
        } else {
            tracing::warn!(mcp = %name, ?cause, "the MCP server is down");
        }
        self.told = Some(cause.clone());
        self.shared.server.fall(cause, due);
        due
    }
}

/// Waits for the end of the child; for ever where there is none.
async fn gone(process: Option<&mut Process>) {
    match process {
        Some(process) => process.ended().await,
        None => std::future::pending().await,
    }
}
