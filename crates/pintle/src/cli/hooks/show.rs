//! `pintle hooks show HOOK`: everything about one hook.

use dialects::process::config::nearest;
use domain::hook::State;
use domain::matcher::Respond;
use engine::handlers::process::child_environment;

use super::super::{Global, terminal};
use super::ShowArgs;
use super::list::{scope, state_word};
use crate::clean::clean;
use crate::config::{Config, Env, HookKind, LoadedHook};
use crate::error::CliError;
use crate::host::load;

pub(super) fn run(global: &Global, args: &ShowArgs) -> Result<u8, CliError> {
    let (env, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    let hook = find(&loaded.config, &args.hook)?;
    let facts = facts(&env, &loaded.config, hook);
    let text = if args.json {
        serde_json::to_string_pretty(&facts).map_err(|error| CliError::failed(error.to_string()))? + "\n"
    } else {
        plain(&facts)
    };
    terminal::say(&text)?;
    Ok(0)
}

/// The hook called `name`.
pub(super) fn find<'a>(config: &'a Config, name: &str) -> Result<&'a LoadedHook, CliError> {
    let found = config.hooks.iter().find(|loaded| loaded.hook.name.as_str() == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = config.hooks.iter().map(|loaded| loaded.hook.name.as_str()).collect();
        match (nearest(name, names.iter().copied()), names.as_slice()) {
            (Some(near), _) => CliError::usage(format!("there is no hook \"{name}\"; did you mean \"{near}\"?")),
            (None, []) => CliError::usage(format!("there is no hook \"{name}\", and no other"))
                .hint("`pintle hooks new NAME --lang python` writes a first one"),
            (None, names) => CliError::usage(format!("there is no hook \"{name}\""))
                .hint(format!("the hooks are {}", clean(&names.join(", ")))),
        }
    })
}

fn facts(env: &Env, config: &Config, loaded: &LoadedHook) -> serde_json::Value {
    let hook = &loaded.hook;
    let stages: Vec<serde_json::Value> = hook
        .stages
        .kinds()
        .filter_map(|kind| {
            let stage = hook.stages.get(kind)?;
            Some(serde_json::json!({
                "checkpoint": kind.name(),
                "duty": kind.duty(),
                "timeout_ms": stage.timeout.as_millis() as u64,
                "on_failure": stage.on_failure.word_at(kind),
                "paired": stage.paired,
            }))
        })
        .collect();
    let mut facts = serde_json::json!({
        "hook": hook.name,
        "family": hook.family,
        "origin": hook.origin,
        "state": state_word(&hook.state),
        "scope": scope(&hook.scope).map(|agents| format!("agent {agents}")),
        "priority": hook.priority,
        "matcher": hook.matcher.as_ref().map(|matcher| matcher.pattern().to_owned()),
        "respond": match &hook.respond {
            Respond::Any => serde_json::json!("any"),
            Respond::Only { globs, .. } => serde_json::json!(globs),
        },
        "stages": stages,
    });
    if let State::Broken(fault) = &hook.state {
        facts["fault"] = serde_json::json!(fault.to_string());
    }
    if let HookKind::Process(entry) = &loaded.kind {
        let host = env.vars.iter().map(|(name, value)| (name.into(), value.clone()));
        let child = child_environment(host, &config.secrets, &entry.inherit_env, &entry.env);
        facts["command"] = serde_json::json!(entry.argv);
        facts["dir"] = serde_json::json!(entry.dir);
        facts["env"] = serde_json::json!(entry.env.keys().collect::<Vec<_>>());
        facts["withheld_env"] = serde_json::json!(child.withheld);
        facts["strict"] = serde_json::json!(entry.strict);
        facts["max_frame_bytes"] = serde_json::json!(entry.max_frame_bytes);
    }
    facts
}

/// One line for each fact, names in a column.
fn plain(facts: &serde_json::Value) -> String {
    let Some(members) = facts.as_object() else { return String::new() };
    let mut text = String::new();
    for (name, value) in members.iter().filter(|(name, value)| !value.is_null() && *name != "stages") {
        let value = match value {
            serde_json::Value::String(value) => value.clone(),
            serde_json::Value::Array(items) => {
                let items: Vec<String> = items.iter().map(bare).collect();
                if items.is_empty() { "none".into() } else { items.join(" ") }
            }
            serde_json::Value::Null
            | serde_json::Value::Bool(_)
            | serde_json::Value::Number(_)
            | serde_json::Value::Object(_) => value.to_string(),
        };
        text.push_str(&format!("{name:<16} {}\n", clean(&value)));
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
    text
}

fn bare(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
