//! The params of a method: typed, and nothing in them that nobody reads.

use jiff::Timestamp;
use pintle_domain::json::{Object, Value};

use crate::error::ApiError;

/// Params, of which all members are known.
pub(crate) struct Params<'a>(Option<&'a Object>);

impl<'a> Params<'a> {
    pub(crate) fn of(params: &'a Value, known: &[&str]) -> Result<Self, ApiError> {
        match params {
            Value::Null => Ok(Self(None)),
            Value::Object(members) => match members.keys().find(|name| !known.contains(&name.as_str())) {
                None => Ok(Self(Some(members))),
                Some(other) => Err(ApiError::invalid(format!("invalid request: unknown field {other:?}"))),
            },
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(ApiError::invalid("invalid request: params must be an object"))
            }
        }
    }

    /// A member; `null` is like none.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        self.0?.get(name).filter(|value| !value.is_null())
    }

    /// A text; the empty one is like none.
    pub(crate) fn text(&self, name: &str) -> Result<Option<&'a str>, ApiError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str()).filter(|text| !text.is_empty())),
            Some(_) => Err(wrong(name, "a string")),
        }
    }

    /// A text that must be there.
    pub(crate) fn needed(&self, name: &str) -> Result<&'a str, ApiError> {
        self.text(name)?.ok_or_else(|| ApiError::invalid(format!("{name} is required")))
    }

    /// A text, also the empty one.
    pub(crate) fn said(&self, name: &str) -> Result<Option<&'a str>, ApiError> {
        self.get(name).map(|value| value.as_str().ok_or_else(|| wrong(name, "a string"))).transpose()
    }

    pub(crate) fn object(&self, name: &str) -> Result<Option<&'a Object>, ApiError> {
        self.get(name).map(|value| value.as_object().ok_or_else(|| wrong(name, "an object"))).transpose()
    }

    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, ApiError> {
        self.get(name).map(|value| value.as_bool().ok_or_else(|| wrong(name, "true or false"))).transpose()
    }

    /// A number from 0 to `most`.
    pub(crate) fn count(&self, name: &str, most: usize) -> Result<Option<usize>, ApiError> {
        let count = |value: &Value| value.as_u64().and_then(|count| usize::try_from(count).ok());
        let good = |value: &Value| count(value).filter(|count| *count <= most);
        let expected = || match most {
            usize::MAX => "a whole number, at least 0".to_owned(),
            most => format!("a whole number from 0 to {most}"),
        };
        self.get(name).map(|value| good(value).ok_or_else(|| wrong(name, &expected()))).transpose()
    }

    /// A word that `named` knows.
    pub(crate) fn word<T>(&self, name: &str, named: impl Fn(&str) -> Option<T>) -> Result<Option<T>, ApiError> {
        let unknown = |word: &str| ApiError::invalid(format!("unknown {name} {word:?}"));
        self.text(name)?.map(|word| named(word).ok_or_else(|| unknown(word))).transpose()
    }

    /// A moment.
    pub(crate) fn moment(&self, name: &str) -> Result<Option<Timestamp>, ApiError> {
        let wrong = |_| wrong(name, "a time such as \"2026-01-31T12:00:00Z\"");
        self.text(name)?.map(|text| text.parse().map_err(wrong)).transpose()
    }

    /// A list of texts.
    pub(crate) fn texts(&self, name: &str) -> Result<Option<Vec<String>>, ApiError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let texts = value
            .as_array()
            .and_then(|all| all.iter().map(|one| one.as_str().map(str::to_owned)).collect::<Option<Vec<String>>>());
        texts.map(Some).ok_or_else(|| wrong(name, "a list of strings"))
    }
}

pub(crate) fn wrong(name: &str, expected: &str) -> ApiError {
    ApiError::invalid(format!("invalid request: field {name:?} must be {expected}"))
}

#[cfg(test)]
mod tests {
    use pintle_domain::json::json;

    use super::*;

    #[test]
    fn a_number_that_is_none_says_what_is_expected() {
        let said = |value: Value, most| {
            let params = json!({ "n": value });
            Params::of(&params, &["n"]).unwrap().count("n", most).map_err(|error| error.message)
        };
        let refused = |expected: &str| Err(format!("invalid request: field \"n\" must be {expected}"));
        assert_eq!(said(json!(-3), usize::MAX), refused("a whole number, at least 0"));
        assert_eq!(said(json!(1.5), 200), refused("a whole number from 0 to 200"));
        assert_eq!(said(json!(201), 200), refused("a whole number from 0 to 200"));
        assert_eq!((said(json!(7), 200), said(json!(null), 200)), (Ok(Some(7)), Ok(None)));
    }
}
