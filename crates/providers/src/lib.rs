//! LLM clients: what leaves is the request as the hooks left it.
//!
//! A provider renders a request into its wire form and reads the answer back. Nothing is added, dropped or
//! reordered on the way, except what a wire form needs and [`openai`], [`anthropic`] and [`json_schema`] list.
//!
//! | module | holds |
//! |---|---|
//! | `openai`, `anthropic`, `scripted` | one wire each, with its `ROW` of `WIRES` |
//! | `spec`, `wire`, `connect`, `preview`, `reach` | settings, the provider they describe, a preview of the request, a reachability check |
//! | `http`, `sse`, `retry`, `failure` | one request, its bounded answer, when to retry |
//! | `abilities`, `capabilities`, `quirks` | what models support, as data |
//! | `lower`, `media`, `call_id`, `inline_thought`, `json_schema` | how the list that hooks see is put on a wire |
//! | `secret` | keys that never appear in a log or a message |

use std::time::Duration;

use futures_util::future::BoxFuture;
use pintle_domain::checkpoint::runtime::RetryReason;
use pintle_domain::llm::{LlmReply, LlmRequest};

pub mod openai;
pub mod json_schema;
pub mod anthropic;
pub mod capabilities;
pub mod preview;
pub mod scripted;
pub mod spec;
pub mod retry;
pub mod connect;
pub mod quirks;
pub mod reach;
mod abilities;
mod call_id;
mod failure;
mod http;
mod inline_thought;
mod lower;
mod media;
mod secret;
mod sse;
mod wire;

pub use connect::connect;
pub use http::http_client;
pub use lower::{CallKind, RemovalMode, TurnPosition, TurnWire};
pub use reach::reach;
pub use secret::Secret;
pub use spec::{ProviderSpec, ToolMode, WireKind};

/// Every kind of provider, in the order of [`WireKind`]. A new one has a file of its own with its row, a place here and
/// a variant there.
pub(crate) static WIRES: [wire::WireRow; 3] = [openai::ROW, anthropic::ROW, scripted::ROW];

/// A service that answers requests to models.
pub trait Provider: Send + Sync {
    /// Sends `request` to `model` and waits for the whole answer. Pieces reach `on_delta` as they arrive.
    /// Dropping the future ends the request. For everything that is not a call of a turn with texts in it: such a request
    /// stands for itself.
    fn call<'a>(
        &'a self,
        model: &'a str,
        request: &'a LlmRequest,
        on_delta: &'a (dyn Fn(Delta<'_>) + Send + Sync),
    ) -> BoxFuture<'a, Result<LlmReply, ProviderError>>;

    /// Calls the model for a call that belongs to a turn with texts in it: what went out before bears on how they are
    /// sent.
    fn call_in_turn<'a>(
        &'a self,
        model: &'a str,
        request: &'a LlmRequest,
        turn: TurnPosition<'a>,
        on_delta: &'a (dyn Fn(Delta<'_>) + Send + Sync),
    ) -> BoxFuture<'a, Result<LlmReply, ProviderError>> {
        // A provider without a wire has no use for it.
        let TurnPosition { wire: _, call: _ } = turn;
        self.call(model, request, on_delta)
    }
}

/// Takes the pieces of an answer.
pub(crate) type OnDelta<'a> = &'a (dyn Fn(Delta<'_>) + Send + Sync);

/// A piece of an answer, or that one may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delta<'a> {
    /// A request left this host: whatever becomes of it, it may cost something. Told at the latest when the call ends or
    /// is dropped, once for each request.
    Sent,
    /// Text for the user.
    Text(&'a str),
    /// A piece of the model's thoughts.
    Reasoning(&'a str),
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ProviderError {
    /// Trying again may help.
    #[error("{message}")]
    Transient {
        /// The reason why there is no answer.
        reason: RetryReason,
        /// In words, without any key.
        message: String,
        /// How long the provider asks to wait.
        retry_after: Option<Duration>,
    },
    /// Trying again will not help: a bad key, a bad request, an unknown model, an answer that makes no sense.
    #[error("{message}")]
    Final {
        /// In words, without any key.
        message: String,
    },
}
