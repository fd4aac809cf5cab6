//! Agents behind the two published ways to talk to models.
//!
//! The status of an answer waits for the gates of the prompt: what they refuse is no stream that breaks off.

use std::convert::Infallible;
use std::sync::{Arc, Weak};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use domain::json::{Value, json};
use domain::llm::Usage;
use futures_util::Stream;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::reply::{answer, json_body};
use crate::Shared;
use crate::agents::named;
use crate::door::Visit;
use crate::error::{ApiError, ErrorCode};
use crate::methods::going_away;
use crate::principal::Principal;
use crate::roles;
use crate::run::{Heard, Run, RunOutcome, RunParts};
use crate::session_name::{Channel, SessionName};
use crate::wire::anthropic::Ended;
use crate::wire::{Asked, anthropic, openai};
use crate::working::Errand;

/// How often a quiet stream says that it is alive. Source: the page of the gateway.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The header that names a conversation which the host keeps.
const SESSION: &str = "x-pintle-session";

/// One of the ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    OpenAi,
    Anthropic,
}

/// Why a request is refused, with the word that says it for programs.
struct Refused {
    status: StatusCode,
    code: String,
    error: ApiError,
    /// Whether the same may be tried again: SDKs do so by themselves.
    retry: bool,
}

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Self {
        let kind = error.details.as_ref().and_then(|details| details.get("kind")).and_then(Value::as_str);
        let (status, code) = match kind {
            Some("hook_blocked") => (StatusCode::FORBIDDEN, "hook_blocked".to_owned()),
            Some("hook_stopped") => (StatusCode::FORBIDDEN, "hook_stopped".to_owned()),
            Some("failed") => (StatusCode::BAD_GATEWAY, "turn_failed".to_owned()),
            Some(kind) => (StatusCode::CONFLICT, kind.to_owned()),
            None => (status(error.code), error.code.word().to_lowercase()),
        };
        // What came of a turn is not undone by asking again.
        let retry = kind.is_none() && error.retryable();
        Self { status, code, error, retry }
    }
}

fn status(code: ErrorCode) -> StatusCode {
    StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// `POST /v1/chat/completions`.
pub(crate) async fn completions(
    State(shared): State<Arc<Shared>>,
    Extension(visit): Extension<Visit>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    talk(Wire::OpenAi, shared, visit, (headers, body)).await
}

/// `POST /v1/messages`.
pub(crate) async fn messages(
    State(shared): State<Arc<Shared>>,
    Extension(visit): Extension<Visit>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    talk(Wire::Anthropic, shared, visit, (headers, body)).await
}

async fn talk(wire: Wire, shared: Arc<Shared>, visit: Visit, (headers, body): (HeaderMap, Bytes)) -> Response {
    let begun = match begin(wire, &shared, visit, (&headers, &body)).await {
        Ok(begun) => begun,
        Err(refused) => return wire.refusal(&refused),
    };
    match begun.started().await {
        Err(refused) => wire.refusal(&refused),
        Ok(talk) if talk.stream => talk.stream(),
        Ok(talk) => talk.whole().await,
    }
}

/// A turn that was begun for a request.
struct Talk {
    wire: Wire,
    run: Arc<Run>,
    heard: UnboundedReceiver<Heard>,
    agent: String,
    stream: bool,
    usage_in_stream: bool,
    /// What the gates left of the prompt.
    user: Value,
    guard: Guard,
}

/// Stops a turn that nobody keeps when its client goes away.
struct Guard(Option<Weak<Run>>);

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(run) = self.0.take().and_then(|run| run.upgrade()) {
            run.handle.cancel();
        }
    }
}

async fn begin(
    wire: Wire,
    shared: &Arc<Shared>,
    visit: Visit,
    (headers, body): (&HeaderMap, &Bytes),
) -> Result<Talk, Refused> {
    let who = shared.signed_in(headers, visit).await?;
    roles::allow(&who, "chat.send")?;
    let body = json_body(headers, body)?;
    let asked = match wire {
        Wire::OpenAi => openai::read(&body)?,
        Wire::Anthropic => anthropic::read(&body)?,
    };
    shared.guests.rates.check(&who)?;
    if shared.life.draining.is_cancelled() {
        return Err(ApiError { retry_after_ms: Some(1000), ..going_away() }.into());
    }
    let agent = {
        let host = shared.host.read().await;
        let name = named(&host.loaded.config, Some(&asked.agent))?.name.clone();
        shared.agents.ready(&host, &name, None)?
    };
    let Asked { history, prompt, stream, usage_in_stream, skills, .. } = asked;
    let (name, kept) = session(headers, &who, agent.settings().id.as_str())?;
    let place = shared.turn_of(&who).await?;
    let (told, heard) = unbounded_channel();
    let run = Run::new(RunParts {
        name,
        tenant: who.tenant.clone(),
        prompt,
        stream,
        origin: Weak::new(),
        listener: Some(told),
        hub: shared.hub.clone(),
    });
    if let Err(at_work) = shared.lanes.take(&run) {
        let details = match at_work.waits() {
            Some(approval) => json!({ "kind": "approval_pending", "approvalIds": [approval] }),
            None => json!({ "kind": "session_busy" }),
        };
        return Err(ApiError::precondition("the session is busy with another turn").with_details(details).into());
    }
    let history = (!kept).then_some(history);
    let named = agent.settings().id.to_string();
    shared.start(run.clone(), Errand { agent, skills, enable_tools: true, history, place });
    let guard = Guard((!kept).then(|| Arc::downgrade(&run)));
    Ok(Talk { wire, run, heard, agent: named, stream, usage_in_stream, user: Value::Null, guard })
}

