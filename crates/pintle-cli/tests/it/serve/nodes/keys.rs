//! The keys that nodes sign with: given to all of them, or named where they differ.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use pintle_domain::id::TenantId;
use pintle_domain::store::SecretDigest;
use serde_json::json;

use super::pair::Nodes;
use crate::env::PINTLE;
use crate::secrets::on_terminal;
use crate::serve::server::TOKEN;

const KEY: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const OTHER: &str = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210";

#[test]
fn nodes_with_one_key_know_each_other_and_one_with_another_is_named() {
    let nodes = Nodes::new();
    let a = nodes.start_with_key("a", KEY);
    let b = nodes.start_with_key("b", &format!("ed25519-seed:{KEY}"));
    assert!(!b.seen.iter().any(|line| line.contains("audit chain with the key")), "{:#?}", b.seen);
    // What one of them sealed, the other one knows.
    a.client("system").done("members.add", json!({ "userId": "ben", "role": "viewer" }));
    let members = b.client("system").done("members.list", json!({}));
    assert!(members["members"][0]["enabled"] != false && members["members"][0]["userId"] == "ben", "{members}");
    drop(b);
    let mut c = nodes.start_with_key("c", OTHER);
    let named = "give all nodes the same PINTLE_AUDIT_SIGNING_KEY";
    if !c.seen.iter().any(|line| line.contains(named)) {
        c.until(named);
    }
    // It does not know who the others let in.
    let members = c.client("system").done("members.list", json!({}));
    assert_eq!(members["members"][0]["enabled"], false, "{members}");
    let config = nodes.env.path("config/pintle/c.toml").display().to_string();
    let home = nodes.env.path("c").display().to_string();
    let mut doctor = nodes.env.command(PINTLE);
    doctor.args(["-c", &config, "--home", &home, "doctor"]).env("PINTLE_AUDIT_SIGNING_KEY", OTHER);
    let seen = nodes.env.run(doctor.env("PINTLE_TEST_TOKEN", TOKEN), "");
    assert!(seen.out.contains("the node `a` signs the audit chain with the key"), "{seen}");
}

/// A command in another home, with none of the variables that the nodes share.
#[test]
fn a_key_that_no_node_would_take_is_not_made() {
    let nodes = Nodes::new();
    let a = nodes.start_with_key("a", KEY);
    a.client("system").done("members.add", json!({ "userId": "ben", "role": "viewer" }));
    let config = nodes.env.path("config/pintle/a.toml").display().to_string();
    let home = nodes.env.path("elsewhere").display().to_string();
    let there = |args: &[&str]| {
        let args = [&["-c", &config, "--home", &home], args].concat();
        let seen = on_terminal(&nodes.env, &[("PINTLE_TEST_TOKEN", TOKEN)], &args);
        let said = format!("{} {}", seen.out, seen.err).split_whitespace().collect::<Vec<_>>().join(" ");
        (seen.code, said)
    };
    for args in [
        &["keys", "create", "k", "--owner", "eve", "--scope", "operator.read"][..],
        &["members", "add", "eve", "--role", "viewer"],
        &["members", "remove", "ben"],
        &["tenants", "create", "acme"],
        &["hooks", "add", "--starter"],
        &["budget", "set", "5"],
    ] {
        let (code, said) = there(args);
        assert!(code == Some(1) && said.contains("the key here differs from the one"), "{args:?}: {said}");
        assert!(said.contains("`PINTLE_ENCRYPTION_KEY`") && !said.contains("pintle_"), "{args:?}: {said}");
    }
    let members = a.client("system").done("members.list", json!({}));
    assert_eq!(members["members"].as_array().unwrap().len(), 1, "{members}");
    let (_, said) = there(&["doctor"]);
    assert_eq!(said.matches("the key here differs from the one that sealed").count(), 1, "{said}");
}

/// The status with which `GET /v1/models` is answered to whoever has `key`.
fn status(address: &str, key: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {key}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn whoever_has_the_password_of_the_database_lets_nobody_in() {
    let nodes = Nodes::new();
    let a = nodes.start("a");
    let made = a.client("system").done("api_keys.create", json!({ "name": "good", "scopes": ["operator.read"] }));
    let good = made["key"].as_str().unwrap();
    assert_eq!(status(&a.address, good), 200);
    let (secret, tenant) = ("pk_mine", TenantId::default_tenant());
    nodes.ask(&format!(
        "INSERT INTO members (tenant_id, user_id, role, created_at, created_by) \
         VALUES ('{tenant}', 'mallory', 'admin', now(), 'system'); \
         INSERT INTO api_keys (tenant_id, id, owner, name, shown, digest, scopes, created_at, created_by) \
         VALUES ('{tenant}', gen_random_uuid(), 'mallory', 'n', 's', '{}', 'operator.admin', now(), 'system')",
        SecretDigest::of(secret).as_str()
    ));
    assert_eq!((status(&a.address, secret), status(&a.address, good)), (401, 200));
    let config = nodes.env.path("config/pintle/a.toml").display().to_string();
    let mut doctor = nodes.env.command(PINTLE);
    let seen = nodes.env.run(doctor.args(["-c", &config, "doctor"]).env("PINTLE_TEST_TOKEN", TOKEN), "");
    assert!(seen.out.contains("the member `mallory` of tenant"), "{seen}");
    let verified = nodes.env.pintle(&["-c", &config, "audit", "verify"]);
    let said = format!("{}{}", verified.out, verified.err);
    assert!(verified.code == Some(1) && said.contains("the member `mallory` of tenant"), "{verified}");
}
