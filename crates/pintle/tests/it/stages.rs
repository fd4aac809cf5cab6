//! Every stage is asked, and every ruling of it is obeyed.

use std::sync::{Arc, Mutex};

use pintle::checkpoint::RuntimeEvent;
use pintle::checkpoint::runtime::TurnStatus;
use pintle::json::Object;
use pintle::prelude::*;

use crate::host::{Ears, TOOLS, Till, event, memory, open, refund, reply, request, turn};

#[tokio::test]
async fn every_stage_is_asked_once_in_the_order_of_a_turn() {
    let pintle = open();
    let asked: Arc<Mutex<Vec<&'static str>>> = Arc::default();
    macro_rules! at {
        ($stage:ident, $name:literal) => {
            let asked = asked.clone();
            pintle
                .hook($name, "", move |_: &$stage| {
                    asked.lock().unwrap().push($name);
                    Verdict::Continue
                })
                .unwrap();
        };
    }
    at!(UserPromptSubmit, "user_prompt_submit");
    at!(BeforeLlm, "before_llm");
    at!(AfterLlm, "after_llm");
    at!(BeforeTool, "before_tool");
    at!(PreToolUse, "pre_tool_use");
    at!(ApproveTool, "approve_tool");
    at!(AfterTool, "after_tool");
    at!(SubagentStart, "subagent_start");
    let mut ears = Ears::of(&pintle);
    let till = Till::default();
    let turn = turn(&pintle);
    let begun = turn.begin("give it back", InputKind::First).await.unwrap();
    assert_eq!(begun.prompt, "give it back");
    let done = turn.model(request("give it back"), async |_| Ok::<_, String>(reply("I will"))).await.unwrap();
    assert_eq!((done.reply.content.as_str(), done.model.as_str()), ("I will", "m"));
    let done = turn.call(refund("c1"), &till).await.unwrap();
    assert_eq!(done.output.for_llm, "refund done");
    let child = turn.delegate("clerk", "look", None, TurnId::fresh()).await.unwrap();
    child.end("looked");
    turn.end("it is back");
    let order =
        "user_prompt_submit before_llm after_llm before_tool pre_tool_use approve_tool after_tool subagent_start";
    assert_eq!(asked.lock().unwrap().join(" "), order);
    let told = ears.names_until("stop").await;
    let expected = "session_start turn_start llm_request llm_response tool_exec_start tool_exec_end post_tool_use \
                    subturn_spawn subturn_end subagent_stop turn_end stop";
    assert_eq!(told.join(" "), expected);
    assert_eq!(pintle.close(Duration::from_secs(5)).await.calls, 0);
}

#[tokio::test]
async fn the_end_of_a_turn_tells_what_it_did_once() {
    let pintle = open();
    let mut ears = Ears::of(&pintle);
    let till = Till::default();
    let turn = turn(&pintle);
    let _begun = turn.begin("p", InputKind::Followup).await.unwrap();
    for (round, id) in [(1, "c1"), (2, "c2")] {
        let usage = pintle::llm::Usage { prompt_tokens: 10, completion_tokens: round, total_tokens: 10 + round };
        let answer = pintle::llm::LlmReply { usage: Some(usage), ..reply("on") };
        let _answer = turn.model(request("p"), async |_| Ok::<_, String>(answer)).await.unwrap();
        let _done = turn.call(refund(id), &till).await.unwrap();
    }
    let failed = turn.call(Call::new("c3", "lookup", [("do", "fail")]), &till).await;
    assert!(matches!(failed, Err(Stop::Own(why)) if why == "the till is closed"));
    turn.end("done");
    let heard = ears.until("stop").await;
    let rounds: Vec<u32> = heard.iter().map(|notice| notice.who.iteration).collect();
    assert_eq!(rounds, [0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 0, 0]);
    let end = heard.iter().rev().nth(1).unwrap();
    let RuntimeEvent::TurnEnd { status, iterations, tool_kinds, tool_executions, final_content, user_message, .. } =
        event(end)
    else {
        panic!("{end:?}");
    };
    assert_eq!((*status, *iterations, final_content.as_str()), (TurnStatus::Completed, 2, "done"));
    assert_eq!((tool_kinds.join(","), user_message.as_str()), ("lookup,refund".to_owned(), "p"));
    let ran: Vec<_> = tool_executions.iter().map(|it| (it.name.as_str(), it.error_summary.as_deref())).collect();
    assert_eq!(ran, [("refund", None), ("refund", None), ("lookup", Some("the tool failed"))]);
    let pintle::checkpoint::ObservedEvent::Stop { usage, .. } = heard.last().unwrap().what.clone() else { panic!() };
    assert_eq!((usage.prompt_tokens, usage.completion_tokens, usage.total_tokens), (20, 3, 23));
}

