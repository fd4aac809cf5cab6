//! An answer as events: chunks with parts of a message, one with the reason why it ends, maybe one with the usage, and
//! `[DONE]`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pintle_domain::json::Value;

use super::call::{NOT_SAID, WrittenCall};
use super::form;
use super::held::HeldChunks;
use super::texts::ChoiceTexts;
use super::{BETWEEN, error_event, message_of, result};
use crate::answer::{
    AnswerMachine, AnswerStep, CallRuling, DeniedCall, DenyMode, Exchange, MAX_ROUNDS, NO_ARGUMENTS, refusal_result,
    refusal_text,
};
use crate::spans::{Edits, JsonDocument, Kind, Node};
use crate::strict::TOO_MUCH;
use crate::tokens::Tally;
use pintle_egress::sse::{Event, Splitter};

/// The end of a stream.
const DONE: &str = "[DONE]";

/// Counts that are summed over rounds.
const COUNTS: [&str; 3] = ["prompt_tokens", "completion_tokens", "total_tokens"];

/// A call by the index of its choice and its own.
type CallPlace = (u64, u64);

/// The calls that were refused, and the arguments of those that were changed.
type Settled<'a> = (&'a [CallPlace], &'a BTreeMap<CallPlace, String>);

/// One streamed answer, over all rounds of it.
#[derive(Debug)]
pub struct CompletionStream {
    sse: Splitter,
    mode: DenyMode,
    /// How many choices the request asked for.
    choices: u64,
    steps: VecDeque<AnswerStep>,
    round: Round,
    earlier: Earlier,
    over: bool,
}

#[derive(Debug, Default)]
struct Round {
    held: HeldChunks,
    calls: BTreeMap<CallPlace, WrittenCall>,
    /// The calls whose changed arguments were told.
    told: BTreeSet<CallPlace>,
    waiting: VecDeque<CallPlace>,
    asked: Option<CallPlace>,
    ruled: BTreeMap<CallPlace, CallRuling>,
    texts: ChoiceTexts,
    /// Whether it cannot be written again: several choices, signed thoughts.
    is_bound: bool,
    is_going_on: Option<Vec<String>>,
    /// The calls that the client gets, and those that it does not.
    exchange: Exchange,
    /// How it ends.
    finish: BTreeMap<u64, String>,
    ended: bool,
}

#[derive(Debug, Default)]
struct Earlier {
    rounds: usize,
    tally: Tally,
    id: Option<String>,
    text: String,
    counts: [u64; 3],
    before: Vec<String>,
    /// Whether the next text comes behind that of an earlier round.
    parts_from: bool,
}

impl CompletionStream {
    /// An answer whose refused calls are told as `mode` says.
    pub fn new(mode: DenyMode) -> Self {
        Self {
            sse: Splitter::default(),
            mode,
            choices: 1,
            steps: VecDeque::new(),
            round: Round::default(),
            earlier: Earlier::default(),
            over: false,
        }
    }

    /// The answer to a request that asked for so many choices.
    #[must_use]
    pub const fn of_choices(mut self, choices: u64) -> Self {
        self.choices = choices;
        self
    }

    fn send(&mut self, bytes: Vec<u8>) {
        self.steps.push_back(AnswerStep::Send(bytes));
    }

    fn fail(&mut self, why: &str) {
        self.over = true;
        // What came last may lack its end.
        self.send([b"\n\n", error_event(why).as_slice()].concat());
        self.steps.push_back(AnswerStep::Broken(why.to_owned()));
    }

    fn take(&mut self, event: Event) {
        let data = event.data.clone().filter(|data| !data.trim().is_empty());
        match data.as_deref().map(str::trim) {
            None if self.round.held.is_holding => {
                self.round.held.push(event, None);
                if self.round.held.is_too_much() {
                    self.fail(TOO_MUCH);
                }
            }
            None => self.send(event.raw),
            Some(DONE) => {
                self.round.held.push(event, None);
                self.round.ended = true;
                self.rule_all();
            }
            Some(data) => match JsonDocument::read(data.to_owned()) {
                Ok(document) => self.work(event, document),
                Err(error) => self.fail(&format!("an event of the answer cannot be read: {error}")),
            },
        }
    }

    fn work(&mut self, event: Event, document: JsonDocument) {
        let is_counts = match self.read(&document) {
            Ok(is_counts) => is_counts,
            Err(why) => return self.fail(&why),
        };
        // Counts come behind everything: they are told when it is known whether this is the end.
        if self.round.held.is_holding || is_counts {
            self.round.held.is_holding = true;
            self.round.held.push(event, Some(document));
        } else {
            let bytes = self.told(&event, &document);
            self.send(bytes);
        }
        if self.round.held.is_too_much() {
            self.fail(TOO_MUCH);
        }
    }

