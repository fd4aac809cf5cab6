//! Facts taken into a turn: told by its driver, or read from a journal.

use super::{
    Call, DELIVERED, Fact, KeptMessage, ModelAnswer, OUTCOME_UNKNOWN, Phase, Slot, Then, Turn, TurnEnd, TurnStep,
    WaitingMessage,
};
use crate::checkpoint::runtime::TurnStatus;
use crate::json::Rendered;
use crate::message::{Message, Role};

impl Turn {
    /// Takes a fact in. What does not fit the state of the turn changes nothing: facts come from the driver, which
    /// had them asked for, or from a journal that the driver wrote.
    pub fn apply(&mut self, fact: Fact) {
        match fact {
            // These belong to the session; a turn is made from the one and ends by the driver's hand with the other.
            Fact::Recalled(_) | Fact::Begun { .. } | Fact::TakenBack => {}
            Fact::Equipped { with } => self.equip(*with),
            Fact::Queued(waiting) => self.inbox.push_back(waiting),
            Fact::Injected { count } => self.inject(count),
            Fact::Interrupted => self.interrupted = true,
            Fact::Replied { iteration, message, read_only, terminal, owners, cut, usage: _ } => {
                self.close_if_answered();
                if !matches!(self.phase, Phase::Calling { .. } | Phase::Round) {
                    return;
                }
                self.open_round(iteration);
                self.owners = owners;
                let message = Message::from(message);
                let then = if terminal {
                    let limit = (iteration > self.max_iterations && !self.interrupted).then_some(self.max_iterations);
                    Then::LastWords { text: message.content.clone(), limit }
                } else {
                    Then::Round
                };
                self.take_reply(iteration, message, &read_only, then);
                if let Some(last) = self.batch.last_mut() {
                    last.cut = cut;
                }
            }
            Fact::Stopped { iteration, message } => self.take_stopped(iteration, message.into()),
            Fact::Planned { message, need_tool, usage: _ } => self.take_plan(message, need_tool),
            Fact::Announced { upto } => self.take_announced(upto),
            Fact::Used { place, read_only, rewritten, .. } => {
                self.take_use(place, read_only);
                self.take_rewrite(place, rewritten);
            }
            Fact::Rewritten { place, arguments } => self.take_rewrite(place, Some(arguments)),
            Fact::Answered { place, answer } => self.take_answer(place, answer),
            Fact::Compacted { upto, summary } => self.compact(upto, summary),
            Fact::Trimmed { at, text } => self.trim(at, text),
            Fact::Ended { status, roll_back, error, reply } => {
                self.take_end(TurnEnd { status, reply, error, roll_back, stopped_by: None, at_limit: false });
            }
        }
    }

    fn take_end(&mut self, end: TurnEnd) {
        // What waited when the batch was closed is not known any more; that it was closed as delivered is.
        let silent = end.status == TurnStatus::Completed && end.reply.is_empty();
        let delivered = silent && self.phase == Phase::Batch(Then::Round) && self.all_handled();
        self.end(end);
        while !matches!(self.next(), TurnStep::End(_)) {
            self.forget_running();
        }
        if delivered {
            self.messages.push(Message::text(Role::Assistant, DELIVERED).into());
        }
    }

    /// The oldest `count` of the waiting messages enter the conversation; never between a call and its answer.
    fn inject(&mut self, count: usize) {
        self.close_if_answered();
        if matches!(self.phase, Phase::Round | Phase::Over) {
            let taken: Vec<WaitingMessage> = self.inbox.drain(..count.min(self.inbox.len())).collect();
            self.take_in(taken);
        }
    }

    /// A turn that is over has no call that runs.
    fn forget_running(&mut self) {
        for place in self.running() {
            self.take_answer(place, ModelAnswer::not_run(OUTCOME_UNKNOWN));
        }
    }

    /// Facts that come after a batch was worked find it closed.
    fn close_if_answered(&mut self) {
        let open = |slot: &Slot| !matches!(slot.state, Call::Answered(_));
        if matches!(self.phase, Phase::Batch(_)) && !self.batch.iter().any(open) {
            self.close_batch();
        }
    }

