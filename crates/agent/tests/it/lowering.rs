//! What a turn with texts of skills looks like to a server whose model binds its thoughts to everything before them.

use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use pintle_agent::driver::TurnEnding;
use pintle_agent::{Conversation, Models, SkillSet, TurnHandle};
use pintle_domain::checkpoint::LlmPatch;
use pintle_domain::json::{Value, json};
use pintle_domain::message::{Message, Role};
use pintle_domain::tool::ToolOutput;
use pintle_domain::verdict::Verdict;
use pintle_providers::RemovalMode;
use pintle_providers::WireKind::{self, Anthropic, OpenAi};
use pintle_providers::capabilities::Overrides;
use pintle_providers::{ProviderSpec, connect};
use pintle_store::Memory;
use pintle_testkit::http::{HttpStub, StubAnswer};

use crate::hooks::{OwnTool, Rule};
use crate::host::{Host, Parts};
use crate::sessions::Mortal;
use crate::skills::{evidence, planning, skills};

/// The member that marks a text as one that expires, where a server has one.
const MARKER: &str = "fades";

/// A server, and how its models are spoken to.
struct Server {
    name: &'static str,
    kind: WireKind,
    stub: HttpStub,
    marker: &'static str,
}

impl Server {
    async fn start(name: &'static str, kind: WireKind, answers: Vec<StubAnswer>) -> Self {
        Self { name, kind, stub: HttpStub::start(answers).await, marker: "" }
    }

    /// The messages of each request, as they came.
    fn asked(&self) -> Vec<Value> {
        self.stub.seen().iter().map(|seen| seen.json()["messages"].take()).collect()
    }

    /// What is said in the request number `n`, piece by piece; a `*` behind a text that expires.
    fn told(&self, n: usize) -> String {
        self.asked()[n].as_array().unwrap().iter().flat_map(pieces).collect::<Vec<_>>().join(" ")
    }

    /// Whether the request number `n` begins with all the bytes of the messages of the one before.
    fn goes_on(&self, n: usize) -> bool {
        let [before, now] = [n - 1, n].map(|at| {
            let body = self.stub.seen()[at].body.clone();
            let messages = self.asked()[at].to_string();
            assert!(body.contains(&messages), "the messages stand in the body as they are printed");
            messages
        });
        now.starts_with(before.trim_end_matches(']'))
    }
}

/// The texts, thoughts and calls of a message.
fn pieces(message: &Value) -> Vec<String> {
    let texts = |text: &str, mark: &str| -> Vec<String> {
        let bare = text.replace("<system-reminder>\n", "").replace("\n</system-reminder>", "");
        bare.split("\n\n").filter(|text| !text.is_empty()).map(|text| format!("{text}{mark}")).collect()
    };
    let mut all = Vec::new();
    all.extend(texts(message["content"].as_str().unwrap_or_default(), ""));
    for part in message["content"].as_array().into_iter().flatten() {
        let mark = if part[MARKER] == true { "*" } else { "" };
        let said = ["text", "thinking", "content", "name"].iter().filter_map(|member| part[*member].as_str());
        all.extend(said.flat_map(|text| texts(text, mark)));
    }
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    all.extend(calls.filter_map(|call| call["function"]["name"].as_str().map(str::to_owned)));
    all
}

/// What a model says: its thoughts, a text, a call of a tool.
fn says(kind: WireKind, (thought, text): (&str, &str), call: Option<(&str, &str)>) -> StubAnswer {
    let whole = if kind == Anthropic {
        let mut content = vec![json!({"type": "thinking", "thinking": thought, "signature": "s"})];
        content.extend((!text.is_empty()).then(|| json!({"type": "text", "text": text})));
        content.extend(call.map(|(id, name)| json!({"type": "tool_use", "id": id, "name": name, "input": {}})));
        let reason = if call.is_some() { "tool_use" } else { "end_turn" };
        json!({"type": "message", "role": "assistant", "content": content, "stop_reason": reason})
    } else {
        let function = |name| json!({"name": name, "arguments": "{}"});
        let calls: Vec<Value> =
            call.iter().map(|(id, name)| json!({"id": id, "type": "function", "function": function(name)})).collect();
        let message = json!({"role": "assistant", "content": text, "reasoning_content": thought, "tool_calls": calls});
        json!({"choices": [{"message": message, "finish_reason": "stop"}]})
    };
    StubAnswer::json(&whole.to_string())
}

const READS: Option<(&str, &str)> = Some(("c1", "read_file"));
const FETCHES: Option<(&str, &str)> = Some(("c2", "web_fetch"));

