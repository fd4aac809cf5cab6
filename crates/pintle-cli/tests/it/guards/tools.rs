//! Guards and calls of tools that run no shell text.

use std::path::Path;

use pintle_domain::json::{Value, json};
use pintle_domain::shell::{ShellFacts, ShellKind, ShellText};

use super::{Said, guards, run, said, sandbox};

/// What the guards say to `tool` with `path`, of those whose matcher has the tool.
fn check(tool: &str, path: &str) -> Vec<(String, Said)> {
    check_call(tool, &json!({"path": path, "content": "rm -rf /"}))
}

/// What they say to `tool` with `arguments`.
fn check_call(tool: &str, arguments: &Value) -> Vec<(String, Said)> {
    let event = json!({
        "hookEvent": "pre_tool_use",
        "toolName": tool,
        "toolInput": arguments,
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
    let key = "starter-secrets: reads server.key, which may hold secrets";
    assert_eq!(refusal("read_file", "server.key"), key);
    assert_eq!(refusal("read_file", "~/.aws/config"), "starter-secrets: reads ~/.aws/config, which may hold secrets");
}

#[test]
fn tools_of_other_programs_are_judged_by_the_files_they_name() {
    let said = |tool: &str, arguments: Value| {
        let said = check_call(tool, &arguments).into_iter().find(|(_, word)| word.decision != "allow");
        said.map(|(name, word)| format!("{name}: {}", word.reason))
    };
    for (tool, arguments, file) in [
        ("mcp_files_read_file", json!({"path": ".env"}), ".env"),
        ("mcp_files_read_text_file", json!({"path": "/code/app/server.pem"}), "/code/app/server.pem"),
        ("mcp_files_read_multiple_files", json!({"paths": ["README.md", "config/.env"]}), "config/.env"),
        ("mcp_files_move_file", json!({"source": ".env", "destination": "notes.txt"}), ".env"),
        ("mcp_files_copy", json!({"from": "id_rsa", "to": "x"}), "id_rsa"),
        ("mcp_web_open", json!({"uri": "file:///code/app/.env"}), "/code/app/.env"),
        ("mcp_files_view", json!({"file_path": "~/.claude.json"}), "~/.claude.json"),
    ] {
        let expected = format!("starter-secrets: reads {file}, which may hold secrets");
        assert_eq!(said(tool, arguments), Some(expected), "{tool}");
    }
    for (tool, arguments) in [
        ("mcp_files_read_file", json!({"path": "src/main.rs"})),
        ("mcp_files_read_file", json!({"path": ".env.example"})),
        ("mcp_files_write_file", json!({"path": ".env", "content": "A=1"})),
        ("mcp_files_get_file_info", json!({"path": ".env"})),
        ("mcp_files_list_directory", json!({"path": "~/.ssh"})),
        ("mcp_wiki_search", json!({"query": ".env"})),
        ("mcp_web_open", json!({"uri": "https://x.test/a.env.html"})),
    ] {
        assert_eq!(said(tool, arguments), None, "{tool}");
    }
}

/// The first word that is no leave, of each call of `tool` with arguments and with what is known of it.
fn words_of(tool: &str, calls: Vec<(Value, ShellFacts)>) -> Vec<Option<String>> {
    let event = |(arguments, shell): (Value, ShellFacts)| {
        let mut event = json!({"hookEvent": "pre_tool_use", "toolName": tool, "rawInput": "", "shell": shell});
        event["toolInput"] = arguments;
        event
    };
    let events: Vec<Value> = calls.into_iter().map(event).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut first = vec![None; events.len()];
        for (name, matcher, source) in guards() {
            if !regex::Regex::new(&matcher).unwrap().is_match(tool) {
                continue;
            }
            for (own, word) in first.iter_mut().zip(said(&sandbox(), &source, &events).await) {
                if own.is_none() && word.decision != "allow" {
                    *own = Some(format!("{name}: {}", word.decision));
                }
            }
        }
        first
    })
}

#[test]
fn a_file_is_judged_as_a_shell_that_writes_it() {
    let (cwd, workspace) = (Path::new("/code/app/src"), Path::new("/code/app"));
    let files = [
        ("/etc/passwd", Some("starter-outside: block")),
        ("/root/.ssh/authorized_keys", Some("starter-outside: block")),
        ("~/.bashrc", Some("starter-outside: block")),
        ("../../other/x", Some("starter-outside: block")),
        ("/code/app/../other/x", Some("starter-outside: block")),
        ("/code/app/.git/hooks/pre-commit", Some("starter-destroy: block")),
        ("../.git/config", Some("starter-destroy: block")),
        ("/code/app/src/main.rs", None),
        ("/code/app/.git/info/exclude", None),
        ("../README.md", None),
        ("/tmp/notes.md", None),
        ("/dev/null", None),
    ];
    let expected: Vec<Option<String>> = files.iter().map(|(_, word)| word.map(str::to_owned)).collect();
    let written = || -> Vec<(Value, ShellFacts)> {
        files.iter().map(|(file, _)| (json!({}), pintle_shell::written(&[*file], cwd, workspace))).collect()
    };
    assert_eq!(words_of("write_file", written()), expected);
    assert_eq!(words_of("edit_file", written()), expected);
    let twin = |(file, _): &(&str, Option<&str>)| {
        let text = format!("echo x > {file}");
        (
            json!({"command": text}),
            pintle_shell::facts(ShellText { text: &text, cwd, workspace, shell: ShellKind::Bash }),
        )
    };
    assert_eq!(words_of("exec", files.iter().map(twin).collect()), expected);
}

