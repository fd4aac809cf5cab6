//! Crates outside of the workspace: what the pages show compiles and runs there, their own JSON is as it was, and what
//! must not compile does not.

#![cfg(test)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Everything that an outside crate reads and writes with `serde_json`, printed: it may not depend on who else is in the program.
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

/// The function around the first fragment of the guide, and the one around the second.
const CALLING: &str = "
pub async fn calling(
    turn: &Turn, call: Call, till: &impl Executor<Error = String>,
) -> Result<(), Box<dyn std::error::Error>> {
";
const STORED: &str = "
pub async fn stored(
    folder: &std::path::Path, key: &str, record: pintle::json::Value,
) -> Result<(), Box<dyn std::error::Error>> {
";

/// What the fragments call of their host's.
const HOST: &str = "fn keep<A, B: ?Sized, C>(_: A, _: &B, _: C) {}\nfn tell_the_model(_: &str) {}\n\
                    fn tell_the_user(_: &str) {}\nfn park(_: &str, _: TurnSnapshot) {}\nfn log(_: &str) {}\n";

/// The feature sets that a crate may choose, and what they bring of ours.
const FEATURES: [&str; 4] = ["bare", "process", "rules", "all"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The blocks of Rust in the part of `page` that stands before `end`.
fn blocks(page: &str, end: &str) -> Vec<String> {
    let page = fs::read_to_string(root().join(page)).unwrap();
    let part = page.split(end).next().unwrap();
    part.split("```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// Writes the crate into `folder`: the probe, the programs of the pages, and their fragments.
fn write(folder: &Path) {
    let readme = blocks("crates/pintle/README.md", "\nLicence");
    let guide = blocks("docs/guide/embedding.md", "\n## An agent with skills");
    let ([readme], [small, calling, stored]) = (&readme[..], &guide[..]) else { panic!("{readme:?} {guide:?}") };
    let bins = folder.join("src/bin");
    fs::create_dir_all(&bins).unwrap();
    // What cargo built for the workspace is taken from there only where it would be built with the same settings.
    let workspace = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, from) = workspace.split_once("\n[profile.dev]\n").unwrap();
    let profiles = format!("[profile.dev]\n{}", from.split_once("[profile.release]").unwrap().0);
    let bin = |name: &str, features: &str| format!("[[bin]]\nname = {name:?}\nrequired-features = [{features}]\n\n");
    let manifest = format!(
        "[package]\nname = \"outside\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[features]\n\
         bare = [\"dep:pintle\"]\nprocess = [\"bare\", \"pintle/process\"]\nrules = [\"bare\", \"pintle/rules\"]\n\
         all = [\"process\", \"rules\"]\nmisuse = [\"all\", \"dep:pintle-engine\"]\n\n\
         {profiles}[dependencies]\npintle = {{ path = {:?}, default-features = false, optional = true }}\n\
         pintle-engine = {{ path = {:?}, optional = true }}\n\
         serde = {{ version = \"1\", features = [\"derive\"] }}\nserde_json = \"1\"\n\
         tokio = {{ version = \"1\", features = [\"rt-multi-thread\", \"macros\", \"time\"] }}\n\n{}{}{}{}{}{}",
        root().join("crates/pintle"),
        root().join("crates/engine"),
        bin("probe", ""),
        bin("readme", "\"bare\""),
        bin("calling", "\"bare\""),
        bin("small", "\"process\""),
        bin("stored", "\"rules\""),
        misuses().iter().map(|case| bin(&case.name, "\"misuse\"")).collect::<String>(),
    );
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    fs::copy(root().join("examples/embed/guard.sh"), folder.join("guard.sh")).unwrap();
    let fragment = |around: &str, fragment: &str, host: &str| {
        format!("use pintle::prelude::*;\n{around}{fragment}    Ok(())\n}}\n\n{host}fn main() {{}}\n")
    };
    let programs = [
        ("probe", PROBE.to_owned()),
        ("readme", readme.clone()),
        ("small", small.clone()),
        ("calling", fragment(CALLING, calling, HOST)),
        ("stored", fragment(STORED, stored, "")),
    ];
    for (name, text) in programs {
        fs::write(bins.join(format!("{name}.rs")), text).unwrap();
    }
    for case in misuses() {
        fs::write(bins.join(format!("{}.rs", case.name)), case.text).unwrap();
    }
}

/// A program that must not compile. A line of it with `//~` is one that the compiler has to refuse with these words.
struct Misuse {
    name: String,
    text: String,
}

impl Misuse {
    /// The lines that are to be refused, counted from one, each with the words that are to be said of it.
    fn refusals(&self) -> Vec<(u64, &str)> {
        let lines = (1..).zip(self.text.lines());
        lines.filter_map(|(number, line)| Some((number, line.split_once("//~")?.1.trim()))).collect()
    }
}

fn misuses() -> Vec<Misuse> {
    let folder = root().join("crates/pintle/tests/misuse");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let name = |file: &Path| format!("misuse_{}", file.file_stem().unwrap().to_str().unwrap());
    files.map(|file| Misuse { name: name(&file), text: fs::read_to_string(&file).unwrap() }).collect()
}

fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(words).arg("--offline").current_dir(folder).env_remove("RUSTFLAGS");
    // Our lints are not for the crates of others.
    command.env_remove("RUSTC_WORKSPACE_WRAPPER").env_remove("CLIPPY_ARGS");
    // What was built for the workspace is not built again where it is the same.
    command.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap());
    command
}

fn cargo(folder: &Path, words: &[&str]) -> String {
    let ran = command(folder, words).output().unwrap();
    assert!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

/// What the program `bin` prints, after all that the features allow was built.
fn printed(folder: &Path, bin: &str, features: &str) -> String {
    cargo(folder, &["build", "--quiet", "--bins", "--features", features]);
    cargo(folder, &["run", "--quiet", "--bin", bin, "--features", features])
}

/// A crate that stands in no workspace of ours.
fn outside() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path());
    folder
}

#[test]
fn an_outside_crate_reads_and_writes_as_before_and_runs_what_the_guide_shows() {
    let outside = outside();
    let folder = outside.path();
    let without = printed(folder, "probe", "");
    assert!(without.contains("Ok(Priced { price: 1.5 })"), "{without}");
    assert!(without.contains(r#"["a", "b", "e"]"#), "{without}");
    for features in FEATURES {
        assert_eq!(printed(folder, "probe", features), without, "with `{features}`");
    }
    assert_eq!(printed(folder, "readme", "bare"), "refunded 50\n");
    let said = printed(folder, "small", "process");
    let page = fs::read_to_string(root().join("docs/guide/embedding.md")).unwrap();
    assert!(page.contains(&format!("```text\n{said}```")), "the guide shows something else than {said}");
}

#[test]
fn law_1_whoever_holds_it_wrongly_is_told_by_the_compiler() {
    let outside = outside();
    let words = ["build", "--quiet", "--keep-going", "--bins", "--features", "misuse", "--message-format", "json"];
    let ran = command(outside.path(), &words).output().unwrap();
    assert!(!ran.status.success());
    let mut refused: BTreeMap<String, Vec<(u64, String)>> = BTreeMap::new();
    for line in String::from_utf8(ran.stdout).unwrap().lines() {
        let said: Value = serde_json::from_str(line).unwrap();
        let message = &said["message"];
        for span in message["spans"].as_array().into_iter().flatten().filter(|span| span["is_primary"] == true) {
            let (at, text) = (span["line_start"].as_u64().unwrap(), message["message"].as_str().unwrap().to_owned());
            if message["level"] == "error" {
                refused.entry(said["target"]["name"].as_str().unwrap().to_owned()).or_default().push((at, text));
            }
        }
    }
    let misuses = misuses();
    assert_eq!(refused.len(), misuses.len(), "{refused:#?}\n{}", String::from_utf8_lossy(&ran.stderr));
    for case in &misuses {
        let (said, expected) = (&refused[&case.name], case.refusals());
        let is_as_expected =
            |((at, text), (line, words)): (&(u64, String), &(u64, &str))| at == line && text.contains(words);
        let all = said.len() == expected.len() && said.iter().zip(&expected).all(is_as_expected);
        assert!(all, "{}: {said:?}, expected {expected:?}", case.name);
    }
}

#[test]
fn an_outside_crate_builds_few_packages_where_it_asks_for_little() {
    let outside = outside();
    let packages = |features: &str| {
        let words = ["tree", "--edges", "normal", "--prefix", "none", "--features", features];
        let tree = cargo(outside.path(), &words);
        tree.lines().map(|line| line.trim_end_matches(" (*)")).collect::<BTreeSet<_>>().len()
    };
    let [bare, process, rules, all] = FEATURES.map(packages);
    assert!(bare <= 70 && process <= 90 && rules <= 330, "{bare} {process} {rules}");
    assert!(bare < process && process < all && rules <= all, "{bare} {process} {rules} {all}");
}
