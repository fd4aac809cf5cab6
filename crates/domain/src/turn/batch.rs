//! The end of a batch: its results join the conversation.

use super::{Answer, CANCELLED, Call, DELIVERED, End, Phase, Slot, Then, Turn};
use crate::json::Rendered;
use crate::message::{Message, Private, Role};

impl Turn {
    /// Every call has its answer, or the turn is ending: the tool messages go into the conversation.
    pub(super) fn close_batch(&mut self) {
        let Phase::Batch(then) = std::mem::replace(&mut self.phase, Phase::Over) else { return };
        let rest = match &self.ending {
            Some(End { error: Some((_, text)), .. }) => text.clone(),
            Some(_) | None => CANCELLED.to_owned(),
        };
        let handled = self.all_handled();
        let (mut last, mut notes, mut answered) = (String::new(), Vec::new(), Vec::new());
        self.take_rewrites();
        for slot in std::mem::take(&mut self.batch) {
            let answer = match slot.state {
                Call::Answered(answer) => answer,
                Call::Waiting | Call::Clearing | Call::Cleared { .. } | Call::Running { .. } => Answer::not_run(&rest),
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
        if matches!(then, Then::Answer | Then::LastWords(_)) {
            self.close_loop();
        }
        match then {
            Then::Answer => self.ending = Some(End::completed(last)),
            Then::LastWords(text) => self.ending = Some(End::completed(text)),
            Then::Round if handled && !self.interrupted && self.inbox.is_empty() => {
                self.close_loop();
                self.messages.push(Message::text(Role::Assistant, DELIVERED).into());
                self.ending = Some(End::completed(""));
            }
            Then::Round => self.phase = Phase::Round,
        }
    }

    /// Puts the arguments that gates left into the message that asked for the calls.
    fn take_rewrites(&mut self) {
        let rewritten = |slot: &Slot| match &slot.state {
            Call::Answered(answer) => answer.rewritten.clone().or_else(|| slot.rewritten.clone()),
            Call::Waiting | Call::Clearing | Call::Cleared { .. } | Call::Running { .. } => slot.rewritten.clone(),
        };
        let rewrites: Vec<Option<String>> = self.batch.iter().map(rewritten).collect();
        if rewrites.iter().all(Option::is_none) {
            return;
        }
        let Some(asked) = self.messages.last_mut() else { return };
        let mut message = asked.get().clone();
        for (part, rewrite) in std::iter::zip(&mut message.tool_calls, rewrites) {
            if let Some(arguments) = rewrite {
                part.function.arguments = arguments;
                part.function.thought_signature.clear();
            }
        }
        // What the provider keeps of its answer holds the arguments as they were.
        message.private = Private::default();
        *asked = Rendered::new(message);
    }
}
