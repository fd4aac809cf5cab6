//! Single requests, to the letter.

use pintle_domain::json::json;
use pintle_domain::ledger::{HostPrompt, InjectionPoint, Ledger};
use pintle_domain::skill::{SkillHook, Skills, Timing, Voice};

use super::super::*;
use super::wires::{Wire, wires};
use crate::capabilities::CapabilityTable;

fn hook(name: &str, timing: Timing, role: Voice) -> SkillHook {
    SkillHook {
        skill: "s".into(),
        name: name.into(),
        content: name.into(),
        timing,
        role,
        persistent: false,
        tool_filter: Vec::new(),
    }
}

/// The lists of trace A: planned, and two rounds of the loop.
fn trace() -> Vec<(CallKind, Vec<Rendered<Message>>)> {
    let skills = Skills::new(vec![
        SkillHook { persistent: true, ..hook("tone", Timing::AfterUserInput, Voice::System) },
        hook("plan-tip", Timing::BeforePlanning, Voice::System),
        hook("goal", Timing::BeforeFirstAgent, Voice::System),
        hook("check", Timing::BeforeEachAgent, Voice::User),
        hook("trunc", Timing::AfterToolCall, Voice::System),
    ]);
    let say = |role, text: &str| Rendered::new(Message::text(role, text));
    let (mut list, mut ledger) = (vec![say(Role::System, "S0"), say(Role::User, "U1")], Ledger::new(skills));
    let at = |timing, round| InjectionPoint { timing, round, first_call: round, call: None };
    ledger.inject(&mut list, at(Timing::AfterUserInput, 0));
    ledger.inject(&mut list, at(Timing::BeforePlanning, 0));
    let plan = ledger.inject_prompt(&mut list, (HostPrompt::PlanningPrompt, "PLAN"), 0);
    let mut calls = vec![(CallKind::Planning, list.clone())];
    ledger.remove_prompt(&mut list, plan);
    ledger.remove(&mut list, Timing::BeforePlanning);
    list.push(say(Role::Assistant, "P0"));
    ledger.inject(&mut list, at(Timing::BeforeEachAgent, 1));
    ledger.inject(&mut list, at(Timing::BeforeFirstAgent, 1));
    let step = ledger.inject_prompt(&mut list, (HostPrompt::FirstStepPrompt, "FIRST"), 1);
    calls.push((CallKind::Loop, list.clone()));
    let parts = vec![pintle_domain::message::CallPart::new("c1", "read", "{}")];
    list.push(Message { tool_calls: parts, ..Message::text(Role::Assistant, "A1") }.into());
    list.push(Message::tool("c1", "T1").into());
    ledger.inject(&mut list, at(Timing::AfterToolCall, 1));
    ledger.remove_prompt(&mut list, step);
    ledger.remove(&mut list, Timing::BeforeEachAgent);
    ledger.inject(&mut list, at(Timing::BeforeEachAgent, 2));
    ledger.inject_prompt(&mut list, (HostPrompt::AgentLoopPrompt, "LOOP"), 2);
    calls.push((CallKind::Loop, list));
    calls
}

