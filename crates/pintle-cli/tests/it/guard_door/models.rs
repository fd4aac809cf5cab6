//! The model door: the built daemon between the vendors' own libraries and a vendor that does as it is told.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::door::{Door, wait_for};
use super::upstream::{Vendor, said};
use crate::env::{BEFORE_TOOL, PINTLE, TestEnv, answering};

/// The daemon with both of its doors, and the vendor behind it.
pub(super) struct Guarded {
    pub(super) door: Door,
    pub(super) vendor: Vendor,
    address: String,
}

/// Hooks that refuse `forbidden`, change `change`, and take a word out of results; `ask_me` needs a person.
pub(super) fn guarded(more: &str) -> Guarded {
    guarded_with(more, &[])
}

/// The same with further hooks: each with its stage and its script.
pub(super) fn guarded_with(more: &str, hooks: &[(&str, &str, String)]) -> Guarded {
    let (env, vendor) = (TestEnv::new(), Vendor::open());
    let deny = r#"{"action":"deny_tool","reason":"not in this house"}"#;
    let change = r#"{"action":"modify","call":{"tool":"change","arguments":{"amount":0}}}"#;
    let redact = r#"{"action":"modify","result":{"result":{"for_llm":"[withheld]"}}}"#;
    let mut config = "[agents.main]\nask = ['ask_me']\n".to_owned();
    let stop = r#"{"action":"abort_turn","reason":"nothing more today"}"#;
    for (name, stage, script) in [
        ("stop", "after_tool", answering("*'stop it'*", stop)),
        ("house", "before_tool", answering(&format!("{BEFORE_TOOL}forbidden*"), deny)),
        ("safe", "before_tool", answering(&format!("{BEFORE_TOOL}'\"change\"'*"), change)),
        ("redact", "after_tool", answering("*hunter2*", redact)),
    ]
    .into_iter()
    .chain(hooks.iter().cloned())
    {
        let file = env.write(&format!("config/pintle/{name}.sh"), &script);
        config += &format!(
            "[hooks.processes.{name}]\nenabled = true\ncommand = ['sh', '{}']\nintercept = ['{stage}']\n",
            file.display()
        );
    }
    for wire in ["anthropic", "gemini", "openai"] {
        config += &format!("[doors.model.{wire}]\nbase_url = 'http://{}'\n{more}\n", vendor.address);
    }
    env.user_config(&config);
    let (door, address) = Door::with_models(env);
    Guarded { door, vendor, address }
}

/// The same where no configuration is yet.
pub(super) fn bare() -> Guarded {
    let (env, vendor) = (TestEnv::new(), Vendor::open());
    let (door, address) = Door::with_models(env);
    Guarded { door, vendor, address }
}

impl Guarded {
    /// Sends a request and takes the whole answer: status, head and body.
    pub(super) fn send(&self, line: &str, headers: &str, body: &str) -> (u16, String, String) {
        self.post(line, headers, body.as_bytes())
    }

    /// The same with a body of any bytes.
    pub(super) fn post(&self, line: &str, headers: &str, body: &[u8]) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let head = format!(
            "{line} HTTP/1.1\nHost: {}\nConnection: close\nContent-Type: application/json\n{headers}Content-Length: {}\n\n",
            self.address,
            body.len()
        );
        stream.write_all(&[head.replace('\n', "\r\n").as_bytes(), body].concat()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let is_chunked = head.to_lowercase().contains("transfer-encoding: chunked");
        (status, head.to_lowercase(), if is_chunked { unchunked(body) } else { body.to_owned() })
    }

    /// Each scenario of a client and what came of it.
    fn scenarios(&self, command: &mut Command, prompts: &[&str]) -> BTreeMap<String, String> {
        let output = command.args(prompts).stdin(Stdio::null()).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{out}\n{err}");
        let pair = |line: &str| line.split_once(": ").map(|(name, what)| (name.to_owned(), what.to_owned()));
        out.lines().filter_map(pair).collect()
    }
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            break;
        }
        whole += &rest[..size];
        body = &rest[size + 2..];
    }
    whole
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/door").join(name)
}

fn libraries() -> PathBuf {
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/sdk");
    let node = sdk.join("node/node_modules/openai");
    assert!(
        node.exists(),
        "the libraries of the vendors are not installed: run `./pintle test --install` once, which does it"
    );
    sdk
}

