//! `pintle doctor` and the hooks of the store.

use pintle_domain::store::Actor;

use super::env::TestEnv;
use super::secrets::{HOOK, on_terminal};

/// What `doctor` says of rules and guards.
fn doctor(env: &TestEnv) -> String {
    let seen = env.pintle(&["doctor"]);
    let about = |line: &&str| {
        !line.contains(" exec  ") && ["guard", "hook ", "rules", "audit", "keys"].iter().any(|word| line.contains(word))
    };
    let out: Vec<&str> = seen.out.lines().filter(about).collect();
    let key = regex::Regex::new(r"key [0-9a-f]{8}").unwrap();
    format!("exit {}\n{}\n", seen.code.unwrap(), key.replace_all(&out.join("\n"), "key [kid]"))
}

fn with_rules(rules: &str) -> TestEnv {
    let env = TestEnv::new();
    env.user_config("[agents.main]\ntools = ['exec', 'read_file']\n[agent_hooks]\ndir = 'hooks.d'\n");
    env.write("config/pintle/hooks.d/rules.toml", rules);
    env
}

fn rule(name: &str, event: &str, handler: &str, more: &str) -> String {
    format!("[[hook]]\nname = '{name}'\nevent = '{event}'\nhandler_type = '{handler}'\nscope = 'tenant'\n{more}\n")
}

const SCRIPT: &str =
    "config.source = 'function handle(event) { return {decision: \"block\", reason: event.toolName}; }'";

