//! OpenAI chat completions, and the many servers that speak them.
//!
//! **What leaves.** `model`, `messages` and `tools` as the hooks left them, then every member of `options` under its
//! own name, then `stream: true` and `stream_options.include_usage`. A member of `options` that is called `model`,
//! `messages`, `tools` or `stream` would contradict these and is left out; an own `stream_options` stays as it is. Of a message, `role`, `content`,
//! `tool_calls` and `tool_call_id` are sent. `reasoning_content`, `reasoning` and `reasoning_details` of earlier
//! answers are not: the wire has no place for them that all servers accept. Names of models, times and foreign
//! attachments are the host's. A `data:` URL of an image becomes an `image_url` part; images of tool results follow
//! in one user message `[Loaded image from tool result above]` behind the results, since a tool message only takes
//! text. Without `vision` no image is sent. A note names any medium that is not sent and that its text does not name.
//! Arguments that are not a JSON object are sent as `{"invalid_json": TEXT}`; names of tools, ids of calls and schemas that
//! vendors do not take get a form that they do. What a provider added to a call goes back to that provider only.
//! Where roles must alternate, neighbours of one role are one message; nothing empty is sent.
//! `max_tokens` goes out under the name that the model takes; see [`quirks`](crate::quirks).
//!
//! * What a hook wants the model to read becomes user text at its place, as `<system-reminder>`, newline, text,
//!   newline, `</system-reminder>`: it joins the user's message before it after a blank line, also a text that the user
//!   says next, and follows the results of a batch, behind their images, as a message of its own. In such a request
//!   these two marks are escaped (`&lt;`) in what users, tools and the model said and in the arguments of calls, so
//!   nobody else can speak in a hook's name. Other system messages in the middle of a conversation stay as they are.
//! * A request with texts of skills or prompts of the host's own, and every one of a turn that may have such, is lowered
//!   as the model's [capabilities](crate::capabilities) say: such a text is a system message where one may stand, else
//!   it is such a user text; neighbours of one role may become one message, and what follows a result may be appended
//!   to it. Within a turn, what was sent once may be sent again, with the provider's mark for text that expires.
//!
//! **What comes back** is read leniently: pieces of tool calls are merged by index, id or order; ids that are missing
//! or used twice are replaced; any `finish_reason` is kept, and an empty one becomes `stop` or `tool_calls`;
//! a refusal is the text of the answer, whose end is called `refusal`; an answer in one piece is as good as a stream.
//! Thoughts that stand before the answer as `<think>…</think>` are `reasoning_content`, and no part of the text; to the
//! provider that wrote them they go back in their place, unless a hook changed the answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use pintle_domain::llm::{LlmReply, LlmRequest};
use reqwest::header::AUTHORIZATION;

use crate::abilities::Abilities;
use crate::http::{self, Answer, Endpoint, KeyHeader};
use crate::lower::{TurnPosition, WireShape};
use crate::openai::answer::Assembly;
use crate::openai::request::{Wire, native};
use crate::spec::{OPENAI_BASE_URL, ProviderSpec, ToolMode, WireKind};
use crate::sse::Events;
use crate::wire::{ModelList, Outgoing, ServerWire, Sight, WireRow};
use crate::{Delta, OnDelta, Provider, ProviderError, json_schema};

mod answer;
mod call;
pub(crate) mod request;

/// Its row.
pub(crate) const ROW: WireRow = WireRow {
    kind: WireKind::OpenAi,
    word: "openai",
    about: "any compatible server",
    has_tool_modes: true,
    sight: Sight::AtTheVendor,
    connect: |spec| Ok(Arc::new(OpenAi::new(spec)?)),
    server: Some(ServerWire { body, models }),
};

/// What ends a stream.
const DONE: &str = "[DONE]";

/// How a key goes along.
const BEARER: KeyHeader = KeyHeader { name: AUTHORIZATION, prefix: "Bearer " };

fn body(out: &Outgoing<'_>) -> Vec<u8> {
    let Outgoing { spec, abilities, model, request, turn } = *out;
    match spec.tool_mode {
        ToolMode::Native => {
            native(model, request, spec.vision, &abilities.how(model, WireShape::Messages, turn)).body(true)
        }
        ToolMode::JsonSchema => {
            let how = abilities.how(model, WireShape::Texts, turn);
            json_schema::render(model, request, spec.vision, &how).0.body(true)
        }
    }
}

fn models(spec: &ProviderSpec) -> Result<ModelList, ProviderError> {
    Ok(ModelList { url: spec.address(OPENAI_BASE_URL, "models")?, key_header: BEARER, header: None })
}

/// An OpenAI-compatible server.
pub struct OpenAi {
    endpoint: Endpoint,
    tool_mode: ToolMode,
    vision: bool,
    abilities: Abilities,
    /// Set once the server has refused `stream_options`.
    no_stream_options: AtomicBool,
}

