//! What texts of skills mean for everything beside them: tools that count for nothing, hooks that bring tools, sub-agents.

use std::sync::{Arc, Mutex};

use pintle_agent::driver::TurnEnding;
use pintle_agent::{Conversation, Planning, SkillSet, TurnHandle, UserOutput};
use pintle_domain::checkpoint::LlmPatch;
use pintle_domain::json::json;
use pintle_domain::ledger::HookChunk;
use pintle_domain::llm::{LlmReply, ToolDef};
use pintle_domain::skill::{SkillHook, Skills, Timing};
use pintle_domain::tool::ToolOutput;
use pintle_domain::verdict::Verdict;

use crate::hooks::{OwnTool, Rule};
use crate::host::{Host, Parts};
use crate::skills::{asks, evidence, hook, host, planning, skills};
use crate::test_agents::{Mind, TestAgents, TestAgentsParts, after_tools, hands, said};

/// A front end that keeps what it is told of.
#[derive(Default)]
struct Keeps(Mutex<Vec<String>>);

impl UserOutput for Keeps {
    fn streams(&self) -> bool {
        false
    }

    fn delta(&self, _text: &str) {}

    fn for_user(&self, _text: &str) {}

    fn hook(&self, chunk: &HookChunk, _sig: &str) -> bool {
        self.0.lock().unwrap().push(format!("{}/{}", chunk.skill, chunk.name));
        true
    }
}

/// A hook that brings the tool `weather`.
fn brings_weather() -> Rule {
    Rule {
        before_llm: Some(Box::new(|at| {
            let weather = ToolDef::new("weather", "the sky", json!({"type": "object"}));
            let tools = at.request.tools.iter().cloned().chain([weather.into()]).collect();
            Verdict::Modify(LlmPatch { tools: Some(tools), ..Default::default() })
        })),
        ..Rule::default()
    }
}

/// What the host says of tools that went no further.
fn dropped(host: &Host) -> Vec<String> {
    let records = host.seen.records.lock().unwrap();
    let of_the_host = records.iter().filter(|event| event.hooks.is_empty() && !event.ruling.stops());
    let texts = of_the_host.filter_map(|event| event.ruling.text.clone());
    texts.filter(|text| text.contains("dropped")).collect()
}

#[tokio::test]
async fn what_a_hook_brings_to_a_plan_is_dropped_and_recorded() {
    let mut host = host(json!([{"text": "<need_tool/>"}, {"text": "hello"}]), Skills::none(), Some(planning()));
    host.mount(vec![host.engine.native("sky", 0, Arc::new(brings_weather()))]);
    assert_eq!(host.turn("U1").await.ending, TurnEnding::Completed);
    assert_eq!(dropped(&host), ["this call offers no tools; dropped: weather"]);
    assert_eq!((0..2).map(|n| host.model.request(n).tools.len()).collect::<Vec<_>>(), [0, 3]);
}

#[tokio::test]
async fn a_tool_that_reads_skills_makes_no_loop_but_a_call_of_it_begins_one() {
    let check = async |planning: Option<Planning>, rest: &[&str]| {
        let mut parts = Parts::of(json!([asks("c1", "load_skill"), {"text": "done"}]));
        parts.settings.system = "S0".into();
        parts.settings.planning = planning;
        let mut host = parts.own(OwnTool::giving("load_skill", ToolOutput::ok("body"))).host();
        host.runner = host.runner.with_skills(Arc::new(SkillSet::new(skills())));
        assert_eq!(host.turn("U1").await.ending, TurnEnding::Completed);
        // No plan, no prompt and no text of the loop: there are no tools that would make one.
        let begins = ["system: S0", "user: U1", "system: tone"];
        assert_eq!(host.asked(0), begins);
        assert_eq!(host.model.request(0).tools.len(), 1);
        let call = ["assistant: [c1=load_skill({})]", "c1: body", "system: cite"];
        assert_eq!(host.asked(1), [&begins[..], &call, rest].concat());
        assert_eq!(host.model.count(), 2);
    };
    check(None, &["user: check", "system: goal"]).await;
    check(Some(planning()), &["user: check", "system: goal", "system: FIRST"]).await;
}

