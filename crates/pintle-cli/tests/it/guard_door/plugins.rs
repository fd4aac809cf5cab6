//! Our plugins in agents that load plugins: whatever goes wrong when they ask is a refusal.

use std::path::Path;
use std::process::Command;

use guard::{ClientEntry, host, settings};
use serde_json::Value;

/// What node prints.
#[track_caller]
fn node(args: &[&Path]) -> String {
    let output = Command::new("node").args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The text of a plugin as an installation writes it, with a client that is not there.
fn written(id: &str) -> String {
    let hook = ClientEntry { host: id, program: "/nowhere/pintle-hook", socket: "/s", key_file: "/k", timeout_s: 600 };
    settings::install(host(id).unwrap(), &hook, None, None).unwrap().text
}

fn check(id: &str, plugin: &Path) {
    let play = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/plugins.mjs");
    let said = node(&[&play, Path::new(id), plugin]);
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 11, "{said}");
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
    std::fs::write(&plugin, written("opencode")).unwrap();
    check("opencode", &plugin);
}

#[test]
fn the_plugin_for_pi_refuses_when_it_cannot_ask() {
    let folder = tempfile::tempdir().unwrap();
    let (typed, plugin) = (folder.path().join("pintle.ts"), folder.path().join("pintle.mjs"));
    std::fs::write(&typed, written("pi")).unwrap();
    let compiler =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/typescript/node_modules/typescript/lib/typescript.js");
    assert!(compiler.exists(), "{} is not installed: run `./pintle test` once, which does it", compiler.display());
    let compile = folder.path().join("compile.cjs");
    let script = "const [ts, text] = [require(process.argv[2]), require('fs').readFileSync(process.argv[3], 'utf8')];\n\
                  process.stdout.write(ts.transpileModule(text, { compilerOptions: { target: 'es2022', module: 'esnext' } }).outputText);\n";
    std::fs::write(&compile, script).unwrap();
    std::fs::write(&plugin, node(&[&compile, &compiler, &typed])).unwrap();
    check("pi", &plugin);
}
