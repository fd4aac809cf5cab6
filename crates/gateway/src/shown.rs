//! Keys and members as clients and the command line show them.

use pintle_domain::json::{Value, json};
use pintle_domain::store::{ApiKey, Member};

/// A key without its secret.
#[must_use]
pub fn shown_key(key: &ApiKey) -> Value {
    let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.word()).collect();
    json!({
        "id": key.id, "name": key.name, "prefix": key.shown, "owner": key.owner, "scopes": scopes,
        "role": key.role().word(), "expiresAt": key.expires_at, "revokedAt": key.revoked_at,
        "createdAt": key.created_at, "createdBy": key.created_by,
    })
}

/// A member.
#[must_use]
pub fn shown_member(member: &Member) -> Value {
    json!({
        "userId": member.user, "role": member.role.word(), "enabled": member.disabled_at.is_none(),
        "disabledAt": member.disabled_at, "createdAt": member.created_at, "createdBy": member.created_by,
    })
}
