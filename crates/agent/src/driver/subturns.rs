//! Sub-agents: full turns with the same hooks, one level deeper, in sessions of their own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, join_all};
use pintle_domain::checkpoint::runtime::{OrphanReason, TurnStatus};
use pintle_domain::checkpoint::{ObservedEvent, RuntimeEvent, SubagentStart};
use pintle_domain::id::{AgentId, SessionId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::kept_result::{MAX_RESULT_BYTES, beginning};
use pintle_domain::message::{Message, Role};
use pintle_domain::ruling::Ruling;
use pintle_domain::store::SessionKey;
use pintle_domain::tool::ToolOutput;
use pintle_domain::turn::{MessageSender, WaitingMessage};
use pintle_domain::verdict::AbortScope;
use pintle_engine::{Dispatcher, Permit};
use tokio::sync::OwnedSemaphorePermit;

use super::calls_in_progress::{CallInProgress, CallResult};
use super::messages::now;
use super::report::{TurnEnding, TurnReport};
use super::runner::{MAX_CHILDREN, Runner};
use super::turn_env::{SubagentContext, TurnEnv};
use super::work::Work;
use crate::conversation::Conversation;
use crate::media::MediaScope;
use crate::tools::{DELEGATE, SPAWN};
use crate::user_output::SubagentOutput;

/// How long a sub-agent may work: a long errand, and a bound for one that goes round in circles.
pub const SUBTURN_TIME: Duration = Duration::from_secs(15 * 60);

pub(super) fn is_subagent_tool(name: &str) -> bool {
    [DELEGATE, SPAWN].contains(&name)
}

/// What a sub-agent brought.
pub(super) struct SubagentResult {
    pub(super) output: ToolOutput,
    pub(super) denials: Vec<String>,
}

impl SubagentResult {
    pub(super) fn failed(reason: impl Into<String>) -> Self {
        Self { output: ToolOutput::error(reason), denials: Vec::new() }
    }

    fn denied(agent: &str, text: String) -> Self {
        Self { output: ToolOutput::error(&text), denials: vec![format!("{agent}: {text}")] }
    }
}

/// A task for a sub-agent that was let begin, and the room that it takes.
struct Task {
    agent: AgentId,
    text: String,
    /// What its gates ruled on.
    start: SubagentStart,
    begun: Instant,
    turn_id: TurnId,
    background: bool,
    _slot: OwnedSemaphorePermit,
}

/// The sub-agents of a session that were at work when their process died, and the hooks of the turn that they work for.
pub(super) struct TakenUp {
    pub(super) hooks: Dispatcher,
    pub(super) subagents: Vec<LeftSubagent>,
}

/// A sub-agent that was at work when its process died, opened to go on.
pub(super) struct LeftSubagent {
    pub(super) agent: AgentId,
    /// Whether nobody waits for it.
    pub(super) background: bool,
    /// Its session, with the turn that is open there.
    pub(super) conversation: Conversation,
    pub(super) slot: OwnedSemaphorePermit,
}

impl Work<'_> {
    pub(super) fn subagent(&self) -> SubagentContext {
        SubagentContext {
            registry: self.runner.registry.upgrade(),
            turn_env: self.turn_env.clone(),
            hooks: self.hooks.clone(),
            session: self.conversation.key.clone(),
            scope: self.scope(),
            journal: self.conversation.journal.clone(),
            late: self.conversation.late.clone(),
            children: self.children.clone(),
            tasks: self.runner.engine.tasks().clone(),
        }
    }

    /// Goes on with the sub-agents that were at work when their process died. The call that waited for one of them, as no
    /// two calls of `delegate` run at once, waits for it again.
    pub(super) fn revive(&mut self, left: Vec<LeftSubagent>) {
        for left in left {
            let waits = self.turn.running().into_iter().find(|place| self.tool_at(*place) == DELEGATE);
            let waits = waits.filter(|place| !left.background && !self.flights.running.contains_key(place));
            let (subagent, tasks) = (Arc::new(self.subagent()), self.flights.tasks.clone());
            let (started, conversation) = StartedSubagent::again(subagent, left);
            match waits.and_then(|place| Some((place, self.call_at(place)?))) {
                Some((place, call)) => {
                    let handle = tasks.spawn(started.waited_for(Some(conversation)));
                    self.flights.running.insert(place, CallInProgress { call, handle });
                }
                None => started.in_background(Some(conversation)),
            }
        }
    }

    /// Tells of every sub-agent that goes on working after this turn.
    pub(super) fn orphan_children(&self) {
        let children: Vec<TurnId> = self.children.lock().keys().cloned().collect();
        for child in children {
            self.tell(orphan(self.turn_id(), &child, OrphanReason::ParentFinishedWaiting));
        }
    }
}

