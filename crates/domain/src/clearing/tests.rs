//! What one tool call comes to, as tables.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::checkpoint::CallPatch;
use crate::checkpoint::CheckpointKind::{
    ApproveTool as AtApprove, BeforeTool as AtBeforeTool, PreToolUse as AtPreToolUse,
};
use crate::hook::{Hook, OnFailure, State};
use crate::json::Object;
use crate::testing::{Agent, Script, args, call, hook, lines, said};
use crate::verdict::{Abort, Extent, Verdict};

/// Clears `exec {"cmd":"ls"}`, or the tool of the first owned pair, and compares who was asked on what,
/// the outcome and every record.
struct Case {
    hooks: Vec<Hook>,
    owned: Vec<(&'static str, &'static str)>,
    script: Script,
}

impl Case {
    fn new(hooks: Vec<Hook>) -> Self {
        Self { hooks, owned: Vec::new(), script: Script::default() }
    }

    fn owned(self, owned: &[(&'static str, &'static str)]) -> Self {
        Self { owned: owned.to_vec(), ..self }
    }

    fn script(self, script: Script) -> Self {
        Self { script, ..self }
    }

    fn clear(self, call: ToolCall) -> (Vec<String>, Outcome, Vec<Record>) {
        let roster = Arc::new(Roster::new(self.hooks));
        let mut clearing = Clearing::new(roster.clone(), Agent::with(&self.owned), call);
        let asked = self.script.play(&mut clearing, &roster);
        let (outcome, records) = clearing.conclude().expect("everyone was asked");
        (asked, outcome, records)
    }

    fn check(self, tool: &str, expected: &str) {
        let (asked, outcome, records) = self.clear(call(tool, "ls"));
        let told = format!("{}\n=> {}\n{}", asked.join("\n"), came_to(&outcome), lines(&records));
        let told: Vec<&str> = told.lines().filter(|line| !line.is_empty()).collect();
        let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        assert_eq!(told, expected);
    }
}

fn came_to(outcome: &Outcome) -> String {
    let shown = |call: &ToolCall| format!("{} {}", call.tool, serde_json::json!(call.arguments));
    match outcome {
        Outcome::Run(call) => format!("run {}", shown(call)),
        Outcome::Substituted { call, by, result } => format!("{by} answers {}: {}", shown(call), result.for_llm),
        Outcome::Ask { call, by, why } => format!("{by} asks about {}: {why}", shown(call)),
        Outcome::Refused { denied, .. } => denied.text(),
        Outcome::Abort(aborted) => aborted.text(),
    }
}

fn before(name: &str) -> Hook {
    hook(name, &[AtBeforeTool])
}

fn gate(name: &str) -> Hook {
    hook(name, &[AtPreToolUse])
}

fn approver(name: &str) -> Hook {
    hook(name, &[AtApprove])
}

fn patch(tool: Option<&str>, cmd: Option<&str>) -> CallPatch {
    CallPatch { tool: tool.map(Into::into), arguments: cmd.map(args) }
}

fn modify(cmd: &str) -> Verdict<BeforeTool> {
    Verdict::Modify(patch(None, Some(cmd)))
}

fn respond(call: Option<CallPatch>) -> Verdict<BeforeTool> {
    Verdict::Respond(Substitute { call, result: ToolOutput::ok("answer") })
}

fn rewrite(cmd: &str) -> Verdict<PreToolUse> {
    Verdict::Modify(args(cmd))
}

fn deny_before() -> Verdict<BeforeTool> {
    Verdict::Deny("no".into())
}

fn block() -> Verdict<PreToolUse> {
    Verdict::Deny("no".into())
}

fn ask() -> Verdict<PreToolUse> {
    Verdict::Ask("risky".into())
}

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
    Case::new(vec![before("a"), gate("b"), approver("c"), approver("d").state(State::Disabled)])
        .script(Script::default().fails("b", AtPreToolUse, Fault::Killed { signal: 9 }))
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
    let abort = Abort { extent: Extent::Turn, reason: "stop".into() };
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
            before_tool z modify [{"op":"replace","path":"/arguments/cmd","value":"two"}]
            pre_tool_use g again modify [{"op":"replace","path":"/arguments/cmd","value":"three"}]
            before_tool a again continue
            before_tool z again continue
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
fn an_unfinished_clearing_has_no_outcome() {
    let clearing = Clearing::new(Arc::new(Roster::new(vec![gate("g")])), Agent::with(&[]), call("exec", "ls"));
    assert!(clearing.conclude().is_none());
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
