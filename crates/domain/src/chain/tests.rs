//! What a row of hooks concludes, as tables.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::checkpoint::CheckpointKind::{AfterLlm as AtAfterLlm, AfterTool as AtAfterTool, ApproveTool as AtApprove};
use crate::checkpoint::CheckpointKind::{BeforeLlm as AtBeforeLlm, BeforeTool as AtBeforeTool};
use crate::checkpoint::CheckpointKind::{PreToolUse as AtPreToolUse, UserPromptSubmit as AtPrompt};
use crate::checkpoint::{
    AfterLlm, AfterTool, ApproveTool, BeforeLlm, BeforeTool, CallPatch, LlmPatch, PreToolUse, Substitute,
    UserPromptSubmit,
};
use crate::fault::Way;
use crate::hook::Family;
use crate::json::{Object, Rendered};
use crate::llm::{LlmReply, LlmRequest, ToolDef, Usage};
use crate::message::{CallPart, Message, Private, Role};
use crate::testing::{Agent, Says, Script, args, call, hook, lines};
use crate::tool::ToolOutput;

/// Plays `script` over `hooks` and tells what it came to.
fn conclude<C: Says>(hooks: Vec<Hook>, known: Arc<dyn Known>, subject: C, script: Script) -> Conclusion<C> {
    let roster = Arc::new(Roster::new(hooks));
    let mut chain = Chain::new(roster.clone(), known, subject);
    script.play(&mut chain, &roster);
    chain.conclude()
}

fn ruled<C: Checkpoint>(ruling: &Ruling<C>) -> String {
    match ruling {
        Ruling::Proceed => "proceed".into(),
        Ruling::Respond { by, .. } => format!("{by} responds"),
        Ruling::Ask { by, .. } => format!("{by} asks"),
        Ruling::Deny(denied) => denied.text(),
        Ruling::Abort(aborted) => format!("{:?}: {}", aborted.abort.extent, aborted.text()),
    }
}

/// The ruling and every record, one a line.
fn check<C: Says>(hooks: Vec<Hook>, subject: C, script: Script, expected: &str) {
    let conclusion = conclude(hooks, Agent::with(&[]), subject, script);
    let told = format!("{}\n{}", ruled(&conclusion.ruling), lines(&conclusion.records));
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(told.lines().collect::<Vec<_>>(), expected);
}

fn before_tool() -> BeforeTool {
    BeforeTool { call: call("exec", "ls"), owner: None }
}

fn pre_tool_use() -> PreToolUse {
    PreToolUse { call: call("exec", "ls") }
}

fn approve_tool() -> ApproveTool {
    ApproveTool { call: call("exec", "ls") }
}

fn after_tool() -> AfterTool {
    AfterTool { call: call("exec", "ls"), result: ToolOutput::ok("done"), duration: Duration::ZERO }
}

fn before_llm(tools: &[&str]) -> BeforeLlm {
    BeforeLlm::new(LlmRequest {
        model: "m".into(),
        messages: vec![Rendered::new(Message::text(Role::User, "hi"))],
        tools: definitions(tools),
        options: Object::new(),
        graceful_terminal: false,
    })
}

fn definitions(tools: &[&str]) -> Vec<Rendered<ToolDef>> {
    tools.iter().map(|name| Rendered::new(ToolDef::new(name, "", serde_json::json!({})))).collect()
}

fn after_llm() -> AfterLlm {
    AfterLlm { model: "m".into(), response: LlmReply::text("hello") }
}

fn patch(cmd: &str) -> CallPatch {
    CallPatch { tool: None, arguments: Some(args(cmd)) }
}

fn abort(extent: Extent, reason: &str) -> Abort {
    Abort { extent, reason: reason.into() }
}

