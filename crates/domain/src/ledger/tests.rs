//! What stands in a list, step by step.

use super::*;

/// The hooks of the skills alpha and beta: name, timing, whether persistent.
pub(crate) fn skills() -> Skills {
    let hook = |skill: &str, name: &str, timing| SkillHook {
        skill: skill.into(),
        name: name.into(),
        content: name.into(),
        timing,
        role: Voice::System,
        persistent: false,
        tool_filter: Vec::new(),
    };
    Skills::new(vec![
        SkillHook { persistent: true, ..hook("alpha", "tone", Timing::AfterUserInput) },
        hook("alpha", "plan-tip", Timing::BeforePlanning),
        hook("alpha", "goal", Timing::BeforeFirstAgent),
        SkillHook { role: Voice::User, ..hook("beta", "check", Timing::BeforeEachAgent) },
        SkillHook {
            tool_filter: vec!["read_file".into(), "search_text".into()],
            ..hook("beta", "trunc", Timing::AfterToolCall)
        },
        hook("beta", "cite", Timing::AfterToolCall),
    ])
}

/// The list as traces write it: what a ledger put in with its number.
pub(crate) fn written(list: &[Rendered<Message>]) -> String {
    let one = |message: &Rendered<Message>| {
        let message = message.get();
        format!("{}{}", message.content, message.id().map(|id| id.to_string()).unwrap_or_default())
    };
    list.iter().map(one).collect::<Vec<_>>().join(" ")
}

struct Trace {
    list: MessageList,
    ledger: Ledger,
    frames: Vec<String>,
}

impl Trace {
    fn new() -> Self {
        let list = vec![text(Role::System, "S0"), text(Role::User, "U1")];
        Self { list, ledger: Ledger::new(skills()), frames: Vec::new() }
    }

    fn says(&mut self, expected: &str) {
        assert_eq!(written(&self.list), expected);
    }

    fn inject(&mut self, timing: Timing) {
        let at = InjectionPoint { timing, round: 1, first_call: 1, call: None };
        self.frames.extend(self.ledger.inject(&mut self.list, at).into_iter().map(|chunk| chunk.name));
    }

    fn after(&mut self, id: &str, tool: &str) {
        let names = [tool];
        let call = Some(CalledTool { id, names: &names });
        let at = InjectionPoint { timing: Timing::AfterToolCall, round: 1, first_call: 2, call };
        assert!(self.ledger.inject(&mut self.list, at).is_empty());
    }

    fn remove(&mut self, timing: Timing) {
        self.ledger.remove(&mut self.list, timing);
    }

    fn prompt(&mut self, which: HostPrompt, text: &str) -> Option<MsgId> {
        self.ledger.inject_prompt(&mut self.list, (which, text), 1)
    }

    fn push(&mut self, role: Role, content: &str) {
        self.list.push(text(role, content));
    }
}

fn text(role: Role, content: &str) -> Rendered<Message> {
    Message::text(role, content).into()
}

#[test]
fn trace_a_to_the_letter() {
    let mut at = Trace::new();
    at.inject(Timing::AfterUserInput);
    at.says("S0 U1 tone#1");
    assert_eq!(at.frames, ["tone"]);
    at.inject(Timing::BeforePlanning);
    let plan = at.prompt(HostPrompt::PlanningPrompt, "PLAN");
    at.says("S0 U1 tone#1 plan-tip#2 PLAN#3");
    at.ledger.remove_prompt(&mut at.list, plan);
    at.remove(Timing::BeforePlanning);
    at.push(Role::Assistant, "P0");
    at.says("S0 U1 tone#1 P0");
    at.remove(Timing::BeforeEachAgent);
    at.inject(Timing::BeforeEachAgent);
    at.inject(Timing::BeforeFirstAgent);
    let step = at.prompt(HostPrompt::FirstStepPrompt, "FIRST");
    at.says("S0 U1 tone#1 P0 check#4 goal#5 FIRST#6");
    at.push(Role::Assistant, "A1");
    at.push(Role::Tool, "T1");
    at.remove(Timing::AfterToolCall);
    at.after("c1", "read_file");
    at.says("S0 U1 tone#1 P0 check#4 goal#5 FIRST#6 A1 T1 trunc#7 cite#8");
    at.ledger.remove_prompt(&mut at.list, step);
    at.says("S0 U1 tone#1 P0 check#4 goal#5 A1 T1 trunc#7 cite#8");
    at.remove(Timing::BeforeEachAgent);
    at.inject(Timing::BeforeEachAgent);
    let step = at.prompt(HostPrompt::AgentLoopPrompt, "LOOP");
    at.says("S0 U1 tone#1 P0 goal#5 A1 T1 trunc#7 cite#8 check#9 LOOP#10");
    at.push(Role::Assistant, "A2");
    at.push(Role::Tool, "T2");
    at.remove(Timing::AfterToolCall);
    at.after("c2", "web_fetch");
    at.says("S0 U1 tone#1 P0 goal#5 A1 T1 check#9 LOOP#10 A2 T2 cite#11");
    at.ledger.remove_prompt(&mut at.list, step);
    at.remove(Timing::BeforeEachAgent);
    at.inject(Timing::BeforeEachAgent);
    let step = at.prompt(HostPrompt::AgentLoopPrompt, "LOOP");
    at.says("S0 U1 tone#1 P0 goal#5 A1 T1 A2 T2 cite#11 check#12 LOOP#13");
    at.ledger.remove_prompt(&mut at.list, step);
    at.push(Role::Assistant, "A3");
    at.remove(Timing::BeforeFirstAgent);
    at.remove(Timing::AfterToolCall);
    at.says("S0 U1 tone#1 P0 A1 T1 A2 T2 check#12 A3");
    at.ledger.finalize(&mut at.list);
    at.says("S0 U1 tone#1 P0 A1 T1 A2 T2 A3");
}

