//! An answer as events: a beginning, items with a beginning, parts and an end, and an end that repeats all items.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use pintle_domain::json::Value;

use super::item::WrittenCall;
use super::order::{EventKind, Order};
use super::round::{CallFates, Earlier, Fate, Outcome, RoundItem, by_id, put, said_id};
use super::{error_event, message_of, text_part};
use crate::answer::{AnswerMachine, AnswerStep, AnswerTo, CallRuling, DenyMode, NO_ARGUMENTS, StoredAnswer};
use crate::spans::{Edits, JsonDocument};
use crate::strict::{MAX_HELD_BYTES, TOO_MUCH};
use crate::tokens::Tally;
use pintle_egress::sse::{Event, Splitter};

/// What some servers say behind the end.
const DONE: &str = "[DONE]";

/// One streamed answer, over all rounds of it.
#[derive(Debug)]
pub struct ResponseStream {
    sse: Splitter,
    mode: DenyMode,
    to: AnswerTo,
    steps: VecDeque<AnswerStep>,
    round: Round,
    earlier: Earlier,
    /// The answer, where the vendor keeps it as it is sent.
    stored: Option<StoredAnswer>,
    told: Told,
    over: bool,
}

/// An event that is held.
type Held = (Event, Option<(JsonDocument, EventKind)>);

#[derive(Debug, Default)]
struct Round {
    order: Order,
    /// All that came since the first call began.
    held: Vec<Held>,
    is_holding: bool,
    /// How many bytes of it are kept.
    bytes: usize,
    is_complete: bool,
    waiting: VecDeque<u64>,
    asked: Option<u64>,
    ruled: BTreeMap<u64, CallRuling>,
    /// How the client knows each item.
    indices: BTreeMap<u64, u64>,
    /// The calls of which a part with all changed arguments was told.
    changed: BTreeSet<u64>,
}

/// What the client was told.
#[derive(Debug, Default)]
struct Told {
    /// The index of its next item.
    next: u64,
    /// The number of its last event.
    number: Option<u64>,
    /// Whether the numbers of the vendor are not those of the client any more.
    is_renumbered: bool,
}

impl ResponseStream {
    /// The answer to `to`, whose refused calls are told as `mode` says.
    pub fn new(mode: DenyMode, to: AnswerTo) -> Self {
        Self {
            sse: Splitter::default(),
            mode,
            to,
            steps: VecDeque::new(),
            round: Round::default(),
            earlier: Earlier::default(),
            stored: None,
            told: Told::default(),
            over: false,
        }
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
        let Some(data) = event.data.clone().filter(|data| !data.trim().is_empty()) else {
            return self.pass(event, None);
        };
        if data.trim() == DONE {
            return self.pass(event, None);
        }
        let work = |document: JsonDocument| {
            let kind = self.round.order.take(&event, &document, &self.to)?;
            Ok::<_, String>((document, kind))
        };
        let read = JsonDocument::read(data).map_err(|error| format!("an event of the answer cannot be read: {error}"));
        match read.and_then(work) {
            Ok((document, kind)) => {
                self.earlier.tally.take(&document, document.root.at(&["response", "usage"]));
                self.work(event, document, kind);
            }
            Err(why) => self.fail(&why),
        }
    }

    fn work(&mut self, event: Event, document: JsonDocument, kind: EventKind) {
        let is_call = |place: &u64| self.round.order.items[place].item().call().is_some();
        match kind {
            // The client's answer began with the first round.
            EventKind::Beginning if self.earlier.rounds > 0 => {
                self.told.is_renumbered = true;
                return;
            }
            EventKind::Added(place) if is_call(&place) => self.round.is_holding = true,
            EventKind::Ending { is_complete } => {
                self.round.is_complete = is_complete;
                self.round.is_holding = true;
                self.round.held.push((event, Some((document, kind))));
                return self.rule_all();
            }
            EventKind::Failed => {
                // Nothing that was held goes on.
                self.round.held.clear();
                self.send(event.raw);
                self.steps.push_back(AnswerStep::Done(None));
                self.over = true;
                return;
            }
            EventKind::Beginning
            | EventKind::Added(_)
            | EventKind::Grew(_)
            | EventKind::Repeated(_)
            | EventKind::Finished(_)
            | EventKind::Part(_)
            | EventKind::Other => {}
        }
        if let EventKind::Finished(_) = kind {
            self.round.bytes = self.round.bytes.saturating_add(event.raw.len());
        }
        self.pass(event, Some((document, kind)));
    }

