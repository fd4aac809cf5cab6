//! The vendors' own libraries, as they are, against the real program.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use super::repeats::times;
use super::server::{Server, TOKEN, WITH_TOKEN};
use crate::run::scripted;

/// A model that does what it is told to, as far as the scenarios of the clients want it.
const REPLIES: &str = r#"
    {"when": {"tool_result": "", "anywhere": "write and fail"}, "error": {"kind": "final", "message": "no"}, "repeat": true},
    {"when": {"tool_result": ""}, "text": "Done.", "repeat": true},
    {"when": {"contains": "write"}, "repeat": true,
     "tool_calls": [{"name": "exec", "arguments": {"command": "echo once >>done.txt"}}]},
    {"when": {"contains": "look around"}, "tool_calls": [{"name": "list_dir", "arguments": {"path": "."}}], "repeat": true},
    {"when": {"contains": "[image:"}, "text": "I see it.", "repeat": true},
    {"when": {"contains": "fail once (python openai)"}, "error": {"kind": "server_error", "message": "no"}},
    {"when": {"contains": "fail once (python openai)"}, "error": {"kind": "server_error", "message": "no"}},
    {"when": {"contains": "fail once (python openai)"}, "error": {"kind": "server_error", "message": "no"}},
    {"when": {"contains": "fail once (python openai)"}, "error": {"kind": "server_error", "message": "no"}},
    {"when": {"contains": "fail once (python openai)"}, "error": {"kind": "server_error", "message": "no"}},
    {"when": {"contains": "fail once (python openai)"}, "error": {"kind": "server_error", "message": "no"}},
    {"when": {"contains": "fail once (python anthropic)"}, "error": {"kind": "server_error", "message": "no"}},
    {"when": {"contains": "fail once (python anthropic)"}, "error": {"kind": "server_error", "message": "no"}},
    {"when": {"contains": "fail once (python anthropic)"}, "error": {"kind": "server_error", "message": "no"}},
    {"when": {"contains": "fail once (python anthropic)"}, "error": {"kind": "server_error", "message": "no"}},
    {"when": {"contains": "fail once (python anthropic)"}, "error": {"kind": "server_error", "message": "no"}},
    {"when": {"contains": "fail once (python anthropic)"}, "error": {"kind": "server_error", "message": "no"}},
    {"when": {"contains": "fail once (node openai)"}, "error": {"kind": "server_error", "message": "no"}},
    {"when": {"contains": "fail once (node openai)"}, "error": {"kind": "server_error", "message": "no"}},
    {"when": {"contains": "fail once (node openai)"}, "error": {"kind": "server_error", "message": "no"}},
    {"when": {"contains": "fail once (node openai)"}, "error": {"kind": "server_error", "message": "no"}},
    {"when": {"contains": "fail once (node openai)"}, "error": {"kind": "server_error", "message": "no"}},
    {"when": {"contains": "fail once (node openai)"}, "error": {"kind": "server_error", "message": "no"}},
    {"when": {"contains": "fail once (node anthropic)"}, "error": {"kind": "server_error", "message": "no"}},
    {"when": {"contains": "fail once (node anthropic)"}, "error": {"kind": "server_error", "message": "no"}},
    {"when": {"contains": "fail once (node anthropic)"}, "error": {"kind": "server_error", "message": "no"}},
    {"when": {"contains": "fail once (node anthropic)"}, "error": {"kind": "server_error", "message": "no"}},
    {"when": {"contains": "fail once (node anthropic)"}, "error": {"kind": "server_error", "message": "no"}},
    {"when": {"contains": "fail once (node anthropic)"}, "error": {"kind": "server_error", "message": "no"}},
    {"text": ["Hel", "lo."], "repeat": true}"#;

fn server() -> Server {
    let rest = format!("tools = ['exec', 'list_dir']\nask = ['list_dir']\n{WITH_TOKEN}approval_wait_s = 0\n");
    let server = Server::start(scripted(REPLIES, &rest));
    let source = "function handle(e) { return e.rawInput.includes('forbidden') ? { decision: 'block', reason: 'no' } : { decision: 'allow' } }";
    let rule = json!({
        "event": "user_prompt_submit", "handler_type": "script", "scope": "tenant", "name": "gate",
        "config": { "source": source }
    });
    server.admin("anna").done("hooks.create", rule);
    server
}

/// What each scenario of a client came to.
fn scenarios(command: &mut Command) -> BTreeMap<String, String> {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}");
    let pair = |line: &str| line.split_once(": ").map(|(name, what)| (name.to_owned(), what.to_owned()));
    out.lines().filter_map(pair).collect()
}

fn check(found: &BTreeMap<String, String>, expected: &[(&str, &str)]) {
    let expected: BTreeMap<String, String> =
        expected.iter().map(|(name, what)| ((*name).to_owned(), (*what).to_owned())).collect();
    assert_eq!(*found, expected);
}

