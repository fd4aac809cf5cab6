//! Agents: whom they ask, what they are good for, who else there is.

use pintle_domain::checkpoint::{CheckpointKind, Facts};
use pintle_domain::hook::Scope;

use super::*;

#[test]
fn an_agent_that_asks_has_a_gate() {
    let Loaded { config, diagnostics, .. } = load_one(Path::new("valid/agents.toml")).unwrap();
    assert_eq!(diagnostics, []);
    let (main, scout) = (&config.agents["main"], &config.agents["scout"]);
    assert_eq!((main.context_tokens, scout.context_tokens), (32768, 0));
    assert_eq!((main.description.as_str(), scout.description.as_str()), ("", "Finds things."));
    let [LoadedHook { hook, kind: HookKind::Ask(_), .. }] = config.hooks.as_slice() else { panic!("{config:?}") };
    assert_eq!(
        outline(hook),
        "hook agents.main.ask armed; pre_tool_use 5s Close; matcher (?s)^bash$|^exec$|^write_.*$"
    );
    assert_eq!(hook.origin, "valid/agents.toml:3:8");
    assert_eq!(hook.scope, Scope::Agents(["main".into()].into()));
    let asks = |tool: &str| hook.matches(&Facts::of_tool(tool));
    assert_eq!(["exec", "write_file", "read_file"].map(asks), [true, true, false]);
    assert!(hook.stages.get(CheckpointKind::PreToolUse).is_some_and(|stage| !stage.paired));
}

#[test]
fn a_file_of_a_folder_adds_to_what_is_asked_about_and_takes_nothing_away() {
    let root = tempfile::tempdir().unwrap();
    let (own, here) = (root.path().join("config/pintle"), root.path().join("here"));
    fs::create_dir_all(&own).unwrap();
    fs::create_dir_all(&here).unwrap();
    fs::write(own.join("pintle.toml"), "[agents.main]\nask = ['exec']\ntools = ['exec']\n").unwrap();
    let vars = [("HOME", root.path().join("home")), ("XDG_CONFIG_HOME", root.path().join("config"))];
    let vars = vars.map(|(name, value)| (name.to_owned(), value.into_os_string())).into();
    let env = Env { vars, cwd: here.clone() };
    let check = |found: &str, expected: &[&str]| {
        fs::write(here.join("pintle.toml"), found).unwrap();
        let config = load(&env, &LoadOptions::default()).unwrap().config;
        let globs: Vec<&str> = config.agents["main"].ask.iter().map(|glob| glob.text.as_str()).collect();
        assert_eq!(globs, expected);
        let gates = config.hooks.iter().filter(|loaded| loaded.hook.name.as_str() == "agents.main.ask");
        assert_eq!(gates.filter(|loaded| loaded.hook.state == HookState::Armed).count(), 1, "{found}");
    };
    // Nobody accepted the file, so it says nothing about tools.
    check("[agents.main]\nask = []\n", &["exec"]);
    check("[agents.main]\nask = ['*']\n", &["exec"]);
    check("[hooks.processes.'agents.main.ask']\nenabled = true\ncommand = ['true']\n", &["exec"]);
    let named = load_one(&own.join("pintle.toml")).unwrap().config;
    assert_eq!(named.agents["main"].ask[0].text, "exec");
}

#[test]
fn a_flow_arrives_key_by_key() {
    let Loaded { config, .. } = load_one(Path::new("valid/whole.toml")).unwrap();
    let expected = PlanningConfig {
        planning_prompt: Some("Plan.".into()),
        first_step_prompt: Some(String::new()),
        agent_loop_prompt: Some("Go on.".into()),
        on_missing_tag: pintle_agent::OnMissingTag::Loop,
        record: false,
    };
    let (main, helper) = (&config.agents["main"], &config.agents["helper"]);
    assert_eq!((main.flow, &main.planning), (FlowConfig::Planned, &expected));
    assert_eq!((helper.flow, &helper.planning), (FlowConfig::Direct, &PlanningConfig::default()));
    assert!(helper.planning.record);
    // A key of one agent says nothing of another.
    assert_eq!((main.removal, helper.removal), (RemovalMode::Freeze, RemovalMode::StripReasoning));
}

#[test]
fn skills_are_looked_for_where_the_file_says_that_enables_them() {
    let Loaded { config, .. } = load_one(Path::new("valid/whole.toml")).unwrap();
    let main = &config.agents["main"];
    assert_eq!(main.skills.iter().map(|named| named.text.as_str()).collect::<Vec<_>>(), ["cite-sources", "tone"]);
    assert_eq!(main.skills[1].place.as_ref().unwrap().to_string(), "valid/whole.toml:26:27");
    assert_eq!(main.skills_dir, folder().join("valid/my/skills"));
    assert_eq!((config.agents["helper"].skills.len(), config.skills_dir), (0, Some(folder().join("valid/my/skills"))));
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("pintle.toml");
    fs::write(&file, "[agents.main]\nskills = ['a']\n").unwrap();
    assert_eq!(load_one(&file).unwrap().config.agents["main"].skills_dir, root.path().join("skills"));
}
