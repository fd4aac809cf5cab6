//! The result of a call: what hooks read of it, and how one that they changed is written.

use pintle_domain::json::{Object, Value, json, parse, same_value};
use pintle_domain::tool::ToolOutput;

use super::message::plainly;
use crate::spans::{Edits, JsonDocument, Kind, Node};

/// The members that say what a result is.
const KNOWN: [&str; 6] = ["content", "isError", "structuredContent", "resultType", "task", "inputRequests"];

/// Those of a result that is final; hooks read every other one as it is.
const FINAL: [&str; 4] = ["content", "isError", "structuredContent", "_meta"];

/// The members of a piece of content, and of a resource in one.
const BLOCK: [&str; 8] = ["type", "text", "data", "mimeType", "resource", "uri", "blob", "name"];

/// All that an answer may have which asks for more. Source: the Model Context Protocol of 2026-07-28.
const ASKING: [&str; 4] = ["resultType", "inputRequests", "requestState", "_meta"];

/// All that an answer may have which names a task. Source: the protocol of 2025-11-25.
const WITH_TASK: [&str; 3] = ["task", "resultType", "_meta"];

/// All that a task may have. Source: the protocol of 2025-11-25, and the extension for tasks of 2026-07-28.
const TASK: [&str; 11] = [
    "resultType",
    "taskId",
    "status",
    "statusMessage",
    "createdAt",
    "lastUpdatedAt",
    "ttl",
    "ttlMs",
    "pollInterval",
    "pollIntervalMs",
    "_meta",
];

/// What a result answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultOf {
    /// A call.
    Call,
    /// A call of the newest protocol, in which a result says of which kind it is.
    ModernCall,
    /// The question what came of a task: it is final, whatever it claims to be.
    Task,
}

/// What a server answers to a call.
#[derive(Clone, Debug, PartialEq)]
pub enum CallAnswer {
    /// It is over.
    Final(ToolOutput),
    /// It goes on as a task of this name.
    Task(Option<String>),
    /// The client is asked for something, and calls again.
    MoreNeeded,
}

/// Reads the result at `node`.
///
/// # Errors
/// It could be read in two ways.
pub fn read(document: &JsonDocument, node: &Node, to: ResultOf) -> Result<CallAnswer, String> {
    plainly(node, &KNOWN)?;
    for block in node.get("content").map(Node::items).unwrap_or_default() {
        plainly(block, &BLOCK)?;
        if let Some(resource) = block.get("resource") {
            plainly(resource, &BLOCK)?;
        }
    }
    match to {
        ResultOf::Call | ResultOf::ModernCall => {
            if let Some(unfinished) = unfinished(document, node, to == ResultOf::ModernCall) {
                return Ok(unfinished);
            }
        }
        ResultOf::Task => {}
    }
    let value = document.value(node);
    let is_error = value.get("isError").and_then(Value::as_bool).unwrap_or(false);
    Ok(CallAnswer::Final(ToolOutput { is_error, ..ToolOutput::ok(text(&value)) }))
}

/// What an answer says that is not the end. With anything in it that does not belong to that, it is one.
fn unfinished(document: &JsonDocument, node: &Node, modern: bool) -> Option<CallAnswer> {
    let kind = document.text_at(node, "resultType").filter(|_| modern);
    match kind.as_deref() {
        Some("input_required") => return has_only(node, &ASKING).then_some(CallAnswer::MoreNeeded),
        Some("task") if has_only(node, &TASK) => return Some(CallAnswer::Task(document.text_at(node, "taskId"))),
        Some(_) | None => {}
    }
    let task = node.get("task").filter(|task| has_only(node, &WITH_TASK) && has_only(task, &TASK))?;
    Some(CallAnswer::Task(document.text_at(task, "taskId")))
}

/// Whether `node` is an object all of whose members are among `names`.
fn has_only(node: &Node, names: &[&str]) -> bool {
    match &node.kind {
        Kind::Object(members) => members.iter().all(|(name, _)| names.contains(&name.as_str())),
        Kind::Array(_) | Kind::Plain => false,
    }
}

/// What hooks read: texts as they are, media in a word, everything else as JSON.
fn text(result: &Value) -> String {
    let Some(members) = result.as_object() else { return result.to_string() };
    let mut texts: Vec<String> = match members.get("content") {
        Some(Value::Array(blocks)) => blocks.iter().map(block).collect(),
        Some(other) => vec![other.to_string()],
        None => Vec::new(),
    };
    if let Some(structured) = members.get("structuredContent").filter(|structured| !structured.is_null()) {
        let said = parse(&texts.join("\n")).is_ok_and(|said| same_value(&said, structured));
        if !said {
            texts.push(structured.to_string());
        }
    }
    let is_more = |(name, value): &(&String, &Value)| {
        let says_final = *name == "resultType" && value.as_str() == Some("complete");
        !FINAL.contains(&name.as_str()) && !says_final
    };
    let more: Object = members.iter().filter(is_more).map(|(name, value)| (name.clone(), value.clone())).collect();
    if !more.is_empty() {
        texts.push(Value::Object(more).to_string());
    }
    texts.join("\n")
}

