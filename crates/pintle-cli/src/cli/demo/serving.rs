//! `pintle demo --serve`: the console over a home that is thrown away, with something to see in it.
//!
//! The turns are worked for real, by the scripted model. The history of the week before them is made up, and each row of
//! it says so.

use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use pintle_agent::driver::TurnEnding;
use pintle_agent::{Conversation, TurnHandle};
use pintle_domain::approval::ApprovalMode;
use pintle_domain::caller_role::CallerRole;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::execution::Execution;
use pintle_domain::hook::Family;
use pintle_domain::id::{CallId, EventId, HookId, HookName, SessionId, TenantId, TurnId, agent_uuid};
use pintle_domain::identity::Identity;
use pintle_domain::json::{Object, Value, json};
use pintle_domain::record::{EventRecord, EventRuling, HookOutcome, Record, RecordLines};
use pintle_domain::rule::{Decision, HandlerType};
use pintle_domain::store::OnKept;
use pintle_domain::verdict::VerdictKind;
use pintle_gateway::{could_bind, link_user};
use pintle_host::host::Host;
use pintle_host::session_config::worked_under_anywhere;
use pintle_rules::admin::Caller;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::scratch::{PROMPT, Scratch, check, write};
use crate::cli::serve::{self, ServeArgs};
use crate::cli::turn::AtTheEnd;
use crate::cli::{Global, session, terminal};
use crate::error::CliError;

/// The replies of the model, over and over.
const REPLIES: &str = include_str!("../../demo/serve.json");

/// What is served differs from the demo in this: it ends at once when it is told to.
const GATEWAY: &str = "\n[gateway]\ndrain_delay_s = 0\ndrain_s = 1\n";

/// What the second turn asks, whose call waits for a person.
const ASKS: &str = "Please publish my notes.";

/// What each row that is made up says.
const MADE_UP: &str = "made up for the demo";

/// How many days the history goes back.
const DAYS: i64 = 7;

/// Rows of a day: enough to fill a page of the console in a week.
const A_DAY: i64 = 12;

/// Serves the demo until somebody stops it.
pub(super) fn run(global: &Global, listen: &[String]) -> Result<u8, CliError> {
    // Before seconds of work: another server may run here.
    could_bind(listen).map_err(serve::refused)?;
    let scratch = Scratch::new(None)?;
    check(&scratch.folder)?;
    write(&scratch.folder)?;
    let config = scratch.folder.join("pintle.toml");
    append(&config, GATEWAY)?;
    std::fs::write(scratch.folder.join("replies.json"), REPLIES)
        .map_err(|error| CliError::failed(format!("the demo's replies cannot be written: {error}")))?;
    let own = Global { config: Some(config), home: Some(scratch.folder.join("home")), ..global.clone() };
    let runtime = terminal::runtime()?;
    runtime.block_on(seed(&own))?;
    runtime.shutdown_background();
    terminal::note("a demo in a folder that goes when you stop it with Ctrl-C; the history before today is made up");
    serve::run(&own, &ServeArgs::of_demo(listen))
}

fn append(file: &Path, text: &str) -> Result<(), CliError> {
    let failed = |error: std::io::Error| CliError::failed(format!("{} cannot be written: {error}", file.display()));
    let before = std::fs::read_to_string(file).map_err(failed)?;
    std::fs::write(file, before + text).map_err(failed)
}

/// Puts something to see into the home: rules, a history, two turns.
async fn seed(global: &Global) -> Result<(), CliError> {
    let mut host = session::open(global, Vec::new())?;
    host.ask_in(ApprovalMode::Serve, None);
    session::ready(&host, true).await?;
    let by = Caller::cli();
    let admin = host.rule_admin();
    for rule in [asks_first(), watches()] {
        admin.call(&by, "hooks.create", &rule).await.map_err(|error| CliError::failed(error.to_string()))?;
    }
    let listed = admin.call(&by, "hooks.list", &json!({})).await;
    let listed = listed.map_err(|error| CliError::failed(error.to_string()))?;
    let rules: Vec<DemoRule> =
        listed.get("hooks").and_then(Value::as_array).into_iter().flatten().filter_map(DemoRule::of).collect();
    keep(&host, history(&rules, &session_of(&host, "demo"), Timestamp::now()))?;
    let worked = work(&host).await;
    host.close().await;
    worked
}

/// Works the two turns, each in a conversation of whoever signs in.
async fn work(host: &Host) -> Result<(), CliError> {
    let runner = host.runner(None, None)?;
    let user = link_user(&host.loaded.config.gateway, CallerRole::Admin);
    for (name, prompt) in [("demo", PROMPT), ("publish", ASKS)] {
        let opened = Conversation::open(host.sessions.clone(), session_of(host, name));
        let opened = opened.map_err(|error| CliError::failed(error.to_string()))?;
        let under = worked_under_anywhere(&host.loaded);
        let mut conversation = opened.on("ws", name).with(user.clone()).under(under);
        let handle = TurnHandle::new(&CancellationToken::new());
        let report = runner.turn(&mut conversation, prompt, std::sync::Arc::new(AtTheEnd::default()), &handle).await;
        match report.ending {
            TurnEnding::Completed | TurnEnding::Waiting(_) => {}
            TurnEnding::Cancelled
            | TurnEnding::Blocked(_)
            | TurnEnding::StoppedByHook(_)
            | TurnEnding::Failed { .. } => {
                return Err(CliError::failed(format!("the demo's turn \"{name}\" did not go as it should")));
            }
        }
    }
    Ok(())
}

