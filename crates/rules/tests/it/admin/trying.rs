//! Tests of hooks: the handler runs for real, and nothing stays.

use pintle_domain::json::{Value, json};
use pintle_domain::store::{ExecutionQuery, ExecutionStore as _, RuleStore as _, TenantScope};
use pintle_egress::Allow;
use pintle_rules::admin::{CallerRole, Sample, TestTarget};
use pintle_testkit::http::{HttpStub, StubAnswer};

use super::stage::{Plan, Stage, http, of_acme, of_default, script};

/// What a test gives, without what differs from run to run.
async fn test(stage: &Stage, params: Value) -> Value {
    let mut result = stage.ok(&of_default(CallerRole::Admin), "hooks.test", params).await["result"].clone();
    result.as_object_mut().unwrap().shift_remove("durationMs").unwrap();
    result
}

fn nothing_is_kept(stage: &Stage) {
    let query = ExecutionQuery { limit: 10, ..ExecutionQuery::of(TenantScope::All) };
    assert_eq!(stage.store.executions(&query).unwrap(), []);
    assert_eq!(stage.store.rules().unwrap().runs, []);
}

fn sample() -> Value {
    json!({"toolName": "exec", "toolInput": {"cmd": "rm -rf /"}})
}

#[tokio::test]
async fn a_command_runs() {
    let stage = Stage::new();
    let command = "cat > seen; echo careful >&2; echo '{\"decision\":\"block\",\"reason\":\"no rm\"}'";
    let config = json!({
        "event": "pre_tool_use", "handler_type": "command", "scope": "tenant", "matcher": "^read$",
        "config": {"command": command},
    });
    let result = test(&stage, json!({"config": config, "sampleEvent": sample()})).await;
    let expected = json!({
        "decision": "block", "reason": "no rm", "stdout": "{\"decision\":\"block\",\"reason\":\"no rm\"}\n",
        "stderr": "careful\n", "matcherMatched": false, "effective": "block",
    });
    assert_eq!(result, expected);
    let seen = std::fs::read_to_string(stage.folder.path().join("seen")).unwrap();
    let seen: Value = serde_json::from_str(&seen).unwrap();
    assert_eq!((&seen["is_test"], &seen["ToolName"], &seen["SessionID"]), (&json!(true), &json!("exec"), &json!("")));
    let broken = json!({
        "event": "pre_tool_use", "handler_type": "command", "scope": "tenant", "config": {"command": "echo no >&2; exit 3"},
    });
    let result = test(&stage, json!({"config": broken})).await;
    let expected = json!({
        "decision": "error", "stderr": "no\n", "error": "hook: command exited 3: no", "fault": "bad_exit",
        "matcherMatched": true, "effective": "block",
    });
    assert_eq!(result, expected);
    nothing_is_kept(&stage);
}

#[tokio::test]
async fn what_looks_like_a_secret_is_not_shown_to_whoever_tests() {
    let stage = Stage::new();
    let record = json!({
        "name": "told", "event": "pre_tool_use", "handler_type": "command", "scope": "tenant",
        "config": {"command": "echo 'sk-abcdefgh1234 password=hunter2secret' >&2; \
                               echo '{\"decision\":\"block\",\"reason\":\"mail ann@example.org\"}'"},
    });
    let id = stage.create(&of_default(CallerRole::Admin), record.clone()).await;
    let expected = json!({
        "decision": "block", "reason": "mail [REDACTED]",
        "stdout": "{\"decision\":\"block\",\"reason\":\"mail [REDACTED]\"}\n",
        "stderr": "[REDACTED] password=[REDACTED]\n", "matcherMatched": true, "effective": "block",
    });
    for params in [json!({"hookId": id}), json!({"config": record})] {
        assert_eq!(test(&stage, params).await, expected);
    }
    nothing_is_kept(&stage);
}

