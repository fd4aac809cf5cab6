//! `pintle doctor`.

use super::env::{TestEnv, answering};

/// A hook that answers everything with `{}`.
const OPEN: &str = r#"while read -r line; do id=${line#*\"id\":}; echo "{\"id\":${id%%,*},\"result\":{}}"; done"#;

/// What `doctor` says of everything but the machine.
fn doctor(env: &TestEnv) -> String {
    let seen = env.pintle(&["doctor"]);
    let of_the_machine = |line: &&str| ![" exec  ", " files  "].iter().any(|what| line.contains(what));
    let out: Vec<&str> = seen.out.lines().filter(of_the_machine).collect();
    let key = regex::Regex::new(r"the key [0-9a-f]{8}").unwrap();
    format!("exit {}\n{}\n{}", seen.code.unwrap(), key.replace_all(&out.join("\n"), "the key [kid]"), seen.err)
}

fn with_hooks(hooks: &str) -> TestEnv {
    let env = TestEnv::new();
    env.write("config/pintle/open.sh", OPEN);
    env.write("config/pintle/reply.json", r#"{"replies": []}"#);
    env.user_config(&format!(
        "[agents.main]\ntools = ['exec', 'read_file']\n[providers.play]\nkind = 'scripted'\nscript = 'reply.json'\n{hooks}"
    ));
    env
}

fn hook(name: &str, entry: &str) -> String {
    format!("[hooks.processes.{name}]\nenabled = true\n{entry}\n")
}

#[test]
fn a_guard_that_answers_the_canary_is_armed() {
    let env = with_hooks(
        &[
            hook("guard", "command = ['sh', 'open.sh']\nintercept = ['before_tool']\nmatcher = '^exec$'"),
            hook("both", "command = ['sh', 'open.sh']\nintercept = ['before_tool', 'approve_tool']"),
            hook("words", "command = ['sh', 'open.sh']\nintercept = ['before_llm']"),
            hook("after", "command = ['sh', 'open.sh']\nintercept = ['after_tool']"),
            "[hooks.processes.off]\ncommand = ['sh']\nintercept = ['before_tool']\n".to_owned(),
        ]
        .concat(),
    );
    insta::assert_snapshot!(doctor(&env), @"
    exit 0
    ✓ configuration         [root]/config/pintle/pintle.toml
    ✓ hook           after  it answered hook.hello
    ✓ guard          both   before_tool answered continue in [time], approve_tool answered deny in [time]
    ✓ guard          guard  before_tool answered continue in [time]
    ! hook           off    disabled
    ✓ hook           words  it answered hook.hello
    ! order          both   may answer for a tool before others that also match it are asked: guard; `respond = []` in the entry of a hook says that it never answers
    ✓ store                 [root]/data/pintle/pintle.db
    ✓ audit                 nothing is signed yet
    ✓ keys                  secrets are encrypted with the key [kid]
    ✓ provider       play   its script can be played

    guards armed 2/2
    ");
    // What doctor wrote is evidence, and marked as a test: it never is the newest turn.
    assert!(env.path("data/pintle/pintle.db").is_file());
}

#[test]
fn a_guard_is_unproven_at_the_step_that_failed() {
    let env = with_hooks(
        &[
            hook("gone", "command = ['no-such-guard']\nintercept = ['before_tool']"),
            hook("rude", "command = ['sh', '-c', 'exit 3']\nintercept = ['before_tool']"),
            hook("mute", "command = ['sh', '-c', 'cat >/dev/null']\nintercept = ['approve_tool']\nstart_timeout_ms = 50"),
            hook("slow", "command = ['sh', '-c', 'read -r l; echo \"{\\\"id\\\":1}\"; cat >/dev/null']\nintercept = ['before_tool']\ntimeout_ms = 50"),
            hook("odd", "command = ['sh', '-c', 'read -r l; echo \"{\\\"id\\\":1}\"; read -r l; echo \"{\\\"id\\\":2,\\\"result\\\":{\\\"action\\\":\\\"deny\\\"}}\"; cat >/dev/null']\nintercept = ['before_tool']"),
            hook("blind", "command = ['sh', 'open.sh']\nintercept = ['before_tool']\nmatcher = 'writefile'"),
            hook("idle", "command = ['sh', 'open.sh']\nintercept = ['before_tool']\nmatcher = '^web_fetch$'"),
            hook("bad", "command = ['sh', 'open.sh']\nintercept = ['before_tol']"),
        ]
        .concat(),
    );
    insta::assert_snapshot!(doctor(&env), @r#"
    exit 5
    ✗ configuration         [root]/config/pintle/pintle.toml:41:14: hooks.processes.bad.intercept.0: unsupported intercept "before_tol"; did you mean "before_tool"?
    ✗ guard          bad    unproven at configuration: its configuration is wrong: [root]/config/pintle/pintle.toml:41:14: hooks.processes.bad.intercept.0: unsupported intercept "before_tol"; did you mean "before_tool"?
    ✗ guard          blind  unproven at matcher: `writefile` matches no tool of any agent; did you mean `write_file`? ([root]/config/pintle/pintle.toml:32:11)
    ✗ guard          gone   unproven at spawn: could not start: program `no-such-guard` was not found through PATH
    ✗ guard          idle   unproven at matcher: `^web_fetch$` matches `web_fetch`, which no agent has; name it in `agents.NAME.tools`
    ✗ guard          mute   unproven at hello: could not start: no answer to hook.hello within [time]
    ✗ guard          odd    unproven at the canary: at before_tool it broke the protocol: unknown action "deny"; did you mean "deny_tool"?
    ✗ guard          rude   unproven at hello: could not start: exited with status 3 before it answered hook.hello
    ✗ guard          slow   unproven at the canary: at before_tool it timed out after [time]
    ! order          gone   may answer for a tool before others that also match it are asked: idle, odd, rude, slow; `respond = []` in the entry of a hook says that it never answers
    ! order          idle   may answer for a tool before others that also match it are asked: odd, rude, slow; `respond = []` in the entry of a hook says that it never answers
    ! order          odd    may answer for a tool before others that also match it are asked: rude, slow; `respond = []` in the entry of a hook says that it never answers
    ! order          rude   may answer for a tool before others that also match it are asked: slow; `respond = []` in the entry of a hook says that it never answers
    ✓ store                 [root]/data/pintle/pintle.db
    ✓ audit                 nothing is signed yet
    ✓ keys                  secrets are encrypted with the key [kid]
    ✓ provider       play   its script can be played

    guards armed 0/8
    "#);
}

#[test]
fn agents_of_others_have_every_tool() {
    let idle = hook("idle", "command = ['sh', 'open.sh']\nintercept = ['before_tool']\nmatcher = '^web_fetch$'");
    let typo = hook("typo", "command = ['sh', 'open.sh']\nintercept = ['before_tool']\nmatcher = '^webfetch$'");
    let env = with_hooks(&[idle, typo].concat());
    let own = doctor(&env);
    assert!(own.contains("which no agent has") && own.contains("guards armed 0/2"), "{own}");
    // They come through a door.
    let config = std::fs::read_to_string(env.path("config/pintle/pintle.toml")).unwrap();
    env.user_config(&format!("{config}[doors.model.openai]\n"));
    let behind = doctor(&env);
    assert!(!behind.contains("which no agent has") && behind.contains("guards armed 1/2"), "{behind}");
    // Or they are under guard.
    env.user_config(&config);
    let seen = env.pintle(&["guard", "install", "--host", "claude", "--force", "--yes"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    let guarded = doctor(&env);
    assert!(!guarded.contains("which no agent has") && guarded.contains("guards armed 1/2"), "{guarded}");
}

#[test]
fn a_found_guard_is_untrusted() {
    let env = with_hooks("");
    env.found_config(
        "[hooks.processes.g]\nenabled = true\ncommand = ['sh', '-c', 'touch ran']\nintercept = ['before_tool']\n",
    );
    insta::assert_snapshot!(doctor(&env), @"
    exit 5
    ! configuration        [root]/here/pintle.toml is not trusted; left out: hooks.processes.g (`pintle trust` shows what it would run, and accepts it)
    ✗ guard          g     unproven at trust: it has not been accepted; see `pintle trust`
    ✓ store                [root]/data/pintle/pintle.db
    ✓ audit                nothing is signed yet
    ✓ keys                 secrets are encrypted with the key [kid]
    ✓ provider       play  its script can be played

    guards armed 0/1
    ");
    assert!(!env.path("here/ran").exists());
}

#[test]
fn what_is_no_guard_fails_with_another_code() {
    let env = with_hooks(&hook("words", "command = ['no-such-program']\nintercept = ['before_llm']"));
    env.write("config/pintle/reply.json", "no script");
    env.write("data/pintle", "a file where the home should be");
    insta::assert_snapshot!(doctor(&env), @"
    exit 1
    ✓ configuration         [root]/config/pintle/pintle.toml
    ✗ hook           words  failed at spawn: could not start: program `no-such-program` was not found through PATH
    ✗ store                 the store is unavailable: `[root]/data/pintle/pintle.db` cannot be made: Not a directory (os error 20); choose another place in `store.url`
    ✗ keys                  encryption key: `[root]/data/pintle/encryption.key` cannot be read: Not a directory (os error 20)
    ✗ provider       play   the script `[root]/config/pintle/reply.json` is not a list of replies: expected ident at line 1 column 2

    guards armed 0/0
    ");
}

#[test]
fn json_counts_the_guards() {
    let env = with_hooks(&hook("guard", "command = ['no-such-guard']\nintercept = ['before_tool']"));
    let seen = env.pintle(&["doctor", "--json"]);
    let found: pintle_domain::json::Value = serde_json::from_str(&seen.out).unwrap();
    assert_eq!(seen.code, Some(5));
    assert_eq!(found["guards"], pintle_domain::json::json!({"armed": 0, "total": 1}));
    let guard = found["checks"].as_array().unwrap().iter().find(|check| check["what"] == "guard").unwrap();
    assert_eq!((&guard["name"], &guard["state"], &guard["step"]), (&"guard".into(), &"failed".into(), &"spawn".into()));
}

/// What a hook says that brings the tool `weather`.
const BRINGS: &str = r#"{"action":"modify","request":{"tools":[{"type":"function","function":{"name":"weather","description":"d","parameters":{"type":"object"}}}]}}"#;

#[test]
fn a_tool_that_a_hook_brings_is_one_that_a_guard_can_be_about() {
    let env = with_hooks(
        &[
            hook("guard", "command = ['sh', 'open.sh']\nintercept = ['before_tool']\nmatcher = '^weather$'\nrespond = []"),
            hook("lost", "command = ['sh', 'open.sh']\nintercept = ['before_tool']\nmatcher = '^nothing$'\nrespond = []"),
            hook("sky", "command = ['sh', 'brings.sh']\nintercept = ['before_llm', 'before_tool']\nmatcher = '^weather$'\nrespond = []"),
        ]
        .concat(),
    );
    env.write("config/pintle/brings.sh", &answering(r#"*'"method":"hook.before_llm"'*"#, BRINGS));
    insta::assert_snapshot!(doctor(&env), @"
    exit 5
    ✓ configuration         [root]/config/pintle/pintle.toml
    ✓ guard          guard  before_tool answered continue in [time]
    ✗ guard          lost   unproven at matcher: `^nothing$` matches no tool of any agent
    ✓ guard          sky    before_tool answered continue in [time]
    ✓ store                 [root]/data/pintle/pintle.db
    ✓ audit                 nothing is signed yet
    ✓ keys                  secrets are encrypted with the key [kid]
    ✓ provider       play   its script can be played

    guards armed 2/3
    ");
}

#[test]
fn a_home_that_others_can_open_is_closed_or_told_of() {
    use std::os::unix::fs::PermissionsExt as _;
    let env = with_hooks("");
    let home = env.path("here/state");
    std::fs::create_dir(&home).unwrap();
    std::fs::set_permissions(&home, std::fs::Permissions::from_mode(0o755)).unwrap();
    env.write("here/state/letter.txt", "");
    let seen = env.pintle(&["--home", "state", "doctor"]);
    let said =
        "! home                 [root]/here/state is open to other users, and holds more than Pintle's own files";
    assert!(seen.code == Some(0) && seen.out.contains(said), "{seen}");
    std::fs::remove_file(home.join("letter.txt")).unwrap();
    let seen = env.pintle(&["--home", "state", "doctor"]);
    assert!(seen.code == Some(0) && !seen.out.contains("! home"), "{seen}");
    assert_eq!(std::fs::metadata(&home).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_key_with_a_second_name_gets_a_file_of_its_own_and_that_is_said() {
    use std::os::unix::fs::PermissionsExt as _;
    let env = with_hooks("");
    assert_eq!(env.pintle(&["doctor"]).code, Some(0));
    let (key, other) = (env.path("data/pintle/encryption.key"), env.path("here/notes.txt"));
    let separated =
        "encryption.key` had a second name (a hard link) outside of its folder and is a file of its own again";
    let closed = "encryption.key was open to other users (mode 0644) and is closed again";
    let give_away = || {
        std::fs::hard_link(&key, &other).unwrap();
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    };
    give_away();
    let seen = env.pintle(&["doctor"]);
    let told = |said: &str| seen.out.lines().filter(|line| line.starts_with("! home") && line.contains(said)).count();
    assert!(seen.code == Some(0) && told(separated) == 1 && told(closed) == 1, "{seen}");
    let seen = env.pintle(&["doctor"]);
    assert!(seen.code == Some(0) && !seen.out.contains("encryption.key"), "{seen}");
    std::fs::remove_file(&other).unwrap();
    give_away();
    let seen = env.pintle(&["approvals", "list"]);
    assert!(seen.code == Some(0) && seen.err.contains(separated) && seen.err.contains(closed), "{seen}");
}
