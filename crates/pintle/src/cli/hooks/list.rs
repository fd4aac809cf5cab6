//! `pintle hooks list`: each checkpoint's chain, in running order.

use std::collections::BTreeMap;

use agent::tools::BUILTIN;
use anstyle::{AnsiColor, Style};
use domain::checkpoint::CheckpointKind;
use domain::hook::{Hook, Scope, State};
use domain::id::AgentId;
use domain::roster::Roster;
use store::HookTiming;

use super::super::{Global, terminal};
use super::ListArgs;
use crate::clean::clean;
use crate::error::CliError;
use crate::host::{load, open_store};
use crate::tool_names::of_servers;

/// How many of the newest events the costs come from: some days of one person's work.
const TIMED_EVENTS: usize = 5000;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const BAD: Style = AnsiColor::Red.on_default();
const NOTE: Style = AnsiColor::Yellow.on_default();

pub(super) fn run(global: &Global, args: &ListArgs) -> Result<u8, CliError> {
    let (_, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    for line in loaded.diagnostics.iter().map(ToString::to_string).chain(loaded.left_out.iter().cloned()) {
        terminal::note(&format!("warning: {}", clean(&line)));
    }
    let timings = timings(&loaded.config);
    let roster = Roster::new(loaded.config.hooks.iter().map(|loaded| loaded.hook.clone()).collect());
    let text = if args.json {
        let chains: Vec<serde_json::Value> = rows(&roster)
            .map(|(kind, row)| {
                let hooks: Vec<serde_json::Value> = row.into_iter().map(|hook| json(hook, kind, &timings)).collect();
                serde_json::json!({ "checkpoint": kind.map(CheckpointKind::name), "hooks": hooks })
            })
            .collect();
        let text = serde_json::to_string_pretty(&chains).map_err(|error| CliError::failed(error.to_string()))?;
        format!("{text}\n")
    } else if roster.hooks().is_empty() {
        "no hooks are configured; `pintle hooks new NAME --lang python` writes a first one\n".to_owned()
    } else {
        let servers = of_servers(&loaded.config);
        let tools: Vec<&str> = BUILTIN.into_iter().chain(servers.iter().map(String::as_str)).collect();
        plain(&roster, &timings, &tools)
    };
    terminal::say(&text)?;
    Ok(0)
}

type Timings = BTreeMap<(String, String), HookTiming>;

/// What each hook took, as far as there are records; a listing must work without.
fn timings(config: &crate::config::Config) -> Timings {
    let found = open_store(config).ok().and_then(|store| store.hook_timings(TIMED_EVENTS).ok()).unwrap_or_default();
    found.into_iter().map(|timing| ((timing.hook.clone(), timing.checkpoint.clone()), timing)).collect()
}

/// The chains, and last the hooks that act nowhere: bad ones and such as are switched off may name no checkpoint.
fn rows(roster: &Roster) -> impl Iterator<Item = (Option<CheckpointKind>, Vec<&Hook>)> {
    let chains = roster
        .chains()
        .map(|(kind, row)| (Some(kind), row.iter().map(|number| roster.hook(*number).as_ref()).collect()));
    let nowhere: Vec<&Hook> =
        roster.hooks().iter().map(AsRef::as_ref).filter(|hook| hook.stages.kinds().next().is_none()).collect();
    chains.chain((!nowhere.is_empty()).then_some((None, nowhere)))
}

fn timing<'a>(timings: &'a Timings, hook: &Hook, kind: Option<CheckpointKind>) -> Option<&'a HookTiming> {
    timings.get(&(hook.name.to_string(), kind?.name().to_owned()))
}

