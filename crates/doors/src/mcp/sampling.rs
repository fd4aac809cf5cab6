//! What a server asks of the client's model, as hooks see requests to a model.

use pintle_domain::json::{Object, Value, json};
use pintle_domain::llm::{LlmRequest, ToolDef};
use pintle_domain::message::{Message, Role};

use super::message::plainly;
use crate::spans::{Edits, JsonDocument, Kind, Node};
use crate::strict::folded;

/// The model where the server names none.
const NO_MODEL: &str = "the client's own";

/// The members that say what is asked.
const KNOWN: [&str; 6] = ["messages", "systemPrompt", "modelPreferences", "tools", "role", "content"];

/// The method of a request to the client's model.
const METHOD: &str = "sampling/createMessage";

/// What the `inputRequests` of `node` ask of the client's model.
///
/// # Errors
/// One of them asks it something that cannot be read.
pub fn asked_in(document: &JsonDocument, node: &Node) -> Result<Vec<SeenSampling>, String> {
    plainly(node, &["inputRequests"])?;
    let requests: Vec<&Node> = match node.get("inputRequests").map(|requests| &requests.kind) {
        Some(Kind::Object(members)) => members.iter().map(|(_, request)| request).collect(),
        Some(Kind::Array(items)) => items.iter().collect(),
        Some(Kind::Plain) | None => Vec::new(),
    };
    let mut asked = Vec::new();
    for request in requests {
        plainly(request, &["method", "params"])?;
        let method = document.text_at(request, "method").unwrap_or_default();
        if method == METHOD {
            let params = request.get("params").ok_or("a request to the model asks nothing")?;
            let seen = SeenSampling::read(document, params);
            asked.push(seen.map_err(|why| format!("a request to the model cannot be read: {why}"))?);
        } else if folded(method.trim()) == folded(METHOD) {
            return Err(format!("there is no method `{method}`; is it `{METHOD}`?"));
        }
    }
    Ok(asked)
}

/// A request to the client's model, and where its texts stand.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenSampling {
    /// As hooks see it.
    pub request: LlmRequest,
    /// The place of the text of each message; none where it is not one text.
    places: Vec<Option<Node>>,
}

impl SeenSampling {
    /// Reads the parameters at `params`.
    ///
    /// # Errors
    /// They could be read in two ways, or ask nothing.
    pub fn read(document: &JsonDocument, params: &Node) -> Result<Self, String> {
        plainly(params, &KNOWN)?;
        let list = params.get("messages").filter(|list| list.is_array()).ok_or("it has no list `messages`")?;
        let (mut messages, mut places) = (Vec::new(), Vec::new());
        if let Some(node) = params.get("systemPrompt").filter(|node| document.raw(node) != "null") {
            messages.push(Message::text(Role::System, document.string(node).ok_or("`systemPrompt` is not a text")?));
            places.push(Some(node.clone()));
        }
        for item in list.items() {
            plainly(item, &KNOWN)?;
            let role = match document.text_at(item, "role").as_deref() {
                Some("user") => Role::User,
                Some("assistant") => Role::Assistant,
                Some(_) | None => return Err("a message has neither the role `user` nor `assistant`".into()),
            };
            let content = item.get("content").ok_or("a message has no `content`")?;
            let place = text_of(document, content);
            let text = match &place {
                Some(node) => document.string(node).unwrap_or_default(),
                None => document.raw(content).to_owned(),
            };
            messages.push(Message::text(role, text));
            places.push(place);
        }
        let request = LlmRequest {
            tools: tools(document, params).into_iter().map(Into::into).collect(),
            options: options(document, params),
            ..LlmRequest::new(&model(document, params), messages)
        };
        Ok(Self { request, places })
    }

