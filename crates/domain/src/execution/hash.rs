//! The fingerprint of an input, as the published table has it.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};

use crate::hex::hex;
use crate::json::{Object, Value};

/// Hexadecimal SHA-256 over the tool's name, a zero byte and the canonical JSON of its input; `null` where there is
/// none. Keys are sorted bytewise, `< > &` and the two line separators are escaped, numbers are written as doubles in
/// their shortest form. Source: the published format of executions.
pub fn input_hash(tool: &str, input: Option<&Object>) -> String {
    let mut text = String::from(tool);
    text.push('\0');
    match input {
        Some(members) => object(members, &mut text),
        None => text.push_str("null"),
    }
    hex(&Sha256::digest(text.as_bytes()))
}

fn object(members: &Object, out: &mut String) {
    let sorted: BTreeMap<&str, &Value> = members.iter().map(|(key, value)| (key.as_str(), value)).collect();
    out.push('{');
    for (i, (key, member)) in sorted.into_iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        string(key, out);
        out.push(':');
        value(member, out);
    }
    out.push('}');
}

fn value(value_: &Value, out: &mut String) {
    match value_ {
        Value::Null => out.push_str("null"),
        Value::Bool(is) => out.push_str(if *is { "true" } else { "false" }),
        // What no double can hold keeps its digits.
        Value::Number(number) => match number.as_f64().filter(|double| double.is_finite()) {
            Some(double) => out.push_str(&shortest(double)),
            None => out.push_str(&number.to_string()),
        },
        Value::String(text) => string(text, out),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                value(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => object(members, out),
    }
}

fn string(text: &str, out: &mut String) {
    let plain = Value::from(text).to_string();
    for c in plain.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
}

/// A double as ECMAScript's `Number::toString` writes it.
fn shortest(double: f64) -> String {
    if double == 0.0 {
        return "0".into();
    }
    let scientific = format!("{:e}", double.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    // The place of the decimal point, counted from the first digit.
    let point = exponent.parse::<i32>().unwrap_or_default() + 1;
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let zeros = |n: i32| "0".repeat(usize::try_from(n).unwrap_or_default());
    let split = |at: i32| digits.split_at(usize::try_from(at).unwrap_or_default());
    let body = match point {
        _ if count <= point && point <= 21 => format!("{digits}{}", zeros(point - count)),
        1..=21 => {
            let (whole, rest) = split(point);
            format!("{whole}.{rest}")
        }
        -5..=0 => format!("0.{}{digits}", zeros(-point)),
        _ => {
            let (first, rest) = split(1);
            let dot = if rest.is_empty() { "" } else { "." };
            format!("{first}{dot}{rest}e{}{}", if point > 0 { '+' } else { '-' }, (point - 1).abs())
        }
    };
    if double < 0.0 { format!("-{body}") } else { body }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_fingerprints() {
        let check = |tool: &str, input: Option<&str>, expected: &str| {
            let input = input.map(|text| serde_json::from_str::<Object>(text).unwrap());
            assert_eq!(input_hash(tool, input.as_ref()), expected, "{tool}");
        };
        check("", None, "b018d21dce8b6a938aecc2bb5ffdef6c1cd0d821f0f282c0eb96a08a36ef7bfe");
        check("", Some("{}"), "28a3a18f6cd6406b086e9ffda1f9b8a13dbcf44b0f3f32cb9031a11fd053acf9");
        check("exec", Some(r#"{"cmd":"ls"}"#), "04d932991efd80dddae62fe0ae6e53c58b15001c60a7872026d51d033d4f7e95");
        check(
            "write_file",
            Some(r#"{"path":"/x","content":"a<b>&","n":[1,{"b":null,"a":true}]}"#),
            "9999261a393a52d670e32ebbf3e2a636147728071eb2c7647edc61d4f17bf905",
        );
    }

    #[test]
    fn numbers_are_written_as_a_browser_writes_them() {
        for (number, expected) in [
            (1.0, "1"),
            (-0.0, "0"),
            (-1.5, "-1.5"),
            (100.0, "100"),
            (123.456, "123.456"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.5e300, "1.5e+300"),
            (0.000_001, "0.000001"),
            (0.000_000_1, "1e-7"),
            (1.25e-9, "1.25e-9"),
            (9_007_199_254_740_993.0, "9007199254740992"),
        ] {
            assert_eq!(shortest(number), expected);
        }
    }
}
