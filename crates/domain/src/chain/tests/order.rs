//! Who is asked, when and once more, and who is not.

use super::*;

#[test]
fn everyone_leaves_a_record_and_the_reason_why_it_did_not_run() {
    check(
        vec![
            hook("a", &[AtBeforeTool]).state(HookState::Disabled),
            hook("b", &[AtBeforeTool]).state(HookState::Untrusted),
            hook("c", &[AtBeforeTool]).matching("^(read|write)$"),
            hook("d", &[AtBeforeTool]),
            hook("e", &[AtBeforeTool]),
            hook("f", &[AtBeforeTool]).state(HookState::Disabled),
            hook("g", &[AtBeforeTool]).state(HookState::Untrusted),
            hook("h", &[AtBeforeTool]).matching("^read$"),
            hook("elsewhere", &[AtAfterTool]),
        ],
        BeforeTool { call: crate::tool::ToolCall { raw_tool: "shell".into(), ..call("exec", "ls") }, owner: None },
        Script::default().says("d", Verdict::<BeforeTool>::Deny("no".into())),
        r#"
        Tool execution denied by hook: no (hook "d")
        before_tool a not run, disabled
        before_tool b not run, untrusted
        before_tool c not run, ^(read|write)$ does not match exec (shell)
        before_tool d deny: no
        before_tool e not run, decided by d
        before_tool f not run, disabled
        before_tool g not run, untrusted
        before_tool h not run, decided by d
        "#,
    );
}

#[test]
fn native_runs_first_then_lower_priority_then_the_name_bytewise() {
    let native = |name, priority| Hook { family: Family::Native, priority, ..hook(name, &[AtBeforeLlm]) };
    let process = |name, priority| Hook { priority, ..hook(name, &[AtBeforeLlm]) };
    let hooks = vec![process("a", 1), process("B", 0), process("b", 0), process("neg", -5), native("z", 9)];
    let roster = Roster::new(hooks);
    let order: Vec<&str> = roster.at(AtBeforeLlm).iter().map(|i| roster.hook(*i).name.as_str()).collect();
    assert_eq!(order, ["z", "neg", "B", "b", "a"]);
}

#[test]
fn a_matcher_does_not_keep_an_owner_from_its_own_tool() {
    let known = || Agent::with(&[("web", "h")]);
    let narrow = |kind| vec![hook("h", &[kind]).matching("^exec$"), hook("i", &[kind]).matching("^exec$")];
    let ran = |records: &RecordLines| {
        records.iter().map(|record| !matches!(record.outcome, HookOutcome::NotRun(_))).collect::<Vec<_>>()
    };
    let web = || call("web", "x");
    let owner = known().known.owner("web");
    let concluded = conclude(narrow(AtBeforeTool), known(), BeforeTool { call: web(), owner }, Script::default());
    assert_eq!(ran(&concluded.records), [true, false]);
    let concluded = conclude(narrow(AtApprove), known(), ApproveTool { call: web() }, Script::default());
    assert_eq!(ran(&concluded.records), [true, false]);
    let after = AfterTool { call: web(), ..after_tool() };
    let concluded = conclude(narrow(AtAfterTool), known(), after, Script::default());
    assert_eq!(ran(&concluded.records), [true, false]);
}

#[test]
fn gates_before_the_last_change_are_asked_once_more() {
    let hooks = || ["a", "b", "c"].map(|name| hook(name, &[AtPreToolUse])).to_vec();
    check(
        hooks(),
        pre_tool_use(),
        Script::default().says("b", Verdict::<PreToolUse>::Modify(args("pwd"))),
        r#"
        proceed
        pre_tool_use a continue
        pre_tool_use b modify [{"op":"replace","path":"/arguments/cmd","value":"pwd"}]
        pre_tool_use c continue
        pre_tool_use a again continue
        "#,
    );
    check(
        hooks(),
        pre_tool_use(),
        Script::default()
            .says("a", Verdict::<PreToolUse>::Continue)
            .says("a", Verdict::<PreToolUse>::Deny("not this".into()))
            .says("b", Verdict::<PreToolUse>::Modify(args("rm"))),
        r#"
        Hook blocked: pre_tool_use: a: not this
        pre_tool_use a continue
        pre_tool_use b modify [{"op":"replace","path":"/arguments/cmd","value":"rm"}]
        pre_tool_use c continue
        pre_tool_use a again deny: not this
        "#,
    );
    check(
        hooks(),
        pre_tool_use(),
        Script::default()
            .says("a", Verdict::<PreToolUse>::Modify(args("one")))
            .says("a", Verdict::<PreToolUse>::Modify(args("one")))
            .says("b", Verdict::<PreToolUse>::Modify(args("two"))),
        r#"
        Hook blocked: pre_tool_use: a: hooks kept rewriting the input
        pre_tool_use a modify [{"op":"replace","path":"/arguments/cmd"}]
        pre_tool_use b modify [{"op":"replace","path":"/arguments/cmd","value":"two"}]
        pre_tool_use c continue
        pre_tool_use a again modify [{"op":"replace","path":"/arguments/cmd"}]
        "#,
    );
}