/// Every fault with its phrase, as process-hooks.md 6 spells them.
fn faults() -> Vec<(Fault, &'static str)> {
    let limit = 67_108_864;
    vec![
        (Fault::TimedOut { after: Duration::from_secs(5) }, "timed out after 5000 ms"),
        (Fault::Protocol(Breach::Returned("boom".into())), "returned an error: boom"),
        (Fault::broke("unknown action"), "broke the protocol: unknown action"),
        (Fault::Unreadable { detail: "line 1".into() }, "sent an unreadable reply: line 1"),
        (Fault::TooLarge { way: Way::Reply, limit }, "sent a reply above 67108864 bytes"),
        (Fault::TooLarge { way: Way::Call, limit }, "cannot take a call above 67108864 bytes"),
        (Fault::CannotStart { detail: "no such file".into() }, "could not start: no such file"),
        (Fault::BadExit { status: 3 }, "exited with status 3"),
        (Fault::Killed { signal: 9 }, "was killed by signal 9"),
        (Fault::Panicked, "panicked"),
        (Fault::Cancelled, "was cancelled"),
        (Fault::ConditionFailed { detail: "no key".into() }, "could not evaluate its condition: no key"),
        (Fault::Unavailable { detail: "no store".into() }, "is unavailable: no store"),
    ]
}

/// What `fault` of the one hook `h` comes to, and what the record says it became.
fn faulted<C: Says>(hook: Hook, subject: C, fault: Fault) -> (String, Word) {
    let script = Script::default().fails("h", C::KIND, fault.clone());
    let conclusion = conclude(vec![hook], Agent::with(&[]), subject.clone(), script);
    assert_eq!(conclusion.subject.snapshot(), subject.snapshot());
    let [record] = &conclusion.records[..] else { panic!("one hook, one record") };
    let Outcome::Failed { fault: recorded, became, .. } = &record.outcome else { panic!("{record:?}") };
    assert_eq!(recorded, &fault);
    (ruled(&conclusion.ruling), *became)
}

#[test]
fn a_fault_closes_what_a_hook_guards() {
    for (fault, phrase) in faults() {
        let denied = (format!("Tool execution denied by hook: hook \"h\" {phrase}"), Word::Deny);
        assert_eq!(faulted(hook("h", &[AtBeforeTool]), before_tool(), fault.clone()), denied);

        let blocked = (format!("Hook blocked: pre_tool_use: h: hook \"h\" {phrase}"), Word::Deny);
        assert_eq!(faulted(hook("h", &[AtPreToolUse]), pre_tool_use(), fault.clone()), blocked);

        let prompt = UserPromptSubmit { prompt: "hi".into() };
        let blocked = (format!("hook blocked user_prompt_submit: h: hook \"h\" {phrase}"), Word::Deny);
        assert_eq!(faulted(hook("h", &[AtPrompt]), prompt, fault.clone()), blocked);

        let end = if matches!(fault, Fault::TimedOut { .. }) { "timed out" } else { "failed" };
        let refused = (format!("Tool execution denied by approval hook: tool approval hook \"h\" {end}"), Word::Deny);
        assert_eq!(faulted(hook("h", &[AtApprove]), approve_tool(), fault), refused);
    }
}

#[test]
fn a_fault_of_another_rewriter_goes_on_or_aborts_as_it_says() {
    let goes_on = ("proceed".to_owned(), Word::Continue);
    for (fault, phrase) in faults() {
        let aborts =
            |stage: &str| (format!("Turn: hook aborted turn during {stage}: hook \"h\" {phrase}"), Word::AbortTurn);
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
        assert_eq!(word(faulted(at(AtBeforeLlm), before_llm(&[]), Fault::Cancelled)), Word::Continue);
        assert_eq!(word(faulted(at(AtAfterLlm), after_llm(), Fault::Cancelled)), Word::Continue);
        assert_eq!(word(faulted(at(AtAfterTool), after_tool(), Fault::Cancelled)), Word::Continue);
        assert_eq!(word(faulted(at(AtBeforeTool), before_tool(), Fault::Cancelled)), Word::Deny);
        assert_eq!(word(faulted(at(AtPreToolUse), pre_tool_use(), Fault::Cancelled)), Word::Deny);
        assert_eq!(word(faulted(at(AtApprove), approve_tool(), Fault::Cancelled)), Word::Deny);
    }
}

