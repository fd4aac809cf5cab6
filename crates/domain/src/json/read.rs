//! A reader of JSON text that keeps every digit, and knows no member names of its own.
//!
//! It only says that a text is not JSON; what to tell people is found out by serde_json, which reads the text once more.

use serde::Deserialize as _;
use serde::de::IgnoredAny;

use super::number::{Number, number_end};
use super::{MAX_DEPTH, Object, Value};

/// Parses JSON text of at most [`MAX_DEPTH`] levels; every number keeps its digits.
///
/// # Errors
/// What is wrong with the text, and where.
pub fn parse(text: &str) -> Result<Value, String> {
    read(text, MAX_DEPTH).map_err(|flaw| flaw.told(text))
}

/// The value that `text` is, of at most `levels`.
pub(super) fn read(text: &str, levels: usize) -> Result<Value, Flaw> {
    let mut reader = Reader { text, bytes: text.as_bytes(), at: 0, levels, room: levels };
    let value = reader.value()?;
    reader.blanks();
    if reader.at == text.len() { Ok(value) } else { Err(Flaw::Syntax) }
}

/// Why a text is refused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Flaw {
    /// It is not JSON.
    Syntax,
    /// It is nested deeper than this.
    Depth(usize),
    /// An escape in the string that begins here names no character.
    Escape(usize),
}

impl Flaw {
    /// The flaw in words, with its place in `text`.
    pub(super) fn told(self, text: &str) -> String {
        let (said, at) = match self {
            Self::Depth(levels) => return format!("nested deeper than {levels} levels"),
            Self::Syntax => return told_by_serde(text),
            Self::Escape(start) => {
                let mut rest = serde_json::Deserializer::from_str(&text[start..]);
                match String::deserialize(&mut rest) {
                    // A string has one line, so its column is all that is added.
                    Err(error) => (plain(&error), start + error.column()),
                    Ok(_) => ("not understood".to_owned(), start),
                }
            }
        };
        let before = &text.as_bytes()[..at.min(text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = before.len() - memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
        format!("{said} at line {line} column {column}")
    }
}

/// The words of serde_json about a text that is not JSON.
fn told_by_serde(text: &str) -> String {
    let Err(error) = serde_json::from_str::<serde_json::Value>(text) else { return "not understood".to_owned() };
    let said = error.to_string();
    // Bounds of its own hide what is wrong; whoever ignores a value has none, and says less of it.
    if !said.starts_with("recursion limit exceeded") && !said.starts_with("number out of range") {
        return said;
    }
    serde_json::from_str::<IgnoredAny>(text).map_or_else(|error| error.to_string(), |_| said)
}

/// The words of serde_json, without the place.
pub(super) fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place).unwrap_or(&text).to_owned()
}

struct Reader<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    /// The number of levels that there may be.
    levels: usize,
    /// The number of levels that may still be opened.
    room: usize,
}

