//! One WebSocket connection, from its first frame to its last.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use pintle_domain::id::TenantId;
use pintle_domain::json::{Value, json};
use pintle_domain::rule::Edition;
use pintle_rules::admin::CallerRole;
use tokio::time::{Instant, timeout};
use tungstenite::error::ProtocolError;

use crate::Shared;
use crate::claim::{Claim, PROTOCOL};
use crate::door::Visit;
use crate::error::{ApiError, ErrorCode};
use crate::frame::{self, BadFrame, Request};
use crate::hub::Connection;
use crate::principal::Principal;
use crate::quotas::Place;
use crate::rare_line::RareLine;
use crate::rates::Attempt;
use crate::sign_in::Registry;

/// Longest message that comes in, in bytes. Source: the published protocol.
pub(crate) const MAX_MESSAGE_BYTES: usize = 512 << 10;
/// Requests of one connection that are worked at once. Source: the published protocol.
const MAX_IN_FLIGHT: usize = 16;
/// How often a quiet client is asked whether it is there. Source: the published protocol.
const PING_EVERY: Duration = Duration::from_secs(30);
/// How long a client may say nothing. Source: the published protocol.
const READ_TIME: Duration = Duration::from_secs(60);
/// How long one frame may take to be written. Source: the published protocol.
const WRITE_TIME: Duration = Duration::from_secs(10);
/// How long the word of goodbye may take: whoever reads nothing is not waited for once more.
const GOODBYE_TIME: Duration = Duration::from_secs(1);
/// How long a client may take to say who it is: nobody holds a connection that is nobody's.
const SIGN_IN_TIME: Duration = Duration::from_secs(10);
/// How often somebody may say wrongly who they are, in one connection.
const MAX_TRIES: usize = 5;

/// Why a connection ends, as far as the client is told.
struct Ending {
    code: u16,
    why: &'static str,
}

const GOING_AWAY: Ending = Ending { code: close_code::AWAY, why: "the server is going away" };
const TOO_SLOW: Ending = Ending { code: close_code::POLICY, why: "the client reads too slowly" };
const SILENT: Ending = Ending { code: close_code::POLICY, why: "nothing was said for 60 seconds" };
const TOO_LONG: Ending = Ending { code: close_code::SIZE, why: "a message has more than 512 KiB" };
const NO_UTF8: Ending = Ending { code: close_code::INVALID, why: "a text is not UTF-8" };
const BROKEN: Ending = Ending { code: close_code::PROTOCOL, why: "the bytes are no frame of WebSocket" };
const NO_TEXT: Ending = Ending { code: close_code::UNSUPPORTED, why: "frames are text" };
const REVOKED: Ending = Ending { code: close_code::POLICY, why: "access was revoked" };
const UNKNOWN: Ending = Ending { code: close_code::POLICY, why: "nobody signed in within 10 seconds" };
const NOBODY: Ending = Ending { code: close_code::POLICY, why: "too many failed sign-ins" };

/// Told of failed sign-ins beyond those that count: whoever tries with a made-up key is not kept from it.
static TOO_MANY: RareLine = RareLine::new();

/// Serves one connection to its end.
pub(crate) async fn serve(shared: Arc<Shared>, mut socket: WebSocket, arrival: Arrival) {
    let Some((who, id, _place)) = sign_in(&shared, &mut socket, arrival).await else { return };
    let closing = shared.life.hard_stop.child_token();
    let open = shared.hub.open(who.clone(), closing);
    let connection = &open.connection;
    // What was taken away since nobody told this connection of.
    if !shared.is_still(&who).await.unwrap_or(false) {
        return end(&mut socket, Some(REVOKED)).await;
    }
    connection.respond(&id, &Ok(shared.welcome(&who)));
    let ending = converse(&shared, &mut socket, connection).await;
    end(&mut socket, ending).await;
}

/// Tells the client why the connection ends, as far as it is told.
async fn end(socket: &mut WebSocket, ending: Option<Ending>) {
    if let Some(Ending { code, why }) = ending {
        close(socket, code, why).await;
    }
}

/// What a client is told whose bytes cannot be read; nothing where it is gone.
fn unread(error: axum::Error) -> Option<Ending> {
    match *error.into_inner().downcast::<tungstenite::Error>().ok()? {
        tungstenite::Error::Capacity(_) => Some(TOO_LONG),
        tungstenite::Error::Utf8(_) => Some(NO_UTF8),
        tungstenite::Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => None,
        tungstenite::Error::Protocol(_) => Some(BROKEN),
        // There is nobody at the other end any more, or it is no error of reading.
        tungstenite::Error::ConnectionClosed
        | tungstenite::Error::AlreadyClosed
        | tungstenite::Error::Io(_)
        | tungstenite::Error::Tls(_)
        | tungstenite::Error::WriteBufferFull(_)
        | tungstenite::Error::AttackAttempt
        | tungstenite::Error::Url(_)
        | tungstenite::Error::Http(_)
        | tungstenite::Error::HttpFormat(_) => None,
    }
}