pub(super) const ANTHROPIC: &str = "POST /door/anthropic/v1/messages";
pub(super) const OPENAI: &str = "POST /door/openai/v1/chat/completions";
pub(super) const GEMINI: &str = "POST /door/gemini/v1beta/models/m-1.5:generateContent?key=sk-of-the-client";
const GEMINI_STREAM: &str = "POST /door/gemini/v1beta/models/m-1.5:streamGenerateContent?alt=sse&key=sk-of-the-client";
pub(super) const RESPONSES: &str = "POST /door/openai/v1/responses";

/// A request that says `prompt`.
pub(super) fn asked_of(line: &str, prompt: &str) -> Value {
    match line {
        RESPONSES => json!({"model": "m", "input": [{"role": "user", "content": prompt}]}),
        GEMINI => json!({"contents": [{"role": "user", "parts": [{"text": prompt}]}]}),
        _ => json!({"model": "m", "messages": [{"role": "user", "content": prompt}]}),
    }
}

const PROMPTS: [&str; 6] =
    ["hello", "call lookup", "call forbidden", "call forbidden lookup", "call change lookup", "too much"];

/// What each prompt comes to: text, calls, whether the model wants tools, and how often it was asked.
fn expected(prompt: &str, refused: &str) -> (String, Vec<(&'static str, &'static str)>, u64) {
    match prompt {
        "hello" => ("I read: hello".into(), vec![], 1),
        "call lookup" => ("Let me see.".into(), vec![("lookup", "1.5")], 1),
        "call forbidden" => (format!("Let me see.|I read: {refused}"), vec![], 2),
        "call forbidden lookup" => ("Let me see.".into(), vec![("lookup", "1.5")], 1),
        _ => ("Let me see.".into(), vec![("change", "0"), ("lookup", "1.5")], 1),
    }
}

/// How an answer ends that has no calls, and one that has some.
const WORDS: [(&str, (&str, &str)); 4] = [
    ("anthropic", ("end_turn", "tool_use")),
    ("openai", ("stop", "tool_calls")),
    ("responses", ("completed", "completed")),
    ("gemini", ("STOP", "STOP")),
];

/// The words that the door really said, which name the hook.
fn refusal_in(vendor: &Vendor) -> String {
    let came = vendor.came();
    let body =
        came.iter().map(|came| &came.body).find(|body| body.contains("did not run")).expect("a refusal was told");
    let body: Value = serde_json::from_str(body).unwrap();
    let last = body["messages"].as_array().unwrap().last().unwrap().clone();
    let content = &last["content"];
    content.as_str().or(content[0]["content"].as_str()).unwrap().to_owned()
}

