//! Conversations that outlive their process: dropped or killed at every place where a turn waits, and opened again.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use futures_util::FutureExt as _;
use pintle_agent::driver::TurnEnding;
use pintle_agent::{Conversation, TurnHandle};
use pintle_domain::id::TenantId;
use pintle_domain::json::json;
use pintle_domain::llm::{LlmReply, LlmRequest};
use pintle_domain::message::{Message, Role};
use pintle_domain::session::{JournalEntry, ReleaseReason};
use pintle_domain::skill::{SkillHook, Skills, Timing};
use pintle_domain::store::{
    JournalAppend, OnKept, RecordQuery, RecordStore, SessionHold, SessionKey, SessionPatch, SessionRow,
    SessionSettings, SessionStore, StoreError, StoredEvent, TenantScope,
};
use pintle_domain::tool::ToolOutput;
use pintle_domain::turn::{Fact, WaitingMessage};
use pintle_engine::{Mount, Tool};
use pintle_store::{Durability, Memory, Sqlite};

use crate::hooks::{OwnTool, Passing};
use crate::host::{Seen, valid};
use crate::test_agents::{Mind, TestAgents, TestAgentsParts, call, hands, last, said};

mod mortal;
mod children;
mod undone;

use mortal::Breaking;
pub(crate) use mortal::Mortal;

const UNKNOWN: &str = "outcome unknown: the process ended while the tool ran";

/// A future that is given up after so many polls.
struct Polls<F> {
    inner: F,
    left: usize,
}

impl<F: Future + Unpin> Future for Polls<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        self.left -= 1;
        match Pin::new(&mut self.inner).poll(cx) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if self.left == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Gives up `what` after `polls` polls.
async fn for_polls<F: Future>(polls: usize, what: F) -> Option<F::Output> {
    Polls { inner: Box::pin(what), left: polls }.await
}

fn key(session: &str) -> SessionKey {
    SessionKey { tenant: TenantId::default_tenant(), session: session.into() }
}

/// How often each turn has ended, by the records that are kept.
fn ends(records: &dyn RecordStore) -> Vec<String> {
    let query = RecordQuery { limit: 10_000, ..RecordQuery::of(TenantScope::All) };
    let mut ends: Vec<String> = records
        .find(&query)
        .unwrap()
        .into_iter()
        .filter(|event: &StoredEvent| event.event == "turn_end")
        .map(|event| event.turn_id)
        .collect();
    ends.sort();
    ends
}

/// The turns that began in a journal.
fn begun(journal: &[JournalEntry]) -> Vec<String> {
    let mut begun: Vec<String> = journal
        .iter()
        .filter_map(|entry| match entry {
            JournalEntry::Turn(Fact::Begun { turn_id, .. }) => Some(turn_id.to_string()),
            JournalEntry::Turn(_)
            | JournalEntry::Opened { .. }
            | JournalEntry::Closed { .. }
            | JournalEntry::Kept(_) => None,
        })
        .collect();
    begun.sort();
    begun
}

/// `open`, and how each process left, in order.
fn visits(journal: &[JournalEntry]) -> Vec<&'static str> {
    journal
        .iter()
        .filter_map(|entry| match entry {
            JournalEntry::Opened { .. } => Some("open"),
            JournalEntry::Closed { cause } => Some(cause.word()),
            JournalEntry::Turn(_) | JournalEntry::Kept(_) => None,
        })
        .collect()
}

/// Every opening has its one end.
fn paired(visits: &[&str]) -> bool {
    visits.chunks(2).all(|pair| matches!(pair, [open, end] if *open == "open" && *end != "open"))
}

/// Tools of the machine, which stay when a process dies: they count for ever.
struct Machine {
    work: Arc<OwnTool>,
    look: Arc<OwnTool>,
}

impl Machine {
    fn new() -> Self {
        let tool = |name, read_only| {
            OwnTool::new(
                name,
                read_only,
                Box::new(move |_, _| {
                    async move {
                        tokio::task::yield_now().await;
                        ToolOutput::ok(format!("{name} is done"))
                    }
                    .boxed()
                }),
            )
        };
        Self { work: tool("work", false), look: tool("look", true) }
    }

