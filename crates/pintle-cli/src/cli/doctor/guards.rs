//! Guards, proven: a call of the canary travels the whole way to each of them and its answer the whole way back.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Instant;

use agent::tools::BUILTIN;
use domain::checkpoint::{AskedKind, CHECKPOINTS, CheckpointKind, CheckpointRow, Duty};
use domain::fault::Fault;
use domain::hook::{Hook, HookState};
use domain::json::Object;
use domain::record::{HookOutcome, Record};
use domain::tool::ToolCall;
use domain::verdict::VerdictKind;
use engine::Dispatcher;
use tokio::sync::OnceCell;

use super::super::question::{Question, QuestionTexts};
use super::canary::{CANARY, Reachable, answered, identity};
use super::{Check, State, stored};
use crate::text::few_names;
use host::config::trust::is_changed;
use host::host::Host;

/// Checks every hook. The records are those of the canaries.
pub(super) async fn prove(host: &Host) -> (Vec<Check>, Vec<Record>) {
    let down: BTreeMap<String, Fault> = host.ready().await.into_iter().collect();
    let dispatcher = host.engine.dispatcher(identity());
    let mut hooks = dispatcher.set().roster().hooks().to_vec();
    // Names of rules need not be unique, and they need more than others; they come by themselves.
    hooks.retain(|hook| hook.stored.is_none());
    let tools = Reachable { host, dispatcher: &dispatcher, brought: OnceCell::new() };
    let proofs = hooks.iter().map(|hook| check(&tools, hook, down.get(hook.name.as_str())));
    let configured = futures_util::future::join_all(proofs);
    let (configured, (stored, canaries)) = tokio::join!(configured, stored::prove(host, &tools));
    let (mut checks, records): (Vec<_>, Vec<_>) = configured.into_iter().unzip();
    checks.extend(stored);
    (checks, records.into_iter().flatten().chain(canaries).collect())
}

/// Hooks that another one may keep from being asked.
pub(super) fn shadows(host: &Host) -> Vec<Check> {
    let dispatcher = host.engine.dispatcher(identity());
    let servers = host.server_tools();
    let tools: Vec<&str> = BUILTIN.into_iter().chain(servers.iter().map(String::as_str)).collect();
    let set = dispatcher.set();
    let told = set.roster().shadowed(&tools).into_iter().map(|(first, later)| {
        let others = few_names(&later);
        let message = format!("may answer for a tool before others that also match it are asked: {others}");
        Check::new("order", first.name.as_str(), State::Note, message)
    });
    told.collect()
}

/// Where a hook guards: the stages that its configuration names itself, of those that its fault shuts.
fn guarded(hook: &Hook) -> Vec<CheckpointKind> {
    let shuts = |row: &&CheckpointRow| match row.duty {
        Duty::Gate | Duty::Approver => true,
        Duty::Rewriter => row.kind == CheckpointKind::BeforeTool,
        Duty::Observer | Duty::Injector => false,
    };
    let own = |kind: &CheckpointKind| hook.stages.get(*kind).is_some_and(|stage| !stage.paired);
    CHECKPOINTS.iter().filter(shuts).map(|row| row.kind).filter(own).collect()
}

async fn check(tools: &Reachable<'_>, hook: &Hook, down: Option<&Fault>) -> (Check, Vec<Record>) {
    let guarded = guarded(hook);
    let name = hook.name.as_str();
    let what = if guarded.is_empty() { "hook" } else { "guard" };
    if hook.state == HookState::Disabled {
        // Switched off is a decision of its owner, and guards nothing.
        return (Check::new("hook", name, State::Note, "disabled"), Vec::new());
    }
    let mut records = Vec::new();
    let proof = match standing(hook, down) {
        Err(unproven) => Err(unproven),
        Ok(()) if guarded.is_empty() => Ok("it answered hook.hello".to_owned()),
        Ok(()) => match canaries(tools.dispatcher, hook, &guarded, &mut records).await {
            Ok(said) => tools.reached_by(hook).await.map(|()| said).map_err(|why| ("matcher", why)),
            Err(unproven) => Err(unproven),
        },
    };
    let check = match proof {
        Ok(said) => Check::new(what, name, State::Ok, said),
        Err((step, why)) => {
            Check { step: Some(step), guard: !guarded.is_empty(), ..Check::new(what, name, State::Failed, why) }
        }
    };
    (check, records)
}

/// Trust, spawn, hello.
fn standing(hook: &Hook, down: Option<&Fault>) -> Result<(), (&'static str, String)> {
    match (&hook.state, down) {
        (HookState::Untrusted, _) => Err(("trust", "nobody accepted it; see `pintle trust`".to_owned())),
        (HookState::Broken(fault), _) | (_, Some(fault)) if is_changed(fault) => {
            Err(("trust", format!("it {}; see `pintle trust`", fault.explained())))
        }
        (HookState::Broken(fault), _) => Err(("configuration", fault.explained().to_string())),
        (HookState::Tripped { since }, _) => Err(("breaker", format!("its circuit breaker is open since {since}"))),
        (HookState::Armed | HookState::Disabled, None) => Ok(()),
        (HookState::Armed | HookState::Disabled, Some(fault)) => {
            let spawned = !matches!(fault, Fault::CannotStart { cause } if !cause.shown().contains("hook.hello"));
            Err((if spawned { "hello" } else { "spawn" }, fault.explained().to_string()))
        }
    }
}

/// Asks at every stage that the hook guards; the answer may be anything that is one.
async fn canaries(
    dispatcher: &Dispatcher,
    hook: &Hook,
    guarded: &[CheckpointKind],
    records: &mut Vec<Record>,
) -> Result<String, (&'static str, String)> {
    let mut said = Vec::new();
    for kind in guarded {
        let began = Instant::now();
        let answer = canary(dispatcher, hook, *kind).await;
        let took = began.elapsed();
        let outcome = match &answer {
            Ok(word) => HookOutcome::Said { word: *word, reason: None, took },
            Err(fault) => HookOutcome::Failed { fault: fault.clone(), became: VerdictKind::Deny, took },
        };
        records.push(Record::of(hook, *kind, outcome));
        match answer {
            Ok(word) => said.push(answered(*kind, word, took)),
            Err(fault) => return Err(("the canary", format!("at {} it {}", kind.name(), fault.explained()))),
        }
    }
    Ok(said.join(", "))
}

async fn canary(dispatcher: &Dispatcher, hook: &Hook, kind: CheckpointKind) -> Result<VerdictKind, Fault> {
    let call = ToolCall { id: "canary".into(), tool: CANARY.into(), raw_tool: CANARY.into(), arguments: Object::new() };
    let says = QuestionTexts { model: CANARY.to_owned(), text: CANARY.to_owned(), agent: CANARY.into() };
    let asked = kind.asked().unwrap_or(AskedKind::BeforeTool);
    let Ok(question) = Question::at(asked, says, || Ok::<_, Infallible>(call));
    let reply = dispatcher.probe(&hook.name, question.subject()).await;
    reply.map(|reply| reply.word())
}
