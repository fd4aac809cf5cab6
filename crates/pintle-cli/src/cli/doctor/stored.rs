//! Hooks of the store: each row as it is in force, with what it needs, and for gates the canary through its handler.

use std::sync::Arc;
use std::time::Instant;

use pintle_agent::tools::{DELEGATE, SPAWN};
use pintle_domain::account::HandlerAnswer;
use pintle_domain::checkpoint::{
    Checkpoint as _, CheckpointKind, Duty, Facts, PreToolUse, SubagentStart, Subject, UserPromptSubmit,
};
use pintle_domain::fault::{Cause, Fault};
use pintle_domain::health::{CanaryRefusal, Health, Step};
use pintle_domain::hook::{Hook, HookState, Scope};
use pintle_domain::id::{AgentId, EventId, TenantId};
use pintle_domain::identity::Identity;
use pintle_domain::json::Object;
use pintle_domain::record::{HookOutcome, Record};
use pintle_domain::rule::{HookScope, Rule, RuleEvent, Source, tripped};
use pintle_domain::tool::ToolCall;
use pintle_domain::verdict::VerdictKind;
use pintle_engine::AsNamed;
use pintle_engine::handler::{HookCall, WireCache};
use pintle_engine::hook_set::Mounted;
use pintle_rules::record::{self, HandlerConfig};
use tokio_util::sync::CancellationToken;

use super::super::session::word;
use super::canary::{CANARY, Reachable, answered, identity, refuses};
use super::{Check, Proven, State, last_line};
use crate::clean::clean;
use crate::timeline::not_run;
use pintle_host::host::Host;

/// A row in force, for one tenant.
struct InForce {
    tenant: TenantId,
    mounted: Mounted,
    row: Rule,
}

/// Checks every rule. The records are those of the canaries.
pub(super) async fn prove(host: &Host, tools: &Reachable<'_>) -> (Vec<Check>, Vec<Record>) {
    let found = in_force(host);
    let proofs = found.iter().map(|one| check(host, tools, one));
    let (checks, records): (Vec<_>, Vec<_>) = futures_util::future::join_all(proofs).await.into_iter().unzip();
    (checks.into_iter().flatten().collect(), records.into_iter().flatten().collect())
}

/// Why rules that guard cannot, a line each. Their handlers are not asked.
pub(in crate::cli) async fn unready(host: &Host) -> Vec<String> {
    let acts = |one: &&InForce| one.row.event.duty() == Duty::Gate && one.mounted.hook.state != HookState::Disabled;
    let mut lines = Vec::new();
    for one in in_force(host).iter().filter(acts) {
        if let Err(Health::Unproven { step, why }) = ready(host, one).await {
            let (name, whose) = (clean(one.row.label()), whose(host, one));
            lines.push(format!("the rule \"{name}\" is unproven at {}: {why}{whose}", step.word()));
        }
    }
    lines
}

/// The rows in force. A global one stands once, and once more for each tenant that its breaker is open for.
fn in_force(host: &Host) -> Vec<InForce> {
    let stored = host.host_rules.rule_cache().rules();
    let rules = host.engine.live().rules();
    let default = TenantId::default_tenant();
    let mut found = Vec::new();
    let tenants = rules.tenants.keys().filter(|tenant| **tenant != default && **tenant != TenantId::sentinel());
    for tenant in std::iter::once(&default).chain(tenants) {
        for mounted in rules.of(tenant).iter() {
            let Some(own) = &mounted.hook.stored else { continue };
            let Some(row) = stored.hooks.iter().find(|row| row.id == own.id) else { continue };
            let again = row.scope == HookScope::Global && *tenant != default;
            let tripped = matches!(mounted.hook.state, HookState::Tripped { .. });
            if !again || tripped {
                found.push(InForce { tenant: tenant.clone(), mounted: mounted.clone(), row: row.clone() });
            }
        }
    }
    found
}

async fn check(host: &Host, tools: &Reachable<'_>, one: &InForce) -> (Option<Check>, Option<Record>) {
    let (hook, row) = (&one.mounted.hook, &one.row);
    let is_gate = row.event.duty() == Duty::Gate;
    let (what, name) = (if is_gate { "guard" } else { "hook" }, row.label());
    if hook.state == HookState::Disabled {
        return (disabled(row), None);
    }
    let mut record = None;
    let proven = match ready(host, one).await {
        Err(unproven) => Err(unproven),
        Ok(()) if !is_gate => Ok(Proven { answers: "it is in force".to_owned(), refusal: None }),
        Ok(()) => match asked(tools, one, &mut record).await {
            Ok(said) => reached(tools, one).await.map(|()| said),
            Err(unproven) => Err(unproven),
        },
    };
    let proven = proven.map_err(|health| match health {
        Health::Unproven { step, why } => Health::unproven(step, format!("{why}{}", whose(host, one))),
        Health::Armed(_) | Health::Disabled => health,
    });
    let check = Check::of_hook((what, name), is_gate, proven);
    let is_unasked = is_gate && record.is_none() && check.state == State::Ok;
    let state = if is_unasked { State::Note } else { check.state };
    (Some(Check { state, is_unasked, ..check }), record)
}

