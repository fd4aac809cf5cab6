//! The result of a tool, as the model reads it.

use pintle_domain::json::{Object, Value};
use pintle_domain::tool::ToolOutput;

/// What a block of unknown kind of data is called.
const ANY_BYTES: &str = "application/octet-stream";

/// A text of this length without a blank is not a word and no key, but a file as base64.
const UNREADABLE_BYTES: usize = 4096;

/// Reads a result block by block; what is no block leaves a note, and spoils nothing else.
pub(super) fn read(result: Value) -> ToolOutput {
    let kind = result.get("resultType").and_then(Value::as_str).unwrap_or("complete");
    if kind != "complete" {
        return ToolOutput::error(format!("the tool answered with `{kind}`, which needs more than one call can give"));
    }
    let (mut texts, mut media) = (Vec::new(), Vec::new());
    for block in result.get("content").and_then(Value::as_array).into_iter().flatten() {
        match take(block) {
            Taken::Text(text) => texts.push(text),
            Taken::Media(url) => media.push(url),
        }
    }
    // Servers say in it once more what stands in the blocks, with media as base64 within JSON: the blocks are the result.
    if texts.is_empty()
        && media.is_empty()
        && let Some(structured) = result.get("structuredContent").filter(|structured| !structured.is_null())
    {
        texts.push(without_media(structured).to_string());
    }
    if result.get("content").is_none() && texts.is_empty() {
        return ToolOutput::error("the tool's result has neither `content` nor `structuredContent`");
    }
    let is_error = result.get("isError").and_then(Value::as_bool).unwrap_or(false);
    ToolOutput { for_llm: texts.join("\n"), is_error, media, ..ToolOutput::default() }
}

enum Taken {
    Text(String),
    /// A `data:` URL.
    Media(String),
}

fn take(block: &Value) -> Taken {
    let text = |of: &Value, key: &str| of.get(key).and_then(Value::as_str).map(str::to_owned);
    let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
    let taken = match kind {
        "text" => text(block, "text").map(Taken::Text),
        "image" | "audio" => data(block, "data"),
        "resource" => block.get("resource").and_then(|resource| match text(resource, "text") {
            Some(text) => Some(Taken::Text(text)),
            None => data(resource, "blob"),
        }),
        "resource_link" => link(block).map(Taken::Text),
        _ => None,
    };
    taken.unwrap_or_else(|| Taken::Text(format!("[a block of type {kind:?} was left out]")))
}

/// The `data:` URL of what `block` holds under `key`.
fn data(block: &Value, key: &str) -> Option<Taken> {
    let data: String = block.get(key)?.as_str()?.split_ascii_whitespace().collect();
    let is_base64 = data.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
    let is_type = |mime: &&str| {
        mime.split_once('/').is_some_and(|(kind, sub)| !kind.is_empty() && !sub.is_empty())
            && mime.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/+-._".contains(&byte))
    };
    let mime = block.get("mimeType").and_then(Value::as_str).filter(is_type).unwrap_or(ANY_BYTES);
    is_base64.then(|| Taken::Media(format!("data:{mime};base64,{data}")))
}

/// `value` with a word in the place of each medium: in base64 it would cost a model more than everything else.
fn without_media(value: &Value) -> Value {
    let left_out = |bytes: usize| Value::from(format!("[{bytes} bytes of media were left out]"));
    match value.as_str() {
        Some(text) if is_media(text) => return left_out(text.len()),
        Some(_) | None => {}
    }
    if let Some(items) = value.as_array() {
        return items.iter().map(without_media).collect::<Vec<Value>>().into();
    }
    let Some(object) = value.as_object() else { return value.clone() };
    let is_block = object.get("mimeType").is_some()
        || object.get("type").and_then(Value::as_str).is_some_and(|kind| matches!(kind, "image" | "audio"));
    let member = |(name, member): (&String, &Value)| {
        let bytes = member.as_str().filter(|_| is_block && matches!(name.as_str(), "data" | "blob")).map(str::len);
        (name.clone(), bytes.map_or_else(|| without_media(member), left_out))
    };
    object.iter().map(member).collect::<Object>().into()
}