#[test]
fn what_is_said_in_the_second_pass_takes_the_place_of_the_first() {
    let ask = |why: &str| Verdict::<PreToolUse>::Ask(why.into());
    let asked = |script: Script| {
        let hooks = ["a", "b"].map(|name| hook(name, &[AtPreToolUse])).to_vec();
        let script = script.says("b", Verdict::<PreToolUse>::Modify(args("pwd")));
        match conclude(hooks, Agent::with(&[]), pre_tool_use(), script).ruling {
            Ruling::Ask { by, why } => format!("{by}: {}", why.as_str()),
            other @ (Ruling::Proceed | Ruling::Respond { .. } | Ruling::Deny(_) | Ruling::Abort(_)) => {
                panic!("{other:?}")
            }
        }
    };
    assert_eq!(asked(Script::default().says("a", ask("of ls")).says("a", ask("of pwd"))), "a: of pwd");
    let only_first = Script::default().says("a", ask("of ls")).says("a", Verdict::<PreToolUse>::Continue);
    assert_eq!(asked(only_first), "a: of ls", "an ask of either pass stands");
    let only_second = Script::default().says("a", Verdict::<PreToolUse>::Continue).says("a", ask("of pwd"));
    assert_eq!(asked(only_second), "a: of pwd");
}

#[test]
fn an_equal_value_is_no_change() {
    let concluded = conclude(
        ["a", "b"].map(|name| hook(name, &[AtPreToolUse])).to_vec(),
        Agent::with(&[]),
        pre_tool_use(),
        Script::default().says("b", Verdict::<PreToolUse>::Modify(args("ls"))),
    );
    assert!(!concluded.changed);
    assert_eq!(concluded.records.len(), 2);
    assert!(concluded.records.iter().all(|record| record.change.is_none()));
}

#[test]
fn a_hook_that_is_asked_again_may_refuse_but_not_change_or_answer() {
    let again = |verdict: Verdict<BeforeTool>| {
        let roster = Arc::new(Roster::new(vec![hook("h", &[AtBeforeTool])]));
        let mut chain = Chain::again(roster.clone(), Agent::with(&[]), before_tool(), &[0]);
        Script::default().says("h", verdict).play(&mut chain, &roster);
        let concluded = chain.conclude();
        assert_eq!(concluded.subject, before_tool());
        assert!(concluded.records.iter().all(|record| record.again));
        ruled(&concluded.ruling)
    };
    let refused = "Tool execution denied by hook: hooks kept rewriting the input (hook \"h\")";
    let substitute = Substitute { call: None, result: ToolOutput::ok("x") };
    assert_eq!(again(Verdict::respond(substitute)), refused);
    assert_eq!(again(Verdict::Modify(patch("pwd"))), refused);
    assert_eq!(again(Verdict::Modify(patch("ls"))), "proceed");
    assert_eq!(again(Verdict::Continue), "proceed");
    assert_eq!(again(Verdict::Deny("no".into())), "Tool execution denied by hook: no (hook \"h\")");
}

#[test]
fn settling_without_being_asked_is_for_the_hook_that_is_due() {
    let disabled = hook("a", &[AtPreToolUse]).state(HookState::Disabled);
    let roster = Arc::new(Roster::new(vec![disabled, hook("b", &[AtPreToolUse])]));
    let mut chain = Chain::new(roster, Agent::with(&[]), pre_tool_use());
    chain.settle(crate::testing::said(Verdict::<PreToolUse>::Deny("no".into())), Duration::ZERO);
    chain.settle(crate::testing::said(Verdict::<PreToolUse>::Continue), Duration::ZERO);
    assert_eq!(lines(&chain.conclude().records), "pre_tool_use a not run, disabled\npre_tool_use b deny: no");
}

#[test]
fn a_change_is_told_to_the_next_hook_under_another_version() {
    let roster = Arc::new(Roster::new(["a", "b", "c"].map(|name| hook(name, &[AtBeforeTool])).to_vec()));
    let mut chain = Chain::new(roster, Agent::with(&[]), before_tool());
    let first = chain.next().unwrap().version;
    assert_eq!(chain.next().unwrap().version, first);
    chain.settle(crate::testing::said(Verdict::<BeforeTool>::Continue), Duration::ZERO);
    assert_eq!(chain.next().unwrap().version, first);
    chain.settle(crate::testing::said(Verdict::<BeforeTool>::Modify(patch("pwd"))), Duration::ZERO);
    let need = chain.next().unwrap();
    assert_ne!(need.version, first);
    assert!(matches!(need.subject, Subject::BeforeTool(it) if it.call == call("exec", "pwd")));
}
