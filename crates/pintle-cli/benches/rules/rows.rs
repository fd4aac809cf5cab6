//! Rows of rules.

use pintle_domain::breaker::BreakerPolicy;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::json::{Value, json};
use pintle_domain::rule::{Fallback, HandlerType, HookScope, Rule, Source};

/// What is asked of hooks that are not to be reached.
pub(crate) const UNREACHED: &str = "function handle(event) { return { decision: 'block', reason: 'it was reached' }; }";

/// A gate before tools, of the default tenant, that is run in this way.
pub(crate) fn gate(name: &str, handler_type: HandlerType, config: &Value) -> Rule {
    let at = jiff::Timestamp::now().to_string();
    Rule {
        id: HookId::fresh(),
        tenant_id: TenantId::default_tenant(),
        agent_ids: Vec::new(),
        event: CheckpointKind::PreToolUse,
        handler_type,
        scope: HookScope::Tenant,
        name: name.to_owned(),
        config: config.as_object().cloned().unwrap_or_default(),
        matcher: String::new(),
        if_expr: String::new(),
        timeout_ms: 5000,
        on_timeout: Fallback::Block,
        priority: 0,
        enabled: true,
        version: 1,
        source: Source::User,
        may_rewrite: false,
        breaker: BreakerPolicy::All,
        on_trip: Fallback::Block,
        tripped_at: None,
        disabled_reason: String::new(),
        metadata: pintle_domain::json::Object::new(),
        created_by: None,
        created_at: at.clone(),
        updated_at: at,
    }
}

/// A gate whose handler would refuse the call: it is never to be asked.
pub(crate) fn unreached(name: &str) -> Rule {
    gate(name, HandlerType::Script, &json!({ "source": UNREACHED }))
}