    /// Takes what a chunk says. Says whether it is one with counts and nothing else.
    fn read(&mut self, document: &JsonDocument) -> Result<bool, String> {
        let choices = form::choices(document, "delta", self.choices)?;
        for choice in choices {
            let index = document.number_at(choice, "index").unwrap_or_default();
            self.round.is_bound |= index > 0;
            if let Some(finish) = document.text_at(choice, "finish_reason") {
                self.round.finish.insert(index, finish);
            }
            let Some(delta) = choice.get("delta") else { continue };
            self.round.is_bound |= document.says(delta, "reasoning_details");
            let text = document.text_at(delta, "content").unwrap_or_default();
            self.round.held.bytes += text.len();
            self.round.texts.of(index).push_str(&text);
            for (place, call) in delta.get("tool_calls").map(Node::items).unwrap_or_default().iter().enumerate() {
                self.round.held.is_holding = true;
                let form = form::call(document, call)?;
                let own = form.index.unwrap_or_else(|| u64::try_from(place).unwrap_or(u64::MAX));
                self.round.calls.entry((index, own)).or_default().grow(form)?;
            }
        }
        let usage = document.root.get("usage");
        self.earlier.tally.take(document, usage);
        let has_usage = usage.is_some_and(|usage| matches!(usage.kind, Kind::Object(_)));
        Ok(choices.is_empty() && has_usage)
    }

    /// Asks about all calls, once they are whole.
    fn rule_all(&mut self) {
        self.round.waiting = self.round.calls.keys().copied().collect();
        self.ask_next();
    }

    fn ask_next(&mut self) {
        while let Some(place) = self.round.waiting.pop_front() {
            match self.round.calls[&place].wanted() {
                Some(call) => {
                    self.round.asked = Some(place);
                    self.steps.push_back(AnswerStep::Rule(call));
                    return;
                }
                None => {
                    let call = &self.round.calls[&place];
                    self.steps.push_back(AnswerStep::unread(&call.id, &call.name));
                    self.round.ruled.insert(place, CallRuling::Aborted(NO_ARGUMENTS.into()));
                }
            }
        }
        self.conclude();
    }

    fn conclude(&mut self) {
        let mut denied: Vec<(CallPlace, String)> = Vec::new();
        let mut changed: BTreeMap<CallPlace, String> = BTreeMap::new();
        let mut is_aborted = false;
        for (place, ruling) in std::mem::take(&mut self.round.ruled) {
            match ruling {
                CallRuling::Allowed => self.round.exchange.calls.push(self.round.calls[&place].id.clone()),
                CallRuling::Rewritten(with) => match self.round.calls[&place].rewritten(&with) {
                    Some(written) => {
                        self.round.exchange.calls.push(self.round.calls[&place].id.clone());
                        changed.insert(place, written);
                    }
                    None => denied.push((place, NOT_SAID.into())),
                },
                CallRuling::Denied(reason) => denied.push((place, reason)),
                CallRuling::Aborted(reason) => {
                    is_aborted = true;
                    denied.push((place, reason));
                }
            }
        }
        let may_answer = self.mode == DenyMode::Answer && self.earlier.rounds < MAX_ROUNDS;
        let answers = may_answer && !self.round.is_bound && !is_aborted;
        let wants_tools = self.round.finish.get(&0).is_some_and(|finish| finish == "tool_calls");
        if answers && wants_tools && !denied.is_empty() && self.round.exchange.calls.is_empty() {
            return self.begin_again(&denied);
        }
        if answers && !self.round.exchange.calls.is_empty() {
            for (place, reason) in &denied {
                let call = &self.round.calls[place];
                let result = result(&call.id, &refusal_result(reason));
                self.round.exchange.denied.push(DeniedCall { call: call.told(), result, leads: false });
            }
        } else {
            self.say(&denied);
        }
        let places = denied.into_iter().map(|(place, _)| place).collect::<Vec<_>>();
        for (event, document) in std::mem::take(&mut self.round.held.events) {
            let Some(document) = document else {
                self.send(event.raw);
                continue;
            };
            if let Some(bytes) = self.settled(&event, &document, (&places, &changed)) {
                self.send(bytes);
            }
        }
        // What comes now comes behind the end.
        self.round.held.is_holding = false;
        self.round.calls.clear();
    }