/// Where a connection comes from, and the cookies that came along.
pub(crate) struct Arrival {
    pub(crate) visit: Visit,
    pub(crate) cookies: Vec<String>,
}

/// Waits until the client has said who it is. The id of that request, and the place of the connection.
async fn sign_in(
    shared: &Arc<Shared>,
    socket: &mut WebSocket,
    arrival: Arrival,
) -> Option<(Principal, String, Option<Place>)> {
    let deadline = Instant::now() + SIGN_IN_TIME;
    for _ in 0..MAX_TRIES {
        let message = tokio::select! {
            message = tokio::time::timeout_at(deadline, next_text(socket)) => match message {
                Ok(Ok(message)) => message,
                Ok(Err(ending)) => {
                    end(socket, ending).await;
                    return None;
                }
                Err(_elapsed) => {
                    end(socket, Some(UNKNOWN)).await;
                    return None;
                }
            },
            () = shared.life.hard_stop.cancelled() => return None,
        };
        let (id, refused) = match frame::read(&message) {
            Err(BadFrame { id, error }) => (id, *error),
            Ok(Request { id, method, .. }) if method != "connect" => {
                (id, ApiError::unauthorized("first request must be 'connect'"))
            }
            Ok(Request { id, params, .. }) => match shared.connect(&params, &arrival).await {
                Ok((who, place)) => return Some((who, id, place)),
                Err(error) => (id, error),
            },
        };
        let text = frame::response(&id, &Err(refused));
        timeout(WRITE_TIME, socket.send(Message::Text(text.into()))).await.ok()?.ok()?;
    }
    end(socket, Some(NOBODY)).await;
    None
}

/// The next text of a client; why the connection ends where it goes, or sends what is none.
async fn next_text(socket: &mut WebSocket) -> Result<String, Option<Ending>> {
    loop {
        match socket.recv().await.ok_or(None)?.map_err(unread)? {
            Message::Text(text) => return Ok(text.to_string()),
            Message::Ping(_) | Message::Pong(_) => {}
            Message::Binary(_) => return Err(Some(NO_TEXT)),
            Message::Close(_) => return Err(None),
        }
    }
}

/// Answers what the client asks, and tells it what happens, until one of both goes.
async fn converse(shared: &Arc<Shared>, socket: &mut WebSocket, connection: &Arc<Connection>) -> Option<Ending> {
    let in_flight = Arc::new(AtomicUsize::new(0));
    let mut heard = Instant::now();
    let mut ping = tokio::time::interval_at(heard + PING_EVERY, PING_EVERY);
    loop {
        if let Err(ending) = write(socket, connection).await {
            return ending;
        }
        tokio::select! {
            biased;
            () = connection.closing.cancelled() => {
                if !shared.life.hard_stop.is_cancelled() {
                    return Some(if connection.is_revoked() { REVOKED } else { TOO_SLOW });
                }
                return write(socket, connection).await.err().unwrap_or(Some(GOING_AWAY));
            }
            () = connection.bell.notified() => {}
            message = socket.recv() => {
                heard = Instant::now();
                let message = match message?.map_err(unread) {
                    Ok(message) => message,
                    Err(ending) => return ending,
                };
                match message {
                    Message::Text(text) => take(shared, connection, &in_flight, &text),
                    Message::Binary(_) => return Some(NO_TEXT),
                    Message::Ping(_) | Message::Pong(_) => {}
                    Message::Close(_) => return None,
                }
            }
            _ = ping.tick() => {
                if heard.elapsed() >= READ_TIME {
                    return Some(SILENT);
                }
                timeout(WRITE_TIME, socket.send(Message::Ping(Vec::new().into()))).await.ok()?.ok()?;
            }
        }
    }
}

/// Writes what waits; why the connection ends, if it does.
async fn write(socket: &mut WebSocket, connection: &Connection) -> Result<(), Option<Ending>> {
    while let Some(text) = connection.next_frame() {
        match timeout(WRITE_TIME, socket.send(Message::Text(text.into()))).await {
            Ok(Ok(())) => {}
            Ok(Err(_gone)) => return Err(None),
            Err(_elapsed) => return Err(Some(TOO_SLOW)),
        }
    }
    Ok(())
}

