//! What happened and nobody told, because no process that would have was there any more: it is told at the next start.

use serde_json::{Value, json};

use super::server::{Server, WITH_TOKEN};
use super::webhooks::{OLD, Receiver, body, ok, shuts};
use crate::env::{PINTLE, TestEnv};
use crate::run::{DONE, LISTS, scripted};

#[test]
fn what_nobody_kept_is_found_again_and_told_once() {
    let receiver = Receiver::answering(ok(20));
    let events = ["execution.blocked", "hook.changed"];
    let config = format!("{WITH_TOKEN}{}", receiver.entry(&events));
    let secret = [("HOOK_SECRET", OLD)];
    let mut server = Server::start_with(scripted(&[LISTS, DONE].join(","), &config), &secret);
    let hook = server.admin("anna").done("hooks.create", shuts())["hookId"].clone();
    receiver.told(1);
    server.signal(nix::sys::signal::Signal::SIGKILL);
    server.ended();
    // Nobody tells of this: a program that knows no receivers does it.
    let env = server.into_env();
    let seen = env.run(env.command(PINTLE).args(["run", "look"]).env("HOOK_SECRET", OLD), "");
    assert_eq!(seen.code, Some(0), "{seen:?}");
    let server = Server::start_with(env, &secret);
    let told = receiver.told(2);
    let blocked = body(&told[1]);
    assert_eq!((&blocked["type"], &blocked["seq"]), (&json!("execution.blocked"), &json!(2)), "{blocked}");
    assert_eq!((&blocked["data"]["tool"], &blocked["data"]["reason"]), (&json!("list_dir"), &json!("ask [REDACTED]")));
    // What was told before is not told once more, and what comes is told as ever.
    server.admin("anna").done("hooks.toggle", json!({ "hookId": hook, "enabled": false }));
    let told = receiver.told(3);
    let types: Vec<Value> = told.iter().map(|request| body(request)["type"].clone()).collect();
    assert_eq!(types, ["hook.changed", "execution.blocked", "hook.changed"]);
    assert_eq!(body(&told[2])["data"]["action"], "toggled");
}

/// What a server that was killed right then leaves: the turn's end and the low budget are kept, and nobody was told.
#[test]
fn a_failed_turn_and_a_low_budget_are_found_again_and_told_once() {
    let receiver = Receiver::answering(ok(20));
    let config = format!("{WITH_TOKEN}{}", receiver.entry(&["turn.failed", "budget.low", "hook.changed"]));
    let secret = [("HOOK_SECRET", OLD)];
    let fails = r#"{"error": {"kind": "final", "message": "no such model"}, "repeat": true}"#;
    let mut server = Server::start_with(scripted(fails, &config), &secret);
    let mut anna = server.admin("anna");
    anna.done("hooks.create", shuts());
    receiver.told(1);
    anna.refused("chat.send", json!({ "message": "go" }));
    let first = body(&receiver.told(2)[1]);
    assert_eq!(first["type"], "turn.failed", "{first}");
    assert!(first["data"]["error"].as_str().unwrap().contains("no such model"), "{first}");
    server.signal(nix::sys::signal::Signal::SIGKILL);
    server.ended();
    let env = server.into_env();
    // Another server works the next turn that fails, and knows of no receivers; a judge spends the budget.
    let told_of = std::fs::read_to_string(env.path("config/pintle/pintle.toml")).unwrap();
    let silent = told_of.split("[[gateway.webhooks]]").next().unwrap();
    env.user_config(silent);
    let mut server = Server::start(env);
    server.admin("ben").refused("chat.send", json!({ "message": "go" }));
    // To the microsecond: a whole second may have begun before the last server looked.
    let spends = "import datetime, glob, sqlite3, sys
[file] = glob.glob(sys.argv[1] + '/**/pintle.db', recursive=True)
store = sqlite3.connect(file, timeout=30)
now = datetime.datetime.now(datetime.timezone.utc).strftime('%Y-%m-%dT%H:%M:%S.%fZ')
changed = store.execute('UPDATE tenant_hook_budget SET used = 900000, last_warned_at = ?', (now,))
assert changed.rowcount == 1
store.commit()";
    server.admin("ben").done("hooks.budget.get", json!({}));
    server.signal(nix::sys::signal::Signal::SIGKILL);
    server.ended();
    let env = server.into_env();
    let root = env.path("").display().to_string();
    let seen = TestEnv::output(env.command("python3").args(["-c", spends, &root]), "");
    assert!(seen.status.success(), "{seen:?}");
    env.user_config(&told_of);
    let server = Server::start_with(env, &secret);
    let told: Vec<Value> = receiver.told(4)[2..].iter().map(body).collect();
    let of = |kind: &str| told.iter().find(|it| it["type"] == kind).unwrap_or_else(|| panic!("{kind}: {told:#?}"));
    let failed = of("turn.failed");
    assert_ne!(failed["data"]["turnId"], first["data"]["turnId"], "{failed}");
    assert_eq!(of("budget.low")["data"]["remaining"], 100_000);
    // Each once.
    server.admin("anna").done("hooks.create", {
        let mut other = shuts();
        other["name"] = json!("other");
        other
    });
    assert_eq!(body(&receiver.told(5)[4])["type"], "hook.changed");
}
