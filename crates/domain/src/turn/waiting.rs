//! The messages that wait to enter the conversation.

use serde::{Deserialize, Serialize};

use crate::id::{AgentId, TurnId};
use crate::kept_message::KeptMessage;
use crate::message::Message;

/// A message that waits to enter the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitingMessage {
    /// The message.
    pub message: KeptMessage,
    /// Who sent it.
    pub from: MessageSender,
    /// What hooks want the model to read after it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<KeptMessage>,
}

/// Who sent a waiting message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageSender {
    /// A person.
    Person,
    /// A sub-agent that worked in the background.
    Subturn {
        /// The sub-agent.
        agent: AgentId,
        /// Its turn.
        turn_id: TurnId,
    },
}

impl WaitingMessage {
    /// A message that waits alone.
    pub fn new(message: Message, from: MessageSender) -> Self {
        Self { message: message.into(), from, notes: Vec::new() }
    }

    /// The message, then what hooks want the model to read after it.
    pub fn into_messages(self) -> impl Iterator<Item = Message> {
        std::iter::once(self.message).chain(self.notes).map(Message::from)
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.message.message.content
    }
}
