//! Values of libraries that speak serde_json's own type. Converting is for their edges: their numbers are those of the
//! machine, and their objects have an order of their own.

use super::{Number, Value};

impl From<serde_json::Value> for Value {
    fn from(value: serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(inner) => Self::Bool(inner),
            serde_json::Value::Number(number) => Self::Number(Number::of(&number.to_string())),
            serde_json::Value::String(text) => Self::String(text),
            serde_json::Value::Array(items) => items.into_iter().collect(),
            serde_json::Value::Object(members) => {
                members.into_iter().map(|(name, value)| (name, Self::from(value))).collect()
            }
        }
    }
}

impl From<Value> for serde_json::Value {
    /// The value, with each number as the nearest one of the machine. A number beyond the doubles becomes the
    /// largest of its sign, so that no bound that it fails is kept by it.
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(inner) => Self::Bool(inner),
            Value::Number(number) => nearest(&number).into(),
            Value::String(text) => Self::String(text),
            Value::Array(items) => items.into_iter().map(Self::from).collect(),
            Value::Object(members) => members.into_iter().map(|(name, value)| (name, Self::from(value))).collect(),
        }
    }
}

fn nearest(number: &Number) -> serde_json::Number {
    if let Some(number) = number.as_u64() {
        return number.into();
    }
    // An integer would lose the sign of zero.
    if let Some(number) = number.as_i64().filter(|number| *number != 0) {
        return number.into();
    }
    let largest = if number.as_str().starts_with('-') { f64::MIN } else { f64::MAX };
    serde_json::Number::from_f64(number.as_f64().unwrap_or(largest)).expect("both are finite")
}

#[cfg(test)]
mod tests {
    use crate::json::{Value, parse};

    #[test]
    fn values_go_over_and_come_back() {
        let text = r#"{"a":[1,-2,1.5,18446744073709551615,null,true,"t"],"b":{"c":{}}}"#;
        let value = parse(text).unwrap();
        let theirs = serde_json::Value::from(value.clone());
        assert_eq!(theirs, serde_json::from_str::<serde_json::Value>(text).unwrap());
        assert_eq!(Value::from(theirs), value);
    }

    #[test]
    fn numbers_become_the_nearest() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            assert_eq!(serde_json::Value::from(parse(text).unwrap()).to_string(), expected);
        }
        check("12345678901234567890.10", "1.2345678901234567e+19");
        check("1.0", "1.0");
        check("-0", "-0.0");
        check("1e999", "1.7976931348623157e+308");
        check("-1e999", "-1.7976931348623157e+308");
    }
}
