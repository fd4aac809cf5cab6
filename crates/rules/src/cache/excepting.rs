//! Exceptions: rules that ask a person about calls that another rule refuses.
//!
//! An exception names the rule that it is one of, and that rule stays as its author wrote it. While the exception acts,
//! the other one does not see what it is about; as soon as it does not, for whatever reason, the other one sees all of
//! it again. So nothing that was refused is left to nobody.

use std::borrow::Cow;

use pintle_domain::anchor::RuleDoubt;
use pintle_domain::rule::{Rule, Source};
use pintle_domain::store::{OpenBreaker, StoredRules};

use super::RuleRows;
use crate::condition;
use crate::team::is_of_team;

/// `row` as it is asked among `rules`: with a condition that leaves out what exceptions of it are about.
pub fn as_asked<'a>(row: &'a Rule, rules: &StoredRules) -> Cow<'a, Rule> {
    let rows = RuleRows { hooks: &rules.hooks, trips: &rules.trips, doubts: &rules.doubts, agents: &[] };
    narrowed(row, &exceptions(rows))
}

/// Those of `rows` that are exceptions and act.
pub(super) fn exceptions(rows: RuleRows<'_>) -> Vec<&Rule> {
    let RuleRows { hooks, trips, doubts, .. } = rows;
    hooks.iter().filter(|rule| rule.exception_of().is_some() && acts(rule, trips, doubts)).collect()
}

/// `row` as it is asked among these exceptions.
pub(super) fn narrowed<'a>(row: &'a Rule, exceptions: &[&Rule]) -> Cow<'a, Rule> {
    let mut asked = Cow::Borrowed(row);
    for exception in exceptions.iter().filter(|other| is_exception(other, row)) {
        let rest = without(&asked.if_expr, &exception.if_expr);
        // An exception too many, or one that nobody can read, is none: the rule goes on to refuse.
        if condition::compile(&rest).is_ok() {
            asked.to_mut().if_expr = rest;
        }
    }
    asked
}

/// Whether `other` is an exception of `row`: whoever may write the one may write the other, and it is asked wherever
/// `row` is.
fn is_exception(other: &Rule, row: &Rule) -> bool {
    other.exception_of() == Some(row.id.as_str())
        // An exception has none: two of each other would leave to nobody what both are about.
        && row.exception_of().is_none()
        && (row.source, other.source) == (Source::User, Source::User)
        && [row, other].iter().all(|rule| rule.file().is_none() && is_of_team(rule).is_none())
        && (&other.tenant_id, other.scope, other.event) == (&row.tenant_id, row.scope, row.event)
        && row.agent_ids.iter().all(|agent| other.agent_ids.contains(agent))
        && other.matcher.is_empty()
        && !other.if_expr.is_empty()
}

/// Whether it is asked, by everybody: with a breaker that is open for one tenant it is no exception for any.
fn acts(rule: &Rule, trips: &[OpenBreaker], doubts: &[RuleDoubt]) -> bool {
    let is_open = rule.tripped_at.is_some() || trips.iter().any(|trip| trip.hook_id == rule.id);
    rule.enabled && !is_open && doubts.iter().all(|doubt| doubt.hook != rule.id)
}

/// The condition `own` without what `other` is about.
fn without(own: &str, other: &str) -> String {
    if own.is_empty() { format!("!({other})") } else { format!("({own}) && !({other})") }
}
