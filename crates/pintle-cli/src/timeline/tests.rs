//! What lines look like, and where in them something begins.

use std::time::Duration;

use pintle_domain::hook::{Hook, HookState, Scope, Stages};
use pintle_domain::id::EventId;
use pintle_domain::matcher::RespondTools;
use pintle_domain::record::{EventRuling, RecordLines};

use super::*;

fn hook(name: &str) -> Hook {
    Hook {
        name: name.into(),
        family: Family::Skill,
        origin: "skill".into(),
        priority: 0,
        state: HookState::Armed,
        scope: Scope::Everyone,
        matcher: None,
        respond: RespondTools::Any,
        events: None,
        stages: Stages::default(),
        stored: None,
        media_dir: None,
    }
}

/// An event about texts, with a line for each hook.
fn event(at: CheckpointKind, kind: Option<&'static str>, text: &str, hooks: &[(&str, HookOutcome)]) -> EventRecord {
    let lines: Vec<Record> = hooks.iter().map(|(name, outcome)| Record::of(&hook(name), at, outcome.clone())).collect();
    EventRecord {
        event_id: EventId::fresh(),
        at: jiff::Timestamp::UNIX_EPOCH,
        checkpoint: at,
        kind,
        who: Identity::top("main", "s", "t".into()),
        tool: None,
        input: None,
        ruling: EventRuling { text: Some(text.to_owned()), ..EventRuling::word(VerdictKind::Inject) },
        hooks: RecordLines::from(lines),
    }
}

/// What is shown of `events`, without colours.
fn shown(events: &[EventRecord], everything: bool) -> String {
    let timeline = Timeline::new(Vec::new(), everything);
    events.iter().for_each(|event| timeline.recorded(event));
    let text = String::from_utf8(timeline.out.into_inner().unwrap()).unwrap();
    anstream::adapter::strip_str(&text).to_string()
}

#[test]
fn what_stands_behind_a_wide_or_long_name_stands_where_it_does_behind_others() {
    let said = |word| HookOutcome::Said { word, reason: Some("why".into()), took: Duration::from_millis(12) };
    for name in ["rule", "日本語ルール", "日本語ルール10", "agents.main.ask", "a_guard_of_mine_20"] {
        let line = hook_line(&Record::of(&hook(name), CheckpointKind::BeforeTool, said(VerdictKind::Continue)));
        let line = fold(&anstream::adapter::strip_str(&line).to_string(), UNBOUNDED, 0);
        let before = line.strip_suffix("  why").unwrap_or_else(|| panic!("{line}"));
        assert_eq!(before.width(), SAID_COLUMN + WORD_COLUMNS + 1 + TIME_COLUMNS, "{line}");
    }
    let wide = columns("│", DIM, "before_tool", "日本語ルール10", "said");
    let wide = anstream::adapter::strip_str(&wide).to_string();
    assert_eq!(wide.strip_suffix("said").unwrap().width(), SAID_COLUMN, "{wide}");
}

#[test]
fn why_a_tool_failed_stands_beside_it() {
    use pintle_domain::checkpoint::{FinishedCall, RuntimeEvent};
    use pintle_domain::tool::{ToolCall, ToolOutput};
    let call = ToolCall {
        id: "c".into(),
        tool: "read_file".into(),
        raw_tool: "read_file".into(),
        arguments: Default::default(),
    };
    let who = event(CheckpointKind::AfterTool, None, "", &[]).who;
    let said = |output| {
        let finished = FinishedCall { call: call.clone(), output, by: None, took: Duration::from_millis(2) };
        let event = RuntimeEvent::tool_exec_end(&finished);
        // Hooks and records get lengths alone.
        assert!(!serde_json::to_string(&event).unwrap().contains("not there"));
        anstream::adapter::strip_str(
            &line_of(
                &Notice {
                    event_id: EventId::from("e"),
                    at: jiff::Timestamp::UNIX_EPOCH,
                    who: who.clone(),
                    what: event.into(),
                },
                false,
            )
            .unwrap(),
        )
        .to_string()
    };
    let failed = said(ToolOutput::error("`a` is not there\nmore"));
    assert!(failed.contains("failed") && failed.ends_with("bytes  `a` is not there"), "{failed}");
    assert!(said(ToolOutput::ok("it is not there")).ends_with(" bytes"));
}

