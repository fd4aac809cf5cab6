//! Texts of skills in whole turns: what each call of the model sees, who is told, and what is kept.

use std::sync::{Arc, Mutex};

use pintle_agent::driver::TurnEnding;
use pintle_agent::{
    Conversation, OnMissingTag, Planning, SkillSet, TextRequest, ToolNeedJudge, TurnHandle, TurnReport, UserOutput,
};
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::json::{Value, json};
use pintle_domain::ledger::HookChunk;
use pintle_domain::llm::{LlmReply, ToolDef};
use pintle_domain::planning::{StepPrompts, ToolNeed};
use pintle_domain::record::{EventRecord, HookOutcome, NotRun};
use pintle_domain::skill::{SkillHook, Skills, Timing, Voice};
use pintle_domain::tool::ToolOutput;
use pintle_domain::verdict::{Verdict, VerdictKind};
use pintle_store::Memory;

use crate::hooks::{OwnTool, Rule};
use crate::host::{Host, Parts, lines};

pub(crate) fn hook(skill: &str, name: &str, timing: Timing) -> SkillHook {
    SkillHook {
        skill: skill.into(),
        name: name.into(),
        content: name.into(),
        timing,
        role: Voice::System,
        persistent: false,
        tool_filter: Vec::new(),
    }
}

/// The skills alpha and beta.
pub(crate) fn skills() -> Skills {
    Skills::new(vec![
        SkillHook { persistent: true, ..hook("alpha", "tone", Timing::AfterUserInput) },
        hook("alpha", "plan-tip", Timing::BeforePlanning),
        hook("alpha", "goal", Timing::BeforeFirstAgent),
        SkillHook { role: Voice::User, ..hook("beta", "check", Timing::BeforeEachAgent) },
        SkillHook { tool_filter: vec!["read_file".into()], ..hook("beta", "trunc", Timing::AfterToolCall) },
        hook("beta", "cite", Timing::AfterToolCall),
    ])
}

pub(crate) fn planning() -> Planning {
    let prompts = StepPrompts { planning: "PLAN".into(), first_step: "FIRST".into(), agent_loop: "LOOP".into() };
    Planning { prompts, ..Planning::default() }
}

/// A host whose agent has tools and the texts of `skills`, and whose model plays `replies`.
pub(crate) fn host(replies: Value, skills: Skills, planning: Option<Planning>) -> Host {
    let mut parts = Parts::of(replies);
    parts.settings.system = "S0".into();
    parts.settings.planning = planning;
    let file = OwnTool::giving("read_file", ToolOutput::ok("T1"));
    let mut host = parts.own(file).own(OwnTool::giving("web_fetch", ToolOutput::ok("T2"))).host();
    host.runner = host.runner.with_skills(Arc::new(SkillSet::new(skills)));
    host
}

/// A turn that passes every point at which texts go in.
pub(crate) async fn every_point() -> Host {
    let mut host = host(trace_a(), skills(), Some(planning()));
    host.turn("U1").await;
    host
}

pub(crate) fn asks(id: &str, tool: &str) -> Value {
    json!({"tool_calls": [{"id": id, "name": tool, "arguments": {}}]})
}

pub(crate) fn trace_a() -> Value {
    json!([{"text": ["P0 <nee", "d_tool", "/>"]}, asks("c1", "read_file"), asks("c2", "web_fetch"), {"text": "A3"}])
}

const A1: &str = "assistant: [c1=read_file({})]";
const A2: &str = "assistant: [c2=web_fetch({})]";

/// A front end: everything that it hears, in order.
#[derive(Default)]
struct Front(Mutex<Vec<String>>);