impl OpenAi {
    /// The server that `spec` describes.
    ///
    /// # Errors
    /// A setting that cannot be right.
    pub fn new(spec: &ProviderSpec) -> Result<Self, ProviderError> {
        let url = spec.address(OPENAI_BASE_URL, "chat/completions")?;
        let endpoint = Endpoint::new(spec, url, BEARER)?;
        let (tool_mode, vision, abilities) = (spec.tool_mode, spec.vision, Abilities::of(spec)?);
        Ok(Self { endpoint, tool_mode, vision, abilities, no_stream_options: AtomicBool::new(false) })
    }

    async fn send_in(
        &self,
        model: &str,
        request: &LlmRequest,
        turn: Option<TurnPosition<'_>>,
        on_delta: OnDelta<'_>,
    ) -> Result<LlmReply, ProviderError> {
        let (how, outcome) = match self.tool_mode {
            ToolMode::Native => {
                let how = self.abilities.how(model, WireShape::Messages, turn);
                let wire = native(model, request, self.vision, &how);
                (how, self.native(&wire, on_delta).await)
            }
            ToolMode::JsonSchema => {
                let how = self.abilities.how(model, WireShape::Texts, turn);
                let (wire, by_schema) = json_schema::render(model, request, self.vision, &how);
                let sent = async {
                    if by_schema { self.by_schema(&wire, on_delta).await } else { self.native(&wire, on_delta).await }
                };
                (how, sent.await)
            }
        };
        self.endpoint.tidy(outcome.map_err(|error| self.abilities.explain(error, &how)))
    }

    async fn native(&self, wire: &Wire<'_>, on_delta: OnDelta<'_>) -> Result<LlmReply, ProviderError> {
        let mut reply = match self.send(wire, on_delta).await? {
            Answer::Whole(body) => {
                let mut assembly = Assembly::default();
                assembly.feed(&http::json(&body)?, on_delta)?;
                assembly.finish(on_delta)
            }
            Answer::Events(events) => stream(events, on_delta).await,
        }?;
        wire.names.meant(&mut reply);
        Ok(reply)
    }

    /// Sends `wire`; once more without `stream_options` if the server does not know them.
    async fn send(&self, wire: &Wire<'_>, on_delta: OnDelta<'_>) -> Result<Answer, ProviderError> {
        let with_usage = !self.no_stream_options.load(Ordering::Relaxed);
        let sent = self.endpoint.post(wire.model, wire.body(with_usage), on_delta).await;
        if with_usage
            && !wire.options.contains_key("stream_options")
            && let Err(ProviderError::Final { message }) = &sent
            && ["stream_options", "include_usage"].iter().any(|word| message.contains(word))
        {
            self.no_stream_options.store(true, Ordering::Relaxed);
            return self.endpoint.post(wire.model, wire.body(false), on_delta).await;
        }
        sent
    }

    /// The answer of a model that was given a schema; its text is JSON and is shown only once it is read.
    async fn by_schema(&self, wire: &Wire<'_>, on_delta: OnDelta<'_>) -> Result<LlmReply, ProviderError> {
        let held = |delta: Delta<'_>| match delta {
            Delta::Text(_) => {}
            Delta::Sent | Delta::Reasoning(_) => on_delta(delta),
        };
        let reply = json_schema::read(self.native(wire, &held).await?)?;
        if !reply.content.is_empty() {
            on_delta(Delta::Text(&reply.content));
        }
        Ok(reply)
    }
}

impl Provider for OpenAi {
    fn call<'a>(
        &'a self,
        model: &'a str,
        request: &'a LlmRequest,
        on_delta: &'a (dyn Fn(Delta<'_>) + Send + Sync),
    ) -> BoxFuture<'a, Result<LlmReply, ProviderError>> {
        self.send_in(model, request, None, on_delta).boxed()
    }

    fn call_in_turn<'a>(
        &'a self,
        model: &'a str,
        request: &'a LlmRequest,
        turn: TurnPosition<'a>,
        on_delta: &'a (dyn Fn(Delta<'_>) + Send + Sync),
    ) -> BoxFuture<'a, Result<LlmReply, ProviderError>> {
        self.send_in(model, request, Some(turn), on_delta).boxed()
    }
}

async fn stream(mut events: Events, on_delta: OnDelta<'_>) -> Result<LlmReply, ProviderError> {
    let mut assembly = Assembly::default();
    while let Some(data) = events.next().await? {
        if data.trim() == DONE {
            return assembly.finish(on_delta);
        }
        let chunk = http::event_json(&data, &mut events).await?;
        assembly.feed(&chunk, on_delta)?;
        if answer::has_content(&chunk) {
            events.brought_content();
        }
    }
    // Some servers never say that they are done, but a named reason for the end is as good.
    if assembly.has_ended() {
        assembly.finish(on_delta)
    } else {
        Err(ProviderError::cut("a `finish_reason` or `[DONE]`"))
    }
}
