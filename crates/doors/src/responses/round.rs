//! What becomes of the items of one round, and what all rounds came to.

use std::collections::BTreeMap;

use super::item::{OutputItem, WrittenCall};
use super::{message_of, result};
use crate::answer::{
    CallRuling, DenyMode, Exchange, KeptItem, MAX_ROUNDS, StoredAnswer, WantedCall, refusal_result, refusal_text,
};
use crate::spans::{Edits, JsonDocument, Node};
use crate::tokens::Tally;

/// Counts that are summed over rounds.
const COUNTS: [&[&str]; 5] = [
    &["input_tokens"],
    &["input_tokens_details", "cached_tokens"],
    &["output_tokens"],
    &["output_tokens_details", "reasoning_tokens"],
    &["total_tokens"],
];

/// Why a call cannot go on as a hook changed it.
const NOT_SAID: &str = "a hook changed its arguments, and a call of this kind takes one text and nothing else";

/// An item and its bytes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RoundItem {
    /// What it is.
    pub(super) item: OutputItem,
    /// Its bytes, whole.
    pub(super) raw: String,
    /// What became of it, if it is a call.
    pub(super) ruling: Option<CallRuling>,
}

/// What the client gets of an item.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fate {
    /// It stays.
    Stays,
    /// It is a call with these arguments.
    Changed(String),
    /// Nothing.
    Gone,
    /// A message with this text in its place.
    Said(String),
}

/// The calls of an answer by their ids, and their fates.
pub(super) type CallFates = BTreeMap<String, (WrittenCall, Fate)>;

/// The fates of calls, by their ids.
pub(super) fn by_id(items: &[RoundItem], fates: &[Fate]) -> CallFates {
    let call =
        |(own, fate): (&RoundItem, &Fate)| own.item.call().map(|call| (call.id.clone(), (call.clone(), fate.clone())));
    items.iter().zip(fates).filter_map(call).collect()
}

/// What comes of a round.
#[derive(Debug)]
pub(super) enum Outcome {
    /// The model is asked again, with these items behind the conversation.
    GoOn(Vec<String>),
    /// The answer ends; each item with its fate.
    End(Vec<Fate>),
}

/// What all rounds before this one came to.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    /// How many there were.
    pub(super) rounds: usize,
    /// What the vendor says that all of them cost, this one too.
    pub(super) tally: Tally,
    /// The id of the first answer.
    id: Option<String>,
    /// The items that the client got of them.
    pub(super) shown: Vec<String>,
    /// The text that the client got.
    pub(super) text: String,
    counts: [u64; COUNTS.len()],
    items: Vec<KeptItem>,
    passed: Vec<String>,
}

impl Earlier {
    /// Ends a round: `is_complete` where the model came to its end.
    pub(super) fn conclude(&mut self, mode: DenyMode, items: &[RoundItem], is_complete: bool) -> Outcome {
        let rulings: Vec<Option<CallRuling>> = items.iter().map(sayable).collect();
        let is_bound = items.iter().any(|own| match own.item {
            OutputItem::Thought { is_sendable, .. } => !is_sendable,
            OutputItem::Other => true,
            OutputItem::Call(_) | OutputItem::Message(..) => false,
        });
        let is_aborted = rulings.iter().any(|ruling| matches!(ruling, Some(CallRuling::Aborted(_))));
        let refused = rulings.iter().filter(|ruling| reason(ruling.as_ref()).is_some()).count();
        let passes = rulings.iter().flatten().count() > refused;
        let answers = mode == DenyMode::Answer && self.rounds < MAX_ROUNDS && !is_bound && !is_aborted;
        if refused > 0 && !passes && answers && is_complete {
            return Outcome::GoOn(self.go_on(items, &rulings));
        }
        let (mut fates, mut results) = (Vec::new(), Vec::new());
        for (own, ruling) in items.iter().zip(&rulings) {
            let fate = match (own.item.call(), ruling, reason(ruling.as_ref())) {
                (Some(call), _, Some(why)) if answers && passes => {
                    results.push(refusal(call, why));
                    self.hide(&own.raw);
                    Fate::Gone
                }
                (Some(call), _, Some(why)) => {
                    let text = refusal_text(&call.name, why);
                    self.got(&OutputItem::Message(Some(said_id(call)), text.clone()), None);
                    self.text.push_str(&text);
                    Fate::Said(text)
                }
                (Some(call), Some(CallRuling::Rewritten(with)), None) => {
                    self.got(&own.item, None);
                    Fate::Changed(call.rewritten(with).unwrap_or_default())
                }
                (Some(_) | None, _, _) => {
                    self.got(&own.item, None);
                    Fate::Stays
                }
            };
            fates.push(fate);
        }
        results.iter().for_each(|result| self.hide(result));
        Outcome::End(fates)
    }

    /// Answers the model: its items and the refusals.
    fn go_on(&mut self, items: &[RoundItem], rulings: &[Option<CallRuling>]) -> Vec<String> {
        let mut messages = Vec::new();
        for own in items {
            messages.push(own.raw.clone());
            if own.item.call().is_some() {
                self.hide(&own.raw);
                continue;
            }
            self.shown.push(own.raw.clone());
            self.got(&own.item, Some(own.raw.clone()));
        }
        for (own, ruling) in items.iter().zip(rulings) {
            if let (Some(call), Some(why)) = (own.item.call(), reason(ruling.as_ref())) {
                let result = refusal(call, why);
                self.hide(&result);
                messages.push(result);
            }
        }
        self.rounds += 1;
        self.tally.next_round();
        messages
    }

    fn hide(&mut self, raw: &str) {
        self.items.push(KeptItem { sent: Some(raw.to_owned()), seen: None });
    }

