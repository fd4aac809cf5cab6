//! Members of tenants.

use jiff::Timestamp;
use pintle_domain::store::{Member, StoreError};
use pintle_rules::admin::{Caller, CallerRole};

use super::person::person;
use super::{IdentityAdmin, actor_because, moment};
use crate::error::{ApiError, ErrorCode};

/// What is to be otherwise about a member.
#[derive(Clone, Debug, Default)]
pub struct MemberChange {
    /// What they may.
    pub role: Option<CallerRole>,
    /// Whether they are let in.
    pub enabled: Option<bool>,
    /// Why; empty where nobody says it.
    pub reason: String,
}

impl IdentityAdmin {
    /// The members of the caller's tenant, by user.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn members(&self, by: &Caller) -> Result<Vec<Member>, ApiError> {
        Ok(self.store.members(&by.tenant)?)
    }

    /// Makes `user` a member of the caller's tenant.
    ///
    /// # Errors
    /// They are one, the role is more than the caller has, or the store cannot keep it.
    pub fn add_member(&self, by: &Caller, user: &str, role: CallerRole, now: Timestamp) -> Result<Member, ApiError> {
        let user = person("userId", user, by, &self.owners)?;
        given(by, role)?;
        let member = Member {
            tenant: by.tenant.clone(),
            user: user.to_owned(),
            role,
            disabled_at: None,
            created_at: moment(now),
            created_by: by.name.clone(),
        };
        self.store.add_member(&member).map_err(|error| match error {
            StoreError::Conflict(why) => match self.store.member(&member.tenant, &member.user) {
                Ok(None) => ApiError::precondition(why),
                Ok(Some(_)) | Err(_) => ApiError::new(ErrorCode::AlreadyExists, why),
            },
            other @ (StoreError::Unavailable(_) | StoreError::Corrupt(_) | StoreError::NotFound(_)) => other.into(),
        })?;
        tracing::info!(%user, %role, by = %by.name, "security.member_added");
        Ok(member)
    }

    /// Changes a member of the caller's tenant.
    ///
    /// # Errors
    /// They are none, the role is more than the caller has, or the store cannot keep it.
    pub fn change_member(
        &self,
        by: &Caller,
        user: &str,
        change: MemberChange,
        now: Timestamp,
    ) -> Result<Member, ApiError> {
        change.role.map_or(Ok(()), |role| given(by, role))?;
        let mut member = self.store.member(&by.tenant, user)?.ok_or_else(|| not_found(user))?;
        member.role = change.role.unwrap_or(member.role);
        match change.enabled {
            Some(true) => member.disabled_at = None,
            Some(false) => member.disabled_at = member.disabled_at.take().or_else(|| Some(moment(now))),
            None => {}
        }
        self.store.change_member(&member, &actor_because(by, now, &change.reason)?)?;
        tracing::info!(%user, role = %member.role, enabled = member.disabled_at.is_none(), by = %by.name,
            "security.member_changed");
        Ok(member)
    }

    /// Takes a member out of the caller's tenant, with their keys and sessions.
    ///
    /// # Errors
    /// They are none, the reason is too long, or the store cannot do it.
    pub fn remove_member(&self, by: &Caller, user: &str, reason: &str, now: Timestamp) -> Result<(), ApiError> {
        if self.store.remove_member(&by.tenant, user, &actor_because(by, now, reason)?)? {
            tracing::info!(%user, by = %by.name, "security.member_removed");
            return Ok(());
        }
        Err(not_found(user))
    }
}

/// Whether `by` may make somebody this.
fn given(by: &Caller, role: CallerRole) -> Result<(), ApiError> {
    if role == CallerRole::Owner {
        return Err(ApiError::invalid(
            "a member is viewer, operator or admin; owners are named in `gateway.owner_ids`",
        ));
    }
    IdentityAdmin::may_give(by, role)
}

fn not_found(user: &str) -> ApiError {
    ApiError::new(ErrorCode::NotFound, format!("member not found: {}", user.escape_debug()))
}