impl Reader<'_> {
    fn blanks(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    /// The next byte that is no blank; it is left where it is.
    fn peek(&mut self) -> Option<u8> {
        self.blanks();
        self.bytes.get(self.at).copied()
    }

    fn value(&mut self) -> Result<Value, Flaw> {
        match self.peek().ok_or(Flaw::Syntax)? {
            b'"' => self.string().map(Value::String),
            b'{' => self.opened(Self::object),
            b'[' => self.opened(Self::array),
            b'-' | b'0'..=b'9' => {
                let end = number_end(self.bytes, self.at).ok_or(Flaw::Syntax)?;
                let number = Number::of(&self.text[self.at..end]);
                self.at = end;
                Ok(Value::Number(number))
            }
            b'n' => self.word("null", Value::Null),
            b't' => self.word("true", Value::Bool(true)),
            b'f' => self.word("false", Value::Bool(false)),
            _ => Err(Flaw::Syntax),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, Flaw> {
        if !self.bytes[self.at..].starts_with(word.as_bytes()) {
            return Err(Flaw::Syntax);
        }
        self.at += word.len();
        Ok(value)
    }

    /// Reads what stands in brackets, the first of which is next.
    fn opened(&mut self, inside: fn(&mut Self) -> Result<Value, Flaw>) -> Result<Value, Flaw> {
        self.room = self.room.checked_sub(1).ok_or(Flaw::Depth(self.levels))?;
        self.at += 1;
        let value = inside(self)?;
        self.room += 1;
        Ok(value)
    }

    fn array(&mut self) -> Result<Value, Flaw> {
        let mut items = Vec::new();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value()?);
            if self.ends(b']')? {
                return Ok(Value::Array(items));
            }
        }
    }

    fn object(&mut self) -> Result<Value, Flaw> {
        let mut members = Object::new();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(members));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(Flaw::Syntax);
            }
            let name = self.string()?;
            if self.peek() != Some(b':') {
                return Err(Flaw::Syntax);
            }
            self.at += 1;
            // The last of equal names wins, in the place of the first.
            members.insert(name, self.value()?);
            if self.ends(b'}')? {
                return Ok(Value::Object(members));
            }
        }
    }

    /// Whether `close` comes next, and not a comma.
    fn ends(&mut self, close: u8) -> Result<bool, Flaw> {
        let next = self.peek();
        self.at += 1;
        match next {
            Some(b',') => Ok(false),
            Some(byte) if byte == close => Ok(true),
            Some(_) | None => Err(Flaw::Syntax),
        }
    }

    /// The string whose quote is next.
    fn string(&mut self) -> Result<String, Flaw> {
        let quote = self.at;
        let start = quote + 1;
        let end = start + plain_len(&self.bytes[start..]);
        match self.bytes.get(end) {
            Some(b'"') => {
                self.at = end + 1;
                Ok(self.text[start..end].to_owned())
            }
            Some(b'\\') => self.escaped(quote, end),
            Some(_) | None => Err(Flaw::Syntax),
        }
    }

    /// The string that begins with `quote` and has its first escape at `at`.
    fn escaped(&mut self, quote: usize, at: usize) -> Result<String, Flaw> {
        let mut out = String::with_capacity(2 * (at - quote));
        out.push_str(&self.text[quote + 1..at]);
        self.at = at;
        loop {
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape(quote)?),
                Some(_) | None => return Err(Flaw::Syntax),
            }
            let len = plain_len(&self.bytes[self.at..]);
            out.push_str(&self.text[self.at..self.at + len]);
            self.at += len;
        }
    }

    /// The character that the escape at hand stands for.
    fn escape(&mut self, quote: usize) -> Result<char, Flaw> {
        let kind = self.bytes.get(self.at + 1).copied();
        self.at += 2;
        Ok(match kind {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(quote),
            Some(_) | None => return Err(Flaw::Syntax),
        })
    }

    /// The character of one escape `\uXXXX`, or of two of them; the digits of the first are next.
    fn unicode(&mut self, quote: usize) -> Result<char, Flaw> {
        let high = self.hex()?;
        let code = if (0xd800..0xdc00).contains(&high) && self.bytes[self.at..].starts_with(b"\\u") {
            self.at += 2;
            let low = self.hex()?;
            if !(0xdc00..0xe000).contains(&low) {
                return Err(Flaw::Escape(quote));
            }
            0x10000 + ((high - 0xd800) << 10 | (low - 0xdc00))
        } else {
            high
        };
        char::from_u32(code).ok_or(Flaw::Escape(quote))
    }

    fn hex(&mut self) -> Result<u32, Flaw> {
        let digits = self.bytes.get(self.at..self.at + 4).ok_or(Flaw::Syntax)?;
        self.at += 4;
        digits.iter().try_fold(0, |code, digit| Some(code << 4 | char::from(*digit).to_digit(16)?)).ok_or(Flaw::Syntax)
    }
}

/// One in each byte.
const ONES: u64 = u64::MAX / 255;

