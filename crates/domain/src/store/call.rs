//! The call that a ruling decided on, as it is kept: without secrets, and no longer than a person reads.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::execution::{REDACTED, masked, names_a_password, names_a_secret};
use crate::hex::hex;
use crate::json::{MAX_DEPTH, Object, Value, depth};

/// The longest arguments that are kept whole, in bytes of JSON.
pub const MAX_CALL_BYTES: usize = 2048;

/// The arguments of a call as the gates left them, without mail addresses, tokens and keys. This is also their JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoredCall {
    /// The arguments, where they take at most [`MAX_CALL_BYTES`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The beginning of longer ones, as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beginning: Option<String>,
    /// The bytes that the longer ones take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<usize>,
    /// The SHA-256 of the longer ones, in hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

impl StoredCall {
    /// What is kept of `arguments`.
    pub fn of(arguments: &Object) -> Self {
        let arguments = Value::Object(without_secrets(arguments));
        let text = arguments.to_string();
        if text.len() <= MAX_CALL_BYTES && depth(text.as_bytes()) <= MAX_DEPTH {
            return Self { arguments: Some(arguments), ..Self::default() };
        }
        Self {
            arguments: None,
            beginning: Some(text[..text.floor_char_boundary(MAX_CALL_BYTES)].to_owned()),
            bytes: Some(text.len()),
            sha256: Some(hex(&Sha256::digest(&text))),
        }
    }

    /// What stands for the arguments on one line: JSON, or the beginning of it and its size.
    pub fn line(&self) -> String {
        match (&self.arguments, &self.beginning) {
            (Some(arguments), _) => arguments.to_string(),
            (None, Some(beginning)) => {
                format!("{beginning}… ({} bytes)", self.bytes.unwrap_or(beginning.len()))
            }
            (None, None) => String::new(),
        }
    }

    /// What a person reads of the call: the text, where the arguments are one text; else [`line`](Self::line).
    pub fn shown(&self) -> String {
        let members = self.arguments.as_ref().and_then(Value::as_object);
        let mut texts = members.into_iter().flatten().map(|(_, value)| value.as_str());
        match (texts.next(), texts.next()) {
            (Some(Some(text)), None) => text.to_owned(),
            (_, _) => self.line(),
        }
    }
}

/// `members` with every text in them masked, names as well; whole where the name says that it is a secret.
fn without_secrets(members: &Object) -> Object {
    let mut kept = Object::new();
    for (name, value) in members {
        let told: Value = match value {
            Value::String(text) if !text.is_empty() && names_a_secret(name) => REDACTED.into(),
            Value::Number(_) if names_a_password(name) => REDACTED.into(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                masked_value(value)
            }
        };
        let mut shown = masked(name).into_owned();
        // Two names may look the same without what was secret in them.
        if shown != *name && kept.contains_key(&shown) {
            shown = format!("{shown} {}", kept.len() + 1);
        }
        kept.insert(shown, told);
    }
    kept
}

fn masked_value(value: &Value) -> Value {
    match value {
        Value::String(text) => masked(text).into_owned().into(),
        Value::Array(items) => items.iter().map(masked_value).collect::<Vec<_>>().into(),
        Value::Object(members) => without_secrets(members).into(),
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_)) => plain.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    fn of(arguments: &Value) -> StoredCall {
        StoredCall::of(arguments.as_object().unwrap())
    }

    #[test]
    fn arguments_are_kept_in_their_order_without_secrets() {
        let call = of(&json!({"to": "ann@example.org", "n": 1.50, "deep": [{"key": "sk-abcdefgh1234"}, null, true]}));
        assert_eq!(call.line(), r#"{"to":"[REDACTED]","n":1.5,"deep":[{"key":"[REDACTED]"},null,true]}"#);
        assert_eq!(
            json!(call),
            json!({"arguments": {"to": "[REDACTED]", "n": 1.5, "deep": [{"key": "[REDACTED]"}, null, true]}})
        );
    }

    #[test]
    fn a_secret_that_only_its_name_tells_of_is_masked() {
        let call = of(&json!({"password": "two words", "user": "ann", "deep": {"api_key": "k-1", "passwd": 123_456}}));
        assert_eq!(
            call.line(),
            r#"{"password":"[REDACTED]","user":"ann","deep":{"api_key":"[REDACTED]","passwd":"[REDACTED]"}}"#
        );
        let open = json!({"max_tokens": 4096, "max_token": 512, "token": "", "secret": false, "title": "a token"});
        assert_eq!(json!(of(&open)), json!({ "arguments": open }));
    }

    #[test]
    fn names_are_masked_and_stay_apart() {
        let call = of(&json!({"ann@example.org": 1, "bob@example.org": 2, "cc": {"ann@example.org": 3}}));
        assert_eq!(call.line(), r#"{"[REDACTED]":1,"[REDACTED] 2":2,"cc":{"[REDACTED]":3}}"#);
    }

    #[test]
    fn a_call_with_one_text_reads_as_that_text() {
        assert_eq!(of(&json!({"command": "git push --force"})).shown(), "git push --force");
        assert_eq!(of(&json!({"command": "ls", "dir": "x"})).shown(), r#"{"command":"ls","dir":"x"}"#);
        assert_eq!(of(&json!({"n": 1})).shown(), r#"{"n":1}"#);
        assert_eq!(of(&json!({})).shown(), "{}");
    }

    #[test]
    fn long_arguments_are_kept_by_their_beginning_and_their_digest() {
        let whole = of(&json!({"text": "x".repeat(MAX_CALL_BYTES - r#"{"text":""}"#.len())}));
        assert!(whole.arguments.is_some() && whole.sha256.is_none());
        let call = of(&json!({"text": "é".repeat(MAX_CALL_BYTES)}));
        let text = format!(r#"{{"text":"{}"}}"#, "é".repeat(MAX_CALL_BYTES));
        let beginning = call.beginning.clone().unwrap();
        assert!(text.starts_with(&beginning) && (MAX_CALL_BYTES - 1..=MAX_CALL_BYTES).contains(&beginning.len()));
        assert_eq!((call.bytes, call.sha256.as_deref()), (Some(text.len()), Some(&*hex(&Sha256::digest(&text)))));
        assert!(call.line().ends_with(&format!("… ({} bytes)", text.len())));
        let back: StoredCall = serde_json::from_str(&serde_json::to_string(&call).unwrap()).unwrap();
        assert_eq!(back, call);
    }
}
