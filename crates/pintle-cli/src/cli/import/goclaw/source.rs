//! The other program's rows, wherever they come from.
//!
//! Nothing is known of its schema but what its documentation says, and columns come and go with its versions. So a row
//! is whatever members it has, and a value is read in every form in which a database or an export may spell it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use pintle_domain::json::{Object, Value};
use pintle_domain::store::StoreError;
use pintle_store::StoreOpenError;
use pintle_store::foreign;

use crate::cli::session::word as word_of;
use crate::error::CliError;
use crate::text::clip;

/// The tables that are read: hooks in either layout, and what they refer to.
const TABLES: [&str; 6] = ["hooks", "hook_agents", "agent_hooks", "agents", "tenants", "tenant_hook_budget"];

/// The tables whose rows are only counted: they are history, and stay where they are.
const HISTORY: [&str; 1] = ["hook_executions"];

/// The first bytes of a database file.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// Largest export that is read, in bytes: a thousand hooks with the longest settings take less.
const MAX_EXPORT_BYTES: u64 = 64 << 20;

/// What was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Source {
    tables: BTreeMap<String, Vec<Object>>,
    /// Rows of history, by table.
    pub(super) history: BTreeMap<String, u64>,
}

impl Source {
    /// Reads `source`: the URL of a database, or a file that is a database or an export.
    pub(super) fn read(source: &str, folder: &Path) -> Result<Self, CliError> {
        if source.contains("://") {
            return Self::of_database(source, folder);
        }
        let file = folder.join(source);
        let neither = |why: &dyn std::fmt::Display| {
            CliError::usage(format!("{} is neither a database of SQLite nor JSON: {why}", file.display()))
        };
        let cannot = |error: std::io::Error| {
            if error.kind() == ErrorKind::InvalidData {
                return neither(&"it is not UTF-8");
            }
            CliError::usage(format!("{} cannot be read: {error}", file.display()))
        };
        let mut bytes = Vec::new();
        File::open(&file).and_then(|file| file.take(SQLITE.len() as u64).read_to_end(&mut bytes)).map_err(cannot)?;
        if bytes == SQLITE {
            return Self::of_database(&format!("sqlite://{source}"), folder);
        }
        let mut text = String::new();
        let read = File::open(&file).and_then(|file| file.take(MAX_EXPORT_BYTES + 1).read_to_string(&mut text));
        if read.map_err(cannot)? as u64 > MAX_EXPORT_BYTES {
            return Err(CliError::usage(format!("{} has more than {MAX_EXPORT_BYTES} bytes", file.display())));
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let value = pintle_domain::json::parse(text).map_err(|why| neither(&why))?;
        if is_picoclaw(&value) {
            let message = format!("{} is a configuration of PicoClaw, not of GoClaw", file.display());
            return Err(CliError::usage(message).hint(format!("`pintle import picoclaw {}`", word_of(source))));
        }
        let read = Self::of_export(value);
        read.map_err(|why| CliError::usage(format!("{}: {why}", file.display())))?.ok_or_else(|| nothing(source))
    }

    fn of_database(url: &str, folder: &Path) -> Result<Self, CliError> {
        let found = foreign::read(url, folder, &TABLES, &HISTORY).map_err(|error| match error {
            StoreOpenError::Url(why) => CliError::usage(format!("source: {why}"))
                .hint("name a file, `sqlite://FILE` or `postgres://USER:PASSWORD@HOST/DATABASE`"),
            StoreOpenError::Schema { .. } => CliError::failed(error.to_string()),
            StoreOpenError::Store(StoreError::Unavailable(why) | StoreError::Corrupt(why)) => CliError::failed(why),
            StoreOpenError::Store(StoreError::NotFound(why) | StoreError::Conflict(why)) => CliError::failed(why),
        })?;
        if found.tables.is_empty() {
            // The URL may hold a password.
            return Err(nothing("the database"));
        }
        Ok(Self { tables: found.tables, history: found.counts })
    }

    /// An export: tables by name, the answer to `hooks.list`, or a list of hooks. Nothing if it is none of them.
    ///
    /// # Errors
    /// A table in it is no list.
    pub(super) fn of_export(value: Value) -> Result<Option<Self>, String> {
        let members = match value {
            Value::Array(hooks) => Object::from_iter([("hooks".to_owned(), Value::Array(hooks))]),
            Value::Object(mut members) => match members.shift_remove("payload") {
                Some(Value::Object(payload)) => payload,
                Some(_) | None => record_alone(members),
            },
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return Ok(None),
        };
        let mut source = Self::default();
        for (name, rows) in members {
            let is_table = TABLES.contains(&name.as_str()) || HISTORY.contains(&name.as_str());
            let rows = match rows {
                Value::Array(rows) => rows,
                // What is not read would be missed in silence.
                Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) if is_table => {
                    return Err(format!("`{name}` is {}; expected a list of rows", clip(&rows.to_string())));
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => continue,
            };
            if TABLES.contains(&name.as_str()) {
                let objects = rows.into_iter().map(|row| match row {
                    Value::Object(row) => row,
                    // It has no member, which is what is said of it.
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                        Object::new()
                    }
                });
                source.tables.insert(name, objects.collect());
            } else if HISTORY.contains(&name.as_str()) {
                source.history.insert(name, rows.len() as u64);
            }
        }
        Ok((!source.tables.is_empty()).then_some(source))
    }

