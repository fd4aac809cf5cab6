//! Texts of the engine as texts of ours: bounded, and always well formed.

use rquickjs::{Ctx, Object, String as JsString, Value};

/// At most `max` bytes from the start of `text`, cut between characters.
pub(super) fn head(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// At most about `max` bytes from the start of `string`; none when there is no memory for it.
pub(super) fn read(string: &JsString<'_>, max: usize) -> Option<String> {
    let text = string.clone().to_cstring().ok()?;
    // Halves of surrogate pairs come as bytes that are not UTF-8.
    let bytes: &[u8] = text.as_ref();
    Some(String::from_utf8_lossy(&bytes[..bytes.len().min(max)]).into_owned())
}

/// A value that is not an object, or an error or a function, as text.
pub(super) fn plain(value: &Value<'_>) -> Option<String> {
    let max = crate::limits::CONSOLE_BYTES + 1;
    if let Some(string) = value.as_string() {
        return read(string, max);
    }
    if let Some(exception) = value.as_exception() {
        return Some(error(value.ctx(), exception.as_object(), max));
    }
    if value.is_symbol() || value.is_function() {
        return None;
    }
    let text: rquickjs::Coerced<String> = value.get().ok()?;
    Some(text.0)
}

/// `Name: message` of an error, as far as it says so itself.
pub(super) fn error(ctx: &Ctx<'_>, object: &Object<'_>, max: usize) -> String {
    let member = |name: &str| {
        let value = object.get::<_, Value<'_>>(name).ok();
        if value.is_none() {
            drop(ctx.catch());
        }
        value.and_then(|value| read(value.as_string()?, max)).filter(|text| !text.is_empty())
    };
    match (member("name"), member("message")) {
        (Some(name), Some(message)) => format!("{name}: {message}"),
        (None, Some(text)) | (Some(text), None) => text,
        (None, None) => "an object that is not an error".to_owned(),
    }
}

/// JSON of the engine as text. Where a string of it has half of a surrogate pair, which JSON can say (`\ud800`) and no
/// text of ours can hold, the replacement character stands instead.
pub(super) fn well_formed(json: &[u8]) -> String {
    let text = String::from_utf8_lossy(json);
    let mut rest = text.as_ref();
    let mut whole = String::with_capacity(rest.len());
    while let Some(at) = rest.find('\\') {
        // Whole pairs are never escaped, so every escape of a surrogate is of a half.
        let escape = &rest[at..];
        let half = escape.starts_with("\\ud") && matches!(escape.as_bytes().get(3), Some(b'8'..=b'9' | b'a'..=b'f'));
        let size = if half { 6 } else { 2 }.min(escape.len());
        whole.push_str(&rest[..at]);
        whole.push_str(if half { "\\ufffd" } else { &escape[..size] });
        rest = &escape[size..];
    }
    whole + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_pairs_are_replaced_and_nothing_else() {
        for (json, wanted) in [
            (r#"{"a":"\ud83d"}"#, r#"{"a":"\ufffd"}"#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\\\udfff\n\u0000""#, r#""\\\ufffd\n\u0000""#),
            (r#""\ud7ff ü""#, r#""\ud7ff ü""#),
        ] {
            assert_eq!(well_formed(json.as_bytes()), wanted);
        }
    }

    #[test]
    fn heads_end_between_characters() {
        assert_eq!(["", "", "ü", "üx"], [0, 1, 2, 9].map(|max| head("üx", max)));
    }
}
