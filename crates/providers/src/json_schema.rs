//! `tool_mode = "json_schema"`: tool calls of small models whose server can hold an answer to a JSON schema.
//!
//! **What leaves.** The tools become a `response_format`: the answer is `{"tool": NAME, "arguments": {…}}` for one of
//! them, or `{"reply": TEXT}`. A system text that describes them joins the first message if that is a system message,
//! else it goes before it. Earlier calls are written as the answers that they were, results of tools as user texts
//! (one with the user text that follows them), with their images if `vision` says so. What a hook wants the model to
//! read is user text between marks, as with [`openai`](crate::openai), and joins the user texts around it, results of
//! tools among them; texts of skills and prompts of the host's own are lowered as there, results counting as what the
//! user says. The schemas of parameters are reduced to `type`, `properties`,
//! `required`, `enum`, `const`, `anyOf`, `items` and `maxLength`, which every grammar converter knows, and each free
//! text gets a bound, since a small model runs on. `tool_choice` decides which branches there are: `none` offers plain
//! text only, `required` no reply, a function only itself; it and `parallel_tool_calls` are then used up, and a
//! `response_format` among the options is replaced. [`DEFAULT_MAX_TOKENS`] stands in when no option bounds the answer.
//! Without tools the request is an ordinary one, with the conversation written as above.
//!
//! **What comes back.** An answer of the schema becomes a call or a text. A reply that was cut is shown as far as it
//! got. Any other broken answer that begins with `{` is an error, since half a call must not pass for text; everything else
//! is text: a server that knows no schemas still answers.

use std::borrow::Cow;

use pintle_domain::json::{Object, Rendered, Value, json};
use pintle_domain::llm::{LlmReply, LlmRequest, ToolDef};
use pintle_domain::message::{CallPart, Message, Role};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::ProviderError;
use crate::lower::{Join, LoweringOptions, Thread, WireNames, lowered, mark, system_text, text_part};
use crate::media::with_notes;
use crate::openai::request::{Wire, images_and_notes, user_content};

mod schema;

/// Longest answer when the request does not say, in tokens: room for one long text argument.
pub const DEFAULT_MAX_TOKENS: u32 = 1024;

/// Options that bound an answer.
const BOUNDS: [&str; 3] = ["max_tokens", "max_completion_tokens", "n_predict"];

/// `request` for a model that is given a schema; false when nothing is offered and the answer is plain.
pub(crate) fn render<'a>(
    model: &'a str,
    request: &'a LlmRequest,
    vision: bool,
    how: &LoweringOptions<'_>,
) -> (Wire<'a>, bool) {
    let mut options = request.options.clone();
    options.shift_remove("parallel_tool_calls");
    let choice = Choice::of(options.shift_remove("tool_choice"));
    let tools: Vec<&ToolDef> = request.tools.iter().map(Rendered::get).filter(|tool| choice.allows(tool)).collect();
    let mut messages = conversation(&request.messages, !tools.is_empty(), vision, how);
    if !tools.is_empty() {
        instruct(&mut messages, &instructions(&tools, choice.allows_reply()));
        let schema = schema::of_answer(&tools, choice.allows_reply());
        let format = json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}});
        options.insert("response_format".into(), format);
    }
    bound(&mut options);
    let names = WireNames::default();
    (Wire { model, messages, tools: &[], options: Cow::Owned(options), names }, !tools.is_empty())
}

fn bound(options: &mut Object) {
    if !BOUNDS.iter().any(|name| options.contains_key(name)) {
        options.insert("max_tokens".into(), DEFAULT_MAX_TOKENS.into());
    }
}

/// The choice that `tool_choice` leaves open.
enum Choice {
    Auto,
    Nothing,
    Required,
    Only(String),
}

impl Choice {
    fn of(option: Option<Value>) -> Self {
        let option = option.unwrap_or_default();
        match (option.as_str(), option["function"]["name"].as_str()) {
            (Some("none"), _) => Self::Nothing,
            (Some("required"), _) => Self::Required,
            (_, Some(name)) => Self::Only(name.into()),
            _ => Self::Auto,
        }
    }

    fn allows(&self, tool: &ToolDef) -> bool {
        match self {
            Self::Auto | Self::Required => true,
            Self::Nothing => false,
            Self::Only(name) => tool.function.name == *name,
        }
    }

    fn allows_reply(&self) -> bool {
        matches!(self, Self::Auto | Self::Nothing)
    }
}

