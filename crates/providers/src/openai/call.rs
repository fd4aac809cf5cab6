//! Tool calls that arrive in pieces.

use std::collections::{HashMap, HashSet};

use pintle_domain::json::Value;
use pintle_domain::message::CallPart;

use crate::ProviderError;
use crate::call_id::fresh_id;

/// Most calls in one answer; models ask for a few, a server that sends thousands is broken.
const MAX_CALLS: usize = 256;

/// The calls of one answer so far.
///
/// Servers agree on little: the index may be missing or always 0, the id may come late, with every piece or never,
/// and a whole call may come at once.
#[derive(Default)]
pub(super) struct Calls {
    calls: Vec<CallPart>,
    by_index: HashMap<u64, usize>,
}

impl Calls {
    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Takes one piece.
    pub(super) fn feed(&mut self, piece: &Value) -> Result<(), ProviderError> {
        let function = piece.get("function").unwrap_or(&Value::Null);
        let id = text(piece, "id");
        let name = text(function, "name");
        let slot = self.slot(piece.get("index").and_then(Value::as_u64), id, name);
        if slot == self.calls.len() {
            if slot == MAX_CALLS {
                return Err(ProviderError::fatal(format!("the answer asks for more than {MAX_CALLS} tool calls")));
            }
            self.calls.push(CallPart::new("", "", ""));
        }
        let Some(call) = self.calls.get_mut(slot) else { return Ok(()) };
        if call.id.is_empty() {
            call.id = id.into();
        }
        if call.function.name != name {
            call.function.name.push_str(name);
        }
        match function.get("arguments") {
            Some(Value::String(text)) => call.function.arguments.push_str(text),
            Some(whole @ Value::Object(_)) => call.function.arguments = whole.to_string(),
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_)) | None => {}
        }
        call.function.thought_signature.push_str(text(function, "thought_signature"));
        if let Some(extra) = piece.get("extra_content").filter(|extra| !extra.is_null()) {
            call.extra_content = Some(extra.clone());
        }
        Ok(())
    }

    /// Which call a piece belongs to; one past the last for a new one.
    fn slot(&mut self, index: Option<u64>, id: &str, name: &str) -> usize {
        let new = self.calls.len();
        let known = |slot: &usize| self.calls.get(*slot);
        let Some(index) = index else {
            let same_id = || self.calls.iter().rposition(|call| !id.is_empty() && call.id == id);
            let last = new.checked_sub(1);
            let starts_anew =
                !name.is_empty() && last.as_ref().and_then(known).is_some_and(|c| !c.function.name.is_empty());
            let goes_on = if id.is_empty() && !starts_anew { last } else { None };
            return same_id().or(goes_on).unwrap_or(new);
        };
        let slot = self.by_index.get(&index).copied().filter(|slot| {
            let other_id = |call: &CallPart| !id.is_empty() && !call.id.is_empty() && call.id != id;
            // Servers that give each call the index 0 tell them apart by id and name.
            name.is_empty() || !known(slot).is_some_and(other_id)
        });
        let slot = slot.unwrap_or(new);
        self.by_index.insert(index, slot);
        slot
    }

    /// The calls in the order in which they began, each with an id of its own.
    pub(super) fn finish(mut self) -> Vec<CallPart> {
        let mut used = HashSet::new();
        for call in &mut self.calls {
            if call.id.is_empty() || used.contains(&call.id) {
                call.id = fresh_id();
            }
            used.insert(call.id.clone());
        }
        self.calls
    }
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value.get(member).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `id name(arguments)` of each call; ids that were made up are `*`.
    fn merged(pieces: &[&str]) -> Vec<String> {
        let mut calls = Calls::default();
        for piece in pieces {
            calls.feed(&pintle_domain::json::parse(piece).unwrap()).unwrap();
        }
        let calls = calls.finish();
        let ids: HashSet<&str> = calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(ids.len(), calls.len(), "ids differ");
        let id = |id: &str| if id.starts_with("call_") && id.len() == 29 { "*".to_owned() } else { id.to_owned() };
        calls.iter().map(|c| format!("{} {}({})", id(&c.id), c.function.name, c.function.arguments)).collect()
    }

    #[test]
    fn pieces_are_merged_by_index() {
        let pieces = [
            r#"{"index":0,"id":"a","type":"function","function":{"name":"x","arguments":""}}"#,
            r#"{"index":1,"id":"b","function":{"name":"y","arguments":"{\"q\""}}"#,
            r#"{"index":0,"function":{"arguments":"{\"n\":1.0"}}"#,
            r#"{"index":1,"id":"b","function":{"name":"y","arguments":":2}"}}"#,
            r#"{"index":0,"id":null,"function":{"name":null,"arguments":"0}"}}"#,
        ];
        assert_eq!(merged(&pieces), [r#"a x({"n":1.00})"#, r#"b y({"q":2})"#]);
    }

    #[test]
    fn ids_may_be_late_missing_or_used_twice() {
        let late = [r#"{"index":0,"function":{"name":"x"}}"#, r#"{"index":0,"id":"a","function":{"arguments":"{}"}}"#];
        assert_eq!(merged(&late), ["a x({})"]);
        let missing =
            [r#"{"index":0,"function":{"name":"x","arguments":"{}"}}"#, r#"{"index":1,"function":{"name":"x"}}"#];
        assert_eq!(merged(&missing), ["* x({})", "* x()"]);
        let twice =
            [r#"{"index":0,"id":"a","function":{"name":"x"}}"#, r#"{"index":1,"id":"a","function":{"name":"y"}}"#];
        assert_eq!(merged(&twice), ["a x()", "* y()"]);
    }

    #[test]
    fn whole_calls_may_share_an_index_or_have_none() {
        let zero = [
            r#"{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}"#,
            r#"{"index":0,"id":"b","function":{"name":"x","arguments":"{\"k\":1}"}}"#,
        ];
        assert_eq!(merged(&zero), ["a x({})", r#"b x({"k":1})"#]);
        let none = [
            r#"{"function":{"name":"x","arguments":{"n":10000000000000000000000.0}}}"#,
            r#"{"function":{"name":"x"}}"#,
            r#"{"function":{"arguments":"{}"}}"#,
            r#"{"id":"c","function":{"name":"y","arguments":"{"}}"#,
            r#"{"id":"c","function":{"arguments":"}"}}"#,
        ];
        assert_eq!(merged(&none), [r#"* x({"n":10000000000000000000000.0})"#, "* x({})", "c y({})"]);
    }

    #[test]
    fn a_flood_of_calls_is_refused() {
        let mut calls = Calls::default();
        let outcome = (0..1000)
            .try_for_each(|i| calls.feed(&pintle_domain::json::json!({"index": i, "function": {"name": "x"}})));
        assert_eq!(outcome, Err(ProviderError::fatal("the answer asks for more than 256 tool calls")));
    }

    #[test]
    fn foreign_content_of_a_call_is_kept() {
        let mut calls = Calls::default();
        let piece = r#"{"id":"a","function":{"name":"x","thought_signature":"s"},"extra_content":{"google":{"t":1}}}"#;
        calls.feed(&pintle_domain::json::parse(piece).unwrap()).unwrap();
        let call = calls.finish().remove(0);
        assert_eq!(call.function.thought_signature, "s");
        assert_eq!(call.extra_content, Some(pintle_domain::json::json!({"google": {"t": 1}})));
    }
}