#[test]
fn the_libraries_for_python_read_what_may_go_on() {
    let guarded = guarded("");
    let mut python = Command::new(libraries().join("venv/bin/python"));
    python.arg(fixture("client.py")).arg(format!("http://{}/door", guarded.address));
    let found = guarded.scenarios(&mut python, &PROMPTS);
    let refused = refusal_in(&guarded.vendor);
    assert!(refused.contains("not in this house") && refused.contains("house"), "{refused}");
    for (wire, words) in WORDS {
        for kind in ["whole", "stream"] {
            for prompt in &PROMPTS[..5] {
                let (text, calls, rounds) = expected(prompt, &refused);
                let call = |(name, amount): &(&str, &str)| format!("('{name}', '{{\"amount\": {amount}}}')");
                let calls: Vec<String> = calls.iter().map(call).collect();
                let stop = if calls.is_empty() { words.0 } else { words.1 };
                let quote = if text.contains('\'') { '"' } else { '\'' };
                let text = format!("{quote}{text}{quote}");
                let expected = format!("({text}, [{}], '{stop}', {}, {})", calls.join(", "), 10 * rounds, 5 * rounds);
                assert_eq!(found[&format!("{wire} {kind} {prompt}")], expected, "{wire} {kind} {prompt}");
            }
            let error = if wire == "gemini" { "ClientError" } else { "RateLimitError" };
            assert_eq!(found[&format!("{wire} {kind} too much")], format!("('{error}', 429)"));
        }
    }
    let counted = (found["count"].as_str(), found["tokens"].as_str(), found["models"].as_str());
    assert_eq!(counted, ("7", "7", "['m']"));
    assert_eq!(found["responses chain"], "I read: [withheld]");
    // What the door said to the model stands in the later request, where it stood in the one before.
    assert_eq!(found["responses again"], "('I read: hello', [], 'completed', 10, 5)");
    let came = guarded.vendor.came();
    let bodies: Vec<&str> =
        came.iter().filter(|came| came.path == "/responses").map(|came| came.body.as_str()).collect();
    let [.., told, again] = bodies.as_slice() else { panic!("{bodies:?}") };
    let input = |body: &str| serde_json::from_str::<Value>(body).unwrap()["input"].as_array().unwrap().clone();
    let (told, again) = (input(told), input(again));
    assert_eq!(told.len(), 4, "{told:?}");
    assert_eq!(again[1..4], told[1..4]);
    assert_eq!(again.len(), 6, "{again:?}");
    for came in guarded.vendor.came() {
        let key = ["x-api-key", "authorization", "x-goog-api-key"].iter().find_map(|name| came.header(name)).unwrap();
        assert!(key.ends_with("sk-of-the-client"), "the client's own key: {key}");
    }
    let denied = guarded.door.env.pintle(&["why", "--denied"]);
    assert!(denied.out.contains("forbidden") && denied.out.contains("not in this house"), "{denied}");
    // Keys are kept nowhere, whichever header or query they came in.
    let mut search = Command::new("grep");
    let found = search.args(["-rlaF", "sk-of-the-client"]).arg(guarded.door.env.path("data")).output().unwrap();
    assert_eq!((found.status.code(), String::from_utf8_lossy(&found.stdout).as_ref()), (Some(1), ""));
}

#[test]
fn the_libraries_for_node_read_what_may_go_on() {
    let guarded = guarded("");
    let mut node = Command::new("node");
    node.arg(fixture("client.mjs")).arg(format!("http://{}/door", guarded.address)).arg(libraries().join("node"));
    let found = guarded.scenarios(&mut node, &PROMPTS);
    let refused = refusal_in(&guarded.vendor);
    let made = |(name, amount): &(&str, &str)| {
        let amount: Value = serde_json::from_str(amount).unwrap();
        json!([name, {"amount": amount}])
    };
    for (wire, words) in WORDS {
        for kind in ["whole", "stream"] {
            for prompt in &PROMPTS[..5] {
                let (text, calls, rounds) = expected(prompt, &refused);
                let calls: Vec<Value> = calls.iter().map(made).collect();
                let stop = if calls.is_empty() { words.0 } else { words.1 };
                let found: Value = serde_json::from_str(&found[&format!("{wire} {kind} {prompt}")]).unwrap();
                let read = if wire == "anthropic" && kind == "stream" && rounds > 1 {
                    found[3].clone()
                } else {
                    json!(10 * rounds)
                };
                assert_eq!(found, json!([text, calls, stop, read, 5 * rounds]), "{wire} {kind} {prompt}");
            }
            let error = if wire == "gemini" { "ApiError" } else { "RateLimitError" };
            assert_eq!(found[&format!("{wire} {kind} too much")], format!(r#"["{error}",429]"#));
        }
    }
}

#[test]
fn what_no_hook_changes_passes_in_the_same_bytes() {
    let guarded = guarded("");
    let lines = [ANTHROPIC, OPENAI, RESPONSES];
    let all = lines.into_iter().flat_map(|line| [(line, false), (line, true)]);
    for (line, streams) in all.chain([(GEMINI, false), (GEMINI_STREAM, true)]) {
        let prompt = r#""call lookup\u0020lookup""#;
        let asked = match line {
            RESPONSES => format!("\"input\": [ {{\"role\":\"user\",\"content\":{prompt}}} ]"),
            GEMINI | GEMINI_STREAM => format!("\"contents\": [ {{\"parts\":[{{\"text\":{prompt}}}]}} ]"),
            _ => format!("\"messages\": [ {{\"role\":\"user\",\"content\":{prompt}}} ]"),
        };
        let body = format!("{{ \"model\" : \"m\",\n \"stream\": {streams}, \"x\": 1.0e0,\n {asked} }}");
        let (status, head, answer) = guarded.send(line, "X-Api-Key: k\nCookie: c=1\nX-Pintle-Session: a b\n", &body);
        let came = guarded.vendor.came().pop().unwrap();
        assert_eq!((status, &came.body), (200, &body), "{answer}");
        assert_eq!(answer, said(&came).2);
        assert!(head.contains("request-id: r") && !head.contains("set-cookie"), "{head}");
        assert_eq!(came.header("x-api-key"), Some("k"));
        for hidden in ["cookie", "x-pintle-session"] {
            assert_eq!(came.header(hidden), None, "{hidden}");
        }
    }
}

#[test]
fn a_sentence_stands_in_the_place_of_a_call_where_that_is_wanted() {
    let guarded = guarded("deny = 'text'");
    for line in [ANTHROPIC, OPENAI, RESPONSES] {
        let member = if line == RESPONSES { "input" } else { "messages" };
        let body = json!({"model": "m", member: [{"role": "user", "content": "call forbidden"}]});
        let (status, _, answer) = guarded.send(line, "", &body.to_string());
        assert_eq!(status, 200);
        assert!(answer.contains("[The call of `forbidden` was refused and did not run: "), "{answer}");
        assert!(!answer.contains("tool_use") && !answer.contains(r#""call_1_0""#), "{answer}");
    }
    assert_eq!(guarded.vendor.came().len(), 3);
}

#[test]
fn a_result_leaves_as_hooks_made_it_each_time_and_they_are_asked_once() {
    let guarded = guarded("");
    let call = json!({"type": "tool_use", "id": "t1", "name": "lookup", "input": {"amount": 1}});
    let mut messages = vec![
        json!({"role": "user", "content": "go"}),
        json!({"role": "assistant", "content": [call]}),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "key=hunter2"}]}),
    ];
    for _ in 0..2 {
        let body = json!({"model": "m", "messages": messages}).to_string();
        assert_eq!(guarded.send(ANTHROPIC, "", &body).0, 200);
        let came = guarded.vendor.came().pop().unwrap().body;
        assert_eq!(came, body.replace("key=hunter2", "[withheld]"));
        messages.push(json!({"role": "assistant", "content": "ok"}));
        messages.push(json!({"role": "user", "content": "go on"}));
    }
}

