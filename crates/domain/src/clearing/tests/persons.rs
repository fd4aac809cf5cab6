//! Calls that wait for a person.

use super::*;
use crate::verdict::VerdictKind;

#[test]
fn a_human_is_asked_before_the_owner() {
    Case::new(vec![before("own"), gate("g"), approver("p")])
        .owned(&[("web", "own")])
        .script(Script::default().says("g", ask()).says("own", respond(None)))
        .check(
            "web",
            r#"
            pre_tool_use g sees web {"cmd":"ls"}
            => g asks about web {"cmd":"ls"}: risky
            pre_tool_use g ask: risky
            before_tool own not run, decided by g
            approve_tool p not run, decided by g
            "#,
        );
}

#[test]
fn an_ask_goes_through_the_approvers_and_their_refusal_wins() {
    let case = |script: Script| Case::new(vec![gate("g"), approver("p")]).script(script.says("g", ask()));
    case(Script::default()).check(
        "exec",
        r#"
        pre_tool_use g sees exec {"cmd":"ls"}
        approve_tool p sees exec {"cmd":"ls"}
        => g asks about exec {"cmd":"ls"}: risky
        pre_tool_use g ask: risky
        approve_tool p continue
        "#,
    );
    case(Script::default().says("p", Verdict::<ApproveTool>::Deny("never".into()))).check(
        "exec",
        r#"
        pre_tool_use g sees exec {"cmd":"ls"}
        approve_tool p sees exec {"cmd":"ls"}
        => Tool execution denied by approval hook: never (hook "p")
        pre_tool_use g ask: risky
        approve_tool p deny: never
        "#,
    );
}

