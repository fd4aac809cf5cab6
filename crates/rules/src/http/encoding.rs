//! Bodies that are not what they look like: a block in one that is compressed or in another character set would read
//! as no JSON, which allows.

use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, TRANSFER_ENCODING};

use super::HttpFault;

/// What names of character sets begin with in which JSON in UTF-8 cannot be written.
const OTHER_CHARSETS: [&str; 9] =
    ["utf-16", "utf16", "utf-32", "utf32", "ucs", "iso-10646", "csunicode", "unicode", "utf-7"];

/// Lets a body pass that is sent as it is.
///
/// # Errors
/// A fault for one that its headers call encoded, with the word.
pub(super) fn check(headers: &HeaderMap) -> Result<(), HttpFault> {
    if let Some(word) = words(headers, &CONTENT_ENCODING).find(|word| !word.is_empty() && word != "identity") {
        return Err(HttpFault::Encoded(format!(
            "the body has the content encoding \"{}\"; send it as it is: the request says `Accept-Encoding: identity`",
            word.escape_debug()
        )));
    }
    if let Some(word) = words(headers, &TRANSFER_ENCODING).find(|word| !word.is_empty() && word != "chunked") {
        return Err(HttpFault::Encoded(format!(
            "the body has the transfer encoding \"{}\"; only \"chunked\" is read",
            word.escape_debug()
        )));
    }
    let charset = texts(headers, &CONTENT_TYPE).find_map(|value| charset(&value).filter(|charset| is_other(charset)));
    charset.map_or(Ok(()), |charset| {
        Err(HttpFault::Encoded(format!("the body has the charset \"{}\"; send JSON in UTF-8", charset.escape_debug())))
    })
}

/// The values of a header in lower case; bytes that are not text are shown as such.
fn texts(headers: &HeaderMap, name: &HeaderName) -> impl Iterator<Item = String> {
    headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()).to_lowercase())
}

/// The words of a header that is a list.
fn words(headers: &HeaderMap, name: &HeaderName) -> impl Iterator<Item = String> {
    texts(headers, name).flat_map(|value| value.split(',').map(|word| word.trim().to_owned()).collect::<Vec<_>>())
}

/// The charset of a content type in lower case.
fn charset(value: &str) -> Option<String> {
    value.split(';').skip(1).find_map(|parameter| {
        let (name, charset) = parameter.split_once('=')?;
        (name.trim() == "charset").then(|| charset.trim().trim_matches(['"', '\'']).trim().to_owned())
    })
}

fn is_other(charset: &str) -> bool {
    OTHER_CHARSETS.iter().any(|other| charset.starts_with(other))
}
