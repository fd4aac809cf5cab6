//! A history that came with a request, on its way into the turn: what must pass a gate first, what gates left of it, and
//! what is kept of all that. Pure: the gates are asked by the caller.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{AdmittedMessage, HistoryMessage, Trust, WithheldReason, admit};
use crate::json::Rendered;
use crate::kept_message::KeptMessage;
use crate::ledger::{MessageSource, Provenance};
use crate::message::{CallPart, Message};

/// The longest history that is taken in. A day of talking has some hundred messages, and each that nobody signed costs
/// the time of every gate.
pub const MAX_HISTORY: usize = 4096;

/// The most bytes of text that a history may have: several times what the largest models read at once.
pub const MAX_HISTORY_BYTES: usize = 16 << 20;

/// The number of places of one kind that a record names; the rest is counted.
const MAX_PLACES: usize = 20;

/// Why a history is not taken in at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HistoryError {
    /// Too many messages.
    #[error("`history` has {0} messages; at most {MAX_HISTORY} are taken in; send fewer of the old ones")]
    TooMany(usize),
    /// Too much text.
    #[error("`history` has {0} bytes of text; at most {MAX_HISTORY_BYTES} are taken in; send fewer of the old ones")]
    TooLong(usize),
}

/// The rest that the gates left of one message.
#[derive(Clone, Debug, PartialEq)]
pub enum GatedMessage {
    /// It may stand there, with this text.
    Passed {
        /// The text, as the last gate left it.
        text: String,
        /// The messages that gates want the model to read after it.
        notes: Vec<Message>,
    },
    /// It may not.
    Refused,
}

/// The checks of one history. It says which text must pass the gates next, is told what they said, and makes the fact
/// of it in the end.
#[derive(Debug)]
pub struct Recall {
    rest: std::iter::Enumerate<std::vec::IntoIter<AdmittedMessage>>,
    /// The message that the gates are asked about now, and its place.
    asked: Option<(usize, Message)>,
    messages: Vec<Message>,
    withheld: Vec<ChangedMessage>,
}

/// The outcome of a history that came with a request: the fact that is kept, and from which the same list is made
/// again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecalledHistory {
    /// The number of messages that the session holds and that begin the list: they came back as they are.
    pub keep: usize,
    /// The messages that follow them.
    pub messages: Vec<RecalledMessage>,
    /// The messages that did not come in as they were sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub withheld: Vec<ChangedMessage>,
}

/// A message of a history, with what is known of where it comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecalledMessage {
    /// The message.
    pub message: KeptMessage,
    /// The hook that it is a text of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<String>,
    /// The skill that brought it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
}

/// One message that did not come in as it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedMessage {
    /// Its place in the history that was sent, from 0.
    pub place: usize,
    /// Why.
    pub why: WithheldReason,
}

impl Recall {
    /// The checks of `history`.
    ///
    /// # Errors
    /// It is larger than what is taken in.
    pub fn begin(history: Vec<HistoryMessage>, trust: &Trust<'_>) -> Result<Self, HistoryError> {
        if history.len() > MAX_HISTORY {
            return Err(HistoryError::TooMany(history.len()));
        }
        let bytes = history.iter().map(bytes_of).sum();
        if bytes > MAX_HISTORY_BYTES {
            return Err(HistoryError::TooLong(bytes));
        }
        let rest = admit(history, trust).into_iter().enumerate();
        Ok(Self { rest, asked: None, messages: Vec::new(), withheld: Vec::new() })
    }

    /// The text that must pass the gates next; nothing when all have. Asking twice gives the same.
    pub fn to_gate(&mut self) -> Option<&str> {
        while self.asked.is_none() {
            let (place, admitted) = self.rest.next()?;
            match admitted {
                AdmittedMessage::Message(message) => self.messages.push(message),
                AdmittedMessage::Gate { message, was } => {
                    self.withheld.extend(was.map(|why| ChangedMessage { place, why }));
                    self.asked = Some((place, message));
                }
                AdmittedMessage::Dropped(why) => self.withheld.push(ChangedMessage { place, why }),
                AdmittedMessage::Without(message, why) => {
                    self.withheld.push(ChangedMessage { place, why });
                    self.messages.push(message);
                }
            }
        }
        self.asked.as_ref().map(|(_, message)| message.content.as_str())
    }

