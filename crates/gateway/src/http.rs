//! What is served over HTTP: the socket, the console, and whether the server is alive and ready.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::{DefaultBodyLimit, Extension, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};
use pintle_domain::json::json;
use pintle_doors::Vendor;
use pintle_doors::reply::vendor_at;

mod auth;
mod body;
mod console;
mod dialect;
mod media;
mod metrics;
mod models;
mod openapi;
mod other_pages;
mod refused;
mod reply;
mod talk;
mod team;
mod unread;

use dialect::Wire;
use refused::{Refused, refusal};
use reply::answer;

use crate::Shared;
use crate::claim::cookies;
use crate::door::{Door, FORBIDDEN_ORIGIN, OtherEnd, Peer, RequestId, TurnedAway, Visit, one_host};
use crate::model_doors;
use crate::served::{Responder, is_page, routes, verbs_at};
use crate::socket::{self, Arrival, MAX_MESSAGE_BYTES};

/// How much is read from a socket at once, and written: a frame of a conversation, in most cases. It is kept for each
/// connection.
const SOCKET_BUFFER: usize = 4 << 10;

/// Longest refusal in plain text that is told on, in bytes: a sentence.
const MAX_REFUSAL: usize = 1 << 10;

/// Everything that is served: the table of routes, and nothing besides.
pub(crate) fn router(shared: Arc<Shared>, door: Door) -> Router {
    let all = routes().fold(Router::new(), |all, route| all.route(route.path, responder(route.by)));
    behind_the_door(all.layer(DefaultBodyLimit::max(shared.desk.limits.max_body)), shared, door)
}

/// What is served at `gateway.metrics_listen`: nothing but numbers, and to anybody who is let in.
pub(crate) fn numbers(shared: Arc<Shared>, door: Door) -> Router {
    behind_the_door(Router::new().route("/metrics", get(metrics::show_to_anybody)), shared, door)
}

/// What carries a request out.
fn responder(by: Responder) -> MethodRouter<Arc<Shared>> {
    match by {
        Responder::Alive => get(alive),
        Responder::Ready => get(ready),
        Responder::Metrics => get(metrics::show),
        Responder::Document => get(openapi::show),
        Responder::Models => get(models::list),
        Responder::Model => get(models::one),
        Responder::Completions => post(talk::completions),
        Responder::Messages => post(talk::messages),
        Responder::AddMedium => post(media::add),
        Responder::Medium => get(media::get),
        Responder::TeamRules => get(team::rules),
        Responder::TeamRecords => post(team::records),
        Responder::Exchange => post(auth::exchange),
        Responder::SignIn => post(auth::sign_in),
        Responder::SignOut => post(auth::sign_out),
        Responder::Switch => post(auth::switch),
        Responder::Vendor => post(model_doors::talk),
        Responder::VendorModels => get(model_doors::talk),
        Responder::Socket => get(upgrade),
        Responder::Page => get(console::page),
        Responder::Asset => get(console::asset),
        Responder::Icon => get(console::icon),
    }
}

/// Whatever is served goes through the door first.
fn behind_the_door(routes: Router<Arc<Shared>>, shared: Arc<Shared>, door: Door) -> Router {
    let (door, counted) = (Arc::new(door), shared.clone());
    let enters = move |request: Request, next: Next| enter((door.clone(), counted.clone()), request, next);
    routes.fallback(nothing_here).layer(middleware::from_fn(enters)).with_state(shared)
}

/// Lets a request in, or answers it with why not; every answer has an id.
async fn enter(
    (door, shared): (Arc<Door>, Arc<Shared>),
    mut request: Request,
    next: Next,
) -> Result<Response, Infallible> {
    let (began, path) = (Instant::now(), request.uri().path().to_owned());
    let id = uuid::Uuid::now_v7().to_string();
    let peer = request.extensions().get::<Peer>().copied().unwrap_or(Peer::Unix {
        own: false,
        of_agent: true,
        other_end: OtherEnd::Unknown,
    });
    let is_page = request.method() == Method::GET && is_page(&path);
    let hint = base_hint(&path);
    let address = request.uri().clone();
    let one_host = one_host(&address, request.headers_mut());
    let entered = match is_page {
        true => door.open_page(peer, request.headers()),
        false => door.enter(peer, request.headers()),
    };
    let other_page = entered.as_ref().ok().and_then(|visit| other_pages::origin(*visit, request.headers()));
    let asked_first = other_page.as_ref().and_then(|_| other_pages::preflight(request.method(), request.headers()));
    let (request, rest) = unread::watched(request);
    let mut response = match (one_host, entered) {
        (Ok(()), Ok(visit)) => {
            let mut request = request;
            request.extensions_mut().insert(visit);
            request.extensions_mut().insert(RequestId(id.clone()));
            match asked_first {
                Some(answer) => answer,
                None => with_code(next.run(request).await, &path, &hint).await,
            }
        }
        (Err(why), _) => {
            drop(request);
            refusal_at(&path, StatusCode::BAD_REQUEST, "invalid_request", &why)
        }
        (Ok(()), Err(TurnedAway(why))) => {
            drop(request);
            refusal_at(&path, StatusCode::FORBIDDEN, FORBIDDEN_ORIGIN, &why)
        }
    };
    // One that came too slowly is not waited for any longer.
    if response.status().is_client_error() && response.status() != StatusCode::REQUEST_TIMEOUT {
        rest.drain().await;
    }
    shared.runs.counters.request(&path, response.status().as_u16(), began.elapsed());
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&id) {
        // Each of the two published ways has a name of its own for it.
        if Wire::at(&path) == Some(Wire::Anthropic) {
            headers.insert("request-id", id.clone());
        }
        // That of a vendor is what the vendor can be asked about.
        if matches!(vendor_at(&path), Some(Vendor::Anthropic)) && !headers.contains_key("request-id") {
            headers.insert("request-id", id.clone());
        }
        if !path.starts_with("/door/") || !headers.contains_key("x-request-id") {
            headers.insert("x-request-id", id);
        }
    }
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Some(origin) = other_page {
        other_pages::may_read(headers, origin);
    }
    Ok(response)
}

