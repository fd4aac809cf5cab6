//! Sub-agents: full turns below another one, gated by all that stand above them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use futures_util::FutureExt as _;
use futures_util::future::{Either, select};
use pintle_agent::driver::{MAX_CHILDREN, SUBTURN_TIME, TurnEnding};
use pintle_agent::{Conversation, TurnHandle};
use pintle_domain::checkpoint::{CheckpointKind, ObservedEvent};
use pintle_domain::hook::Scope;
use pintle_domain::id::AgentId;
use pintle_domain::json::{Value, json};
use pintle_domain::llm::{LlmReply, LlmRequest};
use pintle_domain::tool::ToolOutput;
use pintle_domain::turn::WaitingMessage;
use pintle_domain::verdict::{Abort, AbortScope, Verdict};
use pintle_engine::Mount;
use proptest::prelude::*;
use tokio::sync::Notify;

use crate::hooks::{OwnTool, Rule, child_in, sent, shaken};
use crate::host::{Recorder, Seen, valid};
use crate::test_agents::{Mind, TestAgents, TestAgentsParts, after_tools, call, hands, last, said};

mod background;
mod trees;

/// A model by which `main` hands a task to `helper` with `tool`, which says `found it`.
fn one_subagent(tool: &'static str) -> Arc<Recorder> {
    Mind::quick(move |model, request| match (model, after_tools(request)) {
        ("main", false) => hands(tool, "helper", "find it"),
        ("main", true) => LlmReply::text("done"),
        _ => LlmReply::text("found it"),
    })
}

/// What was told about the turns of `agent`: names, without repetition.
fn heard_of(test_agents: &TestAgents, agent: &str) -> BTreeSet<&'static str> {
    let notices = test_agents.seen.notices.lock().unwrap();
    notices.iter().filter(|notice| notice.who.agent_id.as_str() == agent).map(|notice| notice.what.name()).collect()
}

