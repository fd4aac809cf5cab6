//! A request in the words of chat completions.

use std::borrow::Cow;

use pintle_domain::json::{Object, Rendered, Value, json};
use pintle_domain::llm::{LlmRequest, ToolDef};
use pintle_domain::message::{CallPart, Message, Role};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::inline_thought;
use crate::lower::tool_schema::{self, PropertyNames};
use crate::lower::{
    Join, LoweringOptions, Thread, WireIds, WireNames, lowered, mark, object_text, system_text, text_part,
};
use crate::media::{Medium, unsent, with_notes};
use crate::quirks;

/// The text that stands before the images of tool results, which no tool message can carry.
const LOADED: &str = "[Loaded image from tool result above]";
/// Members that are the request itself, so no option can carry them.
const RESERVED: [&str; 4] = ["model", "messages", "tools", "stream"];

/// The request that is about to be sent.
pub(crate) struct Wire<'a> {
    pub(crate) model: &'a str,
    pub(crate) messages: Vec<Value>,
    pub(crate) tools: &'a [Rendered<ToolDef>],
    pub(crate) options: Cow<'a, Object>,
    /// How tools are called on the wire.
    pub(crate) names: WireNames,
}

impl Wire<'_> {
    /// The JSON of the body; `with_usage` asks for `usage` at the end of the stream.
    pub(crate) fn body(&self, with_usage: bool) -> Vec<u8> {
        serde_json::to_vec(&Flagged { wire: self, with_usage }).expect("string keys and plain values always serialise")
    }
}

struct Flagged<'a> {
    wire: &'a Wire<'a>,
    with_usage: bool,
}

impl Serialize for Flagged<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Wire { model, messages, tools, options, names } = self.wire;
        let mut body = serializer.serialize_map(None)?;
        body.serialize_entry("model", model)?;
        body.serialize_entry("messages", messages)?;
        // Servers refuse an empty list.
        if !tools.is_empty() {
            body.serialize_entry("tools", &Tools { tools, names })?;
        }
        for (name, value) in options.iter().filter(|(name, _)| !RESERVED.contains(&name.as_str())) {
            body.serialize_entry(quirks::option_name(model, name, options), value)?;
        }
        body.serialize_entry("stream", &true)?;
        if self.with_usage && !options.contains_key("stream_options") {
            body.serialize_entry("stream_options", &json!({"include_usage": true}))?;
        }
        body.end()
    }
}

/// Tools as they are offered.
struct Tools<'a> {
    tools: &'a [Rendered<ToolDef>],
    names: &'a WireNames,
}

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { tools, names } = self;
        serializer.collect_seq(tools.iter().map(|tool| OfferedTool { tool, names }))
    }
}

/// A tool as it is offered.
struct OfferedTool<'a> {
    tool: &'a Rendered<ToolDef>,
    names: &'a WireNames,
}

impl Serialize for OfferedTool<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let function = &self.tool.get().function;
        let (name, parameters) =
            (self.names.form(&function.name), tool_schema::of(&function.parameters, PropertyNames::Free));
        if name == function.name && matches!(parameters, Cow::Borrowed(_)) {
            return self.tool.serialize(serializer);
        }
        let mut tool = self.tool.get().clone();
        tool.function.name = name.to_owned();
        tool.function.parameters = parameters.into_owned();
        tool.serialize(serializer)
    }
}

/// `request` with the wire's own tool calls.
pub(crate) fn native<'a>(model: &'a str, request: &'a LlmRequest, vision: bool, how: &LoweringOptions<'_>) -> Wire<'a> {
    let (mut thread, mut tool_images) = (Thread::default(), Vec::new());
    let lowered = lowered(&request.messages, how);
    let called = lowered.spoken.iter().flat_map(|one| &one.message.tool_calls);
    let names = WireNames::of(&request.tools, called);
    let mut on_wire = OnWire { names: &names, ids: WireIds::visible(), model: &how.model };
    // Where no user's message may follow a result, no image may either.
    let shown = vision && !(lowered.minded && how.folds());
    for one in &lowered.spoken {
        let of_tool = one.message.role == Role::Tool;
        if !of_tool {
            flush(&mut tool_images, &mut thread);
        }
        let vision = if of_tool { shown } else { vision };
        let mut message = rendered(&one.message, vision, (&mut on_wire, &mut tool_images));
        if one.marked {
            mark(&mut message["content"], &how.capabilities.turn_scoped);
        }
        thread.push(message, one.join);
    }
    flush(&mut tool_images, &mut thread);
    let options = names.chosen(Cow::Borrowed(&request.options));
    Wire { model, messages: thread.into_messages(), tools: &request.tools, options, names }
}

