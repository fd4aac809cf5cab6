//! What the guarded agent must not touch.

use pintle_domain::json::{self, Value, json};
use pintle_guard::{GuardedFiles, Malformed, host, protects};

use crate::recorded::decode;

const HOME: &str = "/u/ann";
const WORK: &str = "/u/ann/repo";

/// A call of `tool` at `host`, in the host's own words.
pub(crate) fn call(host: &str, tool: &str, arguments: &Value) -> Option<String> {
    let payload = match host {
        "copilot" => json!({"sessionId": "s", "cwd": WORK, "toolName": tool, "toolArgs": arguments}),
        "gemini" => json!({
            "hook_event_name": "BeforeTool", "session_id": "s", "cwd": WORK, "tool_name": tool, "tool_input": arguments
        }),
        "cline" => json!({
            "hookName": "tool_call", "workspaceRoots": [WORK], "tool_call": {"id": "1", "name": tool, "input": arguments}
        }),
        "opencode" => json!({
            "directory": WORK, "input": {"tool": tool, "sessionID": "s", "callID": "1"}, "output": {"args": arguments}
        }),
        "pi" => json!({"type": "tool_call", "cwd": WORK, "toolName": tool, "toolCallId": "1", "input": arguments}),
        _ => json!({
            "hook_event_name": "PreToolUse", "session_id": "s", "cwd": WORK, "tool_name": tool, "tool_input": arguments
        }),
    };
    let event = match host {
        "copilot" => Some("preToolUse"),
        "opencode" => Some("tool.execute.before"),
        _ => None,
    };
    let event = decode(pintle_guard::host(host).unwrap(), event, &[], payload.to_string().as_bytes()).unwrap();
    protects(&event, &GuardedFiles { home: HOME, own: &["/srv/pintle/store.db".to_owned()], lifted: false })
}

pub(crate) fn shell(host: &str, text: &str) -> Option<String> {
    match host {
        "gemini" | "qwen" => call(host, "run_shell_command", &json!({"command": text})),
        "copilot" | "opencode" | "pi" => call(host, "bash", &json!({"command": text})),
        "cline" => call(host, "run_commands", &json!({"commands": ["true", text]})),
        _ => call(host, "Bash", &json!({"command": text})),
    }
}

/// Whether a shell text is refused.
#[track_caller]
pub(crate) fn ruled(host: &str, text: &str, refused: bool) {
    let why = shell(host, text);
    assert_eq!(why.is_some(), refused, "{host}: {text}: {why:?}");
}

pub(crate) fn write(host: &str, path: &str) -> Option<String> {
    match host {
        "codex" => {
            let patch = format!("*** Begin Patch\n*** Update File: {path}\n+x\n*** End Patch\n");
            call(host, "apply_patch", &json!({"command": patch}))
        }
        "gemini" | "qwen" => call(host, "write_file", &json!({"file_path": path, "content": "x"})),
        "copilot" => call(host, "create", &json!({"path": path, "file_text": "x"})),
        "kimi" => call(host, "Write", &json!({"path": path, "content": "x"})),
        "cline" => call(host, "editor", &json!({"path": path, "new_text": "x"})),
        "opencode" => call(host, "write", &json!({"filePath": path, "content": "x"})),
        "pi" => call(host, "write", &json!({"path": path, "content": "x"})),
        _ => call(host, "Write", &json!({"file_path": path, "content": "x"})),
    }
}

const GUARDED: &[&str] = &[
    ".claude/settings.json",
    ".claude/settings.local.json",
    "./sub/../.claude/settings.json",
    "/u/ann/repo/.Claude/Settings.json",
    "~/.claude/settings.json",
    "~/.claude.json",
    "/u/ann/.claude/hooks/x.sh",
    "deep/er/.claude/settings.json",
    ".codex/hooks.json",
    "~/.codex/config.toml",
    "/etc/codex/requirements.toml",
    ".gemini/settings.json",
    ".qwen/settings.json",
    "~/.copilot/hooks/pintle.json",
    ".github/hooks/x.json",
    ".github/copilot/settings.json",
    "~/.kimi-code/config.toml",
    "~/.cline/hooks/PreToolUse",
    ".clinerules/hooks/PreToolUse",
    ".opencode/plugin/x.js",
    ".opencode/plugins/x.js",
    "~/.config/opencode/opencode.json",
    "~/.pi/agent/extensions/pintle.ts",
    "~/.config/pintle/pintle.toml",
    "/run/user/1000/pintle/guard.sock",
    "/srv/pintle/store.db",
    "/etc/claude-code/managed-settings.json",
];

