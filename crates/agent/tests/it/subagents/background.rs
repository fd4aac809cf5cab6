//! Sub-agents in the background: their results come later, to the turn or to the session.

use super::*;

/// A model by which `main` starts `helper` in the background and then, while its second call is under way, waits for
/// the end of that; then it works or answers.
fn waits_for_it(seen: Arc<OnceLock<Arc<Seen>>>, works: bool) -> Arc<Recorder> {
    let may = Arc::new(Notify::new());
    Mind::slow(move |model, request| {
        let (seen, may) = (seen.clone(), may.clone());
        match (model, request.messages.len()) {
            ("main", 1) => std::future::ready(hands("spawn", "helper", "find it")).boxed(),
            ("main", 3) => async move {
                may.notify_one();
                until_ended(seen.get().unwrap(), 1).await;
                if works { LlmReply::calls(vec![call(2, "work", &json!({}))]) } else { LlmReply::text("done") }
            }
            .boxed(),
            ("main", _) => std::future::ready(LlmReply::text("done")).boxed(),
            _ => async move {
                may.notified().await;
                LlmReply::text("found it")
            }
            .boxed(),
        }
    })
}

fn waiting_agents(works: bool) -> TestAgents {
    let seen = Arc::new(OnceLock::new());
    let model = waits_for_it(seen.clone(), works);
    let test_agents = TestAgentsParts::of(model, &["main", "helper"])
        .own(OwnTool::giving("work", ToolOutput::ok("hi")))
        .test_agents();
    seen.set(test_agents.seen.clone()).ok().unwrap();
    test_agents
}

#[tokio::test]
async fn a_result_from_the_background_is_taken_in_at_the_next_poll() {
    let test_agents = waiting_agents(true);
    let mut conversation = Conversation::new("s");
    let report = test_agents.turn(&mut conversation, "go").await;
    assert_eq!((report.ending, report.reply.as_str()), (TurnEnding::Completed, "done"));
    let notices = test_agents.seen.notices.lock().unwrap().clone();
    let child = notices.iter().find(|notice| notice.who.depth == 1).unwrap().who.turn_id.clone();
    let result = format!("[Result of the agent \"helper\", started as {child}]\nfound it");
    assert_eq!(
        said(&conversation)[2..],
        [
            format!("c1: The agent \"helper\" works on it as {child}. What it says comes as a message."),
            "assistant: [c2=work({})]".into(),
            "c2: hi".into(),
            format!("user: {result}"),
            "assistant: done".into(),
        ]
    );
    let delivered = json!({"TargetChannel": "cli", "TargetChatID": "direct", "ContentLen": result.len()});
    assert_eq!(test_agents.seen.payloads("subturn_result_delivered"), [delivered]);
    let ended = test_agents.seen.payloads("tool_exec_end");
    assert_eq!((&ended[0]["Tool"], &ended[0]["Async"]), (&json!("spawn"), &json!(true)));
    let none = ["subturn_orphan", "follow_up_queued", "steering_injected", "tool_exec_skipped"];
    assert_eq!(none.map(|name| test_agents.seen.count(name)), [0; 4]);
}

#[tokio::test]
async fn a_result_during_the_last_call_waits_for_the_next_turn() {
    let test_agents = waiting_agents(false);
    let mut conversation = Conversation::new("s");
    let report = test_agents.turn(&mut conversation, "go").await;
    test_agents.settled().await;
    let text = queued(&mut conversation).remove(0);
    assert!(text.ends_with("\nfound it"), "{text}");
    let child = test_agents.seen.payloads("subturn_spawn")[0]["Label"].clone();
    let orphan = json!({"ParentTurnID": report.turn_id, "ChildTurnID": child, "Reason": "parent_finished"});
    assert_eq!(test_agents.seen.payloads("subturn_orphan"), [orphan]);
    let follow_up = json!({"SourceTool": "spawn", "Channel": "cli", "ChatID": "direct", "ContentLen": text.len()});
    assert_eq!(test_agents.seen.payloads("follow_up_queued"), [follow_up]);
    assert_eq!(test_agents.seen.names().last(), Some(&"stop"));
    test_agents.go_on(&mut conversation).await.unwrap();
    assert_eq!(said(&conversation).iter().filter(|line| line.contains("found it")).count(), 1);
    assert!(queued(&mut conversation).is_empty());
}

/// A model by which `main` starts `helper` and answers at once; `helper` answers when it may.
fn slow_helper(may: Arc<Notify>) -> Arc<Recorder> {
    Mind::slow(move |model, request| {
        let may = may.clone();
        match (model, request.messages.len()) {
            ("main", 1) => std::future::ready(hands("spawn", "helper", "find it")).boxed(),
            ("main", _) => std::future::ready(LlmReply::text(format!("done after: {}", last(request)))).boxed(),
            _ => async move {
                may.notified().await;
                LlmReply::text("found it")
            }
            .boxed(),
        }
    })
}

