//! Rewrites of a request to a model and of its answer.

use super::*;

#[test]
fn before_llm_replaces_what_is_present() {
    let patch = |patch: LlmPatch| Verdict::<BeforeLlm>::Modify(patch);
    check(&request(), r#"{"request":{}}"#, patch(LlmPatch::default()), &[]);
    check(
        &request(),
        r#"{"action":"continue","request":{"MODEL":"x","messages":null,"tools":[],"options":{"t":1.10}}}"#,
        patch(LlmPatch {
            model: Some("x".into()),
            messages: None,
            tools: Some(Vec::new()),
            options: Some(object(r#"{"t":1.10}"#)),
            faulty: None,
        }),
        &[],
    );
    // What can be read is not lost for what cannot.
    let wrong = "result.request.tools: expected an array, got an object";
    check(
        &request(),
        r#"{"request":{"model":"x","tools":{},"options":5}}"#,
        patch(LlmPatch { model: Some("x".into()), faulty: Some(wrong.into()), ..LlmPatch::default() }),
        &[wrong],
    );
    let patched = LlmPatch { messages: Some(Vec::new()), ..LlmPatch::default() };
    let empty = ["an empty `model` keeps the model"];
    check(&request(), r#"{"request":{"model":"a","model":"","messages":[]}}"#, patch(patched), &empty);
    check(
        &request(),
        r#"{"request":{"graceful_terminal":true},"messages":[]}"#,
        patch(LlmPatch::default()),
        &[
            "result.messages is not read; use result.request.messages",
            "result.request.graceful_terminal is read-only; the change is ignored",
        ],
    );
    check_unreadable(&request(), r#"{"request":5}"#, "result.request: expected an object, got a number");
    check_unreadable(
        &request(),
        r#"{"request":{"messages":[{"role":"user"},{"role":"user","content":[]}]}}"#,
        "result.request.messages[1].content: expected a string, got an array",
    );
    check_unreadable(
        &request(),
        r#"{"request":{"messages":[null]}}"#,
        "result.request.messages[0]: expected an object, got null",
    );
    check_unreadable(
        &request(),
        r#"{"request":{"options":"none"}}"#,
        "result.request.options: expected an object, got a string",
    );
    check_unreadable(
        &request(),
        r#"{"request":{"messages":[{"role":"user","media":["a",1]}]}}"#,
        "result.request.messages[0].media[1]: expected a string, got a number",
    );
}

#[test]
fn a_message_has_a_known_role_and_named_calls() {
    let messages = |json: &str| format!(r#"{{"request":{{"messages":[{json}]}}}}"#);
    check_broke(
        &request(),
        &messages(r#"{"role":"developer","content":""}"#),
        r#"result.request.messages[0].role is "developer"; use system, user, assistant or tool"#,
    );
    check_broke(
        &request(),
        &messages(r#"{"content":""}"#),
        r#"result.request.messages[0] has no "role"; use system, user, assistant or tool"#,
    );
    for call in [r#"{"id":"c"}"#, r#"{"function":{"arguments":"{}"}}"#, r#"{"function":{"name":""}}"#] {
        check_broke(
            &request(),
            &messages(&format!(r#"{{"role":"assistant","tool_calls":[{call}]}}"#)),
            "result.request.messages[0].tool_calls[0].function.name is missing; a tool must be named",
        );
    }
    let message = Message {
        tool_calls: vec![CallPart::new("c", "t", r#"{"N" : 1e400,"n":[-0]}"#)],
        attachments: vec![json!({"a": null})],
        ..Message::text(Role::Assistant, "")
    };
    check(
        &request(),
        &messages(
            r#"{"ROLE":"assistant","attachments":[{"a":null}],"foo":1,"tool_calls":[
                {"ID":"c","function":{"Name":"t","arguments":{"N" : 1e400,"n":[-0]}}}]}"#,
        ),
        Verdict::Modify(LlmPatch { messages: Some(vec![message.into()]), ..LlmPatch::default() }),
        &[
            "result.request.messages[0].foo is not read",
            "result.request.messages[0].tool_calls[0].function.arguments should be a string of JSON, not an object",
        ],
    );
}

#[test]
fn a_call_without_an_id_gets_one_of_its_own() {
    let two =
        r#"{"response":{"response":{"tool_calls":[{"function":{"name":"a"}},{"id":"","function":{"name":"b"}}]}}}"#;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let Verdict::Modify(reply) = heard(&response(), two, true).unwrap().verdict else { panic!() };
        ids.extend(reply.tool_calls.into_iter().map(|call| call.id));
    }
    assert!(ids.iter().all(|id| id.starts_with("call_") && id.len() == 37), "{ids:?}");
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 4);
}

#[test]
fn a_tool_definition_needs_a_name_and_keeps_its_digits() {
    let tools = |json: &str| format!(r#"{{"request":{{"tools":[{json}]}}}}"#);
    check_broke(
        &request(),
        &tools(r#"{"type":"function"}"#),
        "result.request.tools[0].function.name is missing; a tool must be named",
    );
    check_unreadable(
        &request(),
        &tools(r#"{"function":{"name":"w","parameters":true}}"#),
        "result.request.tools[0].function.parameters: expected an object, got a boolean",
    );
    let digits = r#"{"maximum":12345678901234567890123,"multipleOf":1.10,"Maximum":-0}"#;
    let Verdict::Modify(LlmPatch { tools: Some(offered), .. }) =
        heard(&request(), &tools(&format!(r#"{{"function":{{"name":"w","parameters":{digits}}}}}"#)), true)
            .unwrap()
            .verdict
    else {
        panic!()
    };
    assert_eq!(offered[0].get().function.parameters.to_string(), digits);
    let plain = ToolDef::new("w", "", json!({"type": "object"}));
    check(
        &request(),
        &tools(r#"{"function":{"name":"w"}}"#),
        Verdict::Modify(LlmPatch { tools: Some(vec![plain.into()]), ..LlmPatch::default() }),
        &[],
    );
}

#[test]
fn of_two_definitions_with_one_name_the_first_stays() {
    let own = request().request.tools[0].clone();
    let name = own.get().function.name.clone();
    let json = String::from_utf8(own.json().to_vec()).unwrap();
    let other = format!(r#"{{"type":"function","function":{{"name":"{name}","description":"another"}}}}"#);
    let new = r#"{"type":"function","function":{"name":"new","parameters":{}}}"#;
    let tools = vec![own, Rendered::new(ToolDef::new("new", "", pintle_domain::json::json!({})))];
    check(
        &request(),
        &format!(r#"{{"request":{{"tools":[{json},{other},{new},{new}]}}}}"#),
        Verdict::Modify(LlmPatch { tools: Some(tools), ..LlmPatch::default() }),
        &[
            &format!("a second definition of tool `{name}` is ignored; the first stays"),
            "a second definition of tool `new` is ignored; the first stays",
        ],
    );
}

#[test]
fn after_llm_replaces_the_whole_answer() {
    check(
        &response(),
        r#"{"action":"modify","response":{"response":{"content":"Hi!","finish_reason":"stop"}}}"#,
        Verdict::Modify(LlmReply { usage: None, ..LlmReply::text("Hi!") }),
        &[],
    );
    check(
        &response(),
        r#"{"response":{"model":"m","response":{"role":"assistant","reasoning_details":[{"n":1.10}]}}}"#,
        Verdict::Modify(LlmReply {
            finish_reason: String::new(),
            reasoning_details: serde_json::from_str(r#"[{"n":1.10}]"#).unwrap(),
            ..LlmReply::text("")
        }),
        &[],
    );
    check(
        &response(),
        r#"{"response":{"model":"other","content":"x","tool_calls":[]}}"#,
        Verdict::Continue,
        &[
            "result.response.content is not read; use result.response.response.content",
            "result.response.tool_calls is not read; use result.response.response.tool_calls",
            "result.response.model is read-only; the change is ignored",
        ],
    );
    check(
        &response(),
        r#"{"content":"x"}"#,
        Verdict::Continue,
        &["result.content is not read; use result.response.response.content"],
    );
    let same = r#"{"total_tokens":3,"prompt_tokens":1.0,"completion_tokens":2}"#;
    let text = |content| Verdict::Modify(LlmReply { finish_reason: String::new(), ..LlmReply::text(content) });
    check(&response(), &format!(r#"{{"response":{{"response":{{"content":"a","usage":{same}}}}}}}"#), text("a"), &[]);
    check(
        &response(),
        r#"{"response":{"response":{"content":"a","usage":{"total_tokens":9}}}}"#,
        text("a"),
        &["result.response.response.usage is read-only; the change is ignored"],
    );
    check_broke(
        &response(),
        r#"{"response":{"response":{"role":"user"}}}"#,
        "result.response.response.role must be \"assistant\"",
    );
    check_unreadable(
        &response(),
        r#"{"response":{"response":{"tool_calls":{}}}}"#,
        "result.response.response.tool_calls: expected an array, got an object",
    );
    check_unreadable(
        &response(),
        r#"{"response":{"response":{"usage":3}}}"#,
        "result.response.response.usage: expected an object, got a number",
    );
}
