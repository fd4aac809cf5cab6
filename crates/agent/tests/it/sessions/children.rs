//! Sub-agents whose process was killed.

use super::*;

/// A model by which `main` hands a task to `helper` with `tool`, which works and answers.
fn subagents(tool: &'static str) -> Arc<crate::host::Recorder> {
    Mind::slow(move |model, request| {
        let reply = match (model, last(request).as_str()) {
            ("main", "go") => hands(tool, "helper", "go"),
            ("helper", "go") => LlmReply::calls(vec![call(1, "work", &json!({}))]),
            _ => LlmReply::text("done"),
        };
        async move {
            tokio::task::yield_now().await;
            reply
        }
        .boxed()
    })
}

fn subagent_process(tool: &'static str, machine: &Machine) -> TestAgents {
    let test_agents = TestAgentsParts::of(subagents(tool), &["main", "helper"]).own(machine.work.clone()).test_agents();
    test_agents.mount(vec![test_agents.engine.native("slow", 0, Passing::slow())]);
    test_agents
}

/// A turn with a sub-agent whose process dies once it has written `lives` times: what it does then is as if it had not
/// been. Says whether it died at all.
async fn killed_with_child(tool: &'static str, lives: usize, next: Next) -> bool {
    let (inner, machine, at) =
        (Arc::new(Memory::new()), Machine::new(), format!("{tool}, {next:?} after {lives} writes"));
    let died = {
        let store = Mortal::with_lives(inner.clone(), lives);
        let test_agents = subagent_process(tool, &machine);
        let mut conversation = Conversation::open(store.clone(), "s").unwrap();
        test_agents.turn(&mut conversation, "go").await;
        test_agents.settled().await;
        drop(conversation);
        store.is_dead()
    };
    let children = |open_only: bool| -> Vec<SessionRow> {
        let rows = inner.sessions(&TenantId::default_tenant()).unwrap();
        rows.into_iter().filter(|row| row.parent.is_some() && (!open_only || row.open_turn.is_some())).collect()
    };
    let (left, before, runs) = (children(true), children(false).len(), machine.runs());
    let test_agents = subagent_process(tool, &machine);
    let mut conversation = Conversation::open(inner.clone(), "s").unwrap();
    if next == Next::Resumes {
        test_agents.main().resume(&mut conversation, test_agents.seen.clone(), &TurnHandle::default()).await;
        while test_agents.go_on(&mut conversation).await.is_some() {}
    }
    let report = test_agents.turn(&mut conversation, "again").await;
    assert_eq!(report.ending, TurnEnding::Completed, "{at}");
    test_agents.settled().await;
    while test_agents.go_on(&mut conversation).await.is_some() {}
    let lines = said(&conversation);
    assert!(valid(conversation.messages()), "{at}: {lines:?}");
    let cut = lines.iter().filter(|line| line.contains("ended with the process that it ran in")).count();
    match next {
        Next::Buries => {
            assert_eq!(machine.runs(), runs, "{at}: nobody goes on with a sub-agent whose process died");
            assert_eq!(cut, if tool == "spawn" { left.len() } else { 0 }, "{at}: {lines:?}");
        }
        Next::Resumes => {
            let ends = children(false).into_iter().filter(|row| left.iter().any(|it| it.session_id == row.session_id));
            let ends: Vec<_> = ends.map(|row| row.last_end).collect();
            assert!(ends.iter().all(|end| end.as_deref() == Some("done")), "{at}: {ends:?}");
            assert_eq!(cut, 0, "{at}: {lines:?}");
            // The call that waited for it has its answer.
            let heard = lines.iter().filter(|line| *line == "c1: done").count();
            assert!(tool == "spawn" || left.is_empty() || heard == 1, "{at}: {lines:?}");
        }
    }
    assert!(machine.runs().iter().all(|(_, count)| *count == 1), "{at}: {:?}", machine.runs());
    let mut begun_turns = begun(&inner.journal(&key("s")).unwrap());
    for row in children(false) {
        begun_turns.extend(begun(&inner.journal(&key(&row.session_id)).unwrap()));
    }
    begun_turns.sort();
    assert_eq!(ends(&*inner), begun_turns, "{at}");
    let new = children(false).len() - before;
    assert_eq!((children(true), test_agents.seen.count("subagent_stop")), (Vec::new(), left.len() + new), "{at}");
    check_recovered(&test_agents.seen, left.len() + new, &at);
    let began = children(false).iter().filter(|row| row.turns > 0).count();
    let results = lines.iter().filter(|line| line.starts_with("user: [")).count();
    assert_eq!(results, if tool == "spawn" { began } else { 0 }, "{at}: {lines:?}");
    died
}

/// The turns of sub-agents that were ended after the fact still say whose they were.
fn check_recovered(seen: &Seen, left: usize, at: &str) {
    let notices = seen.notices.lock().unwrap();
    let ends = notices.iter().filter(|notice| notice.what.name() == "turn_end" && notice.who.depth == 1);
    let whole = ends.filter(|notice| {
        notice.who.parent_turn_id.is_some() && notice.who.ancestors.iter().map(|id| id.as_str()).eq(["main"])
    });
    assert_eq!(whole.count(), left, "{at}");
}

#[tokio::test]
async fn sub_agents_of_a_killed_process_end_with_it_or_go_on_with_their_session() {
    let ways = ["delegate", "spawn"].into_iter().flat_map(|tool| [(tool, Next::Buries), (tool, Next::Resumes)]);
    for (tool, next) in ways {
        let mut lives = 0;
        while killed_with_child(tool, lives, next).await {
            lives += 1;
        }
        assert!(lives > 15, "only {lives} places");
    }
}

