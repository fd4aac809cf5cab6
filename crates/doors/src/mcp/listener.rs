//! Clients that speak streamable HTTP, on this machine alone.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::post;
use bytes::Bytes;
use futures_util::stream;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::clearing::ToolSession;
use super::door::ToolDoor;
use super::ends::{ClientEnd, FromClient, QUEUE};
use super::hub::Hub;
use super::message::{
    INTERNAL_ERROR, INVALID_REQUEST, MAX_MESSAGE_BYTES, McpKind, McpMessage, PARSE_ERROR, RequestKey, error_reply,
};
use super::proxy::ClientBound;
use super::remote::ClientHead;
use super::stdio::{ServerLink, ServerWay};
use crate::entrance::entered;
use crate::upstream::going;

mod oauth;
mod sign_in;
mod streams;

use sign_in::SignIn;
use streams::{MAX_KEPT, Streams};

/// Where clients speak.
pub const PATH: &str = "/mcp";

/// The name of a session, in both directions.
const SESSION: &str = "mcp-session-id";

/// Most sessions at once: each may have a server of its own.
const MAX_SESSIONS: usize = 64;

/// How long a session without an open stream and without a message lasts: longer than a person thinks, and short enough
/// that clients which never end theirs do not use all of them up.
const IDLE: Duration = Duration::from_secs(600);

/// How often sessions are looked at.
const LOOK: Duration = Duration::from_secs(60);

/// How long the head of an answer waits for its first message: a server over HTTP may say with it that whoever asks has to
/// sign in first. What takes longer is a call that waits for a person, or works.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// The code of an error: a method that is not there. Source: JSON-RPC 2.0.
const METHOD_NOT_FOUND: i32 = -32601;

/// Headers of a client that are between it and the door.
const OWN: [&str; 4] = ["accept", "content-type", "last-event-id", SESSION];

/// Clients over HTTP.
struct Listener {
    door: ToolDoor,
    /// That of clients which have none of their own.
    common: Arc<ToolSession>,
    way: ServerWay,
    /// How clients sign in, where a server over HTTP wants that.
    sign_in: Option<SignIn>,
    sessions: Mutex<BTreeMap<String, ClientSession>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// One client.
#[derive(Clone)]
struct ClientSession {
    to_hub: mpsc::Sender<FromClient>,
    streams: Arc<Mutex<Streams>>,
    head: ClientHead,
    stop: CancellationToken,
    /// When it was last seen in use.
    used: Arc<Mutex<Instant>>,
}

impl ClientSession {
    /// Whether nobody uses it.
    fn is_idle(&self, now: Instant) -> bool {
        let mut used = lock(&self.used);
        if lock(&self.streams).is_open() {
            *used = now;
        }
        now.saturating_duration_since(*used) >= IDLE
    }
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Listens for clients of `door` until `stop`.
///
/// # Errors
/// The socket cannot be used.
pub async fn serve(
    door: ToolDoor,
    way: ServerWay,
    listener: TcpListener,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let (sessions, tasks) = (Mutex::default(), TaskTracker::new());
    let common = Arc::new(ToolSession::new(door.clone()));
    let sign_in = SignIn::behind(&way);
    let clients = Arc::new(Listener { door, common, way, sign_in, sessions, tasks: tasks.clone(), stop: stop.clone() });
    tasks.spawn(look_after(clients.clone()));
    let routes = post(posted).get(listened).delete(deleted);
    let router =
        Router::new().route(PATH, routes).merge(sign_in::routes()).fallback(nowhere).with_state(clients.clone());
    // Streams end with the sessions that they belong to.
    let served = axum::serve(listener, router).with_graceful_shutdown(stop.clone().cancelled_owned()).await;
    stop.cancel();
    lock(&clients.sessions).clear();
    tasks.close();
    tasks.wait().await;
    served
}

/// Ends the sessions that nobody uses, until the end.
async fn look_after(clients: Arc<Listener>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => {}
            () = clients.stop.cancelled() => return,
        }
        let now = Instant::now();
        // Their hubs hear that nobody speaks any more, and leave in order.
        lock(&clients.sessions).retain(|_, session| !session.is_idle(now));
    }
}

