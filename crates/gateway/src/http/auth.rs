//! `/auth/…`: signing in to the console and out of it.
//!
//! A browser hands cookies to every server of a machine, whatever its port. So a session has two secrets: the cookie,
//! which no page can read, and a key, which no other origin can; neither is worth anything alone.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use jiff::Timestamp;
use pintle_domain::json::{Value, json};
use pintle_domain::store::{SessionOrigin, SignInLink};

use super::body::{Bound, whole};
use super::refused::Refused;
use super::reply::{answer, json_body};
use crate::Shared;
use crate::claim::{COOKIE_PREFIX, Claim};
use crate::door::{FORBIDDEN_ORIGIN, Visit};
use crate::error::{ApiError, ErrorCode};
use crate::identity_admin::FreshSession;
use crate::params::Params;
use crate::principal::Credential;
use crate::rates::Attempt;
use crate::roles;
use crate::secret;
use crate::sign_in::LONGEST;

/// How long what is said here may be: a secret and two names. Whoever says it is nobody yet.
const MOST: Bound = Bound { most: 64 << 10, hint: "nothing that is expected here is that long" };

/// Digits of a session's id that are in the name of its cookie.
const NAME_DIGITS: usize = 8;

/// `POST /auth/exchange`: a link for a session.
pub(crate) async fn exchange(
    State(shared): State<Arc<Shared>>,
    Extension(visit): Extension<Visit>,
    request: Request,
) -> Response {
    let (head, body) = request.into_parts();
    respond(shared.exchange(visit, &head.headers, body).await)
}

/// `POST /auth/sign-in`: the gateway token or an API key for a session.
pub(crate) async fn sign_in(
    State(shared): State<Arc<Shared>>,
    Extension(visit): Extension<Visit>,
    request: Request,
) -> Response {
    let (head, body) = request.into_parts();
    respond(shared.console_sign_in(visit, &head.headers, body).await)
}

/// `POST /auth/sign-out`: the end of a session.
pub(crate) async fn sign_out(
    State(shared): State<Arc<Shared>>,
    Extension(visit): Extension<Visit>,
    request: Request,
) -> Response {
    let (head, body) = request.into_parts();
    respond(shared.sign_out(visit, &head.headers, body).await)
}

/// `POST /auth/switch`: a session in one tenant for one in another, for owners.
pub(crate) async fn switch(
    State(shared): State<Arc<Shared>>,
    Extension(visit): Extension<Visit>,
    request: Request,
) -> Response {
    let (head, body) = request.into_parts();
    respond(shared.switch(visit, &head.headers, body).await)
}

/// An answer, and what the browser is to keep.
struct Said {
    body: Value,
    cookies: Vec<String>,
}