impl Runner {
    /// Works the turns of sub-agents to their ends whose process died, for a session in which no turn is worked. What
    /// each of them brought.
    pub(super) async fn finished(
        &self,
        conversation: &Conversation,
        TakenUp { hooks, subagents }: TakenUp,
        turn_env: &TurnEnv,
    ) -> Vec<WaitingMessage> {
        let context = Arc::new(SubagentContext {
            registry: self.registry.upgrade(),
            turn_env: turn_env.clone(),
            session: conversation.key.clone(),
            scope: MediaScope::of(hooks.who()),
            journal: conversation.journal.clone(),
            late: conversation.late.clone(),
            children: Arc::default(),
            tasks: self.engine.tasks().clone(),
            hooks,
        });
        let work = subagents.into_iter().map(|left| {
            let (started, opened) = StartedSubagent::again(context.clone(), left);
            started.finished(opened)
        });
        join_all(work).await
    }
}

impl SubagentContext {
    /// Runs the permitted `delegate` or `spawn`. In a box: a sub-agent may delegate in turn.
    pub(super) fn run(self, permit: Permit) -> BoxFuture<'static, SubagentResult> {
        Box::pin(async move {
            let background = permit.call().tool == SPAWN;
            let task = match self.begin(&permit, background).await {
                Ok(task) => task,
                Err(refused) => return refused,
            };
            let (agent, turn_id) = (task.agent.clone(), task.turn_id.clone());
            let started = StartedSubagent::tell(Arc::new(self), task);
            if !background {
                let CallResult { output, denials, .. } = started.waited_for(None).await;
                return SubagentResult { output, denials };
            }
            started.in_background(None);
            let text = format!("The agent \"{agent}\" works on it as {turn_id}. What it says comes as a message.");
            SubagentResult { output: ToolOutput { is_async: true, ..ToolOutput::ok(text) }, denials: Vec::new() }
        })
    }

    /// Everything that must be so before a sub-agent begins; its gates rule last.
    async fn begin(&self, permit: &Permit, background: bool) -> Result<Task, SubagentResult> {
        let word = |name: &str| permit.call().arguments.get(name).and_then(|v| v.as_str()).unwrap_or_default();
        let (name, text) = (word("agent"), word("task").to_owned());
        let registry = self.registry.as_ref().ok_or_else(|| SubagentResult::failed("there is no other agent here"))?;
        if registry.runner(name).is_none() {
            let names = registry.names().collect::<Vec<_>>().join(", ");
            return Err(SubagentResult::failed(format!("there is no agent `{name}`; the agents: {names}")));
        }
        let agent = AgentId::from(name);
        let start = self.hooks.subagent(agent.clone(), &text, Some(permit.call().clone()));
        let start = start.map_err(|too_deep| SubagentResult::denied(name, too_deep.into()))?;
        let slot = registry.slot().ok_or_else(|| {
            SubagentResult::failed(format!("{MAX_CHILDREN} sub-agents work already; wait until one of them is done"))
        })?;
        let start = match self.hooks.check(start).await {
            (start, Ruling::Proceed) => start,
            (_, Ruling::Deny(denied)) => return Err(SubagentResult::denied(name, denied.of_delegation(name))),
            (_, Ruling::Respond { with: never, .. } | Ruling::Ask { why: never, .. }) => match never {},
            (_, Ruling::Abort(aborted)) => return Err(SubagentResult::denied(name, aborted.text())),
        };
        let begun = Instant::now();
        Ok(Task { agent, text, start, begun, turn_id: TurnId::fresh(), background, _slot: slot })
    }

    /// Works the task in `conversation`. Says whether its time was over before it was.
    async fn work_in(self: &Arc<Self>, mut conversation: Conversation, task: &Task) -> (TurnReport, bool) {
        let turn_handle = self.turn_env.turn_handle.child();
        let turn_env = TurnEnv {
            user_output: Arc::new(SubagentOutput(self.turn_env.user_output.clone())),
            turn_handle: turn_handle.clone(),
            parent: Some(self.hooks.clone()),
            above: Some(self.scope.clone()),
            upper: Some(self.clone()),
        };
        let runner = self.registry.as_ref().and_then(|registry| registry.runner(task.agent.as_str()));
        let runner = runner.expect("the agent was found when the task began");
        let work = async {
            if conversation.open_turn().is_some() {
                let resumed = runner.resume_in(&mut conversation, turn_env).await;
                return resumed.unwrap_or_else(|| not_opened(task, "its turn is over".to_owned()));
            }
            runner.work(&mut conversation, Some(task.text.as_str().into()), turn_env, task.turn_id.clone()).await
        };
        // In a box: whoever goes on may have sub-agents to go on with.
        let mut work: BoxFuture<'_, TurnReport> = Box::pin(work);
        tokio::select! {
            report = &mut work => return (report, false),
            () = tokio::time::sleep(SUBTURN_TIME) => turn_handle.cancel(),
        }
        let text = format!("its time of {} minutes is over", SUBTURN_TIME.as_secs() / 60);
        (TurnReport { ending: TurnEnding::Failed { stage: "llm".into(), text }, ..work.await }, true)
    }

    /// The session of the sub-agent, named after the one it works for.
    async fn conversation(&self, task: &Task) -> Result<Conversation, String> {
        let key = SessionKey { tenant: self.journal.key().tenant.clone(), session: self.session_of(task) };
        let (channel, chat_id) = (self.hooks.who().channel.clone(), self.hooks.who().chat_id.clone());
        let Some(store) = self.journal.store().cloned() else {
            return Ok(Conversation::new_of(key).on(channel, chat_id));
        };
        let parent = Some(self.session.clone());
        let opened = tokio::task::spawn_blocking(move || Conversation::open_child(store, key, parent)).await;
        match opened {
            Ok(Ok(conversation)) => Ok(conversation.on(channel, chat_id)),
            Ok(Err(error)) => Err(error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn session_of(&self, task: &Task) -> SessionId {
        let way = if task.background { SPAWN } else { DELEGATE };
        SessionId::new(format!("{}/{way}:{}:{}", self.session, task.agent, task.turn_id))
    }

    /// What a sub-agent brought goes to its turn, or, if that is over, to whoever goes on.
    fn hand_over(&self, agent: &AgentId, turn_id: &TurnId, text: &str, why: OrphanReason) {
        let Some(late) = self.turn_env.turn_handle.deliver(result_message(agent, turn_id, text)) else { return };
        self.hooks.tell(orphan(&self.hooks.who().turn_id, turn_id, why));
        self.leave(late);
    }

    /// A result that is too late for this turn goes up to the next one that is worked, or, at the top, waits in the
    /// session for the next turn.
    fn leave(&self, late: WaitingMessage) {
        if self.hooks.cancel().is_cancelled() {
            return;
        }
        match &self.turn_env.upper {
            Some(upper) => upper.take(late),
            None => {
                let who = self.hooks.who();
                self.hooks.tell(follow_up(who, &late));
                self.late.leave(late, &self.journal, &who.agent_id);
            }
        }
    }

    /// Takes what a sub-agent of a sub-agent brought after the end of that.
    pub(super) fn take(&self, late: WaitingMessage) {
        if let Some(late) = self.turn_env.turn_handle.deliver(late) {
            self.leave(late);
        }
    }

    fn tell_delivered(&self, report: &TurnReport) {
        let event = RuntimeEvent::SubturnResultDelivered {
            target_channel: self.hooks.who().channel.clone(),
            target_chat_id: self.hooks.who().chat_id.clone(),
            content_len: report.reply.len(),
        };
        self.hooks.tell(event);
    }
}

/// A sub-agent in the background: what it brought is handed over, also if that is nothing because it panicked.
struct BackgroundSubagent {
    subagent: Arc<SubagentContext>,
    agent: AgentId,
    turn_id: TurnId,
    over: bool,
}

impl BackgroundSubagent {
    fn begin(subagent: Arc<SubagentContext>, agent: AgentId, turn_id: TurnId) -> Self {
        subagent.children.lock().insert(turn_id.clone(), agent.clone());
        Self { subagent, agent, turn_id, over: false }
    }

    fn end(mut self, report: TurnReport) {
        let text = brought(&self.agent, report).output.for_llm;
        self.hand_over(&text, OrphanReason::ParentFinished);
    }

    fn hand_over(&mut self, text: &str, why: OrphanReason) {
        self.over = true;
        self.subagent.children.lock().remove(&self.turn_id);
        self.subagent.hand_over(&self.agent, &self.turn_id, text, why);
    }
}

impl Drop for BackgroundSubagent {
    fn drop(&mut self) {
        if !self.over {
            self.hand_over("The agent failed inside, and brought nothing.", OrphanReason::Panic);
        }
    }
}

/// The end of a sub-agent, as it is told.
struct SubagentEnd {
    status: TurnStatus,
    outcome: String,
    denials: Vec<String>,
    timed_out: bool,
}

/// A sub-agent whose start was told: its end is told once, also if it panics or is dropped.
struct StartedSubagent {
    subagent: Arc<SubagentContext>,
    task: Task,
    told: bool,
}

impl StartedSubagent {
    fn tell(subagent: Arc<SubagentContext>, task: Task) -> Self {
        let spawn = RuntimeEvent::SubturnSpawn {
            agent_id: task.agent.to_string(),
            label: task.turn_id.to_string(),
            parent_turn_id: subagent.hooks.who().turn_id.to_string(),
        };
        subagent.hooks.tell(spawn);
        Self { subagent, task, told: false }
    }

    /// One whose start was told by a process that died, and its session.
    pub(super) fn again(subagent: Arc<SubagentContext>, left: LeftSubagent) -> (Self, Conversation) {
        let LeftSubagent { agent, background, conversation, slot } = left;
        let open = conversation.open_turn().map(|open| (open.turn_id.clone(), open.prompt.clone()));
        let (turn_id, text) = open.unwrap_or_else(|| (TurnId::fresh(), String::new()));
        let start = SubagentStart::new(agent.clone(), text.as_str(), subagent.hooks.who().depth + 1, None);
        let task = Task { agent, text, start, begun: Instant::now(), turn_id, background, _slot: slot };
        (Self { subagent, task, told: false }, conversation)
    }

    /// Works the task for a call that waits for it, in its session if that is open already.
    async fn waited_for(mut self, opened: Option<Conversation>) -> CallResult {
        let (begun, subagent) = (Instant::now(), self.subagent.clone());
        let report = self.work(opened).await;
        subagent.tell_delivered(&report);
        let SubagentResult { output, denials } = brought(&self.task.agent, report);
        CallResult { output, took: begun.elapsed(), denials }
    }

    /// The same for nobody who waits: what it brings is handed over.
    fn in_background(mut self, opened: Option<Conversation>) {
        let (subagent, task) = (self.subagent.clone(), &self.task);
        // The guard is made here: a task that is dropped before it began has an end, too.
        let background = BackgroundSubagent::begin(subagent.clone(), task.agent.clone(), task.turn_id.clone());
        subagent.tasks.spawn(async move {
            background.end(self.work(opened).await);
            // Its room is free only now: whoever waits for that finds the result.
            drop(self);
        });
    }

    /// Works the task to its end and says what it brought.
    async fn finished(mut self, opened: Conversation) -> WaitingMessage {
        let report = self.work(Some(opened)).await;
        let text = brought(&self.task.agent, report).output.for_llm;
        result_message(&self.task.agent, &self.task.turn_id, &text)
    }

    /// Works the task to its end, or to that of its time.
    async fn work(&mut self, opened: Option<Conversation>) -> TurnReport {
        let opened = match opened {
            Some(conversation) => Ok(conversation),
            None => self.subagent.conversation(&self.task).await,
        };
        let (report, timed_out) = match opened {
            Ok(conversation) => self.subagent.work_in(conversation, &self.task).await,
            Err(text) => (not_opened(&self.task, text), false),
        };
        let (status, outcome) = outcome(&report);
        self.stop(SubagentEnd { status, outcome, denials: report.denials.clone(), timed_out });
        report
    }

    fn stop(&mut self, end: SubagentEnd) {
        self.told = true;
        let SubagentEnd { status, outcome, denials, timed_out } = end;
        let start = Box::new(self.task.start.clone());
        let (session_id, duration) = (self.subagent.session_of(&self.task), self.task.begun.elapsed());
        let stop = ObservedEvent::SubagentStop { start, session_id, status, timed_out, outcome, denials, duration };
        tell_stop(&self.subagent.hooks, &self.task.agent, status, stop);
    }
}

/// What comes of a task whose session cannot be worked.
fn not_opened(task: &Task, text: String) -> TurnReport {
    TurnReport::failed(task.turn_id.clone(), "session_restore", text)
}

impl Drop for StartedSubagent {
    fn drop(&mut self) {
        if !self.told {
            let (status, outcome) = (TurnStatus::Aborted, "it was dropped before its end".into());
            self.stop(SubagentEnd { status, outcome, denials: Vec::new(), timed_out: false });
        }
    }
}

/// Tells that a sub-agent has ended.
pub(super) fn tell_stop(hooks: &Dispatcher, agent: &AgentId, status: TurnStatus, stop: ObservedEvent) {
    hooks.tell(RuntimeEvent::SubturnEnd { agent_id: agent.to_string(), status });
    hooks.tell(stop);
}

pub(super) fn orphan(parent: &TurnId, child: &TurnId, reason: OrphanReason) -> RuntimeEvent {
    RuntimeEvent::SubturnOrphan { parent_turn_id: parent.to_string(), child_turn_id: child.to_string(), reason }
}

/// What a sub-agent in the background brought, as its parent's model reads it.
pub(super) fn result_message(agent: &AgentId, turn_id: &TurnId, text: &str) -> WaitingMessage {
    let text = beginning(text, MAX_RESULT_BYTES, None);
    let content = format!("[Result of the agent \"{agent}\", started as {turn_id}]\n{text}");
    let message = Message { created_at: Some(now()), ..Message::text(Role::User, content) };
    WaitingMessage {
        message: message.into(),
        from: MessageSender::Subturn { agent: agent.clone(), turn_id: turn_id.clone() },
        notes: Vec::new(),
    }
}

/// A result waits for the next turn of the session of `who`.
pub(super) fn follow_up(who: &Identity, result: &WaitingMessage) -> RuntimeEvent {
    RuntimeEvent::FollowUpQueued {
        source_tool: SPAWN.into(),
        channel: who.channel.clone(),
        chat_id: who.chat_id.clone(),
        content_len: result.text().len(),
    }
}

fn outcome(report: &TurnReport) -> (TurnStatus, String) {
    match &report.ending {
        TurnEnding::Completed => (TurnStatus::Completed, report.reply.clone()),
        TurnEnding::Blocked(denied) => (TurnStatus::Aborted, denied.text()),
        TurnEnding::Failed { text, .. } if report.reply.is_empty() => (TurnStatus::Error, text.clone()),
        TurnEnding::Failed { text, .. } => (TurnStatus::Error, format!("{text}; it said: {}", report.reply)),
        TurnEnding::StoppedByHook(aborted) => {
            let status = match aborted.abort.abort_scope {
                AbortScope::Turn => TurnStatus::Error,
                AbortScope::Run => TurnStatus::Aborted,
            };
            (status, aborted.text())
        }
        TurnEnding::Cancelled => (TurnStatus::Aborted, "it was stopped".into()),
        TurnEnding::Waiting(approval) => {
            (TurnStatus::Aborted, format!("a person has to approve it first: {}", approval.reason))
        }
    }
}

/// What the parent's model reads of a sub-agent, with what that was denied.
fn brought(agent: &AgentId, report: TurnReport) -> SubagentResult {
    let (status, text) = outcome(&report);
    let mut output = match status {
        TurnStatus::Completed => ToolOutput::ok(text),
        TurnStatus::Error | TurnStatus::Aborted => ToolOutput::error(format!("The agent \"{agent}\" failed: {text}")),
    };
    if !report.denials.is_empty() {
        output.for_llm.push_str("\n\nIt was denied:");
        report.denials.iter().for_each(|denial| output.for_llm.push_str(&format!("\n- {denial}")));
    }
    let denials = report.denials.iter().map(|denial| format!("{agent}: {denial}")).collect();
    SubagentResult { output, denials }
}
