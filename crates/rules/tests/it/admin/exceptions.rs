//! Exceptions of rules: a person is asked where a rule refuses, as long as the exception acts.

use pintle_domain::json::{Value, json};
use pintle_rules::admin::CallerRole;

use super::stage::{ACME, Stage, of_acme, of_default, script};

const DEFAULT: &str = pintle_domain::id::DEFAULT_TENANT;

const REFUSED: &str = "block: guard says so";

const ASKED: &str = "ask: exception says so";

/// The rule that asks about all calls of `exec` that `guard` refuses.
fn exception(scope: &str, guard: &str) -> Value {
    let mut record = script(scope, "exception", "ask");
    record["matcher"] = "".into();
    record["if_expr"] = "tool_name == \"exec\"".into();
    record["metadata"] = json!({"exception_of": guard});
    record
}

#[tokio::test]
async fn a_rule_refuses_again_as_soon_as_its_exception_does_not_act() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let guard = stage.create(&admin, script("tenant", "guard", "block")).await;
    let before = stage.get(&admin, &guard).await;
    let asks = stage.create(&admin, exception("tenant", &guard)).await;
    assert_eq!(stage.gate(DEFAULT, "exec").await, ASKED);
    assert_eq!(stage.get(&admin, &guard).await, before, "the rule itself is as its author wrote it");
    for (enabled, expected) in [(false, REFUSED), (true, ASKED)] {
        stage.ok(&admin, "hooks.toggle", json!({"hookId": asks, "enabled": enabled})).await;
        assert_eq!(stage.gate(DEFAULT, "exec").await, expected);
    }
    // The rule may change meanwhile.
    stage.ok(&admin, "hooks.update", json!({"hookId": guard, "updates": {"if_expr": "depth == 0"}})).await;
    assert_eq!(stage.gate(DEFAULT, "exec").await, ASKED);
    stage.ok(&admin, "hooks.delete", json!({"hookId": asks})).await;
    assert_eq!(stage.gate(DEFAULT, "exec").await, REFUSED);
}

#[tokio::test]
async fn the_question_is_that_of_the_exception_where_another_rule_asks_first() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let guard = stage.create(&admin, script("tenant", "guard", "block")).await;
    let mut every = script("tenant", "every", "ask");
    every["priority"] = json!(900);
    stage.create(&admin, every).await;
    assert_eq!(stage.gate(DEFAULT, "exec").await, REFUSED);
    stage.create(&admin, exception("tenant", &guard)).await;
    assert_eq!(stage.gate(DEFAULT, "exec").await, ASKED);
}

#[tokio::test]
async fn an_exception_that_is_not_asked_everywhere_is_none() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let guard = stage.create(&admin, script("tenant", "guard", "block")).await;
    let asks = stage.create(&admin, exception("tenant", &guard)).await;
    let check = async |updates: Value, expected: &str| {
        stage.ok(&admin, "hooks.update", json!({"hookId": asks, "updates": updates})).await;
        assert_eq!(stage.gate(DEFAULT, "exec").await, expected);
    };
    check(json!({"matcher": "^other$"}), REFUSED).await;
    check(json!({"matcher": ""}), ASKED).await;
    // Of one that has no condition the rule would see nothing at all.
    check(json!({"if_expr": ""}), REFUSED).await;
}

#[tokio::test]
async fn nobody_makes_exceptions_of_rules_that_are_not_theirs_to_change() {
    let stage = Stage::new();
    let (admin, owner) = (of_default(CallerRole::Admin), of_default(CallerRole::Owner));
    let guard = stage.create(&owner, script("global", "guard", "block")).await;
    stage.create(&admin, exception("tenant", &guard)).await;
    stage.create(&of_acme(CallerRole::Admin), exception("tenant", &guard)).await;
    for tenant in [DEFAULT, ACME] {
        assert_eq!(stage.gate(tenant, "exec").await, REFUSED);
    }
    stage.create(&owner, exception("global", &guard)).await;
    assert_eq!(stage.gate(ACME, "exec").await, ASKED);
}
