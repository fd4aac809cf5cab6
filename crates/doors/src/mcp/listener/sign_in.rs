//! Where clients of a server over HTTP sign in: what they ask the door, it asks in their place, and says it of itself.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::{get, post};
use url::Url;

use super::oauth::{
    AUTHORIZE, ISSUER, IssuerMetadata, OPENID, PUSHED, RESOURCE, ResourceMetadata, TOKEN, challenge, for_server,
    named_in, places,
};
use super::{Listener, PATH, bare, nowhere, refused, said};
use crate::entrance::entered;
use crate::mcp::proxy::SignInWanted;
use crate::mcp::stdio::ServerWay;

/// How long a connection to whoever lets clients in may take to be made.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// How long a whole answer of theirs may take.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// Largest metadata, form or answer.
const MAX_BYTES: usize = 1 << 20;

/// Headers of an answer about tokens that are for the client.
const BACK: [HeaderName; 4] =
    [header::CONTENT_TYPE, header::CACHE_CONTROL, header::WWW_AUTHENTICATE, HeaderName::from_static("dpop-nonce")];

/// How clients of one server sign in.
pub(super) struct SignIn {
    server: Url,
    /// Where its metadata are, if it said so itself.
    named: Mutex<Option<Url>>,
}

/// The metadata of a server and of whoever lets its clients in.
struct Found {
    /// What the server calls itself.
    resource: String,
    issuer: IssuerMetadata,
}

impl SignIn {
    /// That of the server behind `way`: nobody signs in to a child.
    pub(super) fn behind(way: &ServerWay) -> Option<Self> {
        match way {
            ServerWay::Url(server) => Some(Self { server: server.clone(), named: Mutex::default() }),
            ServerWay::Command(_) => None,
        }
    }

    /// What a client of the door at `own` is answered that has to sign in first, with the message `text`.
    pub(super) fn wanted(&self, wants: &SignInWanted, (own, text): (&str, String)) -> Response {
        if let Some(named) = named_in(&wants.says, &self.server) {
            *self.named.lock().unwrap_or_else(PoisonError::into_inner) = Some(named);
        }
        let status = StatusCode::from_u16(wants.status).unwrap_or(StatusCode::UNAUTHORIZED);
        let mut response = said(status, text);
        if let Ok(says) = HeaderValue::from_str(&challenge(&wants.says, own)) {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, says);
        }
        response
    }

    /// The metadata of the server; nothing where it has none.
    async fn resource(&self) -> Result<Option<ResourceMetadata>, String> {
        let named = self.named.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut at: Vec<Url> = named.into_iter().collect();
        at.extend(places(&self.server, RESOURCE));
        match first(at).await? {
            Some((at, text)) => match ResourceMetadata::read(&text, &self.server) {
                Ok(read) => Ok(Some(read)),
                Err(why) => Err(format!("the metadata at {at} cannot be used: {why}")),
            },
            None => Ok(None),
        }
    }

    /// What is known of who lets clients in; nothing where nobody says it.
    async fn found(&self) -> Result<Option<Found>, String> {
        let resource = self.resource().await?;
        // Servers that say nothing of themselves let clients in by themselves. Source: MCP of 2025-03-26.
        let alone = || {
            let mut origin = self.server.clone();
            origin.set_path("");
            origin.set_query(None);
            origin.set_fragment(None);
            origin
        };
        let (resource, issuer) = match resource {
            Some(ResourceMetadata { resource, issuer, .. }) => (resource, issuer.unwrap_or_else(alone)),
            None => (self.server.to_string(), alone()),
        };
        let mut at = places(&issuer, ISSUER);
        at.extend(places(&issuer, OPENID));
        match first(at).await? {
            Some((at, text)) => match IssuerMetadata::read(&text, (&issuer, &self.server)) {
                Ok(issuer) => Ok(Some(Found { resource, issuer })),
                Err(why) => Err(format!("the metadata at {at} cannot be used: {why}")),
            },
            None => Ok(None),
        }
    }
}

