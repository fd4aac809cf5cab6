//! What a hook that gave no answer comes to.

use super::*;
use crate::fault::ProtocolBreach;

/// Every fault with its phrase, as process-hooks.md 6 spells them.
fn faults() -> Vec<(Fault, &'static str)> {
    let limit = 67_108_864;
    vec![
        (Fault::TimedOut { after: Duration::from_secs(5) }, "timed out after 5000 ms"),
        (Fault::Protocol(ProtocolBreach::Returned("boom".into())), "returned an error"),
        (Fault::broke("unknown action"), "broke the protocol"),
        (Fault::Protocol(ProtocolBreach::Threw("Error: x".into())), "threw an error"),
        (Fault::Unreadable { cause: "line 1".into() }, "sent an unreadable reply"),
        (Fault::TooLarge { way: Direction::Reply, limit }, "sent a reply above 67108864 bytes"),
        (Fault::TooLarge { way: Direction::Call, limit }, "cannot take a call above 67108864 bytes"),
        (Fault::CannotStart { cause: "no such file".into() }, "could not start"),
        (Fault::exited(3), "exited with status 3"),
        (Fault::killed(9), "was killed by signal 9"),
        (Fault::Panicked, "panicked"),
        (Fault::Cancelled, "was cancelled"),
        (Fault::ConditionFailed { cause: "no key".into() }, "could not evaluate its condition"),
        (Fault::Unavailable { cause: "no store".into() }, "is unavailable"),
    ]
}

/// What `fault` of the one hook `h` comes to, and what the record says it became.
fn faulted<C: Says>(hook: Hook, subject: C, fault: Fault) -> (String, VerdictKind) {
    let script = Script::default().fails("h", C::KIND, fault.clone());
    let conclusion = conclude(vec![hook], Agent::with(&[]), subject.clone(), script);
    assert_eq!(conclusion.subject.snapshot(), subject.snapshot());
    let [record] = &conclusion.records.to_vec()[..] else { panic!("one hook, one record") };
    let HookOutcome::Failed { fault: recorded, became, .. } = &record.outcome else { panic!("{record:?}") };
    assert_eq!(recorded, &fault);
    (ruled(&conclusion.ruling), *became)
}

#[test]
fn a_fault_closes_what_a_hook_guards() {
    for (fault, phrase) in faults() {
        let denied = (format!("Tool execution denied by hook: hook \"h\" {phrase}"), VerdictKind::Deny);
        assert_eq!(faulted(hook("h", &[AtBeforeTool]), before_tool(), fault.clone()), denied);

        let blocked = (format!("Hook blocked: pre_tool_use: h: hook \"h\" {phrase}"), VerdictKind::Deny);
        assert_eq!(faulted(hook("h", &[AtPreToolUse]), pre_tool_use(), fault.clone()), blocked);

        let prompt = UserPromptSubmit::first("hi");
        let blocked = (format!("hook blocked user_prompt_submit: h: hook \"h\" {phrase}"), VerdictKind::Deny);
        assert_eq!(faulted(hook("h", &[AtPrompt]), prompt, fault.clone()), blocked);

        let end = if matches!(fault, Fault::TimedOut { .. }) { "timed out" } else { "failed" };
        let refused =
            (format!("Tool execution denied by approval hook: tool approval hook \"h\" {end}"), VerdictKind::Deny);
        assert_eq!(faulted(hook("h", &[AtApprove]), approve_tool(), fault), refused);
    }
}

#[test]
fn a_command_that_changed_says_so_to_whoever_it_refuses() {
    let command = || Hook { family: Family::Command, ..hook("h", &[AtPreToolUse]) };
    let text = |cause: &str| faulted(command(), pre_tool_use(), Fault::CannotStart { cause: cause.into() }).0;
    let changed = text(crate::fault::CHANGED);
    assert!(changed.contains("changed since a person accepted it; they have to accept it again"), "{changed}");
    let other = text("no such file");
    assert!(other.contains("hook \"h\" could not start") && !other.contains("accepted"), "{other}");
}

