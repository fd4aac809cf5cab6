//! Persons who are there: asked at once, answered for from elsewhere, not waited for when the turn ends.

use super::*;
use pintle_domain::store::TenantScope;

#[tokio::test]
async fn whoever_is_there_is_asked_at_once() {
    for (answer, state) in
        [(Some(true), ApprovalState::Used), (Some(false), ApprovalState::Refused), (None, ApprovalState::Waiting)]
    {
        let (machine, anna) = (Machine::new(), Says::new(answer));
        let test_agents = machine.process(ApprovalMode::Chat, Some(anna.clone()), asking());
        let mut conversation = machine.open();
        let report = test_agents.turn(&mut conversation, "go").await;
        assert_eq!((anna.times(), machine.work.calls().len()), (1, usize::from(answer == Some(true))), "{answer:?}");
        match answer {
            Some(_) => assert_eq!(report.ending, TurnEnding::Completed),
            None => assert_eq!(waiting(report).id, machine.questions()[0].id, "it is for others, later"),
        }
        assert_eq!(machine.states(), [state], "{answer:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_from_elsewhere_ends_the_asking_here() {
    let (machine, anna) = (Machine::new(), Says::silent());
    let test_agents = machine.process(ApprovalMode::Chat, Some(anna.clone()), asking());
    let mut conversation = machine.open();
    let elsewhere = async {
        while machine.questions().is_empty() || anna.times() == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        machine.answer(&machine.questions()[0].id, says(true, "")).unwrap();
    };
    let (report, ()) = join(test_agents.turn(&mut conversation, "go"), elsewhere).await;
    assert_eq!(
        (report.ending, machine.work.calls().len(), machine.states()),
        (TurnEnding::Completed, 1, vec![ApprovalState::Used])
    );
}

#[tokio::test]
async fn an_answer_that_comes_while_a_turn_resumes_is_used_for_its_call() {
    let machine = Machine::new();
    let question = machine.parked().await;
    // What was asked has been looked up when hooks are asked; only then does somebody say yes.
    let (store, clock, id) = (machine.store.clone(), machine.clock.clone(), question.id);
    let gate = move |at: &PreToolUse| {
        if at.call.tool == "work" {
            store.answer(&TenantScope::All, &id, says(true, ""), clock.now()).unwrap();
            return Verdict::Ask("is it safe?".into());
        }
        Verdict::Continue
    };
    let (report, lines) = machine.resumed(Rule { gate: Some(Box::new(gate)), ..Rule::default() }).await;
    assert_eq!((report.ending, lines[2].as_str()), (TurnEnding::Completed, "c1: worked"));
    assert_eq!((machine.work.calls().len(), machine.states()), (1, vec![ApprovalState::Used]));
}

#[tokio::test]
async fn a_cancelled_turn_waits_for_nobody() {
    let (machine, anna) = (Machine::new(), Says::silent());
    let test_agents = machine.process(ApprovalMode::Chat, Some(anna.clone()), asking());
    let mut conversation = machine.open();
    let turn_handle = TurnHandle::default();
    let stop = async {
        while anna.times() == 0 {
            tokio::task::yield_now().await;
        }
        turn_handle.cancel();
    };
    let (report, ()) = join(test_agents.turn_by(&mut conversation, "go", &turn_handle), stop).await;
    assert_eq!(
        (report.ending, machine.work.calls().len(), machine.states()),
        (TurnEnding::Cancelled, 0, vec![ApprovalState::Void])
    );
    assert_eq!(test_agents.seen.count("turn_end"), 1);
}

#[tokio::test]
async fn a_message_that_comes_while_somebody_is_asked_is_more_urgent() {
    // The person says nothing yet, and something else: the call is passed over instead of parked.
    let machine = Machine::new();
    let turn_handle = TurnHandle::default();
    struct Interrupts(TurnHandle);
    #[async_trait]
    impl Asker for Interrupts {
        async fn ask(&self, _approval: &Approval) -> Option<PersonAnswer> {
            self.0.steer("never mind").unwrap();
            None
        }
    }
    let mut parts = TestAgentsParts::of(
        Mind::quick(|_, request| match last(request).as_str() {
            "go" => LlmReply::calls(vec![call(1, "work", &json!({}))]),
            _ => LlmReply::text("done"),
        }),
        &["main"],
    )
    .own(machine.work.clone());
    let approvals =
        Approvals::new(machine.store.clone(), ApprovalMode::Chat).with_asker(Arc::new(Interrupts(turn_handle.clone())));
    parts.approvals = Some(approvals);
    let test_agents = parts.test_agents();
    test_agents.mount(vec![test_agents.engine.native("h", 0, Arc::new(asking()))]);
    let mut conversation = machine.open();
    let report = test_agents.turn_by(&mut conversation, "go", &turn_handle).await;
    assert_eq!(report.ending, TurnEnding::Completed);
    let expected = ["c1: Skipped due to queued user message.", "user: never mind", "assistant: done"];
    assert_eq!(said(&conversation)[2..], expected);
    assert_eq!((machine.states(), machine.work.calls().len()), (vec![ApprovalState::Void], 0));
}

/// One call of somebody who is no model.
async fn single(test_agents: &TestAgents, conversation: &mut Conversation, tool: &str) -> ToolOutput {
    let part = call(1, tool, &json!({}));
    test_agents.main().call(conversation, part, test_agents.seen.clone(), &TurnHandle::default()).await
}

#[tokio::test]
async fn a_single_call_passes_everything_and_is_no_part_of_the_conversation() {
    let machine = Machine::new();
    let approvals = Rule { approve: Some(Box::new(|_| Verdict::Continue)), ..gate(HooksDecision::Allow) };
    let test_agents = machine.process(ApprovalMode::Mcp, None, approvals);
    let mut conversation = machine.open();
    test_agents.turn(&mut conversation, "go").await;
    let (before, ran) = (said(&conversation), machine.work.calls().len());
    let output = single(&test_agents, &mut conversation, "work").await;
    assert_eq!((output.for_llm.as_str(), output.is_error, machine.work.calls().len()), ("worked", false, ran + 1));
    assert_eq!(said(&conversation), before);
    let models = test_agents.model.count();
    test_agents.mount(vec![test_agents.engine.native("h", 0, Arc::new(gate(HooksDecision::Deny)))]);
    let refused = single(&test_agents, &mut conversation, "work").await;
    assert_eq!((refused.for_llm.as_str(), refused.is_error), ("Hook blocked: pre_tool_use: h: no", true));
    let unknown = single(&test_agents, &mut conversation, "wrok").await;
    assert_eq!((unknown.is_error, test_agents.model.count()), (true, models));
    assert_eq!((test_agents.seen.count("turn_start"), test_agents.seen.count("turn_end")), (4, 4));
    drop(conversation);
    assert_eq!(said(&machine.open()), before, "nor of its journal");
}

#[tokio::test(start_paused = true)]
async fn a_single_call_waits_for_a_person_or_is_refused() {
    let machine = Machine::new();
    let test_agents = machine.process(ApprovalMode::Mcp, None, asking());
    let mut conversation = machine.open();
    let answers = async {
        while machine.questions().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        machine.answer(&machine.questions()[0].id, says(true, "")).unwrap();
    };
    let (output, ()) = join(single(&test_agents, &mut conversation, "work"), answers).await;
    assert_eq!((output.for_llm.as_str(), machine.work.calls().len()), ("worked", 1));
    // Nobody can go on with a single call, so one that would be parked is refused.
    let test_agents = machine.process(ApprovalMode::Run, None, asking());
    let output = single(&test_agents, &mut conversation, "work").await;
    assert_eq!((output.for_llm.as_str(), output.is_error), ("a person has to approve it first: is it safe?", true));
    assert_eq!((machine.work.calls().len(), conversation.open_turn().is_none()), (1, true));
    assert_eq!((test_agents.seen.count("turn_end"), test_agents.seen.count("tool_exec_skipped")), (1, 1));
}
