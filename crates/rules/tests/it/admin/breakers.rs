//! Circuit breakers, and who closes them.

use std::time::Duration;

use pintle_domain::id::{HookId, TenantId};
use pintle_domain::json::{Value, json};
use pintle_domain::store::{Actor, RuleStore as _};
use pintle_rules::admin::{Caller, CallerRole};

use super::stage::{ACME, Stage, of_acme, of_default, script};

const DEFAULT: &str = pintle_domain::id::DEFAULT_TENANT;

impl Stage {
    /// Opens a breaker in the store, as another process does.
    pub(crate) fn trip(&self, id: &str, tenant: &str) {
        let by =
            Actor { name: "system:breaker".into(), at: "2026-11-22T08:00:00Z".parse().unwrap(), reason: String::new() };
        self.store.trip(&HookId::from(id), &TenantId::from(tenant), &by).unwrap();
        self.rule_cache.refresh().unwrap();
    }

    /// Waits until the store has what `wanted` looks for: tasks of this process write it.
    pub(crate) async fn until(&self, wanted: impl Fn(&Self) -> bool) {
        let seen = async {
            while !wanted(self) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), seen).await.expect("it is written at last");
    }
}

fn state(hook: &Value) -> (Value, Value) {
    (hook["enabled"].clone(), hook["tripped_at"].clone())
}

fn tripped() -> (Value, Value) {
    (json!(false), json!("2026-11-22T08:00:00Z"))
}

fn on() -> (Value, Value) {
    (json!(true), Value::Null)
}

#[tokio::test]
async fn a_tripped_hook_comes_back_by_toggle_update_and_reset() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let id = stage.create(&admin, script("tenant", "guard", "allow")).await;
    for (method, params) in [
        ("hooks.toggle", json!({"hookId": id, "enabled": true})),
        ("hooks.update", json!({"hookId": id, "updates": {"name": "guard"}})),
        ("hooks.update", json!({"hookId": id, "updates": {"enabled": false, "name": "guard"}})),
        ("hooks.reset", json!({"hookId": id})),
    ] {
        stage.trip(&id, DEFAULT);
        assert_eq!(state(&stage.get(&admin, &id).await), tripped());
        let refused = stage.gate(DEFAULT, "exec").await;
        assert!(refused.contains("is off since 2026-11-22T08:00:00Z: circuit breaker, 5 blocks/timeouts"), "{refused}");
        assert_eq!(stage.gate(DEFAULT, "read").await, "allow", "only what matches is refused");
        stage.ok(&admin, method, params.clone()).await;
        assert_eq!(state(&stage.get(&admin, &id).await), on(), "{method} {params}");
        assert_eq!(stage.get(&admin, &id).await["disabled_reason"], "");
        assert_eq!(stage.gate(DEFAULT, "exec").await, "allow");
    }
    stage.trip(&id, DEFAULT);
    stage.ok(&admin, "hooks.toggle", json!({"hookId": id, "enabled": false})).await;
    assert_eq!(state(&stage.get(&admin, &id).await), (json!(false), Value::Null));
    assert_eq!(stage.gate(DEFAULT, "exec").await, "allow", "only the toggle switches it off");
    assert_eq!(stage.ok(&admin, "hooks.reset", json!({"hookId": id})).await["enabled"], false);
}

