//! The turns of one session, as long as this process lives.

use domain::id::SessionId;
use domain::json::Rendered;
use domain::message::Message;

/// A conversation and what stands in it, without the system text.
#[derive(Debug)]
pub struct Conversation {
    /// Its key.
    pub key: SessionId,
    /// The name of the channel that it is held on.
    pub channel: String,
    /// Its name on that channel.
    pub chat_id: String,
    pub(crate) messages: Vec<Rendered<Message>>,
    pub(crate) started: bool,
}

impl Conversation {
    /// An empty conversation under `key` on the command line.
    pub fn new(key: impl Into<SessionId>) -> Self {
        Self { key: key.into(), channel: "cli".into(), chat_id: "direct".into(), messages: Vec::new(), started: false }
    }

    /// What stands in it.
    pub fn messages(&self) -> &[Rendered<Message>] {
        &self.messages
    }
}
