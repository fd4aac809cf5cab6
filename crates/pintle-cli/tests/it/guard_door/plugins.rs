//! Our plugins in agents that load plugins: whatever goes wrong when they ask is a refusal.

use std::path::Path;
use std::process::Command;

use guard::{ClientEntry, EntryDaemon, host, settings};
use serde_json::Value;

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

/// Plays all ways in which asking fails, or the one in which nothing is answered in time.
fn check(id: &str, plugin: &Path, late: bool) {
    let play = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/plugins.mjs");
    let mut args = vec![play.as_path(), Path::new(id), plugin];
    args.extend(late.then_some(Path::new("late")));
    let said = node(&args);
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), if late { 1 } else { 11 }, "{said}");
    for line in &lines {
        let text = |name: &str| line[name].as_str().unwrap();
        if line["way"] == "allowed" {
            assert_eq!((text("prompt"), text("call"), text("result")), ("", "", "it ran"), "{id}");
            continue;
        }
        let refused = ["prompt", "call", "result"].map(|name| !text(name).is_empty() && text(name) != "it ran");
        assert_eq!(refused, [true; 3], "{id}: {line}");
    }
}

#[test]
fn the_plugin_for_opencode_refuses_when_it_cannot_ask() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = folder.path().join("pintle.mjs");
    for (timeout_s, late) in [(600, false), (2, true)] {
        std::fs::write(&plugin, written("opencode", timeout_s)).unwrap();
        check("opencode", &plugin, late);
    }
}

#[test]
fn the_plugin_for_pi_refuses_when_it_cannot_ask() {
    let folder = tempfile::tempdir().unwrap();
    let (typed, plugin) = (folder.path().join("pintle.ts"), folder.path().join("pintle.mjs"));
    let compiler =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/typescript/node_modules/typescript/lib/typescript.js");
    assert!(compiler.exists(), "{} is not installed: run `./pintle test` once, which does it", compiler.display());
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
