//! `pintle trust`: by content, and by a person.

use super::env::{PINTLE, TestEnv};

const FOUND: &str = "[agents.main]\nmodel = 'local/m'\ntools = ['exec']\n\n[hooks.processes.guard]\nenabled = true\n\
                     command = [\"sh\", \"guard.sh\", \"a b\"]\nintercept = [\"before_tool\"]\n";

/// A working directory with somebody else's configuration in it.
fn cloned() -> TestEnv {
    let env = TestEnv::new();
    env.found_config(FOUND);
    env.write(
        "here/guard.sh",
        r#"while read -r l; do i=${l#*\"id\":}; echo "{\"id\":${i%%,*},\"result\":{\"action\":\"deny_tool\"}}"; done"#,
    );
    env
}

/// Whether the guard is asked.
fn works(env: &TestEnv) -> String {
    let seen = env.pintle(&["hooks", "test", "guard"]);
    format!("{} {}{}", seen.code.unwrap(), seen.out, seen.err.lines().next().unwrap_or_default())
}

#[test]
fn a_person_sees_what_would_run_and_accepts_it_by_content() {
    let env = cloned();
    assert_eq!(works(&env), "5 error: hook \"guard\" is untrusted ([root]/here/pintle.toml:5:18)");
    let seen = env.on_terminal("n\n", &["trust"]);
    insta::assert_snapshot!(seen, @r#"
    exit 1
    --- out
    [root]/here/pintle.toml

    agents.main  new
      model      local/m
      tools      ["exec"]

    hooks.processes.guard  new
      runs       sh guard.sh "a b"
      in         [root]/here
      enabled    true
      intercept  ["before_tool"]
      program    [program]
      file       [root]/here/guard.sh  sha256 [digest]…

    What these programs and files load in turn is not covered.
    accept? [y/N] n
    not accepted; nothing has changed
    "#);
    assert!(works(&env).starts_with("5 "));

    assert_eq!(env.on_terminal("y\n", &["trust"]).code, Some(0));
    assert_eq!(works(&env), "4 deny  guard  [time]\n");
    // Formatting is not content.
    env.found_config(&FOUND.replace("\n\n", "\n\n# a remark\n"));
    assert_eq!(works(&env), "4 deny  guard  [time]\n");
    insta::assert_snapshot!(env.pintle(&["trust"]), @"
    exit 0
    --- out
    [root]/here/pintle.toml

    agents.main  accepted before

    hooks.processes.guard  accepted before

    What these programs and files load in turn is not covered.
    nothing to accept: all of it was accepted before
    ");

    env.write("here/guard.sh", "touch ran");
    env.found_config(&FOUND.replace("before_tool", "approve_tool"));
    let changed = works(&env);
    assert!(changed.starts_with("1 fault  guard") && changed.contains("changed since it was trusted"), "{changed}");
    let seen = env.on_terminal("what?\n", &["trust", "pintle.toml"]);
    insta::assert_snapshot!(seen, @r#"
    exit 1
    --- out
    [root]/here/pintle.toml

    agents.main  accepted before

    hooks.processes.guard  changed since it was accepted
      runs       sh guard.sh "a b"
      in         [root]/here
      -       "before_tool"
      +       "approve_tool"
      - file [root]/here/guard.sh sha256:[digest]
      + file [root]/here/guard.sh sha256:[digest]

    What these programs and files load in turn is not covered.
    accept? [y/N] what?
    not accepted; nothing has changed
    "#);
    assert!(!env.path("here/ran").exists());
}

#[test]
fn without_a_terminal_nothing_is_accepted() {
    let env = cloned();
    let seen = env.run(env.command("setsid").args(["-w", PINTLE, "trust"]), "y\n");
    assert_eq!(seen.code, Some(5));
    assert!(seen.out.contains("runs       sh guard.sh \"a b\""), "{seen}");
    assert_eq!(
        seen.err,
        "error: only a person may do this, and there is no controlling terminal\n  hint: run it in a terminal of your own\n"
    );
    assert!(!env.path("data/pintle").exists());
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let env = TestEnv::new();
    let seen = [env.on_terminal("", &["trust"]), env.on_terminal("", &["trust", "nowhere.toml"])];
    insta::assert_snapshot!(seen.map(|seen| seen.to_string()).concat(), @"
    exit 2
    --- out
    error: there is no pintle.toml or pintle.json in this folder or above

    exit 2
    --- out
    error: [root]/here/nowhere.toml: cannot be read: No such file or directory (os error 2)
    ");
}

/// A scripted agent with `exec`, and a hook that keeps what its tools return.
const PLAYED: &str = "[providers.play]\nkind = 'scripted'\nscript = 'script.json'\n[agents.main]\nmodel = 'play/m'\n\
                      tools = ['exec']\n[hooks.processes.eye]\nenabled = true\ncommand = ['sh', 'eye.sh']\n\
                      intercept = ['after_tool']\npair = false\n";

const EYE: &str = r#"read -r hello; echo '{"id":1,"result":{}}'
n=2; while read -r line; do printf '%s\n' "$line" >>results; echo "{\"id\":$n,\"result\":{}}"; n=$((n+1)); done"#;

/// The agent gives itself a terminal, hides where it comes from, and still is not a person.
#[test]
fn the_agent_cannot_accept_anything() {
    let env = TestEnv::new();
    env.write("here/clone/pintle.toml", FOUND);
    let accept = env.terminal_line("trust clone");
    let away = format!(
        "env -i PATH=\"$PATH\" setsid -f sh -c '{} >away 2>&1; echo $? >code'; until [ -s code ]; do sleep 0.02; done; cat away",
        accept.replace('\'', r"'\''")
    );
    let calls = [format!("{PINTLE} trust clone"), accept, away].map(|command| {
        let command = format!("cd {}; {command}", env.path("here").display());
        pintle_domain::json::json!({"tool_calls": [{"name": "exec", "arguments": {"command": command}}]})
    });
    let replies: Vec<_> = calls.into_iter().chain([pintle_domain::json::json!({"text": "done"})]).collect();
    env.write("config/pintle/script.json", &pintle_domain::json::json!({ "replies": replies }).to_string());
    env.write("config/pintle/eye.sh", EYE);
    env.user_config(PLAYED);
    let run = env.pintle(&["run", "go"]);
    assert_eq!((run.code, run.out.as_str()), (Some(0), "done\n"), "{run}");
    let results = std::fs::read_to_string(env.path("config/pintle/results")).unwrap();
    let said: Vec<String> = results
        .lines()
        .map(|line| serde_json::from_str::<pintle_domain::json::Value>(line).unwrap())
        .map(|frame| env.redact(frame["params"]["result"]["for_llm"].as_str().unwrap()))
        .collect();
    insta::assert_snapshot!(said.join("\n---\n"), @r#"
    [root]/here/clone/pintle.toml

    agents.main  new
      model      local/m
      tools      ["exec"]

    hooks.processes.guard  new
      runs       sh guard.sh "a b"
      in         [root]/here/clone
      enabled    true
      intercept  ["before_tool"]
      program    [program]

    What these programs and files load in turn is not covered.
    error: only a person may do this, and a command of the agent's `exec` tool started it
    [exit code 5]
    ---
    [root]/here/clone/pintle.toml

    agents.main  new
      model      local/m
      tools      ["exec"]

    hooks.processes.guard  new
      runs       sh guard.sh "a b"
      in         [root]/here/clone
      enabled    true
      intercept  ["before_tool"]
      program    [program]

    What these programs and files load in turn is not covered.
    error: only a person may do this, and process [pid], a command of the agent's `exec` tool, is above it
    [exit code 5]
    ---
    [root]/here/clone/pintle.toml

    agents.main  new
      model      local/m
      tools      ["exec"]

    hooks.processes.guard  new
      runs       sh guard.sh "a b"
      in         [root]/here/clone
      enabled    true
      intercept  ["before_tool"]
      program    [program]

    What these programs and files load in turn is not covered.
    error: only a person may do this, and process [pid], which is Pintle, is above it
    "#);
    assert!(!env.path("data/pintle/trust.json").exists());
    assert_eq!(std::fs::read_to_string(env.path("here/code")).unwrap(), "5\n");
}
