//! Everything that can be done with keys, members, tenants and sessions of the console, whoever asks: the command line or
//! the gateway. Nobody gives more than they have.

use std::sync::Arc;

use jiff::Timestamp;
use pintle_domain::id::TenantId;
use pintle_domain::person_name::{HostOwners, unseen_flaw};
use pintle_domain::rule::Edition;
use pintle_domain::store::Actor;
use pintle_rules::admin::{Caller, CallerRole, reason_said};
use pintle_store::Store;

use crate::error::ApiError;

mod keys;
mod members;
mod person;
mod sessions;
mod tenants;

pub use keys::{FreshKey, KeyWish};
pub use members::MemberChange;
pub(crate) use sessions::FreshSession;
pub use tenants::TenantChange;

/// Longest name of a key, a user or a tenant, in characters: the width of its column.
const MAX_NAME: usize = 255;

/// Does what callers want with who may ask, as far as they may give it. Who may call at all is asked before.
#[derive(Clone)]
pub struct IdentityAdmin {
    store: Arc<dyn Store>,
    edition: Edition,
    owners: HostOwners,
}

impl IdentityAdmin {
    /// One over `store`, of a host that `owners` own.
    pub fn new(store: Arc<dyn Store>, edition: Edition, owners: HostOwners) -> Self {
        Self { store, edition, owners }
    }

    /// Lets those pass who have at least `role` themselves.
    fn may_give(by: &Caller, role: CallerRole) -> Result<(), ApiError> {
        if by.role >= role {
            return Ok(());
        }
        let (wanted, own) = (role.word(), by.role.word());
        Err(ApiError::unauthorized(format!("permission denied: the role {own} cannot grant {wanted}")))
    }
}

/// Who does something at `now` that takes something away, and why: empty where nobody says it.
fn actor_because(by: &Caller, now: Timestamp, reason: &str) -> Result<Actor, ApiError> {
    Ok(Actor { reason: reason_said(reason)?.to_owned(), ..actor(by, now) })
}

fn actor(by: &Caller, now: Timestamp) -> Actor {
    Actor { name: by.name.clone(), at: now, reason: String::new() }
}

/// A moment as it is kept.
fn moment(at: Timestamp) -> String {
    Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at).to_string()
}

/// A name that can be kept and shown.
fn name<'a>(what: &str, text: &'a str) -> Result<&'a str, ApiError> {
    let length = text.chars().count();
    if text.trim().is_empty() {
        return Err(ApiError::invalid(format!("{what} is required")));
    }
    if length > MAX_NAME {
        return Err(ApiError::invalid(format!("{what} exceeds {MAX_NAME} characters (got {length})")));
    }
    if text.chars().any(char::is_control) {
        return Err(ApiError::invalid(format!("{what} has control characters")));
    }
    Ok(text)
}

/// A new name of a key or a tenant: nothing in it is hidden from whoever reads it.
fn label<'a>(what: &str, text: &'a str) -> Result<&'a str, ApiError> {
    let text = name(what, text)?;
    match unseen_flaw(text) {
        Some(flaw) => Err(ApiError::invalid(format!("{what} {flaw}"))),
        None => Ok(text),
    }
}

/// Nobody lives in the tenant of global rules.
fn lives_in(tenant: &TenantId) -> bool {
    *tenant != TenantId::sentinel()
}
