//! Calls that wait for a person.

use serde_json::{Value, json};

use super::stage::{Hand, by_hand, guarded, proxy, reached, result, tools};
use crate::env::TestEnv;

const ASKS: &str = "[agents.main]\nask = ['mcp_by_hand_echo']\n";

/// The id of the one approval that waits; waits for it itself.
fn waiting(env: &TestEnv) -> String {
    loop {
        let listed: Value = serde_json::from_str(&env.raw(&["approvals", "list", "--json"])).unwrap();
        if let Some(one) = listed.as_array().unwrap().first() {
            return one["id"].as_str().unwrap().to_owned();
        }
    }
}

fn asked(hand: &mut Hand, id: u32, progress: &Value) {
    let params = json!({"name": "echo", "arguments": {"x": 1}, "_meta": {"progressToken": progress}});
    hand.say(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string());
}

#[test]
fn a_call_is_held_with_progress_until_a_person_answers() {
    let env = guarded(ASKS);
    tools(&env, &[("echo", "says it again")]);
    let mut hand = Hand::greeted(&env);
    for (id, answer) in [(1, "approve"), (2, "refuse")] {
        asked(&mut hand, id, &json!(format!("p{id}")));
        let progress = hand.hear();
        assert_eq!(progress["method"], "notifications/progress", "{progress}");
        assert_eq!(progress["params"]["progressToken"], format!("p{id}"));
        let number = waiting(&env);
        assert!(progress["params"]["message"].as_str().unwrap().contains(&number), "{progress}");
        assert_eq!(reached(&env).len(), id as usize - 1, "nothing runs before the answer");
        let seen = env.on_terminal("y\n", &["approvals", answer, &number]);
        assert_eq!(seen.code, Some(0), "{seen}");
        let mut said = hand.hear();
        while said["method"] == "notifications/progress" {
            said = hand.hear();
        }
        let (text, is_error) = result(&said);
        match answer {
            "approve" => assert_eq!((text.as_str(), is_error), (r#"{"x": 1}"#, false)),
            _ => assert!(is_error && text.contains("refused by a person"), "{text}"),
        }
    }
    assert_eq!(reached(&env).len(), 1);
}

#[test]
fn a_call_that_nobody_answers_is_refused_in_time_and_runs_once_when_it_was_approved() {
    let env = guarded(&format!("{ASKS}[doors.tool.by_hand]\nask_timeout_ms = 200\n"));
    tools(&env, &[("echo", "says it again")]);
    let mut hand = Hand::greeted(&env);
    let (text, is_error) = result(&hand.call(1, "echo", &json!({"x": 1})));
    let number = waiting(&env);
    assert!(is_error && text.contains(&number) && !text.contains("pintle"), "{text}");
    assert!(reached(&env).is_empty());
    assert_eq!(env.on_terminal("y\n", &["approvals", "approve", &number]).code, Some(0));
    assert_eq!(result(&hand.call(2, "echo", &json!({"x": 1}))), (r#"{"x": 1}"#.into(), false));
    // Once.
    assert!(result(&hand.call(3, "echo", &json!({"x": 1}))).1);
    assert_eq!(reached(&env).len(), 1);
}

/// A client whose own dialogue can be used.
fn with_a_dialogue(env: &TestEnv) -> Hand {
    let mut hand = Hand::start(proxy(env, "by_hand", &by_hand(env)));
    let capabilities = json!({"elicitation": {}});
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "h", "version": "1"},
    });
    hand.ask(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
    hand.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    hand
}

#[test]
fn the_client_asks_its_person_where_the_configuration_says_so() {
    let env = guarded(&format!("{ASKS}[doors.tool.by_hand]\nask = 'client'\n"));
    tools(&env, &[("echo", "says it again")]);
    let mut hand = with_a_dialogue(&env);
    for (id, action) in [(1, "accept"), (2, "decline")] {
        let asked = hand.call(id, "echo", &json!({"x": id}));
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        let question = asked["params"]["message"].as_str().unwrap();
        assert!(question.contains("mcp_by_hand_echo") && question.contains(&format!("{{\"x\":{id}}}")), "{question}");
        assert_eq!(reached(&env).len(), id as usize - 1, "nothing runs before the answer");
        let answer = json!({"action": action, "content": {}});
        let (text, is_error) = result(&hand.ask(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer})));
        match action {
            "accept" => assert_eq!((text.as_str(), is_error), (r#"{"x": 1}"#, false)),
            _ => assert!(is_error && text.contains("refused by a person"), "{text}"),
        }
    }
    assert_eq!(reached(&env).len(), 1);
    // The server heard nothing of it.
    assert!(!std::fs::read_to_string(env.path("server/calls")).unwrap().contains("pintle-ask"));
}

#[test]
fn nobody_but_a_person_has_the_client_ask() {
    let env = guarded(&format!("{ASKS}[doors.tool.by_hand]\nask_timeout_ms = 200\n"));
    tools(&env, &[("echo", "says it again")]);
    let (text, is_error) = result(&with_a_dialogue(&env).call(1, "echo", &json!({"x": 1})));
    assert!(is_error && text.contains("needs a person's approval"), "{text}");
}

#[test]
fn a_call_that_is_withdrawn_while_a_person_is_asked_never_runs() {
    let env = guarded(ASKS);
    tools(&env, &[("echo", "says it again"), ("other", "another")]);
    let mut hand = Hand::greeted(&env);
    asked(&mut hand, 1, &json!(1));
    hand.hear();
    hand.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    // Others go on meanwhile.
    assert_eq!(result(&hand.call(2, "other", &json!({}))), ("odd".into(), false));
    let number = waiting(&env);
    env.on_terminal("y\n", &["approvals", "approve", &number]);
    let (rest, _) = hand.leave();
    assert!(rest.iter().all(|line| !line.contains("\"id\":1")), "{rest:?}");
    assert_eq!(reached(&env).iter().filter(|call| call["name"] == "echo").count(), 0);
}