fn block(block: &Value) -> String {
    let text = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).map(str::to_owned);
    let medium = |of: &Value, name: &str| {
        let bytes = of.get(name).and_then(Value::as_str)?.len();
        let mime = text(of, "mimeType").unwrap_or_else(|| "data".into());
        Some(format!("[{mime}, {bytes} characters of base64]"))
    };
    let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
    let shown = match kind {
        "text" => text(block, "text"),
        "image" | "audio" => medium(block, "data"),
        "resource" => block.get("resource").and_then(|resource| {
            let uri = text(resource, "uri").unwrap_or_default();
            let held = text(resource, "text").or_else(|| medium(resource, "blob"))?;
            Some(format!("{uri}\n{held}"))
        }),
        _ => None,
    };
    shown.unwrap_or_else(|| block.to_string())
}

/// What a changed result is written over.
#[derive(Clone, Copy, Debug)]
pub struct WrittenOver<'a> {
    /// Its message.
    pub document: &'a JsonDocument,
    /// Its place there.
    pub node: &'a Node,
}

impl WrittenOver<'_> {
    /// Puts `left` in its place. Nothing of what was there stays: hooks may have wanted any of it gone.
    pub fn replace(&self, left: &ToolOutput) -> Edits {
        let mut edits = Edits::default();
        edits.replace(self.node.span.clone(), self.fresh(left).to_string());
        edits
    }

    fn fresh(&self, left: &ToolOutput) -> Value {
        let had_structured = self.node.get("structuredContent").is_some_and(|node| self.document.raw(node) != "null");
        let structured = parse(&left.for_llm).ok().filter(|value| had_structured && value.is_object());
        let mut members = Object::new();
        members.insert("content".into(), blocks(left));
        // A client that was promised structure takes a result without it for broken; an error it takes as it is.
        let is_error = left.is_error || (had_structured && structured.is_none());
        if let Some(structured) = structured {
            members.insert("structuredContent".into(), structured);
        }
        members.insert("isError".into(), is_error.into());
        if self.node.get("resultType").is_some() {
            members.insert("resultType".into(), "complete".into());
        }
        Value::Object(members)
    }

    /// Puts `note` behind what is there, as one block more; none where there is no list to put it into.
    pub fn note(&self, note: &str) -> Option<Edits> {
        let content = self.node.get("content").filter(|content| content.is_array())?;
        let mut edits = Edits::default();
        edits.push_item(content, &json!({"type": "text", "text": note}).to_string());
        Some(edits)
    }
}

