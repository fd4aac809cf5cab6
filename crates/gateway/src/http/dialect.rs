//! The two ways to talk to a model.

use axum::response::Response;
use domain::json::Value;

use super::refused::Refused;
use crate::wire::{anthropic, openai};

/// One of the ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    OpenAi,
    Anthropic,
}

impl Wire {
    pub(super) fn refusal(self, refused: &Refused) -> Response {
        refused.response(&self.error(refused))
    }

    /// The words of an error.
    pub(super) fn error(self, refused: &Refused) -> Value {
        match self {
            Self::OpenAi => openai::error(&refused.error, &refused.code),
            Self::Anthropic => anthropic::error(&refused.error, &refused.code),
        }
    }
}
