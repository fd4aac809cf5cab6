//! One turn under way: asks the pure turn what is next, does it, and notes every fact before it counts.

use std::sync::Arc;

use pintle_domain::approval::Approval;
use pintle_domain::checkpoint::{FinishedTurn, ObservedEvent, RuntimeEvent};
use pintle_domain::id::TurnId;
use pintle_domain::identity::Identity;
use pintle_domain::llm::Usage;
use pintle_domain::record::EventRecord;
use pintle_domain::ruling::Aborted;
use pintle_domain::session::{JournalEntry, OpenTurn, ReleaseReason};
use pintle_domain::tool::ToolOutput;
use pintle_domain::turn::{Fact, ModelAnswer, OUTCOME_UNKNOWN, Turn, TurnEnd, TurnStep};
use pintle_domain::verdict::AbortScope;
use pintle_engine::Dispatcher;
use pintle_providers::TurnWire;
use tokio::time::Instant;

use super::calls_in_progress::CallsInProgress;
use super::files::Files;
use super::runner::Runner;
use super::turn_env::{Children, TurnEnv};
use crate::conversation::Conversation;
use crate::journal::PendingWrite;
use crate::media::MediaScope;
use crate::turn_handle::AbortedBy;

/// What a call that ran when its turn was dropped leaves for the model.
const DROPPED: &str = "outcome unknown: the turn was dropped while the tool ran";

/// What one turn works with. Dropped before its end, it ends like a cancelled turn.
pub(super) struct Work<'a> {
    pub(super) runner: &'a Runner,
    pub(super) conversation: &'a mut Conversation,
    pub(super) turn_env: TurnEnv,
    pub(super) hooks: Dispatcher,
    pub(super) turn: Turn,
    /// What its requests looked like so far. A turn that is taken up again has sent nothing yet.
    pub(super) wire: TurnWire,
    pub(super) flights: CallsInProgress,
    pub(super) children: Arc<Children>,
    pub(super) files: Arc<Files>,
    pub(super) denials: Vec<String>,
    /// What the last call brought.
    pub(super) last: Option<ToolOutput>,
    prompt: String,
    started: Instant,
    /// What its model calls cost so far.
    pub(super) usage: Usage,
    /// Whether it is a turn of the conversation: then the session keeps it.
    pub(super) kept: bool,
    finished: bool,
}

/// How the work on a turn was left.
pub(super) enum WorkExit {
    /// The turn is over.
    End(TurnEnd),
    /// A call waits for a person.
    Parked(Box<Approval>),
}

impl<'a> Work<'a> {
    pub(super) fn new(
        runner: &'a Runner,
        conversation: &'a mut Conversation,
        turn_env: TurnEnv,
        hooks: Dispatcher,
        open: OpenTurn,
    ) -> Self {
        let OpenTurn { prompt, turn, .. } = open;
        let media = runner.media.as_ref().map(|store| store.turn(scope(&turn_env, conversation, hooks.who())));
        let files = Files::new(media, hooks.clone(), runner.tools.clone());
        let hooks = hooks.with_files(files.clone());
        let mut work = Self {
            runner,
            conversation,
            turn_env,
            hooks,
            turn,
            wire: TurnWire::new(runner.settings.removal),
            flights: CallsInProgress::new(runner.engine.tasks().clone()),
            children: Arc::default(),
            files,
            denials: Vec::new(),
            last: None,
            prompt,
            started: Instant::now(),
            usage: Usage::default(),
            kept: true,
            finished: false,
        };
        work.hooks.set_iteration(work.turn.iteration());
        work.conversation.cancel_when_lost(work.turn_env.turn_handle.token());
        work
    }

    /// The same work, which is no turn of the conversation.
    pub(super) fn apart(mut self) -> Self {
        self.kept = false;
        self
    }

    /// Where references to files of this turn resolve.
    pub(super) fn scope(&self) -> MediaScope {
        scope(&self.turn_env, self.conversation, self.hooks.who())
    }

    pub(super) fn turn_id(&self) -> &TurnId {
        &self.hooks.who().turn_id
    }

    pub(super) fn take_denials(&mut self) -> Vec<String> {
        std::mem::take(&mut self.denials)
    }

    pub(super) fn take_last(&mut self) -> Option<ToolOutput> {
        self.last.take()
    }

    pub(super) fn now_is(&mut self, cause: ReleaseReason) {
        self.conversation.now_is(cause);
    }

