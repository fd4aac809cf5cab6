//! `pintle hooks show HOOK`: everything about one hook.
//!
//! A name means a hook of the configuration first; an id always means a stored one.

use std::collections::BTreeMap;

use jiff::Timestamp;
use pintle_domain::health::Health;
use pintle_domain::hook::{Family, Hook, HookState};
use pintle_domain::matcher::RespondTools;
use pintle_process::child_environment;

use self::rule::RuleDetailsView;
use super::super::command_line::complete;
use super::super::{Global, terminal};
use super::ShowArgs;
use super::list::{add_health, scope, state_word};
use super::stored::{self, json, label, lookup, missing, with_rules_of};
use crate::clean::clean;
use crate::error::CliError;
use crate::table::{folded, out_columns};
use crate::text::family_said;
use pintle_host::config::trust::FileHashes;
use pintle_host::config::{Config, Env, HookKind, Loaded, LoadedHook};
use pintle_host::health::{HealthFile, standing};
use pintle_host::host::load;

mod rule;

/// The width of the column of names.
const NAME_COLUMNS: usize = 16;

pub(super) fn run(global: &Global, args: &ShowArgs) -> Result<u8, CliError> {
    let (env, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    let Some(hook) = configured(&loaded.config, &args.hook) else {
        return stored_one(args, env, loaded);
    };
    say(args, &facts(&env, &loaded.config, hook, global.verbose > 0))
}

fn say(args: &ShowArgs, facts: &pintle_domain::json::Value) -> Result<u8, CliError> {
    terminal::say(&if args.json { json(facts)? } else { folded(&plain(facts), out_columns(), NAME_COLUMNS + 1) })?;
    Ok(0)
}

/// The hook of the configuration that is called `name`.
pub(super) fn configured<'a>(config: &'a Config, name: &str) -> Option<&'a LoadedHook> {
    config.hooks.iter().find(|loaded| loaded.hook.name.as_str() == name)
}

fn stored_one(args: &ShowArgs, env: Env, loaded: Loaded) -> Result<u8, CliError> {
    let config = loaded.config.clone();
    let found = with_rules_of(env, loaded, async |host_rules, by| {
        let (all, extra_hooks) = (stored::all(host_rules.rule_admin(), by).await?, host_rules.extra_hooks());
        if let Some(hook) = lookup(&all, &args.hook)? {
            return Ok(Found::Stored(RuleDetailsView::of(host_rules.rule_admin(), by, hook.clone()).await?));
        }
        if let Some(hook) = extra_hooks.iter().find(|hook| hook.name.as_str() == args.hook) {
            return Ok(Found::Beside(Box::new(hook.clone())));
        }
        let configured = config.hooks.iter().map(|loaded| loaded.hook.name.as_str());
        let names = configured.chain(all.iter().map(label)).chain(extra_hooks.iter().map(|hook| hook.name.as_str()));
        Err(missing("hook", &args.hook, names))
    })?;
    match found {
        Found::Stored(shown) => {
            let text = if args.json {
                json(&shown.json(&config))?
            } else {
                folded(&shown.plain(&config), out_columns(), NAME_COLUMNS + 1)
            };
            terminal::say(&text)?;
            Ok(0)
        }
        Found::Beside(hook) => {
            let mut facts = every(&hook);
            stands(&mut facts, standing(&hook.state, None).as_ref());
            say(args, &facts)
        }
    }
}

/// A hook that is none of the configuration.
enum Found {
    /// A row.
    Stored(RuleDetailsView),
    /// A rule of a file that is not in force, and why.
    Beside(Box<Hook>),
}

fn facts(env: &Env, config: &Config, loaded: &LoadedHook, whole: bool) -> pintle_domain::json::Value {
    let mut facts = every(&loaded.hook);
    let kept = HealthFile::open(&config.home);
    let digest = loaded.digest(env.vars.get("PATH").map(AsRef::as_ref), &mut FileHashes::default());
    stands(&mut facts, kept.of(config, (loaded, digest.as_deref()), None).as_ref());
    if let Some(fall) = digest.and_then(|digest| kept.fall(loaded.hook.name.as_str(), &digest)) {
        facts["fault"] = pintle_domain::json::json!(fall.why);
        if whole {
            facts["stderr"] = pintle_domain::json::json!(fall.stderr);
        }
    }
    let unwatched = loaded.unwatched();
    if !unwatched.is_empty() {
        facts["unwatched"] = pintle_domain::json::json!(unwatched);
    }
    if let HookKind::Process(entry) = &loaded.kind {
        let host = env.vars.iter().map(|(name, value)| (name.into(), value.clone()));
        let child = child_environment(host, &config.secrets, &entry.inherit_env, &entry.env);
        facts["command"] = pintle_domain::json::json!(entry.argv);
        facts["dir"] = pintle_domain::json::json!(entry.dir);
        facts["env"] = pintle_domain::json::json!(entry.env.keys().collect::<Vec<_>>());
        facts["withheld_env"] = pintle_domain::json::json!(child.withheld);
        facts["strict"] = pintle_domain::json::json!(entry.strict);
        facts["max_frame_bytes"] = pintle_domain::json::json!(entry.max_frame_bytes);
    }
    if let HookKind::Command(entry) = &loaded.kind {
        let host = env.vars.iter().map(|(name, value)| (name.into(), value.clone()));
        let child = child_environment(host, &config.secrets, &entry.inherit_env, &BTreeMap::new());
        facts["event"] = pintle_domain::json::json!(entry.event.name());
        facts["command"] = pintle_domain::json::json!(entry.argv);
        facts["if"] = pintle_domain::json::json!(entry.condition.as_ref().map(|rule| rule.text()));
        facts["withheld_env"] = pintle_domain::json::json!(child.withheld);
    }
    facts
}

