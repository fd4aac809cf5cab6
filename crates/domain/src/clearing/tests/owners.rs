//! Tools that a hook brought, and results in the place of a tool.

use super::*;

#[test]
fn gates_rule_right_before_the_owner_and_not_again_on_the_same_input() {
    Case::new(vec![before("a"), before("own"), before("z"), gate("g"), approver("p")])
        .owned(&[("web", "own")])
        .script(Script::default().says("a", modify("pwd")).says("own", respond(None)))
        .check(
            "web",
            r#"
            before_tool a sees web {"cmd":"ls"}
            pre_tool_use g sees web {"cmd":"pwd"}
            before_tool own sees web {"cmd":"pwd"}
            => own answers web {"cmd":"pwd"}: answer
            before_tool a modify [{"op":"replace","path":"/arguments/cmd","value":"pwd"}]
            pre_tool_use g continue
            before_tool own respond
            before_tool z not run, decided by own
            approve_tool p not run, decided by own
            "#,
        );
}

#[test]
fn a_gate_rules_on_the_name_that_an_answer_has_though_no_tool_has_it() {
    let case = |gates: Vec<Hook>| {
        let hooks = [before("a"), before("later").matching("^plugin$")].into_iter().chain(gates).collect();
        Case::new(hooks)
            .script(Script::default().says("a", respond(Some(patch(Some("plugin"), None)))).says("p", block()))
    };
    // The raw name stays the model's, so who guards that is asked about both.
    case(vec![gate("g").matching("^exec$"), gate("q").matching("^plugin$")]).check(
        "exec",
        r#"
        before_tool a sees exec {"cmd":"ls"}
        pre_tool_use g sees exec {"cmd":"ls"}
        pre_tool_use g sees plugin {"cmd":"ls"}
        pre_tool_use q sees plugin {"cmd":"ls"}
        => a answers plugin {"cmd":"ls"}: answer
        before_tool a respond
        before_tool later not run, decided by a
        pre_tool_use g continue
        pre_tool_use q not run, ^plugin$ does not match exec
        pre_tool_use g again continue
        pre_tool_use q again continue
        "#,
    );
    let outcome = case(vec![gate("p").matching("^plugin$")]).clear(call("exec", "ls")).1;
    assert_eq!(came_to(&outcome), "Hook blocked: pre_tool_use: p: no");
    // A rename of a call that would run still needs a tool.
    let script = Script::default().says("a", Verdict::<BeforeTool>::Modify(patch(Some("plugin"), None)));
    let outcome = Case::new(vec![before("a")]).script(script).clear(call("exec", "ls")).1;
    assert_eq!(came_to(&outcome), "Tool execution denied by hook: hook \"a\" broke the protocol");
}

#[test]
fn a_blocked_owner_is_never_asked() {
    Case::new(vec![before("own"), gate("g"), approver("p")])
        .owned(&[("web", "own")])
        .script(Script::default().says("g", block()).says("own", respond(None)))
        .check(
            "web",
            r#"
            pre_tool_use g sees web {"cmd":"ls"}
            => Hook blocked: pre_tool_use: g: no
            pre_tool_use g deny: no
            before_tool own not run, decided by g
            approve_tool p not run, decided by g
            "#,
        );
}

#[test]
fn an_owner_that_does_not_respond_lets_the_call_go_on() {
    Case::new(vec![before("own"), before("z"), gate("g"), approver("p")]).owned(&[("web", "own")]).check(
        "web",
        r#"
        pre_tool_use g sees web {"cmd":"ls"}
        before_tool own sees web {"cmd":"ls"}
        before_tool z sees web {"cmd":"ls"}
        approve_tool p sees web {"cmd":"ls"}
        => run web {"cmd":"ls"}
        pre_tool_use g continue
        before_tool own continue
        before_tool z continue
        approve_tool p continue
        "#,
    );
    Case::new(vec![before("own"), before("z"), gate("g")])
        .owned(&[("web", "own")])
        .script(
            Script::default().says("z", modify("pwd")).says("g", Verdict::<PreToolUse>::Continue).says("g", block()),
        )
        .check(
            "web",
            r#"
            pre_tool_use g sees web {"cmd":"ls"}
            before_tool own sees web {"cmd":"ls"}
            before_tool z sees web {"cmd":"ls"}
            pre_tool_use g sees web {"cmd":"pwd"}
            => Hook blocked: pre_tool_use: g: no
            pre_tool_use g continue
            before_tool own continue
            before_tool z modify [{"op":"replace","path":"/arguments/cmd","value":"pwd"}]
            pre_tool_use g again deny: no
            "#,
        );
}