/// The number of bytes before the first quote, backslash or control character.
pub(super) fn plain_len(bytes: &[u8]) -> usize {
    let (words, tail) = bytes.as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        // The first byte of which the highest bit gets set is below the subtrahend; a later one may be by carrying.
        let below = |word: u64, bound: u64| word.wrapping_sub(ONES * bound) & !word;
        let quote = below(word ^ (ONES * u64::from(b'"')), 1);
        let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
        let found = (below(word, 0x20) | quote | backslash) & (ONES << 7);
        if found != 0 {
            return i * 8 + (found.trailing_zeros() / 8) as usize;
        }
    }
    let stop = |byte: &u8| matches!(byte, 0..0x20 | b'"' | b'\\');
    8 * words.len() + tail.iter().position(stop).unwrap_or(tail.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn refused(text: &str, expected: &str) {
        assert_eq!(parse(text).unwrap_err(), expected, "{text}");
        let stock = serde_json::from_str::<serde_json::Value>(text).unwrap_err().to_string();
        assert!(stock == expected || stock.starts_with("recursion limit"), "{stock}");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        refused("", "EOF while parsing a value at line 1 column 0");
        refused("{\"a\":\n tru}", "expected ident at line 2 column 5");
        refused("[1,]", "trailing comma at line 1 column 4");
        refused("{'a':1}", "key must be a string at line 1 column 2");
        refused("[1] 2", "trailing characters at line 1 column 5");
        refused("\"a\tb\"", "control character (\\u0000-\\u001F) found while parsing a string at line 1 column 3");
        refused(&format!("{}1e999,]", "[".repeat(200)), "expected value at line 1 column 207");
        refused("01", "invalid number at line 1 column 2");
        refused("\"\\ud800\"", "unexpected end of hex escape at line 1 column 8");
        refused("{\n \"a\":\"\\ud800\\ud800\"}", "lone leading surrogate in hex escape at line 2 column 18");
    }

    #[test]
    fn escapes_stand_for_their_characters() {
        let text = r#""\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00 plain""#;
        assert_eq!(parse(text).unwrap(), "\"\\/\u{8}\u{c}\n\r\té😀 plain");
    }

    #[test]
    fn no_name_is_special() {
        for name in ["$serde_json::private::Number", "$serde_json::private::RawValue"] {
            let text = format!(r#"{{"{name}":"5","x":[{{"{name}":"{{}}"}}]}}"#);
            assert_eq!(parse(&text).unwrap().to_string(), text);
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap().to_string(), text);
        }
    }

    /// Text that is nearly JSON.
    fn texts() -> impl Strategy<Value = String> {
        const PIECES: &[&str] = &[
            "{",
            "}",
            "[",
            "]",
            ",",
            ":",
            "\"a\"",
            "\"",
            "\\",
            "\\u00e9",
            "\\ud83d",
            "\\ude00",
            "\\n",
            "\\x",
            "é",
            "😀",
            "\u{1f}",
            " ",
            "\n",
            "0",
            "1",
            "-",
            ".5",
            "e3",
            "E+",
            "true",
            "nul",
            "null",
            "12345678",
            "plain text",
        ];
        prop_oneof![
            prop::collection::vec(prop::sample::select(PIECES), 0..12).prop_map(|pieces| pieces.concat()),
            prop::collection::vec(prop::sample::select(PIECES), 0..8)
                .prop_map(|pieces| format!("{{\"a\":[1, \"{}\"]}}", pieces.concat())),
            prop::collection::vec(prop::sample::select(PIECES), 0..5)
                .prop_map(|pieces| format!("[{{\"b\" : {}}}]", pieces.concat())),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn it_takes_what_serde_json_takes(text in texts()) {
            let (ours, stock) = (parse(&text), serde_json::from_str::<serde_json::Value>(&text));
            match (&ours, &stock) {
                // Read by serde_json both times: of long numbers it does not find the nearest double, which is not ours to
                // repeat.
                (Ok(ours), Ok(stock)) => {
                    prop_assert_eq!(&serde_json::from_str::<serde_json::Value>(&ours.to_string()).unwrap(), stock)
                }
                // Numbers beyond the doubles are numbers here.
                (Ok(_), Err(error)) => prop_assert!(error.to_string().starts_with("number out of range")),
                (Err(why), Ok(_)) => prop_assert!(false, "{}", why),
                (Err(why), Err(_)) => prop_assert!(!why.contains("not understood"), "{}", why),
            }
        }

        #[test]
        fn plain_bytes_are_counted(text in "[ -~é\u{80}\u{1f}\u{0}\"\\\\]{0,40}") {
            let stop = text.bytes().position(|byte| byte < 0x20 || byte == b'"' || byte == b'\\');
            prop_assert_eq!(plain_len(text.as_bytes()), stop.unwrap_or(text.len()));
        }
    }
}
