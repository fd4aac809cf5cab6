//! The guide: each of its records is taken as it stands there.

use super::{add, listed};
use crate::env::TestEnv;

const GUIDE: &str = include_str!("../../../../../docs/guide/agent-hooks.md");

/// The records of the guide, each a block of its own.
fn records() -> Vec<&'static str> {
    let blocks = GUIDE.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.filter(|block| block.contains("[[hook]]")).collect()
}

#[test]
fn every_record_can_be_added() {
    let env = TestEnv::new();
    let records = records();
    let seen = add(&env, &records.join("\n"));
    let ids = seen.out.lines().filter(|line| *line == "[id]").count();
    assert_eq!((seen.code, ids), (Some(0), records.len()), "{seen}");
    let mut kinds: Vec<String> =
        listed(&env).iter().map(|hook| hook["handler_type"].as_str().unwrap().to_owned()).collect();
    kinds.sort();
    assert_eq!(kinds, ["command", "http", "prompt", "script"]);
}

#[test]
fn the_first_rule_says_what_the_guide_says() {
    let env = TestEnv::new();
    env.write("here/rules.toml", records()[0]);
    for (command, code, said) in [
        ("git push --force", 4, "block  no-force-push  \"forced pushes are done by people\""),
        ("git push -f origin main", 4, "block  no-force-push"),
        ("git push", 0, "allow  no-force-push"),
    ] {
        let input = pintle_domain::json::json!({ "command": command }).to_string();
        let seen = env.pintle(&["hooks", "test", "--file", "rules.toml", "--input", &input]);
        assert!(seen.code == Some(code) && seen.out.starts_with(said), "{command}: {seen}");
    }
}

#[test]
fn the_command_of_the_guide_refuses_by_its_exit_code() {
    let env = TestEnv::new();
    let program = GUIDE.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    let file = env.write("env_files.py", program);
    let record = records().into_iter().find(|record| record.contains("env_files.py")).unwrap();
    env.write("here/rules.toml", &record.replace("/etc/pintle/env_files.py", file.to_str().unwrap()));
    for (path, code) in [("prod/.env", 4), ("README.md", 0)] {
        let input = pintle_domain::json::json!({ "path": path }).to_string();
        let seen = env.pintle(&["hooks", "test", "--file", "rules.toml", "--tool", "read_file", "--input", &input]);
        assert_eq!(seen.code, Some(code), "{path}: {seen}");
    }
}
