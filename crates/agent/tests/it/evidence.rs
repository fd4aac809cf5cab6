//! What is kept of a turn: a line for every hook at every event, and the clearing of a call before its effect.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pintle_domain::checkpoint::{CHECKPOINTS, CheckpointKind, Duty, Notice, ObservedEvent};
use pintle_domain::hook::HookState;
use pintle_domain::id::TurnId;
use pintle_domain::identity::Identity;
use pintle_domain::json::json;
use pintle_domain::record::{EventRecord, HookOutcome, NotRun};
use pintle_domain::store::{RecordQuery, RecordStore as _, TenantScope};
use pintle_domain::tool::{ToolCall, ToolOutput};
use pintle_domain::verdict::{Verdict, VerdictKind};
use pintle_engine::{Mount, NativeHook, async_trait};
use pintle_store::{Durability, Sqlite};

use crate::hooks::{OwnTool, Rule, child};
use crate::host::{Host, Parts};

/// Observes everything and says nothing.
struct Observer;

#[async_trait]
impl NativeHook for Observer {
    fn stages(&self) -> Vec<CheckpointKind> {
        use CheckpointKind::{PostToolUse, Runtime, SessionStart, Stop};
        vec![SessionStart, PostToolUse, Stop, Runtime]
    }

    async fn on_event(&self, _notice: &Notice) {}
}

/// A rule that acts at every stage and lets everything pass.
fn passing() -> Arc<Rule> {
    Arc::new(Rule {
        prompt: Some(Box::new(|_| Verdict::Continue)),
        before_llm: Some(Box::new(|_| Verdict::Continue)),
        after_llm: Some(Box::new(|_| Verdict::Continue)),
        before_tool: Some(Box::new(|_| Verdict::Continue)),
        gate: Some(Box::new(|_| Verdict::Continue)),
        approve: Some(Box::new(|_| Verdict::Continue)),
        after_tool: Some(Box::new(|_| Verdict::Continue)),
        ..Rule::default()
    })
}

fn in_state(mut mount: Mount, state: HookState) -> Mount {
    mount.hook.state = state;
    mount
}

fn calling(ids: &[&str]) -> pintle_domain::json::Value {
    let calls: Vec<_> = ids.iter().map(|id| json!({"id": id, "name": "echo", "arguments": {}})).collect();
    json!([{"tool_calls": calls}, {"text": "done"}])
}

#[tokio::test]
async fn every_registered_hook_has_one_line_for_every_event() {
    let echo = OwnTool::giving("echo", ToolOutput::ok("hi"));
    let mut host = Parts::of(calling(&["c1", "c2"])).own(echo).host();
    let denies =
        Rule {
            before_tool: Some(Box::new(|at| {
                if at.call.id.as_str() == "c2" { Verdict::deny("no") } else { Verdict::Continue }
            })),
            ..Rule::default()
        };
    let native = |name: &str, priority| host.engine.native(name, priority, passing());
    host.mount(vec![
        native("a_first", 0),
        in_state(native("b_off", 0), HookState::Disabled),
        in_state(native("c_new", 0), HookState::Untrusted),
        native("d_other", 0).matching("^exec$").unwrap(),
        host.engine.native("e_denies", 0, Arc::new(denies)),
        native("f_last", 0),
        host.engine.native("g_observes", 0, Arc::new(Observer)),
        child(&host, "h_child", &[("before_tool", "{}")], json!({"observe": ["turn_end"]})),
    ]);
    let roster = host.engine.dispatcher(Identity::top("main", "s", TurnId::fresh())).set().roster().clone();
    host.turn("go").await;
    let records = host.seen.records.lock().unwrap().clone();
    for event in &records {
        let lines = event.hooks.to_vec();
        let names: Vec<&str> = lines.iter().filter(|r| !r.again).map(|r| r.hook.as_str()).collect();
        let registered: Vec<&str> =
            roster.at(event.checkpoint).iter().map(|number| roster.hook(*number).name.as_str()).collect();
        assert_eq!(names, registered, "{:?} {:?}", event.checkpoint, event.kind);
        assert!(event.hooks.iter().all(|record| record.checkpoint == event.checkpoint));
    }
    // Those of sub-agents have a test of their own.
    let alone = |kind: &CheckpointKind| {
        let below = [CheckpointKind::SubagentStart, CheckpointKind::SubagentStop].contains(kind);
        !below && kind.duty() != Duty::Injector
    };
    let all: BTreeSet<CheckpointKind> = CHECKPOINTS.iter().map(|row| row.kind).filter(alone).collect();
    let seen: BTreeSet<CheckpointKind> = records.iter().map(|event| event.checkpoint).collect();
    assert_eq!(seen, all, "there is a record at every checkpoint");
    assert_eq!(
        outcomes(&records, CheckpointKind::BeforeTool, "c2"),
        [
            "a_first ran",
            "b_off off",
            "c_new untrusted",
            "d_other ^exec$≠echo",
            "e_denies ran",
            "f_last after e_denies",
            "h_child after e_denies"
        ]
    );
    assert_eq!(
        outcomes(&records, CheckpointKind::ApproveTool, "c2"),
        ["a_first after e_denies", "b_off off", "c_new untrusted", "d_other after e_denies", "f_last after e_denies"]
    );
    host.engine.close().await;
}

