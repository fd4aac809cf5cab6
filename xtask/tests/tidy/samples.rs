//! Each rule tried on a few files that break it: a rule that finds nothing is none.

use xtask::map;
use xtask::tree::{Finding, Tree};

use crate::{circles, docs, functions, layers, plan, sources, texts, types};

/// Runs `check` on `files`; the findings, without what to do, are `expected`.
#[track_caller]
fn check<const N: usize>(check: fn(&Tree) -> Vec<Finding>, files: [(&str, &str); N], expected: &[&str]) {
    let found: Vec<String> = check(&Tree::of(files)).iter().map(ToString::to_string).collect();
    let places: Vec<&str> = found.iter().map(|line| line.split(": ").next().unwrap()).collect();
    assert_eq!(places, expected, "{found:#?}");
}

#[test]
fn a_source_without_docs() {
    let files = [
        ("a/src/bad.rs", "use std::fmt;\n"),
        ("a/src/empty.rs", ""),
        ("a/src/good.rs", "#![forbid(unsafe_code)]\n\n//! About this.\n"),
    ];
    check(sources::module_docs, files, &["a/src/bad.rs:1", "a/src/empty.rs:1"]);
}

#[test]
fn a_long_source() {
    let (long, full) = ("//! x\n".repeat(501), "//! x\n".repeat(500));
    let files = [
        ("a/src/full.rs", &*full),
        ("a/src/long.rs", &*long),
        ("a/src/x/tests.rs", &*long),
        ("a/tests/it/long.rs", &*long),
    ];
    check(sources::file_length, files, &["a/src/long.rs:500"]);
}

#[test]
fn unfinished_work() {
    let files = [
        ("a/src/a.rs", "//! x\nfn a() {\n    todo!()\n}\n// TODO: b\n"),
        ("a/src/fine.rs", "//! mktemp -t XXXXXX; a todo list; METHODOLOGY\n"),
        ("docs/a.md", "TODO\n"),
        ("pintle", "#!/bin/sh\n# FIXME\n"),
        ("xtask/tests/tidy/a.rs", "TODO\n"),
    ];
    check(sources::unfinished, files, &["a/src/a.rs:3", "a/src/a.rs:5", "pintle:2"]);
}

#[test]
fn names_that_say_nothing() {
    let files = [
        ("a/src/common/x.rs", "//! x\n"),
        ("a/src/fine.rs", "//! x\n// mod util is a bad name\nmod utility_room;\n"),
        ("a/src/mods.rs", "//! x\n\npub(crate) mod helpers {}\n"),
        ("a/src/utils.rs", "//! x\n"),
    ];
    check(sources::vague_names, files, &["a/src/common/x.rs:1", "a/src/mods.rs:3", "a/src/utils.rs:1"]);
}

#[test]
fn a_lint_switched_off_without_a_reason() {
    let text =
        "//! x\n#![allow(dead_code)]\n#[expect(\n    dead_code,\n    reason = \"(it) is\"\n)]\n#[expect(unused)]\n";
    check(sources::lint_reasons, [("a/src/a.rs", text)], &["a/src/a.rs:2", "a/src/a.rs:7"]);
}

#[test]
fn a_file_that_nobody_names() {
    let files = [
        ("crates/a/benches/b.rs", ""),
        ("crates/a/src/deep.rs", "mod inner;\n"),
        ("crates/a/src/deep/inner.rs", ""),
        ("crates/a/src/deep/lost.rs", ""),
        ("crates/a/src/lib.rs", "pub mod deep;\n// mod lost;\n"),
        ("crates/a/src/lost.rs", ""),
        ("crates/a/tests/it/forgotten.rs", ""),
        ("crates/a/tests/it/main.rs", "mod named;\n"),
        ("crates/a/tests/it/named.rs", ""),
        ("crates/a/tests/misuse/forge.rs", "    Permit {} //~ private fields\n"),
        ("crates/a/tests/simulation.rs", ""),
        ("crates/a/tests/ui/forge.rs", ""),
    ];
    let expected = ["crates/a/src/deep/lost.rs:1", "crates/a/src/lost.rs:1", "crates/a/tests/it/forgotten.rs:1"];
    check(sources::orphans, files, &expected);
}

/// One crate by its package's name, the others by names that the workspace gives them.
const MAP_WORKSPACE: &str = "[workspace.dependencies]\n\
    domain = { package = \"pintle-domain\", path = \"crates/domain\" }\n\
    pintle-engine = { path = \"crates/engine\" }\n\
    store = { package = \"pintle-store\", path = \"crates/store\" }\n\
    serde = \"1\"\n";