    fn got(&mut self, item: &OutputItem, sent: Option<String>) {
        match item {
            OutputItem::Call(call) => self.passed.push(call.id.clone()),
            OutputItem::Message(_, text) => self.text.push_str(text),
            OutputItem::Thought { .. } | OutputItem::Other => {}
        }
        let seen = item.mark();
        if seen.is_some() || sent.is_some() {
            self.items.push(KeptItem { sent, seen });
        }
    }

    /// The answer with the id `id`, if the client gets the items of this round as they are, and nothing else.
    pub(super) fn stored(&self, id: Option<String>, items: &[RoundItem], fates: &[Fate]) -> Option<StoredAnswer> {
        let id = id.filter(|id| !id.is_empty() && self.rounds == 0)?;
        if fates.iter().any(|fate| *fate != Fate::Stays) {
            return None;
        }
        let calls = items.iter().filter_map(|own| Some((own.item.call()?, own.ruling.as_ref())));
        let cleared = |(call, ruling): (&WrittenCall, Option<&CallRuling>)| match ruling {
            Some(CallRuling::Allowed) => call.wanted(),
            Some(CallRuling::Rewritten(_) | CallRuling::Denied(_) | CallRuling::Aborted(_)) | None => None,
        };
        let calls: Option<Vec<WantedCall>> = calls.map(cleared).collect();
        Some(StoredAnswer { id, calls: calls? })
    }

    /// Adds what `response` counts, and keeps its id if it is the first one.
    pub(super) fn count(&mut self, document: &JsonDocument, response: &Node) {
        self.id.get_or_insert_with(|| document.text_at(response, "id").unwrap_or_default());
        for (path, sum) in COUNTS.iter().zip(&mut self.counts) {
            *sum += number(document, response, path).unwrap_or_default();
        }
    }

    /// Makes `response` the end of the whole answer: its items by their fates, behind those of earlier rounds.
    pub(super) fn merge(&self, edits: &mut Edits, (document, response): (&JsonDocument, &Node), fates: &CallFates) {
        if self.rounds > 0 {
            if let (Some(id), Some(node)) = (&self.id, response.get("id")) {
                edits.text(node, id);
            }
            for (path, earlier) in COUNTS.iter().zip(self.counts) {
                let node = response.get("usage").and_then(|usage| usage.at(path));
                if let (Some(node), Some(now)) = (node, number(document, response, path)) {
                    edits.replace(node.span.clone(), (now + earlier).to_string());
                }
            }
        }
        let Some(list) = response.get("output").filter(|list| list.is_array()) else { return };
        // Some vendors do not say in the end what they said before.
        if list.items().is_empty() && !fates.is_empty() {
            return;
        }
        let is_changed = fates.values().any(|(_, fate)| *fate != Fate::Stays);
        if self.shown.is_empty() && !is_changed {
            return;
        }
        let own = list.items().iter().filter_map(|node| settled(document, node, fates));
        let all: Vec<String> = self.shown.iter().cloned().chain(own).collect();
        edits.replace(list.span.clone(), format!("[{}]", all.join(",")));
    }

    /// What is kept of the answer, at its end.
    pub(super) fn exchange(&mut self) -> Option<Exchange> {
        let (calls, text) = (std::mem::take(&mut self.passed), self.text.clone());
        let exchange = Exchange { calls, text, items: std::mem::take(&mut self.items), ..Exchange::default() };
        (!exchange.is_empty()).then_some(exchange)
    }
}

/// An item of a list of them, by the fates of calls.
fn settled(document: &JsonDocument, node: &Node, fates: &CallFates) -> Option<String> {
    let raw = document.raw(node);
    let fate = document.text_at(node, "call_id").and_then(|id| fates.get(&id));
    match fate {
        None | Some((_, Fate::Stays)) => Some(raw.to_owned()),
        Some((_, Fate::Gone)) => None,
        Some((call, Fate::Said(text))) => Some(message_of(&said_id(call), text)),
        Some((call, Fate::Changed(with))) => {
            let own = JsonDocument::read(raw.to_owned()).ok()?;
            let mut edits = Edits::default();
            put(&mut edits, &own.root, call.member(), with);
            Some(edits.apply(raw))
        }
    }
}

/// Puts the text `with` at the member `name` of an item or event.
pub(super) fn put(edits: &mut Edits, node: &Node, name: &str, with: &str) {
    match node.get(name) {
        Some(own) => edits.text(own, with),
        None => edits.put_member(node, name, &pintle_domain::json::Value::from(with).to_string()),
    }
}

/// The id of the message in the place of a call.
pub(super) fn said_id(call: &WrittenCall) -> String {
    format!("msg_{}", call.id)
}

fn refusal(call: &WrittenCall, why: &str) -> String {
    result(&call.id, call.is_custom, &refusal_result(why))
}

fn number(document: &JsonDocument, response: &Node, path: &[&str]) -> Option<u64> {
    let (last, before) = path.split_last()?;
    document.number_at(response.get("usage")?.at(before)?, last)
}

/// A ruling that the call can say.
fn sayable(own: &RoundItem) -> Option<CallRuling> {
    let call = own.item.call()?;
    match own.ruling.clone()? {
        CallRuling::Rewritten(with) if call.rewritten(&with).is_none() => Some(CallRuling::Denied(NOT_SAID.into())),
        ruling @ (CallRuling::Allowed | CallRuling::Rewritten(_) | CallRuling::Denied(_) | CallRuling::Aborted(_)) => {
            Some(ruling)
        }
    }
}

const fn reason(ruling: Option<&CallRuling>) -> Option<&String> {
    match ruling {
        Some(CallRuling::Denied(reason) | CallRuling::Aborted(reason)) => Some(reason),
        Some(CallRuling::Allowed | CallRuling::Rewritten(_)) | None => None,
    }
}
