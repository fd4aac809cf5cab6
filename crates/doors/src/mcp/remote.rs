//! A server that runs somewhere, spoken to over streamable HTTP.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use futures_util::stream::StreamExt as _;
use pintle_egress::sse::Splitter;
use reqwest::{Client, RequestBuilder, Response};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;

use super::ends::{FromServer, QUEUE, ServerEnd};
use super::message::{MAX_MESSAGE_BYTES, McpKind, McpMessage, RequestKey};
use super::proxy::{ServerBound, SignInWanted};
use crate::spans::JsonDocument;

mod headers;

use headers::{mirrored, plain, sign_in_wanted};

/// How long a connection may take to be made.
const CONNECT_TIME: Duration = Duration::from_secs(30);

/// How long a server may take to say that it got something which has no answer.
const TAKE_TIME: Duration = Duration::from_secs(30);

/// How long the end of a session is waited for.
const LEAVE: Duration = Duration::from_secs(2);

/// How long all that is under way may take to end: the end of a session, and a moment for the rest.
const END: Duration = Duration::from_secs(3);

/// How long is waited before a stream is opened again, where the server does not say.
const RETRY: Duration = Duration::from_secs(1);

/// How often an answer is looked for again that broke off; each look may wait as long as the server wants.
const MAX_RETRIES: usize = 100;

/// The protocol of a message, in its `_meta`. Source: the Model Context Protocol of 2026-07-28.
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const EVENTS: &str = "text/event-stream";

/// What a client over HTTP sent along last that is for its server, such as its key.
pub(super) type ClientHead = Arc<Mutex<HeaderMap>>;

/// A server behind an address, until it is left.
pub(super) struct RemoteServer {
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl RemoteServer {
    /// Reaches the server at `url` with the first message.
    pub(super) fn start(url: &Url, head: ClientHead) -> Result<(Self, ServerEnd), String> {
        let client = pintle_egress::client_for(url, CONNECT_TIME, None).map_err(|error| error.to_string())?;
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let ((to, messages), (heard, from)) = (mpsc::channel(QUEUE), mpsc::channel(QUEUE));
        let known = Arc::default();
        let exchange =
            Exchange { client, url: url.clone(), head, heard, stop: stop.clone(), known, tasks: tasks.clone() };
        tasks.spawn(exchange.work(messages));
        tasks.close();
        Ok((Self { tasks, stop }, ServerEnd { from, to }))
    }

    /// Ends its session. A server that does not answer holds nobody up.
    pub(super) async fn end(self) {
        self.stop.cancel();
        if tokio::time::timeout(END, self.tasks.wait()).await.is_err() {
            tracing::warn!("the exchange with the server did not come to an end");
        }
    }
}

/// What is known of a session.
#[derive(Default)]
struct KnownSession {
    id: Option<HeaderValue>,
    version: Option<HeaderValue>,
    /// What ends each request that is under way, if the server hears of its end by that alone.
    under_way: BTreeMap<RequestKey, (CancellationToken, bool)>,
}

/// Why a request has no answer, and what the server wants first, if it said so.
type Unanswered = (String, Option<SignInWanted>);

/// All exchanges with one server.
#[derive(Clone)]
struct Exchange {
    client: Client,
    url: Url,
    head: ClientHead,
    heard: mpsc::Sender<FromServer>,
    stop: CancellationToken,
    known: Arc<Mutex<KnownSession>>,
    tasks: TaskTracker,
}

impl Exchange {
    async fn work(self, mut messages: mpsc::Receiver<ServerBound>) {
        loop {
            let message = tokio::select! {
                message = messages.recv() => message,
                () = self.stop.cancelled() => None,
            };
            let Some(message) = message else { break };
            tokio::select! {
                () = self.pass_on(message) => {}
                () = self.stop.cancelled() => break,
            }
        }
        self.stop.cancel();
        let session = self.known().id.clone();
        if let Some(session) = session {
            let request = self.with_head(self.client.delete(self.url.clone())).header(SESSION_ID, session);
            // One that wants to keep it says so, and that is all right.
            tokio::time::timeout(LEAVE, request.send()).await.ok();
        }
    }

