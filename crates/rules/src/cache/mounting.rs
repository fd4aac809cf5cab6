//! From a row to a hook in force.

use std::sync::Arc;
use std::time::Duration;

use crate::condition;
use crate::record;
use pintle_domain::anchor::RuleDoubt;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::condition::Condition;
use pintle_domain::fault::Fault;
use pintle_domain::hook::{Family, Hook, HookState, OnFailure, Scope, Stage, Stages};
use pintle_domain::id::{AgentId, HookName, TenantId, agent_uuid};
use pintle_domain::matcher::{Matcher, RespondTools};
use pintle_domain::rule::{Fallback, HookScope, Rights, Rule, RuleDetails, Source};

use crate::handler::{RuleHandler, RuleRunner, RuleServices};
use pintle_engine::hook_set::{Mounted, NullHandler};
use pintle_engine::live_rules::RulesByTenant;

/// The name that refuses where no rules could be read.
const STORE: &str = "the store of hooks";

/// The hook that a row is, in force as far as it can be. What is wrong with a row makes it fail at each event, so that
/// what a gate guards stays shut.
pub fn mount(row: &Rule, agents: &[AgentId], parts: &Arc<RuleServices>) -> Mounted {
    let mut broken = None;
    let mut hold = |fault: Fault| {
        broken.get_or_insert(fault);
    };
    let matcher = match row.matcher.as_str() {
        "" => None,
        pattern => condition::compile_matcher(pattern).map_err(|why| hold(condition_failed(why))).ok(),
    };
    let condition = match row.if_expr.as_str() {
        "" => None,
        text => condition::compile(text).map_err(|why| hold(condition_failed(why))).ok(),
    };
    let condition = condition.map(|compiled| Arc::new(compiled) as Arc<dyn Condition>);
    let runs = match RuleRunner::of(row) {
        Ok(runs) => Some(runs),
        Err(refused) => {
            hold(Fault::CannotStart { cause: refused.message.into() });
            None
        }
    };
    if let Err(refused) = record::allowed(row, parts.edition) {
        hold(Fault::Unavailable { cause: refused.message.into() });
    }
    let hook = Arc::new(hook(row, agents, (matcher, condition, broken)));
    match runs {
        Some(runs) => Mounted { handler: RuleHandler::new(hook.clone(), runs, parts.clone()), hook },
        None => Mounted { handler: Arc::new(NullHandler), hook },
    }
}

fn condition_failed(detail: String) -> Fault {
    Fault::ConditionFailed { cause: detail.into() }
}

type Compiled = (Option<Matcher>, Option<Arc<dyn Condition>>, Option<Fault>);

fn hook(row: &Rule, agents: &[AgentId], (matcher, condition, broken): Compiled) -> Hook {
    let on_failure = match row.on_timeout {
        Fallback::Block => OnFailure::Close,
        // Of a gate this opens timeouts only.
        Fallback::Allow => OnFailure::Continue,
    };
    let timeout = Duration::from_millis(row.timeout_ms.into());
    let mut stages = Stages::default();
    stages.set(row.event, Stage { timeout, on_failure, paired: false });
    let state = match (&row.tripped_at, row.enabled, broken) {
        (Some(since), _, _) => HookState::Tripped { since: since.clone() },
        (None, false, _) => HookState::Disabled,
        (None, true, Some(fault)) => HookState::Broken(fault),
        (None, true, None) => HookState::Armed,
    };
    let stored = RuleDetails {
        id: row.id.clone(),
        tenant: row.tenant_id.clone(),
        version: row.version,
        handler: row.handler_type,
        created_at: row.created_at.clone(),
        condition,
        rights: rights(row),
        breaker: row.breaker,
        on_trip: row.on_trip,
        is_exception: row.exception_of().is_some(),
    };
    Hook {
        name: HookName::from(row.label()),
        family: Family::Rule,
        origin: row.created_by.clone().unwrap_or_else(|| "store".to_owned()),
        priority: row.priority,
        state,
        scope: scope(row, agents),
        matcher,
        respond: RespondTools::Any,
        events: None,
        media_dir: None,
        stages,
        stored: Some(Arc::new(stored)),
    }
}

/// The scope of a row. Agents that the host does not have match nobody.
fn scope(row: &Rule, agents: &[AgentId]) -> Scope {
    agents_of(row.scope, (&row.tenant_id, &row.agent_ids), agents)
}

