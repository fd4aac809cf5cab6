//! The top of a message that cannot be read: whom it answers, or who waits for an answer to it.

use pintle_domain::json::{Value, parse};

/// The longest id that is looked at, in bytes: ids are numbers and short words.
const MAX_ID_BYTES: usize = 256;

/// What stands at the top of a message.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Outline {
    /// Its `id`; nothing where it is absent or `null`.
    pub(crate) id: Option<Value>,
    /// Whether it has a `method`.
    pub(crate) has_method: bool,
}

/// The top of the object `text`, in one pass that takes no stack, however deep it is nested. What follows the first
/// fault is not looked at.
pub(crate) fn outline(text: &str) -> Outline {
    let (bytes, mut found) = (text.as_bytes(), Outline::default());
    let (mut at, mut depth) = (0_usize, 0_usize);
    // The name of the member at the top whose value stands here; none where a name is due.
    let mut member: Option<Value> = None;
    while let Some(byte) = bytes.get(at) {
        let end = match byte {
            b'"' => string_end(bytes, at),
            b'{' | b'[' => {
                depth += 1;
                at + 1
            }
            b'}' | b']' if depth <= 1 => break,
            b'}' | b']' => {
                depth -= 1;
                at + 1
            }
            b',' if depth == 1 => {
                member = None;
                at + 1
            }
            b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' => at + 1,
            _ => word_end(bytes, at),
        };
        let is_word = !matches!(byte, b'{' | b'[' | b'}' | b']' | b',' | b':' | b' ' | b'\t' | b'\r' | b'\n');
        if depth == 1 && is_word {
            let word = text.get(at..end).filter(|word| word.len() <= MAX_ID_BYTES).and_then(|word| parse(word).ok());
            match &member {
                None => {
                    found.has_method |= word.as_ref().is_some_and(|name| *name == "method");
                    member = Some(word.unwrap_or_default());
                }
                Some(name) if *name == "id" => found.id = word.filter(|id| !id.is_null()),
                Some(_) => {}
            }
        }
        at = end;
    }
    found
}

/// Where the string ends that begins at `at`.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while let Some(found) = bytes.get(end..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        end += found;
        if bytes[end] == b'"' {
            return end + 1;
        }
        end += 2;
    }
    bytes.len()
}

/// Where the number or literal ends that begins at `at`.
fn word_end(bytes: &[u8], at: usize) -> usize {
    let ends =
        |byte: &u8| matches!(byte, b'{' | b'[' | b'}' | b']' | b',' | b':' | b'"' | b' ' | b'\t' | b'\r' | b'\n');
    at + bytes[at..].iter().position(ends).unwrap_or(bytes.len() - at).max(1)
}

#[cfg(test)]
mod tests {
    use pintle_domain::json::json;

    use super::*;

    #[test]
    fn the_top_of_any_text_is_read() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let of = |id: Value, has_method: bool| Outline { id: Some(id).filter(|id| !id.is_null()), has_method };
        for (text, found) in [
            (format!(r#"{{"jsonrpc":"2.0","id":7,"method":"x","params":{}}}"#, deep(300_000)), of(json!(7), true)),
            (format!(r#"{{"result":{{"a":{},"id":9}},"id":"a\"b","x":1}}"#, deep(300_000)), of(json!("a\"b"), false)),
            (format!(r#"{{"id" : 7.0 ,"result":{}"#, "[".repeat(300_000)), of(json!(7.0), false)),
            (r#"{"\u0069d":1,"m\u0065thod":"id"}"#.to_owned(), of(json!(1), true)),
            (r#"{"x":"\\","id":2}"#.to_owned(), of(json!(2), false)),
            (r#"{"x":"id","y":"method","z":{"id":3}}"#.to_owned(), of(Value::Null, false)),
            (r#"{"id":null,"method":"x"}"#.to_owned(), of(Value::Null, true)),
            (r#"{"id":{"a":1}}"#.to_owned(), of(Value::Null, false)),
            (r#"[{"id":1}]"#.to_owned(), of(Value::Null, false)),
            ("plain \" words \\".to_owned(), of(Value::Null, false)),
            (String::new(), of(Value::Null, false)),
        ] {
            assert_eq!(outline(&text), found, "{text:.80}");
        }
    }
}
