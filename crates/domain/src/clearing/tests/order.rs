//! Rewriters, gates, approvers: who comes when.

use super::*;

#[test]
fn rewriters_gates_approvers_in_this_order() {
    Case::new(vec![approver("c"), gate("b"), before("a")]).script(Script::default().says("a", modify("pwd"))).check(
        "exec",
        r#"
            before_tool a sees exec {"cmd":"ls"}
            pre_tool_use b sees exec {"cmd":"pwd"}
            approve_tool c sees exec {"cmd":"pwd"}
            => run exec {"cmd":"pwd"}
            before_tool a modify [{"op":"replace","path":"/arguments/cmd","value":"pwd"}]
            pre_tool_use b continue
            approve_tool c continue
            "#,
    );
    Case::new(Vec::new()).check("exec", r#"=> run exec {"cmd":"ls"}"#);
}

#[test]
fn whoever_refuses_first_ends_the_clearing() {
    Case::new(vec![before("a"), gate("b"), approver("c")]).script(Script::default().says("a", deny_before())).check(
        "exec",
        r#"
            before_tool a sees exec {"cmd":"ls"}
            => Tool execution denied by hook: no (hook "a")
            before_tool a deny: no
            pre_tool_use b not run, decided by a
            approve_tool c not run, decided by a
            "#,
    );
    Case::new(vec![before("a"), gate("b"), approver("c"), approver("d").state(HookState::Disabled)])
        .script(Script::default().fails("b", AtPreToolUse, Fault::killed(9)))
        .check(
            "exec",
            r#"
            before_tool a sees exec {"cmd":"ls"}
            pre_tool_use b sees exec {"cmd":"ls"}
            => Hook blocked: pre_tool_use: b: hook "b" was killed by signal 9
            before_tool a continue
            pre_tool_use b killed became deny
            approve_tool c not run, decided by b
            approve_tool d not run, disabled
            "#,
        );
}

#[test]
fn an_unfinished_clearing_stays_shut() {
    let roster = Arc::new(Roster::new(vec![gate("g"), approver("p")]));
    let (outcome, records) = Clearing::new(roster, Agent::with(&[]), call("exec", "ls")).conclude();
    assert_eq!(came_to(&outcome), "Hook blocked: pre_tool_use: g: hook \"g\" was cancelled");
    assert_eq!(lines(&records), "pre_tool_use g cancelled became deny\napprove_tool p not run, decided by g");
}

#[test]
fn every_subject_of_a_clearing_has_its_own_version() {
    let hooks = vec![before("a"), gate("g")];
    let roster = Arc::new(Roster::new(hooks));
    let mut clearing = Clearing::new(roster, Agent::with(&[]), call("exec", "ls"));
    clearing.next().unwrap();
    clearing.settle(said(respond(Some(patch(None, Some("other"))))), Duration::ZERO);
    let asked_about = clearing.next().unwrap().version;
    clearing.settle(said(Verdict::<PreToolUse>::Continue), Duration::ZERO);
    let answered = clearing.next().unwrap();
    assert_eq!(answered.subject.kind(), AtPreToolUse);
    assert_ne!(answered.version, asked_about);
}
