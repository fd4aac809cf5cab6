//! The rule of spans, from records and notices to what a collector is told.

use std::sync::Arc;

use super::*;
use crate::breaker::BreakerPolicy;
use crate::checkpoint::runtime::TurnStatus;
use crate::checkpoint::{Notice, ObservedEvent, RuntimeEvent};
use crate::fault::Fault;
use crate::id::{EventId, HookId, TraceId};
use crate::record::{EventRuling, RecordLines};
use crate::rule::{Fallback, HandlerType, Rights};
use crate::testing::hook;
use crate::verdict::VerdictKind;

const MS: Duration = Duration::from_millis(1);

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + seconds).unwrap()
}

fn who(call: Option<&str>) -> Identity {
    let top = Identity::top("main", "s", TurnId::from("t1"));
    Identity { iteration: u32::from(call.is_some()), tool_call_id: call.map(CallId::from), ..top }
}

fn event(who: Identity, kind: CheckpointKind, hooks: Vec<Record>) -> EventRecord {
    EventRecord {
        event_id: EventId::from("e1"),
        at: at(0),
        checkpoint: kind,
        kind: None,
        tool: who.tool_call_id.as_ref().map(|_| "exec".to_owned()),
        who,
        input: None,
        ruling: EventRuling::word(VerdictKind::Continue),
        hooks: RecordLines::from(hooks),
    }
}

fn ran(name: &str, kind: CheckpointKind, outcome: HookOutcome) -> Record {
    Record::of(&hook(name, &[kind]), kind, outcome)
}

fn stored(record: Record, handler: HandlerType) -> Record {
    let stored = RuleDetails {
        id: HookId::from("0193a5b0-7000-7000-8000-0000000000bb"),
        version: 3,
        tenant: TenantId::default_tenant(),
        handler,
        created_at: String::new(),
        condition: None,
        rights: Rights::Nothing,
        breaker: BreakerPolicy::ALL[0],
        on_trip: Fallback::Block,
        is_exception: false,
    };
    Record { family: Family::Rule, stored: Some(Arc::new(stored)), ..record }
}

fn said(word: VerdictKind, reason: Option<&str>, took: Duration) -> HookOutcome {
    HookOutcome::Said { word, reason: reason.map(str::to_owned), took }
}

/// The span in a line: name, parent, status, decision, and the attributes that differ between hooks.
fn shown(span: &Span) -> String {
    let parents = [
        (SpanKey::of_turn(&TenantId::default_tenant(), &TurnId::from("t1")), "turn"),
        (SpanKey::of_call(&who(Some("c1")), &CallId::from("c1")), "call c1"),
        (SpanKey::of_call(&who(Some("c2")), &CallId::from("c2")), "call c2"),
    ];
    let known = |key: SpanKey| parents.iter().find(|(own, _)| *own == key).map_or("?", |(_, name)| name);
    let parent = span.parent.map_or("nothing", known);
    let since = |moment: Timestamp| moment.duration_since(at(0)).as_millis();
    let wanted = ["metadata.decision", "hook_id", "hook_version", "tool_name", "reason", "error", "retry", "pass"];
    let more: Vec<String> = span
        .attributes
        .iter()
        .filter(|(name, _)| wanted.contains(name))
        .map(|(name, value)| match value {
            AttributeValue::Text(text) => format!("{name}={text}"),
            AttributeValue::Number(number) => format!("{name}={number}"),
        })
        .collect();
    let (name, status) = (&span.name, span.status.word());
    format!("{name} < {parent} [{}..{}] {status} {}", since(span.start), since(span.end), more.join(" "))
        .trim_end()
        .to_owned()
}

fn check(record: Record, expected: Option<&str>) {
    let kind = record.checkpoint;
    let span = of_hook(&event(who(Some("c1")), kind, vec![]), &record, at(0));
    assert_eq!(span.as_ref().map(shown).as_deref(), expected);
    if let Some(span) = span {
        let names: std::collections::BTreeSet<_> = span.attributes.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), span.attributes.len(), "each attribute once");
    }
}

