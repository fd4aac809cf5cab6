//! What an update may change, and what it may not.

use super::*;

fn stored() -> Rule {
    let config = json!({
        "headers": {"Authorization": "Bearer a", "X-Key": "k", "X-Plain": "p"}, "secret_headers": ["x-KEY"],
        "signing_secret": "whsec_eA==",
    });
    let mut hook =
        World::default().hook(&with(&http(config), json!({"name": "n", "matcher": "^exec$", "timeout_ms": 7})));
    hook.version = 3;
    map_secrets(&mut hook, |path, text| Ok::<_, ()>(format!("aes-gcm:01234567:{path}={text}"))).unwrap();
    hook
}

/// What the settings are after `config` replaced them; or the refusal.
fn config(hook: &Rule, config: Value) -> Result<Value, String> {
    let patched = World::default().patch(hook, &json!({"config": config}));
    patched.map(|read| Value::Object(read.hook.config)).map_err(|refused| refused.message)
}

#[test]
fn secrets_are_found_and_masked() {
    let hook = stored();
    assert_eq!(secrets(&hook), ["config.headers.authorization", "config.headers.x-key", "config.signing_secret"]);
    assert_eq!(hook.config["headers"]["X-Key"], "aes-gcm:01234567:config.headers.x-key=k");
    assert_eq!(hook.config["headers"]["X-Plain"], "p");
    let masked = json!({
        "url": "https://a.example/x", "headers": {"Authorization": MASK, "X-Key": MASK, "X-Plain": "p"},
        "secret_headers": ["x-KEY"], "signing_secret": MASK,
    });
    assert_eq!(shown(&hook, true)["config"], masked);
    assert_eq!(shown(&hook, false), json!(super::masked(&hook)));
    let failed = map_secrets(&mut hook.clone(), |path, _| match path {
        "config.headers.x-key" => Err(path.to_owned()),
        _ => Ok("x".into()),
    });
    assert_eq!(failed, Err("config.headers.x-key".to_owned()));
    // Whatever else a row may have where secrets stand is masked too, and nothing panics.
    let mut odd = hook.clone();
    odd.config =
        json!({"headers": {"COOKIE": 5}, "secret_headers": "x", "signing_secret": {}}).as_object().unwrap().clone();
    assert_eq!(shown(&odd, false)["config"]["headers"], json!({"COOKIE": MASK}));
    odd.config = json!({"headers": [], "secret_headers": [1]}).as_object().unwrap().clone();
    assert_eq!(secrets(&odd), Vec::<String>::new());
    assert_eq!(secrets(&World::default().hook(&command())), Vec::<String>::new());
}

#[test]
fn settings_of_everybodys_hooks_are_hidden_from_others() {
    let hook = master().hook(&with(&http(json!({})), json!({"scope": "global"})));
    let others = shown(&hook, true);
    assert_eq!((&others["config"], &others["config_hidden"]), (&json!({}), &json!(true)));
    assert_eq!(shown(&hook, false)["config"], json!({"url": "https://a.example/x"}));
    assert_eq!(shown(&hook, false).get("config_hidden"), None);
}

#[test]
fn what_is_not_sent_stays() {
    let hook = stored();
    let patched = |updates: Value| World::default().patch(&hook, &updates).unwrap().hook;
    assert_eq!(patched(json!({"name": "m"})), Rule { name: "m".into(), ..hook.clone() });
    let cleared = patched(json!({"name": "", "matcher": "", "if_expr": "", "timeout_ms": 0, "priority": -3}));
    let expected =
        Rule { name: String::new(), matcher: String::new(), timeout_ms: 5_000, priority: -3, ..hook.clone() };
    assert_eq!(cleared, expected);
    let agents = World::default().agents;
    let scoped = patched(json!({"scope": "agent", "agent_id": agents[1].uuid}));
    assert_eq!(scoped.agent_ids, [agents[1].uuid.clone()]);
    // Members of the server's are not the writer's.
    assert_eq!(patched(json!({"version": 99, "source": "builtin", "id": "x"})), hook);
}