    /// The gates ruled on what was asked last.
    pub fn gated(&mut self, gated: GatedMessage) {
        let Some((place, message)) = self.asked.take() else { return };
        match gated {
            GatedMessage::Refused => self.withheld.push(ChangedMessage { place, why: WithheldReason::Refused }),
            GatedMessage::Passed { text, notes } => {
                if text != message.content {
                    self.withheld.push(ChangedMessage { place, why: WithheldReason::Rewritten });
                }
                self.messages.push(Message { content: text, ..message });
                self.messages.extend(notes);
            }
        }
    }

    /// The outcome of the recall, for a session that holds `held`. A message that no gate ruled on does not come in.
    pub fn finish(mut self, held: &[Rendered<Message>]) -> RecalledHistory {
        while self.to_gate().is_some() {
            self.gated(GatedMessage::Refused);
        }
        let same = |(held, message): &(&Rendered<Message>, &Message)| stands(held.get(), message);
        let keep = std::iter::zip(held, &self.messages).take_while(same).count();
        let messages = self.messages.into_iter().skip(keep).map(RecalledMessage::from).collect();
        RecalledHistory { keep, messages, withheld: self.withheld }
    }
}

/// Everything of it that may be kept, names included.
fn bytes_of(kept: &HistoryMessage) -> usize {
    let part = |part: &CallPart| part.id.len() + part.function.name.len() + part.function.arguments.len();
    let calls: usize = kept.tool_calls.iter().map(part).sum();
    let names = [&kept.hook, &kept.skill].into_iter().flatten().map(String::len).sum::<usize>();
    kept.content.len() + kept.tool_call_id.len() + names + calls
}

/// Whether `message` is what the session holds. A front end has no word for what else stands there: files, thoughts,
/// the time.
fn stands(held: &Message, message: &Message) -> bool {
    held.role == message.role
        && held.content == message.content
        && held.tool_calls == message.tool_calls
        && held.tool_call_id == message.tool_call_id
        && held.origin == message.origin
        && hook_of(held) == hook_of(message)
}

/// The hook whose text `message` is, and its skill.
fn hook_of(message: &Message) -> (Option<&str>, Option<&str>) {
    let from = message.private.from.as_deref();
    (from.and_then(|from| from.hook.as_deref()), from.and_then(|from| from.skill.as_deref()))
}

impl From<Message> for RecalledMessage {
    fn from(message: Message) -> Self {
        let (hook, skill) = hook_of(&message);
        let (hook, skill) = (hook.map(str::to_owned), skill.map(str::to_owned));
        Self { message: message.into(), hook, skill }
    }
}

impl From<RecalledMessage> for Message {
    fn from(recalled: RecalledMessage) -> Self {
        let RecalledMessage { message, hook, skill } = recalled;
        Self::from(message).of_hook(hook, skill)
    }
}

impl Message {
    /// This message as the text of `hook` that came back with a history; as it is where no hook is named.
    pub(super) fn of_hook(mut self, hook: Option<String>, skill: Option<String>) -> Self {
        if hook.is_some() {
            let from = Provenance { skill, hook, ..Provenance::new(MessageSource::HookHistory, 0) };
            self.private.from = Some(Arc::new(from));
        }
        self
    }
}

impl RecalledHistory {
    /// The list of a session that held `held`.
    pub fn over(self, mut held: Vec<Rendered<Message>>) -> Vec<Rendered<Message>> {
        held.truncate(self.keep);
        held.extend(self.messages.into_iter().map(|recalled| Rendered::new(Message::from(recalled))));
        held
    }

    /// The messages that did not come in as they were sent, one line for each reason; places are counted from 1.
    pub fn told(&self) -> Vec<String> {
        let mut by_reason: BTreeMap<WithheldReason, Vec<usize>> = BTreeMap::new();
        for changed in &self.withheld {
            by_reason.entry(changed.why).or_default().push(changed.place + 1);
        }
        by_reason.iter().map(|(why, places)| format!("{} of the history: {}", named(places), why.text())).collect()
    }
}

fn named(places: &[usize]) -> String {
    let words: Vec<String> = places.iter().take(MAX_PLACES).map(usize::to_string).collect();
    let noun = if places.len() == 1 { "message" } else { "messages" };
    match places.len().saturating_sub(MAX_PLACES) {
        0 => format!("{noun} {}", words.join(", ")),
        more => format!("{noun} {} and {more} more", words.join(", ")),
    }
}

#[cfg(test)]
mod tests;
