//! The values of an evaluation. What was seen is lent, what was made is shared: no clone copies content.

use std::rc::Rc;

use pintle_domain::json::{Object, Value as Json};
use pintle_domain::shell::{ShellCommand, ShellFacts};

use super::fault::Fault;
use super::kind::Kind;
use super::text::Text;

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Text<'a>),
    Bytes(Bytes<'a>),
    List(List<'a>),
    Map(Map<'a>),
    Type(Kind),
}

/// Bytes.
#[derive(Clone, Debug)]
pub(super) enum Bytes<'a> {
    Seen(&'a [u8]),
    Made(Rc<[u8]>),
}

/// A list.
#[derive(Clone, Debug)]
pub(super) enum List<'a> {
    Json(&'a [Json]),
    Texts(&'a [String]),
    Commands(&'a [ShellCommand]),
    Made(Rc<[Value<'a>]>),
}

/// A map.
#[derive(Clone, Debug)]
pub(super) enum Map<'a> {
    /// Nothing, where there is no tool.
    Empty,
    Json(&'a Object),
    Shell(&'a ShellFacts),
    Command(&'a ShellCommand),
    Made(Rc<[(Value<'a>, Value<'a>)]>),
}

/// Longest spelling of a number that is read, in bytes: every double has one below 800, and reading is not metered.
const MAX_NUMBER_BYTES: usize = 1_024;

/// The members of `shell`.
pub(super) const SHELL: [&str; 9] =
    ["commands", "reads", "writes", "deletes", "urls", "outside", "pipes_to_interpreter", "unknown", "unknown_why"];

/// The members of one of `shell.commands`.
const COMMAND: [&str; 4] = ["name", "argv", "cwd", "depth"];

impl<'a> Value<'a> {
    /// A text that was seen.
    pub(super) fn seen(text: &'a str) -> Self {
        Self::Text(Text::Seen(text))
    }

    /// A text that was made.
    pub(super) fn made(text: &str) -> Self {
        Self::Text(Text::Made(Rc::from(text)))
    }

    /// A value of JSON, lent.
    pub(super) fn json(json: &'a Json) -> Result<Self, Fault<'a>> {
        Ok(match json {
            Json::Null => Self::Null,
            Json::Bool(it) => Self::Bool(*it),
            Json::Number(it) if it.as_str().len() > MAX_NUMBER_BYTES => {
                return Err(Fault::Words("a number of the input has too many digits"));
            }
            Json::Number(it) => {
                Self::Double(it.as_f64().ok_or(Fault::Words("a number of the input is too large for a double"))?)
            }
            Json::String(it) => Self::seen(it),
            Json::Array(it) => Self::List(List::Json(it)),
            Json::Object(it) => Self::Map(Map::Json(it)),
        })
    }

    /// What it is.
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Null => Kind::Null,
            Self::Bool(_) => Kind::Bool,
            Self::Int(_) => Kind::Int,
            Self::Uint(_) => Kind::Uint,
            Self::Double(_) => Kind::Double,
            Self::Text(_) => Kind::String,
            Self::Bytes(_) => Kind::Bytes,
            Self::List(_) => Kind::List,
            Self::Map(_) => Kind::Map,
            Self::Type(_) => Kind::Type,
        }
    }
}

impl Bytes<'_> {
    pub(super) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Seen(bytes) => bytes,
            Self::Made(bytes) => bytes,
        }
    }
}

impl<'a> List<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Json(items) => items.len(),
            Self::Texts(items) => items.len(),
            Self::Commands(items) => items.len(),
            Self::Made(items) => items.len(),
        }
    }

    /// The item at `index`, if the list is that long.
    pub(super) fn get(&self, index: usize) -> Result<Option<Value<'a>>, Fault<'a>> {
        Ok(match self {
            Self::Json(items) => items.get(index).map(Value::json).transpose()?,
            Self::Texts(items) => items.get(index).map(|text| Value::seen(text)),
            Self::Commands(items) => items.get(index).map(|command| Value::Map(Map::Command(command))),
            Self::Made(items) => items.get(index).cloned(),
        })
    }
}

impl<'a> Map<'a> {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Json(map) => map.len(),
            Self::Shell(_) => SHELL.len(),
            Self::Command(_) => COMMAND.len(),
            Self::Made(entries) => entries.len(),
        }
    }

    /// The value under a text. Entries that were made are looked through one by one.
    pub(super) fn get(&self, key: &str) -> Result<Option<Value<'a>>, Fault<'a>> {
        Ok(match self {
            Self::Empty => None,
            Self::Json(map) => map.get(key).map(Value::json).transpose()?,
            Self::Shell(facts) => of_shell(facts, key),
            Self::Command(command) => of_command(command, key),
            Self::Made(entries) => entries
                .iter()
                .find(|(at, _)| matches!(at, Value::Text(at) if at.as_str() == key))
                .map(|(_, it)| it.clone()),
        })
    }

    /// The keys, in the order in which they were written.
    pub(super) fn keys(&self) -> Vec<Value<'a>> {
        match self {
            Self::Empty => Vec::new(),
            Self::Json(map) => map.keys().map(|key| Value::seen(key)).collect(),
            Self::Shell(_) => SHELL.into_iter().map(Value::seen).collect(),
            Self::Command(_) => COMMAND.into_iter().map(Value::seen).collect(),
            Self::Made(entries) => entries.iter().map(|(key, _)| key.clone()).collect(),
        }
    }
}

fn of_shell<'a>(facts: &'a ShellFacts, key: &str) -> Option<Value<'a>> {
    Some(match key {
        "commands" => Value::List(List::Commands(&facts.commands)),
        "reads" => Value::List(List::Texts(&facts.reads)),
        "writes" => Value::List(List::Texts(&facts.writes)),
        "deletes" => Value::List(List::Texts(&facts.deletes)),
        "urls" => Value::List(List::Texts(&facts.urls)),
        "outside" => Value::List(List::Texts(&facts.outside)),
        "pipes_to_interpreter" => Value::Bool(facts.pipes_to_interpreter),
        "unknown" => Value::Bool(facts.unknown),
        "unknown_why" => Value::seen(&facts.unknown_why),
        _ => return None,
    })
}

fn of_command<'a>(command: &'a ShellCommand, key: &str) -> Option<Value<'a>> {
    Some(match key {
        "name" => Value::seen(&command.name),
        "argv" => Value::List(List::Texts(&command.argv)),
        "cwd" => Value::seen(&command.cwd),
        // Its JSON is what is shown of a command, and numbers of JSON are doubles.
        "depth" => Value::Double(f64::from(command.depth)),
        _ => return None,
    })
}