/// How calls are written on the wire.
struct OnWire<'a> {
    names: &'a WireNames,
    ids: WireIds,
    /// PROVIDER/MODEL of the request.
    model: &'a str,
}

impl OnWire<'_> {
    fn call(&mut self, call: &CallPart, author: &str) -> Value {
        let name = self.names.form(&call.function.name);
        let mut function = json!({"name": name, "arguments": object_text(call)});
        let mut rendered = json!({"id": self.ids.of_call(&call.id), "type": "function"});
        // Only the provider that added to a call knows what to do with that; others refuse it.
        let own = self.wrote(author);
        if own && !call.function.thought_signature.is_empty() {
            function["thought_signature"] = call.function.thought_signature.as_str().into();
        }
        rendered["function"] = function;
        if let Some(extra) = call.extra_content.as_ref().filter(|_| own) {
            rendered["extra_content"] = extra.clone();
        }
        rendered
    }

    /// Whether what `author` said comes from the provider that is asked.
    fn wrote(&self, author: &str) -> bool {
        author.is_empty() || provider_of(author) == provider_of(self.model)
    }
}

/// The provider in PROVIDER/MODEL.
fn provider_of(model: &str) -> &str {
    model.split_once('/').map_or(model, |(provider, _)| provider)
}

/// Images of tool results, as a message of their own once the results are complete.
fn flush(tool_images: &mut Vec<Value>, thread: &mut Thread) {
    if !tool_images.is_empty() {
        let content: Vec<Value> = std::iter::once(text_part(LOADED)).chain(tool_images.drain(..)).collect();
        thread.push(json!({"role": "user", "content": content}), Join::Never);
    }
}

