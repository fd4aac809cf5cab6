//! When there is a second attempt, and when time is over.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use pintle_egress::{Allow, Egress, KeepAlive, Resolver};
use pintle_rules::http::{Delivery, HttpFault};

use super::server::{Do, Server, ok, status};
use super::time::StillTime;
use super::{Names, delivery, exchange, fault, named, of, post, spec};

#[tokio::test]
async fn a_server_error_is_asked_once_more() {
    for code in [500, 502, 503, 504, 599] {
        let server = Server::of(vec![status(code, "down"), ok("up")]).await;
        let (exchange, time) = exchange(&server);
        let response = post(&exchange, &server.url()).await.unwrap();
        assert_eq!((&response.body[..], response.retries, time.retries()), (&b"up"[..], 1, 1));
        let seen = server.log().seen;
        assert_eq!(seen[0].all("idempotency-key"), seen[1].all("idempotency-key"));
        assert_eq!(seen[0].body, seen[1].body);
    }
}

#[tokio::test]
async fn there_is_no_third_attempt() {
    let server = Server::of(vec![status(500, ""), status(503, ""), ok("")]).await;
    let (exchange, time) = exchange(&server);
    let fault = post(&exchange, &server.url()).await.unwrap_err();
    assert_eq!((fault.to_string().as_str(), fault.status(), fault.retries()), ("server error 503", Some(503), 1));
    assert_eq!((server.log().seen.len(), time.retries()), (2, 1));
}

#[tokio::test]
async fn a_fault_says_how_often_was_tried() {
    for (answers, retries) in [
        (vec![status(404, "")], 0),
        (vec![status(500, ""), status(404, "")], 1),
        (vec![status(500, ""), Do::SayAndClose("HTTP/1.1 200 x\r\ncontent-length: 5\r\n\r\n{".into())], 1),
    ] {
        let server = Server::of(answers).await;
        let fault = post(&exchange(&server).0, &server.url()).await.unwrap_err();
        assert_eq!(fault.retries(), retries, "{fault}");
    }
}

