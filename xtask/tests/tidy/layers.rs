//! Who may know whom: the layers, and what every crate takes from the workspace.

use regex::Regex;
use toml::{Table, Value};
use xtask::manifests::{FOR_TESTS, dependencies, line_with, manifests, own_crates, parse, shared_dependencies};
use xtask::tree::{Finding, Tree, finding, line_of};

/// A crate's folder, and those of our crates that its code may use. A new arrow is a topic for review.
const LAYERS: &[(&str, &[&str])] = &[
    (
        "crates/pintle-cli",
        &[
            "pintle-gateway",
            "pintle-guard",
            "pintle-doors",
            "pintle-host",
            "pintle-agent",
            "pintle-dialects",
            "pintle-domain",
            "pintle-egress",
            "pintle-engine",
            "pintle-mcp",
            "pintle-hook",
            "pintle-process",
            "pintle-providers",
            "pintle-rules",
            "pintle-sandbox",
            "pintle-skills",
            "pintle-store",
        ],
    ),
    ("crates/pintle-hook", &["pintle-guard"]),
    (
        "crates/gateway",
        &[
            "pintle-host",
            "pintle-guard",
            "pintle-doors",
            "pintle-agent",
            "pintle-domain",
            "pintle-egress",
            "pintle-engine",
            "pintle-process",
            "pintle-rules",
            "pintle-store",
        ],
    ),
    (
        "crates/host",
        &[
            "pintle-agent",
            "pintle-dialects",
            "pintle-domain",
            "pintle-egress",
            "pintle-engine",
            "pintle-mcp",
            "pintle-process",
            "pintle-providers",
            "pintle-rule-runtime",
            "pintle-rules",
            "pintle-skills",
            "pintle-store",
            "pintle-telemetry",
        ],
    ),
    ("crates/guard", &["pintle-domain", "pintle-shell"]),
    ("crates/doors", &["pintle-domain", "pintle-egress", "pintle-engine", "pintle-process"]),
    (
        "crates/pintle",
        &[
            "pintle-domain",
            "pintle-egress",
            "pintle-engine",
            "pintle-process",
            "pintle-rule-runtime",
            "pintle-rules",
            "pintle-store",
        ],
    ),
    (
        "crates/rule-runtime",
        &["pintle-domain", "pintle-egress", "pintle-engine", "pintle-rules", "pintle-sandbox", "pintle-store"],
    ),
    ("crates/rules", &["pintle-dialects", "pintle-domain", "pintle-egress", "pintle-engine", "pintle-process"]),
    (
        "crates/agent",
        &[
            "pintle-domain",
            "pintle-egress",
            "pintle-engine",
            "pintle-process",
            "pintle-providers",
            "pintle-shell",
            "pintle-skills",
        ],
    ),
    ("crates/mcp", &["pintle-domain", "pintle-egress", "pintle-engine", "pintle-process"]),
    ("crates/process", &["pintle-dialects", "pintle-domain", "pintle-engine"]),
    ("crates/telemetry", &["pintle-domain", "pintle-egress", "pintle-engine"]),
    ("crates/engine", &["pintle-domain"]),
    ("crates/skills", &["pintle-dialects", "pintle-domain"]),
    ("crates/providers", &["pintle-domain", "pintle-egress"]),
    ("crates/store", &["pintle-domain"]),
    ("crates/sandbox", &["pintle-domain"]),
    ("crates/shell", &["pintle-domain"]),
    ("crates/dialects", &["pintle-domain"]),
    ("crates/egress", &[]),
    ("crates/domain", &[]),
    ("crates/testkit", &["pintle-domain"]),
    ("crates/soak", &["pintle-agent", "pintle-host"]),
    ("examples/embed", &["pintle"]),
    ("xtask", &[]),
];

/// Fakes are for tests: a crate may have it among its dev-dependencies only.
const TEST_ONLY: &str = "pintle-testkit";

/// Where the errands stand, with the one that packs what is published.
const ERRANDS: &str = "xtask/src/main.rs";

/// Every dependency of ours is an arrow of the table.
pub(crate) fn layers(tree: &Tree) -> Vec<Finding> {
    let ours = own_crates(tree);
    let mut findings = Vec::new();
    for (folder, path, text) in manifests(tree) {
        let Some((_, allowed)) = LAYERS.iter().find(|(known, _)| *known == folder) else {
            findings.push(finding(path, 1, "a new crate: give it a row in LAYERS, and a design note"));
            continue;
        };
        for (section, name) in dependencies(text) {
            let line = line_with(text, &name);
            if !ours.contains_key(&name) {
                if name.starts_with("pintle-") {
                    findings.push(finding(path, line, format!("call `{name}` by its name in the workspace")));
                }
            } else if section != FOR_TESTS && (name == TEST_ONLY || !allowed.contains(&name.as_str())) {
                let known = allowed.join(", ");
                let mend =
                    format!("`{folder}` may not use `{name}` (allowed: {known}); move the code or discuss LAYERS");
                findings.push(finding(path, line, mend));
            }
        }
    }
    findings
}

