//! The manifests of the workspace: its members, and which of its crates each of them depends on.

use std::collections::BTreeMap;

use toml::{Table, Value};

use crate::tree::Tree;

/// The section of dependencies that only tests and benchmarks see.
pub const FOR_TESTS: &str = "dev-dependencies";

/// The members: folder, path of the manifest, its text.
pub fn manifests(tree: &Tree) -> impl Iterator<Item = (&str, &str, &str)> {
    tree.files().filter_map(|(path, text)| Some((path.strip_suffix("/Cargo.toml")?, path, text)))
}

/// The dependencies that the workspace lists for its members.
pub fn shared_dependencies(tree: &Tree) -> Table {
    let mut root = parse(tree.text("Cargo.toml").expect("the workspace has a manifest"));
    let Some(Value::Table(mut workspace)) = root.remove("workspace") else { return Table::new() };
    match workspace.remove("dependencies") {
        Some(Value::Table(known)) => known,
        _ => Table::new(),
    }
}

/// Our own crates: the folder of each by the name that manifests call it by.
pub fn own_crates(tree: &Tree) -> BTreeMap<String, String> {
    let known = shared_dependencies(tree);
    let own = known.iter().filter_map(|(name, value)| Some((name.clone(), value.get("path")?.as_str()?.to_owned())));
    own.collect()
}

/// Section and name of every dependency, including those for one platform.
pub fn dependencies(text: &str) -> Vec<(String, String)> {
    let manifest = parse(text);
    let platforms = manifest.get("target").and_then(Value::as_table).into_iter().flat_map(Table::values);
    let tables = platforms.filter_map(Value::as_table).chain([&manifest]);
    let mut found = Vec::new();
    for table in tables {
        for section in ["dependencies", "build-dependencies", FOR_TESTS] {
            let names = table.get(section).and_then(Value::as_table).into_iter().flat_map(Table::keys);
            found.extend(names.map(|name| (section.to_owned(), name.clone())));
        }
    }
    found
}

/// A manifest as a table.
pub fn parse(text: &str) -> Table {
    text.parse().expect("cargo has read the manifest")
}

/// The number, from 1, of the first line that begins with `key`; 1 if there is none.
pub fn line_with(text: &str, key: &str) -> usize {
    let found = text.lines().position(|line| line.trim_start().trim_start_matches('"').starts_with(key));
    found.map_or(1, |at| at + 1)
}
