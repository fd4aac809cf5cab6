//! Row 2: whose turns a hook is about.

use pintle_domain::id::{DEFAULT_SLUG, SENTINEL_TENANT, TenantId};
use pintle_domain::rule::{Edition, HookScope};

use super::draft::{Draft, TENANT};
use super::setting::Setting;
use super::{Lang, RecordError, RecordErrorCode, quoted};
use pintle_domain::nearest::nearest;

/// Whose turns a hook is about.
pub(super) struct ScopeOwner {
    pub(super) scope: HookScope,
    pub(super) tenant: TenantId,
    pub(super) agents: Vec<String>,
}

/// Reads the scope with the tenant and the agents that belong to it.
pub(super) fn home(draft: &Draft, setting: &Setting<'_>) -> Result<ScopeOwner, RecordError> {
    let word = draft.text("scope");
    let Some(scope) = HookScope::named(word) else {
        let words: Vec<&str> = HookScope::ALL.iter().map(|scope| scope.word()).collect();
        return Err(RecordError::hook(format!("unknown scope {}{}", quoted(word), setting.meant(word, &words))));
    };
    let tenant = match scope {
        HookScope::Global => everyone(draft)?,
        HookScope::Tenant | HookScope::Agent => real(draft, setting, scope)?,
    };
    let named = draft.texts("agent_ids");
    let agents = match scope {
        HookScope::Agent if named.is_empty() => {
            return Err(RecordError::hook("agent scope requires at least one agent_id"));
        }
        HookScope::Agent => agents(&named, &tenant, setting)?,
        HookScope::Global | HookScope::Tenant if named.is_empty() => Vec::new(),
        HookScope::Global | HookScope::Tenant => return Err(RecordError::hook("agent_ids requires scope=agent")),
    };
    Ok(ScopeOwner { scope, tenant, agents })
}

fn everyone(draft: &Draft) -> Result<TenantId, RecordError> {
    match draft.text("tenant_id") {
        "" | SENTINEL_TENANT => Ok(TenantId::sentinel()),
        other => Err(RecordError::hook(format!("global scope requires sentinel tenant_id, got {other}"))),
    }
}

/// The writer's own tenant, or the one that a file names.
fn real(draft: &Draft, setting: &Setting<'_>, scope: HookScope) -> Result<TenantId, RecordError> {
    let nobodys = |id: &str| id == SENTINEL_TENANT || uuid::Uuid::parse_str(id).is_ok_and(|uuid| uuid.is_nil());
    let sent = draft.text("tenant_id");
    let unreal = || RecordError::hook(format!("{} scope requires a real tenant_id", scope.word()));
    if nobodys(sent) {
        return Err(unreal());
    }
    let own = match setting.record_context.lang {
        Lang::File => named(draft.text(TENANT), setting)?,
        Lang::Api | Lang::Cli | Lang::Import => setting.tenant.clone(),
    };
    if nobodys(own.as_str()) {
        return Err(unreal());
    }
    if !sent.is_empty() && !sent.eq_ignore_ascii_case(own.as_str()) {
        return Err(RecordError::new(RecordErrorCode::NotFound, format!("hook: tenant not found: {sent}")));
    }
    Ok(own)
}

fn named(slug: &str, setting: &Setting<'_>) -> Result<TenantId, RecordError> {
    let slug = if slug.is_empty() { DEFAULT_SLUG } else { slug };
    if let Some(tenant) = setting.record_context.tenants.iter().find(|tenant| tenant.slug == slug) {
        return Ok(tenant.id.clone());
    }
    match setting.record_context.edition {
        _ if slug == DEFAULT_SLUG => Ok(TenantId::default_tenant()),
        Edition::Lite => {
            Err(RecordError::new(RecordErrorCode::FailedPrecondition, "several tenants need edition standard"))
        }
        Edition::Standard => {
            Err(RecordError::new(RecordErrorCode::NotFound, format!("hook: tenant not found: {}", quoted(slug))))
        }
    }
}

/// The ids of the agents that are `named`, each once.
fn agents(named: &[&str], tenant: &TenantId, setting: &Setting<'_>) -> Result<Vec<String>, RecordError> {
    let record_context = setting.record_context;
    let own = || record_context.agents.iter().filter(|agent| agent.tenant == *tenant);
    let mut ids: Vec<String> = Vec::new();
    for name in named {
        let by_id = own().find(|agent| agent.uuid.eq_ignore_ascii_case(name));
        let by_key = || own().find(|agent| record_context.lang.takes_keys() && agent.key == *name);
        let Some(agent) = by_id.or_else(by_key) else {
            return Err(RecordError::hook(unknown_agent(name, own().map(|agent| agent.key.as_str()))));
        };
        if !ids.contains(&agent.uuid) {
            ids.push(agent.uuid.clone());
        }
    }
    Ok(ids)
}

fn unknown_agent<'a>(name: &str, keys: impl Iterator<Item = &'a str>) -> String {
    if uuid::Uuid::parse_str(name).is_ok() {
        return format!("agent not found: {name}");
    }
    let short = name.chars().count() <= super::MAX_NAME_CHARS;
    let hint = nearest(name, keys).filter(|_| short).map(|near| format!(" (did you mean {}?)", quoted(near)));
    format!("agent not found: {}{}", quoted(name), hint.unwrap_or_default())
}
