//! Messages that come in while a turn is worked: gated, injected at the next poll, never lost, never doubled.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::{Either, select};
use pintle_agent::driver::TurnEnding;
use pintle_agent::{Conversation, TurnHandle};
use pintle_domain::checkpoint::{CheckpointKind, UserPromptSubmit};
use pintle_domain::json::{Value, json};
use pintle_domain::llm::LlmReply;
use pintle_domain::store::Steerer;
use pintle_domain::tool::ToolOutput;
use pintle_domain::verdict::Verdict;
use pintle_engine::{HookCx, NativeAnswer, NativeHook, async_trait};
use tokio::sync::Notify;

use crate::hooks::{OwnTool, Passing, Rule};
use crate::host::{Host, Parts};
use crate::test_agents::{Mind, TestAgents, TestAgentsParts, call, said};

/// A tool that says `texts` to the turn the first time that it runs.
fn steering_tool(turn_handle: &TurnHandle, texts: &'static [&'static str]) -> Arc<OwnTool> {
    let (turn_handle, runs) = (turn_handle.clone(), AtomicUsize::new(0));
    OwnTool::new(
        "work",
        false,
        Box::new(move |_, _| {
            if runs.fetch_add(1, Ordering::Relaxed) == 0 {
                texts.iter().for_each(|text| turn_handle.steer(*text).unwrap());
            }
            Box::pin(std::future::ready(ToolOutput::ok("hi")))
        }),
    )
}

/// A model that asks for `work` twice in one batch, and then says `done`.
fn batch() -> Value {
    let call = |id: &str| json!({"id": id, "name": "work", "arguments": {}});
    json!([{"tool_calls": [call("c1"), call("c2")]}, {"text": "done"}, {"text": "more"}])
}

fn host(turn_handle: &TurnHandle, texts: &'static [&'static str]) -> Host {
    Parts::of(batch()).own(steering_tool(turn_handle, texts)).host()
}

#[tokio::test]
async fn a_message_is_taken_in_at_the_next_poll_and_skips_the_rest_of_the_batch() {
    let turn_handle = TurnHandle::default();
    let mut host = host(&turn_handle, &["stop that", "do this"]);
    let report = host.turn_by("go", &turn_handle).await;
    assert_eq!((report.ending, report.reply.as_str()), (TurnEnding::Completed, "done"));
    assert_eq!(
        host.said(),
        [
            "user: go",
            "assistant: [c1=work({}) c2=work({})]",
            "c1: hi",
            "c2: Skipped due to queued user message.",
            "user: stop that",
            "user: do this",
            "assistant: done"
        ]
    );
    assert_eq!(report.denials, Vec::<String>::new(), "who is skipped is denied nothing");
    let interrupt =
        |len, depth| json!({"Kind": "steering", "Role": "user", "ContentLen": len, "QueueDepth": depth, "HintLen": 0});
    assert_eq!(host.seen.payloads("interrupt_received"), [interrupt(9, 1), interrupt(7, 2)]);
    let skipped = json!({"Tool": "work", "Reason": "queued user steering message", "ToolCallID": "c2"});
    assert_eq!(host.seen.payloads("tool_exec_skipped"), [skipped]);
    assert_eq!(host.seen.payloads("steering_injected"), [json!({"Count": 2, "TotalContentLen": 16})]);
    let stamps = host.seen.stamps();
    let from = stamps.iter().position(|stamp| stamp.starts_with("post_tool_use")).unwrap() + 1;
    assert_eq!(
        stamps[from..from + 5],
        [
            "interrupt_received 1 -",
            "interrupt_received 1 -",
            "tool_exec_skipped 1 c2",
            "steering_injected 1 c2",
            "llm_request 2 -"
        ]
        .map(|stamp| stamp.replace("steering_injected 1 c2", "steering_injected 1 -"))
    );
}

#[tokio::test]
async fn a_blocked_message_goes_nowhere_but_back_to_the_user() {
    let turn_handle = TurnHandle::default();
    let mut host = host(&turn_handle, &["my PASSWORD is x"]);
    let prompt = |at: &UserPromptSubmit| {
        if at.prompt.contains("PASSWORD") { Verdict::deny("no secrets") } else { Verdict::Continue }
    };
    let rule = Rule { prompt: Some(Box::new(prompt)), ..Rule::default() };
    host.mount(vec![host.engine.native("h", 0, Arc::new(rule))]);
    let report = host.turn_by("go", &turn_handle).await;
    assert_eq!(report.ending, TurnEnding::Completed);
    let expected = ["user: go", "assistant: [c1=work({}) c2=work({})]", "c1: hi", "c2: hi", "assistant: done"];
    assert_eq!(host.said(), expected, "the batch goes on");
    assert_eq!(*host.seen.for_user.lock().unwrap(), ["hook blocked user_prompt_submit: h: no secrets"]);
    let asked = format!("{:?}", host.model.asked.lock().unwrap());
    assert!(!host.seen.everything().contains("PASSWORD") && !asked.contains("PASSWORD"));
    assert_eq!((host.seen.count("interrupt_received"), host.seen.count("steering_injected")), (0, 0));
    assert!(host.conversation.queue().is_empty());
}

