//! One message of a client, handed over, and the stream on which it is answered.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio_util::task::TaskTracker;

use super::renamed::{Renamed, error_code};
use super::streams::MAX_KEPT;
use super::{ClientSession, Listener, SESSION, bare, lock, refused, said};
use crate::mcp::ends::FromClient;
use crate::mcp::message::{McpKind, McpMessage, RequestKey, error_reply};
use crate::mcp::proxy::ClientBound;

/// How long the head of an answer waits for its first message: that says whether whoever asks has to sign in first, or
/// asked a child that does not know their protocol, and whether there are others before the answer. What takes longer is a
/// call that waits for a person, or works.
const HEAD_TIME: Duration = Duration::from_secs(10);

/// With what a client of the newest protocol asks whether a server knows it. Source: MCP of 2026-07-28.
const DISCOVER: &str = "server/discover";

/// The code of an error: a method that is not there. Source: JSON-RPC 2.0.
const METHOD_NOT_FOUND: i32 = -32601;

/// How a message is answered.
pub(super) struct AnswerHead {
    /// The session that the client goes on with.
    pub(super) id: Option<String>,
    pub(super) lasts: Lasts,
    /// The names that it has for its client, where those at the server are the door's.
    pub(super) renamed: Option<Renamed>,
    /// The door, as the client reaches it.
    pub(super) own: String,
}

/// What ends where a client closes the stream of its request.
#[derive(Clone, Copy)]
pub(super) enum Lasts {
    /// Nothing: it has a session, and lost a connection.
    Session,
    /// The request.
    Request,
    /// The request and its session, which was there for it alone.
    Once,
}

/// Hands a message over, and answers with what comes of it.
pub(super) async fn exchange(
    (listener, session): (&Listener, ClientSession),
    message: McpMessage,
    head: AnswerHead,
) -> Response {
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
    let AnswerHead { id, lasts, renamed, own } = head;
    // Before anything is waited for: a client may leave at any moment.
    let left = Leaving { key, session: session.clone(), lasts, tasks: listener.tasks.clone() };
    if session.to_hub.send(FromClient::Message(message.document.text)).await.is_err() {
        return refused(StatusCode::NOT_FOUND, &request, GONE);
    }
    let first = tokio::time::timeout(HEAD_TIME, from.recv()).await.ok().flatten();
    if let Some(renamed) = &renamed
        && let Some(response) = unknown_to_child(renamed, (&method, first.as_ref()))
    {
        return response;
    }
    let wanted =
        first.as_ref().and_then(|first| Some((listener.sign_in.as_ref()?, first.wants.as_ref()?, &first.text)));
    if let Some((sign_in, wants, text)) = wanted {
        if let Some(id) = id.filter(|_| method == "initialize") {
            lock(&listener.sessions).remove(&id);
        }
        return sign_in.wanted(wants, (&own, text.clone()));
    }
    let mut response = match first {
        // There is no other message: clients read a long document, and not a long event.
        Some(ClientBound { text, is_answer: true, .. }) => match &renamed {
            Some(renamed) => said(StatusCode::OK, renamed.back(text)),
            None => said(StatusCode::OK, text),
        },
        first => events((first, renamed), from, Some(left)),
    };
    if let Some(id) = id.and_then(|id| HeaderValue::from_str(&id).ok()) {
        response.headers_mut().insert(SESSION, id);
    }
    response
}

/// What a client of the newest protocol is answered where the child does not know what it asks, by the status from which
/// it concludes that the child wants a session. A child that does not know the protocol may as well say nothing.
fn unknown_to_child(renamed: &Renamed, (method, first): (&str, Option<&ClientBound>)) -> Option<Response> {
    match first {
        Some(first) if first.is_answer && error_code(&first.text) == Some(METHOD_NOT_FOUND) => {
            Some(said(StatusCode::NOT_FOUND, renamed.back(first.text.clone())))
        }
        Some(_) => None,
        None if method == DISCOVER => {
            let why = "the server does not answer without a session: begin with `initialize`";
            Some(said(StatusCode::NOT_FOUND, error_reply(renamed.id(), METHOD_NOT_FOUND, why)))
        }
        None => None,
    }
}

/// What is said where a session's server is gone.
const GONE: &str = "the server of this session is gone; begin a new one";

/// Notices a client that closes the stream of its request.
pub(super) struct Leaving {
    key: RequestKey,
    session: ClientSession,
    lasts: Lasts,
    /// What is waited for at the end of the door.
    tasks: TaskTracker,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let was_open = lock(&self.session.streams).of.remove(&self.key).is_some();
        let is_over = match self.lasts {
            // A client that lost its connection did not say that it does not wait.
            Lasts::Session => return,
            Lasts::Request => false,
            Lasts::Once => true,
        };
        let told = was_open.then(|| self.session.to_hub.try_send(FromClient::Left(self.key.clone())));
        // Where there is no room now, it is told later: else a call that waits for a person would run for nobody.
        if let Some(Err(TrySendError::Full(left))) = told
            && let Ok(runtime) = Handle::try_current()
        {
            let to_hub = self.session.to_hub.clone();
            self.tasks.spawn_on(async move { to_hub.send(left).await.ok() }, &runtime);
        }
        if is_over {
            self.session.stop.cancel();
        }
    }
}

/// The messages of a stream, of which `first` came already, in the names that they have for its client.
pub(super) fn events(
    (first, renamed): (Option<ClientBound>, Option<Renamed>),
    from: mpsc::Receiver<ClientBound>,
    left: Option<Leaving>,
) -> Response {
    let stream = stream::unfold((first, renamed, from, left), |(first, renamed, mut from, left)| async move {
        let message = match first {
            Some(message) => message,
            None => from.recv().await?,
        };
        let text = match &renamed {
            Some(renamed) => renamed.back(message.text),
            None => message.text,
        };
        Some((Ok::<Bytes, Infallible>(event(&text)), (None, renamed, from, left)))
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

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Instant;

    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::mcp::remote::ClientHead;

    #[tokio::test]
    async fn who_leaves_is_heard_of_although_there_is_no_room() {
        let (to_hub, mut from) = mpsc::channel(1);
        to_hub.send(FromClient::Message("a".into())).await.unwrap();
        let (stop, used) = (CancellationToken::new(), Arc::new(Mutex::new(Instant::now())));
        let session = ClientSession { to_hub, streams: Arc::default(), head: ClientHead::default(), stop, used };
        let key = RequestKey::of(&"a".into()).unwrap();
        assert!(lock(&session.streams).begin(key.clone(), mpsc::channel(1).0));
        drop(Leaving { key: key.clone(), session, lasts: Lasts::Request, tasks: TaskTracker::new() });
        assert!(matches!(from.recv().await, Some(FromClient::Message(_))));
        assert!(matches!(from.recv().await, Some(FromClient::Left(left)) if left == key));
    }
}