/// The session of a request, and whether the host keeps the conversation.
fn session(headers: &HeaderMap, who: &Principal, agent: &str) -> Result<(SessionName, bool), ApiError> {
    let key = headers.get(SESSION).map(|key| key.to_str().unwrap_or_default());
    let conversation = match key {
        Some(key) => key.to_owned(),
        None => SessionName::once(),
    };
    let name = SessionName { agent: agent.to_owned(), channel: Channel::Http, user: who.user.clone(), conversation };
    match name.is_good() && !(key.is_some() && name.is_once()) {
        true => Ok((name, key.is_some())),
        false => {
            Err(ApiError::invalid("`X-Pintle-Session` must be a short name without `/`, `@` and control characters"))
        }
    }
}

impl Talk {
    /// Waits until the gates let the prompt pass.
    async fn started(mut self) -> Result<Self, Refused> {
        match self.heard.recv().await {
            Some(Heard::Started { content, sig }) => {
                self.user = json!({ "content": content, "sig": sig });
                Ok(self)
            }
            Some(Heard::Text(_) | Heard::Hook(_)) | None => match self.run.outcome().await {
                RunOutcome::Failed(error) => Err(error.into()),
                RunOutcome::Completed(_) | RunOutcome::Cancelled | RunOutcome::Parked(_) => {
                    Err(ApiError::new(ErrorCode::Unavailable, "the turn ended before it began").into())
                }
            },
        }
    }

    /// The whole answer, once it is there.
    async fn whole(mut self) -> Response {
        let (mut content, mut hooks) = (String::new(), Vec::new());
        while let Some(heard) = self.heard.recv().await {
            match heard {
                Heard::Text(text) => content.push_str(&text),
                Heard::Hook(mut hook) => {
                    hook.insert("at".to_owned(), json!(content.encode_utf16().count()));
                    hooks.push(Value::Object(hook));
                }
                Heard::Started { .. } => {}
            }
        }
        let (ended, usage) = match self.end().await {
            Ok(end) => end,
            Err(refused) => return self.wire.refusal(&refused),
        };
        let pintle = json!({ "user": self.user, "hooks": hooks });
        let id = self.id();
        let body = match self.wire {
            Wire::OpenAi => self.head(id).answer(&content, ended, usage, pintle),
            Wire::Anthropic => anthropic::answer(&id, &self.agent, &content, Ended { reason: ended, usage }, pintle),
        };
        let mut response = answer(StatusCode::OK, &body);
        self.mark(&mut response);
        self.guard.0 = None;
        response
    }

    /// The answer as it comes.
    fn stream(self) -> Response {
        let (id, agent) = (self.id(), self.agent.clone());
        let mut response = {
            let head = self.head(id.clone());
            let (wire, run) = (self.wire, self.run.clone());
            let mut response =
                Sse::new(events(self, head)).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response();
            tracing::trace!(?wire, %agent, "an answer is streamed");
            mark(&run, &mut response);
            response
        };
        response.headers_mut().insert("cache-control", HeaderValue::from_static("no-cache"));
        response
    }

    /// How the turn ended, in a word of the wire, and what it cost.
    async fn end(&self) -> Result<(&'static str, Usage), Refused> {
        let (stop, filtered) = match self.wire {
            Wire::OpenAi => ("stop", "content_filter"),
            Wire::Anthropic => ("end_turn", "refusal"),
        };
        match self.run.outcome().await {
            RunOutcome::Completed(answer) => Ok((stop, answer.usage)),
            RunOutcome::Failed(error) => {
                let kind = error.details.as_ref().and_then(|details| details.get("kind")).and_then(Value::as_str);
                if kind == Some("hook_stopped") { Ok((filtered, self.run.cost())) } else { Err(error.into()) }
            }
            RunOutcome::Cancelled => Err(ApiError::new(ErrorCode::Unavailable, "the turn was stopped")
                .with_details(json!({ "kind": "failed" }))
                .into()),
            RunOutcome::Parked(ids) => Err(ApiError::precondition("a call waits for an approval")
                .with_details(json!({ "kind": "approval_pending", "approvalIds": ids }))
                .into()),
        }
    }