    /// The rows of a table; none if it is not there.
    pub(super) fn table(&self, name: &str) -> &[Object] {
        self.tables.get(name).map_or(&[], Vec::as_slice)
    }
}

/// Whether it is PicoClaw's configuration: its hooks are sections by their kinds.
fn is_picoclaw(value: &Value) -> bool {
    let Some(hooks) = value.get("hooks").and_then(Value::as_object) else { return false };
    ["processes", "builtins", "defaults"].iter().any(|section| hooks.get(section).is_some_and(Value::is_object))
}

/// `members` as a list of one hook, if they are one, by itself or in a request of `hooks.create`; else as they are.
fn record_alone(mut members: Object) -> Object {
    let creates = members.get("method").and_then(Value::as_str) == Some("hooks.create");
    if creates && let Some(Value::Object(params)) = members.get_mut("params").map(Value::take) {
        members = params;
    }
    let is_hook = ["event", "handler_type"].iter().all(|name| members.get(name).is_some_and(Value::is_string));
    if is_hook {
        return Object::from_iter([("hooks".to_owned(), Value::Array(vec![Value::Object(members)]))]);
    }
    members
}

fn nothing(source: &str) -> CliError {
    CliError::usage(format!("{source} holds nothing of GoClaw; expected one of the tables {}", TABLES.join(", ")))
}

/// The text in the first of `columns` that has one; empty if none has.
pub(super) fn text<'a>(row: &'a Object, columns: &[&str]) -> &'a str {
    let found = columns.iter().filter_map(|column| row.get(column)?.as_str()).find(|text| !text.is_empty());
    found.unwrap_or_default()
}

/// The text in `column`; empty if it has none.
///
/// # Errors
/// There is something else.
pub(super) fn word<'a>(row: &'a Object, column: &str) -> Result<&'a str, String> {
    match row.get(column) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(text)) => Ok(text),
        Some(other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_))) => {
            Err(odd(column, other, "a text"))
        }
    }
}

/// The object in `column`, which may be written as a text; an empty one if there is nothing.
///
/// # Errors
/// There is something else.
pub(super) fn object(row: &Object, column: &str) -> Result<Object, String> {
    let Some(value) = row.get(column) else { return Ok(Object::new()) };
    match in_text(value).as_ref() {
        Value::Null => Ok(Object::new()),
        Value::Object(object) => Ok(object.clone()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(odd(column, value, "a JSON object"))
        }
    }
}

/// The list in `column`, which may be written as a text; an empty one if there is nothing.
///
/// # Errors
/// There is something else.
pub(super) fn items(row: &Object, column: &str) -> Result<Vec<Value>, String> {
    let Some(value) = row.get(column) else { return Ok(Vec::new()) };
    match in_text(value).as_ref() {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => Ok(items.clone()),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            Err(odd(column, value, "a JSON list"))
        }
    }
}