    /// How often each call ran.
    fn runs(&self) -> Vec<(String, usize)> {
        let mut ids: Vec<String> = [&self.work, &self.look]
            .iter()
            .flat_map(|tool| tool.ran.lock().unwrap().iter().map(|call| call.id.to_string()).collect::<Vec<_>>())
            .collect();
        ids.sort();
        let mut counts: Vec<(String, usize)> = Vec::new();
        for id in ids {
            match counts.last_mut() {
                Some((known, count)) if *known == id => *count += 1,
                Some(_) | None => counts.push((id, 1)),
            }
        }
        counts
    }
}

/// The texts of skills of every process: two that stay, one that does not.
fn skills() -> Skills {
    let hook = |name: &str, timing, persistent| SkillHook { persistent, ..crate::skills::hook("alpha", name, timing) };
    Skills::new(vec![
        hook("tone", Timing::AfterUserInput, true),
        hook("check", Timing::BeforeEachAgent, false),
        hook("cite", Timing::AfterToolCall, true),
    ])
}

fn thinks(request: &LlmRequest) -> LlmReply {
    let texts = ["tone", "check", "cite"];
    let said = request.messages.iter().rev().map(|message| message.get().content.as_str());
    match said.into_iter().find(|text| !texts.contains(text)).unwrap_or_default() {
        "go" | "more" => LlmReply::calls(vec![
            call(1, "work", &json!({})),
            call(2, "look", &json!({})),
            call(3, "look", &json!({})),
            call(4, "work", &json!({})),
        ]),
        _ => LlmReply::text("done"),
    }
}

/// A process: an agent with everything new but the tools, all of whose hooks and models take their time.
fn process(machine: &Machine) -> TestAgents {
    let model = Mind::slow(|_, request| {
        let reply = thinks(request);
        async move {
            tokio::task::yield_now().await;
            reply
        }
        .boxed()
    });
    let own: [Arc<dyn Tool>; 2] = [machine.work.clone(), machine.look.clone()];
    let parts = own.into_iter().fold(TestAgentsParts::of(model, &["main"]), TestAgentsParts::own);
    let test_agents = TestAgentsParts { skills: skills(), ..parts }.test_agents();
    let slow: Vec<Mount> = vec![test_agents.engine.native("slow", 0, Passing::slow())];
    test_agents.mount(slow);
    test_agents
}

/// The lines of a conversation that say `text`.
fn times(lines: &[String], text: &str) -> usize {
    lines.iter().filter(|line| line.ends_with(text)).count()
}

#[tokio::test]
async fn a_turn_dropped_anywhere_leaves_a_whole_conversation() {
    let mut polls = 0;
    loop {
        let (store, machine, at) = (Arc::new(Memory::new()), Machine::new(), format!("after {polls} polls"));
        let test_agents = process(&machine);
        let turn_handle = TurnHandle::default();
        turn_handle.steer("more").unwrap();
        let mut conversation = Conversation::open(store.clone(), "s").unwrap();
        let report = for_polls(polls, test_agents.turn_by(&mut conversation, "go", &turn_handle)).await;
        assert!(conversation.open_turn().is_none() && valid(conversation.messages()), "{at}");
        let lines = said(&conversation);
        let began = begun(&store.journal(&key("s")).unwrap());
        assert_eq!((times(&lines, "go"), ends(&*store)), (began.len(), began.clone()), "{at}: {lines:?}");
        assert_eq!(times(&lines, "system: tone"), began.len(), "{at}: {lines:?}");
        assert_eq!(times(&lines, "system: check"), 0, "{at}: {lines:?}");
        if began.len() == 1 {
            // The message is in the conversation, waits for the next turn, or the user knows that it is gone.
            let waits = conversation.queue().iter().filter(|waiting| waiting.text() == "more").count();
            let gone = test_agents.seen.for_user.lock().unwrap().len();
            assert_eq!(times(&lines, "user: more") + waits + gone, 1, "{at}: {lines:?}");
        }
        drop(conversation);
        let journal = store.journal(&key("s")).unwrap();
        assert!(paired(&visits(&journal)), "{at}: {:?}", visits(&journal));
        let left = visits(&journal).last().copied();
        match (&report, began.len()) {
            (Some(_), _) => assert_eq!(left, Some("done"), "{at}"),
            (None, 1) => assert_eq!(left, Some("interrupted"), "{at}"),
            (None, _) => {}
        }
        let mut conversation = Conversation::open(store.clone(), "s").unwrap();
        assert_eq!(said(&conversation), lines, "{at}: what is kept is what was there");
        let second = process(&machine).turn(&mut conversation, "again").await;
        assert_eq!(second.ending, TurnEnding::Completed, "{at}");
        assert!(valid(conversation.messages()), "{at}");
        assert_eq!(ends(&*store), begun(&store.journal(&key("s")).unwrap()), "{at}");
        assert!(machine.runs().iter().all(|(_, count)| *count == 1), "{at}: {:?}", machine.runs());
        if report.is_some() {
            break;
        }
        polls += 1;
    }
    assert!(polls > 25, "only {polls} places");
}

