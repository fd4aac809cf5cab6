//! Files on their way: from hooks and tools to the user, and to models that see.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use pintle_domain::json::{Value, json};
use pintle_testkit::http::{HttpStub, StubAnswer};
use sha2::{Digest as _, Sha256};
use tokio::runtime::Runtime;

use super::env::{Seen, TestEnv};
use super::mcp::{everything, results};
use super::run::{DONE, LISTS, scripted};

/// A hook that answers every call with what stands in `result.json`.
pub(crate) const PAINTS: &str = r#"import json, sys
for line in sys.stdin:
    call = json.loads(line)
    result = {}
    if call["method"] == "hook.before_tool":
        result = {"action": "respond", "result": json.load(open("result.json"))}
    print(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": result}), flush=True)
"#;

const PAINTER: &str = "[hooks.processes.paints]\nenabled = true\ncommand = ['python3', 'paints.py']\ndir = 'studio'\n\
                       intercept = ['before_tool']\npair = false\n";

/// A picture of one dot, as `base64` has it.
const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn dot() -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(DOT).unwrap()
}

/// Surroundings where a hook answers the model's one call with `result`.
fn painted(result: &Value, replies: &str) -> TestEnv {
    let env = scripted(replies, PAINTER);
    env.write("config/pintle/studio/paints.py", PAINTS);
    fs::write(env.path("config/pintle/studio/dot.png"), dot()).unwrap();
    let result = result.to_string().replace("@studio@", &env.path("config/pintle/studio").display().to_string());
    env.write("config/pintle/studio/result.json", &result);
    env
}

fn handled(media: &str) -> Value {
    json!({"for_llm": "a dot", "for_user": "Look:", "media": [media], "response_handled": true})
}

fn delivered(env: &TestEnv, seen: &Seen) -> std::path::PathBuf {
    let line = seen.out.lines().find_map(|line| line.strip_prefix("[root]/")).unwrap_or_else(|| panic!("{seen}"));
    env.path(line)
}

#[test]
fn a_picture_of_a_hook_reaches_the_user_as_it_was() {
    for media in ["@studio@/dot.png".to_owned(), format!("data:image/png;base64,{DOT}")] {
        let env = painted(&handled(&media), LISTS);
        let seen = env.pintle(&["run", "--quiet", "--session", "s", "hello"]);
        assert_eq!((seen.code, seen.err.as_str()), (Some(0), ""), "{media}");
        let file = delivered(&env, &seen);
        assert_eq!(Sha256::digest(fs::read(&file).unwrap()), Sha256::digest(dot()), "{media}");
        // A handled turn prints what was delivered, and nothing else.
        assert_eq!(seen.out, format!("Look:\n[root]/{}\n", file.strip_prefix(env.path("")).unwrap().display()));
        let folder = file.parent().unwrap();
        assert_eq!(folder, env.path("data/pintle/delivered"));
        assert_eq!(fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700);
        let said = "a dot\n\nThe output above was already delivered to the user in this chat.";
        assert_eq!(results(&env, "s"), [said], "{media}");
    }
}

#[test]
fn json_names_what_was_delivered_in_the_reply() {
    let env = painted(&handled("@studio@/dot.png"), LISTS);
    let seen = env.pintle(&["run", "--json", "hello"]);
    let reply: Value = serde_json::from_str(seen.out.lines().last().unwrap()).unwrap();
    assert_eq!(
        reply,
        json!({"Kind": "reply", "Payload": {"text": "", "media": ["[root]/data/pintle/delivered/dot.png"]}})
    );
}

#[test]
fn what_cannot_be_delivered_is_told_to_the_model() {
    let check = |media: &str, why: &str| {
        let env = painted(&handled(media), &format!("{LISTS},{DONE}"));
        let seen = env.pintle(&["run", "--quiet", "--session", "s", "hello"]);
        assert_eq!((seen.code, seen.out.as_str()), (Some(0), "Look:\nAll done.\n"), "{seen}");
        let [text] = &results(&env, "s")[..] else { panic!("one call was made") };
        assert!(text.starts_with("failed to deliver attachment: ") && text.contains(why), "{text}");
        assert!(!env.path("data/pintle/delivered").exists(), "{media}");
    };
    check("/etc/hostname", "does not lie in the hook's `dir`");
    check("@studio@/gone.png", "No such file");
    check("https://example.com/dot.png", "expected a `media://` reference");
    check("media://nothing", "");
}