/// What the first of the places says that says something.
async fn first(places: Vec<Url>) -> Result<Option<(Url, String)>, String> {
    for place in places {
        let client =
            pintle_egress::client_for(&place, CONNECT_TIME, Some(ANSWER_TIME)).map_err(|error| error.to_string())?;
        let asked = client.get(place.clone()).header(header::ACCEPT, "application/json").send().await;
        let answer = asked.map_err(|_| format!("{place} does not answer"))?;
        if answer.status().is_success() {
            let text = bounded(answer).await.map_err(|why| format!("what {place} says cannot be read: {why}"))?;
            // A page in the place of what is not there.
            if text.trim_start().starts_with('{') {
                return Ok(Some((place, text)));
            }
        } else if answer.status().is_server_error() {
            return Err(format!("{place} answers {}", answer.status()));
        }
    }
    Ok(None)
}

async fn bounded(mut answer: reqwest::Response) -> Result<String, String> {
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(|_| "it broke off")? {
        if body.len() + piece.len() > MAX_BYTES {
            return Err(format!("it is longer than {MAX_BYTES} bytes"));
        }
        body.extend_from_slice(&piece);
    }
    String::from_utf8(body).map_err(|_| "it is not UTF-8".into())
}

/// The paths by which clients sign in.
pub(super) fn routes() -> Router<Arc<Listener>> {
    Router::new()
        .route(RESOURCE, get(resource))
        .route(&format!("{RESOURCE}{PATH}"), get(resource))
        .route(ISSUER, get(issuer))
        .route(OPENID, get(issuer))
        .route(AUTHORIZE, get(authorize))
        .route(TOKEN, post(token))
        .route(PUSHED, post(pushed))
}

/// The door, as a client with these headers reaches it.
pub(super) fn own(headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    format!("http://{host}")
}

/// How clients sign in that send `request`, if they may ask and there is anything to sign in to.
fn let_in<'l>(listener: &'l Listener, request: &Request) -> Result<(&'l SignIn, String), Box<Response>> {
    if let Err((status, why)) = entered(request.headers()) {
        return Err(Box::new(refused(status, "null", &why)));
    }
    let sign_in = listener.sign_in.as_ref().ok_or_else(|| Box::new(bare(StatusCode::NOT_FOUND)))?;
    Ok((sign_in, own(request.headers())))
}

fn away(why: &str) -> Response {
    refused(StatusCode::BAD_GATEWAY, "null", why)
}

async fn resource(State(listener): State<Arc<Listener>>, request: Request) -> Response {
    let (sign_in, own) = match let_in(&listener, &request) {
        Ok(found) => found,
        Err(response) => return *response,
    };
    match sign_in.resource().await {
        Ok(Some(metadata)) => said(StatusCode::OK, metadata.of_door(&own)),
        Ok(None) => nowhere(request).await,
        Err(why) => away(&why),
    }
}

async fn issuer(State(listener): State<Arc<Listener>>, request: Request) -> Response {
    let (sign_in, own) = match let_in(&listener, &request) {
        Ok(found) => found,
        Err(response) => return *response,
    };
    match sign_in.found().await {
        Ok(Some(found)) => said(StatusCode::OK, found.issuer.of_door(&own)),
        Ok(None) => nowhere(request).await,
        Err(why) => away(&why),
    }
}

/// Sends a person on to where they sign in.
async fn authorize(State(listener): State<Arc<Listener>>, request: Request) -> Response {
    let (sign_in, own) = match let_in(&listener, &request) {
        Ok(found) => found,
        Err(response) => return *response,
    };
    let found = match sign_in.found().await {
        Ok(found) => found,
        Err(why) => return away(&why),
    };
    let Some((mut place, resource)) = found.and_then(|found| Some((found.issuer.authorize?, found.resource))) else {
        return nowhere(request).await;
    };
    let asked = for_server(request.uri().query().unwrap_or_default(), &own, &resource);
    let query = match place.query().filter(|query| !query.is_empty()) {
        Some(query) => format!("{query}&{asked}"),
        None => asked,
    };
    place.set_query(Some(&query));
    let mut response = bare(StatusCode::FOUND);
    match HeaderValue::from_str(place.as_str()) {
        Ok(place) => response.headers_mut().insert(header::LOCATION, place),
        Err(_) => return away("where to sign in cannot be said in a header"),
    };
    response
}

