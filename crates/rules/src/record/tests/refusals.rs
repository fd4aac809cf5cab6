//! Every message of the table, in its order.

use super::*;

fn check(world: &World, cases: &[(Value, &str)]) {
    for (record, expected) in cases {
        assert_eq!(world.refusal(record), *expected, "{record}");
    }
}

#[test]
fn row_0_members() {
    let missing = "invalid request: missing config payload";
    for nothing in [json!(null), json!([]), json!("x"), json!(1), json!(true)] {
        assert_eq!(World::default().refusal(&nothing), missing);
    }
    let invalid = |text: &str| format!("invalid request: invalid config: {text}");
    let cases = [
        (json!({"timeout": 5}), r#"unknown field "timeout" (did you mean "timeout_ms"?)"#),
        (json!({"timeoutMs": 5}), r#"unknown field "timeoutMs" (did you mean "timeout_ms"?)"#),
        (json!({"tenant": "acme"}), r#"unknown field "tenant" (did you mean "tenant_id"?)"#),
        (json!({"expr": "true"}), r#"unknown field "expr" (did you mean "if_expr"?)"#),
        (json!({"colour": 1}), r#"unknown field "colour""#),
        (json!({"a\nb": 1}), r#"unknown field "a\nb""#),
        (json!({"event": 5}), r#"field "event" must be a string, got a number"#),
        (json!({"config": "x"}), r#"field "config" must be an object, got a string"#),
        (json!({"enabled": "true"}), r#"field "enabled" must be true or false, got a string"#),
        (json!({"timeout_ms": "5000"}), r#"field "timeout_ms" must be an integer, got "5000""#),
        (json!({"timeout_ms": 5000.0}), r#"field "timeout_ms" must be an integer, got 5000.0"#),
        (
            json!({"priority": 2_147_483_648_i64}),
            r#"field "priority" must be an integer from -2147483648 to 2147483647, got 2147483648"#,
        ),
        (json!({"tenant_id": "acme"}), r#"field "tenant_id" must be a UUID, got "acme""#),
        (json!({"agent_id": "main"}), r#"field "agent_id" must be a UUID, got "main""#),
        (json!({"agent_ids": "main"}), r#"field "agent_ids" must be an array of UUIDs, got a string"#),
        (json!({"agent_ids": ["", "main"]}), r#"field "agent_ids" must be an array of UUIDs, got "main" at 1"#),
        (json!({"name": "a\0"}), r#"field "name" holds a NUL character; remove it"#),
        (json!({"metadata": {"a": [{"b\0": 1}]}}), r#"field "metadata" holds a NUL character; remove it"#),
    ];
    for (members, expected) in cases {
        assert_eq!(World::default().refusal(&with(&command(), members)), invalid(expected));
    }
}

#[test]
fn row_0_members_of_config() {
    let cases = [
        (
            json!({"event": "stop", "handler_type": "command", "scope": "tenant", "config": {"comand": "x"}}),
            r#"unknown field "comand" in config (did you mean "command"?)"#,
        ),
        (json!({"handler_type": "script", "config": {"x": 1}}), r#"unknown field "x" in config (known: source)"#),
        (
            http(json!({"headers": {"X-A": 5}})),
            r#"field "headers" in config must be an object of strings, got a number for "X-A""#,
        ),
        (http(json!({"headers": ["a"]})), r#"field "headers" in config must be an object of strings, got an array"#),
        (
            http(json!({"secret_headers": [1]})),
            r#"field "secret_headers" in config must be an array of strings, got 1 at 0"#,
        ),
        (http(json!({"method": "GET"})), r#"field "method" in config must be "POST", got "GET""#),
        (http(json!({"metod": "GET"})), r#"unknown field "metod" in config (did you mean "method"?)"#),
        (
            http(json!({"timeout_ms": 1})),
            r#"unknown field "timeout_ms" in config (known: url, headers, secret_headers, strict, signing_secret)"#,
        ),
        (
            prompt(json!({"max_invocations_per_turn": 1.5})),
            r#"field "max_invocations_per_turn" in config must be an integer, got 1.5"#,
        ),
    ];
    for (record, expected) in cases {
        let expected = format!("invalid request: invalid config: {expected}");
        assert_eq!(World::default().refusal(&record), expected, "{record}");
    }
    // A value in the settings may be a secret, and is not said again.
    let refusal = World::default().refusal(&http(json!({"signing_secret": ["whsec_topsecret"]})));
    assert_eq!(
        refusal,
        r#"invalid request: invalid config: field "signing_secret" in config must be a string, got an array"#
    );
}

#[test]
fn row_0_what_is_required() {
    let required = "handler_type, event, and scope are required";
    check(
        &World::default(),
        &[
            (json!({}), required),
            (json!({"event": "stop", "handler_type": "http"}), required),
            (with(&command(), json!({"scope": ""})), required),
            (with(&command(), json!({"event": null})), required),
            // Without a handler there is nothing that its settings could be compared with.
            (json!({"config": {"x": 1}}), required),
        ],
    );
    let no_master = "UNAUTHORIZED: this action requires master tenant scope";
    check(&World::default(), &[(with(&command(), json!({"scope": "global"})), no_master)]);
    check(&master(), &[(with(&command(), json!({"scope": "global"})), "")]);
}

#[test]
fn row_1_event() {
    check(
        &World::default(),
        &[
            (with(&command(), json!({"event": "pre_tool"})), r#"hook: unknown event "pre_tool""#),
            // A checkpoint, but none of this family.
            (with(&command(), json!({"event": "before_tool"})), r#"hook: unknown event "before_tool""#),
        ],
    );
}

#[test]
fn row_2_scope() {
    let nil = "00000000-0000-0000-0000-000000000000";
    let agent = |ids: Value| with(&command(), json!({"scope": "agent", "agent_ids": ids}));
    let world = World::default();
    let theirs = world.agents[2].uuid.clone();
    check(
        &world,
        &[
            (with(&command(), json!({"tenant_id": SENTINEL_TENANT})), "hook: tenant scope requires a real tenant_id"),
            (with(&command(), json!({"tenant_id": nil})), "hook: tenant scope requires a real tenant_id"),
            (
                with(&agent(json!([world.agent(0)])), json!({"tenant_id": SENTINEL_TENANT})),
                "hook: agent scope requires a real tenant_id",
            ),
            (with(&command(), json!({"tenant_id": ACME})), &format!("NOT_FOUND: hook: tenant not found: {ACME}")),
            (with(&command(), json!({"tenant_id": DEFAULT_TENANT.to_uppercase()})), ""),
            (agent(json!([])), "hook: agent scope requires at least one agent_id"),
            (agent(json!(null)), "hook: agent scope requires at least one agent_id"),
            (agent(json!([theirs])), &format!("hook: agent not found: {theirs}")),
            (agent(json!([world.agent(1), world.agent(0)])), ""),
            (with(&command(), json!({"agent_ids": [world.agent(0)]})), "hook: agent_ids requires scope=agent"),
            (with(&command(), json!({"scope": "everyone"})), r#"hook: unknown scope "everyone""#),
        ],
    );
    let global = with(&command(), json!({"scope": "global"}));
    check(
        &master(),
        &[
            (
                with(&global, json!({"tenant_id": ACME})),
                &format!("hook: global scope requires sentinel tenant_id, got {ACME}"),
            ),
            (with(&global, json!({"tenant_id": SENTINEL_TENANT})), ""),
            (with(&global, json!({"agent_ids": [world.agent(0)]})), "hook: agent_ids requires scope=agent"),
        ],
    );
    let nobody = World { tenant: TenantId::sentinel(), ..master() };
    check(&nobody, &[(command(), "hook: tenant scope requires a real tenant_id")]);
}

#[test]
fn row_3_editions() {
    let command_refused = "hook: command handler not allowed: hook.command_disabled_standard";
    check(&standard(), &[(command(), command_refused), (http(json!({})), "")]);
    check(&World { tenant: ACME.into(), ..World::default() }, &[(command(), command_refused), (http(json!({})), "")]);
    check(&World { is_master: true, ..standard() }, &[(with(&command(), json!({"scope": "global"})), command_refused)]);
    let other = |word: &str| with(&command(), json!({"handler_type": word}));
    check(
        &World::default(),
        &[
            (other("builtin"), "hook: builtin handler not allowed: hook.unknown_handler_type"),
            (other("\"\n\""), r#"hook: \"\n\" handler not allowed: hook.unknown_handler_type"#),
        ],
    );
    let hook = World::default().hook(&command());
    assert_eq!(allowed(&hook, Edition::Lite), Ok(()));
    assert_eq!(allowed(&hook, Edition::Standard).unwrap_err().message, command_refused);
}

#[test]
fn row_3_handlers() {
    let no_config =
        |handler: &str| json!({"event": "stop", "handler_type": handler, "scope": "tenant", "matcher": "x"});
    let (max, over) = (MAX_SOURCE_BYTES, MAX_SOURCE_BYTES + 1);
    let source = |bytes: usize| format!("function handle{}", " ".repeat(bytes - "function handle".len()));
    check(
        &World::default(),
        &[
            (no_config("command"), "hook: command handler: missing 'command' in config"),
            (
                with(&no_config("command"), json!({"config": {"command": " "}})),
                "hook: command handler: missing 'command' in config",
            ),
            (no_config("http"), "hook: http handler: missing 'url' in config"),
            (
                http(json!({"url": "http://127.0.0.1/"})),
                "hook: http handler: ssrf check: ssrf: IP 127.0.0.1 is in a blocked range",
            ),
            (http(json!({"headers": {"HOST": "x"}})), "hook: http handler: header `HOST` cannot be set"),
            (
                http(json!({"headers": {"X-a": "1", "x-A": "2"}})),
                r#"hook: http handler: header "x-A" is there twice; upper and lower case are the same"#,
            ),
            (http(json!({"signing_secret": "x"})), "hook: http handler: not a `whsec_` secret"),
            (http(json!({"method": "POST", "body_template": 5, "strict": true, "signing_secret": "whsec_eA=="})), ""),
            (
                with(&prompt(json!({"prompt_template": ""})), json!({"matcher": ""})),
                "hook: prompt handler requires a matcher or if_expr (runaway-cost guard)",
            ),
            (with(&prompt(json!({})), json!({"matcher": "", "if_expr": "depth == 0"})), ""),
            (prompt(json!({"prompt_template": "\n"})), "hook: prompt handler requires non-empty prompt_template"),
            (
                prompt(json!({"max_invocations_per_turn": 0})),
                "hook: prompt handler: max_invocations_per_turn must be from 1 to 100, got 0",
            ),
            (
                prompt(json!({"max_invocations_per_turn": 101})),
                "hook: prompt handler: max_invocations_per_turn must be from 1 to 100, got 101",
            ),
            (prompt(json!({"max_invocations_per_turn": 100, "on_injection": "ignore"})), ""),
            (
                prompt(json!({"on_injection": "allow"})),
                r#"hook: prompt handler: on_injection must be block or ignore, got "allow""#,
            ),
            (no_config("script"), "hook: script handler requires non-empty config.source"),
            (script("  "), "hook: script handler requires non-empty config.source"),
            (script(&source(over)), &format!("hook: script source exceeds 32768 bytes (got {over})")),
            (script(&source(max)), ""),
            (script("]"), "hook: script compile error: SyntaxError: Line 1:3 unexpected token"),
        ],
    );
}

#[test]
fn row_3_secrets() {
    let anew = r#"secret "Authorization" must be sent anew"#;
    let encrypted = r#"secret "x-key" is encrypted already, which only an import may bring; send it in clear text"#;
    let sealed = http(json!({"headers": {"x-key": "aes-gcm:AAAA"}, "signing_secret": "aes-gcm:BBBB"}));
    check(
        &World::default(),
        &[
            (http(json!({"headers": {"Authorization": MASK}})), anew),
            (http(json!({"signing_secret": MASK})), r#"secret "signing_secret" must be sent anew"#),
            (http(json!({"headers": {"x-plain": MASK}})), r#"secret "x-plain" must be sent anew"#),
            (sealed.clone(), encrypted),
            (http(json!({"headers": {"Authorization": "Bearer x"}})), ""),
        ],
    );
    let import = World { lang: Lang::Import, ..World::default() };
    check(&import, &[(sealed, ""), (http(json!({"headers": {"Authorization": MASK}})), anew)]);
}

#[test]
fn row_4_times_and_words() {
    let cases = [
        (json!({"timeout_ms": -1}), "timeout_ms must be >= 0, got -1"),
        (json!({"timeout_ms": 10_001}), "timeout_ms 10001 exceeds max 10000"),
        (
            serde_json::from_str(r#"{"timeout_ms": 99999999999999999999999}"#).unwrap(),
            "timeout_ms 99999999999999999999 exceeds max 10000",
        ),
        (json!({"on_timeout": "ask"}), r#"on_timeout="ask" not supported in Wave 1 (reserved for future)"#),
        (json!({"on_timeout": "defer"}), r#"on_timeout="defer" not supported in Wave 1 (reserved for future)"#),
        (json!({"on_timeout": "x\"y"}), r#"on_timeout must be block or allow, got "x\"y""#),
        (json!({"breaker": "none"}), r#"breaker must be all, faults or off, got "none""#),
        (json!({"on_trip": "ask"}), r#"on_trip must be block or allow, got "ask""#),
    ];
    for (members, expected) in cases {
        assert_eq!(World::default().refusal(&with(&command(), members)), format!("hook: {expected}"));
    }
    let timeout = |n: i32| World::default().hook(&with(&command(), json!({"timeout_ms": n}))).timeout_ms;
    assert_eq!([timeout(0), timeout(1), timeout(10_000)], [5_000, 1, 10_000]);
    let minus: Value = serde_json::from_str(r#"{"timeout_ms": -0}"#).unwrap();
    assert_eq!(World::default().hook(&with(&command(), minus)).timeout_ms, 5_000);
}

#[test]
fn row_6_conditions_and_sizes() {
    let long = |n: usize| "é".repeat(n);
    let world = World::default();
    let refusal = |members: Value| world.refusal(&with(&command(), members));
    assert_eq!(
        refusal(json!({"matcher": "(a"})),
        r#"hook: matcher invalid: compile matcher "(a": error: unclosed group"#
    );
    assert!(refusal(json!({"matcher": "(?=a)"})).starts_with("hook: matcher invalid: compile matcher \"(?=a)\": "));
    assert!(refusal(json!({"if_expr": "1 +"})).starts_with("hook: if_expr invalid: cel parse \"1 +\": "));
    assert_eq!(refusal(json!({"if_expr": "1 + 1"})), "hook: if_expr invalid: expression must be bool, got int");
    let fits = "a".repeat(4096);
    assert_eq!(refusal(json!({"matcher": fits})), "");
    assert!(refusal(json!({"matcher": format!("{fits}a")})).ends_with("longer than 4096 bytes (got 4097)"));
    assert!(refusal(json!({"if_expr": format!("'{fits}' == ''")})).ends_with("longer than 4096 bytes (got 4104)"));
    assert_eq!(refusal(json!({"name": long(255)})), "");
    assert_eq!(refusal(json!({"name": long(256)})), "hook: name exceeds 255 characters (got 256)");
    let hidden = "hook: name has a character that is not seen or turns the direction of reading: U+202E";
    assert_eq!(refusal(json!({"name": "no\u{202e}hsup"})), hidden);
    let command = |n: usize| refusal(json!({"config": {"command": "a".repeat(n)}}));
    assert_eq!(command(32_768), "");
    assert_eq!(command(32_769), "hook: command exceeds 32768 bytes (got 32769)");
    let template = |n: usize| world.refusal(&prompt(json!({"prompt_template": "a".repeat(n)})));
    assert_eq!(template(16_384), "");
    assert_eq!(template(16_385), "hook: prompt_template exceeds 16384 bytes (got 16385)");

    let many: Vec<ConfiguredAgent> =
        (0..257).map(|n| ConfiguredAgent::new(&TenantId::default_tenant(), &format!("a{n}"))).collect();
    let ids = |n: usize| many.iter().take(n).map(|agent| agent.uuid.clone()).collect::<Vec<_>>();
    let agents = |n: usize| json!({"scope": "agent", "agent_ids": ids(n)});
    let crowd = World { agents: many.clone(), ..World::default() };
    assert_eq!(crowd.refusal(&with(&super::command(), agents(256))), "");
    assert_eq!(crowd.refusal(&with(&super::command(), agents(257))), "hook: agent_ids exceeds 256 agents (got 257)");
    let full = |held: usize| World { held, ..World::default() }.refusal(&super::command());
    assert_eq!(full(999), "");
    assert_eq!(full(1_000), "hook: the tenant has 1000 hooks, and may not have more; delete one first");
}

#[test]
fn the_first_row_that_is_broken_speaks() {
    // Each step mends what the one before it said.
    let mut record = json!({
        "event": "x", "handler_type": "", "scope": "x", "priority": "high", "timeout_ms": 99_999, "on_timeout": "ask",
        "breaker": "x", "on_trip": "x", "matcher": "(", "if_expr": "(", "name": "a".repeat(300), "colour": "red",
        "config": {"comand": "cat"},
    });
    let steps = [
        (
            json!({}),
            r#"invalid request: invalid config: field "priority" must be an integer from -2147483648 to 2147483647, got "high""#,
        ),
        (json!({"priority": 1}), r#"invalid request: invalid config: unknown field "colour""#),
        (json!({"colour": null}), "handler_type, event, and scope are required"),
        (
            json!({"handler_type": "command"}),
            r#"invalid request: invalid config: unknown field "comand" in config (did you mean "command"?)"#,
        ),
        (json!({"config": {}, "scope": "global"}), "UNAUTHORIZED: this action requires master tenant scope"),
        (json!({"scope": "x"}), r#"hook: unknown event "x""#),
        (json!({"event": "pre_tool_use"}), r#"hook: unknown scope "x""#),
        (
            json!({"scope": "tenant", "agent_ids": ["082ab084-a25f-52b4-a4a4-eb8a816bd9a8"]}),
            "hook: agent_ids requires scope=agent",
        ),
        (json!({"agent_ids": []}), "hook: command handler: missing 'command' in config"),
        (json!({"config": {"command": "cat"}}), "hook: timeout_ms 99999 exceeds max 10000"),
        (json!({"timeout_ms": 1}), r#"hook: on_timeout="ask" not supported in Wave 1 (reserved for future)"#),
        (json!({"on_timeout": "block"}), r#"hook: breaker must be all, faults or off, got "x""#),
        (json!({"breaker": "off"}), r#"hook: on_trip must be block or allow, got "x""#),
        (json!({"on_trip": "allow"}), r#"hook: matcher invalid: compile matcher "(": error: unclosed group"#),
        (json!({"matcher": ""}), ""),
    ];
    for (mend, expected) in steps {
        record = with(&record, mend);
        if record["colour"].is_null() {
            record.as_object_mut().unwrap().shift_remove("colour");
        }
        let said = World::default().refusal(&record);
        match expected {
            "" => assert!(said.starts_with("hook: if_expr invalid: cel parse"), "{said}"),
            _ => assert_eq!(said, expected),
        }
    }
    record["if_expr"] = "true".into();
    assert_eq!(World::default().refusal(&record), "hook: name exceeds 255 characters (got 300)");
    record["name"] = "a".into();
    assert_eq!(World::default().refusal(&record), "");
}

#[test]
fn doubtful_settings_are_told() {
    let warnings = |record: Value| World::default().read(&record).unwrap().warnings;
    let none: [&str; 0] = [];
    assert_eq!(warnings(with(&command(), json!({"matcher": "^exec$"}))), none);
    assert_eq!(
        warnings(with(&command(), json!({"event": "stop", "matcher": "^exec$"}))),
        [r#"matcher "^exec$" never matches: stop has no tool, so the name that it is compared with is empty"#]
    );
    assert_eq!(warnings(with(&command(), json!({"event": "stop", "matcher": "^$|exec"}))), none);
    assert_eq!(
        warnings(with(&prompt(json!({})), json!({"event": "user_prompt_submit", "matcher": ".*"}))),
        ["a prompt hook on user_prompt_submit judges {}: only tool input reaches the evaluator"]
    );
    assert_eq!(
        warnings(with(&command(), json!({"on_trip": "allow"}))),
        [
            "breaker \"all\" with on_trip \"allow\" lets five blocks in a row open this gate at pre_tool_use; use breaker \
          \"faults\" or on_trip \"block\""
        ]
    );
    assert_eq!(warnings(with(&command(), json!({"on_trip": "allow", "breaker": "faults"}))), none);
    assert_eq!(warnings(with(&command(), json!({"on_trip": "allow", "event": "stop"}))), none);
}
