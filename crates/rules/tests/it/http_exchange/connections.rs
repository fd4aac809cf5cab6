//! Which requests share a connection.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::mpsc;

use pintle_egress::{Allow, Egress, KeepAlive};
use tokio::task::JoinSet;

use super::server::{Do, Server, bytes, ok, status};
use super::{Names, exchange, fault, named, of, post};

fn named_url(server: &Server) -> String {
    format!("http://hooks.example:{}/", server.at.port())
}

#[tokio::test]
async fn the_same_pin_uses_the_same_connection() {
    let server = Server::start(|_| ok("{}")).await;
    let names = Names::of(&[&["127.0.0.1"]]);
    let (exchange, _) = named(&server, names.clone());
    for _ in 0..5 {
        post(&exchange, &named_url(&server)).await.unwrap();
    }
    assert_eq!((server.connections(), server.log().opened), (vec![0; 5], 1));
    // Reuse or not, every request resolves.
    assert_eq!(names.asked(), ["hooks.example"; 5]);
}

#[tokio::test]
async fn another_answer_of_the_resolver_gets_another_connection() {
    let server = Server::everywhere(|_| ok("{}")).await;
    let names = Names::of(&[
        &["127.0.0.1"],
        &["127.0.0.2"],
        // Each of the two is among the answers now, and the later one has waited less.
        &["127.0.0.1", "127.0.0.2"],
        &["127.0.0.1", "127.0.0.3"],
        &["127.0.0.3"],
        &["127.0.0.3", "127.0.0.2"],
    ]);
    let (exchange, _) = named(&server, names);
    for _ in 0..6 {
        post(&exchange, &named_url(&server)).await.unwrap();
    }
    assert_eq!(server.connections(), [0, 1, 1, 0, 2, 2]);
}

#[tokio::test]
async fn a_kept_connection_does_not_outlive_its_pin() {
    let server = Server::start(|_| ok("{}")).await;
    let names = Names::of(&[&["127.0.0.1"], &["127.0.0.9"], &["127.0.0.9"], &["169.254.169.254"], &["127.0.0.1"]]);
    let (exchange, _) = named(&server, names);
    post(&exchange, &named_url(&server)).await.unwrap();
    let text = fault(post(&exchange, &named_url(&server)).await);
    assert!(text.starts_with("no connection to `hooks.example`: "), "{text}");
    let text = fault(post(&exchange, &named_url(&server)).await);
    assert_eq!(text, r#"ssrf: "hooks.example" resolved to blocked IP 169.254.169.254"#);
    post(&exchange, &named_url(&server)).await.unwrap();
    assert_eq!(server.connections(), [0, 0]);
}

#[tokio::test]
async fn a_connection_belongs_to_the_host_that_it_was_opened_for() {
    let server = Server::start(|_| ok("{}")).await;
    let (exchange, _) = exchange(&server);
    let port = server.at.port();
    for host in ["a.example", "b.example", "127.0.0.1", "A.example", "a.example"] {
        post(&exchange, &format!("http://{host}:{port}/")).await.unwrap();
    }
    assert_eq!(server.connections(), [0, 1, 2, 0, 0]);
}

#[tokio::test]
async fn requests_at_the_same_time_have_connections_of_their_own() {
    let server = Server::start(|_| ok("{}")).await;
    let (exchange, _) = exchange(&server);
    let mut posts = JoinSet::new();
    for _ in 0..8 {
        let (exchange, url) = (exchange.clone(), server.url());
        posts.spawn(async move { post(&exchange, &url).await.unwrap() });
    }
    assert_eq!(posts.join_all().await.len(), 8);
    let opened = server.log().opened;
    for _ in 0..8 {
        post(&exchange, &server.url()).await.unwrap();
    }
    assert_eq!(server.log().opened, opened);
}

#[tokio::test]
async fn a_connection_that_the_server_closed_meanwhile_costs_no_attempt() {
    let server = Server::start(|_| Do::SayAndClose(bytes(200, b"{}"))).await;
    let (exchange, time) = exchange(&server);
    for opened in 1..5 {
        let response = post(&exchange, &server.url()).await.unwrap();
        assert_eq!(response.retries, 0);
        server.until(|log| log.closed == opened).await;
    }
    assert_eq!((server.connections(), time.retries()), (vec![0, 1, 2, 3], 0));
}

/// The farewell is in the socket, but nobody has looked: this thread, which also is the reactor's, was busy.
#[tokio::test]
async fn a_farewell_that_was_not_heard_yet_costs_no_attempt() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let (close, told_to_close) = mpsc::channel::<()>();
    let (closed, told_closed) = mpsc::channel::<()>();
    let server = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n{}") {
                let mut byte = [0];
                stream.read_exact(&mut byte).unwrap();
                request.extend(byte);
            }
            stream.write_all(&bytes(200, b"{}")).unwrap();
            told_to_close.recv().unwrap();
            drop(stream);
            closed.send(()).unwrap();
        }
    });
    let allow = vec![Allow::cidr("127.0.0.1", vec![at.port()]).unwrap()];
    let (exchange, time) = of(KeepAlive::new(Egress::new(allow)));
    for _ in 0..2 {
        assert_eq!(post(&exchange, &format!("http://{at}/")).await.unwrap().retries, 0);
        close.send(()).unwrap();
        told_closed.recv().unwrap();
    }
    server.join().unwrap();
    assert_eq!(time.retries(), 0);
}

#[tokio::test]
async fn a_connection_whose_body_was_not_read_is_not_kept() {
    let close = Do::Say(b"HTTP/1.1 200 x\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}".to_vec());
    let server = Server::of(vec![status(404, "no"), status(302, "no"), close, ok("{}"), ok("{}")]).await;
    let (exchange, _) = exchange(&server);
    for good in [false, false, true, true, true] {
        assert_eq!(post(&exchange, &server.url()).await.is_ok(), good);
    }
    assert_eq!(server.connections(), [0, 1, 2, 3, 3]);
}

#[tokio::test]
async fn a_dropped_exchange_closes_its_connection() {
    let server = Server::of(vec![Do::Nothing]).await;
    let (exchange, _) = exchange(&server);
    let url = server.url();
    tokio::select! {
        answered = post(&exchange, &url) => panic!("{answered:?}"),
        () = server.until(|log| log.seen.len() == 1) => {}
    }
    server.until(|log| log.closed == 1).await;
}

#[tokio::test]
async fn the_second_address_is_used_when_the_first_is_dead() {
    let server = Server::start(|_| ok("{}")).await;
    let names = Names::of(&[&["127.0.0.9", "127.0.0.8", "127.0.0.1"]]);
    let (exchange, time) = named(&server, names);
    assert_eq!(post(&exchange, &named_url(&server)).await.unwrap().retries, 0);
    assert_eq!((server.log().opened, time.retries()), (1, 0));
}

#[tokio::test]
async fn what_one_tenant_opened_another_does_not_use_without_leave() {
    let server = Server::start(|_| ok("{}")).await;
    let allow = Allow::cidr("127.0.0.1", vec![server.at.port()]).unwrap();
    let allow = allow.for_tenants(&["acme".into()]).unwrap();
    let (exchange, _) = of(KeepAlive::new(Egress::new(vec![allow])));
    let url = server.url();
    for (tenant, may) in [(Some("acme"), true), (None, false), (Some("default"), false), (Some("acme"), true)] {
        let answered = post(&exchange.for_tenant(tenant), &url).await;
        assert_eq!(answered.is_ok(), may, "{tenant:?}: {answered:?}");
    }
    assert_eq!(server.connections(), [0, 0]);
}
