//! The published traces, as the turn plays them.

use super::*;
use crate::ledger::tests::{skills, written};

/// The next call has this list; `stable` is the last message that the call after it sees at the same place.
fn calls(turn: &mut Turn, expected: &str, list: &str, stable: &str) {
    assert_eq!(step(turn), expected);
    assert_eq!(written(turn.messages()), list);
    let passing = |message: &Rendered<Message>| message.get().private.lifetime == Lifetime::Passing;
    let prefix: Vec<Rendered<Message>> =
        turn.messages().iter().take_while(|message| !passing(message)).cloned().collect();
    assert!(written(&prefix).ends_with(stable), "{list}");
}

fn announced(turn: &mut Turn) -> Vec<String> {
    let names: Vec<String> = turn.to_announce().iter().map(|chunk| chunk.name.clone()).collect();
    if let Some(last) = turn.to_announce().last() {
        let upto = last.id;
        turn.apply(Fact::Announced { upto });
    }
    names
}

#[test]
fn trace_a_planned() {
    let mut turn = equipped(skills(), planned(), ToolUse::Own);
    assert_eq!(written(turn.messages()), "S0 U1 tone#1");
    assert_eq!(announced(&mut turn), ["tone"]);
    calls(&mut turn, "plan", "S0 U1 tone#1 plan-tip#2 PLAN#3", "tone#1");
    turn.apply(plans("P0", true));
    assert_eq!(written(turn.messages()), "S0 U1 tone#1 P0");
    calls(&mut turn, "model 1", "S0 U1 tone#1 P0 check#4 goal#5 FIRST#6", "P0");
    turn.apply(asks(1, &["read_file"]));
    answer_all(&mut turn, &[("read_file", "T1")]);
    calls(&mut turn, "model 2", "S0 U1 tone#1 P0 goal#5 A1 T1 trunc#7 cite#8 check#9 LOOP#10", "T1");
    turn.apply(asks(2, &["web_fetch"]));
    answer_all(&mut turn, &[("web_fetch", "T2")]);
    calls(&mut turn, "model 3", "S0 U1 tone#1 P0 goal#5 A1 T1 A2 T2 cite#11 check#12 LOOP#13", "T2");
    turn.apply(asks(3, &[]));
    assert_eq!(written(turn.messages()), "S0 U1 tone#1 P0 A1 T1 A2 T2 check#12 A3");
    assert_eq!(step(&mut turn), "end Completed \"A3\"");
    assert!(announced(&mut turn).is_empty());
    assert_eq!(written(&turn.into_messages()), "S0 U1 tone P0 A1 T1 A2 T2 A3");
}

#[test]
fn trace_a_direct() {
    let mut turn = equipped(skills(), TurnFlow::Direct, ToolUse::Own);
    calls(&mut turn, "model 1", "S0 U1 tone#1 check#2 goal#3", "tone#1");
    turn.apply(asks(1, &["read_file"]));
    answer_all(&mut turn, &[("read_file", "T1")]);
    calls(&mut turn, "model 2", "S0 U1 tone#1 goal#3 A1 T1 trunc#4 cite#5 check#6", "T1");
    turn.apply(asks(2, &["web_fetch"]));
    answer_all(&mut turn, &[("web_fetch", "T2")]);
    calls(&mut turn, "model 3", "S0 U1 tone#1 goal#3 A1 T1 A2 T2 cite#7 check#8", "T2");
}

#[test]
fn trace_b_parallel_calls_in_whatever_order_they_end() {
    let mut turn = equipped(skills(), planned(), ToolUse::Own);
    calls(&mut turn, "plan", "S0 U1 tone#1 plan-tip#2 PLAN#3", "tone#1");
    turn.apply(plans("P0", true));
    calls(&mut turn, "model 1", "S0 U1 tone#1 P0 check#4 goal#5 FIRST#6", "P0");
    turn.apply(asks(1, &["read_file", "web_fetch", "read_file"]));
    answer_all(&mut turn, &[("read_file", "T(c1)"), ("web_fetch", "T(c2)"), ("read_file", "T(c3)")]);
    calls(
        &mut turn,
        "model 2",
        "S0 U1 tone#1 P0 goal#5 A1 T(c1) T(c2) T(c3) trunc#7 cite#8 cite#9 trunc#10 cite#11 check#12 LOOP#13",
        "T(c3)",
    );
}

#[test]
fn a_single_call_has_the_first_texts_only_and_its_tools_begin_the_loop() {
    let mut turn = equipped(skills(), planned(), ToolUse::None);
    calls(&mut turn, "model 1", "S0 U1 tone#1", "tone#1");
    turn.apply(asks(1, &["load_skill"]));
    answer_all(&mut turn, &[("load_skill", "T1")]);
    calls(&mut turn, "model 2", "S0 U1 tone#1 A1 T1 cite#2 check#3 goal#4 FIRST#5", "T1");
    turn.apply(asks(2, &[]));
    assert_eq!(step(&mut turn), "end Completed \"A2\"");
}

#[test]
fn a_plan_that_needs_no_tool_is_the_answer() {
    let mut turn = equipped(skills(), planned(), ToolUse::Own);
    assert_eq!(step(&mut turn), "plan");
    turn.apply(plans("hello", false));
    assert_eq!(step(&mut turn), "end Completed \"hello\"");
    assert_eq!(written(&turn.into_messages()), "S0 U1 tone hello");
}
