//! A value as the patches of records leave it. Pure.
//!
//! Records keep what a hook put somewhere, but not where a later hook put something else: so the places whose last value
//! is not kept are known, and nothing is guessed.

use std::collections::BTreeSet;

use pintle_domain::json::Value;

/// A value that patches are laid over, one after another.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Patched {
    pub(super) value: Value,
    /// The places whose value is not kept, as JSON Pointers.
    unknown: BTreeSet<String>,
    /// Whether a patch was not kept at all, or does not go with the value.
    is_broken: bool,
}

impl Patched {
    pub(super) fn new(value: Value) -> Self {
        Self { value, unknown: BTreeSet::new(), is_broken: false }
    }

    /// Whether all that was put there is kept.
    pub(super) fn is_complete(&self) -> bool {
        !self.is_broken && self.unknown.is_empty()
    }

    /// Lays the JSON Patch `patch` over it.
    pub(super) fn lay(&mut self, patch: &Value) {
        let Some(operations) = patch.as_array() else {
            self.is_broken = true;
            return;
        };
        for operation in operations {
            let text = |name: &str| operation[name].as_str().unwrap_or_default();
            let path = text("path");
            let given = operation.get("value");
            match (text("op"), given) {
                ("remove", _) => self.forget(path),
                (_, None) => {
                    self.unknown.insert(path.to_owned());
                }
                (_, Some(_)) => self.forget(path),
            }
            let done = put(&mut self.value, path, text("op"), given.cloned());
            self.is_broken |= done.is_none();
        }
    }

    /// The place has a value that is kept, or none; and so have those in it.
    fn forget(&mut self, path: &str) {
        let below = format!("{path}/");
        self.unknown.retain(|place| place != path && !place.starts_with(&below));
    }
}

/// Does one operation; nothing where there is no such place.
fn put(value: &mut Value, path: &str, op: &str, given: Option<Value>) -> Option<()> {
    let Some((above, name)) = path.rsplit_once('/') else {
        *value = given.unwrap_or_default();
        return Some(());
    };
    let name = name.replace("~1", "/").replace("~0", "~");
    match at(value, above)? {
        Value::Object(members) => match op {
            "remove" => members.shift_remove(&name).map(drop),
            _ => {
                members.insert(name, given.unwrap_or_default());
                Some(())
            }
        },
        Value::Array(items) => {
            let place: usize = name.parse().ok()?;
            match op {
                "remove" if place < items.len() => drop(items.remove(place)),
                "add" if place <= items.len() => items.insert(place, given.unwrap_or_default()),
                "replace" => *items.get_mut(place)? = given.unwrap_or_default(),
                _ => return None,
            }
            Some(())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// The value at a JSON Pointer.
fn at<'a>(value: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    let mut here = value;
    for step in path.split('/').skip(1) {
        let name = step.replace("~1", "/").replace("~0", "~");
        here = match here {
            Value::Object(members) => members.get_mut(&name)?,
            Value::Array(items) => items.get_mut(name.parse::<usize>().ok()?)?,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
        };
    }
    Some(here)
}

#[cfg(test)]
mod tests {
    use pintle_domain::json::{diff, json};

    use super::*;

    #[test]
    fn patches_lead_from_one_value_to_the_other() {
        let values = [
            json!({}),
            json!({"a": 1, "b/c": [1, 2, 3]}),
            json!({"a": {"~": "x"}, "b/c": [1, {"d": 2}]}),
            json!({"b/c": [{"d": null}, 4, 5, 6]}),
            json!(7),
        ];
        for before in &values {
            for after in &values {
                let mut patched = Patched::new(before.clone());
                patched.lay(&diff(before, after));
                assert_eq!((&patched.value, patched.is_complete()), (after, true), "{before} {after}");
            }
        }
    }

    #[test]
    fn a_place_whose_value_is_not_kept_is_known_until_somebody_puts_one_there() {
        let mut patched = Patched::new(json!({"a": 1}));
        patched.lay(&json!([{"op": "replace", "path": "/a"}]));
        assert!(!patched.is_complete());
        patched.lay(&json!([{"op": "replace", "path": "/a", "value": 3}]));
        assert_eq!((patched.is_complete(), &patched.value), (true, &json!({"a": 3})));
        patched.lay(&json!([{"op": "add", "path": "/b"}, {"op": "remove", "path": "/b"}]));
        assert_eq!((patched.is_complete(), &patched.value), (true, &json!({"a": 3})));
        for strange in [json!({"omitted_bytes": 9}), json!([{"op": "replace", "path": "/x/y", "value": 1}])] {
            let mut patched = Patched::new(json!({"a": 1}));
            patched.lay(&strange);
            assert!(!patched.is_complete(), "{strange}");
        }
    }
}