async fn token(State(listener): State<Arc<Listener>>, request: Request) -> Response {
    hand_on(&listener, request, |issuer| issuer.token).await
}

async fn pushed(State(listener): State<Arc<Listener>>, request: Request) -> Response {
    hand_on(&listener, request, |issuer| issuer.pushed).await
}

/// Hands a form of a client on to where `of` says. Nothing of it is kept or shown: it has secrets in it, and so has the answer.
async fn hand_on(listener: &Listener, request: Request, of: fn(IssuerMetadata) -> Option<Url>) -> Response {
    let (sign_in, own) = match let_in(listener, &request) {
        Ok(found) => found,
        Err(response) => return *response,
    };
    let found = match sign_in.found().await {
        Ok(found) => found,
        Err(why) => return away(&why),
    };
    let Some((place, resource)) = found.and_then(|found| Some((of(found.issuer)?, found.resource))) else {
        return nowhere(request).await;
    };
    let (parts, body) = request.into_parts();
    let form = axum::body::to_bytes(body, MAX_BYTES).await.ok().and_then(|body| String::from_utf8(body.into()).ok());
    let Some(form) = form else {
        let why = format!("the form is longer than {MAX_BYTES} bytes, or is no text");
        return refused(StatusCode::BAD_REQUEST, "null", &why);
    };
    match asked(&place, &parts.headers, for_server(&form, &own, &resource)).await {
        Ok(response) => response,
        Err(why) => away(&why),
    }
}

/// The headers of a client that go on with a form: what it says of itself there. Its keys for the server, which many send
/// wherever the server's name is, do not.
fn for_issuer(headers: &HeaderMap) -> HeaderMap {
    let is_client = |value: &HeaderValue| {
        let scheme = value.to_str().ok().and_then(|value| value.split_once(' '));
        scheme.is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("basic"))
    };
    let goes = |name: &HeaderName, value: &HeaderValue| {
        *name == header::ACCEPT || *name == header::CONTENT_TYPE || (*name == header::AUTHORIZATION && is_client(value))
    };
    let gone = headers.iter().filter(|(name, value)| goes(name, value));
    gone.map(|(name, value)| (name.clone(), value.clone())).collect()
}

async fn asked(place: &Url, headers: &HeaderMap, form: String) -> Result<Response, String> {
    let client =
        pintle_egress::client_for(place, CONNECT_TIME, Some(ANSWER_TIME)).map_err(|error| error.to_string())?;
    let request = client.post(place.clone()).headers(for_issuer(headers)).header(header::ACCEPT_ENCODING, "identity");
    let answer = request.body(form).send().await.map_err(|_| format!("{place} does not answer"))?;
    let status = answer.status();
    if status.is_redirection() {
        return Err(format!("{place} answers with a redirect, and none is followed"));
    }
    let head: Vec<(HeaderName, HeaderValue)> =
        BACK.into_iter().filter_map(|name| Some((name.clone(), answer.headers().get(&name)?.clone()))).collect();
    let text = bounded(answer).await.map_err(|why| format!("what {place} says cannot be read: {why}"))?;
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().extend(head);
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_for_the_server_do_not_go_to_whoever_gives_tokens() {
        for (name, value, goes) in [
            ("content-type", "application/x-www-form-urlencoded", true),
            ("accept", "application/json", true),
            ("authorization", "Basic YTpi", true),
            ("authorization", "basic YTpi", true),
            ("authorization", "Bearer for-the-server", false),
            ("authorization", "Basic", false),
            ("x-api-key", "for-the-server", false),
            ("cookie", "c", false),
            ("mcp-session-id", "s", false),
        ] {
            let headers = HeaderMap::from_iter([(HeaderName::from_static(name), HeaderValue::from_static(value))]);
            assert_eq!(for_issuer(&headers).len(), usize::from(goes), "{name}: {value}");
        }
    }
}
