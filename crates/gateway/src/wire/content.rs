//! The content of a message: its text, and the files that come with it. Pure.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use pintle_domain::json::{Object, Value};

use crate::error::ApiError;

/// Base64 with padding or without.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// How a reference to a file that was handed over before begins.
pub(crate) const REFERENCE: &str = "media://";

/// A file, and which message of the history it stands in; none, if it comes with the prompt.
pub(crate) type Placed = (Option<usize>, Attachment);

/// A file that comes with a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Attachment {
    /// It was handed over before: its id.
    Kept(String),
    /// It stands in the message.
    Inline {
        /// The type that the client says it has.
        content_type: String,
        bytes: Vec<u8>,
        file_name: String,
    },
}

/// What a message says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Content {
    pub(crate) text: String,
    pub(crate) files: Vec<Attachment>,
    /// Whether something of it was left out.
    pub(crate) left_out: bool,
}

/// A part of a message that is not of the type `text`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    File(Attachment),
    /// A text all the same.
    Text(String),
    /// What a model and its vendor said to one another: an agent has nothing of it.
    LeftOut,
}

/// Reads a part of a message; `Ok(None)` for one that no message of this kind has.
type ReadPart = fn(&Object, &str) -> Result<Option<Part>, ApiError>;

/// The content of a message: a string, or parts. `other` reads the parts that are not text.
pub(crate) fn content(value: Option<&Value>, at: &str, other: ReadPart) -> Result<Content, ApiError> {
    let parts = match value {
        None | Some(Value::Null) => return Ok(Content::default()),
        Some(Value::String(text)) => return Ok(Content { text: text.clone(), ..Content::default() }),
        Some(Value::Array(parts)) => parts,
        Some(_) => return Err(ApiError::invalid(format!("`{at}.content` must be a string or a list of parts"))),
    };
    let mut content = Content::default();
    for (i, part) in parts.iter().enumerate() {
        let at = format!("{at}.content[{i}]");
        let part = part.as_object().ok_or_else(|| ApiError::invalid(format!("`{at}` must be an object")))?;
        let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
        let text = part.get("text").and_then(Value::as_str).filter(|_| kind == "text");
        match text {
            Some(more) => content.text.push_str(more),
            None => match other(part, &at)? {
                Some(Part::File(file)) => content.files.push(file),
                Some(Part::Text(more)) => content.text.push_str(&more),
                Some(Part::LeftOut) => content.left_out = true,
                None => return Err(ApiError::invalid(format!("`{at}`: parts of the type \"{kind}\" are not taken"))),
            },
        }
    }
    Ok(content)
}

/// No part but text is taken.
pub(crate) fn only_text(_part: &Object, _at: &str) -> Result<Option<Part>, ApiError> {
    Ok(None)
}

/// The file that a URL is: one that was handed over before, or one that stands in it.
pub(crate) fn of_url(url: &str, file_name: &str, at: &str) -> Result<Attachment, ApiError> {
    if url.starts_with(REFERENCE) {
        return Ok(attached(url));
    }
    let Some((head, data)) = url.strip_prefix("data:").and_then(|url| url.split_once(',')) else {
        return Err(ApiError::invalid(format!(
            "`{at}`: expected a `data:` URL or `media://ID`; nothing is fetched for a client"
        )));
    };
    let Some(content_type) = head.strip_suffix(";base64") else {
        return Err(ApiError::invalid(format!("`{at}`: expected a `data:` URL in base64")));
    };
    inline(content_type, data, file_name, at)
}

/// The file that was handed over before: `text` is its id, or its reference.
pub(crate) fn attached(text: &str) -> Attachment {
    Attachment::Kept(text.strip_prefix(REFERENCE).unwrap_or(text).to_owned())
}

/// The file whose content `data` is, in base64.
pub(crate) fn inline(content_type: &str, data: &str, file_name: &str, at: &str) -> Result<Attachment, ApiError> {
    // As programs write it: with or without padding, in lines or in one.
    let data: String = data.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let bytes = LENIENT.decode(data).map_err(|why| ApiError::invalid(format!("`{at}`: no base64: {why}")))?;
    Ok(Attachment::Inline { content_type: content_type.to_owned(), bytes, file_name: file_name.to_owned() })
}

/// The text of a member of a part, which must be there.
pub(crate) fn text_of<'a>(part: &'a Object, name: &str, at: &str) -> Result<&'a str, ApiError> {
    let text = part.get(name).and_then(Value::as_str);
    text.ok_or_else(|| ApiError::invalid(format!("`{at}.{name}` must be a string")))
}

/// The object that is a member of a part, which must be there.
pub(crate) fn object_of<'a>(part: &'a Object, name: &str, at: &str) -> Result<&'a Object, ApiError> {
    let object = part.get(name).and_then(Value::as_object);
    object.ok_or_else(|| ApiError::invalid(format!("`{at}.{name}` must be an object")))
}
