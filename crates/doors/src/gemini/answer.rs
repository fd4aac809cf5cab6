//! An answer: one document, or one in each event.

use std::collections::VecDeque;

use pintle_domain::json::{Object, Value};

use super::form::candidates;
use super::round::{COUNTS, HeldCall, HeldDocument, PartPlace, Round, WrittenPart};
use super::{content_of, error_event, text_part};
use crate::answer::{
    AnswerMachine, AnswerStep, AnswerTo, CallRuling, DeniedCall, DenyMode, Exchange, MAX_ROUNDS, WantedCall,
    refusal_text,
};
use crate::spans::{Edits, JsonDocument, Node};
use crate::strict::{MAX_HELD_BYTES, TOO_MUCH};
use crate::tokens::Tally;
use pintle_egress::sse::{Event, Splitter};

/// One answer, over all rounds of it.
#[derive(Debug)]
pub struct GeminiAnswer {
    mode: DenyMode,
    to: AnswerTo,
    sse: Splitter,
    body: Vec<u8>,
    has_ended: bool,
    steps: VecDeque<AnswerStep>,
    round: Round,
    earlier: Earlier,
    is_asked: bool,
    over: bool,
}

#[derive(Debug, Default)]
struct Earlier {
    rounds: usize,
    tally: Tally,
    id: Option<String>,
    counts: [u64; COUNTS.len()],
    /// The parts that the client got, where they are told at once.
    shown: Vec<String>,
    lead_parts: usize,
    text: String,
    before: Vec<String>,
}

impl GeminiAnswer {
    /// The answer to `to`, whose refused calls are told as `mode` says.
    pub fn new(mode: DenyMode, to: AnswerTo) -> Self {
        Self {
            mode,
            to,
            sse: Splitter::default(),
            body: Vec::new(),
            has_ended: false,
            steps: VecDeque::new(),
            round: Round::default(),
            earlier: Earlier::default(),
            is_asked: false,
            over: false,
        }
    }

    fn send(&mut self, bytes: Vec<u8>) {
        self.steps.push_back(AnswerStep::Send(bytes));
    }

    fn fail(&mut self, why: &str) {
        self.over = true;
        if self.to.streams {
            // What came last may lack its end.
            self.send([b"\n\n", error_event(why).as_slice()].concat());
        }
        self.steps.push_back(AnswerStep::Broken(why.to_owned()));
    }

    /// The next event, or all of an answer that comes whole.
    fn read(&mut self) {
        if self.to.streams {
            return match self.sse.cut() {
                Ok(Some(event)) => self.take_event(event),
                Ok(None) if self.round.is_finished => self.rule_next(),
                Ok(None) => self.fail("the answer ended before it was whole"),
                Err(error) => self.fail(&error.to_string()),
            };
        }
        if self.body.len() > MAX_HELD_BYTES {
            return self.fail(TOO_MUCH);
        }
        let body = String::from_utf8(std::mem::take(&mut self.body));
        let read = body.map_err(|_| "the answer is not UTF-8".to_owned()).and_then(document);
        // It begins with its end: all of it is held.
        self.round.is_holding = true;
        match read.and_then(|document| self.take(None, document)) {
            Ok(()) => self.rule_next(),
            Err(why) => self.fail(&why),
        }
    }

    fn take_event(&mut self, event: Event) {
        let Some(data) = event.data.clone().filter(|data| !data.trim().is_empty()) else {
            match self.round.is_holding {
                true => self.round.held.push(HeldDocument { event: Some(event), document: None }),
                false => self.send(event.raw),
            }
            return;
        };
        if let Err(why) = document(data).and_then(|document| self.take(Some(event), document)) {
            self.fail(&why);
        }
    }

    /// Takes what a document says, and sends it on or holds it.
    fn take(&mut self, event: Option<Event>, document: JsonDocument) -> Result<(), String> {
        let found = candidates(&document, self.to.choices)?;
        if document.says(&document.root, "error") && found.iter().any(|candidate| !candidate.parts.is_empty()) {
            return Err("the answer has an error and parts".into());
        }
        self.round.is_finished |= found.is_empty() && document.says(&document.root, "promptFeedback");
        for (own, candidate) in found.iter().enumerate() {
            self.round.is_bound |= candidate.index > 0;
            self.round.is_finished |= candidate.finish.is_some();
            let index = usize::try_from(candidate.index).unwrap_or(usize::MAX);
            for (part, said) in candidate.parts.iter().enumerate() {
                let place = PartPlace { held: self.round.held.len(), own, part, candidate: index };
                self.round.part(&document, said, place);
            }
        }
        let usage = document.root.get("usageMetadata");
        self.earlier.tally.take(&document, usage);
        for (name, count) in COUNTS.iter().zip(&mut self.round.counts) {
            // Each event says all until then.
            *count = usage.and_then(|usage| document.number_at(usage, name)).unwrap_or(*count);
        }
        let id = document.text_at(&document.root, "responseId");
        self.round.id = self.round.id.take().or(id);
        let bytes = event.as_ref().map_or(0, |event| event.raw.len());
        self.round.bytes = self.round.bytes.saturating_add(bytes);
        if self.round.is_holding {
            if self.round.bytes > MAX_HELD_BYTES {
                return Err(TOO_MUCH.into());
            }
            self.round.held.push(HeldDocument { event, document: Some(document) });
        } else {
            // What was told is not held.
            self.round.bytes = self.round.bytes.saturating_sub(bytes);
            self.tell(&HeldDocument { event, document: Some(document) }, Edits::default());
        }
        Ok(())
    }

