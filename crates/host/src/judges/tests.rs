//! Which model is asked, and with what, over providers that say what they are told.

use std::sync::Mutex;

use pintle_domain::json::json;
use pintle_domain::message::CallPart;
use pintle_providers::scripted::Scripted;
use pintle_providers::{Delta, Secret};
use pintle_rules::judge;
use pintle_rules::reply::{Decision, InjectionEffect, decide};
use pintle_testkit::http::{HttpStub, StubAnswer};

use super::*;
use crate::config::{Env, LoadOptions, Loaded, load};

mod real_model;

/// ModelJudges over the providers of this configuration.
fn judges(toml: &str) -> ModelJudges {
    judges_with(toml, BTreeMap::new(), spec)
}

fn spec(name: &str, provider: &ProviderConfig) -> ProviderSpec {
    let (kind, base_url) = match &provider.kind {
        ProviderConfigKind::Server { wire, base_url, .. } => (*wire, base_url.clone()),
        ProviderConfigKind::Scripted { .. } => (pintle_providers::WireKind::Scripted, None),
    };
    ProviderSpec { base_url: base_url.map(String::from), ..ProviderSpec::new(name, kind) }
}

fn judges_with(
    toml: &str,
    aliases: BTreeMap<String, String>,
    spec: impl Fn(&str, &ProviderConfig) -> ProviderSpec,
) -> ModelJudges {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pintle.toml");
    std::fs::write(&file, toml).unwrap();
    let env = Env { vars: BTreeMap::new(), cwd: dir.path().into() };
    let options = LoadOptions { config: Some(&file), home: Some(dir.path()), ..LoadOptions::default() };
    let Loaded { config, diagnostics, .. } = load(&env, &options).unwrap();
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    ModelJudges::new(&config, aliases, spec)
}

/// Who is asked for `model`, the provider first if the hook names one (`provider:model`).
fn chosen(judges: &ModelJudges, model: &str, settings: &JudgeSettings) -> String {
    let (provider, model) = model.split_once(':').map_or((None, model), |(provider, model)| (Some(provider), model));
    match judges.choose(&JudgeChoice { provider, model, settings }) {
        Ok(Chosen { served, model }) => format!("{} {model}", served.name),
        Err(why) => why,
    }
}

#[test]
fn the_vendor_of_a_model_is_found_where_it_is_configured() {
    let all = judges(
        r#"
        [providers.azure]
        kind = "openai"
        base_url = "https://x.openai.azure.com/v1"
        [providers.claude]
        kind = "anthropic"
        base_url = "https://messages.example.com"
        [providers.dash]
        kind = "openai"
        base_url = "https://dashscope-intl.aliyuncs.com/compatible-mode/v1"
        [providers.google]
        kind = "openai"
        base_url = "https://h/v1"
        [providers.local]
        kind = "openai"
        base_url = "http://127.0.0.1:8000/v1"
        [providers.notopenai]
        kind = "openai"
        base_url = "https://notopenai.com/v1"
        [providers.vendor]
        kind = "openai"
        "#,
    );
    let settings = JudgeSettings { prompt: Some("local/qwen".into()), background: None };
    let table = [
        ("haiku", "claude claude-haiku-4-5"),
        ("sonnet", "claude claude-sonnet-4-6"),
        ("opus", "claude claude-opus-4-6"),
        ("claude-3-5-haiku-latest", "claude claude-3-5-haiku-latest"),
        ("gpt-4.1-mini", "azure gpt-4.1-mini"),
        ("o3", "azure o3"),
        ("gemini-3-flash", "google gemini-3-flash"),
        ("qwen3-4b", "dash qwen3-4b"),
        ("local/haiku", "local haiku"),
        ("claude/haiku", "claude claude-haiku-4-5"),
        ("llama-9", "local qwen"),
        ("org/llama-9", "local qwen"),
        ("vendor:gpt-4.1", "vendor gpt-4.1"),
        ("claude:opus", "claude claude-opus-4-6"),
        ("local:haiku", "local qwen"),
        ("local:org/llama", "local org/llama"),
        (
            "vendor:haiku",
            "hook resolver: no model of the provider `vendor` is configured to judge; name one in the hook's `model`",
        ),
        (
            "nobody:haiku",
            "hook resolver: there is no provider `nobody`; \
             the providers are azure, claude, dash, google, local, notopenai, vendor",
        ),
    ];
    for (wanted, expected) in table {
        assert_eq!(chosen(&all, wanted, &settings), expected, "{wanted}");
    }
    let other = [("haiku", "claude-haiku-5-5"), ("claude-best", "claude-opus-5-5")];
    let aliases = other.map(|(alias, model)| (alias.to_owned(), model.to_owned())).into();
    let others = judges_with("[providers.c]\nkind = \"anthropic\"\n", aliases, spec);
    assert_eq!(chosen(&others, "haiku", &settings), "c claude-haiku-5-5");
    assert_eq!(chosen(&others, "claude-best", &settings), "c claude-opus-5-5");
    assert_eq!(chosen(&others, "opus", &settings), "c claude-opus-4-6");
}

