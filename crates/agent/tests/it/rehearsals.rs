//! Turns gone through without effects: they ask exactly what a turn asks.

use std::sync::Arc;

use pintle_agent::driver::rehearsal::{CallPurpose, ModelCall, RecordedTurn, Rehearsal, RehearsedTurn, TextFate};
use pintle_agent::{Conversation, TurnReport};
use pintle_domain::id::{SessionId, TenantId};
use pintle_domain::json::{Value, json};
use pintle_domain::ledger::MsgId;
use pintle_domain::llm::LlmRequest;
use pintle_domain::session::JournalEntry;
use pintle_domain::skill::{SkillHook, Skills, Timing};
use pintle_domain::store::{SessionKey, SessionStore as _};
use pintle_domain::turn::Fact;
use pintle_providers::scripted::Scripted;
use pintle_store::Memory;

use crate::hooks::OwnTool;
use crate::host::{Host, Parts, lines};
use crate::skills::{asks, hook, host, planning, skills, trace_a};

/// A host whose sessions are kept.
fn kept(mut host: Host) -> (Host, Arc<Memory>) {
    let store = Arc::new(Memory::new());
    host.conversation = Conversation::open(store.clone(), "s").unwrap();
    (host, store)
}

/// What the journal of the session says of the turn of `report`.
fn replayed(host: &Host, store: &Memory, report: &TurnReport) -> RehearsedTurn {
    let key = SessionKey { tenant: TenantId::default_tenant(), session: SessionId::from("s") };
    let recorded = RecordedTurn::find(store.journal(&key).unwrap(), &report.turn_id).unwrap();
    rehearsal(host, Skills::none()).replay(&recorded)
}

fn rehearsal(host: &Host, skills: Skills) -> Rehearsal<'_> {
    let offered = host.runner.tools().definitions().into_iter().cloned().collect();
    Rehearsal::new(host.runner.settings(), offered, skills)
}

/// Everything that can be compared of a request: its messages, where they come from, how long they stand, its tools.
fn whole(request: &LlmRequest) -> Value {
    let message = |message: &pintle_domain::json::Rendered<pintle_domain::message::Message>| {
        let message = message.get();
        // When it was said is the clock's.
        let said = pintle_domain::message::Message { created_at: None, ..message.clone() };
        json!([said, message.provenance(), format!("{:?}", message.private.lifetime)])
    };
    let messages: Vec<Value> = request.messages.iter().map(message).collect();
    json!({"model": request.model, "messages": messages, "tools": request.tools, "last": request.graceful_terminal})
}

fn asked(host: &Host) -> Vec<Value> {
    (0..host.model.count()).map(|n| whole(&host.model.request(n))).collect()
}

fn calls(went: &RehearsedTurn) -> Vec<Value> {
    went.calls.iter().map(|call| whole(&call.request)).collect()
}

/// A turn over `script`, replayed from its journal and played without one.
async fn check(script: Value, host: Host) {
    let (mut host, store) = kept(host);
    let report = host.turn("U1").await;
    let again = replayed(&host, &store, &report);
    assert_eq!(calls(&again), asked(&host), "{script}");
    assert_eq!(again.unknown, 0);
    let scripted = Scripted::from_json(&json!({"replies": script}).to_string(), "test").unwrap();
    let with = again.skills.clone();
    let played = rehearsal(&host, with).play("U1", |request| scripted.reply("test", request));
    // A result stands for each of a tool, and the journal has the time of each message; else they are the same.
    let plain = |went: &RehearsedTurn| {
        let list = |call: &ModelCall| {
            lines(&call.request.messages).join("\n").replace("[the result of read_file stands here]", "T1")
        };
        went.calls
            .iter()
            .map(|call| list(call).replace("[the result of web_fetch stands here]", "T2"))
            .collect::<Vec<_>>()
    };
    assert_eq!(plain(&played), plain(&again), "{script}");
    assert_eq!((played.planned, played.tools, &played.skills), (again.planned, again.tools, &again.skills));
    assert_eq!(
        played.calls.iter().map(ModelCall::cache_boundary).collect::<Vec<_>>(),
        again.calls.iter().map(ModelCall::cache_boundary).collect::<Vec<_>>()
    );
    assert_eq!(played.end.map(|end| (end.status, end.reply)), again.end.map(|end| (end.status, end.reply)));
}

