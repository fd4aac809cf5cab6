//! The messages of a call, each with what is known of it.

use agent::driver::rehearsal::{Aim, Call, Fate, Rehearsed};
use domain::json::Rendered;
use domain::ledger::{Provenance, Source};
use domain::message::Message;

use super::cost;

/// One message of a list.
pub(super) struct Row<'a> {
    pub(super) index: usize,
    pub(super) message: &'a Message,
    pub(super) from: Provenance,
    pub(super) tokens: usize,
    /// Whether no call before this one saw it.
    pub(super) new: bool,
    /// The round of the first call that saw it.
    pub(super) since: u32,
    /// Whether it is what the model said when it was asked for a plan.
    plan: bool,
    /// What becomes of it, of a text that was put in.
    pub(super) fate: Option<Fate>,
}

/// The messages of the call number `at` of `went`.
pub(super) fn rows(went: &Rehearsed, at: usize) -> Vec<Row<'_>> {
    let call = &went.calls[at];
    let messages = call.request.messages.iter().enumerate();
    messages
        .map(|(index, message)| {
            let first = went.calls[..at].iter().find(|earlier| holds(earlier, message));
            let (since, new) = (first.map_or(call.round, |first| first.round), first.is_none());
            let message = message.get();
            let from = Provenance::of(message);
            let fate = from.msg_id.map(|id| went.fate(id));
            let asked = went.calls.first().is_some_and(|first| first.aim == Aim::Plan);
            let plan = asked && since == 1 && from.origin == Source::Model && message.tool_calls.is_empty();
            Row { index, message, tokens: cost::of_message(message), new, since, plan, fate, from }
        })
        .collect()
}

/// Whether the list of `call` holds exactly this message.
fn holds(call: &Call, message: &Rendered<Message>) -> bool {
    let id = message.get().id();
    // The system text is rendered anew for each call, and is the same in all of them.
    let system = |message: &Message| {
        let from = Provenance::of(message);
        from.origin == Source::Builtin && from.prompt.is_none()
    };
    call.request.messages.iter().any(|other| match id {
        Some(_) => other.get().id() == id,
        None => other.is(message) || (system(message.get()) && other == message),
    })
}

impl Row<'_> {
    /// Who put it there, for a person.
    pub(super) fn who(&self) -> String {
        match (&self.from.skill, &self.from.hook, self.from.origin) {
            (Some(skill), Some(hook), _) => format!("{skill}/{hook}"),
            (_, _, Source::Builtin) if self.from.prompt.is_some() => "built-in".into(),
            (_, _, Source::Builtin) => "agent".into(),
            (_, _, Source::User | Source::Steering) => "user".into(),
            (_, _, Source::Model) => "model".into(),
            (_, _, Source::Tool) => "tool".into(),
            (_, _, Source::Hook | Source::HookHistory) => "hook".into(),
            (_, _, Source::Subagent) => "sub-agent".into(),
            (_, _, Source::Rewriter) => "rewriter".into(),
        }
    }

    /// What it is, for a person; `tools` are the calls in its list, by their ids, with the names of their tools.
    pub(super) fn what(&self, tools: &[(&str, &str)]) -> String {
        if let Some(timing) = self.from.timing {
            return timing.word().into();
        }
        if let Some(prompt) = self.from.prompt {
            return prompt.word().into();
        }
        match self.from.origin {
            Source::Builtin => "system text".into(),
            Source::User => "message".into(),
            Source::Steering => "steering".into(),
            Source::Model if self.plan => "plan".into(),
            Source::Model if self.message.tool_calls.is_empty() => "reply".into(),
            Source::Model => "calls".into(),
            Source::Tool => {
                let of = tools.iter().rev().find(|(id, _)| *id == self.message.tool_call_id);
                of.map_or_else(|| "result".to_owned(), |(_, tool)| format!("result of {tool}"))
            }
            Source::Subagent => "result".into(),
            Source::Hook | Source::HookHistory | Source::Rewriter => "note".into(),
        }
    }

    /// How long it stands there, for a person; may be empty. `first` says whether this is the first call.
    pub(super) fn note(&self, first: bool) -> String {
        let Some(fate) = self.fate else {
            return match self.from.origin {
                Source::HookHistory => "of an earlier turn".into(),
                Source::User | Source::Model | Source::Tool | Source::Builtin if first => String::new(),
                Source::User
                | Source::Model
                | Source::Tool
                | Source::Builtin
                | Source::Hook
                | Source::Steering
                | Source::Subagent
                | Source::Rewriter => if self.new { "new" } else { "" }.into(),
            };
        };
        let since = if self.new { "new".to_owned() } else { format!("since R{}", self.since) };
        format!("{since}, {}", leaves(fate))
    }
}

fn leaves(fate: Fate) -> String {
    match fate {
        Fate::LeavesAfterCall => "out after this call".into(),
        Fate::LeavesBefore(round) => format!("out before R{round}"),
        Fate::LeavesAfterLoop => "out after the loop".into(),
        Fate::Stays => "stays to the end".into(),
        Fate::Persists => "stays for good".into(),
    }
}