/// How a session goes on after its process died.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Next {
    Resumes,
    Buries,
}

/// Kills a process after `polls` polls of its turn, and goes on in another one. Says whether the turn was over before.
async fn killed<S, O>(open: &O, polls: usize, next: Next) -> bool
where
    S: SessionStore + RecordStore + 'static,
    O: Fn() -> Arc<S>,
{
    let (machine, at) = (Machine::new(), format!("{next:?} after {polls} polls"));
    let over = {
        let store = Mortal::with_lives(open(), usize::MAX);
        let test_agents = process(&machine);
        let mut conversation = Conversation::open(store.clone(), "s").unwrap();
        let turn_handle = TurnHandle::default();
        turn_handle.steer("more").unwrap();
        let mut turn = Box::pin(test_agents.turn_by(&mut conversation, "go", &turn_handle));
        let over = for_polls(polls, &mut turn).await.is_some();
        store.die();
        drop(turn);
        // A real death would end its tools as well.
        test_agents.settled().await;
        over
    };
    let store = open();
    let journal = store.journal(&key("s")).unwrap();
    let (began, used) = (begun(&journal).len(), used_without_answer(&journal));
    // Its end may be written although the process did not live to hear of it.
    let open_turn = began == 1 && !journal.iter().any(|entry| matches!(entry, JournalEntry::Turn(Fact::Ended { .. })));
    let mut conversation = Conversation::open(store.clone(), "s").unwrap();
    assert_eq!(conversation.open_turn().is_some(), open_turn, "{at}");
    let runs_before = machine.runs();
    let test_agents = process(&machine);
    if next == Next::Resumes {
        let resumed =
            test_agents.main().resume(&mut conversation, test_agents.seen.clone(), &TurnHandle::default()).await;
        assert_eq!(resumed.map(|report| report.ending), open_turn.then_some(TurnEnding::Completed), "{at}");
    }
    while test_agents.go_on(&mut conversation).await.is_some() {}
    assert_eq!(test_agents.turn(&mut conversation, "again").await.ending, TurnEnding::Completed, "{at}");
    let lines = said(&conversation);
    assert!(valid(conversation.messages()), "{at}: {lines:?}");
    assert_eq!((times(&lines, "user: go"), times(&lines, "user: again")), (began, 1), "{at}: {lines:?}");
    assert!(times(&lines, "user: more") <= 1, "{at}: {lines:?}");
    assert_eq!(times(&lines, "system: tone"), begun(&store.journal(&key("s")).unwrap()).len(), "{at}: {lines:?}");
    assert_eq!(times(&lines, "system: check"), 0, "{at}: {lines:?}");
    for call in &used {
        assert_eq!(times(&lines, &format!("{call}: {UNKNOWN}")), 1, "{at}: {lines:?}");
        assert_eq!(runs_of(&runs_before, call), runs_of(&machine.runs(), call), "{at}: {call} ran again");
    }
    assert_eq!(times(&lines, UNKNOWN), used.len(), "{at}");
    assert!(machine.runs().iter().all(|(_, count)| *count == 1), "{at}: {:?}", machine.runs());
    drop((conversation, test_agents));
    drop(store);
    let store = open();
    let journal = store.journal(&key("s")).unwrap();
    assert_eq!(ends(&*store), begun(&journal), "{at}");
    assert!(paired(&visits(&journal)), "{at}: {:?}", visits(&journal));
    let first = visits(&journal).first().copied();
    // One that died before it said anything has not been there.
    assert!(first.is_none_or(|first| first == "open"), "{at}");
    if began == 1 {
        assert_eq!(visits(&journal)[1], "killed", "{at}: {:?}", visits(&journal));
    }
    over
}

