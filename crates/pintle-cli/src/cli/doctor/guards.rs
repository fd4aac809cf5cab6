//! Guards, proven: a call of the canary travels the whole way to each of them and its answer the whole way back.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Instant;

use pintle_agent::tools::BUILTIN;
use pintle_domain::checkpoint::{AskedKind, CHECKPOINTS, CheckpointKind, CheckpointRow, Duty};
use pintle_domain::fault::Cause;
use pintle_domain::fault::Fault;
use pintle_domain::health::{CanaryRefusal, Health, Step};
use pintle_domain::hook::Hook;
use pintle_domain::json::Object;
use pintle_domain::record::{HookOutcome, Record};
use pintle_domain::tool::ToolCall;
use pintle_domain::verdict::VerdictKind;
use pintle_engine::Dispatcher;
use tokio::sync::OnceCell;

use super::super::question::{Question, QuestionTexts};
use super::canary::{CANARY, Reachable, answered, has_others, identity, refuses};
use super::{Check, Proven, State, last_line, stored};
use crate::text::{SHADOW_CURE, few_names};
use pintle_host::health::standing;
use pintle_host::host::Host;

/// How many lines of what a hook wrote on its standard error are shown: a stack trace.
const MAX_STDERR_LINES: usize = 20;

/// Checks every hook. The records are those of the canaries.
pub(super) async fn prove(host: &Host, asks_judges: bool) -> (Vec<Check>, Vec<Record>) {
    let down: BTreeMap<String, Fault> = host.ready().await.into_iter().collect();
    let dispatcher = host.engine.dispatcher(identity());
    let mut hooks = dispatcher.set().roster().hooks().to_vec();
    // Names of rules need not be unique, and they need more than others; they come by themselves.
    hooks.retain(|hook| hook.stored.is_none());
    let others = has_others(host);
    let unread = others.as_ref().err().map(|error| {
        let message = format!(
            "whether machines take their rules from here cannot be read, so no tools of theirs are known: {error}"
        );
        Check::new("store", "keys", State::Failed, message)
    });
    let has_others = others.unwrap_or(false);
    let tools = Reachable { host, asks_judges, dispatcher: &dispatcher, has_others, brought: OnceCell::new() };
    let proofs = hooks.iter().map(|hook| check(&tools, hook, down.get(hook.name.as_str())));
    let configured = futures_util::future::join_all(proofs);
    let (configured, (stored, canaries)) = tokio::join!(configured, stored::prove(host, &tools));
    let (mut checks, records): (Vec<_>, Vec<_>) = configured.into_iter().unzip();
    checks.extend(stored);
    checks.extend(unread);
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
        let message =
            format!("may answer for a tool before others that also match it are asked: {others}; {SHADOW_CURE}");
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
    let what = if guarded.is_empty() { "hook" } else { "guard" };
    let mut records = Vec::new();
    let proven = match (standing(&hook.state, down), guarded.is_empty()) {
        (Some(bad), _) => Err(bad),
        (None, true) => Ok(Proven { answers: "it answered hook.hello".to_owned(), refusal: None }),
        (None, false) => match canaries(tools.dispatcher, hook, &guarded, &mut records).await {
            Ok(said) => tools.reached_by(hook).await.map(|()| said),
            Err(unproven) => Err(unproven),
        },
    };
    let mut check = Check::of_hook((what, hook.name.as_str()), !guarded.is_empty(), proven);
    let running = tools.host.running();
    if let Some(child) = running.get(hook.name.as_str()) {
        said_on_stderr(&mut check, &child.stderr_tail());
    }
    (check, records)
}

/// Adds what a child wrote on its standard error: to a refusal its last line, to what does not work the end of it.
fn said_on_stderr(check: &mut Check, tail: &str) {
    match check.state {
        State::Ok => {}
        State::Note => {
            if let Some(line) = last_line(tail) {
                check.message = format!("{}: {}", check.message, Cause::from(line).shown());
            }
        }
        State::Failed => check.stderr = end_of(tail),
    }
}

/// The end of what a child wrote on its standard error, as people may see it.
pub(super) fn end_of(tail: &str) -> String {
    Cause::from(last_lines(tail).join("\n")).shown()
}

/// The last lines of `text`, as many as a screen has room for.
fn last_lines(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(MAX_STDERR_LINES)..].to_vec()
}

/// Asks at every stage that the hook guards; the answer may be anything that is one.
async fn canaries(
    dispatcher: &Dispatcher,
    hook: &Hook,
    guarded: &[CheckpointKind],
    records: &mut Vec<Record>,
) -> Result<Proven, Health> {
    let (mut said, mut refusal) = (Vec::new(), None);
    for kind in guarded {
        let began = Instant::now();
        let answer = canary(dispatcher, hook, *kind).await;
        let took = began.elapsed();
        let outcome = match &answer {
            Ok(Answered { word, reason }) => HookOutcome::Said { word: *word, reason: reason.clone(), took },
            Err(fault) => HookOutcome::Failed { fault: fault.clone(), became: VerdictKind::Deny, took },
        };
        records.push(Record::of(hook, *kind, outcome));
        match answer {
            Ok(Answered { word, reason }) => {
                // An approver approves what it knows, so it is expected to say no.
                if *kind != CheckpointKind::ApproveTool && refuses(word) {
                    let said = reason.map(|reason| Cause::from(reason).shown());
                    refusal.get_or_insert(CanaryRefusal { said });
                }
                said.push(answered(*kind, word, took));
            }
            Err(fault) => {
                return Err(Health::unproven(Step::Canary, format!("at {} it {}", kind.name(), fault.explained())));
            }
        }
    }
    Ok(Proven { answers: said.join(", "), refusal })
}

/// What a guard said of the canary.
struct Answered {
    word: VerdictKind,
    reason: Option<String>,
}

async fn canary(dispatcher: &Dispatcher, hook: &Hook, kind: CheckpointKind) -> Result<Answered, Fault> {
    let call = ToolCall { id: "canary".into(), tool: CANARY.into(), raw_tool: CANARY.into(), arguments: Object::new() };
    let says = QuestionTexts { model: CANARY.to_owned(), text: CANARY.to_owned(), agent: CANARY.into() };
    let asked = kind.asked().unwrap_or(AskedKind::BeforeTool);
    let Ok(question) = Question::at(asked, says, || Ok::<_, Infallible>(call));
    let reply = dispatcher.probe(&hook.name, question.subject()).await;
    reply.map(|reply| Answered { word: reply.word(), reason: reply.reason().map(str::to_owned) })
}