const MAP_FACE: &str = "[dependencies]\n\
    domain.workspace = true\npintle-engine.workspace = true\nstore.workspace = true\n\
    [dev-dependencies]\nstore.workspace = true\n";

const WORKSPACE: &str = "[workspace.dependencies]\n\
    pintle-domain = { path = \"crates/domain\" }\n\
    pintle-engine = { path = \"crates/engine\" }\n\
    pintle-testkit = { path = \"crates/testkit\" }\n\
    serde = \"1\"\n";

#[test]
fn an_arrow_that_is_not_in_the_table() {
    let store = "[dependencies]\npintle-domain.workspace = true\npintle-engine.workspace = true\nserde.workspace = true\n\
        [dev-dependencies]\npintle-testkit.workspace = true\n";
    let files = [
        ("Cargo.toml", WORKSPACE),
        ("crates/agent/Cargo.toml", "[dependencies]\npintle-testkit.workspace = true\n"),
        ("crates/domain/Cargo.toml", "[target.'cfg(unix)'.dependencies]\npintle-engine.workspace = true\n"),
        ("crates/engine/Cargo.toml", "[build-dependencies]\npintle-absent = { path = \"../absent\" }\n"),
        ("crates/new/Cargo.toml", ""),
        ("crates/store/Cargo.toml", store),
    ];
    let expected = [
        "crates/agent/Cargo.toml:2",
        "crates/domain/Cargo.toml:2",
        "crates/engine/Cargo.toml:2",
        "crates/new/Cargo.toml:1",
        "crates/store/Cargo.toml:3",
    ];
    check(layers::layers, files, &expected);
}

#[test]
fn a_crate_under_another_name() {
    let files = [
        ("Cargo.toml", "[workspace.dependencies]\nstore = { package = \"pintle-store\", path = \"crates/store\" }\n"),
        ("crates/a/Cargo.toml", "[dependencies]\nx = { package = \"pintle-domain\", path = \"../domain\" }\n"),
        ("crates/a/src/lib.rs", "//! x\nuse pintle_store as rows;\nuse pintle_domain::id as of;\n"),
    ];
    check(layers::aliases, files, &["Cargo.toml:2", "crates/a/Cargo.toml:2", "crates/a/src/lib.rs:2"]);
}

#[test]
fn a_crate_with_rules_of_its_own() {
    let good = "[package]\nedition.workspace = true\nversion.workspace = true\nlicense.workspace = true\n\
        publish.workspace = true\n[lints]\nworkspace = true\n";
    let bad = "[package]\nedition = \"2021\"\nversion.workspace = true\nlicense.workspace = true\n\
        publish = true\n[lints]\nworkspace = false\n";
    // Without a word about it, cargo would publish it.
    let open = "[package]\nedition.workspace = true\nversion.workspace = true\nlicense.workspace = true\n\
        [lints]\nworkspace = true\n";
    let files = [("crates/bad/Cargo.toml", bad), ("crates/good/Cargo.toml", good), ("crates/open/Cargo.toml", open)];
    let expected = ["crates/bad/Cargo.toml:1", "crates/bad/Cargo.toml:2", "crates/open/Cargo.toml:1"];
    check(layers::workspace_lints, files, &expected);
}

#[test]
fn words_of_one_machine() {
    let files = [
        ("a.md", "see /home/ada/x\n"),
        ("b.rs", "//! in `/root/y`\n"),
        ("c.md", concat!("cd ", env!("CARGO_MANIFEST_DIR"), "\n")),
        ("fine.md", "https://example.com/home/ and ~/home/ and src/root/x and homework/\n"),
    ];
    check(texts::foreign_words, files, &["a.md:1", "b.rs:1", "c.md:1"]);
}

#[test]
fn phrases_that_nobody_writes() {
    let files = [
        ("docs/guide/a.md", "A hook\nlets pass what it likes.\n"),
        ("crates/a/src/a.rs", "// one that lets pass\nconst A: &str = \"a call lets it pass\";\n"),
        ("crates/a/src/fine.rs", "const A: &str = \"it allows the call, and lets others through\";\n"),
    ];
    check(texts::odd_phrases, files, &["crates/a/src/a.rs:2", "docs/guide/a.md:2"]);
}

#[test]
fn blanks_at_the_end() {
    let files = [("a.md", "fine\nblank \nfine\r\nno newline"), ("b/fixtures/x/raw.json", "{} "), ("empty", "")];
    check(texts::blanks, files, &["a.md:2", "a.md:3", "a.md:4"]);
}

