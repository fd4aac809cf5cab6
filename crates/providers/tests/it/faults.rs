//! Servers that are slow, broken, cut off, lying or not there.

use std::time::Duration;

use pintle_domain::checkpoint::runtime::RetryReason;
use pintle_providers::WireKind::{Anthropic, OpenAi};
use pintle_providers::{ProviderError, ProviderSpec, WireKind, connect};
use pintle_testkit::http::{HttpStub, StubAnswer};

use crate::{KEY, answered, ask, request, spec, stream_of};

const CHUNK: &str = r#"{"choices":[{"index":0,"delta":{"content":"half"},"finish_reason":null}]}"#;
const START: &str = r#"{"type":"message_start","message":{"usage":{"input_tokens":1}}}"#;

/// `Reason: message` or `Final: message`; fails if the key shows.
async fn failure(kind: WireKind, answer: StubAnswer) -> String {
    told(answered(kind, answer).await.1.expect_err("the answer is bad"))
}

fn told(error: ProviderError) -> String {
    assert!(!format!("{error:?} {error}").contains(KEY), "{error:?}");
    match error {
        ProviderError::Transient { reason, message, retry_after } => {
            let after = retry_after.map(|wait| format!(" (after {wait:?})")).unwrap_or_default();
            format!("{reason:?}: {message}{after}")
        }
        ProviderError::Final { message } => format!("Final: {message}"),
    }
}

