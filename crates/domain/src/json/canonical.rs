//! Whether a text is in the canonical form already, told without building its value.

use super::MAX_DEPTH;
use super::number::number_end;
use super::read::plain_len;

/// The members of an object that stands in the [canonical form](super::canonical), each value as it is written.
///
/// `None` if the text is something else, or if that takes more than one look: numbers with exponents, names beyond
/// ASCII, names with escapes. Whoever gets it parses.
pub fn canonical_members(text: &str) -> Option<Vec<(&str, &str)>> {
    let mut members = Vec::new();
    let mut look = Look { text, at: 0, room: MAX_DEPTH };
    look.object(&mut |name, value| members.push((name, value)))?;
    (look.at == text.len()).then_some(members)
}

struct Look<'a> {
    text: &'a str,
    at: usize,
    /// The number of levels that may still be opened.
    room: usize,
}

impl<'a> Look<'a> {
    fn next(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.next()? == byte).then(|| self.at += 1)
    }

    fn value(&mut self) -> Option<()> {
        match self.next()? {
            b'"' => self.string().map(drop),
            b'{' => self.object(&mut |_, _| ()),
            b'[' => self.array(),
            b'-' | b'0'..=b'9' => {
                let start = self.at;
                self.at = number_end(self.text.as_bytes(), start)?;
                // Exponents have more than one spelling.
                (!self.text[start..self.at].contains(['e', 'E'])).then_some(())
            }
            _ => {
                let rest = &self.text.as_bytes()[self.at..];
                let word = ["null", "true", "false"].into_iter().find(|word| rest.starts_with(word.as_bytes()))?;
                self.at += word.len();
                Some(())
            }
        }
    }

    fn array(&mut self) -> Option<()> {
        self.room = self.room.checked_sub(1)?;
        self.at += 1;
        if self.next()? != b']' {
            self.value()?;
            while self.next()? == b',' {
                self.at += 1;
                self.value()?;
            }
        }
        self.room += 1;
        self.take(b']')
    }

    fn object(&mut self, each: &mut dyn FnMut(&'a str, &'a str)) -> Option<()> {
        self.room = self.room.checked_sub(1)?;
        self.take(b'{')?;
        let mut before = None;
        while self.next()? != b'}' {
            if before.is_some() {
                self.take(b',')?;
            }
            let name = self.string()?;
            // Of plain ASCII, the order of the form is that of the bytes; equal names are none.
            if !name.is_ascii() || name.contains('\\') || before.is_some_and(|before| before >= name) {
                return None;
            }
            before = Some(name);
            self.take(b':')?;
            let start = self.at;
            self.value()?;
            each(name, &self.text[start..self.at]);
        }
        self.room += 1;
        self.take(b'}')
    }

    /// What stands between the quotes.
    fn string(&mut self) -> Option<&'a str> {
        self.take(b'"')?;
        let start = self.at;
        loop {
            self.at += plain_len(&self.text.as_bytes()[self.at..]);
            match self.next()? {
                b'"' => break,
                b'\\' => self.escape()?,
                _ => return None,
            }
        }
        self.at += 1;
        Some(&self.text[start..self.at - 1])
    }

    /// An escape, if it is the one that the form has for its character.
    fn escape(&mut self) -> Option<()> {
        let escape = self.text.as_bytes().get(self.at + 1..)?;
        self.at += match escape {
            [b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't', ..] => 2,
            // Five of the control characters have a shorter one.
            [b'u', b'0', b'0', b'0', b'0'..=b'7' | b'b' | b'e' | b'f', ..]
            | [b'u', b'0', b'0', b'1', b'0'..=b'9' | b'a'..=b'f', ..] => 6,
            _ => return None,
        };
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::{Value, canonical, parse};

    #[test]
    fn members_stand_as_they_are_written() {
        let text = r#"{"a":{"x":[1,-2.50,{}],"y":"\u001f\n\"é"},"b":[],"c":"t","d":1234567890123456789012,"e":null}"#;
        let members = canonical_members(text).unwrap();
        assert_eq!(members.len(), 5);
        assert_eq!(members[0], ("a", r#"{"x":[1,-2.50,{}],"y":"\u001f\n\"é"}"#));
        assert_eq!(members[2..], [("c", "\"t\""), ("d", "1234567890123456789012"), ("e", "null")]);
        assert_eq!(canonical_members("{}"), Some(Vec::new()));
    }

    #[test]
    fn what_is_no_canonical_object_has_none() {
        for text in [
            "",
            "[]",
            "1",
            "{",
            "{}x",
            " {}",
            "{} ",
            r#"{"b":1,"a":2}"#,
            r#"{"a":1,"a":1}"#,
            r#"{"a": 1}"#,
            r#"{"a":1,}"#,
            r#"{,"a":1}"#,
            r#"{"a":01}"#,
            r#"{"a":[1,]}"#,
            r#"{"a":[,1]}"#,
            r#"{"a":"\u000a"}"#,
            r#"{"a":"\u0041"}"#,
            r#"{"a":"\/"}"#,
            r#"{"a":"\u001F"}"#,
            r#"{"a":tru}"#,
            r#"{"a"}"#,
            r#"{"a":}"#,
            "{\"a\":\"\n\"}",
            r#"{"a":"\"#,
        ] {
            assert_eq!(canonical_members(text), None, "{text}");
        }
        let deep = |levels: usize| format!(r#"{{"a":{}{}}}"#, "[".repeat(levels), "]".repeat(levels));
        assert!(canonical_members(&deep(MAX_DEPTH - 1)).is_some());
        assert_eq!(canonical_members(&deep(MAX_DEPTH)), None);
    }

    /// Texts near the form: pieces of it, of which some break it.
    fn texts() -> impl Strategy<Value = String> {
        let scalar = || {
            prop_oneof![
                prop::sample::select(vec![
                    "1",
                    "-0",
                    "01",
                    "1.50",
                    "1e3",
                    "null",
                    "true",
                    "\"\"",
                    "\"\\u0001\"",
                    "\"\\u0008\""
                ])
                .prop_map(str::to_owned),
                any::<String>().prop_map(|text| Value::from(text).to_string()),
                "\"[ -~]{0,6}\"",
            ]
        };
        let tree = scalar().prop_recursive(3, 24, 4, |inner| {
            let name = prop_oneof!["[a-cB]{0,2}", "[a-z\"\\\\é😀\u{1}]{0,3}"];
            let members = prop::collection::vec((name, inner.clone()), 0..4).prop_map(|members| {
                let each = members.into_iter().map(|(name, value)| format!("{}:{value}", Value::from(name)));
                format!("{{{}}}", each.collect::<Vec<_>>().join(","))
            });
            prop_oneof![members, prop::collection::vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(",")))]
        });
        tree.prop_map(|tree| format!(r#"{{"a":{tree}}}"#))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5_000))]

        #[test]
        fn it_says_what_parsing_and_writing_say(text in texts()) {
            let form = parse(&text).ok().map(|value| canonical(&value));
            if canonical_members(&text).is_some() {
                prop_assert_eq!(form.as_ref(), Some(&text));
            }
            // The form of whatever is read is seen as such, but for names that take more than a look.
            if let Some(form) = form && form.is_ascii() && !form.contains(['\\', '+']) && !form.contains("e-") {
                prop_assert!(canonical_members(&form).is_some(), "{}", form);
            }
        }
    }
}