    /// Says of each refused call that it was, in the place of the calls.
    fn say(&mut self, denied: &[(CallPlace, String)]) {
        let head = self.round.held.events.iter().find_map(|(_, document)| document.as_ref());
        let of = |name: &str| head.and_then(|document| Some(document.raw(document.root.get(name)?).to_owned()));
        let (id, created, model) = (of("id"), of("created"), of("model"));
        for ((choice, own), reason) in denied {
            let name = self.round.calls[&(*choice, *own)].name.clone();
            let mut text = refusal_text(&name, reason);
            let own = self.round.texts.of(*choice);
            if !own.is_empty() || self.earlier.parts_from {
                text = format!("{BETWEEN}{text}");
            }
            self.earlier.parts_from = false;
            own.push_str(&text);
            let id = self.earlier.id.as_ref().map(|id| Value::from(id.as_str()).to_string()).or_else(|| id.clone());
            let said = format!(
                "data: {{\"id\":{},\"object\":\"chat.completion.chunk\",\"created\":{},\"model\":{},\"choices\":[{{\"index\":{choice},\"delta\":{{\"role\":\"assistant\",\"content\":{}}},\"finish_reason\":null}}]}}\n\n",
                id.unwrap_or_else(|| "\"\"".into()),
                created.as_deref().unwrap_or("0"),
                model.as_deref().unwrap_or("\"\""),
                Value::from(text),
            );
            self.send(said.into_bytes());
        }
    }

    /// A chunk that was held, with the rulings: nothing where nothing is left of it.
    fn settled(&mut self, event: &Event, document: &JsonDocument, settled: Settled<'_>) -> Option<Vec<u8>> {
        let mut edits = self.edits(document);
        let mut is_left_out = false;
        let mut is_bare_whole = !document.says(&document.root, "usage");
        for choice in document.root.get("choices").map(Node::items).unwrap_or_default() {
            let index = document.number_at(choice, "index").unwrap_or_default();
            let leaves = self.settle_calls(&mut edits, (document, choice), settled);
            is_left_out |= leaves;
            is_bare_whole &= form::is_bare(document, choice, leaves);
            let (denied, _) = settled;
            let is_left = self.round.calls.keys().any(|place| place.0 == index && !denied.contains(place));
            let refused = denied.iter().any(|place| place.0 == index);
            if let Some(node) = choice.get("finish_reason").filter(|_| refused && !is_left)
                && document.string(node).as_deref() == Some("tool_calls")
            {
                edits.text(node, "stop");
            }
        }
        if is_left_out && is_bare_whole {
            return None;
        }
        Some(if edits.is_empty() { event.raw.clone() } else { event.with_data(&edits.apply(&document.text)) })
    }

    /// Takes refused calls out of a list, and changes the others. Says whether none is left.
    fn settle_calls(
        &mut self,
        edits: &mut Edits,
        (document, choice): (&JsonDocument, &Node),
        settled: Settled<'_>,
    ) -> bool {
        let list = choice.at(&["delta", "tool_calls"]).filter(|list| !list.items().is_empty());
        let Some(list) = list else { return false };
        let choice = document.number_at(choice, "index").unwrap_or_default();
        let (denied, changed) = settled;
        let own = |(place, call): (usize, &Node)| {
            (choice, document.number_at(call, "index").unwrap_or_else(|| u64::try_from(place).unwrap_or(u64::MAX)))
        };
        let places: Vec<CallPlace> = list.items().iter().enumerate().map(own).collect();
        let gone: Vec<usize> = (0..places.len()).filter(|place| denied.contains(&places[*place])).collect();
        match gone.len() == places.len() {
            true => edits.replace(list.span.clone(), "null"),
            false => edits.remove_items(list, &gone),
        }
        for (call, place) in list.items().iter().zip(&places).filter(|(_, place)| !denied.contains(place)) {
            let before = denied.iter().filter(|(at, own)| *at == choice && *own < place.1).count();
            let before = u64::try_from(before).unwrap_or_default();
            if let Some(node) = call.get("index").filter(|_| before > 0) {
                edits.replace(node.span.clone(), (place.1 - before).to_string());
            }
            if let Some(whole) = changed.get(place) {
                let kind = if self.round.calls[place].is_custom { "custom" } else { "function" };
                let Some(inner) = call.get(kind).filter(|inner| document.raw(inner) != "null") else { continue };
                let begins = self.round.told.insert(*place);
                rewrite(edits, (inner, kind), (begins, whole));
            }
        }
        gone.len() == places.len()
    }

    /// A chunk that nothing holds.
    fn told(&mut self, event: &Event, document: &JsonDocument) -> Vec<u8> {
        let mut edits = self.edits(document);
        let content = document.root.get("choices").and_then(|choices| choices.items().first());
        if let Some(node) = content.and_then(|choice| choice.at(&["delta", "content"]))
            && let Some(text) = document.string(node).filter(|text| !text.is_empty() && self.earlier.parts_from)
        {
            self.earlier.parts_from = false;
            edits.text(node, &format!("{BETWEEN}{text}"));
        }
        if edits.is_empty() { event.raw.clone() } else { event.with_data(&edits.apply(&document.text)) }
    }

