//! An HTTP client for rmcp that sends calls as they were written, and keeps the text of results.

use std::collections::HashMap;
use std::future::ready;
use std::io;
use std::sync::Arc;

use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt as _};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Response, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::common::http_header::{EVENT_STREAM_MIME_TYPE, HEADER_SESSION_ID, JSON_MIME_TYPE};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};

use crate::wire::news::News;
use crate::wire::outline::outline;
use crate::wire::{MAX_LINE_BYTES, exact, no_answer};

/// Longest body of a failure that is read for the error in it, in bytes: what rmcp reads.
const MAX_ERROR_BYTES: usize = 64 << 10;

type Headers = HashMap<HeaderName, HeaderValue>;
type Failure = StreamableHttpError<reqwest::Error>;
type Events = BoxStream<'static, Result<Sse, SseError>>;

/// The client. What concerns no tool goes rmcp's own way.
#[derive(Clone, Debug)]
pub(crate) struct Exact {
    client: reqwest::Client,
    news: Arc<News>,
}

impl Exact {
    /// One connection over `client`.
    pub(super) fn new(client: reqwest::Client) -> Self {
        Self { client, news: Arc::default() }
    }
}

impl StreamableHttpClient for Exact {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let of_tools = matches!(&message, JsonRpcMessage::Request(request)
            if matches!(request.request, ClientRequest::CallToolRequest(_) | ClientRequest::ListToolsRequest(_)));
        if !of_tools {
            return self.client.post_message(uri, message, session, token, headers).await;
        }
        self.news.sent(&message);
        let body = exact::written(&message)?.to_string();
        let mut request = self.client.post(&*uri).headers(headers.into_iter().collect());
        request = request.header(ACCEPT, [EVENT_STREAM_MIME_TYPE, JSON_MIME_TYPE].join(", "));
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let in_session = session.is_some();
        if let Some(session) = session {
            request = request.header(HEADER_SESSION_ID, &*session);
        }
        let response = request.header(CONTENT_TYPE, JSON_MIME_TYPE).body(body).send().await?;
        answer(response, in_session, &self.news).await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
        _max_sse_event_size: usize,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.post_message(uri, message, session, token, headers).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        self.client.delete_session(uri, session, token, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Events, Failure> {
        let limit = MAX_LINE_BYTES;
        let events = self.client.get_stream_with_max_sse_event_size(uri, session, last, token, headers, limit).await?;
        Ok(noted(events, &self.news))
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
        _max_sse_event_size: usize,
    ) -> Result<Events, Failure> {
        self.get_stream(uri, session, last, token, headers).await
    }
}

/// Events with the text of each result in them, without those that nobody here needs.
fn noted(events: impl Stream<Item = Result<Sse, SseError>> + Send + 'static, news: &Arc<News>) -> Events {
    let news = news.clone();
    let wanted = move |event: Result<Sse, SseError>| {
        let mut event = match event {
            Ok(event) => event,
            Err(error) => return ready(Some(Err(error))),
        };
        if let Some(text) = event.data.take() {
            event.data = match exact::notice(&text) {
                Some(method) if !news.is_wanted(&method) => return ready(None),
                Some(_) | None => Some(readable(text)),
            };
        }
        ready(Some(Ok(event)))
    };
    events.filter_map(wanted).boxed()
}

/// A message as rmcp reads it, the text of its result beside it. One that rmcp would skip, so that whoever asked waited
/// for nothing, becomes an error of what it answers.
fn readable(text: String) -> String {
    let noted = exact::noted_text(&text);
    let shown = noted.as_ref().unwrap_or(&text);
    let Err(why) = serde_json::from_str::<ServerJsonRpcMessage>(shown) else { return noted.unwrap_or(text) };
    let top = outline(&text);
    let id = top.id.filter(|_| !top.has_method).and_then(|id| pintle_domain::json::from_value(id).ok());
    let error = id.and_then(|id| serde_json::to_string(&no_answer(id, &why)).ok());
    error.unwrap_or(text)
}

/// The answer to a request about tools.
async fn answer(response: Response, in_session: bool, news: &Arc<News>) -> Result<StreamableHttpPostResponse, Failure> {
    let status = response.status();
    if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
        return Ok(StreamableHttpPostResponse::Accepted);
    }
    if status == StatusCode::NOT_FOUND && in_session {
        return Err(StreamableHttpError::SessionExpired);
    }
    let header =
        |name| response.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok()).map(str::to_owned);
    let (kind, session) = (header(CONTENT_TYPE), header(HeaderName::from_static(SESSION_ID)));
    let is = |mime: &str| kind.as_deref().is_some_and(|kind| kind.starts_with(mime));
    if let Err(error) = response.error_for_status_ref() {
        let told = if is(JSON_MIME_TYPE) { body(response, MAX_ERROR_BYTES).await.ok() } else { None };
        let told = told.and_then(|body| serde_json::from_slice::<ServerJsonRpcMessage>(&body).ok());
        let is_refusal = !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        return match told {
            Some(message @ JsonRpcMessage::Error(_)) if is_refusal => {
                Ok(StreamableHttpPostResponse::Json(message, session))
            }
            Some(_) | None => Err(StreamableHttpError::Client(error)),
        };
    }
    if is(EVENT_STREAM_MIME_TYPE) {
        let events = SseStream::from_bytes_stream(Box::pin(bounded(response)));
        return Ok(StreamableHttpPostResponse::Sse(noted(events, news), session));
    }
    if !is(JSON_MIME_TYPE) {
        return Err(StreamableHttpError::UnexpectedContentType(kind));
    }
    let text = String::from_utf8_lossy(&body(response, MAX_LINE_BYTES).await?).into_owned();
    let message = serde_json::from_str(&readable(text))?;
    Ok(StreamableHttpPostResponse::Json(message, session))
}