const FREE: &[&str] = &[
    "README.md",
    "src/claude/settings.json",
    ".claude/commands/review.md",
    ".github/workflows/ci.yml",
    ".gemini/GEMINI.md",
    ".opencode/agent/x.md",
    "/srv/pintle/store.db.txt",
    "/tmp/settings.json",
];

#[test]
fn no_file_tool_of_any_host_writes_what_guards_it() {
    for host in pintle_guard::HOSTS {
        for path in GUARDED {
            assert!(write(host.id, path).is_some(), "{} writes {path}", host.id);
        }
        for path in FREE {
            assert_eq!(write(host.id, path), None, "{} may not write {path}", host.id);
        }
    }
}

/// Shell texts, and whether they are refused. The first rows are how a model was seen to switch its hooks off.
const TEXTS: &[(&str, bool)] = &[
    (r#"mkdir -p .claude && echo '{"disableAllHooks":true}' > .claude/settings.json"#, true),
    (r#"echo '{"disableAllHooks":true}' > .claude/settings.local.json"#, true),
    ("cd .claude && echo '{}' > settings.json", true),
    ("cp /tmp/x .claude/settings.json", true),
    ("mv .claude /tmp/gone", true),
    ("rm -rf ~/.claude", true),
    ("rm -rf /u/ann", true),
    ("tee .github/hooks/off.json < /tmp/x", true),
    ("sed -i s/true/false/ ~/.codex/config.toml", true),
    ("d=.gemini; echo '{}' > $d/settings.json", true),
    ("echo x > .qwen/sett*", true),
    ("python3 -c \"open('.claude/settings.json','w').write('{}')\"", true),
    ("bash -c 'echo {} > .claude/settings.json'", true),
    ("eval \"$(cat x)\" > .pi/extensions/x.ts", true),
    ("cat /run/user/1000/pintle/guard.key", true),
    ("chmod -R 000 ~/.claude", true),
    ("chown nobody .qwen/settings.json", true),
    ("chmod +x build.sh", false),
    ("pintle approvals approve 3", true),
    ("/usr/local/bin/pintle trust .", true),
    ("env X=1 pintle --config x.toml guard uninstall --host claude", true),
    ("true; pintle hooks disable all", true),
    ("pintle $WHAT", true),
    ("pintle keys new", true),
    ("pintle serve --help", true),
    ("pintle why", false),
    ("pintle run guard", false),
    ("cat .claude/settings.json", false),
    ("grep -r hooks ~/.codex", false),
    ("echo ran >> shell.txt", false),
    ("git status && ls -la .github", false),
    ("mkdir -p .claude/commands", false),
    ("cp foo/settings.json .claude", true),
    ("mv foo/settings.json .claude/", true),
    ("cp foo/* .claude/", true),
    ("cp foo/settings.local.json .claude/", true),
    ("cp -r foo/. .claude", true),
    ("cp -r foo/.claude .", true),
    ("rsync -a foo/ .claude/", true),
    ("tar xf a.tar -C .claude", true),
    ("tar xf a.tar .claude/settings.json", true),
    ("mv foo .claude", true),
    ("git mv foo .claude", true),
    ("ln -sfn foo .claude", true),
    ("git clone x .claude", true),
    ("cd .claude && cp ../foo/settings.json .", true),
    ("unzip a.zip .claude/settings.json", true),
    ("unzip a.zip -d .claude", true),
    ("cd .claude && unzip ../a.zip", true),
    ("cd .claude && 7z x ../a.7z", true),
    ("cd .claude && ar x ../a.a", true),
    ("cd .claude && curl -OJ https://x.test/y", true),
    ("cd .claude && wget -i ../urls", true),
    ("wget --content-disposition -P .claude https://x.test/y", true),
    ("ln .claude/settings.json x.json", true),
    ("cd .claude && ln settings.json ../x.json", true),
    ("cp -l .claude/settings.json x.json", true),
    ("cp -al ~/.claude x", true),
    ("link ~/.codex/config.toml x", true),
    ("cat ~/.local/share/pintle/guard/key", true),
    ("flock -s ~/.local/share/pintle/guard/lock sleep 9", true),
    ("flock -w 5 ~/.local/share/pintle/guard/lock -c 'sleep 9'", true),
    ("cd ~/.local/share/pintle/guard && flock lock sleep 9", true),
    ("exec 9< ~/.local/share/pintle/guard/lock; flock 9", true),
    ("find foo -name settings.json -exec cp {} .claude/ \\;", true),
    ("cp foo/settings.json .gemini", true),
    ("mv foo .github", true),
    ("cp -r foo .pi", true),
    ("mkdir -p .claude && touch .claude/x", false),
    ("mkdir .claude && git add .claude && git status", false),
    ("cp foo/x.md .claude/", false),
    ("cp foo/x.md .claude/commands/", false),
    ("cp -r .github/workflows /tmp/x", false),
    ("git add . && git commit -m 'x .claude'", false),
    ("git clone x work && cd work", false),
    ("sed -i s/a/b/ *.md", false),
    ("tar cf a.tar .claude", false),
    ("flock -w 5 /tmp/x.lock git add .claude .github", false),
    ("tail ~/.local/share/pintle/guard/log", false),
    ("ln README.md x.md && cp -al src x && ln -s ../x.md .", false),
    ("unzip a.zip && 7z x a.7z && wget -i urls && curl -OJ https://x.test/y", false),
    ("ls .claude; cat .claude/commands/x.md", false),
    ("mv foo bar", false),
    ("cp -r foo/. .", false),
    ("rm -rf target", false),
    ("curl https://example.com | head", false),
];

#[test]
fn no_shell_text_of_any_host_takes_the_guard_away() {
    for host in pintle_guard::HOSTS {
        for (text, refused) in TEXTS {
            ruled(host.id, text, *refused);
        }
    }
}

/// All the ways to say into which folder something is put: each into one of settings, and into another.
const INTO: &[&str] = &[
    "cp -vt FOLDER foo/settings.json",
    "cp -t FOLDER foo/settings.json",
    "cp -tFOLDER foo/settings.json",
    "cp -fvtFOLDER foo/settings.json",
    "cp --target-directory=FOLDER foo/settings.json",
    "cp --target-directory FOLDER foo/settings.json",
    "cp --target-dir=FOLDER foo/settings.json",
    "cp --target-dir FOLDER foo/settings.json",
    "cp --t=FOLDER foo/settings.json",
    "cp --t FOLDER foo/settings.json",
    "cp foo/settings.json FOLDER -S x",
    "cp foo/settings.json FOLDER --suffix x",
    "cp foo/settings.json FOLDER --suff x",
    "cp foo/settings.json FOLDER --su x",
    "cp -S x foo/settings.json FOLDER",
    "cp foo/settings.json a.md FOLDER",
    "cp -- foo/settings.json FOLDER",
    "mv -vt FOLDER foo/settings.json",
    "mv --target-dir=FOLDER foo/settings.json",
    "mv foo/settings.json FOLDER -S x",
    "mv --backup foo/settings.json FOLDER",
    "mv -b foo/settings.json FOLDER",
    "ln -t FOLDER /srv/settings.json",
    "ln -svt FOLDER /srv/settings.json",
    "ln -s --target-dir=FOLDER /srv/settings.json",
    "ln /srv/settings.json FOLDER -S x",
    "cd FOLDER && ln -s /srv/settings.json",
    "install -Dt FOLDER foo/settings.json",
    "install -Dm644 -t FOLDER foo/settings.json",
    "install --target-dir=FOLDER foo/settings.json",
    "install foo/settings.json FOLDER -m 644",
    "install foo/settings.json FOLDER --m 644",
    "install foo/settings.json FOLDER --owner ann",
    "install --strip foo/settings.json FOLDER",
    "install foo/settings.json FOLDER --strip-program x",
    "rsync foo/settings.json FOLDER",
    "rsync -av foo/settings.json FOLDER --out-format x",
    "rsync host:foo/settings.json FOLDER/",
    "scp host:foo/settings.json FOLDER",
    "git mv foo/settings.json FOLDER",
    "git mv -f foo/settings.json FOLDER",
    "tar -xf a.tar -C FOLDER settings.json",
    "tar -xC FOLDER -f a.tar settings.json",
    "tar xfC a.tar FOLDER settings.json",
    "tar xCf FOLDER a.tar settings.json",
    "tar --extract --file=a.tar --directory=FOLDER settings.json",
    "tar --ext -f a.tar --dir=FOLDER settings.json",
    "tar xf a.tar FOLDER/settings.json",
    "tar xf a.tar foo/settings.json -C FOLDER --strip-components 1",
    "unzip a.zip settings.json -d FOLDER",
    "unzip -d FOLDER a.zip settings.json",
    "unzip -od FOLDER a.zip settings.json",
    "unzip -o a.zip FOLDER/settings.json",
    "unzip -oj a.zip foo/settings.json -dFOLDER",
    "7z x a.7z -oFOLDER settings.json",
    "7z x a.7z FOLDER/settings.json",
    "unrar x a.rar settings.json FOLDER/",
    "unrar x a.rar FOLDER/settings.json",
];

#[test]
fn no_spelling_of_a_folder_gets_past() {
    for text in INTO {
        for folder in [".claude", "/u/ann/repo/.gemini", "~/.claude", "sub/../.qwen"] {
            let text = text.replace("FOLDER", folder);
            assert!(shell("claude", &text).is_some(), "{text}");
        }
        let text = text.replace("FOLDER", "src");
        assert_eq!(shell("claude", &text), None, "{text}");
    }
    for text in ["cp \"$x\" .claude/", "ls foo | xargs cp -t .claude", "cp -t .claude $(ls foo)"] {
        assert!(shell("claude", text).is_some(), "{text}");
    }
}

#[test]
fn codex_opens_nothing_that_can_be_typed_into() {
    for (text, refused) in [
        ("bash", true),
        ("bash -i", true),
        ("python3", true),
        ("psql", true),
        ("bash -c 'echo x'", false),
        ("python3 - <<'EOF'\nprint(1)\nEOF", false),
        ("echo 1 | sh", false),
        ("python3 script.py", false),
    ] {
        assert_eq!(shell("codex", text).is_some(), refused, "{text}");
        assert_eq!(shell("claude", text), None, "{text}");
    }
}

#[test]
fn tools_that_nobody_knows_are_held_by_their_paths() {
    let write = |path: &str| call("claude", "mcp__files__write", &json!({"path": path, "content": "x"}));
    assert!(write(".claude/settings.json").is_some());
    for begin in ["file://", "FILE://", "file://localhost", "file:"] {
        assert!(write(&format!("{begin}/u/ann/.pi/agent/x")).is_some(), "{begin}");
    }
    assert_eq!(write("notes.md"), None);
    assert_eq!(call("claude", "Read", &json!({"file_path": ".claude/settings.json"})), None);
    assert!(call("claude", "Read", &json!({"file_path": "/run/user/7/pintle/guard.key"})).is_some());
}

#[test]
fn tools_that_nobody_knows_are_held_by_all_their_texts() {
    let does = |arguments: &Value| call("claude", "mcp__box__do", arguments);
    for arguments in [
        json!({"command": "echo {} > .claude/settings.json"}),
        json!({"cmd": "cp x ~/.claude/settings.json"}),
        json!({"cmdline": ["bash", "-c", "rm -rf ~/.claude"]}),
        json!({"script": "open('.claude/settings.json', 'w').write('{}')"}),
        json!({"dir": ".claude", "name": "settings.json"}),
        json!({"dir": "/u/ann/.claude", "name": "settings.json"}),
        json!({"args": {"deep": [{"p": ".qwen/settings.json"}]}}),
        json!({"anything": "/a b/.codex/config.toml"}),
        json!({"command": "pintle approvals approve 3"}),
    ] {
        assert!(does(&arguments).is_some(), "{arguments}");
    }
    for arguments in [
        json!({"command": "ls -la"}),
        json!({"title": "docs", "content": "Put it into ~/.claude/settings.json, then start anew."}),
        json!({"dir": "src", "name": "settings.json"}),
        json!({"dir": ".github", "name": "CODEOWNERS"}),
        json!({"query": "settings of agents", "limit": 3}),
        json!({"owner": "ann", "repo": "x", "body": "line one\nsee /u/ann/.codex/config.toml"}),
    ] {
        assert_eq!(does(&arguments), None, "{arguments}");
    }
}

#[test]
fn the_key_of_a_home_that_is_elsewhere_is_not_read_either() {
    let own = ["/srv/x".to_owned()];
    let read = |path: &str| {
        let payload = json!({
            "hook_event_name": "PreToolUse", "session_id": "s", "cwd": WORK, "tool_name": "Read",
            "tool_input": {"file_path": path},
        });
        let event = decode(host("claude").unwrap(), None, &[], payload.to_string().as_bytes()).unwrap();
        protects(&event, &GuardedFiles { home: HOME, own: &own, lifted: false })
    };
    assert!(read("/srv/x/guard/key").is_some() && read("/srv/x/guard/lock").is_some());
    assert!(read("/srv/x/guard/log").is_none() && read("/srv/y/guard/key").is_none());
}

#[test]
fn a_change_of_settings_is_never_in_force() {
    let payload = r#"{"hook_event_name":"ConfigChange","session_id":"s","source":"project_settings","file_path":"/x/.claude/settings.json"}"#;
    assert!(json::parse(payload).is_ok());
    let event = decode(pintle_guard::host("claude").unwrap(), None, &[], payload.as_bytes()).unwrap();
    let why = protects(&event, &GuardedFiles { home: HOME, own: &[], lifted: false });
    assert!(why.is_some_and(|why| why.contains("/x/.claude/settings.json")));
}

#[test]
fn whoever_says_another_event_or_none_that_is_known_is_refused() {
    let bash = r#"{"hook_event_name":"EVENT","session_id":"s","tool_name":"Bash","tool_input":{"command":"ls"}}"#;
    let read = |started: &str, said: &str| {
        decode(host("claude").unwrap(), Some(started), &[], bash.replace("EVENT", said).as_bytes())
    };
    assert!(read("PreToolUse", "PreToolUse").is_ok());
    for said in ["PostToolUse", "Stop", "Else"] {
        assert_eq!(read("PreToolUse", said), Err(Malformed::OtherEvent(said.to_owned())));
    }
}

#[test]
fn a_command_that_cannot_be_read_is_refused() {
    for input in ["{}", r#"{"command":7}"#, r#"{"command":null}"#, r#"{"command":["ls",7]}"#, r#"{"Command":"ls"}"#] {
        let payload =
            format!(r#"{{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Bash","tool_input":{input}}}"#);
        let event = decode(host("claude").unwrap(), Some("PreToolUse"), &[], payload.as_bytes()).unwrap();
        let files = GuardedFiles { home: "/of/anna", own: &[], lifted: false };
        assert!(protects(&event, &files).is_some_and(|why| why.contains("cannot be judged")), "{input}");
    }
}

/// How the model of each agent was seen to take its hooks away for the next session or, of Claude Code, for this one: the
/// file, by the agent's own tool, and a shell text that does the same.
const TAKING_AWAY: &[(&str, &str, &str, &str)] = &[
    ("claude: disableAllHooks of the project", "claude", ".claude/settings.json", "echo x > .claude/settings.json"),
    ("claude: disableAllHooks, local", "claude", ".claude/settings.local.json", "cp x .claude/settings.local.json"),
    ("claude: the person's own settings", "claude", "~/.claude/settings.json", "rm -f ~/.claude/settings.json"),
    (
        "codex: features.hooks",
        "codex",
        "~/.codex/config.toml",
        "printf '[features]\\nhooks = false\\n' >> ~/.codex/config.toml",
    ),
    ("codex: its hooks", "codex", "~/.codex/hooks.json", "rm -f ~/.codex/hooks.json"),
    (
        "codex: features.hooks of the project",
        "codex",
        ".codex/config.toml",
        "mkdir -p .codex && cp x .codex/config.toml",
    ),
    ("gemini: hooksConfig of the project", "gemini", ".gemini/settings.json", "echo '{}' > .gemini/settings.json"),
    ("gemini: its hooks", "gemini", "~/.gemini/settings.json", "echo '{}' > ~/.gemini/settings.json"),
    ("qwen: disableAllHooks of the project", "qwen", ".qwen/settings.json", "tee .qwen/settings.json < x"),
    ("qwen: its hooks", "qwen", "~/.qwen/settings.json", "truncate -s 0 ~/.qwen/settings.json"),
    (
        "copilot: disableAllHooks of the project",
        "copilot",
        ".github/copilot/settings.json",
        "mv x .github/copilot/settings.json",
    ),
    ("copilot: a switch in a file of hooks", "copilot", ".github/hooks/x.json", "echo '{}' > .github/hooks/x.json"),
    ("copilot: its hooks", "copilot", "~/.copilot/hooks/pintle.json", "rm -rf ~/.copilot/hooks"),
    ("copilot: the folders it trusts", "copilot", "~/.copilot/config.json", "sed -i s/a/b/ ~/.copilot/config.json"),
    (
        "kimi: an entry that is wrong",
        "kimi",
        "~/.kimi-code/config.toml",
        "echo '[[hooks]]' >> ~/.kimi-code/config.toml",
    ),
    ("kimi: its hooks", "kimi", "~/.kimi-code/config.toml", "sed -i '/hooks/,$d' ~/.kimi-code/config.toml"),
    ("cline: its hooks", "cline", "~/.cline/hooks/PreToolUse", "chmod -x ~/.cline/hooks/PreToolUse"),
    (
        "opencode: its plugin",
        "opencode",
        "~/.config/opencode/plugin/pintle.js",
        "rm ~/.config/opencode/plugin/pintle.js",
    ),
    ("pi: its extension", "pi", "~/.pi/agent/extensions/pintle.ts", "mv ~/.pi/agent/extensions /tmp/x"),
];

#[test]
fn no_agent_takes_its_guard_away_by_a_tool_or_a_text() {
    for (row, host, path, text) in TAKING_AWAY {
        assert!(write(host, path).is_some(), "{row}: by its tool");
        assert!(shell(host, text).is_some(), "{row}: by a shell text");
    }
}

/// The client and the shell around it are ended by their name, too.
#[test]
fn no_agent_ends_its_guard_by_name() {
    for host in pintle_guard::HOSTS {
        for text in ["pkill -9 -f pintle-hook", "killall pintle", "pkill pintle", "kill -9 $(pgrep -f pintle-hook)"] {
            assert!(shell(host.id, text).is_some(), "{}: {text}", host.id);
        }
        for text in ["pkill -f vite", "kill 4711", "pgrep pintle", "killall node"] {
            assert_eq!(shell(host.id, text), None, "{}: {text}", host.id);
        }
    }
}

#[test]
fn a_person_lets_agents_work_on_their_settings_and_on_nothing_else() {
    let own = ["/srv/pintle/store.db".to_owned()];
    let lifted = |tool: &str, member: &str, value: &str| {
        let payload = pintle_domain::json::json!({
            "hook_event_name": "PreToolUse", "session_id": "s", "cwd": "/w", "tool_name": tool,
            "tool_input": {(member): value},
        });
        let host = pintle_guard::host("claude").unwrap();
        let event = crate::recorded::decode(host, Some("PreToolUse"), &[], payload.to_string().as_bytes()).unwrap();
        let files = GuardedFiles { home: HOME, own: &own, lifted: false };
        assert!(protects(&event, &files).is_some(), "{tool} {value}");
        protects(&event, &GuardedFiles { lifted: true, ..files })
    };
    for path in ["~/.claude/settings.json", "~/.codex/hooks.json", "~/.config/pintle/pintle.toml", "/w/.pintle/x"] {
        let path = path.replace('~', HOME);
        assert_eq!(lifted("Write", "file_path", &path), None, "{path}");
        assert_eq!(lifted("Bash", "command", &format!("echo x > {path}")), None, "{path}");
    }
    for path in ["~/.local/share/pintle/guard/key", "/run/user/0/pintle/guard.sock", "/srv/pintle/store.db"] {
        assert!(lifted("Write", "file_path", &path.replace('~', HOME)).is_some(), "{path}");
    }
    for command in ["pintle approvals approve 1", "pintle guard uninstall --host claude", "pkill pintle"] {
        assert!(lifted("Bash", "command", command).is_some(), "{command}");
    }
}
