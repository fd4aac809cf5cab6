//! What hooks say, and what it comes to.

use super::*;
use crate::breaker::BreakerPolicy;
use crate::checkpoint::Reply;
use crate::id::{HookId, TenantId};
use crate::rule::{Rights, RuleDetails};

#[test]
fn refusals_name_the_hook_and_carry_its_reason() {
    let deny = |reason: &str| Script::default().says("h", Verdict::<BeforeTool>::Deny(reason.into()));
    let text =
        |script| ruled(&conclude(vec![hook("h", &[AtBeforeTool])], Agent::with(&[]), before_tool(), script).ruling);
    assert_eq!(text(deny("not on Sundays")), "Tool execution denied by hook: not on Sundays (hook \"h\")");
    assert_eq!(text(deny("")), "Tool execution denied by hook (hook \"h\")");
    assert_eq!(text(deny("  \u{7}\n ")), "Tool execution denied by hook (hook \"h\")");
    assert_eq!(text(deny(" a\u{1b}[31mb ")), "Tool execution denied by hook: a[31mb (hook \"h\")");
    let spoof = "Tool execution denied by hook: hooks kept rewriting the input (hook \"h\")";
    assert_eq!(text(deny(KEPT_REWRITING)), spoof);
    let long = text(deny(&"é".repeat(5000)));
    assert_eq!(long, format!("Tool execution denied by hook: {} (hook \"h\")", "é".repeat(2048)));

    let refuse = |reason: &str| Script::default().says("h", Verdict::<ApproveTool>::Deny(reason.into()));
    let text =
        |script| ruled(&conclude(vec![hook("h", &[AtApprove])], Agent::with(&[]), approve_tool(), script).ruling);
    assert_eq!(text(refuse("no budget")), "Tool execution denied by approval hook: no budget (hook \"h\")");
    assert_eq!(text(refuse("")), "Tool execution denied by approval hook (hook \"h\")");

    let block = |reason: &str| Script::default().says("h", Verdict::<PreToolUse>::Deny(reason.into()));
    let text =
        |script| ruled(&conclude(vec![hook("h", &[AtPreToolUse])], Agent::with(&[]), pre_tool_use(), script).ruling);
    assert_eq!(text(block("rm")), "Hook blocked: pre_tool_use: h: rm");
    assert_eq!(text(block("")), "Hook blocked: pre_tool_use: h: blocked by hook \"h\"");
}

#[test]
fn aborts_name_the_stage_or_the_hook_that_stopped_the_run() {
    let says =
        |abort_scope, reason| Script::default().says("h", Verdict::<AfterTool>::Abort(abort(abort_scope, reason)));
    let text =
        |script| ruled(&conclude(vec![hook("h", &[AtAfterTool])], Agent::with(&[]), after_tool(), script).ruling);
    assert_eq!(text(says(AbortScope::Turn, "leak")), "Turn: hook aborted turn during after_tool: leak");
    assert_eq!(
        text(says(AbortScope::Turn, "")),
        "Turn: hook aborted turn during after_tool: hook requested turn abort"
    );
    assert_eq!(text(says(AbortScope::Run, "stop")), "Run: hook \"h\" stopped the run: stop");
    assert_eq!(text(says(AbortScope::Run, "")), "Run: hook \"h\" stopped the run: hook requested turn abort");
}

#[test]
fn the_first_terminal_answer_ends_a_before_tool_chain() {
    let hooks = || ["a", "b", "c"].map(|name| hook(name, &[AtBeforeTool])).to_vec();
    let substitute = Substitute { call: None, result: ToolOutput::ok("15 °C") };
    check(
        hooks(),
        before_tool(),
        Script::default()
            .says("a", Verdict::<BeforeTool>::Modify(patch("pwd")))
            .says("b", Verdict::<BeforeTool>::respond(substitute))
            .says("c", Verdict::<BeforeTool>::Deny("never".into())),
        r#"
        b responds
        before_tool a modify [{"op":"replace","path":"/arguments/cmd","value":"pwd"}]
        before_tool b respond
        before_tool c not run, decided by b
        "#,
    );
    check(
        hooks(),
        before_tool(),
        Script::default().says("b", Verdict::<BeforeTool>::Abort(abort(AbortScope::Run, "now"))),
        r#"
        Run: hook "b" stopped the run: now
        before_tool a continue
        before_tool b hard_abort: now
        before_tool c not run, decided by b
        "#,
    );
}

#[test]
fn respond_needs_a_grant_for_both_calls() {
    let narrow = || hook("h", &[AtBeforeTool]).responding(&["web_*", "read"]).failing(OnFailure::Continue);
    let answer = |tool: Option<&str>| {
        let call = tool.map(|tool| CallPatch { tool: Some(tool.into()), arguments: None });
        Script::default().says("h", Verdict::<BeforeTool>::respond(Substitute { call, result: ToolOutput::ok("x") }))
    };
    let text = |tool: &str, script| {
        let owned = Agent::with(&[("mine", "h"), ("theirs", "i")]);
        let subject = BeforeTool { call: call(tool, "ls"), owner: owned.known.owner(tool) };
        ruled(&conclude(vec![narrow()], owned, subject, script).ruling)
    };
    // Which tool it was is for the record: the model is told that the hook is broken, and no more.
    let refused = "Tool execution denied by hook: hook \"h\" broke the protocol";
    assert_eq!(text("web_search", answer(None)), "h responds");
    assert_eq!(text("mine", answer(None)), "h responds");
    assert_eq!(text("exec", answer(None)), refused);
    assert_eq!(text("theirs", answer(None)), refused);
    assert_eq!(text("read", answer(Some("exec"))), refused);
    assert_eq!(text("read", answer(Some("bash"))), refused);
    assert_eq!(text("read", answer(Some("mine"))), "h responds");
    assert_eq!(text("read", answer(Some(""))), "h responds");
    assert_eq!(text("read", answer(Some("nothing"))), refused);
}