#[test]
fn why_a_request_is_sent_again_is_read_once() {
    use pintle_domain::checkpoint::runtime::RetryReason;
    let timeline = Timeline::new(Vec::new(), false);
    let who = event(CheckpointKind::AfterTool, None, "", &[]).who;
    for (attempt, error) in [(1, "nobody answers"), (2, "nobody answers"), (3, "it is busy")] {
        let what = RuntimeEvent::LlmRetry {
            attempt,
            max_retries: 5,
            reason: RetryReason::Network,
            error: error.to_owned(),
            backoff: Duration::from_secs(1),
        };
        let at = jiff::Timestamp::UNIX_EPOCH;
        timeline.noticed(&Notice { event_id: EventId::from("e"), at, who: who.clone(), what: what.into() });
    }
    let shown = String::from_utf8(timeline.out.into_inner().unwrap()).unwrap();
    let shown = anstream::adapter::strip_str(&shown).to_string();
    let said: Vec<&str> = shown.lines().filter_map(|line| line.split_once("1.0 s: ").map(|(_, said)| said)).collect();
    assert_eq!(said, ["nobody answers", "the same", "it is busy"], "{shown}");
}

#[test]
fn a_script_that_threw_is_said_to_have_thrown() {
    use pintle_domain::fault::{Fault, ProtocolBreach};
    let fault = Fault::Protocol(ProtocolBreach::Threw("Error: broken".into()));
    let outcome = HookOutcome::Failed { fault, became: VerdictKind::Deny, took: Duration::ZERO };
    let line = hook_line(&Record::of(&hook("rule"), CheckpointKind::PreToolUse, outcome));
    assert!(line.ends_with("the script threw: Error: broken → deny") && !line.contains("protocol"), "{line}");
}

#[test]
fn texts_come_and_go_and_what_was_held_back_is_said() {
    use CheckpointKind::{AfterToolCall, BeforePlanning, UserPromptSubmit};
    let said =
        |text: &str| HookOutcome::Said { word: VerdictKind::Inject, reason: Some(text.into()), took: Duration::ZERO };
    let filter =
        HookOutcome::NotRun(NotRun::Matcher { pattern: "write_file, edit_file".into(), value: "read_file".into() });
    let events = [
        event(UserPromptSubmit, Some("history_withheld"), "message 2 of the history: no gate", &[]),
        event(BeforePlanning, Some("plan_tag_missing"), "the plan does not say", &[]),
        event(BeforePlanning, Some("prompt_injected"), "planning_prompt", &[]),
        event(AfterToolCall, None, "snapshot 1", &[("skill:a/b", said("#1 as system")), ("skill:a/c", filter)]),
        event(AfterToolCall, Some("hook_persisted"), "", &[("skill:a/b", said("#1 no front end"))]),
        event(AfterToolCall, Some("hook_removed"), "", &[("skill:a/b", said("#1 taken out"))]),
    ];
    let a = " ".repeat(21);
    let (put, out) = (format!("a/b{a} #1 as system"), format!("a/b{a} #1 taken out"));
    let (not, nobody) = ("skipped: `write_file, edit_file` does not match `read_file`", "#1 no front end");
    let history = format!("  · history      {:14} message 2 of the history: no gate\n", "");
    let plan = format!("  · planning     {:14} the plan does not say\n", "");
    let point = "after_tool_call   ";
    assert_eq!(shown(&events, false), format!("{history}{plan}  + {point} {put}\n  - {point} {out}\n"));
    let more = format!("  · {point} a/c{a} {not}\n  · {point} a/b{a} {nobody}\n");
    assert_eq!(shown(&events, true), format!("{history}{plan}  + {point} {put}\n{more}  - {point} {out}\n"));
}