#[test]
fn a_name_that_hides_something_stays_and_no_other_gets_one() {
    let old = Rule { name: "no\u{202e}hsup".to_owned(), ..stored() };
    let patch = |updates: Value| World::default().patch(&old, &updates).map(|read| read.hook.name);
    assert_eq!(patch(json!({"name": old.name, "priority": 4})), Ok(old.name.clone()));
    let refused = patch(json!({"name": "a\u{200b}b"})).map_err(|refused| refused.message);
    let why = "hook: name has a character that is not seen or turns the direction of reading: U+200B";
    assert_eq!(refused, Err(why.to_owned()));
}

#[test]
fn changes_are_refused() {
    let hook = stored();
    let refusal = |world: &World, updates: Value| said(&world.patch(&hook, &updates));
    let world = World::default();
    for nothing in [json!({}), json!(null), json!([]), json!("x")] {
        assert_eq!(refusal(&world, nothing), "invalid updates");
    }
    let cases = [
        (
            json!({"onTimeout": "allow"}),
            r#"invalid request: invalid config: unknown field "onTimeout" (did you mean "on_timeout"?)"#,
        ),
        (json!({"name": null}), r#"invalid request: invalid config: field "name" must be a string, got null"#),
        (
            json!({"enabled": 0}),
            r#"invalid request: invalid config: field "enabled" must be true or false, got a number"#,
        ),
        (
            json!({"tenant": "x"}),
            r#"invalid request: invalid config: unknown field "tenant" (did you mean "tenant_id"?)"#,
        ),
        (json!({"event": ""}), "handler_type, event, and scope are required"),
        (json!({"tenant_id": ACME}), "NOT_FOUND: hook: tenant not found: 0193a5b0-7000-7000-8000-0000000000ac"),
        (json!({"scope": "global"}), "UNAUTHORIZED: this action requires master tenant scope"),
        (json!({"scope": "agent"}), "hook: agent scope requires at least one agent_id"),
        // The settings belong to the handler.
        (
            json!({"handler_type": "command"}),
            r#"invalid request: invalid config: unknown field "url" in config (known: command, allowed_env_vars, cwd)"#,
        ),
        (
            json!({"handler_type": "prompt", "matcher": "", "config": {}}),
            "hook: prompt handler requires a matcher or if_expr (runaway-cost guard)",
        ),
        (json!({"timeout_ms": 10_001}), "hook: timeout_ms 10001 exceeds max 10000"),
        (json!({"matcher": "("}), r#"hook: matcher invalid: compile matcher "(": error: unclosed group"#),
    ];
    for (updates, expected) in cases {
        assert_eq!(refusal(&world, updates), expected);
    }
    let stranger = World { tenant: ACME.into(), ..World::default() };
    assert_eq!(refusal(&stranger, json!({"name": "x"})), format!("NOT_FOUND: hook not found: {}", hook.id));
    // An owner writes in any tenant, and the hook stays where it is.
    let owner = World { tenant: ACME.into(), ..master() };
    assert_eq!(owner.patch(&hook, &json!({"name": "x"})).unwrap().hook.tenant_id, hook.tenant_id);
    let global = master().hook(&with(&http(json!({})), json!({"scope": "global"})));
    let refused = said(&world.patch(&global, &json!({"name": "x"})));
    assert_eq!(refused, "UNAUTHORIZED: this action requires master tenant scope");
    assert_eq!(said(&master().patch(&global, &json!({"name": "x"}))), "");
}

#[test]
fn builtins_have_one_switch() {
    let mut builtin = master().hook(&with(&script("function handle() {}"), json!({"scope": "global"})));
    builtin.source = Source::Builtin;
    let patched = |updates: Value| master().patch(&builtin, &updates);
    assert!(!patched(json!({"enabled": false})).unwrap().hook.enabled);
    let read_only = "builtin hooks are read-only except for the enabled toggle";
    assert_eq!(said(&patched(json!({"enabled": false, "priority": 1}))), read_only);
    assert_eq!(said(&patched(json!({"config": {}}))), read_only);
    let refused = said(&World::default().patch(&builtin, &json!({"enabled": false})));
    assert_eq!(refused, "UNAUTHORIZED: this action requires master tenant scope");
    let broken = Rule { if_expr: "(".into(), enabled: false, ..builtin };
    assert!(said(&master().patch(&broken, &json!({"enabled": true}))).starts_with("hook: if_expr invalid"));
    assert_eq!(said(&master().patch(&broken, &json!({"enabled": false}))), "");
}

#[test]
fn a_mask_keeps_a_secret() {
    let hook = stored();
    let old = &hook.config;
    let masked = json!({
        "url": "https://a.example:443/elsewhere?q", "headers": {"authorization": MASK, "x-key": MASK},
        "secret_headers": ["X-Key"], "signing_secret": MASK,
    });
    let kept = json!({
        "url": "https://a.example:443/elsewhere?q",
        "headers": {"authorization": old["headers"]["Authorization"], "x-key": old["headers"]["X-Key"]},
        "secret_headers": ["X-Key"], "signing_secret": old["signing_secret"],
    });
    assert_eq!(config(&hook, masked.clone()), Ok(kept));
    // One may be new, one may go.
    let mixed = json!({"url": "https://a.example/x", "headers": {"Authorization": "Bearer b"}, "signing_secret": MASK});
    let expected = with(&mixed, json!({"signing_secret": old["signing_secret"]}));
    assert_eq!(config(&hook, mixed), Ok(expected));
}

#[test]
fn a_mask_that_keeps_nothing_is_refused() {
    let hook = stored();
    let refusal =
        |with_members: Value| config(&hook, with(&json!({"url": "https://a.example/x"}), with_members)).unwrap_err();
    let anew = |name: &str| format!("secret \"{name}\" must be sent anew");
    // Secret before, not after; not before, but after; neither.
    assert_eq!(refusal(json!({"headers": {"X-Key": MASK}})), anew("X-Key"));
    assert_eq!(refusal(json!({"headers": {"X-Plain": MASK}, "secret_headers": ["X-Plain"]})), anew("X-Plain"));
    assert_eq!(refusal(json!({"headers": {"X-Other": MASK}})), anew("X-Other"));
    for url in ["http://a.example/x", "https://b.example/x", "https://a.example:8443/x", "https://a.example.evil/x"] {
        assert_eq!(refusal(json!({"url": url, "headers": {"Authorization": MASK}})), anew("Authorization"), "{url}");
        assert_eq!(refusal(json!({"url": url, "signing_secret": MASK})), anew("signing_secret"), "{url}");
    }
    // Ciphertext from elsewhere is nobody's to send, not even the hook's own under another name.
    let own = hook.config["headers"]["X-Key"].as_str().unwrap();
    assert!(refusal(json!({"headers": {"X-Plain": own}})).starts_with("secret \"X-Plain\" is encrypted already"));
    assert!(refusal(json!({"headers": {"Authorization": own}})).starts_with("secret \"Authorization\" is encrypted"));
    // It is bound to its tenant, which a change of scope changes, also if nobody speaks of the settings.
    assert_eq!(said(&master().patch(&hook, &json!({"scope": "global"}))), anew("Authorization"));
    let open = World::default().hook(&http(json!({})));
    let global = master().patch(&open, &json!({"scope": "global"})).unwrap().hook;
    assert_eq!(global.tenant_id, TenantId::sentinel());
}

#[test]
fn a_tripped_hook_acts_again_after_any_change() {
    let tripped = Rule {
        enabled: false,
        tripped_at: Some("2026-01-31T12:00:00Z".into()),
        disabled_reason: "breaker".into(),
        ..stored()
    };
    for updates in [json!({"name": "n"}), json!({"enabled": false}), json!({"enabled": true})] {
        assert_eq!(World::default().patch(&tripped, &updates).unwrap().hook, stored(), "{updates}");
    }
    let off = World::default().patch(&stored(), &json!({"enabled": false})).unwrap().hook;
    assert_eq!(off, Rule { enabled: false, ..stored() });
    // Who says so takes over; a change of something else does not.
    let edition = Rule { enabled: false, disabled_reason: "edition".into(), ..stored() };
    let reason = |updates: Value| World::default().patch(&edition, &updates).unwrap().hook.disabled_reason;
    assert_eq!([reason(json!({"name": "n"})), reason(json!({"enabled": true}))], ["edition", ""]);
    assert_eq!(reason(json!({"enabled": false})), "");
    // What a person said of it stays as long as it is off.
    let noisy = Rule { enabled: false, disabled_reason: "too noisy".into(), ..stored() };
    let reason = |updates: Value| World::default().patch(&noisy, &updates).unwrap().hook.disabled_reason;
    let off = json!({"name": "n", "enabled": false});
    assert_eq!(
        [reason(json!({"name": "n"})), reason(off), reason(json!({"enabled": true}))],
        ["too noisy", "too noisy", ""]
    );
}
