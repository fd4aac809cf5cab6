//! What a call costs whose gates are rules: the whole dispatch, against the least that anybody could pay for what
//! the hooks do.
//!
//! `cargo bench -p pintle-cli --bench rules` measures, anything else runs each case once. The host is the program's own but
//! for its agents: the SQLite store, the rule cache over it, the handlers with all they need. Every round counts what
//! is asked of the store, and one question fails the run.

use std::process::ExitCode;

use conditions::conditions;
use matchers::matchers;
use report::Report;
use stage::Stage;

#[expect(dead_code, reason = "it is shared, and throughputs are for others")]
#[path = "../../../process/benches/hooks/against.rs"]
mod against;
mod command;
mod conditions;
mod counted;
mod host;
mod http;
mod matchers;
#[path = "../../../process/benches/hooks/report.rs"]
mod report;
mod rows;
mod script;
mod stage;

/// The word that makes this program a worker for scripts, as the program itself is one.
const SCRIPT_WORKER: &str = "__script";

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(SCRIPT_WORKER) {
        return pintle_cli::cli::main();
    }
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("rules: {error:#}");
            ExitCode::FAILURE
        }
    }
}

type Case = fn(&Stage, &mut Report) -> anyhow::Result<()>;

/// Every case, and the word that picks it. What starts processes comes first: the more memory this one has had, the
/// longer that takes.
const CASES: [(&str, Case); 5] = [
    ("rules-command", command::command),
    ("rules-script", script::script),
    ("rules-http", http::http),
    ("rules-matcher", matchers),
    ("rules-condition", conditions),
];

fn measure() -> anyhow::Result<()> {
    let Some(mut report) = Report::from_args() else { return Ok(()) };
    let stage = Stage::new()?;
    for (word, case) in CASES {
        if report.wants(word) {
            case(&stage, &mut report)?;
        }
    }
    stage.close()?;
    report.print()
}
