//! Pages of what hooks did.

use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::execution::{Execution, KeptOutput, OutputHead};
use pintle_domain::id::{HookId, TenantId, agent_uuid};
use pintle_domain::json::{Object, Value, json};
use pintle_domain::rule::{Decision, HandlerType};
use pintle_domain::store::{AuditStore as _, ExecutionStore as _};
use pintle_rules::admin::{Caller, CallerRole, MAX_PAGE};

use super::stage::{ACME, Stage, of_acme, of_default, script};

/// A row of the second `n`.
pub(crate) fn row(n: i64, hook: &str, tenant: Option<&str>, session: Option<&str>) -> Execution {
    let tenant_id = TenantId::from(tenant.unwrap_or(pintle_domain::id::DEFAULT_TENANT));
    Execution {
        id: uuid::Uuid::now_v7().to_string(),
        hook_id: Some(HookId::from(hook)),
        hook_name: "guard".into(),
        hook_version: 1,
        handler_type: HandlerType::Script,
        agent_id: Some(agent_uuid(&tenant_id, if n % 2 == 0 { "main" } else { "helper" })),
        tenant_id,
        session_id: session.map(str::to_owned),
        turn_id: None,
        event_id: format!("e{n}"),
        trace_id: None,
        event: CheckpointKind::PreToolUse,
        tool_name: Some("exec".into()),
        tool_call_id: None,
        input_hash: None,
        decision: if n % 3 == 0 { Decision::Block } else { Decision::Allow },
        reason: None,
        duration_ms: 1,
        retry: 0,
        dedup_key: Some(format!("{hook}:e{n}")),
        error: Some("short".into()),
        error_detail: Some("the whole of it".into()),
        output: None,
        metadata: Object::new(),
        // Two rows each in one second, so that the id has to tell them apart.
        created_at: jiff::Timestamp::from_second(1_700_000_000 + n / 2).unwrap(),
    }
}

impl Stage {
    pub(crate) fn keep(&self, rows: Vec<Execution>) {
        self.store.keep_executions(rows, Box::new(|kept| kept.unwrap()));
    }
}