fn rendered(message: &Message, vision: bool, (wire, tool_images): (&mut OnWire<'_>, &mut Vec<Value>)) -> Value {
    match message.role {
        Role::System => json!({"role": "system", "content": system_text(message)}),
        Role::User => json!({"role": "user", "content": user_content(message, vision)}),
        Role::Assistant => assistant(message, wire),
        Role::Tool => {
            let (images, notes) = images_and_notes(message, vision);
            tool_images.extend(images);
            let content = with_notes(&message.content, notes);
            json!({"role": "tool", "tool_call_id": wire.ids.of_result(&message.tool_call_id), "content": content})
        }
    }
}

/// The content of a user's message: parts if there are images, else a text, which every server takes.
pub(crate) fn user_content(message: &Message, vision: bool) -> Value {
    let (images, notes) = images_and_notes(message, vision);
    let text = with_notes(&message.content, notes);
    if images.is_empty() {
        return text.into();
    }
    let text = (!text.is_empty()).then(|| text_part(&text));
    text.into_iter().chain(images).collect()
}

/// The images of a message as content parts, and a note for each other medium.
pub(crate) fn images_and_notes(message: &Message, vision: bool) -> (Vec<Value>, Vec<String>) {
    let (mut images, mut notes) = (Vec::new(), Vec::new());
    for entry in &message.media {
        match image_part(entry, vision) {
            Some(image) => images.push(image),
            None => notes.extend(unsent(entry, message)),
        }
    }
    (images, notes)
}

/// `entry` as a content part, if it is an image.
fn image_part(entry: &str, vision: bool) -> Option<Value> {
    match Medium::of(entry, vision) {
        Medium::Image { url, .. } | Medium::Remote(url) => {
            Some(json!({"type": "image_url", "image_url": {"url": url}}))
        }
        Medium::Pdf(_) | Medium::Other(_) => None,
    }
}

fn assistant(message: &Message, wire: &mut OnWire<'_>) -> Value {
    let own = wire.wrote(&message.model_name);
    let content = if own { inline_thought::as_written(message) } else { Cow::Borrowed(message.content.as_str()) };
    if message.tool_calls.is_empty() {
        return json!({"role": "assistant", "content": content});
    }
    let content = if content.is_empty() { Value::Null } else { Value::from(&*content) };
    let calls: Vec<Value> = message.tool_calls.iter().map(|call| wire.call(call, &message.model_name)).collect();
    json!({"role": "assistant", "content": content, "tool_calls": calls})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::WireShape;
    use crate::lower::tests::strictest;

    fn body_of(messages: Vec<Message>, tools: Vec<ToolDef>, options: &str) -> String {
        sent_to(true, messages, tools, options)
    }

    fn sent_to(vision: bool, messages: Vec<Message>, tools: Vec<ToolDef>, options: &str) -> String {
        let Value::Object(options) = pintle_domain::json::parse(options).unwrap() else {
            panic!("options are an object")
        };
        let request = LlmRequest {
            model: "p/m".into(),
            messages: messages.into_iter().map(Rendered::new).collect(),
            tools: tools.into_iter().map(Rendered::new).collect(),
            options,
            graceful_terminal: false,
        };
        String::from_utf8(native("m", &request, vision, &strictest(WireShape::Messages)).body(true)).unwrap()
    }

    #[test]
    fn a_conversation_leaves_as_it_stands() {
        let mut thinking = Message::text(Role::Assistant, "let me see");
        thinking.reasoning_content = "hm".into();
        thinking.tool_calls = vec![CallPart::new("c3", "x", "")];
        let messages = vec![
            Message::text(Role::System, "be good"),
            Message::text(Role::User, "hi"),
            Message {
                tool_calls: vec![CallPart::new("c1", "add", r#"{"n":  1.50e400}"#), CallPart::new("c2", "add", "{")],
                ..Message::text(Role::Assistant, "")
            },
            Message::tool("c1", "1"),
            Message::tool("c2", ""),
            thinking,
            Message::tool("c3", "ok"),
            Message::text(Role::System, "mind the gap"),
            Message::text(Role::Assistant, ""),
        ];
        let parameters = pintle_domain::json::parse(r#"{"type":"object","maximum":12345678901234567890.10}"#).unwrap();
        let body = body_of(
            messages,
            vec![ToolDef::new("add", "adds", parameters)],
            r#"{"temperature":0.70,"max_tokens":9,"stream":false,"model":"other","x_new":{"b":1,"a":2}}"#,
        );
        insta::assert_snapshot!(body, @r#"{"model":"m","messages":[{"role":"system","content":"be good"},{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"add","arguments":"{\"n\":  1.50e400}"}},{"id":"c2","type":"function","function":{"name":"add","arguments":"{\"invalid_json\":\"{\"}"}}]},{"role":"tool","tool_call_id":"c1","content":"1"},{"role":"tool","tool_call_id":"c2","content":""},{"role":"assistant","content":"let me see","tool_calls":[{"id":"c3","type":"function","function":{"name":"x","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c3","content":"ok"},{"role":"system","content":"mind the gap"}],"tools":[{"type":"function","function":{"name":"add","description":"adds","parameters":{"type":"object","maximum":12345678901234567890.10,"properties":{}}}}],"temperature":0.70,"max_tokens":9,"x_new":{"b":1,"a":2},"stream":true,"stream_options":{"include_usage":true}}"#);
    }

    fn with_media(message: Message, media: &[&str]) -> Message {
        Message { media: media.iter().map(|entry| (*entry).to_owned()).collect(), ..message }
    }

    const PNG: &str = "data:image/png;base64,AA==";
    const JPEG: &str = "data:image/jpeg;base64,BB==";
    const OGG: &str = "data:audio/ogg;base64,CC==";

    #[test]
    fn media_of_a_user_become_parts() {
        let look = with_media(Message::text(Role::User, "look"), &[PNG, OGG, "media://x", "https://h/x.png"]);
        let bare = with_media(Message::text(Role::User, ""), &[PNG]);
        let deaf = with_media(Message::text(Role::User, "hear"), &[OGG]);
        let named = with_media(Message::text(Role::User, "hear [audio:/m/a.ogg]"), &[OGG]);
        insta::assert_snapshot!(body_of(vec![look, bare, deaf, named], vec![], "{}"), @r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"look\n[media not sent: audio/ogg]\n[media not sent: media://x]"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}},{"type":"image_url","image_url":{"url":"https://h/x.png"}},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}},{"type":"text","text":"hear\n[media not sent: audio/ogg]\n\nhear [audio:/m/a.ogg]"}]}],"stream":true,"stream_options":{"include_usage":true}}"#);
    }

    #[test]
    fn images_of_tools_follow_behind_the_whole_block() {
        let messages = || {
            vec![
                with_media(Message::tool("c1", "one\n[image:/m/1.png]"), &[PNG]),
                with_media(Message::tool("c2", "two"), &[OGG]),
                with_media(Message::tool("c3", "three\n[image:/m/3.jpg]"), &[JPEG, PNG]),
                Message::text(Role::Assistant, "nice"),
                with_media(Message::tool("c4", ""), &[JPEG]),
                Message::tool("c5", "five"),
            ]
        };
        insta::assert_snapshot!(body_of(messages(), vec![], "{}"), @r#"{"model":"m","messages":[{"role":"tool","tool_call_id":"c1","content":"one\n[image:/m/1.png]"},{"role":"tool","tool_call_id":"c2","content":"two\n[media not sent: audio/ogg]"},{"role":"tool","tool_call_id":"c3","content":"three\n[image:/m/3.jpg]"},{"role":"user","content":[{"type":"text","text":"[Loaded image from tool result above]"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}},{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,BB=="}},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]},{"role":"assistant","content":"nice"},{"role":"tool","tool_call_id":"c4","content":""},{"role":"tool","tool_call_id":"c5","content":"five"},{"role":"user","content":[{"type":"text","text":"[Loaded image from tool result above]"},{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,BB=="}}]}],"stream":true,"stream_options":{"include_usage":true}}"#);
        insta::assert_snapshot!(sent_to(false, messages(), vec![], "{}"), @r#"{"model":"m","messages":[{"role":"tool","tool_call_id":"c1","content":"one\n[image:/m/1.png]"},{"role":"tool","tool_call_id":"c2","content":"two\n[media not sent: audio/ogg]"},{"role":"tool","tool_call_id":"c3","content":"three\n[image:/m/3.jpg]"},{"role":"assistant","content":"nice"},{"role":"tool","tool_call_id":"c4","content":"[media not sent: image/jpeg]"},{"role":"tool","tool_call_id":"c5","content":"five"}],"stream":true,"stream_options":{"include_usage":true}}"#);
    }

    #[test]
    fn images_of_tools_stand_before_what_the_user_says_next() {
        let messages = vec![
            Message::tool("c1", "one"),
            with_media(Message::tool("c2", "two"), &[PNG]),
            Message::text(Role::User, "?"),
            Message::text(Role::System, "mind"),
        ];
        insta::assert_snapshot!(body_of(messages, vec![], "{}"), @r#"{"model":"m","messages":[{"role":"tool","tool_call_id":"c1","content":"one"},{"role":"tool","tool_call_id":"c2","content":"two"},{"role":"user","content":[{"type":"text","text":"[Loaded image from tool result above]"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}},{"type":"text","text":"?"}]},{"role":"system","content":"mind"}],"stream":true,"stream_options":{"include_usage":true}}"#);
    }

    #[test]
    fn a_bound_goes_out_under_the_name_that_the_model_takes() {
        let options = [("max_tokens".to_owned(), 9.into()), ("temperature".to_owned(), 0.into())];
        let request = LlmRequest {
            model: "p/m".into(),
            messages: vec![],
            tools: vec![],
            options: options.into_iter().collect(),
            graceful_terminal: false,
        };
        let body = |model| {
            String::from_utf8(native(model, &request, true, &strictest(WireShape::Messages)).body(false)).unwrap()
        };
        let start = r#"{"model":"gpt-5-mini","messages":[],"#;
        assert_eq!(body("gpt-5-mini"), format!(r#"{start}"max_completion_tokens":9,"temperature":0,"stream":true}}"#));
        let start = r#"{"model":"gpt-4.1","messages":[],"#;
        assert_eq!(body("gpt-4.1"), format!(r#"{start}"max_tokens":9,"temperature":0,"stream":true}}"#));
    }

    #[test]
    fn own_stream_options_stay() {
        let body = body_of(vec![], vec![], r#"{"stream_options":{"x":1}}"#);
        assert_eq!(body, r#"{"model":"m","messages":[],"stream_options":{"x":1},"stream":true}"#);
    }
}
