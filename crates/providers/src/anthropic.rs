//! The Anthropic Messages API.
//!
//! **What leaves.** `model`, `system`, `messages` and `tools` as the hooks left them, every member of `options` under
//! its own name, and `stream: true`. When `options` has no `max_tokens`, which this wire insists on, the most that the
//! model writes stands in as far as [`quirks`](crate::quirks) know it, else [`DEFAULT_MAX_TOKENS`]. The wire form differs
//! from ours, so:
//!
//! * System messages before the first other message become the blocks of `system`, in order. A later one, and wherever
//!   it stands what a hook wants the model to read, becomes user text at its place, as `<system-reminder>`, newline,
//!   text, newline, `</system-reminder>`, in a block of its own; it never parts results of one batch. In such a request
//!   these two marks are escaped (`&lt;`) in what users, tools and the model said and in the inputs of calls, so nobody
//!   else can speak in the operator's or a hook's name; only signed thoughts stay as they are.
//! * A request with texts of skills or prompts of the host's own, and every one of a turn that may have such, is lowered
//!   as the model's [capabilities](crate::capabilities) say: such a text is a message of the role `system` where one may
//!   stand, else it is such a user text. Within a turn, what was sent once may be sent again, with the provider's mark
//!   for text that expires; and thoughts that were thought behind other words than those of this request stay out of it.
//! * In a call of a turn, `cache_control` stands where a cache may end, if breakpoints are left.
//! * `tool_choice` in the words of chat completions is translated: `auto`, `required` and `none` become
//!   `{"type": "auto"}`, `any` and `none`, a function `{"type": "tool", "name": NAME}`. `parallel_tool_calls` is used up:
//!   `false` becomes `disable_parallel_tool_use` of the choice, if there are tools. This wire's own forms stay.
//! * Neighbours of one role share a message, since the results of one batch of calls must stand in one. Results come
//!   first in it. Blank texts are left out; the wire refuses them.
//! * The blocks of an earlier answer that carry signed thoughts go back unchanged and in their order, as long as the
//!   text and the calls around them are still those of the answer; otherwise the thoughts go first. Thoughts that nobody
//!   signed, or that end a message, stay here.
//! * Arguments that are not a JSON object are sent as `{"invalid_json": TEXT}`; an object must stand there. Names of tools,
//!   ids of calls and schemas that this wire does not take get a form that it does.
//! * `data:` URLs of images and PDF files become blocks, of a tool inside its result; without `vision` they do not.
//!   A note names any medium that is not sent and that its text does not name.
//!
//! **What comes back.** `end_turn` is called `stop`, `tool_use` `tool_calls` and `max_tokens` `length`; any other
//! reason keeps its name. Tokens that were read from or written to the cache count as read.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use pintle_domain::llm::{LlmReply, LlmRequest};
use reqwest::Url;
use reqwest::header::HeaderName;

use crate::abilities::Abilities;
use crate::anthropic::answer::Assembly;
use crate::http::{self, Answer, Endpoint, KeyHeader};
use crate::lower::{TurnPosition, WireShape};
use crate::spec::{ANTHROPIC_BASE_URL, ProviderSpec, WireKind};
use crate::sse::Events;
use crate::wire::{ModelList, Outgoing, ServerWire, Sight, WireRow};
use crate::{Delta, OnDelta, Provider, ProviderError};

mod answer;
mod cache;
mod choice;
mod conversation;
pub(crate) mod request;

/// Its row.
pub(crate) const ROW: WireRow = WireRow {
    kind: WireKind::Anthropic,
    word: "anthropic",
    about: "",
    has_tool_modes: false,
    sight: Sight::Anywhere,
    connect: |spec| Ok(Arc::new(Anthropic::new(spec)?)),
    server: Some(ServerWire { body, models }),
};

/// The header that says which version of the API is spoken.
const VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

/// How a key goes along.
const API_KEY: KeyHeader = KeyHeader { name: HeaderName::from_static("x-api-key"), prefix: "" };

