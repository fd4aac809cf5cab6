//! `pintle hooks list`: each checkpoint's chain, in running order.

use std::collections::BTreeMap;
use std::ffi::OsStr;

use anstyle::{AnsiColor, Style};
use jiff::Timestamp;
use pintle_agent::tools::BUILTIN;
use pintle_domain::checkpoint::{CHECKPOINTS, CheckpointKind};
use pintle_domain::health::Health;
use pintle_domain::hook::{Family, Hook, HookState, Scope};
use pintle_domain::id::{AgentId, HookName};
use pintle_domain::json::Value;
use pintle_domain::roster::Roster;
use pintle_store::HookTiming;

use self::rule::{Rules, behind, origin};
use self::skill::SkillRow;
use super::super::command_line::complete;
use super::super::{Global, terminal};
use super::ListArgs;
use super::stored::{all, label, text as said, with_rules_of};
use crate::clean::clean;
use crate::error::CliError;
use crate::table::{Table, glued, out_columns, padded};
use crate::text::{SHADOW_CURE, clip, counted, family_said, few_names, millis_said, not_watched};
use pintle_host::config::trust::FileHashes;
use pintle_host::config::{Config, LoadedHook};
use pintle_host::health::{HealthFile, standing};
use pintle_host::host::{load, open_store};
use pintle_host::tool_names::of_servers;

pub(super) mod rule;
mod skill;

/// How many of the newest events the costs come from: some days of one person's work.
const TIMED_EVENTS: usize = 5000;

/// The columns of a proof: as wide as that of the last days.
const PROOF_COLUMNS: usize = 20;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();
const BAD: Style = AnsiColor::Red.on_default();
const NOTE: Style = AnsiColor::Yellow.on_default();

pub(super) fn run(global: &Global, args: &ListArgs) -> Result<u8, CliError> {
    let (env, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    for line in loaded.diagnostics.iter().map(ToString::to_string).chain(loaded.left_out.iter().cloned()) {
        terminal::warn(&clean(&line));
    }
    for hook in &loaded.config.hooks {
        if let Some(why) = not_watched(&hook.unwatched()) {
            terminal::warn(&format!("`{}`: {why}", clean(hook.hook.name.as_str())));
        }
    }
    let config = loaded.config.clone();
    let skills = SkillRow::all(&loaded);
    let search_path = env.vars.get("PATH").cloned();
    // What the configuration says is listed even where the store cannot be read.
    let stored = with_rules_of(env, loaded, async |host_rules, by| {
        let tenants = host_rules.rule_cache().rules().tenants.clone();
        Ok((all(host_rules.rule_admin(), by).await?, host_rules.extra_hooks(), tenants))
    });
    let (hooks, bad, tenants) = stored.clone().unwrap_or_default();
    let listing = Listing {
        timings: timings(&config),
        roster: Roster::new(config.hooks.iter().map(|loaded| loaded.hook.clone()).chain(bad).collect()),
        rules: Rules::new(hooks, &config, &tenants),
        health: health(&config, search_path.as_deref()),
        adopted: adopted(&config),
        skills,
    };
    if listing.is_shipped() && stored.is_ok() && !args.json {
        terminal::note(
            "no hooks but those that are shipped; `pintle hooks new NAME --lang python` writes a first one, \
             `pintle hooks add --starter` adds the starter guards",
        );
    }
    let text = if args.json {
        super::stored::json(&listing.json())?
    } else {
        let servers = of_servers(&config);
        let tools: Vec<&str> = BUILTIN.into_iter().chain(servers.iter().map(String::as_str)).collect();
        listing.plain(&tools, Shown { columns: out_columns(), ids: global.verbose > 0 })
    };
    terminal::say(&text)?;
    stored.map(|_| 0)
}

type Timings = BTreeMap<(String, String), HookTiming>;

/// What each hook took, as far as there are records; a listing must work without.
fn timings(config: &Config) -> Timings {
    let found = open_store(config).ok().and_then(|store| store.hook_timings(TIMED_EVENTS).ok()).unwrap_or_default();
    found.into_iter().map(|timing| ((timing.hook.clone(), timing.checkpoint.clone()), timing)).collect()
}

/// How the hooks of a configuration stand that have something to prove, as far as is known without starting any.
fn health(config: &Config, search_path: Option<&OsStr>) -> BTreeMap<HookName, Health> {
    let (kept, mut hashes) = (HealthFile::open(&config.home), FileHashes::default());
    let standing = config.hooks.iter().filter_map(|loaded| {
        let digest = loaded.digest(search_path, &mut hashes);
        Some((loaded.hook.name.clone(), kept.of(config, (loaded, digest.as_deref()), None)?))
    });
    standing.collect()
}

/// The commands of adopted hooks.
fn adopted(config: &Config) -> BTreeMap<HookName, String> {
    let command = |loaded: &LoadedHook| Some((loaded.hook.name.clone(), loaded.adopted_command()?));
    config.hooks.iter().filter_map(command).collect()
}

/// How a listing is shown.
#[derive(Clone, Copy)]
struct Shown {
    /// How wide its lines may be.
    columns: usize,
    /// Whether rules are shown with their ids.
    ids: bool,
}

/// Everything that is listed.
struct Listing {
    roster: Roster,
    health: BTreeMap<HookName, Health>,
    /// What adopted hooks run: no file of this configuration says it.
    adopted: BTreeMap<HookName, String>,
    rules: Rules,
    skills: Vec<SkillRow>,
    timings: Timings,
}

/// The hooks of one checkpoint, in running order.
struct Chain<'a> {
    kind: Option<CheckpointKind>,
    configured: Vec<&'a Hook>,
    stored: Vec<&'a Value>,
    skills: Vec<&'a SkillRow>,
}

