//! Who comes in by the model door, and whose hooks are asked for them.

use std::convert::Infallible;
use std::sync::Arc;

use async_trait::async_trait;
use axum::body::{Body, HttpBody as _};
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use futures_util::StreamExt as _;
use futures_util::stream;
use jiff::civil::Date;
use pintle_domain::approval::{Approval, PersonAnswer};
use pintle_domain::id::{TurnId, agent_uuid};
use pintle_domain::identity::Identity;
use pintle_domain::json::Object;
use pintle_domain::store::SpendingAccount;
use pintle_domain::tool::ToolCall;
use pintle_doors::reply::{turned_away, vendor_at};
use pintle_doors::spending::{Holding, Limit, Payer, SpendingWish, Spent};
use pintle_doors::{DoorGuest, DoorHost, DoorKey, DoorVisit};
use pintle_engine::{Approvals, Asker, Dispatcher};
use pintle_guard::clients::{ClientKnowledge, client_of, client_protects};
use pintle_guard::shell_tools::{known_as, told_as};
use tokio_util::task::task_tracker::TaskTrackerToken;
use tower::Service as _;
use url::form_urlencoded;

use super::spending::sum;
use super::{Entry, Opened};
use crate::Shared;
use crate::claim::Claim;
use crate::door::Visit;
use crate::error::{ApiError, ErrorCode, going_away};
use crate::hub::Guest;
use crate::principal::{Credential, Principal};
use crate::quotas::Place;
use crate::roles;
use crate::secret;
use crate::session_name::{Channel, SessionName};
use crate::sign_in::Registry;

/// The header in which a client says who it is. All others that hold keys are the vendor's.
const KEY: &str = "x-pintle-key";

/// The headers in which vendors are told keys.
const VENDORS_KEYS: [&str; 4] = ["api-key", "authorization", "x-api-key", "x-goog-api-key"];

/// The door that events come in by, as their identity says it.
const CHANNEL: &str = "door";

/// The agent whose hooks are asked where a configuration has none.
const AGENT: &str = "main";

/// What a request says of where it goes and who sends it.
struct Knock {
    path: String,
    query: String,
    headers: HeaderMap,
    is_post: bool,
}

impl Knock {
    fn of(request: &Request) -> Self {
        let (path, headers) = (request.uri().path().to_owned(), request.headers().clone());
        let query = request.uri().query().unwrap_or_default().to_owned();
        Self { path, query, headers, is_post: request.method() == Method::POST }
    }
}

/// Somebody who was let in.
struct LetIn {
    guest: Arc<Guest>,
    key: DoorKey,
    /// What lasts as long as they are answered: they count as a turn in flight, if a model is asked, and nothing ends
    /// before them.
    _stay: (Option<Place>, TaskTrackerToken),
}

/// What is served below `/door`.
pub(crate) async fn talk(
    State(shared): State<Arc<Shared>>,
    Extension(visit): Extension<Visit>,
    mut request: Request,
) -> Response {
    let knock = Knock::of(&request);
    let path = knock.path.clone();
    let opened = shared.desk.model_doors.opened();
    let Some(mut router) = opened.door.as_ref().map(|parts| parts.router.clone()) else {
        let closed = closed_or_none(&opened, &path);
        return refused(&path, &closed);
    };
    let let_in = match shared.let_in(&opened, &knock, visit).await {
        Ok(let_in) => let_in,
        Err(error) => return refused(&path, &error),
    };
    let who = let_in.guest.who.clone();
    request.extensions_mut().insert(DoorGuest {
        tenant: who.tenant.as_str().to_owned(),
        // Neither has a line break in it.
        space: format!("{}\n{}", who.tenant.as_str(), who.user),
        payer: format!("{}\n{}", who.tenant.as_str(), who.credential.counted_for().unwrap_or_default()),
        host: Arc::new(GuestHooks { shared, who }),
        key: let_in.key,
    });
    let gone = let_in.guest.gone.clone();
    let answered: Result<Response, Infallible> = tokio::select! {
        biased;
        () = gone.cancelled() => return refused(&path, &revoked()),
        answered = router.call(request) => answered,
    };
    let Ok(answer) = answered;
    let (head, body) = answer.into_parts();
    match body.size_hint().exact() {
        Some(_) => Response::from_parts(head, body),
        None => Response::from_parts(head, while_let_in(body, let_in)),
    }
}