    /// Tells that the turn begins.
    pub(super) fn begin(&self) {
        self.tell(RuntimeEvent::turn_start(self.hooks.who(), &self.prompt));
    }

    /// The loop. Every way out of it but a question for a person passes `finish`, so there is exactly one `turn_end`.
    pub(super) async fn run(&mut self) -> WorkExit {
        loop {
            self.poll().await;
            self.settle_cut_off();
            let step = self.turn.next();
            self.tell_texts();
            match step {
                TurnStep::Inject { waiting } => self.inject(&waiting),
                TurnStep::Plan => {
                    self.hooks.set_iteration(0);
                    self.hooks.set_call(None);
                    self.plan().await;
                }
                TurnStep::CallModel { iteration, terminal } => {
                    self.hooks.set_iteration(iteration);
                    self.hooks.set_call(None);
                    self.call_model(terminal).await;
                }
                TurnStep::Skip { call, part, why } => self.skip(call, &part, why),
                TurnStep::Clear { call, part } => {
                    if let Some(approval) = self.clear(call, part).await
                        && let Some(out) = self.park(call, approval).await
                    {
                        return out;
                    }
                }
                TurnStep::Start { call } => self.start(call).await,
                TurnStep::Await { call } => self.land(call).await,
                TurnStep::End(end) => {
                    self.hear_the_rest(end.roll_back).await;
                    if let Err(error) = self.finish(&end).kept().await {
                        tracing::error!("the end of a turn could not be written: {error}");
                        // Nobody may hear an answer that the session does not have.
                        let text = format!("the end of the turn could not be kept: {error}");
                        return WorkExit::End(TurnEnd::failed("session_save", text));
                    }
                    return WorkExit::End(end);
                }
            }
        }
    }

    /// Leaves the turn open, for a person to say and somebody to go on. What runs is finished first, and that or an order
    /// from outside may leave nothing to wait for: then nothing comes back.
    async fn park(&mut self, place: usize, approval: Box<Approval>) -> Option<WorkExit> {
        for place in self.turn.running() {
            self.land(place).await;
        }
        self.poll().await;
        if self.turn.is_ending() {
            return None;
        }
        if let (Some(why), Some(part)) = (self.more_urgent(), self.turn.part(place).cloned()) {
            self.skip(place, &part, why);
            return None;
        }
        self.hear_the_rest(false).await;
        self.finished = true;
        let open = self.open_turn();
        self.conversation.session.put_open(open);
        self.conversation.end_work(&self.runner.settings.id);
        Some(WorkExit::Parked(approval))
    }

    /// The turn as the session keeps it. What is left here is an empty one.
    fn open_turn(&mut self) -> OpenTurn {
        let turn = std::mem::replace(&mut self.turn, Turn::begin(Vec::new(), Vec::new(), 0));
        OpenTurn { turn_id: self.hooks.who().turn_id.clone(), prompt: self.prompt.clone(), turn }
    }

    pub(super) fn tell(&self, what: impl Into<ObservedEvent>) {
        self.hooks.tell(what);
    }

    /// Notes a fact, and takes it in. The journal has it in order; whoever needs it on disk waits for that.
    pub(super) fn note(&mut self, fact: Fact) -> PendingWrite {
        let journal = &self.conversation.journal;
        let written = self.kept && journal.store().is_some();
        let entries = if written { vec![JournalEntry::Turn(fact.clone())] } else { Vec::new() };
        let noted = journal.write(&self.runner.settings.id, entries);
        self.turn.apply(fact);
        noted
    }

    pub(super) fn answered(&mut self, place: usize, answer: ModelAnswer) {
        let rewritten = answer.rewritten.or_else(|| self.turn.rewritten(place).map(str::to_owned));
        drop(self.note(Fact::Answered { place, answer: ModelAnswer { rewritten, ..answer } }));
    }

    /// The turn must end because a hook said so; with the run, every turn above it too.
    pub(super) fn stop(&mut self, aborted: Aborted) {
        if aborted.abort.abort_scope == AbortScope::Run {
            // Every turn of the run: the one at the top, and all that work for it.
            self.turn_env.turn_handle.abort_by(AbortedBy::Hook(Box::new(aborted.clone())));
        }
        self.turn.end(TurnEnd::stopped(aborted));
    }