fn blocks(output: &ToolOutput) -> Value {
    let mut blocks = vec![json!({"type": "text", "text": output.for_llm})];
    blocks.extend(output.media.iter().filter_map(|url| {
        let (mime, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
        let kind = mime.split('/').next().filter(|kind| matches!(*kind, "image" | "audio"))?;
        Some(json!({"type": kind, "data": data, "mimeType": mime}))
    }));
    blocks.into()
}

/// The answer to a call that no server gave: to the request with the id `id` as it is written. `modern`: for a client
/// that wants to be told that it is whole.
pub fn answer(id: &str, output: &ToolOutput, modern: bool) -> String {
    let whole = if modern { r#","resultType":"complete""# } else { "" };
    let (blocks, is_error) = (blocks(output), output.is_error);
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":{blocks},"isError":{is_error}{whole}}}}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> JsonDocument {
        JsonDocument::read(text.to_owned()).unwrap()
    }

    #[test]
    fn hooks_read_all_of_a_result() {
        for (result, text) in [
            (r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#, "a\nb"),
            (r#"{"content":[{"type":"text","text":"{\"n\": 1.0}"}],"structuredContent":{"n":1}}"#, "{\"n\": 1.0}"),
            (r#"{"content":[{"type":"text","text":"a"}],"structuredContent":{"key":"s"}}"#, "a\n{\"key\":\"s\"}"),
            (
                r#"{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"}]}"#,
                "[image/png, 4 characters of base64]",
            ),
            (r#"{"content":[{"type":"resource","resource":{"uri":"u:1","text":"t"}}]}"#, "u:1\nt"),
            (
                r#"{"content":[{"type":"odd","x":1}],"toolResult":2,"_meta":{"y":3}}"#,
                "{\"type\":\"odd\",\"x\":1}\n{\"toolResult\":2}",
            ),
            ("{}", ""),
            ("[1]", "[1]"),
        ] {
            let document = document(result);
            let answer = read(&document, &document.root, ResultOf::ModernCall).unwrap();
            assert_eq!(answer, CallAnswer::Final(ToolOutput::ok(text)), "{result}");
        }
        for odd in [
            r#"{"Content":[]}"#,
            r#"{"content":[{"type":"text","text":"a","Text":"b"}]}"#,
            r#"{"content":[{"type":"resource","resource":{"uri":"u:1","text":"t","Blob":"x"}}]}"#,
        ] {
            let document = document(odd);
            assert!(read(&document, &document.root, ResultOf::Call).is_err(), "{odd}");
        }
    }

    #[test]
    fn what_is_not_the_end_is_known() {
        for (result, expected) in [
            (r#"{"task":{"taskId":"t","status":"working"}}"#, CallAnswer::Task(Some("t".into()))),
            (r#"{"resultType":"task","taskId":"t"}"#, CallAnswer::Task(Some("t".into()))),
            (r#"{"resultType":"input_required","inputRequests":{}}"#, CallAnswer::MoreNeeded),
            (r#"{"task":{},"content":[],"isError":true}"#, CallAnswer::Final(ToolOutput::error("{\"task\":{}}"))),
        ] {
            let document = document(result);
            assert_eq!(read(&document, &document.root, ResultOf::ModernCall).unwrap(), expected);
        }
    }

    #[test]
    fn what_only_claims_not_to_be_the_end_is_read() {
        use ResultOf::{Call, ModernCall, Task};
        let text = r#"{"resultType":"input_required","content":[{"type":"text","text":"key"}]}"#;
        for (result, to) in [
            (text, ModernCall),
            (text, Call),
            (text, Task),
            (r#"{"resultType":"task","taskId":"t","structuredContent":{"key":1}}"#, ModernCall),
            (r#"{"resultType":"task","taskId":"t","key":1}"#, ModernCall),
            (r#"{"resultType":"task","taskId":"key"}"#, Call),
            (r#"{"resultType":"input_required","inputRequests":{},"toolResult":"key"}"#, ModernCall),
            (r#"{"resultType":"input_required","inputRequests":{"key":{}}}"#, Call),
            (r#"{"task":{"taskId":"t"},"structuredContent":{"key":1}}"#, Call),
            (r#"{"task":{"taskId":"t","key":1}}"#, Call),
            (r#"{"task":"key"}"#, Call),
            (r#"{"task":{"taskId":"key"}}"#, Task),
        ] {
            let document = document(result);
            match read(&document, &document.root, to).unwrap() {
                CallAnswer::Final(output) => assert!(output.for_llm.contains("key"), "{result}: {output:?}"),
                other @ (CallAnswer::Task(_) | CallAnswer::MoreNeeded) => panic!("{result}: {other:?}"),
            }
        }
    }

    #[test]
    fn of_a_changed_result_nothing_stays() {
        let changed = |result: &str, left: ToolOutput| {
            let document = document(result);
            WrittenOver { document: &document, node: &document.root }.replace(&left).apply(result)
        };
        assert_eq!(
            changed(
                r#"{"content":[{"type":"text","text":"key"}],"_meta":{"k":"key"},"resultType":"complete"}"#,
                ToolOutput::ok("-")
            ),
            r#"{"content":[{"type":"text","text":"-"}],"isError":false,"resultType":"complete"}"#
        );
        let structured = r#"{"content":[],"structuredContent":{"key":"s"}}"#;
        assert_eq!(
            changed(structured, ToolOutput::ok("-")),
            r#"{"content":[{"type":"text","text":"-"}],"isError":true}"#
        );
        assert_eq!(
            changed(structured, ToolOutput::ok(r#"{"key":"-"}"#)),
            r#"{"content":[{"type":"text","text":"{\"key\":\"-\"}"}],"structuredContent":{"key":"-"},"isError":false}"#
        );
        let with_picture =
            ToolOutput { media: vec!["data:image/png;base64,AA".into(), "media://1".into()], ..ToolOutput::ok("x") };
        assert!(changed("{}", with_picture).contains(r#"{"type":"image","data":"AA","mimeType":"image/png"}"#));
    }

    #[test]
    fn a_note_stands_behind_the_result() {
        let text = r#"{"content":[{"type":"text","text":"a"}] ,"x":1}"#;
        let document = document(text);
        let over = WrittenOver { document: &document, node: &document.root };
        let expected = r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"n"}] ,"x":1}"#;
        assert_eq!(over.note("n").unwrap().apply(text), expected);
    }
}
