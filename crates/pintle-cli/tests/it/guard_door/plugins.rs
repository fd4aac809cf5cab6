//! Our plugins in agents that load plugins: a prompt is sent as hooks left it, and whatever goes wrong when they ask is a
//! refusal.

use std::path::Path;
use std::process::Command;

use pintle_guard::{ClientEntry, EntryDaemon, host, settings};
use serde_json::{Value, json};

/// What node prints.
#[track_caller]
fn node(args: &[&Path]) -> String {
    let output = Command::new("node").args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The text of a plugin as an installation writes it, with a client that is not there.
fn written(id: &str, timeout_s: u32) -> String {
    let hook = ClientEntry {
        host: id,
        program: "/nowhere/pintle-hook",
        daemon: EntryDaemon::Named { socket: "/s", key_file: "/k" },
        timeout_s,
        allows_away: false,
        events: None,
    };
    settings::install(host(id).unwrap(), &hook, None, None).unwrap().text
}

/// What of the parts of a prompt is sent: of OpenCode's, which has two texts and a file, or of pi's, which is one text.
fn sent(id: &str, way: &str) -> Value {
    match (id, way) {
        ("opencode", "another prompt") => json!(["other", "a file"]),
        ("opencode", "a text beside") => json!(["hello\n\nbeside", "a file", "more"]),
        ("opencode", _) => json!(["hello", "a file", "more"]),
        (_, "another prompt") => json!(["other"]),
        (_, "a text beside") => json!(["hello\n\nbeside"]),
        (_, _) => json!(["hello"]),
    }
}

/// Plays what can be answered and all ways in which asking fails, or the one in which nothing is answered in time.
fn check(id: &str, plugin: &Path, late: bool) {
    let play = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/plugins.mjs");
    let mut args = vec![play.as_path(), Path::new(id), plugin];
    args.extend(late.then_some(Path::new("late")));
    let said = node(&args);
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), if late { 1 } else { 13 }, "{said}");
    for line in &lines {
        let text = |name: &str| line[name].as_str().unwrap();
        let refused = ["prompt", "call", "result"].map(|name| !text(name).is_empty() && text(name) != "it ran");
        let expected = match text("way") {
            "allowed" | "a text beside" => [false; 3],
            // A plugin that does not know this answer refuses, too: it would send the prompt as it was.
            "another prompt" => [false, true, true],
            _ => [true; 3],
        };
        assert_eq!(refused, expected, "{id}: {line}");
        assert_eq!(line["sent"], sent(id, text("way")), "{id}: {line}");
    }
}

#[test]
fn the_plugin_for_opencode_sends_what_it_was_told_and_refuses_when_it_cannot_ask() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = folder.path().join("pintle.mjs");
    for (timeout_s, late) in [(600, false), (2, true)] {
        std::fs::write(&plugin, written("opencode", timeout_s)).unwrap();
        check("opencode", &plugin, late);
    }
}

#[test]
fn the_plugin_for_pi_sends_what_it_was_told_and_refuses_when_it_cannot_ask() {
    let folder = tempfile::tempdir().unwrap();
    let (typed, plugin) = (folder.path().join("pintle.ts"), folder.path().join("pintle.mjs"));
    let compiler =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/typescript/node_modules/typescript/lib/typescript.js");
    assert!(
        compiler.exists(),
        "{} is not installed: run `./pintle test --install` once, which does it",
        compiler.display()
    );
    let compile = folder.path().join("compile.cjs");
    let script = "const [ts, text] = [require(process.argv[2]), require('fs').readFileSync(process.argv[3], 'utf8')];\n\
                  process.stdout.write(ts.transpileModule(text, { compilerOptions: { target: 'es2022', module: 'esnext' } }).outputText);\n";
    std::fs::write(&compile, script).unwrap();
    for (timeout_s, late) in [(600, false), (2, true)] {
        std::fs::write(&typed, written("pi", timeout_s)).unwrap();
        std::fs::write(&plugin, node(&[&compile, &compiler, &typed])).unwrap();
        check("pi", &plugin, late);
    }
}
