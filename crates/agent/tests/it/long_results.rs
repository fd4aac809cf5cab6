//! Results that are too long for a model: it gets the beginning, and `read_file` has the rest.

use std::sync::{Arc, Mutex};

use pintle_agent::driver::TurnEnding;
use pintle_agent::{Conversation, TurnHandle};
use pintle_domain::checkpoint::{AfterTool, BeforeTool, Substitute};
use pintle_domain::json::{Value, json};
use pintle_domain::kept_result::{MAX_HOOK_RESULT_BYTES, MAX_RESULT_BYTES};
use pintle_domain::tool::ToolOutput;
use pintle_domain::verdict::Verdict;
use pintle_store::Memory;

use crate::hooks::{OwnTool, Rule};
use crate::host::{Host, Parts};

/// Some 300 KB in lines that name their number; one of them holds a secret.
fn lines() -> String {
    (1..=20_000).map(|n| if n == 15_000 { "line 15000 SECRET\n".to_owned() } else { format!("line {n}\n") }).collect()
}

fn read(id: &str, path: &str, more: Value) -> Value {
    let mut arguments = json!({"path": path});
    for (key, value) in more.as_object().into_iter().flatten() {
        arguments[key] = value.clone();
    }
    json!({"tool_calls": [{"id": id, "name": "read_file", "arguments": arguments}]})
}

/// A host with `read_file` and a tool `big` that gives `text`; its model calls that, then what `then` says.
fn host(text: &str, then: &[Value]) -> Host {
    let mut replies = vec![json!({"tool_calls": [{"id": "big", "name": "big", "arguments": {}}]})];
    replies.extend_from_slice(then);
    replies.push(json!({"text": "done"}));
    let parts = Parts::of(replies.into()).own(OwnTool::giving("big", ToolOutput::ok(text)));
    Parts { builtin: vec!["read_file"], ..parts }.host()
}

#[tokio::test]
async fn a_model_gets_64_kib_and_pages_through_the_rest() {
    let all = lines();
    let last = json!({"offset": 19_999});
    let mut host = host(
        &all,
        &[
            read("two", "result://1#65273", json!({})),
            read("end", "result://1", last),
            read("no", "result://2", json!({})),
        ],
    );
    assert_eq!(host.turn("go").await.ending, TurnEnding::Completed);
    let first = host.result("big");
    let (text, note) = first.rsplit_once("[cut at byte ").unwrap();
    assert!(all.starts_with(text) && first.len() <= MAX_RESULT_BYTES, "{}", first.len());
    let at = text.len();
    assert_eq!(note, format!("{at} of {}; `read_file` with path result://1#{at} goes on]", all.len()));
    // Where the note says, line by line.
    assert_eq!(at, 65_273, "the call above names it");
    let second = host.result("two");
    let (page, note) = second.rsplit_once("[bytes ").unwrap();
    assert!(all[at..].starts_with(page) && second.len() <= MAX_RESULT_BYTES && page.len() > 60_000, "{note}");
    assert_eq!(host.result("end"), "line 19999\nline 20000\n");
    assert_eq!(host.result("no"), "`result://2` is not a result of this session, or it had to give way to newer ones");
    for n in 0..host.model.count() {
        for message in &host.model.request(n).messages {
            assert!(message.get().content.len() <= MAX_RESULT_BYTES);
        }
    }
}

#[tokio::test]
async fn what_hooks_took_out_is_not_in_the_rest() {
    let seen: Arc<Mutex<Vec<usize>>> = Arc::default();
    let (all, noted) = (lines(), seen.clone());
    let mut host = host(&all, &[read("page", "result://1", json!({"offset": 15_000, "limit": 1}))]);
    let redact = Rule {
        after_tool: Some(Box::new(move |at: &AfterTool| {
            noted.lock().unwrap().push(at.result.for_llm.len());
            let for_llm = at.result.for_llm.replace("SECRET", "[gone]");
            Verdict::Modify(ToolOutput { for_llm, ..at.result.clone() })
        })),
        ..Rule::default()
    };
    host.mount(vec![host.engine.native("redact", 0, Arc::new(redact))]);
    assert_eq!(host.turn("go").await.ending, TurnEnding::Completed);
    assert!(host.result("page").starts_with("line 15000 [gone]\n"), "{}", host.result("page"));
    assert_eq!(seen.lock().unwrap()[0], all.len(), "the chain had the whole of it");
}

