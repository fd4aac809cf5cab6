//! The one table of who may do what. A method that is not in it nobody may call.

use pintle_domain::id::TenantId;
use pintle_domain::store::{KeyScope, TenantScope};
use pintle_rules::admin::{CallerRole, METHODS as HOOK_METHODS};

use pintle_host::config::ApproversConfig;
use pintle_rules::record::NO_MASTER;

use crate::error::ApiError;
use crate::params::Params;
use crate::principal::{Credential, Principal, Right};

/// A method of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Method {
    pub(crate) name: &'static str,
    /// Who may at least use it.
    pub(crate) least: CallerRole,
    pub(crate) right: Right,
}

const fn method(name: &'static str, least: CallerRole, right: Right) -> Method {
    Method { name, least, right }
}

/// The methods that this crate carries out itself; those of rules stand in [`pintle_rules::admin::METHODS`].
const OWN: &[Method] = &[
    method("agents.list", CallerRole::Viewer, Right::Read),
    method("sessions.list", CallerRole::Viewer, Right::Read),
    method("sessions.preview", CallerRole::Viewer, Right::Read),
    method("sessions.patch", CallerRole::Operator, Right::Write),
    method("sessions.delete", CallerRole::Operator, Right::Write),
    method("sessions.reset", CallerRole::Operator, Right::Write),
    method("sessions.compact", CallerRole::Operator, Right::Write),
    method("chat.history", CallerRole::Viewer, Right::Read),
    method("chat.session.status", CallerRole::Viewer, Right::Read),
    method("chat.send", CallerRole::Operator, Right::Write),
    method("chat.inject", CallerRole::Operator, Right::Write),
    method("chat.abort", CallerRole::Operator, Right::Write),
    method("turns.list", CallerRole::Viewer, Right::Read),
    method("turns.get", CallerRole::Viewer, Right::Read),
    method("turns.seen", CallerRole::Viewer, Right::Read),
    method("overview.get", CallerRole::Viewer, Right::Read),
    method("health.get", CallerRole::Viewer, Right::Read),
    method("doctor.run", CallerRole::Owner, Right::Admin),
    method("nodes.list", CallerRole::Owner, Right::Admin),
    method("approvals.list", CallerRole::Operator, Right::Approve),
    method("approvals.get", CallerRole::Operator, Right::Approve),
    method("approvals.approve", CallerRole::Operator, Right::Approve),
    method("approvals.refuse", CallerRole::Operator, Right::Approve),
    method("auth.sessions.list", CallerRole::Viewer, Right::SignedIn),
    method("auth.sessions.revoke", CallerRole::Viewer, Right::SignedIn),
    method("api_keys.create", CallerRole::Admin, Right::Admin),
    method("api_keys.list", CallerRole::Admin, Right::Admin),
    method("api_keys.revoke", CallerRole::Admin, Right::Admin),
    method("members.list", CallerRole::Admin, Right::Admin),
    method("members.add", CallerRole::Admin, Right::Admin),
    method("members.update", CallerRole::Admin, Right::Admin),
    method("members.remove", CallerRole::Admin, Right::Admin),
    method("tenants.list", CallerRole::Owner, Right::Admin),
    method("tenants.create", CallerRole::Owner, Right::Admin),
    method("tenants.update", CallerRole::Owner, Right::Admin),
    method("hooks.check", CallerRole::Viewer, Right::Read),
    method("hooks.counts", CallerRole::Viewer, Right::Read),
    method("hooks.watch", CallerRole::Viewer, Right::Read),
    method("webhooks.list", CallerRole::Owner, Right::Admin),
    method("webhooks.retry", CallerRole::Owner, Right::Admin),
];

/// What is asked for over HTTP alone.
const OVER_HTTP: &[Method] = &[
    method("door.use", CallerRole::Operator, Right::Write),
    method("media.add", CallerRole::Operator, Right::Write),
    method("media.get", CallerRole::Viewer, Right::Read),
    method("guard.rules", CallerRole::Viewer, Right::Guard),
    method("guard.records", CallerRole::Viewer, Right::Guard),
    method("metrics", CallerRole::Admin, Right::Admin),
    method("auth.switch", CallerRole::Owner, Right::Admin),
];

/// What is asked for over HTTP, whichever table has it.
pub(crate) fn over_http(name: &str) -> Option<Method> {
    OVER_HTTP.iter().copied().chain(methods()).find(|method| method.name == name)
}

impl Method {
    /// Whether somebody may use it who did not say who they are, where nobody has to.
    pub(crate) fn is_open(self) -> bool {
        self.least <= CallerRole::Operator && matches!(self.right, Right::Read | Right::Write)
    }

