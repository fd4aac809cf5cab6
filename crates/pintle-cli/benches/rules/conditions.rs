//! Hooks whose conditions are evaluated and do not hold.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use cel::{Context, Program, Value as Cel};
use pintle_domain::checkpoint::AgentInfo as _;
use pintle_domain::condition::{Condition as _, ConditionInput};
use pintle_domain::json::Object;
use pintle_domain::rule::Rule;
use pintle_engine::AsNamed;
use pintle_rules::condition::{Compiled, compile};

use crate::against::Target;
use crate::host::{Host, Plan};
use crate::report::{Report, shown};
use crate::rows::unreached;
use crate::stage::{Stage, call, turn};

/// How many hooks are stored.
const HOOKS: usize = 50;
/// A check may cost so many times what its conditions take by themselves.
const LIMIT: f64 = 1.3;
/// Checks in a round: half of what the writer of the store lets wait.
const TIMES: usize = 500;
/// Clearings in a round, each of which waits for its record.
const CLEARINGS: usize = 100;

/// Expressions as people write them; all are false of the call.
const EXPRESSIONS: [&str; 5] = [
    r#"tool_name == "write_file""#,
    r#"tool_name == "exec" && size(tool_input.cmd) > 80"#,
    r#"tool_name == "exec" && tool_input.cmd.contains("rm -rf")"#,
    r#"depth > 2 || tool_input.cmd.startsWith("sudo ")"#,
    r#"["git push", "npm publish"].exists(p, tool_input.cmd.contains(p))"#,
];

fn all() -> impl Iterator<Item = &'static str> {
    EXPRESSIONS.into_iter().cycle().take(HOOKS)
}

fn rows() -> Vec<Rule> {
    let row = |(number, expression): (usize, &str)| Rule {
        if_expr: expression.to_owned(),
        ..unreached(&format!("guard-{number}"))
    };
    all().enumerate().map(row).collect()
}

pub(crate) fn conditions(stage: &Stage, report: &mut Report) -> anyhow::Result<()> {
    let forgetful = Host::open(&stage.runtime, Plan { rows: rows(), forgets: true, ..Plan::default() })?;
    let keeping = Host::open(&stage.runtime, Plan { rows: rows(), ..Plan::default() })?;
    let mut dispatch = |times| stage.check(&forgetful, times);
    let mut bare = |times| stage.run(async move { bare(times) });
    let mut by_crate = |times| stage.run(async move { by_crate(times) });
    let mut handed_over = |times| stage.check(&keeping, times);
    let sides = report.medians(TIMES, [&mut dispatch, &mut bare, &mut by_crate, &mut handed_over])?;
    let [dispatch, bare, by_crate, handed_over] = sides;
    let mut cleared = |times| stage.clear(&keeping, times);
    let [cleared] = report.medians(CLEARINGS, [&mut cleared])?;
    report.against("50 stored hooks with false conditions: check", [dispatch, bare], Target::RatioAtMost(LIMIT));
    report.noted("  the same conditions by the crate that parses them", shown(by_crate));
    report.noted("  the same, its record handed to SQLite's writer", shown(handed_over));
    report.noted("  whole call, record committed: clear", shown(cleared));
    forgetful.close(&stage.runtime);
    keeping.close(&stage.runtime);
    Ok(())
}

/// The floor: the compiled conditions, one after the other.
fn bare(times: usize) -> anyhow::Result<Duration> {
    let compiled: Vec<Compiled> =
        all().map(|text| compile(text).map_err(anyhow::Error::msg)).collect::<Result<_, _>>()?;
    let (who, call) = (turn(), call());
    let shell = || Arc::default();
    let seen = ConditionInput {
        event: "pre_tool_use",
        tool_name: &call.tool,
        raw_tool_name: &call.raw_tool,
        tool_input: Some(&call.arguments),
        raw_input: "",
        depth: who.depth,
        agent_id: AsNamed.agent_uuid(),
        session_id: who.session_id.as_str(),
        first_prompt: false,
        shell: &shell,
    };
    timed(times, || compiled.iter().all(|condition| condition.holds(std::hint::black_box(&seen)) == Ok(false)))
}

/// The same by the crate that parses expressions, with the values that they name made beforehand.
fn by_crate(times: usize) -> anyhow::Result<Duration> {
    let programs: Vec<Program> = all().map(Program::compile).collect::<Result<_, _>>()?;
    let context = context(&call().arguments);
    timed(times, || programs.iter().all(|program| program.execute(&context) == Ok(Cel::Bool(false))))
}

fn timed(times: usize, all_false: impl Fn() -> bool) -> anyhow::Result<Duration> {
    let start = Instant::now();
    for _ in 0..times {
        ensure!(std::hint::black_box(all_false()), "an expression holds");
    }
    Ok(start.elapsed())
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
