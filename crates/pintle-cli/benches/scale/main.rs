//! What many of something cost: turns at once, processes on one file, open conversations, kept records and sessions,
//! entries of the audit chain.
//!
//! `cargo bench -p pintle-cli --bench scale` measures, anything else runs each case once, with few of everything.

use std::env;
use std::process::ExitCode;

use report::Report;
use stage::Stage;

mod audit;
mod conversations;
mod filled;
mod postgres;
mod processes;
#[path = "../../../process/benches/hooks/report.rs"]
mod report;
mod role;
mod rows;
mod sizes;
mod stage;
mod syncs;
mod turns;

fn main() -> ExitCode {
    let done = match role::Role::from_env() {
        Some(role) => role.and_then(role::Role::play),
        None => measure(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("scale: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> anyhow::Result<()> {
    let Some(mut report) = Report::from_args() else { return Ok(()) };
    let stage = Stage::new()?;
    // What starts processes comes first: the more memory this one has had, the longer that takes.
    processes::processes(&stage, &mut report)?;
    turns::turns(&stage, &mut report)?;
    conversations::conversations(&stage, &mut report)?;
    sizes::sizes(&stage, &mut report)?;
    report.print()
}

/// `many` where everything is measured, else `few`: figures of a test run mean nothing.
fn size(many: usize, few: usize) -> usize {
    let has = |word: &str| env::args().any(|argument| argument == word);
    if has("--bench") && !has("--test") { many } else { few }
}
