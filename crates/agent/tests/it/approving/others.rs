//! Questions that sub-agents and owners of tools have to do with, and calls that run beside them.

use super::*;
use pintle_domain::store::TenantScope;

/// An agent that has a sub-agent do the work.
fn with_helper(machine: &Machine, mode: ApprovalMode, asker: Option<Arc<Says>>) -> TestAgents {
    let model = Mind::quick(|model, request| match (model, after_tools(request)) {
        ("main", false) => hands("delegate", "helper", "go"),
        ("helper", false) => LlmReply::calls(vec![call(1, "work", &json!({}))]),
        _ => LlmReply::text("done"),
    });
    let mut parts = TestAgentsParts::of(model, &["main", "helper"]).own(machine.work.clone());
    let approvals = Approvals::new(machine.store.clone(), mode);
    parts.approvals = Some(match asker {
        Some(asker) => approvals.with_asker(asker),
        None => approvals,
    });
    let test_agents = parts.test_agents();
    test_agents.mount(vec![test_agents.engine.native("h", 0, Arc::new(asking()))]);
    test_agents
}

#[tokio::test]
async fn a_sub_agent_is_refused_where_nobody_is_there() {
    let refusal =
        "Tool execution needs a person's approval, and nobody can be asked here: is it safe? (asked by hook \"h\")";
    // Nobody is there; or somebody who does not want to say now.
    for (mode, asker) in [
        (ApprovalMode::Run, None),
        (ApprovalMode::Chat, None),
        (ApprovalMode::Resume, None),
        (ApprovalMode::Chat, Some(Says::new(None))),
    ] {
        let machine = Machine::new();
        let test_agents = with_helper(&machine, mode, asker);
        let mut conversation = machine.open();
        let report = test_agents.turn(&mut conversation, "go").await;
        assert_eq!((report.ending, machine.work.calls().len()), (TurnEnding::Completed, 0), "{mode:?}");
        assert_eq!(report.denials, [format!("helper: work: {refusal}")], "{mode:?}");
        assert!(said(&conversation)[2].contains(refusal), "{mode:?}: the parent reads it");
        assert_eq!((test_agents.seen.count("turn_end"), test_agents.seen.count("subagent_stop")), (2, 1), "{mode:?}");
        assert!(machine.states().iter().all(|state| *state == ApprovalState::Void), "{mode:?}: {:?}", machine.states());
    }
}

#[tokio::test]
async fn a_sub_agents_question_reaches_whoever_is_there() {
    let (machine, anna) = (Machine::new(), Says::new(Some(true)));
    let test_agents = with_helper(&machine, ApprovalMode::Chat, Some(anna.clone()));
    let mut conversation = machine.open();
    test_agents.turn(&mut conversation, "go").await;
    assert_eq!((anna.times(), machine.work.calls().len()), (1, 1));
    let asked = anna.asked.lock().unwrap().remove(0);
    assert_eq!(asked.agent_id.as_str(), "helper");
    assert!(asked.session_id.as_str().starts_with("s/delegate:helper:"), "{}", asked.session_id);
}

/// A hook that brings the tool `brought` and answers for it; it notes when it is asked.
fn owner(log: &Arc<Mutex<Vec<&'static str>>>) -> Rule {
    let log = log.clone();
    let before_llm = |at: &pintle_domain::checkpoint::BeforeLlm| {
        let mut tools = at.request.tools.clone();
        tools.push(Rendered::new(ToolDef::new("brought", "", json!({"type": "object"}))));
        Verdict::Modify(LlmPatch { tools: Some(tools), ..LlmPatch::default() })
    };
    let before_tool = move |at: &BeforeTool| {
        if at.call.tool != "brought" {
            return Verdict::Continue;
        }
        log.lock().unwrap().push("owner");
        Verdict::respond(Substitute { call: None, result: ToolOutput::ok("by its owner") })
    };
    Rule { before_llm: Some(Box::new(before_llm)), before_tool: Some(Box::new(before_tool)), ..Rule::default() }
}

