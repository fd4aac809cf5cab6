//! What `pintle keys`, `pintle members`, `pintle tenants` and `pintle serve link` have in common: a person gives them,
//! and they act on the store of the configuration, in one tenant.

use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use pintle_domain::id::DEFAULT_SLUG;
use pintle_domain::json::Value;
use pintle_domain::person_name::HostOwners;
use pintle_domain::rule::Edition;
use pintle_domain::store::{StoreError, Tenant};
use pintle_gateway::{ApiError, ErrorCode, IdentityAdmin};
use pintle_host::config::Loaded;
use pintle_host::host::load;
use pintle_host::host_rules::{RuleEnvironment, edition, open_known_store};
use pintle_rules::admin::Caller;
use pintle_store::Store;

use super::audit::{failed, no_tenant};
use super::{Global, terminal};
use crate::error::CliError;
use crate::operator;

/// Where those who may ask are managed.
pub(super) struct Identities {
    pub(super) admin: IdentityAdmin,
    /// The person at the terminal, in the tenant that is meant.
    pub(super) by: Caller,
    pub(super) edition: Edition,
    pub(super) loaded: Loaded,
    pub(super) now: Timestamp,
}

/// Opens the store for a person, in the tenant with this slug or id.
pub(super) fn open(global: &Global, tenant: Option<&str>) -> Result<Identities, CliError> {
    operator::require()?;
    let (env, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    let edition = edition(&loaded.config, &env)?;
    // Who may what is sealed with a key of the host.
    let store: Arc<dyn Store> = RuleEnvironment::of(&loaded.config, &env)?.open_store(&loaded.config)?;
    let mut by = Caller::cli();
    by.tenant = tenant_named(&store.tenants().map_err(failed)?, tenant)?.id.clone();
    let owners = HostOwners::named(loaded.config.gateway.owner_ids.clone());
    Ok(Identities { admin: IdentityAdmin::new(store, edition, owners), by, edition, loaded, now: Timestamp::now() })
}

/// Refuses to change what is sealed in a store that another key sealed: no other host would take it. Nothing is written.
pub(in crate::cli) fn may_seal(global: &Global) -> Result<(), CliError> {
    let (env, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    // What is wrong with the store itself is said when it is opened for the work.
    open_known_store(&loaded.config, &env).map_or(Ok(()), |store| sealed_here(store.other_key()))
}

/// Whether what a store says of the `other` key that sealed it, if one did, lets this host change it.
fn sealed_here(other: Result<Option<String>, StoreError>) -> Result<(), CliError> {
    match other {
        Ok(None) => Ok(()),
        Ok(Some(why)) => Err(CliError::failed(why)),
        Err(error) => {
            let failed = failed(error);
            Err(CliError::failed(format!("whether another key sealed the store cannot be known: {}", failed.message))
                .hint("nothing was changed; `pintle doctor` says what is wrong with the store"))
        }
    }
}

/// The one of `tenants`, as a store has them, with this slug or id; the default one where none is named.
pub(super) fn tenant_named<'a>(tenants: &'a [Tenant], named: Option<&str>) -> Result<&'a Tenant, CliError> {
    let named = named.unwrap_or(DEFAULT_SLUG);
    // The first is the owner of global rules, and nobody's tenant.
    let known = tenants.iter().skip(1);
    let found = known.clone().find(|tenant| tenant.slug == named || tenant.id.as_str() == named);
    found.ok_or_else(|| no_tenant(named, known.map(|tenant| tenant.slug.as_str())))
}

/// What a store or a rule of who may give what said.
pub(super) fn refused(error: ApiError) -> CliError {
    match error.code {
        ErrorCode::InvalidRequest => CliError::usage(error.message),
        ErrorCode::Unavailable
        | ErrorCode::NotLinked
        | ErrorCode::NotPaired
        | ErrorCode::AgentTimeout
        | ErrorCode::Unauthorized
        | ErrorCode::NotFound
        | ErrorCode::AlreadyExists
        | ErrorCode::ResourceExhausted
        | ErrorCode::FailedPrecondition
        | ErrorCode::Internal
        | ErrorCode::TenantAccessRevoked
        | ErrorCode::NotImplemented => CliError::failed(error.message),
    }
}

/// How long something lasts: `90d`, `12h`.
pub(super) fn lasting(text: &str, now: Timestamp) -> Result<Duration, CliError> {
    let span = text.parse::<Span>().ok().filter(|span| !span.is_negative() && !span.is_zero());
    let until = span.and_then(|span| now.to_zoned(TimeZone::UTC).checked_add(span).ok());
    let lasts = until.and_then(|until| Duration::try_from(until.timestamp().duration_since(now)).ok());
    lasts.ok_or_else(|| {
        CliError::usage(format!("--expires: \"{text}\" is not a time")).hint("write how long, such as 90d or 12h")
    })
}

pub(super) fn print_json(value: &Value) -> Result<u8, CliError> {
    let text = serde_json::to_string_pretty(value).map_err(|error| CliError::failed(error.to_string()))?;
    terminal::say(&format!("{text}\n"))?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_sealed_where_nobody_knows_who_did() {
        assert!(sealed_here(Ok(None)).is_ok());
        assert_eq!(sealed_here(Ok(Some("another key".into()))).unwrap_err().message, "another key");
        let why = sealed_here(Err(StoreError::Unavailable("locked".into()))).unwrap_err();
        assert!(why.message.contains("cannot be known") && why.message.contains("locked"), "{why}");
    }
}