#[test]
fn a_file_that_was_delivered_before_a_turn_failed_is_named_on_stderr() {
    let error = r#"{"error": {"kind": "final", "message": "the model is asleep"}}"#;
    let both = r#"{"tool_calls": [{"name": "list_dir"}, {"name": "nonsense", "arguments": {}}]}"#;
    let env = painted(&handled("@studio@/dot.png"), &format!("{both},{error}"));
    // The second call is for nobody, so the model is asked again.
    let paints =
        PAINTS.replace("\"hook.before_tool\"", "\"hook.before_tool\" and call[\"params\"][\"tool\"] == \"list_dir\"");
    env.write("config/pintle/studio/paints.py", &paints);
    let seen = env.pintle(&["run", "--quiet", "hello"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(1), ""));
    assert!(seen.err.contains("delivered before the end: [root]/data/pintle/delivered/dot.png\n"), "{}", seen.err);
}

/// One reply of a server of `kind` that calls `tool`, and one that says "Seen.".
fn replies(kind: &str, tool: &str) -> Vec<StubAnswer> {
    let stream = |lines: &[String]| lines.iter().map(|line| format!("data: {line}\n\n")).collect::<String>();
    let openai = |delta: Value, reason: &str| {
        stream(&[
            json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}).to_string(),
            json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}).to_string(),
            "[DONE]".to_owned(),
        ])
    };
    let anthropic = |block: Value, delta: Value, reason: &str| {
        stream(&[
            json!({"type": "message_start", "message": {"role": "assistant", "content": [], "model": "m", "usage": {}}}).to_string(),
            json!({"type": "content_block_start", "index": 0, "content_block": block}).to_string(),
            json!({"type": "content_block_delta", "index": 0, "delta": delta}).to_string(),
            json!({"type": "content_block_stop", "index": 0}).to_string(),
            json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {}}).to_string(),
            json!({"type": "message_stop"}).to_string(),
        ])
    };
    let call = json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": tool, "arguments": "{}"}}]});
    let bodies = match kind {
        "openai" => [openai(call, "tool_calls"), openai(json!({"content": "Seen."}), "stop")],
        _ => [
            anthropic(
                json!({"type": "tool_use", "id": "c1", "name": tool, "input": {}}),
                json!({"type": "input_json_delta", "partial_json": "{}"}),
                "tool_use",
            ),
            anthropic(json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": "Seen."}), "end_turn"),
        ],
    };
    bodies.iter().map(|body| StubAnswer::events(body)).collect()
}

/// The second request that a turn makes to a server of `kind`, whose model calls `tool` first.
fn second_request(kind: &str, vision: bool, tool: &str, env: impl FnOnce(&str) -> TestEnv) -> Value {
    let runtime = Runtime::new().unwrap();
    let stub = runtime.block_on(HttpStub::start(replies(kind, tool)));
    let provider = format!(
        "[providers.here]\nkind = '{kind}'\nbase_url = '{}'\napi_key_env = 'HERE_KEY'\n\
         capabilities = {{ vision = {vision} }}\n",
        stub.url()
    );
    let env = env(&provider);
    let mut command = env.command(super::env::PINTLE);
    command.args(["run", "--quiet", "--model", "here/m", "hello"]).env("HERE_KEY", "k");
    let seen = env.run(&mut command, "");
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "Seen.\n"), "{}", seen.err);
    let requests = stub.seen();
    assert_eq!(requests.len(), 2);
    requests[1].json()
}

/// With the hook that paints, which leaves the picture to the model.
fn for_the_model(provider: &str) -> TestEnv {
    let env = painted(&json!({"for_llm": "a dot", "media": ["@studio@/dot.png"]}), "");
    let config = fs::read_to_string(env.path("config/pintle/pintle.toml")).unwrap();
    env.user_config(&format!("{config}{provider}"));
    env
}

#[test]
fn a_model_that_sees_is_shown_the_picture() {
    let request = second_request("openai", true, "list_dir", for_the_model).to_string();
    assert!(request.contains(&format!("data:image/png;base64,{DOT}")), "{request}");
    assert!(request.contains("[image:"), "{request}");
    let request = second_request("anthropic", true, "list_dir", for_the_model);
    let sent = request.to_string();
    let source = json!({"type": "base64", "media_type": "image/png", "data": DOT}).to_string();
    assert!(sent.contains(&source), "{sent}");
    let request = second_request("openai", false, "list_dir", for_the_model).to_string();
    assert!(!request.contains(DOT) && request.contains("[image:"), "{request}");
}

#[test]
fn a_picture_of_an_mcp_server_is_shown_too() {
    let request = second_request("openai", true, "mcp_all_get-tiny-image", |provider| {
        scripted("", &format!("{provider}{}", everything()))
    });
    let sent = request.to_string();
    assert!(sent.contains("data:image/png;base64,iVBORw0KGgo"), "{sent}");
}

#[test]
fn chat_prints_what_was_delivered_at_once() {
    let env = painted(&handled("@studio@/dot.png"), LISTS);
    let mut command = env.command(super::env::PINTLE);
    let seen = env.run(command.args(["chat", "--quiet"]), "hello\n");
    assert_eq!(seen.code, Some(0), "{seen}");
    assert!(seen.out.contains("Look:\n[root]/data/pintle/delivered/dot.png\n"), "{seen}");
    assert_eq!(fs::read(delivered(&env, &seen)).unwrap(), dot());
}

