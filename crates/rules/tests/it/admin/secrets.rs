//! Secrets go in, and never come out.

use pintle_domain::id::HookId;
use pintle_domain::json::{Value, json};
use pintle_domain::store::{AuditStore as _, RuleStore as _};
use pintle_rules::admin::CallerRole;

use super::stage::{Stage, http, of_default};

const SECRET: &str = "opensesame";
const SIGNING: &str = "whsec_b3BlbnNlc2FtZQ==";

#[tokio::test]
async fn no_answer_and_no_row_has_one() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let mut record = http("https://example.org/");
    record["config"]["secret_headers"] = json!(["x-api-key"]);
    record["config"]["headers"]["X-Api-Key"] = json!(SECRET);
    record["config"]["signing_secret"] = json!(SIGNING);
    let id = stage.create(&admin, record).await;
    let seen = stage.get(&admin, &id).await;
    let masked = json!({"Authorization": "********", "X-Plain": "seen", "X-Api-Key": "********"});
    assert_eq!((&seen["config"]["headers"], &seen["config"]["signing_secret"]), (&masked, &json!("********")));
    let update = json!({"hookId": id, "updates": {"config": seen["config"], "name": "renamed"}});
    stage.ok(&admin, "hooks.update", update).await;

    let row = stage.store.hook(&HookId::from(id.as_str())).unwrap().unwrap();
    let kept = row.config["headers"]["Authorization"].as_str().unwrap();
    assert!(kept.starts_with("aes-gcm:fake:") && kept.contains("/config.headers.authorization/"), "{kept}");
    assert_eq!(row.name, "renamed");
    let mut everything = vec![json!(row), seen, stage.ok(&admin, "hooks.list", json!({})).await];
    everything.push(json!(stage.rule_admin.changes(&admin, &id, 10).await.unwrap()));
    everything.extend(stage.store.audit_entries(&row.tenant_id, 1, 100).unwrap().into_iter().map(|it| it.body.into()));
    everything.push(stage.ok(&admin, "hooks.test", json!({"hookId": id})).await);
    for document in everything {
        let text = document.to_string();
        assert!(!text.contains(SECRET) && !text.contains(SIGNING), "{text}");
    }
    let log = json!(stage.rule_admin.changes(&admin, &id, 10).await.unwrap()).to_string();
    assert!(!log.contains("aes-gcm:"), "{log}");
}

#[tokio::test]
async fn a_new_origin_or_a_new_secret_is_sent_anew() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let id = stage.create(&admin, http("https://example.org/")).await;
    let config = |url: &str, secret: &str| json!({"url": url, "headers": {"Authorization": secret}});
    let update = |config: Value| json!({"hookId": id, "updates": {"config": config}});
    let no = "INVALID_REQUEST secret \"Authorization\" must be sent anew";
    assert_eq!(stage.no(&admin, "hooks.update", update(config("https://example.com/", "********"))).await, no);
    assert_eq!(
        stage
            .no(&admin, "hooks.create", {
                let mut record = http("https://example.org/");
                record["config"]["headers"]["Authorization"] = json!("********");
                record
            })
            .await,
        no
    );
    stage.ok(&admin, "hooks.update", update(config("https://example.org/other", "********"))).await;
    stage.ok(&admin, "hooks.update", update(config("https://example.com/", "Bearer another"))).await;
    let row = stage.store.hook(&HookId::from(id.as_str())).unwrap().unwrap();
    assert!(row.config["headers"]["Authorization"].as_str().unwrap().ends_with("rehtona reraeB"));
}
