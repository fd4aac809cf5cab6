//! The one table of who may do what. A method that is not in it nobody may call.

use rules::admin::{CallerRole, METHODS as HOOK_METHODS};

use crate::error::ApiError;
use crate::principal::{Principal, Right};

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

/// The methods that this crate carries out itself; those of rules stand in [`rules::admin::METHODS`].
const OWN: &[Method] = &[
    method("agents.list", CallerRole::Viewer, Right::Read),
    method("sessions.list", CallerRole::Viewer, Right::Read),
    method("sessions.preview", CallerRole::Viewer, Right::Read),
    method("sessions.delete", CallerRole::Operator, Right::Write),
    method("sessions.reset", CallerRole::Operator, Right::Write),
    method("sessions.compact", CallerRole::Operator, Right::Write),
    method("chat.history", CallerRole::Viewer, Right::Read),
    method("chat.session.status", CallerRole::Viewer, Right::Read),
    method("chat.send", CallerRole::Operator, Right::Write),
    method("chat.inject", CallerRole::Operator, Right::Write),
    method("chat.abort", CallerRole::Operator, Right::Write),
    method("approvals.list", CallerRole::Operator, Right::Approve),
    method("approvals.get", CallerRole::Operator, Right::Approve),
    method("approvals.approve", CallerRole::Operator, Right::Approve),
    method("approvals.refuse", CallerRole::Operator, Right::Approve),
    method("hooks.watch", CallerRole::Viewer, Right::Read),
    method("webhooks.list", CallerRole::Owner, Right::Admin),
    method("webhooks.retry", CallerRole::Owner, Right::Admin),
];

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
    if method.least == CallerRole::Owner && who.role != CallerRole::Owner {
        return Err(ApiError::unauthorized("this action requires master tenant scope"));
    }
    if who.role < method.least {
        let role = method.least.word();
        return Err(ApiError::unauthorized(format!("permission denied: {name} requires {role} role")));
    }
    if !who.rights.has(method.right) {
        return Err(ApiError::unauthorized(format!("permission denied: {name} is not for whoever did not sign in")));
    }
    Ok(method)
}
