//! Ways to end a turn from outside: gracefully, with last words, or at once, with the whole run.

use std::sync::{Arc, Mutex};

use futures_util::FutureExt as _;
use futures_util::future::join;
use pintle_agent::driver::TurnEnding;
use pintle_agent::{Conversation, TurnHandle};
use pintle_domain::checkpoint::{AfterLlm, BeforeLlm, CheckpointKind, LlmPatch, Notice, ObservedEvent};
use pintle_domain::json::{Rendered, Value, json};
use pintle_domain::llm::{LlmReply, ToolDef};
use pintle_domain::tool::ToolOutput;
use pintle_domain::verdict::Verdict;
use tokio::sync::Notify;

use crate::hooks::{OwnTool, Rule};
use crate::host::{Host, Parts};
use crate::test_agents::{Mind, TestAgentsParts, after_tools, call, hands, said};

/// A tool that does `order` to the turn.
fn ordering(turn_handle: &TurnHandle, order: fn(&TurnHandle)) -> Arc<OwnTool> {
    let turn_handle = turn_handle.clone();
    OwnTool::new(
        "work",
        false,
        Box::new(move |_, _| {
            order(&turn_handle);
            Box::pin(std::future::ready(ToolOutput::ok("hi")))
        }),
    )
}

/// A model that asks for `work` twice and, when no tools are offered, has last words.
fn script() -> Value {
    let call = |id: &str| json!({"id": id, "name": "work", "arguments": {}});
    json!([
        {"tool_calls": [call("c1"), call("c2")]},
        {"when": {"no_tools": true}, "text": "so far so good"},
        {"text": "done"},
        {"text": "more"},
    ])
}

fn host(turn_handle: &TurnHandle, order: fn(&TurnHandle)) -> Host {
    Parts::of(script()).own(ordering(turn_handle, order)).host()
}

const SKIPPED: &str = "c2: Skipped due to graceful interrupt.";

#[tokio::test]
async fn a_graceful_interrupt_leaves_one_last_call_without_tools() {
    let turn_handle = TurnHandle::default();
    let mut host = host(&turn_handle, TurnHandle::interrupt);
    let seen: Arc<Mutex<Vec<(bool, usize)>>> = Arc::default();
    let log = seen.clone();
    let before = move |at: &BeforeLlm| {
        log.lock().unwrap().push((at.request.graceful_terminal, at.request.tools.len()));
        let mut tools = at.request.tools.clone();
        tools.push(Rendered::new(ToolDef::new("brought", "", json!({"type": "object"}))));
        Verdict::Modify(LlmPatch { tools: Some(tools), ..LlmPatch::default() })
    };
    let after = |at: &AfterLlm| {
        let content = at.response.content.replace("good", "GOOD");
        Verdict::Modify(LlmReply { content, ..at.response.clone() })
    };
    let rule = Rule { before_llm: Some(Box::new(before)), after_llm: Some(Box::new(after)), ..Rule::default() };
    host.mount(vec![host.engine.native("h", 0, Arc::new(rule))]);
    let report = host.turn_by("go", &turn_handle).await;
    assert_eq!((report.ending, report.reply.as_str()), (TurnEnding::Completed, "so far so GOOD"));
    let batch = "assistant: [c1=work({}) c2=work({})]";
    assert_eq!(host.said(), ["user: go", batch, "c1: hi", SKIPPED, "assistant: so far so GOOD"]);
    // Hooks see the last call, and that it is the last; what they add is offered only before.
    assert_eq!(*seen.lock().unwrap(), [(false, 1), (true, 0)]);
    let offered: Vec<usize> = host.model.asked.lock().unwrap().iter().map(|(_, asked)| asked.tools.len()).collect();
    assert_eq!(offered, [2, 0]);
    let counts: Vec<Value> = host.seen.payloads("llm_request").iter().map(|e| e["ToolsCount"].clone()).collect();
    assert_eq!(counts, [json!(2), json!(0)]);
    let interrupt = json!({"Kind": "graceful", "Role": "user", "ContentLen": 0, "QueueDepth": 0, "HintLen": 0});
    assert_eq!(host.seen.payloads("interrupt_received"), [interrupt]);
    let skipped = json!({"Tool": "work", "Reason": "graceful interrupt requested", "ToolCallID": "c2"});
    assert_eq!(host.seen.payloads("tool_exec_skipped"), [skipped]);
    assert_eq!((&host.seen.payloads("turn_end")[0]["Status"], host.seen.count("stop")), (&json!("completed"), 1));
}

