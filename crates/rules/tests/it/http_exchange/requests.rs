//! What the endpoint is sent.

use super::server::{Server, ok};
use super::time::WALL_S;
use super::{delivery, exchange, fault, spec};
use pintle_rules::http::{Delivery, HttpSpec};

#[tokio::test]
async fn a_payload_arrives_as_the_protocol_says() {
    let server = Server::of(vec![ok("{}")]).await;
    let (exchange, _) = exchange(&server);
    let url = format!("http://{}/a%20b/c?d=e&f#g", server.at);
    let response = exchange.post(&spec(url), delivery("{\"EventID\":\"\u{e9}\"}")).await.unwrap();
    assert_eq!((response.status, &response.body[..], response.retries), (200, &b"{}"[..], 0));
    let seen = &server.log().seen[0];
    assert_eq!(seen.line, "POST /a%20b/c?d=e&f HTTP/1.1");
    assert_eq!(String::from_utf8_lossy(&seen.body), "{\"EventID\":\"\u{e9}\"}");
    let mut headers = seen.headers.clone();
    headers.sort();
    let agent = format!("pintle-hooks/{}", env!("CARGO_PKG_VERSION"));
    let want = [
        ("accept-encoding", "identity"),
        ("content-length", "16"),
        ("content-type", "application/json"),
        ("host", &server.at.to_string()),
        ("idempotency-key", "hook:event"),
        ("user-agent", &agent),
    ];
    assert_eq!(headers, want.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[tokio::test]
async fn configured_headers_are_sent_and_ours_stay() {
    let server = Server::of(vec![ok("")]).await;
    let (exchange, _) = exchange(&server);
    let headers = [
        ("Authorization", "Bearer s\u{e9}cret"),
        ("content-type", "application/vnd.hooks+json"),
        ("X-Twice", "1"),
        ("x-twice", "2"),
        ("User-Agent", "somebody else"),
        ("Idempotency-Key", "mine"),
        ("X-Pintle-Test", "1"),
        ("Accept-Encoding", "gzip"),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    exchange.post(&HttpSpec { headers, ..spec(server.url()) }, delivery("{}")).await.unwrap();
    let seen = &server.log().seen[0];
    assert_eq!(seen.all("authorization"), ["Bearer s\u{e9}cret"]);
    assert_eq!(seen.all("content-type"), ["application/vnd.hooks+json"]);
    assert_eq!(seen.all("x-twice"), ["1", "2"]);
    assert_eq!(seen.all("user-agent"), [format!("pintle-hooks/{}", env!("CARGO_PKG_VERSION"))]);
    assert_eq!(seen.all("idempotency-key"), ["hook:event"]);
    assert_eq!(seen.all("x-pintle-test"), [""; 0]);
    assert_eq!(seen.all("accept-encoding"), ["identity"]);
}

#[tokio::test]
async fn headers_that_nobody_may_set_end_the_exchange_before_it_begins() {
    let server = Server::of(vec![]).await;
    let (exchange, _) = exchange(&server);
    for (name, value, text) in [
        ("host", "other", "header `host` cannot be set: it belongs to the connection; remove it"),
        ("Content-Length", "0", "header `Content-Length` cannot be set: it belongs to the connection; remove it"),
        ("X-A", "a\r\nHost: b", "header `X-A` has a value with control characters; write it in one line"),
        ("X A", "a", "`X A` is not a name for a header"),
    ] {
        let headers = vec![(name.to_owned(), value.to_owned())];
        let answered = exchange.post(&HttpSpec { headers, ..spec(server.url()) }, delivery("{}")).await;
        assert_eq!(fault(answered), text);
    }
    assert_eq!(server.log().opened, 0);
}

#[tokio::test]
async fn a_test_says_so() {
    let server = Server::of(vec![ok("")]).await;
    let (exchange, _) = exchange(&server);
    exchange.post(&spec(server.url()), Delivery { is_test: true, ..delivery("{}") }).await.unwrap();
    assert_eq!(server.log().seen[0].all("x-pintle-test"), ["1"]);
}

#[tokio::test]
async fn each_attempt_is_signed_at_its_own_time() {
    let server = Server::of(vec![super::server::status(500, ""), ok("")]).await;
    let (exchange, _) = exchange(&server);
    let secret = Some("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned());
    let spec = HttpSpec { signing_secret: secret, ..spec(server.url()) };
    exchange.post(&spec, delivery("{\"a\":1}")).await.unwrap();
    let seen = server.log().seen;
    let signed: Vec<_> =
        seen.iter().map(|seen| [seen.all("webhook-id"), seen.all("webhook-timestamp")].concat()).collect();
    assert_eq!(signed, [["hook:event", &WALL_S.to_string()], ["hook:event", &(WALL_S + 1).to_string()]]);
    // Computed with another implementation: HMAC-SHA256 of `hook:event.<timestamp>.{"a":1}`.
    assert_eq!(seen[0].all("webhook-signature"), ["v1,6lZUHEAFU5mbAKsPwDAz59sPQKP8vnXt/IdPh2oyicA="]);
    assert_eq!(seen[1].all("webhook-signature"), ["v1,7zosVi+IoGdQWzPm7be+6bCf8scXBOYQqDJZ5w/dbJ0="]);
}

#[tokio::test]
async fn a_secret_that_is_none_is_a_fault_and_is_not_told() {
    let server = Server::of(vec![]).await;
    let (exchange, _) = exchange(&server);
    let spec = HttpSpec { signing_secret: Some("hunter2".into()), ..spec(server.url()) };
    let text = fault(exchange.post(&spec, delivery("{}")).await);
    assert_eq!(text, "`signing_secret` must be `whsec_` and the base64 of the secret's bytes");
    assert_eq!(server.log().opened, 0);
}

#[test]
fn no_secret_stands_in_a_debug_text() {
    let spec = HttpSpec {
        url: "https://u:hunter2@h/x?hunter2".into(),
        headers: vec![("Authorization".into(), "hunter2".into())],
        signing_secret: Some("whsec_hunter2".into()),
        strict: true,
    };
    let text = format!("{spec:?}");
    assert_eq!(text, "HttpSpec { url: \"https://h/x\", headers: [\"Authorization\"], signed: true, strict: true }");
}
