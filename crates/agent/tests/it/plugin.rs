//! A plugin as its author published it, run by a real Python with nothing but its path in the configuration.

use std::path::Path;

use pintle_agent::driver::TurnEnding;
use pintle_domain::json::json;
use pintle_domain::record::HookOutcome;
use pintle_domain::verdict::VerdictKind;

use crate::host::Host;

fn fixtures() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures"))
}

#[tokio::test]
async fn the_published_weather_plugin_runs_unchanged() {
    let script = json!({"replies": [
        {"when": {"tool": "get_weather"}, "tool_calls": [{"name": "get_weather", "arguments": {"city": "Beijing"}}]},
        {"text": ["Beijing is sunny today, temperature 15°C"]},
    ]});
    let mut host = Host::new(&script, &["read_file"]);
    let entry = json!({
        "enabled": true, "priority": 100, "transport": "stdio",
        "command": ["python3", "weather_plugin.py"], "intercept": ["before_llm", "before_tool"],
    });
    host.mount(vec![pintle_process::mount_entry(&host.engine, "weather_plugin", &entry, fixtures()).unwrap()]);
    let report = host.turn("What's the weather in Beijing today?").await;
    assert_eq!(report.ending, TurnEnding::Completed, "{:?}", host.seen.events());
    assert_eq!(report.reply, "Beijing is sunny today, temperature 15°C");
    let answers: Vec<&str> = host
        .conversation
        .messages()
        .iter()
        .filter(|message| !message.get().tool_call_id.is_empty())
        .map(|message| message.get().content.as_str())
        .collect();
    assert_eq!(answers, ["Beijing weather: Sunny, temperature 15°C, humidity 45%"]);
    let responded = host
        .seen
        .records
        .lock()
        .unwrap()
        .iter()
        .flat_map(|record| record.hooks.to_vec())
        .any(|record| matches!(record.outcome, HookOutcome::Said { word: VerdictKind::Respond, .. }));
    assert!(responded);
    host.engine.close().await;
}