/// `body` for as long as the client may have it; it breaks off where they may not any more.
fn while_let_in(body: Body, let_in: LetIn) -> Body {
    let held = Some((body.into_data_stream(), let_in));
    Body::from_stream(stream::unfold(held, |held| async move {
        let (mut body, let_in) = held?;
        let gone = let_in.guest.gone.clone();
        tokio::select! {
            biased;
            () = gone.cancelled() => Some((Err(axum::Error::new(revoked())), None)),
            bytes = body.next() => Some((bytes?, Some((body, let_in)))),
        }
    }))
}

fn revoked() -> ApiError {
    ApiError::unauthorized("access was revoked")
}

/// What stands where no vendor's door is open.
fn closed_or_none(opened: &Opened, path: &str) -> ApiError {
    match vendor_at(path).and_then(|vendor| opened.entries.get(&vendor)) {
        Some(Entry::Closed | Entry::Open { .. }) => {
            let why = format!("the door at {path} is closed: the log of the server says why");
            ApiError::new(ErrorCode::Unavailable, why)
        }
        None => {
            let why = format!("there is nothing at {path}; `[doors.model.NAME]` of the configuration opens a door");
            ApiError::new(ErrorCode::NotFound, why)
        }
    }
}

fn refused(path: &str, error: &ApiError) -> Response {
    let status = StatusCode::from_u16(error.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = turned_away(path, status, &error.message);
    if let Some(wait) = error.retry_after_ms {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(wait.div_ceil(1000)));
        response.headers_mut().insert("x-should-retry", HeaderValue::from_static("true"));
    }
    response
}

impl Shared {
    /// Who sends a request to a door, if they may.
    async fn let_in(self: &Arc<Self>, opened: &Opened, knock: &Knock, visit: Visit) -> Result<LetIn, ApiError> {
        let Knock { path, query, headers, is_post } = knock;
        let entry = vendor_at(path).and_then(|vendor| opened.entries.get(&vendor));
        let Some(Entry::Open { with_key, passing }) = entry else { return Err(closed_or_none(opened, path)) };
        let key = headers.get(KEY).map(|key| key.to_str().unwrap_or_default());
        let (who, key) = match (key, passing) {
            (Some(_), _) if !with_key => {
                return Err(ApiError::unauthorized(
                    "there is no key of the vendor's for `X-Pintle-Key` here; `key_env` of `[doors.model.NAME]` names one",
                ));
            }
            (Some(key), _) => (self.by_key(key, visit).await?, DoorKey::OfDoor),
            (None, Some(tenant)) if visit.is_local => {
                keep_ours(headers, query)?;
                (self.passing(tenant.clone()).await?, DoorKey::OfClient)
            }
            (None, _) => {
                return Err(ApiError::unauthorized(
                    "unauthorized: say who you are with a key of Pintle's in `X-Pintle-Key` \
                     (`pintle keys create NAME --owner USER --scope operator.write`); a key of the vendor's goes on \
                     from this machine only, where `tenant` of `[doors.model.NAME]` is set",
                ));
            }
        };
        self.guests.rates.request(&who, self.life.nodes.count())?;
        roles::allow_over_http(&who, "door.use")?;
        if self.life.draining.is_cancelled() {
            return Err(ApiError { retry_after_ms: Some(1000), ..going_away() });
        }
        let place = match is_post {
            true => Some(self.turn_of(&who.tenant, &who.user, &TurnId::fresh()).await?),
            false => None,
        };
        let (guest, token) = (self.hub.ask(who), self.life.doors.token());
        // What was taken away since, nobody told this request of.
        match self.is_still(&guest.who).await {
            Ok(true) => Ok(LetIn { guest, key, _stay: (place, token) }),
            Ok(false) => Err(revoked()),
            Err(error) => Err(error),
        }
    }

    /// Whose API key `key` is. Nothing else is tried: not the gateway token, and no other header.
    async fn by_key(self: &Arc<Self>, key: &str, visit: Visit) -> Result<Principal, ApiError> {
        let unauthorized = || ApiError::unauthorized("unauthorized: `X-Pintle-Key` is no valid API key");
        if !secret::is_key(key) {
            return Err(unauthorized());
        }
        let who = self.known(Claim { token: Some(key.to_owned()), ..Claim::default() }, visit).await?;
        match who.credential {
            Credential::Key(_) => Ok(who),
            Credential::Token | Credential::Console { .. } | Credential::Anonymous => Err(unauthorized()),
        }
    }

    /// Whoever sits at this machine, in the tenant called `slug`.
    pub(crate) async fn passing(self: &Arc<Self>, slug: String) -> Result<Principal, ApiError> {
        self.blocking(move |shared| {
            let now = jiff::Timestamp::now();
            Registry::read(&shared.guests.known_by, &*shared.store, now)?.passing(&slug)
        })
        .await
    }
}