#[tokio::test]
async fn a_turn_that_is_left_in_any_way_has_one_end() {
    let pintle = open();
    let mut ears = Ears::of(&pintle);
    let begin = async || {
        let turn = turn(&pintle);
        let _begun = turn.begin("p", InputKind::Followup).await.unwrap();
        turn
    };
    begin().await.end("x");
    begin().await.fail("nobody answered");
    drop(begin().await);
    // Left open, taken up again, and ended there.
    let open = begin().await.park();
    let kept: pintle::TurnSnapshot = serde_json::from_str(&serde_json::to_string(&open).unwrap()).unwrap();
    turn(&pintle).resumed(kept).end("y");
    drop(turn(&pintle));
    pintle
        .tenant("default")
        .unwrap()
        .turn("last", "s", TurnId::fresh())
        .resumed(pintle::TurnSnapshot::default())
        .fail("z");
    let mut ends = Vec::new();
    loop {
        let notice = ears.until("turn_end").await.pop().unwrap();
        let RuntimeEvent::TurnEnd { status, final_content, .. } = event(&notice) else { panic!() };
        ends.push((*status, final_content.clone()));
        if notice.who.agent_id.as_str() == "last" {
            break;
        }
    }
    let expected = [
        (TurnStatus::Completed, "x"),
        (TurnStatus::Error, ""),
        (TurnStatus::Aborted, ""),
        (TurnStatus::Completed, "y"),
        (TurnStatus::Error, ""),
    ];
    assert_eq!(ends.iter().map(|(status, text)| (*status, text.as_str())).collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn the_gate_of_messages_rewrites_and_refuses() {
    let pintle = open();
    pintle
        .hook("polite", "", |at: &UserPromptSubmit| match at.prompt.as_str() {
            "swear" => Verdict::deny("say it kindly"),
            text => Verdict::Modify(text.replace("4111", "****")),
        })
        .unwrap();
    let mut ears = Ears::of(&pintle);
    let turn = turn(&pintle);
    let refused = turn.begin("swear", InputKind::First).await;
    assert!(matches!(refused, Err(Stop::Refused(refusal)) if refusal.text.contains("say it kindly")));
    assert_eq!(turn.begin("card 4111", InputKind::Followup).await.unwrap().prompt, "card ****");
    turn.end("");
    let heard = ears.until("turn_end").await;
    let RuntimeEvent::TurnStart { user_message, .. } = event(&heard[1]) else { panic!("{heard:?}") };
    assert_eq!((heard.len(), user_message.as_str()), (3, "card ****"));
}

#[tokio::test]
async fn hooks_change_and_stop_what_goes_to_a_model_and_comes_from_it() {
    let pintle = open();
    pintle
        .hook("router", "", |at: &BeforeLlm| match at.request.model.as_str() {
            "stop" => Verdict::abort_turn("no model"),
            "empty" => Verdict::Modify(pintle::checkpoint::before_llm::LlmPatch {
                messages: Some(Vec::new()),
                ..Default::default()
            }),
            _ => Verdict::Modify(pintle::checkpoint::before_llm::LlmPatch {
                model: Some("cheap".to_owned()),
                ..Default::default()
            }),
        })
        .unwrap();
    pintle
        .hook("censor", "", |at: &AfterLlm| match at.response.content.as_str() {
            "bad" => Verdict::abort_turn("bad answer"),
            text => Verdict::Modify(pintle::llm::LlmReply::text(text.replace("secret", "***"))),
        })
        .unwrap();
    let first = turn(&pintle);
    let done = first.model(request("p"), async |sent| {
        assert_eq!(sent.model, "cheap");
        Ok::<_, String>(reply("a secret"))
    });
    let done = done.await.unwrap();
    assert_eq!((done.reply.content.as_str(), done.model.as_str()), ("a ***", "cheap"));
    let own = first.model(request("p"), async |_| Err::<pintle::llm::LlmReply, _>("offline")).await;
    assert!(matches!(own, Err(Stop::Own("offline"))));
    let never = async |_| -> Result<pintle::llm::LlmReply, String> { panic!("it was sent") };
    let empty = pintle::llm::LlmRequest { model: "empty".into(), ..request("p") };
    let Err(Stop::Refused(refusal)) = first.model(empty, never).await else { panic!("it was sent") };
    assert_eq!(refusal.text, "the request has no messages left after `before_llm`");
    let stop = pintle::llm::LlmRequest { model: "stop".into(), ..request("p") };
    assert!(matches!(first.model(stop, never).await, Err(Stop::Aborted(_))));
    // Nothing more happens in a turn that was stopped.
    assert!(matches!(first.model(request("p"), never).await, Err(Stop::Aborted(_))));
    assert!(matches!(first.call(refund("c"), &Till::default()).await, Err(Stop::Aborted(_))));
    assert!(matches!(first.begin("p", InputKind::Steering).await, Err(Stop::Aborted(_))));
    let second = turn(&pintle);
    let bad = second.model(request("p"), async |_| Ok::<_, String>(reply("bad"))).await;
    assert!(matches!(bad, Err(Stop::Aborted(aborted)) if aborted.text().contains("bad answer")));
}

#[tokio::test]
async fn each_stage_of_a_call_can_stop_it_and_nothing_later_is_asked() {
    /// A host whose only hook is at one stage, and what a call of it comes to.
    async fn check<C: pintle::Stage>(hook: impl HookAt<C>) -> (String, usize, Vec<&'static str>) {
        let pintle = Pintle::open(memory(), &TOOLS).unwrap();
        pintle.hook("h", "refund", hook).unwrap();
        let mut ears = Ears::of(&pintle);
        let after = Arc::new(Mutex::new(0));
        let seen = after.clone();
        pintle
            .hook("z", "", move |_: &AfterTool| {
                *seen.lock().unwrap() += 1;
                Verdict::Continue
            })
            .unwrap();
        let (till, turn) = (Till::default(), turn(&pintle));
        let _begun = turn.begin("p", InputKind::Followup).await.unwrap();
        let came = match turn.call(refund("c1"), &till).await {
            Ok(done) => format!("done {}", done.output.for_llm),
            Err(Stop::Refused(refusal)) => format!("refused {} ran {}", refusal.text, refusal.ran),
            Err(Stop::Aborted(aborted)) => {
                let next = turn.call(Call::new("c2", "lookup", [("a", 1)]), &till).await;
                assert!(matches!(next, Err(Stop::Aborted(_))), "an abort stops what comes after it");
                format!("aborted {}", aborted.text())
            }
            Err(other) => panic!("{other:?}"),
        };
        let asked_after = *after.lock().unwrap();
        assert!(asked_after <= till.runs(), "a call that did not run has no result");
        turn.end("all is well");
        (came, till.runs(), ears.names_until("turn_end").await)
    }
    let skipped = ["turn_start", "tool_exec_skipped", "turn_end"];
    let denied = "refused Tool execution denied by hook: no (hook \"h\") ran false".to_owned();
    assert_eq!(check(|_: &BeforeTool| Verdict::deny("no")).await, (denied, 0, skipped.to_vec()));
    let denied = "refused Hook blocked: pre_tool_use: h: no ran false".to_owned();
    assert_eq!(check(|_: &PreToolUse| Verdict::deny("no")).await, (denied, 0, skipped.to_vec()));
    let denied = "refused Tool execution denied by approval hook: no (hook \"h\") ran false".to_owned();
    assert_eq!(check(|_: &ApproveTool| Verdict::deny("no")).await, (denied, 0, skipped.to_vec()));
    // What a hook stopped ends as it ordered, whatever the loop says.
    let stopped = ["turn_start", "error", "turn_end"];
    let aborted = "aborted hook aborted turn during before_tool: no".to_owned();
    assert_eq!(check(|_: &BeforeTool| Verdict::abort_turn("no")).await, (aborted, 0, stopped.to_vec()));
    let stopped = ["turn_start", "interrupt_received", "turn_end"];
    let aborted = "aborted hook \"h\" stopped the run: no".to_owned();
    assert_eq!(check(|_: &BeforeTool| Verdict::hard_abort("no")).await, (aborted, 0, stopped.to_vec()));
    let ran = ["turn_start", "tool_exec_start", "tool_exec_end", "post_tool_use", "error", "turn_end"];
    let aborted = "aborted hook aborted turn during after_tool: no".to_owned();
    assert_eq!(check(|_: &AfterTool| Verdict::abort_turn("no")).await, (aborted, 1, ran.to_vec()));
    let ran = ["turn_start", "tool_exec_start", "tool_exec_end", "post_tool_use", "turn_end"];
    let changed = check(|_: &AfterTool| Verdict::Modify(Output::ok("changed"))).await;
    assert_eq!(changed, ("done changed".to_owned(), 1, ran.to_vec()));
}

#[tokio::test]
async fn hooks_and_observers_see_the_call_that_ran_and_not_what_a_gate_took_out() {
    let pintle = open();
    pintle
        .hook("mask", "refund", |at: &PreToolUse| {
            let mut left: Object = at.call.arguments.clone();
            match left.insert("key".to_owned(), "***".into()) {
                Some(key) if key.as_str() == Some("***") => Verdict::Continue,
                Some(_) | None => Verdict::Modify(left),
            }
        })
        .unwrap();
    let seen: Arc<Mutex<Vec<Call>>> = Arc::default();
    let see = seen.clone();
    pintle
        .hook("after", "", move |at: &AfterTool| {
            see.lock().unwrap().push(at.call.clone());
            Verdict::Continue
        })
        .unwrap();
    let mut ears = Ears::of(&pintle);
    let (till, turn) = (Till::default(), turn(&pintle));
    let done = turn.call(Call::new("c1", "refund", [("key", "sk-1234")]), &till).await.unwrap();
    assert_eq!((done.rewritten, done.call.text("key")), (true, Some("***")));
    assert_eq!(*seen.lock().unwrap(), *till.ran.lock().unwrap());
    let heard = ears.until("post_tool_use").await;
    assert!(heard.iter().all(|notice| notice.who.tool_call_id.as_ref().is_some_and(|id| id.as_str() == "c1")));
    let after = format!("{heard:?} {:?}", seen.lock().unwrap());
    assert!(!after.contains("sk-1234"), "{after}");
}

#[tokio::test]
async fn the_model_reads_the_notes_of_gates() {
    struct Noting;

    impl HookAt<UserPromptSubmit> for Noting {
        fn answer<'a>(&'a self, _cx: &'a HookCx<'a>, _at: &'a UserPromptSubmit) -> Fut<'a, Verdict<UserPromptSubmit>> {
            Box::pin(async { Verdict::Continue })
        }
    }

    let pintle = open();
    pintle.hook("noting", "", Noting).unwrap();
    let begun = turn(&pintle).begin("p", InputKind::First).await.unwrap();
    assert_eq!((begun.prompt.as_str(), begun.notes.len()), ("p", 0), "a native hook leaves no notes");
}
