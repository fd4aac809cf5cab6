//! The conversation as somebody else keeps it: what a front end makes of what it hears, what it sends back, and what of
//! that is taken in.
//!
//! A host that keeps nothing between requests lives on this: whoever shows the conversation is its only store.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::ledger::HookChunk;
use crate::message::{CallPart, Role};
use crate::skill::Voice;

mod admission;
mod recall;
mod signature;

pub use admission::{AdmittedMessage, Trust, WithheldReason, admit};
pub use recall::{
    ChangedMessage, GatedMessage, HistoryError, MAX_HISTORY, MAX_HISTORY_BYTES, Recall, RecalledHistory,
    RecalledMessage,
};
pub use signature::{HistoryKey, SignedContent};

/// One message as a front end keeps it. Members that begin with `_` are its own and the host's: they reach no hook and
/// no model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistoryMessage {
    /// Who speaks.
    pub role: Role,
    /// The text.
    #[serde(default)]
    pub content: String,
    /// The calls that an assistant message asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<CallPart>,
    /// Which call a tool message answers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool_call_id: String,
    /// The hook that it is a text of.
    #[serde(rename = "_hook", default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<String>,
    /// The skill that brought it.
    #[serde(rename = "_skill", default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// The host's signature on it.
    #[serde(rename = "_sig", default, skip_serializing_if = "Option::is_none")]
    pub sig: Option<String>,
    /// The files that came with it, as `media://` references. Whoever takes the history in puts them there.
    #[serde(skip)]
    pub media: Vec<String>,
}

impl HistoryMessage {
    /// A message with only a role and a text.
    pub fn text(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            tool_calls: Vec::new(),
            tool_call_id: String::new(),
            hook: None,
            skill: None,
            sig: None,
            media: Vec::new(),
        }
    }
}

/// One thing that a front end hears, in the order in which it was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrontEndEvent {
    /// A piece of an answer.
    Text(String),
    /// A text of a skill that stays. Nothing of it is shown or spoken.
    Hook {
        /// The hook.
        name: String,
        /// Who seems to say it.
        role: Voice,
        /// The text.
        content: String,
        /// The skill that brought it, if the host says.
        skill: Option<String>,
        /// The host's signature on it, if it signs.
        sig: Option<String>,
    },
}

impl FrontEndEvent {
    /// The text of a hook that stays, as the host tells of it, with its signature; empty for none.
    pub fn hook(chunk: &HookChunk, sig: &str) -> Self {
        let HookChunk { name, role, content, skill, .. } = chunk.clone();
        Self::Hook { name, role, content, skill: Some(skill), sig: Some(sig.to_owned()) }
    }
}

/// The text that is given; an empty one is nothing.
fn given(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.is_empty())
}

/// The things that a front end does with what it hears. Pieces wait in one queue until they are played, hooks among
/// them, so that everything keeps its place; what was played becomes history when it is flushed.
///
/// # Example
///
/// ```
/// use pintle_domain::history::{FrontEnd, FrontEndEvent};
/// use pintle_domain::message::Role;
/// use pintle_domain::skill::Voice;
///
/// let mut front = FrontEnd::default();
/// front.asked("hi", None);
/// let (name, content) = ("tone".to_owned(), "be kind".to_owned());
/// front.hear(FrontEndEvent::Hook { name, role: Voice::System, content, skill: None, sig: None });
/// front.hear(FrontEndEvent::Text("hel".into()));
/// front.hear(FrontEndEvent::Text("lo".into()));
/// while front.play_next().is_some() {}
/// front.flush();
/// let roles: Vec<Role> = front.history().iter().map(|kept| kept.role).collect();
/// assert_eq!(roles, [Role::User, Role::System, Role::Assistant]);
/// assert_eq!(front.history()[2].content, "hello");
/// ```
#[derive(Clone, Debug, Default)]
pub struct FrontEnd {
    queue: VecDeque<FrontEndEvent>,
    segments: Vec<FrontEndEvent>,
    history: Vec<HistoryMessage>,
}

impl FrontEnd {
    /// A front end that kept `history`.
    pub fn with(history: Vec<HistoryMessage>) -> Self {
        Self { history, ..Self::default() }
    }

    /// The history that is sent back with the next request.
    pub fn history(&self) -> &[HistoryMessage] {
        &self.history
    }

    /// A request began: the user's text as the host let it pass, with the host's signature. What is still there of an
    /// earlier one is history first.
    pub fn asked(&mut self, text: impl Into<String>, sig: Option<String>) {
        self.stop();
        self.history.push(HistoryMessage { sig: given(sig), ..HistoryMessage::text(Role::User, text) });
    }

    /// Something was heard: it waits for its turn.
    pub fn hear(&mut self, heard: FrontEndEvent) {
        self.queue.push_back(heard);
    }

    /// Takes the next piece off the queue: text to show or speak, an empty one where there is nothing to play. Nothing
    /// comes back from an empty queue.
    pub fn play_next(&mut self) -> Option<String> {
        let heard = self.queue.pop_front()?;
        let text = match &heard {
            FrontEndEvent::Text(text) => text.clone(),
            FrontEndEvent::Hook { .. } => String::new(),
        };
        self.segments.push(heard);
        Some(text)
    }

    /// Turns what was played into history: at the end of a round, at the end, and at a stop. Pieces of text that stand
    /// together become one message, and a hook is a border between them.
    pub fn flush(&mut self) {
        let mut open = false;
        for segment in std::mem::take(&mut self.segments) {
            match segment {
                FrontEndEvent::Text(text) if text.is_empty() => {}
                FrontEndEvent::Text(text) => match self.history.last_mut().filter(|_| open) {
                    Some(last) => last.content.push_str(&text),
                    None => {
                        self.history.push(HistoryMessage::text(Role::Assistant, text));
                        open = true;
                    }
                },
                FrontEndEvent::Hook { name, role, content, skill, sig } => {
                    let (hook, skill, sig) = (Some(name), given(skill), given(sig));
                    self.history.push(HistoryMessage {
                        hook,
                        skill,
                        sig,
                        ..HistoryMessage::text(role.role(), content)
                    });
                    open = false;
                }
            }
        }
    }

    /// The request was stopped or failed: what was played is history, what was not is lost.
    pub fn stop(&mut self) {
        self.flush();
        self.queue.clear();
    }

    /// The conversation was cleared.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The request that the message at `place` began is deleted or made again: everything after that message goes, hooks
    /// among it, and with `its_message` the message, too. Nothing happens where no message of the user's stands.
    pub fn take_back(&mut self, place: usize, its_message: bool) {
        let asked = |kept: &HistoryMessage| kept.role == Role::User && kept.hook.is_none();
        if self.history.get(place).is_some_and(asked) {
            let later = self.history[place + 1..].iter().position(asked).map(|at| place + 1 + at);
            let end = later.unwrap_or(self.history.len());
            self.history.drain(if its_message { place } else { place + 1 }..end);
        }
    }
}

#[cfg(test)]
mod tests;