impl Chain<'_> {
    fn is_empty(&self) -> bool {
        self.configured.is_empty() && self.stored.is_empty() && self.skills.is_empty()
    }
}

impl Listing {
    /// Whether nobody has added anything yet.
    fn is_shipped(&self) -> bool {
        self.roster.hooks().is_empty() && self.rules.are_shipped() && self.skills.is_empty()
    }

    /// The chains, and last the hooks that act nowhere: bad ones and such as are switched off may name no checkpoint.
    fn chains(&self) -> impl Iterator<Item = Chain<'_>> {
        let own = |kind: CheckpointKind| Chain {
            kind: Some(kind),
            configured: self.roster.at(kind).iter().map(|number| self.roster.hook(*number).as_ref()).collect(),
            // Hooks of stores run after all others.
            stored: self.rules.at(kind).collect(),
            skills: self.skills_at(Some(kind)),
        };
        let nowhere: Vec<&Hook> =
            self.roster.hooks().iter().map(AsRef::as_ref).filter(|hook| hook.stages.kinds().next().is_none()).collect();
        let nowhere = Chain { kind: None, configured: nowhere, stored: Vec::new(), skills: self.skills_at(None) };
        let chains = CHECKPOINTS.iter().map(move |row| own(row.kind));
        chains.chain([nowhere]).filter(|chain| !chain.is_empty())
    }

    /// The texts of skills that go in at `kind`; without one, what is wrong with others.
    fn skills_at(&self, kind: Option<CheckpointKind>) -> Vec<&SkillRow> {
        self.skills.iter().filter(|row| row.kind == kind).collect()
    }

    fn json(&self) -> Value {
        let chain = |chain: Chain<'_>| {
            let configured = chain.configured.iter().map(|hook| self.configured_json(hook, chain.kind));
            let stored = chain.stored.iter().map(|hook| self.stored_json(hook));
            let hooks: Vec<Value> =
                configured.chain(stored).chain(chain.skills.iter().map(|row| skill_json(row))).collect();
            pintle_domain::json::json!({ "checkpoint": chain.kind.map(CheckpointKind::name), "hooks": hooks })
        };
        self.chains().map(chain).collect()
    }

    fn plain(&self, tools: &[&str], shown: Shown) -> String {
        let mut table = Table::indented(2);
        for chain in self.chains() {
            let head = chain.kind.map_or("without a checkpoint", CheckpointKind::name);
            table.line(format!("{BOLD}{head}{BOLD:#}"), 2);
            let configured = chain.configured.iter().map(|hook| self.configured_row(hook, chain.kind));
            let stored = chain.stored.iter().map(|hook| self.stored_row(hook, shown.ids));
            let rows: Vec<Row> =
                configured.chain(stored).chain(chain.skills.iter().map(|row| skill_row(row))).collect();
            let digits = rows.len().to_string().len();
            for (place, Row { name, family, priority, terms, origin }) in rows.into_iter().enumerate() {
                let place = place + 1;
                let name = format!("{place:>digits$}. {name}");
                let below = [terms.clone(), origin.clone()];
                let cells = [name, family_said(family).to_owned(), priority, format!("{terms}  {origin}")];
                table.row_or_below(cells, below);
            }
        }
        if let Some(warning) = shadowing(&self.roster.shadowed(tools)) {
            table.line(format!("{NOTE}warning:{NOTE:#} {warning}"), 2);
        }
        table.text(shown.columns)
    }

    /// How a hook stands; none for one that runs in this program and can do so. What ran, did not run as it is now.
    fn standing(&self, hook: &Hook) -> Option<Health> {
        let known = self.health.get(&hook.name).cloned().or_else(|| standing(&hook.state, None));
        let ran = || self.timings.keys().any(|(name, _)| name == hook.name.as_str());
        known.map(|health| if health == Health::unanswered() && ran() { Health::outdated() } else { health })
    }

    fn configured_json(&self, hook: &Hook, kind: Option<CheckpointKind>) -> Value {
        let mut row = json(hook, kind, &self.timings);
        if let Some(command) = self.adopted.get(&hook.name) {
            row["command"] = pintle_domain::json::json!(command);
        }
        add_health(&mut row, self.standing(hook).as_ref());
        row
    }

    fn configured_row(&self, hook: &Hook, kind: Option<CheckpointKind>) -> Row {
        let cost = timing(&self.timings, hook, kind).and_then(cost).unwrap_or_default();
        let health = self.standing(hook).map(|health| shown(&health));
        let rest = kind.and_then(|kind| deadline(hook, kind));
        Row {
            name: clean(hook.name.as_str()),
            family: hook.family.word(),
            priority: match hook.priority {
                // Nobody wrote this: it stands for a rule that cannot be read.
                i32::MIN => "priority first".to_owned(),
                priority => format!("priority {priority}"),
            },
            terms: match (health, rest) {
                (Some(health), Some(rest)) => behind(&health, &rest),
                (one, other) => one.or(other).unwrap_or_default(),
            },
            origin: match self.adopted.get(&hook.name) {
                Some(command) => format!("{DIM}{}: {}{cost}{DIM:#}", clean(&hook.origin), clip(command)),
                None => format!("{DIM}{}{cost}{DIM:#}", clean(&hook.origin)),
            },
        }
    }

    /// What a rule took. Records have the names of hooks, so it is known where no other has the same.
    fn stored_timing(&self, hook: &Value) -> Option<&HookTiming> {
        let kind = CheckpointKind::named(said(hook, "event"))?;
        let mut namesakes = self.rules.at(kind).filter(|other| label(other) == label(hook));
        namesakes.next().filter(|_| namesakes.next().is_none())?;
        self.timings.get(&(label(hook).to_owned(), kind.name().to_owned()))
    }

    fn stored_json(&self, hook: &Value) -> Value {
        let timing = self.stored_timing(hook);
        let mut row = self.rules.json(hook);
        add_health(&mut row, self.rules.health(hook));
        row["runs"] = pintle_domain::json::json!(timing.map(|timing| timing.runs));
        row["p50_ms"] = pintle_domain::json::json!(timing.and_then(|timing| timing.p50_ms));
        row["p95_ms"] = pintle_domain::json::json!(timing.and_then(|timing| timing.p95_ms));
        row
    }

    fn stored_row(&self, hook: &Value, ids: bool) -> Row {
        let by = clean(origin(hook));
        let cost = self.stored_timing(hook).and_then(cost).unwrap_or_default();
        Row {
            name: clean(label(hook)),
            family: Family::Rule.word(),
            priority: format!("priority {}", hook["priority"]),
            terms: self.rules.terms(hook),
            // A rule without a name is called by its id already.
            origin: match said(hook, "name") {
                "" => format!("{DIM}{by}{cost}{DIM:#}"),
                _ if !ids => format!("{DIM}{by}{cost}{DIM:#}"),
                _ => format!("{DIM}{by}, {}{cost}{DIM:#}", said(hook, "id")),
            },
        }
    }
}

