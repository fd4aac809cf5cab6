//! Who sees a call again after it was changed.

use super::*;
use crate::account::Account;

#[test]
fn who_was_asked_sees_what_a_gate_made_of_the_input() {
    Case::new(vec![before("a"), before("b").matching("^read$"), gate("g"), approver("p")])
        .script(Script::default().says("g", rewrite("pwd")))
        .check(
            "exec",
            r#"
            before_tool a sees exec {"cmd":"ls"}
            pre_tool_use g sees exec {"cmd":"ls"}
            before_tool a sees exec {"cmd":"pwd"}
            approve_tool p sees exec {"cmd":"pwd"}
            => run exec {"cmd":"pwd"}
            before_tool a continue
            before_tool b not run, ^read$ does not match exec
            pre_tool_use g modify [{"op":"replace","path":"/arguments/cmd","value":"pwd"}]
            before_tool a again continue
            approve_tool p continue
            "#,
        );
}

/// A call to `read` that `r` renames to `exec`, behind a hook `a` that is about `exec` only.
fn renamed() -> Case {
    Case::new(vec![before("a").matching("^exec$"), before("n").matching("^read$"), before("r"), gate("g")])
        .script(Script::default().says("r", Verdict::<BeforeTool>::Modify(patch(Some("exec"), None))))
}

