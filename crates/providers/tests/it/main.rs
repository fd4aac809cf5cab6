//! Providers against a server on loopback.

mod anthropic;
mod json_schema;
mod notes;
mod openai;
mod preview;
mod reach;
mod faults;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use pintle_domain::json::Rendered;
use pintle_domain::llm::{LlmReply, LlmRequest, ToolDef};
use pintle_domain::message::{Message, Role};
use pintle_providers::{Delta, Provider, ProviderError, ProviderSpec, Secret, ToolMode, WireKind, connect};
use pintle_testkit::http::{HttpStub, StubAnswer};

/// The key that every test sends and no error may show.
pub const KEY: &str = "sk-test-0123456789";

/// A provider of `kind` at `stub`.
pub fn provider(kind: WireKind, stub: &HttpStub) -> Arc<dyn Provider> {
    connect(&spec(kind, stub)).expect("the settings are good")
}

/// Its settings.
pub fn spec(kind: WireKind, stub: &HttpStub) -> ProviderSpec {
    ProviderSpec {
        base_url: Some(format!("{}/v1/", stub.url())),
        api_key: Some(Secret::new(KEY)),
        key_env: Some("TEST_KEY".into()),
        idle_timeout: Duration::from_secs(20),
        ..ProviderSpec::new("local", kind)
    }
}

/// A provider that offers tools through a schema.
pub fn by_schema(stub: &HttpStub) -> Arc<dyn Provider> {
    connect(&ProviderSpec { tool_mode: ToolMode::JsonSchema, ..spec(WireKind::OpenAi, stub) })
        .expect("the settings are good")
}

/// A request with one tool.
pub fn request() -> LlmRequest {
    let parameters = pintle_domain::json::parse(
        r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"maximum":1.10}"#,
    )
    .expect("valid JSON");
    let options = [("temperature".to_owned(), pintle_domain::json::parse("0.20").expect("valid JSON"))];
    LlmRequest {
        model: "local/m".into(),
        messages: [Message::text(Role::System, "be good"), Message::text(Role::User, "hi")].map(Rendered::new).into(),
        tools: vec![Rendered::new(ToolDef::new("weather", "tells the weather", parameters))],
        options: options.into_iter().collect(),
        graceful_terminal: false,
    }
}

/// Pieces as they were told, and the outcome.
pub async fn ask(provider: &dyn Provider, request: &LlmRequest) -> (Vec<String>, Result<LlmReply, ProviderError>) {
    let pieces = Mutex::new(Vec::new());
    let on_delta = |delta: Delta<'_>| {
        pieces.lock().expect("no test panics here").push(match delta {
            Delta::Text(text) => text.to_owned(),
            Delta::Reasoning(text) => format!("({text})"),
            Delta::Sent => return,
        });
    };
    let outcome = provider.call("m", request, &on_delta).await;
    (pieces.into_inner().expect("no test panics here"), outcome)
}

/// Asks a provider of `kind` whose server answers `answer`.
pub async fn answered(kind: WireKind, answer: StubAnswer) -> (Vec<String>, Result<LlmReply, ProviderError>) {
    let stub = HttpStub::start(vec![answer]).await;
    ask(&*provider(kind, &stub), &request()).await
}

/// An event stream with one event per document.
pub fn stream_of(documents: &[&str]) -> String {
    documents.iter().map(|document| format!("data: {document}\n\n")).collect()
}
