//! The vendors and wires of the door: one row each.

use crate::answer::{AnswerMachine, AnswerTo, DenyMode};
use crate::keeper::PutBack;
use crate::request::{BadRequest, SeenRequest};
use crate::{anthropic, gemini, openai, responses};

/// A vendor, or whoever speaks as it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Vendor {
    /// Anthropic.
    Anthropic,
    /// Google's Gemini.
    Gemini,
    /// OpenAI.
    OpenAi,
}

impl Vendor {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Anthropic, Self::Gemini, Self::OpenAi];

    /// Its name: in paths and in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::OpenAi => "openai",
        }
    }

    /// The vendor called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|vendor| vendor.name() == name)
    }

    /// The header in which it is told a key.
    pub(crate) const fn key_header(self) -> &'static str {
        match self {
            Self::Anthropic => "x-api-key",
            Self::Gemini => "x-goog-api-key",
            Self::OpenAi => "authorization",
        }
    }

    /// Where it is reached, as its own libraries write it.
    pub const fn address(self) -> &'static str {
        match self {
            Self::Anthropic => "https://api.anthropic.com",
            Self::Gemini => "https://generativelanguage.googleapis.com",
            Self::OpenAi => "https://api.openai.com/v1",
        }
    }
}

/// A wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wire {
    /// Anthropic's messages.
    Anthropic,
    /// Gemini's contents.
    Gemini,
    /// OpenAI's chat completions.
    OpenAi,
    /// OpenAI's responses.
    Responses,
}

impl Wire {
    /// Its name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::OpenAi => "openai",
            Self::Responses => "openai responses",
        }
    }

    /// Whose it is.
    pub const fn vendor(self) -> Vendor {
        match self {
            Self::Anthropic => Vendor::Anthropic,
            Self::Gemini => Vendor::Gemini,
            Self::OpenAi | Self::Responses => Vendor::OpenAi,
        }
    }

    /// Reads a request.
    ///
    /// # Errors
    /// Something in it is not as the wire has it.
    pub fn read(self, body: String) -> Result<SeenRequest, BadRequest> {
        match self {
            Self::Anthropic => anthropic::read(body),
            Self::Gemini => gemini::read(body),
            Self::OpenAi => openai::read(body),
            Self::Responses => responses::read(body),
        }
    }

    /// A machine for an answer.
    pub fn answer(self, to: AnswerTo, mode: DenyMode) -> Box<dyn AnswerMachine> {
        match (self, to.streams) {
            (Self::Anthropic, true) => Box::new(anthropic::MessageStream::new(mode)),
            (Self::Anthropic, false) => Box::new(anthropic::WholeMessage::new(mode)),
            (Self::Gemini, true | false) => Box::new(gemini::GeminiAnswer::new(mode, to)),
            (Self::OpenAi, true) => Box::new(openai::CompletionStream::new(mode).of_choices(to.choices)),
            (Self::OpenAi, false) => Box::new(openai::WholeCompletion::new(mode).of_choices(to.choices)),
            (Self::Responses, true) => Box::new(responses::ResponseStream::new(mode, to)),
            (Self::Responses, false) => Box::new(responses::WholeResponse::new(mode, to)),
        }
    }

    /// How refused calls are put back into a conversation.
    pub const fn put_back(self) -> PutBack {
        match self {
            Self::Anthropic => PutBack::Parts,
            Self::Gemini => PutBack::Turns,
            Self::OpenAi => PutBack::Messages,
            Self::Responses => PutBack::Items,
        }
    }

    /// The body of an error of the kind that `status` is.
    pub fn error(self, status: u16, message: &str) -> String {
        match (self, status) {
            (Self::Anthropic, 401) => anthropic::error("authentication_error", message),
            (Self::Anthropic, 429) => anthropic::error("rate_limit_error", message),
            (Self::Anthropic, 403) => anthropic::error("permission_error", message),
            (Self::Anthropic, 404) => anthropic::error("not_found_error", message),
            (Self::Anthropic, 400..500) => anthropic::error("invalid_request_error", message),
            (Self::Anthropic, _) => anthropic::error("api_error", message),
            (Self::Gemini, status) => gemini::error(status, message),
            (Self::OpenAi | Self::Responses, 401) => openai::error("invalid_api_key", message),
            (Self::OpenAi | Self::Responses, 429) => openai::error("rate_limit_exceeded", message),
            (Self::OpenAi | Self::Responses, 403) => openai::error("hook_blocked", message),
            (Self::OpenAi | Self::Responses, 404) => openai::error("not_found", message),
            (Self::OpenAi | Self::Responses, 405) => openai::error("method_not_allowed", message),
            (Self::OpenAi | Self::Responses, 400..500) => openai::error("invalid_request_error", message),
            (Self::OpenAi | Self::Responses, _) => openai::error("door_error", message),
        }
    }

    /// An error within events.
    pub fn error_event(self, message: &str) -> Vec<u8> {
        match self {
            Self::Anthropic => anthropic::error_event(message),
            Self::Gemini => gemini::error_event(message),
            Self::OpenAi => openai::error_event(message),
            Self::Responses => responses::error_event(message),
        }
    }
}
