//! What the lists of a turn cost, about, by who put a message there.

use pintle_agent::driver::rehearsal::ModelCall;
use pintle_domain::ledger::{MessageSource, Provenance, tokens};
use pintle_domain::message::Message;

/// Who a message of a list is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Share {
    System,
    Tools,
    User,
    Model,
    Results,
    Subagents,
    Rewriters,
    Prompts,
    Earlier,
    Hooks,
}

impl Share {
    /// All of them, in the order in which they are shown.
    pub(super) const ALL: [Self; 10] = [
        Self::System,
        Self::Tools,
        Self::User,
        Self::Model,
        Self::Results,
        Self::Subagents,
        Self::Rewriters,
        Self::Prompts,
        Self::Earlier,
        Self::Hooks,
    ];

    /// Its name for a person, and the member of JSON.
    pub(super) fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::System => ("system text", "system"),
            Self::Tools => ("tools", "tools"),
            Self::User => ("user", "user"),
            Self::Model => ("model", "model"),
            Self::Results => ("results", "tool_results"),
            Self::Subagents => ("sub-agents", "subagents"),
            Self::Rewriters => ("rewriters", "rewriters"),
            Self::Prompts => ("prompts", "prompts"),
            Self::Earlier => ("earlier hooks", "hook_history"),
            Self::Hooks => ("hooks", "hooks"),
        }
    }

    fn of(from: &Provenance) -> Self {
        match from.origin {
            MessageSource::Builtin if from.prompt.is_some() => Self::Prompts,
            MessageSource::Builtin => Self::System,
            MessageSource::User | MessageSource::Steering => Self::User,
            MessageSource::Model => Self::Model,
            MessageSource::Tool => Self::Results,
            MessageSource::Subagent => Self::Subagents,
            MessageSource::Rewriter => Self::Rewriters,
            MessageSource::Hook => Self::Hooks,
            MessageSource::HookHistory => Self::Earlier,
        }
    }
}

/// The tokens of `message`, about: its text, and the names and arguments of the calls in it.
pub(super) fn of_message(message: &Message) -> usize {
    let calls = message.tool_calls.iter().map(|part| part.function.name.len() + part.function.arguments.len());
    tokens(message.content.len() + calls.sum::<usize>())
}

/// Tokens by share.
#[derive(Clone, Debug, Default)]
pub(super) struct Cost([usize; Share::ALL.len()]);

impl Cost {
    /// What `call` costs.
    pub(super) fn of(call: &ModelCall) -> Self {
        let mut cost = Self::default();
        for message in &call.request.messages {
            cost.add(Share::of(&message.get().provenance()), of_message(message.get()));
        }
        let tools = &call.request.tools;
        // What is offered leaves as JSON.
        cost.add(
            Share::Tools,
            tools.iter().map(|tool| tokens(pintle_domain::json::json!(tool.get()).to_string().len())).sum(),
        );
        cost
    }

    fn add(&mut self, share: Share, tokens: usize) {
        self.0[share as usize] += tokens;
    }

    /// The tokens of each share that has any.
    pub(super) fn shares(&self) -> impl Iterator<Item = (Share, usize)> {
        Share::ALL.into_iter().zip(self.0).filter(|(_, tokens)| *tokens > 0)
    }

    /// All of them.
    pub(super) fn total(&self) -> usize {
        self.0.iter().sum()
    }

    /// Both together.
    #[must_use]
    pub(super) fn plus(mut self, other: &Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine += theirs);
        self
    }
}