#[tokio::test]
async fn a_result_after_the_end_waits_in_the_session() {
    let may = Arc::new(Notify::new());
    let test_agents = TestAgentsParts::of(slow_helper(may.clone()), &["main", "helper"]).test_agents();
    let mut conversation = Conversation::new("s");
    let report = test_agents.turn(&mut conversation, "go").await;
    assert_eq!(report.ending, TurnEnding::Completed);
    assert!(queued(&mut conversation).is_empty());
    may.notify_one();
    test_agents.settled().await;
    let child = test_agents.seen.payloads("subturn_spawn")[0]["Label"].clone();
    let orphan = |reason| json!({"ParentTurnID": report.turn_id, "ChildTurnID": child, "Reason": reason});
    assert_eq!(test_agents.seen.payloads("subturn_orphan"), ["parent_finished_waiting", "parent_finished"].map(orphan));
    let text = queued(&mut conversation).remove(0);
    let follow_up = json!({"SourceTool": "spawn", "Channel": "cli", "ChatID": "direct", "ContentLen": text.len()});
    assert_eq!(test_agents.seen.payloads("follow_up_queued"), [follow_up]);
    let second = test_agents.go_on(&mut conversation).await.unwrap();
    assert_eq!(second.reply, format!("done after: {text}"));
    assert_eq!(test_agents.go_on(&mut conversation).await, None, "it is taken in once");
}

#[tokio::test]
async fn a_result_after_the_end_is_there_when_the_session_is_opened_again() {
    let (may, store) = (Arc::new(Notify::new()), Arc::new(pintle_store::Memory::new()));
    let test_agents = TestAgentsParts::of(slow_helper(may.clone()), &["main", "helper"]).test_agents();
    let mut conversation = Conversation::open(store.clone(), "s").unwrap();
    test_agents.turn(&mut conversation, "go").await;
    // The conversation is closed before the result comes.
    drop(conversation);
    may.notify_one();
    test_agents.settled().await;
    let mut conversation = Conversation::open(store.clone(), "s").unwrap();
    assert_eq!(queued(&mut conversation).len(), 1);
    let second = test_agents.go_on(&mut conversation).await.unwrap();
    assert!(second.reply.ends_with("found it"), "{}", second.reply);
    drop(conversation);
    let mut conversation = Conversation::open(store, "s").unwrap();
    assert!(queued(&mut conversation).is_empty());
    assert_eq!(said(&conversation).iter().filter(|line| line.starts_with("user: [Result")).count(), 1);
}

/// A model by which `main` starts `helper`, which ends only while the second turn of `main` asks its model; that turn is
/// told something as well.
fn ends_in_the_second_turn(seen: Arc<OnceLock<Arc<Seen>>>, turn_handle: &TurnHandle) -> Arc<Recorder> {
    let (may, turn_handle) = (Arc::new(Notify::new()), turn_handle.clone());
    Mind::slow(move |model, request| {
        let (seen, may, turn_handle) = (seen.clone(), may.clone(), turn_handle.clone());
        match (model, last(request).as_str()) {
            ("main", "go") => std::future::ready(hands("spawn", "helper", "find it")).boxed(),
            ("main", "again") => async move {
                turn_handle.steer("and this").unwrap();
                may.notify_one();
                until_ended(seen.get().unwrap(), 1).await;
                // What was to be handed over is handed over.
                tokio::task::yield_now().await;
                LlmReply::calls(vec![call(2, "work", &json!({}))])
            }
            .boxed(),
            ("main", _) => std::future::ready(LlmReply::text("done")).boxed(),
            _ => async move {
                may.notified().await;
                LlmReply::text("found it")
            }
            .boxed(),
        }
    })
}

#[tokio::test]
async fn a_result_that_comes_during_a_later_turn_is_kept_in_its_place() {
    let (seen, turn_handle, store) =
        (Arc::new(OnceLock::new()), TurnHandle::default(), Arc::new(pintle_store::Memory::new()));
    let model = ends_in_the_second_turn(seen.clone(), &turn_handle);
    let test_agents = TestAgentsParts::of(model, &["main", "helper"])
        .own(OwnTool::giving("work", ToolOutput::ok("hi")))
        .test_agents();
    seen.set(test_agents.seen.clone()).ok().unwrap();
    let mut conversation = Conversation::open(store.clone(), "s").unwrap();
    test_agents.turn(&mut conversation, "go").await;
    test_agents.turn_by(&mut conversation, "again", &turn_handle).await;
    test_agents.settled().await;
    let before = said(&conversation);
    for text in ["and this", "found it"] {
        let users = before.iter().filter(|line| line.starts_with("user") && line.ends_with(text));
        assert_eq!(users.count(), 1, "{text}: {before:?}");
    }
    assert!(queued(&mut conversation).is_empty());
    drop(conversation);
    let mut conversation = Conversation::open(store, "s").unwrap();
    assert_eq!(said(&conversation), before, "the journal tells the same story");
    assert!(queued(&mut conversation).is_empty());
}

