//! The door over HTTP.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use domain::checkpoint::ObservedEvent;
use futures_util::stream;

use crate::answer::AnswerTo;
use crate::door::{ModelDoor, Room};
use crate::inbound::{self, Refused};
use crate::request::SeenRequest;
use crate::spans::{JsonDocument, Kind};
use crate::strict::folded;
use crate::talk::{Asked, Talk};
use crate::upstream::coming;
use crate::wire::Wire;

/// Largest request: what vendors take, and some.
const MAX_BODY_BYTES: usize = 64 << 20;

/// How long a body may take to come, which holds room meanwhile: clients are on this machine.
const BODY_TIME: Duration = Duration::from_secs(60);

/// Largest answer of a vendor that is an error.
const MAX_ERROR_BYTES: usize = 1 << 20;

/// Header in which a client names its session.
const SESSION: &str = "x-pintle-session";

/// Longest name of a session in that header, in bytes.
const MAX_SESSION_NAME: usize = 200;

/// Header that tells the vendors' libraries not to try again.
const NO_RETRY: &str = "x-should-retry";

/// What is served for `door`, to clients of this machine.
pub fn router(door: Arc<ModelDoor>) -> Router {
    Router::new()
        .route("/door/anthropic/v1/messages", post(messages))
        .route("/door/anthropic/v1/messages/count_tokens", post(count_tokens))
        .route("/door/openai/v1/chat/completions", post(completions))
        .route("/door/openai/v1/responses", post(respond))
        .route("/door/openai/v1/models", get(models))
        .route("/door/gemini/v1beta/models/{action}", post(generate))
        .route("/door/gemini/v1/models/{action}", post(generate))
        .fallback(nothing_here)
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(door)
}

async fn nothing_here(request: Request) -> Response {
    let path = request.uri().path();
    let wire = match path.strip_prefix("/door/").and_then(|path| path.split('/').next()) {
        Some("anthropic") => Wire::Anthropic,
        Some("gemini") => Wire::Gemini,
        Some(_) | None => Wire::OpenAi,
    };
    let hint = "expected a base URL that ends with /door/anthropic, /door/gemini or /door/openai/v1";
    refusal(wire, StatusCode::NOT_FOUND, &format!("there is nothing at {path}; {hint}"))
}

async fn messages(State(door): State<Arc<ModelDoor>>, request: Request) -> Response {
    talk(door, Place::of(Wire::Anthropic, "/v1/messages"), request).await
}

async fn count_tokens(State(door): State<Arc<ModelDoor>>, request: Request) -> Response {
    talk(door, Place { wants_answer: false, ..Place::of(Wire::Anthropic, "/v1/messages/count_tokens") }, request).await
}

async fn completions(State(door): State<Arc<ModelDoor>>, request: Request) -> Response {
    talk(door, Place::of(Wire::OpenAi, "/chat/completions"), request).await
}

async fn respond(State(door): State<Arc<ModelDoor>>, request: Request) -> Response {
    talk(door, Place::of(Wire::Responses, "/responses"), request).await
}

async fn generate(State(door): State<Arc<ModelDoor>>, request: Request) -> Response {
    // The libraries ask in two versions of the same wire: /v1beta/models/MODEL:VERB
    let path = request.uri().path().strip_prefix("/door/gemini").unwrap_or_default().to_owned();
    let action = path.rsplit('/').next().unwrap_or_default();
    let is_plain = |model: &str| model.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
    let (model, verb) = action.split_once(':').filter(|(model, _)| is_plain(model)).unwrap_or_default();
    let wants_answer = match verb {
        "generateContent" => true,
        "streamGenerateContent" => {
            let query = request.uri().query().unwrap_or_default();
            if !query.split('&').any(|part| part == "alt=sse") {
                let why = "a stream comes as events only: ask with `?alt=sse`, as the vendor's libraries do";
                return refusal(Wire::Gemini, StatusCode::BAD_REQUEST, why);
            }
            true
        }
        "countTokens" => false,
        _ => return nothing_here(request).await,
    };
    let place = Place { wants_answer, model: Some(model), ..Place::of(Wire::Gemini, &path) };
    talk(door, place, request).await
}

