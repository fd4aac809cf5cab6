//! What an agent asks of a model, in one form for all wires, with the place of all that hooks may change.

use std::collections::BTreeSet;
use std::ops::Range;

use pintle_domain::json::Object;

use crate::spans::{Edits, JsonDocument, Node, NotRead};

/// A request that a door cannot let pass, because it cannot see what is in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRequest {
    /// The body is no JSON.
    #[error("the body cannot be read: {0}")]
    NotRead(#[from] NotRead),
    /// A member that is not as the wire has it.
    #[error("`{place}` is not what the door knows: {why}")]
    Member {
        /// Where it stands.
        place: String,
        /// What is expected.
        why: &'static str,
    },
}

impl BadRequest {
    pub(crate) fn member(place: impl Into<String>, why: &'static str) -> Self {
        Self::Member { place: place.into(), why }
    }
}

/// What stands in the list `node`, which the member `name` is; nothing where that is absent or `null`.
pub(crate) fn items_of<'n>(
    document: &JsonDocument,
    name: &str,
    node: Option<&'n Node>,
) -> Result<&'n [Node], BadRequest> {
    match node.filter(|node| document.raw(node) != "null") {
        None => Ok(&[]),
        Some(node) if node.is_array() => Ok(node.items()),
        Some(_) => Err(BadRequest::member(name, "expected a list")),
    }
}

/// Who speaks in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The operator.
    System,
    /// A person, or the agent in their name. Results of tools may stand there, too.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

/// A text and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenText {
    /// The text.
    pub text: String,
    /// The JSON text that holds it.
    pub node: Node,
    /// Its place among the parts of the message; none where the message is the text.
    pub part: Option<usize>,
}

/// A call that a model made earlier, as the agent says.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenCall {
    /// Its id.
    pub id: String,
    /// What it is known by where the vendor gave it no id: a client may have made one of its own since.
    pub made: Option<String>,
    /// The tool.
    pub name: String,
    /// The arguments; what is no object stands in the member `input`.
    pub arguments: Object,
}

impl SeenCall {
    /// Whether `id` is what the door knows it by.
    pub fn is_known_as(&self, id: &str) -> bool {
        self.id == id || self.made.as_deref() == Some(id)
    }
}

/// The result of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenResult {
    /// The call that it is of.
    pub call: String,
    /// Its text.
    pub text: String,
    /// Whether the agent calls it a failure.
    pub is_error: bool,
    /// The part or message that it is.
    pub whole: Node,
    /// Its content, if it has any.
    pub content: Option<Node>,
    /// The member of an object in which another content has to stand.
    pub member: Option<&'static str>,
}

/// One message.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenMessage {
    /// Who speaks.
    pub speaker: Speaker,
    /// The message.
    pub node: Node,
    /// The texts in it.
    pub texts: Vec<SeenText>,
    /// The calls in it.
    pub calls: Vec<SeenCall>,
    /// The results in it.
    pub results: Vec<SeenResult>,
}

impl SeenMessage {
    /// Whether somebody says something in it.
    fn is_prompt(&self) -> bool {
        self.speaker == Speaker::User && !self.texts.is_empty()
    }

    /// The place of its parts, or of its text.
    pub fn content(&self) -> Option<&Node> {
        self.node.get("content").or_else(|| self.node.get("parts"))
    }
}

/// A tool that runs at the vendor.
#[derive(Clone, Debug, PartialEq)]
pub struct HostedTool {
    /// Its name: what `hosted` allows.
    pub name: String,
    /// Its definition.
    pub arguments: Object,
}

/// A tool that the agent offers.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientTool {
    /// Its name.
    pub name: String,
    /// Its definition.
    pub node: Node,
}

/// What a conversation comes to that stands at the vendor, as far as the door knows it: all of it passed the hooks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AnswerChain {
    /// The session that it is of.
    pub session: String,
    /// How many prompts stand in it.
    pub prompts: usize,
    /// How often a person spoke in it.
    pub turn: usize,
    /// The calls in it that have no result yet.
    pub calls: Vec<SeenCall>,
    /// How many tokens it is long.
    pub tokens: u64,
}

/// The answer at the vendor that a request goes on from.
#[derive(Clone, Debug, PartialEq)]
pub enum Previous {
    /// The one with this id, as the request says.
    Named(String),
    /// One that the door knows.
    Known(AnswerChain),
}

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenRequest {
    /// The body.
    pub document: JsonDocument,
    /// The model that is asked.
    pub model: String,
    /// Whether the answer is to come as events.
    pub streams: bool,
    /// What the client says that tells its sessions apart, if it does.
    pub claim: Option<String>,
    /// Text that stands before all messages.
    pub system: Vec<SeenText>,
    /// The conversation.
    pub messages: Vec<SeenMessage>,
    /// The place of the conversation.
    pub list: Node,
    /// The tools that the agent runs.
    pub tools: Vec<ClientTool>,
    /// The lists in which their definitions stand.
    pub tool_lists: Vec<Node>,
    /// The namespaces that some of them stand in, which their calls name again.
    pub namespaces: Vec<String>,
    /// The tools that run at the vendor.
    pub hosted: Vec<HostedTool>,
    /// What it goes on from, where that stands at the vendor.
    pub previous: Option<Previous>,
}

/// What a user says in one message.
#[derive(Clone, Debug, PartialEq)]
pub struct Prompt {
    /// The place of the message.
    pub message: usize,
    /// How many prompts stand before it, those at the vendor included.
    pub ordinal: usize,
    /// Its texts, joined by line breaks.
    pub text: String,
    /// Whether the model has not answered it yet, and nothing newer stands behind it.
    pub is_newest: bool,
}