#[test]
fn every_run_leaves_a_span_and_nothing_else_does() {
    use CheckpointKind::{BeforeLlm, PostToolUse, PreToolUse};
    check(
        stored(ran("g", PreToolUse, said(VerdictKind::Continue, None, MS * 7)), HandlerType::Command),
        Some(
            "hook.command.pre_tool_use < call c1 [0..7] completed metadata.decision=allow \
             hook_id=0193a5b0-7000-7000-8000-0000000000bb hook_version=3 tool_name=exec",
        ),
    );
    check(
        ran("g", PreToolUse, said(VerdictKind::Deny, Some("mail ann@example.org"), MS)),
        Some(
            "hook.process.pre_tool_use < call c1 [0..1] completed metadata.decision=block tool_name=exec \
             reason=mail [REDACTED]",
        ),
    );
    check(
        ran("g", BeforeLlm, said(VerdictKind::Modify, None, MS)),
        Some("hook.process.before_llm < turn [0..1] completed metadata.decision=allow tool_name=exec"),
    );
    let failed = |fault| HookOutcome::Failed { fault, became: VerdictKind::Deny, took: MS * 2 };
    let account =
        |detail: &str| Some(Box::new(Account { detail: Some(detail.into()), retry: 2, ..Account::default() }));
    let broken = stored(ran("g", PostToolUse, failed(Fault::Panicked)), HandlerType::Http);
    check(
        Record { account: account("key sk-12345678 was refused"), again: true, ..broken },
        Some(
            "hook.http.post_tool_use < call c1 [0..2] error metadata.decision=error \
             hook_id=0193a5b0-7000-7000-8000-0000000000bb hook_version=3 tool_name=exec retry=2 pass=2 \
             error=panicked",
        ),
    );
    let late = Fault::TimedOut { after: MS * 2 };
    let text = late.phrase().to_string();
    check(
        ran("g", PreToolUse, failed(late)),
        Some(&format!(
            "hook.process.pre_tool_use < call c1 [0..2] error metadata.decision=timeout tool_name=exec error={text}"
        )),
    );
    check(
        ran("g", PostToolUse, HookOutcome::NotRun(NotRun::Dropped)),
        Some(
            "hook.process.post_tool_use < call c1 [0..0] error metadata.decision=error tool_name=exec error=queue full",
        ),
    );
    check(ran("g", PostToolUse, HookOutcome::Told), None);
    check(ran("g", PreToolUse, HookOutcome::NotRun(NotRun::Disabled)), None);
    let event = event(Identity { is_test: true, ..who(None) }, PreToolUse, vec![]);
    assert_eq!(of_hook(&event, &ran("g", PreToolUse, said(VerdictKind::Continue, None, MS)), at(0)), None);
}

#[test]
fn ids_are_the_same_in_another_process_and_differ_for_everything_else() {
    let mut keys: Vec<SpanKey> = Vec::new();
    let one = who(Some("c1"));
    for (who, call) in [
        (one.clone(), "c1"),
        (one.clone(), "c2"),
        (Identity { iteration: 2, ..one.clone() }, "c1"),
        (Identity { turn_id: TurnId::from("t2"), ..one.clone() }, "c1"),
        (Identity { tenant_id: TenantId::sentinel(), ..one.clone() }, "c1"),
    ] {
        keys.push(SpanKey::of_call(&who, &CallId::from(call)));
    }
    keys.push(SpanKey::of_turn(&one.tenant_id, &one.turn_id));
    // A name that runs into the next one is another name.
    keys.push(SpanKey::made(&["turn", "ab", "c"]));
    keys.push(SpanKey::made(&["turn", "a", "bc"]));
    let number = keys.len();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), number);
    // What was once told must be found again.
    assert_eq!(SpanKey::of_turn(&TenantId::from("a"), &TurnId::from("b")), SpanKey(0x341b_0749_3eb3_cd15));
}

#[test]
fn a_trace_that_began_outside_goes_on() {
    let check = |trace: &str, expected: Option<u128>| {
        let key = TraceKey::of(&Identity { trace_id: TraceId::from(trace), ..who(None) });
        match expected {
            Some(expected) => assert_eq!(key, TraceKey(expected), "{trace}"),
            None => assert!(key.0 > u128::from(u64::MAX), "{trace}"),
        }
        key
    };
    let number = 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c;
    check("0af7651916cd43dd8448eb211c80319c", Some(number));
    check("0AF76519-16CD-43DD-8448-EB211C80319C", Some(number));
    let made = [check("req-1", None), check("req-2", None), check("00000000000000000000000000000000", None)];
    assert!(made[0] != made[1] && made[1] != made[2]);
    // Without one, the turn stands for it.
    assert_eq!(check("", None), TraceKey::of(&Identity { trace_id: TraceId::from("t1"), ..who(None) }));
}

