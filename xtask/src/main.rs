//! `cargo xtask WORD`: the errands of this repository, by name.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, anyhow, bail};
use xtask::map;
use xtask::test_plan::{PLAN, TestPlan};
use xtask::tree::Tree;

mod counts;

/// One errand: its word, what it does, the command that does it from the root.
struct Errand {
    word: &'static str,
    does: &'static str,
    /// Empty for an errand that this program does itself.
    command: &'static [&'static str],
}

const ERRANDS: &[Errand] = &[
    Errand {
        word: "tidy",
        does: "checks the rules that the compiler cannot see: sizes, names, layers, circles, links",
        command: &["cargo", "test", "--quiet", "-p", "xtask", "--test", "tidy"],
    },
    Errand {
        word: "map",
        does: "draws the crates of ARCHITECTURE.md from what they import; `--check` only compares",
        command: &[],
    },
    Errand {
        word: "tests",
        does: "prints the filterset of the tests that run `everyday`, or only in `--all`: `rest`",
        command: &[],
    },
    Errand {
        word: "deny",
        does: "checks what comes from outside, without the network: licences, versions, sources",
        command: &[
            "cargo",
            "deny",
            "--offline",
            "--locked",
            "check",
            "--hide-inclusion-graph",
            // An exception that nobody needs any more is taken out.
            "--deny",
            "unnecessary-skip",
            "--deny",
            "unmatched-skip",
            "bans",
            "licenses",
            "sources",
        ],
    },
    Errand {
        word: "package",
        does: "packs the crates that are published, as a registry would get them",
        command: &[
            "cargo",
            "package",
            "--quiet",
            "--offline",
            "--locked",
            "--allow-dirty",
            "--no-verify",
            "-p",
            "pintle",
            "-p",
            "pintle-dialects",
            "-p",
            "pintle-domain",
            "-p",
            "pintle-egress",
            "-p",
            "pintle-engine",
            "-p",
            "pintle-process",
            "-p",
            "pintle-rule-runtime",
            "-p",
            "pintle-rules",
            "-p",
            "pintle-sandbox",
            "-p",
            "pintle-store",
        ],
    },
    Errand {
        word: "hook",
        does: "builds `pintle-hook` as it ships, statically linked, and checks that it is small and needs nothing",
        command: &[
            "sh",
            "-c",
            // The flag is for the program alone: what it is made of is built as for everything else. What checks it is
            // built as the tests of all crates are: by itself, it would have what it needs built anew.
            "target=$(rustc -vV | sed -n 's/^host: //p') \
             && env -u RUSTC_WORKSPACE_WRAPPER \
             cargo rustc --quiet --locked --profile hook -p pintle-hook --bin pintle-hook --target \"$target\" \
             -- -C target-feature=+crt-static \
             && PINTLE_HOOK=\"${CARGO_TARGET_DIR:-$PWD/target}/$target/hook/pintle-hook\" \
             cargo test --quiet --locked --workspace --test shipped",
        ],
    },
    Errand {
        word: "ci",
        does: "runs everything that has to pass before a change lands",
        command: &["bash", ".ci/run"],
    },
    Errand {
        word: "gen",
        does: "writes the files that are generated from the code",
        command: &[
            "sh",
            "-c",
            "export PINTLE_GENERATE=1 && cargo test --quiet -p pintle-domain -p pintle-cli --test generated \
             && cargo test --quiet -p pintle-cli --test it -- transcripts:: pictures::",
        ],
    },
    Errand {
        word: "soak",
        does: "puts thousands of clients on a server and measures it: --seconds N, --idle N, --turns N, --rounds N, \
               --pauses N",
        command: &[
            "sh",
            "-c",
            "cargo build --quiet --release -p pintle-cli -p pintle-soak \
             && exec target/release/pintle-soak target/release/pintle \"$@\"",
            "soak",
        ],
    },
    Errand {
        word: "bench",
        does: "measures what hooks, rules, evidence, sessions, the program and many of each cost; `-- --test` runs each case once, \
               `-- --count` compares the counts of the hot path with the committed ones",
        command: &[
            "cargo",
            "bench",
            "-p",
            "pintle-process",
            "-p",
            "pintle-rules",
            "-p",
            "pintle-sandbox",
            "-p",
            "pintle-skills",
            "-p",
            "pintle-store",
            "-p",
            "pintle-cli",
            "--bench",
            "condition",
            "--bench",
            "command",
            "--bench",
            "hooks",
            "--bench",
            "http",
            "--bench",
            "scripts",
            "--bench",
            "skills",
            "--bench",
            "audit",
            "--bench",
            "evidence",
            "--bench",
            "door",
            "--bench",
            "scale",
            "--bench",
            "sessions",
            "--bench",
            "host",
            "--bench",
            "process",
            "--bench",
            "rules",
        ],
    },
];

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run() -> anyhow::Result<ExitCode> {
    let mut words = std::env::args().skip(1);
    let word = words.next();
    let Some(errand) = ERRANDS.iter().find(|errand| Some(errand.word) == word.as_deref()) else {
        let known: Vec<String> = ERRANDS.iter().map(|e| format!("  cargo xtask {:<7} {}", e.word, e.does)).collect();
        bail!("expected one of these words, got `{}`:\n{}", word.unwrap_or_default(), known.join("\n"));
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask stands in the root")?;
    let words: Vec<String> = words.collect();
    // Cargo hands a `--` on, and what stands behind it is for the benchmarks.
    let own = words.iter().map(String::as_str).find(|word| *word != "--");
    if let ("bench", Some("--count")) = (errand.word, own) {
        let rest: Vec<String> = words.iter().skip_while(|word| *word != "--count").skip(1).cloned().collect();
        return counts::run(root, &rest);
    }
    if errand.word == "map" {
        return draw(root, &words);
    }
    if errand.word == "tests" {
        return print_tests(root, &words);
    }
    let (program, arguments) = errand.command.split_first().context("an errand has a command")?;
    let status = Command::new(program)
        .args(arguments)
        .args(words)
        .current_dir(root)
        .status()
        .with_context(|| format!("`{program}` did not start in `{}`", root.display()))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints the filterset of the tests of every day, or of the others; `words` are what follows `tests`.
fn print_tests(root: &Path, words: &[String]) -> anyhow::Result<ExitCode> {
    let text = fs::read_to_string(root.join(PLAN)).with_context(|| format!("`{PLAN}` cannot be read"))?;
    let plan = TestPlan::parse(&text)?;
    let filter = match words {
        [word] if word == "everyday" => plan.everyday_filter(),
        [word] if word == "rest" => plan.rest_filter(),
        _ => bail!("after `tests` there must be `everyday` or `rest`, got `{}`", words.join(" ")),
    };
    writeln!(std::io::stdout(), "{filter}")?;
    Ok(ExitCode::SUCCESS)
}

/// Draws the map, or compares it with the sources; `words` are what follows `map`.
fn draw(root: &Path, words: &[String]) -> anyhow::Result<ExitCode> {
    let is_check = match words {
        [] => false,
        [word] if word == "--check" => true,
        _ => bail!("after `map` only `--check` may follow, got `{}`", words.join(" ")),
    };
    if !is_check {
        let page = map::redrawn(&Tree::of_the_repository()).map_err(|finding| anyhow!("{finding}"))?;
        fs::write(root.join(map::PAGE), page).with_context(|| format!("`{}` cannot be written", map::PAGE))?;
    }
    let findings = map::findings(&Tree::of_the_repository());
    findings.iter().for_each(|finding| eprintln!("{finding}"));
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