#[tokio::test]
async fn a_request_is_sent() {
    let answers = vec![
        StubAnswer::json(r#"{"decision":"allow","updatedInput":{"cmd":"ls"},"additionalContext":"look"}"#),
        StubAnswer::new(403, "no"),
    ];
    let server = HttpStub::start(answers).await;
    let port = server.url().rsplit(':').next().unwrap().parse().unwrap();
    let allow = vec![Allow::cidr("127.0.0.0/8", vec![port]).unwrap()];
    let stage = Stage::planned(Plan { allow, ..Plan::default() });
    let url = format!("{}/check", server.url());
    let id = stage.create(&of_default(CallerRole::Admin), http(&url)).await;
    let result = test(&stage, json!({"hookId": id, "sampleEvent": sample()})).await;
    let expected = json!({
        "decision": "allow", "statusCode": 200, "updatedInput": {"cmd": "ls"}, "matcherMatched": true,
        "effective": "allow", "rewrite": "dropped: it may not change cmd", "additionalContext": "look",
    });
    assert_eq!(result, expected);
    let seen = &server.seen()[0];
    assert_eq!(seen.line, "POST /check");
    assert_eq!((seen.header("authorization"), seen.header("x-pintle-test")), (Some("Bearer opensesame"), Some("1")));
    // Unsaved, with a secret in clear text and the right to rewrite.
    let mut record = http(&url);
    record["may_rewrite"] = json!(true);
    let result = test(&stage, json!({"config": record, "sampleEvent": sample()})).await;
    assert_eq!((&result["decision"], &result["statusCode"]), (&json!("error"), &json!(403)));
    assert_eq!(result["error"], "client error 403 (no retry)");
    assert_eq!(server.seen()[1].header("authorization"), Some("Bearer opensesame"));
    // What the operator allowed for the house is nobody else's.
    let no = stage.no(&of_acme(CallerRole::Admin), "hooks.test", json!({"config": http(&url)})).await;
    assert!(no.starts_with("INVALID_REQUEST hook: http handler: ssrf check: ssrf: "), "{no}");
    assert_eq!(server.seen().len(), 2);
    nothing_is_kept(&stage);
}

#[tokio::test]
async fn a_judge_is_asked_and_paid() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let record = json!({
        "event": "pre_tool_use", "handler_type": "prompt", "scope": "tenant", "if_expr": "tool_name == 'exec'",
        "config": {"prompt_template": "No rm.", "max_invocations_per_turn": 1},
    });
    let expected = json!({
        "decision": "block", "reason": "too risky", "matcherMatched": true, "celResult": true, "effective": "block",
        "injectionDetected": false, "model": "fake/judge", "tokens": 100,
    });
    for _ in 0..2 {
        let result = test(&stage, json!({"config": record, "sampleEvent": sample()})).await;
        assert_eq!(result, expected, "unsaved hooks share nothing, not even with themselves");
    }
    assert_eq!(stage.judge.asked.lock().unwrap().len(), 2);
    assert_eq!(stage.ok(&admin, "hooks.budget.get", json!({})).await["used"], 200);
    let owner = of_default(CallerRole::Owner);
    stage.ok(&owner, "hooks.budget.set", json!({"tenantId": admin.tenant, "budgetTotal": 0})).await;
    let result = test(&stage, json!({"config": record, "sampleEvent": sample()})).await;
    let reason = result["reason"].as_str().unwrap();
    assert!(reason.starts_with("tenant budget exceeded: ") && reason.contains(" tokens needed, "), "{reason}");
    assert_eq!(stage.judge.asked.lock().unwrap().len(), 2);
    nothing_is_kept(&stage);
}

