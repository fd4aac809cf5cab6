//! What happens to texts when something comes between.

use super::*;
use crate::ledger::tests::{skills, written};
use crate::ledger::{MessageSource, Provenance};
use crate::skill::{SkillHook, Timing};

fn persistent(timing: Timing) -> Skills {
    let all = skills();
    let hooks = all.hooks.iter().filter(|hook| hook.timing == timing).cloned();
    Skills::new(hooks.map(|hook| SkillHook { persistent: true, ..hook }).collect())
}

#[test]
fn an_abort_puts_nothing_in_and_announces_nothing() {
    let mut turn = equipped(persistent(Timing::AfterToolCall), TurnFlow::Direct, ToolUse::Own);
    assert_eq!(step(&mut turn), "model 1");
    turn.apply(asks(1, &["read_file", "read_file"]));
    turn.answered(0, ModelAnswer::not_run("T1").about("read_file"));
    turn.end(TurnEnd::failed("hook.after_tool", "stopped"));
    assert_eq!(step(&mut turn), "end Error hook.after_tool: stopped");
    assert!(turn.to_announce().is_empty());
    assert_eq!(written(&turn.into_messages()), "S0 U1 A1 T1 stopped");
}

#[test]
fn a_call_that_was_passed_over_is_about_nothing() {
    let mut turn = equipped(skills(), TurnFlow::Direct, ToolUse::Own);
    assert_eq!(step(&mut turn), "model 1");
    turn.apply(asks(1, &["read_file", "read_file"]));
    turn.answered(0, ModelAnswer::not_run("T1").about("read_file"));
    turn.apply(says("wait"));
    report(&mut turn, "skip 1: queued user steering message");
    report(&mut turn, "inject wait");
    assert_eq!(step(&mut turn), "model 2");
    assert_eq!(
        written(turn.messages()),
        "S0 U1 tone#1 goal#3 A1 T1 Skipped due to queued user message. trunc#4 cite#5 wait check#6"
    );
    let steering = turn.messages().iter().find(|message| message.get().content == "wait").unwrap();
    assert_eq!(steering.get().provenance(), Provenance::new(MessageSource::Steering, 2));
}

#[test]
fn filters_see_the_canonical_name_and_the_one_that_the_model_wrote_once_a_call() {
    let hook = SkillHook {
        tool_filter: vec!["read_file".into(), "Read".into()],
        ..skills().hooks.iter().find(|hook| hook.name == "trunc").unwrap().clone()
    };
    let check = |raw: &str, canonical: &str, fires: bool| {
        let mut turn = equipped(Skills::new(vec![hook.clone()]), TurnFlow::Direct, ToolUse::Own);
        assert_eq!(step(&mut turn), "model 1");
        turn.apply(asks(1, &[raw]));
        answer_all(&mut turn, &[(canonical, "T1")]);
        assert_eq!(step(&mut turn), "model 2");
        let expected = if fires { "S0 U1 A1 T1 trunc#1" } else { "S0 U1 A1 T1" };
        assert_eq!(written(turn.messages()), expected, "{raw} {canonical}");
    };
    check("Read", "read_file", true);
    check("read", "read_file", true);
    check("Read", "other", true);
    check("READ_FILE", "Read_file", false);
    check("read_files", "read", false);
}

#[test]
fn an_interrupt_before_the_plan_goes_straight_to_the_last_words() {
    let mut turn = equipped(skills(), planned(), ToolUse::Own);
    turn.apply(Fact::Interrupted);
    assert_eq!(step(&mut turn), "model 1 last");
    assert_eq!(written(turn.messages()), "S0 U1 tone#1 check#2 goal#3 FIRST#4");
    turn.apply(asks(1, &[]));
    assert_eq!(step(&mut turn), "end Completed \"A1\"");
    let mut turn = equipped(skills(), planned(), ToolUse::Own);
    assert_eq!(step(&mut turn), "plan");
    turn.apply(Fact::Interrupted);
    turn.apply(plans("P0", true));
    assert_eq!(step(&mut turn), "model 1 last");
}

#[test]
fn the_limit_counts_rounds_and_not_the_plan() {
    let history = vec![Message::text(Role::System, "S0").into()];
    let mut turn = Turn::new(history, Message::text(Role::User, "U1"), 1);
    let with = TurnSetup { skills: skills(), flow: planned(), tools: ToolUse::Own };
    turn.apply(Fact::Equipped { with: Box::new(with) });
    assert_eq!(step(&mut turn), "plan");
    turn.apply(plans("", true));
    assert_eq!(step(&mut turn), "model 1");
    turn.apply(asks(1, &["read_file"]));
    answer_all(&mut turn, &[("read_file", "T1")]);
    assert_eq!(step(&mut turn), "model 2 last");
    turn.replied(LlmReply::text("A2"), "m", |_| false);
    assert_eq!(step(&mut turn), "end Error llm: iteration limit 1 reached");
    assert_eq!(written(&turn.into_messages()), "S0 U1 tone A1 T1 A2");
}

