//! Which call a line answers: from its `id` member, also where the rest of the line cannot be read.

use memchr::memchr2;

use super::text::excerpt;

/// Longest `id` and longest name of a member that are kept while scanning, in bytes.
/// An id has at most 16 digits; the rest is room for quotes, escapes and blanks.
const MAX_HELD_BYTES: usize = 64;

/// 2^53: from here on not every integer is a double of its own, so no call has such an id.
const TOO_BIG: u64 = 1 << 53;

/// What an `id` member says.
#[derive(Debug, PartialEq)]
pub(super) enum IdMember {
    /// The call of this number; with a warning unless it is spelled as it was sent.
    Call(u64, Option<String>),
    /// `null` or 0: the line answers nothing.
    Nothing,
    /// Something that no call was ever called.
    Stranger,
    /// Neither a number nor a string.
    Wrong,
}

/// Reads the JSON text of an `id`.
pub(super) fn named(text: &str) -> IdMember {
    match text.bytes().next() {
        Some(b'0'..=b'9' | b'-') => match text.parse::<u64>() {
            Ok(id) => call(id, None),
            Err(_) => fraction(text),
        },
        Some(b'"') => quoted(text),
        Some(b'n') => IdMember::Nothing,
        Some(_) | None => IdMember::Wrong,
    }
}

fn call(id: u64, warning: Option<String>) -> IdMember {
    match id {
        0 => IdMember::Nothing,
        1..TOO_BIG => IdMember::Call(id, warning),
        TOO_BIG.. => IdMember::Stranger,
    }
}

fn fraction(text: &str) -> IdMember {
    match text.parse::<f64>() {
        Ok(id) if id.fract() == 0.0 && (0.0..TOO_BIG as f64).contains(&id) => {
            let id = id as u64;
            call(id, Some(format!("the id {} should be written {id}", excerpt(text))))
        }
        Ok(_) | Err(_) => IdMember::Stranger,
    }
}

fn quoted(text: &str) -> IdMember {
    let Ok(bare) = serde_json::from_str::<String>(text) else { return IdMember::Wrong };
    match bare.parse::<u64>() {
        Ok(id) if bare.bytes().all(|byte| byte.is_ascii_digit()) => {
            call(id, Some(format!("the id \"{}\" should be the number {id}", excerpt(&bare))))
        }
        Ok(_) | Err(_) => IdMember::Stranger,
    }
}

/// Reads the bytes of a line that is too long to keep, or that is no good JSON, and keeps only the top-level `id`.
///
/// A line that does not begin with `{` has none: it is a stray print, and whatever it quotes answers nothing.
#[derive(Debug, Default)]
pub struct IdScanner {
    place: Place,
    text: Text,
    /// How many brackets are open.
    level: usize,
    /// The bytes of the member name, or of the value of `id`, that is being read.
    held: Vec<u8>,
    id: Option<u64>,
}

/// Where in the top level the scanner stands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Place {
    /// Before the first bracket.
    #[default]
    Before,
    /// In the name of a member.
    Name,
    /// In the value of `id`.
    Id,
    /// In any other value.
    Other,
    /// After the end, or in a line that is not an object.
    Over,
}

/// Whether the scanner stands in a string.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Text {
    #[default]
    Outside,
    Inside,
    /// After a backslash.
    Escaped,
}

impl IdScanner {
    /// A scanner at the beginning of a line.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads on. However the line is cut into chunks, the outcome is the same.
    pub fn feed(&mut self, chunk: &[u8]) {
        let mut rest = chunk;
        while let Some((&byte, after)) = rest.split_first() {
            if self.place == Place::Over {
                return;
            }
            rest = match self.text {
                Text::Outside => {
                    self.structure(byte);
                    after
                }
                Text::Escaped => {
                    self.hold(&[byte]);
                    self.text = Text::Inside;
                    after
                }
                Text::Inside => self.inside(rest),
            };
        }
    }

    /// The call that the line names, as far as it was read; the last `id` counts.
    pub fn id(&self) -> Option<u64> {
        self.id
    }