fn events(page: &Value) -> Vec<String> {
    let rows = page["executions"].as_array().unwrap();
    rows.iter().map(|row| row["event_id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn pages_go_on_where_the_one_before_ended() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let id = stage.create(&admin, script("tenant", "guard", "allow")).await;
    for n in 0..7 {
        stage.keep(vec![row(n, &id, None, Some("admin:1"))]);
    }
    let (mut seen, mut cursor, mut pages) = (Vec::new(), String::new(), Vec::new());
    loop {
        let page = stage.ok(&admin, "hooks.history", json!({"limit": 3, "cursor": cursor, "hookId": id})).await;
        seen.extend(events(&page));
        pages.push(page["executions"].as_array().unwrap().len());
        cursor = page["nextCursor"].as_str().unwrap().to_owned();
        if cursor.is_empty() {
            break;
        }
        // What comes meanwhile is newer, so it moves nothing.
        stage.keep(vec![row(100 + i64::try_from(pages.len()).unwrap(), &id, None, Some("admin:1"))]);
    }
    assert_eq!((pages, seen), (vec![3, 3, 1], ["e6", "e5", "e4", "e3", "e2", "e1", "e0"].map(String::from).to_vec()));
}

#[tokio::test]
async fn a_cursor_is_bound_to_its_question() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let id = stage.create(&admin, script("tenant", "guard", "allow")).await;
    stage.keep((0..4).map(|n| row(n, &id, None, Some("admin:1"))).collect());
    let page = stage.ok(&admin, "hooks.history", json!({"limit": 2})).await;
    let cursor = page["nextCursor"].as_str().unwrap();
    let flipped = format!("{}{}", &cursor[..cursor.len() - 4], "AAAA");
    let no = "INVALID_REQUEST invalid cursor";
    for (by, params) in [
        (&admin, json!({"cursor": cursor, "event": "pre_tool_use"})),
        (&admin, json!({"cursor": cursor, "decision": "block"})),
        (&admin, json!({"cursor": cursor, "hookId": id})),
        (&admin, json!({"cursor": cursor, "sessionId": "admin:1"})),
        (&admin, json!({"cursor": cursor, "agentId": "main"})),
        (&admin, json!({"cursor": cursor, "since": "2023-01-01T00:00:00Z"})),
        (&admin, json!({"cursor": flipped})),
        (&admin, json!({"cursor": "%"})),
        (&of_acme(CallerRole::Admin), json!({"cursor": cursor})),
        (&of_default(CallerRole::Owner), json!({"cursor": cursor})),
        (&of_default(CallerRole::Viewer), json!({"cursor": cursor})),
    ] {
        assert_eq!(stage.no(by, "hooks.history", params).await, no);
    }
    let rest = stage.ok(&admin, "hooks.history", json!({"cursor": cursor, "limit": 200})).await;
    assert_eq!((events(&rest), &rest["nextCursor"]), (vec!["e1".to_owned(), "e0".to_owned()], &json!("")));
}

#[tokio::test]
async fn filters_limits_and_columns() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let id = stage.create(&admin, script("tenant", "guard", "allow")).await;
    stage.keep((0..250).map(|n| row(n, &id, None, Some(if n < 10 { "admin:1" } else { "viewer:1" }))).collect());
    let many = async |params: Value| events(&stage.ok(&admin, "hooks.history", params).await).len();
    assert_eq!(many(json!({})).await, 50);
    assert_eq!(many(json!({"limit": 0})).await, 50);
    assert_eq!(many(json!({"limit": 1000})).await, MAX_PAGE);
    assert_eq!(many(json!({"sessionId": "admin:1"})).await, 10);
    assert_eq!(many(json!({"sessionId": "admin:1", "agentId": "main"})).await, 5);
    assert_eq!(many(json!({"sessionId": "admin:1", "decision": "block"})).await, 4);
    assert_eq!(many(json!({"sessionId": "admin:1", "event": "stop"})).await, 0);
    let (since, until) = ("2023-11-14T22:13:21Z", "2023-11-14T22:13:23Z");
    assert_eq!(many(json!({"since": since, "until": until})).await, 4);
    let page = stage.ok(&admin, "hooks.history", json!({"limit": 1})).await;
    let names: Vec<&String> = page["executions"][0].as_object().unwrap().keys().collect();
    assert!(names.iter().any(|name| *name == "session_key"), "{names:?}");
    assert!(!names.iter().any(|name| ["session_id", "error_detail", "errorDetail"].contains(&name.as_str())));
    let whole = stage.ok(&admin, "hooks.execution.get", json!({"id": page["executions"][0]["id"]})).await;
    assert_eq!((&whole["errorDetail"], &whole["error"]), (&json!("the whole of it"), &json!("short")));
    stage.ok(&admin, "hooks.delete", json!({"hookId": id})).await;
    let page = stage.ok(&admin, "hooks.history", json!({"limit": 1})).await;
    assert_eq!(
        (&page["executions"][0]["hook_id"], &page["executions"][0]["hook_name"]),
        (&Value::Null, &json!("guard"))
    );
}

#[tokio::test]
async fn below_admins_everybody_has_their_own_sessions() {
    let stage = Stage::new();
    let (admin, viewer) = (of_default(CallerRole::Admin), of_default(CallerRole::Viewer));
    let id = stage.create(&admin, script("tenant", "guard", "allow")).await;
    let whose = |n: i64| match n {
        _ if n % 100 == 0 => Some("viewer:1"),
        _ if n % 2 == 0 => None,
        _ => Some("admin:1"),
    };
    // More than one look at the store is needed to fill a page.
    stage.keep((0..1000).map(|n| row(n, &id, None, whose(n))).collect());
    let page = stage.ok(&viewer, "hooks.history", json!({"limit": 4})).await;
    assert_eq!(events(&page), ["e900", "e800", "e700", "e600"]);
    let page = stage.ok(&viewer, "hooks.history", json!({"limit": 50, "cursor": page["nextCursor"]})).await;
    assert_eq!(events(&page), ["e500", "e400", "e300", "e200", "e100", "e0"]);
    assert_eq!(page["nextCursor"], "");
    let page = stage.ok(&viewer, "hooks.history", json!({"sessionId": "admin:1"})).await;
    assert_eq!(events(&page), [""; 0]);
    let other = stage.ok(&of_acme(CallerRole::Viewer), "hooks.history", json!({})).await;
    assert_eq!(events(&other), [""; 0], "{ACME} has none");
}

