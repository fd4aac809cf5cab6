//! What a file is: by its first bytes, by what is said of it.

/// The content type of bytes that nothing is known of.
pub(super) const UNKNOWN: &str = "application/octet-stream";

/// The images that every provider with eyes takes; another one would spoil the whole request.
pub(super) const SENDABLE: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// First bytes, what follows at the eighth byte, the type. The first that fits counts.
const MAGIC: [(&[u8], &[u8], &str); 24] = [
    (b"\x89PNG\r\n\x1a\n", b"", "image/png"),
    (b"\xff\xd8\xff", b"", "image/jpeg"),
    (b"GIF87a", b"", "image/gif"),
    (b"GIF89a", b"", "image/gif"),
    (b"RIFF", b"WEBP", "image/webp"),
    (b"BM", b"", "image/bmp"),
    (b"II*\0", b"", "image/tiff"),
    (b"MM\0*", b"", "image/tiff"),
    (b"", b"avif", "image/avif"),
    (b"", b"heic", "image/heic"),
    (b"%PDF-", b"", "application/pdf"),
    (b"RIFF", b"WAVE", "audio/wav"),
    (b"OggS", b"", "audio/ogg"),
    (b"fLaC", b"", "audio/flac"),
    (b"ID3", b"", "audio/mpeg"),
    (b"\xff\xfb", b"", "audio/mpeg"),
    (b"\xff\xf3", b"", "audio/mpeg"),
    (b"\xff\xf2", b"", "audio/mpeg"),
    (b"\xff\xf1", b"", "audio/aac"),
    (b"", b"M4A ", "audio/mp4"),
    (b"", b"qt  ", "video/quicktime"),
    (b"RIFF", b"AVI ", "video/x-msvideo"),
    (b"\x1a\x45\xdf\xa3", b"", "video/webm"),
    (b"", b"", "video/mp4"),
];

/// Where the brand of a file of the MP4 family stands, and what stands before it.
const BRAND_AT: usize = 8;
const BRANDED: &[u8] = b"ftyp";

/// The type that the first bytes tell.
pub fn seen(bytes: &[u8]) -> Option<&'static str> {
    let is_branded = bytes.get(4..BRAND_AT) == Some(BRANDED);
    let fits = |&&(head, brand, _): &&(&[u8], &[u8], &str)| {
        let has_brand = bytes.get(BRAND_AT..).is_some_and(|rest| rest.starts_with(brand));
        (if head.is_empty() { is_branded } else { bytes.starts_with(head) }) && (brand.is_empty() || has_brand)
    };
    // Two letters are a thin sign, so an image of that kind has to have its length right too.
    let sure = |bytes: &[u8]| !bytes.starts_with(b"BM") || bytes.get(6..10) == Some(&[0; 4]);
    MAGIC.iter().find(fits).filter(|_| sure(bytes)).map(|(_, _, content_type)| *content_type)
}

/// The type of `bytes`, of which somebody says `claimed`.
///
/// Images and PDF files are what they look like, since a provider refuses them otherwise. In all else a claim that
/// makes sense counts: a container such as Ogg does not show on its first bytes what is in it.
pub(super) fn settle(claimed: Option<&str>, bytes: &[u8]) -> String {
    let seen = seen(bytes);
    let certain = seen.filter(|seen| seen.starts_with("image/") || *seen == "application/pdf");
    let claimed = || claimed.and_then(essence);
    certain.map(str::to_owned).or_else(claimed).unwrap_or_else(|| seen.unwrap_or(UNKNOWN).to_owned())
}

/// `type/subtype` of a content type, in lower case and without parameters.
fn essence(text: &str) -> Option<String> {
    let essence = text.split(';').next().unwrap_or_default().trim();
    let (family, kind) = essence.split_once('/')?;
    // RFC 6838 4.2.
    let is_name = |part: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
        (1..=127).contains(&part.len()) && part.bytes().all(fits)
    };
    (is_name(family) && is_name(kind)).then(|| essence.to_ascii_lowercase())
}

/// The word for a type in the text of a message.
pub(super) fn family(content_type: &str) -> &'static str {
    match content_type.split('/').next() {
        Some("image") => "image",
        Some("audio") => "audio",
        Some("video") => "video",
        Some(_) | None => "file",
    }
}

/// How a file of this type usually ends.
pub(super) fn extension(content_type: &str) -> &'static str {
    match content_type {
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/bmp" => "bmp",
        "image/tiff" => "tiff",
        "image/svg+xml" => "svg",
        "application/pdf" => "pdf",
        "application/json" => "json",
        "audio/mpeg" => "mp3",
        "audio/ogg" => "ogg",
        "audio/wav" => "wav",
        "audio/flac" => "flac",
        "video/mp4" => "mp4",
        "video/webm" => "webm",
        "text/plain" => "txt",
        "text/html" => "html",
        "text/csv" => "csv",
        _ => "bin",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell_the_type() {
        let table: [(&[u8], Option<&str>); 20] = [
            (b"\x89PNG\r\n\x1a\n\0", Some("image/png")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"GIF89a", Some("image/gif")),
            (b"RIFF\x01\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"RIFF\x01\0\0\0WAVEfmt ", Some("audio/wav")),
            (b"RIFF\x01\0\0\0XXXX", None),
            (b"RIFF", None),
            (b"BM\x10\0\0\0\0\0\0\0", Some("image/bmp")),
            (b"BMW drives fast", None),
            (b"%PDF-1.7", Some("application/pdf")),
            (b"OggS\0", Some("audio/ogg")),
            (b"ID3\x04", Some("audio/mpeg")),
            (b"\0\0\0\x20ftypM4A \0", Some("audio/mp4")),
            (b"\0\0\0\x20ftypisom", Some("video/mp4")),
            (b"\0\0\0\x20ftypavif", Some("image/avif")),
            (b"\0\0\0\x20ftyp", Some("video/mp4")),
            (b"\x1a\x45\xdf\xa3", Some("video/webm")),
            (b"\x89PNG", None),
            (b"hello", None),
            (b"", None),
        ];
        for (bytes, expected) in table {
            assert_eq!(seen(bytes), expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn a_claim_counts_where_the_bytes_do_not_say() {
        let png = b"\x89PNG\r\n\x1a\n";
        let check = |claimed, bytes: &[u8], expected: &str| assert_eq!(settle(claimed, bytes), expected, "{claimed:?}");
        check(Some("image/jpeg"), png, "image/png");
        check(Some("text/plain"), b"%PDF-1.7", "application/pdf");
        check(Some("video/ogg"), b"OggS", "video/ogg");
        check(Some("Text/Markdown; charset=utf-8"), b"# x", "text/markdown");
        check(None, b"OggS", "audio/ogg");
        for nonsense in ["", "text", "text/", "/plain", "a b/c", "text/pl\nain", "image/[x]", "téxt/plain"] {
            check(Some(nonsense), b"x", UNKNOWN);
        }
        check(None, b"", UNKNOWN);
    }
}