#[test]
fn a_file_is_judged_whatever_its_argument_is_called_where_the_workspace_is_not_known() {
    let files = [
        ("/etc/passwd", Some("starter-outside: block")),
        ("/root/.ssh/authorized_keys", Some("starter-outside: block")),
        ("~/.bashrc", Some("starter-outside: block")),
        ("~", Some("starter-outside: block")),
        ("../x", Some("starter-outside: block")),
        ("/tmp/../etc/x", Some("starter-outside: block")),
        ("/usr/bin/x", Some("starter-outside: block")),
        ("//etc/x", Some("starter-outside: block")),
        ("/ETC/x", Some("starter-outside: block")),
        ("/private/etc/x", Some("starter-outside: block")),
        ("/proc/self/root/etc/x", Some("starter-outside: block")),
        ("file:///etc/x", Some("starter-outside: block")),
        ("file:/etc/x", Some("starter-outside: block")),
        ("/var/backups/x", Some("starter-outside: block")),
        ("/var/home/me/.ssh/config", Some("starter-outside: block")),
        ("/users/me/.ssh/config", Some("starter-outside: block")),
        ("/Users/me/Library/LaunchAgents/x.plist", Some("starter-outside: block")),
        (".GIT/hooks/pre-commit", Some("starter-destroy: block")),
        (".git/hooks/pre-commit", Some("starter-destroy: block")),
        ("/code/app/.git/config", Some("starter-destroy: block")),
        ("/code/app/x", None),
        ("/root/app/x", None),
        ("/home/me/app/.env", None),
        ("/usr/src/app/x", None),
        ("/usrdata/app/x", None),
        ("/var/www/app/x", None),
        ("/var/home/me/app/x", None),
        ("/Users/me/Library/CloudStorage/app/x", None),
        ("/private/tmp/x", None),
        ("file:///code/app/x", None),
        ("/tmp/x", None),
        ("/dev/null", None),
        ("~$letter.docx", None),
        ("etc/x", None),
    ];
    for member in ["path", "file_path", "filePath", "notebook_path", "absolute_path", "target", "target_file", "file"] {
        let call = |(file, _): &(&str, Option<&str>)| {
            let mut arguments = json!({"content": "../../x"});
            arguments[member] = json!(file);
            (arguments, ShellFacts::default())
        };
        let expected: Vec<Option<String>> = files.iter().map(|(_, word)| word.map(str::to_owned)).collect();
        assert_eq!(words_of("write_file", files.iter().map(call).collect()), expected, "{member}");
    }
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
        ("read_file", "src/key.rs"),
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

#[test]
fn a_search_is_judged_by_what_it_would_show() {
    let words = |arguments: Value| {
        let said = check_call("search_text", &arguments);
        assert!(!said.is_empty());
        said.into_iter()
            .find(|(_, word)| word.decision != "allow")
            .map(|(name, word)| format!("{name}: {}", word.reason))
    };
    for glob in [".env", "**/*.env", ".e*", "{.env,.npmrc}", "src/*.key", "id_[er]*"] {
        let expected = format!("starter-secrets: searches {glob}, which may hold secrets");
        assert_eq!(words(json!({"pattern": "S=", "glob": glob})), Some(expected));
    }
    for pattern in [
        ".",
        "^",
        "$",
        ".*",
        "\\w",
        "\\S",
        "x*",
        ".{0}",
        "[[:print:]]",
        "(?:)",
        "[^q]",
        "(?s).",
        "(?i)(?x)\\S",
        "(?s:.)",
        "(?P<a>.)",
        "\\pL|=",
        "[\\w--a]",
    ] {
        let expected = format!("starter-secrets: shows whatever is there, and secrets with it: {pattern}");
        assert_eq!(words(json!({"pattern": pattern, "path": "."})), Some(expected));
    }
    for arguments in [
        json!({"pattern": "fn main"}),
        json!({"pattern": "retry", "path": "src"}),
        json!({"pattern": "^use ", "glob": "*.rs"}),
        json!({"pattern": ".", "glob": "*.rs"}),
        json!({"pattern": "e"}),
        json!({"pattern": "a=b", "glob": "*"}),
        json!({"pattern": "name(", "glob": "["}),
        json!({"pattern": "(?i)retry\\b"}),
        json!({"pattern": "[\\w--a]name"}),
        json!({"pattern": "name", "glob": "**/Cargo.toml"}),
    ] {
        assert_eq!(words(arguments.clone()), None, "{arguments}");
    }
}
