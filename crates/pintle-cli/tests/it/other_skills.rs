//! Skills that others wrote and ship: all of them load without a word, and their scripts run by the path that the model
//! is told.

use std::path::{Path, PathBuf};

use pintle_domain::json::{Value, json};

use super::env::TestEnv;
use super::run::{DONE, scripted};

/// How many skills the packages hold.
const SHIPPED: usize = 211;

/// A folder of skills of `./pintle test`'s installation.
fn shipped(package: &str) -> PathBuf {
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/skills/packages").join(package);
    assert!(found.is_dir(), "{} is not installed: run `./pintle test --install` once, which does it", found.display());
    found.canonicalize().unwrap()
}

/// An agent with every skill of two packages and the tools `tools`, whose model says `replies`.
fn with_all(replies: &str, tools: &str) -> TestEnv {
    let env = scripted(replies, &format!("skills = ['*']\ntools = [{tools}]\n"));
    let (dir, more) = (shipped("adclaw/agents/skills"), shipped("abvx_agent_skills/skills"));
    let config = env.path("config/pintle/pintle.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let skills = format!("\n[skills]\ndir = '{}'\ndirs = ['{}']\n", dir.display(), more.display());
    std::fs::write(&config, text + &skills).unwrap();
    env
}

fn listed(env: &TestEnv) -> Value {
    let list: Value = serde_json::from_str(&env.raw(&["skills", "list", "--json"])).unwrap();
    list[0].clone()
}

/// What the tools answered in the session `s`, oldest first.
fn results(env: &TestEnv) -> Vec<String> {
    let shown: Value = serde_json::from_str(&env.raw(&["sessions", "show", "s", "--json"])).unwrap();
    let messages = shown["messages"].as_array().unwrap().iter().filter(|message| message["role"] == "tool");
    messages.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_shipped_skill_loads_without_a_word() {
    let env = with_all(DONE, "");
    let list = listed(&env);
    let skills = list["skills"].as_array().unwrap();
    assert_eq!(skills.len(), SHIPPED);
    let silent: Vec<&Value> = skills.iter().filter(|skill| skill["description"].as_str().is_none()).collect();
    assert_eq!(silent, Vec::<&Value>::new());
    let louder = |found: &&Value| found["severity"] != "notice";
    assert_eq!(list["findings"].as_array().unwrap().iter().filter(louder).count(), 0, "{}", list["findings"]);
    let seen = env.pintle(&["skills", "list"]);
    let longest = seen.out.lines().map(str::len).max().unwrap();
    assert!(longest < 300 && seen.err.is_empty(), "{longest} {}", seen.err);
    assert!(seen.out.lines().count() <= SHIPPED + 3, "one line at most sums up what there is to say");
}

#[test]
fn a_model_can_load_each_of_them() {
    let names: Vec<String> = {
        let list = listed(&with_all(DONE, ""));
        list["skills"].as_array().unwrap().iter().map(|skill| skill["name"].as_str().unwrap().to_owned()).collect()
    };
    let calls: Vec<Value> =
        names.iter().map(|name| json!({"name": "load_skill", "arguments": {"name": name}})).collect();
    let env = with_all(&format!("{}, {DONE}", json!({"tool_calls": calls})), "");
    let seen = env.pintle(&["run", "--session", "s", "go"]);
    assert_eq!(seen.code, Some(0), "{}", seen.err);
    assert!(!seen.err.contains("WARN"), "{}", seen.err);
    let results = results(&env);
    assert_eq!(results.len(), SHIPPED);
    for (name, result) in names.iter().zip(&results) {
        assert!(result.len() > 100 && !result.contains("cannot be had"), "{name}: {result}");
        let folder = [shipped("adclaw/agents/skills"), shipped("abvx_agent_skills/skills")].map(|dir| dir.join(name));
        let folder = folder.iter().find(|folder| folder.is_dir()).unwrap();
        if folder.join("scripts").is_dir() {
            let told = format!("[The folder of this skill is {}. ", folder.display());
            assert!(result.contains(&told) && result.contains("scripts/"), "{name}: {result}");
        }
    }
}

/// Where `skill` is, as the model is told.
fn told_folder(skill: &str) -> String {
    let load = json!({"tool_calls": [{"name": "load_skill", "arguments": {"name": skill}}]});
    let env = with_all(&format!("{load}, {DONE}"), "");
    assert_eq!(env.pintle(&["run", "--session", "s", "go"]).code, Some(0));
    let text = results(&env).remove(0);
    let told = text.split_once("[The folder of this skill is ").expect("it is told").1;
    told.split_once(". Relative paths").expect("and what it is for").0.to_owned()
}

#[test]
fn scripts_run_by_the_path_that_is_told() {
    let scripts = [
        ("bug-evidence-protocol", "scripts/classify_evidence.py", "--help", "usage: classify_evidence.py"),
        ("happy-handoff", "scripts/launch.py", "--help", "usage: launch.py"),
        ("pdf", "scripts/check_bounding_boxes.py", "fields.json", "SUCCESS: All bounding boxes are valid"),
        ("html-presentation-deck", "scripts/validate_html_deck.py", "none.html", "Invalid HTML deck path: none.html"),
    ];
    for (skill, script, argument, expected) in scripts {
        let command = format!("python3 {}/{script} {argument}", told_folder(skill));
        let call = json!({"tool_calls": [{"name": "exec", "arguments": {"command": command}}]});
        let env = with_all(&format!("{call}, {DONE}"), "'exec'");
        env.write("here/fields.json", r#"{"form_fields": []}"#);
        let seen = env.pintle(&["run", "--session", "s", "go"]);
        assert_eq!(seen.code, Some(0), "{}", seen.err);
        let result = results(&env).remove(0);
        assert!(result.contains(expected), "{command}: {result}");
    }
}

#[test]
fn a_reference_in_other_case_finds_its_file() {
    // The skill says `FORMS.md`, and ships `forms.md`.
    let load = |file: &str| json!({"name": "load_skill", "arguments": {"name": "pdf", "file": file}});
    let calls = json!({"tool_calls": [load("FORMS.md"), load("forms.md"), load("form.md")]});
    let env = with_all(&format!("{calls}, {DONE}"), "");
    assert_eq!(env.pintle(&["run", "--session", "s", "go"]).code, Some(0));
    let results = results(&env);
    assert!(results[0].len() > 1000, "{}", results[0]);
    assert_eq!(results[0], results[1]);
    assert!(results[2].contains("did you mean `forms.md`?"), "{}", results[2]);
}