#[tokio::test]
async fn a_rehearsal_and_a_journal_say_what_the_turn_asked() {
    check(trace_a(), host(trace_a(), skills(), Some(planning()))).await;
    let direct = json!([asks("c1", "read_file"), asks("c2", "web_fetch"), {"text": "A3"}]);
    check(direct.clone(), host(direct, skills(), None)).await;
    let both = json!({"tool_calls": [{"name": "Read", "id": "a"}, {"name": "web_fetch", "id": "a", "arguments": {}}]});
    let odd = json!([{"text": "no plan"}, both.clone(), {"text": "done"}]);
    check(odd.clone(), host(odd, skills(), Some(planning()))).await;
    let odd = json!([{"text": "P0 <need_tool/>"}, both, {"text": "done"}]);
    check(odd.clone(), host(odd, skills(), Some(planning()))).await;
    let unknown = json!([asks("c1", "wrong"), {"tool_calls": [{"id": "c2", "name": "read_file", "arguments": "{"}]}, {"text": "done"}]);
    check(unknown.clone(), host(unknown, skills(), None)).await;
    let answers = json!([{"text": "A1"}]);
    check(answers.clone(), {
        let mut host = Parts::of(answers).host();
        let skill_set = Arc::new(pintle_agent::SkillSet::new(skills()));
        host.runner = host.runner.with_skills(skill_set);
        host
    })
    .await;
    let plain = json!([asks("c1", "read_file"), {"text": "done"}]);
    let file = OwnTool::giving("read_file", pintle_domain::tool::ToolOutput::ok("T1"));
    check(plain.clone(), Parts::of(plain).own(file).host()).await;
}

#[tokio::test]
async fn each_text_says_when_it_leaves() {
    let (mut host, store) = kept(host(trace_a(), skills(), Some(planning())));
    let report = host.turn("U1").await;
    let went = replayed(&host, &store, &report);
    let mut fates: Vec<String> = Vec::new();
    let ids = went
        .calls
        .iter()
        .flat_map(|call| &call.request.messages)
        .filter_map(|message| Some((message.get().id()?, message.get().content.clone())));
    for (id, text) in ids {
        let line = format!("{text}{id} {:?}", went.fate(id));
        if !fates.contains(&line) {
            fates.push(line);
        }
    }
    assert_eq!(
        fates,
        [
            "tone#1 Persists",
            "plan-tip#2 LeavesAfterCall",
            "PLAN#3 LeavesAfterCall",
            "check#4 LeavesBefore(2)",
            "goal#5 LeavesAfterLoop",
            "FIRST#6 LeavesAfterCall",
            "trunc#7 LeavesBefore(3)",
            "cite#8 LeavesBefore(3)",
            "check#9 LeavesBefore(3)",
            "LOOP#10 LeavesAfterCall",
            "cite#11 LeavesAfterLoop",
            "check#12 Stays",
            "LOOP#13 LeavesAfterCall",
        ]
    );
    assert_eq!(went.fate(MsgId::default()), TextFate::Stays);
    assert_eq!(
        went.calls.iter().map(ModelCall::cache_boundary).collect::<Vec<_>>(),
        [Some(2), Some(3), Some(6), Some(8)]
    );
    assert_eq!(went.calls.iter().map(|call| (call.round, call.aim)).next(), Some((0, CallPurpose::Plan)));
}

