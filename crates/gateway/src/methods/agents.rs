//! `agents.list`.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::id::{TenantId, agent_uuid};
use domain::json::{Value, json};
use host::config::{AgentConfig, Config};

use crate::Shared;
use crate::error::ApiError;
use crate::params::Params;
use crate::principal::Principal;
use crate::session_name::SessionName;

impl Shared {
    pub(super) async fn agents_list(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        Params::of(params, &[])?;
        let at_work = self.lanes.all();
        let elsewhere = self.at_work_elsewhere(who.tenant.clone()).await;
        let host = self.host.read().await;
        let config = &host.loaded.config;
        let shown = |agent: &AgentConfig| {
            let works = |run: &crate::run::Run| run.key.tenant == who.tenant && run.name.agent == agent.name;
            let (provider, model) = model(config, agent);
            json!({
                "id": agent.name,
                "uuid": agent_uuid(&who.tenant, &agent.name),
                "name": agent.name,
                "model": model,
                "provider": provider,
                "agentType": "predefined",
                "status": "active",
                "isRunning": at_work.iter().any(|run| works(run)) || elsewhere.contains(&agent.name),
            })
        };
        Ok(json!({ "agents": config.agents.values().map(shown).collect::<Vec<_>>() }))
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
