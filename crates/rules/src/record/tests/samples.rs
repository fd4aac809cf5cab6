//! The published samples.

use pintle_domain::rule::{Fallback, HandlerType};

use super::*;

#[test]
fn the_published_samples_are_taken_as_they_are() {
    let samples = [
        r#"{"handler_type": "command", "event": "pre_tool_use", "scope": "tenant",
            "config": {"command": "bash /path/to/script.sh", "allowed_env_vars": ["MY_VAR"], "cwd": "/workspace"}}"#,
        r#"{"handler_type": "http", "event": "user_prompt_submit", "scope": "tenant",
            "config": {"url": "https://example.com/webhook", "headers": { "Authorization": "<AES-encrypted>" }}}"#,
        r#"{"handler_type": "prompt", "event": "pre_tool_use", "scope": "tenant", "matcher": "^(exec|shell|write_file)$",
            "config": {"prompt_template": "Evaluate safety of this tool call.", "model": "haiku",
            "max_invocations_per_turn": 5}}"#,
        r#"{"event": "pre_tool_use", "handler_type": "http", "scope": "tenant", "name": "Safety webhook",
            "matcher": "^exec$", "config": { "url": "https://safety.internal/check" }}"#,
        r#"{"event": "pre_tool_use", "handler_type": "command", "scope": "tenant", "config": { "command": "cat" }}"#,
        r#"{"event": "pre_tool_use", "handler_type": "command", "scope": "tenant", "config": { "command": "cat" },
            "if_expr": "tool_name == \"exec\" && size(tool_input.cmd) > 80"}"#,
    ];
    for sample in samples {
        let read = World::default().read(&serde_json::from_str(sample).unwrap()).unwrap();
        assert_eq!(read.warnings, Vec::<String>::new(), "{sample}");
    }
}

#[test]
fn defaults_are_the_published_record() {
    let check = |record: Value| serde_json::to_string(&World::default().hook(&record)).unwrap();
    let all = |event: &str, instead: &str| {
        format!(
            r#"{{"id":"0193a5b0-7000-7000-8000-0000000000aa","tenant_id":"{DEFAULT_TENANT}","agent_ids":[],"event":"{event}","handler_type":"command","scope":"tenant","name":"","config":{{"command":"cat"}},"matcher":"","if_expr":"","timeout_ms":5000,"on_timeout":"{instead}","priority":0,"enabled":true,"version":1,"source":"user","may_rewrite":false,"breaker":"all","on_trip":"{instead}","tripped_at":null,"disabled_reason":"","metadata":{{}},"created_by":"ann","created_at":"2026-01-31T12:00:00Z","updated_at":"2026-01-31T12:00:00Z"}}"#
        )
    };
    assert_eq!(check(command()), all("pre_tool_use", "block"));
    assert_eq!(check(with(&command(), json!({"event": "subagent_start"}))), all("subagent_start", "block"));
    assert_eq!(check(with(&command(), json!({"event": "post_tool_use"}))), all("post_tool_use", "allow"));
    let nothing = json!({
        "name": null, "matcher": null, "if_expr": null, "timeout_ms": 0, "on_timeout": "", "priority": null,
        "enabled": null, "breaker": "", "on_trip": null, "metadata": null, "agent_ids": null, "tenant_id": "",
        "agent_id": "00000000-0000-0000-0000-000000000000", "may_rewrite": null,
    });
    assert_eq!(check(with(&command(), nothing)), all("pre_tool_use", "block"));
    let servers = json!({
        "id": 5, "version": "x", "source": "builtin", "tripped_at": "2020-01-01T00:00:00Z", "disabled_reason": "breaker",
        "created_by": "mallory", "created_at": 1, "updated_at": [],
    });
    assert_eq!(check(with(&command(), servers)), all("pre_tool_use", "block"));
}

#[test]
fn one_agent_is_a_list_of_agents() {
    let world = World::default();
    let agents = |members: Value| world.hook(&with(&with(&command(), json!({"scope": "agent"})), members)).agent_ids;
    let (first, second) = (world.agent(0), world.agent(1));
    assert_eq!(agents(json!({"agent_id": first})), [first]);
    assert_eq!(agents(json!({"agent_id": first, "agent_ids": []})), [first]);
    assert_eq!(agents(json!({"agent_id": first, "agent_ids": [second.to_uppercase(), second]})), [second]);
}

