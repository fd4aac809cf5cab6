//! JSON that comes back as it was from a column of JSON, whichever database has it.
//!
//! SQLite keeps the text. PostgreSQL keeps what JSONB can, as it is, so that SQL finds it there: all but U+0000, which
//! is written as two other signs, as in a text, and numbers that it would spell otherwise (`1e2`, `-0`) or that are
//! longer than it takes, which are written as a marked string. What stays lost is the order of members; no two
//! objects that differ in nothing else are told apart anywhere.

use pintle_domain::json::{Number, Value};
use pintle_domain::store::MAX_ROW_DEPTH;

use crate::body;
use crate::db::Dialect;

/// Stands before [`NUL`], [`SELF`] and [`NUMBER`]. It is no character and nobody's text has it, but if it does, it comes
/// back too.
const ESCAPE: char = '\u{fdd0}';

/// After [`ESCAPE`]: U+0000.
const NUL: char = '0';

/// After [`ESCAPE`]: the sign itself.
const SELF: char = '1';

/// After [`ESCAPE`], at the beginning of a string: the rest is a number.
const NUMBER: char = '2';

/// Longest number that is left to PostgreSQL. It takes 131072 digits before the point and 16383 after it; nobody
/// searches for one that is a hundredth as long.
const MAX_PLAIN_DIGITS: usize = 1000;

/// `json` as the column keeps it.
///
/// # Errors
/// It is longer or deeper than what can be read again, in words.
pub(crate) fn kept(dialect: Dialect, json: &Value) -> Result<String, String> {
    match dialect {
        Dialect::Sqlite => body::write(json),
        Dialect::Postgres => {
            // Its depth is what bounds the recursion.
            let text = body::write(json)?;
            if is_kept_by_itself(json) { Ok(text) } else { body::write(&escaped(json)) }
        }
    }
}

/// The value that a column holds.
///
/// # Errors
/// Somebody else wrote it; what is wrong with it, in words.
pub(crate) fn read(dialect: Dialect, text: &str) -> Result<Value, String> {
    let json = body::read::<Value>(text)?;
    match dialect {
        Dialect::Postgres if text.contains(ESCAPE) => Ok(unescaped(json)),
        Dialect::Postgres | Dialect::Sqlite => Ok(json),
    }
}

const _: () = assert!(MAX_ROW_DEPTH < 1000, "the functions below call themselves so deep");

fn is_kept_by_itself(json: &Value) -> bool {
    let is_clear = |text: &str| !text.contains(['\0', ESCAPE]);
    match json {
        Value::Null | Value::Bool(_) => true,
        Value::Number(number) => is_plain(number.as_str()),
        Value::String(text) => is_clear(text),
        Value::Array(items) => items.iter().all(is_kept_by_itself),
        Value::Object(members) => members.iter().all(|(name, value)| is_clear(name) && is_kept_by_itself(value)),
    }
}

/// Whether PostgreSQL spells a number as it is spelled here.
fn is_plain(number: &str) -> bool {
    let is_zero_below_zero = number.starts_with('-') && !number.contains(|sign: char| ('1'..='9').contains(&sign));
    number.len() <= MAX_PLAIN_DIGITS && !number.contains(['e', 'E', '+']) && !is_zero_below_zero
}

fn escaped(json: &Value) -> Value {
    match json {
        Value::Null | Value::Bool(_) => json.clone(),
        Value::Number(number) if is_plain(number.as_str()) => json.clone(),
        Value::Number(number) => format!("{ESCAPE}{NUMBER}{number}").into(),
        Value::String(text) => escaped_text(text).into(),
        Value::Array(items) => items.iter().map(escaped).collect(),
        Value::Object(members) => members.iter().map(|(name, value)| (escaped_text(name), escaped(value))).collect(),
    }
}

fn escaped_text(text: &str) -> String {
    let mut kept = String::with_capacity(text.len() + 8);
    for sign in text.chars() {
        match sign {
            '\0' => kept.extend([ESCAPE, NUL]),
            ESCAPE => kept.extend([ESCAPE, SELF]),
            other => kept.push(other),
        }
    }
    kept
}

fn unescaped(json: Value) -> Value {
    match json {
        Value::Null | Value::Bool(_) | Value::Number(_) => json,
        Value::String(text) => match number_in(&text) {
            Some(number) => Value::Number(number),
            None => unescaped_text(&text).into(),
        },
        Value::Array(items) => items.into_iter().map(unescaped).collect(),
        Value::Object(members) => {
            members.into_iter().map(|(name, value)| (unescaped_text(&name), unescaped(value))).collect()
        }
    }
}

fn number_in(text: &str) -> Option<Number> {
    text.strip_prefix(ESCAPE)?.strip_prefix(NUMBER)?.parse().ok()
}

/// The text that `kept` stands for; what nobody wrote here stays as it is.
fn unescaped_text(kept: &str) -> String {
    let mut text = String::with_capacity(kept.len());
    let mut signs = kept.chars().peekable();
    while let Some(sign) = signs.next() {
        match (sign, signs.peek()) {
            (ESCAPE, Some(&NUL)) => text.push('\0'),
            (ESCAPE, Some(&SELF)) => text.push(ESCAPE),
            (other, _) => {
                text.push(other);
                continue;
            }
        }
        signs.next();
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn json() -> impl Strategy<Value = Value> {
        let number = prop::sample::select(vec![
            "0",
            "-0",
            "-0.0",
            "1e2",
            "1E+2",
            "1.10",
            "-7",
            "1e-400",
            "12345678901234567890.1",
        ]);
        let leaf = prop_oneof![
            Just(Value::Null),
            number.prop_map(|digits| Value::Number(digits.parse().unwrap())),
            "[\u{0}\u{fdd0}012a]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[\u{0}\u{fdd0}012a]{0,3}", inner, 0..3)
                    .prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    fn numbers(json: &Value) -> bool {
        match json {
            Value::Number(number) => is_plain(number.as_str()),
            Value::Array(items) => items.iter().all(numbers),
            Value::Object(members) => members.values().all(numbers),
            Value::Null | Value::Bool(_) | Value::String(_) => true,
        }
    }

    proptest! {
        #[test]
        fn every_json_comes_back(json in json()) {
            for dialect in [Dialect::Sqlite, Dialect::Postgres] {
                let text = kept(dialect, &json).unwrap();
                prop_assert_eq!(read(dialect, &text).unwrap().to_string(), json.to_string());
            }
            let text = kept(Dialect::Postgres, &json).unwrap();
            prop_assert!(!text.contains("\\u0000"), "{}", text);
            prop_assert!(numbers(&body::read(&text).unwrap()), "{}", text);
        }
    }

    #[test]
    fn what_is_long_is_kept_and_what_is_too_deep_is_refused() {
        let digits: Value = serde_json::from_str(&"9".repeat(200_000)).unwrap();
        let text = kept(Dialect::Postgres, &digits).unwrap();
        assert!(text.starts_with('"'));
        assert_eq!(read(Dialect::Postgres, &text), Ok(digits));
        let deep = (0..=MAX_ROW_DEPTH).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
        assert!(kept(Dialect::Postgres, &deep).unwrap_err().contains("nested deeper"));
        assert!(kept(Dialect::Sqlite, &deep).unwrap_err().contains("nested deeper"));
    }
}