async fn models(State(door): State<Arc<ModelDoor>>, request: Request) -> Response {
    if let Err((status, why)) = entered(request.headers()) {
        return refusal(Wire::OpenAi, status, &why);
    }
    let path = with_query("/models", &request);
    let (parts, _) = request.into_parts();
    let asked = door.upstream(Wire::OpenAi).ask((Method::GET, &path), &parts.headers, String::new()).await;
    match asked {
        Ok(answer) => through(answer),
        Err(error) => refusal(Wire::OpenAi, StatusCode::BAD_GATEWAY, &error.to_string()),
    }
}

/// A path with the query of a request.
fn with_query(path: &str, request: &Request) -> String {
    request.uri().query().map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"))
}

/// Whether a request may enter: a page in a browser may not, whatever name it has for this machine; what is compressed
/// cannot be read.
pub(crate) fn entered(headers: &HeaderMap) -> Result<(), (StatusCode, String)> {
    let text = |name: header::HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("?").to_owned());
    if let Some(origin) = text(header::ORIGIN) {
        let why = format!("pages in a browser have no door here (`Origin: {origin}`)");
        return Err((StatusCode::FORBIDDEN, why));
    }
    if let Some(site) = headers.get("sec-fetch-site").filter(|site| *site == "cross-site") {
        let why = format!("pages in a browser have no door here (`Sec-Fetch-Site: {}`)", site.to_str().unwrap_or("?"));
        return Err((StatusCode::FORBIDDEN, why));
    }
    let named = text(header::HOST).unwrap_or_default();
    if !is_this_machine(&named) {
        let why = format!("`Host: {named}` does not name this machine; expected 127.0.0.1 or localhost");
        return Err((StatusCode::FORBIDDEN, why));
    }
    if let Some(encoding) = text(header::CONTENT_ENCODING).filter(|encoding| encoding != "identity") {
        let why = format!("the body is compressed ({encoding}); send it as it is");
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    Ok(())
}

fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Where a request goes.
struct Place<'p> {
    wire: Wire,
    /// The path at the vendor.
    path: &'p str,
    /// Whether a model answers there.
    wants_answer: bool,
    /// The model, where it is said beside the body.
    model: Option<&'p str>,
}

impl<'p> Place<'p> {
    /// Where a model answers that the body names.
    const fn of(wire: Wire, path: &'p str) -> Self {
        Self { wire, path, wants_answer: true, model: None }
    }
}