/// Whether a text is a `data:` URL, or so long a run of base64 that it is nothing to read.
fn is_media(text: &str) -> bool {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_');
    (text.starts_with("data:") && text.contains(";base64,"))
        || (text.len() >= UNREADABLE_BYTES && text.bytes().all(is_base64))
}

/// Where a resource is, in words.
fn link(block: &Value) -> Option<String> {
    let text = |key: &str| block.get(key).and_then(Value::as_str).unwrap_or_default();
    let uri = block.get("uri")?.as_str()?;
    let named = [text("title"), text("name")].into_iter().find(|name| !name.is_empty());
    let mut line = named.map_or_else(|| uri.to_owned(), |name| format!("{name}: {uri}"));
    if !text("description").is_empty() {
        line = format!("{line} ({})", text("description"));
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_become_text_and_media() {
        let check = |result: &str| {
            let output = read(pintle_domain::json::parse(result).unwrap());
            format!("{:?} {:?} {}", output.for_llm, output.media, output.is_error)
        };
        let table = [
            (r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#, r#""a\nb" [] false"#),
            (r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#, r#""no" [] true"#),
            (
                r#"{"content":[{"type":"image","data":"aG k=\n","mimeType":"image/png"},{"type":"audio","data":"AA==","mimeType":"x;y"}]}"#,
                r#""" ["data:image/png;base64,aGk=", "data:application/octet-stream;base64,AA=="] false"#,
            ),
            (
                r#"{"content":[{"type":"resource","resource":{"uri":"a:b","text":"t"}},{"type":"resource","resource":{"uri":"a:c","blob":"QQ==","mimeType":"a/b"}}]}"#,
                r#""t" ["data:a/b;base64,QQ=="] false"#,
            ),
            (
                r#"{"content":[{"type":"resource_link","uri":"file:///x","name":"x","description":"the x"},{"type":"resource_link"}]}"#,
                r#""x: file:///x (the x)\n[a block of type \"resource_link\" was left out]" [] false"#,
            ),
            (
                r#"{"content":[{"type":"hologram"},7,{"type":"image","data":"<>"}]}"#,
                r#""[a block of type \"hologram\" was left out]\n[a block of type \"\" was left out]\n[a block of type \"image\" was left out]" [] false"#,
            ),
            (r#"{"content":[],"structuredContent":{"n":1.10}}"#, r#""{\"n\":1.10}" [] false"#),
            (
                r#"{"content":[{"type":"text","text":"{ \"n\": 1 }"}],"structuredContent":{"n":1}}"#,
                r#""{ \"n\": 1 }" [] false"#,
            ),
            (
                r#"{"content":[{"type":"text","text":"two rows"}],"structuredContent":{"rows":[1,2]}}"#,
                r#""two rows" [] false"#,
            ),
            (
                r#"{"content":[{"type":"image","data":"QQ==","mimeType":"image/png"}],"structuredContent":{"result":[{"type":"image","data":"QQ=="}]}}"#,
                r#""" ["data:image/png;base64,QQ=="] false"#,
            ),
            (
                r#"{"structuredContent":{"a":[{"type":"image","data":"QQ==","alt":"a cat"}],"b":"data:image/png;base64,QQ==","c":{"mimeType":"a/b","blob":"QQ=="},"data":"QQ=="}}"#,
                r#""{\"a\":[{\"type\":\"image\",\"data\":\"[4 bytes of media were left out]\",\"alt\":\"a cat\"}],\"b\":\"[26 bytes of media were left out]\",\"c\":{\"mimeType\":\"a/b\",\"blob\":\"[4 bytes of media were left out]\"},\"data\":\"QQ==\"}" [] false"#,
            ),
            (r#"{"content":[]}"#, r#""" [] false"#),
            (r#"{}"#, r#""the tool's result has neither `content` nor `structuredContent`" [] true"#),
            (
                r#"{"resultType":"input_required","content":[]}"#,
                r#""the tool answered with `input_required`, which needs more than one call can give" [] true"#,
            ),
        ];
        for (result, expected) in table {
            assert_eq!(check(result), expected, "{result}");
        }
    }
}
