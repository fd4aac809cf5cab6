//! Reaching a provider without a token spent.

use std::time::Duration;

use pintle_providers::{ProviderSpec, WireKind, reach};
use pintle_testkit::http::{HttpStub, StubAnswer};

use super::{KEY, spec};

/// Far above what loopback takes.
const LONG: Duration = Duration::from_secs(20);

async fn check(kind: WireKind, answer: StubAnswer, expected: &str) {
    let stub = HttpStub::start(vec![answer]).await;
    let said = reach(&spec(kind, &stub), LONG).await.unwrap_or_else(|error| error.to_string());
    assert_eq!(said, expected);
    let asked: Vec<String> = stub.seen().into_iter().map(|seen| seen.line).collect();
    assert_eq!(asked, ["GET /v1/models"]);
}

#[tokio::test]
async fn whoever_answers_is_reached_unless_it_refuses_the_key() {
    let kind = WireKind::OpenAi;
    check(kind, StubAnswer::json(r#"{"data":[]}"#), "127.0.0.1 answers").await;
    check(kind, StubAnswer::new(404, "no such page"), "127.0.0.1 answers").await;
    let refused = "provider `local`: 127.0.0.1 refuses the key (HTTP 401); check the variable `TEST_KEY`";
    check(kind, StubAnswer::new(401, KEY), refused).await;
    check(WireKind::Anthropic, StubAnswer::new(500, ""), "provider `local`: 127.0.0.1 fails by itself (HTTP 500)")
        .await;
}

#[tokio::test]
async fn nobody_and_silence_are_told_apart() {
    let gone = HttpStub::start(vec![StubAnswer::silence()]).await;
    let silent = reach(&spec(WireKind::OpenAi, &gone), Duration::from_millis(50)).await.unwrap_err().to_string();
    assert_eq!(silent, "provider `local`: 127.0.0.1 cannot be reached: it did not answer within 50 ms");
    let free =
        std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has ports").local_addr().expect("it is bound");
    let spec = ProviderSpec { base_url: Some(format!("http://{free}/v1")), ..ProviderSpec::new("p", WireKind::OpenAi) };
    let nobody = reach(&spec, LONG).await.unwrap_err().to_string();
    assert!(nobody.starts_with("provider `p`: 127.0.0.1 cannot be reached: "), "{nobody}");
}

#[tokio::test]
async fn a_script_has_to_be_there() {
    let script = ProviderSpec { script: Some("nowhere.json".into()), ..ProviderSpec::new("s", WireKind::Scripted) };
    let missing = reach(&script, LONG).await.unwrap_err().to_string();
    assert!(missing.starts_with("provider `s`: cannot read the script `nowhere.json`"), "{missing}");
}
