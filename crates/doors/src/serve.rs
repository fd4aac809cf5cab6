//! The door over HTTP.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use futures_util::stream;
use pintle_domain::checkpoint::ObservedEvent;
use url::form_urlencoded;

use crate::answer::AnswerTo;
use crate::body::taken;
use crate::door::{ClientSays, DoorGuest, DoorHost, Held, ModelDoor, Overspent, Session};
use crate::entrance::{from_this_machine, no_page};
use crate::inbound::{self, Refused};
use crate::keeper::ChainOwner;
use crate::reply::{SHOULD_RETRY, nothing_at, refusal, turned_away};
use crate::request::{BadRequest, SeenRequest};
use crate::spans::{JsonDocument, Kind};
use crate::strict::folded;
use crate::talk::{Asked, Talk};
use crate::tokens::Tokens;
use crate::upstream::{DoorKey, UpstreamError, coming};
use crate::wire::Wire;

/// Largest answer of a vendor that is an error.
const MAX_ERROR_BYTES: usize = 1 << 20;

/// Header in which a client names its session.
const SESSION: &str = "x-pintle-session";

/// Longest name of a session in that header, in bytes.
const MAX_SESSION_NAME: usize = 200;

/// What is served for `door` to whoever was let in: to each request with a [`DoorGuest`].
pub fn router(door: Arc<ModelDoor>) -> Router {
    Router::new()
        .route("/door/anthropic/v1/messages", post(messages))
        .route("/door/anthropic/v1/messages/count_tokens", post(count_tokens))
        .route("/door/anthropic/v1/models", get(models))
        .route("/door/anthropic/v1/models/{id}", get(models))
        .route("/door/openai/v1/chat/completions", post(completions))
        .route("/door/openai/v1/responses", post(respond))
        .route("/door/openai/v1/responses/input_tokens", post(count_input))
        .route("/door/openai/v1/models", get(models))
        .route("/door/openai/v1/models/{id}", get(models))
        .route("/door/gemini/v1beta/models", get(models))
        .route("/door/gemini/v1/models", get(models))
        .route("/door/gemini/v1beta/models/{action}", post(generate).get(models))
        .route("/door/gemini/v1/models/{action}", post(generate).get(models))
        .fallback(nothing_here)
        .method_not_allowed_fallback(wrong_method)
        .with_state(door)
}

/// What is served for `door` to clients of this machine, whose hooks are those of `host`.
pub fn local(door: Arc<ModelDoor>, host: Arc<dyn DoorHost>) -> Router {
    let (tenant, space, payer) = (String::new(), String::new(), String::new());
    let guest = DoorGuest { host, tenant, space, payer, key: DoorKey::OfClient };
    router(door).layer(middleware::from_fn(move |mut request: Request, next: Next| {
        let guest = guest.clone();
        async move {
            if let Err((status, why)) = from_this_machine(request.headers()) {
                return turned_away(request.uri().path(), status, &why);
            }
            request.extensions_mut().insert(guest);
            next.run(request).await
        }
    }))
}

async fn nothing_here(request: Request) -> Response {
    nothing_at(request.uri().path())
}

