//! An answer as one JSON document.

use std::collections::VecDeque;

use pintle_domain::json::Value;

use super::order::{block_type, is_like_call};
use super::{message_of, result, text_part};
use crate::answer::{
    AnswerMachine, AnswerStep, CallRuling, DeniedCall, DenyMode, Exchange, MAX_ROUNDS, WantedCall, refusal_result,
    refusal_text,
};
use crate::spans::{Edits, JsonDocument, Node};
use crate::strict::{MAX_HELD_BYTES, TOO_MUCH, envelope, list, object};
use crate::tokens::Tally;

/// Counts that are summed over rounds.
const COUNTS: [&str; 4] = ["input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];

/// One answer that comes whole, over all rounds of it.
#[derive(Debug)]
pub struct WholeMessage {
    mode: DenyMode,
    body: Vec<u8>,
    document: Option<JsonDocument>,
    steps: VecDeque<AnswerStep>,
    /// The parts with calls that want a ruling, and those that have one.
    waiting: VecDeque<(usize, WantedCall)>,
    ruled: Vec<(usize, WantedCall, CallRuling)>,
    asked: bool,
    ended: bool,
    over: bool,
    said: String,
    earlier: Earlier,
}

#[derive(Debug, Default)]
struct Earlier {
    rounds: usize,
    tally: Tally,
    id: Option<String>,
    /// What the client gets of earlier rounds.
    parts: Vec<String>,
    text: String,
    counts: [u64; 4],
    before: Vec<String>,
}

impl WholeMessage {
    /// An answer whose refused calls are told as `mode` says.
    pub fn new(mode: DenyMode) -> Self {
        Self {
            mode,
            body: Vec::new(),
            document: None,
            steps: VecDeque::new(),
            waiting: VecDeque::new(),
            ruled: Vec::new(),
            asked: false,
            ended: false,
            over: false,
            said: String::new(),
            earlier: Earlier::default(),
        }
    }

    fn read(&mut self) -> Result<(), String> {
        if self.body.len() > MAX_HELD_BYTES {
            return Err(TOO_MUCH.into());
        }
        let text = std::str::from_utf8(&self.body).map_err(|_| "the answer is not UTF-8".to_owned())?;
        let document =
            JsonDocument::read(text.to_owned()).map_err(|error| format!("the answer cannot be read: {error}"))?;
        let root = envelope(&document, ("data", &document.root))?;
        object(&document, root, "usage")?;
        for (place, part) in list(&document, root, "content")?.iter().enumerate() {
            let kind = block_type(&document, envelope(&document, ("content", part))?)?;
            let text = |name: &str| document.text_at(part, name).unwrap_or_default();
            match kind.as_str() {
                "tool_use" => {
                    let input = part.get("input").map(|input| document.value(input)).unwrap_or(Value::Null);
                    let arguments = input.as_object().cloned().ok_or("the `input` of a call is not an object")?;
                    self.waiting.push_back((place, WantedCall { id: text("id"), name: text("name"), arguments }));
                }
                "server_tool_use" | "mcp_tool_use" => {}
                kind if is_like_call(kind) => {
                    return Err(format!("a call of the kind `{kind}` is not known here"));
                }
                _ => {}
            }
        }
        self.earlier.tally.take(&document, document.root.get("usage"));
        self.document = Some(document);
        Ok(())
    }

    fn conclude(&mut self, document: &JsonDocument) {
        let ruled = std::mem::take(&mut self.ruled);
        let is_known = |part: &Node| matches!(document.text_at(part, "type").as_deref(), Some("text" | "tool_use"));
        let is_bound = !parts(document).iter().all(is_known);
        let is_aborted = ruled.iter().any(|(_, _, ruling)| matches!(ruling, CallRuling::Aborted(_)));
        let denied = || ruled.iter().filter(|(_, _, ruling)| reason(ruling).is_some());
        let refused = denied().count() > 0;
        let passes = denied().count() < ruled.len();
        let stop = document.root.get("stop_reason");
        let wants_tools = stop.and_then(|node| document.string(node)).as_deref() == Some("tool_use");
        let answers = self.mode == DenyMode::Answer && self.earlier.rounds < MAX_ROUNDS && !is_bound && !is_aborted;
        if refused && !passes && wants_tools && answers {
            return self.go_on(document, &ruled);
        }
        let mut edits = Edits::default();
        let (mut removed, mut kept) = (Vec::new(), Vec::new());
        for (place, call, ruling) in &ruled {
            let part = &parts(document)[*place];
            match (ruling, reason(ruling)) {
                (CallRuling::Rewritten(arguments), _) => {
                    if let Some(input) = part.get("input") {
                        edits.replace(input.span.clone(), Value::Object(arguments.clone()).to_string());
                    }
                }
                (_, Some(reason)) if answers && passes => {
                    removed.push(*place);
                    kept.push(DeniedCall {
                        call: written(document, part),
                        result: result(&call.id, &refusal_result(reason)),
                        leads: false,
                    });
                }
                (_, Some(reason)) => {
                    edits.replace(part.span.clone(), text_part(&refusal_text(&call.name, reason)));
                }
                (CallRuling::Allowed | CallRuling::Denied(_) | CallRuling::Aborted(_), None) => {}
            }
        }
        if let Some(content) = document.root.get("content") {
            edits.remove_items(content, &removed);
        }
        if let Some(stop) = stop.filter(|_| refused && !passes && wants_tools) {
            edits.text(stop, "end_turn");
        }
        self.merge(document, &mut edits);
        self.finish(document, edits, (&ruled, kept));
    }

    fn finish(
        &mut self,
        document: &JsonDocument,
        edits: Edits,
        (ruled, denied): (&[(usize, WantedCall, CallRuling)], Vec<DeniedCall>),
    ) {
        let body = if edits.is_empty() { document.text.clone() } else { edits.apply(&document.text) };
        let passed = ruled.iter().filter(|(_, _, ruling)| reason(ruling).is_none());
        let calls = passed.map(|(_, call, _)| call.id.clone()).collect();
        let sent = JsonDocument::read(body.clone());
        let text = sent.map(|sent| text_of(&sent)).unwrap_or_default();
        self.said.clone_from(&text);
        let exchange = Exchange {
            calls,
            text,
            before: std::mem::take(&mut self.earlier.before),
            lead_parts: self.earlier.parts.len(),
            lead_text: self.earlier.text.clone(),
            denied,
            items: Vec::new(),
        };
        self.steps.push_back(AnswerStep::Send(body.into_bytes()));
        self.steps.push_back(AnswerStep::Done(Some(exchange).filter(|exchange| !exchange.is_empty())));
        self.over = true;
    }

    /// Puts what earlier rounds came to into the last one.
    fn merge(&self, document: &JsonDocument, edits: &mut Edits) {
        if self.earlier.rounds == 0 {
            return;
        }
        if let (Some(id), Some(node)) = (&self.earlier.id, document.root.get("id")) {
            edits.text(node, id);
        }
        if let Some(content) = document.root.get("content").filter(|_| !self.earlier.parts.is_empty()) {
            let comma = if content.items().is_empty() { "" } else { "," };
            let at = content.span.start + 1;
            edits.replace(at..at, format!("{}{comma}", self.earlier.parts.join(",")));
        }
        let Some(usage) = document.root.get("usage") else { return };
        for (name, earlier) in COUNTS.iter().zip(self.earlier.counts) {
            let now = document.number_at(usage, name).unwrap_or_default();
            match usage.get(name) {
                Some(node) if earlier > 0 => edits.replace(node.span.clone(), (now + earlier).to_string()),
                Some(_) | None => {}
            }
        }
    }

    fn go_on(&mut self, document: &JsonDocument, ruled: &[(usize, WantedCall, CallRuling)]) {
        let all = parts(document);
        let is_empty = |part: &&Node| document.text_at(part, "text").is_some_and(|text| text.is_empty());
        let said = all.iter().filter(|part| !is_empty(part)).map(|part| written(document, part));
        let results = ruled
            .iter()
            .filter_map(|(_, call, ruling)| reason(ruling).map(|reason| result(&call.id, &refusal_result(reason))));
        let messages =
            vec![message_of("assistant", &said.collect::<Vec<_>>()), message_of("user", &results.collect::<Vec<_>>())];
        let earlier = &mut self.earlier;
        earlier.rounds += 1;
        earlier.tally.next_round();
        earlier.id.get_or_insert_with(|| document.text_at(&document.root, "id").unwrap_or_default());
        earlier
            .parts
            .extend(all.iter().filter(|part| part.get("text").is_some()).map(|part| document.raw(part).into()));
        earlier.text.push_str(&text_of(document));
        earlier.before.extend(messages.iter().cloned());
        if let Some(usage) = document.root.get("usage") {
            for (name, sum) in COUNTS.iter().zip(&mut earlier.counts) {
                *sum += document.number_at(usage, name).unwrap_or_default();
            }
        }
        (self.body, self.document, self.ended) = (Vec::new(), None, false);
        self.steps.push_back(AnswerStep::GoOn(messages));
    }
}

fn parts(document: &JsonDocument) -> &[Node] {
    document.root.get("content").map(Node::items).unwrap_or_default()
}

fn text_of(document: &JsonDocument) -> String {
    let text = |part: &Node| document.text_at(part, "text").filter(|_| is_text(document, part));
    parts(document).iter().filter_map(text).collect()
}

fn is_text(document: &JsonDocument, part: &Node) -> bool {
    document.text_at(part, "type").as_deref() == Some("text")
}

const fn reason(ruling: &CallRuling) -> Option<&String> {
    match ruling {
        CallRuling::Denied(reason) | CallRuling::Aborted(reason) => Some(reason),
        CallRuling::Allowed | CallRuling::Rewritten(_) => None,
    }
}

/// A part as it goes back to the model.
fn written(document: &JsonDocument, part: &Node) -> String {
    if is_text(document, part) {
        return text_part(&document.text_at(part, "text").unwrap_or_default());
    }
    let raw = |name: &str| part.get(name).map_or("null", |node| document.raw(node));
    format!(r#"{{"type":"tool_use","id":{},"name":{},"input":{}}}"#, raw("id"), raw("name"), raw("input"))
}

impl AnswerMachine for WholeMessage {
    fn feed(&mut self, bytes: &[u8]) {
        // One byte too many says that it is too much.
        let left = (MAX_HELD_BYTES + 1).saturating_sub(self.body.len());
        self.body.extend_from_slice(&bytes[..bytes.len().min(left)]);
    }

    fn end(&mut self) {
        self.ended = true;
    }

    fn next(&mut self) -> Option<AnswerStep> {
        if let Some(step) = self.steps.pop_front() {
            return Some(step);
        }
        if self.asked || self.over || !self.ended {
            return None;
        }
        if self.document.is_none()
            && let Err(why) = self.read()
        {
            self.over = true;
            return Some(AnswerStep::Broken(why));
        }
        if let Some((_, call)) = self.waiting.front() {
            self.asked = true;
            return Some(AnswerStep::Rule(call.clone()));
        }
        if let Some(document) = self.document.take() {
            self.conclude(&document);
        }
        self.steps.pop_front()
    }

    fn rule(&mut self, ruling: CallRuling) {
        self.asked = false;
        if let Some((place, call)) = self.waiting.pop_front() {
            self.ruled.push((place, call, ruling));
        }
    }

    fn said(&self) -> String {
        self.said.clone()
    }

    fn tally(&self) -> Tally {
        self.earlier.tally
    }

    fn keep_alive(&self) -> Option<&'static [u8]> {
        None
    }
}
