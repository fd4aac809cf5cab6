//! Row 0 for one JSON object: whether it has only members that are known, each of its type.

use pintle_domain::json::{Object, Value};

use super::{RecordError, quoted};
use pintle_domain::nearest::nearest;

/// Longest unknown name that is compared with the known ones: no typing mistake makes one of them longer.
const MAX_COMPARED_BYTES: usize = 64;

/// The kind of value that a member may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Texts,
    TextMap,
    Uuid,
    Uuids,
    /// A whole number, however large.
    Integer,
    /// A whole number of 32 bits.
    Small,
    Flag,
    Object,
    /// The word that old records have for the only method there is. It is not kept.
    Post,
    /// Anything. It is not kept.
    Ignored,
}

/// Known members.
pub(super) type Members<'a> = &'a [(&'static str, Kind)];

/// The place of what is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A record.
    Record,
    /// Changes of a record. A `null` changes nothing and clears nothing, so it is a mistake.
    Updates,
    /// The settings of a handler.
    Config,
}

impl Place {
    /// A member in a message.
    fn member(self, name: &str) -> String {
        match self {
            Self::Record | Self::Updates => quoted(name),
            Self::Config => format!("{} in config", quoted(name)),
        }
    }
}

/// `object` with what is kept of it: without members that are ignored or, but in updates, `null`.
pub(super) fn typed(object: &Object, members: Members<'_>, place: Place) -> Result<Object, RecordError> {
    let mut kept = Object::new();
    for (name, value) in object {
        let Some((_, kind)) = members.iter().find(|(known, _)| known == name) else {
            return Err(unknown(name, members, place));
        };
        let absent = value.is_null() && place != Place::Updates;
        if *kind == Kind::Ignored || absent {
            continue;
        }
        let wrong = |(expected, got): (&str, String)| {
            RecordError::config(format!("field {} must be {expected}, got {got}", place.member(name)))
        };
        let value = kind.read(value).map_err(wrong)?;
        if let Some(what) = unfit(&value) {
            return Err(RecordError::config(format!("field {} holds {what}; remove it", place.member(name))));
        }
        if *kind != Kind::Post {
            kept.insert(name.clone(), value);
        }
    }
    Ok(kept)
}

fn unknown(name: &str, members: Members<'_>, place: Place) -> RecordError {
    let known = || members.iter().filter(|(_, kind)| *kind != Kind::Ignored).map(|(known, _)| *known);
    let near = || nearest(name, known()).or_else(|| known().find(|known| is_part(name, known)));
    let near = if name.len() > MAX_COMPARED_BYTES { None } else { near() };
    let hint = match (near, place) {
        (Some(near), _) => format!(" (did you mean \"{near}\"?)"),
        (None, Place::Config) => {
            let known: Vec<&str> = members
                .iter()
                .filter(|(_, kind)| !matches!(kind, Kind::Ignored | Kind::Post))
                .map(|(n, _)| *n)
                .collect();
            format!(" (known: {})", known.join(", "))
        }
        (None, Place::Record | Place::Updates) => String::new(),
    };
    RecordError::config(format!("unknown field {}{hint}", place.member(name)))
}

/// The part of `value` that no store can keep.
fn unfit(value: &Value) -> Option<&'static str> {
    const NUL: &str = "a NUL character";
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
        Value::String(text) => text.contains('\0').then_some(NUL),
        Value::Array(items) => items.iter().find_map(unfit),
        Value::Object(members) => {
            members.iter().find_map(|(name, value)| if name.contains('\0') { Some(NUL) } else { unfit(value) })
        }
    }
}

/// Whether `name` is `known` without its first or its last word: its unit, for one.
fn is_part(name: &str, known: &str) -> bool {
    let rest = known.strip_prefix(name).map(|rest| rest.starts_with('_'));
    !name.is_empty() && rest.or_else(|| known.strip_suffix(name).map(|rest| rest.ends_with('_'))).unwrap_or_default()
}

impl Kind {
    /// The value as it is kept; else what was expected and what came. Values are shown only where they are no secret.
    fn read(self, value: &Value) -> Result<Value, (&'static str, String)> {
        let as_it_is = |fits: bool, expected| if fits { Ok(value.clone()) } else { Err((expected, kind_of(value))) };
        match self {
            Self::Ignored => Ok(value.clone()),
            Self::Text => as_it_is(value.is_string(), "a string"),
            Self::Flag => as_it_is(value.is_boolean(), "true or false"),
            Self::Object => as_it_is(value.is_object(), "an object"),
            Self::Uuid => uuid(value).ok_or_else(|| ("a UUID", shown(value))),
            Self::Integer => integer(value).ok_or_else(|| ("an integer", shown(value))),
            Self::Small => {
                let small = integer(value).filter(|value| value.as_i64().is_some_and(|n| i32::try_from(n).is_ok()));
                small.ok_or_else(|| ("an integer from -2147483648 to 2147483647", shown(value)))
            }
            Self::Post => {
                let fits = value.as_str().is_some_and(|word| word.is_empty() || word.eq_ignore_ascii_case("POST"));
                if fits { Ok(value.clone()) } else { Err(("\"POST\"", shown(value))) }
            }
            Self::Texts => each(value, "an array of strings", |item| item.is_string().then(|| item.clone())),
            Self::Uuids => each(value, "an array of UUIDs", uuid),
            Self::TextMap => {
                let members = value.as_object().ok_or_else(|| ("an object of strings", kind_of(value)))?;
                match members.iter().find(|(_, value)| !value.is_string()) {
                    Some((name, other)) => {
                        Err(("an object of strings", format!("{} for {}", kind_of(other), quoted(name))))
                    }
                    None => Ok(value.clone()),
                }
            }
        }
    }
}

fn each(
    value: &Value,
    expected: &'static str,
    read: impl Fn(&Value) -> Option<Value>,
) -> Result<Value, (&'static str, String)> {
    let items = value.as_array().ok_or_else(|| (expected, kind_of(value)))?;
    let item = |(i, item): (usize, &Value)| read(item).ok_or_else(|| (expected, format!("{} at {i}", shown(item))));
    items.iter().enumerate().map(item).collect::<Result<Vec<_>, _>>().map(Value::Array)
}

/// The one spelling of a UUID; the empty text stays.
fn uuid(value: &Value) -> Option<Value> {
    match value.as_str()? {
        "" => Some(value.clone()),
        text => uuid::Uuid::parse_str(text).ok().map(|uuid| uuid.to_string().into()),
    }
}

/// A number without point and exponent.
fn integer(value: &Value) -> Option<Value> {
    let text = value.as_number()?.as_str();
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| value.clone())
}

/// A value that is no secret.
fn shown(value: &Value) -> String {
    match value {
        Value::Null | Value::Array(_) | Value::Object(_) => kind_of(value),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => number.as_str().chars().take(MAX_COMPARED_BYTES).collect(),
        Value::String(text) => quoted(text),
    }
}

fn kind_of(value: &Value) -> String {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    kind.to_owned()
}
