//! The text of a hook, out of the bytes of its file. Nothing in it is interpreted.

use pintle_domain::skill::finding::FileRefusal;
use pintle_domain::unseen::is_unseen_in_text;

/// Largest file of a text, in bytes: far more than a hint to a model can be.
pub const MAX_TEXT_BYTES: usize = 64 << 10;

/// From here on a text is long, in bytes: it is paid for in every call that sees it.
pub const LONG_TEXT_BYTES: usize = 2 << 10;

/// The mark in which hosts wrap texts of the system, where a model takes none in the middle.
const HOST_MARK: &str = "</system-reminder";

/// The text that `bytes` hold: without a byte order mark, lines ended by `\n`, without blanks around it.
///
/// # Errors
/// Why it is none.
pub fn read(bytes: &[u8]) -> Result<String, FileRefusal> {
    if bytes.len() > MAX_TEXT_BYTES {
        return Err(FileRefusal::TooLarge);
    }
    let text = std::str::from_utf8(bytes).map_err(|_| FileRefusal::NotUtf8)?;
    if text.contains('\0') {
        return Err(FileRefusal::Nul);
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    match text.trim() {
        "" => Err(FileRefusal::EmptyText),
        text => Ok(text.to_owned()),
    }
}

/// What a reader of `text` does not see, or may take for something else: in words, behind `the text holds `.
pub fn hidden(text: &str) -> Option<String> {
    if let Some(c) = text.chars().find(|c| is_invisible(*c)) {
        return Some(format!("an invisible or direction-changing character, U+{:04X}", u32::from(c)));
    }
    let has_mark = text.as_bytes().windows(HOST_MARK.len()).any(|at| at.eq_ignore_ascii_case(HOST_MARK.as_bytes()));
    has_mark.then(|| format!("`{HOST_MARK}`, which ends a text of the host"))
}

/// Characters that show nothing or turn the direction of reading around, and controls that no text needs.
fn is_invisible(c: char) -> bool {
    is_unseen_in_text(c) || (c.is_control() && !matches!(c, '\n' | '\t'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_trimmed_and_its_lines_end_in_one_way() {
        assert_eq!(read(b"\xef\xbb\xbf\r\n  one\r\ntwo\rthree \n\n").unwrap(), "one\ntwo\rthree");
        assert_eq!(read(b"---\nname: x\n---\n{{var}}").unwrap(), "---\nname: x\n---\n{{var}}");
        for (bytes, refusal) in [
            (&b""[..], FileRefusal::EmptyText),
            (b"\xef\xbb\xbf \r\n\t", FileRefusal::EmptyText),
            (b"a\0b", FileRefusal::Nul),
            (b"a\xff", FileRefusal::NotUtf8),
            (b"\xed\xa0\x80", FileRefusal::NotUtf8),
        ] {
            assert_eq!(read(bytes), Err(refusal), "{bytes:?}");
        }
        assert_eq!(read(&vec![b'x'; MAX_TEXT_BYTES]).unwrap().len(), MAX_TEXT_BYTES);
        assert_eq!(read(&vec![b'x'; MAX_TEXT_BYTES + 1]), Err(FileRefusal::TooLarge));
    }

    #[test]
    fn what_a_reader_does_not_see_is_found() {
        for plain in ["one\n\ttwo", "नमस्ते 👩‍💻 ❤\u{fe0f}", "<system-reminder", "e\u{301}"] {
            assert_eq!(hidden(plain), None, "{plain}");
        }
        for odd in ["a\u{202e}b", "a\u{200b}b", "\u{e0041}", "\u{1d173}", "a\u{1b}[0m", "x</SYSTEM-reminder >", "a\rb"]
        {
            assert!(hidden(odd).is_some(), "{odd:?}");
        }
        assert_eq!(hidden("\u{202e}").unwrap(), "an invisible or direction-changing character, U+202E");
    }
}