#[test]
fn a_result_after_which_a_hook_stops_the_turn_does_not_leave() {
    let guarded = guarded("");
    let call = json!({"type": "tool_use", "id": "t1", "name": "lookup", "input": {"amount": 1}});
    let body = json!({"model": "m", "messages": [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "stop it"}]},
    ]});
    for _ in 0..2 {
        let (status, _, answer) = guarded.send(ANTHROPIC, "", &body.to_string());
        assert!(status == 403 && answer.contains("nothing more today"), "{status} {answer}");
    }
    assert_eq!(guarded.vendor.came().len(), 0);
}

#[test]
fn no_hook_makes_of_a_call_of_a_model_one_that_takes_the_guard_away() {
    let away = r#"{"action":"modify","call":{"tool":"lookup","arguments":{"path":".claude/settings.json"}}}"#;
    let script = answering(&format!("{BEFORE_TOOL}'\"lookup\"'*"), away);
    let guarded = guarded_with("", &[("bad", "before_tool", script)]);
    let (status, _, answer) = guarded.send(ANTHROPIC, "", &asked_of(ANTHROPIC, "call lookup").to_string());
    assert!(status == 200 && !answer.contains("\"tool_use\""), "{status} {answer}");
    let came = guarded.vendor.came();
    assert!(came.len() == 2 && came[1].body.contains("belongs to the guard"), "{came:?}");
}

#[test]
fn an_answer_that_cannot_be_read_is_refused_and_the_record_says_so() {
    let guarded = guarded("");
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "in another form"}]});
    let (status, _, answer) = guarded.send(OPENAI, "", &body.to_string());
    let why = "the `arguments` of a call are not a text";
    assert!(status == 502 && answer.contains(why) && !answer.contains("amount"), "{status} {answer}");
    wait_for(|| guarded.door.env.pintle(&["why", "--denied"]).out.contains(why).then_some(()));
}

