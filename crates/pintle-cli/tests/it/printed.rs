//! What README and the guides print: every command and every configuration runs as it stands there, in order, for
//! somebody with an empty home.
//!
//! What a block is for stands before it in a comment that readers do not see; `page.rs` knows the words, CONTRIBUTING.md
//! explains them. A block that says nothing is an error, but for commands (`console`), which run.

mod agents;
mod inline;
mod page;
mod same;
mod sources;
mod walk;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use page::{Block, Page, Step, Use};
use walk::Walk;

/// The repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The page at `path` in the repository.
fn page(path: &str) -> Page {
    Page::read(path, &fs::read_to_string(root().join(path)).unwrap()).unwrap_or_else(|wrong| panic!("{wrong}"))
}

/// Does what the page says.
fn check(path: &str) {
    let page = page(path);
    let mut walk = Walk::of(&page.path);
    page.steps.iter().for_each(|step| walk.take(step));
    let counts = walk.end();
    println!("{path}: {counts}");
}

/// A test for each page.
macro_rules! pages {
    ($($name:ident = $path:literal,)*) => {
        const PAGES: &[&str] = &[$($path),*];
        $(
            #[test]
            fn $name() {
                check($path);
            }
        )*
    };
}

pages! {
    readme = "README.md",
    agent_hooks = "docs/guide/agent-hooks.md",
    approvals = "docs/guide/approvals.md",
    audit = "docs/guide/audit.md",
    chat = "docs/guide/chat.md",
    configuration = "docs/guide/configuration.md",
    console = "docs/guide/console.md",
    embedding = "docs/guide/embedding.md",
    gateway = "docs/guide/gateway.md",
    guard = "docs/guide/guard.md",
    guard_claude = "docs/guide/guard/claude.md",
    guard_cline = "docs/guide/guard/cline.md",
    guard_codex = "docs/guide/guard/codex.md",
    guard_copilot = "docs/guide/guard/copilot.md",
    guard_gemini = "docs/guide/guard/gemini.md",
    guard_kimi = "docs/guide/guard/kimi.md",
    guard_opencode = "docs/guide/guard/opencode.md",
    guard_pi = "docs/guide/guard/pi.md",
    guard_qwen = "docs/guide/guard/qwen.md",
    mcp = "docs/guide/mcp.md",
    model_door = "docs/guide/model-door.md",
    models = "docs/guide/models.md",
    moving_to_pintle = "docs/guide/moving-to-pintle.md",
    observability = "docs/guide/observability.md",
    plugin_tools = "docs/guide/plugin-tools.md",
    sessions = "docs/guide/sessions.md",
    skills = "docs/guide/skills.md",
    starter_guards = "docs/guide/starter-guards.md",
    tool_door = "docs/guide/tool-door.md",
    what_hooks_cannot_stop = "docs/guide/what-hooks-cannot-stop.md",
    your_first_hook = "docs/guide/your-first-hook.md",
}

#[test]
fn every_guide_has_its_test() {
    let guides = ["docs/guide", "docs/guide/guard"].into_iter().flat_map(|folder| {
        let files = fs::read_dir(root().join(folder)).unwrap().map(Result::unwrap);
        let files = files.filter(|file| file.file_type().unwrap().is_file());
        files.map(move |file| format!("{folder}/{}", file.file_name().to_str().unwrap()))
    });
    let there: BTreeSet<String> = guides.chain(["README.md".to_owned()]).collect();
    assert_eq!(there, PAGES.iter().map(|path| (*path).to_owned()).collect());
}

/// What a block is kept from doing, and why.
fn kept(block: &Block) -> Option<String> {
    match &block.used {
        Use::NotHere(reason) => Some(format!("not here: {reason}")),
        Use::Shown(reason) => Some(format!("only shown: {reason}")),
        Use::Commands(commands) => {
            commands.without.as_ref().map(|(command, reason)| format!("`{command}` not here: {reason}"))
        }
        Use::File { .. } | Use::Config { .. } | Use::Script { .. } | Use::StandsIn(_) | Use::RunBy(_) => None,
    }
}

