//! The files under `tests/config`: each invalid one beside what is said about it, each valid one loads silently.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pintle_domain::fault::Fault;
use pintle_domain::hook::{Hook, HookState};
use pintle_providers::capabilities::MidSystem;
use proptest::prelude::*;

use super::*;

mod agents;
mod found;
mod layers;
mod trusting;

/// Set to write the expected files anew.
const RENEW: &str = "PINTLE_RENEW_EXPECTED";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config")
}

fn bare_env() -> Env {
    Env { vars: [("HOME".to_owned(), "/nowhere".into())].into(), cwd: folder() }
}

fn load_one(file: &Path) -> Result<Loaded, HostError> {
    load(&bare_env(), &LoadOptions { config: Some(file), builtins: &["redact"], ..LoadOptions::default() })
}

fn files(folder: &Path, extensions: &[&str]) -> BTreeSet<PathBuf> {
    let all = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.extension().is_some_and(|found| extensions.iter().any(|wanted| found == *wanted)))
        .map(|path| PathBuf::from(path.file_name().unwrap()))
        .collect()
}

/// One line for each hook: its state, and what it does where.
fn outline(hook: &Hook) -> String {
    let state = match &hook.state {
        HookState::Armed => "armed".to_owned(),
        HookState::Disabled => "disabled".to_owned(),
        HookState::Untrusted => "untrusted".to_owned(),
        HookState::Tripped { since } => format!("tripped since {since}"),
        HookState::Broken(Fault::CannotStart { .. }) => "broken".to_owned(),
        HookState::Broken(other) => format!("broken otherwise: {}", other.explained()),
    };
    let mut line = format!("hook {} {state}", hook.name);
    for kind in hook.stages.kinds() {
        let stage = hook.stages.get(kind).unwrap();
        let paired = if stage.paired { " paired" } else { "" };
        write!(line, "; {} {:?} {:?}{paired}", kind.name(), stage.timeout, stage.on_failure).unwrap();
    }
    if let Some(matcher) = &hook.matcher {
        write!(line, "; matcher {}", matcher.pattern()).unwrap();
    }
    line
}

fn said(loaded: Result<Loaded, HostError>) -> String {
    match loaded {
        Err(error) => {
            let code = if error.kind == crate::error::ErrorKind::Usage { 2 } else { 1 };
            format!("exit {code}: {error}\n")
        }
        Ok(loaded) => {
            let diagnostics = loaded.diagnostics.iter().map(|diagnostic| format!("{diagnostic}\n"));
            let hooks = loaded.config.hooks.iter().map(|loaded| format!("{}\n", outline(&loaded.hook)));
            diagnostics.chain(hooks).collect()
        }
    }
}

#[test]
fn invalid_files_are_told_what_is_wrong() {
    let configurations = files(&folder(), &["toml", "json"]);
    let expected: BTreeSet<_> = files(&folder(), &["expected"]);
    let wanted: BTreeSet<_> =
        configurations.iter().map(|file| PathBuf::from(format!("{}.expected", file.display()))).collect();
    if std::env::var_os(RENEW).is_some() {
        for file in &configurations {
            fs::write(folder().join(format!("{}.expected", file.display())), said(load_one(file))).unwrap();
        }
    } else {
        assert_eq!(expected, wanted, "each configuration has its expected file, and the other way round");
    }
    let mut differences = String::new();
    for file in &configurations {
        let expected = fs::read_to_string(folder().join(format!("{}.expected", file.display()))).unwrap();
        let found = said(load_one(file));
        if found != expected {
            writeln!(differences, "== {}\n-- expected\n{expected}-- found\n{found}", file.display()).unwrap();
        }
        assert!(found.starts_with("exit 2: ") || found.starts_with(file.to_str().unwrap()), "{file:?} is valid");
    }
    assert!(differences.is_empty(), "{differences}set {RENEW}=1 to accept this");
}

#[test]
fn valid_files_load_without_a_word() {
    let valid = files(&folder().join("valid"), &["toml", "json"]);
    assert_eq!(valid.len(), fs::read_dir(folder().join("valid")).unwrap().count(), "only configurations are there");
    for file in valid {
        let loaded = load_one(&Path::new("valid").join(&file)).unwrap();
        assert_eq!(loaded.diagnostics, [], "{file:?}");
    }
}

#[test]
fn a_bad_store_is_none_and_aliases_of_tools_are_their_tools() {
    let Loaded { mut config, .. } = load_one(Path::new("settings.toml")).unwrap();
    let why = "settings.toml:4:7: store.url: unsupported store, got \"mysql\", expected sqlite://FILE, postgres://… or memory:";
    assert_eq!(config.bad_store(), Some(why));
    config.keep_nothing();
    assert_eq!((config.bad_store(), config.store_url.as_str()), (None, "memory:"));
    assert!(load_one(Path::new("sections.json")).unwrap().config.bad_store().is_some());

    let Loaded { config, .. } = load_one(Path::new("agents.toml")).unwrap();
    assert_eq!(config.agents.keys().collect::<Vec<_>>(), ["good"]);
    assert_eq!(config.agents["good"].tools.as_deref(), Some(&["exec".to_owned()][..]));
    let why = config.agent(Some("main")).unwrap_err().message;
    assert!(why.starts_with("the agent `main` is not loaded: agents.toml:"), "{why}");
}