#[test]
fn without_its_vendor_a_hook_takes_what_is_set_each_with_its_own_model() {
    let one = "[providers.a]\nkind = \"openai\"\nbase_url = \"http://h/v1\"\n";
    let other = one.replace(".a]", ".b]");
    let agents = "[agents.x]\nmodel = \"b/large\"\n[agents.y]\ndefault = true\nmodel = \"b/small\"\n";
    let two = judges(&format!("{one}{other}{agents}"));
    let settings = |prompt: Option<&str>, background: Option<&str>| JudgeSettings {
        prompt: prompt.map(str::to_owned),
        background: background.map(str::to_owned),
    };
    let table = [
        (settings(None, None), "b small"),
        (settings(Some("a/x"), Some("b/y")), "a x"),
        (settings(None, Some("b/y/z")), "b y/z"),
        (settings(Some("b"), None), "b small"),
        (
            settings(Some("a"), None),
            "hook resolver: no model of the provider `a` is configured to judge; name one in the hook's `model`; see \
             `agent_hooks.prompt`",
        ),
        (
            settings(None, Some("c/x")),
            "hook resolver: there is no provider `c`; the providers are a, b; see `background`",
        ),
    ];
    for (settings, expected) in table {
        assert_eq!(chosen(&two, "haiku", &settings), expected, "{settings:?}");
    }
    let bare = judges(one);
    assert_eq!(
        chosen(&bare, "haiku", &JudgeSettings::default()),
        "hook resolver: no model is configured to judge in place of `haiku`; \
         set `agent_hooks.prompt.provider` and `agent_hooks.prompt.model`"
    );
    assert_eq!(chosen(&judges(""), "a:b", &JudgeSettings::default()), NOBODY);
}

/// Answers as it is told, and remembers the options that it was sent.
#[derive(Default)]
struct Fake {
    answers: Mutex<Vec<Result<LlmReply, ProviderError>>>,
    seen: Mutex<Vec<String>>,
}

impl Fake {
    fn saying(answers: Vec<Result<LlmReply, ProviderError>>) -> Arc<Self> {
        Arc::new(Self { answers: Mutex::new(answers), seen: Mutex::default() })
    }
}

impl Provider for Fake {
    fn call<'a>(
        &'a self,
        model: &'a str,
        request: &'a LlmRequest,
        _on_delta: &'a (dyn Fn(Delta<'_>) + Send + Sync),
    ) -> BoxFuture<'a, Result<LlmReply, ProviderError>> {
        let options = Value::Object(request.options.clone());
        self.seen.lock().unwrap().push(format!("{model} {} {options}", request.model));
        let next = self.answers.lock().unwrap().remove(0);
        async move { next }.boxed()
    }
}

const P: &str = "[providers.p]\nkind = \"openai\"\n";

fn served_by(provider: Arc<dyn Provider>, model: &str) -> ModelJudges {
    let mut judges = judges(&format!("{P}[agents.main]\nmodel = \"p/{model}\"\n"));
    judges.served[0].connected = Ok(provider);
    judges
}

