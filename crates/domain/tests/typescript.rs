//! The reducer for front ends in TypeScript keeps what the one in Rust keeps: it is compiled, types checked, and plays the
//! vectors.

#![cfg(test)]

use std::path::Path;
use std::process::Command;

/// Runs `program`; its output, if it fails, is the message.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(output.status.success(), "{command:?}: {said}");
    said
}

#[test]
fn typescript_keeps_the_same() {
    let tsc = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/typescript/node_modules/typescript/bin/tsc");
    assert!(tsc.exists(), "{} is not installed: run `./pintle test --install` once, which does it", tsc.display());
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/typescript");
    let out = tempfile::tempdir().unwrap();
    // Node takes what it imports from elsewhere for an older kind of module, if nothing says otherwise.
    std::fs::write(out.path().join("package.json"), r#"{"type": "module"}"#).unwrap();
    run(Command::new("node").arg(tsc).arg("-p").arg(&package).arg("--outDir").arg(out.path()));
    let said = run(Command::new("node").arg(package.join("test/vectors.mjs")).arg(out.path().join("index.js")));
    assert!(said.ends_with("vectors agree\n"), "{said}");
}