/// The router names in `Allow` what the path takes.
async fn wrong_method(request: Request) -> Response {
    let why = "the path takes other methods; `Allow` names them";
    turned_away(request.uri().path(), StatusCode::METHOD_NOT_ALLOWED, why)
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

async fn count_input(State(door): State<Arc<ModelDoor>>, request: Request) -> Response {
    talk(door, Place { wants_answer: false, ..Place::of(Wire::Responses, "/responses/input_tokens") }, request).await
}

async fn generate(State(door): State<Arc<ModelDoor>>, request: Request) -> Response {
    // Before anything is said of what there is.
    if let Err((status, why)) = no_page(request.headers()) {
        return refusal(Wire::Gemini, status, &why);
    }
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
    let path = request.uri().path().to_owned();
    let (wire, place) = match (path.strip_prefix("/door/anthropic"), path.strip_prefix("/door/gemini")) {
        (Some(place), _) => (Wire::Anthropic, place),
        (None, Some(place)) => (Wire::Gemini, place),
        (None, None) => (Wire::OpenAi, path.strip_prefix("/door/openai/v1").unwrap_or_default()),
    };
    let last = place.rsplit('/').next().unwrap_or_default();
    if wire == Wire::Gemini && last.contains(':') {
        // What a model does is asked for with a body.
        let mut response = wrong_method(request).await;
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
        return response;
    }
    // Where the last part leads out of the models, the vendor would be asked for something else.
    let is_plain = last.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '@'));
    if !is_plain || last.chars().all(|c| c == '.') {
        return nothing_here(request).await;
    }
    list(door, (wire, place), request).await
}

/// The models that the vendor of `wire` has, which it says at `path`.
async fn list(door: Arc<ModelDoor>, (wire, path): (Wire, &str), request: Request) -> Response {
    let guest = match guest(&request) {
        Ok(guest) => guest,
        Err((status, why)) => return refusal(wire, status, &why),
    };
    let path = with_query(path, &request, guest.key);
    let upstream = door.upstream(wire);
    let asked = match upstream.head(request.headers(), guest.key) {
        Ok(head) => upstream.ask((Method::GET, &path), head, String::new()).await,
        Err(error) => Err(error),
    };
    match asked {
        Ok(answer) => through(answer),
        Err(error) => unanswered(wire, &error),
    }
}

/// The refusal of a request that the vendor did not answer. Where nobody was reached, asking again may help.
fn unanswered(wire: Wire, error: &UpstreamError) -> Response {
    let mut response = refusal(wire, StatusCode::BAD_GATEWAY, &error.to_string());
    if matches!(error, UpstreamError::Unreached { unsent: true, .. }) {
        response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static("true"));
    }
    response
}

/// Whoever speaks, if they were let in and no page in a browser sends it.
fn guest(request: &Request) -> Result<DoorGuest, (StatusCode, String)> {
    no_page(request.headers())?;
    let nobody = || (StatusCode::FORBIDDEN, "nobody said whose hooks are asked".to_owned());
    request.extensions().get::<DoorGuest>().cloned().ok_or_else(nobody)
}

