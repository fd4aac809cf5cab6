//! The other program's rows, wherever they come from.
//!
//! Nothing is known of its schema but what its documentation says, and columns come and go with its versions. So a row
//! is whatever members it has, and a value is read in every form in which a database or an export may spell it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use domain::json::Object;
use domain::store::StoreError;
use serde_json::Value;
use store::OpenError;
use store::foreign;

use crate::error::CliError;

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
        let cannot = |error: std::io::Error| CliError::usage(format!("{} cannot be read: {error}", file.display()));
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
        let value = domain::json::parse(&text).map_err(|why| {
            CliError::usage(format!("{} is neither a database of SQLite nor JSON: {why}", file.display()))
        })?;
        Self::of_export(value).ok_or_else(|| nothing(source))
    }

    fn of_database(url: &str, folder: &Path) -> Result<Self, CliError> {
        let found = foreign::read(url, folder, &TABLES, &HISTORY).map_err(|error| match error {
            OpenError::Url(why) => CliError::usage(format!("source: {why}"))
                .hint("name a file, `sqlite://FILE` or `postgres://USER:PASSWORD@HOST/DATABASE`"),
            OpenError::Schema { .. } => CliError::failed(error.to_string()),
            OpenError::Store(StoreError::Unavailable(why) | StoreError::Corrupt(why)) => CliError::failed(why),
            OpenError::Store(StoreError::NotFound(why) | StoreError::Conflict(why)) => CliError::failed(why),
        })?;
        if found.tables.is_empty() {
            // The URL may hold a password.
            return Err(nothing("the database"));
        }
        Ok(Self { tables: found.tables, history: found.counts })
    }

    /// An export: tables by name, the answer to `hooks.list`, or a list of hooks. Nothing if it is none of them.
    pub(super) fn of_export(value: Value) -> Option<Self> {
        let members = match value {
            Value::Array(hooks) => Object::from_iter([("hooks".to_owned(), Value::Array(hooks))]),
            Value::Object(mut members) => match members.shift_remove("payload") {
                Some(Value::Object(payload)) => payload,
                Some(_) | None => members,
            },
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
        };
        let mut source = Self::default();
        for (name, rows) in members {
            let Value::Array(rows) = rows else { continue };
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
        (!source.tables.is_empty()).then_some(source)
    }

    /// The rows of a table; none if it is not there.
    pub(super) fn table(&self, name: &str) -> &[Object] {
        self.tables.get(name).map_or(&[], Vec::as_slice)
    }
}

fn nothing(source: &str) -> CliError {
    CliError::usage(format!("{source} holds nothing of GoClaw; expected one of the tables {}", TABLES.join(", ")))
}

/// The text in the first of `columns` that has one; empty if none has.
pub(super) fn text<'a>(row: &'a Object, columns: &[&str]) -> &'a str {
    let found = columns.iter().filter_map(|column| row.get(*column)?.as_str()).find(|text| !text.is_empty());
    found.unwrap_or_default()
}

/// The object in `column`, which may be written as a text.
pub(super) fn object(row: &Object, column: &str) -> Object {
    match row.get(column) {
        Some(Value::Object(object)) => object.clone(),
        Some(Value::String(text)) => match domain::json::parse(text) {
            Ok(Value::Object(object)) => object,
            Ok(_) | Err(_) => Object::new(),
        },
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) | None => Object::new(),
    }
}

/// Yes or no in `column`; nothing if it says neither.
pub(super) fn flag(row: &Object, column: &str) -> Option<bool> {
    match row.get(column)? {
        Value::Bool(flag) => Some(*flag),
        Value::Number(number) => number.as_i64().map(|number| number != 0),
        Value::String(text) => match text.as_str() {
            "true" | "t" | "1" => Some(true),
            "false" | "f" | "0" => Some(false),
            _ => None,
        },
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The whole number in `column`.
pub(super) fn number(row: &Object, column: &str) -> Option<i64> {
    let value = row.get(column)?;
    value.as_i64().or_else(|| value.as_str()?.parse().ok())
}

/// The texts of a list in `column`: JSON, JSON in a text, or an array as PostgreSQL writes it (`{a,b}`).
pub(super) fn list(row: &Object, column: &str) -> Vec<String> {
    let texts = |items: &[Value]| items.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    match row.get(column) {
        Some(Value::Array(items)) => texts(items),
        Some(Value::String(text)) => match domain::json::parse(text) {
            Ok(Value::Array(items)) => texts(&items),
            Ok(_) | Err(_) => {
                let inside = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or_default();
                let items = inside.split(',').map(|item| item.trim().trim_matches('"').to_owned());
                items.filter(|item| !item.is_empty()).collect()
            }
        },
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn row(value: Value) -> Object {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn values_are_read_in_every_spelling() {
        let row = row(json!({
            "a": "{\"url\":\"x\"}", "b": {"url": "x"}, "c": null, "yes": 1, "no": "f", "odd": [],
            "ids": "[\"1\",\"2\"]", "pg": "{1,\"2\"}", "plain": ["1", "2"], "none": "{}", "n": "7", "m": 7,
        }));
        assert_eq!(object(&row, "a"), object(&row, "b"));
        assert!(object(&row, "c").is_empty() && object(&row, "z").is_empty());
        assert_eq!(["yes", "no", "odd", "c"].map(|column| flag(&row, column)), [Some(true), Some(false), None, None]);
        for column in ["ids", "pg", "plain"] {
            assert_eq!(list(&row, column), ["1", "2"], "{column}");
        }
        assert!(list(&row, "none").is_empty());
        assert_eq!([number(&row, "n"), number(&row, "m"), number(&row, "a")], [Some(7), Some(7), None]);
        assert_eq!(text(&row, &["z", "c", "n"]), "7");
    }

    #[test]
    fn an_export_has_one_of_three_shapes() {
        let hook = json!({"name": "guard"});
        let check = |value: Value| Source::of_export(value).map(|source| source.table("hooks").to_vec());
        let expected = Some(vec![row(hook.clone())]);
        assert_eq!(check(json!([hook])), expected);
        assert_eq!(check(json!({"hooks": [hook], "other": 1})), expected);
        assert_eq!(check(json!({"type": "res", "ok": true, "payload": {"hooks": [hook]}})), expected);
        for nothing in [json!({}), json!(7), json!({"rules": []})] {
            assert_eq!(check(nothing), None);
        }
    }
}
