//! What the requests of one turn looked like so far.
//!
//! Where thoughts are bound to everything that was sent before them, taking a text out of the list cannot take it off the
//! wire: each request of the loop begins with the one before, and only grows at its end. Such a text carries the
//! provider's mark for text that expires, if there is one, or it stays as it is. With [`RemovalMode::StripReasoning`]
//! it really leaves, and thoughts behind it are not sent again. Thoughts are never sent behind words other than those
//! that they were thought behind: also not after something else changed the conversation, such as a compaction.
//!
//! The planning call stands outside: its plan comes back without thoughts.
//!
//! Each model has a ledger of its own: what one was sent says nothing of what another may be sent, and its thoughts are
//! of no use to the other. A call that is tried again is lowered from the same list to the same bytes. Where the list does
//! not go on from what was sent, as after a compaction, the ledger begins anew. It lives as long as the process works the
//! turn: in another process nothing was sent yet, so whatever left the list is gone from the wire too.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use pintle_domain::json::Rendered;
use pintle_domain::ledger::{MessageSource, MsgId, RemovalEffect};
use pintle_domain::message::{Lifetime, Message, Role};

use super::forms::{Form, Item};
use super::{CallKind, LoweringOptions, WireMessage};

/// The treatment on the wire of a text that is taken out, where thoughts are bound to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RemovalMode {
    /// It stays there, marked as expired where the provider has a mark for that.
    #[default]
    Freeze,
    /// It leaves, and thoughts that were bound to it are not sent again.
    StripReasoning,
}

/// Where a request stands in its turn.
#[derive(Clone, Copy, Debug)]
pub struct TurnPosition<'a> {
    /// The requests before it.
    pub wire: &'a TurnWire,
    /// Which call it is.
    pub call: CallKind,
}

/// The requests of one turn so far, as each model that was asked saw them.
#[derive(Debug, Default)]
pub struct TurnWire {
    removal: RemovalMode,
    ledgers: Mutex<BTreeMap<String, WireLedger>>,
}

impl TurnWire {
    /// For a turn that has sent nothing yet.
    pub fn new(removal: RemovalMode) -> Self {
        Self { removal, ledgers: Mutex::default() }
    }

    /// The effect on the wire of taking the text `id` out of its list.
    pub fn fate(&self, id: MsgId) -> RemovalEffect {
        let ledgers = self.ledgers.lock().unwrap_or_else(PoisonError::into_inner);
        let fates = ledgers.values().filter_map(|ledger| ledger.fates.get(&id));
        fates.fold(
            RemovalEffect::Removed,
            |worst, fate| if *fate == RemovalEffect::Frozen { *fate } else { worst_of(worst, *fate) },
        )
    }

    pub(super) fn removal(&self) -> RemovalMode {
        self.removal
    }

    /// Works on what was sent to `model`.
    pub(super) fn with<T>(&self, model: &str, work: impl FnOnce(&mut WireLedger) -> T) -> T {
        let mut ledgers = self.ledgers.lock().unwrap_or_else(PoisonError::into_inner);
        work(ledgers.entry(model.to_owned()).or_default())
    }
}

fn worst_of(a: RemovalEffect, b: RemovalEffect) -> RemovalEffect {
    if a == RemovalEffect::Removed { b } else { a }
}

/// The ledger of what was sent to one model.
#[derive(Debug, Default)]
pub(super) struct WireLedger {
    /// The forms in which texts were sent.
    forms: BTreeMap<MsgId, Form>,
    /// The items that the next request begins with, if it only grows.
    sent: Vec<Item<'static>>,
    fates: BTreeMap<MsgId, RemovalEffect>,
    /// Everything that was sent before an answer, as digests.
    prefixes: BTreeSet<u64>,
    /// The model's messages of earlier turns: what they are bound to is not known here.
    earlier: BTreeSet<u64>,
}

impl WireLedger {
    pub(super) fn forms(&self) -> &BTreeMap<MsgId, Form> {
        &self.forms
    }