/// The lines of the event at `kind` about the call `id`.
fn outcomes(records: &[EventRecord], kind: CheckpointKind, id: &str) -> Vec<String> {
    let about = |event: &&EventRecord| {
        event.checkpoint == kind && event.who.tool_call_id.as_ref().is_some_and(|call| call.as_str() == id)
    };
    let event = records.iter().find(about).unwrap();
    let word = |outcome: &HookOutcome| match outcome {
        HookOutcome::Said { .. } => "ran".to_owned(),
        HookOutcome::NotRun(NotRun::Disabled) => "off".into(),
        HookOutcome::NotRun(NotRun::Untrusted) => "untrusted".into(),
        HookOutcome::NotRun(NotRun::Matcher { pattern, value }) => format!("{pattern}≠{value}"),
        HookOutcome::NotRun(NotRun::Decided { by }) => format!("after {by}"),
        HookOutcome::NotRun(
            NotRun::OutOfScope
            | NotRun::Dropped
            | NotRun::Condition { .. }
            | NotRun::BreakerOpen { .. }
            | NotRun::ChainTimeSpent { .. }
            | NotRun::BudgetSpent(_)
            | NotRun::CapReached { .. },
        )
        | HookOutcome::Failed { .. }
        | HookOutcome::Told => format!("{outcome:?}"),
    };
    event.hooks.iter().map(|record| format!("{} {}", record.hook, word(&record.outcome))).collect()
}

/// A tool that looks, while it runs, at what the store's file holds of its own call.
fn looking(file: PathBuf) -> Arc<OwnTool> {
    OwnTool::new(
        "echo",
        false,
        Box::new(move |call, _| {
            let file = file.clone();
            Box::pin(async move {
                let found = tokio::task::spawn_blocking(move || look(&file, &call)).await.unwrap();
                ToolOutput::ok(found)
            })
        }),
    )
}