/// Each message of each request on a line; `|` stands behind the one that the next call begins with.
fn sent(wire: &Wire) -> String {
    let kept = TurnWire::default();
    let mut text = String::new();
    for (kind, list) in trace() {
        let how = wire.how(kind, &kept);
        let lowered = lowered(&list, &how);
        let boundary = lowered.boundary;
        for (at, one) in lowered.spoken.iter().enumerate() {
            let (mark, end) = (if one.marked { "*" } else { "" }, if boundary == Some(at) { " |" } else { "" });
            let content = one.message.content.replace('\n', "/").replace("system-reminder", "r");
            text.push_str(&format!("{:?}{mark} {content}{end}; ", one.message.role));
        }
        text.push('\n');
    }
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

fn of(provider: &str, model: &str) -> Capabilities {
    CapabilityTable::shipped().of(provider, model)
}

#[test]
fn a_trace_as_each_model_takes_it() {
    insta::assert_snapshot!(sent(&Wire::OpenAi(of("openai", "gpt-5"))), @r#"
    System S0; User U1; System tone |; System plan-tip; System PLAN;
    System S0; User U1; System tone; Assistant P0 |; User check; System goal; System FIRST;
    System S0; User U1; System tone; Assistant P0; System goal; Assistant A1; Tool T1 |; System trunc; User check; System LOOP;
    "#);
    insta::assert_snapshot!(sent(&Wire::Anthropic(of("anthropic", "claude-opus-5"))), @r#"
    User U1 |; System tone//plan-tip//PLAN;
    User U1; System tone; Assistant P0 |; User check; User <r>/goal/</r>; User <r>/FIRST/</r>;
    User U1; System tone; Assistant P0; User <r>/goal/</r>; Assistant A1; Tool T1 |; User <r>/trunc/</r>; User check; System LOOP;
    "#);
    insta::assert_snapshot!(sent(&Wire::OpenAi(of("local", "m"))), @r#"
    System S0; User U1; User <r>/tone/</r> |; User <r>/plan-tip/</r>; User <r>/PLAN/</r>;
    System S0; User U1; User <r>/tone/</r>; Assistant P0 |; User check; User <r>/goal/</r>; User <r>/FIRST/</r>;
    System S0; User U1; User <r>/tone/</r>; Assistant P0; User <r>/goal/</r>; Assistant A1; Tool T1 |; User <r>/trunc/</r>; User check; User <r>/LOOP/</r>;
    "#);
    insta::assert_snapshot!(sent(&Wire::OpenAi(Capabilities::default())), @r#"
    System S0; User U1; User <r>/tone/</r> |; User <r>/plan-tip/</r>; User <r>/PLAN/</r>;
    System S0; User U1; User <r>/tone/</r>; Assistant P0 |; User check; User <r>/goal/</r>; User <r>/FIRST/</r>;
    System S0; User U1; User <r>/tone/</r>; Assistant P0; User <r>/goal/</r>; Assistant A1 |; Tool T1//<r>/trunc/</r>//check//<r>/LOOP/</r>;
    "#);
    let bound = Capabilities { prefix_bound_reasoning: true, ..of("anthropic", "claude-opus-5") };
    insta::assert_snapshot!(sent(&Wire::Anthropic(Capabilities { turn_scoped: "fades".into(), ..bound.clone() })), @r#"
    User U1 |; System tone//plan-tip//PLAN;
    User U1; System tone; Assistant P0; User* check; User <r>/goal/</r>; User* <r>/FIRST/</r> |;
    User U1; System tone; Assistant P0; User* check; User <r>/goal/</r>; User* <r>/FIRST/</r>; Assistant A1; Tool T1; User* <r>/trunc/</r>; User* check; System* LOOP |;
    "#);
    insta::assert_snapshot!(sent(&Wire::Anthropic(bound)), @r#"
    User U1 |; System tone//plan-tip//PLAN;
    User U1; System tone; Assistant P0; User check; User <r>/goal/</r>; User <r>/FIRST/</r> |;
    User U1; System tone; Assistant P0; User check; User <r>/goal/</r>; User <r>/FIRST/</r>; Assistant A1; Tool T1; User <r>/trunc/</r>; User check; User <r>/LOOP/</r> |;
    "#);
}

#[test]
fn a_breakpoint_stands_where_the_next_call_goes_on() {
    let wire = Wire::Anthropic(of("anthropic", "claude-opus-5"));
    let kept = TurnWire::default();
    let bodies: Vec<String> = trace()
        .iter()
        .map(|(kind, list)| {
            let sent = wire.send(list, &wire.how(*kind, &kept));
            let blocks = sent.messages.iter().filter_map(|message| message["content"].as_array()).flatten();
            let marked = blocks.filter(|block| block["cache_control"] == json!({"type": "ephemeral"}));
            marked
                .map(|block| block.get("text").or(block.get("content")).cloned().unwrap_or_default().to_string())
                .collect()
        })
        .collect();
    let before = "\"<system-reminder>\\ngoal\\n</system-reminder>\"";
    assert_eq!(bodies, ["\"U1\"", "\"P0\"", &format!("{before}\"T1\"")]);
}

#[test]
fn an_expiring_text_carries_the_marker_of_its_provider() {
    let local = Capabilities { turn_scoped: "fades".into(), prefix_bound_reasoning: true, ..of("local", "m") };
    for wire in [Wire::OpenAi(local.clone()), Wire::BySchema(local)] {
        let kept = TurnWire::default();
        let (kind, list) = trace().remove(1);
        let sent = wire.send(&list, &wire.how(kind, &kept));
        let last = sent.messages.last().expect("there are messages");
        let expected = json!([
            {"type": "text", "text": "check", "fades": true},
            {"type": "text", "text": "<system-reminder>\ngoal\n</system-reminder>"},
            {"type": "text", "text": "<system-reminder>\nFIRST\n</system-reminder>", "fades": true},
        ]);
        assert_eq!(last["content"], expected);
        let fate = |at: usize| kept.fate(list[at].get().id().expect("the text of a hook"));
        use pintle_domain::ledger::RemovalEffect as Fate;
        assert_eq!([fate(2), fate(4), fate(5), fate(6)], [Fate::Frozen, Fate::Expired, Fate::Frozen, Fate::Expired]);
    }
}

#[test]
fn what_changes_before_a_thought_takes_it_away_and_nothing_is_lost() {
    let bound = Capabilities { prefix_bound_reasoning: true, ..of("anthropic", "claude-haiku-4-5") };
    let (wire, kept) = (Wire::Anthropic(bound), TurnWire::default());
    let mut list: Vec<Rendered<Message>> =
        vec![Message::text(Role::System, "S0").into(), Message::text(Role::User, "U1").into()];
    let send =
        |list: &Vec<_>| serde_json::to_string(&wire.send(list, &wire.how(CallKind::Loop, &kept)).messages).unwrap();
    send(&list);
    let thought = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let parts = vec![pintle_domain::message::CallPart::new("c1", "read", "{}")];
    let private = pintle_domain::message::ProviderData::of(vec![thought, json!({"type": "tool_use", "id": "c1"})]);
    list.push(Message { tool_calls: parts, private, ..Message::text(Role::Assistant, "") }.into());
    list.push(Message::tool("c1", "T1").into());
    assert!(send(&list).contains("thinking"));
    list[1] = Message::text(Role::User, "a summary").into();
    let after = send(&list);
    assert!(!after.contains("thinking") && after.contains("a summary") && after.contains("T1"), "{after}");
    // A turn that is taken up by another process knows of no request before it.
    let fresh = TurnWire::default();
    let again = wire.send(&list, &wire.how(CallKind::Loop, &fresh));
    assert!(!serde_json::to_string(&again.messages).unwrap().contains("thinking"));
}

#[test]
fn there_is_a_wire_of_every_sort() {
    let of = |wire: &Wire| match wire {
        Wire::Anthropic(_) => 0,
        Wire::OpenAi(_) => 1,
        Wire::BySchema(_) => 2,
    };
    let sorts: std::collections::BTreeSet<(i32, bool, bool)> = wires()
        .iter()
        .map(|wire| (of(wire), wire.capabilities().prefix_bound_reasoning, wire.capabilities().alternation))
        .collect();
    assert_eq!(sorts.len(), 7, "{sorts:?}");
}