#[test]
fn a_refused_prompt_does_not_leave_and_does_not_block_what_comes_after_it() {
    let guarded = guarded("");
    let rule = "[[hook]]\nname = 'gate'\nevent = 'user_prompt_submit'\nhandler_type = 'script'\nscope = 'tenant'\n\
                [hook.config]\nsource = '''function handle(e) { return e.rawInput.includes('secret') ? { decision: 'block', reason: 'no secrets' } : { decision: 'allow' } }'''\n";
    let file = guarded.door.env.write("rules.toml", rule);
    let added = guarded.door.env.on_terminal("", &["hooks", "add", file.to_str().unwrap()]);
    assert_eq!(added.code, Some(0), "{added}");
    let ask = |messages: &Value| {
        let body = json!({"model": "m", "messages": messages}).to_string();
        guarded.send(OPENAI, "", &body)
    };
    // Until the daemon has heard of the rule, what is said passes, and is not asked about again.
    let mut tries = 0;
    let (secret, refused) = wait_for(|| {
        tries += 1;
        let secret = json!({"role": "user", "content": format!("{tries}: the secret is 42")});
        let (status, _, answer) = ask(&json!([secret]));
        (status == 403).then_some((secret, answer))
    });
    assert!(refused.contains("no secrets") && refused.contains("hook_blocked"), "{refused}");
    let before = guarded.vendor.came().len();
    let (status, _, answer) = ask(&json!([secret, {"role": "user", "content": "something else"}]));
    assert_eq!(status, 200, "{answer}");
    let came = guarded.vendor.came();
    assert_eq!(came.len(), before + 1);
    let last = &came.last().unwrap().body;
    assert!(!last.contains("42") && last.contains("was refused"), "{last}");
}

#[test]
fn a_call_that_needs_a_person_waits_for_them() {
    let guarded = guarded("");
    std::thread::scope(|scope| {
        let answer = scope.spawn(|| {
            let body = json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "call ask_me"}]});
            guarded.send(ANTHROPIC, "", &body.to_string()).2
        });
        let id = wait_for(|| {
            let output = guarded.door.env.command(PINTLE).args(["approvals", "list", "--json"]).output().unwrap();
            let list: Value = serde_json::from_slice(&output.stdout).ok()?;
            Some(list.as_array()?.first()?.get("id")?.as_str()?.to_owned())
        });
        let seen = guarded.door.env.on_terminal("", &["approvals", "approve", &id]);
        assert_eq!(seen.code, Some(0), "{seen}");
        let answer = answer.join().unwrap();
        assert!(answer.contains("ask_me") && answer.contains("message_stop"), "{answer}");
    });
}