    /// The least scope that gives a key the right to it; none where every key has it.
    pub(crate) fn scope(self) -> Option<KeyScope> {
        match self.right {
            Right::SignedIn => None,
            Right::Read => Some(KeyScope::Read),
            Right::Write | Right::TryRules => Some(KeyScope::Write),
            Right::Approve => Some(KeyScope::Approvals),
            Right::Guard => Some(KeyScope::Guard),
            Right::Admin => Some(KeyScope::Admin),
        }
    }
}

/// Every method, in the order of the reference.
pub(crate) fn methods() -> Vec<Method> {
    let hooks =
        HOOK_METHODS.iter().map(|(name, least)| Method { name, least: *least, right: right_of_hooks(name, *least) });
    OWN.iter().copied().chain(hooks).collect()
}

/// The right that a method about rules takes.
fn right_of_hooks(name: &str, least: CallerRole) -> Right {
    match least {
        CallerRole::Viewer => Right::Read,
        CallerRole::Operator if name == "hooks.test" => Right::TryRules,
        CallerRole::Operator => Right::Write,
        CallerRole::Admin | CallerRole::Owner => Right::Admin,
    }
}

/// Lets those pass who may use `name`.
pub(crate) fn allow(who: &Principal, name: &str) -> Result<Method, ApiError> {
    let found = methods().into_iter().find(|method| method.name == name);
    let method = found.ok_or_else(|| ApiError::invalid(format!("unknown method: {name}")))?;
    pass(who, method)
}

/// The same for what is asked for over HTTP alone.
pub(crate) fn allow_over_http(who: &Principal, name: &str) -> Result<Method, ApiError> {
    let found = OVER_HTTP.iter().find(|method| method.name == name).copied();
    pass(who, found.ok_or_else(|| ApiError::unauthorized(format!("permission denied: {name}")))?)
}

fn pass(who: &Principal, method: Method) -> Result<Method, ApiError> {
    let name = method.name;
    if method.least == CallerRole::Owner && who.role != CallerRole::Owner {
        return Err(ApiError::unauthorized(NO_MASTER));
    }
    if who.role < method.least {
        let role = method.least.word();
        let scope = scope_of_key(who, method.right).map(|scope| format!(", and of a key the scope `{scope}`"));
        let scope = scope.unwrap_or_default();
        return Err(ApiError::unauthorized(format!("permission denied: {name} requires {role} role{scope}")));
    }
    if !who.rights.has(method.right) {
        let why = match who.credential {
            Credential::Anonymous => "requires signing in",
            Credential::Token | Credential::Key(_) | Credential::Console { .. } => "is beyond the scopes of this key",
        };
        let scope = scope_of_key(who, method.right).map(|scope| format!(": it needs `{scope}`")).unwrap_or_default();
        return Err(ApiError::unauthorized(format!("permission denied: {name} {why}{scope}")));
    }
    Ok(method)
}

/// The scope that a key needs for `right`, if `who` came with a key.
fn scope_of_key(who: &Principal, right: Right) -> Option<&'static str> {
    match &who.credential {
        Credential::Key(_) | Credential::Console { key: Some(_), .. } => right.scope(),
        Credential::Token | Credential::Console { key: None, .. } | Credential::Anonymous => None,
    }
}

/// The tenants whose things somebody asks for: their own, or every one for owners who say so.
pub(crate) fn looks_at(who: &Principal, params: &Params<'_>) -> Result<TenantScope, ApiError> {
    match params.flag("allTenants")? {
        Some(true) if who.is_owner() => Ok(TenantScope::All),
        Some(true) => Err(ApiError::unauthorized(NO_MASTER)),
        Some(false) | None => Ok(TenantScope::from(&who.tenant)),
    }
}

/// The same, where an owner may also name one tenant.
pub(crate) fn looks_in(who: &Principal, params: &Params<'_>) -> Result<TenantScope, ApiError> {
    match params.text("tenantId")? {
        Some(tenant) if who.is_owner() => Ok(TenantScope::One(TenantId::from(tenant))),
        Some(tenant) if tenant != who.tenant.as_str() => Err(ApiError::unauthorized(NO_MASTER)),
        Some(_) => Ok(TenantScope::from(&who.tenant)),
        None => looks_at(who, params),
    }
}

/// The tenants in which somebody finds a thing by its id.
pub(crate) fn finds_in(who: &Principal) -> TenantScope {
    if who.is_owner() { TenantScope::All } else { TenantScope::from(&who.tenant) }
}