#[test]
fn a_resumed_turn_delivers_too() {
    // Gates rule on what a hook answers; the person's word is asked first.
    let env = painted(&handled("@studio@/dot.png"), LISTS);
    let config = fs::read_to_string(env.path("config/pintle/pintle.toml")).unwrap();
    env.user_config(&config.replace("model = 'scripted/test'\n", "model = 'scripted/test'\nask = ['list_dir']\n"));
    let seen = env.pintle(&["run", "--quiet", "--session", "s", "hello"]);
    assert_eq!(seen.code, Some(75), "{seen}");
    let listed: Value = serde_json::from_str(&env.raw(&["approvals", "list", "--json"])).unwrap();
    let id = listed[0]["id"].as_str().unwrap();
    assert_eq!(env.on_terminal("y\n", &["approvals", "approve", id]).code, Some(0));
    let seen = env.pintle(&["sessions", "resume", "s", "--quiet"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "Look:\n[root]/data/pintle/delivered/dot.png\n"), "{seen}");
    assert_eq!(fs::read(delivered(&env, &seen)).unwrap(), dot());
}

/// A hook that answers `after_tool` with what stands in `result.json`, or, where there is none, hands on what it got and
/// keeps a copy.
const TOUCHES_UP: &str = r#"import json, os, sys
for line in sys.stdin:
    call = json.loads(line)
    result = {}
    if call["method"] == "hook.after_tool":
        seen = call["params"]["result"]
        if os.path.exists("result.json"):
            seen = json.load(open("result.json"))
        else:
            open("seen.json", "w").write(json.dumps(seen))
            seen["for_llm"] += " and more"
        result = {"action": "modify", "result": {"result": seen}}
    print(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": result}), flush=True)
"#;

/// Two hooks in a row at `after_tool`, of which the first makes `result` of the model's one call.
fn touched_up(result: &Value) -> (TestEnv, Seen, Value) {
    let hook = |name: &str, dir: &str| {
        format!(
            "[hooks.processes.{name}]\nenabled = true\ncommand = ['python3', 'touches.py']\ndir = '{dir}'\n\
             intercept = ['after_tool']\npair = false\n"
        )
    };
    let env = scripted(&format!("{LISTS},{DONE}"), &(hook("a", "studio") + &hook("b", "office")));
    for folder in ["studio", "office"] {
        env.write(&format!("config/pintle/{folder}/touches.py"), TOUCHES_UP);
    }
    fs::write(env.path("config/pintle/studio/dot.png"), dot()).unwrap();
    let result = result.to_string().replace("@studio@", &env.path("config/pintle/studio").display().to_string());
    env.write("config/pintle/studio/result.json", &result);
    let seen = env.pintle(&["run", "--quiet", "--session", "s", "hello"]);
    let handed_on = fs::read_to_string(env.path("config/pintle/office/seen.json")).unwrap();
    (env, seen, serde_json::from_str(&handed_on).unwrap())
}

#[test]
fn what_a_hook_makes_of_a_result_may_name_files_too_and_nobody_else_sees_their_paths() {
    let (env, seen, handed_on) = touched_up(&handled("@studio@/dot.png"));
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "Look:\n[root]/data/pintle/delivered/dot.png\n"), "{seen}");
    assert_eq!(fs::read(delivered(&env, &seen)).unwrap(), dot());
    assert!(handed_on["media"][0].as_str().unwrap().starts_with("media://"), "{handed_on}");
    let why = env.raw(&["why", "--last", "--json"]);
    assert!(!why.contains("studio/dot.png"), "{why}");
    let text = results(&env, "s").remove(0);
    assert!(text.starts_with("a dot and more\n\nThe output above was already delivered"), "{text}");
}

#[test]
fn a_file_that_a_hook_may_not_hand_over_is_a_failed_delivery_after_a_tool_as_well() {
    for media in ["/etc/hostname", "@studio@/gone.png", "@studio@/../office/touches.py"] {
        let (env, seen, handed_on) = touched_up(&handled(media));
        assert_eq!((seen.code, seen.out.as_str()), (Some(0), "Look:\nAll done.\n"), "{seen}");
        let expected = (&json!([]), &json!(true), &json!(false));
        assert_eq!((&handed_on["media"], &handed_on["is_error"], &handed_on["response_handled"]), expected, "{media}");
        let text = results(&env, "s").remove(0);
        assert!(text.starts_with("failed to deliver attachment: ") && text.ends_with(" and more"), "{text}");
        assert!(!env.path("data/pintle/delivered").exists(), "{media}");
    }
}
