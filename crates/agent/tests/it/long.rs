//! A conversation of 40 MiB through a real child and back.

use std::sync::{Arc, Mutex};

use pintle_domain::json::{Rendered, json};
use pintle_domain::message::Message;
use pintle_domain::verdict::Verdict;

use crate::hooks::{Rule, child};
use crate::host::Parts;

/// Echoes every message, the one that begins with `change me` in another wording.
const ECHO: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    result = {}
    if message.get("method") == "hook.before_llm":
        messages = message["params"]["messages"]
        for entry in messages:
            if entry["content"].startswith("change me"):
                entry["content"] = "changed"
        result = {"action": "modify", "request": {"messages": messages}}
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}, ensure_ascii=False), flush=True)
"#;

/// Keeps the messages of a request as they passed.
fn keeping(kept: &Arc<Mutex<Vec<Rendered<Message>>>>) -> Arc<Rule> {
    let kept = kept.clone();
    let before_llm: Box<dyn Fn(&pintle_domain::checkpoint::BeforeLlm) -> _ + Send + Sync> = Box::new(move |at| {
        kept.lock().unwrap().clone_from(&at.request.messages);
        Verdict::Continue
    });
    Arc::new(Rule { before_llm: Some(before_llm), ..Rule::default() })
}

#[tokio::test]
async fn a_conversation_of_40_mib_goes_through_a_child_and_only_what_it_changed_is_new() {
    // Forty turns whose prompts are a mebibyte each, with characters of every length.
    let mut host = Parts::of(json!([{"text": "noted", "repeat": true}])).host();
    let block = "Grüße \u{1F44B} \u{2028}\"\\ ".repeat((1 << 20) / 20);
    for n in 0..40 {
        let start = if n == 20 { "change me" } else { "keep me" };
        host.turn(&format!("{start} {n} {block}")).await;
    }
    let bytes: usize = host.conversation.messages().iter().map(|message| message.json().len()).sum();
    assert!(bytes > 40 << 20, "{bytes}");
    let before = Arc::default();
    let entry = json!({"command": ["python3", "-S", "-c", ECHO], "pair": false});
    host.mount(vec![
        host.engine.native("before", 0, keeping(&before)),
        child(&host, "echo", &[("before_llm", "{}")], entry),
    ]);
    let report = host.turn("and now?").await;
    assert_eq!((report.reply.as_str(), host.seen.errors()), ("noted", vec![]));
    let given = before.lock().unwrap().clone();
    let left = host.model.request(40).messages;
    assert_eq!((given.len(), left.len()), (81, 81));
    let changed: Vec<usize> = (0..given.len()).filter(|n| !given[*n].is(&left[*n])).collect();
    assert_eq!(changed, [40], "what came back equal is the host's own, not a copy");
    assert_eq!(left[40].get().content, "changed");
    assert!(host.conversation.messages()[40].get().content.starts_with("change me"), "for this call only");
    host.engine.close().await;
}