/// The instructions that the model gets about its tools.
fn instructions(tools: &[&ToolDef], with_reply: bool) -> String {
    let mut text =
        String::from("Answer with one JSON object.\nTo use a tool: {\"tool\": NAME, \"arguments\": {...}}\n");
    if with_reply {
        text.push_str("To answer the user: {\"reply\": TEXT}\n");
    }
    text.push_str("Tools:");
    for tool in tools {
        let function = &tool.function;
        text.push_str(&format!("\n- {}: {}", function.name, function.description));
        if let Some(properties) = function.parameters.get("properties") {
            text.push_str(&format!("\n  arguments: {properties}"));
        }
    }
    text
}

fn instruct(messages: &mut Vec<Value>, instructions: &str) {
    match messages.first_mut() {
        Some(first) if first["role"] == "system" => {
            let own = first["content"].as_str().unwrap_or_default();
            first["content"] = format!("{own}\n\n{instructions}").trim_start().into();
        }
        Some(_) | None => messages.insert(0, json!({"role": "system", "content": instructions})),
    }
}

/// The messages in words that a model without tool calls understands.
fn conversation(
    messages: &[Rendered<Message>],
    with_tools: bool,
    vision: bool,
    how: &LoweringOptions<'_>,
) -> Vec<Value> {
    let lowered = lowered(messages, how);
    let alternates = lowered.minded && how.capabilities.alternation;
    let mut thread = Thread::default();
    let mut calls: Vec<&CallPart> = Vec::new();
    for one in &lowered.spoken {
        let (message, join) = (&one.message, one.join);
        calls.extend(&message.tool_calls);
        let (role, mut content, join) = match message.role {
            Role::System => ("system", Value::from(system_text(message)), join),
            Role::User => ("user", user_content(message, vision), join),
            Role::Assistant => ("assistant", assistant(message, with_tools).into(), join),
            Role::Tool if alternates => ("user", result(message, &calls, vision), Join::Always),
            Role::Tool => ("user", result(message, &calls, vision), Join::Texts),
        };
        if one.marked {
            mark(&mut content, &how.capabilities.turn_scoped);
        }
        thread.push(json!({"role": role, "content": content}), join);
    }
    thread.into_messages()
}

fn assistant(message: &Message, with_tools: bool) -> String {
    let text = (!message.content.is_empty()).then(|| match with_tools && message.tool_calls.is_empty() {
        true => json!({"reply": message.content}).to_string(),
        false => message.content.clone(),
    });
    let calls = message.tool_calls.iter().map(|call| {
        let arguments = call.arguments().map_or_else(|_| call.function.arguments.as_str().into(), Value::Object);
        json!({"tool": call.function.name, "arguments": arguments}).to_string()
    });
    text.into_iter().chain(calls).collect::<Vec<_>>().join("\n")
}

/// The result of a call: a text, or parts if there are images to send with it.
fn result(message: &Message, calls: &[&CallPart], vision: bool) -> Value {
    let call = calls.iter().rev().find(|call| call.id == message.tool_call_id);
    let name = call.map_or("the tool", |call| call.function.name.as_str());
    let (images, notes) = images_and_notes(message, vision);
    let text = format!("Result of {name}:\n{}", with_notes(&message.content, notes));
    if images.is_empty() { text.into() } else { std::iter::once(text_part(&text)).chain(images).collect() }
}

/// An answer in the words of the schema; unknown members are left alone.
#[derive(Deserialize)]
struct Said<'a> {
    #[serde(default)]
    tool: Option<String>,
    #[serde(default, borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(default)]
    reply: Option<String>,
}

/// Turns the JSON text of `reply` into a call or a text.
pub(crate) fn read(mut reply: LlmReply) -> Result<LlmReply, ProviderError> {
    let text = reply.content.trim();
    if !text.starts_with('{') || !reply.tool_calls.is_empty() {
        return Ok(reply);
    }
    match serde_json::from_str::<Said<'_>>(text) {
        Ok(Said { tool: Some(tool), arguments, .. }) => {
            let arguments = arguments.map_or("{}", RawValue::get);
            reply.tool_calls = vec![CallPart::new(&crate::call_id::fresh_id(), &tool, arguments)];
            reply.finish_reason = "tool_calls".into();
            reply.content.clear();
            Ok(reply)
        }
        Ok(Said { reply: Some(said), .. }) => {
            reply.content = said;
            Ok(reply)
        }
        Ok(Said { tool: None, reply: None, .. }) => Ok(reply),
        Err(error) => match cut_reply(text).filter(|_| error.is_eof()) {
            Some(said) => {
                reply.content = said;
                Ok(reply)
            }
            None => Err(broken(&error, &reply.finish_reason)),
        },
    }
}

