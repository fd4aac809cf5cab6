//! Rows with a seal, and what it is over.

use pintle_domain::json::{Value, json};
use pintle_domain::store::{ApiKey, ConsoleSession, Member, SignInLink};

/// A row as it was read.
pub(crate) struct SealedRow<T> {
    pub(crate) it: T,
    /// All that the seal is over.
    pub(crate) says: Value,
    pub(crate) seal: Option<String>,
}

/// What a row of a member says.
pub(crate) fn of_member(member: &Member) -> Value {
    json!({
        "table": "members", "tenant_id": member.tenant, "user_id": member.user, "role": member.role.word(),
        "disabled_at": member.disabled_at, "created_at": member.created_at, "created_by": member.created_by,
    })
}

/// What a row of a key says.
pub(crate) fn of_key(key: &ApiKey, digest: &str) -> Value {
    let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.word()).collect();
    json!({
        "table": "api_keys", "tenant_id": key.tenant, "id": key.id, "owner": key.owner, "name": key.name,
        "shown": key.shown, "digest": digest, "scopes": scopes, "expires_at": key.expires_at,
        "revoked_at": key.revoked_at, "created_at": key.created_at, "created_by": key.created_by,
    })
}

/// What a row of a session of the console says, with the digests of its two secrets.
pub(crate) fn of_console_session(session: &ConsoleSession, (key, cookie): (&str, &str)) -> Value {
    json!({
        "table": "console_sessions", "tenant_id": session.tenant, "id": session.id, "user_id": session.user,
        "role": session.role.word(), "origin": session.origin.to_string(), "device": session.device,
        "key_digest": key, "cookie_digest": cookie, "created_at": session.created_at,
    })
}

/// What a row of a link says.
pub(crate) fn of_link(link: &SignInLink, digest: &str) -> Value {
    json!({
        "table": "console_links", "tenant_id": link.tenant, "user_id": link.user, "role": link.role.word(),
        "expires_at": link.expires_at, "digest": digest,
    })
}
