//! Where the texts of hooks stand on a wire: from the list that hooks see to the messages that a model takes.
//!
//! Models differ in what they take in the middle of a conversation; [`Capabilities`] say how. A request without texts of
//! skills, prompts of the host's own or such texts in its history is *plain* and leaves as it stands, but for notes of
//! hooks, for neighbours that join where roles must alternate, and for what is empty. In every other one:
//!
//! 1. The system prompt is what the operator set. No other text is folded into it, and none comes before it.
//! 2. Where system messages are free, everything stands in its place.
//! 3. Where they are placed, neighbouring system texts form a run. In a place that is allowed it becomes one system
//!    message, if all of its texts outlive the call or none does, and always in the planning call. A text keeps the form
//!    in which it was sent first while its place allows.
//! 4. Every other system text becomes user text: `<system-reminder>`, newline, text, newline, `</system-reminder>`. Inside
//!    these marks a `</system-reminder` of the text is written `&lt;/system-reminder`. In a request that uses them, both
//!    marks are escaped likewise in whatever others wrote, and in what models put into calls: so nobody else can speak in
//!    a hook's name. Thoughts that a provider signed are the only exception; a change would break their signature.
//! 5. Text goes behind the last result of a batch, never between a call and its results. Where no user's message may
//!    follow a result, it is appended to it. Where roles must alternate, neighbours of one role are one message.
//! 6. Where thoughts are bound to everything before them, what was sent once is sent again: see [`turn`].
//! 7. Nothing empty is sent.
//!
//! Notes of hooks are always user text between marks. Nothing here names who put a text in: that stays at home.

use std::borrow::Cow;

use pintle_domain::json::Rendered;
use pintle_domain::ledger::MessageSource;
use pintle_domain::message::{FROM_HOOK, Lifetime, Message, Role};

use crate::capabilities::{Capabilities, MidSystem};
use crate::lower::forms::{Form, Item};
use crate::lower::marks::{guarded, wrapped};
use crate::lower::thread::below;
use crate::lower::turn::WireLedger;

mod forms;
mod marks;
mod names;
mod thread;
pub(crate) mod tool_schema;
pub(crate) mod turn;

pub(crate) use names::{WireIds, WireNames, object, object_text};
pub(crate) use thread::{Join, Thread, mark, text_part};
pub use turn::{RemovalMode, TurnPosition, TurnWire};

/// A message as it is about to be sent.
pub(crate) struct WireMessage<'a> {
    /// Its role is the one on the wire.
    pub(crate) message: Cow<'a, Message>,
    /// How it stands to the messages around it.
    pub(crate) join: Join,
    /// Whether it carries the provider's mark for text that expires with the turn.
    pub(crate) marked: bool,
    /// Whether the next call of the turn begins with it, and with all before it.
    shared: bool,
}

impl<'a> WireMessage<'a> {
    fn new(message: Cow<'a, Message>, join: Join) -> Self {
        Self { message, join, marked: false, shared: false }
    }
}

/// The shape of a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WireShape {
    /// Results of tools are messages of their own, the system prompt is the first message.
    Messages,
    /// Results stand in messages of the user, the system prompt apart.
    Blocks,
    /// Results are what the user says, the system prompt is the first message.
    Texts,
}

/// Which call of a turn a request is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// The one that asks for a plan.
    Planning,
    /// Any other.
    Loop,
    /// One of a turn in which nothing may stand that nobody said: it leaves as it stands.
    Plain,
}

/// How a request is lowered.
pub(crate) struct LoweringOptions<'a> {
    /// PROVIDER/MODEL.
    pub(crate) model: String,
    pub(crate) capabilities: Capabilities,
    pub(crate) shape: WireShape,
    /// Its place in a turn with texts.
    pub(crate) turn: Option<TurnPosition<'a>>,
    /// Whether another request is likely to begin with it.
    pub(crate) goes_on: bool,
}

impl LoweringOptions<'_> {
    /// Whether user text behind a result is appended to it.
    pub(crate) fn folds(&self) -> bool {
        self.shape == WireShape::Messages && !self.capabilities.user_after_tool
    }

    fn is(&self, kind: CallKind) -> bool {
        self.turn.is_some_and(|turn| turn.call == kind)
    }

    /// Whether thoughts are bound to what was sent before them, as far as anybody kept it.
    fn binds(&self) -> bool {
        self.capabilities.prefix_bound_reasoning && self.is(CallKind::Loop)
    }

    /// Whether each request begins with the one before.
    fn appends(&self) -> bool {
        self.binds() && self.turn.is_some_and(|turn| turn.wire.removal() == RemovalMode::Freeze)
    }

    /// Whether `message` is sent with the provider's mark that it expires. What a hook rewrote is not: it may stand for
    /// something that stays.
    fn marks(&self, message: &Message) -> bool {
        let short = message.private.lifetime == Lifetime::Passing && message.id().is_some();
        short && self.appends() && !self.folds() && !self.capabilities.turn_scoped.is_empty()
    }

    /// Whether the marks are escaped even where no text stands between any.
    fn guards(&self) -> bool {
        self.capabilities.prefix_bound_reasoning && self.turn.is_some()
    }
}