fn plain(roster: &Roster, timings: &Timings, tools: &[&str]) -> String {
    let width = roster.hooks().iter().map(|hook| clean(hook.name.as_str()).chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    for (kind, row) in rows(roster) {
        text.push_str(&format!("{BOLD}{}{BOLD:#}\n", kind.map_or("without a checkpoint", CheckpointKind::name)));
        for (place, hook) in row.into_iter().enumerate() {
            let cost = timing(timings, hook, kind).and_then(cost).unwrap_or_default();
            let line = format!(
                "  {}. {:<width$}  {:<8} priority {:<4} {}  {DIM}{}{cost}{DIM:#}",
                place + 1,
                clean(hook.name.as_str()),
                hook.family.word(),
                hook.priority,
                kind.and_then(|kind| deadline(hook, kind))
                    .into_iter()
                    .chain(state(hook))
                    .collect::<Vec<_>>()
                    .join(", "),
                clean(&hook.origin),
            );
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    for (first, later) in roster.shadowed(tools) {
        text.push_str(&format!(
            "{NOTE}warning:{NOTE:#} `{}` may answer for a tool before `{}`, which also matches it, is asked\n",
            clean(first.name.as_str()),
            clean(later.name.as_str()),
        ));
    }
    text
}

fn deadline(hook: &Hook, kind: CheckpointKind) -> Option<String> {
    let stage = hook.stages.get(kind)?;
    let paired = if stage.paired { ", paired" } else { "" };
    let scope = match scope(&hook.scope) {
        Some(agents) => format!(", of agent {}", clean(&agents)),
        None => String::new(),
    };
    let matcher =
        hook.matcher.as_ref().map(|matcher| format!(", matcher /{}/", clean(matcher.pattern()))).unwrap_or_default();
    Some(format!("{} ms{paired}{scope}{matcher}", stage.timeout.as_millis()))
}

/// The agents whose turns a hook is about, if not everybody's.
pub(super) fn scope(scope: &Scope) -> Option<String> {
    match scope {
        Scope::Everyone => None,
        Scope::Agents(agents) => Some(agents.iter().map(AgentId::as_str).collect::<Vec<_>>().join(", ")),
    }
}

/// The state of a hook, if it is not simply armed.
fn state(hook: &Hook) -> Option<String> {
    match &hook.state {
        State::Armed => None,
        State::Disabled => Some(format!("{DIM}disabled{DIM:#}")),
        State::Untrusted => Some(format!("{NOTE}untrusted{NOTE:#}")),
        State::Broken(fault) => Some(format!("{BAD}{}{BAD:#}", clean(&fault.to_string()))),
    }
}

fn cost(timing: &HookTiming) -> Option<String> {
    let (p50, p95) = (timing.p50_ms?, timing.p95_ms?);
    let runs = if timing.runs == 1 { "run" } else { "runs" };
    Some(format!(", {} {runs}, p50 {p50:.1} ms, p95 {p95:.1} ms", timing.runs))
}

fn json(hook: &Hook, kind: Option<CheckpointKind>, timings: &Timings) -> serde_json::Value {
    let timing = timing(timings, hook, kind);
    let stage = kind.and_then(|kind| Some((kind, hook.stages.get(kind)?)));
    serde_json::json!({
        "hook": hook.name,
        "family": hook.family,
        "origin": hook.origin,
        "scope": scope(&hook.scope).map_or_else(|| "global".to_owned(), |agents| format!("agent {agents}")),
        "priority": hook.priority,
        "state": state_word(&hook.state),
        "fault": match &hook.state {
            State::Broken(fault) => Some(fault.to_string()),
            State::Armed | State::Disabled | State::Untrusted => None,
        },
        "matcher": hook.matcher.as_ref().map(|matcher| matcher.pattern().to_owned()),
        "timeout_ms": stage.map(|(_, stage)| stage.timeout.as_millis() as u64),
        "on_failure": stage.map(|(kind, stage)| stage.on_failure.word_at(kind)),
        "paired": stage.is_some_and(|(_, stage)| stage.paired),
        "runs": timing.map(|timing| timing.runs),
        "p50_ms": timing.and_then(|timing| timing.p50_ms),
        "p95_ms": timing.and_then(|timing| timing.p95_ms),
    })
}

/// The word of a state in JSON.
pub(super) fn state_word(state: &State) -> &'static str {
    match state {
        State::Armed => "armed",
        State::Disabled => "disabled",
        State::Untrusted => "untrusted",
        State::Broken(_) => "broken",
    }
}
