//! What a request comes to, as its row keeps it.

use std::time::Duration;

use pintle_domain::checkpoint::ObservedEvent;
use pintle_domain::id::{DEFAULT_TENANT, TenantId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::{Object, Value, json};
use pintle_domain::store::{ExecutionQuery, ExecutionStore as _, RuleChange, TenantScope};
use pintle_domain::tool::{ToolCall, ToolOutput};
use pintle_egress::Allow;
use pintle_rules::admin::CallerRole;
use pintle_testkit::http::{HttpStub, StubAnswer};

use super::stage::{Plan, Stage, http, of_default};

/// A host that may reach `server`.
fn beside(server: &HttpStub) -> Stage {
    let port = server.url().rsplit(':').next().unwrap().parse().unwrap();
    Stage::planned(Plan { allow: vec![Allow::cidr("127.0.0.0/8", vec![port]).unwrap()], ..Plan::default() })
}

impl Stage {
    /// Tells the hooks of the first tenant that a tool was used.
    fn used(&self) {
        let who = Identity { tenant_id: TenantId::default_tenant(), ..Identity::top("main", "s", TurnId::fresh()) };
        let call = ToolCall { id: "c1".into(), tool: "exec".into(), raw_tool: "exec".into(), arguments: Object::new() };
        let output = ToolOutput::ok("done");
        let what = ObservedEvent::PostToolUse { call, output, duration: Duration::ZERO, substituted: false };
        self.engine.dispatcher(who).tell(what);
    }

    /// The rows so far, oldest first.
    fn rows(&self) -> Vec<Value> {
        let query = ExecutionQuery { limit: 100, ..ExecutionQuery::of(TenantScope::All) };
        let mut rows = self.store.executions(&query).unwrap();
        rows.reverse();
        rows.iter().map(|row| json!(row.to_json())).collect()
    }
}

#[tokio::test]
async fn a_row_keeps_the_status_how_often_was_tried_and_whether_it_was_json() {
    let answers = [
        (StubAnswer::new(200, "<html>"), json!(["allow", 0, null, 200, true])),
        (StubAnswer::new(204, ""), json!(["allow", 0, null, 204, true])),
        (StubAnswer::json("{}"), json!(["allow", 0, null, 200, null])),
        (StubAnswer::json(r#"{"decision":"block"}"#), json!(["block", 0, null, 200, null])),
        (StubAnswer::new(404, ""), json!(["error", 0, "client error 404 (no retry)", 404, null])),
        (StubAnswer::new(302, ""), json!(["error", 0, "unexpected status 302", 302, null])),
        (StubAnswer::json("[]"), json!(["error", 0, "reply: must be a JSON object, got an array", 200, null])),
    ];
    let again = [
        ([StubAnswer::new(503, ""), StubAnswer::json("{}")], json!(["allow", 1, null, 200, null])),
        ([StubAnswer::new(503, ""), StubAnswer::new(500, "")], json!(["error", 1, "server error 500", 500, null])),
        (
            [StubAnswer::new(500, ""), StubAnswer::new(401, "")],
            json!(["error", 1, "client error 401 (no retry)", 401, null]),
        ),
    ];
    let (once, twice) = (answers.iter().map(|(it, _)| it.clone()), again.iter().flat_map(|(both, _)| both.clone()));
    let server = HttpStub::start(once.chain(twice).collect()).await;
    let stage = beside(&server);
    let mut record = http(&format!("{}/check", server.url()));
    (record["event"], record["breaker"]) = (json!("post_tool_use"), json!("off"));
    stage.create(&of_default(CallerRole::Admin), record).await;
    let expected: Vec<Value> = answers.into_iter().map(|(_, row)| row).chain(again.map(|(_, row)| row)).collect();
    for (before, expected) in expected.iter().enumerate() {
        stage.used();
        stage.until(|stage| stage.rows().len() > before).await;
        let row = stage.rows().remove(before);
        let metadata = &row["metadata"];
        let kept = json!([row["decision"], row["retry"], row["error"], metadata["http_status"], metadata["non_json"]]);
        assert_eq!(kept, *expected);
    }
}

#[tokio::test]
async fn what_cannot_be_decrypted_is_never_sent() {
    let server = HttpStub::start(vec![StubAnswer::json("{}")]).await;
    let stage = beside(&server);
    let id = stage.create(&of_default(CallerRole::Admin), http(&server.url())).await;
    assert_eq!(stage.gate(DEFAULT_TENANT, "exec").await, "allow");
    let mut moved = stage.row(&id);
    moved.config["headers"]["Authorization"] = json!("aes-gcm:fake:of another row");
    stage.write(RuleChange::Update { hook: moved.into(), if_version: None, action: "updated" });
    stage.rule_cache.refresh().unwrap();
    let said = stage.gate(DEFAULT_TENANT, "exec").await;
    assert_eq!(said, "block: hook \"webhook\" failed: it is unavailable");
    assert_eq!(server.seen().len(), 1);
}