#[test]
fn what_goes_is_known_by_identity_and_not_by_content() {
    let mut at = Trace::new();
    at.push(Role::User, "check");
    at.push(Role::System, "STEP");
    at.inject(Timing::BeforeEachAgent);
    let step = at.prompt(HostPrompt::FirstStepPrompt, "STEP");
    at.push(Role::User, "check");
    at.says("S0 U1 check STEP check#1 STEP#2 check");
    at.remove(Timing::BeforeEachAgent);
    at.ledger.remove_prompt(&mut at.list, step);
    at.says("S0 U1 check STEP check");
    // What is gone is gone, and an empty prompt has no place.
    at.remove(Timing::BeforeEachAgent);
    at.ledger.remove_prompt(&mut at.list, step);
    assert_eq!(at.prompt(HostPrompt::FirstStepPrompt, ""), None);
    at.ledger.remove_prompt(&mut at.list, None);
    at.says("S0 U1 check STEP check");
    at.inject(Timing::BeforeEachAgent);
    at.list.clear();
    at.remove(Timing::BeforeEachAgent);
    at.says("");
}

#[test]
fn persistent_texts_stay_whatever_happens_and_come_again_each_time() {
    let mut hooks = skills().hooks.to_vec();
    hooks.iter_mut().for_each(|hook| hook.persistent = true);
    let mut at = Trace { ledger: Ledger::new(Skills::new(hooks)), ..Trace::new() };
    for _ in 0..2 {
        at.remove(Timing::BeforeEachAgent);
        at.inject(Timing::BeforeEachAgent);
    }
    at.remove(Timing::BeforeEachAgent);
    at.ledger.finalize(&mut at.list);
    at.says("S0 U1 check#1 check#2");
    assert_eq!(at.frames, ["check", "check"]);
    assert!(at.list.iter().all(|message| message.get().private.lifetime == Lifetime::Stays));
}

#[test]
fn every_hook_of_a_point_leaves_one_line_with_what_it_cost_and_who_saw_it() {
    let skills = skills().narrowed(&["beta".into()]);
    let mut at = Trace { ledger: Ledger::new(skills.clone()), ..Trace::new() };
    at.inject(Timing::AfterUserInput);
    at.after("c1", "web_fetch");
    at.ledger.called(2);
    at.ledger.called(3);
    at.prompt(HostPrompt::AgentLoopPrompt, "go on");
    at.ledger.finalize(&mut at.list);
    at.says("S0 U1");
    let told: Vec<String> = at.ledger.take_events().iter().flat_map(|event| lines(event, &skills)).collect();
    assert_eq!(
        told,
        [
            "hook_injected after_user_input skill:alpha/tone disabled",
            "hook_injected after_tool_call skill:beta/trunc web_fetch is none of read_file, search_text",
            "hook_injected after_tool_call skill:beta/cite #1 as system, 4 bytes, about 1 token, from call 2 on",
            "prompt_injected before_each_agent agent_loop_prompt, 5 bytes, about 2 tokens",
            "hook_removed after_tool_call skill:beta/cite #1 taken out, seen by call 2 to call 3",
            "prompt_removed before_each_agent agent_loop_prompt, #2 taken out, seen by no call",
        ]
    );
    assert!(at.ledger.take_events().is_empty());
}

