//! Puts calls, their results and requests to the client's model to the hooks. No rule is here.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pintle_domain::approval::told_meanwhile;
use pintle_domain::checkpoint::runtime::TurnStatus;
use pintle_domain::checkpoint::{AgentInfo, BeforeLlm, CheckpointKind, FinishedCall, ObservedEvent, RuntimeEvent};
use pintle_domain::id::{AgentId, CallId, HookName};
use pintle_domain::json::{Object, Value, json};
use pintle_domain::llm::LlmRequest;
use pintle_domain::shell::ShellFacts;
use pintle_domain::tool::{Annotations, CallPlace, ServerEntry, ToolCall, ToolOutput};
use pintle_engine::{Clearance, Dispatcher, Stopped};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::door::{PersonAsked, ToolDoor, ToolVisit};
use super::message::RequestKey;
use super::pins::{PinChange, PinFinding};
use super::proxy::{PinnedTools, ProxiedCall, ProxyRuling};
use super::tools::ToolDefinition;
use crate::door::{looked_at_again, stopped_text};

/// How often a client that wants to hear of progress does while a person thinks: well within the patience of clients,
/// which begins at a minute.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// How far the progress of a call goes on with each word while a person thinks: the server begins at 0 or 1, and what
/// comes later must be more.
const PROGRESS_STEP: f64 = 1e-6;

/// One connection of a client.
#[derive(Debug)]
pub(super) struct ToolSession {
    pub(super) door: ToolDoor,
    name: String,
    is_known: AtomicBool,
}

/// A call whose hooks were asked, until its turn is over.
#[derive(Clone)]
pub(super) struct ClearedCall {
    hooks: Dispatcher,
    call: ToolCall,
    began: Instant,
}

/// What is waited for with a call.
pub(super) struct CallContext {
    /// What the tools of the server say of themselves.
    pub(super) annotations: BTreeMap<String, Annotations>,
    /// Set when nobody waits any more.
    pub(super) cancel: CancellationToken,
    /// Where words for the client go.
    pub(super) words: mpsc::Sender<ClientWord>,
}

/// What a client is told while one of its calls waits for a person.
pub(super) enum ClientWord {
    /// That it does: a whole message, about the call.
    Progress(RequestKey, String),
    /// A question about the call for its own person, and where the answer goes.
    Question(RequestKey, String, oneshot::Sender<bool>),
}

impl ToolSession {
    pub(super) fn new(door: ToolDoor) -> Self {
        let name = format!("mcp:{}:{}", door.rules.server, Uuid::new_v4());
        Self { door, name, is_known: AtomicBool::new(false) }
    }

    /// The hooks of a new turn.
    async fn hooks(&self, asked: mpsc::Sender<PersonAsked>) -> Result<Dispatcher, String> {
        let visit = ToolVisit {
            server: self.door.rules.server.clone(),
            session: self.name.clone(),
            turn: Uuid::now_v7().to_string(),
            asked,
        };
        let hooks = self.door.host.hooks(&visit).await?;
        if !self.is_known.swap(true, Ordering::Relaxed) {
            hooks.tell(ObservedEvent::SessionStart);
        }
        Ok(hooks)
    }

    /// The same, for a call of which the tools are known.
    async fn hooks_for(
        &self,
        asked: mpsc::Sender<PersonAsked>,
        call: &ProxiedCall,
        annotations: BTreeMap<String, Annotations>,
    ) -> Result<(Dispatcher, ToolCall), String> {
        let mut hooks = self.hooks(asked).await?;
        let known = ServerKnowledge {
            inner: hooks.known().clone(),
            own: (call.own.clone(), call.tool.clone()),
            annotations,
            entry: self.door.entry.clone(),
        };
        hooks.set_known(Arc::new(known));
        let id = CallId::new(call.key.to_string());
        hooks.set_call(Some(id.clone()));
        let ServerEntry { name, runs, .. } = &self.door.entry;
        // Here the permit binds: what runs is what was cleared.
        hooks.noted(CheckpointKind::PreToolUse, &format!("door: tool, {name}; executor: server, {runs}; bound: yes"));
        let (tool, raw_tool, arguments) = (call.tool.clone(), call.own.clone(), call.arguments.clone());
        Ok((hooks, ToolCall { id, tool, raw_tool, arguments }))
    }

