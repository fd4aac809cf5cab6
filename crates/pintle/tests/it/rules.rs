//! Rules that are kept in a store.

use std::path::Path;

use pintle::json::{Value, json};
use pintle::llm::{LlmReply, LlmRequest};
use pintle::prelude::*;
use pintle::{Judge, PintleStore, PintleStoreError};

use crate::host::{TOOLS, Till, refund};

const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

fn keep(folder: &Path) -> PintleStore {
    PintleStore::at("sqlite://agent.db", folder).key(KEY)
}

fn open(keep: PintleStore) -> Pintle {
    Pintle::open(keep.open().unwrap(), &TOOLS).unwrap()
}

fn rule(tenant: &Tenant) -> pintle::Rules {
    tenant.rules().unwrap().by("ada")
}

fn blocks(members: Value) -> Value {
    let mut record = json!({
        "name": "shut", "event": "pre_tool_use", "handler_type": "command", "scope": "tenant", "matcher": "^refund$",
        "config": {"command": "echo 'not today' >&2; exit 2"},
    });
    for (name, value) in members.as_object().unwrap().iter() {
        record[name.as_str()] = value.clone();
    }
    record
}

async fn came(pintle: &Pintle, tenant: &str, agent: &str) -> String {
    let turn = pintle.tenant(tenant).unwrap().turn(agent, "s", TurnId::fresh());
    match turn.call(refund("c1"), &Till::default()).await {
        Ok(done) => done.output.for_llm,
        Err(stop) => stop.text(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_is_in_force_when_it_is_written_and_in_another_host_soon_after() {
    let folder = tempfile::tempdir().unwrap();
    let (pintle, other) = (open(keep(folder.path())), open(keep(folder.path())));
    let default = pintle.tenant("default").unwrap();
    assert_eq!(came(&pintle, "default", "support").await, "refund done");
    let under_way = default.turn("support", "s", TurnId::fresh());
    let written = rule(&default).create(&blocks(json!({}))).await.unwrap();
    assert_eq!(written.warnings, Vec::<String>::new());
    let blocked = "Hook blocked: pre_tool_use: shut: not today";
    assert_eq!(came(&pintle, "default", "support").await, blocked);
    assert!(matches!(under_way.call(refund("c1"), &Till::default()).await, Err(Stop::Refused(_))));
    while came(&other, "default", "support").await != blocked {
        tokio::task::yield_now().await;
    }
    rule(&default).enable(&written.id, false).await.unwrap();
    assert_eq!(came(&pintle, "default", "support").await, "refund done");
    let listed = rule(&default).list().await.unwrap();
    assert!(listed.iter().any(|rule| rule["id"] == written.id.as_str() && rule["created_by"] == "ada"), "{listed:?}");
    let history = rule(&default).history(9).await.unwrap();
    assert!(history.iter().any(|run| run["decision"] == "block"), "{history:?}");
    rule(&default).delete(&written.id).await.unwrap();
    assert_eq!(rule(&default).get(&written.id).await.unwrap_err().code, "NOT_FOUND");
    for host in [pintle, other] {
        let left = host.close(Duration::from_secs(10)).await;
        assert_eq!(left, pintle::Left::default());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_come_from_the_store_and_their_rules_are_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let pintle = open(keep(folder.path()).judged_by(Never));
    assert!(pintle.tenant("acme").is_err());
    let acme = pintle.add_tenant("acme").unwrap();
    // Nobody lives where the rules for everybody stand, and a name is nobody's id.
    assert!(pintle.tenant("global").is_err());
    assert_ne!(pintle.add_tenant(acme.id()).unwrap().id(), acme.id());
    assert_eq!(pintle.tenant("acme").unwrap().id(), acme.id());
    assert_eq!(open(keep(folder.path())).tenant("acme").unwrap().id(), acme.id(), "every host knows it");
    let judged = json!({
        "name": "judge", "event": "pre_tool_use", "handler_type": "prompt", "scope": "tenant", "matcher": "^refund$",
        "config": {"prompt_template": "May this go on?", "model": "haiku"},
    });
    let written = rule(&acme).create(&judged).await.unwrap();
    let default = pintle.tenant("default").unwrap();
    assert_eq!(rule(&default).get(&written.id).await.unwrap_err().code, "NOT_FOUND");
    assert_eq!(rule(&default).delete(&written.id).await.unwrap_err().code, "NOT_FOUND");
    assert_eq!(came(&pintle, "default", "support").await, "refund done");
    let text = came(&pintle, "acme", "support").await;
    assert!(text.starts_with("Hook blocked: pre_tool_use: judge"), "{text}");
}

/// A judge that is out.
struct Never;

impl Judge for Never {
    fn judge<'a>(&'a self, request: LlmRequest) -> Fut<'a, Result<LlmReply, String>> {
        assert_eq!(request.model, "haiku");
        Box::pin(async { Err("nobody is in".to_owned()) })
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_of_an_agent_holds_from_its_first_turn_on() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(keep(folder.path()));
    assert_eq!(came(&first, "default", "support").await, "refund done");
    let of_agent = blocks(json!({"scope": "agent", "agent_ids": ["support"]}));
    rule(&first.tenant("default").unwrap()).create(&of_agent).await.unwrap();
    assert!(came(&first, "default", "support").await.contains("not today"));
    assert_eq!(came(&first, "default", "clerk").await, "refund done");
    // A host that never heard of the agent before.
    let second = open(keep(folder.path()));
    assert!(came(&second, "default", "support").await.contains("not today"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_work_is_an_error_where_it_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let bad = |keep: PintleStore| keep.open().err().unwrap();
    assert!(matches!(bad(PintleStore::at("mysql://x", folder.path())), PintleStoreError::Store(_)));
    assert!(matches!(bad(PintleStore::at("memory:", folder.path()).key("short")), PintleStoreError::Key(_)));
    assert!(matches!(bad(keep(folder.path()).scripts_by(Path::new("/bin/true"))), PintleStoreError::Worker { .. }));
    assert!(matches!(bad(keep(folder.path()).may_reach("a b", &[])), PintleStoreError::Allowed(_)));
    let pintle = open(keep(folder.path()));
    let rules = rule(&pintle.tenant("default").unwrap());
    let script = json!({
        "event": "pre_tool_use", "handler_type": "script", "scope": "tenant",
        "config": {"source": "function handle(event) { return {}; }"},
    });
    let refused = rules.create(&script).await.unwrap_err();
    assert!(refused.message.contains("there is no program here that runs scripts"), "{refused}");
    let without = open(keep(folder.path()).commands(false));
    let refused = rule(&without.tenant("default").unwrap()).create(&blocks(json!({}))).await.unwrap_err();
    assert!(refused.message.contains("command"), "{refused}");
    assert!(Pintle::open(Stores::none(), &TOOLS).unwrap().tenant("default").unwrap().rules().is_none());
}
