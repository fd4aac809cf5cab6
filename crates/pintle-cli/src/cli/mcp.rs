//! `pintle mcp`: the built-in tools of an agent for a foreign client, behind the agent's hooks.
//!
//! Standard output belongs to the protocol; everything else goes to standard error. Calls are cleared one after
//! another, as those of a turn are.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, Subcommand};
use futures_util::future::BoxFuture;
use pintle_agent::media::{MediaScope, MediaStore};
use pintle_agent::{Conversation, Runner, TurnHandle, UserOutput};
use pintle_domain::approval::{ApprovalMode, PersonAnswer};
use pintle_domain::id::{SessionId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::{Object, Value};
use pintle_domain::message::CallPart;
use pintle_domain::store::{ApprovalQuery, StoreError, TenantScope};
use pintle_domain::tool::ToolOutput;
use pintle_mcp::{OfferedTool, ToolSource};
use pintle_store::Store;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::session::{self, INTERRUPTED};
use super::stops::Stops;
use super::{Global, terminal};
use crate::clean::prose;
use crate::error::CliError;

mod accept;
mod proxy;

/// How many calls may wait behind the one that is running; a client that sends more waits itself.
const MAX_AHEAD: usize = 64;

/// How many waiting approvals are looked through for those of a withdrawn call: more than any person has open.
const MAX_WAITING: usize = 500;

/// What a call gets that comes while the program ends.
const ENDING: &str = "cancelled: pintle is ending";

/// Flags of `mcp`.
#[derive(Debug, Args)]
pub struct McpArgs {
    /// What else can be done.
    #[command(subcommand)]
    command: Option<McpCommand>,
    /// The agent whose built-in tools are served
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Refuse to start when a guard is broken, down or untrusted
    #[arg(long)]
    strict: bool,
}

/// What can be done besides serving an agent's tools.
#[derive(Debug, Subcommand)]
pub(super) enum McpCommand {
    /// Stand between an MCP client and a server: every call passes your hooks
    Proxy(proxy::ProxyArgs),
    /// Accept what a server behind the proxy changed about its tools: shows the changes, and asks
    Accept(accept::AcceptArgs),
}

pub(super) fn run(global: &Global, args: &McpArgs) -> Result<u8, CliError> {
    if args.command.is_some() && (args.agent.is_some() || args.strict) {
        return Err(CliError::usage("`--agent` and `--strict` are about serving an agent's tools")
            .hint("leave them out before `proxy` and `accept`"));
    }
    match &args.command {
        Some(McpCommand::Proxy(args)) => return proxy::run(global, args),
        Some(McpCommand::Accept(args)) => return accept::run(global, args),
        None => {}
    }
    let runtime = terminal::runtime()?;
    let code = runtime.block_on(serve(global, args));
    // A read of standard input may wait for a client that is silent.
    runtime.shutdown_background();
    code
}

async fn serve(global: &Global, args: &McpArgs) -> Result<u8, CliError> {
    let mut stops = Stops::listen(true)?;
    let mut host = session::open_hooks(global, Vec::new())?;
    host.ask_in(ApprovalMode::Mcp, None);
    let runner = host.worker(args.agent.as_deref())?;
    session::ready(&host, args.strict).await?;
    let (calls, waiting) = mpsc::channel(MAX_AHEAD);
    let counter = Arc::new(CallQueue { offered: offered(&runner), calls });
    let (media, store) = (host.files.store(), host.store.clone());
    let clerk = CallWorker { runner, media, store, stop: CancellationToken::new() };
    let (stop, tasks) = (clerk.stop.clone(), TaskTracker::new());
    tasks.spawn(clerk.work(waiting));
    tasks.close();
    let served = tokio::select! {
        served = pintle_mcp::serve_stdio(counter) => served.map(|()| 0).map_err(|error| CliError::failed(error.to_string())),
        _ = stops.next() => Ok(INTERRUPTED),
    };
    stop.cancel();
    tasks.wait().await;
    host.close().await;
    served
}

fn offered(runner: &Runner) -> Vec<OfferedTool> {
    let definitions = runner.tools().definitions().into_iter();
    let offered = definitions.map(|definition| OfferedTool {
        definition: definition.clone(),
        annotations: runner.tools().get(&definition.function.name).map(|it| it.annotations()).unwrap_or_default(),
    });
    offered.collect()
}

/// A call of the client.
struct Call {
    part: CallPart,
    cancel: CancellationToken,
    told: oneshot::Sender<ToolOutput>,
}

/// Where calls come in.
struct CallQueue {
    offered: Vec<OfferedTool>,
    calls: mpsc::Sender<Call>,
}

impl ToolSource for CallQueue {
    fn tools(&self) -> Vec<OfferedTool> {
        self.offered.clone()
    }

    fn call<'a>(
        &'a self,
        name: &'a str,
        arguments: Object,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            let part = CallPart::new(&uuid::Uuid::now_v7().to_string(), name, &Value::Object(arguments).to_string());
            let (told, answer) = oneshot::channel();
            let call = Call { part, cancel: cancel.clone(), told };
            if self.calls.send(call).await.is_err() {
                return ToolOutput::error(ENDING);
            }
            answer.await.unwrap_or_else(|_| ToolOutput::error(ENDING))
        })
    }
}

