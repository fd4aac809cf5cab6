//! Tools that no host has, by what their arguments may mean.

use pintle_domain::json::{Value, json};
use pintle_domain::tool::ToolCall;
use pintle_guard::GuardedFiles;
use pintle_guard::clients::client_protects;

use crate::protects::{call, shell};

fn check(tool: &str, rows: &[(Value, bool)]) {
    for (arguments, refused) in rows {
        let why = call("claude", tool, arguments);
        assert_eq!(why.is_some(), *refused, "{tool} {arguments}: {why:?}");
    }
}

#[test]
fn a_program_and_its_words_are_read_as_one_command() {
    check(
        "mcp__box__run",
        &[
            (json!({"cmd": "pintle", "args": ["guard", "uninstall", "--yes"]}), true),
            (json!({"command": ["pintle", "guard", "uninstall", "--yes"]}), true),
            (json!({"argv": ["rm", "-rf", "/u/ann/.local"]}), true),
            (json!({"program": "rm", "args": ["-rf", "~/.claude"]}), true),
            (json!({"request": {"command": "rm", "args": "-rf ~/.claude"}}), true),
            (json!({"cmd": "pintle", "args": ["why"]}), false),
            (json!({"argv": ["rm", "-rf", "target"]}), false),
        ],
    );
}

#[test]
fn no_tool_takes_a_folder_away_in_which_something_guarded_lies() {
    for (tool, arguments, refused) in [
        ("mcp__fs__delete", json!({"path": "/u/ann/.local"}), true),
        ("mcp__fs__delete", json!({"path": "$HOME/.local"}), true),
        ("mcp__fs__move", json!({"source": "/u/ann", "destination": "/tmp/x"}), true),
        ("mcp__zip__extract", json!({"archive": "a.zip", "destination": "/u/ann"}), true),
        ("mcp__fs__do", json!({"action": "delete", "path": "~/.claude"}), true),
        ("mcp__fs__delete", json!({"path": "/u/ann/repo/target"}), false),
        ("mcp__fs__delete", json!({"note": "x"}), false),
        ("mcp__fs__list_directory", json!({"path": "/u/ann"}), false),
        ("mcp__fs__read", json!({"path": "/u/ann/.local"}), false),
        ("mcp__fs__move", json!({"source": "/u/ann/a.txt", "destination": "/u/ann/b.txt"}), false),
    ] {
        check(tool, &[(arguments, refused)]);
    }
}

#[test]
fn a_text_that_is_no_path_to_anything_is_no_path() {
    for text in [
        "{\"a\":1}",
        "{a,b}",
        "*",
        ".*",
        "**/*.rs",
        "*.json",
        "[a-z]+",
        "^.*$",
        "$1",
        "{{name}}",
        "${x}",
        "[1,2]",
        "src/*",
        "?",
    ] {
        for member in ["body", "path", "pattern"] {
            assert_eq!(call("claude", "mcp__notes__add", &json!({(member): text})), None, "{member} {text}");
        }
    }
    for text in [
        ".cl*ude/settings.json",
        "~/.claude/*",
        ".{claude,x}/settings.json",
        "{x,~/.codex/config.toml}",
        "**/.codex/*",
        "[\"~/.codex/config.toml\"]",
        "{\"a\":[\".claude/settings.json\"]}",
    ] {
        assert!(call("claude", "mcp__notes__add", &json!({"body": text})).is_some(), "{text}");
    }
}

