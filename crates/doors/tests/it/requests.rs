//! What is read from requests.

use pintle_doors::keeper::with_messages;
use pintle_doors::request::{BadRequest, ClientTool, SeenRequest};
use pintle_doors::spans::Edits;
use pintle_doors::{anthropic, openai, responses};

fn said(request: &SeenRequest) -> String {
    let prompts = request.prompts();
    let mut lines: Vec<String> =
        prompts.iter().map(|it| format!("prompt {} {} {:?}", it.ordinal, it.is_newest, it.text)).collect();
    for (place, message) in request.messages.iter().enumerate() {
        for result in &message.results {
            let call = request.call(&result.call, place);
            let name = call.map(|call| format!("{} {:?}", call.name, call.arguments)).unwrap_or_default();
            lines.push(format!("result {} of {name}: {:?}", result.call, result.text));
        }
    }
    lines.extend(request.hosted.iter().map(|tool| format!("hosted {}", tool.name)));
    lines.extend(request.tools.iter().map(|tool| format!("tool {}", tool.name)));
    lines.join("\n")
}

#[test]
fn messages_of_anthropic() {
    let body = r#"{"model":"m","messages":[
        {"role":"user","content":"first"},
        {"role":"assistant","content":[{"type":"text","text":"ok"},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
                                  {"type":"text","text":"note"},{"type":"text","text":"and more"}]}],
        "tools":[{"name":"Bash","input_schema":{}},{"type":"web_search_20250305","name":"web_search"},{"type":"bash_20250124","name":"bash"}],
        "mcp_servers":[{"name":"x","url":"https://x","authorization_token":"secret"}]}"#;
    let request = anthropic::read(body.into()).unwrap();
    assert_eq!(
        said(&request),
        "prompt 0 false \"first\"\nprompt 1 true \"note\\nand more\"\nresult t1 of Bash {\"command\": String(\"ls\")}: \
         \"a\\nb\"\nhosted web_search\nhosted mcp_x\ntool Bash\ntool bash"
            .replace("{\"command\": String(\"ls\")}", &format!("{:?}", request.messages[1].calls[0].arguments))
    );
    assert!(!format!("{:?}", request.hosted).contains("secret"));
    let mut edits = Edits::default();
    request.say(&mut edits, 2, "new");
    SeenRequest::result(&mut edits, &request.messages[2].results[0], "clean");
    let changed = anthropic::read(edits.apply(body)).unwrap();
    assert_eq!(changed.prompts()[1].text, "new");
    assert_eq!(changed.messages[2].results[0].text, "clean");
}

#[test]
fn chat_completions_of_openai() {
    let body = r#"{"model":"m","stream":true,"messages":[{"role":"developer","content":"be good"},
        {"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:"}},{"type":"text","text":"b"}]},
        {"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},
                                                        {"id":"d","type":"custom","custom":{"name":"g","input":"free"}}]},
        {"role":"tool","tool_call_id":"c","content":"done"},{"role":"tool","tool_call_id":"d","content":[{"type":"text","text":"done"}]}],
        "tools":[{"type":"function","function":{"name":"f"}},{"type":"web_search"}],"web_search_options":{}}"#;
    let request = openai::read(body.into()).unwrap();
    let calls = &request.messages[2].calls;
    assert_eq!(
        said(&request),
        format!(
            "prompt 0 false \"a\\nb\"\nresult c of f {:?}: \"done\"\nresult d of g {:?}: \"done\"\nhosted web_search\nhosted web_search\ntool f",
            calls[0].arguments, calls[1].arguments
        )
    );
    assert!(request.streams);
    let mut edits = Edits::default();
    request.say(&mut edits, 1, "new");
    assert_eq!(openai::read(edits.apply(body)).unwrap().prompts()[0].text, "new");
}

