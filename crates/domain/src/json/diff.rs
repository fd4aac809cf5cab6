//! What changed between two values, as a JSON Patch (RFC 6902).

use super::{Object, Value, json};

/// The operations that make `after` of `before`: elements of arrays are compared place by place, so what was put in
/// before others replaces them all.
///
/// ```
/// use pintle_domain::json::{diff, json};
/// let patch = diff(&json!({"a": [1, 2], "b": 1}), &json!({"a": [1], "c": 3}));
/// let expected = json!([
///     {"op": "remove", "path": "/a/1"}, {"op": "add", "path": "/c", "value": 3}, {"op": "remove", "path": "/b"}
/// ]);
/// assert_eq!(patch, expected);
/// ```
pub fn diff(before: &Value, after: &Value) -> Value {
    let mut patch = Patch { path: String::new(), operations: Vec::new() };
    patch.values(before, after);
    Value::Array(patch.operations)
}

struct Patch {
    /// The pointer to the values that are being compared.
    path: String,
    operations: Vec<Value>,
}

impl Patch {
    fn values(&mut self, before: &Value, after: &Value) {
        match (before, after) {
            (Value::Object(before), Value::Object(after)) => self.objects(before, after),
            (Value::Array(before), Value::Array(after)) => self.arrays(before, after),
            (before, after) if before == after => {}
            (_, after) => self.operations.push(json!({"op": "replace", "path": self.path, "value": after})),
        }
    }

    fn objects(&mut self, before: &Object, after: &Object) {
        for (name, value) in after {
            self.within(name, |it| match before.get(name) {
                Some(old) => it.values(old, value),
                None => it.added(value),
            });
        }
        for name in before.keys().filter(|name| !after.contains_key(name)) {
            self.within(name, Self::removed);
        }
    }

    fn arrays(&mut self, before: &[Value], after: &[Value]) {
        for (i, (old, value)) in before.iter().zip(after).enumerate() {
            self.within(&i.to_string(), |it| it.values(old, value));
        }
        for (i, value) in after.iter().enumerate().skip(before.len()) {
            self.within(&i.to_string(), |it| it.added(value));
        }
        // Once one is gone, the next one stands in its place.
        for _ in after.len()..before.len() {
            self.within(&after.len().to_string(), Self::removed);
        }
    }

    fn within(&mut self, step: &str, compare: impl FnOnce(&mut Self)) {
        let len = self.path.len();
        self.path.push('/');
        self.path.push_str(&step.replace('~', "~0").replace('/', "~1"));
        compare(self);
        self.path.truncate(len);
    }

    fn added(&mut self, value: &Value) {
        self.operations.push(json!({"op": "add", "path": self.path, "value": value}));
    }

    fn removed(&mut self) {
        self.operations.push(json!({"op": "remove", "path": self.path}));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::tests::values;

    #[test]
    fn a_patch_says_what_changed() {
        #[track_caller]
        fn check(before: Value, after: Value, expected: Value) {
            assert_eq!(diff(&before, &after), expected);
        }
        check(json!(1), json!(1), json!([]));
        check(json!({"a": 1}), Value::Null, json!([{"op": "replace", "path": "", "value": null}]));
        check(json!({"": 1}), json!({"": 2}), json!([{"op": "replace", "path": "/", "value": 2}]));
        check(json!({"a/~b": [1]}), json!({"a/~b": [2]}), json!([{"op": "replace", "path": "/a~1~0b/0", "value": 2}]));
        let gone = json!({"op": "remove", "path": "/1"});
        check(json!([1, 2, 3]), json!([1]), json!([gone, gone]));
        let one = |text: &str| crate::json::parse(text).unwrap();
        let path = json!([{"op": "replace", "path": "/n", "value": one("1.0")}]);
        check(json!({"n": 1}), json!({"n": one("1.0")}), path);
    }

    /// Applies what [`diff`] writes.
    fn applied(mut value: Value, patch: &Value) -> Value {
        for operation in patch.as_array().unwrap() {
            let path = operation["path"].as_str().unwrap();
            let Some((parent, step)) = path.rsplit_once('/') else {
                value = operation["value"].clone();
                continue;
            };
            let step = step.replace("~1", "/").replace("~0", "~");
            let removed = operation["op"] == "remove";
            match value.pointer_mut(parent).unwrap() {
                Value::Object(members) if removed => drop(members.shift_remove(&step).unwrap()),
                Value::Object(members) => drop(members.insert(step, operation["value"].clone())),
                Value::Array(items) if removed => drop(items.remove(step.parse().unwrap())),
                Value::Array(items) if operation["op"] == "add" => {
                    items.insert(step.parse().unwrap(), operation["value"].clone());
                }
                Value::Array(items) => items[step.parse::<usize>().unwrap()] = operation["value"].clone(),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => panic!("{operation}"),
            }
        }
        value
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn a_patch_makes_one_value_of_the_other(before in values(), after in values()) {
            prop_assert_eq!(applied(before.clone(), &diff(&before, &after)), after.clone());
            let (old, new) = (json!({"/": before, "x": [1]}), json!({"/": after, "x": [1, after]}));
            prop_assert_eq!(applied(old.clone(), &diff(&old, &new)), new);
        }
    }
}