    pub(super) fn take_reply(&mut self, iteration: u32, message: Message, read_only: &[bool], then: Then) {
        self.iteration = iteration;
        let end = match then {
            Then::LastWords { limit: Some(limit), .. } => TurnEnd::at_limit(limit, message.content.as_str()),
            Then::LastWords { limit: None, .. } | Then::Round | Then::Answer => {
                TurnEnd::completed(message.content.as_str())
            }
        };
        let read_only = read_only.iter().copied().chain(std::iter::repeat(false));
        self.batch = std::iter::zip(&message.tool_calls, read_only)
            .map(|(part, read_only)| Slot {
                part: part.clone(),
                read_only,
                state: Call::Waiting,
                rewritten: None,
                cut: false,
            })
            .collect();
        self.messages.push(message.into());
        self.phase = Phase::Batch(then);
        if self.batch.is_empty() {
            self.close_loop();
            self.phase = Phase::Over;
            self.end(end);
        }
    }

    /// What there was of an answer when it was stopped.
    fn take_stopped(&mut self, iteration: u32, message: Message) {
        self.close_if_answered();
        if !matches!(self.phase, Phase::Planning | Phase::Calling { .. } | Phase::Round) {
            return;
        }
        if iteration == 0 {
            self.close_planning();
        } else {
            self.open_round(iteration);
            self.iteration = iteration;
        }
        self.messages.push(message.into());
        self.close_loop();
        self.phase = Phase::Over;
        self.end(TurnEnd::cancelled());
    }

    pub(super) fn take_use(&mut self, place: usize, read_only: bool) {
        if let Some(slot) = self.batch.get_mut(place)
            && !matches!(slot.state, Call::Answered(_))
        {
            slot.state = Call::Running { read_only };
        }
    }

    /// Keeps the text that a gate took out of a call out of the conversation, also while the call has no answer.
    fn take_rewrite(&mut self, place: usize, rewritten: Option<String>) {
        if let Some(slot) = self.batch.get_mut(place) {
            slot.rewritten = rewritten;
            self.take_rewrites();
        }
    }

    fn take_answer(&mut self, place: usize, answer: ModelAnswer) {
        if let Some(slot) = self.batch.get_mut(place)
            && !matches!(slot.state, Call::Answered(_))
        {
            slot.state = Call::Answered(answer);
        }
    }

    /// The oldest `upto` messages give way to `summary`. Texts whose time is not over stay: they are nothing that was
    /// said, and no summary holds them.
    fn compact(&mut self, upto: usize, summary: Option<KeptMessage>) {
        self.close_if_answered();
        self.open_call();
        // The message whose calls are worked stays: their answers will follow it.
        let open = usize::from(matches!(self.phase, Phase::Batch(_)));
        let upto = whole_rounds(&self.messages, upto.min(self.messages.len() - open));
        if upto == 0 {
            return;
        }
        self.before.get_or_insert_with(|| self.messages[..self.base].to_vec());
        self.base = self.base.saturating_sub(upto) + usize::from(summary.is_some());
        let texts: Vec<Rendered<Message>> =
            self.messages[..upto].iter().filter(|message| self.is_passing_text(message.get())).cloned().collect();
        let summary = summary.map(|kept| Message::from(kept).into());
        self.messages.splice(..upto, summary.into_iter().chain(texts));
    }

    /// The result at `at` gives way to `text`.
    fn trim(&mut self, at: usize, text: String) {
        self.close_if_answered();
        self.open_call();
        self.before.get_or_insert_with(|| self.messages[..self.base].to_vec());
        trim(&mut self.messages, at, text);
    }
}

/// The result of a tool that stands at `at` gives way to `text`.
pub(crate) fn trim(messages: &mut [Rendered<Message>], at: usize, text: String) {
    if let Some(message) = messages.get_mut(at).filter(|message| message.get().role == Role::Tool) {
        *message = Message { content: text, ..message.get().clone() }.into();
    }
}

/// The number of the oldest `upto` messages can go without parting a call from its answer.
pub fn whole_rounds(messages: &[Rendered<Message>], upto: usize) -> usize {
    let cuts = |at: usize| messages.get(at).is_some_and(|message| message.get().role == Role::Tool);
    (0..=upto.min(messages.len())).rev().find(|at| !cuts(*at)).unwrap_or(0)
}