#[tokio::test]
async fn only_so_many_work_at_once() {
    let may = Arc::new(tokio::sync::Semaphore::new(0));
    let gate = may.clone();
    let model = Mind::slow(move |model, request| {
        let gate = gate.clone();
        match (model, request.messages.len()) {
            ("main", 1) => {
                let spawn = |n| call(n, "spawn", &json!({"agent": "helper", "task": "go"}));
                std::future::ready(LlmReply::calls((1..=MAX_CHILDREN + 1).map(spawn).collect())).boxed()
            }
            ("main", _) => std::future::ready(LlmReply::text("done")).boxed(),
            _ => async move {
                gate.acquire().await.unwrap().forget();
                LlmReply::text("found it")
            }
            .boxed(),
        }
    });
    let test_agents = TestAgentsParts::of(model, &["main", "helper"]).test_agents();
    let mut conversation = Conversation::new("s");
    test_agents.turn(&mut conversation, "go").await;
    let last = said(&conversation).into_iter().find(|line| line.starts_with("c9: ")).unwrap();
    assert_eq!(last, "c9: 8 sub-agents work already; wait until one of them is done");
    may.add_permits(MAX_CHILDREN);
    test_agents.settled().await;
    assert_eq!(
        (test_agents.seen.count("subturn_spawn"), test_agents.seen.count("subagent_stop")),
        (MAX_CHILDREN, MAX_CHILDREN)
    );
    assert_eq!(queued(&mut conversation).len(), MAX_CHILDREN);
}

#[tokio::test]
async fn a_turn_that_is_dropped_takes_its_sub_agents_with_it() {
    for tool in ["delegate", "spawn"] {
        let ready = Arc::new(Notify::new());
        let asked = ready.clone();
        let model = Mind::slow(move |model, request| match (model, request.messages.len()) {
            ("main", 1) => std::future::ready(hands(tool, "helper", "find it")).boxed(),
            ("main", _) => std::future::pending().boxed(),
            _ => {
                asked.notify_one();
                std::future::pending().boxed()
            }
        });
        let test_agents = TestAgentsParts::of(model, &["main", "helper"]).test_agents();
        let mut conversation = Conversation::new("s");
        {
            let turn = std::pin::pin!(test_agents.turn(&mut conversation, "go"));
            let stopped = std::pin::pin!(ready.notified());
            assert!(matches!(select(turn, stopped).await, Either::Right(_)), "{tool}");
        }
        // This would wait for ever for one that works on.
        test_agents.settled().await;
        let names = ["turn_start", "turn_end", "subturn_spawn", "subturn_end", "subagent_stop"];
        assert_eq!(names.map(|name| test_agents.seen.count(name)), [2, 2, 1, 1, 1], "{tool}");
        assert!(valid(conversation.messages()) && queued(&mut conversation).is_empty(), "{tool}");
    }
}

/// Nobody goes on with the session of a sub-agent, so what comes too late for its turn goes up.
#[tokio::test]
async fn a_result_that_is_too_late_for_a_sub_agent_reaches_the_agent_above_it() {
    for before_the_end_of_main in [true, false] {
        let (may, seen) = (Arc::new(Notify::new()), Arc::new(OnceLock::<Arc<Seen>>::new()));
        let (asked, told) = (may.clone(), seen.clone());
        let model = Mind::slow(move |model, request| {
            let (may, seen) = (asked.clone(), told.clone());
            match (model, last(request).as_str()) {
                ("main", "go") => std::future::ready(hands("delegate", "helper", "find it")).boxed(),
                ("main", "found nothing yet") if before_the_end_of_main => async move {
                    may.notify_one();
                    until_ended(seen.get().unwrap(), 2).await;
                    // What was to be handed over is handed over.
                    tokio::task::yield_now().await;
                    LlmReply::calls(vec![call(2, "work", &json!({}))])
                }
                .boxed(),
                ("helper", "find it") => std::future::ready(hands("spawn", "digger", "dig")).boxed(),
                ("helper", _) => std::future::ready(LlmReply::text("found nothing yet")).boxed(),
                ("digger", _) => async move {
                    may.notified().await;
                    LlmReply::text("found it")
                }
                .boxed(),
                _ => std::future::ready(LlmReply::text("done")).boxed(),
            }
        });
        let agents = ["main", "helper", "digger"];
        let test_agents =
            TestAgentsParts::of(model, &agents).own(OwnTool::giving("work", ToolOutput::ok("hi"))).test_agents();
        seen.set(test_agents.seen.clone()).ok().unwrap();
        let mut conversation = Conversation::new("s");
        assert_eq!(test_agents.turn(&mut conversation, "go").await.ending, TurnEnding::Completed);
        may.notify_one();
        test_agents.settled().await;
        assert_eq!(queued(&mut conversation).len(), usize::from(!before_the_end_of_main));
        test_agents.go_on(&mut conversation).await;
        let brought =
            |line: &&String| line.starts_with("user: [Result of the agent \"digger\"") && line.ends_with("found it");
        assert_eq!(said(&conversation).iter().filter(brought).count(), 1, "{:?}", said(&conversation));
        let reasons: Vec<Value> =
            test_agents.seen.payloads("subturn_orphan").iter().map(|it| it["Reason"].clone()).collect();
        assert_eq!(reasons, ["parent_finished_waiting", "parent_finished"], "the turn of the helper is told of");
        assert_eq!(test_agents.seen.count("follow_up_queued"), usize::from(!before_the_end_of_main));
    }
}
