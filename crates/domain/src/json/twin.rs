//! Names that stand twice in one object: readers differ in which one they take.

use std::collections::BTreeSet;

use super::end_of_string;
use super::read::{parse, read};
use super::{MAX_DEPTH, Value};

/// A name that stands twice in one object of `text`, which is JSON.
fn twin(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    // The names of each object that is open; none for a list.
    let mut open: Vec<Option<BTreeSet<String>>> = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' => open.push(Some(BTreeSet::new())),
            b'[' => open.push(None),
            b'}' | b']' => drop(open.pop()),
            b'"' => {
                let end = (end_of_string(bytes, at + 1) + 1).min(bytes.len());
                let is_name = bytes[end..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':');
                if let Some(names) = open.last_mut().and_then(Option::as_mut).filter(|_| is_name)
                    && let Some(name) = name_of(&text[at..end])
                    && !names.insert(name.clone())
                {
                    return Some(name);
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// The text that stands in quotation marks.
fn name_of(quoted: &str) -> Option<String> {
    let plain = quoted.strip_prefix('"')?.strip_suffix('"')?;
    if !plain.contains('\\') {
        return Some(plain.to_owned());
    }
    match read(quoted, MAX_DEPTH) {
        Ok(Value::String(name)) => Some(name),
        Ok(_) | Err(_) => None,
    }
}

/// Parses JSON text as [`parse`] does, if everybody reads it the same.
///
/// # Errors
/// It is no JSON, or a name stands twice in one object.
pub fn parse_alike(text: &str) -> Result<Value, NotAlike> {
    let value = parse(text).map_err(NotAlike::NotJson)?;
    twin(text).map_or(Ok(value), |name| Err(NotAlike::Twice(name)))
}

/// Why a text is not one that everybody reads the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAlike {
    /// What is wrong with it, and where.
    NotJson(String),
    /// The name that stands twice in one object.
    Twice(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_stands_twice_is_found_wherever_it_stands() {
        let check = |text: &str| twin(text);
        assert_eq!(check(r#"{"a": 1, "b": {"a": 1}, "c": [{"a": "a"}, {"a": "{\"a\": 1, \"a\": 2}"}]}"#), None);
        assert_eq!(check(r#"{"a": "x", "a" : "y"}"#).as_deref(), Some("a"));
        assert_eq!(check(r#"{"a": [{"b": "\\", "\u0062": 1}]}"#).as_deref(), Some("b"));
        assert_eq!(check(r#"["a", "a"]"#), None);
        assert_eq!(check(r#"{"é\"": "}", "\u00e9\"": 1}"#).as_deref(), Some("é\""));
    }

    #[test]
    fn what_is_no_json_is_told_before_what_stands_twice() {
        assert_eq!(parse_alike(r#"{"a":1,"a":2}"#), Err(NotAlike::Twice("a".into())));
        assert!(matches!(parse_alike(r#"{"a":1,"a":2"#), Err(NotAlike::NotJson(_))));
        assert!(parse_alike("[1]").is_ok_and(|value| value.is_array()));
    }
}