#[tokio::test]
async fn calls_in_the_last_words_are_passed_over() {
    let turn_handle = TurnHandle::default();
    let calls = json!([{"id": "c1", "name": "work", "arguments": {}}]);
    let stubborn = json!([{"tool_calls": calls}, {"text": "one more", "tool_calls": calls}]);
    let tool = ordering(&turn_handle, TurnHandle::interrupt);
    let mut host = Parts::of(stubborn).own(tool.clone()).host();
    let report = host.turn_by("go", &turn_handle).await;
    assert_eq!((report.ending, report.reply.as_str()), (TurnEnding::Completed, "one more"));
    assert_eq!((tool.calls().len(), host.model.count(), host.is_valid()), (1, 2, true));
    assert_eq!(host.said().last().unwrap(), "call_2_0: Skipped due to graceful interrupt.");
}

#[tokio::test]
async fn the_last_call_is_not_taken_away_by_the_iteration_limit() {
    let turn_handle = TurnHandle::default();
    let mut parts = Parts::of(script()).own(ordering(&turn_handle, TurnHandle::interrupt));
    parts.settings.max_iterations = 1;
    let mut host = parts.host();
    let report = host.turn_by("go", &turn_handle).await;
    assert_eq!((report.ending, report.reply.as_str()), (TurnEnding::Completed, "so far so good"));
}

#[tokio::test]
async fn an_interrupt_twice_is_one_and_before_the_turn_is_one_too() {
    let turn_handle = TurnHandle::default();
    turn_handle.interrupt();
    turn_handle.interrupt();
    let mut host = Parts::of(json!([{"when": {"no_tools": true}, "text": "nothing yet"}])).host();
    let report = host.turn_by("go", &turn_handle).await;
    assert_eq!((report.reply.as_str(), host.seen.count("interrupt_received")), ("nothing yet", 1));
}

#[tokio::test]
async fn messages_that_wait_at_a_graceful_interrupt_reach_the_last_call() {
    let turn_handle = TurnHandle::default();
    let order = |turn_handle: &TurnHandle| {
        turn_handle.steer("and be brief").unwrap();
        turn_handle.interrupt();
    };
    let mut host = host(&turn_handle, order);
    host.turn_by("go", &turn_handle).await;
    let asked = host.asked(1);
    let [.., heard, last] = &*asked else { panic!("{asked:?}") };
    assert_eq!(heard, "user: and be brief");
    assert!(last.starts_with("system: The user wants this turn to come to an end: this is its last answer"), "{last}");
    assert_eq!(host.said()[3], SKIPPED, "of two reasons the interrupt is told");
}

#[tokio::test]
async fn a_hard_abort_takes_the_history_back_and_names_what_waited() {
    let turn_handle = TurnHandle::default();
    let order = |turn_handle: &TurnHandle| {
        turn_handle.steer("never read").unwrap();
        turn_handle.steer("nor this").unwrap();
        turn_handle.abort();
    };
    let mut script = script();
    script.as_array_mut().unwrap().insert(0, json!({"text": "hello"}));
    let mut host = Parts::of(script).own(ordering(&turn_handle, order)).host();
    host.turn("first").await;
    let before = host.said();
    let report = host.turn_by("go", &turn_handle).await;
    assert_eq!((report.ending, report.reply.as_str()), (TurnEnding::Cancelled, ""));
    assert_eq!(host.said(), before);
    let statuses: Vec<Value> = host.seen.payloads("turn_end").iter().map(|end| end["Status"].clone()).collect();
    assert_eq!((statuses, host.seen.count("stop")), (vec![json!("completed"), json!("aborted")], 1));
    let interrupts = host.seen.payloads("interrupt_received");
    let last = json!({"Kind": "hard_abort", "Role": "user", "ContentLen": 0, "QueueDepth": 0, "HintLen": 0});
    assert_eq!(interrupts.last(), Some(&last));
    assert_eq!(interrupts.iter().filter(|event| event["Kind"] == "hard_abort").count(), 1);
    let told = host.seen.for_user.lock().unwrap().clone();
    assert_eq!(told, ["discarded, the run was stopped: never read", "discarded, the run was stopped: nor this"]);
    assert!(host.conversation.queue().is_empty());
    // The session goes on from there.
    assert_eq!(host.turn("again").await.ending, TurnEnding::Completed);
}

#[tokio::test]
async fn messages_that_had_passed_the_gates_are_named_as_well() {
    let turn_handle = TurnHandle::default();
    let mut host =
        Parts::of(script()).own(ordering(&turn_handle, |turn_handle| turn_handle.steer("queued").unwrap())).host();
    // It passes its gate, and then a hook ends the run before the message is taken in.
    let before = |at: &BeforeLlm| {
        if at.request.messages.len() > 1 { Verdict::hard_abort("enough") } else { Verdict::Continue }
    };
    let rule = Rule { before_llm: Some(Box::new(before)), ..Rule::default() };
    host.mount(vec![host.engine.native("h", 0, Arc::new(rule))]);
    turn_handle.steer("early").unwrap();
    let report = host.turn_by("go", &turn_handle).await;
    assert!(matches!(report.ending, TurnEnding::StoppedByHook(_)));
    assert_eq!(host.said(), Vec::<String>::new());
    let interrupt =
        json!({"Kind": "hard_abort", "Role": "hook", "ContentLen": 0, "QueueDepth": 0, "HintLen": 6, "Hook": "h"});
    assert_eq!(host.seen.payloads("interrupt_received").last(), Some(&interrupt));
}