/// What is to be said of hooks that may keep others from being asked: a line, however many they are.
fn shadowing(shadowed: &[(&Hook, Vec<&Hook>)]) -> Option<String> {
    match shadowed {
        [] => None,
        [(first, later)] => Some(format!(
            "`{}` may answer for a tool before others that also match it are asked: {}; {SHADOW_CURE}",
            clean(first.name.as_str()),
            few_names(later),
        )),
        several => {
            let first: Vec<&Hook> = several.iter().map(|(first, _)| *first).collect();
            Some(format!(
                "{} may each answer for a tool before others that also match it are asked; {SHADOW_CURE}",
                few_names(&first),
            ))
        }
    }
}

/// A hook in a listing.
struct Row {
    name: String,
    family: &'static str,
    priority: String,
    terms: String,
    origin: String,
}

fn skill_json(row: &SkillRow) -> Value {
    let mut json = row.json();
    add_health(&mut json, Some(&row.health));
    json
}

/// Texts of skills go in in the order of the agent's skills.
fn skill_row(row: &SkillRow) -> Row {
    Row {
        name: clean(&row.name),
        family: Family::Skill.word(),
        priority: String::new(),
        terms: behind(&shown(&row.health), &format!("of agent {}", clean(&row.agents.join(", ")))),
        origin: format!("{DIM}{}{DIM:#}", clean(&row.origin)),
    }
}