/// The roles that an agent's approvers may be.
const ROLES: [CallerRole; 4] = [CallerRole::Viewer, CallerRole::Operator, CallerRole::Admin, CallerRole::Owner];

/// Whether `approvers` name somebody: their name, or a role that they have at least.
pub(crate) fn is_named(who: &Principal, approvers: &ApproversConfig) -> bool {
    let has = |name: &String| ROLES.iter().any(|role| role.word() == name && who.role >= *role);
    approvers.named.iter().flatten().any(|name| *name == who.user || has(name))
}

/// Whether somebody may answer what an agent with these `approvers` asks in a conversation of the user `asker`.
pub(crate) fn may_answer(who: &Principal, asker: Option<&str>, approvers: &ApproversConfig) -> Result<(), ApiError> {
    if approvers.other_than_asker && asker == Some(who.user.as_str()) {
        return Err(ApiError::unauthorized(
            "permission denied: this agent requires an approver other than the user who asked",
        ));
    }
    match &approvers.named {
        Some(named) if !is_named(who, approvers) => {
            let named = named.join(", ");
            Err(ApiError::unauthorized(format!("permission denied: approvals for this agent are answered by: {named}")))
        }
        Some(_) | None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::principal::somebody;
    use pintle_domain::json::{Value, json};

    #[test]
    fn only_owners_look_at_every_tenant() {
        let every = json!({ "allTenants": true });
        for (role, sees) in [(CallerRole::Viewer, false), (CallerRole::Admin, false), (CallerRole::Owner, true)] {
            let who = somebody("anna", role);
            let own = TenantScope::from(&who.tenant);
            for params in [json!({}), json!({ "allTenants": false })] {
                assert_eq!(looks_at(&who, &Params::of(&params, &["allTenants"]).unwrap()), Ok(own.clone()));
            }
            let asked = looks_at(&who, &Params::of(&every, &["allTenants"]).unwrap());
            assert_eq!(asked.ok(), sees.then_some(TenantScope::All));
            assert_eq!(finds_in(&who), if sees { TenantScope::All } else { own });
        }
    }

    #[test]
    fn only_owners_name_another_tenant() {
        let (named, unnamed) = (["allTenants", "tenantId"], json!({}));
        let other = "0193a5b0-7000-7000-8000-00000000000a";
        for (role, sees) in [(CallerRole::Viewer, false), (CallerRole::Admin, false), (CallerRole::Owner, true)] {
            let who = somebody("anna", role);
            let own = TenantScope::from(&who.tenant);
            let looks = |params: &Value| looks_in(&who, &Params::of(params, &named).unwrap()).ok();
            let found = sees.then(|| TenantScope::One(TenantId::from(other)));
            assert_eq!(looks(&json!({ "tenantId": other })), found, "{role:?}");
            // Whoever may look at all of them looks at the one that they name.
            assert_eq!(looks(&json!({ "tenantId": other, "allTenants": true })), found, "{role:?}");
            assert_eq!(looks(&json!({ "tenantId": who.tenant })), Some(own.clone()), "{role:?}");
            assert_eq!(looks(&unnamed), Some(own), "{role:?}");
        }
    }

    #[test]
    fn approvers_are_users_and_roles_and_may_be_somebody_else() {
        let (anna, ben) = (somebody("anna", CallerRole::Operator), somebody("ben", CallerRole::Admin));
        let may = |who: &Principal, named: Option<&[&str]>, other_than_asker| {
            let named = named.map(|all| all.iter().map(|name| (*name).to_owned()).collect());
            may_answer(who, Some("anna"), &ApproversConfig { named, other_than_asker }).is_ok()
        };
        for (who, named, other, good) in [
            (&anna, None, false, true),
            (&anna, None, true, false),
            (&ben, None, true, true),
            (&anna, Some(["anna"].as_slice()), false, true),
            (&anna, Some(&["anna"]), true, false),
            (&anna, Some(&["admin"]), false, false),
            (&ben, Some(&["admin"]), true, true),
            (&ben, Some(&["operator"]), false, true),
            (&ben, Some(&["owner", "carl"]), false, false),
            (&ben, Some(&[]), false, false),
        ] {
            assert_eq!(may(who, named, other), good, "{} {named:?} {other}", who.user);
        }
    }

    #[test]
    fn what_is_asked_over_http_alone_is_no_method_of_the_socket() {
        for method in OVER_HTTP {
            assert!(methods().iter().all(|other| other.name != method.name), "{}", method.name);
        }
    }
}