/// The conversation `name` of whoever signs in.
fn session_of(host: &Host, name: &str) -> SessionId {
    let user = link_user(&host.loaded.config.gateway, CallerRole::Admin);
    SessionId::new(format!("agent:main:ws:{user}:{name}"))
}

/// The rule that leaves a call to a person.
fn asks_first() -> Value {
    json!({
        "name": "asks-before-publishing", "event": "pre_tool_use", "handler_type": "script", "scope": "tenant",
        "matcher": "^exec$",
        "config": { "source": "function handle(event) {\n  if (event.toolInput.command.includes('published')) {\n    \
            return { decision: 'ask', reason: 'what is published stays published' };\n  }\n  \
            return { decision: 'allow' };\n}\n" },
    })
}

/// A rule that looks at prompts.
fn watches() -> Value {
    json!({
        "name": "no-keys-in-prompts", "event": "user_prompt_submit", "handler_type": "script", "scope": "tenant",
        "config": { "source": "function handle(event) {\n  if (/sk_[A-Za-z0-9]{8}/.test(event.rawInput || '')) {\n    \
            return { decision: 'block', reason: 'that is a key' };\n  }\n  return { decision: 'allow' };\n}\n" },
    })
}

/// What a row of the history needs to know of a rule.
struct DemoRule {
    id: HookId,
    name: String,
    version: u32,
    event: CheckpointKind,
    tool: Option<&'static str>,
    refuses: bool,
}

impl DemoRule {
    /// One of the demo's own, of those that are listed.
    fn of(listed: &Value) -> Option<Self> {
        let text = |name: &str| listed.get(name).and_then(Value::as_str);
        let (event, tool, refuses) = match text("name")? {
            "secrets" => (CheckpointKind::PreToolUse, Some("read_file"), true),
            "asks-before-publishing" => (CheckpointKind::PreToolUse, Some("exec"), false),
            "no-keys-in-prompts" => (CheckpointKind::UserPromptSubmit, None, true),
            _ => return None,
        };
        let version = listed.get("version").and_then(Value::as_u64).and_then(|version| u32::try_from(version).ok())?;
        Some(Self { id: HookId::from(text("id")?), name: text("name")?.to_owned(), version, event, tool, refuses })
    }
}

/// What a rule said once, as each listing has it: the row of the rule, and the events of the turn in which it was asked.
struct MadeUp {
    execution: Execution,
    events: [EventRecord; 2],
}

/// A week of what `rules` said in `session` before `now`, oldest first. Pure but for ids.
fn history(rules: &[DemoRule], session: &SessionId, now: Timestamp) -> Vec<MadeUp> {
    let every = SignedDuration::from_hours(24).as_secs() / A_DAY;
    let rows = (1..=DAYS * A_DAY).rev().filter_map(|number| {
        let rule = rules.get(usize::try_from(number).ok()? % rules.len().max(1))?;
        let at = now.checked_sub(SignedDuration::from_secs(number * every)).ok()?;
        Some(made_up(rule, session, number, at))
    });
    rows.collect()
}

fn made_up(rule: &DemoRule, session: &SessionId, number: i64, at: Timestamp) -> MadeUp {
    // Every fifth is refused: a week in which the rules had something to do.
    let decision = if rule.refuses && number % 5 == 0 { Decision::Block } else { Decision::Allow };
    let took = Duration::from_millis(u64::try_from(1 + number % 7).unwrap_or(1));
    let events = events_of(rule, session, decision, at, took);
    let tenant = TenantId::default_tenant();
    let mut metadata = Object::new();
    metadata.insert("made_up".to_owned(), true.into());
    let asked = &events[0];
    let execution = Execution {
        id: Uuid::now_v7().to_string(),
        hook_id: Some(rule.id.clone()),
        hook_name: rule.name.clone(),
        hook_version: rule.version,
        handler_type: HandlerType::Script,
        agent_id: Some(agent_uuid(&tenant, "main")),
        tenant_id: tenant,
        session_id: Some(session.to_string()),
        turn_id: Some(asked.who.turn_id.to_string()),
        event_id: asked.event_id.to_string(),
        trace_id: Some(asked.who.trace_id.to_string()),
        event: rule.event,
        tool_name: rule.tool.map(str::to_owned),
        tool_call_id: asked.who.tool_call_id.as_ref().map(ToString::to_string),
        input_hash: None,
        decision,
        reason: Some(MADE_UP.to_owned()),
        duration_ms: u64::try_from(took.as_millis()).unwrap_or_default(),
        retry: 0,
        dedup_key: None,
        error: None,
        error_detail: None,
        output: None,
        metadata,
        created_at: at,
    };
    MadeUp { execution, events }
}