/// What is written in `value`, if that is JSON in a text. An empty text is nothing.
fn in_text(value: &Value) -> Cow<'_, Value> {
    match value {
        Value::String(text) if text.trim().is_empty() => Cow::Owned(Value::Null),
        Value::String(text) => pintle_domain::json::parse(text).map_or(Cow::Borrowed(value), Cow::Owned),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => Cow::Borrowed(value),
    }
}

/// Yes or no in `column`; nothing if it is empty.
///
/// # Errors
/// It says neither.
pub(super) fn flag(row: &Object, column: &str) -> Result<Option<bool>, String> {
    let Some(value) = row.get(column) else { return Ok(None) };
    let read = match value {
        Value::Null => return Ok(None),
        Value::Bool(flag) => Some(*flag),
        Value::Number(number) => number.as_i64().map(|number| number != 0),
        Value::String(text) => match text.to_lowercase().as_str() {
            "" => return Ok(None),
            "true" | "t" | "1" => Some(true),
            "false" | "f" | "0" => Some(false),
            _ => None,
        },
        Value::Array(_) | Value::Object(_) => None,
    };
    read.map(Some).ok_or_else(|| odd(column, value, "true or false"))
}

/// The whole number in `column`; nothing if it is empty.
///
/// # Errors
/// There is something else.
pub(super) fn number(row: &Object, column: &str) -> Result<Option<i64>, String> {
    let Some(value) = row.get(column) else { return Ok(None) };
    let read = match value {
        Value::Null => return Ok(None),
        Value::Number(number) => whole(&number.to_string()),
        Value::String(text) if text.is_empty() => return Ok(None),
        Value::String(text) => whole(text),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    };
    read.map(Some).ok_or_else(|| odd(column, value, "a whole number"))
}

/// A whole number, also as a column of fractions has it (`5000.0`).
fn whole(text: &str) -> Option<i64> {
    let (digits, fraction) = text.split_once('.').unwrap_or((text, ""));
    digits.parse().ok().filter(|_| fraction.bytes().all(|digit| digit == b'0'))
}

/// The texts of a list in `column`: JSON, JSON in a text, or an array as PostgreSQL writes it (`{a,b}`).
///
/// # Errors
/// There is something else, or something else among them.
pub(super) fn list(row: &Object, column: &str) -> Result<Vec<String>, String> {
    if let Some(Value::String(text)) = row.get(column)
        && let Some(inside) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'))
    {
        let items = inside.split(',').map(|item| item.trim().trim_matches('"').to_owned());
        return Ok(items.filter(|item| !item.is_empty()).collect());
    }
    let text = |item: Value| match item {
        Value::String(text) => Ok(text),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Err(odd(column, &other, "a text for each of them"))
        }
    };
    items(row, column)?.into_iter().map(text).collect()
}

/// The moment in `column`, in the forms in which databases and their drivers write it; nothing if it is empty.
///
/// # Errors
/// It is none.
pub(super) fn moment(row: &Object, column: &str) -> Result<Option<Timestamp>, String> {
    let Some(value) = row.get(column).filter(|value| !value.is_null()) else { return Ok(None) };
    let text = value.as_str().unwrap_or_default();
    let utc = || Some(text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp());
    // A driver may print the offset apart, and after it a name of the zone.
    let apart = || match text.split_whitespace().collect::<Vec<_>>().as_slice() {
        [day, time, offset, ..] => format!("{day}T{time}{offset}").parse().ok(),
        _ => None,
    };
    let read = text.parse().ok().or_else(utc).or_else(apart);
    read.map(Some).ok_or_else(|| odd(column, value, "a time such as \"2026-01-31T12:00:00Z\""))
}

/// What is wrong with a value.
fn odd(column: &str, value: &Value, expected: &str) -> String {
    format!("its {column} is {}; expected {expected}", clip(&value.to_string()))
}

#[cfg(test)]
mod tests {
    use pintle_domain::json::json;

    use super::*;