#[test]
fn continue_opens_before_tool_only_where_it_was_said() {
    for (fault, _) in faults() {
        let open = hook("h", &[AtBeforeTool]).failing(OnFailure::Continue);
        assert_eq!(faulted(open, before_tool(), fault), ("proceed".into(), Word::Continue));
    }
}

#[test]
fn no_setting_opens_an_approver_and_timeouts_only_open_a_gate() {
    for (fault, _) in faults() {
        for on_failure in [OnFailure::Continue, OnFailure::AbortTurn, OnFailure::Close] {
            let approver = hook("h", &[AtApprove]).failing(on_failure).paired();
            assert_eq!(faulted(approver, approve_tool(), fault.clone()).1, Word::Deny, "{fault:?} {on_failure:?}");
            let gate = hook("h", &[AtPreToolUse]).failing(on_failure).paired();
            let opens = on_failure == OnFailure::Continue && matches!(fault, Fault::TimedOut { .. });
            let expected = if opens { Word::Continue } else { Word::Deny };
            assert_eq!(faulted(gate, pre_tool_use(), fault.clone()).1, expected, "{fault:?} {on_failure:?}");
        }
    }
}

#[test]
fn paired_stages_always_continue() {
    for (fault, _) in faults() {
        for on_failure in [OnFailure::Close, OnFailure::AbortTurn] {
            let at = |kind| hook("h", &[kind]).failing(on_failure).paired();
            assert_eq!(faulted(at(AtBeforeTool), before_tool(), fault.clone()).1, Word::Continue);
            assert_eq!(faulted(at(AtBeforeLlm), before_llm(&[]), fault.clone()).1, Word::Continue);
            assert_eq!(faulted(at(AtAfterLlm), after_llm(), fault.clone()).1, Word::Continue);
            assert_eq!(faulted(at(AtAfterTool), after_tool(), fault.clone()).1, Word::Continue);
        }
    }
}

#[test]
fn a_bad_respond_denies_whatever_the_hook_says() {
    let fault = Fault::Protocol(Breach::Respond("result.result is missing".into()));
    let text = "Tool execution denied by hook: hook \"h\" broke the protocol: result.result is missing";
    let open = hook("h", &[AtBeforeTool]).failing(OnFailure::Continue);
    assert_eq!(faulted(open.clone(), before_tool(), fault.clone()), (text.into(), Word::Deny));
    assert_eq!(faulted(open.paired(), before_tool(), fault), (text.into(), Word::Deny));
}

#[test]
fn a_broken_stub_closes_unasked() {
    let broken = || State::Broken(Fault::CannotStart { detail: "bad entry".into() });
    check(
        vec![hook("stub", &[AtBeforeTool]).state(broken()), hook("z", &[AtBeforeTool])],
        before_tool(),
        Script::default(),
        r#"
        Tool execution denied by hook: hook "stub" could not start: bad entry
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
    let says = |extent, reason| Script::default().says("h", Verdict::<AfterTool>::Abort(abort(extent, reason)));
    let text =
        |script| ruled(&conclude(vec![hook("h", &[AtAfterTool])], Agent::with(&[]), after_tool(), script).ruling);
    assert_eq!(text(says(Extent::Turn, "leak")), "Turn: hook aborted turn during after_tool: leak");
    assert_eq!(text(says(Extent::Turn, "")), "Turn: hook aborted turn during after_tool: hook requested turn abort");
    assert_eq!(text(says(Extent::Run, "stop")), "Run: hook \"h\" stopped the run: stop");
    assert_eq!(text(says(Extent::Run, "")), "Run: hook \"h\" stopped the run: hook requested turn abort");
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
            .says("b", Verdict::<BeforeTool>::Respond(substitute))
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
        Script::default().says("b", Verdict::<BeforeTool>::Abort(abort(Extent::Run, "now"))),
        r#"
        Run: hook "b" stopped the run: now
        before_tool a continue
        before_tool b hard_abort: now
        before_tool c not run, decided by b
        "#,
    );
}