#[tokio::test]
async fn a_sub_agent_that_outlived_its_parents_turn_is_ended_as_well() {
    let inner = Arc::new(Memory::new());
    let begun_child = Arc::new(tokio::sync::Notify::new());
    let asked = begun_child.clone();
    let model = Mind::slow(move |model, request| match (model, request.messages.len()) {
        ("main", 1) => std::future::ready(hands("spawn", "helper", "go")).boxed(),
        ("main", _) => std::future::ready(LlmReply::text("done")).boxed(),
        _ => {
            asked.notify_one();
            std::future::pending().boxed()
        }
    });
    let test_agents = TestAgentsParts::of(model, &["main", "helper"]).test_agents();
    {
        let store = Mortal::with_lives(inner.clone(), usize::MAX);
        let mut conversation = Conversation::open(store.clone(), "s").unwrap();
        assert_eq!(test_agents.turn(&mut conversation, "go").await.ending, TurnEnding::Completed);
        begun_child.notified().await;
        store.die();
    }
    let machine = Machine::new();
    let second = subagent_process("spawn", &machine);
    let mut conversation = Conversation::open(inner.clone(), "s").unwrap();
    assert!(conversation.open_turn().is_none());
    second.turn(&mut conversation, "again").await;
    assert_eq!((second.seen.count("subagent_stop"), second.seen.payloads("turn_end").len()), (1, 2));
    let told = said(&conversation).iter().filter(|line| line.contains("ended with the process that it ran in")).count();
    assert_eq!(told, 1, "{:?}", said(&conversation));
    assert_eq!(visits(&inner.journal(&key("s")).unwrap())[..2], ["open", "killed"]);
}

/// A model by which `main` hands a task to `helper`, which has `third` work on it in the background and answers.
fn handed_on() -> Arc<crate::host::Recorder> {
    Mind::slow(move |model, request| {
        let reply = match (model, last(request).as_str()) {
            ("main", "go") => hands("delegate", "helper", "go on"),
            ("helper", "go on") => hands("spawn", "third", "dig"),
            ("third", "dig") => LlmReply::calls(vec![call(1, "work", &json!({}))]),
            _ => LlmReply::text("done"),
        };
        async move {
            tokio::task::yield_now().await;
            reply
        }
        .boxed()
    })
}

fn handing_on(machine: &Machine) -> TestAgents {
    let test_agents =
        TestAgentsParts::of(handed_on(), &["main", "helper", "third"]).own(machine.work.clone()).test_agents();
    test_agents.mount(vec![test_agents.engine.native("slow", 0, Passing::slow())]);
    test_agents
}

/// What stands in any session of `store` about what `third` brought, by session.
fn brought_by_third(store: &Memory) -> Vec<String> {
    let rows = store.sessions(&TenantId::default_tenant()).unwrap();
    let mut found = Vec::new();
    for row in rows {
        let session = pintle_domain::session::Session::fold(store.journal(&key(&row.session_id)).unwrap());
        let texts = session.messages().iter().map(|message| message.get().content.as_str());
        let told = |text: &&str| text.starts_with("[") && text.contains("he agent \"third\"");
        found.extend(texts.filter(told).map(|text| format!("{}: {text}", row.session_id)));
    }
    found
}

/// A turn whose sub-agent leaves another one working, whose process dies once it has written `lives` times.
async fn killed_with_grandchild(lives: usize) -> bool {
    let (inner, machine, at) = (Arc::new(Memory::new()), Machine::new(), format!("after {lives} writes"));
    let died = {
        let store = Mortal::with_lives(inner.clone(), lives);
        let test_agents = handing_on(&machine);
        let mut conversation = Conversation::open(store.clone(), "s").unwrap();
        test_agents.turn(&mut conversation, "go").await;
        test_agents.settled().await;
        drop(conversation);
        store.is_dead()
    };
    let test_agents = handing_on(&machine);
    let mut conversation = Conversation::open(inner.clone(), "s").unwrap();
    test_agents.turn(&mut conversation, "again").await;
    test_agents.settled().await;
    while test_agents.go_on(&mut conversation).await.is_some() {}
    assert!(valid(conversation.messages()), "{at}: {:?}", said(&conversation));
    drop(conversation);
    let rows = inner.sessions(&TenantId::default_tenant()).unwrap();
    let mut begun_turns = Vec::new();
    for row in &rows {
        let journal = inner.journal(&key(&row.session_id)).unwrap();
        let visits = visits(&journal);
        assert!(paired(&visits), "{at}: {}: {visits:?}", row.session_id);
        begun_turns.extend(begun(&journal));
    }
    begun_turns.sort();
    assert_eq!(ends(&*inner), begun_turns, "{at}");
    let began = rows.iter().filter(|row| row.agent_id == "third" && row.turns > 0).count();
    assert_eq!(brought_by_third(&inner).len(), began, "{at}: {:?}", brought_by_third(&inner));
    assert!(machine.runs().iter().all(|(_, count)| *count == 1), "{at}: {:?}", machine.runs());
    died
}

#[tokio::test]
async fn sub_agents_of_sub_agents_end_with_their_process_too() {
    let mut lives = 0;
    while killed_with_grandchild(lives).await {
        lives += 1;
    }
    assert!(lives > 25, "only {lives} places");
}