    /// The turn failed at `stage`.
    pub(super) fn fail(&mut self, stage: &str, message: String) {
        let end = match self.turn.limit_reached() {
            // That nobody summed up does not change why it ends.
            Some(limit) => {
                tracing::warn!("at the iteration limit the model did not sum up: {message}");
                TurnEnd::at_limit(limit, "")
            }
            None => TurnEnd::failed(stage, message),
        };
        self.turn.end(end);
    }

    /// Tells why the turn ended, the one `turn_end`, and `stop` after a turn that completed. The end and its record
    /// are one.
    fn finish(&mut self, end: &TurnEnd) -> PendingWrite {
        self.finished = true;
        self.hooks.set_call(None);
        if let Some(event) = end.told() {
            self.tell(event);
        }
        self.orphan_children();
        self.leave_results(end.roll_back);
        self.hooks.set_iteration(0);
        let finished = FinishedTurn {
            status: end.status,
            iterations: self.turn.iteration(),
            duration: self.started.elapsed(),
            prompt: self.prompt.clone(),
            reply: end.reply.clone(),
            executions: self.turn.executions().to_vec(),
            usage: self.usage,
        };
        let records = self.hooks.tell_apart(finished.turn_end());
        let noted = self.note_end(end, records);
        if let Some(stop) = finished.stop() {
            self.tell(stop);
        }
        noted
    }

    /// The end, and the record that is true exactly if it is.
    fn note_end(&mut self, end: &TurnEnd, records: Vec<EventRecord>) -> PendingWrite {
        if !self.kept {
            self.hooks.keep(records);
            return PendingWrite::nothing();
        }
        let fact = Fact::Ended {
            status: end.status,
            roll_back: end.roll_back,
            error: end.error.clone(),
            reply: end.reply.clone(),
        };
        let open = self.open_turn();
        let session = &mut self.conversation.session;
        session.put_open(open);
        session.apply(JournalEntry::Turn(fact.clone()));
        let journal = &self.conversation.journal;
        let noted = journal.note(&self.runner.settings.id, vec![JournalEntry::Turn(fact)], records, &self.hooks);
        self.conversation.end_work(&self.runner.settings.id);
        noted
    }

    /// Ends a turn whose process is gone.
    pub(super) async fn lay_down(mut self) {
        self.give_up_running();
        self.turn.end(TurnEnd::cancelled());
        self.wind_up(OUTCOME_UNKNOWN);
        let end = TurnEnd::cancelled();
        if let Err(error) = self.finish(&end).kept().await {
            tracing::error!("the end of a turn could not be written: {error}");
        }
    }

    /// Calls that ran when their process ended are never run again: nobody knows what became of them. One that waits for a
    /// sub-agent which goes on is no such call.
    pub(super) fn give_up_running(&mut self) {
        for place in self.turn.running() {
            if !self.flights.running.contains_key(&place) {
                self.lose(place);
            }
        }
    }

    /// Steps a turn that is ending to its end.
    fn wind_up(&mut self, text: &str) {
        self.settle_cut_off();
        loop {
            match self.turn.next() {
                TurnStep::Await { call } => self.answered(call, ModelAnswer::not_run(text)),
                TurnStep::Skip { call, .. } | TurnStep::Clear { call, .. } | TurnStep::Start { call } => {
                    self.answered(call, ModelAnswer::not_run(pintle_domain::turn::CANCELLED));
                }
                // Turns that end take nothing in and call no model.
                TurnStep::Inject { .. } | TurnStep::Plan | TurnStep::CallModel { .. } => {}
                TurnStep::End(_) => return,
            }
        }
    }

    /// Ends a turn that nobody works any more; its tools are told to stop and not waited for.
    fn abandon(&mut self) {
        self.turn_env.turn_handle.cancel();
        for result in self.turn_env.turn_handle.close().results {
            drop(self.note(Fact::Queued(result)));
        }
        self.discard_unheard();
        self.turn.end(TurnEnd::cancelled());
        self.wind_up(DROPPED);
        let TurnStep::End(end) = self.turn.next() else { return };
        self.now_is(ReleaseReason::Interrupted);
        // Nobody is left to wait for it; the store has it in order.
        drop(self.finish(&end));
    }
}

fn scope(turn_env: &TurnEnv, conversation: &Conversation, who: &Identity) -> MediaScope {
    match &turn_env.above {
        Some(above) => above.child(conversation.key.clone()),
        None => MediaScope::of(who),
    }
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        if !self.finished {
            self.abandon();
        }
    }
}
