//! Which files are taken from clients, and whether they are what they say. Pure.

use pintle_agent::media::type_of;
use pintle_domain::json::json;

use crate::error::ApiError;

/// The types that are taken. None of them runs in a browser: no SVG, no HTML.
const TAKEN: [&str; 18] = [
    "application/json",
    "application/pdf",
    "audio/flac",
    "audio/mp4",
    "audio/mpeg",
    "audio/ogg",
    "audio/wav",
    "image/avif",
    "image/gif",
    "image/jpeg",
    "image/png",
    "image/webp",
    "text/csv",
    "text/markdown",
    "text/plain",
    "video/mp4",
    "video/ogg",
    "video/webm",
];

/// Types whose first bytes say only what they are packed in: what they look like, and what they may be.
const PACKED: [(&str, &str); 3] =
    [("audio/ogg", "video/ogg"), ("video/mp4", "audio/mp4"), ("video/webm", "audio/webm")];

/// The types that are taken, for messages and pages.
pub(crate) fn taken() -> &'static [&'static str] {
    &TAKEN
}

/// The type of a file that is declared as `declared`, without parameters.
pub(crate) fn check(declared: &str, bytes: &[u8]) -> Result<&'static str, ApiError> {
    let essence = declared.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    // No registered name, and what many programs say.
    let essence = if essence == "image/jpg" { "image/jpeg".to_owned() } else { essence };
    let Some(known) = TAKEN.iter().find(|known| **known == essence) else {
        let all = TAKEN.join(", ");
        return Err(ApiError::invalid(format!("files of the type \"{essence}\" are not taken; expected one of {all}"))
            .with_details(json!({ "kind": "unsupported_media_type" })));
    };
    let seen = type_of(bytes);
    let is_text = known.starts_with("text/") || *known == "application/json";
    let fits = match seen {
        Some(seen) => seen == *known || PACKED.contains(&(seen, *known)),
        None => is_text && is_plain(bytes),
    };
    if fits {
        return Ok(known);
    }
    let seen = seen.unwrap_or(if is_text { "no text" } else { "something else" });
    Err(ApiError::invalid(format!("the file is declared as {known}, but its first bytes are those of {seen}")))
}

/// Whether it is a text, and none that a browser takes for a page.
fn is_plain(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let begins = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n', '\u{c}']);
    let begins: String = begins.chars().take(16).collect::<String>().to_ascii_lowercase();
    let is_page = ["<!", "<html", "<svg", "<script", "<?xml", "<head", "<body", "<iframe"];
    !text.contains('\0') && !is_page.iter().any(|page| begins.starts_with(page))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_taken_for_what_its_first_bytes_are() {
        let png: &[u8] = b"\x89PNG\r\n\x1a\n\0";
        for (declared, bytes, good) in [
            ("image/png", png, true),
            ("IMAGE/PNG; q=1", png, true),
            ("image/jpeg", png, false),
            ("text/plain", png, false),
            ("image/png", b"hello".as_slice(), false),
            ("text/plain", b"hello", true),
            ("text/plain", b"", true),
            ("text/plain", b"a\0b", false),
            ("text/plain", b"\xff\xfe", false),
            ("text/plain", b"  <HTML><script>", false),
            ("text/markdown", b"\xef\xbb\xbf<!doctype html>", false),
            ("text/plain", b"<?xml version='1.0'?><svg", false),
            ("text/markdown", b"a < b", true),
            ("application/json", b"{}", true),
            ("application/pdf", b"%PDF-1.7", true),
            ("audio/mp4", b"\0\0\0\x20ftypisom", true),
            ("video/ogg", b"OggS", true),
            ("image/svg+xml", b"<svg/>", false),
            ("text/html", b"hello", false),
            ("application/octet-stream", b"hello", false),
            ("", b"hello", false),
        ] {
            assert_eq!(check(declared, bytes).is_ok(), good, "{declared} {}", bytes.escape_ascii());
        }
        let kind = |declared: &str| check(declared, b"<svg/>").unwrap_err().kind().map(str::to_owned);
        assert_eq!(kind("image/svg+xml"), Some("unsupported_media_type".into()));
        assert_eq!(kind("image/png"), None);
    }
}