/// What the gate answers to the canary. What a judge says costs tokens, so it is asked only where somebody wants that,
/// and else proven up to its request.
async fn asked(tools: &Reachable<'_>, one: &InForce, record: &mut Option<Record>) -> Result<Proven, Health> {
    if tools.asks_judges {
        return canary(one, record).await;
    }
    let Some(judge) = tools.host.host_rules.parts().judge_of(&one.row) else { return canary(one, record).await };
    let model = judge.map_err(|why| Health::unproven(Step::Judge, why))?;
    let answers = format!("not asked: {} would judge; `pintle doctor --judges` asks, and spends tokens", clean(&model));
    Ok(Proven { answers, refusal: None })
}

/// The tenant that it is about, where that is not the first.
fn whose(host: &Host, one: &InForce) -> String {
    let stored = host.host_rules.rule_cache().rules();
    let whose = stored.tenants.iter().find(|tenant| tenant.id == one.tenant);
    let whose = whose.filter(|_| one.tenant != TenantId::default_tenant());
    whose.map(|tenant| format!(" (tenant {})", tenant.slug)).unwrap_or_default()
}

/// Switched off is a decision of its owner, and guards nothing. What is shipped switched off is not news.
fn disabled(row: &Rule) -> Option<Check> {
    let message = match row.disabled_reason.as_str() {
        "" if row.source == Source::Builtin => return None,
        "" => "disabled".to_owned(),
        "edition" => "disabled: edition standard runs no commands".to_owned(),
        "no_agents" => "disabled: the agents that it was about are gone".to_owned(),
        other => format!("disabled: {other}"),
    };
    Some(Check::new("hook", row.label(), State::Note, message))
}

/// Its state, its edition, its secrets, and whatever runs it.
async fn ready(host: &Host, one: &InForce) -> Result<(), Health> {
    let (row, parts) = (&one.row, host.host_rules.parts());
    record::allowed(row, parts.edition).map_err(|refused| Health::unproven(Step::Edition, refused.message))?;
    match &one.mounted.hook.state {
        HookState::Armed | HookState::Disabled => {}
        HookState::Untrusted => return Err(Health::unproven(Step::Trust, "nobody accepted it")),
        HookState::Tripped { since } => {
            let stands = tripped(since, row.on_trip, row.event);
            let why = format!("{stands}; `pintle hooks reset {}` closes it", word(&clean(row.label())));
            return Err(Health::unproven(Step::Breaker, why));
        }
        HookState::Broken(Fault::ConditionFailed { cause }) => {
            return Err(Health::unproven(Step::Condition, cause.shown()));
        }
        HookState::Broken(fault) => return Err(Health::unproven(Step::Configuration, fault.explained().to_string())),
    }
    if one.mounted.hook.scope == Scope::Agents(Default::default()) {
        return Err(Health::unproven(Step::Scope, "none of the agents that it is about is configured".to_owned()));
    }
    for path in record::secrets(row) {
        secret(one, &path, |text| parts.vault.open(&row.id, &row.tenant_id, &path, text))?;
    }
    let config = HandlerConfig::of(row.handler_type, &row.config)
        .map_err(|wrong| Health::unproven(Step::Configuration, wrong.message))?;
    if let Some(Err(why)) = parts.judge_of(row) {
        return Err(Health::unproven(Step::Judge, why));
    }
    match config.script() {
        Some(source) => parts.scripts.check(source).await.map_err(|why| Health::unproven(Step::Script, why)),
        None => Ok(()),
    }
}

/// Whether the secret at `path` opens.
fn secret(one: &InForce, path: &str, open: impl FnOnce(&str) -> Result<String, String>) -> Result<(), Health> {
    let mut found = Ok(());
    let mut open = Some(open);
    let mut row = one.row.clone();
    let looked = record::map_secrets(&mut row, |own, text| {
        if own == path
            && let Some(open) = open.take()
        {
            found = open(text).map(drop);
        }
        Ok::<_, std::convert::Infallible>(text.to_owned())
    });
    match looked {
        Ok(()) => found.map_err(|why| Health::unproven(Step::Secrets, format!("{path}: {why}"))),
        Err(never) => match never {},
    }
}

