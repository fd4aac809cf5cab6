//! Puts managed hooks at the end of a TOML file, with the pin that keeps users from switching hooks off, and takes both out
//! again.

use std::fmt::Write as _;
use std::path::Path;

use pintle_domain::json::Value;

use super::others::{NotEdited, OtherHook, is_ours, runs};
use super::toml_block;

/// The text with `hooks` at its end, event by event; `program` is what they run.
pub(super) fn install(hooks: &[(&str, Value)], program: &str, old: Option<&str>) -> Result<String, NotEdited> {
    let rest = toml_block::remove(old.unwrap_or_default())?;
    let root = toml_block::read(&rest)?;
    let mut tables = String::new();
    match root.get("features") {
        None => tables.push_str("[features]\nhooks = true\n\n"),
        Some(features) if features.get("hooks").and_then(Value::as_bool) == Some(true) => {}
        Some(_) => return Err(NotEdited::Unpinned),
    }
    let text = |text: &str| Value::from(text).to_string();
    if root.get("hooks").is_none() {
        let folder = Path::new(program).parent().and_then(Path::to_str).unwrap_or("/");
        write!(tables, "[hooks]\nmanaged_dir = {}\n\n", text(folder)).expect("a text takes what is written to it");
    }
    for (event, entry) in hooks {
        for hook in entry.get("hooks").and_then(Value::as_array).into_iter().flatten() {
            writeln!(tables, "[[hooks.{event}]]\n[[hooks.{event}.hooks]]").expect("a text takes what is written to it");
            let members = hook.as_object().into_iter().flatten();
            let lines = members.map(|(name, value)| format!("{name} = {value}\n"));
            tables.extend(lines.chain(["\n".to_owned()]));
        }
    }
    let text = toml_block::put(tables.trim_end_matches('\n'), &rest, old);
    // What cannot be read with ours in it would switch everything off.
    toml_block::read(&text)?;
    Ok(text)
}

/// Whether a hook of ours stands in `text`.
pub(super) fn has_ours(text: &str) -> Result<bool, NotEdited> {
    Ok(hooks(&toml_block::read(text)?).iter().any(|(_, hook)| is_ours(hook)))
}

/// The hooks of others on events that `is_wanted`.
pub(super) fn others(old: Option<&str>, is_wanted: &dyn Fn(&str) -> bool) -> Result<Vec<OtherHook>, NotEdited> {
    let root = toml_block::read(old.unwrap_or_default())?;
    let theirs = hooks(&root).into_iter().filter(|(event, hook)| is_wanted(event) && !is_ours(hook));
    Ok(theirs.map(|(event, hook)| OtherHook { runs: runs(hook), event }).collect())
}

/// The events of which a hook of ours stands in `text`.
pub(super) fn own_events(text: &str) -> Result<Vec<String>, NotEdited> {
    let root = toml_block::read(text)?;
    Ok(hooks(&root).into_iter().filter(|(_, hook)| is_ours(hook)).map(|(event, _)| event).collect())
}

/// All hooks, each with its event.
fn hooks(root: &Value) -> Vec<(String, &Value)> {
    let mut found = Vec::new();
    for (event, groups) in root.get("hooks").and_then(Value::as_object).into_iter().flatten() {
        let groups = groups.as_array().into_iter().flatten();
        let hooks = groups.filter_map(|group| group.get("hooks")?.as_array()).flatten();
        found.extend(hooks.map(|hook| (event.clone(), hook)));
    }
    found
}
