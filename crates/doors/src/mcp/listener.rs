//! Clients that speak streamable HTTP, on this machine alone.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::post;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::clearing::ToolSession;
use super::door::ToolDoor;
use super::ends::{ClientEnd, FromClient, QUEUE};
use super::hub::Hub;
use super::message::{
    INTERNAL_ERROR, INVALID_REQUEST, MAX_MESSAGE_BYTES, McpKind, McpMessage, PARSE_ERROR, error_reply,
};
use super::remote::ClientHead;
use super::stdio::{ServerLink, ServerWay};
use crate::entrance::entered;
use crate::upstream::going;

mod exchange;
mod oauth;
mod renamed;
mod sign_in;
mod streams;

use exchange::{AnswerHead, Lasts, events, exchange};
use renamed::Renamed;
use sign_in::SignIn;
use streams::{MAX_KEPT, Streams, hand_over};

/// Where clients speak.
pub const PATH: &str = "/mcp";

/// The name of a session, in both directions.
const SESSION: &str = "mcp-session-id";

/// Most sessions at once: each may have a server of its own.
const MAX_SESSIONS: usize = 64;

/// Most requests at once that have no session, before a server over HTTP: each has an exchange of its own with it.
const MAX_SINGLE: usize = 256;

/// How long a session without an open stream and without a message lasts: longer than a person thinks, and short enough
/// that clients which never end theirs do not use all of them up.
const IDLE: Duration = Duration::from_secs(600);

/// How often sessions are looked at.
const LOOK: Duration = Duration::from_secs(60);