/// The gates' own records are written, too: what one gate made of a message goes nowhere once another one refuses it.
#[tokio::test]
async fn a_message_that_one_gate_rewrote_and_another_blocked_is_in_no_record() {
    for prompt in ["my PASSWORD is x", "go"] {
        let turn_handle = TurnHandle::default();
        let mut host = host(&turn_handle, &["my PASSWORD is y"]);
        let tidies = |at: &UserPromptSubmit| Verdict::Modify(format!("{}!", at.prompt));
        let blocks = |at: &UserPromptSubmit| {
            if at.prompt.contains("PASSWORD") { Verdict::deny("no secrets") } else { Verdict::Continue }
        };
        let rule = |prompt| Arc::new(Rule { prompt: Some(prompt), ..Rule::default() });
        host.mount(vec![
            host.engine.native("tidies", 0, rule(Box::new(tidies))),
            host.engine.native("blocks", 1, rule(Box::new(blocks))),
        ]);
        host.turn_by(prompt, &turn_handle).await;
        assert!(!host.seen.everything().contains("PASSWORD"), "{prompt}");
        let records = host.seen.records.lock().unwrap();
        let words: Vec<_> = records.iter().flat_map(|record| &record.hooks).map(|hook| hook.outcome.clone()).collect();
        assert!(words.len() >= 2, "that they were asked is kept: {words:?}");
    }
}

#[tokio::test]
async fn a_rewritten_message_is_rewritten_everywhere() {
    let turn_handle = TurnHandle::default();
    let mut host = host(&turn_handle, &["my PASSWORD is x"]);
    let prompt = |at: &UserPromptSubmit| Verdict::Modify(at.prompt.replace("PASSWORD", "***"));
    let rule = Rule { prompt: Some(Box::new(prompt)), ..Rule::default() };
    host.mount(vec![host.engine.native("h", 0, Arc::new(rule))]);
    host.turn_by("go", &turn_handle).await;
    assert_eq!(host.said()[4], "user: my *** is x");
    assert_eq!(host.seen.payloads("steering_injected"), [json!({"Count": 1, "TotalContentLen": 11})]);
    assert_eq!(host.seen.payloads("interrupt_received")[0]["ContentLen"], 11);
    let told = format!("{:?}{:?}", host.seen.notices.lock().unwrap(), host.model.asked.lock().unwrap());
    assert!(!told.contains("PASSWORD"), "{told}");
}

/// A model that says something to the turn while it gives its last answer.
fn late(turn_handle: &TurnHandle) -> TestAgents {
    let turn_handle = turn_handle.clone();
    let model = Mind::quick(move |_, request| match crate::test_agents::last(request).as_str() {
        "go" => {
            turn_handle.steer("one more").unwrap();
            LlmReply::text("done")
        }
        _ => LlmReply::text("done, too"),
    });
    TestAgentsParts::of(model, &["main"]).test_agents()
}

#[tokio::test]
async fn a_message_after_the_last_text_is_a_turn_of_its_own() {
    let turn_handle = TurnHandle::default();
    let test_agents = late(&turn_handle);
    let mut conversation = Conversation::new("s");
    let report = test_agents.turn_by(&mut conversation, "go", &turn_handle).await;
    assert_eq!((report.ending, report.reply.as_str()), (TurnEnding::Completed, "done"));
    let waiting: Vec<&str> = conversation.queue().iter().map(pintle_domain::turn::WaitingMessage::text).collect();
    assert_eq!(waiting, ["one more"]);
    assert_eq!(said(&conversation), ["user: go", "assistant: done"]);
    assert!(turn_handle.steer("too late").is_err(), "a turn that is over takes nothing");
    let second = test_agents.go_on(&mut conversation).await.unwrap();
    assert_eq!((second.ending, second.reply.as_str()), (TurnEnding::Completed, "done, too"));
    assert_ne!(second.turn_id, report.turn_id);
    let expected = ["user: go", "assistant: done", "user: one more", "assistant: done, too"];
    assert_eq!((said(&conversation), test_agents.seen.count("turn_end")), (expected.map(str::to_owned).to_vec(), 2));
    assert_eq!(test_agents.seen.payloads("turn_start")[1]["UserMessage"], "one more");
    assert_eq!(test_agents.go_on(&mut conversation).await, None);
}

