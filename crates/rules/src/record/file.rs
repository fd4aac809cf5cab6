//! Files of records.

use std::cell::RefCell;
use std::collections::BTreeMap;

use pintle_domain::id::{HookId, TenantId};
use pintle_domain::json::Value;

use super::{Lang, NewRow, RecordContext, RecordError, RecordErrorCode, ValidRecord, quoted, read};
use pintle_domain::nearest::nearest;

/// The member under which a TOML file has its records.
const TABLES: &str = "hook";

/// A record of a file that is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {refused}", self.place())]
pub struct FileRecordError {
    /// Which of the file, from 0.
    pub index: usize,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Why.
    pub refused: RecordError,
}

impl FileRecordError {
    fn place(&self) -> String {
        match &self.name {
            Some(name) => format!("record {} ({})", self.index + 1, quoted(name)),
            None => format!("record {}", self.index + 1),
        }
    }
}

/// The records of a whole document: tables `[[hook]]`, an array, or one record. An empty document has none.
///
/// # Errors
/// The document is none of these.
pub fn records(document: &Value) -> Result<Vec<&Value>, RecordError> {
    match document {
        Value::Array(records) => Ok(records.iter().collect()),
        Value::Object(members) if members.is_empty() => Ok(Vec::new()),
        Value::Object(members) => match members.get(TABLES) {
            None => one(document, members.keys().next().map(String::as_str).filter(|_| members.len() == 1)),
            Some(Value::Array(records)) => match members.keys().find(|name| *name != TABLES) {
                None => Ok(records.iter().collect()),
                Some(other) => Err(RecordError::config(format!(
                    "unknown field {} beside the tables [[hook]]; move it into one of them",
                    quoted(other)
                ))),
            },
            Some(_) => Err(RecordError::config("field \"hook\" must be an array: write each record as [[hook]]")),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Err(RecordError::new(RecordErrorCode::InvalidRequest, "invalid request: missing config payload"))
        }
    }
}

/// One record; or, if it has one member only, the tables under another name.
fn one<'a>(document: &'a Value, only: Option<&str>) -> Result<Vec<&'a Value>, RecordError> {
    match only.filter(|name| name.len() <= 2 * TABLES.len() && nearest(name, [TABLES]).is_some()) {
        Some(name) => Err(RecordError::config(format!("unknown field {} (did you mean \"{TABLES}\"?)", quoted(name)))),
        None => Ok(vec![document]),
    }
}

/// Reads the document of the file `name`. A record's id follows from the names of the file and of the record, so it
/// stays the same whenever the file is read. The way it comes by is [`Lang::File`], whatever `around` says.
pub fn file(
    name: &str,
    document: &Value,
    record_context: &RecordContext<'_>,
) -> Vec<Result<ValidRecord, FileRecordError>> {
    let records = match records(document) {
        Ok(records) => records,
        Err(refused) => return vec![Err(FileRecordError { index: 0, name: None, refused })],
    };
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    let taken: RefCell<BTreeMap<TenantId, usize>> = RefCell::default();
    let held =
        |tenant: &TenantId| (record_context.held)(tenant) + taken.borrow().get(tenant).copied().unwrap_or_default();
    let read_one = |(index, record): (usize, &'_ Value)| -> Result<ValidRecord, FileRecordError> {
        let called = record.get("name").and_then(Value::as_str);
        let bad = |refused| FileRecordError { index, name: called.map(ToOwned::to_owned), refused };
        let id = HookId::of_name(&format!("file/{name}/{}", called.unwrap_or_default()));
        let new_row = NewRow { id, ..record_context.new_row.clone() };
        let found =
            read(record, &RecordContext { lang: Lang::File, held: &held, new_row: &new_row, ..*record_context })
                .map_err(bad)?;
        *taken.borrow_mut().entry(found.hook.tenant_id.clone()).or_default() += 1;
        Ok(found)
    };
    let mut all = Vec::with_capacity(records.len());
    for (index, record) in records.into_iter().enumerate() {
        let called = record.get("name").and_then(Value::as_str).filter(|called| !called.is_empty());
        let first = called.map(|called| *names.entry(called).or_insert(index)).filter(|first| *first != index);
        all.push(match (first, called) {
            (Some(first), Some(called)) => {
                Err(FileRecordError { index, name: Some(called.to_owned()), refused: duplicate(called, first) })
            }
            (None, _) | (Some(_), None) => read_one((index, record)),
        });
    }
    all
}

fn duplicate(name: &str, first: usize) -> RecordError {
    RecordError::new(
        RecordErrorCode::InvalidRequest,
        format!("duplicate name {}: record {} of this file has it; give each its own", quoted(name), first + 1),
    )
}