#[tokio::test]
async fn a_tool_that_a_hook_brings_to_a_single_call_begins_the_loop() {
    let mut parts = Parts::of(json!([asks("c1", "weather"), {"text": "done"}]));
    parts.settings.system = "S0".into();
    let mut host = parts.host();
    host.runner = host.runner.with_skills(Arc::new(SkillSet::new(skills())));
    host.mount(vec![host.engine.native("sky", 0, Arc::new(brings_weather()))]);
    assert_eq!(host.turn("U1").await.ending, TurnEnding::Completed);
    assert_eq!(host.asked(0), ["system: S0", "user: U1", "system: tone"]);
    // It was answered, though nobody ran it: the texts that are about every tool go in.
    let call = ["assistant: [c1=weather({})]", "c1: tool \"weather\" not found"];
    let begins = ["system: S0", "user: U1", "system: tone"];
    let rest = ["system: cite", "user: check", "system: goal"];
    assert_eq!(host.asked(1), [&begins[..], &call, &rest].concat());
}

#[tokio::test]
async fn a_failed_call_puts_nothing_more_in_and_keeps_what_was_told() {
    let broken = json!({"error": {"kind": "final", "message": "broken"}});
    let stays = SkillHook { persistent: true, ..hook("beta", "again", Timing::BeforeEachAgent) };
    let hooks: Vec<SkillHook> = skills().hooks.iter().cloned().chain([stays]).collect();
    let mut host = host(json!([asks("c1", "read_file"), broken]), Skills::new(hooks), None);
    let front = Arc::new(Keeps::default());
    let report = host.runner.turn(&mut host.conversation, "U1", front.clone(), &TurnHandle::default()).await;
    assert!(matches!(report.ending, TurnEnding::Failed { .. }), "{:?}", report.ending);
    // One copy for each call that was made, none for the end.
    assert_eq!(*front.0.lock().unwrap(), ["alpha/tone", "beta/again", "beta/again"]);
    let told = evidence(&host).into_iter().filter(|line| line.starts_with("hook_persisted")).collect::<Vec<_>>();
    assert_eq!(told.len(), 3);
    assert!(told.iter().all(|line| line.ends_with(" sent")), "{told:?}");
    // The list may be kept: nothing is left in it whose time was over.
    let read = "assistant: [c1=read_file({})]";
    assert_eq!(host.said(), ["user: U1", "system: tone", "system: again", read, "c1: T1", "system: again"]);
}

/// Two agents with the same texts, of which `main` hands a task to `helper`.
fn test_agents() -> TestAgents {
    let model = Mind::quick(|model, request| match (model, after_tools(request)) {
        ("main", _) if request.messages.iter().all(|message| message.get().tool_calls.is_empty()) => {
            hands("delegate", "helper", "find it")
        }
        ("main", _) => LlmReply::text("done"),
        _ => LlmReply::text("found it"),
    });
    let tone = SkillHook { persistent: true, ..hook("alpha", "tone", Timing::AfterUserInput) };
    let own = SkillHook { tool_filter: vec!["delegate".into()], ..hook("alpha", "own", Timing::AfterToolCall) };
    TestAgentsParts { skills: Skills::new(vec![tone, own]), ..TestAgentsParts::of(model, &["main", "helper"]) }
        .test_agents()
}

#[tokio::test]
async fn a_sub_agent_has_its_own_texts_and_tells_nobody_of_them() {
    let test_agents = test_agents();
    let front = Arc::new(Keeps::default());
    let mut conversation = Conversation::new("s");
    let report = test_agents.main().turn(&mut conversation, "go", front.clone(), &TurnHandle::default()).await;
    assert_eq!((report.ending, report.reply.as_str()), (TurnEnding::Completed, "done"));
    assert_eq!(*front.0.lock().unwrap(), ["alpha/tone"]);
    let lists: Vec<Vec<String>> = (0..3).map(|n| crate::host::lines(&test_agents.model.request(n).messages)).collect();
    assert_eq!(lists[1], ["user: find it", "system: tone"], "its own copy, and nothing of its parent's turn");
    assert_eq!(lists[2].iter().filter(|line| *line == "system: tone").count(), 1);
    assert_eq!(lists[2].last().map(String::as_str), Some("system: own"));
    assert_eq!(said(&conversation)[1], "system: tone");
    // What stays is recorded for both, told to one.
    let records = test_agents.seen.records.lock().unwrap();
    let told = records.iter().filter(|event| event.kind == Some("hook_persisted")).map(|event| {
        let line = event.hooks.iter().next().expect("it is about a hook");
        format!("{} {:?}", event.who.agent_id, line.outcome)
    });
    let told: Vec<String> = told.collect();
    assert!(told.len() == 2 && told[0].starts_with("main") && told[0].contains("#1 sent"), "{told:?}");
    assert!(told[1].starts_with("helper") && told[1].contains("no front end"), "{told:?}");
}
