//! `agents.list`.

use std::collections::BTreeSet;
use std::sync::Arc;

use pintle_domain::id::{TenantId, agent_uuid};
use pintle_domain::json::{Value, json};
use pintle_domain::store::TenantScope;
use pintle_host::config::{AgentConfig, Config};

use crate::Shared;
use crate::error::ApiError;
use crate::params::Params;
use crate::principal::Principal;
use crate::roles;
use crate::session_name::SessionName;

impl Shared {
    pub(super) async fn agents_list(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        let scope = roles::looks_at(who, &Params::of(params, &["allTenants"])?)?;
        let is_of_all = scope == TenantScope::All;
        let mut tenants: Vec<(TenantId, BTreeSet<String>)> = Vec::new();
        for tenant in self.blocking(move |shared| shared.tenants_in(scope)).await? {
            let elsewhere = self.at_work_elsewhere(tenant.clone()).await;
            tenants.push((tenant, elsewhere));
        }
        let at_work = self.lanes.all();
        let host = self.host.read().await;
        let config = &host.loaded.config;
        let shown = |tenant: &TenantId, elsewhere: &BTreeSet<String>, agent: &AgentConfig| {
            let works = |run: &crate::run::Run| run.key.tenant == *tenant && run.name.agent == agent.name;
            let (provider, model) = model(config, agent);
            let mut shown = json!({
                "id": agent.name,
                "uuid": agent_uuid(tenant, &agent.name),
                "name": agent.name,
                "model": model,
                "provider": provider,
                "agentType": "predefined",
                "status": "active",
                "isRunning": at_work.iter().any(|run| works(run)) || elsewhere.contains(&agent.name),
            });
            if is_of_all {
                shown["tenantId"] = json!(tenant);
            }
            shown
        };
        let mut agents = Vec::new();
        for (tenant, elsewhere) in &tenants {
            agents.extend(config.agents.values().map(|agent| shown(tenant, elsewhere, agent)));
        }
        Ok(json!({ "agents": agents }))
    }

    /// The tenants in `scope`. Blocks.
    pub(super) fn tenants_in(&self, scope: TenantScope) -> Result<Vec<TenantId>, ApiError> {
        match scope {
            TenantScope::One(tenant) => Ok(vec![tenant]),
            TenantScope::All => Ok(self.guests.admin.tenants()?.into_iter().map(|(tenant, _)| tenant.id).collect()),
        }
    }

    /// The agents of a tenant that work on any node, as far as the store can be asked.
    async fn at_work_elsewhere(self: &Arc<Self>, tenant: TenantId) -> BTreeSet<String> {
        let worked = self.blocking(move |shared| Ok(shared.store.worked_sessions(&tenant)?)).await;
        let worked = worked.unwrap_or_else(|error| {
            tracing::debug!(%error, "which agents work on other nodes cannot be read");
            Vec::new()
        });
        worked.iter().filter_map(|session| Some(SessionName::kept(session.as_str())?.agent)).collect()
    }
}

/// The provider and the model of an agent, as far as they are known.
fn model(config: &Config, agent: &AgentConfig) -> (Option<String>, Option<String>) {
    let first = config.models(agent, None).ok().and_then(|models| models.into_iter().next());
    first.map(|found| (Some(found.provider), Some(found.model))).unwrap_or_default()
}
