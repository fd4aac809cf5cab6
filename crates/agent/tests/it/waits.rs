//! Providers that want to be left alone for a while, quotas that are used up, and the turns after such a one.

use std::sync::Arc;

use pintle_agent::Models;
use pintle_agent::driver::TurnEnding;
use pintle_domain::json::{Value, json};
use pintle_providers::WireKind::{Anthropic, OpenAi};
use pintle_providers::{ProviderSpec, connect};
use pintle_testkit::http::{HttpStub, StubAnswer};

use crate::host::{Host, Parts};

fn answer(text: &str) -> StubAnswer {
    StubAnswer::json(&json!({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}).to_string())
}

fn refused(status: u16, code: &str) -> StubAnswer {
    StubAnswer::new(status, json!({"error": {"message": "not now", "code": code}}).to_string())
}

/// A host over two servers; the second one is the fallback if it is to be one.
async fn host(first: Vec<StubAnswer>, second: Vec<StubAnswer>, falls_back: bool) -> (HttpStub, HttpStub, Host) {
    let (one, two) = (HttpStub::start(first).await, HttpStub::start(second).await);
    let provider = |name: &str, stub: &HttpStub| {
        connect(&ProviderSpec { base_url: Some(stub.url()), ..ProviderSpec::new(name, OpenAi) }).unwrap()
    };
    let mut parts = Parts::of(json!([]));
    parts.settings.model = "one/m".into();
    parts.settings.fallbacks = if falls_back { vec!["two/m".into()] } else { Vec::new() };
    let models = Models::default().with("one", provider("one", &one)).with("two", provider("two", &two));
    parts.models = Some(Arc::new(models));
    (one, two, parts.host())
}

fn failure(ending: TurnEnding) -> String {
    match ending {
        TurnEnding::Failed { text, .. } => text,
        other @ (TurnEnding::Completed
        | TurnEnding::Blocked(_)
        | TurnEnding::StoppedByHook(_)
        | TurnEnding::Cancelled
        | TurnEnding::Waiting(_)) => format!("{other:?}"),
    }
}

#[tokio::test]
async fn a_long_wait_goes_to_the_fallback_first_and_else_ends_the_turn_with_the_time() {
    let busy = || vec![refused(429, "rate_limit_exceeded").header("retry-after", "3600"), answer("too late")];
    let (one, two, mut host_of_two) = host(busy(), vec![answer("from two")], true).await;
    assert_eq!(host_of_two.turn("go").await.reply, "from two");
    assert_eq!((one.seen().len(), two.seen().len(), host_of_two.seen.count("llm_retry")), (1, 1, 0));

    let (one, _two, mut alone) = host(busy(), Vec::new(), false).await;
    let text = failure(alone.turn("go").await.ending);
    assert_eq!(text, "provider `one`: rate limit (429): not now (rate_limit_exceeded); it asks to come back in 1 h");
    assert_eq!(one.seen().len(), 1);
}

#[tokio::test]
async fn a_quota_that_is_used_up_is_not_asked_again() {
    let (one, two, mut host_of_two) =
        host(vec![refused(429, "insufficient_quota")], vec![answer("from two")], true).await;
    assert_eq!(host_of_two.turn("go").await.reply, "from two");
    assert_eq!((one.seen().len(), two.seen().len()), (1, 1));
    let (one, _two, mut alone) = host(vec![refused(429, "insufficient_quota")], Vec::new(), false).await;
    let text = failure(alone.turn("go").await.ending);
    assert_eq!(text, "provider `one`: nothing is left to be spent at the provider (429): not now (insufficient_quota)");
    assert_eq!(one.seen().len(), 1);
}

/// The roles of the messages of the last request.
fn roles(stub: &HttpStub) -> Vec<String> {
    let body: Value = stub.seen().last().unwrap().json();
    body["messages"].as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn two_prompts_in_a_row_are_one_message_where_roles_alternate() {
    let (one, _two, mut strict) = host(vec![refused(400, "x"), answer("A")], Vec::new(), false).await;
    failure(strict.turn("U1").await.ending);
    assert_eq!(strict.turn("U2").await.reply, "A");
    assert_eq!(roles(&one), ["user"]);
    assert_eq!(one.seen()[1].json()["messages"][0]["content"], "U1\n\nU2");

    // Where they need not, each stays what it was.
    let stub = HttpStub::start(vec![refused(400, "x"), answer("A")]).await;
    let spec = ProviderSpec { base_url: Some(stub.url()), ..ProviderSpec::new("openai", OpenAi) };
    let models = Models::default().with("openai", connect(&spec).unwrap());
    let mut free = Host::over(Arc::new(models), &[], |mut settings| {
        settings.model = "openai/m".into();
        settings
    });
    failure(free.turn("U1").await.ending);
    assert_eq!(free.turn("U2").await.reply, "A");
    assert_eq!(roles(&stub), ["user", "user"]);
}

#[tokio::test]
async fn without_a_bound_an_answer_may_be_as_long_as_the_model_writes() {
    for (model, tokens) in [("claude-opus-4-1", 32_000), ("claude-sonnet-4-5", 64_000), ("elsewhere", 4_096)] {
        let said = json!({"content": [{"type": "text", "text": "A"}], "stop_reason": "end_turn"});
        let stub = HttpStub::start(vec![StubAnswer::json(&said.to_string())]).await;
        let spec = ProviderSpec { base_url: Some(stub.url()), ..ProviderSpec::new("stub", Anthropic) };
        let models = Models::default().with("stub", connect(&spec).unwrap());
        let mut host = Host::over(Arc::new(models), &[], |mut settings| {
            settings.model = format!("stub/{model}");
            settings
        });
        assert_eq!(host.turn("go").await.reply, "A");
        assert_eq!(stub.seen()[0].json()["max_tokens"], tokens, "{model}");
    }
}
