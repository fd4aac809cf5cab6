//! What happened and nobody told, because no process that would have was there any more: it is told at the next start.

use serde_json::{Value, json};

use super::server::{Server, WITH_TOKEN};
use super::webhooks::{OLD, Receiver, body, ok, shuts};
use crate::env::PINTLE;
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
