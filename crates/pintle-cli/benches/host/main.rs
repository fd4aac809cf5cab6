//! What people feel of a host as a whole: a turn, a start, idle children, observers, reloads.
//!
//! `cargo bench -p pintle-cli --bench host` measures, anything else runs each case once and small.
//! docs/reference/performance.md says what each line and each floor is.

use std::process::ExitCode;

use report::Report;
use stage::Stage;

#[expect(dead_code, reason = "it is shared, and throughputs are for others")]
#[path = "../../../process/benches/hooks/against.rs"]
mod against;
mod bare;
mod bursts;
mod callers;
mod child;
mod home;
mod idle;
mod killed;
mod observers;
mod proc;
mod reload;
#[path = "../../../process/benches/hooks/report.rs"]
mod report;
#[path = "../rules/rows.rs"]
mod rows;
mod stage;
mod start;
mod turn;

/// The word that makes this program a worker for scripts, as the program itself is one.
const SCRIPT_WORKER: &str = "__script";

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some(SCRIPT_WORKER) {
        return pintle_cli::cli::main();
    }
    let done = match (child::Answers::wanted(), idle::wanted()) {
        (Some(answers), _) => answers.serve(),
        (None, Some(children)) => idle::serve(children),
        (None, None) => measure(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("host: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// A case: its word on the command line, and what it measures.
type Case = (&'static str, fn(&Stage, &mut Report) -> anyhow::Result<()>);

/// Every case. What starts many processes comes first: the more memory this one has had, the longer that takes.
const CASES: [Case; 8] = [
    ("start-hooks", start::hooks),
    ("start-rules", start::rules),
    ("idle-children", idle::children),
    ("turn-of-ten-rounds", turn::ten_rounds),
    ("observers-tell", observers::told),
    ("observers-burst", bursts::bursts),
    ("reload", reload::reload_beside_callers),
    ("killed-child", killed::killed_child),
];

fn measure() -> anyhow::Result<()> {
    let Some(mut report) = Report::from_args() else { return Ok(()) };
    // As the program does at its start: hundreds of children need more than most systems give.
    pintle_process::raise_open_files()?;
    let stage = Stage::new()?;
    for (word, case) in CASES {
        if report.wants(word) {
            case(&stage, &mut report)?;
        }
    }
    stage.close()?;
    report.print()
}