/// Longest answer when the request does not say and the model is not known: every model of this API can write as much.
pub const DEFAULT_MAX_TOKENS: u32 = 4096;

/// The address `path` of the API, whether the base ends in `/v1` or not.
fn address(spec: &ProviderSpec, path: &str) -> Result<Url, ProviderError> {
    let versioned = spec.address(ANTHROPIC_BASE_URL, "")?.path().trim_end_matches('/').ends_with("/v1");
    if versioned {
        spec.address(ANTHROPIC_BASE_URL, path)
    } else {
        spec.address(ANTHROPIC_BASE_URL, &format!("v1/{path}"))
    }
}

fn body(out: &Outgoing<'_>) -> Vec<u8> {
    let Outgoing { spec, abilities, model, request, turn } = *out;
    request::body(model, request, spec.vision, &abilities.how(model, WireShape::Blocks, turn)).0
}

fn models(spec: &ProviderSpec) -> Result<ModelList, ProviderError> {
    Ok(ModelList { url: address(spec, "models")?, key_header: API_KEY, header: Some(VERSION) })
}

/// The Anthropic API, or a server that speaks it.
pub struct Anthropic {
    endpoint: Endpoint,
    vision: bool,
    abilities: Abilities,
}

impl Anthropic {
    /// The server that `spec` describes. A `base_url` may end in `/v1` or not.
    ///
    /// # Errors
    /// A setting that cannot be right.
    pub fn new(spec: &ProviderSpec) -> Result<Self, ProviderError> {
        let endpoint = Endpoint::new(spec, address(spec, "messages")?, API_KEY)?.with_header(VERSION.0, VERSION.1);
        Ok(Self { endpoint, vision: spec.vision, abilities: Abilities::of(spec)? })
    }

    async fn answer(
        &self,
        model: &str,
        request: &LlmRequest,
        turn: Option<TurnPosition<'_>>,
        on_delta: OnDelta<'_>,
    ) -> Result<LlmReply, ProviderError> {
        let how = self.abilities.how(model, WireShape::Blocks, turn);
        let (body, names) = request::body(model, request, self.vision, &how);
        let sent = self.endpoint.post(model, body, on_delta).await;
        let mut reply = match sent.map_err(|error| self.abilities.explain(error, &how))? {
            Answer::Whole(body) => Assembly::whole(&http::json(&body)?, on_delta)?.finish(),
            Answer::Events(events) => stream(events, on_delta).await,
        }?;
        names.meant(&mut reply);
        Ok(reply)
    }
}

impl Provider for Anthropic {
    fn call<'a>(
        &'a self,
        model: &'a str,
        request: &'a LlmRequest,
        on_delta: &'a (dyn Fn(Delta<'_>) + Send + Sync),
    ) -> BoxFuture<'a, Result<LlmReply, ProviderError>> {
        async move { self.endpoint.tidy(self.answer(model, request, None, on_delta).await) }.boxed()
    }

    fn call_in_turn<'a>(
        &'a self,
        model: &'a str,
        request: &'a LlmRequest,
        turn: TurnPosition<'a>,
        on_delta: &'a (dyn Fn(Delta<'_>) + Send + Sync),
    ) -> BoxFuture<'a, Result<LlmReply, ProviderError>> {
        async move { self.endpoint.tidy(self.answer(model, request, Some(turn), on_delta).await) }.boxed()
    }
}

async fn stream(mut events: Events, on_delta: OnDelta<'_>) -> Result<LlmReply, ProviderError> {
    let mut assembly = Assembly::default();
    while let Some(data) = events.next().await? {
        let event = http::event_json(&data, &mut events).await?;
        if assembly.feed(&event, on_delta)? {
            return assembly.finish();
        }
        if answer::has_content(&event) {
            events.brought_content();
        }
    }
    Err(ProviderError::cut("`message_stop`"))
}
