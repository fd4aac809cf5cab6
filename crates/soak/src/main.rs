//! `pintle-soak PROGRAM [--seconds N] [--idle N] [--turns N] [--rounds N] [--pauses N]`; what it is measured beside is
//! `pintle-soak floor MODEL` and `pintle-soak alone HOME TURNS ROUNDS`.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use pintle_soak::Plan;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("soak: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whether what is promised is so.
fn run() -> Result<bool> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if let [word, model] = words.as_slice()
        && word == "floor"
    {
        let say = |address: &str| drop(writeln!(std::io::stdout(), "{address}"));
        return pintle_soak::floor(model.clone(), say).map(|()| true);
    }
    if let [word, home, turns, rounds] = words.as_slice()
        && word == "alone"
    {
        return pintle_soak::alone(home.as_ref(), turns.parse()?, rounds.parse()?).map(|()| true);
    }
    let plan = plan(&words)?;
    let report = pintle_soak::run(&plan)?;
    write!(std::io::stdout(), "{report}")?;
    for why in report.heard.failed.iter().take(10) {
        eprintln!("failed: {why}");
    }
    let broken = report.broken();
    broken.iter().for_each(|what| eprintln!("broken: {what}"));
    Ok(broken.is_empty())
}

/// Two thousand idle clients and two hundred turns at once, ten rounds: what is promised of a server.
fn plan(words: &[String]) -> Result<Plan> {
    let (program, options) = words.split_first().context("expected the program to measure, a built `pintle`")?;
    // The server starts in a folder of its own.
    let program = std::fs::canonicalize(program).with_context(|| format!("there is no program {program}"))?;
    let mut plan = Plan {
        program,
        floor: Some(std::env::current_exe()?),
        idle: 2000,
        turns: 200,
        rounds: 10,
        length: Duration::from_secs(60),
        pauses: 0,
    };
    for option in options.chunks(2) {
        let [name, value] = option else { bail!("`{}` needs a number", option.concat()) };
        let number: usize = value.parse().with_context(|| format!("`{name}` expects a number, got `{value}`"))?;
        match name.as_str() {
            "--seconds" => plan.length = Duration::from_secs(number.try_into()?),
            "--idle" => plan.idle = number,
            "--turns" => plan.turns = number.max(1),
            "--rounds" => plan.rounds = number.max(1),
            "--pauses" => plan.pauses = number.try_into()?,
            other => bail!("`{other}` is none of --seconds, --idle, --turns, --rounds, --pauses"),
        }
    }
    Ok(plan)
}
