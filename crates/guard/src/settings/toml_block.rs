//! Puts tables at the end of a TOML file, between two marks, and takes them out again.

use pintle_domain::json::{self, Value};

use super::others::{NotEdited, OtherHook, is_ours, runs};
use crate::host::StrictEntries;

const BEGIN: &str = "# Written by `pintle guard install`, down to the next line that begins like this one.";
const END: &str = "# Written by `pintle guard install`: the end.";

/// The text with `tables` at its end.
pub(super) fn install(tables: &str, old: Option<&str>) -> Result<String, NotEdited> {
    let text = remove(old.unwrap_or_default())?;
    let root = read(&text)?;
    if root.get("hooks").is_some_and(|hooks| !hooks.is_array()) || is_inline(&text) {
        return Err(NotEdited::Shape("hooks".to_owned()));
    }
    Ok(put(tables, &text, old))
}

/// `rest` with `tables` of ours at its end. Where exactly these stand in `old`, they stay: others may have come behind.
pub(super) fn put(tables: &str, rest: &str, old: Option<&str>) -> String {
    let line = if rest.contains("\r\n") { "\r\n" } else { "\n" };
    let tables = tables.trim_end_matches('\n');
    let block = format!("{BEGIN}\n{tables}\n{END}").replace('\n', line);
    if let Some(old) = old.filter(|old| old.contains(&block)) {
        return old.to_owned();
    }
    if rest.is_empty() || rest.ends_with('\n') {
        format!("{rest}{block}{line}")
    } else {
        format!("{rest}{line}{block}")
    }
}

/// Whether `hooks` is written as a value: then tables of that name may not follow.
fn is_inline(text: &str) -> bool {
    let mut in_root = true;
    text.lines().map(str::trim).any(|line| {
        in_root &= !line.starts_with('[');
        in_root && line.strip_prefix("hooks").is_some_and(|rest| rest.trim_start().starts_with(['=', '.']))
    })
}

/// The text without ours.
pub(super) fn remove(text: &str) -> Result<String, NotEdited> {
    let Some(start) = text.find(BEGIN) else {
        return unmarked(text).map(|()| text.to_owned());
    };
    let Some(length) = text[start..].find(END) else { return Err(NotEdited::Unmarked) };
    let (before, behind) = (&text[..start], &text[start + length + END.len()..]);
    let rest = behind.strip_prefix("\r\n").or_else(|| behind.strip_prefix('\n'));
    let without = match rest {
        Some(rest) => format!("{before}{rest}"),
        // The file had no last line break, so ours began with one.
        None => {
            let before = before.strip_suffix("\r\n").or_else(|| before.strip_suffix('\n')).unwrap_or(before);
            format!("{before}{behind}")
        }
    };
    unmarked(&without)?;
    Ok(without)
}

/// Whether a hook of ours stands in `text`.
pub(super) fn has_ours(text: &str) -> Result<bool, NotEdited> {
    Ok(text.contains(BEGIN) || hooks(&read(text)?).iter().any(is_ours))
}

/// # Errors
/// A hook of ours stands in `text`, which has no marks.
fn unmarked(text: &str) -> Result<(), NotEdited> {
    if hooks(&read(text)?).iter().any(is_ours) { Err(NotEdited::Unmarked) } else { Ok(()) }
}

/// The hooks of others on our events.
pub(super) fn others(old: Option<&str>, is_wanted: &dyn Fn(&str) -> bool) -> Result<Vec<OtherHook>, NotEdited> {
    let root = read(old.unwrap_or_default())?;
    let theirs = hooks(&root).iter().filter(|hook| !is_ours(hook));
    let other = |hook: &Value| OtherHook { event: event(hook), runs: runs(hook) };
    Ok(theirs.map(other).filter(|other| is_wanted(&other.event)).collect())
}

/// The events of which a hook of ours stands in `text`.
pub(super) fn own_events(text: &str) -> Result<Vec<String>, NotEdited> {
    Ok(hooks(&read(text)?).iter().filter(|hook| is_ours(hook)).map(event).collect())
}

fn event(hook: &Value) -> String {
    hook.get("event").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The tables of all hooks.
fn hooks(root: &Value) -> &[Value] {
    root.get("hooks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// What makes the host drop every hook in `text`, if it demands something of its entries.
pub(super) fn wrong_entry(strict: &StrictEntries, text: &str) -> Result<Option<String>, NotEdited> {
    let root = read(text)?;
    match root.get("hooks") {
        None => Ok(None),
        Some(Value::Array(hooks)) => Ok(hooks.iter().find_map(|hook| wrong(strict, hook))),
        Some(_) => Ok(Some("`hooks` is no list of tables".to_owned())),
    }
}

/// What is wrong with one entry.
fn wrong(strict: &StrictEntries, hook: &Value) -> Option<String> {
    let Some(members) = hook.as_object() else { return Some("an entry is no table".to_owned()) };
    let of = match members.get("event").and_then(Value::as_str) {
        Some(event) if strict.events.contains(&event) => format!("the entry of `{event}`"),
        Some(event) => return Some(format!("`event = {}` is no event of it", Value::from(event))),
        None => return Some("an entry says no `event`".to_owned()),
    };
    if let Some((name, _)) = members.iter().find(|(name, _)| !strict.members.contains(&name.as_str())) {
        return Some(format!("{of} has the key `{name}`, which it does not know"));
    }
    let is_text = |name: &str| members.get(name).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    if !is_text("command") {
        return Some(format!("{of} says no `command`"));
    }
    if members.get("matcher").is_some_and(|matcher| !matcher.is_string()) {
        return Some(format!("`matcher` in {of} is no text"));
    }
    let in_range =
        |timeout: &Value| timeout.as_u64().is_some_and(|s| (1..=u64::from(strict.max_timeout_s)).contains(&s));
    if members.get("timeout").is_some_and(|timeout| !in_range(timeout)) {
        return Some(format!("`timeout` in {of} is no whole number from 1 to {}", strict.max_timeout_s));
    }
    None
}

/// The value that stands at `names`.
pub(super) fn at(text: &str, names: &[&str]) -> Result<Option<Value>, NotEdited> {
    let root = read(text)?;
    let found = names.iter().try_fold(&root, |value, name| value.get(*name));
    Ok(found.cloned())
}

pub(super) fn read(text: &str) -> Result<Value, NotEdited> {
    let text = text.trim_start_matches('\u{feff}');
    let table: toml::Table = toml::from_str(text).map_err(|wrong: toml::de::Error| {
        let at = wrong.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
        NotEdited::Unreadable { line, why: wrong.message().to_owned() }
    })?;
    json::to_value(table).map_err(|wrong| NotEdited::Unreadable { line: 1, why: wrong.to_string() })
}
