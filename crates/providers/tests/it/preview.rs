//! What would be sent is what is sent.

use pintle_domain::json::Rendered;
use pintle_domain::ledger::{HostPrompt, InjectionPoint, Ledger, MessageList};
use pintle_domain::llm::LlmRequest;
use pintle_domain::message::{CallPart, Message, Role};
use pintle_domain::skill::{SkillHook, Skills, Timing, Voice};
use pintle_providers::capabilities::{CapabilityTable, MidSystem, Overrides};
use pintle_providers::preview::{preview, spec_of_entry};
use pintle_providers::{CallKind, ProviderSpec, RemovalMode, ToolMode, TurnPosition, TurnWire, WireKind, connect};
use pintle_testkit::http::{HttpStub, StubAnswer};

use crate::{KEY, request, spec};

/// The requests of a planned turn: the plan, a step with texts around it, and the step after that.
fn turn() -> Vec<(CallKind, LlmRequest)> {
    let hook = |name: &str, timing, role| SkillHook {
        skill: "alpha".into(),
        name: name.into(),
        content: format!("text of {name}"),
        timing,
        role,
        persistent: false,
        tool_filter: Vec::new(),
    };
    let mut ledger = Ledger::new(Skills::new(vec![
        hook("tone", Timing::AfterUserInput, Voice::System),
        hook("check", Timing::BeforeEachAgent, Voice::User),
    ]));
    let mut list: MessageList = request().messages;
    let at = |timing, round| InjectionPoint { timing, round, first_call: round, call: None };
    ledger.inject(&mut list, at(Timing::AfterUserInput, 0));
    let plan = ledger.inject_prompt(&mut list, (HostPrompt::PlanningPrompt, "plan it"), 0);
    let asked = |list: &MessageList| LlmRequest { messages: list.clone(), ..request() };
    let mut requests = vec![(CallKind::Planning, LlmRequest { tools: Vec::new(), ..asked(&list) })];
    ledger.remove_prompt(&mut list, plan);
    list.push(Rendered::new(Message::text(Role::Assistant, "I look")));
    ledger.inject(&mut list, at(Timing::BeforeEachAgent, 1));
    requests.push((CallKind::Loop, asked(&list)));
    let tool_calls = vec![CallPart::new("c1", "weather", "{}")];
    list.push(Rendered::new(Message { tool_calls, ..Message::text(Role::Assistant, "") }));
    list.push(Rendered::new(Message::tool("c1", "rain")));
    ledger.remove(&mut list, Timing::BeforeEachAgent);
    ledger.inject(&mut list, at(Timing::BeforeEachAgent, 2));
    requests.push((CallKind::Loop, asked(&list)));
    requests
}

async fn check(change: impl Fn(ProviderSpec) -> ProviderSpec, kind: WireKind) {
    let stub = HttpStub::start(vec![StubAnswer::new(400, "that will do"); 4]).await;
    let spec = change(spec(kind, &stub));
    let provider = connect(&spec).expect("the settings are good");
    let (sent, shown) = (TurnWire::new(RemovalMode::default()), TurnWire::new(RemovalMode::default()));
    let requests = turn();
    assert!(provider.call("m", &requests[0].1, &|_| {}).await.is_err());
    assert_eq!(preview(&spec, "m", &requests[0].1, None).expect("it has a wire"), stub.seen()[0].body);
    for (number, (call, request)) in (1..).zip(&requests) {
        let in_turn = TurnPosition { wire: &sent, call: *call };
        assert!(provider.call_in_turn("m", request, in_turn, &|_| {}).await.is_err());
        let expected = stub.seen()[number].body.clone();
        let keyless = ProviderSpec { api_key: None, ..spec.clone() };
        let body =
            preview(&keyless, "m", request, Some(TurnPosition { wire: &shown, call: *call })).expect("it has a wire");
        assert_eq!(body, expected, "{kind:?} {number}");
        assert!(!body.contains(KEY));
    }
}

#[tokio::test]
async fn a_preview_is_what_leaves_on_each_wire() {
    let free = |spec| ProviderSpec {
        capabilities: Overrides {
            mid_system: Some(MidSystem::Free),
            prefix_bound_reasoning: Some(true),
            ..Overrides::default()
        },
        ..spec
    };
    for kind in [WireKind::OpenAi, WireKind::Anthropic] {
        check(|spec| spec, kind).await;
        check(free, kind).await;
        check(|spec| ProviderSpec { vision: false, ..spec }, kind).await;
    }
    check(|spec| ProviderSpec { tool_mode: ToolMode::JsonSchema, ..spec }, WireKind::OpenAi).await;
}

#[test]
fn what_sends_nothing_has_no_preview_and_what_cannot_be_meant_is_named() {
    let requests = turn();
    let wire = TurnWire::new(RemovalMode::default());
    let say = |spec: &ProviderSpec| {
        let call = Some(TurnPosition { wire: &wire, call: CallKind::Loop });
        preview(spec, "m", &requests[1].1, call).map(drop).map_err(|error| error.to_string())
    };
    let scripted = ProviderSpec::new("play", WireKind::Scripted);
    assert_eq!(say(&scripted), Err("the provider `play` plays a script: it sends nothing".into()));
    let capabilities = Overrides { cache_breakpoints: Some(9), ..Overrides::default() };
    let odd = ProviderSpec { capabilities, ..ProviderSpec::new("p", WireKind::OpenAi) };
    assert_eq!(say(&odd), Err("in `[providers.p.capabilities]`, `cache_breakpoints` is 9; expected at most 4".into()));
    // Every entry of the table can be looked at without a configuration.
    for pattern in CapabilityTable::shipped().patterns() {
        let (name, model) = pattern.split_once('/').unwrap();
        assert_eq!(CapabilityTable::shipped().of(name, model).entry, pattern);
        assert_eq!(say(&spec_of_entry(name)), Ok(()), "{pattern}");
    }
}
