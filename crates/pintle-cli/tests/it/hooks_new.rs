//! `pintle hooks new`: every starter works as it is written.

use std::process::Command;

use super::env::{Seen, TestEnv};

/// Writes a starter, and the configuration that it asks for.
fn started(lang: &str) -> TestEnv {
    let env = TestEnv::new();
    let seen = env.pintle(&["hooks", "new", "guard", "--lang", lang]);
    assert_eq!((seen.code, seen.err.as_str()), (Some(0), ""));
    // What it says is to be added is added as it stands there.
    let lines = seen.out.split("pintle.toml:\n\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let root = env.path("").display().to_string();
    let lines = lines.replace("[root]", root.trim_end_matches('/'));
    env.user_config(&format!("[agents.main]\ntools = ['exec']\n\n{lines}\n"));
    env
}

fn passes(seen: &Seen) {
    assert_eq!(seen.code, Some(0), "{seen}");
}

/// The hook refuses what it is there to refuse, lets the rest pass, and is armed.
fn guards(env: &TestEnv) {
    let ask = |command: &str| {
        let input = pintle_domain::json::json!({ "command": command }).to_string();
        env.pintle(&["hooks", "test", "guard", "--tool", "bash", "--input", &input])
    };
    let bad = ask("git push --force origin main");
    assert_eq!(bad.code, Some(4), "{bad}");
    assert_eq!(bad.out, "deny  guard  \"forced pushes are done by people\"  [time]\n");
    let good = ask("git push origin fix-force");
    assert_eq!((good.code, good.out.as_str()), (Some(0), "continue  guard  [time]\n"), "{good}");
    let doctor = env.pintle(&["doctor"]);
    passes(&doctor);
    assert!(doctor.out.ends_with("\nguards armed 1/1\n"), "{doctor}");
    let lint = env.pintle(&["hooks", "lint"]);
    passes(&lint);
}

#[test]
fn the_sh_starter() {
    let env = started("sh");
    let test = env.run(env.command("sh").arg("guard/test_guard.sh"), "");
    assert_eq!((test.code, test.out.as_str()), (Some(0), "all passed\n"), "{test}");
    guards(&env);
}

#[test]
fn the_python_starter() {
    let env = started("python");
    passes(&env.run(env.command("python3").arg("test_guard.py").current_dir(env.path("here/guard")), ""));
    guards(&env);
}

#[test]
fn the_node_starter() {
    let env = started("node");
    let node = Command::new("node").arg("--version").output();
    assert!(node.is_ok_and(|node| node.status.success()), "this test needs Node");
    passes(&env.run(env.command("node").args(["--test", "guard/test_guard.mjs"]), ""));
    guards(&env);
}

/// Builds with what cargo has fetched for this workspace: serde_json is all that the starter needs.
#[test]
fn the_rust_starter() {
    let env = started("rust");
    let target = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("starter-rust");
    let cargo = |args: &[&str]| {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        cargo.args(args).arg("--offline").env("CARGO_TARGET_DIR", &target).current_dir(env.path("here/guard"));
        cargo.env_remove("RUSTC_WORKSPACE_WRAPPER").env_remove("CLIPPY_ARGS");
        passes(&env.run(&mut cargo, ""));
    };
    cargo(&["test", "--quiet"]);
    // The configuration names the release build; a debug build at its place is as good and sooner there.
    cargo(&["build", "--quiet"]);
    std::fs::create_dir_all(env.path("here/guard/target/release")).unwrap();
    std::fs::copy(target.join("debug/guard"), env.path("here/guard/target/release/guard")).unwrap();
    guards(&env);
}

#[test]
fn it_says_what_comes_next_and_overwrites_nothing() {
    let env = TestEnv::new();
    let seen = [
        env.pintle(&["hooks", "new", "no-force", "--lang", "rust", "--dir", "my hooks"]),
        env.pintle(&["hooks", "new", "no-force", "--lang", "rust", "--dir", "my hooks"]),
        env.pintle(&["hooks", "new", "../evil", "--lang", "sh"]),
        env.pintle(&["hooks", "new", "x", "--lang", "perl"]),
    ];
    insta::assert_snapshot!(seen.map(|seen| seen.to_string()).concat(), @r#"
    exit 0
    --- out
    wrote [root]/here/my hooks/Cargo.toml
    wrote [root]/here/my hooks/src/main.rs
    wrote [root]/here/my hooks/tests/guard.rs
    wrote [root]/here/my hooks/frames.jsonl

    It refuses forced pushes; its first lines say how to change that. Its test:

      (cd '[root]/here/my hooks' && cargo test && cargo build --release)

    Add to [root]/config/pintle/pintle.toml:

    [hooks.processes.no-force]
    enabled = true
    command = ["target/release/guard"]
    dir = "[root]/here/my hooks"
    intercept = ["before_tool"]
    matcher = "^exec$"

    Then see it refuse, and prove that it is armed:

      pintle hooks test no-force --tool exec --input '{"command": "git push --force"}'
      pintle doctor

    An agent has the tool `exec` only if its `tools` name it.

    exit 1
    --- err
    error: [root]/here/my hooks/Cargo.toml is there already, and nothing was written
      hint: name another folder with --dir DIR

    exit 2
    --- err
    error: NAME: expected at most 64 letters, digits, `-` and `_`, got "../evil"
      hint: for example: pintle hooks new no-force-push --lang python

    exit 2
    --- err
    error: invalid value 'perl' for '--lang <LANG>'
      [possible values: python, node, rust, sh]

    For more information, try '--help'.
    "#);
}

#[test]
fn the_file_in_force_is_named() {
    let env = TestEnv::new();
    env.found_config("");
    let found = env.pintle(&["hooks", "new", "a", "--lang", "sh"]);
    assert!(found.out.contains("\nAdd to [root]/here/pintle.toml:\n"), "{found}");
    assert!(found.out.contains("\n  pintle trust\n\nThen see it refuse"), "{found}");
    let named = env.pintle(&["-c", "my.toml", "hooks", "new", "b", "--lang", "sh"]);
    assert!(named.out.contains("\nAdd to [root]/here/my.toml:\n"), "{named}");
    assert!(named.out.contains("pintle -c my.toml doctor") && !named.out.contains("pintle trust"), "{named}");
}