    /// Sends a document with `edits`, and with what earlier rounds came to.
    fn tell(&mut self, held: &HeldDocument, mut edits: Edits) {
        let Some(document) = &held.document else {
            return self.send(held.event.as_ref().map(|event| event.raw.clone()).unwrap_or_default());
        };
        if self.earlier.rounds > 0 {
            if let (Some(id), Some(node)) = (&self.earlier.id, document.root.get("responseId")) {
                edits.text(node, id);
            }
            let usage = document.root.get("usageMetadata");
            for (name, earlier) in COUNTS.iter().zip(self.earlier.counts) {
                let node = usage.and_then(|usage| Some((usage.get(name)?, document.number_at(usage, name)?)));
                if let Some((node, now)) = node.filter(|_| earlier > 0) {
                    edits.replace(node.span.clone(), (now + earlier).to_string());
                }
            }
        }
        let is_same = edits.is_empty();
        let bytes = match &held.event {
            Some(event) if is_same => event.raw.clone(),
            Some(event) => event.with_data(&edits.apply(&document.text)),
            None => edits.apply(&document.text).into_bytes(),
        };
        self.send(bytes);
    }

    /// Asks about the next call; ends the round behind the last one.
    fn rule_next(&mut self) {
        match self.round.calls.get(self.round.ruled) {
            Some(call) => {
                self.is_asked = true;
                let (id, arguments) = (call.known_as(&call.arguments), call.arguments.clone());
                self.steps.push_back(AnswerStep::Rule(WantedCall { id, name: call.name.clone(), arguments }));
            }
            None => self.conclude(),
        }
    }

    fn conclude(&mut self) {
        let mut round = std::mem::take(&mut self.round);
        let is_aborted = round.calls.iter().any(|call| matches!(call.ruling, Some(CallRuling::Aborted(_))));
        let refused = round.calls.iter().filter(|call| call.refusal().is_some()).count();
        let passes = refused < round.calls.len();
        let may_answer = self.mode == DenyMode::Answer && self.earlier.rounds < MAX_ROUNDS;
        let answers = may_answer && !round.is_bound && !is_aborted;
        if refused > 0 && !passes && answers {
            return self.go_on(&round);
        }
        let mut own = round.texts.first().cloned().unwrap_or_default();
        for call in &mut round.calls {
            let why = call.refusal().filter(|_| !(answers && passes));
            call.said = why.map(|why| refusal_text(&call.name, why));
            own.push_str(call.said.as_deref().unwrap_or_default());
        }
        for (place, held) in round.held.iter().enumerate() {
            let mut edits = Edits::default();
            if let Some(document) = &held.document {
                self.settle(&mut edits, (document, place), &round.calls);
            }
            self.tell(held, edits);
        }
        let others: Vec<&String> = round.texts.iter().skip(1).filter(|text| !text.is_empty()).collect();
        self.finish(&round, own, answers && passes);
        for text in others {
            self.earlier.text = format!("{}\n\n{text}", self.earlier.text);
        }
    }

    /// Puts the rulings on its calls into a document.
    fn settle(&self, edits: &mut Edits, (document, place): (&JsonDocument, usize), calls: &[HeldCall]) {
        let candidates = document.root.get("candidates").map(Node::items).unwrap_or_default();
        for (own, candidate) in candidates.iter().enumerate() {
            let lead = if own == 0 && !self.to.streams { self.earlier.shown.as_slice() } else { &[] };
            let Some(list) = candidate.at(&["content", "parts"]) else {
                if !lead.is_empty() && candidate.get("content").is_none() {
                    edits.put_member(candidate, "content", &content_of("model", lead));
                }
                continue;
            };
            let mut gone = Vec::new();
            for call in calls.iter().filter(|call| call.place.held == place && call.place.own == own) {
                let node = &list.items()[call.place.part];
                match (&call.ruling, &call.said) {
                    (_, Some(text)) => edits.replace(node.span.clone(), text_part(text)),
                    (Some(CallRuling::Rewritten(with)), None) => rewrite(edits, node, with),
                    (Some(CallRuling::Denied(_) | CallRuling::Aborted(_)), None) => gone.push(call.place.part),
                    (Some(CallRuling::Allowed) | None, None) => {}
                }
            }
            edits.remove_items(list, &gone);
            if !lead.is_empty() {
                let comma = if list.items().len() == gone.len() { "" } else { "," };
                let at = list.span.start + 1;
                edits.replace(at..at, format!("{}{comma}", lead.join(",")));
            }
        }
    }