#[test]
fn what_became_of_a_text_on_the_wire_stands_in_its_line() {
    let mut at = Trace::new();
    at.after("c1", "read_file");
    at.prompt(HostPrompt::AgentLoopPrompt, "go on");
    at.ledger.called(2);
    at.ledger.finalize(&mut at.list);
    let mut events = at.ledger.take_events();
    let wires = [RemovalEffect::Frozen, RemovalEffect::Expired, RemovalEffect::Removed];
    let fate = |id: MsgId| wires[id.to_string()[1..].parse::<usize>().unwrap() - 1];
    events.iter_mut().for_each(|event| event.settle(fate));
    let told: Vec<String> = events[2..].iter().flat_map(|event| lines(event, &skills())).collect();
    assert_eq!(
        told,
        [
            "hook_removed after_tool_call skill:beta/trunc #1 taken out, seen by call 2; frozen on the wire",
            "hook_removed after_tool_call skill:beta/cite #2 taken out, seen by call 2; expired on the wire",
            "prompt_removed before_each_agent agent_loop_prompt, #3 taken out, seen by call 2",
        ]
    );
}

#[test]
fn a_point_names_the_texts_that_were_in_force_also_where_none_went_in() {
    let skills = skills().narrowed(&[]);
    let mut at = Trace { ledger: Ledger::new(skills.clone()), ..Trace::new() };
    at.inject(Timing::AfterUserInput);
    at.inject(Timing::BeforePlanning);
    at.ledger.finalize(&mut at.list);
    let texts: Vec<_> = at.ledger.take_events().iter().map(|event| event.text(&skills)).collect();
    assert_eq!(texts, vec![Some(format!("snapshot {}", self::skills().hash)); 2]);
}

fn lines(event: &LedgerEvent, skills: &Skills) -> Vec<String> {
    use crate::record::{HookOutcome, NotRun};
    let (at, records) = event.records(skills);
    let said = |outcome: &HookOutcome| match outcome {
        HookOutcome::Said { word: crate::verdict::VerdictKind::Inject, reason, .. } => {
            reason.clone().unwrap_or_default()
        }
        HookOutcome::NotRun(NotRun::Disabled) => "disabled".into(),
        HookOutcome::NotRun(NotRun::Matcher { pattern, value }) => format!("{value} is none of {pattern}"),
        HookOutcome::Said { .. } | HookOutcome::Failed { .. } | HookOutcome::Told | HookOutcome::NotRun(_) => {
            format!("{outcome:?}")
        }
    };
    let hooks = records.iter().map(|record| {
        assert_eq!((record.family, record.checkpoint), (crate::hook::Family::Skill, at));
        format!("{} {} {} {}", event.name(), at.name(), record.hook, said(&record.outcome))
    });
    let own = event.text(skills).filter(|_| !event.name().starts_with("hook_"));
    hooks.chain(own.map(|text| format!("{} {} {text}", event.name(), at.name()))).collect()
}

#[test]
fn where_a_message_comes_from_stands_beside_it() {
    let mut at = Trace::new();
    at.inject(Timing::AfterUserInput);
    at.after("c1", "read_file");
    at.prompt(HostPrompt::PlanningPrompt, "PLAN");
    let from = |at: &Trace, n: usize| crate::json::json!(at.list[n].get().provenance());
    let hash = skills().hash;
    assert_eq!(from(&at, 0), crate::json::json!({"origin": "builtin", "round": 0}));
    assert_eq!(from(&at, 1), crate::json::json!({"origin": "user", "round": 0}));
    assert_eq!(
        from(&at, 3),
        crate::json::json!({"origin": "hook", "msg_id": 2, "skill": "beta", "hook": "trunc", "timing": "after_tool_call",
            "round": 1, "tool_call_id": "c1", "snapshot_hash": hash})
    );
    assert_eq!(
        from(&at, 5),
        crate::json::json!({"origin": "builtin", "msg_id": 4, "prompt": "planning_prompt", "round": 1})
    );
    // Nothing of it is in the message.
    assert_eq!(crate::json::json!(at.list[3]), crate::json::json!({"role": "system", "content": "trunc"}));
}
