//! What a client says of itself. Pure.

use axum::http::HeaderMap;
use pintle_domain::json::{Object, Value};

use crate::error::ApiError;
use crate::rates::Attempt;
use crate::secret;

/// The version of the protocol. Source: the published protocol.
pub(crate) const PROTOCOL: i64 = 3;

/// How the names of cookies of the console begin. Browsers send the cookies of every port of a machine, so each session
/// has a name of its own.
pub(crate) const COOKIE_PREFIX: &str = "pintle_";

/// Most cookies that are looked at: more is nobody's browser.
const MAX_COOKIES: usize = 64;

/// What is said in `connect`, or in the headers of a request. Empty texts are like none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) token: Option<String>,
    pub(crate) user: Option<String>,
    /// A slug or a UUID.
    pub(crate) tenant: Option<String>,
    /// The key of a console session.
    pub(crate) console_key: Option<String>,
    /// What the browser adds by itself.
    pub(crate) cookies: Vec<String>,
}

/// The members of `connect`, those that other hosts read included.
const MEMBERS: [&str; 13] = [
    "token",
    "user_id",
    "sender_id",
    "locale",
    "tenant_hint",
    "tenant_id",
    "tenant_scope",
    "protocolVersion",
    "protocol_version",
    "client",
    "version",
    "pairing",
    "consoleKey",
];

impl Claim {
    /// Reads the params of `connect`.
    pub(crate) fn read(params: &Value) -> Result<Self, ApiError> {
        let members = match params {
            Value::Null => &Object::new(),
            Value::Object(members) => members,
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err(ApiError::invalid("invalid request: params must be an object"));
            }
        };
        if let Some(other) = members.keys().find(|name| !MEMBERS.contains(&name.as_str())) {
            return Err(ApiError::invalid(format!("invalid request: unknown field {other:?}")));
        }
        match members.get("protocolVersion").filter(|version| !version.is_null()).map(Value::as_i64) {
            None | Some(Some(PROTOCOL)) => {}
            Some(_) => return Err(ApiError::invalid(format!("unsupported protocol version: expected {PROTOCOL}"))),
        }
        let text = |name: &str| match members.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
            Some(_) => Err(ApiError::invalid(format!("invalid request: field {name:?} must be a string"))),
        };
        let tenant = match (text("tenant_id")?, text("tenant_scope")?, text("tenant_hint")?) {
            (Some(id), _, _) | (None, Some(id), _) => Some(id),
            (None, None, hint) => hint,
        };
        let console_key = text("consoleKey")?;
        Ok(Self { token: text("token")?, user: text("user_id")?, tenant, console_key, cookies: Vec::new() })
    }

    /// Reads the headers of a request.
    pub(crate) fn of_headers(headers: &HeaderMap) -> Result<Self, ApiError> {
        let text = |name: &str| -> Result<Option<String>, ApiError> {
            let Some(value) = headers.get(name) else { return Ok(None) };
            let value = value.to_str().map_err(|_| only_ascii(name))?;
            Ok(Some(value.to_owned()).filter(|value| !value.is_empty()))
        };
        let bearer = text("authorization")?.map(|value| bearer(&value)).transpose()?.flatten();
        Ok(Self {
            token: bearer.or(text("x-api-key")?),
            user: text("x-pintle-user")?,
            tenant: text("x-pintle-tenant")?,
            console_key: text("x-pintle")?,
            cookies: cookies(headers),
        })
    }

    /// How somebody tries to be known, if they try. Everything can be guessed but secrets that are made here.
    pub(crate) fn attempt(&self) -> Option<Attempt> {
        let of = |is_ours: bool| Some(if is_ours { Attempt::Secret } else { Attempt::Guess });
        match (&self.token, &self.console_key) {
            (Some(token), _) => of(secret::is_key(token)),
            (None, Some(key)) => of(secret::is_random(key)),
            (None, None) => None,
        }
    }
}