#[test]
fn a_fault_of_another_rewriter_goes_on_or_aborts_as_it_says() {
    let goes_on = ("proceed".to_owned(), VerdictKind::Continue);
    for (fault, phrase) in faults() {
        let aborts = |stage: &str| {
            (format!("Turn: hook aborted turn during {stage}: hook \"h\" {phrase}"), VerdictKind::AbortTurn)
        };
        let at = |kind| hook("h", &[kind]);
        let aborting = |kind| hook("h", &[kind]).failing(OnFailure::AbortTurn);
        // A turn that is ending anyway is ended by nobody.
        let aborts = |stage: &str| if fault == Fault::Cancelled { goes_on.clone() } else { aborts(stage) };
        assert_eq!(faulted(at(AtBeforeLlm), before_llm(&[]), fault.clone()), goes_on);
        assert_eq!(faulted(at(AtAfterLlm), after_llm(), fault.clone()), goes_on);
        assert_eq!(faulted(at(AtAfterTool), after_tool(), fault.clone()), goes_on);
        assert_eq!(faulted(aborting(AtBeforeLlm), before_llm(&[]), fault.clone()), aborts("before_llm"));
        assert_eq!(faulted(aborting(AtAfterLlm), after_llm(), fault.clone()), aborts("after_llm"));
        assert_eq!(faulted(aborting(AtAfterTool), after_tool(), fault.clone()), aborts("after_tool"));
    }
}

#[test]
fn a_cancelled_hook_aborts_nothing_and_what_it_guards_stays_shut() {
    for on_failure in [OnFailure::Close, OnFailure::AbortTurn] {
        let at = |kind| hook("h", &[kind]).failing(on_failure);
        let word = |(_, word)| word;
        assert_eq!(word(faulted(at(AtBeforeLlm), before_llm(&[]), Fault::Cancelled)), VerdictKind::Continue);
        assert_eq!(word(faulted(at(AtAfterLlm), after_llm(), Fault::Cancelled)), VerdictKind::Continue);
        assert_eq!(word(faulted(at(AtAfterTool), after_tool(), Fault::Cancelled)), VerdictKind::Continue);
        assert_eq!(word(faulted(at(AtBeforeTool), before_tool(), Fault::Cancelled)), VerdictKind::Deny);
        assert_eq!(word(faulted(at(AtPreToolUse), pre_tool_use(), Fault::Cancelled)), VerdictKind::Deny);
        assert_eq!(word(faulted(at(AtApprove), approve_tool(), Fault::Cancelled)), VerdictKind::Deny);
    }
}

#[test]
fn continue_opens_before_tool_only_where_it_was_said() {
    for (fault, _) in faults() {
        let open = hook("h", &[AtBeforeTool]).failing(OnFailure::Continue);
        assert_eq!(faulted(open, before_tool(), fault), ("proceed".into(), VerdictKind::Continue));
    }
}

#[test]
fn no_setting_opens_an_approver_and_timeouts_only_open_a_gate() {
    for (fault, _) in faults() {
        for on_failure in [OnFailure::Continue, OnFailure::AbortTurn, OnFailure::Close] {
            let approver = hook("h", &[AtApprove]).failing(on_failure).paired();
            assert_eq!(
                faulted(approver, approve_tool(), fault.clone()).1,
                VerdictKind::Deny,
                "{fault:?} {on_failure:?}"
            );
            let gate = hook("h", &[AtPreToolUse]).failing(on_failure).paired();
            let opens = on_failure == OnFailure::Continue && matches!(fault, Fault::TimedOut { .. });
            let expected = if opens { VerdictKind::Continue } else { VerdictKind::Deny };
            assert_eq!(faulted(gate, pre_tool_use(), fault.clone()).1, expected, "{fault:?} {on_failure:?}");
        }
    }
}