async fn nowhere(request: Request) -> Response {
    refused(StatusCode::NOT_FOUND, "null", &format!("there is nothing at {}; expected {PATH}", request.uri().path()))
}

impl Listener {
    /// Begins a session, with a server of its own.
    async fn begin(&self, head: HeaderMap, visitor: Arc<ToolSession>) -> Result<ClientSession, String> {
        if lock(&self.sessions).len() >= MAX_SESSIONS {
            return Err(format!("there are {MAX_SESSIONS} sessions already"));
        }
        let head: ClientHead = Arc::new(Mutex::new(head));
        let (link, server) = ServerLink::open(&self.way, head.clone()).await?;
        let ((to_hub, from), (to, mut messages)) = (mpsc::channel(QUEUE), mpsc::channel(QUEUE));
        let stop = self.stop.child_token();
        let used = Arc::new(Mutex::new(Instant::now()));
        let session = ClientSession { to_hub, streams: Arc::default(), head, stop: stop.clone(), used };
        let hub = Hub::new(visitor);
        let streams = session.streams.clone();
        self.tasks.spawn(async move {
            while let Some(message) = messages.recv().await {
                let routed = lock(&streams).route(message);
                if let Some((stream, message)) = routed {
                    // Who left does not want it any more.
                    stream.send(message).await.ok();
                }
            }
            *lock(&streams) = Streams::default();
        });
        let ends = ClientEnd { from, to };
        self.tasks.spawn(async move {
            let end = tokio::select! {
                end = hub.run(ends, server) => end,
                () = stop.cancelled() => super::hub::ProxyEnd::ClientLeft,
            };
            let end = link.end(end).await;
            tracing::debug!(?end, "a session is over");
            stop.cancel();
        });
        Ok(session)
    }

    async fn begin_own(&self, head: HeaderMap) -> Result<ClientSession, String> {
        self.begin(head, Arc::new(ToolSession::new(self.door.clone()))).await
    }

    fn session(&self, headers: &HeaderMap) -> Option<(String, Option<ClientSession>)> {
        let id = headers.get(SESSION)?.to_str().unwrap_or_default().to_owned();
        let mut sessions = lock(&self.sessions);
        // What is over is not there any more.
        sessions.retain(|_, session| !session.stop.is_cancelled());
        let found = sessions.get(&id).cloned();
        if let Some(session) = &found {
            *lock(&session.used) = Instant::now();
        }
        Some((id, found))
    }
}

/// What of a client's headers is for the server.
fn head_of(headers: &HeaderMap) -> HeaderMap {
    let is_own = |name: &str| OWN.contains(&name) || name.starts_with("mcp-") || name == "user-agent";
    going(headers)
        .into_iter()
        .filter_map(|(name, value)| Some((name?, value)))
        .filter(|(name, _)| !is_own(name.as_str()))
        .collect()
}

fn is_modern(message: &McpMessage) -> bool {
    let version = ["_meta", "io.modelcontextprotocol/protocolVersion"];
    message.params().is_some_and(|params| params.at(&version).is_some())
}