#[test]
fn a_missing_file() {
    let files = [
        ("ARCHITECTURE.md", "x"),
        ("CHANGELOG.md", "x"),
        ("CONTRIBUTING.md", "x"),
        ("GLOSSARY.md", "x"),
        ("README.md", ""),
        ("STYLE.md", "x"),
    ];
    check(docs::required_files, files, &["README.md:1", "LICENSE:1"]);
}

#[test]
fn a_long_map() {
    let (full, long) = ("word ".repeat(80), "word ".repeat(81));
    let map = format!(
        "# Map\n\n{full}\n\n{full}\nword\n\n- {full}\n- {long}\n\n1. {long}\n\n| {full} | — |\n| {long} |\n\n```text\n{long}\n```\n{}",
        "\n".repeat(150)
    );
    let expected =
        ["ARCHITECTURE.md:150", "ARCHITECTURE.md:5", "ARCHITECTURE.md:9", "ARCHITECTURE.md:11", "ARCHITECTURE.md:14"];
    check(docs::short_map, [("ARCHITECTURE.md", &*map)], &expected);
}

#[test]
fn a_picture_of_other_crates() {
    let page = |picture: &str| {
        format!("# Map\n\n<!-- crates: drawn by `cargo xtask map` -->\n{picture}<!-- crates: end -->\n")
    };
    let drawn = "```mermaid\nflowchart TD\n    face --> engine & store\n    engine --> domain\n    store --> domain\n    domain\n```\n";
    let sources = |page| {
        [
            ("ARCHITECTURE.md", page),
            ("Cargo.toml", MAP_WORKSPACE),
            ("crates/domain/Cargo.toml", ""),
            ("crates/engine/Cargo.toml", "[dependencies]\ndomain.workspace = true\n"),
            ("crates/engine/src/lib.rs", "pub use domain;\n"),
            ("crates/face/Cargo.toml", MAP_FACE),
            (
                "crates/face/src/lib.rs",
                "use crate::{store::A};\nfn a() -> domain::Id { pintle_engine::run() }\n#[cfg(test)]\nuse store::B;\n",
            ),
            ("crates/face/src/main.rs", "use store::{C, D};\n"),
            (
                "crates/store/Cargo.toml",
                "[dependencies]\nserde.workspace = true\n[target.'cfg(unix)'.dependencies]\ndomain.workspace = true\n",
            ),
            ("crates/store/src/rows.rs", "use ::domain as words;\n"),
            ("examples/embed/Cargo.toml", "[dependencies]\nstore.workspace = true\n"),
        ]
    };
    let (good, empty) = (page(drawn), page(""));
    check(map::findings, sources(&good), &[]);
    check(map::findings, sources(&empty), &["ARCHITECTURE.md:3"]);
    check(map::findings, sources("# Map\n"), &["ARCHITECTURE.md:1"]);
}

#[test]
fn a_dependency_that_nothing_imports() {
    let files = [
        (
            "ARCHITECTURE.md",
            "<!-- crates: drawn by `cargo xtask map` -->\n```mermaid\nflowchart TD\n    domain\n    engine\n    face\n    store\n```\n<!-- crates: end -->\n",
        ),
        ("Cargo.toml", MAP_WORKSPACE),
        ("crates/domain/Cargo.toml", ""),
        ("crates/engine/Cargo.toml", ""),
        ("crates/face/Cargo.toml", MAP_FACE),
        (
            "crates/face/src/lib.rs",
            "//! Of [`store::A`].\nuse crate::domain::Id;\n#[cfg(test)]\nuse pintle_engine::Engine;\n",
        ),
        ("crates/face/tests/it.rs", "use store::A;\n"),
        ("crates/store/Cargo.toml", ""),
    ];
    let expected = ["crates/face/Cargo.toml:2", "crates/face/Cargo.toml:3", "crates/face/Cargo.toml:4"];
    check(map::findings, files, &expected);
}

#[test]
fn a_link_that_leads_nowhere() {
    let page = "[up](../README.md#top) [folder](../src/) [here](#x) [out](https://example.com/x)\n\
        [gone](gone.md) and [far](../../../README.md)\n\
        ```\n[code](no.md)\n```\n\
        `[code](no.md)` [titled](page.md \"T\") ![picture](none.png)\n\n\
        [ref]: nowhere.md\n";
    let files = [("README.md", "[p](docs/page.md)\n"), ("docs/page.md", page), ("src/lib.rs", "")];
    let expected = ["docs/page.md:2", "docs/page.md:2", "docs/page.md:6", "docs/page.md:8"];
    check(docs::links, files, &expected);
}

