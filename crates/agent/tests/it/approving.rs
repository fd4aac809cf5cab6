//! Calls that a person must clear: parked, answered once, used once, across processes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::join;
use pintle_agent::driver::TurnEnding;
use pintle_agent::{Conversation, TurnHandle, TurnReport};
use pintle_domain::approval::{
    Approval, ApprovalMode, ApprovalStanding, ApprovalState, CallHandling, HooksDecision, MODES, PersonAnswer, handling,
};
use pintle_domain::checkpoint::{BeforeTool, CallPatch, LlmPatch, PreToolUse, Substitute};
use pintle_domain::id::{CallId, TenantId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::{Object, Rendered, Value, json};
use pintle_domain::llm::{LlmReply, LlmRequest, ToolDef};
use pintle_domain::session::ReleaseReason;
use pintle_domain::store::{ApprovalQuery, ApprovalStore, StoreError, TenantScope};
use pintle_domain::tool::{ToolCall, ToolOutput};
use pintle_domain::verdict::Verdict;
use pintle_engine::{Approvals, Asker, Clearance, Clock, Engine, Mount, NullStore, async_trait};
use pintle_store::Memory;
use tokio::sync::Notify;

use crate::hooks::{OwnTool, Rule};
use crate::sessions::Mortal;
use crate::test_agents::{Mind, TestAgents, TestAgentsParts, after_tools, call, hands, last, said};

mod again;
mod asked;
mod others;
mod table;

/// A clock that stands until somebody sets it.
struct Hands(Mutex<jiff::Timestamp>);

impl Hands {
    fn at(text: &str) -> Arc<Self> {
        Arc::new(Self(Mutex::new(text.parse().unwrap())))
    }

    fn pass(&self, hours: i64) {
        let mut now = self.0.lock().unwrap();
        *now = now.checked_add(jiff::SignedDuration::from_hours(hours)).unwrap();
    }
}

impl Clock for Hands {
    fn now(&self) -> jiff::Timestamp {
        *self.0.lock().unwrap()
    }
}

/// Somebody who always says the same, or never says anything.
struct Says {
    answer: Option<PersonAnswer>,
    speaks: bool,
    asked: Mutex<Vec<Approval>>,
}

impl Says {
    fn new(answer: Option<bool>) -> Arc<Self> {
        let said = |approve| PersonAnswer { approve, by: "anna".into(), note: String::new() };
        Arc::new(Self { answer: answer.map(said), speaks: true, asked: Mutex::default() })
    }

    fn silent() -> Arc<Self> {
        Arc::new(Self { answer: None, speaks: false, asked: Mutex::default() })
    }

    fn times(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

#[async_trait]
impl Asker for Says {
    async fn ask(&self, approval: &Approval) -> Option<PersonAnswer> {
        self.asked.lock().unwrap().push(approval.clone());
        if !self.speaks {
            std::future::pending::<()>().await;
        }
        self.answer.clone()
    }
}

fn says(approve: bool, note: &str) -> PersonAnswer {
    PersonAnswer { approve, by: "bob".into(), note: note.into() }
}

/// A gate that wants a person to say whether `work` may run.
fn asking() -> Rule {
    let gate = |at: &PreToolUse| match at.call.tool.as_str() {
        "work" | "brought" => Verdict::Ask("is it safe?".into()),
        _ => Verdict::Continue,
    };
    Rule { gate: Some(Box::new(gate)), ..Rule::default() }
}

fn works_once(request: &LlmRequest) -> LlmReply {
    match after_tools(request) {
        false => LlmReply::calls(vec![call(1, "work", &json!({"n": 1})), call(2, "other", &json!({}))]),
        true => LlmReply::text("done"),
    }
}

/// A machine with a store, a tool that counts and a clock; processes come and go on it.
struct Machine {
    store: Arc<Memory>,
    work: Arc<OwnTool>,
    clock: Arc<Hands>,
}

impl Machine {
    fn new() -> Self {
        Self {
            store: Arc::new(Memory::new()),
            work: OwnTool::giving("work", ToolOutput::ok("worked")),
            clock: Hands::at("2026-11-22T09:00:00Z"),
        }
    }

    /// A process whose hooks are those that `rule` makes.
    fn process(&self, mode: ApprovalMode, asker: Option<Arc<Says>>, rule: Rule) -> TestAgents {
        let mut approvals = Approvals::new(self.store.clone(), mode).with_clock(self.clock.clone());
        if let Some(asker) = asker {
            approvals = approvals.with_asker(asker);
        }
        self.process_with(approvals, rule)
    }

    fn process_with(&self, approvals: Approvals, rule: Rule) -> TestAgents {
        let mut parts = TestAgentsParts::of(Mind::quick(|_, request| works_once(request)), &["main"])
            .own(self.work.clone())
            .own(OwnTool::giving("other", ToolOutput::ok("fine")));
        parts.approvals = Some(approvals);
        let test_agents = parts.test_agents();
        test_agents.mount(vec![test_agents.engine.native("h", 0, Arc::new(rule))]);
        test_agents
    }

    fn open(&self) -> Conversation {
        Conversation::open(self.store.clone(), "s").unwrap()
    }

    fn questions(&self) -> Vec<Approval> {
        self.store.approvals(&ApprovalQuery::newest(TenantScope::All, 100)).unwrap()
    }

    fn states(&self) -> Vec<ApprovalState> {
        self.questions().iter().map(|question| question.state).collect()
    }

    fn answer(&self, id: &str, said: PersonAnswer) -> Result<Approval, StoreError> {
        self.store.answer(&TenantScope::All, id, said, self.clock.now())
    }

    /// Parks a call in a process that ends then; the question.
    async fn parked(&self) -> Approval {
        let mut conversation = self.open();
        waiting(self.process(ApprovalMode::Run, None, asking()).turn(&mut conversation, "go").await)
    }

    /// Goes on with the parked turn in a new process.
    async fn resumed(&self, rule: Rule) -> (TurnReport, Vec<String>) {
        let mut conversation = self.open();
        let test_agents = self.process(ApprovalMode::Run, None, rule);
        let report = test_agents
            .main()
            .resume(&mut conversation, test_agents.seen.clone(), &TurnHandle::default())
            .await
            .unwrap();
        let ends = test_agents.seen.count("turn_end");
        assert_eq!(ends, usize::from(!matches!(report.ending, TurnEnding::Waiting(_))), "{report:?}");
        (report, said(&conversation))
    }
}

fn waiting(report: TurnReport) -> Approval {
    let TurnEnding::Waiting(approval) = report.ending else { panic!("it does not wait: {report:?}") };
    *approval
}

#[tokio::test]
async fn a_call_waits_for_a_person_and_then_runs_once() {
    let machine = Machine::new();
    let test_agents = machine.process(ApprovalMode::Run, None, asking());
    let mut conversation = machine.open();
    let report = test_agents.turn(&mut conversation, "go").await;
    let turn_id = report.turn_id.clone();
    let question = waiting(report);
    assert_eq!(machine.questions(), std::slice::from_ref(&question));
    assert_eq!((question.tool.as_str(), &question.arguments), ("work", json!({"n": 1}).as_object().unwrap()));
    assert_eq!((question.by.as_str(), question.reason.as_str()), ("h", "is it safe?"));
    assert_eq!((&question.turn_id, question.tool_call_id.as_str()), (&turn_id, "c1"));
    assert_eq!((question.state, question.changed_from), (ApprovalState::Waiting, None));
    assert_eq!(
        (machine.work.calls().len(), test_agents.seen.count("turn_end"), test_agents.seen.count("error")),
        (0, 0, 0)
    );
    assert!(conversation.open_turn().is_some_and(|open| open.turn_id == turn_id));
    // The process ends, and says why.
    drop(conversation);
    let mut conversation = machine.open();
    assert_eq!(conversation.last_cause(), Some(ReleaseReason::Waiting));
    // Nobody has said: it goes on waiting, for the same question.
    let again =
        test_agents.main().resume(&mut conversation, test_agents.seen.clone(), &TurnHandle::default()).await.unwrap();
    assert_eq!(waiting(again).id, question.id);
    machine.answer(&question.id, says(true, "")).unwrap();
    let done =
        test_agents.main().resume(&mut conversation, test_agents.seen.clone(), &TurnHandle::default()).await.unwrap();
    assert_eq!((done.ending, &done.turn_id, done.reply.as_str()), (TurnEnding::Completed, &turn_id, "done"));
    assert_eq!(
        (machine.work.calls(), machine.states()),
        (vec![r#"work({"n":1})"#.to_owned()], vec![ApprovalState::Used])
    );
    let calls = r#"assistant: [c1=work({"n":1}) c2=other({})]"#;
    assert_eq!(said(&conversation), ["user: go", calls, "c1: worked", "c2: fine", "assistant: done"]);
    assert_eq!((test_agents.seen.count("turn_start"), test_agents.seen.count("turn_end")), (1, 1));
    assert_eq!(
        test_agents.main().resume(&mut conversation, test_agents.seen.clone(), &TurnHandle::default()).await,
        None
    );
}

#[tokio::test]
async fn a_refusal_reaches_the_model_with_its_note() {
    for (note, text) in [
        ("use the other one", "Tool execution refused by a person: use the other one (asked by hook \"h\")"),
        ("", "Tool execution refused by a person (asked by hook \"h\")"),
        // Who says it decides, not how it begins.
        (
            "nobody answered within a day",
            "Tool execution refused by a person: nobody answered within a day (asked by hook \"h\")",
        ),
    ] {
        let machine = Machine::new();
        let question = machine.parked().await;
        machine.answer(&question.id, says(false, note)).unwrap();
        let (report, lines) = machine.resumed(asking()).await;
        assert_eq!((report.ending, lines[2].clone()), (TurnEnding::Completed, format!("c1: {text}")));
        assert_eq!(report.denials, [format!("work: {text}")]);
        assert_eq!((machine.work.calls().len(), lines[3].as_str()), (0, "c2: fine"));
    }
}

#[tokio::test]
async fn the_first_answer_stands() {
    let machine = Machine::new();
    let question = machine.parked().await;
    machine.answer(&question.id, says(false, "no")).unwrap();
    let second = machine.answer(&question.id, says(true, "yes, do")).unwrap_err();
    assert!(second.to_string().contains("refused already"), "{second}");
    machine.resumed(asking()).await;
    assert_eq!(machine.work.calls().len(), 0);
    // Nor does it after it was used.
    let machine = Machine::new();
    let question = machine.parked().await;
    machine.answer(&question.id, says(true, "")).unwrap();
    machine.resumed(asking()).await;
    let late = machine.answer(&question.id, says(false, "")).unwrap_err();
    assert!(late.to_string().contains("approved and used already"), "{late}");
    assert_eq!((machine.work.calls().len(), machine.states()), (1, vec![ApprovalState::Used]));
}

/// The same gate, behind a hook that puts `n` into every call.
fn rewriting(n: u64) -> Rule {
    let before = move |at: &BeforeTool| match at.call.tool.as_str() {
        "work" => {
            let arguments = json!({ "n": n }).as_object().cloned();
            Verdict::Modify(CallPatch { tool: None, arguments })
        }
        _ => Verdict::Continue,
    };
    Rule { before_tool: Some(Box::new(before)), ..asking() }
}

#[tokio::test]
async fn an_approval_is_for_exactly_one_call() {
    let machine = Machine::new();
    let question = machine.parked().await;
    machine.answer(&question.id, says(true, "")).unwrap();
    // After the restart a hook makes something else of it.
    let (report, _) = machine.resumed(rewriting(2)).await;
    let asked = waiting(report);
    let arguments = |n: u64| json!({ "n": n }).as_object().cloned();
    assert_ne!(asked.id, question.id);
    assert_eq!((Some(asked.arguments), asked.changed_from), (arguments(2), arguments(1)));
    assert_eq!((machine.states(), machine.work.calls().len()), (vec![ApprovalState::Void, ApprovalState::Waiting], 0));
    assert!(machine.answer(&question.id, says(true, "")).unwrap_err().to_string().contains("it is void"));
    machine.answer(&asked.id, says(true, "")).unwrap();
    let (report, _) = machine.resumed(rewriting(2)).await;
    assert_eq!((report.ending, machine.work.calls()), (TurnEnding::Completed, vec![r#"work({"n":2})"#.to_owned()]));
}

#[tokio::test]
async fn a_gate_that_says_no_after_the_restart_wins() {
    let machine = Machine::new();
    let question = machine.parked().await;
    machine.answer(&question.id, says(true, "")).unwrap();
    let no = Rule { gate: Some(Box::new(|_| Verdict::deny("not any more"))), ..Rule::default() };
    let (report, lines) = machine.resumed(no).await;
    assert_eq!(report.ending, TurnEnding::Completed);
    assert_eq!((lines[2].as_str(), machine.work.calls().len()), ("c1: Hook blocked: pre_tool_use: h: not any more", 0));
    assert_eq!(machine.states(), [ApprovalState::Void], "its turn is over");
}

#[tokio::test]
async fn what_a_person_refused_does_not_run_when_nobody_asks_any_more() {
    let machine = Machine::new();
    let question = machine.parked().await;
    machine.answer(&question.id, says(false, "never")).unwrap();
    let (report, lines) = machine.resumed(Rule::default()).await;
    let text = "work: Tool execution refused by a person: never (asked by hook \"h\")";
    assert_eq!((report.ending, report.denials), (TurnEnding::Completed, vec![text.to_owned()]));
    assert_eq!((lines[2].as_str(), machine.work.calls().len()), (&*text.replace("work", "c1"), 0));
    assert_eq!(lines[3], "c2: fine", "the rest of the batch goes on");
    assert_eq!(machine.states(), [ApprovalState::Refused]);
}

/// A store whose questions cannot be read.
struct Unreadable;

impl ApprovalStore for Unreadable {
    fn ask(&self, _: Approval, _: jiff::Timestamp) -> Result<ApprovalStanding, StoreError> {
        Err(StoreError::Unavailable("the disk is gone".into()))
    }

    fn answer(&self, _: &TenantScope, _: &str, _: PersonAnswer, _: jiff::Timestamp) -> Result<Approval, StoreError> {
        Err(StoreError::Unavailable("the disk is gone".into()))
    }

    fn use_up(&self, _: &TenantId, _: &str, _: jiff::Timestamp) -> Result<(), StoreError> {
        Err(StoreError::Unavailable("the disk is gone".into()))
    }

    fn approval(&self, _: &TenantScope, _: &str) -> Result<Option<Approval>, StoreError> {
        Err(StoreError::Unavailable("the disk is gone".into()))
    }

    fn approvals(&self, _: &ApprovalQuery) -> Result<Vec<Approval>, StoreError> {
        Err(StoreError::Unavailable("the disk is gone".into()))
    }
}

#[tokio::test]
async fn nothing_runs_while_nobody_can_tell_what_a_person_refused() {
    let machine = Machine::new();
    let question = machine.parked().await;
    machine.answer(&question.id, says(false, "never")).unwrap();
    let mut conversation = machine.open();
    let test_agents = machine.process_with(Approvals::new(Arc::new(Unreadable), ApprovalMode::Run), Rule::default());
    let report =
        test_agents.main().resume(&mut conversation, test_agents.seen.clone(), &TurnHandle::default()).await.unwrap();
    let text = "the store is unavailable: the disk is gone".to_owned();
    assert_eq!(report.ending, TurnEnding::Failed { stage: "session_restore".into(), text });
    assert_eq!((machine.work.calls().len(), test_agents.seen.count("turn_end")), (0, 0));
    assert!(conversation.open_turn().is_some(), "it can be tried again");
}

#[tokio::test]
async fn what_a_person_has_not_answered_waits_when_nobody_asks_any_more() {
    let machine = Machine::new();
    let question = machine.parked().await;
    let (report, _) = machine.resumed(Rule::default()).await;
    assert!(matches!(&report.ending, TurnEnding::Waiting(still) if still.id == question.id), "{:?}", report.ending);
    assert_eq!((machine.work.calls().len(), machine.states()), (0, vec![ApprovalState::Waiting]));
    machine.answer(&question.id, says(true, "")).unwrap();
    let (report, _) = machine.resumed(Rule::default()).await;
    assert_eq!((report.ending, machine.work.calls().len()), (TurnEnding::Completed, 1));
}

#[tokio::test]
async fn two_hours_and_a_restart_later_it_still_runs_once() {
    let machine = Machine::new();
    let question = machine.parked().await;
    machine.clock.pass(2);
    machine.answer(&question.id, says(true, "back from lunch")).unwrap();
    let (report, _) = machine.resumed(asking()).await;
    assert_eq!((report.ending, machine.work.calls().len()), (TurnEnding::Completed, 1));
    let mut conversation = machine.open();
    let test_agents = machine.process(ApprovalMode::Run, None, asking());
    assert_eq!(
        test_agents.main().resume(&mut conversation, test_agents.seen.clone(), &TurnHandle::default()).await,
        None
    );
    assert_eq!((machine.work.calls().len(), machine.states()), (1, vec![ApprovalState::Used]));
}

#[tokio::test]
async fn a_question_expires() {
    for answered in [false, true] {
        let machine = Machine::new();
        let question = machine.parked().await;
        if answered {
            machine.answer(&question.id, says(true, "")).unwrap();
        }
        machine.clock.pass(25);
        let late = machine.answer(&question.id, says(true, "")).unwrap_err().to_string();
        assert!(late.contains("it expired at 2026-11-23T09:00:00Z"), "{late}");
        let (report, lines) = machine.resumed(asking()).await;
        assert_eq!(report.ending, TurnEnding::Completed);
        assert_eq!(lines[2], "c1: Tool execution was not approved in time (asked by hook \"h\")");
        assert_eq!(machine.work.calls().len(), 0);
    }
}

#[tokio::test]
async fn a_turn_that_nobody_goes_on_with_takes_its_question_with_it() {
    let machine = Machine::new();
    let question = machine.parked().await;
    machine.answer(&question.id, says(true, "")).unwrap();
    let mut conversation = machine.open();
    let test_agents = machine.process(ApprovalMode::Run, None, Rule::default());
    assert_eq!(test_agents.turn(&mut conversation, "something else").await.ending, TurnEnding::Completed);
    assert_eq!(machine.states(), [ApprovalState::Void]);
    let statuses: Vec<Value> = test_agents.seen.payloads("turn_end").iter().map(|end| end["Status"].clone()).collect();
    assert_eq!(statuses, ["aborted", "completed"]);
    assert_eq!(said(&conversation)[2], "c1: Skipped because the turn was cancelled.");
}

#[tokio::test]
async fn a_resumed_turn_that_is_killed_anywhere_runs_its_call_at_most_once() {
    let (mut lives, mut asked_again) = (0, 0);
    loop {
        let machine = Machine::new();
        let question = machine.parked().await;
        machine.answer(&question.id, says(true, "")).unwrap();
        let over = {
            let store = Mortal::with_lives(machine.store.clone(), lives);
            let mut conversation = Conversation::open(store.clone(), "s").unwrap();
            let test_agents = machine.process(ApprovalMode::Run, None, asking());
            // What it does once it is dead is not written; and what is not written does not run.
            test_agents.main().resume(&mut conversation, test_agents.seen.clone(), &TurnHandle::default()).await;
            drop(conversation);
            !store.is_dead()
        };
        let mut conversation = machine.open();
        let test_agents = machine.process(ApprovalMode::Run, None, asking());
        let report =
            test_agents.main().resume(&mut conversation, test_agents.seen.clone(), &TurnHandle::default()).await;
        let runs = machine.work.calls().len();
        match report.map(|report| report.ending) {
            // The approval was used, and the process died before the call could run: it is asked about again.
            Some(TurnEnding::Waiting(_)) => {
                assert_eq!(
                    (runs, machine.states()),
                    (0, vec![ApprovalState::Used, ApprovalState::Waiting]),
                    "after {lives} writes"
                );
                asked_again += 1;
            }
            Some(TurnEnding::Completed) | None => assert!(runs <= 1, "after {lives} writes"),
            other => panic!("{other:?} after {lives} writes"),
        }
        if over {
            break;
        }
        lives += 1;
    }
    assert!(lives > 3 && asked_again > 0, "{lives} places, {asked_again} times asked again");
}

#[tokio::test]
async fn what_an_approver_refuses_is_no_question() {
    let machine = Machine::new();
    let rule = Rule { approve: Some(Box::new(|_| Verdict::deny("never"))), ..asking() };
    let test_agents = machine.process(ApprovalMode::Run, None, rule);
    let mut conversation = machine.open();
    let report = test_agents.turn(&mut conversation, "go").await;
    assert_eq!(report.ending, TurnEnding::Completed);
    assert_eq!(said(&conversation)[2], "c1: Tool execution denied by approval hook: never (hook \"h\")");
    assert_eq!((machine.questions().len(), machine.work.calls().len()), (0, 0));
}

/// What a gate says for each verdict of the table.
fn gate(came: HooksDecision) -> Rule {
    let gate = move |_: &PreToolUse| match came {
        HooksDecision::Allow => Verdict::Continue,
        HooksDecision::Deny => Verdict::deny("no"),
        HooksDecision::Ask => Verdict::Ask("is it safe?".into()),
    };
    Rule { gate: Some(Box::new(gate)), ..Rule::default() }
}