impl Front {
    fn heard(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl UserOutput for Front {
    fn streams(&self) -> bool {
        true
    }

    fn delta(&self, text: &str) {
        self.0.lock().unwrap().push(text.to_owned());
    }

    fn answered(&self) {
        self.0.lock().unwrap().push("|".into());
    }

    fn for_user(&self, _text: &str) {}

    fn hook(&self, chunk: &HookChunk, _sig: &str) -> bool {
        self.0.lock().unwrap().push(format!("{} {}/{} {}", chunk.id, chunk.skill, chunk.name, chunk.content));
        true
    }
}

async fn turn(host: &mut Host, front: &Arc<Front>, request: impl Into<TextRequest<'_>>) -> TurnReport {
    host.runner.turn(&mut host.conversation, request, front.clone(), &TurnHandle::default()).await
}

/// What became of hooks, one line each, in order.
pub(crate) fn evidence(host: &Host) -> Vec<String> {
    let records = host.seen.records.lock().unwrap();
    let skills = records.iter().filter(|event| event.checkpoint.duty() == pintle_domain::checkpoint::Duty::Injector);
    skills.flat_map(told).collect()
}

fn told(event: &EventRecord) -> Vec<String> {
    let call = event.who.tool_call_id.as_ref().map_or(String::new(), |call| format!(" {call}"));
    let at = format!("{} {}{call}", event.kind.unwrap_or(event.checkpoint.name()), event.who.iteration);
    if event.hooks.is_empty() {
        return vec![format!("{at} {}", event.ruling.text.as_deref().unwrap_or_default())];
    }
    let said = |outcome: &HookOutcome| match outcome {
        HookOutcome::Said { word: VerdictKind::Inject, reason, .. } => reason.clone().unwrap_or_default(),
        HookOutcome::NotRun(NotRun::Disabled) => "disabled".into(),
        HookOutcome::NotRun(NotRun::Matcher { pattern, value }) => format!("{value} is not {pattern}"),
        HookOutcome::Said { .. } | HookOutcome::Failed { .. } | HookOutcome::Told | HookOutcome::NotRun(_) => {
            format!("{outcome:?}")
        }
    };
    event.hooks.iter().map(|record| format!("{at} {} {}", record.hook, said(&record.outcome))).collect()
}

#[tokio::test]
async fn a_planned_turn_asks_with_exactly_the_published_lists() {
    let mut host = host(trace_a(), skills(), Some(planning()));
    let front = Arc::new(Front::default());
    let report = turn(&mut host, &front, "U1").await;
    assert_eq!((report.reply.as_str(), report.ending), ("A3", TurnEnding::Completed));
    let begins = ["system: S0", "user: U1", "system: tone"];
    let request = |n: usize, rest: &[&str]| {
        assert_eq!(host.asked(n), begins.iter().chain(rest).map(|line| (*line).to_owned()).collect::<Vec<_>>());
    };
    request(0, &["system: plan-tip", "system: PLAN"]);
    request(1, &["assistant: P0", "user: check", "system: goal", "system: FIRST"]);
    let loops = ["assistant: P0", "system: goal", A1, "c1: T1"];
    request(2, &[&loops[..], &["system: trunc", "system: cite", "user: check", "system: LOOP"]].concat());
    request(3, &[&loops[..], &[A2, "c2: T2", "system: cite", "user: check", "system: LOOP"]].concat());
    // No tool is offered to a plan.
    assert_eq!((0..4).map(|n| host.model.request(n).tools.len()).collect::<Vec<_>>(), [0, 2, 2, 2]);
    // What stays is what was said, and what was announced.
    assert_eq!(host.said(), ["user: U1", "system: tone", "assistant: P0", A1, "c1: T1", A2, "c2: T2", "assistant: A3"]);
    assert!(host.is_valid());
    // No tag leaks, however it is cut; the frame comes before the call.
    assert_eq!(front.heard(), ["#1 alpha/tone tone", "P0 ", "|", "A3", "|"]);
    let rounds: Vec<String> = host.seen.stamps().into_iter().filter(|stamp| stamp.starts_with("llm_request")).collect();
    assert_eq!(rounds, ["llm_request 0 -", "llm_request 1 -", "llm_request 2 -", "llm_request 3 -"]);
    assert_eq!(host.seen.payloads("turn_end")[0]["Iterations"], 3);
}

#[tokio::test]
async fn every_text_leaves_its_evidence() {
    let host = every_point().await;
    let cost = |id: u32, role: &str, bytes: usize, call: &str| {
        let tokens = if bytes > 4 { "2 tokens" } else { "1 token" };
        format!("#{id} as {role}, {bytes} bytes, about {tokens}, from {call} on")
    };
    assert_eq!(
        evidence(&host)[..16],
        [
            format!("after_user_input 0 skill:alpha/tone {}", cost(1, "system", 4, "the planning call")),
            format!("before_planning 0 skill:alpha/plan-tip {}", cost(2, "system", 8, "the planning call")),
            "prompt_injected 0 planning_prompt, 4 bytes, about 1 token".into(),
            "hook_persisted 0 skill:alpha/tone #1 no front end".into(),
            "prompt_removed 1 planning_prompt, #3 taken out, seen by the planning call".into(),
            "hook_removed 1 skill:alpha/plan-tip #2 taken out, seen by the planning call".into(),
            format!("before_each_agent 1 skill:beta/check {}", cost(4, "user", 5, "call 1")),
            format!("before_first_agent 1 skill:alpha/goal {}", cost(5, "system", 4, "call 1")),
            "prompt_injected 1 first_step_prompt, 5 bytes, about 2 tokens".into(),
            format!("after_tool_call 1 c1 skill:beta/trunc {}", cost(7, "system", 5, "call 2")),
            format!("after_tool_call 1 c1 skill:beta/cite {}", cost(8, "system", 4, "call 2")),
            "prompt_removed 2 first_step_prompt, #6 taken out, seen by call 1".into(),
            "hook_removed 2 skill:beta/check #4 taken out, seen by call 1".into(),
            format!("before_each_agent 2 skill:beta/check {}", cost(9, "user", 5, "call 2")),
            "prompt_injected 2 agent_loop_prompt, 4 bytes, about 1 token".into(),
            "hook_removed 3 skill:beta/trunc #7 taken out, seen by call 2".into(),
        ]
    );
    let all = evidence(&host).join("\n");
    assert!(all.contains("after_tool_call 2 c2 skill:beta/trunc web_fetch is not read_file"), "{all}");
    assert!(all.ends_with("hook_removed 3 skill:beta/cite #11 taken out, seen by call 3"), "{all}");
    assert!(all.contains("skill:alpha/goal #5 taken out, seen by call 1 to call 3"), "{all}");
    let records = host.seen.records.lock().unwrap();
    assert!(records.iter().flat_map(|event| &event.hooks).all(|it| it.family == pintle_domain::hook::Family::Skill));
}

#[tokio::test]
async fn a_plan_says_whether_tools_are_needed() {
    let check = async |reply: Value, planning: Planning, said: &[&str], calls: usize| {
        let mut host = host(json!([reply, {"text": "done"}]), Skills::none(), Some(planning));
        let report = host.turn("U1").await;
        assert_eq!((report.ending, host.model.count()), (TurnEnding::Completed, calls));
        assert_eq!(host.said()[1..], *said);
        let missing = evidence(&host).iter().filter(|line| line.starts_with("plan_tag_missing")).count();
        (missing, host.seen.deltas.lock().unwrap().clone())
    };
    let text = |text: &str| json!({"text": text});
    let none = (0, "hello".to_owned());
    assert_eq!(check(text("hello<no_tool/>"), planning(), &["assistant: hello"], 1).await, none);
    let both = check(text("<no_tool/>P0<need_tool>"), planning(), &["assistant: P0", "assistant: done"], 2).await;
    assert_eq!(both, (0, "P0done".into()));
    assert_eq!(check(text("hello"), planning(), &["assistant: hello"], 1).await, (1, "hello".into()));
    let loops = || Planning { on_missing_tag: OnMissingTag::Loop, ..planning() };
    assert_eq!(check(text("P0"), loops(), &["assistant: P0", "assistant: done"], 2).await, (1, "P0done".into()));
    // A plan that is not to be kept is shown all the same, and an empty one is nothing.
    let forgets = || Planning { record: false, ..planning() };
    assert_eq!(check(text("P0<need_tool/>"), forgets(), &["assistant: done"], 2).await, (0, "P0done".into()));
    assert_eq!(check(text("<need_tool/>"), planning(), &["assistant: done"], 2).await, (0, "done".into()));
    assert_eq!(check(text("hello<no_tool/>"), forgets(), &["assistant: hello"], 1).await, none);
    // A call that nobody offered is a yes; it does not run.
    assert_eq!(check(asks("c1", "read_file"), planning(), &["assistant: done"], 2).await, (0, "done".into()));
}

/// Says that no plan needs a tool.
struct Never;

impl ToolNeedJudge for Never {
    fn need(&self, _reply: &LlmReply) -> ToolNeed {
        ToolNeed::Nothing
    }
}

#[tokio::test]
async fn who_decides_reads_what_the_hooks_left_and_may_be_another() {
    let mut host = host(json!([{"text": "P0<need_tool/>"}, {"text": "done"}]), Skills::none(), Some(planning()));
    let rule = Rule {
        after_llm: Some(Box::new(|at| {
            Verdict::Modify(LlmReply::text(at.response.content.replace("<need_tool/>", "<no_tool/>")))
        })),
        ..Rule::default()
    };
    host.mount(vec![host.engine.native("h", 0, Arc::new(rule))]);
    assert_eq!(host.turn("U1").await.reply, "P0");
    let mut other = super::skills::host(json!([{"text": "P0<need_tool/>"}]), Skills::none(), Some(planning()));
    other.runner = other.runner.with_need_tool(Arc::new(Never));
    assert_eq!(other.turn("U1").await.reply, "P0");
}

#[tokio::test]
async fn without_tools_there_is_one_call_and_what_hooks_offer_it_is_dropped() {
    let rule = || Rule {
        before_llm: Some(Box::new(|at| {
            let weather = ToolDef::new("weather", "the sky", json!({"type": "object"}));
            let tools = at.request.tools.iter().cloned().chain([weather.into()]).collect();
            Verdict::Modify(pintle_domain::checkpoint::LlmPatch { tools: Some(tools), ..Default::default() })
        })),
        ..Rule::default()
    };
    let dropped = |host: &Host| -> Vec<String> {
        let records = host.seen.records.lock().unwrap();
        records.iter().filter(|event| event.hooks.is_empty()).filter_map(|event| event.ruling.text.clone()).collect()
    };
    for planning in [None, Some(planning())] {
        let mut host = host(json!([{"text": "hello"}]), skills(), planning);
        host.mount(vec![host.engine.native("h", 0, Arc::new(rule()))]);
        let front = Arc::new(Front::default());
        turn(&mut host, &front, TextRequest { enable_tools: false, ..TextRequest::from("U1") }).await;
        assert_eq!(host.asked(0), ["system: S0", "user: U1", "system: tone"]);
        assert_eq!((host.model.count(), host.model.request(0).tools.len()), (1, 0));
        assert_eq!(dropped(&host), ["this call offers no tools; dropped: weather"]);
    }
    // The same with tools: the planning call offers none, and a later one offers what the hook brought.
    let mut host = host(json!([{"text": "<need_tool/>"}, {"text": "hello"}]), Skills::none(), Some(planning()));
    host.mount(vec![host.engine.native("h", 0, Arc::new(rule()))]);
    host.turn("U1").await;
    assert_eq!((host.model.request(0).tools.len(), host.model.request(1).tools.len()), (0, 3));
}

#[tokio::test]
async fn a_conversation_keeps_what_was_announced_and_the_next_turn_adds_to_it() {
    let store = Arc::new(Memory::new());
    let replies = json!([{"text": "one"}, {"text": "two"}, {"text": "three"}]);
    let mut host = host(replies, skills(), None);
    host.conversation = Conversation::open(store.clone(), "s").unwrap();
    let front = Arc::new(Front::default());
    turn(&mut host, &front, "U1").await;
    assert_eq!(front.heard(), ["#1 alpha/tone tone", "one", "|"]);
    // Another process goes on with it.
    host.conversation = Conversation::new("nothing");
    host.conversation = Conversation::open(store.clone(), "s").unwrap();
    assert_eq!(host.said(), ["user: U1", "system: tone", "assistant: one"]);
    turn(&mut host, &front, "U2").await;
    let second = ["system: S0", "user: U1", "system: tone", "assistant: one", "user: U2", "system: tone"];
    assert_eq!(host.asked(1)[..6], second);
    assert_eq!(front.heard(), ["#1 alpha/tone tone", "two", "|"]);
    // A request narrows; it cannot ask for what the agent has not.
    let wanted = ["beta".to_owned(), "gamma".to_owned()];
    turn(&mut host, &front, TextRequest { skills: Some(&wanted), ..TextRequest::from("U3") }).await;
    assert_eq!(front.heard(), ["three", "|"]);
    let third = [&second[..], &["assistant: two", "user: U3", "user: check"]].concat();
    assert_eq!(host.asked(2), third);
    assert!(evidence(&host).contains(&"after_user_input 0 skill:alpha/tone disabled".to_owned()));
    drop(host);
    let kept = Conversation::open(store, "s").unwrap();
    let lines = lines(kept.messages());
    assert_eq!(lines.iter().filter(|line| *line == "system: tone").count(), 2, "{lines:?}");
    assert!(!lines.iter().any(|line| line.ends_with("check") || line.ends_with("goal")), "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_tried_again_sees_the_same_list_and_announces_nothing_again() {
    let busy = json!({"error": {"kind": "server_error", "message": "busy"}});
    let mut host = host(json!([busy, {"text": "done"}]), skills(), None);
    let front = Arc::new(Front::default());
    turn(&mut host, &front, "U1").await;
    assert_eq!((host.asked(0), host.model.count()), (host.asked(1), 2));
    assert_eq!(front.heard(), ["#1 alpha/tone tone", "done", "|"]);
}

#[tokio::test]
async fn hooks_see_the_texts_and_change_them_for_one_call_only() {
    let mut host = host(json!([asks("c1", "web_fetch"), {"text": "done"}]), skills(), None);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let kept = seen.clone();
    let rule = Rule {
        before_llm: Some(Box::new(move |at| {
            let messages = at.request.messages.clone();
            kept.lock().unwrap().push(lines(&messages).join(", "));
            let messages = messages.into_iter().filter(|message| message.get().content != "goal").collect();
            Verdict::Modify(pintle_domain::checkpoint::LlmPatch { messages: Some(messages), ..Default::default() })
        })),
        ..Rule::default()
    };
    host.mount(vec![host.engine.native("h", 0, Arc::new(rule))]);
    host.turn("U1").await;
    let seen = seen.lock().unwrap();
    assert_eq!(seen[0], "system: S0, user: U1, system: tone, user: check, system: goal");
    // It is there again for the second call, which is about its own list.
    let list = "system: S0, user: U1, system: tone, system: goal, assistant: [c1=web_fetch({})], c1: T2";
    assert_eq!(seen[1], format!("{list}, system: cite, user: check"));
    assert_eq!(host.asked(0), ["system: S0", "user: U1", "system: tone", "user: check"]);
}

#[tokio::test]
async fn what_is_told_to_a_model_for_a_while_gets_into_no_summary() {
    let replies = json!([
        {"when": {"anywhere": "Summarise the following"}, "text": "in short"},
        {"when": {"anywhere": "U1"}, "text": "x".repeat(4000)},
        {"when": {"anywhere": "in short"}, "text": "done"},
    ]);
    let stay = |name: &str, persistent| SkillHook {
        content: format!("{name} {}", "y".repeat(40)),
        persistent,
        ..hook("alpha", name, Timing::AfterUserInput)
    };
    let mut host = host(replies, Skills::new(vec![stay("for-now", false), stay("for-good", true)]), None);
    let mut settings = host.runner.settings().clone();
    settings.context_tokens = 1200;
    let skill_set = Arc::new(SkillSet::new(Skills::new(vec![stay("for-now", false), stay("for-good", true)])));
    host.remake(settings);
    host.runner = host.runner.with_skills(skill_set);
    host.turn("U1").await;
    host.turn(&"U2 ".repeat(100)).await;
    let summary = (0..host.model.count()).map(|n| host.asked(n).join("\n")).find(|it| it.contains("Summarise"));
    let summary = summary.expect("the conversation is too long");
    assert!(summary.contains("for-good") && !summary.contains("for-now"), "{summary}");
    let last = host.asked(host.model.count() - 1).join("\n");
    assert!(last.contains("in short") && last.contains("for-now"), "{last}");
}

#[tokio::test]
async fn a_turn_keeps_the_texts_that_it_began_with() {
    let skill_set = Arc::new(SkillSet::new(skills()));
    let other = skill_set.clone();
    let swap = OwnTool::new(
        "swap",
        false,
        Box::new(move |_, _| {
            other.put(Skills::none());
            Box::pin(std::future::ready(ToolOutput::ok("swapped")))
        }),
    );
    let mut host = Parts::of(json!([asks("c1", "swap"), {"text": "done"}, {"text": "plain"}])).own(swap).host();
    host.runner = host.runner.with_skills(skill_set);
    host.turn("U1").await;
    assert_eq!(host.asked(1)[2], "system: goal");
    host.turn("U2").await;
    assert_eq!(host.asked(2)[host.asked(2).len() - 1], "user: U2");
    assert!(evidence(&host).len() > 2);
}

#[tokio::test]
async fn a_refused_message_makes_no_list() {
    let mut host = host(json!([{"text": "never"}]), skills(), None);
    let gate = Rule { prompt: Some(Box::new(|_| Verdict::deny("no"))), ..Rule::default() };
    host.mount(vec![host.engine.native("gate", 0, Arc::new(gate))]);
    let front = Arc::new(Front::default());
    turn(&mut host, &front, "U1").await;
    assert_eq!((front.heard().len(), evidence(&host).len(), host.model.count()), (0, 0, 0));
    assert!(host.seen.records.lock().unwrap().iter().all(|it| it.checkpoint == CheckpointKind::UserPromptSubmit));
}
