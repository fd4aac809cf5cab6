//! What of a history that came back is taken in. Pure: the gates that must see some of it are asked by the caller.

use serde::{Deserialize, Serialize};

use super::{HistoryKey, HistoryMessage, SignedContent};
use crate::json::Rendered;
use crate::message::{CallPart, Message, Role};
use crate::skill::Skills;

/// The trust that a history gets, and what it is compared with.
#[derive(Clone, Copy, Debug)]
pub struct Trust<'a> {
    /// Knows the host's own signatures; without it nothing is signed.
    pub key: Option<&'a HistoryKey>,
    /// The tenant whose conversation it is.
    pub tenant: &'a str,
    /// The conversation.
    pub session: &'a str,
    /// Whether a system message must be one that the host sent.
    pub verify: bool,
    /// The texts of hooks that the host knows.
    pub skills: &'a Skills,
    /// The messages that the host itself holds of the conversation.
    pub held: &'a [Rendered<Message>],
}

/// One message of a history, at its place.
#[derive(Clone, Debug, PartialEq)]
pub enum AdmittedMessage {
    /// It stands in the list as it is.
    Message(Message),
    /// Somebody wrote it whom no gate has seen: it must pass one. A block drops it, a rewrite replaces its text.
    Gate {
        /// The message, as the user's.
        message: Message,
        /// What it said to be before.
        was: Option<WithheldReason>,
    },
    /// It is left out.
    Dropped(WithheldReason),
    /// It stands in the list without what it asked for.
    Without(Message, WithheldReason),
}

/// Why something of a history did not come in as it was sent, for the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WithheldReason {
    /// The host never sent this system message.
    UnknownSystem,
    /// The session holds no such call.
    UnknownCall,
    /// It answers no call that the session holds.
    UnknownResult,
    /// A gate refused it.
    Refused,
    /// A gate put another text in its place.
    Rewritten,
}

impl WithheldReason {
    /// The words for the record.
    pub fn text(self) -> &'static str {
        match self {
            Self::UnknownSystem => "a system message that the host never sent is taken as the user's",
            Self::UnknownCall => "calls of tools that the session does not hold are left out",
            Self::UnknownResult => "the result of a call that the session does not hold is left out",
            Self::Refused => "refused by a gate and left out",
            Self::Rewritten => "a gate put another text in its place",
        }
    }
}

/// The messages that are taken in of `history`, in its order.
pub fn admit(history: Vec<HistoryMessage>, trust: &Trust<'_>) -> Vec<AdmittedMessage> {
    let mut admitted = Vec::with_capacity(history.len());
    let mut rest = history.into_iter().peekable();
    while let Some(kept) = rest.next() {
        match kept.role {
            Role::User if trust.is_signed(&kept) => admitted.push(AdmittedMessage::Message(message(kept))),
            Role::User => admitted.push(AdmittedMessage::Gate { message: message(kept), was: None }),
            Role::System if !trust.verify || trust.is_signed(&kept) || trust.is_known(&kept) => {
                admitted.push(AdmittedMessage::Message(message(kept)));
            }
            Role::System => {
                // Whatever it says of itself, nobody knows it.
                let message = Message::text(Role::User, kept.content);
                admitted.push(AdmittedMessage::Gate { message, was: Some(WithheldReason::UnknownSystem) });
            }
            Role::Tool => admitted.push(AdmittedMessage::Dropped(WithheldReason::UnknownResult)),
            Role::Assistant if kept.tool_calls.is_empty() => admitted.push(AdmittedMessage::Message(message(kept))),
            Role::Assistant => {
                let mut results = Vec::new();
                while let Some(result) = rest.next_if(|next| next.role == Role::Tool) {
                    results.push(result);
                }
                admitted.extend(batch(kept, results, trust));
            }
        }
    }
    admitted
}

/// A message that asks for tools, with the results that follow it: all of it as the session has it, or only its text.
fn batch(asked: HistoryMessage, results: Vec<HistoryMessage>, trust: &Trust<'_>) -> Vec<AdmittedMessage> {
    if let Some(held) = trust.batch(&asked.tool_calls, &results) {
        return held.iter().map(|message| AdmittedMessage::Message(message.get().clone())).collect();
    }
    let message = Message { tool_calls: Vec::new(), ..message(asked) };
    let asked = match message.content.is_empty() {
        true => AdmittedMessage::Dropped(WithheldReason::UnknownCall),
        false => AdmittedMessage::Without(message, WithheldReason::UnknownCall),
    };
    std::iter::once(asked)
        .chain(results.iter().map(|_| AdmittedMessage::Dropped(WithheldReason::UnknownResult)))
        .collect()
}

impl<'a> Trust<'a> {
    fn is_signed(&self, kept: &HistoryMessage) -> bool {
        let (Some(key), Some(sig)) = (self.key, &kept.sig) else { return false };
        key.verifies(SignedContent::of(kept, self.tenant, self.session), sig)
    }

    /// Whether it is the text of a hook that the host has.
    fn is_known(&self, kept: &HistoryMessage) -> bool {
        self.skills.hooks.iter().any(|hook| {
            Some(&hook.name) == kept.hook.as_ref()
                && Some(&hook.skill) == kept.skill.as_ref()
                && hook.role.role() == kept.role
                && hook.content == kept.content
        })
    }

    /// The messages of the session that are this batch, to the letter.
    fn batch(&self, calls: &[CallPart], results: &[HistoryMessage]) -> Option<&'a [Rendered<Message>]> {
        let place = self.held.iter().position(|message| message.get().tool_calls == calls)?;
        let held = self.held.get(place..=place + results.len()).filter(|_| results.len() == calls.len())?;
        let same = |(message, result): (&Rendered<Message>, &HistoryMessage)| {
            let message = message.get();
            let shape = message.role == Role::Tool && message.tool_call_id == result.tool_call_id;
            shape && message.content == result.content
        };
        std::iter::zip(&held[1..], results).all(same).then_some(held)
    }
}

fn message(kept: HistoryMessage) -> Message {
    let message = Message { media: kept.media, ..Message::text(kept.role, kept.content) };
    message.of_hook(kept.hook, kept.skill)
}