struct Logs(Arc<Mutex<Vec<&'static str>>>, bool);

#[async_trait]
impl Asker for Logs {
    async fn ask(&self, _approval: &Approval) -> Option<PersonAnswer> {
        self.0.lock().unwrap().push("person");
        Some(says(self.1, ""))
    }
}

fn owning(machine: &Machine, log: &Arc<Mutex<Vec<&'static str>>>, asker: Option<bool>) -> TestAgents {
    let model = Mind::quick(|_, request| match after_tools(request) {
        false => LlmReply::calls(vec![call(1, "brought", &json!({}))]),
        true => LlmReply::text("done"),
    });
    let mut parts = TestAgentsParts::of(model, &["main"]);
    let approvals = Approvals::new(machine.store.clone(), ApprovalMode::Chat);
    parts.approvals = Some(match asker {
        Some(says) => approvals.with_asker(Arc::new(Logs(log.clone(), says))),
        None => approvals,
    });
    let test_agents = parts.test_agents();
    let mounts: Vec<Mount> = vec![
        test_agents.engine.native("owner", 0, Arc::new(owner(log))),
        test_agents.engine.native("h", 1, Arc::new(asking())),
    ];
    test_agents.mount(mounts);
    test_agents
}

#[tokio::test]
async fn a_person_is_asked_before_the_owner_of_a_tool_is() {
    for (says, asked, result) in [
        (true, vec!["person", "owner"], "c1: by its owner"),
        (false, vec!["person"], "c1: Tool execution refused by a person (asked by hook \"h\")"),
    ] {
        let (machine, log) = (Machine::new(), Arc::default());
        let test_agents = owning(&machine, &log, Some(says));
        let mut conversation = machine.open();
        test_agents.turn(&mut conversation, "go").await;
        assert_eq!((log.lock().unwrap().clone(), said(&conversation)[2].as_str()), (asked, result));
    }
}

#[tokio::test]
async fn the_owner_of_a_parked_call_is_asked_once_it_is_approved() {
    let (machine, log) = (Machine::new(), Arc::default());
    let question = {
        let mut conversation = machine.open();
        waiting(owning(&machine, &log, None).turn(&mut conversation, "go").await)
    };
    assert_eq!((question.tool.as_str(), log.lock().unwrap().len()), ("brought", 0));
    machine.store.answer(&TenantScope::All, &question.id, says(true, ""), jiff::Timestamp::now()).unwrap();
    let mut conversation = machine.open();
    let test_agents = owning(&machine, &log, None);
    let report =
        test_agents.main().resume(&mut conversation, test_agents.seen.clone(), &TurnHandle::default()).await.unwrap();
    assert_eq!((report.ending, log.lock().unwrap().clone()), (TurnEnding::Completed, vec!["owner"]));
    assert_eq!(said(&conversation)[2], "c1: by its owner");
}

#[tokio::test]
async fn what_runs_is_finished_before_the_turn_is_left() {
    let machine = Machine::new();
    let may = Arc::new(Notify::new());
    let reads = may.clone();
    let look = OwnTool::new(
        "look",
        true,
        Box::new(move |_, _| {
            let reads = reads.clone();
            async move {
                reads.notified().await;
                ToolOutput::ok("seen")
            }
            .boxed()
        }),
    );
    let work = OwnTool::new("work", true, Box::new(|_, _| std::future::ready(ToolOutput::ok("hi")).boxed()));
    let model = Mind::quick(|_, request| match after_tools(request) {
        false => LlmReply::calls(vec![call(1, "look", &json!({})), call(2, "work", &json!({}))]),
        true => LlmReply::text("done"),
    });
    let mut parts = TestAgentsParts::of(model, &["main"]).own(look).own(work.clone());
    parts.approvals = Some(Approvals::new(machine.store.clone(), ApprovalMode::Run));
    let test_agents = parts.test_agents();
    test_agents.mount(vec![test_agents.engine.native("h", 0, Arc::new(asking()))]);
    let mut conversation = machine.open();
    let later = async {
        while machine.questions().is_empty() {
            tokio::task::yield_now().await;
        }
        may.notify_one();
    };
    let (report, ()) = join(test_agents.turn(&mut conversation, "go"), later).await;
    let question = waiting(report);
    assert_eq!((question.tool.as_str(), test_agents.seen.count("tool_exec_end")), ("work", 1));
    machine.store.answer(&TenantScope::All, &question.id, says(true, ""), jiff::Timestamp::now()).unwrap();
    // The file tells the same as the memory of the process.
    drop(conversation);
    let mut conversation = machine.open();
    test_agents.main().resume(&mut conversation, test_agents.seen.clone(), &TurnHandle::default()).await;
    assert_eq!(said(&conversation)[2..], ["c1: seen", "c2: hi", "assistant: done"]);
    assert_eq!(work.calls().len(), 1);
}

#[tokio::test]
async fn a_hook_that_ends_the_turn_leaves_nothing_to_wait_for() {
    let machine = Machine::new();
    let look = OwnTool::new("look", true, Box::new(|_, _| std::future::ready(ToolOutput::ok("seen")).boxed()));
    let work = OwnTool::new("work", true, Box::new(|_, _| std::future::ready(ToolOutput::ok("hi")).boxed()));
    let model = Mind::quick(|_, _| LlmReply::calls(vec![call(1, "look", &json!({})), call(2, "work", &json!({}))]));
    let mut parts = TestAgentsParts::of(model, &["main"]).own(look).own(work.clone());
    parts.approvals = Some(Approvals::new(machine.store.clone(), ApprovalMode::Run));
    let test_agents = parts.test_agents();
    let rule = Rule { after_tool: Some(Box::new(|_| Verdict::abort_turn("enough"))), ..asking() };
    test_agents.mount(vec![test_agents.engine.native("h", 0, Arc::new(rule))]);
    let mut conversation = machine.open();
    let report = test_agents.turn(&mut conversation, "go").await;
    assert!(matches!(report.ending, TurnEnding::StoppedByHook(_)), "{report:?}");
    assert_eq!(
        (machine.states(), work.calls().len(), test_agents.seen.count("turn_end")),
        (vec![ApprovalState::Void], 0, 1)
    );
}