#[tokio::test]
async fn one_is_found_by_its_fault_and_by_its_id_by_whoever_may_see_it() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let id = stage.create(&admin, script("tenant", "guard", "allow")).await;
    let mut rows: Vec<Execution> = (0..300).map(|n| row(n, &id, None, Some("admin:1"))).collect();
    for (at, decision, fault) in [(7, Decision::Error, "killed"), (8, Decision::Timeout, "timed_out")] {
        rows[at].decision = decision;
        rows[at].metadata.insert("fault".to_owned(), json!(fault));
    }
    let killed = rows[7].id.clone();
    stage.keep(rows);
    let found = async |by: &Caller, params: Value| events(&stage.ok(by, "hooks.history", params).await);
    assert_eq!(found(&admin, json!({"fault": "killed"})).await, ["e7"]);
    assert_eq!(found(&admin, json!({"fault": "timed_out"})).await, ["e8"]);
    assert_eq!(found(&admin, json!({"fault": "killed", "decision": "timeout"})).await, [""; 0]);
    assert_eq!(found(&admin, json!({"executionId": killed})).await, ["e7"]);
    assert_eq!(found(&of_default(CallerRole::Viewer), json!({"executionId": killed})).await, [""; 0]);
    assert_eq!(found(&of_acme(CallerRole::Admin), json!({"executionId": killed})).await, [""; 0]);
    let no = stage.no(&admin, "hooks.history", json!({"executionId": "e7"})).await;
    assert_eq!(no, "INVALID_REQUEST invalid execution ID");
    let no = stage.no(&admin, "hooks.history", json!({"fault": "tired"})).await;
    assert_eq!(no, "INVALID_REQUEST unknown fault \"tired\"");
}

#[tokio::test]
async fn what_a_command_wrote_is_for_admins_and_the_chain_says_who_read_it() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let id = stage.create(&admin, script("tenant", "guard", "allow")).await;
    let stderr = Some(OutputHead { text: "looked at it".into(), cut: true });
    let output = Some(Box::new(KeptOutput { stdout: None, stderr }));
    let wrote = Execution { error: None, error_detail: None, output, ..row(1, &id, None, Some("viewer:1")) };
    let asked = json!({"id": wrote.id});
    stage.keep(vec![wrote]);
    let reads = || {
        let entries = stage.store.audit_entries(&TenantId::default_tenant(), 0, 99).unwrap();
        entries.iter().filter(|entry| entry.body.contains("detail_read")).count()
    };
    for role in [CallerRole::Viewer, CallerRole::Operator] {
        let no = stage.no(&of_default(role), "hooks.execution.get", asked.clone()).await;
        assert!(no.contains("requires admin role"), "{no}");
    }
    for role in [CallerRole::Viewer, CallerRole::Operator, CallerRole::Admin] {
        let page = stage.ok(&of_default(role), "hooks.history", json!({"executionId": asked["id"]})).await;
        assert!(!page.to_string().contains("looked at it") && !page.to_string().contains("stderr"), "{page}");
    }
    assert_eq!(reads(), 0);
    let whole = stage.ok(&admin, "hooks.execution.get", asked).await;
    let stderr = json!({"text": "looked at it", "cut": true});
    assert_eq!((&whole["errorDetail"], &whole["stdout"], &whole["stderr"]), (&Value::Null, &Value::Null, &stderr));
    assert_eq!(reads(), 1);
}

#[tokio::test]
async fn what_a_global_hook_wrote_is_for_owners_as_its_settings_are() {
    let stage = Stage::new();
    let (owner, admin) = (of_acme(CallerRole::Owner), of_acme(CallerRole::Admin));
    let global = stage.create(&owner, script("global", "everybodys", "allow")).await;
    let own = stage.create(&admin, script("tenant", "theirs", "allow")).await;
    let wrote = |n: i64, hook: &str| {
        let head = OutputHead { text: "door code 4711".into(), cut: false };
        let output = Some(Box::new(KeptOutput { stdout: Some(head.clone()), stderr: Some(head) }));
        Execution { output, ..row(n, hook, Some(ACME), Some("admin:1")) }
    };
    let rows = [wrote(1, &global), wrote(2, &own)];
    let [of_global, of_own] = rows.each_ref().map(|it| json!({"id": it.id}));
    stage.keep(rows.into());
    let shown = json!({"text": "door code 4711", "cut": false});
    let read = async |by: &Caller, asked: &Value| {
        let whole = stage.ok(by, "hooks.execution.get", asked.clone()).await;
        (whole["errorDetail"].clone(), whole["stdout"].clone(), whole["stderr"].clone())
    };
    let all = (json!("the whole of it"), shown.clone(), shown);
    let without_output = (json!("the whole of it"), Value::Null, Value::Null);
    assert_eq!(read(&admin, &of_global).await, without_output);
    assert_eq!(read(&admin, &of_own).await, all);
    assert_eq!(read(&owner, &of_global).await, all);
    stage.ok(&owner, "hooks.delete", json!({"hookId": global})).await;
    stage.ok(&admin, "hooks.delete", json!({"hookId": own})).await;
    assert_eq!(read(&admin, &of_global).await, without_output);
    assert_eq!(read(&admin, &of_own).await, all);
    assert_eq!(read(&owner, &of_global).await, all);
}