    fn id(&self) -> String {
        let turn = self.run.id().map(ToString::to_string).unwrap_or_default();
        match self.wire {
            Wire::OpenAi => format!("chatcmpl-{turn}"),
            Wire::Anthropic => format!("msg_{turn}"),
        }
    }

    fn head(&self, id: String) -> openai::Head {
        openai::Head { id, created: jiff::Timestamp::now().as_second(), model: self.agent.clone() }
    }

    fn mark(&self, response: &mut Response) {
        mark(&self.run, response);
    }
}

/// Says which turn it was, and how long its hooks took.
fn mark(run: &Run, response: &mut Response) {
    let headers = response.headers_mut();
    let turn = run.id().and_then(|turn| HeaderValue::from_str(turn.as_str()).ok());
    turn.into_iter().for_each(|turn| drop(headers.insert("x-pintle-turn", turn)));
    headers.insert("x-pintle-hook-ms", HeaderValue::from(run.hook_ms()));
}

/// The events of an answer that is told as it comes.
fn events(talk: Talk, head: openai::Head) -> impl Stream<Item = Result<Event, Infallible>> {
    let first = match talk.wire {
        Wire::OpenAi => vec![
            chunk(&head.piece(json!({ "role": "assistant", "content": "" }), None)),
            chunk(&head.aside(json!({ "user": talk.user }))),
        ],
        Wire::Anthropic => {
            let mut begin = anthropic::begin(&head.id, &head.model);
            begin[0]["pintle"] = json!({ "user": talk.user });
            begin.iter().map(named_event).collect()
        }
    };
    let state = Streaming { talk, head, told: 0, queued: first.into(), over: false };
    futures_util::stream::unfold(state, |mut state| async move {
        loop {
            if let Some(event) = state.queued.pop_front() {
                return Some((Ok(event), state));
            }
            if state.over {
                return None;
            }
            state.more().await;
        }
    })
}

/// A stream that is under way.
struct Streaming {
    talk: Talk,
    head: openai::Head,
    /// How much was told, in UTF-16 units.
    told: usize,
    queued: std::collections::VecDeque<Event>,
    over: bool,
}

impl Streaming {
    /// Takes the next thing that happened.
    async fn more(&mut self) {
        match self.talk.heard.recv().await {
            Some(Heard::Text(text)) => {
                self.told += text.encode_utf16().count();
                self.queued.push_back(match self.talk.wire {
                    Wire::OpenAi => chunk(&self.head.piece(json!({ "content": text }), None)),
                    Wire::Anthropic => named_event(&anthropic::piece(&text)),
                });
            }
            Some(Heard::Hook(mut hook)) => {
                hook.insert("at".to_owned(), json!(self.told));
                let aside = json!({ "hooks": [Value::Object(hook)] });
                self.queued.push_back(match self.talk.wire {
                    Wire::OpenAi => chunk(&self.head.aside(aside)),
                    Wire::Anthropic => named_event(&anthropic::aside(aside)),
                });
            }
            Some(Heard::Started { .. }) => {}
            None => self.last().await,
        }
    }

    /// The turn is over.
    async fn last(&mut self) {
        self.over = true;
        let ended = self.talk.end().await;
        self.talk.guard.0 = None;
        let events: Vec<Event> = match (ended, self.talk.wire) {
            (Ok((ended, usage)), Wire::OpenAi) => {
                let cost = self.talk.usage_in_stream.then(|| chunk(&self.head.cost(usage)));
                let done = Event::default().data("[DONE]");
                [chunk(&self.head.piece(json!({}), Some(ended)))].into_iter().chain(cost).chain([done]).collect()
            }
            (Ok((ended, usage)), Wire::Anthropic) => anthropic::end(ended, usage).iter().map(named_event).collect(),
            (Err(refused), Wire::OpenAi) => vec![chunk(&openai::error(&refused.error, &refused.code))],
            (Err(refused), Wire::Anthropic) => vec![named_event(&anthropic::error(&refused.error, &refused.code))],
        };
        self.queued.extend(events);
    }
}

fn chunk(value: &Value) -> Event {
    Event::default().data(value.to_string())
}

/// An event whose name is its type.
fn named_event(value: &Value) -> Event {
    let name = value.get("type").and_then(Value::as_str).unwrap_or_default();
    Event::default().event(name).data(value.to_string())
}

impl Wire {
    fn refusal(self, refused: &Refused) -> Response {
        let body = match self {
            Self::OpenAi => openai::error(&refused.error, &refused.code),
            Self::Anthropic => anthropic::error(&refused.error, &refused.code),
        };
        let mut response = answer(refused.status, &body);
        let headers = response.headers_mut();
        headers.insert("x-should-retry", HeaderValue::from_static(if refused.retry { "true" } else { "false" }));
        if let Some(wait) = refused.error.retry_after_ms {
            headers.insert("retry-after", HeaderValue::from(wait.div_ceil(1000)));
        }
        response
    }
}