#[test]
fn everyone_leaves_a_record_and_the_reason_why_it_did_not_run() {
    check(
        vec![
            hook("a", &[AtBeforeTool]).state(State::Disabled),
            hook("b", &[AtBeforeTool]).state(State::Untrusted),
            hook("c", &[AtBeforeTool]).matching("^(read|write)$"),
            hook("d", &[AtBeforeTool]),
            hook("e", &[AtBeforeTool]),
            hook("f", &[AtBeforeTool]).state(State::Disabled),
            hook("g", &[AtBeforeTool]).state(State::Untrusted),
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
    let ran = |records: &[Record]| {
        records.iter().map(|record| !matches!(record.outcome, Outcome::NotRun(_))).collect::<Vec<_>>()
    };
    let web = || call("web", "x");
    let owner = known().owner("web");
    let concluded = conclude(narrow(AtBeforeTool), known(), BeforeTool { call: web(), owner }, Script::default());
    assert_eq!(ran(&concluded.records), [true, false]);
    let concluded = conclude(narrow(AtApprove), known(), ApproveTool { call: web() }, Script::default());
    assert_eq!(ran(&concluded.records), [true, false]);
    let after = AfterTool { call: web(), ..after_tool() };
    let concluded = conclude(narrow(AtAfterTool), known(), after, Script::default());
    assert_eq!(ran(&concluded.records), [true, false]);
}

#[test]
fn respond_needs_a_grant_for_both_calls() {
    let narrow = || hook("h", &[AtBeforeTool]).responding(&["web_*", "read"]).failing(OnFailure::Continue);
    let answer = |tool: Option<&str>| {
        let call = tool.map(|tool| CallPatch { tool: Some(tool.into()), arguments: None });
        Script::default().says("h", Verdict::<BeforeTool>::Respond(Substitute { call, result: ToolOutput::ok("x") }))
    };
    let text = |tool: &str, script| {
        let owned = Agent::with(&[("mine", "h"), ("theirs", "i")]);
        let subject = BeforeTool { call: call(tool, "ls"), owner: owned.owner(tool) };
        ruled(&conclude(vec![narrow()], owned, subject, script).ruling)
    };
    let refused = |tool: &str| {
        format!("Tool execution denied by hook: hook \"h\" broke the protocol: it may not respond to tool \"{tool}\"")
    };
    assert_eq!(text("web_search", answer(None)), "h responds");
    assert_eq!(text("mine", answer(None)), "h responds");
    assert_eq!(text("exec", answer(None)), refused("exec"));
    assert_eq!(text("theirs", answer(None)), refused("theirs"));
    assert_eq!(text("read", answer(Some("exec"))), refused("exec"));
    assert_eq!(text("read", answer(Some("bash"))), refused("exec"));
    assert_eq!(text("read", answer(Some("mine"))), "h responds");
    assert_eq!(text("read", answer(Some(""))), "h responds");
    assert_eq!(
        text("read", answer(Some("nothing"))),
        "Tool execution denied by hook: hook \"h\" broke the protocol: \
         result.call.tool names \"nothing\", which is no tool of this agent"
    );
}

#[test]
fn a_renamed_call_must_be_a_tool_of_this_agent() {
    let rename = |tool: &str| {
        let patch = CallPatch { tool: Some(tool.into()), arguments: Some(args("pwd")) };
        Script::default().says("h", Verdict::<BeforeTool>::Modify(patch))
    };
    let conclude = |script| conclude(vec![hook("h", &[AtBeforeTool])], Agent::with(&[]), before_tool(), script);
    let concluded = conclude(rename("nothing"));
    assert_eq!(
        ruled(&concluded.ruling),
        "Tool execution denied by hook: hook \"h\" broke the protocol: \
         result.call.tool names \"nothing\", which is no tool of this agent"
    );
    assert_eq!(concluded.subject.call, call("exec", "ls"));
    let concluded = conclude(rename("read"));
    assert_eq!((concluded.subject.call.tool.as_str(), concluded.subject.call.raw_tool.as_str()), ("read", "exec"));
    let concluded = conclude(rename(""));
    assert_eq!(concluded.subject.call, call("exec", "pwd"));
    assert_eq!(concluded.records[0].warnings, ["an empty `tool` keeps the tool"]);
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
        pre_tool_use a modify [{"op":"replace","path":"/arguments/cmd","value":"one"}]
        pre_tool_use b modify [{"op":"replace","path":"/arguments/cmd","value":"two"}]
        pre_tool_use c continue
        pre_tool_use a again modify [{"op":"replace","path":"/arguments/cmd","value":"one"}]
        "#,
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
    assert_eq!(again(Verdict::Respond(substitute)), refused);
    assert_eq!(again(Verdict::Modify(patch("pwd"))), refused);
    assert_eq!(again(Verdict::Modify(patch("ls"))), "proceed");
    assert_eq!(again(Verdict::Continue), "proceed");
    assert_eq!(again(Verdict::Deny("no".into())), "Tool execution denied by hook: no (hook \"h\")");
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
fn an_answer_to_another_question_is_a_fault() {
    let mut chain =
        Chain::new(Arc::new(Roster::new(vec![hook("h", &[AtPreToolUse])])), Agent::with(&[]), pre_tool_use());
    assert!(chain.next().is_some());
    chain.settle(crate::testing::said(Verdict::<ApproveTool>::Continue), Duration::ZERO);
    let text = ruled(&chain.conclude().ruling);
    assert_eq!(text, "Hook blocked: pre_tool_use: h: hook \"h\" broke the protocol: it answered another question");
}

#[test]
fn a_chain_left_before_its_end_stays_shut() {
    let roster = Arc::new(Roster::new(["a", "b"].map(|name| hook(name, &[AtPreToolUse])).to_vec()));
    let concluded = Chain::new(roster, Agent::with(&[]), pre_tool_use()).conclude();
    assert_eq!(ruled(&concluded.ruling), "Hook blocked: pre_tool_use: a: hook \"a\" was cancelled");
    assert_eq!(lines(&concluded.records), "pre_tool_use a cancelled became deny\npre_tool_use b not run, decided by a");
}

#[test]
fn settling_without_being_asked_is_for_the_hook_that_is_due() {
    let disabled = hook("a", &[AtPreToolUse]).state(State::Disabled);
    let roster = Arc::new(Roster::new(vec![disabled, hook("b", &[AtPreToolUse])]));
    let mut chain = Chain::new(roster, Agent::with(&[]), pre_tool_use());
    chain.settle(crate::testing::said(Verdict::<PreToolUse>::Deny("no".into())), Duration::ZERO);
    chain.settle(crate::testing::said(Verdict::<PreToolUse>::Continue), Duration::ZERO);
    assert_eq!(lines(&chain.conclude().records), "pre_tool_use a not run, disabled\npre_tool_use b deny: no");
}

/// What the hooks, each returning a list of tools, leave: the names that are offered, and who owns which.
fn offered(start: &[&str], returned: &[(&str, &[&str])]) -> (Vec<String>, Vec<(String, String)>, Vec<String>) {
    let hooks = returned.iter().map(|(name, _)| hook(name, &[AtBeforeLlm])).collect();
    let script = returned.iter().fold(Script::default(), |script, (name, tools)| {
        let patch = LlmPatch { tools: Some(definitions(tools)), ..LlmPatch::default() };
        script.says(name, Verdict::<BeforeLlm>::Modify(patch))
    });
    let concluded = conclude(hooks, Agent::with(&[]), before_llm(start), script);
    let BeforeLlm { request, owners } = concluded.subject;
    let names = request.tools.iter().map(|tool| tool.get().function.name.clone()).collect();
    let owners = owners.into_iter().map(|(tool, by)| (tool, by.to_string())).collect();
    (names, owners, concluded.records.into_iter().flat_map(|record| record.warnings).collect())
}

#[test]
fn a_hook_owns_the_tools_it_brings_and_no_others() {
    let own =
        |pairs: &[(&str, &str)]| pairs.iter().map(|(t, h)| ((*t).to_owned(), (*h).to_owned())).collect::<Vec<_>>();
    let (names, owners, _) = offered(&["exec"], &[("a", &["exec", "web"])]);
    assert_eq!((names, owners), (vec!["exec".into(), "web".into()], own(&[("web", "a")])));

    // An edit moves no ownership, neither of a built-in nor of another hook's tool.
    let (_, owners, _) = offered(&["exec"], &[("a", &["exec", "web"]), ("b", &["web", "exec"])]);
    assert_eq!(owners, own(&[("web", "a")]));

    // Of two definitions with one name the first stays.
    let (names, owners, warnings) = offered(&["exec"], &[("a", &["exec", "exec", "web", "web"])]);
    assert_eq!((names, owners), (vec!["exec".into(), "web".into()], own(&[("web", "a")])));
    assert_eq!(warnings.len(), 2);
    assert_eq!(warnings[0], "a second definition of tool `exec` is ignored; the first stays");

    // What is taken out again belongs to nobody; what is brought back belongs to who brought it.
    let (_, owners, _) = offered(&[], &[("a", &["web"]), ("b", &[])]);
    assert_eq!(owners, own(&[]));
    let (_, owners, _) = offered(&[], &[("a", &["web"]), ("b", &[]), ("c", &["web"])]);
    assert_eq!(owners, own(&[("web", "c")]));
}

#[test]
fn an_unknown_model_is_a_fault_and_changes_nothing() {
    let patch = |model: &str| {
        let patch = LlmPatch { model: Some(model.into()), tools: Some(definitions(&["web"])), ..LlmPatch::default() };
        Script::default().says("h", Verdict::<BeforeLlm>::Modify(patch))
    };
    let conclude = |script| conclude(vec![hook("h", &[AtBeforeLlm])], Agent::with(&[]), before_llm(&[]), script);
    let concluded = conclude(patch("gpt-9"));
    assert_eq!(concluded.subject, before_llm(&[]));
    assert_eq!(lines(&concluded.records), "before_llm h protocol_error became continue");
    assert_eq!(conclude(patch("big")).subject.request.model, "big");
    let concluded = conclude(patch(""));
    assert_eq!(concluded.subject.request.model, "m");
    assert_eq!(concluded.records[0].warnings, ["an empty `model` keeps the model"]);
    assert_eq!(concluded.subject.owners.len(), 1);
}

#[test]
fn a_replaced_answer_keeps_the_usage_and_gets_its_finish_reason_from_its_calls() {
    let usage = Some(Usage { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 });
    let private = Private { blocks: vec![serde_json::json!({"signature": "s"})] };
    let original = LlmReply { usage, private: private.clone(), ..LlmReply::text("hello") };
    let replaced = |with: LlmReply| {
        let subject = AfterLlm { model: "m".into(), response: original.clone() };
        let script = Script::default().says("h", Verdict::<AfterLlm>::Modify(with));
        conclude(vec![hook("h", &[AtAfterLlm])], Agent::with(&[]), subject, script).subject.response
    };
    let bare = |reply: LlmReply| LlmReply { finish_reason: String::new(), ..reply };
    let claimed = Some(Usage { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 });

    let text = replaced(LlmReply { usage: claimed, role: Role::User, ..bare(LlmReply::text("bye")) });
    assert_eq!(text, LlmReply { usage, ..LlmReply::text("bye") });
    let calls = vec![CallPart::new("c1", "exec", "{}")];
    let asking = replaced(bare(LlmReply::calls(calls.clone())));
    assert_eq!(
        (asking.finish_reason.as_str(), asking.usage, asking.private),
        ("tool_calls", usage, Private::default())
    );
    let kept = replaced(LlmReply { finish_reason: "length".into(), ..LlmReply::text("hello") });
    assert_eq!((kept.finish_reason.as_str(), kept.private), ("length", private));
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