fn look(file: &std::path::Path, call: &ToolCall) -> String {
    // Another connection, as another process would have it.
    let store = Sqlite::open(file, Durability::Commit).unwrap();
    let found = store
        .find(&RecordQuery { tool: Some("echo".into()), limit: 100, ..RecordQuery::of(TenantScope::All) })
        .unwrap();
    let mine = found.iter().filter(|event| event.tool_call_id.as_deref() == Some(call.id.as_str()));
    let lines = mine.map(|event| {
        let hooks: Vec<&str> = event.hooks.iter().map(|hook| hook.hook.as_str()).collect();
        let permit = event.permit.as_ref().map_or("-", |_| "permit");
        format!("{} {} {permit} {}", event.checkpoint, event.ruling, hooks.join(","))
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn the_clearing_of_a_call_is_in_the_file_before_its_effect() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pintle.db");
    let mut parts = Parts::of(calling(&["c1"])).own(looking(file.clone()));
    parts.store = Arc::new(Sqlite::open(&file, Durability::Commit).unwrap());
    let mut host = parts.host();
    host.mount(vec![host.engine.native("a", 0, passing()), host.engine.native("b", 0, passing())]);
    host.turn("go").await;
    let lines = "before_tool continue - a,b\npre_tool_use continue - a,b\napprove_tool continue permit a,b";
    assert_eq!(host.result("c1"), lines);

    // A call leaves its decision also where no hook is registered.
    let mut parts = Parts::of(calling(&["c9"])).own(looking(file.clone()));
    parts.store = Arc::new(Sqlite::open(&file, Durability::BeforeEffect).unwrap());
    let mut host = parts.host();
    host.turn("go").await;
    assert_eq!(host.result("c9"), "approve_tool continue permit ");
}

#[tokio::test]
async fn a_permit_is_bound_to_this_call_of_this_turn() {
    let echo = OwnTool::giving("echo", ToolOutput::ok("hi"));
    let mut host = Parts::of(calling(&["c1", "c2"])).own(echo).host();
    host.turn("go").await;
    let records = host.seen.records.lock().unwrap();
    let permits: Vec<_> = records.iter().filter_map(|event| event.ruling.permit.map(|p| (p, &event.who))).collect();
    assert_eq!(permits.len(), 2);
    let call = |id: &str| ToolCall {
        id: id.into(),
        tool: "echo".into(),
        raw_tool: "echo".into(),
        arguments: pintle_domain::json::Object::new(),
    };
    for ((digest, who), id) in permits.iter().zip(["c1", "c2"]) {
        assert_eq!(*digest, pintle_domain::tool::Digest::of(who, &call(id)));
    }
    assert!(permits[0].0 != permits[1].0);
}

#[tokio::test]
async fn what_only_observers_of_the_loop_hear_is_told_whole() {
    let output = ToolOutput { for_user: "look".into(), ..ToolOutput::ok("hi") };
    let echo = OwnTool::giving("echo", output.clone());
    let mut host = Parts::of(calling(&["c1"])).own(echo).host();
    host.turn("go").await;
    let told: Vec<ObservedEvent> = {
        let notices = host.seen.notices.lock().unwrap();
        notices.iter().filter(|n| n.what.checkpoint() != CheckpointKind::Runtime).map(|n| n.what.clone()).collect()
    };
    let [
        ObservedEvent::SessionStart,
        ObservedEvent::PostToolUse { call, output: settled, duration, substituted: false },
        stop,
    ] = &told[..]
    else {
        panic!("{told:?}")
    };
    assert_eq!((call.id.as_str(), call.tool.as_str(), call.raw_tool.as_str()), ("c1", "echo", "echo"));
    assert_eq!((settled, *duration < Duration::from_secs(60)), (&output, true));
    assert!(matches!(stop, ObservedEvent::Stop { reply, iterations: 2, .. } if reply == "done"), "{stop:?}");
}

#[tokio::test]
async fn the_record_of_an_event_says_what_the_loop_did() {
    let rulings = |host: &Host| -> Vec<(CheckpointKind, VerdictKind, Option<String>)> {
        let records = host.seen.records.lock().unwrap();
        let chains = records.iter().filter(|event| event.checkpoint != CheckpointKind::Runtime);
        chains.map(|event| (event.checkpoint, event.ruling.word, event.ruling.text.clone())).collect()
    };
    let rule = Rule {
        prompt: Some(Box::new(|at| Verdict::Modify(format!("{}!", at.prompt)))),
        after_llm: Some(Box::new(|_| Verdict::abort_turn("enough"))),
        ..Rule::default()
    };
    let mut host = Parts::of(json!([{"text": "x"}])).host();
    host.mount(vec![host.engine.native("h", 0, Arc::new(rule))]);
    host.turn("go").await;
    let text = "hook aborted turn during after_llm: enough (hook \"h\")";
    assert_eq!(
        rulings(&host),
        [
            (CheckpointKind::UserPromptSubmit, VerdictKind::Modify, None),
            (CheckpointKind::AfterLlm, VerdictKind::AbortTurn, Some(text.into())),
        ]
    );
    let records = host.seen.records.lock().unwrap();
    let change = records[0].hooks.to_vec()[0].change.as_ref().unwrap().patch();
    assert_eq!(change, json!([{"op": "replace", "path": "/prompt", "value": "go!"}]));
}

#[tokio::test]
async fn what_is_kept_of_a_clearing_names_its_tool_however_it_ended() {
    for action in ["continue", "deny", "abort_turn", "hard_abort"] {
        let echo = OwnTool::giving("echo", ToolOutput::ok("hi"));
        let mut host = Parts::of(calling(&["c1"])).own(echo).host();
        let rule = Rule {
            before_tool: Some(Box::new(move |_| match action {
                "deny" => Verdict::deny("no"),
                "abort_turn" => Verdict::abort_turn("no"),
                "hard_abort" => Verdict::hard_abort("no"),
                _ => Verdict::Continue,
            })),
            ..Rule::default()
        };
        host.mount(vec![host.engine.native("h", 0, Arc::new(rule))]);
        host.turn("go").await;
        let records = host.seen.records.lock().unwrap();
        let (event, word) = (&records[0], &records[0].ruling.word);
        assert_eq!((event.checkpoint, word.as_str()), (CheckpointKind::BeforeTool, action));
        assert_eq!(event.tool.as_deref(), Some("echo"), "{action}");
    }
}
