//! From what a client says of itself to who it is.

use domain::id::TenantId;
use domain::json::{Object, Value};
use domain::store::{StoreError, Tenant};
use rules::admin::CallerRole;
use sha2::{Digest as _, Sha256};

use crate::door::Visit;
use crate::error::{ApiError, ErrorCode};
use crate::principal::{Principal, Rights};

/// The version of the protocol. Source: the published protocol.
pub(crate) const PROTOCOL: i64 = 3;

/// The slug of the tenant that is meant without a hint.
const DEFAULT_SLUG: &str = "default";

/// The owner where no file names one.
const SYSTEM: &str = "system";

/// The user of somebody who did not say who they are, on their own machine.
const LOCAL_USER: &str = "local";

/// What is said in `connect`. Empty texts are like none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) token: Option<String>,
    pub(crate) user: Option<String>,
    /// A slug or a UUID.
    pub(crate) tenant: Option<String>,
}

/// The members of `connect`, those that other hosts read included.
const MEMBERS: [&str; 12] = [
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
        Ok(Self { token: text("token")?, user: text("user_id")?, tenant })
    }
}

/// What there is to be known by.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownBy {
    /// The digest of the gateway token.
    token: Option<[u8; 32]>,
    /// The users who own the host, with that token.
    owners: Vec<String>,
}

impl KnownBy {
    pub(crate) fn new(token: Option<&str>, owners: Vec<String>) -> Self {
        let token = token.map(|token| Sha256::digest(token).into());
        let owners = if owners.is_empty() { vec![SYSTEM.to_owned()] } else { owners };
        Self { token, owners }
    }

    /// Whether there is a secret that somebody can be known by.
    pub(crate) fn has_secret(&self) -> bool {
        self.token.is_some()
    }

    /// Who it is, in one of `tenants`.
    pub(crate) fn principal(
        &self,
        claim: &Claim,
        visit: Visit,
        tenants: impl Fn() -> Result<Vec<Tenant>, StoreError>,
    ) -> Result<Principal, ApiError> {
        let (user, role, rights) = match &claim.token {
            // Digests are compared: how long that takes says nothing of the token.
            Some(token) if self.token.is_some_and(|known| known == <[u8; 32]>::from(Sha256::digest(token))) => {
                let user = claim.user.clone().unwrap_or_else(|| "admin".to_owned());
                let role = if self.owners.contains(&user) { CallerRole::Owner } else { CallerRole::Admin };
                (user, role, Rights::all())
            }
            None if visit.is_local && !self.has_secret() => {
                (LOCAL_USER.to_owned(), CallerRole::Operator, Rights::anonymous())
            }
            Some(_) | None => return Err(ApiError::unauthorized("unauthorized: invalid or missing credentials")),
        };
        let tenant = tenant(claim, role, tenants)?;
        Ok(Principal { tenant: tenant.id, slug: tenant.slug, tenant_name: tenant.name, user, role, rights })
    }
}

/// The tenant that is meant. Owners may pick any; others are where they are members.
fn tenant(
    claim: &Claim,
    role: CallerRole,
    tenants: impl Fn() -> Result<Vec<Tenant>, StoreError>,
) -> Result<Tenant, ApiError> {
    let wanted = claim.tenant.as_deref().unwrap_or(DEFAULT_SLUG);
    let revoked = || ApiError::new(ErrorCode::TenantAccessRevoked, "tenant access revoked");
    let all = tenants()?;
    let found = all.into_iter().find(|tenant| tenant.slug == wanted || tenant.id.as_str() == wanted);
    let found = found.filter(|tenant| tenant.id != TenantId::sentinel()).ok_or_else(revoked)?;
    if role == CallerRole::Owner || found.id == TenantId::default_tenant() { Ok(found) } else { Err(revoked()) }
}

#[cfg(test)]
mod tests {
    use domain::json::json;

    use super::*;

    const LOCAL: Visit = Visit { from: None, is_local: true };
    const REMOTE: Visit = Visit { from: None, is_local: false };

    fn tenants() -> Result<Vec<Tenant>, StoreError> {
        let tenant =
            |id: TenantId, slug: &str| Tenant { id, slug: slug.into(), name: slug.into(), created_at: String::new() };
        Ok(vec![
            tenant(TenantId::sentinel(), "global"),
            tenant(TenantId::default_tenant(), "default"),
            tenant(TenantId::from("0193a5b0-7000-7000-8000-0000000000aa"), "acme"),
        ])
    }

    fn who(known: &KnownBy, params: Value, visit: Visit) -> Result<(String, CallerRole, String), ErrorCode> {
        let claim = Claim::read(&params).map_err(|error| error.code)?;
        let principal = known.principal(&claim, visit, tenants).map_err(|error| error.code)?;
        Ok((principal.user, principal.role, principal.slug))
    }

    #[test]
    fn the_gateway_token_gives_an_admin_and_an_owner_by_name() {
        let known = KnownBy::new(Some("secret"), Vec::new());
        let with = |user: &str, tenant: &str| {
            who(&known, json!({ "token": "secret", "user_id": user, "tenant_hint": tenant }), REMOTE)
        };
        assert_eq!(with("anna", ""), Ok(("anna".into(), CallerRole::Admin, "default".into())));
        assert_eq!(with("", ""), Ok(("admin".into(), CallerRole::Admin, "default".into())));
        assert_eq!(with("system", "acme"), Ok(("system".into(), CallerRole::Owner, "acme".into())));
        assert_eq!(with("anna", "acme"), Err(ErrorCode::TenantAccessRevoked));
        for other in ["none", "global", "0193a5b0-7000-7000-8000-000000000001"] {
            assert_eq!(with("system", other), Err(ErrorCode::TenantAccessRevoked), "{other}");
        }
        let named = KnownBy::new(Some("secret"), vec!["root".into()]);
        let role = |user: &str| who(&named, json!({ "token": "secret", "user_id": user }), REMOTE).unwrap().1;
        assert_eq!((role("root"), role("system")), (CallerRole::Owner, CallerRole::Admin));
    }

    #[test]
    fn nobody_is_anonymous_but_on_their_own_machine_without_a_token() {
        let (open, shut) = (KnownBy::default(), KnownBy::new(Some("secret"), Vec::new()));
        let nothing = || json!({ "token": "", "user_id": "", "tenant_id": "" });
        assert_eq!(who(&open, nothing(), LOCAL), Ok(("local".into(), CallerRole::Operator, "default".into())));
        assert_eq!(who(&open, nothing(), REMOTE), Err(ErrorCode::Unauthorized));
        assert_eq!(who(&shut, nothing(), LOCAL), Err(ErrorCode::Unauthorized));
        for token in ["wrong", "secre", "secret "] {
            assert_eq!(who(&shut, json!({ "token": token }), LOCAL), Err(ErrorCode::Unauthorized));
            assert_eq!(who(&open, json!({ "token": token }), LOCAL), Err(ErrorCode::Unauthorized));
        }
    }

    #[test]
    fn what_is_wrong_in_connect_is_said() {
        for params in [json!([]), json!({ "tokn": "x" }), json!({ "token": 7 }), json!({ "protocolVersion": 2 })] {
            assert_eq!(who(&KnownBy::default(), params, LOCAL), Err(ErrorCode::InvalidRequest));
        }
        assert!(who(&KnownBy::default(), json!({ "protocolVersion": 3 }), LOCAL).is_ok());
        assert!(who(&KnownBy::default(), Value::Null, LOCAL).is_ok());
    }
}