    /// The changes by which `left` is said; none where it cannot be.
    pub fn say(&self, left: &LlmRequest) -> Option<Edits> {
        let before = &self.request;
        let is_alike = before.messages.len() == left.messages.len()
            && before.model == left.model
            && before.options == left.options
            && before.tools.len() == left.tools.len()
            && before.tools.iter().zip(&left.tools).all(|(was, is)| was.get() == is.get())
            && before.graceful_terminal == left.graceful_terminal;
        if !is_alike {
            return None;
        }
        let mut edits = Edits::default();
        for ((was, is), place) in before.messages.iter().zip(&left.messages).zip(&self.places) {
            let (was, is) = (was.get(), is.get());
            if was == is {
                continue;
            }
            // Of a message its text can be said, and nothing else.
            if *was != (Message { content: was.content.clone(), ..is.clone() }) {
                return None;
            }
            edits.text(place.as_ref()?, &is.content);
        }
        Some(edits)
    }
}

/// The place of the one text that `content` is.
fn text_of(document: &JsonDocument, content: &Node) -> Option<Node> {
    let one = match content.items() {
        [] => content,
        [one] => one,
        _ => return None,
    };
    let is_text = document.text_at(one, "type").as_deref() == Some("text");
    one.get("text").filter(|node| is_text && document.string(node).is_some()).cloned()
}

fn model(document: &JsonDocument, params: &Node) -> String {
    let hints = params.at(&["modelPreferences", "hints"]).map(Node::items).unwrap_or_default();
    hints.iter().find_map(|hint| document.text_at(hint, "name")).unwrap_or_else(|| NO_MODEL.to_owned())
}

fn tools(document: &JsonDocument, params: &Node) -> Vec<ToolDef> {
    let items = params.get("tools").map(Node::items).unwrap_or_default();
    let tool = |item: &Node| {
        let schema = item.get("inputSchema").map_or_else(|| json!({}), |node| document.value(node));
        let text = |name: &str| document.text_at(item, name).unwrap_or_default();
        ToolDef::new(&text("name"), &text("description"), schema)
    };
    items.iter().map(tool).collect()
}

fn options(document: &JsonDocument, params: &Node) -> Object {
    let names = [("maxTokens", "max_tokens"), ("temperature", "temperature"), ("stopSequences", "stop")];
    let value = |(theirs, ours): (&str, &str)| -> Option<(String, Value)> {
        Some((ours.to_owned(), document.value(params.get(theirs)?)))
    };
    names.into_iter().filter_map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKED: &str = r#"{"messages":[{"role":"user","content":{"type":"text","text":"hi"}},
        {"role":"user","content":{"type":"image","data":"AA"}}],"systemPrompt":"be short","maxTokens":10,
        "modelPreferences":{"hints":[{"name":"small"}]}}"#;

    #[test]
    fn a_request_is_shown_and_its_texts_can_be_changed() {
        let document = JsonDocument::read(ASKED.to_owned()).unwrap();
        let seen = SeenSampling::read(&document, &document.root).unwrap();
        let texts: Vec<_> = seen.request.messages.iter().map(|message| message.get().content.clone()).collect();
        assert_eq!(texts, ["be short", "hi", r#"{"type":"image","data":"AA"}"#]);
        assert_eq!((seen.request.model.as_str(), seen.request.options["max_tokens"].as_u64()), ("small", Some(10)));
        let changed = |place: usize, text: &str| {
            let mut left = seen.request.clone();
            let message = Message { content: text.into(), ..left.messages[place].get().clone() };
            left.messages[place] = message.into();
            seen.say(&left).map(|edits| edits.apply(ASKED))
        };
        assert_eq!(seen.say(&seen.request).map(|edits| edits.is_empty()), Some(true));
        assert_eq!(changed(1, "ho"), Some(ASKED.replace("\"hi\"", "\"ho\"")));
        assert_eq!(changed(0, "x"), Some(ASKED.replace("be short", "x")));
        assert_eq!(changed(2, "x"), None);
        assert_eq!(seen.say(&LlmRequest { model: "large".into(), ..seen.request.clone() }), None);
    }

    #[test]
    fn what_asks_nothing_is_refused() {
        for text in [
            "{}",
            r#"{"messages":[{"role":"tool","content":{}}]}"#,
            r#"{"messages":[{"Role":"user","role":"user","content":{}}]}"#,
        ] {
            let document = JsonDocument::read(text.to_owned()).unwrap();
            assert!(SeenSampling::read(&document, &document.root).is_err(), "{text}");
        }
    }
}
