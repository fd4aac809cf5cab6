//! Whose turns a record was to be about that is not in order: what stands in for it guards those and no others.

use std::collections::BTreeSet;

use pintle_domain::hook::Scope;
use pintle_domain::id::{AgentId, DEFAULT_SLUG, TenantId, agent_uuid};
use pintle_domain::json::Value;
use pintle_domain::nearest::nearest;
use pintle_domain::rule::HookScope;
use pintle_domain::store::Tenant;

/// Longest name of an agent that is compared with the known ones: no typing mistake makes one of them longer.
const MAX_COMPARED_BYTES: usize = 64;

/// The scope that a record was meant to have, as far as it can be read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct IntendedScope {
    /// Of which tenant; none if it was everybody's, or nobody can say.
    pub tenant: Option<TenantId>,
    /// Of which agents.
    pub scope: Scope,
}

impl IntendedScope {
    /// Everybody's.
    pub(super) const EVERYONE: Self = Self { tenant: None, scope: Scope::Everyone };

    /// The scope that `record` gives, on a host with these tenants and agents. An agent that the host does not have
    /// has no turns here; since its name may be mistyped, the nearest one is meant too.
    pub(super) fn of(record: &Value, tenants: &[Tenant], agents: &[AgentId]) -> Self {
        let text = |member: &str| record.get(member).and_then(Value::as_str).unwrap_or_default();
        let scope = match HookScope::named(text("scope")) {
            None | Some(HookScope::Global) => return Self::EVERYONE,
            Some(HookScope::Tenant) => Scope::Everyone,
            Some(HookScope::Agent) => named(record).map_or(Scope::Everyone, |named| {
                let is_meant = |agent: &&AgentId| named.iter().any(|name| is_called(agent, name, tenants, agents));
                Scope::Agents(agents.iter().filter(is_meant).cloned().collect())
            }),
        };
        let slug = Some(text("tenant")).filter(|slug| !slug.is_empty()).unwrap_or(DEFAULT_SLUG);
        // One that is not there may be mistyped, and nobody can say for which.
        let tenant = tenants.iter().find(|tenant| tenant.slug == slug).map(|tenant| tenant.id.clone());
        Self { tenant, scope }
    }

    /// Whether it is about nobody who is here.
    pub(super) fn is_nobody(&self) -> bool {
        self.scope == Scope::Agents(BTreeSet::new())
    }
}

/// The agents that a record names; nothing if nobody can say.
fn named(record: &Value) -> Option<Vec<&str>> {
    let listed = match record.get("agent_ids") {
        None => Vec::new(),
        Some(list) => list.as_array()?.iter().map(Value::as_str).collect::<Option<_>>()?,
    };
    let one = record.get("agent_id").and_then(Value::as_str).filter(|_| listed.is_empty());
    let all: Vec<&str> = listed.into_iter().chain(one).filter(|name| !name.is_empty()).collect();
    (!all.is_empty()).then_some(all)
}

fn is_called(agent: &AgentId, name: &str, tenants: &[Tenant], agents: &[AgentId]) -> bool {
    if uuid::Uuid::parse_str(name).is_ok() {
        return tenants.iter().any(|tenant| agent_uuid(&tenant.id, agent.as_str()).eq_ignore_ascii_case(name));
    }
    let keys = || agents.iter().map(AgentId::as_str);
    if keys().any(|key| key == name) || name.len() > MAX_COMPARED_BYTES {
        return agent.as_str() == name;
    }
    nearest(name, keys()) == Some(agent.as_str())
}

#[cfg(test)]
mod tests {
    use pintle_domain::json::json;

    use super::*;

    const ACME: &str = "0193a5b0-7000-7000-8000-00000000000a";

    fn meant(record: Value) -> IntendedScope {
        let tenant =
            |id: TenantId, slug: &str| Tenant { id, slug: slug.into(), name: slug.into(), created_at: String::new() };
        let tenants = [tenant(TenantId::default_tenant(), "default"), tenant(TenantId::from(ACME), "acme")];
        IntendedScope::of(&record, &tenants, &["coder", "main"].map(AgentId::from))
    }

    #[test]
    fn what_stands_in_for_a_rule_is_never_about_more_than_the_rule() {
        let check = |record: Value, tenant: Option<&str>, agents: Option<&[&str]>| {
            let scope = match agents {
                None => Scope::Everyone,
                Some(agents) => Scope::Agents(agents.iter().map(|agent| AgentId::from(*agent)).collect()),
            };
            let expected = IntendedScope { tenant: tenant.map(TenantId::from), scope };
            assert_eq!(meant(record.clone()), expected, "{record}");
        };
        let own = Some(pintle_domain::id::DEFAULT_TENANT);
        check(json!({}), None, None);
        check(json!({"scope": "everywhere"}), None, None);
        check(json!({"scope": "global", "tenant": "acme"}), None, None);
        check(json!({"scope": "tenant"}), own, None);
        check(json!({"scope": "tenant", "tenant": "acme", "agent_ids": ["main"]}), Some(ACME), None);
        check(json!({"scope": "tenant", "tenant": "acne"}), None, None);
        let agents = |ids: Value| json!({"scope": "agent", "agent_ids": ids});
        check(agents(json!(["main"])), own, Some(&["main"]));
        check(agents(json!(["main", "gone"])), own, Some(&["main"]));
        check(agents(json!(["gone"])), own, Some(&[]));
        check(agents(json!(["mian"])), own, Some(&["main"]));
        check(agents(json!([agent_uuid(&TenantId::default_tenant(), "coder").to_uppercase()])), own, Some(&["coder"]));
        check(agents(json!([ACME])), own, Some(&[]));
        // Whoever says nothing that can be read may have meant anybody of the tenant.
        for unreadable in [json!([]), json!([7]), json!("main"), json!([""])] {
            check(agents(unreadable), own, None);
        }
        check(json!({"scope": "agent", "agent_id": "coder"}), own, Some(&["coder"]));
        assert!(meant(agents(json!(["x".repeat(MAX_COMPARED_BYTES + 1)]))).is_nobody());
    }
}