/// A path with the query of a request: without the key in it, where that of the door goes.
fn with_query(path: &str, request: &Request, key: DoorKey) -> String {
    let is_key =
        |part: &&str| form_urlencoded::parse(part.as_bytes()).any(|(name, _)| matches!(&*name, "access_token" | "key"));
    let goes = |part: &&str| key == DoorKey::OfClient || !is_key(part);
    let parts: Vec<&str> = request.uri().query().unwrap_or_default().split('&').filter(goes).collect();
    let query = parts.join("&");
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

/// Where a request goes.
#[derive(Clone, Copy)]
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
    let Place { wire, path, wants_answer, .. } = place;
    let guest = match guest(&request) {
        Ok(guest) => guest,
        Err((status, why)) => return refusal(wire, status, &why),
    };
    let path = with_query(path, &request, guest.key);
    let (parts, body) = request.into_parts();
    let (body, room) = match taken((&*door, guest.tenant.as_str()), wire, &parts.headers, body).await {
        Ok(taken) => taken,
        Err(refused) => return *refused,
    };
    let going = match door.upstream(wire).head(&parts.headers, guest.key) {
        Ok(head) => head,
        Err(error) => return refusal(wire, StatusCode::BAD_GATEWAY, &error.to_string()),
    };
    let (seen, owner) = match read(&door, &guest, place, &parts.headers, body) {
        Ok(read) => read,
        Err(error) => return refusal(wire, StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let session = match session(&door, &guest, (wire, &seen), &parts.headers).await {
        Ok(session) => session,
        Err(refused) => return *refused,
    };
    let held = match held(&session, &seen, wants_answer).await {
        Ok(held) => held,
        Err(refused) => return *refused,
    };
    let body = match inbound::pass(&session, &seen).await {
        Ok(body) => body,
        Err(Refused(why)) => return refusal(wire, StatusCode::FORBIDDEN, &why),
    };
    let asked = door.upstream(wire).ask((Method::POST, &path), going.clone(), body.clone()).await;
    let response = match asked {
        Ok(response) => response,
        Err(error) => return unanswered(wire, &error),
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
    let chain = (owner, seen.chained(&session.visit.session));
    let asked = Asked { path, head: going, body, to: AnswerTo::of(&seen, streams), room, held, chain };
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

/// What a request says, with what is known of the answer that it goes on from; and who may go on from its own.
fn read(
    door: &ModelDoor,
    guest: &DoorGuest,
    place: Place<'_>,
    headers: &HeaderMap,
    body: String,
) -> Result<(SeenRequest, ChainOwner), BadRequest> {
    let seen = place.wire.read(body)?;
    let model = place.model.map_or_else(|| seen.model.clone(), str::to_owned);
    let claims = (text_of(headers, SESSION).unwrap_or_default(), seen.claim.as_deref().unwrap_or_default());
    let owner = ChainOwner::new([&guest.space, &guest.payer, claims.0, claims.1]);
    Ok((door.known(&owner, SeenRequest { model, ..seen })?, owner))
}

/// The text of the header `name`, if it is one.
fn text_of<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// What the answer may come to, held, if there is one to come.
async fn held(session: &Session, seen: &SeenRequest, wants_answer: bool) -> Result<Vec<Held>, Box<Response>> {
    if !wants_answer {
        return Ok(Vec::new());
    }
    let most = Tokens::most(&seen.document, seen.tokens_before());
    let held = session.hold(most, &[]).await.map_err(|Overspent { why, for_now }| {
        // Libraries send again what they are told 429 of.
        let status = if for_now { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::FORBIDDEN };
        Box::new(refusal(session.wire, status, &why))
    });
    held.map(|held| vec![held])
}

/// The session of a request, told that it goes on.
async fn session(
    door: &ModelDoor,
    guest: &DoorGuest,
    (wire, seen): (Wire, &SeenRequest),
    headers: &HeaderMap,
) -> Result<Session, Box<Response>> {
    let claim = text_of(headers, SESSION);
    if claim.is_some_and(|name| name.len() > MAX_SESSION_NAME) {
        let why = format!("`{SESSION}` is longer than {MAX_SESSION_NAME} bytes");
        return Err(Box::new(refusal(wire, StatusCode::BAD_REQUEST, &why)));
    }
    let says = ClientSays { claim, user_agent: text_of(headers, "user-agent").unwrap_or_default() };
    let session = door.session(guest, (wire, seen), says).await;
    let session = session.map_err(|why| Box::new(refusal(wire, StatusCode::FORBIDDEN, &why)))?;
    if session.visited.is_new {
        session.hooks.tell(ObservedEvent::SessionStart);
    }
    if session.visited.is_new_turn {
        session.note_turn();
    }
    if let Some(why) = inbound::hidden(&session, seen) {
        return Err(Box::new(refusal(wire, StatusCode::BAD_REQUEST, why)));
    }
    Ok(session)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_could_not_be_reached_may_be_asked_again() {
        let unreached =
            |unsent| UpstreamError::Unreached { origin: "http://x".to_owned(), cause: "no".to_owned(), unsent };
        let redirect = UpstreamError::Redirect("http://x".to_owned());
        for (error, again) in [(unreached(true), "true"), (unreached(false), "false"), (redirect, "false")] {
            assert_eq!(unanswered(Wire::OpenAi, &error).headers()[SHOULD_RETRY], again);
        }
    }

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
}