/// Works the calls, one after another.
struct CallWorker {
    runner: Runner,
    media: Option<Arc<MediaStore>>,
    store: Arc<dyn Store>,
    stop: CancellationToken,
}

impl CallWorker {
    async fn work(self, mut waiting: mpsc::Receiver<Call>) {
        let key = format!("mcp:{}", uuid::Uuid::new_v4());
        let mut conversation = Conversation::new(key.as_str()).on("mcp", "stdio");
        loop {
            let call = tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                call = waiting.recv() => call,
            };
            let Some(Call { part, cancel, told }) = call else { return };
            let output = self.run(&mut conversation, part, &cancel).await;
            // A client that withdrew its call does not wait for the answer.
            drop(told.send(output));
        }
    }

    async fn run(&self, conversation: &mut Conversation, part: CallPart, cancel: &CancellationToken) -> ToolOutput {
        let key = conversation.key.clone();
        let turn_handle = TurnHandle::new(cancel);
        let output = {
            let call = self.runner.call(conversation, part, Arc::new(ProtocolOutput), &turn_handle);
            tokio::pin!(call);
            tokio::select! {
                biased;
                output = &mut call => output,
                () = self.stop.cancelled() => {
                    cancel.cancel();
                    call.await
                }
            }
        };
        if cancel.is_cancelled() {
            let (store, key) = (self.store.clone(), key.clone());
            let withdrawing = tokio::task::spawn_blocking(move || withdraw(&*store, &key));
            if let Err(error) = withdrawing.await.map_err(|error| error.to_string()).flatten() {
                tracing::warn!("what was asked for a call that is withdrawn still waits: {error}");
            }
        }
        let Some(media) = self.media.clone().filter(|_| !output.media.is_empty()) else { return output };
        let who = Identity::top(self.runner.settings().id.as_str(), key.as_str(), TurnId::fresh());
        let kept = output.clone();
        // Reads files.
        tokio::task::spawn_blocking(move || inline(output, &media, &who)).await.unwrap_or(kept)
    }
}

/// Answers what still waits in the session `key`, for whose calls nobody waits any more.
fn withdraw(store: &dyn Store, key: &SessionId) -> Result<(), String> {
    let waiting =
        store.approvals(&ApprovalQuery::waiting(TenantScope::All, MAX_WAITING)).map_err(|error| error.to_string())?;
    for one in waiting.iter().filter(|one| one.session_id == *key) {
        let said =
            PersonAnswer { approve: false, by: "pintle mcp".into(), note: "the client withdrew the call".into() };
        match store.answer(&TenantScope::from(&one.tenant_id), &one.id, said, jiff::Timestamp::now()) {
            // A person was faster.
            Ok(_) | Err(StoreError::Conflict(_)) => {}
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(())
}

/// The output with its media in it, for a client that knows nothing of our references.
fn inline(output: ToolOutput, media: &Arc<MediaStore>, who: &Identity) -> ToolOutput {
    let files = media.turn(MediaScope::of(who));
    let content = |reference: String| {
        let Ok(file) = files.resolve(&reference) else { return reference };
        match std::fs::read(&file.path) {
            Ok(bytes) => format!("data:{};base64,{}", file.content_type, STANDARD.encode(bytes)),
            Err(_) => reference,
        }
    };
    ToolOutput { media: output.media.into_iter().map(content).collect(), ..output }
}

/// What tools and hooks say to the user: there is one only behind the client, so it stands beside the protocol.
struct ProtocolOutput;

impl UserOutput for ProtocolOutput {
    fn streams(&self) -> bool {
        false
    }

    fn delta(&self, _text: &str) {}

    fn for_user(&self, text: &str) {
        terminal::note(&prose(text));
    }
}