#[test]
fn settings_are_read_again_when_a_row_is_mounted() {
    let config = |record: Value| {
        let hook = World::default().hook(&record);
        HandlerConfig::of(hook.handler_type, &hook.config).unwrap()
    };
    assert_eq!(
        config(with(&command(), json!({"config": {"command": "cat", "cwd": "", "allowed_env_vars": ["A"]}}))),
        HandlerConfig::Command(CommandConfig { command: "cat".into(), allowed_env_vars: vec!["A".into()], cwd: None })
    );
    let http =
        config(http(json!({"headers": {"X-B": "1", "Cookie": "tasty"}, "method": "post", "body_template": "x"})));
    assert_eq!(
        http,
        HandlerConfig::Http(HttpConfig {
            url: "https://a.example/x".into(),
            headers: vec![("X-B".into(), "1".into()), ("Cookie".into(), "tasty".into())],
            secret_headers: vec![],
            strict: false,
            signing_secret: None,
        })
    );
    assert!(!format!("{http:?}").contains("tasty"));
    assert_eq!(
        config(prompt(json!({"provider": "p", "on_injection": "ignore", "model": ""}))),
        HandlerConfig::Prompt(PromptConfig {
            prompt_template: "Judge.".into(),
            model: "haiku".into(),
            max_invocations_per_turn: 5,
            provider: Some("p".into()),
            on_injection: OnInjection::Ignore,
        })
    );
    assert_eq!(
        config(script("function handle(e) {}")),
        HandlerConfig::Script(ScriptConfig { source: "function handle(e) {}".into() })
    );
    let broken = json!({"url": 5}).as_object().unwrap().clone();
    assert_eq!(
        HandlerConfig::of(HandlerType::Http, &broken).unwrap_err().message,
        r#"invalid request: invalid config: field "url" in config must be a string, got a number"#
    );
    assert_eq!(
        HandlerConfig::of(HandlerType::Command, &Object::new()).unwrap_err().message,
        "hook: command handler: missing 'command' in config"
    );
}

#[test]
fn a_row_is_judged_again_when_it_is_switched_on() {
    let mut hook = World::default().hook(&with(&command(), json!({"on_trip": "allow"})));
    let check = |world: &World, hook: &Rule| world.record_context(|record_context| super::check(hook, record_context));
    assert_eq!(check(&World::default(), &hook).unwrap().len(), 1);
    let refused = check(&standard(), &hook).unwrap_err().message;
    assert_eq!(refused, "hook: command handler not allowed: hook.command_disabled_standard");
    // Ciphertext is what a row has; a full tenant and a caller without rights do not matter.
    let crowded = World { held: 5_000, lang: Lang::File, ..World::default() };
    hook = master().hook(&with(&http(json!({"headers": {"Cookie": "a"}})), json!({"scope": "global"})));
    hook.config["headers"]["Cookie"] = "aes-gcm:01234567:AAAA".into();
    assert_eq!(check(&crowded, &hook), Ok(vec![]));
    hook.on_timeout = Fallback::Allow;
    hook.matcher = "(".into();
    assert!(check(&crowded, &hook).unwrap_err().message.starts_with("hook: matcher invalid"));
}

#[test]
fn older_words_for_people_are_read() {
    let word = |word| source(word).map(Source::word);
    assert_eq!(
        [word("ui"), word("api"), word("seed"), word("user"), word("builtin"), word("x")],
        [Some("user"), Some("user"), Some("user"), Some("user"), Some("builtin"), None]
    );
}

#[test]
fn codes_have_their_words() {
    let words = [
        RecordErrorCode::InvalidRequest,
        RecordErrorCode::Unauthorized,
        RecordErrorCode::NotFound,
        RecordErrorCode::FailedPrecondition,
    ]
    .map(RecordErrorCode::word);
    assert_eq!(words, ["INVALID_REQUEST", "UNAUTHORIZED", "NOT_FOUND", "FAILED_PRECONDITION"]);
}