/// Carries the canary through its handler; the answer may be anything that is one.
async fn canary(one: &InForce, record: &mut Option<Record>) -> Result<Proven, Health> {
    let kind = one.row.event;
    let began = Instant::now();
    let HandlerAnswer { heard, account } = ask(one, kind).await;
    let took = began.elapsed();
    if let Some(why) = account.as_ref().and_then(|account| account.instead.as_ref()) {
        // The answer is the host's own: nobody was asked, so nothing is proven.
        return Err(Health::unproven(Step::Judge, not_run(why, false)));
    }
    let reason = heard.as_ref().ok().and_then(|reply| reply.reason()).map(str::to_owned);
    let answer = heard.map(|reply| (reply.word(), reply.warnings().first().cloned()));
    let stderr = account.and_then(|account| account.stderr);
    let said =
        stderr.and_then(|text| last_line(&text)).or_else(|| reason.clone()).map(|words| Cause::from(words).shown());
    let outcome = match &answer {
        Ok((word, _)) => HookOutcome::Said { word: *word, reason, took },
        Err(fault) => HookOutcome::Failed { fault: fault.clone(), became: VerdictKind::Deny, took },
    };
    *record = Some(Record::of(&one.mounted.hook, kind, outcome));
    match answer {
        Ok((word, warning)) => {
            let refusal = refuses(word).then_some(CanaryRefusal { said });
            let warning = warning.map(|warning| format!("; {}", clean(&warning))).unwrap_or_default();
            Ok(Proven { answers: format!("{}{warning}", answered(kind, word, took)), refusal })
        }
        Err(fault) => Err(Health::unproven(Step::Canary, format!("at {} it {}", kind.name(), fault.explained()))),
    }
}

/// Its answer to the canary, and how it came to it.
async fn ask(one: &InForce, kind: CheckpointKind) -> HandlerAnswer {
    let hook = &one.mounted.hook;
    let (who, cancel) = (who(one), CancellationToken::new());
    let call = ToolCall { id: "canary".into(), tool: CANARY.into(), raw_tool: CANARY.into(), arguments: Object::new() };
    let timeout = hook.stages.get(kind).map(|stage| stage.timeout).unwrap_or_default();
    let ask = async |subject: Subject<'_>| -> HandlerAnswer {
        let (event_id, wire) = (EventId::fresh(), WireCache::default());
        let call = HookCall {
            event_id: &event_id,
            who: &who,
            subject,
            timeout,
            budget: timeout,
            again: false,
            cancel: &cancel,
            known: &AsNamed,
            wire: &wire,
        };
        one.mounted.handler.ask(call).await
    };
    match RuleEvent::at(kind) {
        Some(RuleEvent::UserPromptSubmit) => ask(UserPromptSubmit::first(CANARY).subject()).await,
        Some(RuleEvent::SubagentStart) => ask(SubagentStart::new(CANARY.into(), CANARY, 1, None).subject()).await,
        Some(
            RuleEvent::SessionStart
            | RuleEvent::PreToolUse
            | RuleEvent::PostToolUse
            | RuleEvent::SubagentStop
            | RuleEvent::Stop,
        )
        | None => ask(PreToolUse { call }.subject()).await,
    }
}

/// Whose the canary is: the tenant's, and where the hook is about some agents, one of theirs.
fn who(one: &InForce) -> Identity {
    let agent: Option<AgentId> = match &one.mounted.hook.scope {
        Scope::Everyone => None,
        Scope::Agents(agents) => agents.first().cloned(),
    };
    let who = Identity { tenant_id: one.tenant.clone(), ..identity() };
    match agent {
        Some(agent_id) => Identity { agent_id, ..who },
        None => who,
    }
}

/// The matcher, which was not applied to the canary, has to match something that happens.
async fn reached(tools: &Reachable<'_>, one: &InForce) -> Result<(), Health> {
    let hook: &Arc<Hook> = &one.mounted.hook;
    let Some(matcher) = &hook.matcher else { return Ok(()) };
    let about = |name: &str| hook.matches(&Facts::of_tool(name));
    let never =
        |why: String| Err(Health::unproven(Step::Matcher, format!("`{}` never matches: {why}", matcher.pattern())));
    match RuleEvent::at(one.row.event) {
        Some(RuleEvent::UserPromptSubmit) if about("") => Ok(()),
        Some(RuleEvent::UserPromptSubmit) => never("a message of the user has no tool".to_owned()),
        Some(RuleEvent::SubagentStart) if ["", DELEGATE, SPAWN].into_iter().any(about) => Ok(()),
        Some(RuleEvent::SubagentStart) => never(format!("sub-agents are started with `{DELEGATE}` or `{SPAWN}`")),
        Some(
            RuleEvent::SessionStart
            | RuleEvent::PreToolUse
            | RuleEvent::PostToolUse
            | RuleEvent::SubagentStop
            | RuleEvent::Stop,
        )
        | None => tools.reached_by(hook).await,
    }
}
