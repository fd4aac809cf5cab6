//! An answer as one JSON document.

use std::collections::VecDeque;

use super::item::item;
use super::round::{Earlier, Outcome, RoundItem, by_id};
use crate::answer::{AnswerMachine, AnswerStep, AnswerTo, CallRuling, DenyMode, NO_ARGUMENTS, StoredAnswer};
use crate::spans::{Edits, JsonDocument};
use crate::strict::{MAX_HELD_BYTES, TOO_MUCH, envelope, list, object, text};
use crate::tokens::Tally;

/// One answer that comes whole, over all rounds of it.
#[derive(Debug)]
pub struct WholeResponse {
    mode: DenyMode,
    to: AnswerTo,
    body: Vec<u8>,
    document: Option<JsonDocument>,
    items: Vec<RoundItem>,
    /// The calls that want a ruling, by their places.
    waiting: VecDeque<usize>,
    steps: VecDeque<AnswerStep>,
    earlier: Earlier,
    /// The answer, where the vendor keeps it as it is sent.
    stored: Option<StoredAnswer>,
    asked: bool,
    ended: bool,
    over: bool,
}

impl WholeResponse {
    /// The answer to `to`, whose refused calls are told as `mode` says.
    pub fn new(mode: DenyMode, to: AnswerTo) -> Self {
        Self {
            mode,
            to,
            body: Vec::new(),
            document: None,
            items: Vec::new(),
            waiting: VecDeque::new(),
            steps: VecDeque::new(),
            earlier: Earlier::default(),
            stored: None,
            asked: false,
            ended: false,
            over: false,
        }
    }

    fn read(&mut self) -> Result<(), String> {
        if self.body.len() > MAX_HELD_BYTES {
            return Err(TOO_MUCH.into());
        }
        let body = std::str::from_utf8(&self.body).map_err(|_| "the answer is not UTF-8".to_owned())?;
        let document =
            JsonDocument::read(body.to_owned()).map_err(|error| format!("the answer cannot be read: {error}"))?;
        let root = envelope(&document, ("data", &document.root))?;
        text(&document, root, "status")?;
        object(&document, root, "usage")?;
        for node in list(&document, root, "output")? {
            let item = item(&document, node, &self.to)?;
            if let Some(call) = item.call() {
                if self.items.iter().filter_map(|own| own.item.call()).any(|other| other.id == call.id) {
                    return Err("two calls of the answer have the same `call_id`".into());
                }
                self.waiting.push_back(self.items.len());
            }
            self.items.push(RoundItem { item, raw: document.raw(node).to_owned(), ruling: None });
        }
        self.earlier.tally.take(&document, document.root.get("usage"));
        self.document = Some(document);
        Ok(())
    }

    fn conclude(&mut self, document: &JsonDocument) {
        let items = std::mem::take(&mut self.items);
        let is_complete = document.text_at(&document.root, "status").is_none_or(|status| status == "completed");
        match self.earlier.conclude(self.mode, &items, is_complete) {
            Outcome::GoOn(messages) => {
                self.earlier.count(document, &document.root);
                (self.body, self.ended) = (Vec::new(), false);
                self.steps.push_back(AnswerStep::GoOn(messages));
            }
            Outcome::End(fates) => {
                if self.to.is_stored && is_complete {
                    let id = document.text_at(&document.root, "id");
                    self.stored = self.earlier.stored(id, &items, &fates);
                }
                let mut edits = Edits::default();
                self.earlier.merge(&mut edits, (document, &document.root), &by_id(&items, &fates));
                let body = if edits.is_empty() { document.text.clone() } else { edits.apply(&document.text) };
                self.steps.push_back(AnswerStep::Send(body.into_bytes()));
                self.steps.push_back(AnswerStep::Done(self.earlier.exchange()));
                self.over = true;
            }
        }
    }
}

impl AnswerMachine for WholeResponse {
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
        if let Some(place) = self.waiting.front()
            && let Some(call) = self.items[*place].item.call()
        {
            if let Some(wanted) = call.wanted() {
                self.asked = true;
                return Some(AnswerStep::Rule(wanted));
            }
            let unread = AnswerStep::unread(&call.id, &call.name);
            self.rule(CallRuling::Aborted(NO_ARGUMENTS.into()));
            return Some(unread);
        }
        if let Some(document) = self.document.take() {
            self.conclude(&document);
        }
        self.steps.pop_front()
    }

    fn rule(&mut self, ruling: CallRuling) {
        self.asked = false;
        if let Some(place) = self.waiting.pop_front() {
            self.items[place].ruling = Some(ruling);
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
        None
    }
}