/// The key in a header `Authorization`. An empty one is like none: some clients cannot do without the header.
fn bearer(value: &str) -> Result<Option<String>, ApiError> {
    let (scheme, key) = value.split_once(' ').unwrap_or((value, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(ApiError::unauthorized("expected `Authorization: Bearer …`"));
    }
    Ok(Some(key.trim().to_owned()).filter(|key| !key.is_empty()))
}

/// What is said of a header with characters that none can carry in a way that all read alike.
pub(crate) fn only_ascii(name: &str) -> ApiError {
    ApiError::invalid(format!("the header `{name}` takes only ASCII"))
}

/// The cookies of the console that came along.
pub(crate) fn cookies(headers: &HeaderMap) -> Vec<String> {
    let lines = headers.get_all("cookie").iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let own = pairs.filter(|(name, value)| name.starts_with(COOKIE_PREFIX) && secret::is_random(value));
    own.take(MAX_COOKIES).map(|(_, value)| value.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderName;
    use pintle_domain::json::json;

    use super::*;
    use crate::error::ErrorCode;

    const RANDOM: &str = "0123456789abcdef0123456789abcdef";

    fn of(lines: &[(&'static str, &str)]) -> Result<Claim, ErrorCode> {
        let headers =
            lines.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect();
        Claim::of_headers(&headers).map_err(|error| error.code)
    }

    #[test]
    fn headers_say_who_somebody_is_in_two_ways() {
        let token = |token: &str| Ok(Claim { token: Some(token.into()), ..Claim::default() });
        assert_eq!(of(&[("authorization", "Bearer abc")]), token("abc"));
        assert_eq!(of(&[("x-api-key", "abc")]), token("abc"));
        assert_eq!(of(&[("authorization", "Bearer abc"), ("x-api-key", "def")]), token("abc"));
        assert_eq!(of(&[("authorization", ""), ("x-api-key", "")]), Ok(Claim::default()));
        assert_eq!(of(&[("authorization", "bearer abc")]), token("abc"));
        assert_eq!(of(&[("authorization", "Bearer"), ("x-api-key", "def")]), token("def"));
        assert_eq!(of(&[("authorization", "BEARER ")]), Ok(Claim::default()));
        for other in ["Basic abc", "abc", "Bearerabc"] {
            assert_eq!(of(&[("authorization", other)]), Err(ErrorCode::Unauthorized), "{other}");
        }
        assert_eq!(of(&[("x-pintle-user", "\u{e4}")]), Err(ErrorCode::InvalidRequest));
        let cookies = format!("a=b; pintle_12345678={RANDOM}; pintle_x=short; other_1={RANDOM}");
        let expected = Claim { console_key: Some("k".into()), cookies: vec![RANDOM.into()], ..Claim::default() };
        assert_eq!(of(&[("x-pintle", "k"), ("cookie", &cookies)]), Ok(expected));
    }

    #[test]
    fn what_is_wrong_in_connect_is_said() {
        for params in [json!([]), json!({ "tokn": "x" }), json!({ "token": 7 }), json!({ "protocolVersion": 2 })] {
            assert_eq!(Claim::read(&params).unwrap_err().code, ErrorCode::InvalidRequest);
        }
        assert!(Claim::read(&json!({ "protocolVersion": 3 })).is_ok());
        assert_eq!(Claim::read(&Value::Null), Ok(Claim::default()));
        assert_eq!(Claim::read(&json!({ "token": "", "user_id": "", "tenant_hint": "" })), Ok(Claim::default()));
    }

    #[test]
    fn only_what_people_choose_can_be_guessed() {
        let claim = |token: Option<&str>, key: Option<&str>| Claim {
            token: token.map(str::to_owned),
            console_key: key.map(str::to_owned),
            ..Claim::default()
        };
        for (token, key, attempt) in [
            (Some("a word"), Some(RANDOM), Some(Attempt::Guess)),
            (Some(format!("pintle_{RANDOM}").as_str()), None, Some(Attempt::Secret)),
            (None, Some(RANDOM), Some(Attempt::Secret)),
            (None, Some("a word"), Some(Attempt::Guess)),
            (None, None, None),
        ] {
            assert_eq!(claim(token, key).attempt(), attempt, "{token:?} {key:?}");
        }
    }
}