    /// Clears a call, and waits for a person where one is asked, but not for ever.
    pub(super) async fn clear(
        self: Arc<Self>,
        call: ProxiedCall,
        context: CallContext,
    ) -> (ProxyRuling, Option<ClearedCall>) {
        let (asked, rung) = mpsc::channel(1);
        let (hooks, asked_call) = match self.hooks_for(asked, &call, context.annotations).await {
            Ok(ready) => ready,
            Err(why) => return (ProxyRuling::Denied(why), None),
        };
        // Before any rule: with what is protected an agent would take the guard away, or answer for a person.
        if let Some(reason) = self.door.host.protects(&asked_call).await {
            hooks.refused_call(CheckpointKind::PreToolUse, &asked_call, &reason);
            ended(&hooks, TurnStatus::Completed);
            return (ProxyRuling::Denied(reason), None);
        }
        let stop = context.cancel.child_token();
        let hooks = hooks.with_cancel(stop.clone());
        let clearance = {
            let clearing = hooks.clear(asked_call.clone());
            tokio::pin!(clearing);
            let holding = hold(rung, (&call, &context.words), (Instant::now() + self.door.hold, self.door.asks_client));
            tokio::select! {
                clearance = &mut clearing => clearance,
                () = holding => {
                    stop.cancel();
                    clearing.await
                }
            }
        };
        // What goes on has a token that nobody set.
        let hooks = hooks.with_cancel(context.cancel);
        let host = &self.door.host;
        let protects = |call: ToolCall| async move { host.protects(&call).await };
        let clearance = looked_at_again(clearance, &asked_call, &hooks, protects).await;
        self.ruled(hooks, clearance).await
    }

    async fn ruled(&self, hooks: Dispatcher, clearance: Clearance) -> (ProxyRuling, Option<ClearedCall>) {
        let began = Instant::now();
        match clearance {
            Clearance::Run(permit, left) => {
                let call = permit.call().clone();
                hooks.tell_started(&call, None);
                let notes: Vec<&str> = left.notes.iter().map(|note| note.text.as_str()).collect();
                let note = (!notes.is_empty()).then(|| notes.join("\n\n"));
                (ProxyRuling::Run(permit, note), Some(ClearedCall { hooks, call, began }))
            }
            Clearance::Substituted { call, output, by, took, .. } => {
                hooks.tell_started(&call, Some(&by));
                let finished = FinishedCall { call, output: output.clone(), by: Some(by), took };
                hooks.tell_finished(finished).await;
                ended(&hooks, TurnStatus::Completed);
                (ProxyRuling::Answered(output), None)
            }
            Clearance::Waiting { approval, .. } => {
                let reason = told_meanwhile(&approval.tool, &approval.id);
                skipped(&hooks, &approval.call(), &reason, None)
            }
            Clearance::Refused { call, text, by, .. } => skipped(&hooks, &call, &text, by.as_ref()),
            Clearance::Abort { aborted, call, .. } => {
                let text = aborted.text();
                hooks.tell_skipped(&call, &text, None);
                ended(&hooks, TurnStatus::Aborted);
                (ProxyRuling::Denied(text), None)
            }
        }
    }

    /// Shows the result of a call to the hooks; nothing where they left it as it was.
    pub(super) async fn review(
        self: Arc<Self>,
        (call, cleared): (Option<ProxiedCall>, Option<ClearedCall>),
        output: ToolOutput,
    ) -> Option<ToolOutput> {
        let cleared = match cleared {
            Some(cleared) => cleared,
            None => match self.unknown(call).await {
                Ok(cleared) => cleared,
                Err(why) => return Some(ToolOutput::error(why)),
            },
        };
        let ClearedCall { hooks, call, began } = cleared;
        let (finished, stopped) = hooks.review(call, output.clone(), began.elapsed()).await;
        let left = finished.output.clone();
        hooks.tell_finished(finished).await;
        let status = match stopped {
            Some(Stopped::Aborted(_)) => TurnStatus::Aborted,
            Some(Stopped::Denied(_) | Stopped::Cancelled) | None => TurnStatus::Completed,
        };
        ended(&hooks, status);
        (left != output).then_some(left)
    }

