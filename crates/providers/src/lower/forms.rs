//! Which form each text of a list has on the wire.

use std::borrow::Cow;
use std::collections::BTreeMap;

use pintle_domain::json::Rendered;
use pintle_domain::ledger::MsgId;
use pintle_domain::message::{Lifetime, Message, Role};

use super::{CallKind, LoweringOptions, WireShape, is_note, is_prompt, system_text};
use crate::capabilities::{MessageAfter, MessageBefore, MidSystem};

/// How a message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// As it is.
    Bare,
    /// As a system message.
    System {
        /// Whether it is one with the text before it.
        joins: bool,
    },
    /// As user text between marks.
    Wrapped,
}

/// A message of the list.
#[derive(Clone, Debug)]
pub(super) struct Item<'a> {
    /// Owned if it is in the list no more.
    pub(super) message: Cow<'a, Rendered<Message>>,
    /// Whether it is a part of the system prompt.
    pub(super) prompt: bool,
    /// Whether it was sent in this form, and is bound to it.
    pub(super) sent: bool,
    /// Nothing until it is decided.
    pub(super) form: Option<Form>,
}

impl Item<'_> {
    pub(super) fn get(&self) -> &Message {
        self.message.get()
    }

    /// Whether it is a system text that may have one form or another.
    fn is_open(&self) -> bool {
        !self.sent && !self.prompt && self.get().role == Role::System
    }

    fn is_system(&self) -> bool {
        matches!(self.form, Some(Form::System { .. }))
    }
}

/// Everything in `messages` that is not empty, with results of tools right behind their calls.
pub(super) fn items(messages: &[Rendered<Message>]) -> Vec<Item<'_>> {
    let leading = messages.iter().take_while(|message| is_prompt(message.get())).count();
    let item = |message, prompt| Item { message: Cow::Borrowed(message), prompt, sent: false, form: None };
    let (prompt, rest) = messages.split_at(leading);
    let mut all: Vec<Item<'_>> = prompt.iter().map(|message| item(message, true)).collect();
    let (mut behind, mut pending) = (Vec::new(), false);
    for message in rest {
        match message.get().role {
            Role::Tool if pending => {}
            Role::System | Role::User if pending => {
                behind.push(item(message, false));
                continue;
            }
            Role::Assistant | Role::Tool | Role::System | Role::User => {
                all.append(&mut behind);
                pending = !message.get().tool_calls.is_empty();
            }
        }
        all.push(item(message, false));
    }
    all.append(&mut behind);
    all.retain(|item| !is_empty(item.get()));
    all
}

/// Whether there is nothing to send of `message`. Thoughts alone are not a message to any server.
pub(super) fn is_empty(message: &Message) -> bool {
    match message.role {
        Role::System => system_text(message).trim().is_empty(),
        Role::User => message.content.trim().is_empty() && message.media.is_empty(),
        Role::Assistant => message.content.trim().is_empty() && message.tool_calls.is_empty(),
        // A call without a result would be refused.
        Role::Tool => false,
    }
}

/// Gives every item a form. `known` has those in which texts were sent before.
pub(super) fn decide(items: &mut [Item<'_>], how: &LoweringOptions<'_>, known: &BTreeMap<MsgId, Form>) {
    for item in items.iter_mut().filter(|item| !item.sent) {
        item.form = Some(match item.get().role {
            Role::System if item.prompt => Form::Bare,
            Role::System => Form::Wrapped,
            Role::User | Role::Assistant | Role::Tool => Form::Bare,
        });
    }
    let may = |item: &Item<'_>| {
        let frozen = how.appends() && item.get().private.lifetime == Lifetime::Passing && !how.marks(item.get());
        item.is_open() && !is_note(item.get()) && !frozen
    };
    match how.capabilities.mid_system {
        MidSystem::None => {}
        MidSystem::Free => {
            for at in 0..items.len() {
                if may(&items[at]) && !is_first(items, at, how) {
                    items[at].form = Some(Form::System { joins: false });
                }
            }
        }
        MidSystem::Placed => {
            let mut at = 0;
            while at < items.len() {
                let length = items[at..].iter().take_while(|item| item.is_open() && !is_note(item.get())).count();
                guess(&mut items[at..at + length], how, known, may);
                at += length.max(1);
            }
            settle(items, how);
        }
    }
}