#[test]
fn what_does_not_run_has_a_reason() {
    let mut reasons = String::new();
    for path in PAGES {
        let page = page(path);
        let blocks =
            page.steps.iter().filter_map(|step| if let Step::Block(block) = step { Some(block) } else { None });
        reasons.extend(blocks.filter_map(kept).map(|reason| format!("{path}: {reason}\n")));
    }
    insta::assert_snapshot!(reasons, @r"
    README.md: `./pintle test` not here: it runs the tests, and this is one of them
    README.md: not here: it runs the tests, and this is one of them
    docs/guide/console.md: only shown: it goes on until somebody stops it
    docs/guide/console.md: not here: it takes packages from the network
    docs/guide/gateway.md: only shown: it goes on until somebody stops it; the next commands talk to one at a free port
    docs/guide/gateway.md: only shown: it needs an address that others reach
    docs/guide/gateway.md: only shown: `webhooks` needs a receiver
    docs/guide/gateway.md: only shown: they stand in the reader's shell
    docs/guide/gateway.md: only shown: the key of this run stands in the reader's shell
    docs/guide/gateway.md: only shown: they go on until somebody stops them; the next commands talk to two at free ports
    docs/guide/guard.md: not here: it needs Claude Code and a model; `./pintle test --hosts` has it
    docs/guide/guard.md: only shown: a call that is held has to wait somewhere
    docs/guide/guard.md: not here: it needs a session that systemd looks after
    docs/guide/guard.md: not here: it needs Claude Code; `./pintle test --hosts` has it
    docs/guide/guard.md: only shown: it needs a gateway; `serve/team.rs` of the tests has one
    docs/guide/guard/codex.md: only shown: it is a file of the administrator's
    docs/guide/model-door.md: only shown: it goes on until somebody stops it; the next commands talk to one at a free port
    docs/guide/observability.md: not here: it needs the network and a container engine
    docs/guide/observability.md: only shown: what a collector draws; what it is told is tested with one in collector.rs
    docs/guide/skills.md: only shown: the files of a skill; blocks below write them
    ");
}

#[test]
fn commands_within_sentences_exist() {
    let wrong: Vec<String> = PAGES.iter().flat_map(|path| inline::wrong(path, &page(path).prose)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is found in a page with the text `page`.
fn wrong(page: &str) -> String {
    match Page::read("page.md", page) {
        Err(wrong) => wrong,
        Ok(page) => {
            let mut walk = Walk::of(&page.path);
            page.steps.iter().for_each(|step| walk.take(step));
            walk.findings.join("\n")
        }
    }
}

#[test]
fn what_a_page_gets_wrong_is_found() {
    let cases = [
        ("```toml\n[agents.main]\n```\n", "page.md:1: say what this block is for"),
        ("<!-- test: fil x -->\n```toml\n```\n", "page.md:1: `fil x` is not a word of pages"),
        ("<!-- test: file x -->\n\nText\n", "page.md:1: no block follows"),
        ("<!-- test: file x\n", "page.md:1: the comment does not end"),
        ("```console\n$ true\n", "page.md:1: the block does not end"),
        ("<!-- test: not here: -->\n```sh\n```\n", "page.md:1: `not here:` is not a word of pages"),
        ("```console\nhello\n```\n", "page.md:1: `hello` stands before the first command"),
        ("<!-- test: exits 0 1 -->\n```console\n$ true\n```\n", "page.md:2: 2 exit codes for 1 commands"),
        ("```console\n$ false\n```\n", "page.md:1: `false` ended with 1 and not with 0"),
        ("```console\n$ echo a; echo b\nb\na\n```\n", "page.md:1: `echo a; echo b` does not print `a` there"),
        ("<!-- test: config -->\n```toml\n[agent.main]\n```\n", "unknown key \"agent\""),
        ("<!-- test: first\nfalse\n-->\n", "page.md:1: `false` ended with 1"),
        (
            "<!-- test: stands in README.md -->\n```rust\nfn no_such_thing()\n```\n",
            "page.md:2: README.md does not have it",
        ),
        ("<!-- test: run by README.md -->\n```rust\n```\n", "page.md:2: README.md does not name page.md"),
    ];
    for (page, said) in cases {
        let found = wrong(page);
        assert!(found.contains(said), "{page}\n{found}");
    }
    let right = "<!-- test: adds to ~/a/b -->\n```sh\necho 0199e6ab\n```\n<!-- test: id 8f7e = cat ~/a/b -->\n\
                 ```console\n$ printf 'x\\n8f7e in 3 ms\\n'  # says it\n8f7e  in 12 ms\n$ cat guard.py pintle 2>&1 | head -c 1\n…\n```\n";
    assert_eq!(wrong(right), "");
}