/// A request's messages as they are about to be sent.
pub(crate) struct LoweredRequest<'a> {
    /// The system prompt, where it stands apart.
    pub(crate) system: Vec<&'a Message>,
    /// All others.
    pub(crate) spoken: Vec<WireMessage<'a>>,
    /// The last of `spoken` that the next call of the turn begins with; none where that is the system prompt.
    pub(crate) boundary: Option<usize>,
    /// Whether this is more than a plain request.
    pub(crate) minded: bool,
}

/// Whether `message` is what a hook wants the model to read.
pub(crate) fn is_note(message: &Message) -> bool {
    message.role == Role::System && message.origin == FROM_HOOK
}

/// Whether a skill or the host put `message` in, in this request or an earlier one.
fn is_text(message: &Message) -> bool {
    message.private.from.as_ref().is_some_and(|from| match from.origin {
        MessageSource::Hook | MessageSource::HookHistory => true,
        MessageSource::Builtin => from.prompt.is_some(),
        MessageSource::User
        | MessageSource::Model
        | MessageSource::Tool
        | MessageSource::Steering
        | MessageSource::Subagent
        | MessageSource::Rewriter => false,
    })
}

/// Whether `message` is a part of the system prompt, if all before it are.
fn is_prompt(message: &Message) -> bool {
    message.role == Role::System && !is_note(message) && !is_text(message)
}

/// `messages` as they are sent.
pub(crate) fn lowered<'a>(messages: &'a [Rendered<Message>], how: &LoweringOptions<'_>) -> LoweredRequest<'a> {
    let minded = how.turn.is_some() || messages.iter().any(|message| is_text(message.get()));
    if minded {
        return match how.turn {
            Some(turn) => turn.wire.with(&how.model, |ledger| minded_of(messages, how, ledger)),
            None => minded_of(messages, how, &mut WireLedger::default()),
        };
    }
    let apart = how.shape == WireShape::Blocks;
    let leading = messages.iter().take_while(|message| apart && is_prompt(message.get())).count();
    let (system, rest) = messages.split_at(leading);
    let late: fn(&Message) -> bool = if apart { |message| message.role == Role::System } else { is_note };
    let kept = Lifetime::shared(messages.iter().map(|message| message.get().private.lifetime));
    let join = if how.capabilities.alternation { Join::Always } else { Join::Never };
    let spoken = plain(rest, kept.saturating_sub(leading), (late, join));
    let boundary = spoken.iter().take_while(|one| one.shared).count().checked_sub(1);
    LoweredRequest { system: system.iter().map(Rendered::get).collect(), spoken, boundary, minded }
}

/// `messages` with everything for which `late` holds as user text between marks, and the marks safe from others. The
/// next call begins with the first `kept` of them. All others are joined as `join` says.
fn plain(
    messages: &[Rendered<Message>],
    kept: usize,
    (late, join): (fn(&Message) -> bool, Join),
) -> Vec<WireMessage<'_>> {
    let marked = messages.iter().any(|message| late(message.get()));
    let (mut sent, mut held) = (Vec::with_capacity(messages.len()), Vec::new());
    for (at, message) in messages.iter().map(Rendered::get).enumerate().filter(|(_, message)| !forms::is_empty(message))
    {
        let shared = at < kept;
        if late(message) {
            held.push(WireMessage { shared, ..reminder(message) });
            continue;
        }
        if message.role != Role::Tool {
            sent.append(&mut held);
        }
        let spoken = if marked { guarded(message) } else { Cow::Borrowed(message) };
        sent.push(WireMessage { shared, ..WireMessage::new(spoken, join) });
    }
    sent.append(&mut held);
    sent
}

/// A text between the marks.
fn reminder(message: &Message) -> WireMessage<'static> {
    WireMessage::new(Cow::Owned(Message::text(Role::User, wrapped(&system_text(message)))), Join::Always)
}

