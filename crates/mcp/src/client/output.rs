//! The result of a tool, as the model reads it.

use domain::json::Value;
use domain::tool::ToolOutput;

/// What a block of unknown kind of data is called.
const ANY_BYTES: &str = "application/octet-stream";

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
    if let Some(structured) = result.get("structuredContent").filter(|structured| !structured.is_null()) {
        // Servers are asked to send it as text as well, for clients that know no better.
        let is_there = texts.iter().any(|text| domain::json::parse(text).is_ok_and(|value| value == *structured));
        if !is_there {
            texts.push(structured.to_string());
        }
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
            let output = read(domain::json::parse(result).unwrap());
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