/// Works a request in a task of its own: they are answered as they finish.
fn take(shared: &Arc<Shared>, connection: &Arc<Connection>, in_flight: &Arc<AtomicUsize>, text: &str) {
    let request = match frame::read(text) {
        Ok(request) => request,
        Err(BadFrame { id, error }) => return connection.respond(&id, &Err(*error)),
    };
    if request.method == "connect" {
        return connection.respond(&request.id, &Err(ApiError::precondition("already connected")));
    }
    if in_flight.fetch_add(1, Ordering::AcqRel) >= MAX_IN_FLIGHT {
        in_flight.fetch_sub(1, Ordering::AcqRel);
        let error = ApiError::exhausted(format!("too many requests in flight: at most {MAX_IN_FLIGHT}"), 100);
        return connection.respond(&request.id, &Err(error));
    }
    let (shared, connection, in_flight) = (shared.clone(), connection.clone(), in_flight.clone());
    shared.life.requests.clone().spawn(async move {
        let outcome = shared.call(&connection, &request).await;
        in_flight.fetch_sub(1, Ordering::AcqRel);
        connection.respond(&request.id, &outcome);
    });
}

async fn close(socket: &mut WebSocket, code: u16, why: &'static str) {
    let frame = Message::Close(Some(CloseFrame { code, reason: why.into() }));
    if timeout(GOODBYE_TIME, socket.send(frame)).await.is_err() {
        tracing::debug!("a client took no word of goodbye");
    }
}

impl Shared {
    /// Who it is that says `params`, and the place of their connection.
    async fn connect(
        self: &Arc<Self>,
        params: &Value,
        arrival: &Arrival,
    ) -> Result<(Principal, Option<Place>), ApiError> {
        let claim = Claim { cookies: arrival.cookies.clone(), ..Claim::read(params)? };
        let user = claim.user.clone();
        let who = self.known(claim, arrival.visit).await?;
        if !who.is_as(user.as_deref()) {
            return Err(ApiError::invalid("`user_id` goes with the gateway token only"));
        }
        let place = self.connection_of(&who).await?;
        Ok((who, place))
    }

    /// Who it is that claims this.
    pub(crate) async fn known(self: &Arc<Self>, claim: Claim, visit: Visit) -> Result<Principal, ApiError> {
        let attempt = claim.attempt();
        if attempt == Some(Attempt::Guess) {
            self.may_try(visit).await?;
        }
        let found = self
            .blocking(move |shared| {
                let now = jiff::Timestamp::now();
                Registry::read(&shared.guests.known_by, &*shared.store, now)?.principal(&claim, visit)
            })
            .await;
        if let (Err(error), Some(attempt)) = (&found, attempt)
            && error.code == ErrorCode::Unauthorized
        {
            self.sign_in_failed(visit, self.counted_as(attempt, visit).await, error)?;
        }
        found
    }

    /// Notes that somebody could not say who they are; what they are told if it was too often.
    pub(crate) fn sign_in_failed(&self, visit: Visit, attempt: Attempt, error: &ApiError) -> Result<(), ApiError> {
        let from = visit.from.map_or_else(|| "this machine".to_owned(), |from| from.to_string());
        let noted = self.guests.rates.sign_in_failed(visit.from, attempt);
        match &noted {
            Ok(()) => tracing::warn!(%from, "security.sign_in_failed: {error}"),
            Err(too_many) => {
                if let Some(more) = TOO_MANY.due(Instant::now().into_std()) {
                    tracing::warn!(%from, more, "security.sign_in_failed: {}", too_many.message);
                }
            }
        }
        noted
    }

    /// What somebody is told who is let in.
    fn welcome(&self, who: &Principal) -> Value {
        json!({
            "protocol": PROTOCOL,
            "role": who.role.word(),
            "user_id": who.user,
            "tenant_id": who.tenant,
            "is_owner": who.role == CallerRole::Owner,
            "is_master_scope": who.role == CallerRole::Owner,
            "edition": edition_word(self.edition),
            "server": { "name": "pintle", "version": env!("CARGO_PKG_VERSION") },
            "tenant_name": who.tenant_name,
            "tenant_slug": who.slug,
            "scopes": who.rights.scopes(),
        })
    }

    /// Tells everybody that the host goes away, and when.
    pub(crate) fn say_goodbye(&self, deadline: Duration) {
        let millis = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
        self.hub.tell(&TenantId::sentinel(), "shutdown", &json!({ "deadlineMs": millis }));
    }
}

fn edition_word(edition: Edition) -> &'static str {
    edition.word()
}