#[test]
fn a_renamed_call_must_be_a_tool_of_this_agent() {
    let rename = |tool: &str| {
        let patch = CallPatch { tool: Some(tool.into()), arguments: Some(args("pwd")) };
        Script::default().says("h", Verdict::<BeforeTool>::Modify(patch))
    };
    let conclude = |script| conclude(vec![hook("h", &[AtBeforeTool])], Agent::with(&[]), before_tool(), script);
    let concluded = conclude(rename("nothing"));
    assert_eq!(ruled(&concluded.ruling), "Tool execution denied by hook: hook \"h\" broke the protocol");
    assert_eq!(concluded.subject.call, call("exec", "ls"));
    let concluded = conclude(rename("read"));
    assert_eq!((concluded.subject.call.tool.as_str(), concluded.subject.call.raw_tool.as_str()), ("read", "exec"));
    let concluded = conclude(rename(""));
    assert_eq!(concluded.subject.call, call("exec", "pwd"));
    assert_eq!(concluded.records.to_vec()[0].warnings, ["an empty `tool` keeps the tool"]);
}

#[test]
fn an_ask_is_kept_and_a_later_deny_wins() {
    let ask = || Script::default().says("a", Verdict::<PreToolUse>::Ask("risky".into()));
    let hooks = || ["a", "b", "c"].map(|name| hook(name, &[AtPreToolUse])).to_vec();
    check(
        hooks(),
        pre_tool_use(),
        ask().says("b", Verdict::<PreToolUse>::Ask("later".into())),
        "
        a asks
        pre_tool_use a ask: risky
        pre_tool_use b ask: later
        pre_tool_use c continue
        ",
    );
    check(
        hooks(),
        pre_tool_use(),
        ask().says("b", Verdict::<PreToolUse>::Deny("no".into())),
        "
        Hook blocked: pre_tool_use: b: no
        pre_tool_use a ask: risky
        pre_tool_use b deny: no
        pre_tool_use c not run, decided by b
        ",
    );
}

#[test]
fn the_question_is_that_of_an_exception_wherever_it_stands_among_those_that_ask() {
    let of_store = |name: &str, is_exception| {
        let stored = RuleDetails {
            id: HookId::from(name),
            tenant: TenantId::default_tenant(),
            version: 1,
            handler: HandlerType::Script,
            created_at: String::new(),
            condition: None,
            rights: Rights::Nothing,
            breaker: BreakerPolicy::All,
            on_trip: Fallback::Block,
            is_exception,
        };
        Hook { family: Family::Rule, stored: Some(Arc::new(stored)), ..hook(name, &[AtPreToolUse]) }
    };
    let asked = |rules: &[(&str, bool)]| {
        let gate = Hook { family: Family::Native, ..hook("ask main", &[AtPreToolUse]) };
        let hooks = [gate].into_iter().chain(rules.iter().map(|&(name, is)| of_store(name, is))).collect();
        let script = rules.iter().fold(Script::default(), |script, &(name, _)| {
            script.says(name, Verdict::<PreToolUse>::Ask("of this call".into()))
        });
        let script = script.says("ask main", Verdict::<PreToolUse>::Ask("of every call".into()));
        ruled(&conclude(hooks, Agent::with(&[]), pre_tool_use(), script).ruling)
    };
    assert_eq!(asked(&[("a", false)]), "ask main asks");
    assert_eq!(asked(&[("a", false), ("instead", true)]), "instead asks");
    assert_eq!(asked(&[("a", true), ("b", true)]), "a asks", "the first of two");
    assert_eq!(asked(&[("a", true), ("b", false)]), "a asks");
}

#[test]
fn approvers_end_at_the_first_refusal() {
    check(
        ["a", "b", "c"].map(|name| hook(name, &[AtApprove])).to_vec(),
        approve_tool(),
        Script::default().fails("b", AtApprove, Fault::TimedOut { after: Duration::from_secs(60) }),
        r#"
        Tool execution denied by approval hook: tool approval hook "b" timed out
        approve_tool a continue
        approve_tool b timed_out became deny
        approve_tool c not run, decided by b
        "#,
    );
}

#[test]
fn what_was_to_be_read_is_dropped_where_the_chain_refuses_and_the_records_say_so() {
    let told = |second: Verdict<PreToolUse>| {
        let hooks = ["a", "b"].map(|name| hook(name, &[AtPreToolUse]));
        let mut chain = Chain::new(Arc::new(Roster::new(hooks.into())), Agent::with(&[]), pre_tool_use());
        for verdict in [Verdict::Continue, second] {
            assert!(chain.next().is_some());
            let heard: ParsedVerdict<PreToolUse> = ParsedVerdict { context: Some("look".into()), ..verdict.into() };
            chain.settle(Ok(Reply::PreToolUse(heard)), Duration::ZERO);
        }
        let concluded = chain.conclude();
        let of =
            |record: &Record| (record.warnings.concat(), record.account.as_ref().is_some_and(|it| it.context_dropped));
        (concluded.notes.len(), concluded.records.to_vec().iter().map(of).collect::<Vec<_>>())
    };
    assert_eq!(told(Verdict::Ask("sure?".into())), (2, vec![(String::new(), false); 2]));
    let dropped = |why: &str| (format!("its `additionalContext` was dropped: {why}"), true);
    let expected = vec![dropped("another hook refused"), dropped("it has no place here")];
    assert_eq!(told(Verdict::Deny("no".into())), (0, expected));
}