/// The turn in which `rule` was asked: that event, and the end.
fn events_of(
    rule: &DemoRule,
    session: &SessionId,
    decision: Decision,
    at: Timestamp,
    took: Duration,
) -> [EventRecord; 2] {
    let word = if decision == Decision::Block { VerdictKind::Deny } else { VerdictKind::Continue };
    let top = Identity::top("main", session.as_str(), TurnId::fresh());
    let who = Identity {
        iteration: u32::from(rule.tool.is_some()),
        tool_call_id: rule.tool.map(|_| CallId::from("made_up")),
        ..top.clone()
    };
    let mut hooks = RecordLines::default();
    hooks.push(Record {
        hook: HookName::from(rule.name.as_str()),
        family: Family::Rule,
        checkpoint: rule.event,
        outcome: HookOutcome::Said { word, reason: Some(MADE_UP.to_owned()), took },
        warnings: Vec::new(),
        change: None,
        again: false,
        account: None,
        stored: None,
    });
    let text = (word == VerdictKind::Deny).then(|| MADE_UP.to_owned());
    let asked = EventRecord {
        event_id: EventId::fresh(),
        at,
        checkpoint: rule.event,
        kind: None,
        who,
        tool: rule.tool.map(str::to_owned),
        input: None,
        ruling: EventRuling { text, ..EventRuling::word(word) },
        hooks,
    };
    let end = EventRecord {
        event_id: EventId::fresh(),
        at: at.checked_add(took).unwrap_or(at),
        checkpoint: CheckpointKind::Runtime,
        kind: Some("turn_end"),
        who: top,
        tool: None,
        input: None,
        ruling: EventRuling::word(VerdictKind::Continue),
        hooks: RecordLines::default(),
    };
    [asked, end]
}

/// Keeps a history where every page looks for it: pages that count decisions read events, others rows of rules.
fn keep(host: &Host, history: Vec<MadeUp>) -> Result<(), CliError> {
    let (executions, events): (Vec<Execution>, Vec<[EventRecord; 2]>) =
        history.into_iter().map(|one| (one.execution, one.events)).unzip();
    kept(|done| host.store.keep(events.into_iter().flatten().collect(), done))?;
    kept(|done| host.store.keep_executions(executions, done))
}

/// Waits until what is handed over is kept.
fn kept(hand_over: impl FnOnce(OnKept)) -> Result<(), CliError> {
    let (say, hear) = channel();
    hand_over(Box::new(move |kept| drop(say.send(kept))));
    match hear.recv() {
        Ok(kept) => kept.map_err(|error| CliError::failed(error.to_string())),
        Err(_) => Err(CliError::failed("the demo's history was not kept")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_is_a_week_and_says_that_it_is_made_up() {
        let rule = |name: &str| DemoRule::of(&json!({ "id": "h", "name": name, "version": 1 }));
        assert!(rule("somebody-elses").is_none());
        let rules = ["secrets", "asks-before-publishing", "no-keys-in-prompts"].map(|name| rule(name).unwrap());
        let now: Timestamp = "2026-01-08T00:00:00Z".parse().unwrap();
        let session = SessionId::from("agent:main:ws:you:demo");
        let history_of = |rules: &[DemoRule]| history(rules, &session, now);
        let rows: Vec<Execution> = history_of(&rules).into_iter().map(|one| one.execution).collect();
        assert_eq!(rows.len(), 84);
        assert!(rows.is_sorted_by_key(|row| row.created_at));
        assert_eq!(rows[0].created_at, "2026-01-01T00:00:00Z".parse().unwrap());
        assert!(rows.iter().all(|row| row.reason.as_deref() == Some(MADE_UP) && row.created_at < now));
        let refused =
            |name: &str| rows.iter().filter(|row| row.hook_name == name && row.decision == Decision::Block).count();
        assert!(refused("secrets") > 0 && refused("no-keys-in-prompts") > 0);
        assert_eq!(refused("asks-before-publishing"), 0, "it refuses nothing, it asks");
        assert!(history_of(&[]).is_empty());
    }

    #[test]
    fn every_row_of_the_history_has_its_event_which_says_the_same() {
        let rule = DemoRule::of(&json!({ "id": "h", "name": "secrets", "version": 1 })).unwrap();
        let session = SessionId::from("agent:main:ws:you:demo");
        let at: Timestamp = "2026-01-08T00:00:00Z".parse().unwrap();
        for (number, word) in [(5, VerdictKind::Deny), (6, VerdictKind::Continue)] {
            let MadeUp { execution, events: [asked, end] } = made_up(&rule, &session, number, at);
            assert_eq!(execution.event_id, asked.event_id.to_string());
            assert_eq!(execution.turn_id.as_deref(), Some(asked.who.turn_id.as_str()));
            assert_eq!((asked.at, asked.who.session_id.as_str()), (execution.created_at, session.as_str()));
            assert_eq!((asked.ruling.word, asked.hooks.len()), (word, 1));
            assert_eq!((end.kind, &end.who.turn_id), (Some("turn_end"), &asked.who.turn_id));
            assert!(end.at > at);
        }
    }
}
