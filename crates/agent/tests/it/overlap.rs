//! Calls of one batch: which run side by side, and which wait.

use std::sync::{Arc, Mutex};

use pintle_agent::driver::TurnEnding;
use pintle_domain::json::{Value, json};
use pintle_domain::tool::ToolOutput;
use pintle_domain::verdict::Verdict;
use tokio::sync::{Barrier, Notify};

use crate::hooks::{OwnTool, Rule};
use crate::host::Parts;

fn batch(names: &[&str]) -> Value {
    let calls: Vec<Value> =
        (1..).zip(names).map(|(n, name)| json!({"id": format!("c{n}"), "name": name, "arguments": {}})).collect();
    json!([{"tool_calls": calls}, {"text": "done"}])
}

/// A reading tool that goes on only when three of its calls run at the same time.
fn meeting(log: &Arc<Mutex<Vec<String>>>) -> Arc<OwnTool> {
    let (barrier, log) = (Arc::new(Barrier::new(3)), log.clone());
    OwnTool::new(
        "meet",
        true,
        Box::new(move |call, _| {
            let (barrier, log) = (barrier.clone(), log.clone());
            Box::pin(async move {
                barrier.wait().await;
                log.lock().unwrap().push(format!("{} ends", call.id));
                ToolOutput::ok("met")
            })
        }),
    )
}

fn writing(log: &Arc<Mutex<Vec<String>>>) -> Arc<OwnTool> {
    let log = log.clone();
    OwnTool::new(
        "write",
        false,
        Box::new(move |call, _| {
            log.lock().unwrap().push(format!("{} writes", call.id));
            Box::pin(std::future::ready(ToolOutput::ok("written")))
        }),
    )
}

#[tokio::test]
async fn reading_calls_overlap_and_a_writing_one_waits_for_all_of_them() {
    let log = Arc::default();
    let names = ["write", "meet", "meet", "meet", "write", "write"];
    let mut host = Parts::of(batch(&names)).own(meeting(&log)).own(writing(&log)).host();
    // Were they not to overlap, the barrier would never open and this would not end.
    assert_eq!(host.turn("go").await.ending, TurnEnding::Completed);
    let order = log.lock().unwrap().clone();
    assert_eq!((order[0].as_str(), &order[4..]), ("c1 writes", &["c5 writes".to_owned(), "c6 writes".to_owned()][..]));
    // Messages keep the model's order, and each event its own call.
    let results: Vec<String> = (1..=6).map(|n| host.result(&format!("c{n}"))).collect();
    assert_eq!(results, ["written", "met", "met", "met", "written", "written"]);
    let tools: Vec<String> = host.seen.stamps().into_iter().filter(|line| line.starts_with("tool_exec")).collect();
    assert_eq!(
        tools,
        [
            "tool_exec_start 1 c1",
            "tool_exec_end 1 c1",
            "tool_exec_start 1 c2",
            "tool_exec_start 1 c3",
            "tool_exec_start 1 c4",
            "tool_exec_end 1 c2",
            "tool_exec_end 1 c3",
            "tool_exec_end 1 c4",
            "tool_exec_start 1 c5",
            "tool_exec_end 1 c5",
            "tool_exec_start 1 c6",
            "tool_exec_end 1 c6",
        ]
    );
    let ids = host.seen.payloads("tool_exec_start").iter().map(|e| e["ToolCallID"].clone()).collect::<Vec<_>>();
    assert_eq!(ids, ["c1", "c2", "c3", "c4", "c5", "c6"]);
    let kinds = &host.seen.payloads("turn_end")[0]["ToolKinds"];
    assert_eq!(*kinds, json!(["meet", "write"]));
}

#[tokio::test]
async fn a_call_that_a_hook_made_a_writing_one_starts_under_its_own_name_after_the_others() {
    let log = Arc::default();
    let reads = OwnTool::new("read", true, Box::new(|_, _| Box::pin(std::future::ready(ToolOutput::ok("read")))));
    let mut host = Parts::of(batch(&["read", "read"])).own(reads).own(writing(&log)).host();
    let rule = Rule {
        before_tool: Some(Box::new(|at| {
            let second = at.call.id.as_str() == "c2";
            let tool = second.then(|| "write".to_owned());
            Verdict::Modify(pintle_domain::checkpoint::CallPatch { tool, arguments: None })
        })),
        ..Rule::default()
    };
    host.mount(vec![host.engine.native("h", 0, Arc::new(rule))]);
    host.turn("go").await;
    let tools: Vec<String> = host.seen.stamps().into_iter().filter(|line| line.starts_with("tool_exec")).collect();
    // The first call is settled between the clearing and the start of the second.
    assert_eq!(tools, ["tool_exec_start 1 c1", "tool_exec_end 1 c1", "tool_exec_start 1 c2", "tool_exec_end 1 c2"]);
}

#[tokio::test]
async fn an_owned_call_is_no_reading_one() {
    // `read` changes nothing, but the one that a hook brought under that name belongs to the hook: it waits its turn.
    let (began, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, goes_on) = (began.clone(), go_on.clone());
    let slow = OwnTool::new(
        "slow",
        true,
        Box::new(move |_, _| {
            let (begins, goes_on) = (begins.clone(), goes_on.clone());
            Box::pin(async move {
                begins.notify_one();
                goes_on.notified().await;
                ToolOutput::ok("slow")
            })
        }),
    );
    let mut host = Parts::of(batch(&["slow", "owned"])).own(slow).host();
    let rule = Rule {
        before_llm: Some(Box::new(|at| {
            let mut tools = at.request.tools.clone();
            tools.push(pintle_domain::llm::ToolDef::new("owned", "", json!({"type": "object"})).into());
            Verdict::Modify(pintle_domain::checkpoint::LlmPatch { tools: Some(tools), ..Default::default() })
        })),
        ..Rule::default()
    };
    host.mount(vec![host.engine.native("h", 0, Arc::new(rule))]);
    let seen = host.seen.clone();
    let turn = host.turn("go");
    let watch = async {
        began.notified().await;
        tokio::task::yield_now().await;
        let started = seen.count("tool_exec_start");
        go_on.notify_one();
        started
    };
    let (report, started) = futures_util::future::join(turn, watch).await;
    assert_eq!((report.ending, started), (TurnEnding::Completed, 1));
    assert_eq!((host.result("c1").as_str(), host.result("c2").as_str()), ("slow", "tool \"owned\" not found"));
}