    /// Sends an event on, or holds it.
    fn pass(&mut self, event: Event, read: Option<(JsonDocument, EventKind)>) {
        if self.round.is_holding {
            self.round.bytes = self.round.bytes.saturating_add(event.raw.len());
            self.round.held.push((event, read));
        } else {
            self.tell(&event, read.as_ref(), Edits::default());
        }
        if self.round.bytes > MAX_HELD_BYTES {
            self.fail(TOO_MUCH);
        }
    }

    /// Sends an event with `edits`, the index and the number that the client knows.
    fn tell(&mut self, event: &Event, read: Option<&(JsonDocument, EventKind)>, mut edits: Edits) {
        let Some((document, kind)) = read else { return self.send(event.raw.clone()) };
        if let EventKind::Added(place)
        | EventKind::Grew(place)
        | EventKind::Repeated(place)
        | EventKind::Finished(place)
        | EventKind::Part(place) = kind
        {
            let known = self.index_of(*place);
            if let Some(node) = document.root.get("output_index").filter(|_| known != *place) {
                edits.replace(node.span.clone(), known.to_string());
            }
        }
        if let Some(node) = document.root.get("sequence_number") {
            let own = document.number_at(&document.root, "sequence_number");
            match own.filter(|_| !self.told.is_renumbered) {
                Some(own) => self.told.number = Some(own),
                None => edits.replace(node.span.clone(), self.told.next_number().to_string()),
            }
        }
        self.send(if edits.is_empty() { event.raw.clone() } else { event.with_data(&edits.apply(&document.text)) });
    }

    fn index_of(&mut self, place: u64) -> u64 {
        let next = self.told.next;
        let known = *self.round.indices.entry(place).or_insert(next);
        self.told.next = next.max(known + 1);
        known
    }

    /// Asks about all calls, once they are whole.
    fn rule_all(&mut self) {
        let calls = self.round.order.items.iter().filter(|(_, form)| form.item().call().is_some());
        self.round.waiting = calls.map(|(place, _)| *place).collect();
        self.ask_next();
    }

    fn ask_next(&mut self) {
        while let Some(place) = self.round.waiting.pop_front() {
            let form = &self.round.order.items[&place];
            let whole = form.finished.as_ref().and_then(|(item, _)| item.call());
            match whole.and_then(WrittenCall::wanted) {
                Some(call) => {
                    self.round.asked = Some(place);
                    self.steps.push_back(AnswerStep::Rule(call));
                    return;
                }
                None => {
                    if let Some(call) = form.item().call() {
                        self.steps.push_back(AnswerStep::unread(&call.id, &call.name));
                    }
                    self.round.ruled.insert(place, CallRuling::Aborted(NO_ARGUMENTS.into()));
                }
            }
        }
        self.conclude();
    }

    fn conclude(&mut self) {
        let mut round = std::mem::take(&mut self.round);
        let (mut places, mut items) = (Vec::new(), Vec::new());
        for (place, form) in &round.order.items {
            let raw = form.finished.as_ref().map(|(_, raw)| raw.clone()).unwrap_or_default();
            places.push(*place);
            items.push(RoundItem { item: form.item().clone(), raw, ruling: round.ruled.remove(place) });
        }
        let held = std::mem::take(&mut round.held);
        let end = held.last().and_then(|(_, read)| read.as_ref());
        let end = end.and_then(|(document, _)| Some((document, document.root.get("response")?)));
        let fates = match self.earlier.conclude(self.mode, &items, round.is_complete) {
            Outcome::GoOn(messages) => {
                if let Some((document, response)) = end {
                    self.earlier.count(document, response);
                }
                self.told.is_renumbered = true;
                self.sse = Splitter::default();
                return self.steps.push_back(AnswerStep::GoOn(messages));
            }
            Outcome::End(fates) => fates,
        };
        if self.to.is_stored && round.is_complete {
            let id = end.and_then(|(document, response)| document.text_at(response, "id"));
            self.stored = self.earlier.stored(id, &items, &fates);
        }
        self.round = round;
        let by_place: BTreeMap<u64, (&RoundItem, &Fate)> = places.into_iter().zip(items.iter().zip(&fates)).collect();
        let by_id = by_id(&items, &fates);
        for (event, read) in &held {
            self.settle(event, read.as_ref(), (&by_place, &by_id));
        }
        self.round.is_holding = false;
    }