#[tokio::test]
async fn a_tripped_global_hook_is_each_tenants_to_bring_back() {
    let stage = Stage::new();
    let owner = of_default(CallerRole::Owner);
    let id = stage.create(&owner, script("global", "guard", "allow")).await;
    let admin = of_acme(CallerRole::Admin);
    for method in ["hooks.toggle", "hooks.reset"] {
        stage.trip(&id, ACME);
        stage.trip(&id, DEFAULT);
        assert_eq!(state(&stage.get(&admin, &id).await), tripped());
        let list = stage.ok(&admin, "hooks.list", json!({"enabled": false})).await;
        assert_eq!(list["hooks"].as_array().unwrap().len(), 1);
        let seen = stage.get(&owner, &id).await;
        assert_eq!(state(&seen), on(), "the row itself is on");
        assert_eq!(seen["trips"].as_array().unwrap().len(), 2);
        assert!(stage.get(&admin, &id).await.get("trips").is_none());
        let params =
            if method == "hooks.toggle" { json!({"hookId": id, "enabled": true}) } else { json!({"hookId": id}) };
        assert_eq!(stage.ok(&admin, method, params).await["enabled"], true);
        assert_eq!(state(&stage.get(&admin, &id).await), on());
        assert_eq!(stage.gate(ACME, "exec").await, "allow");
        assert!(stage.gate(DEFAULT, "exec").await.starts_with("block"), "the other tenant's is still open");
        assert_eq!(state(&stage.get(&of_default(CallerRole::Viewer), &id).await), tripped());
        assert_eq!(stage.row(&id).version, 1, "the row is never touched");
    }
}

#[tokio::test]
async fn an_owner_resets_one_or_all() {
    let stage = Stage::new();
    let owner = of_default(CallerRole::Owner);
    let id = stage.create(&owner, script("global", "guard", "allow")).await;
    let open = async |by: &Caller| stage.get(by, &id).await["trips"].as_array().unwrap().len();
    let both = || {
        stage.trip(&id, ACME);
        stage.trip(&id, DEFAULT);
    };
    both();
    stage.ok(&owner, "hooks.reset", json!({"hookId": id, "tenantId": ACME})).await;
    assert_eq!(open(&owner).await, 1);
    stage.ok(&owner, "hooks.reset", json!({"hookId": id})).await;
    assert_eq!(open(&owner).await, 0);
    both();
    stage.ok(&owner, "hooks.update", json!({"hookId": id, "updates": {"enabled": false}})).await;
    assert_eq!((open(&owner).await, stage.row(&id).enabled), (0, true), "an edit never switches a tripped gate off");
    both();
    stage.ok(&owner, "hooks.toggle", json!({"hookId": id, "enabled": false})).await;
    assert_eq!((open(&owner).await, stage.row(&id).enabled), (0, false));
    assert_eq!(stage.gate(ACME, "exec").await, "allow");
}

#[tokio::test]
async fn a_hook_that_is_no_longer_valid_does_not_come_back() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let id = stage.create(&admin, script("tenant", "guard", "allow")).await;
    let broken = pintle_domain::rule::Rule { if_expr: "1 +".into(), enabled: false, ..stage.row(&id) };
    stage.write(pintle_domain::store::RuleChange::Update { hook: broken.into(), if_version: None, action: "updated" });
    let no = stage.no(&admin, "hooks.toggle", json!({"hookId": id, "enabled": true})).await;
    assert!(no.starts_with("INVALID_REQUEST hook: if_expr invalid: cel parse"), "{no}");
    assert!(!stage.row(&id).enabled);
}

#[tokio::test]
async fn what_others_changed_of_a_global_hook_is_not_in_a_tenants_log() {
    let stage = Stage::new();
    let owner = of_default(CallerRole::Owner);
    let id = stage.create(&owner, script("global", "guard", "allow")).await;
    stage.trip(&id, DEFAULT);
    stage.trip(&id, ACME);
    let actions = async |by: &Caller| -> Vec<String> {
        let lines = stage.rule_admin.changes(by, &id, 10).await.unwrap();
        lines.iter().map(|line| format!("{} {}", line.action, line.diff)).collect()
    };
    let own = actions(&of_acme(CallerRole::Admin)).await;
    assert_eq!((own.len(), own[0].as_str()), (2, "tripped []"), "{own:?}");
    assert!(!own.join("").contains(DEFAULT));
    let all = actions(&owner).await;
    assert_eq!(all.len(), 3);
    assert!(all[0].contains(ACME), "{all:?}");
}