    /// The items that were sent, then those that are new in `items`. If they do not go on from there, it begins anew.
    pub(super) fn aligned<'a>(&mut self, items: Vec<Item<'a>>) -> Vec<Item<'a>> {
        let mut all: Vec<Item<'a>> = Vec::with_capacity(self.sent.len() + items.len());
        let mut next = items.iter().peekable();
        for sent in &self.sent {
            if let Some(item) = next.next_if(|item| is_same(&sent.message, &item.message)) {
                all.push(Item { sent: true, form: sent.form, ..item.clone() });
            } else if may_leave(sent) && !next.clone().any(|item| is_same(&sent.message, &item.message)) {
                all.push(sent.clone());
            } else {
                self.sent.clear();
                self.fates.clear();
                return items;
            }
        }
        all.extend(next.cloned());
        all
    }

    /// Keeps how `items` are sent.
    pub(super) fn remember(&mut self, items: &[Item<'_>], how: &LoweringOptions<'_>) {
        for item in items {
            if let (Some(id), Some(form)) = (item.get().id(), item.form) {
                // A text that lost its place once does not go back: what was sent before it would change once more.
                self.forms.insert(id, form);
            }
        }
        if how.appends() {
            let fate =
                |item: &Item<'_>| if how.marks(item.get()) { RemovalEffect::Expired } else { RemovalEffect::Frozen };
            self.fates.extend(items.iter().filter_map(|item| Some((item.get().id()?, fate(item)))));
            let kept = |item: &Item<'_>| Item {
                message: Cow::Owned(item.message.clone().into_owned()),
                prompt: item.prompt,
                sent: true,
                form: item.form,
            };
            self.sent = items.iter().map(kept).collect();
        }
    }

    /// Takes thoughts away that were thought behind other words, and keeps which words these are.
    pub(super) fn bind(&mut self, items: &[Item<'_>], spoken: &mut [WireMessage<'_>], model: &str) {
        if self.prefixes.is_empty() {
            let asked = items.iter().rposition(|item| is_asked(item.get())).unwrap_or_default();
            let said = items[..asked].iter().filter(|item| item.get().role == Role::Assistant);
            self.earlier = said.map(|item| digest_of(item.get())).collect();
        }
        // One stands for the other: what a model said is never merged with anything before it reaches a wire.
        let mut said = items.iter().map(Item::get).filter(|message| message.role == Role::Assistant).map(digest_of);
        let mut before = DefaultHasher::new();
        for prompt in items.iter().filter(|item| item.prompt) {
            feed(&mut before, prompt.get());
        }
        for one in spoken {
            if one.message.role == Role::Assistant {
                let known = said.next().is_some_and(|digest| self.earlier.contains(&digest));
                // What another model said was thought behind what that one was sent.
                let own = one.message.model_name.is_empty() || one.message.model_name == model;
                let bound = known || (own && self.prefixes.contains(&before.finish()));
                if !bound && !one.message.private.blocks.is_empty() {
                    one.message.to_mut().private.blocks.clear();
                }
            }
            feed(&mut before, &one.message);
        }
        self.prefixes.insert(before.finish());
    }
}

/// Whether the two are one message.
fn is_same(one: &Rendered<Message>, other: &Rendered<Message>) -> bool {
    one.is(other) || (one.get().id() == other.get().id() && one == other)
}

/// Whether `item` may be gone from a list that else only grew.
fn may_leave(item: &Item<'_>) -> bool {
    let message = item.get();
    let short = message.role == Role::User && message.private.lifetime == Lifetime::Passing;
    !item.prompt && (message.role == Role::System || message.id().is_some() || short)
}

/// Whether it is what the user asked in the beginning of a turn.
fn is_asked(message: &Message) -> bool {
    let by_user = message.private.from.as_ref().is_none_or(|from| from.origin == MessageSource::User);
    message.role == Role::User && message.origin.is_empty() && by_user
}

fn digest_of(message: &Message) -> u64 {
    let mut digest = DefaultHasher::new();
    feed(&mut digest, message);
    digest.finish()
}

fn feed(digest: &mut DefaultHasher, message: &Message) {
    serde_json::to_string(message).expect("string keys and plain values always serialise").hash(digest);
    for block in &message.private.blocks {
        block.to_string().hash(digest);
    }
}