/// Adds how a hook stands.
fn stands(facts: &mut pintle_domain::json::Value, health: Option<&Health>) {
    if let Some(health) = health {
        facts["health"] = pintle_domain::json::json!(health.words(Timestamp::now()));
    }
    add_health(facts, health);
}

/// What every hook has.
fn every(hook: &Hook) -> pintle_domain::json::Value {
    let stages: Vec<pintle_domain::json::Value> = hook
        .stages
        .kinds()
        .filter_map(|kind| {
            let stage = hook.stages.get(kind)?;
            Some(pintle_domain::json::json!({
                "checkpoint": kind.name(),
                "duty": kind.duty(),
                "timeout_ms": stage.timeout.as_millis() as u64,
                "on_failure": stage.on_failure.word_at(kind),
                "paired": stage.paired,
            }))
        })
        .collect();
    let mut facts = pintle_domain::json::json!({
        "hook": hook.name,
        "family": hook.family,
        "origin": hook.origin,
        "state": state_word(&hook.state),
        "scope": scope(&hook.scope).map(|agents| format!("agent {agents}")),
        // Nobody wrote the lowest: it stands for a rule that cannot be read.
        "priority": (hook.priority != i32::MIN).then_some(hook.priority),
        "matcher": hook.matcher.as_ref().map(|matcher| matcher.pattern().to_owned()),
        "respond": respond(hook),
        "stages": stages,
    });
    if let HookState::Broken(fault) = &hook.state {
        facts["fault"] = pintle_domain::json::json!(fault.explained().to_string());
    }
    facts
}

/// The tools for which a hook may answer; nothing where that is not known: a rule has no such setting, and an entry that
/// is not in force was not read so far.
fn respond(hook: &Hook) -> Option<pintle_domain::json::Value> {
    let known = match (&hook.state, hook.family) {
        (_, Family::Rule) | (HookState::Broken(_) | HookState::Untrusted, _) => false,
        (HookState::Armed | HookState::Disabled | HookState::Tripped { .. }, _) => true,
    };
    known.then(|| match &hook.respond {
        RespondTools::Any => pintle_domain::json::json!("any"),
        RespondTools::Only { globs, .. } => pintle_domain::json::json!(globs),
    })
}

/// One line for each fact, names in a column.
fn plain(facts: &pintle_domain::json::Value) -> String {
    let Some(members) = facts.as_object() else { return String::new() };
    let mut text = String::new();
    // They say in JSON what `health` says in words, or need lines of their own.
    let apart = ["stages", "stderr", "proven_at", "unproven"];
    let health = facts["health"].as_str().unwrap_or_default();
    let said = |name: &str, value: &str| name == "fault" && health.contains(value);
    let shown = members.iter().filter(|(name, value)| !value.is_null() && !apart.contains(&name.as_str()));
    for (name, value) in shown.filter(|(name, value)| value.as_str().is_none_or(|value| !said(name, value))) {
        let value = match value {
            pintle_domain::json::Value::String(value) if name == "family" => family_said(value).to_owned(),
            pintle_domain::json::Value::String(value) => value.clone(),
            pintle_domain::json::Value::Array(items) => {
                let items: Vec<String> = items.iter().map(bare).collect();
                if items.is_empty() { "none".into() } else { items.join(" ") }
            }
            pintle_domain::json::Value::Null
            | pintle_domain::json::Value::Bool(_)
            | pintle_domain::json::Value::Number(_)
            | pintle_domain::json::Value::Object(_) => value.to_string(),
        };
        text.push_str(&format!("{name:<NAME_COLUMNS$} {}\n", complete(&clean(&value))));
    }
    for stage in facts["stages"].as_array().into_iter().flatten() {
        let paired = if stage["paired"] == true { ", paired" } else { "" };
        text.push_str(&format!(
            "at {:<13} {}, {} ms, on failure {}{paired}\n",
            bare(&stage["checkpoint"]),
            bare(&stage["duty"]),
            stage["timeout_ms"],
            bare(&stage["on_failure"]),
        ));
    }
    for line in facts["stderr"].as_str().into_iter().flat_map(str::lines) {
        text.push_str(&format!("{:<NAME_COLUMNS$} {}\n", "stderr", clean(line)));
    }
    text
}

fn bare(value: &pintle_domain::json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