fn runs_of(runs: &[(String, usize)], call: &str) -> usize {
    runs.iter().find(|(id, _)| id == call).map_or(0, |(_, count)| *count)
}

/// The calls that were running when the journal broke off.
fn used_without_answer(journal: &[JournalEntry]) -> Vec<String> {
    let mut running = Vec::new();
    for entry in journal {
        match entry {
            JournalEntry::Turn(Fact::Used { place, .. }) => running.push(*place),
            JournalEntry::Turn(Fact::Answered { place, .. }) => running.retain(|used| used != place),
            JournalEntry::Turn(_)
            | JournalEntry::Opened { .. }
            | JournalEntry::Closed { .. }
            | JournalEntry::Kept(_) => {}
        }
    }
    running.into_iter().map(|place| format!("c{}", place + 1)).collect()
}

#[tokio::test]
async fn a_process_killed_anywhere_loses_nothing_and_repeats_nothing() {
    for next in [Next::Resumes, Next::Buries] {
        let mut polls = 0;
        loop {
            let memory = Arc::new(Memory::new());
            if killed(&|| memory.clone(), polls, next).await {
                break;
            }
            polls += 1;
        }
        assert!(polls > 25, "only {polls} places");
    }
}

#[tokio::test]
async fn the_same_with_a_file() {
    for next in [Next::Resumes, Next::Buries] {
        let mut polls = 0;
        loop {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("pintle.db");
            // The last one is closed before the next one is opened, so all that was handed over is written.
            let open = || Arc::new(Sqlite::open(&file, Durability::Commit).unwrap());
            if killed(&open, polls, next).await {
                break;
            }
            polls += 1;
        }
        assert!(polls > 25, "only {polls} places");
    }
}

#[tokio::test]
async fn a_conversation_survives_its_process() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Arc::new(Sqlite::open(&folder.path().join("pintle.db"), Durability::Commit).unwrap());
    let machine = Machine::new();
    let before = {
        let mut conversation = Conversation::open(open(), "s").unwrap();
        assert_eq!(conversation.last_cause(), None);
        let test_agents = process(&machine);
        test_agents.turn(&mut conversation, "go").await;
        assert_eq!(test_agents.seen.count("session_start"), 1);
        conversation.messages().iter().map(|message| message.get().clone()).collect::<Vec<Message>>()
    };
    let mut conversation = Conversation::open(open(), "s").unwrap();
    let after: Vec<Message> = conversation.messages().iter().map(|message| message.get().clone()).collect();
    assert_eq!(after, before, "with all that only the host and the provider know");
    assert_eq!(conversation.last_cause(), Some(ReleaseReason::Done));
    let test_agents = process(&machine);
    test_agents.turn(&mut conversation, "again").await;
    assert_eq!(test_agents.seen.count("session_start"), 0, "it is not new");
    assert_eq!(said(&conversation).last().unwrap(), "assistant: done");
    // The message, and the two texts of skills that the first call sees.
    assert_eq!(test_agents.model.request(0).messages.len(), before.len() + 3);
}

#[tokio::test]
async fn nobody_else_works_on_it_meanwhile() {
    let store = Arc::new(Memory::new());
    let conversation = Conversation::open(store.clone(), "s").unwrap();
    assert!(matches!(Conversation::open(store.clone(), "s"), Err(StoreError::Conflict(_))));
    drop(conversation);
    assert!(Conversation::open(store, "s").is_ok());
}

