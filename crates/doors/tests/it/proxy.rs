//! The machine of the tool door, as tables and as a property: what no rule touches passes byte-equal.

use std::sync::Arc;

use pintle_domain::id::TurnId;
use pintle_domain::identity::Identity;
use pintle_domain::json::{Value, json};
use pintle_domain::message::Message;
use pintle_domain::tool::{ToolCall, ToolOutput};
use pintle_doors::mcp::ToolFilter;
use pintle_doors::mcp::message::{McpKind, McpMessage};
use pintle_doors::mcp::proxy::{McpProxy, ProxiedCall, ProxyRules, ProxyRuling, ProxyStep, Ticket};
use pintle_engine::{Clearance, Engine, NullStore, Permit};
use proptest::prelude::*;

mod answers;

/// A permit for exactly this call. There is no other way to one.
fn permit(call: &ProxiedCall, change: impl FnOnce(&mut ToolCall)) -> Permit {
    let (id, tool, raw_tool) = ("1".into(), call.tool.clone(), call.own.clone());
    let mut call = ToolCall { id, tool, raw_tool, arguments: call.arguments.clone() };
    change(&mut call);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let engine = Engine::new(Arc::new(NullStore), Vec::new());
        let hooks = engine.dispatcher(Identity::top("main", "s", TurnId::new("t")));
        match hooks.clear(call).await {
            Clearance::Run(permit, _) => permit,
            other @ (Clearance::Substituted { .. }
            | Clearance::Waiting { .. }
            | Clearance::Refused { .. }
            | Clearance::Abort { .. }) => panic!("{other:?}"),
        }
    })
}

/// A proxy before the server `n`, whose tools that begin with `hidden` are hidden.
struct Played(McpProxy);

impl Played {
    fn new() -> Self {
        let filter = ToolFilter::new(|tool| !tool.starts_with("hidden"));
        Self(McpProxy::new(ProxyRules { server: "n".into(), filter, accept: "pintle mcp accept n".into() }))
    }