#[test]
fn an_ask_before_another_run_of_the_gates_still_stands() {
    let script = Script::default()
        .says("a", respond(Some(patch(None, Some("other")))))
        .says("g", ask())
        .says("g", Verdict::<PreToolUse>::Continue);
    let outcome = Case::new(vec![before("a"), gate("g")]).script(script).clear(call("exec", "ls")).1;
    assert_eq!(came_to(&outcome), r#"g asks about exec {"cmd":"other"}: risky"#);
}

/// A clearing of `tool`, and who was asked before it first waited for a person.
fn until_asked(case: Case, tool: &str) -> (Arc<Roster>, Clearing<'static>, Vec<String>) {
    let roster = Arc::new(Roster::new(case.hooks));
    let mut clearing = Clearing::new(roster.clone(), Agent::with(&case.owned), call(tool, "ls"));
    let asked = case.script.play(&mut clearing, &roster);
    (roster, clearing, asked)
}

fn asks(clearing: &mut Clearing) -> Option<String> {
    let question = clearing.question()?;
    Some(format!("{} about {} {}: {}", question.by, question.call.tool, question.call.arguments["cmd"], question.why))
}

fn concluded(clearing: Clearing) -> String {
    came_to(&clearing.conclude().0)
}

#[test]
fn a_person_reads_why_of_the_call_that_would_run() {
    let script = Script::default()
        .says("a", respond(Some(patch(None, Some("other")))))
        .says("g", ask())
        .says("g", Verdict::<PreToolUse>::Ask("riskier".into()));
    let outcome = Case::new(vec![before("a"), gate("g")]).script(script).clear(call("exec", "ls")).1;
    assert_eq!(came_to(&outcome), r#"g asks about exec {"cmd":"other"}: riskier"#);
}

#[test]
fn yes_to_a_call_after_the_approvers_lets_it_run() {
    let case = || Case::new(vec![before("a"), gate("g"), approver("p")]).script(Script::default().says("g", ask()));
    let (_, mut clearing, asked) = until_asked(case(), "exec");
    assert_eq!(asked.len(), 3);
    assert_eq!(asks(&mut clearing).unwrap(), r#"g about exec "ls": risky"#);
    assert!(clearing.next().is_none(), "a person is due, no hook");
    clearing.approved();
    assert_eq!(asks(&mut clearing), None);
    let (outcome, records) = clearing.conclude();
    assert_eq!(came_to(&outcome), r#"run exec {"cmd":"ls"}"#);
    assert_eq!(lines(&records), "before_tool a continue\npre_tool_use g ask: risky\napprove_tool p continue");
}

#[test]
fn yes_before_the_owner_asks_it_and_its_answer_is_the_execution() {
    let case = |script: Script| {
        Case::new(vec![before("own"), before("z"), gate("g"), approver("p")])
            .owned(&[("web", "own")])
            .script(script.says("g", ask()))
    };
    let (roster, mut clearing, asked) = until_asked(case(Script::default()), "web");
    assert_eq!(asked, [r#"pre_tool_use g sees web {"cmd":"ls"}"#]);
    assert_eq!(asks(&mut clearing).unwrap(), r#"g about web "ls": risky"#);
    clearing.approved();
    let asked = Script::default().says("own", respond(None)).play(&mut clearing, &roster);
    assert_eq!(asked, [r#"before_tool own sees web {"cmd":"ls"}"#]);
    assert_eq!(concluded(clearing), r#"own answers web {"cmd":"ls"}: answer"#);

    // An owner that does not respond lets the call go on; the same call is not asked about twice.
    let (roster, mut clearing, _) = until_asked(case(Script::default()), "web");
    clearing.approved();
    let asked = Script::default().play(&mut clearing, &roster);
    assert_eq!(asked.len(), 3, "own, z, p: {asked:?}");
    assert_eq!(asks(&mut clearing), None);
    assert_eq!(concluded(clearing), r#"run web {"cmd":"ls"}"#);
}

#[test]
fn yes_to_a_substitute_lets_its_result_stand() {
    let script = Script::default().says("a", respond(Some(patch(None, Some("other"))))).says("g", ask());
    let (_, mut clearing, _) = until_asked(Case::new(vec![before("a"), gate("g")]).script(script), "exec");
    assert_eq!(asks(&mut clearing).unwrap(), r#"g about exec "other": risky"#);
    clearing.approved();
    assert_eq!(concluded(clearing), r#"a answers exec {"cmd":"other"}: answer"#);
}

#[test]
fn a_call_that_was_changed_after_the_yes_is_asked_about_again() {
    let case = || {
        Case::new(vec![before("own"), before("z"), gate("g")])
            .owned(&[("web", "own")])
            .script(Script::default().says("g", ask()))
    };
    let changing = || Script::default().says("z", modify("rm"));
    let (roster, mut clearing, _) = until_asked(case(), "web");
    clearing.approved();
    changing().says("g", ask()).play(&mut clearing, &roster);
    assert_eq!(asks(&mut clearing).unwrap(), r#"g about web "rm": risky"#);
    assert_eq!(concluded(clearing), r#"g asks about web {"cmd":"rm"}: risky"#);

    // The owner answered for another call than the one that was approved.
    let (roster, mut clearing, _) = until_asked(case(), "web");
    clearing.approved();
    Script::default().says("own", respond(Some(patch(None, Some("rm"))))).says("g", ask()).play(&mut clearing, &roster);
    assert_eq!(asks(&mut clearing).unwrap(), r#"g about web "rm": risky"#);
    clearing.approved();
    assert_eq!(concluded(clearing), r#"own answers web {"cmd":"rm"}: answer"#);

    // The gates rule on the changed call anew: they may block it, or let it pass as it is.
    let (roster, mut clearing, _) = until_asked(case(), "web");
    clearing.approved();
    changing().says("g", block()).play(&mut clearing, &roster);
    assert_eq!(concluded(clearing), "Hook blocked: pre_tool_use: g: no");
}

#[test]
fn no_refuses_the_call_in_the_words_that_were_given() {
    let case = || {
        Case::new(vec![before("own"), gate("g"), approver("p")])
            .owned(&[("web", "own")])
            .script(Script::default().says("g", ask()))
    };
    let (roster, mut clearing, _) = until_asked(case(), "web");
    clearing.refused("anna refused the call: not today");
    assert!(Script::default().play(&mut clearing, &roster).is_empty(), "nobody is asked after a no");
    assert_eq!(asks(&mut clearing), None);
    clearing.approved();
    let (outcome, records) = clearing.conclude();
    assert_eq!(came_to(&outcome), "anna refused the call: not today (asked by hook \"g\")");
    let ClearingOutcome::Refused { denied, .. } = outcome else { panic!("a no refuses") };
    assert_eq!((denied.ground, denied.at), (DenialGround::Person, CheckpointKind::PreToolUse));
    let left = "pre_tool_use g ask: risky\nbefore_tool own not run, decided by g\napprove_tool p not run, decided by g";
    assert_eq!(lines(&records), left);
}

#[test]
fn a_yes_or_no_that_nobody_asked_for_changes_nothing() {
    let case = || Case::new(vec![gate("g"), approver("p")]);
    let fresh = || Clearing::new(Arc::new(Roster::new(case().hooks)), Agent::with(&[]), call("exec", "ls"));
    let mut clearing = fresh();
    clearing.approved();
    clearing.refused("no");
    assert_eq!(concluded(clearing), "Hook blocked: pre_tool_use: g: hook \"g\" was cancelled");
    // Leave that comes before the question is no leave.
    let roster = Arc::new(Roster::new(case().hooks));
    let mut clearing = Clearing::new(roster.clone(), Agent::with(&[]), call("exec", "ls"));
    clearing.approved();
    Script::default().says("g", ask()).play(&mut clearing, &roster);
    assert_eq!(concluded(clearing), r#"g asks about exec {"cmd":"ls"}: risky"#);
}

#[test]
fn a_clearing_that_is_left_while_a_person_is_due_runs_nothing() {
    for (hooks, owned) in [(vec![gate("g")], vec![]), (vec![before("own"), gate("g")], vec![("web", "own")])] {
        let case = Case::new(hooks).owned(&owned).script(Script::default().says("g", ask()));
        let (_, clearing, _) = until_asked(case, "web");
        let outcome = clearing.conclude().0;
        assert!(matches!(outcome, ClearingOutcome::Ask { .. }), "{outcome:?}");
        assert_eq!(outcome.word(), VerdictKind::Ask);
    }
}
