//! A start: with process hooks, against the bare start and handshake of the same children; with stored rules.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::ensure;
use pintle_dialects::process::frame;
use pintle_domain::rule::Rule;
use pintle_domain::store::{Actor, RuleChange};
use pintle_host::host::load;
use pintle_host::host_rules::RuleEnvironment;

use crate::against::Target;
use crate::child::Pipes;
use crate::home::{Home, SHELL, said};
use crate::report::{Report, shown};
use crate::rows::unreached;
use crate::stage::{Stage, sized};

/// What process hooks add to a start may cost so many bare starts and handshakes.
const HOOKS_LIMIT: f64 = 1.5;
/// Most that 200 stored rules may add to a start.
const RULES_LIMIT: Duration = Duration::from_millis(5);
/// How many hooks there are, and how many more.
const HOOKS: [usize; 2] = [50, 200];
/// How many rules there are, and how many more.
const RULES: [usize; 2] = [200, 10_000];

/// What the names of our rules begin with.
const RULE: &str = "bench-rule-";

/// No process hooks, some, and many.
pub(crate) fn hooks(stage: &Stage, report: &mut Report) -> anyhow::Result<()> {
    let [some, many] = sized(HOOKS, [2, 3]);
    let (none, with_some, with_many) = (Home::new(0)?, Home::new(some)?, Home::new(many)?);
    let mut without = |times| start(stage, (&none, 0, 0), times);
    let mut start_some = |times| start(stage, (&with_some, some, 0), times);
    let mut start_many = |times| start(stage, (&with_many, many, 0), times);
    let mut bare_some = |times| bare(&with_some, some, times);
    let mut bare_many = |times| bare(&with_many, many, times);
    let [without, some, bare_some, many, bare_many] =
        report.medians(1, [&mut without, &mut start_some, &mut bare_some, &mut start_many, &mut bare_many])?;
    report.noted("start without process hooks", shown(without));
    for (number, ours, floor) in [(HOOKS[0], some, bare_some), (HOOKS[1], many, bare_many)] {
        let what = format!("start with {number} process hooks, beyond one without");
        report.against(&what, [ours.saturating_sub(without), floor], Target::RatioAtMost(HOOKS_LIMIT));
    }
    Ok(())
}

/// Reads the configuration and opens a host, until its hooks have shaken hands. Its end is not counted.
fn start(stage: &Stage, (home, hooks, rules): (&Home, usize, usize), times: usize) -> anyhow::Result<Duration> {
    let mut took = Duration::ZERO;
    for _ in 0..times {
        let start = Instant::now();
        let host = home.ready(stage)?;
        took += start.elapsed();
        let (running, stored) = (host.running().len(), host.host_rules.rule_cache().rules());
        ensure!(running == hooks, "{running} of {hooks} hooks run");
        // Those that are shipped stand beside them.
        let own = stored.hooks.iter().filter(|rule| rule.name.starts_with(RULE)).count();
        ensure!(own == rules && stored.doubts.is_empty(), "{own} of {rules} rules are in force");
        stage.runtime.block_on(host.close());
    }
    Ok(took)
}

/// The floor: all children are started, each is greeted at once, and then all are heard.
fn bare(home: &Home, children: usize, times: usize) -> anyhow::Result<Duration> {
    let line = [frame::request_head(1, "hook.hello"), frame::hello("hook-00", &["tool"]), frame::FRAME_TAIL.to_vec()];
    let line = line.concat();
    let mut took = Duration::ZERO;
    for _ in 0..times {
        let start = Instant::now();
        let mut started = Vec::with_capacity(children);
        for _ in 0..children {
            let mut command = Command::new(SHELL);
            command.arg(home.script()).current_dir(home.path());
            let mut child = Pipes::spawn(command)?;
            child.write(&line)?;
            started.push(child);
        }
        for child in &mut started {
            child.read()?;
        }
        took += start.elapsed();
        for child in started {
            child.end()?;
        }
    }
    Ok(took)
}

/// No stored rules, some, and many.
pub(crate) fn rules(stage: &Stage, report: &mut Report) -> anyhow::Result<()> {
    let [some, many] = sized(RULES, [2, 3]);
    let (none, with_some, with_many) = (stored(stage, 0)?, stored(stage, some)?, stored(stage, many)?);
    let mut without = |times| start(stage, (&none, 0, 0), times);
    let mut start_some = |times| start(stage, (&with_some, 0, some), times);
    let mut start_many = |times| start(stage, (&with_many, 0, many), times);
    let [without, some, many] = report.medians(1, [&mut without, &mut start_some, &mut start_many])?;
    let [with_some, with_many] = RULES.map(|number| format!("start with {number} stored rules, beyond one without"));
    report.limited(&with_some, some.saturating_sub(without), RULES_LIMIT, shown);
    report.noted(&with_many, shown(many.saturating_sub(without)));
    Ok(())
}

/// A home whose store has so many rules: scripts, each with a pattern and a condition of its own.
fn stored(stage: &Stage, number: usize) -> anyhow::Result<Home> {
    let home = Home::new(0)?;
    // The first start makes the store, which no start that counts does.
    let host = home.ready(stage)?;
    stage.runtime.block_on(host.close());
    drop(host);
    let (env, loaded) = load(Some(&home.config()), Some(&home.data())).map_err(said)?;
    let rule_env = RuleEnvironment::of(&loaded.config, &env).map_err(said)?;
    let store = rule_env.open_store(&loaded.config).map_err(said)?;
    let row = |number: usize| Rule {
        matcher: format!("^(write|edit)_file_{number}$"),
        if_expr: format!("tool_name == \"write_file_{number}\" && depth < {}", number + 2),
        ..unreached(&format!("{RULE}{number}"))
    };
    let by = Actor { name: "bench".into(), at: jiff::Timestamp::now(), reason: String::new() };
    store.change((0..number).map(|number| RuleChange::Create(Box::new(row(number)))).collect(), &by)?;
    Ok(home)
}