#[test]
fn a_text_that_is_replaced_an_address_and_a_name_in_a_graph_are_no_paths() {
    let settings = "~/.claude/settings.json";
    for (tool, arguments, refused) in [
        (
            "mcp__fs__edit_file",
            json!({"path": "README.md", "edits": [{"oldText": "~/.claude", "newText": settings}]}),
            false,
        ),
        ("mcp__fs__edit_file", json!({"path": settings, "edits": [{"oldText": "a", "newText": "b"}]}), true),
        ("mcp__fs__edit_file", json!({"edits": [{"oldText": "~/.claude", "newText": settings}]}), true),
        ("mcp__fs__edit_file", json!({"path": "README.md", "edits": [{"newText": "a", "to": settings}]}), true),
        ("mcp__fs__edit_file", json!({"path": "README.md", "newText": {"to": settings}}), true),
        (
            "mcp__serena__replace_regex",
            json!({"relative_path": "src/a.py", "regex": "~/.claude", "repl": settings}),
            false,
        ),
        ("mcp__serena__replace_regex", json!({"relative_path": settings, "regex": "a", "repl": "x"}), true),
        ("mcp__web__open", json!({"url": "http://localhost:3000/.claude/settings.json"}), false),
        ("mcp__web__open", json!({"url": "HTTPS://x.test/.codex/config.toml"}), false),
        ("mcp__web__open", json!({"url": "http://../.claude/settings.json"}), true),
        ("mcp__web__open", json!({"url": "file:///u/ann/.claude/settings.json"}), true),
        ("mcp__web__save", json!({"url": "http://x.test/y", "to": ".claude/settings.json"}), true),
        ("mcp__memory__create_entities", json!({"entities": [{"name": settings}]}), false),
        ("mcp__memory__create_entities", json!({"command": "rm -rf ~/.claude"}), true),
        ("mcp__memory__create_files", json!({"entities": [{"name": settings}]}), true),
    ] {
        check(tool, &[(arguments, refused)]);
    }
}

#[test]
fn braces_for_more_paths_than_are_looked_at_hide_nothing() {
    let many = |last: &str| format!("{{{},{last}}}/settings.json", "a,".repeat(100).trim_end_matches(','));
    assert!(call("claude", "mcp__notes__add", &json!({"body": many(".claude")})).is_some());
    assert_eq!(call("claude", "mcp__notes__add", &json!({"body": many("b")})), None);
}

#[test]
fn a_patch_of_long_names_is_refused_for_its_many_paths() {
    let names = |count: usize| format!("git apply <<'E'\n+++ a{}\nE", "/b".repeat(count));
    assert!(shell("claude", &names(2_000)).is_some_and(|why| why.contains("more paths than")));
    assert_eq!(shell("claude", &names(20)), None);
}

#[test]
fn every_shell_of_a_client_is_held_at_its_model() {
    let files = GuardedFiles { home: "/u/ann", own: &[], lifted: false };
    let patch = "*** Begin Patch\n*** Add File: .codex/hooks.json\n+{}\n*** End Patch\n";
    for (tool, arguments, refused) in [
        ("exec_command", json!({"cmd": "rm -rf ~/.codex"}), true),
        ("exec_command", json!({"cmd": "echo {} > hooks.json", "workdir": ".codex"}), true),
        ("shell", json!({"command": ["bash", "-lc", "rm -rf ~/.codex"]}), true),
        ("shell", json!({"command": ["apply_patch", patch]}), true),
        ("apply_patch", json!({"input": patch}), true),
        ("exec_command", json!({"cmd": format!("apply_patch <<'E'\n{patch}E")}), true),
        ("str_replace_based_edit_tool", json!({"command": "create", "path": ".codex/hooks.json"}), true),
        ("exec_command", json!({"cmd": "cargo test", "workdir": "src"}), false),
        ("apply_patch", json!({"input": "*** Begin Patch\n*** Add File: a.md\n*** End Patch"}), false),
    ] {
        let own = arguments.as_object().unwrap();
        let (name, known) =
            pintle_guard::shell_tools::known_as(tool, own).unwrap_or_else(|| (tool.to_owned(), own.clone()));
        let call = ToolCall { id: "1".into(), tool: name, raw_tool: tool.to_owned(), arguments: known };
        for client in [None, pintle_guard::host("codex")] {
            let why = client_protects(client, &call, ("/u/ann/repo".as_ref(), files.home, files.own));
            assert_eq!(why.is_some(), refused, "{tool} {arguments}: {why:?}");
        }
    }
    assert!(shell("codex", &format!("apply_patch <<'E'\n{patch}E")).is_some());
}
