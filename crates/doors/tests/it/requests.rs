//! What is read from requests.

use pintle_doors::request::{BadRequest, SeenRequest};
use pintle_doors::spans::Edits;
use pintle_doors::{anthropic, openai};

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
}
