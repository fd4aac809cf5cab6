//! The end of a batch: its results join the conversation.

use super::{CANCELLED, Call, DELIVERED, ModelAnswer, Phase, Slot, Then, Turn, TurnEnd};
use crate::json::Rendered;
use crate::message::{Message, Role};

impl Turn {
    /// Every call has its answer, or the turn is ending: the tool messages go into the conversation.
    pub(super) fn close_batch(&mut self) {
        let Phase::Batch(then) = std::mem::replace(&mut self.phase, Phase::Over) else { return };
        let rest = self.rest().to_owned();
        let handled = self.all_handled();
        let (mut last, mut notes, mut answered) = (String::new(), Vec::new(), Vec::new());
        self.take_rewrites();
        for slot in std::mem::take(&mut self.batch) {
            let answer = match slot.state {
                Call::Answered(answer) => answer,
                Call::Waiting | Call::Clearing | Call::Cleared { .. } | Call::Running { .. } => {
                    ModelAnswer::not_run(&rest)
                }
            };
            self.executions.extend(answer.execution);
            last.clone_from(&answer.text);
            let message = Message { media: answer.media, ..Message::tool(&slot.part.id, answer.text) };
            self.messages.push(message.into());
            notes.extend(answer.notes);
            answered.push((slot.part, answer.tool));
        }
        // Behind the last result: nothing may stand between a call and its answer.
        self.messages.extend(notes.into_iter().map(|note| Rendered::new(Message::from(note))));
        if self.ending.is_some() {
            return;
        }
        self.texts_after_batch(&answered);
        if matches!(then, Then::Answer | Then::LastWords { .. }) {
            self.close_loop();
        }
        match then {
            Then::Answer => self.ending = Some(TurnEnd::completed(last)),
            Then::LastWords { text, limit: None } => self.ending = Some(TurnEnd::completed(text)),
            Then::LastWords { text, limit: Some(limit) } => self.ending = Some(TurnEnd::at_limit(limit, text)),
            Then::Round if handled && !self.interrupted && self.inbox.is_empty() => {
                self.close_loop();
                self.messages.push(Message::text(Role::Assistant, DELIVERED).into());
                self.ending = Some(TurnEnd::completed(""));
            }
            Then::Round => self.phase = Phase::Round,
        }
    }

    /// Puts the arguments that gates left into the message that asked for the calls.
    pub(super) fn take_rewrites(&mut self) {
        let rewrites: Vec<(usize, &str)> =
            self.batch.iter().enumerate().filter_map(|(i, slot)| Some((i, slot.rewritten()?))).collect();
        if rewrites.is_empty() {
            return;
        }
        let Some(asked) = self.messages.last_mut() else { return };
        let mut message = asked.get().clone();
        for (place, arguments) in rewrites {
            message.rewrite_call(place, arguments);
        }
        *asked = Rendered::new(message);
    }

    /// The arguments that gates left for the call at `place`, if they are others than the model's.
    pub fn rewritten(&self, place: usize) -> Option<&str> {
        self.batch.get(place).and_then(Slot::rewritten)
    }

    /// The calls that the end of the turn cuts off, and in which gates replaced something, each with the answer that it
    /// has then: told as a fact, it lets go of what was there before.
    pub fn cut_off(&self) -> Vec<(usize, ModelAnswer)> {
        let is_cut = |slot: &Slot| matches!(slot.state, Call::Waiting | Call::Clearing | Call::Cleared { .. });
        let rewritten = |slot: &Slot| slot.rewritten.clone().filter(|_| is_cut(slot));
        if self.ending.is_none() {
            return Vec::new();
        }
        let of = |(place, slot)| {
            Some((place, ModelAnswer { rewritten: Some(rewritten(slot)?), ..ModelAnswer::not_run(self.rest()) }))
        };
        self.batch.iter().enumerate().filter_map(of).collect()
    }

    /// The text that calls leave for the model that the end of the turn cuts off.
    fn rest(&self) -> &str {
        match &self.ending {
            Some(TurnEnd { error: Some((_, text)), .. }) => text,
            Some(_) | None => CANCELLED,
        }
    }
}

impl Slot {
    fn rewritten(&self) -> Option<&str> {
        let answer = match &self.state {
            Call::Answered(answer) => answer.rewritten.as_deref(),
            Call::Waiting | Call::Clearing | Call::Cleared { .. } | Call::Running { .. } => None,
        };
        answer.or(self.rewritten.as_deref())
    }
}
