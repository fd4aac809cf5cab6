//! The wires of the door: one row each.

use crate::answer::{AnswerMachine, DenyMode};
use crate::keeper::PutBack;
use crate::request::{BadRequest, SeenRequest};
use crate::{anthropic, openai};

/// A wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wire {
    /// Anthropic's messages.
    Anthropic,
    /// OpenAI's chat completions.
    OpenAi,
}

impl Wire {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Anthropic, Self::OpenAi];

    /// Its name: in paths, in the configuration, in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
        }
    }

    /// The wire called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|wire| wire.name() == name)
    }

    /// Where the vendor is reached, as its own libraries write it.
    pub const fn vendor(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::OpenAi => "https://api.openai.com/v1",
        }
    }

    /// Reads a request.
    ///
    /// # Errors
    /// Something in it is not as the wire has it.
    pub fn read(self, body: String) -> Result<SeenRequest, BadRequest> {
        match self {
            Self::Anthropic => anthropic::read(body),
            Self::OpenAi => openai::read(body),
        }
    }

    /// A machine for an answer with so many choices, which comes as events or whole.
    pub fn answer(self, (streams, choices): (bool, u64), mode: DenyMode) -> Box<dyn AnswerMachine> {
        match (self, streams) {
            (Self::Anthropic, true) => Box::new(anthropic::MessageStream::new(mode)),
            (Self::Anthropic, false) => Box::new(anthropic::WholeMessage::new(mode)),
            (Self::OpenAi, true) => Box::new(openai::CompletionStream::new(mode).of_choices(choices)),
            (Self::OpenAi, false) => Box::new(openai::WholeCompletion::new(mode).of_choices(choices)),
        }
    }

    /// How refused calls are put back into a conversation.
    pub const fn put_back(self) -> PutBack {
        match self {
            Self::Anthropic => PutBack::Parts,
            Self::OpenAi => PutBack::Messages,
        }
    }

    /// The body of an error of the kind that `status` is.
    pub fn error(self, status: u16, message: &str) -> String {
        match (self, status) {
            (Self::Anthropic, 403) => anthropic::error("permission_error", message),
            (Self::Anthropic, 404) => anthropic::error("not_found_error", message),
            (Self::Anthropic, 400..500) => anthropic::error("invalid_request_error", message),
            (Self::Anthropic, _) => anthropic::error("api_error", message),
            (Self::OpenAi, 403) => openai::error("hook_blocked", message),
            (Self::OpenAi, 404) => openai::error("not_found", message),
            (Self::OpenAi, 400..500) => openai::error("invalid_request_error", message),
            (Self::OpenAi, _) => openai::error("door_error", message),
        }
    }

    /// An error within events.
    pub fn error_event(self, message: &str) -> Vec<u8> {
        match self {
            Self::Anthropic => anthropic::error_event(message),
            Self::OpenAi => openai::error_event(message),
        }
    }
}
