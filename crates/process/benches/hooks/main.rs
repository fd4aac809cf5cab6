//! What hooks cost: nothing where there are none, and little more than their own exchange where there are.
//!
//! `cargo bench -p pintle-process --bench hooks` measures, anything else runs each case once. Every figure is the
//! median of alternating rounds; docs/reference/performance.md says what each floor is.

use std::process::ExitCode;

use report::Report;
use stage::Stage;

mod against;
mod allocations;
mod calls;
mod child;
mod conversation;
mod conversations;
mod floor;
mod native;
mod report;
mod stage;

fn main() -> ExitCode {
    let done = match child::Answers::wanted() {
        Some(answers) => answers.serve(),
        None => measure(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("hooks: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// A case: its word on the command line, and what it measures.
type Case = (&'static str, fn(&Stage, &mut Report) -> anyhow::Result<()>);

const CASES: [Case; 7] = [
    ("no-hooks", native::no_hooks),
    ("ten-native", native::ten_hooks),
    ("one-caller", calls::one_caller),
    ("many-callers", calls::many_callers),
    ("conversation-100", |stage, report| conversations::one_hook(stage, report, 100)),
    ("conversation-900", |stage, report| conversations::one_hook(stage, report, 900)),
    ("five-hooks", conversations::five_hooks),
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