#[test]
fn code_without_its_literals() {
    let text = "let a = ['\\'', '\"', 'é', b'x']; /* one /* two */ \" */ f::<'a>(\"\\\"//\", r#\"\"\"#, br\"\\\"); // é\nvar\"\"";
    let tree = Tree::of([("a/src/a.rs", text)]);
    let words: Vec<&str> = tree.sources()[0].code.split_whitespace().collect();
    assert_eq!(words.join(" "), "let a = [ , , , b ]; f::<'a>( , , b ); var");
    assert_eq!(tree.sources()[0].code.len(), text.len());
}

#[test]
fn a_name_with_two_meanings() {
    let files = [
        ("crates/a/src/gate.rs", "pub struct Gate;\n// pub enum Shown {}\nconst X: &str = \"\npub enum Shown {}\";\n"),
        ("crates/a/src/hidden.rs", "mod inner {\n    pub trait Shown {}\n}\npub(crate) struct Shown;\n"),
        ("crates/b/src/gate.rs", "#[derive(Debug)]\npub enum Gate {}\npub type Shown = u8;\n"),
        ("crates/b/src/tests.rs", "pub struct Shown;\n"),
        ("crates/b/src/lib.rs", "#[cfg(test)]\nmod tests;\n#[cfg(test)]\nmod more {\n    pub struct Shown;\n}\n"),
        ("crates/pintle-cli/src/cli/a.rs", "pub struct ListArgs;\n"),
        ("crates/pintle-cli/src/cli/b.rs", "pub struct ListArgs;\n"),
        ("crates/pintle-cli/src/errand.rs", "pub struct Errand;\n"),
        ("xtask/src/errand.rs", "pub struct Errand;\n"),
    ];
    check(types::two_meanings, files, &["crates/a/src/gate.rs:1"]);
}

#[test]
fn a_struct_with_too_many_fields() {
    let fields =
        |count: usize| (0..count).map(|n| format!("    f{n}: Box<dyn Fn(u8, u8) -> [u8; 2]>,\n")).collect::<String>();
    let wide = format!("struct Full<T: Into<(u8, u8)>> {{\n{}}}\nstruct Wide {{\n{}}}\n", fields(12), fields(13));
    let row = format!("struct Row({});\nstruct Unit;\n", "u8, ".repeat(13));
    check(types::wide_structs, [("a/src/a.rs", &*wide), ("a/src/b.rs", &*row)], &["a/src/a.rs:15", "a/src/b.rs:1"]);
}

#[test]
fn parameters_in_tuples() {
    let text = "fn fine(&self, (a, b): (&A, &B), c: &[(A, B, C)], d: impl Fn((A, B)) -> C) {}\n\
        fn hidden(&self, (a, b): (&A, &B), c: C, d: D, e: E) {}\n\
        fn nested<F: Fn(A, B)>(\n    (a, (b, c)): Named,\n    d: &mut (D, E, crate::F),\n) {\n}\n\
        fn many(a: A, b: B, c: C, d: D, e: E, f: F) {}\n";
    check(functions::hidden_parameters, [("a/src/a.rs", text)], &["a/src/a.rs:2", "a/src/a.rs:3"]);
}

#[test]
fn a_route_beside_the_table() {
    let table = "fn router() {\n    all.route(route.path, responder(route.by))\n        .route(\"/x\", get(x))\n}\n";
    let files = [
        ("crates/gateway/src/http.rs", table),
        ("crates/gateway/src/http/more.rs", "fn more() {\n    Router::new().merge(other)\n}\n"),
        ("crates/doors/src/door.rs", "fn door() {\n    Router::new().route(\"/\", get(x))\n}\n"),
    ];
    check(sources::routes_of_a_table, files, &["crates/gateway/src/http.rs:3", "crates/gateway/src/http/more.rs:2"]);
}

#[test]
fn a_test_that_sleeps() {
    let shipped = "fn wait() {\n    thread::sleep(LONG);\n}\n#[cfg(test)]\nmod tests {\n    fn a() {\n        \
        std::thread::sleep(LONG); // sleep(LONG)\n    }\n}\n";
    let paused = "#[tokio::test(start_paused = true)]\nasync fn a() {\n    let look = async { sleep(LONG).await };\n}\n\
        fn still(work: W) {\n    Builder::new().start_paused(true);\n}\n\
        fn b() {\n    still(async { tokio::time::sleep(LONG).await });\n    child.sleep(); \"sleep(1)\";\n}\n";
    let awake = "async fn a() {\n    tokio::time::sleep_until(END).await;\n}\n#[test]\nfn b() {\n    sleep(LONG);\n}\n";
    let files = [
        ("crates/a/src/a.rs", shipped),
        ("crates/a/tests/it/awake.rs", awake),
        ("crates/a/tests/it/paused.rs", paused),
    ];
    let expected = ["crates/a/src/a.rs:7", "crates/a/tests/it/awake.rs:2", "crates/a/tests/it/awake.rs:6"];
    check(functions::sleeps, files, &expected);
}

