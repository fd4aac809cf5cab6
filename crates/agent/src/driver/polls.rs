//! What comes from outside while a turn is worked: messages, results of sub-agents, orders to stop.

use pintle_domain::checkpoint::RuntimeEvent;
use pintle_domain::checkpoint::runtime::{InterruptKind, OrphanReason};
use pintle_domain::checkpoint::user_prompt_submit::InputKind;
use pintle_domain::message::CallPart;
use pintle_domain::turn::{Fact, KeptMessage, MessageSender, ModelAnswer, SkipReason, TurnEnd, WaitingMessage};

use super::front_end::{Submitted, submit};
use super::messages::user;
use super::report::TurnEnding;
use super::subturns::{follow_up, orphan};
use super::work::Work;
use crate::turn_handle::AbortedBy;

impl Work<'_> {
    /// Looks whether anybody wants something of the turn.
    pub(super) async fn poll(&mut self) {
        // None of this is about the call that was worked last.
        self.hooks.set_call(None);
        // Looked at first: whoever aborts says so before cancelling.
        let cancelled = self.hooks.cancel().is_cancelled();
        let found = self.turn_env.turn_handle.look();
        match found.abort {
            Some(AbortedBy::Hook(aborted)) => self.turn.end(TurnEnd::stopped(*aborted)),
            Some(AbortedBy::Person) => {
                self.tell(interrupt(InterruptKind::HardAbort, 0, self.turn.waiting().len()));
                self.turn.end(TurnEnd::hard_aborted());
            }
            None => {}
        }
        if cancelled {
            // An end that was decided already stands.
            self.turn.end(TurnEnd::cancelled());
        }
        if found.interrupt && !self.turn.is_interrupted() && !self.turn.is_ending() {
            self.tell(interrupt(InterruptKind::Graceful, 0, self.turn.waiting().len()));
            drop(self.note(Fact::Interrupted));
        }
        for result in self.conversation.late.take().into_iter().chain(found.results) {
            drop(self.note(Fact::Queued(result)));
        }
        // What a turn that is ending does not take in is heard at its end, or discarded.
        if !self.turn.is_ending() {
            self.hear_all().await;
        }
    }

    async fn hear_all(&mut self) {
        while let Some(text) = self.turn_env.turn_handle.message() {
            self.hear(&text).await;
            self.turn_env.turn_handle.heard();
        }
    }

    /// A message of the user's: through the gates, then it waits for the turn to take it in.
    async fn hear(&mut self, text: &str) {
        let submitted = submit(&self.hooks, text, InputKind::Steering).await;
        if self.turn_env.turn_handle.is_taken_back() {
            return;
        }
        match submitted {
            Ok(Submitted { text, notes }) => {
                let notes = notes.into_iter().map(KeptMessage::from).collect();
                let waiting = WaitingMessage { message: user(text.clone()).into(), from: MessageSender::Person, notes };
                drop(self.note(Fact::Queued(waiting)));
                self.tell(interrupt(InterruptKind::Steering, text.len(), self.turn.waiting().len()));
            }
            Err(TurnEnding::Blocked(denied)) => self.turn_env.user_output.refused(&denied.text()),
            Err(_) => self.discard(text),
        }
    }

    /// What came in after the last poll waits for the next turn; after a roll-back nothing does.
    pub(super) async fn hear_the_rest(&mut self, roll_back: bool) {
        self.hooks.set_call(None);
        for result in self.turn_env.turn_handle.close().results {
            drop(self.note(Fact::Queued(result)));
        }
        if roll_back {
            let persons = self.turn.waiting().filter(|waiting| waiting.from == MessageSender::Person);
            persons.for_each(|waiting| self.discard(waiting.text()));
            self.discard_unheard();
        } else {
            self.hear_all().await;
        }
    }

    /// Why a call that is not cleared need not be: the same reasons for which the turn passes over calls.
    pub(super) fn more_urgent(&self) -> Option<SkipReason> {
        if self.turn.is_interrupted() {
            return Some(SkipReason::Graceful);
        }
        self.turn.waiting().any(|waiting| waiting.from == MessageSender::Person).then_some(SkipReason::Steering)
    }

    /// Tells that what sub-agents brought is for somebody else: this turn does not take it any more. It waits for the
    /// next one of the session, or, below the top, goes up.
    pub(super) fn leave_results(&mut self, roll_back: bool) {
        if roll_back {
            return;
        }
        for result in self.conversation.late.take() {
            drop(self.note(Fact::Queued(result)));
        }
        for waiting in self.turn.waiting() {
            if let MessageSender::Subturn { turn_id, .. } = &waiting.from {
                self.tell(orphan(self.turn_id(), turn_id, OrphanReason::ParentFinished));
                match &self.turn_env.upper {
                    Some(upper) if !self.hooks.cancel().is_cancelled() => upper.take(waiting.clone()),
                    Some(_) => {}
                    None => self.tell(follow_up(self.hooks.who(), waiting)),
                }
            }
        }
    }

    /// Tells the user of every message that no gate has ruled on and none will.
    pub(super) fn discard_unheard(&self) {
        while let Some(text) = self.turn_env.turn_handle.message() {
            self.discard(&text);
            self.turn_env.turn_handle.heard();
        }
    }

    fn discard(&self, text: &str) {
        self.turn_env.user_output.refused(&format!("discarded, the run was stopped: {text}"));
    }

    /// Takes waiting messages into the conversation.
    pub(super) fn inject(&mut self, waiting: &[WaitingMessage]) {
        let (persons, others): (Vec<&WaitingMessage>, Vec<&WaitingMessage>) =
            waiting.iter().partition(|waiting| waiting.from == MessageSender::Person);
        if !persons.is_empty() {
            let total_content_len = persons.iter().map(|waiting| waiting.text().len()).sum();
            self.tell(RuntimeEvent::SteeringInjected { count: persons.len(), total_content_len });
        }
        for result in others {
            self.tell_delivered(result.text().len());
        }
        drop(self.note(Fact::Injected { count: waiting.len() }));
    }

    /// Tells that the result of a sub-agent has reached this turn.
    pub(super) fn tell_delivered(&self, content_len: usize) {
        self.tell(RuntimeEvent::SubturnResultDelivered {
            target_channel: self.hooks.who().channel.clone(),
            target_chat_id: self.hooks.who().chat_id.clone(),
            content_len,
        });
    }

    /// Passes over a call: somebody has something more urgent to say.
    pub(super) fn skip(&mut self, place: usize, part: &CallPart, why: SkipReason) {
        self.hooks.set_call(Some(part.id.as_str().into()));
        let tool = self.hooks.known().meant(&part.function.name);
        self.tell(RuntimeEvent::ToolExecSkipped {
            tool,
            reason: why.reason().to_owned(),
            tool_call_id: part.id.clone(),
            hook: None,
        });
        self.answered(place, ModelAnswer::not_run(why.text()));
    }
}

fn interrupt(kind: InterruptKind, content_len: usize, queue_depth: usize) -> RuntimeEvent {
    RuntimeEvent::InterruptReceived { kind, role: "user".into(), content_len, queue_depth, hint_len: 0, hook: None }
}