    /// The hooks for a result whose call was cleared long ago, as that of a task, or is not known.
    async fn unknown(&self, call: Option<ProxiedCall>) -> Result<ClearedCall, String> {
        let server = &self.door.rules.server;
        let call = call.unwrap_or_else(|| ProxiedCall {
            key: RequestKey::of(&Value::from("task")).expect("a text is a key"),
            own: "task".into(),
            tool: format!("mcp_{server}_task"),
            arguments: Object::new(),
            progress: None,
        });
        let (asked, _) = mpsc::channel(1);
        let (hooks, call) = self.hooks_for(asked, &call, BTreeMap::new()).await?;
        Ok(ClearedCall { hooks, call, began: Instant::now() })
    }

    /// Shows requests to the client's model to the hooks that may change them.
    pub(super) async fn sample(self: Arc<Self>, requests: Vec<LlmRequest>) -> Result<Vec<LlmRequest>, String> {
        let (asked, _) = mpsc::channel(1);
        let hooks = self.hooks(asked).await?;
        let text = format!("door: tool, {}; the server asks the client's model", self.door.rules.server);
        hooks.noted(CheckpointKind::BeforeLlm, &text);
        let mut left = Vec::new();
        for request in requests {
            match hooks.pass(BeforeLlm::new(request)).await {
                Ok(passed) => left.push(passed.request),
                Err((_, stopped)) => {
                    ended(&hooks, TurnStatus::Completed);
                    return Err(stopped_text(&stopped));
                }
            }
        }
        ended(&hooks, TurnStatus::Completed);
        Ok(left)
    }

    /// Compares what the server says of its tools with what is pinned; why each is withheld.
    pub(super) async fn pin(self: Arc<Self>, definitions: Vec<ToolDefinition>) -> Result<PinnedTools, String> {
        let rules = &self.door.rules;
        let found = self.door.host.pin(&rules.server, definitions).await?;
        let news = found.iter().filter_map(|one| Some(format!("`{}` {}", one.tool, news(one)?)));
        let news: Vec<String> = news.collect();
        if !news.is_empty() {
            let (asked, _) = mpsc::channel(1);
            let hooks = self.hooks(asked).await?;
            let text = format!("the server `{}` changed its tools: {}", rules.server, news.join(", "));
            tracing::warn!("{text}");
            hooks.refused(CheckpointKind::PreToolUse, &text);
            ended(&hooks, TurnStatus::Completed);
        }
        let why = |one: PinFinding| match one.what {
            PinChange::Changed { withheld: true, .. } => Some(format!(
                "the server changed what it says of `{}` since it was first used, so the tool waits for a person, who \
                 accepts it with `{}`",
                one.tool, rules.accept
            )),
            PinChange::Changed { withheld: false, .. } | PinChange::New | PinChange::Same => None,
        };
        Ok(found.into_iter().map(|one| (one.tool.clone(), why(one))).collect())
    }

    /// Keeps that the door itself refused a call.
    pub(super) async fn refused(self: Arc<Self>, call: ProxiedCall, why: String) {
        let (asked, _) = mpsc::channel(1);
        let call = ProxiedCall { tool: named(&self.door.rules.server, &call), ..call };
        match self.hooks_for(asked, &call, BTreeMap::new()).await {
            Ok((hooks, call)) => {
                hooks.refused(CheckpointKind::PreToolUse, &format!("`{}`: {why}", call.tool));
                hooks.tell_skipped(&call, &why, None);
                ended(&hooks, TurnStatus::Completed);
            }
            Err(error) => tracing::warn!("a refusal is not in the record: {error}"),
        }
    }
}

