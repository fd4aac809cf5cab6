//! How many values a text holds, told before a tree of them is built: a small value takes far more room there than its
//! bytes do.

use super::end_of_string;

/// Whether `text` holds more than `most` values; JSON or not. Each member and each item is one, and so is each array and
/// each object, at least.
pub fn holds_more_than(text: &[u8], most: usize) -> bool {
    let (mut seen, mut at) = (1_usize, 0);
    while let Some(&byte) = text.get(at) {
        match byte {
            b'{' | b'[' | b',' => {
                seen += 1;
                if seen > most {
                    return true;
                }
            }
            b'"' => at = end_of_string(text, at + 1),
            _ => {}
        }
        at += 1;
    }
    seen > most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_strings_is_no_value() {
        for (text, most) in [
            ("1", 1),
            ("[]", 2),
            (r#"{"a":1,"b":[2,3]}"#, 5),
            (r#"{"a":"{[,,,\",]"}"#, 2),
            (r#"["\\",{}]"#, 4),
            (r#"["never ends,,,,"#, 2),
        ] {
            assert!(!holds_more_than(text.as_bytes(), most), "{text}");
            assert!(holds_more_than(text.as_bytes(), most - 1), "{text}");
        }
    }

    #[test]
    fn many_small_values_are_found_at_once() {
        let text = format!("[{}{{}}]", "{},".repeat(1_000_000));
        assert!(holds_more_than(text.as_bytes(), 200_000));
        assert!(!holds_more_than(text.as_bytes(), 3_000_000));
    }
}