/// Lets everything else run until `count` sub-agents have ended.
async fn until_ended(seen: &Seen, count: usize) {
    for _ in 0..100_000 {
        if seen.count("subagent_stop") >= count {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("{count} sub-agents never end: {:?}", seen.names());
}

fn queued(conversation: &mut Conversation) -> Vec<String> {
    conversation.queue().iter().map(WaitingMessage::text).map(str::to_owned).collect()
}

#[tokio::test]
async fn a_delegated_task_is_a_turn_of_its_own_that_brings_its_text() {
    let test_agents = TestAgentsParts::of(one_subagent("delegate"), &["main", "helper"]).test_agents();
    let mut conversation = Conversation::new("s").on("cli", "room");
    let report = test_agents.turn(&mut conversation, "go").await;
    assert_eq!((report.ending, report.reply.as_str()), (TurnEnding::Completed, "done"));
    let asked = r#"assistant: [c1=delegate({"agent":"helper","task":"find it"})]"#;
    assert_eq!(said(&conversation), ["user: go", asked, "c1: found it", "assistant: done"]);
    // Its identity.
    let notices = test_agents.seen.notices.lock().unwrap().clone();
    let of = |agent: &str, name: &str| {
        notices.iter().find(|n| n.who.agent_id.as_str() == agent && n.what.name() == name).unwrap().who.clone()
    };
    let (parent, child) = (of("main", "turn_start"), of("helper", "turn_start"));
    assert_eq!((child.depth, child.parent_turn_id.as_ref()), (1, Some(&parent.turn_id)));
    assert_eq!(child.session_id.as_str(), format!("s/delegate:helper:{}", child.turn_id));
    assert_eq!((&child.trace_id, &child.chat_id), (&parent.trace_id, &parent.chat_id));
    assert_eq!(child.ancestors, [AgentId::from("main")]);
    assert_ne!(child.turn_id, parent.turn_id);
    let own = ["llm_request", "llm_response", "session_start", "stop", "turn_end", "turn_start"];
    assert_eq!(heard_of(&test_agents, "helper"), own.into_iter().collect());
    // What its parent's observers hear.
    let spawn = json!({"AgentID": "helper", "Label": child.turn_id, "ParentTurnID": parent.turn_id});
    assert_eq!(test_agents.seen.payloads("subturn_spawn"), [spawn]);
    assert_eq!(test_agents.seen.payloads("subturn_end"), [json!({"AgentID": "helper", "Status": "completed"})]);
    let delivered = json!({"TargetChannel": "cli", "TargetChatID": "room", "ContentLen": 8});
    assert_eq!(test_agents.seen.payloads("subturn_result_delivered"), [delivered]);
    let stop = notices.iter().find(|notice| notice.what.name() == "subagent_stop").unwrap();
    let ObservedEvent::SubagentStop { start, session_id, status, timed_out, outcome, denials, .. } = &stop.what else {
        panic!("{stop:?}")
    };
    assert_eq!((start.agent.as_str(), start.task.as_str(), start.depth), ("helper", "find it", 1));
    assert_eq!(start.call.as_ref().map(|call| call.tool.as_str()), Some("delegate"));
    assert_eq!(*session_id, child.session_id);
    assert_eq!((*status, *timed_out), (pintle_domain::checkpoint::runtime::TurnStatus::Completed, false));
    assert_eq!((outcome.as_str(), denials.is_empty()), ("found it", true));
    assert_eq!(stop.who.turn_id, parent.turn_id);
}

#[tokio::test]
async fn process_hooks_hear_of_sub_agents_and_of_what_they_do() {
    let test_agents = TestAgentsParts::of(one_subagent("delegate"), &["main", "helper"]).test_agents();
    let around = (&*test_agents.engine, test_agents.folder.path());
    let child = child_in(around, "p", &[("before_llm", "{}")], json!({"observe": ["all"]}));
    test_agents.mount(vec![shaken(child).await]);
    let mut conversation = Conversation::new("s");
    test_agents.turn(&mut conversation, "go").await;
    test_agents.settled().await;
    let lines: Vec<Value> =
        sent(test_agents.folder.path(), "p").iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events = |kind: &str| lines.iter().filter(|line| line["params"]["Kind"] == kind).count();
    let counts = ["subturn_spawn", "subturn_end", "subturn_result_delivered", "turn_start", "turn_end"].map(events);
    assert_eq!(counts, [1, 1, 1, 2, 2]);
    let asked: Vec<&Value> = lines.iter().filter(|line| line["method"] == "hook.before_llm").collect();
    let paths: Vec<&Value> = asked.iter().map(|line| &line["params"]["meta"]["TracePath"]).collect();
    assert_eq!(paths, ["runTurn", "spawnSubTurn", "runTurn"]);
    let (parent, child) = (&asked[0]["params"]["meta"], &asked[1]["params"]["meta"]);
    assert_eq!((&child["ParentTurnID"], &parent["ParentTurnID"]), (&parent["TurnID"], &json!("")));
    assert_eq!((&child["AgentID"], &asked[1]["params"]["context"]["identity"]["depth"]), (&json!("helper"), &json!(1)));
}

#[tokio::test]
async fn a_sub_agent_that_a_hook_stops_ends_as_its_turn_did() {
    for (abort_scope, status) in [(AbortScope::Turn, "error"), (AbortScope::Run, "aborted")] {
        let test_agents = TestAgentsParts::of(one_subagent("delegate"), &["main", "helper"]).test_agents();
        let stops = move |at: &pintle_domain::checkpoint::BeforeLlm| match at.request.messages[0].get().content.as_str()
        {
            "find it" => Verdict::Abort(Abort { abort_scope, reason: "enough".into() }),
            _ => Verdict::Continue,
        };
        let rule = Rule { before_llm: Some(Box::new(stops)), ..Rule::default() };
        test_agents.mount(vec![test_agents.engine.native("h", 0, Arc::new(rule))]);
        test_agents.turn(&mut Conversation::new("s"), "go").await;
        assert_eq!(test_agents.seen.payloads("turn_end")[0]["Status"], status);
        assert_eq!(test_agents.seen.payloads("subturn_end"), [json!({"AgentID": "helper", "Status": status})]);
    }
}

/// A model by which every agent hands `depth + 1` on to the next one, until it is told no.
fn ever_deeper() -> Arc<Recorder> {
    Mind::quick(|_, request| match after_tools(request) {
        false => hands("delegate", "main", &format!("{}", last(request).parse::<u32>().unwrap() + 1)),
        true => LlmReply::text(format!("I was told: {}", last(request))),
    })
}

#[tokio::test]
async fn nobody_stands_deeper_than_three() {
    let test_agents = TestAgentsParts::of(ever_deeper(), &["main"]).test_agents();
    let mut conversation = Conversation::new("s");
    let report = test_agents.turn(&mut conversation, "0").await;
    let refusal = "sub-agents may stand at most 3 levels below the first agent";
    assert_eq!(report.denials, [format!("main: main: main: main: {refusal}")]);
    assert!(report.reply.contains(refusal), "{}", report.reply);
    assert_eq!((test_agents.seen.count("subturn_spawn"), test_agents.seen.count("subagent_stop")), (3, 3));
    let depths: BTreeSet<u8> = test_agents.seen.notices.lock().unwrap().iter().map(|notice| notice.who.depth).collect();
    assert_eq!(depths, (0..=3).collect());
    let records = test_agents.seen.records.lock().unwrap();
    let refused = records.iter().find(|record| record.checkpoint == CheckpointKind::SubagentStart).unwrap();
    assert_eq!((refused.ruling.text.as_deref(), refused.who.depth), (Some(refusal), 3));
}

/// A gate of `agent` that denies `work` whose arguments say that it is bad, or all of it.
fn gate_of(test_agents: &TestAgents, agent: &str, all: bool) -> Mount {
    let gate = move |at: &pintle_domain::checkpoint::PreToolUse| {
        let bad = all || at.call.arguments.get("bad") == Some(&json!(true));
        if at.call.tool == "work" && bad { Verdict::deny("no bad work") } else { Verdict::Continue }
    };
    let rule = Rule { gate: Some(Box::new(gate)), ..Rule::default() };
    let mut mount = test_agents.engine.native("gate", 0, Arc::new(rule));
    mount.hook.scope = Scope::Agents([AgentId::from(agent)].into());
    mount
}

#[tokio::test]
async fn a_gate_of_the_parent_sees_what_children_do_on_its_behalf() {
    let seen = Arc::new(OnceLock::<Arc<Seen>>::new());
    let by_main = seen.clone();
    let model = Mind::slow(move |model, request| {
        let (seen, first) = (by_main.clone(), request.messages.len() == 1);
        let reply = match (model, first) {
            ("main", true) => {
                LlmReply::calls((1..=2).map(|n| call(n, "spawn", &json!({"agent": "a", "task": "go"}))).collect())
            }
            ("a", true) => hands("delegate", "b", "go"),
            ("b", true) => hands("delegate", "c", "go"),
            ("c", true) => LlmReply::calls(vec![call(1, "work", &json!({}))]),
            _ => LlmReply::text("done"),
        };
        let waits = (model, first) == ("main", false);
        async move {
            if waits {
                until_ended(seen.get().unwrap(), 6).await;
            }
            reply
        }
        .boxed()
    });
    let work = OwnTool::giving("work", ToolOutput::ok("hi"));
    let test_agents = TestAgentsParts::of(model, &["main", "a", "b", "c"]).own(work.clone()).test_agents();
    seen.set(test_agents.seen.clone()).ok().unwrap();
    test_agents.mount(vec![gate_of(&test_agents, "main", true)]);
    let mut conversation = Conversation::new("s");
    test_agents.turn(&mut conversation, "go").await;
    test_agents.settled().await;
    assert_eq!(work.calls(), Vec::<String>::new());
    let records = test_agents.seen.records.lock().unwrap().clone();
    let denied = records
        .iter()
        .filter(|record| record.ruling.text.as_deref() == Some("Hook blocked: pre_tool_use: gate: no bad work"));
    assert_eq!(denied.filter(|record| record.who.depth == 3).count(), 2);
    for text in queued(&mut conversation) {
        assert!(text.contains("\n- b: c: work: Hook blocked: pre_tool_use: gate: no bad work"), "{text}");
    }
    // Whoever does not work for `main` is not its business.
    let mut other = Conversation::new("other");
    let turn_handle = TurnHandle::default();
    test_agents.registry.runner("c").unwrap().turn(&mut other, "go", test_agents.seen.clone(), &turn_handle).await;
    assert_eq!(work.calls(), ["work({})"]);
}

#[tokio::test]
async fn a_gate_of_subagent_start_keeps_one_from_beginning() {
    for tool in ["delegate", "spawn"] {
        let test_agents = TestAgentsParts::of(one_subagent(tool), &["main", "helper"]).test_agents();
        let asked = Arc::new(std::sync::Mutex::new(Vec::new()));
        let log = asked.clone();
        let gate = move |at: &pintle_domain::checkpoint::SubagentStart| {
            log.lock().unwrap().push((at.agent.to_string(), at.task.clone(), at.depth));
            Verdict::deny("not today")
        };
        let rule = Rule { subagent: Some(Box::new(gate)), ..Rule::default() };
        test_agents.mount(vec![test_agents.engine.native("h", 0, Arc::new(rule))]);
        let mut conversation = Conversation::new("s");
        let report = test_agents.turn(&mut conversation, "go").await;
        test_agents.settled().await;
        let text = "delegation to \"helper\" blocked by hook policy: h: not today";
        assert_eq!(said(&conversation)[2], format!("c1: {text}"), "{tool}");
        assert_eq!(report.denials, [format!("helper: {text}")], "{tool}");
        assert_eq!(*asked.lock().unwrap(), [("helper".to_owned(), "find it".to_owned(), 1)], "{tool}");
        let names = ["subturn_spawn", "subturn_end", "subagent_stop", "turn_start"];
        assert_eq!(names.map(|name| test_agents.seen.count(name)), [0, 0, 0, 1], "{tool}");
    }
}

/// A model by which `main` hands a task to `helper` with `tool`, whose provider panics when it may.
fn panicking(tool: &'static str, may: Arc<Notify>) -> Arc<Recorder> {
    Mind::slow(move |model, request| {
        let may = may.clone();
        match (model, request.messages.len()) {
            ("main", 1) => std::future::ready(hands(tool, "helper", "find it")).boxed(),
            ("main", _) => std::future::ready(LlmReply::text("done")).boxed(),
            _ => async move {
                may.notified().await;
                panic!("a defect of the provider")
            }
            .boxed(),
        }
    })
}

#[tokio::test]
async fn a_sub_agent_that_panics_has_one_end() {
    for tool in ["delegate", "spawn"] {
        // One that is waited for panics at once, one in the background when its parent is done.
        let may = Arc::new(Notify::new());
        if tool == "delegate" {
            may.notify_one();
        }
        let model = panicking(tool, may.clone());
        let test_agents = TestAgentsParts::of(model, &["main", "helper"]).test_agents();
        let mut conversation = Conversation::new("s");
        let report = test_agents.turn(&mut conversation, "go").await;
        assert_eq!(report.ending, TurnEnding::Completed, "{tool}");
        may.notify_one();
        test_agents.settled().await;
        let names = ["subturn_spawn", "subturn_end", "subagent_stop", "turn_start", "turn_end"];
        assert_eq!(names.map(|name| test_agents.seen.count(name)), [1, 1, 1, 2, 2], "{tool}");
        assert_eq!(
            test_agents.seen.payloads("subturn_end"),
            [json!({"AgentID": "helper", "Status": "aborted"})],
            "{tool}"
        );
        if tool == "spawn" {
            let reasons: Vec<Value> =
                test_agents.seen.payloads("subturn_orphan").iter().map(|orphan| orphan["Reason"].clone()).collect();
            assert_eq!(reasons.last(), Some(&json!("panic")), "{reasons:?}");
            assert!(queued(&mut conversation)[0].ends_with("The agent failed inside, and brought nothing."));
        } else {
            assert!(said(&conversation)[2].starts_with("c1: the tool failed: "), "{:?}", said(&conversation));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_sub_agent_has_a_time() {
    for tool in ["delegate", "spawn"] {
        let model = Mind::slow(move |model, request| match (model, request.messages.len()) {
            ("main", 1) => std::future::ready(hands(tool, "helper", "find it")).boxed(),
            ("main", _) => std::future::ready(LlmReply::text("done")).boxed(),
            _ => std::future::pending().boxed(),
        });
        let test_agents = TestAgentsParts::of(model, &["main", "helper"]).test_agents();
        let mut conversation = Conversation::new("s");
        let began = tokio::time::Instant::now();
        test_agents.turn(&mut conversation, "go").await;
        test_agents.settled().await;
        assert!(began.elapsed() >= SUBTURN_TIME && began.elapsed() < 2 * SUBTURN_TIME, "{tool}");
        let names = ["subturn_spawn", "subturn_end", "subagent_stop", "turn_start", "turn_end"];
        assert_eq!(names.map(|name| test_agents.seen.count(name)), [1, 1, 1, 2, 2], "{tool}");
        assert_eq!(
            test_agents.seen.payloads("subturn_end"),
            [json!({"AgentID": "helper", "Status": "error"})],
            "{tool}"
        );
        let text = "The agent \"helper\" failed: its time of 15 minutes is over";
        let everything = format!("{:?}{:?}", said(&conversation), queued(&mut conversation)).replace('\\', "");
        assert!(everything.contains(text), "{tool}: {everything}");
    }
}