impl SeenRequest {
    /// All that users say, in order.
    pub fn prompts(&self) -> Vec<Prompt> {
        let before = self.chain().map_or(0, |chain| chain.prompts);
        let mut prompts: Vec<Prompt> = Vec::new();
        for (message, seen) in self.messages.iter().enumerate().filter(|(_, seen)| seen.is_prompt()) {
            let texts: Vec<&str> = seen.texts.iter().map(|text| text.text.as_str()).collect();
            let ordinal = before + prompts.len();
            prompts.push(Prompt { message, ordinal, text: texts.join("\n"), is_newest: false });
        }
        let answered = self.messages.iter().rposition(|seen| seen.speaker == Speaker::Assistant);
        if let Some(last) = prompts.last_mut() {
            last.is_newest = answered.is_none_or(|answered| answered < last.message);
        }
        prompts
    }

    /// What is known of what stands at the vendor before its messages.
    const fn chain(&self) -> Option<&AnswerChain> {
        match &self.previous {
            Some(Previous::Known(chain)) => Some(chain),
            Some(Previous::Named(_)) | None => None,
        }
    }

    /// How many tokens stand at the vendor before its messages.
    pub fn tokens_before(&self) -> u64 {
        self.chain().map_or(0, |chain| chain.tokens)
    }

    /// What stands at the vendor once it was answered, but for the answer; it is of `session`.
    pub fn chained(&self, session: &str) -> AnswerChain {
        let before = self.chain();
        let results = self.messages.iter().flat_map(|message| &message.results);
        let results: BTreeSet<&str> = results.map(|result| result.call.as_str()).collect();
        let earlier = before.into_iter().flat_map(|chain| &chain.calls);
        let calls = earlier.chain(self.messages.iter().flat_map(|message| &message.calls));
        AnswerChain {
            session: session.to_owned(),
            prompts: before.map_or(0, |chain| chain.prompts) + self.messages.iter().filter(|it| it.is_prompt()).count(),
            turn: self.turn(),
            calls: calls.filter(|call| !results.contains(call.id.as_str())).cloned().collect(),
            tokens: self.tokens_before(),
        }
    }

    /// The place of the first message with a result of a call that stands neither before it nor at the vendor.
    pub fn lost_result(&self) -> Option<usize> {
        let before = self.chain().into_iter().flat_map(|chain| &chain.calls);
        let mut known: BTreeSet<&str> = before.map(|call| call.id.as_str()).collect();
        self.messages.iter().position(|message| {
            let is_lost = message.results.iter().any(|result| !known.contains(result.call.as_str()));
            known.extend(message.calls.iter().map(|call| call.id.as_str()));
            is_lost
        })
    }

    /// The call with the id `id` that stands before the message at `before`, or at the vendor.
    pub fn call(&self, id: &str, before: usize) -> Option<&SeenCall> {
        let earlier = self.messages[..before].iter().rev();
        let own = earlier.flat_map(|message| &message.calls).find(|call| call.id == id);
        own.or_else(|| self.chain()?.calls.iter().find(|call| call.id == id))
    }

    /// How often a person spoke in it; a message that only brings results is none of theirs.
    pub fn turn(&self) -> usize {
        let spoke =
            |seen: &&SeenMessage| seen.speaker == Speaker::User && !seen.texts.is_empty() && seen.results.is_empty();
        self.chain().map_or(0, |chain| chain.turn) + self.messages.iter().filter(spoke).count()
    }

    /// Puts `text` in the place of all texts of the message at `place`.
    pub fn say(&self, edits: &mut Edits, place: usize, text: &str) {
        let message = &self.messages[place];
        let Some((last, others)) = message.texts.split_last() else { return };
        edits.text(&last.node, text);
        let others: Vec<usize> = others.iter().filter_map(|text| text.part).collect();
        if let Some(content) = message.content() {
            edits.remove_items(content, &others);
        }
    }

    /// Puts `text` in the place of a result.
    pub fn result(edits: &mut Edits, result: &SeenResult, text: &str) {
        match (&result.content, result.member) {
            (Some(content), None) => edits.text(content, text),
            (Some(content), Some(name)) => {
                edits.replace(
                    content.span.clone(),
                    format!("{{\"{name}\":{}}}", pintle_domain::json::Value::from(text)),
                );
            }
            (None, _) => {
                edits.put_member(&result.whole, "content", &pintle_domain::json::Value::from(text).to_string())
            }
        }
    }

    /// The bytes of the conversation.
    pub fn conversation(&self) -> Range<usize> {
        self.list.span.clone()
    }
}

/// The text of a content that is one text or a list of parts, with the places of the texts.
pub(crate) fn texts(document: &JsonDocument, content: &Node, kinds: &[&str]) -> Vec<SeenText> {
    if let Some(text) = document.string(content) {
        return vec![SeenText { text, node: content.clone(), part: None }];
    }
    let part = |(place, part): (usize, &Node)| {
        let kind = document.text_at(part, "type")?;
        let node = part.get("text").filter(|_| kinds.contains(&kind.as_str()))?;
        Some(SeenText { text: document.string(node)?, node: node.clone(), part: Some(place) })
    };
    content.items().iter().enumerate().filter_map(part).collect()
}

/// What hooks read of the content of a result: its texts, or all of it where it holds anything else.
pub(crate) fn result_text(document: &JsonDocument, content: Option<&Node>, kinds: &[&str]) -> String {
    let Some(content) = content else { return String::new() };
    let texts = texts(document, content, kinds);
    match texts.len() == content.items().len().max(1) {
        true => texts.into_iter().map(|text| text.text).collect::<Vec<_>>().join("\n"),
        false => document.value(content).to_string(),
    }
}
