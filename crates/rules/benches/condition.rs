//! What the conditions of 50 rules cost that are asked and are false, beside the bare evaluation of the same
//! expressions by the crate that parses them, with the same bindings, made beforehand.
//!
//! `cargo bench -p pintle-rules --bench condition` measures, anything else runs each side once.

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use cel::{Context, Program, Value as Cel};
use pintle_domain::condition::{Condition as _, ConditionInput};
use pintle_domain::json::{Object, Value};
use pintle_rules::condition::{Compiled, compile};
use report::{Report, Side};

use against::Target;

#[expect(dead_code, reason = "it is shared, and throughputs are for others")]
#[path = "../../process/benches/hooks/against.rs"]
mod against;
#[expect(dead_code, reason = "it is shared, and absolute figures are for others")]
#[path = "../../process/benches/hooks/report.rs"]
mod report;

/// How many hooks are stored.
const HOOKS: usize = 50;
/// How often all of them are asked in a round.
const TIMES: usize = 400;
/// The conditions may cost so many bare evaluations.
const TARGET: f64 = 1.3;
/// The size of the tool's input beside what the expressions name.
const INPUT_BYTES: usize = 1024;

/// Expressions as people write them; all are false of the event.
const EXPRESSIONS: [&str; 5] = [
    r#"tool_name == "write_file""#,
    r#"tool_name == "exec" && size(tool_input.cmd) > 80"#,
    r#"tool_name == "exec" && tool_input.cmd.contains("rm -rf")"#,
    r#"depth > 2 || tool_input.cmd.startsWith("sudo ")"#,
    r#"["git push", "npm publish"].exists(p, tool_input.cmd.contains(p))"#,
];

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("condition: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> anyhow::Result<()> {
    let Some(mut report) = Report::from_args() else { return Ok(()) };
    if report.wants("condition") {
        for expression in EXPRESSIONS {
            compare(&mut report, &format!("condition {expression}"), &[expression])?;
        }
        compare(&mut report, "conditions, all five mixed", &EXPRESSIONS)?;
    }
    report.print()
}

/// Measures both sides in turns: one evaluation.
fn compare(report: &mut Report, name: &str, expressions: &[&str]) -> anyhow::Result<()> {
    let input = input();
    let all = || expressions.iter().cycle().take(HOOKS);
    let ours: Vec<Compiled> = all().map(|it| compile(it).expect("the expressions above compile")).collect();
    let bare: Vec<Program> = all().map(|it| Program::compile(it).expect("the expressions above compile")).collect();
    let context = context(&input);
    let shell = || Arc::default();
    let seen = ConditionInput {
        event: "pre_tool_use",
        tool_name: "exec",
        raw_tool_name: "exec",
        tool_input: Some(&input),
        raw_input: "",
        depth: 0,
        agent_id: "a",
        session_id: "s",
        first_prompt: false,
        shell: &shell,
    };
    let ours: Side<'_> = &mut |times| time(times, || ours.iter().all(|it| it.holds(&seen) == Ok(false)));
    let bare: Side<'_> =
        &mut |times| time(times, || bare.iter().all(|it| it.execute(&context) == Ok(Cel::Bool(false))));
    let medians = report.medians(TIMES, [ours, bare])?;
    report.against(name, medians, Target::RatioAtMost(TARGET));
    Ok(())
}

/// The time of `times` evaluations of one expression, by so many evaluations of all.
fn time(times: usize, mut all_false: impl FnMut() -> bool) -> anyhow::Result<Duration> {
    let began = Instant::now();
    for _ in 0..times {
        ensure!(std::hint::black_box(all_false()), "an expression holds");
    }
    Ok(began.elapsed().div_f64(HOOKS as f64))
}

/// A call of a shell, with more in it than the expressions name.
fn input() -> Object {
    let mut input = Object::new();
    input.insert("cmd".to_owned(), Value::from("cargo test --workspace"));
    input.insert("note".to_owned(), Value::from("n".repeat(INPUT_BYTES)));
    input.insert("timeout".to_owned(), Value::from(30));
    input
}

fn context(input: &Object) -> Context<'static, 'static> {
    let mut context = Context::default();
    let members = input.iter().map(|(key, value)| {
        let value = value.as_str().map_or(Cel::Float(value.as_f64().unwrap_or_default()), Cel::from);
        (key.clone(), value)
    });
    context.add_variable_from_value("tool_name", "exec");
    context.add_variable_from_value("depth", 0_i64);
    context.add_variable_from_value("tool_input", Cel::Map(members.collect::<HashMap<_, _>>().into()));
    context
}