#[tokio::test]
async fn a_hard_abort_leaves_other_sessions_alone() {
    let (turn_handle, ready, go) = (TurnHandle::default(), Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (said_ready, may_go) = (ready.clone(), go.clone());
    let model = Mind::slow(move |_, request| {
        let waits = crate::test_agents::last(request) == "wait";
        let (ready, go) = (said_ready.clone(), may_go.clone());
        async move {
            if waits {
                ready.notify_one();
                go.notified().await;
            }
            LlmReply::text("done")
        }
        .boxed()
    });
    let test_agents = TestAgentsParts::of(model, &["main"]).test_agents();
    let (mut one, mut other) = (Conversation::new("one"), Conversation::new("other"));
    let waiting = test_agents.turn_by(&mut one, "wait", &turn_handle);
    let going_on = async {
        ready.notified().await;
        turn_handle.abort();
        test_agents.turn(&mut other, "go").await
    };
    let (aborted, done) = join(waiting, going_on).await;
    assert_eq!((aborted.ending, done.ending), (TurnEnding::Cancelled, TurnEnding::Completed));
    assert_eq!((said(&one).len(), said(&other).len()), (0, 2));
}

/// Statuses of the turns that ended, innermost first, with the agent and the depth of each.
fn ends(test_agents: &crate::test_agents::TestAgents) -> Vec<String> {
    let notices = test_agents.seen.notices.lock().unwrap();
    let end = |notice: &Notice| match &notice.what {
        ObservedEvent::Runtime(event) if event.kind().name() == "turn_end" => {
            let status = json!(event)["Status"].as_str().unwrap().to_owned();
            Some(format!("{} {} {status}", notice.who.agent_id, notice.who.depth))
        }
        ObservedEvent::Runtime(_)
        | ObservedEvent::SessionStart
        | ObservedEvent::PostToolUse { .. }
        | ObservedEvent::SubagentStop { .. }
        | ObservedEvent::Stop { .. } => None,
    };
    notices.iter().filter_map(end).collect()
}

#[tokio::test]
async fn a_hook_two_levels_down_stops_the_whole_run() {
    let model = Mind::quick(|model, request| match (model, after_tools(request)) {
        ("main", false) => hands("delegate", "helper", "dig"),
        ("helper", false) => hands("delegate", "digger", "dig deeper"),
        ("digger", false) => LlmReply::calls(vec![call(1, "work", &json!({}))]),
        _ => LlmReply::text("done"),
    });
    let work = OwnTool::giving("work", ToolOutput::ok("hi"));
    let test_agents = TestAgentsParts::of(model, &["main", "helper", "digger"]).own(work.clone()).test_agents();
    let rule = Rule {
        before_tool: Some(Box::new(|at| {
            if at.call.tool == "work" { Verdict::hard_abort("enough") } else { Verdict::Continue }
        })),
        ..Rule::default()
    };
    test_agents.mount(vec![test_agents.engine.native("h", 0, Arc::new(rule))]);
    let mut conversation = Conversation::new("s");
    let report = test_agents.turn(&mut conversation, "go").await;
    let TurnEnding::StoppedByHook(aborted) = &report.ending else { panic!("{report:?}") };
    assert_eq!((aborted.by.as_str(), aborted.at), ("h", CheckpointKind::BeforeTool));
    assert_eq!((said(&conversation), work.calls()), (Vec::<String>::new(), Vec::<String>::new()));
    assert_eq!(ends(&test_agents), ["digger 2 aborted", "helper 1 aborted", "main 0 aborted"]);
    assert_eq!((test_agents.seen.count("subagent_stop"), test_agents.seen.count("stop")), (2, 0));
    let interrupts = test_agents.seen.payloads("interrupt_received");
    assert!(interrupts.iter().all(|event| event["Kind"] == "hard_abort" && event["Hook"] == "h"), "{interrupts:?}");
    assert_eq!(test_agents.model.count(), 3, "no model is asked after it");
    // The session goes on.
    test_agents.mount(Vec::new());
    assert_eq!(test_agents.turn(&mut conversation, "again").await.ending, TurnEnding::Completed);
}

#[tokio::test]
async fn a_hook_in_the_background_stops_the_run_that_it_works_for() {
    let model = Mind::slow(|model, request| match (model, after_tools(request)) {
        ("main", false) => std::future::ready(hands("spawn", "helper", "dig")).boxed(),
        // The answer never comes: only the end of the run ends this call.
        ("main", true) => std::future::pending().boxed(),
        _ => std::future::ready(LlmReply::calls(vec![call(1, "work", &json!({}))])).boxed(),
    });
    let test_agents = TestAgentsParts::of(model, &["main", "helper"])
        .own(OwnTool::giving("work", ToolOutput::ok("hi")))
        .test_agents();
    let rule = Rule {
        before_tool: Some(Box::new(|at| {
            if at.call.tool == "work" { Verdict::hard_abort("enough") } else { Verdict::Continue }
        })),
        ..Rule::default()
    };
    test_agents.mount(vec![test_agents.engine.native("h", 0, Arc::new(rule))]);
    let mut conversation = Conversation::new("s");
    let report = test_agents.turn(&mut conversation, "go").await;
    assert!(matches!(report.ending, TurnEnding::StoppedByHook(_)), "{report:?}");
    test_agents.settled().await;
    assert_eq!(said(&conversation), Vec::<String>::new());
    let mut ends = ends(&test_agents);
    ends.sort();
    assert_eq!(
        (ends, test_agents.seen.count("follow_up_queued")),
        (vec!["helper 1 aborted".to_owned(), "main 0 aborted".into()], 0)
    );
    assert!(conversation.queue().is_empty());
}

#[tokio::test]
async fn what_stops_the_turn_at_the_top_stops_what_works_for_it() {
    type Stop = fn(&TurnHandle);
    let stops: [(&str, Stop); 2] = [("abort", TurnHandle::abort), ("cancel", TurnHandle::cancel)];
    for (name, stop) in stops {
        let (turn_handle, ready) = (TurnHandle::default(), Arc::new(Notify::new()));
        let asked = ready.clone();
        let model = Mind::slow(move |model, request| match (model, after_tools(request)) {
            ("main", false) => {
                let args = |agent: &str| json!({"agent": agent, "task": "wait"});
                let calls = vec![call(1, "spawn", &args("helper")), call(2, "delegate", &args("helper"))];
                std::future::ready(LlmReply::calls(calls)).boxed()
            }
            _ => {
                asked.notify_one();
                std::future::pending().boxed()
            }
        });
        let test_agents = TestAgentsParts::of(model, &["main", "helper"]).test_agents();
        let mut conversation = Conversation::new("s");
        let stopping = async {
            ready.notified().await;
            ready.notified().await;
            stop(&turn_handle);
        };
        let (report, ()) = join(test_agents.turn_by(&mut conversation, "go", &turn_handle), stopping).await;
        assert_eq!(report.ending, TurnEnding::Cancelled, "{name}");
        test_agents.settled().await;
        let mut ends = ends(&test_agents);
        ends.sort();
        assert_eq!(ends, ["helper 1 aborted", "helper 1 aborted", "main 0 aborted"], "{name}");
        assert_eq!(
            (test_agents.seen.count("subturn_spawn"), test_agents.seen.count("subagent_stop")),
            (2, 2),
            "{name}"
        );
        assert_eq!(said(&conversation).is_empty(), name == "abort", "{name}");
    }
}

#[tokio::test]
async fn a_turn_that_a_hook_stops_takes_its_own_sub_agents_with_it() {
    let ready = Arc::new(Notify::new());
    let asked = ready.clone();
    let model = Mind::slow(move |model, request| {
        let (ready, first) = (asked.clone(), !after_tools(request));
        match (model, first) {
            ("main", true) => std::future::ready(hands("spawn", "helper", "wait")).boxed(),
            ("main", false) => async move {
                ready.notified().await;
                LlmReply::calls(vec![call(2, "work", &json!({}))])
            }
            .boxed(),
            _ => {
                ready.notify_one();
                std::future::pending().boxed()
            }
        }
    });
    let test_agents = TestAgentsParts::of(model, &["main", "helper"])
        .own(OwnTool::giving("work", ToolOutput::ok("hi")))
        .test_agents();
    let rule = Rule {
        before_tool: Some(Box::new(|at| {
            if at.call.tool == "work" { Verdict::hard_abort("enough") } else { Verdict::Continue }
        })),
        ..Rule::default()
    };
    test_agents.mount(vec![test_agents.engine.native("h", 0, Arc::new(rule))]);
    let mut conversation = Conversation::new("s");
    test_agents.turn(&mut conversation, "go").await;
    // It would wait for ever for a sub-agent that nobody stopped.
    test_agents.settled().await;
    assert_eq!(ends(&test_agents), ["main 0 aborted", "helper 1 aborted"]);
}