/// What refuses a request before anything here sees it says so in plain text, or not at all; such a refusal gets a code.
async fn with_code(response: Response, path: &str, hint: &str) -> Response {
    let (parts, body) = response.into_parts();
    let kind = parts.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    // What a vendor refuses goes on in its own words.
    let is_vendors = vendor_at(path).is_some() && parts.status != StatusCode::METHOD_NOT_ALLOWED;
    if !parts.status.is_client_error() || is_vendors || kind.is_some_and(|kind| !kind.starts_with(b"text/plain")) {
        return Response::from_parts(parts, body);
    }
    // A page of the console stands where the client meant something else.
    if parts.status == StatusCode::METHOD_NOT_ALLOWED && !hint.is_empty() {
        return nothing_at(path, hint);
    }
    let code = match parts.status {
        StatusCode::METHOD_NOT_ALLOWED => "method_not_allowed",
        StatusCode::PAYLOAD_TOO_LARGE => "body_too_large",
        _ => "invalid_request",
    };
    let said = axum::body::to_bytes(body, MAX_REFUSAL).await.unwrap_or_default();
    // The router names the verbs in a header that is added behind this.
    let verbs = verbs_at(path);
    let message = if !said.is_empty() {
        String::from_utf8_lossy(&said).into_owned()
    } else if parts.status == StatusCode::METHOD_NOT_ALLOWED && !verbs.is_empty() {
        format!("{path} takes {verbs} only")
    } else {
        parts.status.canonical_reason().unwrap_or_default().to_owned()
    };
    refusal_at(path, parts.status, code, &format!("{message}{hint}"))
}

async fn alive() -> Response {
    answer(StatusCode::OK, &json!({ "status": "ok" }))
}

/// Whether turns can be begun: the parts by name.
async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    let is_read = shared.blocking(|shared| Ok(shared.store.epoch()?)).await.is_ok();
    // While every gate is shut, no turn gets further than its prompt.
    let store = is_read && shared.host.read().await.host_rules.rule_cache().why_shut().is_none();
    let goes = !shared.life.not_ready.is_cancelled();
    let status = if store && goes { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let word = |good: bool| if good { "ok" } else { "not ok" };
    answer(status, &json!({ "store": word(store), "serving": word(goes) }))
}

async fn upgrade(
    State(shared): State<Arc<Shared>>,
    Extension(visit): Extension<Visit>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    let arrival = Arrival { visit, cookies: cookies(&headers) };
    let upgrade = upgrade
        .max_message_size(MAX_MESSAGE_BYTES)
        .max_frame_size(MAX_MESSAGE_BYTES)
        .read_buffer_size(SOCKET_BUFFER)
        .write_buffer_size(0);
    upgrade.on_upgrade(move |socket| socket::serve(shared, socket, arrival))
}

async fn nothing_here(request: Request) -> Response {
    let path = request.uri().path().to_owned();
    let headers = (request.method() == Method::GET).then(|| request.headers().clone());
    drop(request);
    match (vendor_at(&path), headers) {
        (Some(_), _) => pintle_doors::reply::nothing_at(&path),
        (None, Some(headers)) if Wire::at(&path).is_none() && console::wants_page(&headers) => {
            console::no_page(headers).await
        }
        (None, _) => nothing_at(&path, &base_hint(&path)),
    }
}

fn nothing_at(path: &str, hint: &str) -> Response {
    refusal_at(path, StatusCode::NOT_FOUND, "not_found", &format!("there is nothing at {path}{hint}"))
}

/// A refusal in the words that are spoken at `path`.
fn refusal_at(path: &str, status: StatusCode, code: &str, message: &str) -> Response {
    match Wire::at(path) {
        Some(wire) => wire.refusal(&Refused::plain(status, code, message)),
        None => refusal(status, code, message),
    }
}

/// What to do where a client was given an address without the version, or with two, or asks in a way that no agent
/// answers in.
fn base_hint(path: &str) -> String {
    let rest = path.strip_prefix("/v1").unwrap_or(path);
    if ["/responses", "/completions"].iter().any(|other| rest == *other || rest.starts_with(&format!("{other}/"))) {
        return "; an agent answers as chat completions do, at /v1/chat/completions".to_owned();
    }
    let is_api = |path: &str| {
        ["/chat/completions", "/messages", "/models", "/media"].iter().any(|known| path.starts_with(known))
    };
    match path.strip_prefix("/v1/v1") {
        Some(rest) if is_api(rest) => {
            format!("; the API is at /v1{rest}: this client adds /v1 by itself, so end the base URL before it")
        }
        None if is_api(path) => format!("; the API is at /v1{path}: end the base URL with /v1"),
        Some(_) | None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_without_the_version_or_with_two_says_what_is_meant() {
        for (path, hint) in [
            ("/messages", "; the API is at /v1/messages: end the base URL with /v1"),
            (
                "/v1/v1/messages",
                "; the API is at /v1/messages: this client adds /v1 by itself, so end the base URL before it",
            ),
            ("/v1/else", ""),
            ("/v1/responses", "; an agent answers as chat completions do, at /v1/chat/completions"),
            ("/responses/resp_1", "; an agent answers as chat completions do, at /v1/chat/completions"),
            ("/v1/responses_of_others", ""),
            ("/v1/v1/else", ""),
        ] {
            assert_eq!(base_hint(path), hint);
        }
    }
}