#[tokio::test]
async fn how_a_process_left_is_told_by_its_last_turn() {
    let last_visit = |store: &Memory| visits(&store.journal(&key("s")).unwrap()).last().copied();
    let failing = Mind::quick(|_, request| match last(request).as_str() {
        "loop" => LlmReply::calls(vec![call(1, "work", &json!({}))]),
        _ => LlmReply::text("done"),
    });
    let mut parts = TestAgentsParts::of(failing, &["main"]).own(OwnTool::giving("work", ToolOutput::ok("hi")));
    parts.change = Box::new(|settings| pintle_agent::AgentSettings { max_iterations: 1, ..settings });
    let test_agents = parts.test_agents();
    let store = Arc::new(Memory::new());
    let visit = async |prompt: &str, turn_handle: &TurnHandle| {
        let mut conversation = Conversation::open(store.clone(), "s").unwrap();
        test_agents.turn_by(&mut conversation, prompt, turn_handle).await;
    };
    visit("hi", &TurnHandle::default()).await;
    assert_eq!(last_visit(&store), Some("done"));
    visit("loop", &TurnHandle::default()).await;
    assert_eq!(last_visit(&store), Some("failed"));
    let stopped = TurnHandle::default();
    stopped.cancel();
    visit("hi", &stopped).await;
    assert_eq!(last_visit(&store), Some("interrupted"));
    // Who only looks leaves no trace.
    let before = store.journal(&key("s")).unwrap().len();
    drop(Conversation::open(store.clone(), "s").unwrap());
    assert_eq!(store.journal(&key("s")).unwrap().len(), before);
}

#[tokio::test]
async fn a_rolled_back_turn_is_rolled_back_for_ever() {
    let store = Arc::new(Memory::new());
    let machine = Machine::new();
    let test_agents = process(&machine);
    let mut conversation = Conversation::open(store.clone(), "s").unwrap();
    test_agents.turn(&mut conversation, "again").await;
    let before = said(&conversation);
    let turn_handle = TurnHandle::default();
    turn_handle.abort();
    test_agents.turn_by(&mut conversation, "go", &turn_handle).await;
    assert_eq!(said(&conversation), before);
    drop(conversation);
    assert_eq!(said(&Conversation::open(store, "s").unwrap()), before);
}

#[tokio::test]
async fn a_call_whose_use_cannot_be_noted_does_not_run() {
    let store = Arc::new(Breaking { inner: Memory::new(), broken: AtomicBool::new(true) });
    let machine = Machine::new();
    let test_agents = process(&machine);
    let mut conversation = Conversation::open(store, "s").unwrap();
    let report = test_agents.turn(&mut conversation, "go").await;
    let stage = "session_save".to_owned();
    let text = "the end of the turn could not be kept: the store is unavailable: no space".to_owned();
    assert_eq!((report.ending, report.denials.len()), (TurnEnding::Failed { stage, text }, 0));
    assert_eq!(machine.runs(), []);
    let text = "the tool did not run: the session could not be written";
    assert_eq!(times(&said(&conversation), text), 4, "{:?}", said(&conversation));
}

#[tokio::test]
async fn what_waits_survives_in_the_order_of_its_coming() {
    let store = Arc::new(Memory::new());
    let turn_handle = TurnHandle::default();
    let heard = Arc::new(Mutex::new(false));
    let (by_model, once) = (turn_handle.clone(), heard.clone());
    let model = Mind::quick(move |_, _| {
        if !std::mem::replace(&mut *once.lock().unwrap(), true) {
            ["one", "two", "three"].iter().for_each(|text| by_model.steer(*text).unwrap());
        }
        LlmReply::text("done")
    });
    let test_agents = TestAgentsParts::of(model, &["main"]).test_agents();
    let mut conversation = Conversation::open(store.clone(), "s").unwrap();
    test_agents.turn_by(&mut conversation, "go", &turn_handle).await;
    drop(conversation);
    let mut conversation = Conversation::open(store.clone(), "s").unwrap();
    let waiting: Vec<String> = conversation.queue().iter().map(WaitingMessage::text).map(str::to_owned).collect();
    assert_eq!(waiting, ["one", "two", "three"]);
    test_agents.turn(&mut conversation, "four").await;
    let users: Vec<String> = conversation
        .messages()
        .iter()
        .filter(|message| message.get().role == Role::User)
        .map(|message| message.get().content.clone())
        .collect();
    assert_eq!(users, ["go", "one", "two", "three", "four"]);
    drop(conversation);
    assert!(Conversation::open(store, "s").unwrap().queue().is_empty());
}