#[test]
fn every_key_of_a_whole_configuration_arrives() {
    let Loaded { config, .. } = load_one(Path::new("valid/whole.toml")).unwrap();
    let folder = folder().join("valid");
    let agent = config.agent(None).unwrap();
    assert_eq!(agent.name, "main");
    assert_eq!((agent.max_iterations, agent.stream_unreviewed, agent.default), (20, true, true));
    assert_eq!(agent.workspace, folder.join("."));
    assert_eq!(agent.tools.as_deref(), Some(&["read_file", "list_dir", "mcp_files_*"].map(str::to_owned)[..]));
    assert_eq!(
        serde_json::to_string(&agent.options).unwrap(),
        r#"{"temperature":0.7,"max_tokens":4096,"stop":["\n\n"]}"#
    );
    let models: Vec<_> =
        config.models(agent, None).unwrap().into_iter().map(|found| (found.provider, found.model)).collect();
    let expected = [("local", "org/smollm2"), ("claude", "claude-haiku-4-5"), ("play", "any")];
    assert_eq!(models, expected.map(|(provider, model)| (provider.to_owned(), model.to_owned())));
    assert_eq!(config.providers["play"].script(), Some(&folder.join("replies.toml")));
    assert_eq!(
        config.providers["local"].kind,
        ProviderConfigKind::Server {
            wire: WireKind::OpenAi,
            base_url: Some(Url::parse("http://127.0.0.1:8000/v1").unwrap()),
            tool_mode: ToolMode::JsonSchema
        }
    );
    let sees: Vec<_> = config.providers.iter().map(|(name, provider)| (name.as_str(), provider.vision)).collect();
    assert_eq!(sees, [("claude", true), ("local", true), ("play", false)]);
    let takes = Overrides {
        mid_system: Some(MidSystem::Free),
        turn_scoped: Some("fades".into()),
        prefix_bound_reasoning: Some(true),
        ..Overrides::default()
    };
    assert_eq!(config.providers["local"].takes, takes);
    assert_eq!(config.secrets, ["ANTHROPIC_API_KEY", "LOCAL_KEY", pintle_telemetry::HEADERS].map(str::to_owned).into());
    assert_eq!(config.otlp_endpoint.as_deref(), Some("http://localhost:4318"));
    assert!(config.strict_start && config.verify_history);
    assert_eq!((config.durability, config.store_url.as_str()), (Durability::BeforeEffect, "sqlite://records/here.db"));
    assert_eq!(config.tools.exec_inherit_env, ["GH_TOKEN"]);
    assert_eq!(config.tools.exec_shell.program(), Path::new("/bin/bash"));
    assert_eq!(config.tools.web_fetch_allow.len(), 2);
    let hooks: Vec<_> = config.hooks.iter().map(|loaded| outline(&loaded.hook)).collect();
    assert_eq!(
        hooks,
        [
            "hook redact armed; matcher ^exec$",
            "hook every key armed; before_llm 1ms AbortTurn; approve_tool 3ms Close; after_tool 2ms Continue; \
             runtime 100ms Continue; matcher file",
        ]
    );
}