    /// Answers the model itself.
    fn go_on(&mut self, round: &Round) {
        let mut parts = Vec::new();
        for part in &round.parts {
            match part {
                WrittenPart::Text(text) => parts.push(text_part(text)),
                WrittenPart::Raw(raw) => parts.push(raw.clone()),
            }
        }
        let refused = |call: &HeldCall| Some(call.denied(call.refusal()?).result);
        let results: Vec<String> = round.calls.iter().filter_map(refused).collect();
        let messages = vec![content_of("model", &parts), content_of("user", &results)];
        let earlier = &mut self.earlier;
        earlier.rounds += 1;
        earlier.tally.next_round();
        earlier.id = earlier.id.take().or_else(|| round.id.clone());
        for (sum, count) in earlier.counts.iter_mut().zip(round.counts) {
            *sum += count;
        }
        earlier.lead_parts += round.shown.parts;
        let text = if self.to.streams { &round.shown.text } else { round.texts.first().unwrap_or(&round.shown.text) };
        earlier.text.push_str(text);
        earlier.before.extend(messages.iter().cloned());
        let is_call = |raw: &String| round.calls.iter().any(|call| call.raw == **raw);
        if !self.to.streams {
            earlier.shown.extend(parts.into_iter().filter(|raw| !is_call(raw)));
            earlier.lead_parts = earlier.shown.len();
        }
        (self.sse, self.has_ended) = (Splitter::default(), false);
        self.steps.push_back(AnswerStep::GoOn(messages));
    }

    fn finish(&mut self, round: &Round, own: String, puts_back: bool) {
        let mut exchange = Exchange {
            before: std::mem::take(&mut self.earlier.before),
            lead_parts: self.earlier.lead_parts,
            lead_text: self.earlier.text.clone(),
            ..Exchange::default()
        };
        for call in &round.calls {
            match (&call.ruling, call.refusal()) {
                (_, Some(why)) if puts_back => {
                    exchange.denied.push(DeniedCall { leads: exchange.calls.is_empty(), ..call.denied(why) });
                }
                (_, Some(_)) => {}
                (Some(CallRuling::Rewritten(with)), None) => exchange.calls.push(call.known_as(with)),
                (_, None) => exchange.calls.push(call.known_as(&call.arguments)),
            }
        }
        self.earlier.text.push_str(&own);
        exchange.text.clone_from(&self.earlier.text);
        self.steps.push_back(AnswerStep::Done(Some(exchange).filter(|exchange| !exchange.is_empty())));
        self.over = true;
    }
}

fn document(text: String) -> Result<JsonDocument, String> {
    JsonDocument::read(text).map_err(|error| format!("the answer cannot be read: {error}"))
}

fn rewrite(edits: &mut Edits, part: &Node, with: &Object) {
    let Some(call) = part.get("functionCall") else { return };
    let with = Value::Object(with.clone()).to_string();
    match call.get("args") {
        Some(node) => edits.replace(node.span.clone(), with),
        None => edits.put_member(call, "args", &with),
    }
}

impl AnswerMachine for GeminiAnswer {
    fn feed(&mut self, bytes: &[u8]) {
        if self.to.streams {
            return self.sse.feed(bytes);
        }
        // One byte too many says that it is too much.
        let left = (MAX_HELD_BYTES + 1).saturating_sub(self.body.len());
        self.body.extend_from_slice(&bytes[..bytes.len().min(left)]);
    }

    fn end(&mut self) {
        self.has_ended = true;
        self.sse.end();
    }

    fn next(&mut self) -> Option<AnswerStep> {
        loop {
            if let Some(step) = self.steps.pop_front() {
                return Some(step);
            }
            if self.is_asked || self.over {
                return None;
            }
            if !self.has_ended {
                if !self.to.streams {
                    return None;
                }
                match self.sse.cut() {
                    Ok(Some(event)) => self.take_event(event),
                    Ok(None) => return None,
                    Err(error) => self.fail(&error.to_string()),
                }
                continue;
            }
            // Behind the first ruling there is nothing to read any more.
            match self.round.ruled {
                0 => self.read(),
                _ => self.rule_next(),
            }
        }
    }

    fn rule(&mut self, ruling: CallRuling) {
        self.is_asked = false;
        if let Some(call) = self.round.calls.get_mut(self.round.ruled) {
            call.ruling = Some(ruling);
            self.round.ruled += 1;
        }
    }

    fn said(&self) -> String {
        self.earlier.text.clone()
    }

    fn tally(&self) -> Tally {
        self.earlier.tally
    }

    fn keep_alive(&self) -> Option<&'static [u8]> {
        self.to.streams.then_some(b": a person is asked\n\n")
    }
}