#[tokio::test]
async fn a_script_runs() {
    let stage = Stage::new();
    let id = stage
        .create(&of_default(CallerRole::Admin), {
            let mut record = script("tenant", "guard", "allow");
            record["config"]["source"] = json!(
                "return {\"decision\":\"ask\",\"reason\":\"sure?\",\"updatedInput\":{\"toolInput\":{\"cmd\":\"ls\"}}}"
            );
            record["may_rewrite"] = json!(true);
            record["enabled"] = json!(false);
            record
        })
        .await;
    let result = test(&stage, json!({"hookId": id, "sampleEvent": sample()})).await;
    let expected = json!({
        "decision": "ask", "reason": "sure?", "stderr": "log: seen", "updatedInput": {"cmd": "ls"},
        "matcherMatched": true, "effective": "ask", "rewrite": "applied",
    });
    assert_eq!(result, expected);
    let seen = stage.scripts.events.lock().unwrap()[0].clone();
    assert_eq!((&seen["isTest"], &seen["toolInput"]["cmd"]), (&json!(true), &json!("rm -rf /")));
    let unsaved = |event: &str, source: &str, more: Value| {
        let mut record = script("tenant", "guard", "allow");
        record["event"] = json!(event);
        record["matcher"] = json!("");
        record["config"]["source"] = json!(source);
        record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"config": record, "sampleEvent": {"rawInput": "mail ann"}})
    };
    let rewrite = "return {\"decision\":\"allow\",\"updatedInput\":{\"rawInput\":\"mail\"}}";
    let mut seen = String::new();
    for params in [
        unsaved("user_prompt_submit", rewrite, json!({"may_rewrite": true})),
        unsaved("user_prompt_submit", rewrite, json!({})),
        unsaved("user_prompt_submit", "return {\"decision\":\"ask\"}", json!({})),
        unsaved("user_prompt_submit", "return {\"throw\":1}", json!({})),
        unsaved("user_prompt_submit", "return {\"hang\":1}", json!({})),
        unsaved("user_prompt_submit", "return {\"hang\":1}", json!({"on_timeout": "allow"})),
        unsaved("pre_tool_use", "return {\"decision\":\"frob\"}", json!({"if_expr": "tool_input.x == 1"})),
        unsaved("subagent_start", "return {\"decision\":\"block\"}", json!({"if_expr": "depth == 0"})),
        unsaved("session_start", "return {\"decision\":\"block\"}", json!({})),
        unsaved("post_tool_use", "return {\"throw\":1}", json!({})),
        unsaved("subagent_stop", "return {\"decision\":\"allow\"}", json!({})),
        unsaved("stop", rewrite, json!({})),
    ] {
        seen.push_str(&format!(
            "{} {}\n    {}\n",
            params["config"]["event"],
            params["config"]["config"]["source"],
            test(&stage, params.clone()).await
        ));
    }
    insta::assert_snapshot!(seen);
    nothing_is_kept(&stage);
}

#[tokio::test]
async fn tests_never_trip_and_are_rationed() {
    let stage = Stage::new();
    let (admin, operator) = (of_default(CallerRole::Admin), of_default(CallerRole::Operator));
    let id = stage.create(&admin, script("tenant", "guard", "block")).await;
    let params = json!({"hookId": id, "sampleEvent": sample()});
    for _ in 0..20 {
        let result = stage.ok(&operator, "hooks.test", params.clone()).await;
        assert_eq!(result["result"]["decision"], "block");
    }
    let no = "RESOURCE_EXHAUSTED at most 20 tests of hooks per minute and user; try again in a minute";
    assert_eq!(stage.no(&operator, "hooks.test", params.clone()).await, no);
    let refused = stage.rule_admin.call(&operator, "hooks.test", &params).await.unwrap_err();
    assert_eq!(refused.retry_after_ms, Some(60_000), "all of them were just now");
    stage.ok(&admin, "hooks.test", params.clone()).await;
    stage.clock.pass(61);
    stage.ok(&operator, "hooks.test", params).await;
    nothing_is_kept(&stage);
    assert_eq!(stage.gate(admin.tenant.as_str(), "exec").await, "block: guard says so");
    let no = stage.no(&operator, "hooks.test", json!({"config": script("tenant", "guard", "block")})).await;
    assert_eq!(no, "UNAUTHORIZED permission denied: hooks.test requires admin role");
}

#[tokio::test]
async fn the_starter_guards_are_asked_as_a_chain() {
    let stage = Stage::new();
    *stage.scripts.blocks_after.lock().unwrap() = Some(3);
    let admin = of_default(CallerRole::Admin);
    let sample = Sample::read(&sample()).unwrap();
    let result = stage.rule_admin.test(&admin, TestTarget::Starter, &sample).await.unwrap();
    assert_eq!((result.decision.word(), result.effective), ("block", "block"));
    assert!(result.hook.is_some_and(|name| name.starts_with("starter-")));
    assert_eq!(stage.scripts.events.lock().unwrap().len(), 3, "those after it are not asked");
    let harmless = Sample { tool_name: Some("fetch".into()), ..Sample::default() };
    let result = stage.rule_admin.test(&admin, TestTarget::Starter, &harmless).await.unwrap();
    assert_eq!((result.decision.word(), result.hook), ("allow", None));
    assert_eq!(stage.scripts.events.lock().unwrap().len(), 3, "no guard is about this tool");
    assert_eq!(stage.store_rows(), []);
    let refused = stage
        .rule_admin
        .test(&of_default(CallerRole::Operator), TestTarget::Starter, &Sample::default())
        .await
        .unwrap_err();
    assert_eq!(refused.message, "permission denied: hooks.test requires admin role");
}