fn timing<'a>(timings: &'a Timings, hook: &Hook, kind: Option<CheckpointKind>) -> Option<&'a HookTiming> {
    timings.get(&(hook.name.to_string(), kind?.name().to_owned()))
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

/// How a hook stands, in the colour of what that means.
fn shown(health: &Health) -> String {
    let words = complete(&clean(&health.words(Timestamp::now())));
    let style = match health {
        Health::Armed(_) => return proven(&words),
        Health::Disabled => DIM,
        Health::Unproven { .. } if health.stops_a_strict_start() => BAD,
        Health::Unproven { .. } => NOTE,
    };
    format!("{style}{words}{style:#}")
}

/// The words of a proof, which take as much room whenever it was.
fn proven(words: &str) -> String {
    match words.split_once("(proven ") {
        Some((armed, ago)) => format!("{armed}{}", padded(&format!("(proven {ago}"), PROOF_COLUMNS)),
        None => words.to_owned(),
    }
}

fn cost(timing: &HookTiming) -> Option<String> {
    let (p50, p95) = (timing.p50_ms?, timing.p95_ms?);
    let runs = counted(timing.runs, "run");
    let said = |name: &str, millis: f64| format!("{}{}", glued(&format!("{name} ")), millis_said(millis));
    Some(format!(", {runs}, {}, {}", said("p50", p50), said("p95", p95)))
}

fn json(hook: &Hook, kind: Option<CheckpointKind>, timings: &Timings) -> pintle_domain::json::Value {
    let timing = timing(timings, hook, kind);
    let stage = kind.and_then(|kind| Some((kind, hook.stages.get(kind)?)));
    pintle_domain::json::json!({
        "hook": hook.name,
        "family": hook.family,
        "origin": hook.origin,
        "scope": scope(&hook.scope).map_or_else(|| "global".to_owned(), |agents| format!("agent {agents}")),
        "priority": hook.priority,
        "state": state_word(&hook.state),
        "fault": match &hook.state {
            HookState::Broken(fault) => Some(fault.explained().to_string()),
            HookState::Armed | HookState::Disabled | HookState::Untrusted | HookState::Tripped { .. } => None,
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

/// Adds to the JSON of a hook how it stands.
pub(super) fn add_health(row: &mut Value, health: Option<&Health>) {
    match health {
        Some(Health::Armed(proof)) => row["proven_at"] = pintle_domain::json::json!(proof.at.to_string()),
        Some(Health::Unproven { why, .. }) => row["unproven"] = pintle_domain::json::json!(why),
        Some(Health::Disabled) | None => {}
    }
}

/// The word of a state in JSON.
pub(super) fn state_word(state: &HookState) -> &'static str {
    match state {
        HookState::Armed => "armed",
        HookState::Disabled => "disabled",
        HookState::Untrusted => "untrusted",
        HookState::Broken(_) => "broken",
        HookState::Tripped { .. } => "tripped",
    }
}