#[test]
fn what_has_no_business_at_the_door_is_turned_away() {
    let guarded = guarded("");
    let body = r#"{"model":"m","messages":[{"role":"user","content":"hello"}]}"#;
    let elsewhere = body.replace("hello", "go elsewhere");
    let long = format!("X-Pintle-Session: {}\n", "x".repeat(201));
    let hosted = body.replace("}]}", "}],\"tools\":[{\"type\":\"web_search_20250305\",\"name\":\"web_search\"}]}");
    for (line, headers, body, status, part) in [
        (ANTHROPIC, "Origin: https://a.example\n", body, 403, "browser"),
        (ANTHROPIC, long.as_str(), body, 400, "longer than 200 bytes"),
        (ANTHROPIC, "Content-Encoding: deflate\n", body, 415, "expected gzip, zstd, br or none"),
        (ANTHROPIC, "Content-Encoding: gzip, br\n", body, 415, "gzip, br"),
        (ANTHROPIC, "Content-Encoding: gzip\n", body, 400, "not what `Content-Encoding` says"),
        (ANTHROPIC, "X-Pintle-Key: pintle_1\n", body, 400, "is for the door of `pintle serve`"),
        (ANTHROPIC, "", "{\"messages\":[],\"messages\":[]}", 400, "twice"),
        (OPENAI, "", "[]", 400, "messages"),
        (RESPONSES, "", r#"{"input":[],"previous_response_id":"r"}"#, 400, "send the whole conversation"),
        (RESPONSES, "", r#"{"input":"x","tools":[{"type":"web_search"}]}"#, 403, "runs at the vendor"),
        ("GET /door/openai/v1/responses/r", "", "", 404, "nothing at"),
        ("POST /door/gemini/v1beta/models/m:embedContent", "", "{}", 404, "nothing at"),
        ("POST /door/gemini/v1beta/models/..%2fm:generateContent", "", "{}", 404, "nothing at"),
        ("POST /door/gemini/v1beta/models/m:streamGenerateContent", "", "{}", 400, "alt=sse"),
        (GEMINI, "", r#"{"contents":[],"tools":[{"googleSearch":{}}]}"#, 403, "`google_search` runs at the vendor"),
        (OPENAI, "", elsewhere.as_str(), 502, "redirect"),
        (ANTHROPIC, "", hosted.as_str(), 403, "runs at the vendor"),
        ("POST /door/anthropic/v1/complete", "", body, 404, "nothing at"),
        ("GET /door/openai/v1/files", "", "", 404, "nothing at"),
        (
            "POST /door/openai/v1/embeddings",
            "",
            "{}",
            404,
            "served of this vendor is POST /door/openai/v1/chat/completions",
        ),
        ("GET /door/gemini/v1/files", "", "", 404, "GET /door/gemini/v1beta/models and POST"),
        ("GET /door/openai/v1/chat/completions", "", "", 405, "\"method_not_allowed\""),
        ("DELETE /door/openai/v1/models", "", "", 405, "the path takes other methods"),
        ("PUT /door/anthropic/v1/messages", "", body, 405, "invalid_request_error"),
        ("GET /door/gemini/v1/models/m:generateContent", "", "", 405, "the path takes other methods"),
        ("GET /door/other", "", "", 404, "a base URL that ends with"),
    ] {
        let (found, _, answer) = guarded.send(line, headers, body);
        assert_eq!((found, answer.contains(part)), (status, true), "{line} {headers} {answer}");
        assert!(serde_json::from_str::<Value>(&answer).unwrap()["error"]["message"].is_string(), "{answer}");
    }
    assert_eq!(guarded.vendor.came().len(), 1, "only the one that was sent elsewhere");
    let output = guarded.door.env.command(PINTLE).args(["guard", "serve", "--http", "0.0.0.0:0"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("not an address of this machine alone"), "{said}");
}

#[test]
fn there_is_room_for_so_many_bodies() {
    const LARGEST: usize = 64 << 20;
    let guarded = guarded("");
    let begun = |bytes: usize| {
        let mut stream = TcpStream::connect(&guarded.address).unwrap();
        let head = format!("{OPENAI} HTTP/1.1\r\nHost: {}\r\nContent-Length: {LARGEST}\r\n\r\n", guarded.address);
        stream.write_all(head.as_bytes()).unwrap();
        // Whoever is refused meanwhile is not read any more.
        stream.write_all(&vec![b' '; bytes]).ok();
        stream
    };
    // What was announced takes nothing before it comes.
    let announced: Vec<TcpStream> = (0..20).map(|_| begun(0)).collect();
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "hello"}]}).to_string();
    assert_eq!(guarded.send(OPENAI, "", &body).0, 200);
    // What came does, and one too many is answered.
    let all: Vec<TcpStream> = (0..7).map(|_| begun(LARGEST - 1)).collect();
    let mut more = (begun(LARGEST - (2 << 20)), begun(6 << 20));
    let mut answer = [0; 512];
    let length = wait_for(|| {
        [&mut more.0, &mut more.1].into_iter().find_map(|stream| {
            stream.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
            stream.read(&mut answer).ok().filter(|length| *length > 0)
        })
    });
    let answer = String::from_utf8_lossy(&answer[..length]).to_lowercase();
    assert!(answer.starts_with("http/1.1 503") && answer.contains("retry-after: 1"), "{answer}");
    assert!(!answer.contains("x-should-retry"), "{answer}");
    // What is given up is free again.
    drop((announced, all, more));
    let long =
        format!("{{\"model\":\"m\",\"messages\":[{{\"role\":\"user\",\"content\":\"{}\"}}]}}", "x".repeat(1 << 20));
    wait_for(|| (guarded.send(OPENAI, "", &long).0 == 200).then_some(()));
}

#[test]
fn the_agent_cannot_take_the_guard_away_through_its_model() {
    let guarded = guarded("deny = 'text'");
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "call Bash"}]}).to_string();
    let (status, _, answer) = guarded.send(OPENAI, "", &body);
    // The command that it wants cannot be read from these arguments.
    assert_eq!(status, 200);
    assert!(answer.contains("without a command that can be read"), "{answer}");
}
