//! The messages of a call, each with what is known of it.

use pintle_agent::driver::rehearsal::{CallPurpose, RehearsedTurn, TextFate};
use pintle_domain::ledger::{MessageSource, Provenance};
use pintle_domain::message::Message;

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
    pub(super) fate: Option<TextFate>,
}

/// The messages of the call number `at` of `went`.
pub(super) fn rows(went: &RehearsedTurn, at: usize) -> Vec<Row<'_>> {
    let call = &went.calls[at];
    let messages = call.request.messages.iter().enumerate();
    messages
        .map(|(index, message)| {
            let (since, new) = went.since(at, message);
            let message = message.get();
            let from = message.provenance();
            let fate = from.msg_id.map(|id| went.fate(id));
            let asked = went.calls.first().is_some_and(|first| first.aim == CallPurpose::Plan);
            let plan = asked && since == 1 && from.origin == MessageSource::Model && message.tool_calls.is_empty();
            Row { index, message, tokens: cost::of_message(message), new, since, plan, fate, from }
        })
        .collect()
}

impl Row<'_> {
    /// Who put it there, for a person.
    pub(super) fn who(&self) -> String {
        match (&self.from.skill, &self.from.hook, self.from.origin) {
            (Some(skill), Some(hook), _) => format!("{skill}/{hook}"),
            (_, _, MessageSource::Builtin) if self.from.prompt.is_some() => "built-in".into(),
            (_, _, MessageSource::Builtin) => "agent".into(),
            (_, _, MessageSource::User | MessageSource::Steering) => "user".into(),
            (_, _, MessageSource::Model) => "model".into(),
            (_, _, MessageSource::Tool) => "tool".into(),
            (_, _, MessageSource::Hook | MessageSource::HookHistory) => "hook".into(),
            (_, _, MessageSource::Subagent) => "sub-agent".into(),
            (_, _, MessageSource::Rewriter) => "rewriter".into(),
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
            MessageSource::Builtin => "system text".into(),
            MessageSource::User => "message".into(),
            MessageSource::Steering => "steering".into(),
            MessageSource::Model if self.plan => "plan".into(),
            MessageSource::Model if self.message.tool_calls.is_empty() => "reply".into(),
            MessageSource::Model => "calls".into(),
            MessageSource::Tool => {
                let of = tools.iter().rev().find(|(id, _)| *id == self.message.tool_call_id);
                of.map_or_else(|| "result".to_owned(), |(_, tool)| format!("result of {tool}"))
            }
            MessageSource::Subagent => "result".into(),
            MessageSource::Hook | MessageSource::HookHistory | MessageSource::Rewriter => "note".into(),
        }
    }

    /// How long it stands there, for a person; may be empty. `first` says whether this is the first call.
    pub(super) fn note(&self, first: bool) -> String {
        let Some(fate) = self.fate else {
            return match self.from.origin {
                MessageSource::HookHistory => "of an earlier turn".into(),
                MessageSource::User | MessageSource::Model | MessageSource::Tool | MessageSource::Builtin if first => {
                    String::new()
                }
                MessageSource::User
                | MessageSource::Model
                | MessageSource::Tool
                | MessageSource::Builtin
                | MessageSource::Hook
                | MessageSource::Steering
                | MessageSource::Subagent
                | MessageSource::Rewriter => if self.new { "new" } else { "" }.into(),
            };
        };
        let since = if self.new { "new".to_owned() } else { format!("since R{}", self.since) };
        format!("{since}, {}", leaves(fate))
    }
}

fn leaves(fate: TextFate) -> String {
    match fate {
        TextFate::LeavesAfterCall => "out after this call".into(),
        TextFate::LeavesBefore(round) => format!("out before R{round}"),
        TextFate::LeavesAfterLoop => "out after the loop".into(),
        TextFate::Stays => "stays to the end".into(),
        TextFate::Persists => "stays for good".into(),
    }
}