fn respond(said: Result<Said, Refused>) -> Response {
    let (mut response, cookies) = match said {
        Ok(Said { body, cookies }) => (answer(StatusCode::OK, &body), cookies),
        Err(refused) => {
            let body = json!({ "error": { "code": refused.code, "message": refused.error.message } });
            (refused.response(&body), Vec::new())
        }
    };
    for cookie in cookies.iter().filter_map(|cookie| HeaderValue::from_str(cookie).ok()) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Turns away pages of others, even those that may ask otherwise.
fn only_own_pages(visit: Visit) -> Result<(), ApiError> {
    if visit.is_own_page {
        return Ok(());
    }
    let why = "a console session works only on this server's own pages, not on those of `gateway.allowed_origins`";
    Err(ApiError::unauthorized(why).with_details(json!({ "kind": FORBIDDEN_ORIGIN })))
}

impl Shared {
    async fn exchange(self: &Arc<Self>, visit: Visit, headers: &HeaderMap, body: Body) -> Result<Said, Refused> {
        only_own_pages(visit)?;
        let body = json_body(headers, &whole(body, MOST).await?)?;
        let params = Params::of(&body, &["code"])?;
        let code = params.needed("code")?.to_owned();
        let attempt = if secret::is_random(&code) { Attempt::Secret } else { Attempt::Guess };
        if attempt == Attempt::Guess {
            self.may_try(visit).await?;
        }
        let device = device(headers);
        let fresh = self
            .blocking(move |shared| {
                let (admin, now) = (&shared.guests.admin, Timestamp::now());
                let link = admin.take_link(&code, now)?;
                admin.begin_session(link, SessionOrigin::Link, &device, now)
            })
            .await;
        if let Err(error) = &fresh
            && error.code == ErrorCode::Unauthorized
        {
            self.sign_in_failed(visit, self.counted_as(attempt, visit).await, error)?;
        }
        Ok(self.begun(fresh?, visit).await?)
    }

    async fn console_sign_in(self: &Arc<Self>, visit: Visit, headers: &HeaderMap, body: Body) -> Result<Said, Refused> {
        only_own_pages(visit)?;
        let body = json_body(headers, &whole(body, MOST).await?)?;
        let params = Params::of(&body, &["token", "userId", "tenant"])?;
        let text = |name: &str| params.text(name).map(|text| text.map(str::to_owned));
        let (token, user) = (Some(params.needed("token")?.to_owned()), text("userId")?);
        let claim = Claim { token, user: user.clone(), tenant: text("tenant")?, ..Claim::default() };
        let who = self.known(claim, visit).await?;
        if !who.is_as(user.as_deref()) {
            return Err(ApiError::invalid("`userId` goes with the gateway token only").into());
        }
        let origin = match &who.credential {
            Credential::Key(id) => SessionOrigin::Key(id.clone()),
            Credential::Token | Credential::Console { .. } | Credential::Anonymous => {
                let origin = self.guests.known_by.token_origin();
                origin.ok_or_else(|| ApiError::unauthorized("unauthorized: invalid or missing credentials"))?
            }
        };
        let expires_at = String::new();
        let link = SignInLink { tenant: who.tenant, user: who.user, role: who.role, expires_at };
        let device = device(headers);
        let fresh = self
            .blocking(move |shared| shared.guests.admin.begin_session(link, origin, &device, Timestamp::now()))
            .await?;
        Ok(self.begun(fresh, visit).await?)
    }

    /// What a page is told whose session begins.
    async fn begun(self: &Arc<Self>, fresh: FreshSession, visit: Visit) -> Result<Said, ApiError> {
        let FreshSession { session, key, cookie } = fresh;
        let cookie = set_cookie((&session.id, &cookie), LONGEST.as_secs(), visit);
        // It is let in as any other request: what is not let in is not a session.
        let claim = Claim { console_key: Some(key.clone()), cookies: vec![value_of(&cookie)], ..Claim::default() };
        let who = self.known(claim, visit).await?;
        let body = json!({
            "sessionKey": key, "sessionId": session.id, "role": who.role.word(), "user_id": who.user,
            "tenant_id": who.tenant, "tenant_slug": who.slug, "tenant_name": who.tenant_name,
            "expiresAt": who.until,
        });
        Ok(Said { body, cookies: vec![cookie] })
    }

    /// The session that asks ends, and one like it begins where its owner wants to be: a session never leaves its tenant.
    async fn switch(self: &Arc<Self>, visit: Visit, headers: &HeaderMap, body: Body) -> Result<Said, Refused> {
        only_own_pages(visit)?;
        let who = self.signed_in(headers, visit).await?;
        roles::allow_over_http(&who, "auth.switch")?;
        let body = json_body(headers, &whole(body, MOST).await?)?;
        let wanted = Params::of(&body, &["tenant"])?.needed("tenant")?.to_owned();
        let Credential::Console { session, .. } = who.credential.clone() else {
            return Err(no_session().into());
        };
        let ended = set_cookie((&session, ""), 0, visit);
        let fresh = self
            .taken_away(move |shared| shared.guests.admin.move_session(&who, &session, &wanted, Timestamp::now()))
            .await?;
        let mut said = self.begun(fresh, visit).await?;
        said.cookies.push(ended);
        Ok(said)
    }

    async fn sign_out(self: &Arc<Self>, visit: Visit, headers: &HeaderMap, body: Body) -> Result<Said, Refused> {
        only_own_pages(visit)?;
        let body = whole(body, MOST).await?;
        let body = if body.is_empty() { Value::Null } else { json_body(headers, &body)? };
        Params::of(&body, &[])?;
        let who = self.signed_in(headers, visit).await?;
        let Credential::Console { session, .. } = who.credential.clone() else {
            return Err(no_session().into());
        };
        let id = session.clone();
        self.taken_away(move |shared| shared.guests.admin.end_sessions(&who, Some(&id))).await?;
        Ok(Said { body: json!({ "ok": true }), cookies: vec![set_cookie((&session, ""), 0, visit)] })
    }
}

fn no_session() -> ApiError {
    ApiError::invalid("there is no console session: `X-Pintle` and its cookie are missing")
}

fn device(headers: &HeaderMap) -> String {
    headers.get(header::USER_AGENT).and_then(|name| name.to_str().ok()).unwrap_or("unknown").to_owned()
}

fn set_cookie((id, value): (&str, &str), seconds: i64, visit: Visit) -> String {
    let name: String = id.chars().take(NAME_DIGITS).collect();
    let secure = if visit.is_encrypted { "; Secure" } else { "" };
    format!("{COOKIE_PREFIX}{name}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{secure}")
}

/// The value of a cookie that [`set_cookie`] wrote.
fn value_of(cookie: &str) -> String {
    let pair = cookie.split(';').next().unwrap_or_default();
    pair.split_once('=').map(|(_, value)| value.to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::door::OtherEnd;

    #[test]
    fn no_page_reads_a_cookie_and_where_there_is_encryption_nobody_else() {
        let visit = |is_encrypted| Visit {
            from: None,
            is_local: true,
            is_agents: false,
            other_end: OtherEnd::Unknown,
            is_own_page: true,
            is_encrypted,
        };
        let plain = "pintle_01234567=secret; HttpOnly; SameSite=Strict; Path=/; Max-Age=60";
        let cookie = |is_encrypted| set_cookie(("0123456789abcdef", "secret"), 60, visit(is_encrypted));
        assert_eq!((cookie(false), cookie(true)), (plain.to_owned(), format!("{plain}; Secure")));
        assert_eq!(value_of(plain), "secret");
    }
}