fn libraries() -> std::path::PathBuf {
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/sdk");
    let node = sdk.join("node/node_modules/openai");
    assert!(
        node.exists(),
        "the libraries of the vendors are not installed: run `./pintle test --install` once, which does it"
    );
    sdk
}

fn fixture(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sdk").join(name)
}

#[test]
fn the_libraries_for_python_work_as_they_are() {
    let server = server();
    let mut python = Command::new(libraries().join("venv/bin/python"));
    let found = scenarios(python.arg(fixture("client.py")).args([&format!("http://{}", server.address), TOKEN]));
    check(
        &found,
        &[
            ("openai chat", "('Hello.', 'stop', 'hello')"),
            ("anthropic chat", "('Hello.', 'end_turn', 'hello')"),
            ("openai stream", "('Hello.', 'stop', True)"),
            ("anthropic stream", "('Hello.', 'end_turn')"),
            ("openai picture", "I see it."),
            ("anthropic picture", "I see it."),
            ("openai upload", "I see it."),
            ("openai blocked", "PermissionDeniedError 403 hook_blocked"),
            ("openai blocked stream", "PermissionDeniedError 403 hook_blocked"),
            ("anthropic blocked", "PermissionDeniedError 403 hook_blocked"),
            ("anthropic blocked stream", "PermissionDeniedError 403 hook_blocked"),
            ("openai bad member", "BadRequestError 400 invalid_request"),
            ("anthropic bad member", "BadRequestError 400 invalid_request"),
            ("openai no agent", "NotFoundError 404 not_found"),
            ("anthropic no agent", "NotFoundError 404 not_found"),
            ("openai no key", "AuthenticationError 401 unauthorized"),
            ("anthropic no key", "AuthenticationError 401 unauthorized"),
            ("openai retry", "Hello."),
            ("anthropic retry", "Hello."),
            ("openai effect", "InternalServerError 502 turn_failed"),
            ("anthropic effect", "InternalServerError 502 turn_failed"),
            ("openai repeat", "('Done.', True)"),
            ("anthropic repeat", "('Done.', True)"),
            ("openai reused name", "UnprocessableEntityError 422 idempotency_key_reused"),
            ("openai pending", "ConflictError 409 approval_pending"),
            ("openai pending stream", "APIError approval_pending"),
            ("anthropic pending", "ConflictError 409 approval_pending"),
            ("anthropic pending stream", "APIStatusError 200 approval_pending"),
            ("openai too often", "RateLimitError 429 resource_exhausted"),
            ("anthropic too often", "RateLimitError 429 resource_exhausted"),
            ("models", "['main']"),
        ],
    );
    // Twice after an effect that nobody repeated, twice for requests that came twice.
    assert_eq!(times(&server.env), 4);
}

#[test]
fn the_libraries_for_node_work_as_they_are() {
    let server = server();
    let mut node = Command::new("node");
    node.arg(fixture("client.mjs")).args([&format!("http://{}", server.address), TOKEN]);
    let found = scenarios(node.arg(libraries().join("node")));
    check(
        &found,
        &[
            ("openai chat", r#"["Hello.","stop","hello"]"#),
            ("anthropic chat", r#"["Hello.","end_turn","hello"]"#),
            ("openai stream", r#"["Hello.","stop",true]"#),
            ("anthropic stream", r#"["Hello.","end_turn"]"#),
            ("openai picture", r#""I see it.""#),
            ("anthropic picture", r#""I see it.""#),
            ("openai blocked", r#""PermissionDeniedError 403 hook_blocked""#),
            ("openai blocked stream", r#""PermissionDeniedError 403 hook_blocked""#),
            ("anthropic blocked", r#""PermissionDeniedError 403 hook_blocked""#),
            ("anthropic blocked stream", r#""PermissionDeniedError 403 hook_blocked""#),
            ("openai bad member", r#""BadRequestError 400 invalid_request""#),
            ("anthropic bad member", r#""BadRequestError 400 invalid_request""#),
            ("openai no agent", r#""NotFoundError 404 not_found""#),
            ("anthropic no agent", r#""NotFoundError 404 not_found""#),
            ("openai no key", r#""AuthenticationError 401 unauthorized""#),
            ("openai retry", r#""Hello.""#),
            ("anthropic retry", r#""Hello.""#),
            ("openai effect", r#""InternalServerError 502 turn_failed""#),
            ("anthropic effect", r#""InternalServerError 502 turn_failed""#),
            ("openai repeat", r#"["Done.",true]"#),
            ("anthropic repeat", r#"["Done.",true]"#),
            ("openai pending", r#""ConflictError 409 approval_pending""#),
            ("openai pending stream", r#""APIError approval_pending""#),
            ("anthropic pending", r#""ConflictError 409 approval_pending""#),
            ("anthropic pending stream", r#""APIError approval_pending""#),
            ("openai too often", r#""RateLimitError 429 resource_exhausted""#),
            ("models", r#"["main"]"#),
        ],
    );
    assert_eq!(times(&server.env), 4);
}
