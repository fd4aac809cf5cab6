//! Cuts JSON text into its parts without parsing them.
//!
//! The text was validated when its line was read, so only brackets and quotes are followed. Text that is no JSON
//! gives parts that are no JSON; it never panics.

use std::borrow::Cow;

use memchr::memchr2;

/// The members of the object `text`, in order; `None` if it is no object.
pub(crate) fn members(text: &str) -> Option<Members<'_>> {
    text.starts_with('{').then_some(Members { text, at: 1 })
}

/// The elements of the array `text`; `None` if it is no array.
pub(crate) fn elements(text: &str) -> Option<Vec<&str>> {
    if !text.starts_with('[') {
        return None;
    }
    let mut found = Vec::new();
    let mut at = 1;
    while let Some(start) = part(text, at) {
        at = value_end(text.as_bytes(), start);
        found.push(slice(text, start, at));
    }
    Some(found)
}

/// What kind of value `text` is, for messages.
pub(crate) fn kind(text: &str) -> &'static str {
    match text.bytes().next() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        Some(b'-' | b'0'..=b'9') => "a number",
        Some(_) | None => "no JSON",
    }
}

/// The deepest nesting of brackets outside strings; JSON or not.
pub(crate) fn depth(text: &[u8]) -> usize {
    let (mut level, mut deepest, mut at) = (0_usize, 0, 0);
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => {
                level += 1;
                deepest = deepest.max(level);
            }
            b'}' | b']' => level = level.saturating_sub(1),
            b'"' => at = string_end(text, at),
            _ => {}
        }
    }
    deepest
}

/// The members of one object; a name is decoded, a value is its text.
pub(crate) struct Members<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Members<'a> {
    type Item = (Cow<'a, str>, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        let start = part(self.text, self.at)?;
        let end = value_end(bytes, start);
        let name = decoded(slice(self.text, start, end));
        let value = part(self.text, end)?;
        self.at = value_end(bytes, value);
        Some((name, slice(self.text, value, self.at)))
    }
}

/// The text of a quoted name; copied only if it has escapes.
fn decoded(quoted: &str) -> Cow<'_, str> {
    let bare = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(quoted);
    if bare.contains('\\') {
        serde_json::from_str(quoted).map_or(Cow::Borrowed(bare), Cow::Owned)
    } else {
        Cow::Borrowed(bare)
    }
}

/// Where the next name, value or element begins: after blanks, commas and colons; `None` at a closing bracket.
fn part(text: &str, mut at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    while let Some(byte) = bytes.get(at) {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' | b',' | b':' => at += 1,
            b'}' | b']' => return None,
            _ => return Some(at),
        }
    }
    None
}

/// Where the value that begins at `at` ends.
fn value_end(text: &[u8], at: usize) -> usize {
    match text.get(at) {
        Some(b'"') => string_end(text, at + 1),
        Some(b'{' | b'[') => container_end(text, at + 1),
        Some(_) | None => {
            let rest = text.get(at..).unwrap_or_default();
            let len =
                rest.iter().position(|byte| matches!(byte, b',' | b':' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n'));
            at + len.unwrap_or(rest.len())
        }
    }
}

/// Where the object or array ends whose first part is at `at`.
fn container_end(text: &[u8], mut at: usize) -> usize {
    let mut level = 1;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => level += 1,
            b'}' | b']' => level -= 1,
            b'"' => at = string_end(text, at),
            _ => {}
        }
        if level == 0 {
            return at;
        }
    }
    text.len()
}

/// The index after the quote that closes the string whose first byte is at `at`.
fn string_end(text: &[u8], mut at: usize) -> usize {
    while let Some(offset) = text.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += offset;
        if text[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    text.len()
}

fn slice(text: &str, start: usize, end: usize) -> &str {
    text.get(start..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn members_and_elements_keep_their_text() {
        let object = r#"{ "a" : [1, {"x":"]}\""}] ,"\u0062":2.50,"c":"d\\","e":null}"#;
        let parts: Vec<_> = members(object).unwrap().map(|(name, value)| (name.into_owned(), value)).collect();
        let expected = [("a", r#"[1, {"x":"]}\""}]"#), ("b", "2.50"), ("c", r#""d\\""#), ("e", "null")];
        assert_eq!(parts, expected.map(|(name, value)| (name.to_owned(), value)));
        assert_eq!(elements(r#"[1 , "a,b",[],{"x":[2]}]"#).unwrap(), ["1", "\"a,b\"", "[]", r#"{"x":[2]}"#]);
        assert_eq!(elements("[ ]").unwrap(), [""; 0]);
        assert!(members("[1]").is_none() && elements("{}").is_none());
    }

    #[test]
    fn depth_counts_brackets_outside_strings() {
        assert_eq!(depth(br#"{"a":[[],"[[[["]}"#), 3);
        assert_eq!(depth(b"\"never closed [["), 0);
        assert_eq!(depth("[".repeat(600).as_bytes()), 600);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn any_text_is_cut_without_a_panic(text in "[{\\[]{1}[\\PC\\[\\]{}\",:\\\\ é]{0,60}") {
            let cut: usize = members(&text).into_iter().flatten().map(|(_, value)| value.len()).sum();
            let parted: usize = elements(&text).into_iter().flatten().map(str::len).sum();
            prop_assert!(cut <= text.len() && parted <= text.len() && depth(text.as_bytes()) <= text.len());
        }
    }
}