async fn posted(State(listener): State<Arc<Listener>>, request: Request) -> Response {
    if let Err((status, why)) = entered(request.headers()) {
        return refused(status, "null", &why);
    }
    let (parts, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, MAX_MESSAGE_BYTES).await else {
        let why = format!("the body is larger than {MAX_MESSAGE_BYTES} bytes, or was cut off");
        return refused(StatusCode::PAYLOAD_TOO_LARGE, "null", &why);
    };
    let Ok(text) = String::from_utf8(body.into()) else {
        return refused(StatusCode::BAD_REQUEST, "null", "the body is not UTF-8");
    };
    let message = match McpMessage::read(text) {
        Ok(message) => message,
        Err(unread) => {
            let code = if unread.id.is_some() { INVALID_REQUEST } else { PARSE_ERROR };
            let text = error_reply(unread.id.as_deref().unwrap_or("null"), code, &unread.why);
            return said(StatusCode::BAD_REQUEST, text);
        }
    };
    let method = match &message.kind {
        McpKind::Request { method, .. } => Some(method.as_str()),
        McpKind::Notice { .. } | McpKind::Reply { .. } | McpKind::Complaint => None,
    };
    let head = head_of(&parts.headers);
    let (id, session, passes) = match listener.session(&parts.headers) {
        Some((id, Some(session))) => (Some(id), session, false),
        Some((_, None)) => {
            return refused(StatusCode::NOT_FOUND, message.id(), "there is no such session; begin a new one");
        }
        None if method == Some("initialize") => match listener.begin_own(head.clone()).await {
            Ok(session) => {
                let id = Uuid::new_v4().to_string();
                lock(&listener.sessions).insert(id.clone(), session.clone());
                (Some(id), session, false)
            }
            Err(why) => return refused(StatusCode::BAD_GATEWAY, message.id(), &why),
        },
        None if is_modern(&message) => match (&listener.way, listener.begin(head.clone(), listener.common.clone())) {
            (ServerWay::Url(_), begun) => match begun.await {
                Ok(session) => (None, session, true),
                Err(why) => return refused(StatusCode::BAD_GATEWAY, message.id(), &why),
            },
            (ServerWay::Command(_), _) => {
                let why = "a server that is a child has sessions: begin with `initialize`";
                return said(StatusCode::NOT_FOUND, error_reply(message.id(), METHOD_NOT_FOUND, why));
            }
        },
        None => return refused(StatusCode::BAD_REQUEST, message.id(), "begin with `initialize`"),
    };
    *lock(&session.head) = head;
    exchange((&listener, session), message, AnswerHead { id, passes, own: sign_in::own(&parts.headers) }).await
}

/// How a message is answered.
struct AnswerHead {
    /// The session that the client goes on with.
    id: Option<String>,
    /// Whether its session is over with the answer.
    passes: bool,
    /// The door, as the client reaches it.
    own: String,
}

/// Hands a message over, and answers with what comes of it.
async fn exchange((listener, session): (&Listener, ClientSession), message: McpMessage, head: AnswerHead) -> Response {
    let McpKind::Request { key, method } = message.kind.clone() else {
        let sent = session.to_hub.send(FromClient::Message(message.document.text)).await;
        return match sent {
            Ok(()) => bare(StatusCode::ACCEPTED),
            Err(_) => refused(StatusCode::NOT_FOUND, "null", GONE),
        };
    };
    let (to, mut from) = mpsc::channel(MAX_KEPT);
    let request = message.id().to_owned();
    let is_new = lock(&session.streams).begin(key.clone(), to);
    if !is_new {
        return refused(StatusCode::BAD_REQUEST, &request, "the id is still in use by another request");
    }
    if session.to_hub.send(FromClient::Message(message.document.text)).await.is_err() {
        return refused(StatusCode::NOT_FOUND, &request, GONE);
    }
    let AnswerHead { id, passes, own } = head;
    let left = Leaving { key, session: session.clone(), passes };
    let first = match &listener.sign_in {
        Some(_) => tokio::time::timeout(HEAD_TIME, from.recv()).await.ok().flatten(),
        None => None,
    };
    let wanted =
        first.as_ref().and_then(|first| Some((listener.sign_in.as_ref()?, first.wants.as_ref()?, &first.text)));
    if let Some((sign_in, wants, text)) = wanted {
        if let Some(id) = id.filter(|_| method == "initialize") {
            lock(&listener.sessions).remove(&id);
        }
        return sign_in.wanted(wants, (&own, text.clone()));
    }
    let mut response = events(first, from, Some(left));
    if let Some(id) = id.and_then(|id| HeaderValue::from_str(&id).ok()) {
        response.headers_mut().insert(SESSION, id);
    }
    response
}

