//! Crates outside of the workspace: what the pages show compiles and runs there, and their own JSON is as it was.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// What an outside crate reads and writes with `serde_json`, printed: it may not depend on who else is in the program.
const PROBE: &str = r##"
use serde::{Deserialize, Serialize};

#[derive(Debug, Deserialize, Serialize)]
#[serde(tag = "kind")]
enum Tagged { Priced { price: f64 }, Counted { count: u64 } }

#[derive(Debug, Deserialize, Serialize)]
struct Outer { name: String, #[serde(flatten)] rest: Inner }

#[derive(Debug, Deserialize, Serialize)]
struct Inner { ratio: f64, total: i64 }

#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged)]
enum Untagged { Whole(i64), Real(f64), Text(String) }

fn main() {
    println!("{:?}", serde_json::from_str::<Tagged>(r#"{"kind":"Priced","price":1.5}"#));
    println!("{:?}", serde_json::from_str::<Tagged>(r#"{"count":7,"kind":"Counted"}"#));
    println!("{:?}", serde_json::from_str::<Outer>(r#"{"name":"a","ratio":0.25,"total":-3}"#));
    for text in ["1", "1.50", "\"x\"", "1e3"] {
        println!("{:?}", serde_json::from_str::<Untagged>(text));
    }
    let value: serde_json::Value = serde_json::from_str(r#"{"b":1,"a":{"d":1.0,"c":100000000000000000000000},"e":1e2}"#).unwrap();
    println!("{value} {:?}", value.as_object().unwrap().keys().collect::<Vec<_>>());
    println!("{}", value["a"]["c"]);
    println!("{}", serde_json::to_string(&Tagged::Priced { price: 0.1 }).unwrap());
}
"##;

/// What the fragments of the guide stand in.
const AROUND: &str = "
use pintle::prelude::*;

pub async fn fragment(
    turn: &Turn, call: Call, till: &impl Executor<Error = String>, folder: &std::path::Path, key: &str,
    record: pintle::json::Value,
) -> Result<(), Box<dyn std::error::Error>> {
";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The Rust of the guide: programs, then fragments.
fn blocks() -> (Vec<String>, Vec<String>) {
    let page = fs::read_to_string(root().join("docs/guide/embedding.md")).unwrap();
    let loops = page.split("\n## An agent, not a loop").next().unwrap();
    let blocks = loops.split("```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned());
    blocks.partition(|block| block.contains("fn main"))
}

fn write(folder: &Path) {
    let (programs, fragments) = blocks();
    assert_eq!((programs.len(), fragments.len()), (1, 2), "the guide's blocks of Rust");
    let bins = folder.join("src/bin");
    fs::create_dir_all(&bins).unwrap();
    let manifest = format!(
        "[package]\nname = \"outside\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[features]\n\
         bare = [\"dep:pintle\"]\nusual = [\"bare\", \"pintle/process\"]\nrules = [\"usual\", \"pintle/rules\"]\n\n\
         [dependencies]\npintle = {{ path = {:?}, default-features = false, optional = true }}\n\
         serde = {{ version = \"1\", features = [\"derive\"] }}\nserde_json = \"1\"\n\
         tokio = {{ version = \"1\", features = [\"rt-multi-thread\", \"macros\", \"time\"] }}\n\n\
         [[bin]]\nname = \"probe\"\n\n[[bin]]\nname = \"small\"\nrequired-features = [\"usual\"]\n\n\
         [[bin]]\nname = \"fragments\"\nrequired-features = [\"rules\"]\n",
        root().join("crates/pintle")
    );
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    fs::copy(root().join("examples/embed/guard.sh"), folder.join("guard.sh")).unwrap();
    fs::write(bins.join("probe.rs"), PROBE).unwrap();
    fs::write(bins.join("small.rs"), &programs[0]).unwrap();
    let helpers = "fn keep<A, B: ?Sized, C>(_: A, _: &B, _: C) {}\nfn tell_the_model(_: &str) {}\n\
                   fn tell_the_user(_: &str) {}\nfn park(_: &str, _: OpenTurn) {}\nfn log(_: &str) {}\nfn main() {}\n";
    let stored = "pub mod stored {\nuse pintle::prelude::*;\n";
    let second = AROUND.replace("\nuse pintle::prelude::*;\n", "");
    let text = format!(
        "#![allow(unused_variables)]\n{AROUND}{}    Ok(())\n}}\n\n{stored}{second}{}    Ok(())\n}}\n}}\n\n{helpers}",
        fragments[0], fragments[1]
    );
    fs::write(bins.join("fragments.rs"), text).unwrap();
}

/// What the program `bin` prints, built with `features`.
fn printed(folder: &Path, bin: &str, features: &str) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--quiet", "--offline", "--bin", bin, "--features", features]).current_dir(folder);
    // Kept from one run to the next: what it is built of is as large as ours.
    command.env("CARGO_TARGET_DIR", root().join("target/outside")).env_remove("RUSTFLAGS");
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{bin} with `{features}`: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn an_outside_crate_reads_and_writes_as_before_and_runs_what_the_guide_shows() {
    let folder = root().join("target/outside-crate");
    write(&folder);
    let began = Instant::now();
    let without = printed(&folder, "probe", "");
    assert!(without.contains("Ok(Priced { price: 1.5 })"), "{without}");
    assert!(without.contains(r#"["a", "b", "e"]"#), "{without}");
    for features in ["bare", "usual", "rules"] {
        assert_eq!(printed(&folder, "probe", features), without, "with `{features}`");
    }
    let said = printed(&folder, "small", "usual");
    let page = fs::read_to_string(root().join("docs/guide/embedding.md")).unwrap();
    assert!(page.contains(&format!("```text\n{said}```")), "the guide shows something else than {said}");
    assert_eq!(printed(&folder, "fragments", "rules"), "");
    println!("an outside crate: {:?}", began.elapsed());
}
