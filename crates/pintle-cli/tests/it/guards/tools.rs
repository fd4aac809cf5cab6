//! Guards and calls of tools that run no shell text.

use domain::json::json;

use super::{Said, guards, run};

/// What the guards say to `tool` with `path`, of those whose matcher has the tool.
fn check(tool: &str, path: &str) -> Vec<(String, Said)> {
    let event = json!({
        "hookEvent": "pre_tool_use",
        "toolName": tool,
        "toolInput": {"path": path, "content": "rm -rf /"},
        "rawInput": "",
        "shell": {
            "commands": [], "reads": [], "writes": [], "deletes": [], "urls": [], "outside": [],
            "pipes_to_interpreter": false, "unknown": false, "unknown_why": "",
        },
    });
    let asked = guards().into_iter().filter(|(_, matcher, _)| regex::Regex::new(matcher).unwrap().is_match(tool));
    asked.map(|(name, _, source)| (name, Said::of(&run(&source, &event)))).collect()
}

/// The one refusal of `tool` with `path`.
#[track_caller]
fn refusal(tool: &str, path: &str) -> String {
    let mut words = check(tool, path);
    words.retain(|(_, word)| word.decision != "allow");
    let [(name, word)] = words.as_slice() else { panic!("{tool} {path}: {words:?}") };
    assert_eq!(word.decision, "block", "{tool} {path}");
    format!("{name}: {}", word.reason)
}

#[test]
fn tools_for_files_are_judged_by_their_path() {
    assert_eq!(
        refusal("write_file", ".git/hooks/pre-commit"),
        "starter-destroy: changes .git/hooks/pre-commit past git"
    );
    let outside = "starter-outside: changes src/../../other/x, which lies outside of the workspace";
    assert_eq!(refusal("edit_file", "src/../../other/x"), outside);
    assert_eq!(refusal("read_file", "config/.env"), "starter-secrets: reads config/.env, which may hold secrets");
    assert_eq!(refusal("read_file", "~/.aws/config"), "starter-secrets: reads ~/.aws/config, which may hold secrets");
}

#[test]
fn common_files_are_nobodys_matter() {
    let files = [
        ("write_file", "src/main.rs"),
        ("write_file", ".gitignore"),
        ("write_file", ".env"),
        ("write_file", ".git/info/exclude"),
        ("edit_file", "docs/../README.md"),
        ("read_file", ".env.example"),
        ("read_file", ".aws/task-definition.json"),
        ("read_file", "/usr/include/stdio.h"),
        ("search_text", "."),
    ];
    for (tool, path) in files {
        let words = check(tool, path);
        assert!(!words.is_empty(), "{tool} is nobody's");
        assert!(words.iter().all(|(_, word)| word.decision == "allow"), "{tool} {path}: {words:?}");
    }
}
