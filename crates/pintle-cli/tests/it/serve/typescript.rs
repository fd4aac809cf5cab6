//! The client in TypeScript, against real servers.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::server::{Server, TOKEN, WITH_TOKEN};
use crate::env::TestEnv;
use crate::run::{DONE, scripted};

/// A model that takes its time, and an agent with a text that stays.
fn slow() -> TestEnv {
    let model = r#"{"delay_ms": 200, "text": ["a", "b", "c"], "repeat": true}"#;
    let env = scripted(model, &format!("skills = ['tone']\n{WITH_TOKEN}"));
    env.write(
        "config/pintle/skills/tone/hooks/hooks.json",
        r#"{"hooks": [{"name": "tone", "file": "a.md", "timing": "after_user_input", "role": "user", "persistent": true}]}"#,
    );
    env.write("config/pintle/skills/tone/hooks/a.md", "be kind");
    env
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The WebSocket for Node, as a module.
fn websocket() -> PathBuf {
    let found = root().join(".cache/websocket/node_modules/ws/wrapper.mjs");
    assert!(found.exists(), "{} is not installed: run `./pintle test --install` once, which does it", found.display());
    found
}

/// What `command` prints; what it complains is the message, if it fails.
#[track_caller]
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

/// The package, compiled.
#[track_caller]
fn compiled() -> tempfile::TempDir {
    let tsc = root().join(".cache/typescript/node_modules/typescript/bin/tsc");
    assert!(tsc.exists(), "{} is not installed: run `./pintle test --install` once, which does it", tsc.display());
    let out = tempfile::tempdir().unwrap();
    // Node takes what it imports from elsewhere for an older kind of module, if nothing says otherwise.
    std::fs::write(out.path().join("package.json"), r#"{"type": "module"}"#).unwrap();
    run(Command::new("node").arg(tsc).arg("-p").arg(root().join("clients/typescript")).arg("--outDir").arg(out.path()));
    out
}

#[test]
fn the_client_lives_through_what_connections_do() {
    let out = compiled();
    let (first, second) = (Server::start(slow()), Server::start(slow()));
    let said = run(Command::new("node")
        .arg(root().join("clients/typescript/test/client.mjs"))
        .args([out.path().join("client.js"), websocket()])
        .args([&first.address, &first.pid().to_string(), &second.address]));
    assert!(said.ends_with("tests passed\n"), "{said}");
}

#[test]
fn the_example_of_the_readme_runs() {
    let out = compiled();
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let readme = std::fs::read_to_string(root().join("clients/typescript/README.md")).unwrap();
    let example = readme.split("```js\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let at = |path: PathBuf| format!("\"file://{}\"", path.canonicalize().unwrap().display());
    let example = example
        .replace("\"ws\"", &at(websocket()))
        .replace("\"@pintle/front-end/client\"", &at(out.path().join("client.js")));
    let file = out.path().join("example.mjs");
    std::fs::write(&file, example).unwrap();
    let mut node = Command::new("node");
    node.arg(&file).env("PINTLE_URL", format!("ws://{}/ws", server.address)).env("PINTLE_TOKEN", TOKEN);
    assert_eq!(run(&mut node), "All done.\n2 messages\n");
}