    async fn pass_on(&self, message: ServerBound) {
        let method = message.method.clone().unwrap_or_default();
        match message.key.clone() {
            // What follows belongs to the session that it begins.
            Some(key) if method == "initialize" => self.ask(message, key).await,
            Some(key) => {
                let exchange = self.clone();
                self.tasks.spawn(async move { exchange.ask(message, key).await });
            }
            None if method == "notifications/cancelled" && self.breaks_off(&message.text) => {}
            None => {
                self.tell(message).await;
                if method == "notifications/initialized" {
                    let exchange = self.clone();
                    self.tasks.spawn(async move { exchange.listen().await });
                }
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, KnownSession> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_head(&self, request: RequestBuilder) -> RequestBuilder {
        let head = self.head.lock().unwrap_or_else(PoisonError::into_inner).clone();
        request.headers(head).header(header::ACCEPT_ENCODING, "identity")
    }

    /// A request with what its session and its protocol want.
    fn posted(&self, message: &ServerBound, (version, own): (Option<&str>, bool)) -> RequestBuilder {
        let accepted = format!("application/json, {EVENTS}");
        let mut request = self.with_head(self.client.post(self.url.clone()));
        request = request.header(header::ACCEPT, accepted).header(header::CONTENT_TYPE, "application/json");
        let known = self.known();
        match version.and_then(|version| HeaderValue::from_str(version).ok()) {
            Some(version) if own => {
                request = request.header(PROTOCOL_VERSION, version);
                let named = [(METHOD, message.method.as_deref()), (NAME, message.name.as_deref())];
                for (name, value) in named {
                    if let Some(value) = value.and_then(|value| HeaderValue::from_str(&plain(value)).ok()) {
                        request = request.header(name, value);
                    }
                }
                for (name, value) in mirrored(&message.mirrored) {
                    request = request.header(name, value);
                }
            }
            Some(_) | None => {
                if let Some(version) = &known.version {
                    request = request.header(PROTOCOL_VERSION, version);
                }
            }
        }
        if let Some(id) = &known.id {
            request = request.header(SESSION_ID, id);
        }
        request.body(message.text.clone())
    }

    /// Ends a request by its connection, where that is how its server hears of it. Whether it is.
    fn breaks_off(&self, text: &str) -> bool {
        let Ok(message) = McpMessage::read(text.to_owned()) else { return false };
        let id = message.params().and_then(|params| params.get("requestId"));
        let Some(key) = id.and_then(|node| RequestKey::of(&message.document.value(node))) else { return false };
        match self.known().under_way.get(&key) {
            Some((end, true)) => {
                end.cancel();
                true
            }
            Some((_, false)) | None => false,
        }
    }

    /// Sends what has no answer.
    async fn tell(&self, message: ServerBound) {
        let version = version_of(&message.text);
        let sent = self.posted(&message, (version.as_deref(), version.is_some())).send();
        let why = match tokio::time::timeout(TAKE_TIME, sent).await {
            Ok(Ok(response)) if response.status().is_success() => return,
            Ok(Ok(response)) => response.status().to_string(),
            Ok(Err(error)) => reason(&error),
            Err(_) => "it says nothing".to_owned(),
        };
        tracing::warn!("the server did not take a message: {why}");
    }

    /// Sends a request, and hands on what comes until it is answered.
    async fn ask(&self, message: ServerBound, key: RequestKey) {
        let version = version_of(&message.text);
        // What was said last is said before the end, within what its session has for that.
        let end = self.stop.child_token();
        self.known().under_way.insert(key.clone(), (end.clone(), version.is_some()));
        let asked = self.asked(&message, &key, version.as_deref());
        let failed = tokio::select! {
            failed = asked => failed,
            () = end.cancelled() => None,
        };
        self.known().under_way.remove(&key);
        if let Some((why, wants)) = failed {
            self.heard.send(FromServer::Failed(key, why, wants)).await.ok();
        }
    }

    /// Why a request has no answer; nothing if it has one.
    async fn asked(&self, message: &ServerBound, key: &RequestKey, version: Option<&str>) -> Option<Unanswered> {
        let response = match self.posted(message, (version, version.is_some())).send().await {
            Ok(response) => response,
            Err(error) => return Some((format!("the server does not answer: {}", reason(&error)), None)),
        };
        match sign_in_wanted(&response) {
            Some(wants) => Some((format!("the server answers {}", response.status()), Some(wants))),
            None => self.heard_of(response, message, key).await.map(|why| (why, None)),
        }
    }

    async fn heard_of(&self, response: Response, message: &ServerBound, key: &RequestKey) -> Option<String> {
        let status = response.status();
        if status.is_redirection() {
            return Some("the server answers with a redirect, and none is followed".into());
        }
        if message.method.as_deref() == Some("initialize") && status.is_success() {
            self.known().id = response.headers().get(SESSION_ID).cloned();
        }
        if status.is_success() && is_events(&response) {
            return self.streamed(response, key).await;
        }
        let has_session = self.known().id.is_some();
        let text = match body(response).await {
            Ok(text) => text,
            Err(why) => return Some(format!("the server's answer cannot be read: {why}")),
        };
        if answers(&text, key) {
            self.learn(&text);
            self.heard.send(FromServer::Message(text, Some(key.clone()))).await.ok();
            return None;
        }
        Some(match status {
            StatusCode::NOT_FOUND if has_session => "the server ended the session; the client has to begin anew".into(),
            status if status.is_success() => "the server answers something other than what was asked".into(),
            status => format!("the server answers {status}"),
        })
    }

    /// Hands on the events of an answer. Where they break off, they are looked for again.
    async fn streamed(&self, response: Response, key: &RequestKey) -> Option<String> {
        let mut response = response;
        let mut place = StreamPlace::default();
        for _ in 0..=MAX_RETRIES {
            match self.events(response, Some(key), &mut place).await {
                Ok(true) => return None,
                Ok(false) => {}
                Err(why) => tracing::debug!("a stream broke off: {why}"),
            }
            let Some(last) = place.last.clone() else { break };
            tokio::time::sleep(place.retry.unwrap_or(RETRY)).await;
            response = match self.opened(Some(&last)).await {
                Ok(response) => response,
                Err(why) => return Some(format!("the server broke its answer off, and {why}")),
            };
        }
        Some("the server broke its answer off".into())
    }

    /// Hands on events; whether `key` was answered.
    async fn events(
        &self,
        response: Response,
        key: Option<&RequestKey>,
        place: &mut StreamPlace,
    ) -> Result<bool, String> {
        let (mut pieces, mut splitter) = (response.bytes_stream(), Splitter::with_limit(MAX_MESSAGE_BYTES));
        loop {
            let Some(event) = splitter.cut_plain().map_err(|error| error.to_string())? else {
                // What the end cuts off is no event: it comes again, where the stream is opened again.
                let Some(piece) = pieces.next().await else { return Ok(false) };
                splitter.feed(&piece.map_err(|error| error.to_string())?);
                continue;
            };
            place.last = event.id.and_then(|id| HeaderValue::from_str(&id).ok()).or(place.last.take());
            place.retry = event.retry_ms.map(Duration::from_millis).or(place.retry);
            let Some(text) = event.data.filter(|data| !data.trim().is_empty()) else { continue };
            let is_answer = key.is_some_and(|key| answers(&text, key));
            if is_answer {
                self.learn(&text);
            }
            if self.heard.send(FromServer::Message(text, key.cloned())).await.is_err() || is_answer {
                return Ok(true);
            }
        }
    }

    /// Listens to what the server says without being asked.
    async fn listen(&self) {
        let mut place = StreamPlace::default();
        loop {
            let last = place.last.clone();
            let opened = tokio::select! {
                opened = self.opened(last.as_ref()) => opened,
                () = self.stop.cancelled() => return,
            };
            let response = match opened {
                Ok(response) => response,
                Err(why) => return tracing::debug!("the server says nothing without being asked: {why}"),
            };
            tokio::select! {
                ended = self.events(response, None, &mut place) => match ended {
                    Ok(true) => return,
                    Ok(false) => {}
                    Err(why) => tracing::debug!("a stream broke off: {why}"),
                },
                () = self.stop.cancelled() => return,
            }
            tokio::select! {
                () = tokio::time::sleep(place.retry.unwrap_or(RETRY)) => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    async fn opened(&self, last: Option<&HeaderValue>) -> Result<Response, String> {
        let mut request = self.with_head(self.client.get(self.url.clone())).header(header::ACCEPT, EVENTS);
        {
            let known = self.known();
            let headers = [(SESSION_ID, known.id.as_ref()), (PROTOCOL_VERSION, known.version.as_ref())];
            for (name, value) in headers.into_iter().chain([(LAST_EVENT_ID, last)]) {
                if let Some(value) = value {
                    request = request.header(name, value);
                }
            }
        }
        let response = request.send().await.map_err(|error| reason(&error))?;
        match response.status().is_success() && is_events(&response) {
            true => Ok(response),
            false => Err(format!("it answers {}", response.status())),
        }
    }

    /// Keeps which protocol the server chose.
    fn learn(&self, text: &str) {
        if self.known().version.is_some() {
            return;
        }
        let Ok(document) = JsonDocument::read(text.to_owned()) else { return };
        let version = document.root.at(&["result", "protocolVersion"]).and_then(|node| document.string(node));
        self.known().version = version.and_then(|version| HeaderValue::from_str(&version).ok());
    }
}

/// How far a stream was read.
#[derive(Default)]
struct StreamPlace {
    last: Option<HeaderValue>,
    retry: Option<Duration>,
}

/// The protocol that a message says it is of.
fn version_of(text: &str) -> Option<String> {
    // Most messages do not have the word in them, and need not be read.
    if !text.contains(VERSION) {
        return None;
    }
    let document = JsonDocument::read(text.to_owned()).ok()?;
    document.string(document.root.at(&["params", "_meta", VERSION])?)
}

/// Whether `text` is the answer to `key`.
fn answers(text: &str, key: &RequestKey) -> bool {
    match McpMessage::read(text.to_owned()) {
        Ok(McpMessage { kind: McpKind::Reply { key: answered }, .. }) => answered == *key,
        Ok(_) => false,
        // The machine says what is wrong with it.
        Err(unread) => unread.answers.contains(key),
    }
}

fn is_events(response: &Response) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with(EVENTS))
}

async fn body(mut response: Response) -> Result<String, String> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await.map_err(|error| reason(&error))? {
        if body.len() + piece.len() > MAX_MESSAGE_BYTES {
            return Err(format!("it is longer than {MAX_MESSAGE_BYTES} bytes"));
        }
        body.extend_from_slice(&piece);
    }
    String::from_utf8(body).map_err(|_| "it is not UTF-8".into())
}

/// Why a request failed, without its address.
fn reason(error: &reqwest::Error) -> String {
    let mut text = String::new();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = error.to_string();
        cause = error.source();
    }
    if text.is_empty() { "the connection broke".into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_that_does_not_answer_does_not_hold_the_door() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let (server, end) = RemoteServer::start(&url, ClientHead::default()).unwrap();
        let text = r#"{"id":1,"method":"initialize"}"#.to_owned();
        let (key, method) = (RequestKey::of(&1.into()), Some("initialize".to_owned()));
        end.to.send(ServerBound { text, key, method, name: None, mirrored: Vec::new() }).await.unwrap();
        // It is reached, and says nothing.
        let reached = listener.accept().await.unwrap();
        server.end().await;
        assert!(end.to.is_closed(), "nobody works on it any more");
        drop(reached);
    }

    #[test]
    fn an_answer_is_one_to_what_was_asked() {
        let key = RequestKey::of(&1.into()).unwrap();
        for (text, expected) in [
            (r#"{"id":1,"result":{}}"#, true),
            (r#"{"id":1,"error":{}}"#, true),
            (r#"{"id":1,"result":{},"result":{}}"#, true),
            (r#"{"id":2,"result":{}}"#, false),
            (r#"{"id":1,"method":"ping"}"#, false),
            ("<html>", false),
        ] {
            assert_eq!(answers(text, &key), expected, "{text}");
        }
    }

    #[test]
    fn the_newest_protocol_is_said_with_every_message() {
        let text = format!(r#"{{"params":{{"_meta":{{"{VERSION}":"2026-07-28"}}}}}}"#);
        assert_eq!(version_of(&text).as_deref(), Some("2026-07-28"));
        assert_eq!(version_of(r#"{"params":{}}"#), None);
    }
}