fn notice(who: &Identity, seconds: i64, event: RuntimeEvent) -> Notice {
    Notice { event_id: EventId::fresh(), at: at(seconds), who: who.clone(), what: ObservedEvent::Runtime(event) }
}

fn turn_start() -> RuntimeEvent {
    RuntimeEvent::TurnStart { channel: "cli".into(), chat_id: "d".into(), user_message: "hi".into(), media_count: 0 }
}

fn turn_end(status: TurnStatus, seconds: u64) -> RuntimeEvent {
    RuntimeEvent::TurnEnd {
        status,
        iterations: 1,
        duration: Duration::from_secs(seconds),
        final_content_len: 0,
        user_message: String::new(),
        final_content: String::new(),
        tool_kinds: Vec::new(),
        tool_executions: Vec::new(),
    }
}

fn skipped(reason: &str) -> RuntimeEvent {
    let (tool, reason) = ("exec".to_owned(), reason.to_owned());
    RuntimeEvent::ToolExecSkipped { tool, reason, tool_call_id: "c2".into(), hook: Some("guard".into()) }
}

fn call_end(ms: u64) -> RuntimeEvent {
    RuntimeEvent::ToolExecEnd {
        tool: "exec".into(),
        duration: Duration::from_millis(ms),
        for_llm_len: 0,
        for_user_len: 0,
        is_error: false,
        r#async: false,
        tool_call_id: "c1".into(),
        hook: None,
        error: None,
    }
}

fn all(spans: &[Span]) -> Vec<String> {
    spans.iter().map(shown).collect()
}

#[test]
fn a_turn_holds_calls_and_these_hold_hooks() {
    let mut traces = OpenSpans::default();
    let (turn, first, second) = (who(None), who(Some("c1")), who(Some("c2")));
    assert_eq!(all(&traces.noticed(&notice(&turn, 0, turn_start()))), [""; 0]);
    // Two rows of one clearing: the hooks of the second were asked behind those of the first.
    let before = ran("a", CheckpointKind::BeforeTool, said(VerdictKind::Continue, None, MS * 3));
    let gate = ran("b", CheckpointKind::PreToolUse, said(VerdictKind::Continue, None, MS * 4));
    let rows = [
        event(first.clone(), CheckpointKind::BeforeTool, vec![before]),
        event(first.clone(), CheckpointKind::PreToolUse, vec![gate]),
    ];
    let hooks = all(&traces.concluded(at(1), &rows));
    assert_eq!(
        hooks,
        [
            "hook.process.before_tool < call c1 [1000..1003] completed metadata.decision=allow tool_name=exec",
            "hook.process.pre_tool_use < call c1 [1003..1007] completed metadata.decision=allow tool_name=exec",
        ]
    );
    // The call lasts from its first hook, not from its tool.
    let over = traces.noticed(&notice(&first, 3, call_end(10)));
    assert_eq!(all(&over), ["tool_call < turn [1000..3000] completed tool_name=exec"]);
    // One that no hook saw, and that never ran.
    let over = traces.noticed(&notice(&second, 4, skipped("Bearer abcdefghij")));
    assert_eq!(all(&over), ["tool_call < turn [4000..4000] skipped tool_name=exec reason=[REDACTED]"]);
    // One that is still open when the turn is over.
    let third = event(Identity { iteration: 1, ..first.clone() }, CheckpointKind::PreToolUse, vec![]);
    assert_eq!(all(&traces.concluded(at(5), &[third])), [""; 0]);
    let over = traces.noticed(&notice(&turn, 6, turn_end(TurnStatus::Completed, 6)));
    assert_eq!(
        all(&over),
        ["tool_call < turn [5000..6000] unfinished tool_name=exec", "turn < nothing [0..6000] completed"]
    );
    assert_eq!(traces.finish(at(7)), []);
}

#[test]
fn every_hook_has_a_parent_in_the_end() {
    let mut traces = OpenSpans::default();
    let record = ran("a", CheckpointKind::BeforeLlm, said(VerdictKind::Continue, None, MS));
    // A host that tells nobody of its turns.
    traces.concluded(at(1), &[event(who(None), CheckpointKind::BeforeLlm, vec![record])]);
    assert_eq!(all(&traces.finish(at(2))), ["turn < nothing [1000..2000] unfinished"]);
    // A turn that another process began.
    let over = traces.noticed(&notice(&who(None), 9, turn_end(TurnStatus::Error, 4)));
    assert_eq!(all(&over), ["turn < nothing [5000..9000] error"]);
    let over = traces.noticed(&notice(&who(None), 9, turn_end(TurnStatus::Aborted, 0)));
    assert_eq!(all(&over), ["turn < nothing [9000..9000] aborted"]);
    let test = Identity { is_test: true, ..who(None) };
    assert_eq!(traces.noticed(&notice(&test, 9, turn_end(TurnStatus::Completed, 4))), []);
}