    /// Reads to the next quote or backslash of a string, and past it.
    fn inside<'a>(&mut self, rest: &'a [u8]) -> &'a [u8] {
        let Some(end) = memchr2(b'"', b'\\', rest) else {
            self.hold(rest);
            return &[];
        };
        let (piece, after) = rest.split_at(end + 1);
        self.hold(piece);
        self.text = if piece.ends_with(b"\"") { Text::Outside } else { Text::Escaped };
        after
    }

    /// Reads one byte outside strings.
    fn structure(&mut self, byte: u8) {
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => self.blank(),
            b'{' if self.place == Place::Before => {
                self.place = Place::Name;
                self.level = 1;
            }
            _ if self.place == Place::Before => self.place = Place::Over,
            b'{' | b'[' => {
                self.hold(&[byte]);
                self.level += 1;
            }
            b'}' | b']' if self.level == 1 => {
                self.settle();
                self.place = Place::Over;
            }
            b'}' | b']' => self.level -= 1,
            b',' if self.level == 1 => {
                self.settle();
                self.place = Place::Name;
            }
            b':' if self.level == 1 && self.place == Place::Name => self.value(),
            b'"' => {
                self.hold(&[byte]);
                self.text = Text::Inside;
            }
            _ => self.hold(&[byte]),
        }
    }

    /// Keeps `bytes` if they are of a top-level name or of the value of `id`.
    /// One byte above the bound is kept, so that what is cut never looks whole.
    fn hold(&mut self, bytes: &[u8]) {
        if self.level == 1 && matches!(self.place, Place::Name | Place::Id) {
            let room = (MAX_HELD_BYTES + 1).saturating_sub(self.held.len());
            self.held.extend_from_slice(&bytes[..room.min(bytes.len())]);
        }
    }

    /// A blank ends a number, so that two numbers never look like one; more of them say nothing.
    fn blank(&mut self) {
        if self.held.last().is_some_and(|last| *last != b' ') {
            self.hold(b" ");
        }
    }

    /// The name of a member is over, its value begins.
    fn value(&mut self) {
        let name: Option<String> = serde_json::from_slice(&self.held).ok();
        let is_id = self.held.len() <= MAX_HELD_BYTES && name.is_some_and(|name| name.eq_ignore_ascii_case("id"));
        self.place = if is_id { Place::Id } else { Place::Other };
        self.held.clear();
    }

    /// A value is over.
    fn settle(&mut self) {
        if self.place == Place::Id {
            let text = std::str::from_utf8(&self.held).ok().filter(|text| text.len() <= MAX_HELD_BYTES);
            self.id = match text.map(|text| named(text.trim_end())) {
                Some(IdMember::Call(id, _)) => Some(id),
                Some(IdMember::Nothing | IdMember::Stranger | IdMember::Wrong) | None => None,
            };
        }
        self.held.clear();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scan(line: &[u8]) -> Option<u64> {
        let mut scanner = IdScanner::new();
        scanner.feed(line);
        scanner.id()
    }

    #[test]
    fn an_id_names_a_call() {
        #[track_caller]
        fn check(text: &str, expected: IdMember) {
            assert_eq!(named(text), expected);
        }
        check("2", IdMember::Call(2, None));
        check("2.0", IdMember::Call(2, Some("the id 2.0 should be written 2".into())));
        check("2e0", IdMember::Call(2, Some("the id 2e0 should be written 2".into())));
        check("\"2\"", IdMember::Call(2, Some("the id \"2\" should be the number 2".into())));
        check("9007199254740991", IdMember::Call((1 << 53) - 1, None));
        for text in ["0", "-0", "0.0", "\"0\"", "null"] {
            check(text, IdMember::Nothing);
        }
        let huge = "9".repeat(400);
        for text in ["-3", "1.5", "9007199254740992", "1e300", "1e999", "\"\"", "\"+2\"", "\"two\"", "\"2.0\"", &huge] {
            check(text, IdMember::Stranger);
        }
        for text in ["true", "[2]", "{}", ""] {
            check(text, IdMember::Wrong);
        }
    }

    #[test]
    fn only_the_last_top_level_id_counts() {
        #[track_caller]
        fn check(line: &str, expected: Option<u64>) {
            assert_eq!(scan(line.as_bytes()), expected, "{line}");
        }
        check(r#"{"jsonrpc":"2.0","id":7,"result":{"id":9}}"#, Some(7));
        check(r#"{"result":{"id":9},"ID" : "7" }"#, Some(7));
        check(r#"{"\u0069\u0064":7}"#, Some(7));
        check(r#"{"id":7,"id":8}"#, Some(8));
        check(r#"{"id":7,"id":null}"#, None);
        check(r#"{"id":7,"id":[8]}"#, None);
        check(r#"{"a":"\",\"id\":9","id":7}"#, Some(7));
        check(r#"{"id":7,"result":{"a": nonsense"#, Some(7));
        check(r#"{"id":7"#, None);
        check(r#"{"id" : 7  }"#, Some(7));
        check(r#"{"id":1 2}"#, None);
        check(r#"{"result":[{"id":9}]}"#, None);
        check(r#"[{"id":7}]"#, None);
        check(r#"got {"id":7,"x":1}"#, None);
        check(r#"{"id":7} {"id":8}"#, Some(7));
        check(&format!("{{\"id\":\"{}2\"}}", "0".repeat(100)), None);
        check(&format!("{{\"{}\":1,\"id\":7}}", "id".repeat(100)), Some(7));
    }

    #[test]
    fn memory_stays_bounded() {
        let mut scanner = IdScanner::new();
        scanner.feed(b"{\"id\":");
        (0..1000).for_each(|_| scanner.feed(&[b'1'; 1000]));
        assert!(scanner.held.capacity() <= 4 * MAX_HELD_BYTES);
    }

    /// Bytes that look enough like a line to reach every state.
    fn lines() -> impl Strategy<Value = Vec<u8>> {
        const PIECES: [&[u8]; 18] = [
            b"{",
            b"}",
            b"[",
            b"]",
            b",",
            b":",
            b"\"",
            b"\\",
            b"\"id\":",
            b"\"id\":7,",
            b"\"ID\" : \"8\"",
            b"\"\\u0069d\":9.0}",
            b"\"a\":",
            b" ",
            b"12",
            b"null",
            b"\xff\xc3",
            b"\xe2\x80\xa8",
        ];
        prop_oneof![
            prop::collection::vec(prop::sample::select(&PIECES[..]), 0..40).prop_map(|pieces| [
                b"{",
                pieces.concat().as_slice()
            ]
            .concat()),
            prop::collection::vec(any::<u8>(), 0..80),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn any_chunking_finds_the_same_id(line in lines(), cuts in prop::collection::vec(1_usize..9, 1..20)) {
            let whole = scan(&line);
            let mut scanner = IdScanner::new();
            let (mut rest, mut sizes) = (line.as_slice(), cuts.iter().cycle());
            while !rest.is_empty() {
                let (chunk, after) = rest.split_at(rest.len().min(*sizes.next().unwrap()));
                scanner.feed(chunk);
                rest = after;
            }
            prop_assert_eq!(scanner.id(), whole);
        }
    }
}