#[test]
fn a_stored_guard_that_answers_the_canary_is_armed() {
    let rules = [
        rule("no-rm", "pre_tool_use", "script", &format!("matcher = '^exec$'\n{SCRIPT}")),
        rule("any", "user_prompt_submit", "command", "config.command = 'true'"),
        rule("spawn", "subagent_start", "command", "matcher = '^spawn$'\nconfig.command = 'cat'"),
        rule("told", "stop", "command", "config.command = 'true'"),
        rule("off", "pre_tool_use", "command", "enabled = false\nconfig.command = 'true'"),
    ];
    insta::assert_snapshot!(doctor(&with_rules(&rules.concat())), @"
    exit 0
    ! guard          no-rm  armed, denies the canary: pintle_canary (pre_tool_use answered deny in [time])
    ✓ guard          any    user_prompt_submit answered continue in [time]
    ✓ guard          spawn  subagent_start answered continue in [time]
    ✓ hook           told   it is in force
    ! hook           off    disabled
    ✓ rules                 [root]/config/pintle/hooks.d: 1 file
    ✓ audit                 nothing is signed yet
    ✓ keys                  secrets are encrypted with the key [kid]
    guards armed 3/3
    ");
}

#[test]
fn a_stored_guard_is_unproven_at_the_step_that_failed() {
    let rules = [
        rule("rude", "pre_tool_use", "command", "config.command = 'exit 3'"),
        rule("slow", "pre_tool_use", "command", "timeout_ms = 50\nconfig.command = 'sleep 9'"),
        rule("blind", "pre_tool_use", "script", &format!("matcher = '^exce$'\n{SCRIPT}")),
        rule("never", "user_prompt_submit", "script", &format!("matcher = '^exec$'\n{SCRIPT}")),
        rule("judge", "pre_tool_use", "prompt", "matcher = '^exec$'\nconfig.prompt_template = 'Is it safe?'"),
        rule("near", "pre_tool_use", "http", "config.url = 'http://127.0.0.1:8080/x'"),
    ];
    insta::assert_snapshot!(doctor(&with_rules(&rules.concat())), @r#"
    exit 5
    ✗ guard          near   unproven at configuration: is unavailable: [root]/config/pintle/hooks.d/rules.toml:40:14: hook.5.config.url: hook: http handler: ssrf check: ssrf: IP 127.0.0.1 is in a blocked range
    ✗ guard          rude   unproven at the canary: at pre_tool_use it exited with status 3
    ✗ guard          slow   unproven at the canary: at pre_tool_use it timed out after [time]
    ✗ guard          blind  unproven at matcher: `^exce$` matches no tool of any agent; did you mean `exec`?
    ✗ guard          never  unproven at matcher: `^exec$` never matches: a message of the user has no tool
    ✗ guard          judge  unproven at judge: no provider is configured, so no model can judge
    ✓ rules                 [root]/config/pintle/hooks.d: 1 file
    ! rules                 [root]/config/pintle/hooks.d/rules.toml:40:14: hook.5.config.url: hook: http handler: ssrf check: ssrf: IP 127.0.0.1 is in a blocked range
    ! rules                 [root]/config/pintle/hooks.d/rules.toml:26:11: hook.3.matcher: matcher "^exec$" never matches: user_prompt_submit has no tool, so the name that it is compared with is empty
    ✓ audit                 nothing is signed yet
    ✓ keys                  secrets are encrypted with the key [kid]
    guards armed 0/6
    "#);
}

#[test]
fn a_tripped_guard_and_a_secret_that_does_not_open_are_told() {
    let env = TestEnv::new();
    env.user_config("[agents.main]\n[agent_hooks]\ndir = 'hooks.d'\n");
    env.write("here/hooks.json", HOOK);
    let [first, second] = ["01", "02"].map(|digits| digits.repeat(32));
    let seen = on_terminal(&env, &[("PINTLE_ENCRYPTION_KEY", &first)], &["import", "goclaw", "hooks.json"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    env.write("config/pintle/hooks.d", "a file where the folder should be");
    let doctor = |key: &str| {
        let mut command = env.command(super::env::PINTLE);
        env.run(command.env("PINTLE_ENCRYPTION_KEY", key).arg("doctor"), "")
    };
    let seen = doctor(&second);
    let said = "unproven at secrets: config.headers.authorization: decrypt failed: no key";
    assert!(seen.code == Some(5) && seen.out.contains(said), "{seen}");
    assert!(seen.out.contains("hooks.d` cannot be read"), "{seen}");
    let store = env.store();
    let web = store.rules().unwrap().hooks.into_iter().find(|hook| hook.name == "web").unwrap();
    let by = Actor { name: "system:breaker".into(), at: jiff::Timestamp::now(), reason: String::new() };
    store.trip(&web.id, &web.tenant_id, &by).unwrap();
    drop(store);
    let seen = doctor(&first);
    let said = "unproven at breaker: its circuit breaker tripped at";
    assert!(seen.code == Some(5) && seen.out.contains(said), "{seen}");
    let mut command = env.command(super::env::PINTLE);
    let seen = env.run(command.env("PINTLE_ENCRYPTION_KEY", &first).args(["serve", "--check"]), "");
    assert!(seen.code == Some(5) && seen.err.contains("the rule \"web\" is unproven at breaker"), "{seen}");
}

#[test]
fn a_guard_that_refuses_the_canary_says_so_and_one_without_its_script_cannot_start() {
    let rules = [
        rule("list", "pre_tool_use", "command", "config.command = 'echo not on the list >&2; exit 2'"),
        rule("gone", "pre_tool_use", "command", "config.command = 'python3 no_such_guard.py'"),
    ];
    let seen = doctor(&with_rules(&rules.concat()));
    assert!(seen.starts_with("exit 5\n"), "{seen}");
    let list =
        "! guard          list  armed, denies the canary: not on the list (pre_tool_use answered deny in [time])";
    assert!(seen.contains(list), "{seen}");
    let gone =
        "✗ guard          gone  unproven at configuration: is unavailable: [root]/config/pintle/hooks.d/rules.toml:";
    let why = "hook: command: expected a file that is there, got `no_such_guard.py`, which does not exist in ";
    assert!(seen.contains(gone) && seen.contains(why), "{seen}");
    let text = "! rules                hook \"list\": replaceable by the agent: ";
    assert!(seen.contains(text), "{seen}");
    assert!(seen.contains("guards armed 1/2"), "{seen}");
}
