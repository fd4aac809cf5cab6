//! Works turns: does what the pure turn asks for, notes what came of it, and reports back.

use std::collections::BTreeMap;
use std::sync::Arc;

use pintle_domain::checkpoint::ObservedEvent;
use pintle_domain::checkpoint::runtime::TurnStatus;
use pintle_domain::id::{TraceId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::message::CallPart;
use pintle_domain::session::{JournalEntry, OpenTurn};
use pintle_domain::store::StoreError;
use pintle_domain::tool::ToolOutput;
use pintle_domain::turn::{Fact, Turn, TurnEnd};
use pintle_engine::Dispatcher;
use pintle_engine::approvals::OpenQuestion;

use crate::conversation::Conversation;
use crate::journal::Entries;
use crate::skills::TextRequest;
use crate::turn_handle::TurnHandle;
use crate::user_output::UserOutput;

mod recovery;
mod calls;
mod calls_in_progress;
mod compact;
mod deltas;
mod delivery;
mod files;
mod front_end;
mod known;
mod long_results;
mod messages;
mod model;
mod planning;
mod polls;
pub mod rehearsal;
mod report;
mod runner;
mod sending;
mod shape;
mod subturns;
mod texts;
mod turn_env;
mod work;

use front_end::FrontEndInput;
use report::nobody_said;
pub use report::{TurnEnding, TurnReport};
pub use runner::{AgentRegistry, MAX_CHILDREN, Runner};
pub use subturns::SUBTURN_TIME;
use turn_env::TurnEnv;
use work::{Work, WorkExit};

impl Runner {
    /// Works what is asked for to its end, after what waits in the conversation. What it did so far stays in the conversation,
    /// also when this future is dropped before its end. A turn that was left open by another process ends first.
    pub async fn turn(
        &self,
        conversation: &mut Conversation,
        request: impl Into<TextRequest<'_>>,
        user_output: Arc<dyn UserOutput>,
        turn_handle: &TurnHandle,
    ) -> TurnReport {
        let (turn_env, request) = (TurnEnv::top(user_output, turn_handle), request.into());
        let turn_id = request.turn_id.cloned().unwrap_or_else(TurnId::fresh);
        self.work(conversation, Some(request), turn_env, turn_id).await
    }

    /// Works what waits in the conversation, if anything does: messages that came in too late for their turn, and
    /// results of sub-agents. Those that were at work when their process died go on first.
    pub async fn go_on(
        &self,
        conversation: &mut Conversation,
        user_output: Arc<dyn UserOutput>,
        turn_handle: &TurnHandle,
    ) -> Option<TurnReport> {
        let turn_env = TurnEnv::top(user_output, turn_handle);
        if conversation.open_turn().is_none() {
            self.finish_children(conversation, &turn_env).await;
        }
        if conversation.queue().is_empty() {
            return None;
        }
        Some(self.work(conversation, None, turn_env, TurnId::fresh()).await)
    }

    /// Goes on with the turn that has begun and not ended, if there is one: it waits for a person, or the process that
    /// worked it died. Calls that ran then are not run again; sub-agents that worked for it go on as it does.
    pub async fn resume(
        &self,
        conversation: &mut Conversation,
        user_output: Arc<dyn UserOutput>,
        turn_handle: &TurnHandle,
    ) -> Option<TurnReport> {
        self.resume_in(conversation, TurnEnv::top(user_output, turn_handle)).await
    }

    async fn resume_in(&self, conversation: &mut Conversation, turn_env: TurnEnv) -> Option<TurnReport> {
        let turn_id = conversation.open_turn()?.turn_id.clone();
        turn_env.user_output.begins(&turn_id);
        let mut hooks = self.hooks(conversation, turn_id, &turn_env);
        let unsettled = match unsettled(&hooks).await {
            Ok(unsettled) => unsettled,
            // Whoever cannot read what a person refused must run nothing; the turn stays as it is.
            Err(error) => {
                let turn_id = hooks.who().turn_id.clone();
                let report = TurnReport::failed(turn_id, "session_restore", error.to_string());
                conversation.now_is(report.ending.cause());
                return Some(report);
            }
        };
        let left = self.take_up_children(conversation, &turn_env).await;
        self.open(conversation, &hooks);
        conversation.begin_work();
        let open = conversation.session.take_open()?;
        // Its owners hold for the calls of the batch that was under way.
        hooks.set_known(self.known(open.turn.owners().clone(), hooks.who()));
        let mut work = Work::new(self, conversation, turn_env, hooks, open);
        // Whoever worked it before told of these.
        drop(work.turn.take_events());
        work.revive(left.map(|left| left.subagents).unwrap_or_default());
        work.give_up_running();
        work.flights.unsettled = unsettled;
        Some(self.report(work).await)
    }

    /// Runs one call of somebody who is no model, past everything that a call of a model passes. It is not part of the
    /// conversation, and a question for a person that nobody answers here refuses it.
    pub async fn call(
        &self,
        conversation: &mut Conversation,
        part: CallPart,
        user_output: Arc<dyn UserOutput>,
        turn_handle: &TurnHandle,
    ) -> ToolOutput {
        let turn_env = TurnEnv::top(user_output, turn_handle);
        let turn_id = TurnId::fresh();
        let hooks = self.hooks(conversation, turn_id.clone(), &turn_env);
        self.open(conversation, &hooks);
        let read_only = self.tools.canonical(&part.function.name).and_then(|name| self.tools.get(name));
        let read_only = read_only.is_some_and(|tool| tool.read_only());
        let open = OpenTurn { turn_id, prompt: String::new(), turn: Turn::of_call(part, read_only) };
        let mut work = Work::new(self, conversation, turn_env, hooks, open).apart();
        work.begin();
        let out = work.run().await;
        match (out, work.take_last()) {
            (WorkExit::End(TurnEnd { error: Some((_, text)), .. }), _) => ToolOutput::error(text),
            (WorkExit::End(TurnEnd { stopped_by: Some(aborted), .. }), _) => ToolOutput::error(aborted.text()),
            (WorkExit::Parked(approval), _) => ToolOutput::error(nobody_said(&approval)),
            (WorkExit::End(_), Some(output)) => output,
            (WorkExit::End(_), None) => ToolOutput::error(pintle_domain::turn::CANCELLED),
        }
    }

    async fn work(
        &self,
        conversation: &mut Conversation,
        request: Option<TextRequest<'_>>,
        turn_env: TurnEnv,
        turn_id: TurnId,
    ) -> TurnReport {
        turn_env.user_output.begins(&turn_id);
        let hooks = self.hooks(conversation, turn_id.clone(), &turn_env);
        self.recover(conversation, &turn_env).await;
        self.open(conversation, &hooks);
        let received = match request {
            None => Ok(FrontEndInput::default()),
            Some(request) => self.receive(conversation, request, &*turn_env.user_output, &hooks).await,
        };
        let mut received = match received {
            Ok(received) => received,
            Err(ending) => {
                conversation.now_is(ending.cause());
                return TurnReport::of(turn_id, ending);
            }
        };
        conversation.begin_work();
        let (recalled, text) = (received.recalled.take().map(Fact::Recalled), received.text().map(str::to_owned));
        let prompts = received.prompts(conversation);
        let begun = Fact::Begun {
            turn_id: turn_id.clone(),
            prompts: prompts.iter().cloned().map(Into::into).collect(),
            max_iterations: self.settings.max_iterations,
            // What was said during a turn is asked for as that turn was.
            key: request.map_or(conversation.asked_with(), |request| request.key).map(str::to_owned),
        };
        let equipped = self.equipment(request).map(|with| Fact::Equipped { with: Box::new(with) });
        let entries: Vec<JournalEntry> =
            recalled.into_iter().chain([begun]).chain(equipped).map(JournalEntry::Turn).collect();
        let worded = Entries::worded(entries.clone()).await;
        // Nothing is waited for from here until there is somebody who ends the turn.
        let written = conversation.journal.write_worded(&self.settings.id, worded);
        entries.into_iter().for_each(|entry| conversation.session.apply(entry));
        let Some(open) = conversation.session.take_open() else {
            return TurnReport::failed(turn_id, "session_save", "the turn could not begin".to_owned());
        };
        if turn_env.user_output.acknowledges()
            && let Err(error) = written.kept().await
        {
            conversation.end_work(&self.settings.id);
            return TurnReport::failed(turn_id, "session_save", error.to_string());
        }
        let work = Work::new(self, conversation, turn_env, hooks, open);
        if let Some(text) = text {
            work.tell_started(text).await;
        }
        work.begin();
        self.report(work).await
    }

    async fn report(&self, mut work: Work<'_>) -> TurnReport {
        let out = work.run().await;
        let (turn_id, denials) = (work.turn_id().clone(), work.take_denials());
        let (reply, at_limit, ending) = match out {
            WorkExit::End(end) => (end.reply.clone(), end.at_limit, ending(end)),
            WorkExit::Parked(approval) => (String::new(), false, TurnEnding::Waiting(approval)),
        };
        work.now_is(ending.cause());
        TurnReport { turn_id, reply, ending, denials, at_limit }
    }

    /// The hooks of a turn in this conversation; those of a sub-agent are the ones that the first agent began with.
    fn hooks(&self, conversation: &Conversation, turn_id: TurnId, turn_env: &TurnEnv) -> Dispatcher {
        let top = Identity::top(self.settings.id.as_str(), conversation.key.as_str(), turn_id.clone());
        let mut who = Identity {
            tenant_id: conversation.tenant().clone(),
            channel: conversation.channel.clone(),
            chat_id: conversation.chat_id.clone(),
            sender_id: conversation.sender.clone(),
            trace_id: TraceId::from(turn_id.as_str()),
            ..top
        };
        let parent = turn_env.parent.as_ref();
        if let Some(parent) = parent.map(Dispatcher::who) {
            who.parent_turn_id = Some(parent.turn_id.clone());
            who.depth = parent.depth + 1;
            who.trace_id = parent.trace_id.clone();
            who.sender_id.clone_from(&parent.sender_id);
            who.ancestors = std::iter::once(&parent.agent_id).chain(&parent.ancestors).cloned().collect();
        }
        let known = self.known(BTreeMap::new(), &who);
        let approvals = self.approvals.clone();
        let (hooks, approvals) = match parent {
            Some(parent) => (parent.below(who), approvals.map(|it| Arc::new(it.for_subagents()))),
            None => (self.engine.dispatcher(who), approvals),
        };
        let cancel = turn_env.turn_handle.token().child_token();
        hooks.with_known(known).with_cancel(cancel).with_approvals(approvals)
    }

    /// Notes that this process works on the session, and tells of it if the session is new.
    fn open(&self, conversation: &mut Conversation, hooks: &Dispatcher) {
        let new = !conversation.session.has_begun();
        let Some(entries) = conversation.opening(&self.settings.id) else { return };
        let records = if new { hooks.tell_apart(ObservedEvent::SessionStart) } else { Vec::new() };
        drop(conversation.journal.note(&self.settings.id, entries, records, hooks));
    }

    /// Ends a turn that nobody goes on with: it gets its one `turn_end`, and so do those of a dead process that worked
    /// for this session.
    async fn recover(&self, conversation: &mut Conversation, turn_env: &TurnEnv) {
        self.recover_children(conversation, turn_env).await;
        self.recover_turn(conversation, turn_env).await;
    }

    /// Ends the open turn of the session alone.
    async fn recover_turn(&self, conversation: &mut Conversation, turn_env: &TurnEnv) {
        let Some(turn_id) = conversation.open_turn().map(|open| open.turn_id.clone()) else { return };
        let hooks = self.hooks(conversation, turn_id, turn_env);
        self.open(conversation, &hooks);
        conversation.begin_work();
        // Nothing is waited for between these two, so nobody can drop a turn that is in neither place.
        let Some(open) = conversation.session.take_open() else { return };
        Work::new(self, conversation, turn_env.clone(), hooks, open).lay_down().await;
    }
}

/// What persons were asked about the calls of a turn that was left open.
async fn unsettled(hooks: &Dispatcher) -> Result<BTreeMap<String, OpenQuestion>, StoreError> {
    match hooks.approvals() {
        Some(approvals) => approvals.unsettled(hooks.who()).await,
        None => Ok(BTreeMap::new()),
    }
}

fn ending(end: TurnEnd) -> TurnEnding {
    match (end.stopped_by, end.error, end.status) {
        (Some(aborted), _, _) => TurnEnding::StoppedByHook(aborted),
        (None, Some((stage, text)), _) => TurnEnding::Failed { stage, text },
        (None, None, TurnStatus::Completed) => TurnEnding::Completed,
        (None, None, TurnStatus::Aborted | TurnStatus::Error) => TurnEnding::Cancelled,
    }
}