/// The text of a system message, also of one that only has parts.
pub(crate) fn system_text(message: &Message) -> Cow<'_, str> {
    if !message.content.is_empty() || message.system_parts.is_empty() {
        return Cow::Borrowed(&message.content);
    }
    let parts: Vec<&str> = message.system_parts.iter().map(|part| part.text.as_str()).collect();
    Cow::Owned(parts.join("\n\n"))
}

fn minded_of<'a>(
    messages: &'a [Rendered<Message>],
    how: &LoweringOptions<'_>,
    ledger: &mut WireLedger,
) -> LoweredRequest<'a> {
    let mut items = forms::items(messages);
    if how.appends() {
        items = ledger.aligned(items);
    }
    forms::decide(&mut items, how, ledger.forms());
    ledger.remember(&items, how);
    let mut lowered = spoken(&items, how);
    if how.binds() {
        ledger.bind(&items, &mut lowered.spoken, &how.model);
    }
    lowered
}

/// The items as they are sent.
fn spoken<'a>(items: &[Item<'a>], how: &LoweringOptions<'_>) -> LoweredRequest<'a> {
    let guard = how.guards() || items.iter().any(|item| item.form == Some(Form::Wrapped));
    // What is only added to keeps all of it.
    let lifetime = |item: &Item<'_>| if how.appends() { Lifetime::Stays } else { item.get().private.lifetime };
    let kept = Lifetime::shared(items.iter().map(lifetime));
    let mut lowered = LoweredRequest { system: Vec::new(), spoken: Vec::new(), boundary: None, minded: true };
    let apart = how.shape == WireShape::Blocks;
    for (at, item) in items.iter().enumerate() {
        let shared = at < kept;
        match (item.form, &item.message) {
            (Some(Form::Bare), Cow::Borrowed(message)) if item.prompt && apart => {
                lowered.system.push(message.get());
                continue;
            }
            (Some(Form::System { joins: true }), _) => {
                if let Some(run) = lowered.spoken.last_mut() {
                    below(&mut run.message.to_mut().content, &system_text(item.get()));
                    run.shared &= shared;
                    continue;
                }
            }
            (Some(Form::Bare | Form::Wrapped | Form::System { joins: false }) | None, _) => {}
        }
        let one = WireMessage { shared, marked: how.marks(item.get()), ..single(item, how, guard) };
        match lowered.spoken.last_mut().filter(|last| follows(last, &one, how)) {
            Some(result) => {
                let into = result.message.to_mut();
                below(&mut into.content, &one.message.content);
                into.media.extend(one.message.media.iter().cloned());
                result.shared &= shared;
            }
            None => lowered.spoken.push(one),
        }
    }
    lowered.boundary = boundary(&lowered.spoken, how);
    lowered
}

/// The last message that the next call begins with.
fn boundary(spoken: &[WireMessage<'_>], how: &LoweringOptions<'_>) -> Option<usize> {
    let shared = spoken.iter().take_while(|one| one.shared).count();
    let last = shared.checked_sub(1)?;
    // Once what stands between them has left, a text behind it is appended to this result, or joins this run.
    let takes = match spoken[last].message.role {
        Role::Tool => how.folds(),
        Role::System => how.capabilities.mid_system == MidSystem::Placed && spoken[last].join == Join::Alone,
        Role::User | Role::Assistant => false,
    };
    let grows = takes && spoken.get(shared).is_some_and(|next| next.message.role != Role::Assistant);
    if grows { last.checked_sub(1) } else { Some(last) }
}

/// Whether `one` is appended to the result `last`.
fn follows(last: &WireMessage<'_>, one: &WireMessage<'_>, how: &LoweringOptions<'_>) -> bool {
    how.folds() && last.message.role == Role::Tool && one.message.role == Role::User
}

fn single<'a>(item: &Item<'a>, how: &LoweringOptions<'_>, guard: bool) -> WireMessage<'a> {
    let alternates = how.capabilities.alternation;
    let text = |role, content: String| Cow::Owned(Message::text(role, content));
    match item.form {
        Some(Form::System { .. }) => {
            WireMessage::new(text(Role::System, system_text(item.get()).into_owned()), Join::Alone)
        }
        Some(Form::Wrapped) => WireMessage::new(text(Role::User, wrapped(&system_text(item.get()))), Join::Always),
        Some(Form::Bare) | None => {
            let message = match &item.message {
                Cow::Borrowed(message) if guard => guarded(message.get()),
                Cow::Borrowed(message) => Cow::Borrowed(message.get()),
                Cow::Owned(message) if guard => Cow::Owned(guarded(message.get()).into_owned()),
                Cow::Owned(message) => Cow::Owned(message.get().clone()),
            };
            WireMessage::new(message, if alternates { Join::Always } else { Join::Never })
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