#[tokio::test]
async fn later_turns_have_what_was_said_before() {
    let replies = json!([{"text": "one"}, asks("c1", "read_file"), {"text": "two"}, {"text": "three"}]);
    let (mut host, store) = kept(host(replies, skills(), None));
    let reports = [host.turn("U1").await, host.turn("U2").await, host.turn("U3").await];
    let all: Vec<Value> = reports.iter().flat_map(|report| calls(&replayed(&host, &store, report))).collect();
    assert_eq!(all, asked(&host));
    assert_eq!(all.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn what_went_wrong_with_a_call_stands_beside_it() {
    let busy = json!({"error": {"kind": "server_error", "message": "busy"}});
    let broken = json!({"error": {"kind": "final", "message": "broken"}});
    let (mut host, store) = kept(host(json!([busy.clone(), broken.clone()]), skills(), None));
    let report = host.turn("U1").await;
    let again = replayed(&host, &store, &report);
    // The journal does not say how often it was tried.
    assert_eq!(calls(&again), asked(&host)[1..]);
    assert_eq!(again.calls[0].notes, ["failed: broken"]);
    let script = Scripted::from_json(&json!({"replies": [busy, broken]}).to_string(), "test").unwrap();
    let played = rehearsal(&host, skills()).play("U1", |request| script.reply("test", request));
    assert_eq!(played.calls[0].notes, ["attempt 1 failed: busy; the same list is sent again"]);
    assert_eq!(played.end.unwrap().error, Some(("llm".into(), "broken".into())));
}

#[tokio::test]
async fn a_turn_that_nobody_ended_is_shown_as_far_as_it_is_known() {
    let (mut host, store) = kept(host(json!([asks("c1", "read_file"), {"text": "done"}]), skills(), None));
    let report = host.turn("U1").await;
    let key = SessionKey { tenant: TenantId::default_tenant(), session: SessionId::from("s") };
    let entries = store.journal(&key).unwrap();
    let whole = replayed(&host, &store, &report);
    // The turn began with its texts: both are one transaction.
    let begun =
        entries.iter().position(|entry| matches!(entry, JournalEntry::Turn(Fact::Equipped { .. }))).unwrap() + 1;
    for length in begun..entries.len() {
        let recorded = RecordedTurn::find(entries[..length].to_vec(), &report.turn_id).unwrap();
        let part = rehearsal(&host, Skills::none()).replay(&recorded);
        let known = calls(&part);
        assert_eq!(known, calls(&whole)[..known.len()], "after {length} entries");
        assert_eq!(part.unknown, 0);
        if part.end.is_none()
            && let Some(last) = part.calls.last().filter(|call| !call.notes.is_empty())
        {
            assert_eq!(last.notes, ["no answer is recorded, and whether this was sent is not known"]);
        }
    }
}

#[tokio::test]
async fn a_list_after_a_compaction_is_the_one_that_was_sent() {
    let replies = json!([
        {"when": {"anywhere": "Summarise the following"}, "text": "in short"},
        {"when": {"anywhere": "U1"}, "text": "x".repeat(4000)},
        {"when": {"anywhere": "in short"}, "text": "done"},
    ]);
    let now = SkillHook { content: "y".repeat(40), ..hook("alpha", "now", Timing::AfterUserInput) };
    let (mut host, store) = kept(host(replies, Skills::none(), None));
    let mut settings = host.runner.settings().clone();
    settings.context_tokens = 1200;
    host.remake(settings);
    host.runner = host.runner.with_skills(Arc::new(pintle_agent::SkillSet::new(Skills::new(vec![now]))));
    host.turn("U1").await;
    let report = host.turn(&"U2 ".repeat(100)).await;
    let again = replayed(&host, &store, &report);
    let sent: Vec<Value> =
        asked(&host).into_iter().skip(1).filter(|request| !request.to_string().contains("Summarise")).collect();
    assert_eq!(calls(&again), sent);
    assert!(
        again.calls[0].notes[0].starts_with("before this, the oldest messages gave way"),
        "{:?}",
        again.calls[0].notes
    );
}