#[test]
fn models_see_images_where_that_is_likely_or_said() {
    let check = |entry: &str, expected: bool| {
        let text = format!("[providers.p]\n{entry}\n[agents.main]\nmodel = \"p/m\"\n");
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pintle.toml");
        fs::write(&file, text).unwrap();
        let Loaded { config, diagnostics, .. } = load_one(&file).unwrap();
        assert!(diagnostics.is_empty(), "{entry}: {diagnostics:?}");
        assert_eq!(config.providers["p"].vision, expected, "{entry}");
    };
    let base_url = "base_url = \"http://127.0.0.1:8000/v1\"";
    check("kind = \"openai\"", true);
    check("kind = \"openai\"\ncapabilities = {}", true);
    check("kind = \"openai\"\n[providers.p.capabilities]\nvision = false", false);
    check(&format!("kind = \"openai\"\n{base_url}"), false);
    check(&format!("kind = \"openai\"\n{base_url}\n[providers.p.capabilities]\nvision = true"), true);
    check("kind = \"openai\"\ntool_mode = \"json_schema\"", false);
    check("kind = \"anthropic\"", true);
    check(&format!("kind = \"anthropic\"\n{base_url}"), true);
    check("kind = \"scripted\"\nscript = \"x.json\"", false);
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn every_key_of_a_process_arrives() {
    use pintle_dialects::process::config::{ChildMode, EventForm};
    let Loaded { config, .. } = load_one(Path::new("valid/whole.toml")).unwrap();
    let loaded = &config.hooks[1];
    assert_eq!((loaded.hook.priority, loaded.hook.origin.as_str()), (3, "valid/whole.toml:49:18"));
    assert!(loaded.hook.respond.grants("weather_now") && !loaded.hook.respond.grants("exec"));
    let HookKind::Process(entry) = &loaded.kind else { panic!("it is a process") };
    let expected = ProcessEntry {
        argv: vec![shown(&folder().join("valid/../plugins/hook")), "--fast".into()],
        dir: folder().join("valid/../plugins"),
        env: [("MODE".into(), "a".into())].into(),
        inherit_env: vec!["WEATHER_TOKEN".into()],
        modes: vec![ChildMode::Observe, ChildMode::Llm, ChildMode::Tool, ChildMode::Approve],
        start_timeout: Duration::from_secs(1),
        observer_timeout: Duration::from_millis(100),
        max_frame_bytes: 1 << 20,
        events: EventForm::Runtime,
        mixed_events: false,
        strict: true,
    };
    assert_eq!(*entry, expected);
}

#[test]
fn every_key_of_an_mcp_server_arrives() {
    let Loaded { config, .. } = load_one(Path::new("valid/whole.toml")).unwrap();
    assert_eq!(config.mcp.keys().collect::<Vec<_>>(), ["away", "files"], "without the one that is off");
    let files = McpReach::Command {
        argv: vec![shown(&folder().join("valid/../plugins/files")), "--stdio".into()],
        dir: folder().join("valid/../plugins"),
        env: [("MODE".into(), "a".into())].into(),
        inherit_env: vec!["FILES_TOKEN".into()],
    };
    assert_eq!((&config.mcp["files"].reach, config.mcp["files"].start_timeout), (&files, Duration::from_millis(1500)));
    assert_eq!(config.mcp["away"].reach, McpReach::Url(Url::parse("https://example.com/mcp").unwrap()));
    assert_eq!(config.mcp["away"].start_timeout, Duration::from_secs(30));
}

#[test]
fn a_builtin_gets_its_stages_from_its_code() {
    use pintle_domain::checkpoint::CheckpointKind::{ApproveTool, BeforeTool};
    use pintle_domain::hook::OnFailure::{Close, Continue};
    let Loaded { config, .. } = load_one(Path::new("valid/whole.toml")).unwrap();
    let HookKind::Builtin(entry) = &config.hooks[0].kind else { panic!("it is a builtin") };
    assert_eq!(entry.config, pintle_domain::json::json!({"words": ["secret"]}));
    let stages = entry.policy.stages(&[BeforeTool, ApproveTool]);
    let found: Vec<_> = stages.kinds().map(|kind| (kind, stages.get(kind).unwrap().on_failure)).collect();
    assert_eq!(found, [(BeforeTool, Continue), (ApproveTool, Close)]);
}

fn loads_or_says_why(name: &str, bytes: &[u8]) {
    match Layer::parse(Path::new(name), "/f".into(), bytes) {
        Err(error) => assert!(error.message.starts_with(name), "{error}"),
        Ok(layer) => {
            let options = LoadOptions { builtins: &["redact"], ..LoadOptions::default() };
            let mut layers = [Trusted::own(layer)];
            let (config, left_out) = resolve::resolve(&mut layers, &bare_env(), Path::new("/h"), &options).unwrap();
            assert_eq!((left_out, config.default_model), (Vec::<String>::new(), None));
        }
    }
}

/// Pieces of which many make a configuration that is nearly right.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let words = [
        "[hooks",
        ".processes",
        ".builtins",
        ".x",
        "]",
        "[agents.x]",
        "[providers.x]",
        "\n",
        "enabled",
        "=",
        "true",
        "command = [",
        "'h'",
        "]\n",
        "intercept",
        "[",
        "'before_tool'",
        "timeout_ms",
        "-1",
        "{",
        "}",
        ",",
        "\"",
        ":",
        "{\"hooks\":{\"processes\":{\"x\":{",
        "}}}}",
        "null",
        "1e999",
        "\"enabled\":true",
        "on_failure",
        "'deny'",
        "ü",
        "model = 'a/b'\n",
        "kind = 'openai'\n",
        "0x_",
        "1979-05-27",
        "# ",
        "\u{feff}",
        "\\ud800",
    ];
    prop::collection::vec(prop::sample::select(words.to_vec()), 0..40).prop_map(|words| words.concat().into_bytes())
}

proptest! {
    #[test]
    fn no_bytes_make_the_loader_panic(bytes in prop_oneof![prop::collection::vec(any::<u8>(), 0..200), pieces()]) {
        loads_or_says_why("x.toml", &bytes);
        loads_or_says_why("x.json", &bytes);
    }
}
