//! Cuts JSON text into its parts without parsing them.
//!
//! The text was validated when its line was read, so only brackets and quotes are followed. Text that is not JSON
//! gives parts that are not JSON; it never panics.

use std::borrow::Cow;

use memchr::{memchr2, memmem};

/// A list that stands somewhere in a text, and of which elements are known: they are passed over at once.
#[derive(Debug, Default)]
pub(crate) struct KnownList {
    /// The address of its bracket.
    list: usize,
    /// Where the known elements end, counted from the bracket. They are the first of the list, without blanks between.
    ends: Vec<usize>,
}

/// Of a text of which nothing is known.
pub(crate) static NOTHING: KnownList = KnownList { list: 0, ends: Vec::new() };

impl KnownList {
    /// Finds the list called `name` in `text`, and how many of `elements`, whole JSON values, it begins with.
    pub(crate) fn find<'e>(text: &str, name: &str, elements: impl Iterator<Item = &'e [u8]>) -> Self {
        let marker = format!("\"{name}\":[");
        let Some(place) = memmem::find(text.as_bytes(), marker.as_bytes()) else { return Self::default() };
        let list = &text.as_bytes()[place + marker.len() - 1..];
        let (mut ends, mut at) = (Vec::new(), 1);
        for element in elements {
            let end = at + element.len();
            let same = list.get(at..end) == Some(element);
            if !same || !matches!(list.get(end), Some(b',' | b']')) {
                break;
            }
            ends.push(end);
            at = end + 1;
        }
        Self { list: list.as_ptr() as usize, ends }
    }

    /// The ends of the known elements of the list whose bracket is the byte `at` of `text`.
    ///
    /// Only whoever follows brackets asks, so the bracket does not stand in a string.
    fn ends_in(&self, text: &[u8], at: usize) -> &[usize] {
        if text.as_ptr() as usize + at == self.list { &self.ends } else { &[] }
    }

    /// Where the first part stands that is not known, after the bracket at `at`.
    fn after(&self, text: &[u8], at: usize) -> usize {
        at + self.ends_in(text, at).last().copied().unwrap_or(1)
    }
}

/// The members of the object `text`, in order; `None` if it is not an object.
pub(crate) fn members<'a, 'k>(text: &'a str, known: &'k KnownList) -> Option<Members<'a, 'k>> {
    text.starts_with('{').then_some(Members { text, known, at: 1 })
}

/// The elements of the array `text`; `None` if it is not an array.
pub(crate) fn elements<'a>(text: &'a str, known: &KnownList) -> Option<Vec<&'a str>> {
    if !text.starts_with('[') {
        return None;
    }
    let mut found = Vec::new();
    let mut at = 1;
    for end in known.ends_in(text.as_bytes(), 0) {
        found.push(slice(text, at, *end));
        // A comma or the last bracket follows each.
        at = end + 1;
    }
    at = known.after(text.as_bytes(), 0);
    while let Some(start) = part(text, at) {
        at = value_end(text.as_bytes(), start, known);
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

/// The members of one object; a name is decoded, a value is its text.
pub(crate) struct Members<'a, 'k> {
    text: &'a str,
    known: &'k KnownList,
    at: usize,
}

impl<'a> Iterator for Members<'a, '_> {
    type Item = (Cow<'a, str>, &'a str);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        let start = part(self.text, self.at)?;
        let end = value_end(bytes, start, self.known);
        let name = decoded(slice(self.text, start, end));
        let value = part(self.text, end)?;
        self.at = value_end(bytes, value, self.known);
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
fn value_end(text: &[u8], at: usize, known: &KnownList) -> usize {
    match text.get(at) {
        Some(b'"') => string_end(text, at + 1),
        Some(b'{') => container_end(text, at + 1, known),
        Some(b'[') => container_end(text, known.after(text, at), known),
        Some(_) | None => {
            let rest = text.get(at..).unwrap_or_default();
            let len =
                rest.iter().position(|byte| matches!(byte, b',' | b':' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n'));
            at + len.unwrap_or(rest.len())
        }
    }
}

/// Where the object or array ends whose first part is at `at`.
fn container_end(text: &[u8], mut at: usize, known: &KnownList) -> usize {
    let mut level = 1;
    while let Some(&byte) = text.get(at) {
        at += 1;
        match byte {
            b'{' => level += 1,
            b'[' => {
                level += 1;
                at = known.after(text, at - 1);
            }
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
        let parts: Vec<_> =
            members(object, &NOTHING).unwrap().map(|(name, value)| (name.into_owned(), value)).collect();
        let expected = [("a", r#"[1, {"x":"]}\""}]"#), ("b", "2.50"), ("c", r#""d\\""#), ("e", "null")];
        assert_eq!(parts, expected.map(|(name, value)| (name.to_owned(), value)));
        assert_eq!(elements(r#"[1 , "a,b",[],{"x":[2]}]"#, &NOTHING).unwrap(), ["1", "\"a,b\"", "[]", r#"{"x":[2]}"#]);
        assert_eq!(elements("[ ]", &NOTHING).unwrap(), [""; 0]);
        assert!(members("[1]", &NOTHING).is_none() && elements("{}", &NOTHING).is_none());
    }

    #[test]
    fn known_elements_are_passed_over_and_cut_out() {
        #[track_caller]
        fn check(messages: &str, count: usize) {
            let originals = [r#"{"a":["]"]}"#, "{}", r#"{"b":2}"#];
            let text = format!(r#"{{"x":"]","r":{{"messages":{messages},"y":[]}}}}"#);
            let known = KnownList::find(&text, "messages", originals.into_iter().map(str::as_bytes));
            assert_eq!(known.ends.len(), count);
            let outer: Vec<_> = members(&text, &known).unwrap().collect();
            let inner: Vec<_> = members(outer[1].1, &known).unwrap().collect();
            assert_eq!((&*inner[0].0, inner[0].1, &*inner[1].0, inner[1].1), ("messages", messages, "y", "[]"));
            assert_eq!(elements(messages, &NOTHING), elements(inner[0].1, &known));
        }
        check(r#"[{"a":["]"]},{},{"b":2}]"#, 3);
        check(r#"[{"a":["]"]},{},{"b":2},{"c":[3]}]"#, 3);
        check(r#"[{"a":["]"]},{"c":3},{"b":2}]"#, 1);
        check(r#"[{"a":["]"]}]"#, 1);
        check(r#"[{"a":["]"]} ,{}]"#, 0);
        check("[]", 0);
        check("{}", 0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn any_text_is_cut_without_a_panic(text in "[{\\[]{1}[\\PC\\[\\]{}\",:\\\\ é]{0,60}") {
            let cut: usize = members(&text, &NOTHING).into_iter().flatten().map(|(_, value)| value.len()).sum();
            let parted: usize = elements(&text, &NOTHING).into_iter().flatten().map(str::len).sum();
            prop_assert!(cut <= text.len() && parted <= text.len());
        }
    }
}