impl ClearedCall {
    /// Its turn is over, and its result reached nobody.
    pub(super) fn leave(self) {
        ended(&self.hooks, TurnStatus::Aborted);
    }
}

/// Our name of a tool that may not be known.
fn named(server: &str, call: &ProxiedCall) -> String {
    if !call.tool.is_empty() {
        return call.tool.clone();
    }
    let mut names = pintle_domain::tool::mcp_tool_names(server, &[&call.own]);
    names.pop().flatten().unwrap_or_else(|| format!("mcp_{server}_"))
}

fn news(found: &PinFinding) -> Option<&'static str> {
    match found.what {
        PinChange::Changed { withheld: true, is_news: true } => Some("is withheld until a person accepts it"),
        PinChange::Changed { withheld: false, .. } => Some("goes on as it is now"),
        PinChange::Changed { withheld: true, is_news: false } | PinChange::New | PinChange::Same => None,
    }
}

fn skipped(
    hooks: &Dispatcher,
    call: &ToolCall,
    reason: &str,
    by: Option<&HookName>,
) -> (ProxyRuling, Option<ClearedCall>) {
    hooks.tell_skipped(call, reason, by);
    ended(hooks, TurnStatus::Completed);
    (ProxyRuling::Denied(reason.to_owned()), None)
}

fn ended(hooks: &Dispatcher, status: TurnStatus) {
    hooks.tell(RuntimeEvent::TurnEnd {
        status,
        iterations: 0,
        duration: Duration::ZERO,
        final_content_len: 0,
        user_message: String::new(),
        final_content: String::new(),
        tool_kinds: Vec::new(),
        tool_executions: Vec::new(),
    });
}

/// Tells the client that a person is asked, until `end`.
async fn hold(
    mut rung: mpsc::Receiver<PersonAsked>,
    (call, words): (&ProxiedCall, &mpsc::Sender<ClientWord>),
    (end, asks_client): (Instant, bool),
) {
    let Some(PersonAsked { approval, question, answer }) = rung.recv().await else {
        return std::future::pending().await;
    };
    if let Some(question) = question.filter(|_| asks_client) {
        // Where the client is gone, somebody else answers.
        words.send(ClientWord::Question(call.key.clone(), question, answer)).await.ok();
    }
    let mut told = 0.0;
    loop {
        told += PROGRESS_STEP;
        if let Some(token) = &call.progress {
            let message = json!(format!("a person is asked: approval {approval}"));
            let text = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{told:.6},"message":{message}}}}}"#
            );
            // One that the client has no room for is followed by another.
            words.try_send(ClientWord::Progress(call.key.clone(), text)).ok();
        }
        let next = Instant::now() + PROGRESS_EVERY;
        sleep_until(next.min(end)).await;
        if Instant::now() >= end {
            return;
        }
    }
}

/// What hooks may know of a call: what the host knows, and what the server says of its tools.
struct ServerKnowledge {
    inner: Arc<dyn AgentInfo>,
    /// The server's own name of the tool, and ours.
    own: (String, String),
    annotations: BTreeMap<String, Annotations>,
    entry: ServerEntry,
}

impl AgentInfo for ServerKnowledge {
    fn tool(&self, name: &str) -> Option<String> {
        if name == self.own.0 {
            return Some(self.own.1.clone());
        }
        Some(name.to_owned())
    }

    fn model(&self, model: &str) -> bool {
        self.inner.model(model)
    }

    fn owner(&self, name: &str) -> Option<HookName> {
        self.inner.owner(name)
    }

    fn annotations(&self, name: &str) -> Annotations {
        self.annotations.get(name).copied().unwrap_or_default()
    }

    fn agent_uuid(&self) -> &str {
        self.inner.agent_uuid()
    }

    fn shell(&self, name: &str, arguments: &Object) -> Arc<ShellFacts> {
        self.inner.shell(name, arguments)
    }

    fn place(&self, name: &str) -> CallPlace {
        CallPlace { server: Some(self.entry.clone()), ..self.inner.place(name) }
    }

    fn acting_for(&self) -> &[AgentId] {
        self.inner.acting_for()
    }
}
