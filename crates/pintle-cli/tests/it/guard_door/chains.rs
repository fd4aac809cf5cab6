//! Conversations that the vendor keeps: a request that names an answer goes on from it, and what is new passes the hooks.

use serde_json::{Value, json};

use super::door::wait_for;
use super::models::{Guarded, RESPONSES, guarded, guarded_with};
use crate::env::answering;

/// Sends `body`; says the status and the answer.
fn ask(guarded: &Guarded, headers: &str, body: &Value) -> (u16, Value) {
    let (status, _, answer) = guarded.send(RESPONSES, headers, &body.to_string());
    (status, serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer}")))
}

fn more(previous: &Value, input: &Value) -> Value {
    json!({"model": "m", "previous_response_id": previous, "input": input})
}

/// The result of the call in `answer`.
fn result(answer: &Value, output: &str) -> Value {
    json!([{"type": "function_call_output", "call_id": answer["output"][1]["call_id"], "output": output}])
}

#[test]
fn what_is_new_passes_the_hooks_and_its_call_is_known() {
    let told = r#"{"action":"modify","result":{"result":{"for_llm":"[of lookup]"}}}"#;
    let script = answering(r#"*'"tool":"lookup","arguments":{"amount":1.5'*hunter3*"#, told);
    let guarded = guarded_with("", &[("named", "after_tool", script)]);
    let (status, first) = ask(&guarded, "", &json!({"model": "m", "input": "call lookup"}));
    assert_eq!(status, 200, "{first}");
    let body = more(&first["id"], &result(&first, "key=hunter3"));
    let (status, second) = ask(&guarded, "", &body);
    assert_eq!((status, &second["output"][0]["content"][0]["text"]), (200, &json!("I read: [of lookup]")), "{second}");
    let came = guarded.vendor.came().pop().unwrap().body;
    assert_eq!(came, body.to_string().replace("key=hunter3", "[of lookup]"));
    // Where no hook changes anything the same bytes leave, and streams may be gone on from, too.
    let mut body = more(&second["id"], &json!("go on"));
    body["stream"] = true.into();
    let (status, _, events) = guarded.send(RESPONSES, "", &body.to_string());
    assert_eq!((status, guarded.vendor.came().pop().unwrap().body), (200, body.to_string()), "{events}");
    let end = events.lines().filter_map(|line| line.strip_prefix("data: ")).next_back().unwrap();
    let end: Value = serde_json::from_str(end).unwrap();
    let (status, last) = ask(&guarded, "", &more(&end["response"]["id"], &json!("and on")));
    assert_eq!(status, 200, "{last}");
    // An earlier answer may be gone on from again.
    let (status, again) = ask(&guarded, "", &more(&first["id"], &result(&first, "another")));
    assert_eq!(status, 200, "{again}");
}

#[test]
fn an_answer_that_the_door_does_not_know_as_the_vendor_keeps_it_is_not_gone_on_from() {
    let guarded = guarded("");
    let own = "X-Pintle-Session: a\n";
    let got = |prompt: &str, store: bool| {
        let (status, answer) = ask(&guarded, own, &json!({"model": "m", "input": prompt, "store": store}));
        assert_eq!(status, 200, "{prompt}: {answer}");
        answer
    };
    let first = got("call lookup", true);
    let lost = json!([{"type": "function_call_output", "call_id": "call_x", "output": "x"}]);
    let (go_on, unknown) = (json!("go on"), "it names no answer that this door passed on");
    let refused = [
        ("an id that nobody said", own, more(&json!("resp_0"), &go_on), unknown),
        ("another session", "X-Pintle-Session: b\n", more(&first["id"], &go_on), unknown),
        ("no session", "", more(&first["id"], &go_on), unknown),
        ("not kept", own, more(&got("hello", false)["id"], &go_on), unknown),
        ("merged", own, more(&got("call forbidden", true)["id"], &go_on), unknown),
        ("a call refused beside another", own, more(&got("call forbidden lookup", true)["id"], &go_on), unknown),
        ("a changed call", own, more(&got("call change", true)["id"], &go_on), unknown),
        ("a call that nobody knows", own, more(&first["id"], &lost), "it names no call that waits for a result"),
    ];
    let before = guarded.vendor.came().len();
    for (what, headers, body, why) in refused {
        let (status, answer) = ask(&guarded, headers, &body);
        let told = answer["error"]["message"].as_str().unwrap();
        assert!(status == 400 && told.contains(why) && told.contains("whole conversation"), "{what}: {answer}");
    }
    assert_eq!(guarded.vendor.came().len(), before);
    let (status, answer) = ask(&guarded, own, &more(&first["id"], &result(&first, "42")));
    assert_eq!(status, 200, "{answer}");
}

#[test]
fn hooks_that_rule_on_a_whole_request_are_shown_no_part_of_it() {
    let guarded = guarded_with("", &[("reads", "before_llm", answering("nothing", "{}"))]);
    let (status, first) = ask(&guarded, "", &json!({"model": "m", "input": "hello"}));
    assert_eq!(status, 200, "{first}");
    let (status, answer) = ask(&guarded, "", &more(&first["id"], &json!("go on")));
    assert_eq!((status, guarded.vendor.came().len()), (400, 1), "{answer}");
    let why = "hooks at `before_llm` read the whole conversation";
    assert!(answer["error"]["message"].as_str().unwrap().contains(why), "{answer}");
    wait_for(|| guarded.door.env.pintle(&["why", "--denied"]).out.contains(why).then_some(()));
}