/// [`HEADER_SESSION_ID`] as names of headers are compared.
const SESSION_ID: &str = "mcp-session-id";

/// A body of at most `limit` bytes.
async fn body(mut response: Response, limit: usize) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(piece) = response.chunk().await? {
        if body.len() + piece.len() > limit {
            return Err(StreamableHttpError::ResponseBodyTooLarge { max_size: limit });
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// The bytes of a stream of events, none of which is longer than [`MAX_LINE_BYTES`].
fn bounded(response: Response) -> impl Stream<Item = io::Result<bytes::Bytes>> {
    let mut event = EventLength::default();
    response.bytes_stream().map(move |piece| {
        let piece = piece.map_err(io::Error::other)?;
        if event.after(&piece) > MAX_LINE_BYTES {
            return Err(io::Error::other(format!("an event is longer than {MAX_LINE_BYTES} bytes")));
        }
        Ok(piece)
    })
}

/// How long the event is that has not ended yet, in bytes, to the length of one piece.
#[derive(Default)]
struct EventLength {
    held: usize,
    /// The last byte: servers write the empty line that ends an event by itself.
    last: Option<u8>,
}

impl EventLength {
    fn after(&mut self, piece: &[u8]) -> usize {
        let is_end = |pair: [u8; 2]| matches!(&pair, b"\n\n" | b"\n\r" | b"\r\r");
        let across = self.last.zip(piece.first()).is_some_and(|(last, first)| is_end([last, *first]));
        // What ends within one piece is short, as the piece is.
        let ends = across || piece.windows(2).any(|pair| is_end([pair[0], pair[1]]));
        self.held = if ends { piece.len() } else { self.held + piece.len() };
        self.last = piece.last().copied().or(self.last);
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_ends_at_an_empty_line_however_it_was_cut() {
        for (pieces, held) in [
            (&["data: 1\n\n", "data"][..], 13),
            (&["data: 1\n", "\n", "data"], 5),
            (&["data: 1\r\n", "\r\n"], 2),
            (&["data: 1\r", "\r"], 1),
            (&["data: 1\n", "data: 2\n"], 16),
            (&["data: 1\n", "", "\n"], 1),
        ] {
            let mut event = EventLength::default();
            let last = pieces.iter().map(|piece| event.after(piece.as_bytes())).last();
            assert_eq!(last, Some(held), "{pieces:?}");
        }
    }

    #[test]
    fn an_event_that_rmcp_would_skip_is_an_error_of_what_it_answers() {
        let deep = ["[".repeat(300_000), "]".repeat(300_000)].concat();
        let deep = format!(r#"{{"result":{deep},"jsonrpc":"2.0","id":3}}"#);
        let error = pintle_domain::json::parse(&readable(deep)).unwrap();
        assert_eq!(error["id"], 3);
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("its answer cannot be read: "), "{message}");
        let fine = r#"{"jsonrpc":"2.0","id":3,"result":{"content":[]}}"#;
        assert_eq!(Some(readable(fine.to_owned())), exact::noted_text(fine));
        assert_eq!(readable("no message".to_owned()), "no message");
    }
}