#[tokio::test]
async fn messages_before_the_first_poll_stand_behind_the_prompt() {
    let turn_handle = TurnHandle::default();
    turn_handle.steer("first things first").unwrap();
    let mut host = host(&turn_handle, &[]);
    host.turn_by("go", &turn_handle).await;
    assert_eq!(host.said()[..2], ["user: go", "user: first things first"]);
}

fn anna(key: &str) -> Steerer {
    Steerer { user: "anna".into(), key: Some(key.into()) }
}

#[tokio::test]
async fn what_was_taken_back_is_not_heard() {
    let turn_handle = TurnHandle::default();
    for (text, key) in [("push it", "lost"), ("be brief", "kept"), ("push it all", "lost")] {
        turn_handle.steer_by(text, anna(key)).unwrap();
    }
    assert_eq!(turn_handle.steerers(), BTreeSet::from([anna("kept"), anna("lost")]));
    turn_handle.take_back(&anna("lost"));
    assert_eq!(turn_handle.steerers(), BTreeSet::from([anna("kept")]));
    let mut host = host(&turn_handle, &[]);
    host.turn_by("go", &turn_handle).await;
    let said = host.said();
    assert_eq!(said[..2], ["user: go", "user: be brief"]);
    assert!(!said.iter().any(|line| line.contains("push")), "{said:?}");
}

/// Takes a message back while it rules on it.
struct TakesBack(TurnHandle);

#[async_trait]
impl NativeHook for TakesBack {
    fn stages(&self) -> Vec<CheckpointKind> {
        vec![CheckpointKind::UserPromptSubmit]
    }

    async fn user_prompt_submit(&self, _: &HookCx<'_>, at: &UserPromptSubmit) -> NativeAnswer<UserPromptSubmit> {
        if at.prompt == "push it" {
            self.0.take_back(&anna("lost"));
        }
        Ok(Verdict::Continue)
    }
}

#[tokio::test]
async fn what_is_taken_back_at_a_gate_is_not_heard_and_what_follows_is() {
    let turn_handle = TurnHandle::default();
    turn_handle.steer_by("push it", anna("lost")).unwrap();
    turn_handle.steer_by("be brief", anna("kept")).unwrap();
    let mut host = host(&turn_handle, &[]);
    host.mount(vec![host.engine.native("takes-back", 0, Arc::new(TakesBack(turn_handle.clone())))]);
    host.turn_by("go", &turn_handle).await;
    let said = host.said();
    assert_eq!(said[..2], ["user: go", "user: be brief"]);
    assert!(!said.iter().any(|line| line.contains("push")), "{said:?}");
}

#[tokio::test]
async fn only_so_many_wait() {
    let turn_handle = TurnHandle::default();
    let taken = (0..100).filter(|n| turn_handle.steer(format!("{n}")).is_ok()).count();
    assert_eq!(taken, 64);
    assert_eq!(turn_handle.steer("x").unwrap_err().to_string(), "the turn takes no more messages");
}

/// Steers at the `at`-th of the places that it is asked to.
struct Ticks {
    turn_handle: TurnHandle,
    at: usize,
    seen: AtomicUsize,
    steered: AtomicUsize,
}