/// A row of the table lists what its crate really depends on, and no more.
pub(crate) fn stale_layers(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (folder, path, text) in manifests(tree) {
        let allowed = LAYERS.iter().filter(|(known, _)| *known == folder).flat_map(|(_, allowed)| *allowed);
        let needed = dependencies(text);
        let is_needed = |name: &str| needed.iter().any(|(section, needed)| section != FOR_TESTS && needed == name);
        findings.extend(allowed.filter(|name| !is_needed(name)).map(|name| {
            finding(path, 1, format!("`{folder}` does not depend on `{name}`: take it out of its row in LAYERS"))
        }));
    }
    findings
}

/// Our crates are called by the names of their packages, in manifests and in sources: whoever searches for one finds it.
pub(crate) fn aliases(tree: &Tree) -> Vec<Finding> {
    let renamed = Regex::new(r#"(?m)^\s*([\w-]+)\s*=\s*\{[^}\n]*package\s*=\s*"(pintle[\w-]*)""#).expect("a pattern");
    let imported =
        Regex::new(r"(?m)^\s*(?:pub(?:\([^)]*\))? )?(?:use|extern crate) (pintle_\w+) as \w").expect("a pattern");
    let mut findings = Vec::new();
    for (path, text) in tree.files() {
        if path.ends_with("Cargo.toml") {
            for found in renamed.captures_iter(text).filter(|found| found[1] != found[2]) {
                let mend = format!("call `{}` by the name of its package, `{}`", &found[1], &found[2]);
                findings.push(finding(path, line_of(text, found.get(1).map_or(0, |name| name.start())), mend));
            }
        } else if path.ends_with(".rs") && !path.starts_with("xtask/tests/tidy") {
            for found in imported.captures_iter(text) {
                let mend = format!("import `{}` by its own name", &found[1]);
                findings.push(finding(path, line_of(text, found.get(1).map_or(0, |name| name.start())), mend));
            }
        }
    }
    findings
}

/// Lints, edition and version are decided once.
pub(crate) fn workspace_lints(tree: &Tree) -> Vec<Finding> {
    let inherits = |manifest: &Table, table: &str, key: Option<&str>| {
        let table = manifest.get(table);
        let table = key.map_or(table, |key| table?.get(key));
        table.and_then(|table| table.get("workspace")).and_then(Value::as_bool) == Some(true)
    };
    let mut findings = Vec::new();
    for (_, path, text) in manifests(tree) {
        let manifest = parse(text);
        if !inherits(&manifest, "lints", None) {
            findings.push(finding(path, 1, "add `[lints]` with `workspace = true`"));
        }
        let publish = manifest.get("package").and_then(|package| package.get("publish"));
        if publish.is_none() {
            findings.push(finding(path, 1, "write `publish.workspace = true`, or `publish = true` for all to use"));
        }
        for key in ["edition", "version", "license"] {
            if !inherits(&manifest, "package", Some(key)) {
                findings.push(finding(path, line_with(text, key), format!("write `{key}.workspace = true`")));
            }
        }
    }
    findings
}

/// A crate that can be published needs nothing of ours that cannot, and says which version of it.
pub(crate) fn published(tree: &Tree) -> Vec<Finding> {
    let known = shared_dependencies(tree);
    let folder = |name: &str| known.get(name)?.get("path")?.as_str().map(str::to_owned);
    let open: Vec<&str> =
        manifests(tree).filter(|(_, _, text)| is_published(text)).map(|(folder, _, _)| folder).collect();
    let mut findings = Vec::new();
    for (_, path, text) in manifests(tree).filter(|(_, _, text)| is_published(text)) {
        for (section, name) in dependencies(text) {
            // Cargo leaves those that only tests need out of the package, if they have no version.
            let Some(folder) = folder(&name).filter(|_| section != FOR_TESTS) else { continue };
            if !open.contains(&folder.as_str()) {
                let mend = format!("`{name}` is not published: give it `publish = true`, or do without it");
                findings.push(finding(path, line_with(text, &name), mend));
            } else if known[&name].get("version").is_none() {
                let mend = format!("give `{name}` a version in the workspace's Cargo.toml beside its path");
                findings.push(finding(path, line_with(text, &name), mend));
            }
        }
        let manifest = parse(text);
        let package = manifest.get("package").and_then(Value::as_table);
        for key in ["description", "keywords", "categories"] {
            if package.and_then(|package| package.get(key)).is_none() {
                findings.push(finding(path, 1, format!("say its `{key}`: a registry shows them")));
            }
        }
        let name = package.and_then(|package| package.get("name")).and_then(Value::as_str).unwrap_or_default();
        if tree.text(ERRANDS).is_some_and(|errands| !errands.contains(&format!("\"{name}\""))) {
            findings.push(finding(path, 1, format!("name `{name}` in the errand `package` of `{ERRANDS}`")));
        }
    }
    findings
}

/// Whether the manifest lets its crate out; what it inherits is that it may not.
fn is_published(text: &str) -> bool {
    let manifest = parse(text);
    let publish = manifest.get("package").and_then(|package| package.get("publish"));
    publish.is_some_and(|publish| publish.as_bool() == Some(true))
}
