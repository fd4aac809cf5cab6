//! What the endpoint may answer.

use super::server::{Do, Server, bytes, ok, status};
use super::{exchange, fault, post};
use pintle_rules::http::MAX_REPLY_BYTES;

/// The body, as text, of a good answer; else the fault. One attempt must have been enough.
async fn hear(answer: Do) -> String {
    let server = Server::of(vec![answer]).await;
    let (exchange, time) = exchange(&server);
    let answered = post(&exchange, &server.url()).await;
    assert_eq!((server.log().seen.len(), time.retries()), (1, 0));
    match answered {
        Ok(response) => format!("{} {}", response.status, String::from_utf8_lossy(&response.body)),
        Err(fault) => fault.to_string(),
    }
}

fn say(text: &str) -> Do {
    Do::Say(text.as_bytes().to_vec())
}

fn close_after(text: &str) -> Do {
    Do::SayAndClose(text.as_bytes().to_vec())
}

#[tokio::test]
async fn every_2xx_is_handed_on_as_it_is() {
    assert_eq!(hear(ok(r#"{"decision":"block"}"#)).await, r#"200 {"decision":"block"}"#);
    assert_eq!(hear(status(201, "fine")).await, "201 fine");
    assert_eq!(hear(status(299, "{broken")).await, "299 {broken");
    assert_eq!(hear(ok("")).await, "200 ");
    assert_eq!(hear(say("HTTP/1.1 204 x\r\n\r\n")).await, "204 ");
    assert_eq!(
        hear(say("HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n")).await,
        "200 abc"
    );
    assert_eq!(hear(close_after("HTTP/1.0 200 x\r\n\r\nto the end")).await, "200 to the end");
    assert_eq!(
        hear(say("HTTP/1.1 103 x\r\nlink: y\r\n\r\nHTTP/1.1 200 x\r\ncontent-length: 1\r\n\r\nz")).await,
        "200 z"
    );
}

#[tokio::test]
async fn no_4xx_is_asked_again() {
    for code in [400, 401, 403, 404, 408, 409, 418, 425, 429, 451, 499] {
        assert_eq!(hear(status(code, "no")).await, format!("client error {code} (no retry)"));
    }
}

#[tokio::test]
async fn statuses_that_are_no_answer_are_faults() {
    for code in [300, 301, 302, 303, 304, 305, 307, 308, 399, 600, 999] {
        assert_eq!(hear(status(code, "")).await, format!("unexpected status {code}"));
    }
    assert_eq!(hear(say("HTTP/1.1 101 x\r\nupgrade: y\r\nconnection: upgrade\r\n\r\n")).await, "unexpected status 101");
}

#[tokio::test]
async fn a_body_that_ends_too_early_is_a_fault() {
    for cut in [
        "HTTP/1.1 200 x\r\ncontent-length: 20\r\n\r\n{\"decision\":\"allow\"",
        "HTTP/1.1 200 x\r\ncontent-length: 20\r\n\r\n",
        "HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n",
        "HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{}",
        "HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}",
    ] {
        assert_eq!(hear(close_after(cut)).await, "truncated body", "{cut}");
    }
}

#[tokio::test]
async fn a_body_may_have_one_mebibyte_and_no_byte_more() {
    let whole = "x".repeat(MAX_REPLY_BYTES);
    assert_eq!(hear(ok(&whole)).await.len(), "200 ".len() + MAX_REPLY_BYTES);
    assert_eq!(hear(ok(&format!("{whole}x"))).await, "body over 1 MiB");
    // An announcement is enough: nothing of it comes.
    assert_eq!(hear(say("HTTP/1.1 200 x\r\ncontent-length: 9999999999\r\n\r\n")).await, "body over 1 MiB");
    // Nothing was announced.
    let endless = format!("HTTP/1.1 200 x\r\n\r\n{whole}x");
    assert_eq!(hear(say(&endless)).await, "body over 1 MiB");
    let chunked = format!("HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{whole}x\r\n", whole.len() + 1);
    assert_eq!(hear(say(&chunked)).await, "body over 1 MiB");
    let tail = "HTTP/1.1 200 x\r\ntransfer-encoding: chunked\r\n\r\n";
    let exact = format!("{tail}{:x}\r\n{whole}\r\n0\r\n\r\n", whole.len());
    assert_eq!(hear(say(&exact)).await.len(), "200 ".len() + MAX_REPLY_BYTES);
}

#[tokio::test]
async fn what_is_no_http_is_a_fault_and_not_asked_again() {
    let long_head = format!("HTTP/1.1 200 x\r\nx: {}\r\n\r\n", "y".repeat(100_000));
    let many = format!("HTTP/1.1 200 x\r\n{}\r\n", "x: y\r\n".repeat(1000));
    for text in [
        "SSH-2.0-OpenSSH_9.2p1\r\n\r\n",
        "220 mail ESMTP\r\n\r\n",
        "HTTP/1.1 20 x\r\n\r\n",
        "HTTP/1.1 2000 x\r\n\r\n",
        "\0\0\0\0\0\0\0\0\r\n\r\n",
        "HTTP/1.1 200 x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        "HTTP/1.1 200 x\r\ncontent-length: -1\r\n\r\n",
        "HTTP/1.1 200 x\r\n bad: y\r\n\r\n",
        &long_head,
        &many,
    ] {
        let heard = hear(close_after(text)).await;
        assert!(heard.starts_with("the response of `127.0.0.1` is not HTTP: "), "{text:.40}: {heard}");
    }
}

#[tokio::test]
async fn the_text_of_a_fault_names_no_secret_of_the_url() {
    let server = Server::of(vec![Do::SayAndClose(Vec::new()), Do::SayAndClose(Vec::new())]).await;
    let (exchange, _) = exchange(&server);
    let text = fault(post(&exchange, &format!("{}?token=hunter2", server.url())).await);
    assert!(text.starts_with("the connection to `127.0.0.1` broke before the response: "), "{text}");
    assert!(!text.contains("hunter2"), "{text}");
}

#[tokio::test]
async fn a_reply_that_was_sent_before_it_was_asked_for_is_not_believed() {
    // Two answers to the first request: the second would be taken for the answer to the next one.
    let twice = [bytes(200, b"first"), bytes(200, b"forged")].concat();
    let server = Server::of(vec![Do::Say(twice), ok("second")]).await;
    let (exchange, _) = exchange(&server);
    for body in ["first", "second"] {
        assert_eq!(post(&exchange, &server.url()).await.unwrap().body, body);
    }
    assert_eq!(server.connections(), [0, 1]);
}

#[tokio::test]
async fn a_url_that_is_too_long_for_http_is_a_fault() {
    let server = Server::of(vec![]).await;
    let (exchange, _) = exchange(&server);
    let text = fault(post(&exchange, &format!("{}/{}", server.url(), "a".repeat(100_000))).await);
    assert_eq!(text, "the request cannot be written: uri too long");
    assert_eq!(server.log().opened, 0);
}

#[tokio::test]
async fn a_body_that_is_encoded_is_a_fault_and_not_asked_again() {
    let body = r#"{"decision":"block"}"#;
    let with = |head: &str| say(&format!("HTTP/1.1 200 x\r\ncontent-length: 20\r\n{head}\r\n\r\n{body}"));
    for word in ["gzip", "GZIP", "br", "identity, deflate", "x\u{1}y"] {
        let heard = hear(with(&format!("Content-Encoding: {word}"))).await;
        assert!(heard.starts_with("the body has the content encoding \"") || heard.contains("is not HTTP"), "{heard}");
    }
    assert_eq!(
        hear(with("content-encoding: gzip")).await,
        "the body has the content encoding \"gzip\"; send it as it is: the request says `Accept-Encoding: identity`"
    );
    for charset in ["utf-16", "\"UTF-16LE\"", "utf-32", "ucs-2", "UTF-7"] {
        let heard = hear(with(&format!("content-type: application/json; a=b; Charset={charset}"))).await;
        let plain = charset.trim_matches('"').to_lowercase();
        assert_eq!(heard, format!("the body has the charset \"{plain}\"; send JSON in UTF-8"));
    }
    for head in
        ["content-encoding: identity", "Content-Type: application/json;charset=UTF-8", "content-type: text/html"]
    {
        assert_eq!(hear(with(head)).await, format!("200 {body}"), "{head}");
    }
    let gzip = "HTTP/1.1 200 x\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n";
    assert_eq!(hear(say(gzip)).await, "the body has the transfer encoding \"gzip\"; only \"chunked\" is read");
}