/// What is said where a session's server is gone.
const GONE: &str = "the server of this session is gone; begin a new one";

/// Notices a client that closes the stream of its request.
struct Leaving {
    key: RequestKey,
    session: ClientSession,
    passes: bool,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let was_open = lock(&self.session.streams).of.remove(&self.key).is_some();
        // In a session that goes on, a client that lost its connection did not say that it does not wait.
        if self.passes {
            if was_open {
                self.session.to_hub.try_send(FromClient::Left(self.key.clone())).ok();
            }
            self.session.stop.cancel();
        }
    }
}

fn events(first: Option<ClientBound>, from: mpsc::Receiver<ClientBound>, left: Option<Leaving>) -> Response {
    let stream = stream::unfold((first, from, left), |(first, mut from, left)| async move {
        let message = match first {
            Some(message) => message,
            None => from.recv().await?,
        };
        Some((Ok::<Bytes, Infallible>(event(&message.text)), (None, from, left)))
    });
    let mut response = Response::new(Body::from_stream(stream));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn event(text: &str) -> Bytes {
    // A line break stands between values only, where a blank says the same.
    let text = if text.contains(['\n', '\r']) { text.replace(['\n', '\r'], " ") } else { text.to_owned() };
    format!("event: message\ndata: {text}\n\n").into()
}

async fn listened(State(listener): State<Arc<Listener>>, request: Request) -> Response {
    if let Err((status, why)) = entered(request.headers()) {
        return refused(status, "null", &why);
    }
    let Some((_, Some(session))) = listener.session(request.headers()) else {
        // A client of the newest protocol has no session, and no stream of its own.
        return refused(StatusCode::METHOD_NOT_ALLOWED, "null", "only a session that is open has a stream of its own");
    };
    let (to, from) = mpsc::channel(MAX_KEPT);
    {
        let mut streams = lock(&session.streams);
        for message in streams.kept.drain(..) {
            // There is room for all that is kept.
            to.try_send(message).ok();
        }
        streams.own = Some(to);
    }
    events(None, from, None)
}

async fn deleted(State(listener): State<Arc<Listener>>, request: Request) -> Response {
    if let Err((status, why)) = entered(request.headers()) {
        return refused(status, "null", &why);
    }
    let Some((id, Some(_))) = listener.session(request.headers()) else {
        return refused(StatusCode::NOT_FOUND, "null", "there is no such session");
    };
    // Its hub hears that nobody speaks any more, and leaves in order.
    if let Some(session) = lock(&listener.sessions).remove(&id) {
        *lock(&session.streams) = Streams::default();
    }
    bare(StatusCode::NO_CONTENT)
}

fn bare(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

fn said(status: StatusCode, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn refused(status: StatusCode, id: &str, why: &str) -> Response {
    let code = if status.is_server_error() { INTERNAL_ERROR } else { INVALID_REQUEST };
    said(status, error_reply(id, code, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_nobody_uses_ends() {
        let ((to_hub, _from), began) = (mpsc::channel(1), Instant::now());
        let (stop, used) = (CancellationToken::new(), Arc::new(Mutex::new(began)));
        let session = ClientSession { to_hub, streams: Arc::default(), head: ClientHead::default(), stop, used };
        let second = Duration::from_secs(1);
        assert!(!session.is_idle(began + IDLE - second) && session.is_idle(began + IDLE));
        let (to, from) = mpsc::channel(1);
        lock(&session.streams).own = Some(to);
        assert!(!session.is_idle(began + IDLE), "it listens");
        drop(from);
        assert!(!session.is_idle(began + IDLE * 2 - second) && session.is_idle(began + IDLE * 2));
    }
}
