//! An answer as events: `message_start`, blocks with a beginning, parts and an end, `message_delta`, `message_stop`.

use std::collections::{BTreeMap, VecDeque};

use pintle_domain::json::{Object, Value};

use super::order::{Order, is_like_call};
use super::parts::{WrittenPart, is_call, written_part};
use super::{error_event, message_of, result};
use crate::answer::{
    AnswerMachine, AnswerStep, CallRuling, DeniedCall, DenyMode, Exchange, MAX_ROUNDS, NO_ARGUMENTS, WantedCall,
    arguments, refusal_result, refusal_text,
};
use crate::spans::{Edits, JsonDocument};
use crate::strict::TOO_MUCH;
use crate::tokens::Tally;
use pintle_egress::sse::{Event, Splitter};

/// The counts of tokens that a `message_start` says and a `message_delta` may repeat.
const INPUT_COUNTS: [&str; 3] = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];

/// One streamed answer, over all rounds of it.
#[derive(Debug)]
pub struct MessageStream {
    sse: Splitter,
    mode: DenyMode,
    steps: VecDeque<AnswerStep>,
    /// The call that is being held.
    held: Option<HeldBlock>,
    /// Whether somebody rules on it now.
    asked: bool,
    round: Round,
    /// What all rounds before this one came to.
    earlier: Earlier,
    over: bool,
}

/// A block with a call, and all events since its beginning.
#[derive(Debug)]
struct HeldBlock {
    index: u64,
    id: String,
    name: String,
    /// The input that its beginning says: empty, where it comes in parts.
    began_with: String,
    json: String,
    events: Vec<(Event, JsonDocument)>,
}

/// What the round came to so far.
#[derive(Debug, Default)]
struct Round {
    order: Order,
    /// How the client knows each block.
    indices: BTreeMap<u64, u64>,
    /// The parts of the message that the model wrote.
    parts: Vec<WrittenPart>,
    texts: BTreeMap<u64, usize>,
    passed: Vec<String>,
    denied: Vec<(WantedCall, String)>,
    /// Whether the message holds what cannot be written again: signed thoughts, blocks of the vendor.
    is_bound: bool,
    aborted: bool,
    /// Whether any call was refused.
    refused: bool,
    input_counts: [u64; 3],
    is_going_on: Option<Vec<String>>,
    ended: bool,
}

#[derive(Debug, Default)]
struct Earlier {
    rounds: usize,
    tally: Tally,
    next_index: u64,
    output_tokens: u64,
    input_counts: [u64; 3],
    exchange: Exchange,
    text: String,
}

impl MessageStream {
    /// An answer whose refused calls are told as `mode` says.
    pub fn new(mode: DenyMode) -> Self {
        Self {
            sse: Splitter::default(),
            mode,
            steps: VecDeque::new(),
            held: None,
            asked: false,
            round: Round::default(),
            earlier: Earlier::default(),
            over: false,
        }
    }

    fn send(&mut self, bytes: Vec<u8>) {
        self.steps.push_back(AnswerStep::Send(bytes));
    }

    fn fail(&mut self, why: &str) {
        self.over = true;
        self.held = None;
        // What came last may lack its end.
        self.send([b"\n\n", error_event(why).as_slice()].concat());
        self.steps.push_back(AnswerStep::Broken(why.to_owned()));
    }

    fn take(&mut self, event: Event) {
        let Some(data) = event.data.clone().filter(|data| !data.trim().is_empty()) else {
            // Nothing in it: a comment.
            return self.send(event.raw);
        };
        match JsonDocument::read(data) {
            Ok(document) => self.work(event, document),
            Err(error) => self.fail(&format!("an event of the answer cannot be read: {error}")),
        }
    }

    fn work(&mut self, event: Event, document: JsonDocument) {
        if let Err(why) = self.round.order.take(&event, &document) {
            return self.fail(&why);
        }
        let root = document.root.clone();
        let index = document.number_at(&root, "index").unwrap_or_default();
        match document.text_at(&root, "type").unwrap_or_default().as_str() {
            "message_start" => {
                self.earlier.tally.take(&document, root.at(&["message", "usage"]));
                self.started(event, &document);
            }
            "content_block_start" => self.block_started(event, document, index),
            "content_block_delta" => self.block_grew(event, document, index),
            "content_block_stop" => match self.held.take_if(|held| held.index == index) {
                Some(mut held) => {
                    held.events.push((event, document));
                    self.ask(held);
                }
                None => self.pass_block(&event, &document, index),
            },
            "message_delta" => {
                self.earlier.tally.take(&document, root.get("usage"));
                self.ending(&event, &document);
            }
            "message_stop" => {
                self.round.ended = true;
                if self.round.is_going_on.is_none() {
                    self.send(event.raw);
                }
            }
            _ => self.send(event.raw),
        }
    }

