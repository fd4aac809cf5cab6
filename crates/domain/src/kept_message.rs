//! The message as it is kept.

use serde::{Deserialize, Serialize};

use crate::json::Value;
use crate::message::{Message, ProviderData};

/// A message with everything that must come back: also what hooks never see.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptMessage {
    /// The message.
    pub message: Message,
    /// What only the host and the provider know of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub private: Vec<Value>,
}

impl From<Message> for KeptMessage {
    fn from(mut message: Message) -> Self {
        let private = std::mem::take(&mut message.private).blocks;
        Self { message, private }
    }
}

impl From<KeptMessage> for Message {
    fn from(kept: KeptMessage) -> Self {
        Self { private: ProviderData::of(kept.private), ..kept.message }
    }
}