#[test]
fn a_rename_onto_an_owned_tool_meets_the_gates_before_its_owner() {
    Case::new(vec![before("a"), before("own"), gate("g")])
        .owned(&[("web", "own")])
        .script(
            Script::default()
                .says("a", Verdict::<BeforeTool>::Modify(patch(Some("web"), None)))
                .says("own", respond(None)),
        )
        .check(
            "exec",
            r#"
            before_tool a sees exec {"cmd":"ls"}
            pre_tool_use g sees web {"cmd":"ls"}
            before_tool own sees web {"cmd":"ls"}
            => own answers web {"cmd":"ls"}: answer
            before_tool a modify [{"op":"replace","path":"/tool","value":"web"}]
            pre_tool_use g continue
            before_tool own respond
            "#,
        );
}

#[test]
fn a_rename_after_the_owner_does_not_ask_it() {
    Case::new(vec![before("own"), before("z"), gate("g")])
        .owned(&[("web", "own")])
        .script(Script::default().says("z", Verdict::<BeforeTool>::Modify(patch(Some("web"), None))))
        .check(
            "exec",
            r#"
            before_tool own sees exec {"cmd":"ls"}
            before_tool z sees exec {"cmd":"ls"}
            pre_tool_use g sees web {"cmd":"ls"}
            => run web {"cmd":"ls"}
            before_tool own continue
            before_tool z modify [{"op":"replace","path":"/tool","value":"web"}]
            pre_tool_use g continue
            "#,
        );
}

#[test]
fn a_result_for_a_call_that_a_gate_blocks_is_discarded() {
    Case::new(vec![before("a"), gate("g")])
        .script(Script::default().says("a", respond(None)).says("g", block()))
        .check(
            "exec",
            r#"
            before_tool a sees exec {"cmd":"ls"}
            pre_tool_use g sees exec {"cmd":"ls"}
            => Hook blocked: pre_tool_use: g: no
            before_tool a respond
            pre_tool_use g deny: no
            "#,
        );
    // The gates rule on the call that was asked about and again on the one that was answered.
    Case::new(vec![before("a"), gate("g")])
        .script(
            Script::default()
                .says("a", respond(Some(patch(Some("read"), Some("/etc/shadow")))))
                .says("g", Verdict::<PreToolUse>::Continue)
                .says("g", block()),
        )
        .check(
            "exec",
            r#"
            before_tool a sees exec {"cmd":"ls"}
            pre_tool_use g sees exec {"cmd":"ls"}
            pre_tool_use g sees read {"cmd":"/etc/shadow"}
            => Hook blocked: pre_tool_use: g: no
            before_tool a respond
            pre_tool_use g continue
            pre_tool_use g again deny: no
            "#,
        );
    Case::new(vec![before("a"), gate("g")]).script(Script::default().says("a", respond(None)).says("g", ask())).check(
        "exec",
        r#"
            before_tool a sees exec {"cmd":"ls"}
            pre_tool_use g sees exec {"cmd":"ls"}
            => g asks about exec {"cmd":"ls"}: risky
            before_tool a respond
            pre_tool_use g ask: risky
            "#,
    );
}

#[test]
fn the_owner_answers_for_what_the_gates_left_and_is_not_asked_twice() {
    Case::new(vec![before("a"), before("own"), gate("g")])
        .owned(&[("web", "own")])
        .script(Script::default().says("g", rewrite("pwd")).says("own", respond(None)))
        .check(
            "web",
            r#"
            before_tool a sees web {"cmd":"ls"}
            pre_tool_use g sees web {"cmd":"ls"}
            before_tool a sees web {"cmd":"pwd"}
            before_tool own sees web {"cmd":"pwd"}
            => own answers web {"cmd":"pwd"}: answer
            before_tool a continue
            pre_tool_use g modify [{"op":"replace","path":"/arguments/cmd","value":"pwd"}]
            before_tool a again continue
            before_tool own respond
            "#,
        );
    // Changed after the owner was asked: the others are asked once more, the owner is not.
    Case::new(vec![before("a"), before("own"), before("z"), gate("g")])
        .owned(&[("web", "own")])
        .script(
            Script::default()
                .says("z", modify("two"))
                .says("z", Verdict::<BeforeTool>::Continue)
                .says("g", Verdict::<PreToolUse>::Continue)
                .says("g", rewrite("three")),
        )
        .check(
            "web",
            r#"
            before_tool a sees web {"cmd":"ls"}
            pre_tool_use g sees web {"cmd":"ls"}
            before_tool own sees web {"cmd":"ls"}
            before_tool z sees web {"cmd":"ls"}
            pre_tool_use g sees web {"cmd":"two"}
            before_tool a sees web {"cmd":"three"}
            before_tool z sees web {"cmd":"three"}
            => run web {"cmd":"three"}
            before_tool a continue
            pre_tool_use g continue
            before_tool own continue
            before_tool z modify [{"op":"replace","path":"/arguments/cmd"}]
            pre_tool_use g again modify [{"op":"replace","path":"/arguments/cmd","value":"three"}]
            before_tool a again continue
            before_tool z again continue
            "#,
        );
}