async fn judged(judges: &ModelJudges) -> Result<Judgement, String> {
    let question = judge::request("No `rm`.", "pre_tool_use", "exec", None, 7).unwrap();
    let settings = JudgeSettings::default();
    judges
        .judge(JudgeChoice { provider: None, model: "haiku", settings: &settings }, question, &QuestionSent::default())
        .await
}

fn refused(message: &str) -> Result<LlmReply, ProviderError> {
    Err(ProviderError::Final { message: message.into() })
}

fn busy(retry_after: Option<Duration>) -> Result<LlmReply, ProviderError> {
    Err(ProviderError::Transient { reason: RetryReason::RateLimit, message: "busy".into(), retry_after })
}

fn allowed() -> Result<LlmReply, ProviderError> {
    Ok(LlmReply::calls(vec![CallPart::new("c1", "decide", r#"{"decision":"allow","reason":"harmless"}"#)]))
}

#[tokio::test]
async fn a_script_judges() {
    let script = json!({"replies": [{
        "when": {"tool": "decide", "anywhere": "No `rm`.", "model": "small"},
        "tool_calls": [{"name": "decide", "arguments": {"decision": "block", "reason": "it deletes"}}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13},
    }]});
    let script = Scripted::from_json(&script.to_string(), "test").unwrap();
    let Judgement { reply, model } = judged(&served_by(Arc::new(script), "small")).await.unwrap();
    assert_eq!(model, "p/small");
    assert_eq!(reply.usage.map(|usage| usage.total_tokens), Some(13));
    let said = decide(&reply, InjectionEffect::Block).unwrap();
    assert_eq!((said.decision, said.reason.as_deref()), (Decision::Block, Some("it deletes")));
}

const FORCED: &str = r#""tool_choice":{"type":"function","function":{"name":"decide"}}"#;

#[tokio::test]
async fn a_model_is_not_sent_what_it_is_known_to_refuse() {
    for (model, options) in [
        ("small", format!(r#"{{"temperature":0,"max_tokens":512,{FORCED}}}"#)),
        ("gpt-5-mini", format!(r#"{{"max_tokens":512,{FORCED}}}"#)),
    ] {
        let fake = Fake::saying(vec![allowed()]);
        judged(&served_by(fake.clone(), model)).await.unwrap();
        assert_eq!(*fake.seen.lock().unwrap(), [format!("{model} p/{model} {options}")]);
    }
}

#[tokio::test]
async fn what_a_model_refuses_is_conceded_once_each() {
    let fake = Fake::saying(vec![
        refused("use 'max_completion_tokens' instead"),
        refused("`temperature` is deprecated"),
        refused("tool_choice forces tool use"),
        allowed(),
    ]);
    judged(&served_by(fake.clone(), "m")).await.unwrap();
    assert_eq!(
        *fake.seen.lock().unwrap(),
        [
            format!(r#"m p/m {{"temperature":0,"max_tokens":512,{FORCED}}}"#),
            format!(r#"m p/m {{"temperature":0,{FORCED},"max_completion_tokens":512}}"#),
            format!(r#"m p/m {{{FORCED},"max_completion_tokens":512}}"#),
            r#"m p/m {"tool_choice":"auto","max_completion_tokens":512}"#.to_owned(),
        ]
    );
    for word in ["max_completion_tokens", "temperature", "tool_choice", "the key"] {
        let conceded = usize::from(word != "the key");
        let fake = Fake::saying(vec![refused(word), refused(word), allowed()]);
        assert_eq!(judged(&served_by(fake.clone(), "m")).await.unwrap_err(), word);
        assert_eq!(fake.seen.lock().unwrap().len(), 1 + conceded, "{word}");
    }
}

#[tokio::test]
async fn a_failure_that_may_pass_is_tried_once_more_unless_that_takes_long() {
    let check = async |answers, calls| {
        let fake = Fake::saying(answers);
        let outcome = judged(&served_by(fake.clone(), "m")).await.map(|judged| judged.model);
        assert_eq!(fake.seen.lock().unwrap().len(), calls);
        outcome
    };
    let at_once = || busy(Some(Duration::ZERO));
    assert_eq!(check(vec![at_once(), allowed()], 2).await, Ok("p/m".into()));
    assert_eq!(check(vec![at_once(), at_once(), allowed()], 2).await, Err("busy".into()));
    assert_eq!(check(vec![busy(Some(Duration::from_secs(2))), allowed()], 1).await, Err("busy".into()));
    assert_eq!(pause(RetryReason::Network, None), Some(PAUSE));
    assert_eq!(pause(RetryReason::ContextLimit, Some(Duration::ZERO)), None);
}

#[tokio::test]
async fn a_provider_that_cannot_be_had_says_why() {
    let judges = judges_with(P, BTreeMap::new(), |name, _| ProviderSpec {
        api_key: Some(Secret::new("sk\nlong")),
        ..ProviderSpec::new(name, pintle_providers::WireKind::OpenAi)
    });
    let question = judge::request("No.", "pre_tool_use", "exec", None, 7).unwrap();
    let settings = JudgeSettings::default();
    let wanted = JudgeChoice { provider: Some("p"), model: "gpt-4.1", settings: &settings };
    let why = judges.judge(wanted, question, &QuestionSent::default()).await.unwrap_err();
    assert!(why.starts_with("providers.p: provider `p`: the key holds a character"), "{why}");
    assert!(!why.contains("long"), "{why}");
}

/// Asks `p` at `url`, until it answers or `until` is over; whether it failed, and whether the question left.
async fn sent_to(url: &str, until: impl Future<Output = ()>) -> (bool, bool) {
    let judges = judges(&format!("{P}base_url = \"{url}\"\n"));
    let question = judge::request("No.", "pre_tool_use", "exec", None, 7).unwrap();
    let (settings, sent) = (JudgeSettings::default(), QuestionSent::default());
    let wanted = JudgeChoice { provider: Some("p"), model: "gpt-4.1", settings: &settings };
    let failed = tokio::select! {
        biased;
        answered = judges.judge(wanted, question, &sent) => answered.is_err(),
        () = until => true,
    };
    (failed, sent.is_marked())
}

#[tokio::test]
async fn a_question_left_as_soon_as_a_connection_stood_and_not_before() {
    let never = std::future::pending;
    // Nobody listens there; no name has so long a label.
    assert_eq!(sent_to("http://127.0.0.1:1", never()).await, (true, false));
    assert_eq!(sent_to(&format!("http://{}.test", "a".repeat(64)), never()).await, (true, false));
    let answer = r#"{"choices":[{"message":{"content":"hm"},"finish_reason":"stop"}]}"#;
    for (answers, failed) in [
        (vec![StubAnswer::json(answer)], false),
        (vec![StubAnswer::new(500, "oops"), StubAnswer::new(500, "oops")], true),
        (vec![StubAnswer::silence().cut(), StubAnswer::silence().cut()], true),
    ] {
        let stub = HttpStub::start(answers).await;
        assert_eq!(sent_to(&stub.url(), never()).await, (failed, true));
        // A body with a length, as it was before anybody looked whether it leaves.
        let request = stub.seen().remove(0);
        assert!(request.header("content-length").is_some() && request.header("transfer-encoding").is_none());
        assert_eq!(request.json()["model"], "gpt-4.1");
    }
    // It was read, and nobody answers until the hook's time is over.
    let stub = HttpStub::start(vec![StubAnswer::silence()]).await;
    let until = async {
        while stub.seen().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    assert_eq!(sent_to(&stub.url(), until).await, (true, true));
}

#[test]
fn who_would_be_asked_is_known_without_asking() {
    let judges = judges(&format!("{P}base_url = \"http://127.0.0.1:1\"\n"));
    let settings = JudgeSettings::default();
    let would = |provider| judges.would_ask(JudgeChoice { provider, model: "gpt-4.1", settings: &settings });
    assert_eq!(would(Some("p")), Ok("p/gpt-4.1".to_owned()));
    assert!(would(Some("q")).unwrap_err().contains("there is no provider `q`"));
}