#[test]
fn paired_stages_always_continue() {
    for (fault, _) in faults() {
        for on_failure in [OnFailure::Close, OnFailure::AbortTurn] {
            let at = |kind| hook("h", &[kind]).failing(on_failure).paired();
            assert_eq!(faulted(at(AtBeforeTool), before_tool(), fault.clone()).1, VerdictKind::Continue);
            assert_eq!(faulted(at(AtBeforeLlm), before_llm(&[]), fault.clone()).1, VerdictKind::Continue);
            assert_eq!(faulted(at(AtAfterLlm), after_llm(), fault.clone()).1, VerdictKind::Continue);
            assert_eq!(faulted(at(AtAfterTool), after_tool(), fault.clone()).1, VerdictKind::Continue);
        }
    }
}

#[test]
fn a_bad_respond_denies_whatever_the_hook_says() {
    let fault = Fault::Protocol(ProtocolBreach::Respond("result.result is missing".into()));
    let text = "Tool execution denied by hook: hook \"h\" broke the protocol";
    let open = hook("h", &[AtBeforeTool]).failing(OnFailure::Continue);
    assert_eq!(faulted(open.clone(), before_tool(), fault.clone()), (text.into(), VerdictKind::Deny));
    assert_eq!(faulted(open.paired(), before_tool(), fault), (text.into(), VerdictKind::Deny));
}

#[test]
fn a_broken_stub_closes_unasked() {
    let broken = || HookState::Broken(Fault::CannotStart { cause: "bad entry".into() });
    check(
        vec![hook("stub", &[AtBeforeTool]).state(broken()), hook("z", &[AtBeforeTool])],
        before_tool(),
        Script::default(),
        r#"
        Tool execution denied by hook: hook "stub" could not start
        before_tool stub cannot_start became deny
        before_tool z not run, decided by stub
        "#,
    );
    check(
        vec![hook("stub", &[AtApprove]).state(broken())],
        approve_tool(),
        Script::default(),
        r#"
        Tool execution denied by approval hook: tool approval hook "stub" failed
        approve_tool stub cannot_start became deny
        "#,
    );
    check(
        vec![
            hook("other", &[AtBeforeTool]).state(broken()).matching("^read$"),
            hook("stub", &[AtBeforeTool]).state(broken()).failing(OnFailure::Continue),
            hook("z", &[AtBeforeTool]),
        ],
        before_tool(),
        Script::default(),
        "
        proceed
        before_tool other not run, ^read$ does not match exec
        before_tool stub cannot_start became continue
        before_tool z continue
        ",
    );
}

#[test]
fn a_fault_in_the_settling_pass_blocks() {
    check(
        ["a", "b"].map(|name| hook(name, &[AtPreToolUse])).to_vec(),
        pre_tool_use(),
        Script::default()
            .says("a", Verdict::<PreToolUse>::Continue)
            .fails("a", AtPreToolUse, Fault::Panicked)
            .says("b", Verdict::<PreToolUse>::Modify(args("pwd"))),
        r#"
        Hook blocked: pre_tool_use: a: hook "a" panicked
        pre_tool_use a continue
        pre_tool_use b modify [{"op":"replace","path":"/arguments/cmd","value":"pwd"}]
        pre_tool_use a again panicked became deny
        "#,
    );
}

#[test]
fn an_answer_to_another_question_is_a_fault() {
    let mut chain =
        Chain::new(Arc::new(Roster::new(vec![hook("h", &[AtPreToolUse])])), Agent::with(&[]), pre_tool_use());
    assert!(chain.next().is_some());
    chain.settle(crate::testing::said(Verdict::<ApproveTool>::Continue), Duration::ZERO);
    let text = ruled(&chain.conclude().ruling);
    assert_eq!(text, "Hook blocked: pre_tool_use: h: hook \"h\" broke the protocol");
}

#[test]
fn a_chain_left_before_its_end_stays_shut() {
    let roster = Arc::new(Roster::new(["a", "b"].map(|name| hook(name, &[AtPreToolUse])).to_vec()));
    let concluded = Chain::new(roster, Agent::with(&[]), pre_tool_use()).conclude();
    assert_eq!(ruled(&concluded.ruling), "Hook blocked: pre_tool_use: a: hook \"a\" was cancelled");
    assert_eq!(lines(&concluded.records), "pre_tool_use a cancelled became deny\npre_tool_use b not run, decided by a");
}