#[test]
fn who_was_passed_over_is_asked_once_a_call_has_its_name() {
    renamed().check(
        "read",
        r#"
        before_tool n sees read {"cmd":"ls"}
        before_tool r sees read {"cmd":"ls"}
        pre_tool_use g sees exec {"cmd":"ls"}
        before_tool a sees exec {"cmd":"ls"}
        => run exec {"cmd":"ls"}
        before_tool a not run, ^exec$ does not match read
        before_tool n continue
        before_tool r modify [{"op":"replace","path":"/tool","value":"exec"}]
        pre_tool_use g continue
        before_tool a again continue
        "#,
    );
    let outcome = |said: Verdict<BeforeTool>| {
        let case = renamed();
        let script = case.script.says("a", said);
        came_to(&Case { script, ..Case::new(case.hooks) }.clear(call("read", "ls")).1)
    };
    let refused = "Tool execution denied by hook: hooks kept rewriting the input (hook \"a\")";
    assert_eq!(outcome(deny_before()), "Tool execution denied by hook: no (hook \"a\")");
    assert_eq!(outcome(modify("ls")), r#"run exec {"cmd":"ls"}"#, "the same call again is not a change");
    assert_eq!(outcome(modify("pwd")), refused);
    assert_eq!(outcome(respond(None)), refused);
    let abort = Abort { abort_scope: AbortScope::Turn, reason: "stop".into() };
    assert_eq!(outcome(Verdict::Abort(abort)), "hook aborted turn during before_tool: stop");
}

#[test]
fn a_matcher_meets_the_name_as_the_call_stands_and_the_one_that_the_model_wrote() {
    let named = |name: &str, pattern: &str| before(name).matching(pattern);
    let hooks = vec![before("a"), named("b", "^read$"), named("c", "^exec$"), named("d", "^web$")];
    let rename = Verdict::<BeforeTool>::Modify(patch(Some("exec"), None));
    Case::new(hooks).script(Script::default().says("a", rename)).check(
        "read",
        r#"
        before_tool a sees read {"cmd":"ls"}
        before_tool b sees exec {"cmd":"ls"}
        before_tool c sees exec {"cmd":"ls"}
        => run exec {"cmd":"ls"}
        before_tool a modify [{"op":"replace","path":"/tool","value":"exec"}]
        before_tool b continue
        before_tool c continue
        before_tool d not run, ^web$ does not match exec (read)
        "#,
    );
}

#[test]
fn who_was_passed_over_is_asked_before_the_owner_of_a_renamed_tool() {
    let hooks = vec![before("a").matching("^web$"), before("r").matching("^read$"), before("z"), gate("g")];
    let script = || Script::default().says("r", Verdict::<BeforeTool>::Modify(patch(Some("web"), None)));
    let case = |script| Case::new(hooks.clone()).owned(&[("web", "z")]).script(script);
    case(script().says("z", respond(None))).check(
        "read",
        r#"
        before_tool r sees read {"cmd":"ls"}
        pre_tool_use g sees web {"cmd":"ls"}
        before_tool a sees web {"cmd":"ls"}
        before_tool z sees web {"cmd":"ls"}
        => z answers web {"cmd":"ls"}: answer
        before_tool a not run, ^web$ does not match read
        before_tool r modify [{"op":"replace","path":"/tool","value":"web"}]
        pre_tool_use g continue
        before_tool a again continue
        before_tool z respond
        "#,
    );
    let denied = case(script().says("a", deny_before()).says("z", respond(None))).clear(call("read", "ls")).1;
    assert_eq!(came_to(&denied), "Tool execution denied by hook: no (hook \"a\")");
}

/// What hook `a` says when it is asked once more, and what comes of it.
fn asked_again(second: Verdict<BeforeTool>) -> String {
    let script =
        Script::default().says("a", Verdict::<BeforeTool>::Continue).says("a", second).says("g", rewrite("pwd"));
    came_to(&Case::new(vec![before("a"), gate("g")]).script(script).clear(call("exec", "ls")).1)
}

#[test]
fn hooks_that_keep_rewriting_refuse_the_call() {
    let refused = "Tool execution denied by hook: hooks kept rewriting the input (hook \"a\")";
    assert_eq!(asked_again(modify("ls")), refused);
    assert_eq!(asked_again(Verdict::Modify(patch(Some("read"), None))), refused);
    assert_eq!(asked_again(respond(None)), refused);
    assert_eq!(asked_again(modify("pwd")), r#"run exec {"cmd":"pwd"}"#);
    assert_eq!(asked_again(deny_before()), "Tool execution denied by hook: no (hook \"a\")");
    let abort = Abort { abort_scope: AbortScope::Turn, reason: "stop".into() };
    assert_eq!(asked_again(Verdict::Abort(abort)), "hook aborted turn during before_tool: stop");

    // A gate changes the input for which a hook has a result already.
    let script = || Script::default().says("g", rewrite("pwd")).says("a", respond(None));
    let outcome = |hooks: Vec<Hook>, owned: &[(&'static str, &'static str)], script, tool: &str| {
        came_to(&Case::new(hooks).owned(owned).script(script).clear(call(tool, "ls")).1)
    };
    assert_eq!(outcome(vec![before("a"), gate("g")], &[], script(), "exec"), refused);

    // A gate changes the other call that an owner says it answered.
    let script = Script::default().says("a", respond(Some(patch(None, Some("other"))))).says("g", rewrite("pwd"));
    assert_eq!(outcome(vec![before("a"), gate("g")], &[("web", "a")], script, "web"), refused);

    // Two gates that never agree.
    let script = Script::default().says("g", rewrite("one")).says("h", rewrite("two"));
    let text = "Hook blocked: pre_tool_use: g: hooks kept rewriting the input";
    assert_eq!(outcome(vec![gate("g"), gate("h")], &[], script, "exec"), text);
}

#[test]
fn a_call_that_ends_the_turn_is_kept_as_the_gates_left_it() {
    let abort = Verdict::<BeforeTool>::Abort(Abort { abort_scope: AbortScope::Turn, reason: "stop".into() });
    let script =
        Script::default().says("a", Verdict::<BeforeTool>::Continue).says("a", abort).says("g", rewrite("pwd"));
    let (_, outcome, _) = Case::new(vec![before("a"), gate("g")]).script(script).clear(call("exec", "ls"));
    assert!(matches!(outcome, ClearingOutcome::Abort { .. }), "{outcome:?}");
    assert_eq!(outcome.call().arguments, args("pwd"));
}

#[test]
fn a_fault_while_being_asked_again_counts_as_at_first() {
    let fails = |hook: Hook| {
        let script = Script::default()
            .says("a", Verdict::<BeforeTool>::Continue)
            .fails("a", AtBeforeTool, Fault::Panicked)
            .says("g", rewrite("pwd"));
        came_to(&Case::new(vec![hook, gate("g")]).script(script).clear(call("exec", "ls")).1)
    };
    assert_eq!(fails(before("a")), "Tool execution denied by hook: hook \"a\" panicked");
    assert_eq!(fails(before("a").failing(OnFailure::Continue)), r#"run exec {"cmd":"pwd"}"#);
}

#[test]
fn digits_and_member_order_of_an_input_count_as_the_digest_does() {
    let number = |text: &str| -> Object { serde_json::from_str(&format!(r#"{{"n":{text},"m":1}}"#)).unwrap() };
    let run = |first: &str, second: &str| {
        let script = Script::default()
            .says("a", Verdict::<BeforeTool>::Modify(CallPatch { tool: None, arguments: Some(number(first)) }))
            .says("a", Verdict::<BeforeTool>::Continue)
            .says("g", Verdict::<PreToolUse>::Modify(number(second)));
        Case::new(vec![before("a"), gate("g")]).script(script).clear(call("exec", "ls")).0.len()
    };
    assert_eq!(run("1", "1"), 2);
    assert_eq!(run("1", "1.0"), 3);
    assert_eq!(run("0.1", "0.10000000000000000001"), 3);
}

#[test]
fn nothing_is_kept_of_what_was_written_about_a_call_that_any_hook_changed() {
    let kept = |first: Verdict<BeforeTool>, second: Verdict<PreToolUse>| {
        let roster = Arc::new(Roster::new(vec![before("a"), gate("g"), approver("p")]));
        let mut clearing = Clearing::new(roster.clone(), Agent::with(&[]), call("exec", "ls"));
        for answer in [said(first), said(second)] {
            let account = Some(Box::new(Account { stdout: Some("ls".into()), ..Account::default() }));
            assert!(clearing.next().is_some(), "it is due");
            clearing.settle(HandlerAnswer { heard: answer, account }, Duration::ZERO);
        }
        Script::default().play(&mut clearing, &roster);
        let records = clearing.conclude().1.to_vec();
        let accounts = records.iter().filter_map(|record| record.account.as_ref());
        accounts.map(|account| !account.hides_output).collect::<Vec<_>>()
    };
    let goes_on = || Verdict::<BeforeTool>::Continue;
    assert_eq!(kept(goes_on(), Verdict::Continue), [true, true]);
    assert_eq!(kept(goes_on(), block()), [true, true], "its arguments stay, too");
    assert_eq!(kept(goes_on(), rewrite("pwd")), [false, false]);
    assert_eq!(kept(modify("pwd"), Verdict::Continue), [false, false]);
}