#[test]
fn delivered_results_end_the_turn_and_close_the_loop() {
    let mut turn = equipped(skills(), TurnFlow::Direct, ToolUse::Own);
    assert_eq!(step(&mut turn), "model 1");
    turn.apply(asks(1, &["read_file"]));
    turn.answered(0, ModelAnswer { handled: true, ..ModelAnswer::not_run("T1").about("read_file") });
    assert_eq!(step(&mut turn), "end Completed \"\"");
    assert_eq!(written(turn.messages()), format!("S0 U1 tone#1 check#2 A1 T1 {DELIVERED}"));
}

#[test]
fn a_compaction_takes_what_was_said_and_leaves_texts_whose_time_is_not_over() {
    let mut hooks = skills().hooks.to_vec();
    let tone = SkillHook { persistent: false, ..hooks.remove(0) };
    hooks.push(SkillHook { name: "stay".into(), content: "stay".into(), ..tone.clone() });
    hooks.push(SkillHook { name: "kept".into(), content: "kept".into(), persistent: true, ..tone });
    let mut turn = equipped(Skills::new(hooks), planned(), ToolUse::Own);
    assert_eq!(step(&mut turn), "plan");
    turn.apply(plans("P0", true));
    assert_eq!(step(&mut turn), "model 1");
    turn.apply(asks(1, &["read_file"]));
    answer_all(&mut turn, &[("read_file", "T1")]);
    assert_eq!(step(&mut turn), "model 2");
    let before = "S0 U1 stay#1 kept#2 P0 goal#6 A1 T1 trunc#8 cite#9 check#10 LOOP#11";
    assert_eq!(written(turn.messages()), before);
    turn.apply(Fact::Compacted { upto: 6, summary: Some(Message::text(Role::User, "SUM").into()) });
    assert_eq!(written(turn.messages()), "SUM stay#1 goal#6 A1 T1 trunc#8 cite#9 check#10 LOOP#11");
    turn.apply(asks(2, &[]));
    assert_eq!(written(&turn.into_messages()), "SUM A1 T1 A2");
}

#[test]
fn a_turn_that_was_killed_after_a_compaction_goes_on_with_the_same_list() {
    let mut turn = equipped(skills(), planned(), ToolUse::Own);
    // Nobody asked this one for its step: its journal says that a compaction came before the answer.
    turn.apply(plans("P0", true));
    turn.apply(Fact::Compacted { upto: 1, summary: Some(Message::text(Role::User, "SUM").into()) });
    turn.apply(says("more"));
    report(&mut turn, "inject more");
    assert_eq!(step(&mut turn), "model 1");
    assert_eq!(written(turn.messages()), "SUM U1 tone#1 P0 check#4 goal#5 more FIRST#6");
}

#[test]
fn a_roll_back_leaves_nothing_and_equipment_comes_first_or_never() {
    let mut turn = equipped(skills(), TurnFlow::Direct, ToolUse::Own);
    let with = TurnSetup { skills: skills(), flow: planned(), tools: ToolUse::Own };
    turn.apply(Fact::Equipped { with: Box::new(with) });
    assert_eq!(written(turn.messages()), "S0 U1 tone#1");
    assert_eq!(step(&mut turn), "model 1");
    turn.end(TurnEnd::hard_aborted());
    assert_eq!(written(&turn.into_messages()), "S0");
    let mut plain = super::super::turn(2);
    plain.apply(plans("P0", true));
    plain.apply(Fact::Announced { upto: MsgId::default() });
    assert_eq!((plain.messages().len(), plain.tool_use(), plain.skills()), (2, None, None));
}

#[test]
fn what_hooks_said_in_one_turn_is_history_in_the_next() {
    let mut turn = equipped(skills(), TurnFlow::Direct, ToolUse::Own);
    assert_eq!(step(&mut turn), "model 1");
    turn.apply(asks(1, &[]));
    let history = turn.into_messages();
    let tone = history[2].get().provenance();
    assert_eq!((tone.origin, tone.hook.as_deref(), tone.msg_id), (MessageSource::HookHistory, Some("tone"), None));
    let mut next = Turn::new(history.clone(), Message::text(Role::User, "U2"), 9);
    let with = TurnSetup { skills: skills(), flow: TurnFlow::Direct, tools: ToolUse::Own };
    next.apply(Fact::Equipped { with: Box::new(with) });
    assert_eq!(written(next.messages()), "S0 U1 tone A1 U2 tone#1");
    // With the skill off the old copy stays, and nothing goes in.
    let mut off = Turn::new(history, Message::text(Role::User, "U2"), 9);
    let with = TurnSetup { skills: skills().narrowed(&[]), flow: TurnFlow::Direct, tools: ToolUse::Own };
    off.apply(Fact::Equipped { with: Box::new(with) });
    assert_eq!(step(&mut off), "model 1");
    assert_eq!(written(off.messages()), "S0 U1 tone A1 U2");
}