    /// With a server that has listed `tools`, of which those are withheld that end with `!`.
    fn listed(tools: &str) -> Self {
        let mut played = Self::new();
        played.client(r#"{"jsonrpc":"2.0","id":"l","method":"tools/list"}"#);
        played.server(&format!(r#"{{"jsonrpc":"2.0","id":"l","result":{{"tools":[{tools}]}}}}"#));
        played
    }

    fn client(&mut self, text: &str) -> Vec<String> {
        self.0.client(text.to_owned());
        self.steps()
    }

    fn server(&mut self, text: &str) -> Vec<String> {
        self.0.server(text.to_owned(), None);
        self.steps()
    }

    /// What is done, in words; definitions are compared at once.
    fn steps(&mut self) -> Vec<String> {
        let mut said = Vec::new();
        while let Some(step) = self.0.next_step() {
            said.push(match step {
                ProxyStep::ToServer(message) => format!("→ {}", message.text),
                ProxyStep::ToClient(message) => format!("← {}", message.text),
                ProxyStep::Pin(ticket, definitions) => {
                    let withheld = |name: &str| name.ends_with('!').then(|| "it changed".to_owned());
                    let pinned = definitions.into_iter().map(|one| (one.name.clone(), withheld(&one.name)));
                    self.0.pinned(ticket, Ok(pinned.collect()));
                    continue;
                }
                ProxyStep::Clear(ticket, call) => {
                    format!("clear {ticket} {} {}", call.tool, Value::from(call.arguments))
                }
                ProxyStep::Refused(call, why) => format!("refused {}: {why}", call.own),
                ProxyStep::Review(ticket, call, output) => {
                    let tool = call.map_or("?".into(), |call| call.tool);
                    format!("review {ticket} {tool} {} {}", output.is_error, output.for_llm)
                }
                ProxyStep::Sample(ticket, requests) => format!("sample {ticket} {}", requests.len()),
                ProxyStep::Withdrawn(ticket) => format!("withdrawn {ticket}"),
                ProxyStep::Said(key, said) => format!("said {key} {said:?}"),
                ProxyStep::Dropped(why) => format!("dropped: {why}"),
                ProxyStep::Lost(why) => format!("lost: {why}"),
            });
        }
        said
    }

    /// The call that waits to be cleared after `text`.
    fn cleared(&mut self, text: &str) -> (Ticket, ProxiedCall) {
        self.0.client(text.to_owned());
        match self.0.next_step() {
            Some(ProxyStep::Clear(ticket, call)) => (ticket, call),
            other => panic!("{other:?}"),
        }
    }

    /// A call that is at the server, and its ticket.
    fn called(&mut self, text: &str) -> Ticket {
        let (ticket, call) = self.cleared(text);
        self.0.ruled(ticket, ProxyRuling::Run(permit(&call, |_| {}), None));
        assert_eq!(self.steps(), [format!("→ {text}")]);
        ticket
    }
}

const A: &str = r#"{"name":"a","inputSchema":{"type":"object"}}"#;
const CALL: &str = r#"{"jsonrpc":"2.0", "id":7,"method":"tools/call","params":{"name":"a","arguments":{"x": 1.50},"_meta":{"progressToken":"p"}}}"#;

#[test]
fn a_call_goes_to_the_server_with_a_permit_and_in_its_bytes() {
    let mut played = Played::listed(A);
    let (ticket, call) = played.cleared(CALL);
    assert_eq!((call.tool.as_str(), call.progress.as_deref()), ("mcp_n_a", Some("\"p\"")));
    assert!(played.steps().is_empty(), "nothing goes on before the ruling");
    // A server that answers what it was not asked yet is not heard.
    let early = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#;
    assert_eq!(played.server(early), ["dropped: it answers nothing that was asked"]);
    played.0.ruled(ticket, ProxyRuling::Run(permit(&call, |_| {}), None));
    assert_eq!(played.steps(), [format!("→ {CALL}")]);
    let answer = r#"{"jsonrpc":"2.0","id": 7,"result":{"content":[{"type":"text","text":"hi"}],"odd":1}}"#;
    assert_eq!(played.server(answer), [format!("review {ticket} mcp_n_a false hi\n{{\"odd\":1}}")]);
    played.0.reviewed(ticket, None);
    assert_eq!(played.steps(), [format!("← {answer}")]);
}

#[test]
fn a_rewritten_call_goes_on_rewritten_and_nothing_else_of_it_changes() {
    let mut played = Played::listed(&format!(r#"{A},{{"name":"b.c"}},{{"name":"hidden"}},{{"name":"w!"}}"#));
    let mut sent = |change: fn(&mut ToolCall)| {
        let (ticket, call) = played.cleared(CALL);
        played.0.ruled(ticket, ProxyRuling::Run(permit(&call, change), None));
        let steps = played.steps();
        played.0.withdraw(&call.key);
        played.steps();
        steps
    };
    let changed = sent(|call| drop(call.arguments.insert("x".into(), 2.into())));
    assert_eq!(changed, [format!("→ {}", CALL.replace(r#"{"x": 1.50}"#, r#"{"x":2}"#))]);
    let renamed = sent(|call| call.tool = "mcp_n_b_c_b476cc5a".into());
    assert_eq!(renamed, [format!("→ {}", CALL.replace(r#""name":"a""#, r#""name":"b.c""#))]);
    for other in ["exec", "mcp_n_hidden", "mcp_n_w__23aead1b"] {
        let (ticket, call) = played.cleared(CALL);
        played.0.ruled(ticket, ProxyRuling::Run(permit(&call, |call| call.tool = other.into()), None));
        let steps = played.steps().join("\n");
        assert!(steps.contains("not one of the tools shown here") && !steps.contains('→'), "{steps}");
    }
    let bare = r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"a"}}"#;
    let (ticket, call) = played.cleared(bare);
    let added = permit(&call, |call| drop(call.arguments.insert("x".into(), 2.into())));
    played.0.ruled(ticket, ProxyRuling::Run(added, None));
    let expected = r#"→ {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"arguments":{"x":2},"name":"a"}}"#;
    assert_eq!(played.steps(), [expected]);
}

#[test]
fn a_refusal_is_a_result_that_names_the_reason() {
    let mut played = Played::listed(&format!(r#"{A},{{"name":"hidden"}},{{"name":"w!"}}"#));
    let (ticket, _) = played.cleared(CALL);
    played.0.ruled(ticket, ProxyRuling::Denied("no".into()));
    let refusal = |id: &str, why: &str, more: &str| {
        let text = Value::from(why);
        format!(
            r#"← {{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":{text}}}],"isError":true{more}}}}}"#
        )
    };
    assert_eq!(played.steps(), [format!("withdrawn {ticket}"), refusal("7", "no", "")]);
    let why = "there is no tool `hidden` here: the server `n` does not list it, or it is hidden";
    let call = r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"hidden"}}"#;
    assert_eq!(played.client(call), [format!("refused hidden: {why}"), refusal("\"x\"", why, "")]);
    let modern = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"hidden","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    assert!(played.client(modern)[1].ends_with(r#""isError":true,"resultType":"complete"}}"#));
}

#[test]
fn a_tool_that_is_not_known_is_asked_for_first() {
    let mut played = Played::new();
    let asked = played.client(CALL);
    assert_eq!(asked, [r#"→ {"jsonrpc":"2.0","id":"pintle-list-2","method":"tools/list","params":{}}"#]);
    let more = played.server(r#"{"id":"pintle-list-2","result":{"tools":[{"name":"b"}],"nextCursor":"c"}}"#);
    assert_eq!(more, [r#"→ {"jsonrpc":"2.0","id":"pintle-list-3","method":"tools/list","params":{"cursor":"c"}}"#]);
    let cleared = played.server(&format!(r#"{{"id":"pintle-list-3","result":{{"tools":[{A}]}}}}"#));
    assert_eq!(cleared, [r#"clear 1 mcp_n_a {"x":1.50}"#]);
    // Of a server that says that its tools changed, they are asked for again.
    let news = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    assert_eq!(played.server(news), [format!("← {news}")]);
    let next = CALL.replace("\"id\":7", "\"id\":8");
    assert!(played.client(&next)[0].contains("tools/list"));
    let refused = played.server(r#"{"id":"pintle-list-6","result":{"tools":[]}}"#);
    assert!(refused[0].starts_with("refused a: there is no tool `a` here"), "{refused:?}");
}

#[test]
fn a_withheld_tool_is_neither_listed_nor_called() {
    let mut played = Played::new();
    played.client(r#"{"id":1,"method":"tools/list"}"#);
    let listed = played
        .server(&format!(r#"{{"id":1,"result":{{"tools":[ {{"name":"w!"}} , {A},{{"name":"hidden"}}],"x":1}}}}"#));
    assert_eq!(listed, [format!(r#"← {{"id":1,"result":{{"tools":[ {A}],"x":1}}}}"#)]);
    let call = r#"{"id":2,"method":"tools/call","params":{"name":"w!"}}"#;
    let asked = played.client(call);
    assert!(asked[0].contains("tools/list"), "a person may have accepted it meanwhile: {asked:?}");
    let own = McpMessage::read(asked[0].trim_start_matches("→ ").to_owned()).unwrap();
    let refused = played.server(&format!(r#"{{"id":{},"result":{{"tools":[{{"name":"w!"}}]}}}}"#, own.id()));
    assert_eq!(refused[0], "refused w!: it changed");
}

#[test]
fn a_server_that_does_not_list_its_tools_is_not_called() {
    for answer in [
        r#"{"id":"pintle-list-2","error":{"code":-32601,"message":"no such method"}}"#,
        r#"{"id":"pintle-list-2","result":{}}"#,
        r#"{"id":"pintle-list-2","result":{"tools":[],"tools":[]}}"#,
    ] {
        let mut played = Played::new();
        played.client(CALL);
        let refused = played.server(answer);
        let says = |step: &String| step.starts_with("refused a: the server does not say which tools it has");
        assert!(refused.iter().any(says), "{refused:?}");
    }
}

#[test]
fn what_is_called_in_another_way_goes_nowhere() {
    let mut played = Played::listed(A);
    for text in [
        r#"{"method":"tools/call","params":{"name":"a"}}"#,
        r#"{"id":null,"method":"tools/call","params":{"name":"a"}}"#,
        r#"{"id":1,"method":"Tools/call","params":{"name":"a"}}"#,
        r#"{"id":1,"Method":"tools/call","params":{"name":"a"}}"#,
        r#"{"id":1,"method":"tools/call","params":{"Name":"a","name":"a"}}"#,
        r#"{"id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#,
        r#"{"id":1,"method":"tools/call","params":["a"]}"#,
        r#"{"id":1,"method":"tools/call","params":{"name":"a","arguments":[]}}"#,
        r#"[{"id":1,"method":"tools/call","params":{"name":"a"}}]"#,
        "{",
    ] {
        let steps = played.client(text);
        assert!(steps.iter().all(|step| !step.starts_with('→') && !step.starts_with("clear")), "{text}: {steps:?}");
        assert_eq!(steps.len(), 1, "{text}: {steps:?}");
    }
}

#[test]
fn an_id_that_is_in_use_is_refused() {
    let mut played = Played::listed(A);
    played.cleared(CALL);
    for id in ["7", "7.0", "70e-1"] {
        let again = CALL.replace("\"id\":7", &format!("\"id\":{id}"));
        let steps = played.client(&again);
        assert!(steps[0].contains("the id is still in use"), "{steps:?}");
    }
}

#[test]
fn who_withdraws_a_call_hears_nothing_more_of_it() {
    let cancelled = r#"{"method":"notifications/cancelled","params":{"requestId":7}}"#;
    let mut played = Played::listed(A);
    // While it is being cleared the server knows nothing of it.
    let (ticket, call) = played.cleared(CALL);
    assert_eq!(played.client(cancelled), [format!("withdrawn {ticket}")]);
    played.0.ruled(ticket, ProxyRuling::Run(permit(&call, |_| {}), None));
    assert!(played.steps().is_empty());
    // At the server.
    let ticket = played.called(CALL);
    assert_eq!(played.client(cancelled), [format!("withdrawn {ticket}"), format!("→ {cancelled}")]);
    assert_eq!(played.server(r#"{"id":7,"result":{}}"#), ["dropped: it answers nothing that was asked"]);
    // While its result is at the hooks.
    let ticket = played.called(CALL);
    played.server(r#"{"id":7,"result":{"content":[]}}"#);
    assert_eq!(played.client(cancelled), [format!("withdrawn {ticket}"), format!("→ {cancelled}")]);
    played.0.reviewed(ticket, None);
    assert!(played.steps().is_empty());
}

#[test]
fn a_result_is_told_as_hooks_left_it() {
    let mut played = Played::listed(A);
    let mut told = |answer: &str, left: Option<ToolOutput>| {
        let ticket = played.called(CALL);
        let seen = played.server(answer);
        played.0.reviewed(ticket, left);
        (seen[0].split_once("mcp_n_a ").unwrap().1.to_owned(), played.steps().remove(0))
    };
    let left = |text: &str| Some(ToolOutput::ok(text));
    let (seen, said) = told(r#"{"id":7,"result":{"content":[{"type":"text","text":"key"}]}}"#, left("-"));
    assert_eq!(
        (seen.as_str(), said.as_str()),
        ("false key", r#"← {"id":7,"result":{"content":[{"type":"text","text":"-"}],"isError":false}}"#)
    );
    let error = r#"{"id":7,"error":{"code":1,"message":"key","data":{"k":1}}}"#;
    assert_eq!(told(error, None), ("true key\n{\"k\":1}".into(), format!("← {error}")));
    assert_eq!(told(error, left("-")).1, r#"← {"id":7,"error":{"code":-32603,"message":"-"}}"#);
}

#[test]
fn a_server_asks_the_clients_model_past_the_hooks() {
    let mut played = Played::new();
    let asked = r#"{"id":3,"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":5}}"#;
    let mut sample = |text: &str| {
        played.0.server(text.to_owned(), None);
        match played.0.next_step() {
            Some(ProxyStep::Sample(ticket, requests)) => (ticket, requests),
            other => panic!("{other:?}"),
        }
    };
    let (same, requests) = sample(asked);
    let (changed, _) = sample(asked);
    let (refused, _) = sample(asked);
    let mut left = requests.clone();
    left[0].messages[0] = Message { content: "ho".into(), ..left[0].messages[0].get().clone() }.into();
    played.0.sampled(same, Ok(requests));
    played.0.sampled(changed, Ok(left));
    played.0.sampled(refused, Err("no".into()));
    let error = r#"→ {"jsonrpc":"2.0","id":3,"error":{"code":-1,"message":"no"}}"#;
    assert_eq!(played.steps(), [format!("← {asked}"), format!("← {}", asked.replace("hi", "ho")), error.into()]);
    assert!(played.server(r#"{"id":3,"method":"sampling/createMessage"}"#)[0].starts_with("→ "));
}

#[test]
fn a_server_that_is_gone_leaves_nobody_waiting() {
    let mut played = Played::listed(&format!(r#"{A},{{"name":"b"}}"#));
    let ticket = played.called(CALL);
    let (held, _) = played.cleared(&CALL.replace("\"id\":7", "\"id\":8"));
    played.client(r#"{"id":"x","method":"resources/list"}"#);
    played.0.server_gone("it died");
    let steps = played.steps();
    let review = format!("review {ticket} mcp_n_a true it died");
    let expected = [
        review.as_str(),
        r#"← {"jsonrpc":"2.0","id":"x","error":{"code":-32603,"message":"it died"}}"#,
        &format!("withdrawn {held}"),
        "refused a: it died",
        r#"← {"jsonrpc":"2.0","id":8,"result":{"content":[{"type":"text","text":"it died"}],"isError":true}}"#,
    ];
    assert_eq!(steps, expected);
    played.0.reviewed(ticket, None);
    assert_eq!(
        played.steps(),
        [r#"← {"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"it died"}],"isError":true}}"#]
    );
    assert!(played.0.is_idle());
}

#[test]
fn progress_belongs_to_its_request() {
    let mut played = Played::listed(A);
    played.called(CALL);
    let progress = r#"{"method":"notifications/progress","params":{"progressToken":"p","progress":1}}"#;
    played.0.server(progress.into(), None);
    let Some(ProxyStep::ToClient(message)) = played.0.next_step() else { panic!() };
    assert_eq!((message.text.as_str(), message.about.unwrap().to_string()), (progress, "7".to_owned()));
}

#[test]
fn what_is_told_of_a_subscription_belongs_to_the_request_that_began_it() {
    let mut played = Played::new();
    played.client(r#"{"id":"sub","method":"subscriptions/listen","params":{}}"#);
    let told = r#"{"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"sub"}}}"#;
    let about = |played: &mut Played, text: &str| {
        played.0.server(text.into(), None);
        let Some(ProxyStep::ToClient(message)) = played.0.next_step() else { panic!() };
        message.about.map(|key| key.to_string())
    };
    assert_eq!(about(&mut played, told), Some("sub".to_owned()));
    assert_eq!(about(&mut played, &told.replace("\"sub\"", "\"other\"")), None);
}

fn text() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".*".prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{0,4}", inner, 0..4).prop_map(|all| all.into_iter().collect::<Value>())
        ]
    })
}

/// Blanks that stand between the parts of a message.
fn blanks() -> impl Strategy<Value = String> {
    "[ \t]{0,3}"
}

proptest! {
    /// Requests, notices and answers that no rule is about.
    #[test]
    fn what_no_rule_touches_passes_in_its_bytes(
        method in "[a-z]{1,8}/[a-z]{1,8}",
        params in text(),
        answer in text(),
        blank in blanks(),
        id in prop_oneof![any::<i64>().prop_map(Value::from), ".{0,8}".prop_map(Value::from)],
    ) {
        prop_assume!(!["tools/call", "tools/list", "tasks/get"].contains(&method.as_str()));
        let mut played = Played::new();
        let id_text = id.to_string();
        let request = format!(r#"{blank}{{ "jsonrpc":{blank}"2.0","id": {id_text},"method":"{method}","params":{params}{blank}}}"#);
        prop_assert_eq!(played.client(&request), [format!("→ {request}")]);
        let reply = format!(r#"{{"result":{answer}{blank},"jsonrpc":"2.0","id":{id_text}}}{blank}"#);
        prop_assert_eq!(played.server(&reply), [format!("← {reply}")]);
        let notice = format!(r#"{{"method":"notifications/{method}","params":{params}}}"#);
        prop_assert_eq!(played.client(&notice), [format!("→ {notice}")]);
        prop_assert_eq!(played.server(&notice), [format!("← {notice}")]);
        prop_assert_eq!(played.server(&request), [format!("← {request}")]);
        prop_assert_eq!(played.client(&reply), [format!("→ {reply}")]);
    }

    /// Lists from which nothing is taken, and calls and results that hooks leave as they are.
    #[test]
    fn lists_calls_and_results_pass_in_their_bytes(
        arguments in prop::collection::btree_map("[a-z]{0,4}", text(), 0..4),
        content in text(),
        blank in blanks(),
        schema in text(),
    ) {
        let mut played = Played::new();
        played.client(r#"{"id":1,"method":"tools/list"}"#);
        let list = format!(r#"{{"id":1,"result":{{"tools":[{blank}{{"name":"a",{blank}"inputSchema":{schema}}}]}}}}"#);
        prop_assert_eq!(played.server(&list), [format!("← {list}")]);
        let arguments: Value = arguments.into_iter().collect();
        let call = format!(r#"{{"id":7,{blank}"method":"tools/call","params":{{"name":"a","arguments":{arguments}{blank}}}}}"#);
        let ticket = played.called(&call);
        let result = format!(r#"{{"id":7,"result":{{"content":{content},"isError":false{blank}}}}}"#);
        let seen = played.server(&result);
        prop_assert!(seen[0].starts_with("review"), "{:?}", seen);
        played.0.reviewed(ticket, None);
        prop_assert_eq!(played.steps(), [format!("← {result}")]);
    }

    /// Whatever comes, a call goes nowhere without a permit.
    #[test]
    fn nothing_is_called_without_a_permit(texts in prop::collection::vec(any_message(), 1..12)) {
        let mut played = Played::new();
        for (from_client, text) in texts {
            let steps = if from_client { played.client(&text) } else { played.server(&text) };
            for step in steps.iter().filter_map(|step| step.strip_prefix("→ ")) {
                let message = McpMessage::read(step.to_owned()).unwrap();
                let is_call = matches!(&message.kind,
                    McpKind::Request { method, .. } | McpKind::Notice { method } if method.trim().eq_ignore_ascii_case("tools/call"));
                prop_assert!(!is_call, "{step}");
            }
        }
    }
}

fn any_message() -> impl Strategy<Value = (bool, String)> {
    let method = prop_oneof![
        Just("tools/call"),
        Just("Tools/Call"),
        Just("tools/list"),
        Just("tasks/result"),
        Just("notifications/cancelled"),
        Just("ping")
    ];
    let id = prop_oneof![Just("1"), Just("1.0"), Just("\"1\""), Just("null"), Just("\"pintle-list-2\"")];
    let params = prop_oneof![
        Just(r#"{"name":"a"}"#),
        Just(r#"{"name":"a","requestId":1}"#),
        Just(r#"{"Name":"a"}"#),
        Just("null"),
        Just(r#"{"taskId":"t"}"#)
    ];
    let body =
        prop_oneof![Just(r#"{"tools":[{"name":"a"}]}"#), Just(r#"{"content":[]}"#), Just(r#"{"task":{"taskId":"t"}}"#)];
    (any::<bool>(), any::<bool>(), method, id, params, body).prop_map(
        |(from_client, asks, method, id, params, body)| {
            let text = match asks {
                true => format!(r#"{{"id":{id},"method":"{method}","params":{params}}}"#),
                false => format!(r#"{{"id":{id},"result":{body}}}"#),
            };
            (from_client, text)
        },
    )
}

#[test]
fn an_own_request_says_what_the_newest_protocol_wants() {
    let mut played = Played::new();
    let call = r#"{"id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","x":1}}}"#;
    let asked = played.client(call);
    let expected = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "x": 1}}).to_string();
    assert!(asked[0].ends_with(&format!(r#""params":{expected}}}"#)), "{asked:?}");
}
