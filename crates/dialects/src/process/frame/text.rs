//! Text that cannot stay as it is: broken encodings on the way in, hidden line breaks on the way out.

use std::io::Write as _;

use memchr::{memchr, memchr3_iter, memmem};

/// Longest piece of a hook's own text that a message quotes, in characters: enough to find it again.
const MAX_QUOTED: usize = 64;

/// Replaces the escapes of lone surrogates by `\ufffd`, in place. Returns how many there were.
pub(super) fn mend_surrogates(line: &mut [u8]) -> usize {
    // Short lines seldom have any escape, and for one byte no search has to be set up.
    let escaped = memchr(b'\\', line).is_some();
    if !escaped || (memmem::find(line, b"\\ud").is_none() && memmem::find(line, b"\\uD").is_none()) {
        return 0;
    }
    let (mut at, mut mended) = (0, 0);
    while let Some(offset) = line.get(at..).and_then(|rest| memchr(b'\\', rest)) {
        at += offset;
        at += match escaped_unit(line, at) {
            Some(0xd800..=0xdbff) if matches!(escaped_unit(line, at + 6), Some(0xdc00..=0xdfff)) => 12,
            Some(0xd800..=0xdfff) => {
                line[at..at + 6].copy_from_slice(b"\\ufffd");
                mended += 1;
                6
            }
            Some(_) => 6,
            // Any other escape is two bytes, so an escaped backslash never begins another escape.
            None => 2,
        };
    }
    mended
}

/// The UTF-16 unit that a `\uXXXX` at `at` names.
fn escaped_unit(line: &[u8], at: usize) -> Option<u16> {
    let [b'\\', b'u', hex @ ..] = line.get(at..at + 6)? else { return None };
    hex.iter().try_fold(0, |unit: u16, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(unit << 4 | u16::try_from(digit).ok()?)
    })
}

/// Escapes what some line reader or terminal takes for a break or a command: DEL, C1 with U+0085, U+2028, U+2029.
/// The other control characters are escaped in any JSON.
///
/// `json` is JSON text, so these stand only inside strings. It comes back as it is unless it has any of them.
pub(crate) fn escape(json: Vec<u8>) -> Vec<u8> {
    let mut hidden = next_hidden(&json, 0);
    if hidden.is_none() {
        return json;
    }
    let mut out = Vec::with_capacity(json.len() + 64);
    let mut from = 0;
    while let Some((at, len, code)) = hidden {
        out.extend_from_slice(&json[from..at]);
        write!(out, "\\u{code:04x}").expect("memory takes every write");
        from = at + len;
        hidden = next_hidden(&json, from);
    }
    out.extend_from_slice(&json[from..]);
    out
}

/// Where the next character to escape stands, how many bytes it has, and which it is.
fn next_hidden(json: &[u8], from: usize) -> Option<(usize, usize, u32)> {
    memchr3_iter(0x7f, 0xc2, 0xe2, &json[from..]).find_map(|offset| {
        let at = from + offset;
        match &json[at..] {
            [0x7f, ..] => Some((at, 1, 0x7f)),
            [0xc2, low @ 0x80..=0x9f, ..] => Some((at, 2, u32::from(*low))),
            [0xe2, 0x80, low @ 0xa8..=0xa9, ..] => Some((at, 3, 0x2000 | u32::from(low & 0x3f))),
            _ => None,
        }
    })
}

/// The beginning of a hook's own text, safe to show in a message.
pub(crate) fn excerpt(text: &str) -> String {
    let mut shown: String = text.chars().filter(|c| !c.is_control()).take(MAX_QUOTED).collect();
    if text.chars().nth(MAX_QUOTED).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_are_mended_and_pairs_stay() {
        #[track_caller]
        fn check(line: &str, after: &str, count: usize) {
            let mut bytes = line.as_bytes().to_vec();
            assert_eq!(mend_surrogates(&mut bytes), count);
            assert_eq!(String::from_utf8(bytes).unwrap(), after);
        }
        check(r"\ud83d\ude00", r"\ud83d\ude00", 0);
        check(r"\uD83D\uDE00x", r"\uD83D\uDE00x", 0);
        check(r"\ud83dx", r"\ufffdx", 1);
        check(r"\ude00\ud83d", r"\ufffd\ufffd", 2);
        check(r"\ud83d\ud83d\ude00", r"\ufffd\ud83d\ude00", 1);
        check(r"\\ud83d", r"\\ud83d", 0);
        check(r"\\\ud83d", r"\\\ufffd", 1);
        check(r"\ud83", r"\ud83", 0);
        check(r"\u+d83", r"\u+d83", 0);
        check(r"\ud83d\", r"\ufffd\", 1);
        check(r"\u00e9 \udfff", r"\u00e9 \ufffd", 1);
    }

    #[test]
    fn hidden_breaks_are_escaped_and_nothing_else() {
        #[track_caller]
        fn check(json: &str, after: &str) {
            assert_eq!(String::from_utf8(escape(json.as_bytes().to_vec())).unwrap(), after);
        }
        check("\"plain é ° 。 “ ” ‧ \u{a0}\"", "\"plain é ° 。 “ ” ‧ \u{a0}\"");
        check("\"a\u{7f}b\u{80}\u{85}\u{9f}\"", r#""a\u007fb\u0080\u0085\u009f""#);
        check("\"\u{2027}\u{2028}\u{2029}\u{202a}\"", "\"\u{2027}\\u2028\\u2029\u{202a}\"");
    }

    #[test]
    fn text_without_hidden_breaks_is_not_copied() {
        let json = b"\"\xe2\x80\x9cplain\xc2\xb0\"".to_vec();
        let address = json.as_ptr();
        let escaped = escape(json);
        assert_eq!(escaped.as_ptr(), address);
    }

    #[test]
    fn an_excerpt_is_short_and_clean() {
        assert_eq!(excerpt("a\u{1b}[31mb\n"), "a[31mb");
        assert_eq!(excerpt(&"x".repeat(1000)).chars().count(), MAX_QUOTED + 1);
    }
}