#[tokio::test]
async fn each_refusal_is_told_without_the_key() {
    let echo = |status| StubAnswer::new(status, format!(r#"{{"error":{{"message":"bad key \"{KEY}\" given"}}}}"#));
    let mut lines = Vec::new();
    for (kind, answer) in [
        (OpenAi, echo(401)),
        (Anthropic, echo(403)),
        (OpenAi, echo(404)),
        (OpenAi, echo(400)),
        (OpenAi, echo(408)),
        (OpenAi, echo(429).header("retry-after", "7")),
        (Anthropic, echo(429).header("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")),
        (Anthropic, echo(529).header("retry-after", "x")),
        (OpenAi, StubAnswer::new(500, format!("<pre>{KEY}</pre>"))),
        (OpenAi, StubAnswer::new(307, "").header("location", "http://elsewhere/")),
        (OpenAi, StubAnswer::new(400, r#"{"error":{"message":"m","code":"context_length_exceeded"}}"#)),
        (OpenAi, StubAnswer::new(200, "<html>").header("content-type", "text/html; charset=utf-8")),
        (OpenAi, StubAnswer::new(503, "x".repeat(100_000)).drip(1000).hang()),
    ] {
        let line = failure(kind, answer).await;
        assert!(line.len() < 1100, "{}", line.len());
        lines.push(line.replace(&"x".repeat(900), "x…"));
    }
    insta::assert_snapshot!(lines.join("\n"), @r#"
        Final: provider `local`: the key was refused (401): bad key "***" given; check the variable `TEST_KEY` that `api_key_env` of `providers.local` names
        Final: provider `local`: the key was refused (403): bad key "***" given; check the variable `TEST_KEY` that `api_key_env` of `providers.local` names
        Final: provider `local`: not found (404) for model `m`: bad key "***" given; check the name of the model and `base_url`
        Final: provider `local`: refused the request (400): bad key "***" given
        Timeout: provider `local`: timed out at the provider (408): bad key "***" given
        RateLimit: provider `local`: rate limit (429): bad key "***" given (after 7s)
        RateLimit: provider `local`: rate limit (429): bad key "***" given (after 0ns)
        ServerError: provider `local`: server error (529): bad key "***" given
        ServerError: provider `local`: server error (500): <pre>***</pre>
        Final: provider `local`: redirected (307), which is not followed; set `base_url` to the final address
        ContextLimit: provider `local`: too long for model `m` (400): m (context_length_exceeded)
        Final: provider `local`: answered with a web page; check `base_url`
        ServerError: provider `local`: server error (503): x…xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…
        "#);
}

#[tokio::test]
async fn an_error_in_the_middle_of_a_stream_is_sorted() {
    let openai = |error: &str| StubAnswer::events(&stream_of(&[CHUNK, &format!(r#"{{"error":{error}}}"#)]));
    let anthropic =
        |error: &str| StubAnswer::events(&stream_of(&[START, &format!(r#"{{"type":"error","error":{error}}}"#)]));
    let overloaded = format!(r#"{{"type":"overloaded_error","message":"Overloaded {KEY}"}}"#);
    let lines = [
        failure(Anthropic, anthropic(&overloaded)).await,
        failure(Anthropic, anthropic(r#"{"type":"invalid_request_error","message":"bad"}"#)).await,
        failure(OpenAi, openai(r#"{"message":"slow","code":429}"#)).await,
        failure(OpenAi, openai(r#""oops""#)).await,
        failure(OpenAi, StubAnswer::json(r#"{"error":{"message":"upstream","code":502}}"#)).await,
        failure(Anthropic, StubAnswer::json(r#"{"type":"error","error":{"type":"api_error","message":"x"}}"#)).await,
    ];
    insta::assert_snapshot!(lines.join("\n"), @r#"
        ServerError: provider `local`: failed while answering: Overloaded *** (overloaded_error)
        Final: provider `local`: failed while answering: bad (invalid_request_error)
        RateLimit: provider `local`: failed while answering: slow
        ServerError: provider `local`: failed while answering: oops
        ServerError: provider `local`: failed while answering: upstream
        ServerError: provider `local`: failed while answering: x (api_error)
        "#);
}

#[tokio::test]
async fn a_stream_that_is_cut_says_so() {
    let half = stream_of(&[CHUNK]);
    let inside = &half[..half.len() - 20];
    let lines = [
        failure(OpenAi, StubAnswer::events(&half)).await,
        failure(OpenAi, StubAnswer::events(&half).cut()).await,
        failure(OpenAi, StubAnswer::events(inside)).await,
        failure(OpenAi, StubAnswer::events("")).await,
        failure(Anthropic, StubAnswer::events(&stream_of(&[START]))).await,
        failure(Anthropic, StubAnswer::events(&stream_of(&[START])).cut()).await,
        failure(OpenAi, StubAnswer::json(r#"{"choices":"#)).await,
        failure(OpenAi, StubAnswer::json("{}")).await,
        failure(Anthropic, StubAnswer::json("{}")).await,
        failure(OpenAi, StubAnswer::events(&stream_of(&["{broken", CHUNK]))).await,
        failure(OpenAi, StubAnswer::new(200, b"data: \xff\n\n".to_vec())).await,
        failure(OpenAi, StubAnswer::events(&stream_of(&["[DONE]"]))).await,
        failure(Anthropic, StubAnswer::events(&stream_of(&[r#"{"type":"message_stop"}"#]))).await,
    ];
    insta::assert_snapshot!(lines.join("\n"), @r#"
        Network: provider `local`: the answer was cut: the stream ended without a `finish_reason` or `[DONE]`
        Network: provider `local`: the answer was cut: the connection broke: error reading a body from connection: unexpected EOF during chunk size line
        Network: provider `local`: the answer was cut: the stream ended without the end of its last event
        Network: provider `local`: the answer was cut: the stream ended without a `finish_reason` or `[DONE]`
        Network: provider `local`: the answer was cut: the stream ended without `message_stop`
        Network: provider `local`: the answer was cut: the connection broke: error reading a body from connection: unexpected EOF during chunk size line
        Network: provider `local`: the answer was cut: the stream ended without the end of its JSON
        Final: provider `local`: the answer holds no choice; check `base_url`
        Final: provider `local`: the answer holds no `content`; check `base_url`
        Final: provider `local`: an event of the answer is not valid JSON: key must be a string at line 1 column 2
        Final: provider `local`: the answer is not UTF-8
        Final: provider `local`: the answer holds no choice; check `base_url`
        Final: provider `local`: the answer never began; check `base_url`
        "#);
}

#[tokio::test]
async fn what_is_no_answer_is_not_taken_for_one_that_was_cut() {
    let page = "Final: provider `local`: answered with a web page; check `base_url`";
    assert_eq!(failure(OpenAi, StubAnswer::new(200, "\n<!doctype html><p>hi")).await, page);
    assert_eq!(failure(Anthropic, StubAnswer::json("<html>")).await, page);
    let other = "Final: provider `local`: the answer is neither a stream nor a JSON object; check `base_url`";
    for body in ["[]", "Not here", "\"text\""] {
        assert_eq!(failure(OpenAi, StubAnswer::new(200, body)).await, other, "{body}");
    }
}

#[tokio::test]
async fn hostile_sizes_are_refused() {
    let endless = StubAnswer::events(&format!("data: {}", "x".repeat(5 << 20))).hang();
    assert_eq!(failure(OpenAi, endless).await, "Final: provider `local`: one event of the answer is larger than 4 MiB");
    let deep = stream_of(&[&"[".repeat(100_000), CHUNK]);
    assert_eq!(
        failure(OpenAi, StubAnswer::events(&deep)).await,
        "Final: provider `local`: an event of the answer is not valid JSON: nested deeper than 512 levels"
    );
}

#[tokio::test]
async fn silence_ends_in_a_timeout() {
    let stub = HttpStub::start(vec![StubAnswer::silence()]).await;
    let spec = ProviderSpec { idle_timeout: Duration::from_millis(50), ..spec(OpenAi, &stub) };
    let error = told(ask(&*connect(&spec).unwrap(), &request()).await.1.unwrap_err());
    assert_eq!(error, "Timeout: provider `local`: no answer began within 50ms");
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_network_failure() {
    let stub = HttpStub::start(vec![]).await;
    let spec = spec(OpenAi, &stub);
    drop(stub);
    tokio::task::yield_now().await;
    let error = ask(&*connect(&spec).unwrap(), &request()).await.1.unwrap_err();
    let ProviderError::Transient { reason: RetryReason::Network, message, .. } = error else { panic!("{error:?}") };
    let address = spec.base_url.as_deref().unwrap().trim_end_matches("/v1/");
    assert!(message.starts_with(&format!("provider `local`: cannot connect to {address}: ")), "{message}");
    assert!(message.contains("refused"), "{message}");
}