#[tokio::test]
async fn a_hooks_own_result_is_bounded_as_well() {
    let mut host = host("never", &[read("page", "result://1", json!({"offset": 20_000}))]);
    let answer = ToolOutput::ok(lines());
    let rule = Rule {
        before_tool: Some(Box::new(move |at: &BeforeTool| match at.call.tool.as_str() {
            "big" => Verdict::respond(Substitute { call: None, result: answer.clone() }),
            _ => Verdict::Continue,
        })),
        ..Rule::default()
    };
    host.mount(vec![host.engine.native("h", 0, Arc::new(rule))]);
    assert_eq!(host.turn("go").await.ending, TurnEnding::Completed);
    assert!(host.result("big").len() <= MAX_RESULT_BYTES);
    assert_eq!(host.result("page"), "line 20000\n");
}

#[tokio::test]
async fn hooks_are_spared_what_no_line_of_theirs_holds() {
    let seen: Arc<Mutex<Vec<usize>>> = Arc::default();
    let noted = seen.clone();
    let mut host = host(&"x".repeat(30 << 20), &[read("page", "result://1#4194000", json!({}))]);
    let watch = Rule {
        after_tool: Some(Box::new(move |at: &AfterTool| {
            noted.lock().unwrap().push(at.result.for_llm.len());
            Verdict::Continue
        })),
        ..Rule::default()
    };
    host.mount(vec![host.engine.native("watch", 0, Arc::new(watch))]);
    assert_eq!(host.turn("go").await.ending, TurnEnding::Completed);
    assert!(seen.lock().unwrap()[0] <= MAX_HOOK_RESULT_BYTES);
    assert!(host.result("page").ends_with("[cut at byte 4194048 of 31457280; the rest is not shown]"));
}

#[tokio::test]
async fn without_read_file_nothing_is_promised() {
    let script = json!([{"tool_calls": [{"id": "big", "name": "big", "arguments": {}}]}, {"text": "done"}]);
    let mut host = Parts::of(script).own(OwnTool::giving("big", ToolOutput::ok(lines()))).host();
    host.turn("go").await;
    assert!(host.result("big").ends_with("; the rest is not shown]"), "{}", host.result("big").len());
}

#[tokio::test]
async fn the_rest_belongs_to_its_session_and_goes_with_it() {
    let store = Arc::new(Memory::new());
    let mut host = host(&lines(), &[json!({"text": "later"}), read("page", "result://1", json!({"offset": 20_000}))]);
    let turn_handle = TurnHandle::new(&tokio_util::sync::CancellationToken::new());
    host.conversation = Conversation::open(store.clone(), "s").unwrap();
    host.turn("go").await;
    // Another process opens the session.
    host.conversation = Conversation::new("other");
    host.conversation = Conversation::open(store.clone(), "s").unwrap();
    let report = host.runner.turn(&mut host.conversation, "go on", host.seen.clone(), &turn_handle).await;
    assert_eq!(report.ending, TurnEnding::Completed);
    assert_eq!(host.result("page"), "line 20000\n");
    // It is deleted with the session, and no other one had it.
    host.conversation = Conversation::new("other");
    let key =
        pintle_domain::store::SessionKey { tenant: pintle_domain::id::TenantId::default_tenant(), session: "s".into() };
    pintle_domain::store::SessionStore::delete(&*store, &key).unwrap();
    let conversation = Conversation::open(store, "s").unwrap();
    assert!(conversation.messages().is_empty());
}

#[tokio::test]
async fn compaction_cuts_results_and_leaves_them_within_reach() {
    let mut parts = Parts::of(json!([
        {"tool_calls": [{"id": "big", "name": "big", "arguments": {}}]},
        {"tool_calls": [{"id": "page", "name": "read_file", "arguments": {"path": "result://1", "offset": 3000, "limit": 1}}]},
        {"text": "done"},
    ]));
    // Less than what the tool gives.
    parts.settings.context_tokens = 4000;
    let text: String = (1..=4000).map(|n| format!("line {n}\n")).collect();
    let parts = Parts { builtin: vec!["read_file"], ..parts.own(OwnTool::giving("big", ToolOutput::ok(&text))) };
    let mut host = parts.host();
    assert_eq!(host.turn("go").await.ending, TurnEnding::Completed);
    let cut = host.result("big");
    assert!(cut.len() <= 4096 && cut.contains("`read_file` with path result://1#"), "{} bytes", cut.len());
    assert!(host.result("page").starts_with("line 3000\n"), "{}", host.result("page"));
    assert!(host.is_valid() && host.asked(1).iter().all(|line| line.len() < 5000));
}