/// The session that all clients of the newest protocol share before a child: no header has this name.
const SHARED: &str = "\n";

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
    /// How many requests have had ids of the door's own.
    renamed: AtomicU64,
    sessions: Mutex<BTreeMap<String, ClientSession>>,
    /// The room for requests without a session.
    single: Arc<Semaphore>,
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
    let (renamed, single) = (AtomicU64::new(0), Arc::new(Semaphore::new(MAX_SINGLE)));
    let (all, ends) = (tasks.clone(), stop.clone());
    let clients = Listener { door, common, way, sign_in, renamed, sessions, single, tasks: all, stop: ends };
    let clients = Arc::new(clients);
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
    /// Begins a session, with a server of its own; one that `is_shared` is of several clients.
    async fn begin(
        &self,
        head: HeaderMap,
        (visitor, is_shared): (Arc<ToolSession>, bool),
    ) -> Result<ClientSession, String> {
        if lock(&self.sessions).len() >= MAX_SESSIONS {
            return Err(format!("there are {MAX_SESSIONS} sessions already"));
        }
        let head: ClientHead = Arc::new(Mutex::new(head));
        let (link, server) = ServerLink::open(&self.way, head.clone()).await?;
        let ((to_hub, from), (to, mut messages)) = (mpsc::channel(QUEUE), mpsc::channel(QUEUE));
        let stop = self.stop.child_token();
        let used = Arc::new(Mutex::new(Instant::now()));
        let streams = Arc::new(Mutex::new(Streams { is_shared, ..Streams::default() }));
        let session = ClientSession { to_hub, streams, head, stop: stop.clone(), used };
        let hub = Hub::new(visitor);
        let streams = session.streams.clone();
        self.tasks.spawn(async move {
            while let Some(message) = messages.recv().await {
                hand_over(&streams, message).await;
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
        self.begin(head, (Arc::new(ToolSession::new(self.door.clone())), false)).await
    }

    /// A session that is there for one request alone.
    async fn begin_single(&self, head: HeaderMap) -> Result<ClientSession, String> {
        let room = self.single.clone().try_acquire_owned();
        let room = room.map_err(|_| format!("there are {MAX_SINGLE} requests already"))?;
        let session = self.begin(head, (self.common.clone(), false)).await?;
        let stop = session.stop.clone();
        self.tasks.spawn(async move {
            // It is stopped, too, where it ends by itself.
            stop.cancelled().await;
            drop(room);
        });
        Ok(session)
    }

    /// The session before a child of all clients whose protocol has none.
    async fn shared(&self, head: HeaderMap) -> Result<ClientSession, String> {
        if let Some(session) = self.known(SHARED) {
            return Ok(session);
        }
        let begun = self.begin(head, (self.common.clone(), true)).await?;
        // Another one may have begun meanwhile; then this one is left, and ends.
        Ok(lock(&self.sessions).entry(SHARED.to_owned()).or_insert(begun).clone())
    }

    fn session(&self, headers: &HeaderMap) -> Option<(String, Option<ClientSession>)> {
        let id = headers.get(SESSION)?.to_str().unwrap_or_default().to_owned();
        let found = self.known(&id);
        Some((id, found))
    }

    fn known(&self, id: &str) -> Option<ClientSession> {
        let mut sessions = lock(&self.sessions);
        // What is over is not there any more.
        sessions.retain(|_, session| !session.stop.is_cancelled());
        let found = sessions.get(id).cloned();
        if let Some(session) = &found {
            *lock(&session.used) = Instant::now();
        }
        found
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
    let head = head_of(&parts.headers);
    let (session, told) = match session_of(&listener, (&parts.headers, &head), &message).await {
        Ok(found) => found,
        Err(response) => return *response,
    };
    *lock(&session.head) = head;
    let asks = matches!(&message.kind, McpKind::Request { .. });
    match (told.lasts, asks) {
        (Lasts::Request, true) => {
            let (renamed, text) = Renamed::of(&message, listener.renamed.fetch_add(1, Ordering::Relaxed));
            match McpMessage::read(text) {
                Ok(message) => {
                    exchange((&listener, session), message, AnswerHead { renamed: Some(renamed), ..told }).await
                }
                Err(unread) => refused(StatusCode::BAD_REQUEST, message.id(), &unread.why),
            }
        }
        // Whatever it names has another name there, and may be another client's: who does not wait closes the stream.
        (Lasts::Request, false) => bare(StatusCode::ACCEPTED),
        (Lasts::Session | Lasts::Once, _) => exchange((&listener, session), message, told).await,
    }
}

/// The session that `message` belongs to, or begins.
async fn session_of(
    listener: &Listener,
    (headers, head): (&HeaderMap, &HeaderMap),
    message: &McpMessage,
) -> Result<(ClientSession, AnswerHead), Box<Response>> {
    let refuse = |status: StatusCode, why: &str| Box::new(refused(status, message.id(), why));
    let own = sign_in::own(headers);
    let told = |id: Option<String>, lasts: Lasts| AnswerHead { id, lasts, renamed: None, own };
    let begins = matches!(&message.kind, McpKind::Request { method, .. } if method == "initialize");
    let (begun, lasts) = match listener.session(headers) {
        Some((id, Some(session))) => return Ok((session, told(Some(id), Lasts::Session))),
        Some((_, None)) => return Err(refuse(StatusCode::NOT_FOUND, "there is no such session; begin a new one")),
        None if begins => (listener.begin_own(head.clone()).await, Lasts::Session),
        None if is_modern(message) => match &listener.way {
            ServerWay::Url(_) => (listener.begin_single(head.clone()).await, Lasts::Once),
            ServerWay::Command(_) => (listener.shared(head.clone()).await, Lasts::Request),
        },
        None => return Err(refuse(StatusCode::BAD_REQUEST, "begin with `initialize`")),
    };
    let session = begun.map_err(|why| refuse(StatusCode::BAD_GATEWAY, &why))?;
    if !begins {
        return Ok((session, told(None, lasts)));
    }
    let id = Uuid::new_v4().to_string();
    lock(&listener.sessions).insert(id.clone(), session.clone());
    Ok((session, told(Some(id), lasts)))
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
    events((None, None), from, None)
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
    use async_trait::async_trait;
    use pintle_domain::tool::{ServerEntry, ToolCall};
    use pintle_engine::Dispatcher;
    use url::Url;

    use super::*;
    use crate::mcp::door::{ToolDoorHost, ToolVisit};
    use crate::mcp::pins::PinFinding;
    use crate::mcp::proxy::ProxyRules;
    use crate::mcp::tools::{ToolDefinition, ToolFilter};

    struct NoHooks;

    #[async_trait]
    impl ToolDoorHost for NoHooks {
        async fn hooks(&self, _visit: &ToolVisit) -> Result<Dispatcher, String> {
            Err("there are none".into())
        }

        async fn protects(&self, _call: &ToolCall) -> Option<String> {
            None
        }

        async fn pin(&self, _server: &str, _found: Vec<ToolDefinition>) -> Result<Vec<PinFinding>, String> {
            Ok(Vec::new())
        }
    }

    /// A listener before a server that nobody asks, with room for so many requests without a session.
    fn listener(room: usize) -> Listener {
        let rules = ProxyRules { server: "n".into(), filter: ToolFilter::new(|_| true), accept: String::new() };
        let entry = ServerEntry { name: "n".into(), runs: String::new(), digest: String::new() };
        let door = ToolDoor { host: Arc::new(NoHooks), rules, entry, hold: LOOK, asks_client: false };
        let common = Arc::new(ToolSession::new(door.clone()));
        let way = ServerWay::Url(Url::parse("http://127.0.0.1:9/mcp").unwrap());
        let (single, sessions) = (Arc::new(Semaphore::new(room)), Mutex::default());
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let renamed = AtomicU64::new(0);
        Listener { door, common, way, sign_in: None, renamed, sessions, single, tasks, stop }
    }

    #[tokio::test]
    async fn requests_without_a_session_are_bounded() {
        let listener = listener(1);
        let begun = listener.begin_single(HeaderMap::new()).await.unwrap();
        let why = listener.begin_single(HeaderMap::new()).await.err();
        assert!(why.is_some_and(|why| why.contains("already")));
        // Nobody speaks any more: it ends, and there is room again.
        drop(begun);
        drop(listener.single.clone().acquire_owned().await.unwrap());
        assert!(listener.begin_single(HeaderMap::new()).await.is_ok());
    }

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