#[test]
fn files_that_import_each_other() {
    let files = [
        // A chain, with a type of the same name in another crate.
        ("crates/a/src/lib.rs", "mod base;\nmod face;\nmod loud;\nmod shy;\npub use face::One;\n"),
        ("crates/a/src/base.rs", "pub struct Base;\n"),
        ("crates/a/src/loud.rs", "use crate::shy::{self, quiet};\npub fn loud() { shy::softly(); quiet() }\n"),
        ("crates/a/src/shy.rs", "pub fn softly() {}\npub fn quiet() { crate::loud::loud() }\n"),
        // A face: it hands on and names nothing, and its children meet there.
        ("crates/a/src/face.rs", "mod one;\nmod two;\npub use one::One;\npub use two::Two;\n"),
        ("crates/a/src/face/one.rs", "pub struct One;\n"),
        ("crates/a/src/face/two.rs", "use super::One;\npub struct Two(One);\n"),
        // A parent that names its child, which names it.
        ("crates/b/src/lib.rs", "mod child;\npub use child::Child;\npub struct Parent(Child);\n"),
        ("crates/b/src/child.rs", "use super::*;\npub struct Child(Box<Parent>);\n"),
        // Only tests look back.
        ("crates/c/src/lib.rs", "mod child;\npub fn of() { child::of() }\n"),
        ("crates/c/src/child.rs", "pub fn of() {}\n#[cfg(test)]\nmod tests {\n    use crate::of;\n}\n"),
    ];
    check(circles::circles, files, &["crates/a/src/loud.rs:1", "crates/b/src/child.rs:1"]);
}

#[test]
fn a_published_crate_that_needs_more_than_is_published() {
    let root = "[workspace.dependencies]\n\
        domain = { package = \"pintle-domain\", path = \"crates/domain\", version = \"0.1.0\" }\n\
        engine = { package = \"pintle-engine\", path = \"crates/engine\" }\n\
        store = { package = \"pintle-store\", path = \"crates/store\" }\n";
    let said = "[package]\nname = \"known\"\npublish = true\ndescription = \"x\"\nkeywords = []\ncategories = []\n";
    let face = format!(
        "{said}[dependencies]\ndomain.workspace = true\nengine.workspace = true\nstore.workspace = true\n\
         [dev-dependencies]\nstore.workspace = true\n"
    );
    let files = [
        ("Cargo.toml", root),
        ("crates/domain/Cargo.toml", "[package]\nname = \"new\"\npublish = true\ndescription = \"x\"\nkeywords = []\n"),
        ("crates/engine/Cargo.toml", said),
        ("crates/face/Cargo.toml", &*face),
        ("crates/store/Cargo.toml", "[package]\npublish.workspace = true\n[dependencies]\nengine.workspace = true\n"),
        ("xtask/src/main.rs", "[\"-p\", \"known\"]"),
    ];
    let expected = [
        "crates/domain/Cargo.toml:1",
        "crates/domain/Cargo.toml:1",
        "crates/face/Cargo.toml:9",
        "crates/face/Cargo.toml:10",
    ];
    check(layers::published, files, &expected);
}

#[test]
fn a_test_that_nobody_runs() {
    let ignored = "#[test]\n#[ignore = \"slow\"]\nfn a() {}\n";
    let kept = "rest = []\n[[elsewhere]]\nplace = 'a/tests/known.rs'\ncommand = 'x'\nreason = 'y'\n\
                [[elsewhere]]\nplace = 'a/tests/run.rs'\ncommand = 'x'\nreason = 'y'\n";
    let files = [
        (".ci/run", "./pintle test\n"),
        (".config/tests.toml", kept),
        ("a/Cargo.toml", "[[test]]\nname = \"b\"\npath = \"tests/b.rs\"\ntest = false\n"),
        ("a/tests/fine.rs", "// #[ignore] would leave it out\nfn a() {}\n"),
        ("a/tests/known.rs", ignored),
        ("a/tests/lost.rs", ignored),
        ("page.test.ts", "test(\"a\", b);\ntest.skip(\"c\", d);\n"),
    ];
    let expected = [".ci/run:1", "a/tests/b.rs:1", "a/tests/lost.rs:2", "page.test.ts:2", ".config/tests.toml:1"];
    check(plan::forgotten_tests, files, &expected);
}
