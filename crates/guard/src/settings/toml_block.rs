//! Puts tables at the end of a TOML file, between two marks, and takes them out again.

use domain::json::{self, Value};

use super::others::{CLIENT, NotEdited, OtherHook, is_ours};

const BEGIN: &str = "# Written by `pintle guard install`, down to the next line that begins like this one.";
const END: &str = "# Written by `pintle guard install`: the end.";

/// The text with `tables` at its end.
pub(super) fn install(tables: &str, old: Option<&str>) -> Result<String, NotEdited> {
    let text = remove(old.unwrap_or_default())?;
    let root = read(&text)?;
    if root.get("hooks").is_some_and(|hooks| !hooks.is_array()) || is_inline(&text) {
        return Err(NotEdited::Shape("hooks".to_owned()));
    }
    let line = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let block = format!("{BEGIN}\n{tables}{END}").replace('\n', line);
    // Where exactly ours stands, it stays: others may have come behind it.
    if let Some(old) = old.filter(|old| old.contains(&block)) {
        return Ok(old.to_owned());
    }
    Ok(if text.is_empty() || text.ends_with('\n') {
        format!("{text}{block}{line}")
    } else {
        format!("{text}{line}{block}")
    })
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
        let unmarked = commands(&read(text)?).iter().any(|(_, command)| is_ours(command));
        return if unmarked { Err(NotEdited::Unmarked) } else { Ok(text.to_owned()) };
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
    if without.contains(CLIENT) { Err(NotEdited::Unmarked) } else { Ok(without) }
}

/// The hooks of others on our events.
pub(super) fn others(old: Option<&str>, is_wanted: &dyn Fn(&str) -> bool) -> Result<Vec<OtherHook>, NotEdited> {
    let found = commands(&read(old.unwrap_or_default())?).into_iter();
    let theirs = found.filter(|(event, command)| !is_ours(command) && is_wanted(event));
    Ok(theirs.map(|(event, runs)| OtherHook { event, runs }).collect())
}

/// The events and commands of all hooks.
fn commands(root: &Value) -> Vec<(String, String)> {
    let tables = root.get("hooks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let text = |table: &Value, name: &str| table.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    tables.iter().map(|table| (text(table, "event"), text(table, "command"))).collect()
}

/// The value that stands at `names`.
pub(super) fn at(text: &str, names: &[&str]) -> Result<Option<Value>, NotEdited> {
    let root = read(text)?;
    let found = names.iter().try_fold(&root, |value, name| value.get(*name));
    Ok(found.cloned())
}

fn read(text: &str) -> Result<Value, NotEdited> {
    let text = text.trim_start_matches('\u{feff}');
    let table: toml::Table = toml::from_str(text).map_err(|wrong: toml::de::Error| {
        let at = wrong.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
        NotEdited::Unreadable { line, why: wrong.message().to_owned() }
    })?;
    json::to_value(table).map_err(|wrong| NotEdited::Unreadable { line: 1, why: wrong.to_string() })
}