    fn row(value: Value) -> Object {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn values_are_read_in_every_spelling() {
        let row = row(json!({
            "a": "{\"url\":\"x\"}", "b": {"url": "x"}, "c": null, "yes": 1, "no": "F", "empty": "",
            "ids": "[\"1\",\"2\"]", "pg": "{1,\"2\"}", "plain": ["1", "2"], "none": "{}", "n": "7", "m": 7, "f": 7.0,
        }));
        assert_eq!(object(&row, "a"), object(&row, "b"));
        for column in ["c", "empty", "z"] {
            assert_eq!(object(&row, column), Ok(Object::new()), "{column}");
            assert_eq!((list(&row, column), items(&row, column)), (Ok(vec![]), Ok(vec![])), "{column}");
            assert_eq!((flag(&row, column), number(&row, column)), (Ok(None), Ok(None)), "{column}");
            assert_eq!(word(&row, column), Ok(""), "{column}");
        }
        assert_eq!(["yes", "no"].map(|column| flag(&row, column)), [Ok(Some(true)), Ok(Some(false))]);
        for column in ["ids", "pg", "plain"] {
            assert_eq!(list(&row, column), Ok(vec!["1".to_owned(), "2".to_owned()]), "{column}");
        }
        assert_eq!(list(&row, "none"), Ok(vec![]));
        assert_eq!(["n", "m", "f"].map(|column| number(&row, column)), [Ok(Some(7)), Ok(Some(7)), Ok(Some(7))]);
        assert_eq!(text(&row, &["z", "c", "n"]), "7");
    }

    #[test]
    fn what_cannot_be_read_is_not_taken_for_nothing() {
        let row = row(json!({"x": "soon", "y": [1], "z": 1.5, "cut": "{\"a\":"}));
        let odd = |said: Result<String, String>| said.unwrap_err();
        assert_eq!(odd(flag(&row, "x").map(|_| String::new())), "its x is \"soon\"; expected true or false");
        assert_eq!(odd(number(&row, "x").map(|_| String::new())), "its x is \"soon\"; expected a whole number");
        assert!(number(&row, "z").is_err() && number(&row, "y").is_err());
        assert_eq!(odd(object(&row, "cut").map(|_| String::new())), r#"its cut is "{\"a\":"; expected a JSON object"#);
        assert_eq!(odd(list(&row, "y").map(|_| String::new())), "its y is 1; expected a text for each of them");
        assert_eq!(odd(items(&row, "x").map(|_| String::new())), "its x is \"soon\"; expected a JSON list");
        assert_eq!(odd(word(&row, "y").map(str::to_owned)), "its y is [1]; expected a text");
    }

    #[test]
    fn moments_are_read_as_databases_and_drivers_write_them() {
        let check = |text: &str| {
            let row = row(json!({ "at": text }));
            moment(&row, "at").map(|at| at.map(|at| at.to_string()))
        };
        for text in [
            "2026-01-02T03:04:05Z",
            "2026-01-02T05:04:05+02:00",
            "2026-01-02 03:04:05",
            "2026-01-02 03:04:05+00:00",
            "2026-01-02 03:04:05 +0000 UTC",
        ] {
            assert_eq!(check(text), Ok(Some("2026-01-02T03:04:05Z".to_owned())), "{text}");
        }
        assert_eq!(check("x").unwrap_err(), "its at is \"x\"; expected a time such as \"2026-01-31T12:00:00Z\"");
        assert_eq!(moment(&Object::new(), "at"), Ok(None));
    }

    #[test]
    fn an_export_has_one_of_three_shapes() {
        let hook = json!({"name": "guard"});
        let check =
            |value: Value| Source::of_export(value).map(|found| found.map(|found| found.table("hooks").to_vec()));
        let expected = Ok(Some(vec![row(hook.clone())]));
        assert_eq!(check(json!([hook])), expected);
        assert_eq!(check(json!({"hooks": [hook], "other": 1})), expected);
        assert_eq!(check(json!({"type": "res", "ok": true, "payload": {"hooks": [hook]}})), expected);
        for nothing in [json!({}), json!(7), json!({"rules": []}), json!({"hooks": null})] {
            assert_eq!(check(nothing), Ok(None));
        }
        // Beside a table that is in order, the other one must not be missed.
        let broken = check(json!({"agents": [], "hooks": hook}));
        assert_eq!(broken.unwrap_err(), "`hooks` is {\"name\":\"guard\"}; expected a list of rows");
    }
}
