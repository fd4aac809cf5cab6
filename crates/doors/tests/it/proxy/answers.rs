//! What servers answer: what is final, what goes on, what asks the client's model.

use pintle_domain::json::Value;
use pintle_domain::tool::ToolOutput;
use pintle_doors::mcp::message::RequestKey;
use pintle_doors::mcp::proxy::{ProxyRuling, ProxyStep};

use super::{A, CALL, Played};

/// A call of the newest protocol.
const MODERN: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;

#[test]
fn the_person_before_the_client_is_asked_where_the_client_can_and_the_server_hears_nothing() {
    let mut played = Played::listed(A);
    let (ticket, call) = played.cleared(CALL);
    assert_eq!(played.0.ask(&call.key, ("x", "may it?")), None, "the client does not say that it can");
    for (id, capability, can_ask) in
        [(1, r#"{"url":{}}"#, false), (2, r#"{"url":{},"form":{}}"#, true), (3, "{}", true)]
    {
        let hello = format!(
            r#"{{"id":{id},"method":"initialize","params":{{"capabilities":{{"elicitation":{capability}}}}}}}"#
        );
        assert_eq!(played.client(&hello), [format!("→ {hello}")]);
        assert_eq!(played.0.ask(&call.key, (&format!("{id}"), "may it?")).is_some(), can_ask, "{capability}");
        let asked = played.steps();
        assert_eq!(asked.len(), usize::from(can_ask));
        if let [asked] = asked.as_slice() {
            let part =
                format!(r#""id":"pintle-ask-{id}","method":"elicitation/create","params":{{"message":"may it?""#);
            assert!(asked.starts_with('←') && asked.contains(&part), "{asked}");
        }
    }
    let said = |id: u32, action: &str| format!(r#"{{"id":"pintle-ask-{id}","result":{{"action":"{action}"}}}}"#);
    assert_eq!(played.client(&said(2, "decline")), ["said pintle-ask-2 Some(false)"]);
    assert_eq!(played.client(&said(2, "accept")), ["dropped: it answers a question that nobody waits for"]);
    // What does not wait any more needs no answer.
    played.0.ruled(ticket, ProxyRuling::Denied("no".into()));
    let seen = played.steps();
    assert!(seen[0].contains("notifications/cancelled") && seen[0].contains(r#""pintle-ask-3""#), "{seen:?}");
    assert_eq!(seen[1], "said pintle-ask-3 None");
}

#[test]
fn a_subscription_that_the_server_ends_is_over() {
    let mut played = Played::new();
    played.client(r#"{"id":"sub","method":"subscriptions/listen","params":{}}"#);
    played.client(r#"{"id":"other","method":"ping"}"#);
    let mut ended = |id: &str| {
        played.0.server(format!(r#"{{"method":"notifications/cancelled","params":{{"requestId":"{id}"}}}}"#), None);
        let Some(ProxyStep::ToClient(message)) = played.0.next_step() else { panic!() };
        (message.about.map(|key| key.to_string()), message.is_answer)
    };
    assert_eq!(ended("other"), (None, false), "the server may mean a request of its own");
    assert_eq!(ended("sub"), (Some("sub".to_owned()), true));
    assert_eq!(ended("sub"), (None, false));
}

#[test]
fn a_task_is_remembered_until_its_result_came() {
    let mut played = Played::listed(A);
    let ticket = played.called(CALL);
    let task = r#"{"id":7,"result":{"task":{"taskId":"t","status":"working"}}}"#;
    assert_eq!(played.server(task), [format!("withdrawn {ticket}"), format!("← {task}")]);
    let ask = r#"{"id":8,"method":"tasks/result","params":{"taskId":"t"}}"#;
    assert_eq!(played.client(ask), [format!("→ {ask}")]);
    let result = r#"{"id":8,"result":{"content":[{"type":"text","text":"key"}]}}"#;
    let seen = played.server(result);
    assert!(seen[0].starts_with("review") && seen[0].ends_with("mcp_n_a false key"), "{seen:?}");
    // A state without a result passes; one with a result in it is seen.
    played.client(r#"{"id":9,"method":"tasks/get","params":{"taskId":"t"}}"#);
    let state = r#"{"id":9,"result":{"taskId":"t","status":"working"}}"#;
    assert_eq!(played.server(state), [format!("← {state}")]);
    played.client(r#"{"id":9,"method":"tasks/get","params":{"taskId":"u"}}"#);
    let seen = played.server(r#"{"id":9,"result":{"status":"completed","result":{"content":[]}}}"#);
    assert!(seen[0].starts_with("review") && seen[0].contains(" ? "), "{seen:?}");
    // Its result came, and it is forgotten.
    played.client(&ask.replace("\"id\":8", "\"id\":10"));
    let seen = played.server(&result.replace("\"id\":8", "\"id\":10"));
    assert!(seen[0].starts_with("review") && seen[0].contains(" ? "), "{seen:?}");
}

#[test]
fn a_result_that_asks_the_model_is_seen_as_well() {
    let mut played = Played::listed(A);
    let needs = |text: &str| {
        format!(
            r#"{{"id":7,"result":{{"resultType":"input_required","inputRequests":{{"a":{{"method":"elicitation/create","params":{{}}}},"b":{{"method":"sampling/createMessage","params":{{"messages":[{{"role":"user","content":{{"type":"text","text":"{text}"}}}}]}}}}}}}}}}"#
        )
    };
    let ticket = played.called(MODERN);
    assert_eq!(played.server(&needs("hi")), [format!("withdrawn {ticket}"), format!("sample {} 1", ticket + 1)]);
    played.0.sampled(ticket + 1, Err("no".into()));
    assert!(played.steps()[0].contains(r#""text":"no"}],"isError":true"#));
    // Where nobody asks the model, it only passes.
    let ticket = played.called(MODERN);
    let more =
        r#"{"id":7,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create"}}}}"#;
    assert_eq!(played.server(more), [format!("withdrawn {ticket}"), format!("← {more}")]);
}

/// What becomes of the answer `result` to `call`.
fn answered(call: &str, result: &str) -> String {
    let mut played = Played::listed(A);
    played.called(call);
    played.server(&format!(r#"{{"id":7,{result}}}"#)).join("\n")
}

#[test]
fn no_result_passes_its_hooks_by_saying_that_it_is_none() {
    for (call, result) in [
        (MODERN, r#""result":{"resultType":"input_required","content":[{"type":"text","text":"key"}]}"#),
        (MODERN, r#""result":{"resultType":"input_required","structuredContent":{"key":1}}"#),
        (MODERN, r#""result":{"resultType":"task","taskId":"t","toolResult":"key"}"#),
        (CALL, r#""result":{"resultType":"input_required","inputRequests":{"key":{}}}"#),
        (CALL, r#""result":{"resultType":"task","taskId":"key"}"#),
        (CALL, r#""result":{"task":{"taskId":"t"},"structuredContent":{"key":1}}"#),
        (CALL, r#""result":{"task":{"taskId":"t","key":1}}"#),
        (CALL, r#""error":{"code":1,"message":"key"}"#),
    ] {
        let steps = answered(call, result);
        assert!(steps.starts_with("review") && steps.contains("key") && !steps.contains('←'), "{result}: {steps}");
    }
    for (call, result) in [
        (MODERN, r#""result":{"resultType":"task","taskId":"t","status":"working"}"#),
        (MODERN, r#""result":{"resultType":"input_required","inputRequests":{},"requestState":"s"}"#),
        (CALL, r#""result":{"task":{"taskId":"t","status":"working","ttl":1}}"#),
    ] {
        let steps = answered(call, result);
        assert!(steps.starts_with("withdrawn") && steps.contains('←'), "{result}: {steps}");
    }
}

#[test]
fn what_two_readers_may_read_differently_goes_no_further() {
    for result in [
        r#""result":{"content":[]},"error":{"code":1,"message":"key"}"#,
        r#""result":null,"error":{"code":1,"message":"key"}"#,
    ] {
        // The call is answered as if the server were gone: what it said instead is not in it.
        let steps = answered(CALL, result);
        assert!(steps.contains("it has a result and an error at once") && !steps.contains("key"), "{steps}");
    }
    for result in [
        r#""result":{"content":[{"type":"text","text":"a","Text":"key"}]}"#,
        r#""result":{"content":[],"StructuredContent":{"key":1}}"#,
    ] {
        let steps = answered(CALL, result);
        assert!(steps.contains("the server's result cannot be read") && !steps.contains("\"key\""), "{steps}");
    }
}

#[test]
fn what_comes_of_a_task_is_seen_wherever_it_stands() {
    for (method, answer) in [
        ("tasks/result", r#""result":{"resultType":"input_required","content":[{"type":"text","text":"key"}]}"#),
        ("tasks/result", r#""result":{"task":{"taskId":"key"}}"#),
        ("tasks/result", r#""error":{"code":1,"message":"key"}"#),
        ("tasks/get", r#""result":{"status":"failed","error":{"code":1,"message":"key"}}"#),
        ("tasks/get", r#""result":{"status":"completed","result":{"resultType":"task","taskId":"key"}}"#),
        ("tasks/get", r#""error":{"code":1,"message":"key"}"#),
    ] {
        let mut played = Played::new();
        played.client(&format!(r#"{{"id":8,"method":"{method}","params":{{"taskId":"t"}}}}"#));
        let steps = played.server(&format!(r#"{{"id":8,{answer}}}"#));
        assert!(steps[0].starts_with("review 1 ") && steps[0].contains("key"), "{answer}: {steps:?}");
        played.0.reviewed(1, Some(ToolOutput::ok("-")));
        let left = played.steps().join("");
        assert!(left.starts_with("← ") && !left.contains("key"), "{answer}: {left}");
    }
    for state in [
        r#"{"status":"completed","result":{"content":[]},"error":{"message":"key"}}"#,
        r#"{"status":"completed","Result":{"content":"key"}}"#,
        r#"{"status":"completed","content":"key"}"#,
    ] {
        let mut played = Played::new();
        played.client(r#"{"id":8,"method":"tasks/get","params":{"taskId":"t"}}"#);
        let steps = played.server(&format!(r#"{{"id":8,"result":{state}}}"#)).join("");
        assert!(steps.contains("-32603") && !steps.contains("key"), "{state}: {steps}");
        let told = format!(r#"{{"method":"notifications/tasks/status","params":{state}}}"#);
        let steps = played.server(&told).join("");
        assert!(steps.starts_with("dropped: "), "{state}: {steps}");
    }
    let told = r#"{"method":"notifications/tasks/status","params":{"status":"failed","error":{"message":"key"}}}"#;
    let steps = Played::new().server(told);
    assert!(steps[0].starts_with("review ") && steps[0].ends_with(" ? true key"), "{steps:?}");
}

#[test]
fn every_answer_that_asks_the_model_is_seen() {
    let asking = |method: &str, params: &str| {
        format!(
            r#"{{"resultType":"input_required","inputRequests":{{"a":{{"method":"{method}","params":{params}}}}}}}"#
        )
    };
    let messages = r#"{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}]}"#;
    for method in ["prompts/get", "resources/read", "tasks/get", "x/y"] {
        let answered = |result: &str| {
            let mut played = Played::new();
            played.client(&format!(r#"{{"id":8,"method":"{method}","params":{{"name":"t"}}}}"#));
            let steps = played.server(&format!(r#"{{"id":8,"result":{result}}}"#)).join("");
            (played, steps)
        };
        let result = asking("sampling/createMessage", messages);
        let (mut played, steps) = answered(&result);
        assert_eq!(steps, "sample 1 1", "{method}");
        let again = played.client(r#"{"id":8,"method":"ping"}"#).join("");
        assert!(again.contains("the id is still in use"), "{again}");
        played.0.sampled(1, Err("no".into()));
        let refused = r#"← {"jsonrpc":"2.0","id":8,"error":{"code":-1,"message":"no"}}"#;
        assert_eq!(played.steps(), [refused], "{method}");
        for result in [asking("sampling/createMessage", "{}"), asking("Sampling/CreateMessage", messages)] {
            let steps = answered(&result).1;
            assert!(steps.contains("-32603") && !steps.contains("inputRequests"), "{method}: {steps}");
        }
        let harmless = asking("elicitation/create", "{}");
        assert_eq!(answered(&harmless).1, format!(r#"← {{"id":8,"result":{harmless}}}"#), "{method}");
    }
    let mut played = Played::new();
    let asked = asking("sampling/createMessage", messages);
    let told = format!(r#"{{"method":"notifications/tasks/status","params":{asked}}}"#);
    assert_eq!(played.server(&told), ["sample 1 1"]);
    played.0.sampled(1, Err("no".into()));
    assert_eq!(played.steps(), ["dropped: no"]);
    // A result that is final asks nothing.
    let both = asked.replace("\"resultType\"", "\"content\":[],\"resultType\"");
    let steps = answered(MODERN, &format!(r#""result":{both}"#));
    assert!(steps.contains("the server's result cannot be read"), "{steps}");
}

#[test]
fn a_tool_that_is_listed_twice_and_not_alike_is_withheld() {
    let other = r#"{"name":"a","description":"other"}"#;
    // On one page of a client.
    let mut played = Played::new();
    played.client(r#"{"id":1,"method":"tools/list"}"#);
    let listed = played.server(&format!(r#"{{"id":1,"result":{{"tools":[{A},{other},{{"name":"b"}}]}}}}"#));
    assert_eq!(listed, [r#"← {"id":1,"result":{"tools":[{"name":"b"}]}}"#]);
    // On two pages of the door's own list.
    let mut played = Played::new();
    played.client(CALL);
    played.server(&format!(r#"{{"id":"pintle-list-2","result":{{"tools":[{A}],"nextCursor":"c"}}}}"#));
    let refused = played.server(&format!(r#"{{"id":"pintle-list-3","result":{{"tools":[{other}]}}}}"#));
    assert_eq!(refused[0], "refused a: the server lists its tool `a` more than once, and not alike");
    // The same one again is the same tool.
    let mut played = Played::new();
    played.client(CALL);
    let cleared = played.server(&format!(r#"{{"id":"pintle-list-2","result":{{"tools":[{A},{A}]}}}}"#));
    assert_eq!(cleared, [r#"clear 1 mcp_n_a {"x":1.50}"#]);
}

#[test]
fn a_tool_without_a_name_of_ours_is_not_there() {
    // Both names that `a.b` could have are taken.
    let mut played = Played::new();
    played.client(r#"{"id":1,"method":"tools/list"}"#);
    let tools = r#"{"name":"a_b"},{"name":"a_b_2e7336dc"}"#;
    let listed = played.server(&format!(r#"{{"id":1,"result":{{"tools":[{{"name":"a.b"}},{tools}]}}}}"#));
    assert_eq!(listed, [format!(r#"← {{"id":1,"result":{{"tools":[{tools}]}}}}"#)]);
    played.client(r#"{"id":2,"method":"tools/call","params":{"name":"a.b"}}"#);
    let own = r#"{"id":"pintle-list-3","result":{"tools":[{"name":"a.b"},{"name":"a_b"},{"name":"a_b_2e7336dc"}]}}"#;
    let refused = played.server(own);
    assert!(refused[0].starts_with("refused a.b: there is no tool `a.b` here"), "{refused:?}");
}

#[test]
fn nothing_is_awaited_for_a_client_that_withdrew() {
    let key = RequestKey::of(&Value::from(7)).unwrap();
    let cancelled = r#"{"method":"notifications/cancelled","params":{"requestId":7}}"#;
    let mut played = Played::listed(A);
    assert!(!played.0.is_awaited(&key));
    // While it is being cleared, at the server, and while its failure is at the hooks.
    played.cleared(CALL);
    assert!(played.0.is_awaited(&key));
    played.client(cancelled);
    assert!(!played.0.is_awaited(&key));
    played.called(CALL);
    assert!(played.0.is_awaited(&key));
    assert_eq!(played.0.waiting_for(&key), std::slice::from_ref(&key));
    played.0.failed(&key, "it wants a sign-in");
    assert!(played.0.is_awaited(&key));
    played.client(cancelled);
    assert!(!played.0.is_awaited(&key));
}

#[test]
fn an_answer_that_is_said_wrongly_leaves_nobody_waiting() {
    for said in [
        r#"{"jsonrpc":"2.0","id":"7","result":{"content":[]}}"#,
        r#"[{"jsonrpc":"2.0","id":7,"result":{"content":[]}}]"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"x","result":{"content":[]}}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{},"error":{}}"#,
    ] {
        let mut played = Played::listed(A);
        let ticket = played.called(CALL);
        let seen = played.server(said);
        assert_eq!(seen.len(), 2, "{said}: {seen:?}");
        assert!(seen[0].starts_with("lost: the server"), "{seen:?}");
        assert!(seen[1].starts_with(&format!("review {ticket} mcp_n_a true the server")), "{seen:?}");
        let mut played = Played::new();
        played.client(r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#);
        let seen = played.server(said);
        assert!(
            seen[0].starts_with("lost: ") && seen[1].starts_with(r#"← {"jsonrpc":"2.0","id":7,"error""#),
            "{seen:?}"
        );
    }
    let mut played = Played::new();
    assert_eq!(
        played.server("[]"),
        ["dropped: the server's message cannot be read: messages come one by one here, not in a list"]
    );
    assert!(played.server(r#"{"id":"x","method":"a","result":1}"#)[0].starts_with("→ "), "its own request");
}
