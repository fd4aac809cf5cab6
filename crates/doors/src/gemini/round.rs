//! What one round of an answer came to so far.

use pintle_domain::json::Object;

use super::form::PartForm;
use super::{id_of, result};
use crate::answer::{CallRuling, DeniedCall, refusal_result};
use crate::spans::{JsonDocument, Kind, Node};
use pintle_egress::sse::Event;

/// Counts that are summed over rounds.
pub(super) const COUNTS: [&str; 5] =
    ["promptTokenCount", "cachedContentTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "totalTokenCount"];

/// One round.
#[derive(Debug, Default)]
pub(super) struct Round {
    /// All that came since the first call.
    pub(super) held: Vec<HeldDocument>,
    pub(super) is_holding: bool,
    pub(super) bytes: usize,
    /// The parts of the first candidate, as they go back to the model.
    pub(super) parts: Vec<WrittenPart>,
    /// What the client got of it before anything was held.
    pub(super) shown: Shown,
    /// The texts of the candidates.
    pub(super) texts: Vec<String>,
    pub(super) calls: Vec<HeldCall>,
    /// How many calls were asked about.
    pub(super) ruled: usize,
    /// Whether it holds what cannot be written again, or several candidates.
    pub(super) is_bound: bool,
    pub(super) is_finished: bool,
    pub(super) counts: [u64; COUNTS.len()],
    pub(super) id: Option<String>,
}

#[derive(Debug)]
pub(super) struct HeldDocument {
    /// The event that it came in, if it came in one.
    pub(super) event: Option<Event>,
    /// None of a comment.
    pub(super) document: Option<JsonDocument>,
}

#[derive(Debug, PartialEq)]
pub(super) enum WrittenPart {
    /// A text and nothing else.
    Text(String),
    /// As it came.
    Raw(String),
}

/// Parts that the client got.
#[derive(Debug, Default)]
pub(super) struct Shown {
    /// How many.
    pub(super) parts: usize,
    /// Their text.
    pub(super) text: String,
}

/// Where a part stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartPlace {
    /// The document, by its place among those that are held.
    pub(super) held: usize,
    /// The candidate, by its place in the document.
    pub(super) own: usize,
    /// The part, by its place in the candidate.
    pub(super) part: usize,
    /// The index of the candidate.
    pub(super) candidate: usize,
}

/// A call.
#[derive(Debug)]
pub(super) struct HeldCall {
    pub(super) place: PartPlace,
    pub(super) id: Option<String>,
    pub(super) name: String,
    pub(super) arguments: Object,
    pub(super) raw: String,
    pub(super) ruling: Option<CallRuling>,
    /// The sentence in its place, if there is to be one.
    pub(super) said: Option<String>,
}

impl Round {
    /// Takes a part of a document.
    pub(super) fn part(&mut self, document: &JsonDocument, (node, form): &(&Node, PartForm), place: PartPlace) {
        let own = place.candidate;
        let raw = document.raw(node);
        self.bytes = self.bytes.saturating_add(raw.len());
        if self.texts.len() <= own {
            self.texts.resize(own + 1, String::new());
        }
        match form {
            PartForm::Call { id, name, arguments } => {
                self.is_holding = true;
                self.calls.push(HeldCall {
                    place,
                    id: id.clone(),
                    name: name.clone(),
                    arguments: arguments.clone(),
                    raw: raw.to_owned(),
                    ruling: None,
                    said: None,
                });
                self.parts.push(WrittenPart::Raw(raw.to_owned()));
                return;
            }
            PartForm::Text(text) => {
                self.texts[own].push_str(text);
                if !self.is_holding {
                    self.shown.text.push_str(text);
                }
                let is_bare = matches!(&node.kind, Kind::Object(members) if members.len() == 1);
                match self.parts.last_mut() {
                    Some(WrittenPart::Text(whole)) if is_bare => whole.push_str(text),
                    _ if is_bare => self.parts.push(WrittenPart::Text(text.clone())),
                    _ => self.parts.push(WrittenPart::Raw(raw.to_owned())),
                }
            }
            PartForm::Thought => self.parts.push(WrittenPart::Raw(raw.to_owned())),
            PartForm::Other => {
                self.is_bound = true;
                self.parts.push(WrittenPart::Raw(raw.to_owned()));
            }
        }
        if !self.is_holding {
            self.shown.parts += 1;
        }
    }
}

impl HeldCall {
    /// The id that the call has with these arguments.
    pub(super) fn known_as(&self, arguments: &Object) -> String {
        id_of(self.id.clone(), &self.name, arguments)
    }

    pub(super) const fn refusal(&self) -> Option<&String> {
        match &self.ruling {
            Some(CallRuling::Denied(why) | CallRuling::Aborted(why)) => Some(why),
            Some(CallRuling::Allowed | CallRuling::Rewritten(_)) | None => None,
        }
    }

    pub(super) fn denied(&self, why: &str) -> DeniedCall {
        let result = result(self.id.as_deref(), &self.name, &refusal_result(why));
        DeniedCall { call: self.raw.clone(), result, leads: false }
    }
}