/// A key of ours is not told a vendor by mistake. It is known by its form, and not tried.
fn keep_ours(headers: &HeaderMap, query: &str) -> Result<(), ApiError> {
    let said = VENDORS_KEYS.iter().filter_map(|name| headers.get(*name)?.to_str().ok());
    let mut words = said.map(|value| value.rsplit(' ').next().unwrap_or_default());
    let mut asked = form_urlencoded::parse(query.as_bytes());
    match words.any(secret::is_like_key) || asked.any(|(_, value)| secret::is_like_key(&value)) {
        true => Err(ApiError::invalid(
            "a key of Pintle's stands where a key of the vendor's goes; send it as `X-Pintle-Key`",
        )),
        false => Ok(()),
    }
}

/// The hooks of one guest.
struct GuestHooks {
    shared: Arc<Shared>,
    who: Principal,
}

impl GuestHooks {
    /// What this guest spends at a vendor on a day is counted here, by all nodes.
    fn account(&self, payer: &Payer, day: Date) -> SpendingAccount {
        let (tenant, vendor) = (self.who.tenant.clone(), payer.vendor.to_owned());
        SpendingAccount { tenant, vendor, payer: self.who.credential.counted_for().unwrap_or_default(), day }
    }
}

#[async_trait]
impl DoorHost for GuestHooks {
    async fn hooks(&self, visit: &DoorVisit) -> Result<Dispatcher, String> {
        let host = self.shared.host.read().await;
        let agent = host.loaded.config.agent(None).map_or_else(|_| AGENT.to_owned(), |agent| agent.name.clone());
        let (user, conversation) = (self.who.user.clone(), visit.session.clone());
        let name = SessionName { agent: agent.clone(), channel: Channel::Door, user, conversation };
        if !name.is_good() {
            return Err("the names of the agent and of the user are too long for a session".into());
        }
        let turn = TurnId::new(visit.turn.as_str());
        let tenant_id = self.who.tenant.clone();
        let who = Identity { tenant_id, ..Identity::top(&agent, name.id().as_str(), turn) };
        let uuid = agent_uuid(&self.who.tenant, &agent);
        // Where the client works nobody says.
        let known = ClientKnowledge::new(client_of(&visit.user_agent), None, uuid);
        let elsewhere = Elsewhere(self.shared.clone());
        let approvals = Approvals::for_host(host.store.clone(), Some(Arc::new(elsewhere)));
        let hooks = host.engine.dispatcher(who).with_origin(CHANNEL, visit.wire.name(), &self.who.user);
        Ok(hooks.with_known(Arc::new(known)).with_approvals(Some(Arc::new(approvals))).asking_by_content())
    }

    async fn protects(&self, visit: &DoorVisit, call: &ToolCall) -> Option<String> {
        let host = self.shared.host.read().await;
        let protected = host.protected();
        let own = protected.files.iter().chain(&protected.dirs).filter_map(|path| Some(path.to_str()?.to_owned()));
        let own: Vec<String> = own.collect();
        let home = host.env().text("HOME").unwrap_or("/").to_owned();
        client_protects(client_of(&visit.user_agent), call, (&host.env().cwd, &home, &own))
    }

    fn known_as(&self, native: &str, arguments: &Object) -> Option<(String, Object)> {
        known_as(native, arguments)
    }

    fn told_as(&self, native: &str, arguments: &Object, changed: Object) -> Option<Object> {
        told_as(native, arguments, changed)
    }

    fn guessed(&self, user_agent: &str) -> String {
        client_of(user_agent).map_or_else(|| "an unknown client".to_owned(), |host| host.name.to_owned())
    }

    async fn hold(&self, payer: &Payer, day: Date, wish: (SpendingWish, Limit)) -> Result<Holding, String> {
        let holding = self.shared.hold_spending(self.account(payer, day), wish).await;
        holding.map_err(|error| error.message)
    }

    fn spends(&self, payer: &Payer, day: Date, more: Spent) {
        self.shared.spends(None, self.account(payer, day), sum(more));
    }
}

/// Persons who answer elsewhere: over the socket, in the console, in a terminal.
struct Elsewhere(Arc<Shared>);

#[async_trait]
impl Asker for Elsewhere {
    async fn ask(&self, approval: &Approval) -> Option<PersonAnswer> {
        self.0.announce_everywhere(approval).await;
        std::future::pending().await
    }
}