fn agents_of(scope: HookScope, (tenant, ids): (&TenantId, &[String]), agents: &[AgentId]) -> Scope {
    match scope {
        HookScope::Global | HookScope::Tenant => Scope::Everyone,
        HookScope::Agent => {
            let meant = |agent: &&AgentId| ids.contains(&agent_uuid(tenant, agent.as_str()));
            Scope::Agents(agents.iter().filter(meant).cloned().collect())
        }
    }
}

/// The rights of a row to rewrite: those of their manifest for builtins, all or nothing for others.
fn rights(row: &Rule) -> Rights {
    match (row.source, row.may_rewrite) {
        (Source::Builtin, _) => Rights::Fields(crate::builtin::mutable_fields(&row.name).unwrap_or_default()),
        (Source::User, true) => Rights::Everything,
        (Source::User, false) => Rights::Nothing,
    }
}

/// The handler that runs a row, for somebody who tests it.
///
/// # Errors
/// What is wrong with its config.
pub(crate) fn handler(
    row: &Rule,
    hook: Arc<Hook>,
    parts: &Arc<RuleServices>,
) -> Result<Arc<RuleHandler>, record::RecordError> {
    Ok(RuleHandler::new(hook, RuleRunner::of(row)?, parts.clone()))
}

/// The rules that are in force while no rules could ever be read: every gate is shut.
pub fn shut(why: &str) -> RulesByTenant {
    let others = Arc::from(vec![stub((STORE, "host"), why, GuardedEvents::everything(&GATES))]);
    RulesByTenant { others, ..RulesByTenant::default() }
}

/// The hook of a tenant that is disabled: it refuses at every gate. The rules go on beside it, so that what is refused
/// stands in the record as ever.
pub(super) fn disabled() -> Mounted {
    stub(("tenant", "host"), "the tenant is disabled", GuardedEvents::everything(&GATES))
}

/// The checkpoints at which a rule can keep something shut.
const GATES: [CheckpointKind; 3] =
    [CheckpointKind::UserPromptSubmit, CheckpointKind::PreToolUse, CheckpointKind::SubagentStart];

/// The events that a rule that cannot be read was to guard, as far as that can be said.
#[derive(Clone, Debug)]
pub struct GuardedEvents {
    /// Where; it counts at gates only.
    pub kinds: Vec<CheckpointKind>,
    /// Calls of which tools; all if that is not said.
    pub matcher: Option<Matcher>,
    /// The scope of the rule.
    pub scope: Scope,
}

impl GuardedEvents {
    /// All that happens at `kinds`.
    pub fn everything(kinds: &[CheckpointKind]) -> Self {
        Self { kinds: kinds.to_vec(), matcher: None, scope: Scope::Everyone }
    }
}

/// The hook in the place of a rule whose row is not as it was left: it refuses where the rule acted, and nowhere else.
pub(super) fn doubted((doubt, is_of_server): (&RuleDoubt, bool), agents: &[AgentId]) -> Mounted {
    let rule = &doubt.rule;
    let matcher = match rule.matcher.as_str() {
        "" => None,
        // One that is none matches everything.
        pattern => condition::compile_matcher(pattern).ok(),
    };
    let kinds = match rule.event {
        _ if !rule.acts => Vec::new(),
        Some(event) => vec![event],
        None => GATES.to_vec(),
    };
    let scope = agents_of(rule.scope, (&rule.tenant_id, &rule.agent_ids), agents);
    let why = format!("{}; {}", doubt.text(), doubt.remedy(is_of_server));
    stub((&rule.name, "store"), &why, GuardedEvents { kinds, matcher, scope })
}

/// A hook that fails at each gate of what it stands for: a rule that cannot be read, which has this name and comes from
/// there. At no gate it does nothing.
pub fn stub((name, origin): (&str, &str), why: &str, guarded: GuardedEvents) -> Mounted {
    let mut stages = Stages::default();
    for kind in guarded.kinds.iter().filter(|kind| GATES.contains(kind)) {
        stages.set(*kind, Stage { timeout: Duration::ZERO, on_failure: OnFailure::Close, paired: false });
    }
    let hook = Hook {
        name: HookName::from(name),
        family: Family::Native,
        origin: origin.to_owned(),
        priority: i32::MIN,
        state: HookState::Broken(Fault::Unavailable { cause: why.to_owned().into() }),
        scope: guarded.scope,
        matcher: guarded.matcher,
        respond: RespondTools::Any,
        events: None,
        media_dir: None,
        stages,
        stored: None,
    };
    Mounted { hook: Arc::new(hook), handler: Arc::new(NullHandler) }
}