fn broken(error: &serde_json::Error, finish_reason: &str) -> ProviderError {
    let why =
        if finish_reason == "length" { "it was cut; raise `max_tokens`" } else { "does the server hold to schemas?" };
    ProviderError::fatal(format!("the answer is not the JSON that was asked for ({error}): {why}"))
}

/// Longest unfinished escape at the end of a cut text: two halves of a surrogate pair.
const MAX_HALF_ESCAPE: usize = 12;

/// The text of a reply whose end is missing.
fn cut_reply(text: &str) -> Option<String> {
    let ends = (0..=MAX_HALF_ESCAPE).filter_map(|off| text.get(..text.len().checked_sub(off)?));
    ends.filter_map(|text| serde_json::from_str::<Said<'_>>(&format!("{text}\"}}")).ok()?.reply).next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::WireShape;
    use crate::lower::tests::strictest;

    fn request(messages: Vec<Message>, tools: Vec<ToolDef>, options: &str) -> LlmRequest {
        let Value::Object(options) = pintle_domain::json::parse(options).unwrap() else {
            panic!("options are an object")
        };
        LlmRequest {
            model: "p/m".into(),
            messages: messages.into_iter().map(Rendered::new).collect(),
            tools: tools.into_iter().map(Rendered::new).collect(),
            options,
            graceful_terminal: false,
        }
    }

    /// Each message, then each option, on a line of its own.
    fn body_of(request: &LlmRequest) -> String {
        let mut body: Object =
            serde_json::from_slice(&render("m", request, true, &strictest(WireShape::Texts)).0.body(true)).unwrap();
        let messages = body.shift_remove("messages").unwrap();
        let messages = messages.as_array().unwrap().iter().map(Value::to_string);
        messages.chain(body.iter().map(|(name, value)| format!("{name}: {value}"))).collect::<Vec<_>>().join("\n")
    }

    fn weather() -> ToolDef {
        let parameters = json!({
            "type": "object",
            "properties": {"city": {"type": "string", "pattern": "^[A-Z]"}, "unit": {"enum": ["c", "f"]}},
            "required": ["city"],
            "additionalProperties": false,
        });
        ToolDef::new("weather", "tells the weather", parameters)
    }

    fn conversation_with_calls() -> Vec<Message> {
        vec![
            Message::text(Role::System, "be good"),
            Message::text(Role::User, "Paris?"),
            Message {
                tool_calls: vec![CallPart::new("c1", "weather", r#"{"city":"Paris","n":1.0}"#)],
                ..Message::text(Role::Assistant, "")
            },
            Message::tool("c1", "15 °C"),
            Message::text(Role::User, "and?"),
            Message::text(Role::Assistant, "15 °C"),
            Message::text(Role::User, "thanks"),
        ]
    }

    #[test]
    fn tools_become_a_schema_and_calls_become_text() {
        insta::assert_snapshot!(body_of(&request(conversation_with_calls(), vec![weather()], r#"{"temperature":0}"#)), @r#"
        {"role":"system","content":"be good\n\nAnswer with one JSON object.\nTo use a tool: {\"tool\": NAME, \"arguments\": {...}}\nTo answer the user: {\"reply\": TEXT}\nTools:\n- weather: tells the weather\n  arguments: {\"city\":{\"type\":\"string\",\"pattern\":\"^[A-Z]\"},\"unit\":{\"enum\":[\"c\",\"f\"]}}"}
        {"role":"user","content":"Paris?"}
        {"role":"assistant","content":"{\"tool\":\"weather\",\"arguments\":{\"city\":\"Paris\",\"n\":1.0}}"}
        {"role":"user","content":"Result of weather:\n15 °C\n\nand?"}
        {"role":"assistant","content":"{\"reply\":\"15 °C\"}"}
        {"role":"user","content":"thanks"}
        model: "m"
        temperature: 0
        response_format: {"type":"json_schema","json_schema":{"name":"answer","schema":{"anyOf":[{"type":"object","properties":{"tool":{"const":"weather"},"arguments":{"type":"object","properties":{"city":{"type":"string","maxLength":1500},"unit":{"enum":["c","f"]}},"required":["city"]}},"required":["tool","arguments"]},{"type":"object","properties":{"reply":{"type":"string","maxLength":1500}},"required":["reply"]}]}}}
        max_tokens: 1024
        stream: true
        stream_options: {"include_usage":true}
        "#);
    }

    #[test]
    fn images_of_tools_stand_in_their_results() {
        let media = vec!["data:image/png;base64,AA==".to_owned(), "data:audio/ogg;base64,BB==".to_owned()];
        let shot = Message { media, ..Message::tool("c1", "shot\n[image:/m/1.png]") };
        let request = request(vec![shot, Message::tool("c2", "b"), Message::text(Role::User, "?")], vec![], "{}");
        let sent = |vision| {
            serde_json::to_string(&render("m", &request, vision, &strictest(WireShape::Texts)).0.messages).unwrap()
        };
        insta::assert_snapshot!(sent(true), @r#"[{"role":"user","content":[{"type":"text","text":"Result of the tool:\nshot\n[image:/m/1.png]\n[media not sent: audio/ogg]"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]},{"role":"user","content":"Result of the tool:\nb\n\n?"}]"#);
        insta::assert_snapshot!(sent(false), @r#"[{"role":"user","content":"Result of the tool:\nshot\n[image:/m/1.png]\n[media not sent: audio/ogg]\n\nResult of the tool:\nb\n\n?"}]"#);
    }

    #[test]
    fn without_tools_it_is_a_plain_chat() {
        insta::assert_snapshot!(body_of(&request(conversation_with_calls(), vec![], r#"{"max_tokens":7}"#)), @r#"
        {"role":"system","content":"be good"}
        {"role":"user","content":"Paris?"}
        {"role":"assistant","content":"{\"tool\":\"weather\",\"arguments\":{\"city\":\"Paris\",\"n\":1.0}}"}
        {"role":"user","content":"Result of weather:\n15 °C\n\nand?"}
        {"role":"assistant","content":"15 °C"}
        {"role":"user","content":"thanks"}
        model: "m"
        max_tokens: 7
        stream: true
        stream_options: {"include_usage":true}
        "#);
    }

    #[test]
    fn tool_choice_decides_which_branches_there_are() {
        let branches = |choice: &str| {
            let other = ToolDef::new("other", "", json!({"type": "object"}));
            let request = request(vec![Message::text(Role::User, "?")], vec![weather(), other], choice);
            let (wire, by_schema) = render("m", &request, true, &strictest(WireShape::Texts));
            assert!(!wire.options.contains_key("tool_choice") && !wire.options.contains_key("parallel_tool_calls"));
            let any_of =
                wire.options.get("response_format").map(|format| format["json_schema"]["schema"]["anyOf"].clone());
            let names = any_of
                .iter()
                .flat_map(|any_of| any_of.as_array().unwrap())
                .map(|branch| branch["properties"]["tool"]["const"].as_str().unwrap_or("(reply)").to_owned());
            assert_eq!(by_schema, any_of.is_some());
            names.collect::<Vec<_>>()
        };
        assert_eq!(branches(r#"{"tool_choice":"auto","parallel_tool_calls":true}"#), ["weather", "other", "(reply)"]);
        assert_eq!(branches(r#"{"tool_choice":"required"}"#), ["weather", "other"]);
        assert_eq!(branches(r#"{"tool_choice":{"type":"function","function":{"name":"other"}}}"#), ["other"]);
        assert!(branches(r#"{"tool_choice":"none"}"#).is_empty());
    }

    fn read_text(text: &str) -> String {
        match read(LlmReply { finish_reason: "length".into(), ..LlmReply::text(text) }) {
            Ok(reply) => match reply.tool_calls.first() {
                Some(call) => format!("call {}({})", call.function.name, call.function.arguments),
                None => format!("text {}", reply.content),
            },
            Err(error) => format!("error {error}"),
        }
    }

    #[test]
    fn an_answer_becomes_a_call_a_text_or_an_error() {
        let table = [
            (r#" {"tool":"w","arguments":{"n": 1.50e400}} "#, r#"call w({"n": 1.50e400})"#),
            (r#"{"tool":"w"}"#, "call w({})"),
            (r#"{"reply":"h\u00e9 \"x\""}"#, "text hé \"x\""),
            ("just words", "text just words"),
            (r#"{"answer":1}"#, r#"text {"answer":1}"#),
            ("[1]", "text [1]"),
            (r#"{"reply":"it was a dark"#, "text it was a dark"),
            (r#"{"reply":"so\ud83d\ude"#, "text so"),
            (r#"{"reply":"so\"#, "text so"),
            (
                r#"{"tool":"w","arguments":{"n"#,
                "error the answer is not the JSON that was asked for (EOF while parsing a string at line 1 column 27): \
                 it was cut; raise `max_tokens`",
            ),
            (
                "{tool}",
                "error the answer is not the JSON that was asked for (key must be a string at line 1 column 2): \
                 it was cut; raise `max_tokens`",
            ),
        ];
        for (text, expected) in table {
            assert_eq!(read_text(text), expected);
        }
    }
}