#[tokio::test]
async fn a_connection_that_ends_before_the_head_is_asked_once_more() {
    for cut in ["", "HTTP/1.1 20", "HTTP/1.1 200 x\r\ncontent-le"] {
        let server = Server::of(vec![Do::SayAndClose(cut.into()), ok("up")]).await;
        let (exchange, time) = exchange(&server);
        let response = post(&exchange, &server.url()).await.unwrap();
        assert_eq!((&response.body[..], response.retries, time.retries()), (&b"up"[..], 1, 1), "{cut}");
        let server = Server::of(vec![Do::SayAndClose(cut.into()), Do::SayAndClose(cut.into()), ok("")]).await;
        let (exchange, _) = super::exchange(&server);
        let text = fault(post(&exchange, &server.url()).await);
        assert!(text.starts_with("the connection to `127.0.0.1` broke before the response: "), "{text}");
        assert_eq!(server.log().seen.len(), 2);
    }
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_tried_twice() {
    let server = Server::of(vec![]).await;
    let (exchange, time) = exchange(&server);
    let url = server.url();
    drop(server);
    let text = fault(post(&exchange, &url).await);
    assert!(text.starts_with("no connection to `127.0.0.1`: "), "{text}");
    assert_eq!(time.retries(), 1);
}

#[tokio::test]
async fn each_attempt_resolves_anew_and_a_refusal_is_the_end() {
    let server = Server::of(vec![status(500, ""), ok("inside")]).await;
    let names = Names::of(&[&["127.0.0.1"], &["169.254.169.254"], &["127.0.0.1"]]);
    let (exchange, _) = named(&server, names.clone());
    let url = format!("http://turning.example:{}/", server.at.port());
    let text = fault(post(&exchange, &url).await);
    assert_eq!(text, r#"ssrf: "turning.example" resolved to blocked IP 169.254.169.254"#);
    assert_eq!(names.asked(), ["turning.example"; 2]);
    assert_eq!(server.log().seen.len(), 1);
}

#[tokio::test]
async fn a_refusal_is_not_asked_again() {
    let names = Names::of(&[&["10.0.0.1"], &["8.8.8.8"]]);
    let (exchange, time) = of(KeepAlive::new(Egress::new(vec![]).with_resolver(names.clone())));
    let text = fault(post(&exchange, "http://inner.example/").await);
    assert_eq!(text, r#"ssrf: "inner.example" resolved to blocked IP 10.0.0.1"#);
    let (lost, _) = of(KeepAlive::new(Egress::new(vec![]).with_resolver(Names::of(&[]))));
    assert_eq!(fault(post(&lost, "http://gone.example/").await), r#"ssrf: resolve "gone.example""#);
    assert_eq!((names.asked().len(), time.retries()), (1, 0));
}

/// The fault when the first attempt took `spent` of `timeout`, and the number of requests.
async fn with_little_time(timeout: Duration, spent: Duration) -> (String, usize) {
    let time = StillTime::new();
    let passing = time.clone();
    let mut first = true;
    let server = Server::start(move |_| {
        if std::mem::take(&mut first) {
            passing.pass(spent);
            return status(502, "");
        }
        ok("up")
    })
    .await;
    let (exchange, _) = exchange(&server);
    let exchange = exchange.with_time(time.clone(), time);
    let answered = exchange.post(&spec(server.url()), Delivery { timeout, ..delivery("{}") }).await;
    (fault(answered), server.log().seen.len())
}

#[tokio::test]
async fn without_room_for_a_second_attempt_the_first_error_stands() {
    let (second, milli) = (Duration::from_secs(1), Duration::from_millis(1));
    let first_error = ("server error 502".to_owned(), 1);
    assert_eq!(with_little_time(second - milli, Duration::ZERO).await, first_error);
    assert_eq!(with_little_time(second / 2, Duration::ZERO).await, first_error);
    assert_eq!(with_little_time(second * 5, second * 4).await, first_error);
    for spent in [second * 4 - milli, second, Duration::ZERO] {
        let (text, requests) = with_little_time(second * 5, spent).await;
        assert!(text.contains("retries: 1"), "{text}");
        assert_eq!(requests, 2);
    }
}

/// Moves time beyond the timeout as soon as `server` was asked so often.
async fn late(server: &Server, time: &Arc<StillTime>, url: &str, requests: usize) -> HttpFault {
    let (exchange, _) = exchange(server);
    let exchange = exchange.with_time(time.clone(), time.clone());
    let spec = spec(url);
    let asked = async {
        server.until(|log| log.seen.len() == requests).await;
        time.pass(Duration::from_secs(5));
        std::future::pending().await
    };
    tokio::select! {
        answered = exchange.post(&spec, delivery("{}")) => answered.unwrap_err(),
        () = asked => unreachable!(),
    }
}

#[tokio::test]
async fn a_timeout_ends_the_exchange_wherever_it_is() {
    let half = Do::Say(b"HTTP/1.1 200 x\r\ncontent-length: 5\r\n\r\n{".to_vec());
    for (answers, requests) in [
        (vec![Do::Nothing], 1),
        (vec![half.clone()], 1),
        (vec![Do::Say(b"HTTP/1.1 200".to_vec())], 1),
        (vec![Do::Say(b"HTTP/1.1 500 x\r\ncontent-length: 0\r\n\r\n".to_vec()), Do::Nothing], 2),
    ] {
        let server = Server::of(answers).await;
        let fault = late(&server, &StillTime::new(), &server.url(), requests).await;
        assert_eq!(fault.to_string(), "timed out after 5000 ms");
        assert_eq!(usize::from(fault.retries()) + 1, requests);
        assert_eq!(server.log().seen.len(), requests);
        server.until(|log| log.closed == log.opened).await;
    }
}

#[tokio::test]
async fn a_name_that_nobody_answers_for_ends_with_the_timeout_too() {
    struct Silent;
    impl Resolver for Silent {
        fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
            Box::pin(std::future::pending())
        }
        fn own_addresses(&self) -> io::Result<Vec<IpAddr>> {
            Ok(Vec::new())
        }
    }
    let allow = vec![Allow::host("slow.example", vec![]).unwrap()];
    let (exchange, time) = of(KeepAlive::new(Egress::new(allow).with_resolver(Arc::new(Silent))));
    let target = spec("http://slow.example/");
    let posted = exchange.post(&target, delivery("{}"));
    let (answered, ()) = tokio::join!(posted, async { time.pass(Duration::from_secs(5)) });
    assert_eq!(fault(answered), "timed out after 5000 ms");
}