#[test]
fn responses_of_openai() {
    let body = r#"{"model":"m","instructions":"be good","input":[{"role":"developer","content":"be good"},
        {"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:"},{"type":"input_text","text":"b"}]},
        {"type":"reasoning","id":"rs","summary":[]},
        {"type":"message","role":"assistant","content":[{"type":"output_text","text":"ok"}]},
        {"type":"function_call","call_id":"c","name":"f","arguments":"{\"x\":1}"},
        {"type":"custom_tool_call","call_id":"d","name":"g","input":"free"},
        {"type":"function_call_output","call_id":"c","output":"done"},
        {"type":"custom_tool_call_output","call_id":"d","output":[{"type":"input_text","text":"done"}]}],
        "tools":[{"type":"function","name":"f"},{"type":"custom","name":"g"},{"type":"web_search_preview"},
                 {"type":"mcp","server_label":"x","server_url":"https://x","authorization":"secret","headers":{"k":"secret"}}]}"#;
    let request = responses::read(body.into()).unwrap();
    let call = |place: usize| &request.messages[place].calls[0].arguments;
    assert_eq!(
        said(&request),
        format!(
            "prompt 0 false \"a\\nb\"\nresult c of f {:?}: \"done\"\nresult d of g {:?}: \"done\"\nhosted web_search_preview\nhosted mcp_x\ntool f\ntool g",
            call(4),
            call(5)
        )
    );
    assert!(!format!("{:?}", request.hosted).contains("secret"));
    assert_eq!(request.system[0].text, "be good");
    let mut edits = Edits::default();
    request.say(&mut edits, 1, "new");
    SeenRequest::result(&mut edits, &request.messages[7].results[0], "clean");
    let changed = responses::read(edits.apply(body)).unwrap();
    assert_eq!((changed.prompts()[0].text.as_str(), changed.messages[7].results[0].text.as_str()), ("new", "clean"));
}