async fn talk(door: Arc<ModelDoor>, place: Place<'_>, request: Request) -> Response {
    let Place { wire, path, wants_answer, model } = place;
    if let Err((status, why)) = entered(request.headers()) {
        return refusal(wire, status, &why);
    }
    let path = with_query(path, &request);
    let (parts, body) = request.into_parts();
    let (body, room) = match taken(&door, wire, &parts.headers, body).await {
        Ok(taken) => taken,
        Err(refused) => return *refused,
    };
    let seen = match wire.read(body) {
        Ok(seen) => SeenRequest { model: model.map_or_else(|| seen.model.clone(), str::to_owned), ..seen },
        Err(error) => return refusal(wire, StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let claim = header(SESSION);
    if claim.is_some_and(|name| name.len() > MAX_SESSION_NAME) {
        let why = format!("`{SESSION}` is longer than {MAX_SESSION_NAME} bytes");
        return refusal(wire, StatusCode::BAD_REQUEST, &why);
    }
    let session = match door.session(wire, &seen, (claim, header("user-agent").unwrap_or_default())).await {
        Ok(session) => session,
        Err(why) => return refusal(wire, StatusCode::FORBIDDEN, &why),
    };
    if session.visited.is_new {
        session.hooks.tell(ObservedEvent::SessionStart);
    }
    if session.visited.is_new_turn {
        session.note_turn();
    }
    let body = match inbound::pass(&session, &seen).await {
        Ok(body) => body,
        Err(Refused(why)) => return refusal(wire, StatusCode::FORBIDDEN, &why),
    };
    let asked = door.upstream(wire).ask((Method::POST, &path), &parts.headers, body.clone()).await;
    let response = match asked {
        Ok(response) => response,
        Err(error) => return refusal(wire, StatusCode::BAD_GATEWAY, &error.to_string()),
    };
    if !response.status().is_success() {
        return failed(wire, response).await;
    }
    if !wants_answer {
        return through(response);
    }
    let streams = match is_events(response.headers()) {
        Ok(streams) => streams,
        Err(why) => return refusal(wire, StatusCode::BAD_GATEWAY, &why),
    };
    let head = coming(response.headers());
    let asked = Asked { path, headers: parts.headers, body, to: AnswerTo::of(&seen, streams), room };
    let talk = Talk::new((door, session), asked, response);
    if streams && !talk.is_reviewed() {
        return with_head(
            head,
            Body::from_stream(stream::unfold(talk, |mut talk| async move {
                let bytes = talk.next().await?;
                Some((Ok::<Bytes, Infallible>(bytes), talk))
            })),
        );
    }
    at_once(wire, head, talk).await
}

/// The body of a request, and the room that it takes.
async fn taken(door: &ModelDoor, wire: Wire, headers: &HeaderMap, body: Body) -> Result<(String, Room), Box<Response>> {
    let refused = |status: StatusCode, why: &str| Box::new(refusal(wire, status, why));
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let too_large = || {
        let why = format!("the body is larger than {MAX_BODY_BYTES} bytes, or was cut off");
        refused(StatusCode::PAYLOAD_TOO_LARGE, &why)
    };
    if length.is_some_and(|length: usize| length > MAX_BODY_BYTES) {
        return Err(too_large());
    }
    // One that does not say how long it is may be as long as any.
    let Some(mut room) = door.room(length.unwrap_or(MAX_BODY_BYTES)) else {
        let mut busy = refused(StatusCode::SERVICE_UNAVAILABLE, "the door works as many requests as it can; try again");
        busy.headers_mut().remove(NO_RETRY);
        busy.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        return Err(busy);
    };
    let Ok(body) = tokio::time::timeout(BODY_TIME, axum::body::to_bytes(body, MAX_BODY_BYTES)).await else {
        let why = format!("the body did not come within {} s", BODY_TIME.as_secs());
        return Err(refused(StatusCode::REQUEST_TIMEOUT, &why));
    };
    let body = body.map_err(|_| too_large())?;
    room.shrink(body.len());
    let body = String::from_utf8(body.into());
    Ok((body.map_err(|_| refused(StatusCode::BAD_REQUEST, "the body is not UTF-8"))?, room))
}

/// An answer that begins when all of it is known.
async fn at_once(wire: Wire, head: HeaderMap, mut talk: Talk) -> Response {
    let all = talk.whole().await;
    if let Some(why) = &talk.broken {
        return refusal(wire, StatusCode::BAD_GATEWAY, why);
    }
    if talk.is_reviewed()
        && let Err(why) = talk.review().await
    {
        return refusal(wire, StatusCode::FORBIDDEN, &why);
    }
    with_head(head, Body::from(all))
}

fn with_head(head: HeaderMap, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.headers_mut() = head;
    response
}

/// Whether an answer comes as events.
fn is_events(headers: &HeaderMap) -> Result<bool, String> {
    let mut kinds = headers.get_all(header::CONTENT_TYPE).iter();
    let kind = kinds.next().map_or(Ok(""), HeaderValue::to_str);
    let (Ok(kind), None) = (kind, kinds.next()) else {
        return Err("the answer has a content type that two readers may read differently".into());
    };
    let mut parts = kind.split(';').map(|part| part.trim().to_ascii_lowercase());
    let streams = parts.next().as_deref() == Some("text/event-stream");
    for part in parts {
        let Some((name, value)) = part.split_once('=') else { continue };
        let value = value.trim().trim_matches('"');
        if name.trim() == "charset" && !matches!(value, "utf-8" | "utf8") {
            return Err(format!("the answer is written in `{value}`, expected UTF-8"));
        }
    }
    Ok(streams)
}

/// An error of the vendor: it goes on as it is, unless a client could read a model's words in it.
async fn failed(wire: Wire, answer: reqwest::Response) -> Response {
    let (status, head) = (answer.status(), coming(answer.headers()));
    let said = |why: &str| {
        refusal(wire, StatusCode::BAD_GATEWAY, &format!("the vendor answered {}, and {why}", status.as_u16()))
    };
    match is_events(answer.headers()) {
        Ok(false) => {}
        Ok(true) => return said("its answer comes as events, as no error should"),
        Err(why) => return said(&why),
    }
    let body = Body::from_stream(answer.bytes_stream());
    let Ok(body) = axum::body::to_bytes(body, MAX_ERROR_BYTES).await else {
        return said(&format!("its answer is larger than {MAX_ERROR_BYTES} bytes, or was cut off"));
    };
    if !is_error(&body) {
        return said("its answer could be read as one of a model");
    }
    let mut response = with_head(head, Body::from(body));
    *response.status_mut() = status;
    response
}

/// Whether nobody can read a model's words in `body`.
fn is_error(body: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(body) else { return false };
    let text = text.trim_start_matches('\u{feff}').trim();
    if !text.starts_with('{') {
        return true;
    }
    let Ok(document) = JsonDocument::read(text.to_owned()) else { return false };
    let Kind::Object(members) = &document.root.kind else { return false };
    // A message that is a text is one of an error.
    let is_word = |(name, node): &(String, _)| match folded(name).as_str() {
        "choices" | "content" | "candidates" | "output" => true,
        "message" => document.string(node).is_none(),
        _ => false,
    };
    !members.iter().any(is_word)
}

/// An answer that nobody here needs to understand.
fn through(answer: reqwest::Response) -> Response {
    let (status, head) = (answer.status(), coming(answer.headers()));
    let mut response = with_head(head, Body::from_stream(answer.bytes_stream()));
    *response.status_mut() = status;
    response
}

fn refusal(wire: Wire, status: StatusCode, why: &str) -> Response {
    let mut response = Response::new(Body::from(wire.error(status.as_u16(), why)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // Whoever asks again is answered the same.
    response.headers_mut().insert(NO_RETRY, HeaderValue::from_static("false"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_from_an_answer() {
        for (body, expected) in [
            (r#"{"error":{"message":"no","type":"x"}}"#, true),
            (r#"{"type":"error","error":{"type":"overloaded_error","message":"wait"}}"#, true),
            (r#"{"message":"no key"}"#, true),
            (r#"{"error":"model not found"}"#, true),
            ("<html>gateway</html>", true),
            ("", true),
            (r#"{"choices":[]}"#, false),
            (r#" {"Choices":[]}"#, false),
            ("\u{feff}{\"content\":[]}", false),
            (r#"{"message":{"tool_calls":[]}}"#, false),
            (r#"{"candidates":null}"#, false),
            (r#"{"error":{"message":"no"},"output":[]}"#, false),
            (r#"{"error":1,"error":2}"#, false),
            ("{", false),
        ] {
            assert_eq!(is_error(body.as_bytes()), expected, "{body}");
        }
        assert!(!is_error(b"\xff\xfe{\0"));
    }

    #[test]
    fn an_answer_is_utf_8_and_of_one_kind() {
        let of = |kinds: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for kind in kinds {
                headers.append(header::CONTENT_TYPE, HeaderValue::from_static(kind));
            }
            is_events(&headers).ok()
        };
        for (kinds, expected) in [
            (&[][..], Some(false)),
            (&["application/json"][..], Some(false)),
            (&["text/event-stream"], Some(true)),
            (&["Text/Event-Stream; charset=\"UTF-8\""], Some(true)),
            (&["application/json;charset=utf-8"], Some(false)),
            (&["application/json; charset=utf-16"], None),
            (&["text/event-stream; Charset=iso-8859-1"], None),
            (&["application/json", "text/event-stream"], None),
        ] {
            assert_eq!(of(kinds), expected, "{kinds:?}");
        }
    }

    #[test]
    fn pages_have_no_door() {
        for (name, value, is_let_in) in [
            ("user-agent", "x", true),
            ("sec-fetch-site", "same-origin", true),
            ("sec-fetch-site", "cross-site", false),
            ("origin", "http://localhost", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static("localhost"));
            headers.insert(name, HeaderValue::from_static(value));
            assert_eq!(entered(&headers).is_ok(), is_let_in, "{name}: {value}");
        }
    }

    #[test]
    fn only_names_of_this_machine_are_let_in() {
        for (host, is_known) in [
            ("127.0.0.1:8080", true),
            ("localhost", true),
            ("[::1]:80", true),
            ("127.9.9.9", true),
            ("rebound.example:8080", false),
            ("localhost.example", false),
            ("10.0.0.1", false),
            ("", false),
        ] {
            assert_eq!(is_this_machine(host), is_known, "{host}");
        }
    }
}
