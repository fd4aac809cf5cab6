//! The two ways to talk to a model.

use axum::response::Response;
use pintle_domain::json::Value;

use super::refused::Refused;
use crate::wire::{anthropic, openai};

/// One of the ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    OpenAi,
    Anthropic,
}

impl Wire {
    /// The way that is spoken at `path`.
    pub(super) fn at(path: &str) -> Option<Self> {
        let under = |root: &str| path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        if under("/v1/messages") { Some(Self::Anthropic) } else { under("/v1").then_some(Self::OpenAi) }
    }

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