#[test]
fn a_message_that_is_refused_makes_a_turn_that_is_over() {
    let mut traces = OpenSpans::default();
    let kind = CheckpointKind::UserPromptSubmit;
    let refused = |who: Identity| {
        let record = ran("a", kind, said(VerdictKind::Deny, None, MS));
        EventRecord { ruling: EventRuling::word(VerdictKind::Deny), ..event(who, kind, vec![record]) }
    };
    let hook = "hook.process.user_prompt_submit < turn [1000..1001] completed metadata.decision=block";
    let over = traces.concluded(at(1), &[refused(who(None))]);
    assert_eq!(all(&over), [hook, "turn < nothing [1000..1001] blocked"]);
    // One that comes in while a turn is worked ends nothing, whether its beginning was told or not.
    let steering = Identity { iteration: 1, ..who(None) };
    assert_eq!(all(&traces.concluded(at(1), &[refused(steering)])), [hook]);
    traces.noticed(&notice(&who(None), 2, turn_start()));
    assert_eq!(all(&traces.concluded(at(1), &[refused(who(None))])), [hook]);
    assert_eq!(all(&traces.finish(at(3))), ["turn < nothing [1000..3000] unfinished"]);
}

#[test]
fn a_sub_agent_works_below_the_call_that_began_it() {
    let mut traces = OpenSpans::default();
    let parent = who(Some("c1"));
    let child = Identity {
        turn_id: TurnId::from("t2"),
        parent_turn_id: Some(TurnId::from("t1")),
        depth: 1,
        tool_call_id: None,
        ..parent.clone()
    };
    let spawn = |label: &str| RuntimeEvent::SubturnSpawn {
        agent_id: "helper".into(),
        label: label.into(),
        parent_turn_id: "t1".into(),
    };
    traces.noticed(&notice(&parent, 0, spawn("t2")));
    traces.noticed(&notice(&child, 1, turn_start()));
    let over = traces.noticed(&notice(&child, 2, turn_end(TurnStatus::Completed, 1)));
    assert_eq!(all(&over), ["turn < call c1 [1000..2000] completed"]);
    // Where nobody told which call: the turn.
    let over = traces.noticed(&notice(&child, 2, turn_end(TurnStatus::Completed, 1)));
    assert_eq!(all(&over), ["turn < turn [1000..2000] completed"]);
}

#[test]
fn what_is_open_is_bounded() {
    let mut traces = OpenSpans::default();
    let turn = |number: usize| Identity { turn_id: TurnId::from(&*format!("n{number}")), ..who(None) };
    for number in 0..MAX_OPEN_TURNS {
        assert_eq!(traces.noticed(&notice(&turn(number), number as i64, turn_start())), []);
    }
    let over = traces.noticed(&notice(&turn(MAX_OPEN_TURNS), 5000, turn_start()));
    assert_eq!(
        over.iter().map(|span| (span.key, span.status.word())).collect::<Vec<_>>(),
        [(SpanKey::of_turn(&TenantId::default_tenant(), &TurnId::from("n0")), "unfinished")]
    );
    let call = |number: usize| who(Some(&format!("k{number}")));
    for number in 0..MAX_OPEN_CALLS {
        traces.concluded(at(number as i64), &[event(call(number), CheckpointKind::PreToolUse, vec![])]);
    }
    let over = traces.concluded(at(9999), &[event(call(MAX_OPEN_CALLS), CheckpointKind::PreToolUse, vec![])]);
    let names: Vec<&str> = over.iter().map(|span| span.status.word()).collect();
    assert_eq!(names, ["unfinished"]);
    assert_eq!(over[0].key, SpanKey::of_call(&call(0), &CallId::from("k0")));
}

#[test]
fn a_clock_that_was_set_back_makes_no_span_end_before_it_began() {
    let mut traces = OpenSpans::default();
    traces.noticed(&notice(&who(None), 10, turn_start()));
    let over = traces.noticed(&notice(&who(None), 3, turn_end(TurnStatus::Completed, 1)));
    assert_eq!(all(&over), ["turn < nothing [10000..10000] completed"]);
}