    /// Sends an event that was held, by the fates of calls.
    fn settle(
        &mut self,
        event: &Event,
        read: Option<&(JsonDocument, EventKind)>,
        (by_place, by_id): (&BTreeMap<u64, (&RoundItem, &Fate)>, &CallFates),
    ) {
        let mut edits = Edits::default();
        let Some((document, kind)) = read else { return self.tell(event, None, edits) };
        let place = match kind {
            EventKind::Added(place)
            | EventKind::Grew(place)
            | EventKind::Repeated(place)
            | EventKind::Finished(place)
            | EventKind::Part(place) => place,
            EventKind::Ending { .. } => {
                if let Some(response) = document.root.get("response") {
                    self.earlier.merge(&mut edits, (document, response), by_id);
                }
                return self.tell(event, read, edits);
            }
            EventKind::Beginning | EventKind::Failed | EventKind::Other => return self.tell(event, read, edits),
        };
        match by_place.get(place).and_then(|(own, fate)| Some((own.item.call()?, *fate))) {
            None | Some((_, Fate::Stays)) => {}
            Some((call, Fate::Changed(with))) => {
                // The first part has all of them.
                let is_told = matches!(kind, EventKind::Grew(_)) && !self.round.changed.insert(*place);
                change(&mut edits, (document, *kind), (call, if is_told { "" } else { with }));
            }
            Some((call, Fate::Said(text))) => {
                self.told.is_renumbered = true;
                if matches!(kind, EventKind::Added(_)) {
                    self.say(*place, &said_id(call), text);
                }
                return;
            }
            Some((_, Fate::Gone)) => {
                self.told.is_renumbered = true;
                return;
            }
        }
        self.tell(event, read, edits);
    }

    /// Sends a message that the model did not write, in the place of a call.
    fn say(&mut self, place: u64, id: &str, text: &str) {
        let (index, own, said) = (self.index_of(place), Value::from(id), Value::from(text));
        let whole = message_of(id, text);
        let begun =
            format!(r#"{{"id":{own},"type":"message","status":"in_progress","role":"assistant","content":[]}}"#);
        let part = format!(r#""item_id":{own},"content_index":0"#);
        for (name, more) in [
            ("output_item.added", format!(r#""item":{begun}"#)),
            ("content_part.added", format!(r#"{part},"part":{}"#, text_part(""))),
            ("output_text.delta", format!(r#"{part},"delta":{said},"logprobs":[]"#)),
            ("output_text.done", format!(r#"{part},"text":{said},"logprobs":[]"#)),
            ("content_part.done", format!(r#"{part},"part":{}"#, text_part(text))),
            ("output_item.done", format!(r#""item":{whole}"#)),
        ] {
            let number = self.told.next_number();
            let event = format!(
                "event: response.{name}\ndata: {{\"type\":\"response.{name}\",\"sequence_number\":{number},\"output_index\":{index},{more}}}\n\n"
            );
            self.send(event.into_bytes());
        }
    }
}

impl Told {
    fn next_number(&mut self) -> u64 {
        let next = self.number.map_or(0, |number| number + 1);
        self.number = Some(next);
        next
    }
}

/// Puts the changed arguments into an event of a call, wherever it says some.
fn change(edits: &mut Edits, (document, kind): (&JsonDocument, EventKind), (call, with): (&WrittenCall, &str)) {
    let root = &document.root;
    match kind {
        EventKind::Added(_) => {
            if let Some(node) = root.at(&["item", call.member()])
                && document.string(node).is_some_and(|written| !written.is_empty())
            {
                edits.text(node, with);
            }
        }
        EventKind::Finished(_) => {
            if let Some(node) = root.get("item") {
                put(edits, node, call.member(), with);
            }
        }
        EventKind::Repeated(_) => put(edits, root, call.member(), with),
        EventKind::Grew(_) => put(edits, root, "delta", with),
        EventKind::Beginning | EventKind::Part(_) | EventKind::Ending { .. } | EventKind::Failed | EventKind::Other => {
        }
    }
}

impl AnswerMachine for ResponseStream {
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
            match self.sse.cut() {
                Ok(Some(event)) => self.take(event),
                Ok(None) if self.sse.is_over() && self.round.order.is_ended => {
                    self.over = true;
                    self.steps.push_back(AnswerStep::Done(self.earlier.exchange()));
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

    fn take_stored(&mut self) -> Option<StoredAnswer> {
        self.stored.take()
    }

    fn said(&self) -> String {
        self.earlier.text.clone()
    }

    fn tally(&self) -> Tally {
        self.earlier.tally
    }

    fn keep_alive(&self) -> Option<&'static [u8]> {
        Some(b": a person is asked\n\n")
    }
}