    fn started(&mut self, event: Event, document: &JsonDocument) {
        let usage = document.root.at(&["message", "usage"]);
        let count = |name: &&str| usage.and_then(|usage| document.number_at(usage, name)).unwrap_or_default();
        for (sum, name) in self.round.input_counts.iter_mut().zip(INPUT_COUNTS.iter()) {
            *sum = count(name);
        }
        // The client's answer began with the first round.
        if self.earlier.rounds == 0 {
            self.send(event.raw);
        }
    }

    fn block_started(&mut self, event: Event, document: JsonDocument, index: u64) {
        let Some(block) = document.root.get("content_block").cloned() else { return };
        let text = |name: &str| document.text_at(&block, name).unwrap_or_default();
        match text("type").as_str() {
            "tool_use" => {
                if self.held.is_some() {
                    return self.fail("a call begins within another one");
                }
                let began_with = block.get("input").map(|input| document.raw(input).to_owned()).unwrap_or_default();
                let (id, name) = (text("id"), text("name"));
                let events = vec![(event, document)];
                self.held = Some(HeldBlock { index, id, name, began_with, json: String::new(), events });
                return;
            }
            "text" => {
                self.round.texts.insert(index, self.round.parts.len());
                self.round.parts.push(WrittenPart::Text(text("text")));
            }
            // Those of the vendor were cleared before the request left.
            "server_tool_use" | "mcp_tool_use" => self.round.is_bound = true,
            kind if is_like_call(kind) => {
                return self.fail(&format!("a call of the kind `{kind}` is not known here"));
            }
            _ => self.round.is_bound = true,
        }
        self.pass_block(&event, &document, index);
    }

    fn block_grew(&mut self, event: Event, document: JsonDocument, index: u64) {
        let delta = document.root.get("delta").cloned();
        let text = |name: &str| delta.as_ref().and_then(|delta| document.text_at(delta, name));
        if let Some(held) = self.held.as_mut().filter(|held| held.index == index) {
            held.json.push_str(&text("partial_json").unwrap_or_default());
            let is_too_much = self.round.order.holds(event.raw.len());
            held.events.push((event, document));
            if is_too_much {
                self.fail(TOO_MUCH);
            }
            return;
        }
        match (text("text"), self.round.texts.get(&index)) {
            (Some(more), Some(part)) => {
                if self.round.order.holds(more.len()) {
                    return self.fail(TOO_MUCH);
                }
                if let Some(WrittenPart::Text(whole)) = self.round.parts.get_mut(*part) {
                    whole.push_str(&more);
                }
            }
            // Citations belong to a text and are not written again.
            (None, Some(_)) => self.round.is_bound = true,
            (_, None) => {}
        }
        self.pass_block(&event, &document, index);
    }

    /// Sends an event of a block, with the index that the client knows it by.
    fn pass_block(&mut self, event: &Event, document: &JsonDocument, index: u64) {
        let known = self.index_of(index);
        self.send(renumbered(event, document, known));
    }

    /// Asks for a ruling on a call that is whole.
    fn ask(&mut self, held: HeldBlock) {
        let written = if held.json.trim().is_empty() { &held.began_with } else { &held.json };
        let call =
            arguments(written).map(|arguments| WantedCall { id: held.id.clone(), name: held.name.clone(), arguments });
        match call {
            Some(call) => {
                self.steps.push_back(AnswerStep::Rule(call));
                self.held = Some(held);
                self.asked = true;
            }
            None => {
                self.steps.push_back(AnswerStep::unread(&held.id, &held.name));
                self.settle(&held, CallRuling::Aborted(NO_ARGUMENTS.into()));
            }
        }
    }

    fn settle(&mut self, held: &HeldBlock, ruling: CallRuling) {
        match ruling {
            CallRuling::Allowed => {
                self.written(held);
                self.round.passed.push(held.id.clone());
                for (event, document) in &held.events {
                    self.pass_block(event, document, held.index);
                }
            }
            CallRuling::Rewritten(arguments) => {
                self.written(held);
                self.round.passed.push(held.id.clone());
                self.rewrite(held, &arguments);
            }
            CallRuling::Denied(reason) => self.deny(held, &reason),
            CallRuling::Aborted(reason) => {
                self.round.aborted = true;
                self.deny(held, &reason);
            }
        }
    }