    /// What makes a chunk of a later round one of the answer that the client reads.
    fn edits(&self, document: &JsonDocument) -> Edits {
        let mut edits = Edits::default();
        if self.earlier.rounds == 0 {
            return edits;
        }
        if let (Some(id), Some(node)) = (&self.earlier.id, document.root.get("id")) {
            edits.text(node, id);
        }
        if let Some(usage) = document.root.get("usage") {
            for (name, earlier) in COUNTS.iter().zip(self.earlier.counts) {
                if let Some(node) = usage.get(name) {
                    let now = document.number_at(usage, name).unwrap_or_default();
                    edits.replace(node.span.clone(), (now + earlier).to_string());
                }
            }
        }
        edits
    }

    /// Answers the model itself.
    fn begin_again(&mut self, denied: &[(CallPlace, String)]) {
        let calls: Vec<String> = self.round.calls.values().map(WrittenCall::told).collect();
        let results = denied.iter().map(|(place, reason)| result(&self.round.calls[place].id, &refusal_result(reason)));
        let messages: Vec<String> =
            std::iter::once(message_of(&self.round.texts.first, &calls)).chain(results).collect();
        for (_, document) in &self.round.held.events {
            let Some(document) = document else { continue };
            let id = document.text_at(&document.root, "id");
            self.earlier.id = self.earlier.id.take().or(id);
            let usage = document.root.get("usage");
            for (name, sum) in COUNTS.iter().zip(&mut self.earlier.counts) {
                *sum += usage.and_then(|usage| document.number_at(usage, name)).unwrap_or_default();
            }
        }
        self.round.held.events.clear();
        self.round.is_going_on = Some(messages);
    }

    fn go_on(&mut self, messages: Vec<String>) {
        let round = std::mem::take(&mut self.round);
        self.earlier.rounds += 1;
        self.earlier.tally.next_round();
        if !round.texts.first.is_empty() {
            let between = if self.earlier.text.is_empty() { "" } else { BETWEEN };
            self.earlier.text = format!("{}{between}{}", self.earlier.text, round.texts.first);
        }
        self.earlier.parts_from = !self.earlier.text.is_empty();
        self.earlier.before.extend(messages.iter().cloned());
        self.sse = Splitter::default();
        self.steps.push_back(AnswerStep::GoOn(messages));
    }

    fn done(&mut self) {
        let between = if self.earlier.text.is_empty() || self.round.texts.first.is_empty() { "" } else { BETWEEN };
        let own = self
            .round
            .texts
            .first
            .strip_prefix(between)
            .filter(|_| !between.is_empty())
            .unwrap_or(&self.round.texts.first);
        let exchange = Exchange {
            calls: std::mem::take(&mut self.round.exchange.calls),
            text: format!("{}{between}{own}", self.earlier.text),
            before: std::mem::take(&mut self.earlier.before),
            lead_parts: 0,
            lead_text: format!("{}{between}", self.earlier.text),
            denied: std::mem::take(&mut self.round.exchange.denied),
            items: Vec::new(),
        };
        self.steps.push_back(AnswerStep::Done(Some(exchange).filter(|exchange| !exchange.is_empty())));
        self.over = true;
    }
}

/// Puts the whole of the changed arguments where the call begins, and nothing where it goes on.
fn rewrite(edits: &mut Edits, (inner, kind): (&Node, &str), (begins, whole): (bool, &str)) {
    let member = if kind == "custom" { "input" } else { "arguments" };
    match inner.get(member) {
        Some(node) => edits.text(node, if begins { whole } else { "" }),
        None if begins => edits.put_member(inner, member, &Value::from(whole).to_string()),
        None => {}
    }
}

impl AnswerMachine for CompletionStream {
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
            if self.round.asked.is_some() || self.over {
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
                // Some servers say no `[DONE]`.
                Ok(None) if self.sse.is_over() && !self.round.finish.is_empty() => {
                    self.round.ended = true;
                    self.rule_all();
                }
                Ok(None) if self.sse.is_over() => self.fail("the answer ended before it was whole"),
                Ok(None) => return None,
                Err(error) => self.fail(&error.to_string()),
            }
        }
    }

    fn rule(&mut self, ruling: CallRuling) {
        if let Some(place) = self.round.asked.take() {
            self.round.ruled.insert(place, ruling);
            self.ask_next();
        }
    }

    fn said(&self) -> String {
        self.round.texts.all(&self.earlier.text)
    }

    fn tally(&self) -> Tally {
        self.earlier.tally
    }

    fn keep_alive(&self) -> Option<&'static [u8]> {
        Some(b": a person is asked\n\n")
    }
}