/// Whether nothing stands before `at` in the messages of the wire.
fn is_first(items: &[Item<'_>], at: usize, how: &LoweringOptions<'_>) -> bool {
    items[..at].iter().all(|item| item.prompt && how.shape == WireShape::Blocks)
}

/// The forms that a run would have if its place were allowed.
fn guess(
    run: &mut [Item<'_>],
    how: &LoweringOptions<'_>,
    known: &BTreeMap<MsgId, Form>,
    may: impl Fn(&Item<'_>) -> bool,
) {
    let passing = run.iter().filter(|item| item.get().private.lifetime == Lifetime::Passing).count();
    let whole = passing == 0 || passing == run.len() || how.is(CallKind::Planning);
    for item in run {
        let first = item.get().id().and_then(|id| known.get(&id));
        let system = first.map_or(whole, |form| *form != Form::Wrapped);
        if system && may(item) {
            item.form = Some(Form::System { joins: false });
        }
    }
}

/// Takes system messages back to user text until all that are left stand where they may.
fn settle(items: &mut [Item<'_>], how: &LoweringOptions<'_>) {
    loop {
        let stands: Vec<Stands> = stands(items, how);
        let mut changed = false;
        let mut at = 0;
        while at < items.len() {
            let length = items[at..].iter().take_while(|item| item.is_system() && !item.sent).count();
            let before = if is_first(items, at, how) { None } else { stands.get(at.wrapping_sub(1)) };
            if length > 0 && !allowed(before, stands.get(at + length), how) {
                items[at..at + length].iter_mut().for_each(|item| item.form = Some(Form::Wrapped));
                changed = true;
            }
            at += length.max(1);
        }
        if !changed {
            break;
        }
    }
    for at in 1..items.len() {
        if items[at].is_system() && !items[at].sent && items[at - 1].is_system() && !items[at - 1].sent {
            items[at].form = Some(Form::System { joins: true });
        }
    }
}

/// Who speaks in a message of the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    System,
    User,
    Assistant,
    Tool,
}

fn stands(items: &[Item<'_>], how: &LoweringOptions<'_>) -> Vec<Stands> {
    let mut all: Vec<Stands> = Vec::with_capacity(items.len());
    for item in items {
        let it = match item.get().role {
            Role::System if item.prompt || item.is_system() => Stands::System,
            Role::System | Role::User if how.folds() && all.last() == Some(&Stands::Tool) => Stands::Tool,
            Role::System | Role::User => Stands::User,
            Role::Assistant => Stands::Assistant,
            Role::Tool if how.shape == WireShape::Texts => Stands::User,
            Role::Tool => Stands::Tool,
        };
        all.push(it);
    }
    all
}

/// Whether a system message may stand between these two.
fn allowed(before: Option<&Stands>, behind: Option<&Stands>, how: &LoweringOptions<'_>) -> bool {
    let placement = &how.capabilities.placement;
    let (after, ahead) = (|it| placement.after.contains(&it), |it| placement.before.contains(&it));
    let begins = match before {
        None => false,
        Some(Stands::System) => placement.consecutive,
        Some(Stands::User) => after(MessageBefore::User),
        Some(Stands::Assistant) => after(MessageBefore::Assistant),
        Some(Stands::Tool) => after(MessageBefore::Tool),
    };
    begins
        && match behind {
            // What ends this request stands before the model's answer in the next one, and cannot be moved then.
            None => ahead(MessageAfter::End) && (!how.appends() || ahead(MessageAfter::Assistant)),
            Some(Stands::System) => placement.consecutive,
            Some(Stands::User) => ahead(MessageAfter::User),
            Some(Stands::Assistant) => ahead(MessageAfter::Assistant),
            Some(Stands::Tool) => false,
        }
}
