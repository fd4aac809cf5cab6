//! Names that lead somewhere harmless when they are looked at, and elsewhere the next time.

use std::net::IpAddr;

use pintle_egress::{Allow, Egress};

use super::ips;
use super::stage::{Stage, World};
use crate::http_exchange::server::{Server, ok, status};
use crate::http_exchange::{fault, post};

const INNER: &[&str] = &[
    "169.254.169.254",
    "10.0.0.1",
    "192.168.0.1",
    "0.0.0.0",
    "127.0.0.2",
    "::1",
    "::",
    "fd00::2",
    "fe80::1",
    "::ffff:127.0.0.2",
    "64:ff9b::7f00:2",
    "2002:7f00:2::1",
];

/// Says how many cases there were.
pub(super) async fn run(stage: &Stage) -> usize {
    for inner in INNER {
        let text = format!("ssrf: \"turning.example\" resolved to blocked IP {}", ips(&[inner])[0]);
        assert_eq!(between_requests(stage, ips(&[inner])).await, text);
        assert_eq!(between_attempts(stage, ips(&[inner])).await, text);
        once_it_was_looked_at(stage, ips(&[inner])).await;
    }
    for canary in stage.canaries() {
        once_it_was_looked_at(stage, vec![canary.ip()]).await;
    }
    INNER.len() * 3 + stage.canaries().len()
}

/// An open connection to the harmless address is there, and is not used for the second request.
async fn between_requests(stage: &Stage, inner: Vec<IpAddr>) -> String {
    let server = Server::start(|_| ok("{}")).await;
    let world = World::of(&[Some(ips(&["127.0.0.1"])), Some(inner)], &[Vec::new()]);
    let allow = vec![Allow::cidr("127.0.0.1", vec![server.at.port()]).unwrap()];
    let exchange = stage.exchange(Egress::new(allow).with_resolver(world));
    let url = format!("http://turning.example:{}/", server.at.port());
    post(&exchange, &url).await.unwrap();
    let text = fault(post(&exchange, &url).await);
    assert_eq!(server.log().seen.len(), 1);
    text
}

/// The harmless server asks for a second attempt.
async fn between_attempts(stage: &Stage, inner: Vec<IpAddr>) -> String {
    let server = Server::start(|_| status(503, "later")).await;
    let world = World::of(&[Some(ips(&["127.0.0.1"])), Some(inner)], &[Vec::new()]);
    let allow = vec![Allow::cidr("127.0.0.1", vec![server.at.port()]).unwrap()];
    let exchange = stage.exchange(Egress::new(allow).with_resolver(world));
    let text = fault(post(&exchange, &format!("http://turning.example:{}/", server.at.port())).await);
    assert_eq!(server.log().seen.len(), 1);
    text
}

/// Between the check and the connection: the address that was checked is the one that is dialled.
async fn once_it_was_looked_at(stage: &Stage, inner: Vec<IpAddr>) {
    let world = World::of(&[Some(ips(&["8.8.8.8"])), Some(inner)], &[Vec::new()]);
    let exchange = stage.diverted(Egress::new(Vec::new()).with_resolver(world));
    post(&exchange, &format!("http://turning.example:{}/", stage.port)).await.unwrap();
    assert_eq!(stage.dialled(), [format!("8.8.8.8:{}", stage.port)]);
}