#[test]
fn tools_of_a_namespace_are_tools_of_the_client() {
    let body = r#"{"model":"m","input":[{"role":"user","content":"a"},
        {"type":"function_call","call_id":"c","namespace":"mcp__box","name":"f","arguments":"{}"},
        {"type":"function_call_output","call_id":"c","output":"done"}],
        "tools":[{"type":"function","name":"f"},
                 {"type":"namespace","name":"mcp__box","tools":[{"type":"function","name":"f"},{"type":"custom","name":"g"},{"type":"web_search"}]},
                 {"type":"namespace","name":"mcp__end__","tools":[{"type":"function","name":"h"},{"type":"namespace","name":"in","tools":[]}]}]}"#;
    let request = responses::read(body.into()).unwrap();
    assert_eq!(
        said(&request),
        format!(
            "prompt 0 false \"a\"\nresult c of mcp__box__f {:?}: \"done\"\nhosted web_search\nhosted namespace\ntool f\n\
             tool mcp__box__f\ntool mcp__box__g\ntool mcp__end__h",
            request.messages[1].calls[0].arguments
        )
    );
    assert_eq!(request.namespaces, ["mcp__box", "mcp__end__"]);
    // Each stands in a list from which it can be taken.
    let is_listed = |tool: &ClientTool| request.tool_lists.iter().any(|list| list.items().contains(&tool.node));
    assert!(request.tools.iter().all(is_listed));
    let odd = body.replace(r#""tools":[]"#, r#""tools":{}"#).replace(r#""name":"in","#, "");
    assert!(responses::read(odd).is_ok(), "what runs nowhere is not read");
    let odd = body
        .replace(r#""name":"mcp__end__","tools":["#, r#""name":"mcp__end__","tools":{"a":["#)
        .replace("]}]}]}", "]}]}}]}");
    assert_eq!(
        responses::read(odd).unwrap_err().to_string(),
        "`tools[].tools` is not what the door knows: expected a list"
    );
}

#[test]
fn a_conversation_that_is_one_text_may_grow() {
    let request = responses::read(r#"{"model":"m","input":"a \u0062"}"#.into()).unwrap();
    assert_eq!(said(&request), "prompt 0 true \"a b\"");
    let mut edits = Edits::default();
    request.say(&mut edits, 0, "c");
    assert_eq!(edits.apply(&request.document.text), r#"{"model":"m","input":"c"}"#);
    assert_eq!(
        with_messages(&request, &["{}".into()]),
        r#"{"model":"m","input":[{"role":"user","content":"a \u0062"},{}]}"#
    );
}

#[test]
fn what_cannot_be_read_is_named() {
    let check = |read: fn(String) -> Result<SeenRequest, BadRequest>, body: &str, expected: &str| {
        assert_eq!(read(body.into()).unwrap_err().to_string(), expected);
    };
    let twice = "the body cannot be read: the member `a` stands twice in one object";
    check(anthropic::read, "{\"a\":1,\"a\":2}", twice);
    check(anthropic::read, "{}", "`messages` is not what the door knows: expected a list");
    let role = "`messages[0].role` is not what the door knows: expected `user`, `assistant` or `system`";
    check(anthropic::read, "{\"messages\":[{\"role\":\"tool\"}]}", role);
    let functions = "`functions` is not what the door knows: expected `tools`: this form has been given up";
    check(openai::read, "{\"messages\":[],\"functions\":[{}]}", functions);
    // One tool that is no list would be cleared by nobody.
    let list = |name: &str| format!("`{name}` is not what the door knows: expected a list");
    for name in ["tools", "mcp_servers"] {
        check(anthropic::read, &format!(r#"{{"messages":[],"{name}":{{"type":"web_search"}}}}"#), &list(name));
    }
    check(openai::read, r#"{"messages":[],"tools":{"type":"web_search"}}"#, &list("tools"));
    check(responses::read, r#"{"input":[],"tools":{"type":"web_search"}}"#, &list("tools"));
    assert!(responses::read(r#"{"input":[],"tools":null}"#.into()).is_ok());
    for (body, place, why) in [
        ("{}", "input", "expected a text or a list"),
        (r#"{"input":{}}"#, "input", "expected a text or a list"),
        (r#"{"input":[],"previous_response_id":{"id":"r"}}"#, "previous_response_id", "expected a text"),
        (
            r#"{"input":[{"type":"mcp_approval_response"}],"previous_response_id":"r"}"#,
            "input",
            "it answers what was asked at the vendor; send the whole conversation, with the question",
        ),
        (
            r#"{"input":[],"Previous_Response_Id":"r"}"#,
            "Previous_Response_Id",
            "it is spelled as the vendor may read it, and the door does not",
        ),
        (
            r#"{"input":[],"conversation":{"id":"r"}}"#,
            "conversation",
            "it names a conversation that stands at the vendor; send the whole of it in `input`",
        ),
        (
            r#"{"input":[],"background":true}"#,
            "background",
            "an answer in the background would be fetched past the door",
        ),
        (
            r#"{"input":[],"prompt":{"id":"r"}}"#,
            "prompt",
            "it names a prompt that stands at the vendor; send it in `instructions` and `input`",
        ),
        (
            r#"{"input":[{"type":"item_reference","id":"r"}]}"#,
            "input[0].type",
            "it names what stands at the vendor, where no hook saw it; send the item itself",
        ),
        (r#"{"input":[{"type":"function_call_output"}]}"#, "input[0].output", "it is missing"),
        (
            r#"{"input":[{"type":"new"}]}"#,
            "input[0].type",
            "expected a message, a call, the output of one, or a thought",
        ),
        (r#"{"input":["x"]}"#, "input[0].role", "expected `system`, `developer`, `user` or `assistant`"),
    ] {
        check(responses::read, body, &format!("`{place}` is not what the door knows: {why}"));
    }
    let allowed = r#"{"input":[],"previous_response_id":null,"conversation":null,"background":false}"#;
    assert!(responses::read(allowed.into()).is_ok());
}