    fn written(&mut self, held: &HeldBlock) {
        let json = if held.json.trim().is_empty() { &held.began_with } else { &held.json };
        let input = if json.trim().is_empty() { "{}" } else { json };
        let (id, name) = (Value::from(held.id.as_str()), Value::from(held.name.as_str()));
        let call = format!(r#"{{"type":"tool_use","id":{id},"name":{name},"input":{input}}}"#);
        self.round.parts.push(WrittenPart::Call(call));
    }

    /// Sends the block with other arguments: its beginning, one part, its end.
    fn rewrite(&mut self, held: &HeldBlock, arguments: &Object) {
        let Some(((first, beginning), rest)) = held.events.split_first() else { return };
        let known = self.index_of(held.index);
        let mut edits = Edits::default();
        if let Some(node) = beginning.root.get("index") {
            edits.replace(node.span.clone(), known.to_string());
        }
        if let Some(input) = beginning.root.at(&["content_block", "input"]) {
            edits.replace(input.span.clone(), "{}");
        }
        self.send(first.with_data(&edits.apply(&beginning.text)));
        let json = Value::from(Value::Object(arguments.clone()).to_string());
        let delta = format!(
            "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":{known},\"delta\":{{\"type\":\"input_json_delta\",\"partial_json\":{json}}}}}\n\n"
        );
        self.send(delta.into_bytes());
        if let Some((event, document)) = rest.last() {
            self.pass_block(event, document, held.index);
        }
    }

    fn index_of(&mut self, index: u64) -> u64 {
        let next = self.earlier.next_index;
        let known = *self.round.indices.entry(index).or_insert(next);
        self.earlier.next_index = next.max(known + 1);
        known
    }

    fn deny(&mut self, held: &HeldBlock, reason: &str) {
        self.round.refused = true;
        if self.answers() {
            self.written(held);
            let call = WantedCall { id: held.id.clone(), name: held.name.clone(), arguments: Object::new() };
            self.round.denied.push((call, reason.to_owned()));
        } else {
            self.say(&refusal_text(&held.name, reason));
        }
    }

    /// Whether a call that is refused now may be answered by the door.
    fn answers(&self) -> bool {
        let may = self.mode == DenyMode::Answer && self.earlier.rounds < MAX_ROUNDS;
        may && !self.round.is_bound && !self.round.aborted
    }

    /// Sends a block of text that the model did not write.
    fn say(&mut self, text: &str) {
        let index = self.earlier.next_index;
        self.earlier.next_index += 1;
        self.round.parts.push(WrittenPart::Text(text.to_owned()));
        let text = Value::from(text);
        let block = format!(
            "event: content_block_start\ndata: {{\"type\":\"content_block_start\",\"index\":{index},\"content_block\":{{\"type\":\"text\",\"text\":\"\"}}}}\n\n\
             event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":{index},\"delta\":{{\"type\":\"text_delta\",\"text\":{text}}}}}\n\n\
             event: content_block_stop\ndata: {{\"type\":\"content_block_stop\",\"index\":{index}}}\n\n"
        );
        self.send(block.into_bytes());
    }

    /// The end of a round, as `message_delta` says it.
    fn ending(&mut self, event: &Event, document: &JsonDocument) {
        if let Some(held) = self.held.take() {
            // It never came to its end.
            self.steps.push_back(AnswerStep::unread(&held.id, &held.name));
            self.round.aborted = true;
            self.deny(&held, NO_ARGUMENTS);
        }
        let stop = document.root.at(&["delta", "stop_reason"]);
        let wants_tools = stop.and_then(|node| document.string(node)).as_deref() == Some("tool_use");
        let output = document.root.get("usage").and_then(|usage| document.number_at(usage, "output_tokens"));
        let refused = !self.round.denied.is_empty() && self.round.passed.is_empty();
        if refused && wants_tools && self.answers() {
            self.earlier.output_tokens += output.unwrap_or_default();
            self.round.is_going_on = Some(self.messages());
            return;
        }
        if refused {
            for (call, reason) in std::mem::take(&mut self.round.denied) {
                self.round.parts.retain(|part| !is_call(part, &call.id));
                self.say(&refusal_text(&call.name, &reason));
            }
        }
        let mut edits = Edits::default();
        if self.round.refused
            && self.round.passed.is_empty()
            && wants_tools
            && let Some(stop) = stop
        {
            edits.text(stop, "end_turn");
        }
        self.sum(&mut edits, document, output);
        self.send(if edits.is_empty() { event.raw.clone() } else { event.with_data(&edits.apply(&document.text)) });
    }

    /// Adds what earlier rounds cost.
    fn sum(&self, edits: &mut Edits, document: &JsonDocument, output: Option<u64>) {
        let Some(usage) = document.root.get("usage").filter(|_| self.earlier.rounds > 0) else { return };
        if let (Some(output), Some(node)) = (output, usage.get("output_tokens")) {
            edits.replace(node.span.clone(), (output + self.earlier.output_tokens).to_string());
        }
        for (place, name) in INPUT_COUNTS.iter().enumerate() {
            let sum = self.earlier.input_counts[place] + self.round.input_counts[place];
            match usage.get(name) {
                Some(node) => edits.replace(node.span.clone(), sum.to_string()),
                None if sum > 0 => edits.put_member(usage, name, &sum.to_string()),
                None => {}
            }
        }
    }

    /// What the door says to the model: the model's message, and the refusals.
    fn messages(&self) -> Vec<String> {
        let parts: Vec<String> = self.round.parts.iter().filter_map(written_part).collect();
        let results = self.round.denied.iter().map(|(call, reason)| result(&call.id, &refusal_result(reason)));
        vec![message_of("assistant", &parts), message_of("user", &results.collect::<Vec<_>>())]
    }

    fn text(&self) -> String {
        let texts = self.round.parts.iter().filter_map(|part| match part {
            WrittenPart::Text(text) => Some(text.as_str()),
            WrittenPart::Call(_) => None,
        });
        texts.collect()
    }

    fn go_on(&mut self, messages: Vec<String>) {
        let text = self.text();
        let round = std::mem::take(&mut self.round);
        let earlier = &mut self.earlier;
        earlier.rounds += 1;
        earlier.tally.next_round();
        for (sum, count) in earlier.input_counts.iter_mut().zip(round.input_counts) {
            *sum += count;
        }
        earlier.text.push_str(&text);
        earlier.exchange.before.extend(messages.iter().cloned());
        earlier.exchange.lead_parts = usize::try_from(earlier.next_index).unwrap_or(usize::MAX);
        earlier.exchange.lead_text = earlier.text.clone();
        self.sse = Splitter::default();
        self.steps.push_back(AnswerStep::GoOn(messages));
    }

    fn done(&mut self) {
        let text = format!("{}{}", self.earlier.text, self.text());
        let denied = self.round.denied.iter().filter_map(|(call, reason)| {
            let parts = &self.round.parts;
            let part = parts.iter().find(|part| is_call(part, &call.id))?;
            let result = result(&call.id, &refusal_result(reason));
            Some(DeniedCall { call: written_part(part)?, result, leads: false })
        });
        let denied = denied.collect();
        let before = std::mem::take(&mut self.earlier.exchange);
        let exchange = Exchange { calls: self.round.passed.clone(), text, denied, ..before };
        self.steps.push_back(AnswerStep::Done(Some(exchange).filter(|exchange| !exchange.is_empty())));
        self.over = true;
    }
}

/// An event of a block with the index `known`; the same bytes where it has it.
fn renumbered(event: &Event, document: &JsonDocument, known: u64) -> Vec<u8> {
    match document.root.get("index") {
        Some(node) if document.raw(node) != known.to_string() => {
            let mut edits = Edits::default();
            edits.replace(node.span.clone(), known.to_string());
            event.with_data(&edits.apply(&document.text))
        }
        Some(_) | None => event.raw.clone(),
    }
}

impl AnswerMachine for MessageStream {
    fn feed(&mut self, bytes: &[u8]) {
        self.sse.feed(bytes);
    }

    fn end(&mut self) {
        self.sse.end();
    }

    fn next(&mut self) -> Option<AnswerStep> {
        loop {
            if let Some(step) = self.steps.pop_front() {
                return Some(step);
            }
            if self.asked || self.over {
                return None;
            }
            if self.round.ended
                && let Some(messages) = self.round.is_going_on.take()
            {
                self.go_on(messages);
                continue;
            }
            match self.sse.cut() {
                Ok(Some(event)) => self.take(event),
                Ok(None) if self.sse.is_over() && self.round.ended => self.done(),
                Ok(None) if self.sse.is_over() => self.fail("the answer ended before it was whole"),
                Ok(None) => return None,
                Err(error) => self.fail(&error.to_string()),
            }
        }
    }

    fn rule(&mut self, ruling: CallRuling) {
        self.asked = false;
        if let Some(held) = self.held.take() {
            self.settle(&held, ruling);
        }
    }

    fn said(&self) -> String {
        format!("{}{}", self.earlier.text, self.text())
    }

    fn tally(&self) -> Tally {
        self.earlier.tally
    }

    fn keep_alive(&self) -> Option<&'static [u8]> {
        Some(b"event: ping\ndata: {\"type\": \"ping\"}\n\n")
    }
}