impl Ticks {
    fn tick(&self) {
        if self.seen.fetch_add(1, Ordering::Relaxed) == self.at && self.turn_handle.steer("MARK").is_ok() {
            self.steered.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A model that asks for two rounds of two calls each before it answers.
fn two_rounds(ticks: Arc<Ticks>) -> TestAgents {
    let (by_model, by_tool) = (ticks.clone(), ticks.clone());
    let model = Mind::quick(move |_, request| {
        by_model.tick();
        let rounds = request.messages.iter().filter(|message| !message.get().tool_calls.is_empty()).count();
        if rounds < 2 {
            return LlmReply::calls(vec![
                call(2 * rounds, "work", &json!({})),
                call(2 * rounds + 1, "work", &json!({})),
            ]);
        }
        LlmReply::text("done")
    });
    let work = OwnTool::new(
        "work",
        false,
        Box::new(move |_, _| {
            by_tool.tick();
            Box::pin(std::future::ready(ToolOutput::ok("hi")))
        }),
    );
    let test_agents = TestAgentsParts::of(model, &["main"]).own(work).test_agents();
    let everywhere = Passing::everywhere(move |_| {
        ticks.tick();
        Box::pin(std::future::ready(()))
    });
    test_agents.mount(vec![test_agents.engine.native("ticks", 0, everywhere)]);
    test_agents
}

#[tokio::test]
async fn wherever_it_comes_in_it_is_there_exactly_once() {
    let mut places = 0;
    loop {
        let turn_handle = TurnHandle::default();
        let ticks = Arc::new(Ticks {
            turn_handle: turn_handle.clone(),
            at: places,
            seen: AtomicUsize::new(0),
            steered: AtomicUsize::new(0),
        });
        let test_agents = two_rounds(ticks.clone());
        let mut conversation = Conversation::new("s");
        test_agents.turn_by(&mut conversation, "go", &turn_handle).await;
        if ticks.steered.load(Ordering::Relaxed) == 0 {
            break;
        }
        while let Some(report) = test_agents.go_on(&mut conversation).await {
            assert_eq!(report.ending, TurnEnding::Completed);
        }
        let marks = said(&conversation).iter().filter(|line| line.contains("MARK")).count();
        assert_eq!(marks, 1, "at place {places}: {:?}", said(&conversation));
        let injected = test_agents.seen.payloads("steering_injected").len();
        let queued = usize::from(test_agents.seen.count("turn_start") == 2);
        assert_eq!(injected + queued, 1, "at place {places}");
        places += 1;
    }
    assert!(places >= 20, "only {places} places");
}

/// Never rules on what is not the first message.
struct Slow(Arc<Notify>);

#[async_trait]
impl NativeHook for Slow {
    fn stages(&self) -> Vec<CheckpointKind> {
        vec![CheckpointKind::UserPromptSubmit]
    }

    async fn user_prompt_submit(&self, _: &HookCx<'_>, at: &UserPromptSubmit) -> NativeAnswer<UserPromptSubmit> {
        if at.prompt != "go" {
            self.0.notify_one();
            std::future::pending::<()>().await;
        }
        Ok(Verdict::Continue)
    }
}

#[tokio::test]
async fn a_turn_that_is_dropped_at_a_gate_says_which_messages_are_gone() {
    let (turn_handle, ready) = (TurnHandle::default(), Arc::new(Notify::new()));
    let mut host = host(&turn_handle, &["one", "two"]);
    host.mount(vec![host.engine.native("slow", 0, Arc::new(Slow(ready.clone())))]);
    {
        let turn = std::pin::pin!(host.turn_by("go", &turn_handle));
        let asked = std::pin::pin!(ready.notified());
        assert!(matches!(select(turn, asked).await, Either::Right(_)));
    }
    let told = host.seen.for_user.lock().unwrap().clone();
    assert_eq!(told, ["discarded, the run was stopped: one", "discarded, the run was stopped: two"]);
    assert!(host.is_valid() && host.conversation.queue().is_empty());
    assert!(turn_handle.steer("three").is_err());
}

#[tokio::test]
async fn a_turn_that_is_cancelled_at_a_gate_says_so_too() {
    let (turn_handle, ready) = (TurnHandle::default(), Arc::new(Notify::new()));
    let mut host = host(&turn_handle, &["one", "two"]);
    host.mount(vec![host.engine.native("slow", 0, Arc::new(Slow(ready.clone())))]);
    let turn = host.turn_by("go", &turn_handle);
    let stop = async {
        ready.notified().await;
        turn_handle.cancel();
    };
    let (report, ()) = futures_util::future::join(turn, stop).await;
    assert_eq!(report.ending, TurnEnding::Cancelled);
    let told = host.seen.for_user.lock().unwrap().clone();
    assert_eq!(told, ["discarded, the run was stopped: one", "discarded, the run was stopped: two"]);
}

#[tokio::test]
async fn what_waits_at_the_iteration_limit_waits_on() {
    let turn_handle = TurnHandle::default();
    let (by_model, model) = (turn_handle.clone(), batch());
    let mut parts = Parts::of(model).own(steering_tool(&by_model, &["later"]));
    parts.settings.max_iterations = 1;
    let mut host = parts.host();
    let report = host.turn_by("go", &turn_handle).await;
    let text = "iteration limit 1 reached".to_owned();
    assert_eq!(report.ending, TurnEnding::Failed { stage: "llm".into(), text });
    assert_eq!(host.conversation.queue().len(), 1);
    assert!(!host.said().iter().any(|line| line.contains("later")) && host.is_valid());
}