/// A plan, two rounds with a call each, an answer.
fn turn_of(kind: WireKind) -> Vec<StubAnswer> {
    vec![
        says(kind, ("thp", "P0 <need_tool/>"), None),
        says(kind, ("th1", ""), READS),
        says(kind, ("th2", ""), FETCHES),
        says(kind, ("th3", "A3"), None),
    ]
}

fn refused(status: u16, message: &str) -> StubAnswer {
    StubAnswer::new(status, json!({"error": {"type": "x", "message": message}}).to_string())
}

/// A host that plans, over these servers; the first one is asked first. The tool `read_file` says `steers` to the turn.
fn host(servers: &[&Server], removal: RemovalMode, steers: Option<(TurnHandle, &'static str)>) -> Host {
    let mut parts = Parts::of(json!([]));
    let mut named = servers.iter().map(|server| format!("{}/m", server.name));
    parts.settings.model = named.next().unwrap();
    parts.settings.fallbacks = named.collect();
    parts.settings.system = "S0".into();
    parts.settings.planning = Some(planning());
    parts.settings.removal = removal;
    let provider = |server: &Server| {
        let capabilities = Overrides {
            prefix_bound_reasoning: Some(true),
            turn_scoped: Some(server.marker.into()),
            user_after_tool: Some(true),
            ..Overrides::default()
        };
        let spec = ProviderSpec::new(server.name, server.kind);
        connect(&ProviderSpec { base_url: Some(server.stub.url()), capabilities, ..spec }).unwrap()
    };
    let models = servers.iter().fold(Models::default(), |models, it| models.with(it.name, provider(it)));
    parts.models = Some(Arc::new(models));
    let reads = move |_, _| {
        if let Some((turn_handle, text)) = &steers {
            turn_handle.steer(*text).unwrap();
        }
        Box::pin(std::future::ready(ToolOutput::ok("T1"))) as _
    };
    let parts = parts.own(OwnTool::new("read_file", false, Box::new(reads)));
    let mut host = parts.own(OwnTool::giving("web_fetch", ToolOutput::ok("T2"))).host();
    host.runner = host.runner.with_skills(Arc::new(SkillSet::new(skills())));
    host
}

/// What was told of texts that were taken out: their number and what became of them.
fn taken_out(host: &Host) -> Vec<String> {
    let fate = |line: String| {
        let (before, after) = line.split_once(" taken out, seen by ")?;
        let id = before.rsplit_once('#')?.1.to_owned();
        Some(format!("#{id} {}", after.split_once("; ").map_or("gone", |(_, fate)| fate)))
    };
    evidence(host).into_iter().filter_map(fate).collect()
}

/// The same pieces, as a wire without thoughts has them.
fn without_thoughts(pieces: &str) -> String {
    pieces.split(' ').filter(|piece| !piece.starts_with("th")).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn each_request_of_the_loop_begins_with_the_bytes_of_the_one_before() {
    for (kind, marker, fate) in [
        (Anthropic, "", "frozen on the wire"),
        (Anthropic, MARKER, "expired on the wire"),
        (OpenAi, "", "frozen on the wire"),
        (OpenAi, MARKER, "expired on the wire"),
    ] {
        let server = Server { marker, ..Server::start("stub", kind, turn_of(kind)).await };
        let turn_handle = TurnHandle::default();
        let mut host = host(&[&server], RemovalMode::Freeze, Some((turn_handle.clone(), "U2")));
        assert_eq!(host.turn_by("U1", &turn_handle).await.reply, "A3");
        let check = |n: usize, expected: &str| {
            let system = if kind == OpenAi { "S0 " } else { "" };
            let expected = if kind == OpenAi { without_thoughts(expected) } else { expected.to_owned() };
            let expected = if marker.is_empty() { expected.replace('*', "") } else { expected };
            assert_eq!(server.told(n), format!("{system}{expected}"), "{kind:?} {marker:?}");
        };
        // The plan stands outside: what was said to it is gone, and it comes back without thoughts.
        check(0, "U1 tone plan-tip PLAN");
        let first = "U1 tone P0 check* goal FIRST*";
        check(1, first);
        let second = format!("{first} th1 read_file T1 trunc* cite* U2 check* LOOP*");
        check(2, &second);
        check(3, &format!("{second} th2 web_fetch T2 cite* check* LOOP*"));
        assert!(server.goes_on(2) && server.goes_on(3), "{kind:?} {marker:?}: {:#?}", server.asked());
        // What left before a further call is still on the wire; what left with the end of the turn is not.
        let still = |id: &str| format!("{id} {fate}");
        let mut expected: Vec<String> = ["#3 gone", "#2 gone"].map(str::to_owned).to_vec();
        expected.extend(["#6", "#4", "#7", "#8", "#10", "#9"].map(still));
        expected.extend(["#13 gone", "#5 gone", "#11 gone"].map(str::to_owned));
        assert_eq!(taken_out(&host), expected, "{kind:?} {marker:?}");
    }
}

#[tokio::test]
async fn with_strip_reasoning_a_text_leaves_and_takes_the_thoughts_with_it_that_were_bound_to_it() {
    for kind in [Anthropic, OpenAi] {
        let server = Server { marker: MARKER, ..Server::start("stub", kind, turn_of(kind)).await };
        let mut host = host(&[&server], RemovalMode::StripReasoning, None);
        assert_eq!(host.turn("U1").await.reply, "A3");
        let system = if kind == OpenAi { "S0 " } else { "" };
        let told: Vec<String> = (1..4).map(|n| server.told(n)).collect();
        let expected = [
            "U1 tone P0 check goal FIRST",
            "U1 tone P0 goal read_file T1 trunc cite check LOOP",
            "U1 tone P0 goal read_file T1 web_fetch T2 cite check LOOP",
        ];
        assert_eq!(told, expected.map(|line| format!("{system}{line}")));
        let all = taken_out(&host);
        assert!(all.len() == 11 && all.iter().all(|line| line.ends_with(" gone")), "{all:?}");
    }
}

#[tokio::test]
async fn thoughts_behind_words_that_stay_come_back_although_others_leave() {
    // Nothing that leaves stands before the first answer: only what is behind it goes.
    let answers = vec![
        says(Anthropic, ("th1", ""), READS),
        says(Anthropic, ("th2", ""), FETCHES),
        says(Anthropic, ("th3", "A3"), None),
    ];
    let server = Server::start("stub", Anthropic, answers).await;
    let mut host = host(&[&server], RemovalMode::StripReasoning, None);
    let after = skills().hooks.iter().filter(|hook| hook.name == "trunc").cloned().collect();
    let mut settings = host.runner.settings().clone();
    settings.planning = None;
    host.remake(settings);
    host.runner = host.runner.with_skills(Arc::new(SkillSet::new(pintle_domain::skill::Skills::new(after))));
    host.turn("U1").await;
    assert_eq!(server.told(1), "U1 th1 read_file T1 trunc");
    assert_eq!(server.told(2), "U1 th1 read_file T1 web_fetch T2");
}

#[tokio::test]
async fn a_call_that_is_tried_again_is_the_same_bytes() {
    let mut answers = turn_of(Anthropic);
    answers.insert(2, refused(429, "slow down").header("retry-after", "0"));
    let server = Server::start("stub", Anthropic, answers).await;
    let mut host = host(&[&server], RemovalMode::Freeze, None);
    assert_eq!(host.turn("U1").await.reply, "A3");
    let bodies: Vec<String> = server.stub.seen().into_iter().map(|seen| seen.body).collect();
    assert_eq!((bodies.len(), &bodies[2]), (5, &bodies[3]));
    assert!(server.goes_on(4));
    assert!(server.told(4).contains("th1 ") && server.told(4).contains("th2 "), "{}", server.told(4));
}

#[tokio::test]
async fn another_model_has_a_wire_of_its_own_and_no_use_for_the_thoughts_of_this_one() {
    let mut answers = turn_of(Anthropic);
    answers[2] = refused(400, "not today");
    let first = Server::start("one", Anthropic, answers).await;
    let second = Server::start("two", Anthropic, vec![says(Anthropic, ("th2", ""), FETCHES)]).await;
    let mut host = host(&[&first, &second], RemovalMode::Freeze, None);
    assert_eq!(host.turn("U1").await.reply, "A3");
    // What left before it was asked never reached it.
    assert_eq!(second.told(0), "U1 tone P0 goal read_file T1 trunc cite check LOOP");
    // The first one goes on from what it was sent, and keeps the thoughts that are its own.
    let before = "U1 tone P0 check goal FIRST th1 read_file T1 trunc cite check LOOP";
    assert_eq!(first.told(2), before);
    assert_eq!(first.told(3), format!("{before} web_fetch T2 cite check LOOP"));
    assert!(first.goes_on(2) && first.goes_on(3));
}

#[tokio::test]
async fn after_a_compaction_the_wire_begins_anew() {
    let mut answers = vec![says(Anthropic, ("thp", "<need_tool/>"), None), says(Anthropic, ("old", "A0"), None)];
    answers.extend(turn_of(Anthropic));
    answers.splice(4..4, [refused(413, "prompt is too long"), says(Anthropic, ("aside", "in short"), None)]);
    let server = Server::start("stub", Anthropic, answers).await;
    let mut host = host(&[&server], RemovalMode::Freeze, None);
    assert_eq!(host.turn("U0").await.reply, "A0");
    assert_eq!(host.turn("U1").await.reply, "A3");
    // Before: everything that was sent once. Thoughts of an earlier turn go with it.
    assert_eq!(server.told(4), "U0 tone old A0 U1 tone P0 check goal FIRST th1 read_file T1 trunc cite check LOOP");
    // What is asked aside is not part of the turn.
    let aside = server.told(5);
    assert!(aside.starts_with("user: U0\n") && !aside.contains("check"), "{aside}");
    let after = server.told(6);
    assert!(after.starts_with("[Summary of the conversation so far]\nin short"), "{after}");
    assert!(!after.contains("FIRST") && !after.contains("th1"), "{after}");
    assert!(!server.goes_on(6) && server.goes_on(7), "{:#?}", server.asked());
    assert!(server.told(7).ends_with("th2 web_fetch T2 cite check LOOP"), "{}", server.told(7));
}

#[tokio::test]
async fn a_turn_that_another_process_takes_up_has_sent_nothing_yet() {
    let mut answers = turn_of(Anthropic);
    answers.insert(2, StubAnswer::silence());
    let server = Server::start("stub", Anthropic, answers).await;
    let kept = Arc::new(Memory::new());
    {
        let mut host = host(&[&server], RemovalMode::Freeze, None);
        let store = Mortal::with_lives(kept.clone(), usize::MAX);
        host.conversation = Conversation::open(store.clone(), "s").unwrap();
        let waits = async {
            while server.stub.seen().len() < 3 {
                tokio::task::yield_now().await;
            }
        };
        let mut turn = Box::pin(host.turn("U1"));
        let killed = matches!(select(&mut turn, pin!(waits)).await, Either::Right(_));
        assert!(killed, "the server never answers");
        store.die();
        drop(turn);
    }
    let mut host = host(&[&server], RemovalMode::Freeze, None);
    host.conversation = Conversation::open(kept, "s").unwrap();
    let resumed = host.runner.resume(&mut host.conversation, host.seen.clone(), &TurnHandle::default()).await.unwrap();
    assert_eq!((resumed.reply.as_str(), resumed.ending), ("A3", TurnEnding::Completed));
    assert_eq!(server.told(2), "U1 tone P0 check goal FIRST th1 read_file T1 trunc cite check LOOP");
    // What left before is on no wire any more, so the thoughts behind it are not sent.
    assert_eq!(server.told(3), "U1 tone P0 goal read_file T1 trunc cite check LOOP");
    assert!(server.goes_on(4));
    // What left in the round that died is told of by this process too, which sends it no more; then it is as ever.
    let still = ["#7", "#8", "#10", "#9"].map(|id| format!("{id} frozen on the wire"));
    let gone = |ids: &[&str]| ids.iter().map(|id| format!("{id} gone")).collect::<Vec<_>>();
    assert_eq!(taken_out(&host), [gone(&["#6", "#4"]), still.to_vec(), gone(&["#13", "#5", "#11"])].concat());
}

#[tokio::test]
async fn what_a_rewriter_adds_to_a_call_is_frozen_and_what_it_takes_away_is_sent_again() {
    let server = Server { marker: MARKER, ..Server::start("stub", Anthropic, turn_of(Anthropic)).await };
    let mut host = host(&[&server], RemovalMode::Freeze, None);
    let rule = Rule {
        before_llm: Some(Box::new(|at| {
            let kept = at.request.messages.iter().filter(|message| message.get().content != "goal").cloned();
            let own = Message::text(Role::User, format!("X{}", at.request.messages.len()));
            let messages = kept.chain([own.into()]).collect();
            Verdict::Modify(LlmPatch { messages: Some(messages), ..LlmPatch::default() })
        })),
        ..Rule::default()
    };
    host.mount(vec![host.engine.native("h", 0, Arc::new(rule))]);
    assert_eq!(host.turn("U1").await.reply, "A3");
    let second = "U1 tone P0 check* FIRST* X7 th1 read_file T1 trunc* cite* check* LOOP* X11";
    assert_eq!(server.told(2), second);
    assert_eq!(server.told(3), format!("{second} th2 web_fetch T2 cite* check* LOOP* X12"));
    assert!(server.goes_on(2) && server.goes_on(3));
}

#[tokio::test]
async fn a_turn_without_texts_leaves_as_it_stands() {
    let answers = vec![says(OpenAi, ("th1", ""), READS), says(OpenAi, ("th2", "A2"), None)];
    let server = Server::start("stub", OpenAi, answers).await;
    let mut host = host(&[&server], RemovalMode::Freeze, None);
    let mut settings = host.runner.settings().clone();
    settings.planning = None;
    host.remake(settings);
    assert_eq!(host.turn("look at <system-reminder>").await.reply, "A2");
    assert_eq!(server.told(1), "S0 look at <system-reminder> read_file T1");
}
