//! What is told to a turn, in a form that can be kept.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{ModelAnswer, TurnSetup, WaitingMessage};
use crate::checkpoint::runtime::TurnStatus;
use crate::history::RecalledHistory;
use crate::id::{HookName, TurnId};
use crate::kept_message::KeptMessage;
use crate::ledger::MsgId;
use crate::llm::Usage;
use crate::message::CallPart;

/// Something that happened in a turn. Its JSON is what a session's journal keeps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fact {
    /// The request brought the conversation along: that is what the session holds from now on. Only right before
    /// [`Fact::Begun`].
    Recalled(RecalledHistory),
    /// The turn began with these messages, after the gates. Waiting messages that are among them wait no longer.
    Begun {
        /// The turn.
        turn_id: TurnId,
        /// The messages that the turn was asked with.
        prompts: Vec<KeptMessage>,
        /// The number of rounds that the turn may take.
        max_iterations: u32,
        /// The id of the API key with which somebody asked for it, where they had one: it ends with that key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    /// The setup that the turn has beside its conversation; only right after [`Fact::Begun`].
    Equipped {
        /// That.
        with: Box<TurnSetup>,
    },
    /// The model said its plan, and that passed the hooks.
    Planned {
        /// The message that stays in the conversation: the plan, or the answer; nothing where it is empty.
        message: KeptMessage,
        /// Whether the loop follows; else it was the answer.
        need_tool: bool,
        /// What it cost, where the provider tells.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    },
    /// Whoever keeps the conversation was told of every persistent text up to this one.
    Announced {
        /// The newest of them.
        upto: MsgId,
    },
    /// A message passed the gates and waits for the next poll.
    Queued(WaitingMessage),
    /// The oldest `count` of the waiting messages entered the conversation.
    Injected {
        /// The number of them.
        count: usize,
    },
    /// Somebody wants the turn to come to an end.
    Interrupted,
    /// The model answered, and its answer passed the hooks.
    Replied {
        /// The round, from 1.
        iteration: u32,
        /// The answer as a message.
        message: KeptMessage,
        /// For each of its calls, whether the tool changes nothing.
        read_only: Vec<bool>,
        /// Whether this was the last call, after an interrupt or at the limit of rounds: its calls are passed over.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        terminal: bool,
        /// Who brought which tool for its calls.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        owners: BTreeMap<String, HookName>,
        /// Whether the answer ended before its last call was complete: that one is passed over.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cut: bool,
        /// What it cost, where the provider tells.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    },
    /// The model's answer was stopped in the middle, and with it the turn: what there was stands.
    Stopped {
        /// The round, from 1; 0 for a plan.
        iteration: u32,
        /// What there was, as a message.
        message: KeptMessage,
    },
    /// The turn that ended last, and that somebody had stopped, is taken back: the conversation is what it was before,
    /// and nobody hears what persons said meanwhile. Only while no turn is open.
    TakenBack,
    /// The permit of a call is used: the tool runs from now on.
    Used {
        /// The place of the call in its batch.
        place: usize,
        /// Whether the tool that runs changes nothing.
        read_only: bool,
        /// The tool, for a person who reads the journal.
        tool: String,
        /// The digest of the permit.
        digest: String,
        /// The arguments that a gate put in the place of the model's, as JSON text: they stand from now on, also if the
        /// process dies before there is an answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rewritten: Option<String>,
    },
    /// Gates put other arguments in the place of the model's. These stand in the conversation from now on, whatever
    /// becomes of the call; what the model wrote is kept until that is settled, so that the call can be cleared again.
    Rewritten {
        /// The place of the call in its batch.
        place: usize,
        /// The arguments as the gates left them, as JSON text.
        arguments: String,
    },
    /// A call has its answer, run or not.
    Answered {
        /// The place of the call in its batch.
        place: usize,
        /// The answer.
        answer: ModelAnswer,
    },
    /// The oldest `upto` messages gave way to a summary of them, or fewer where that would part a call from its answer.
    Compacted {
        /// The number of messages that went.
        upto: usize,
        /// The message that stands in their place; nothing when they were only dropped.
        summary: Option<KeptMessage>,
    },
    /// A long result of a tool gave way to its beginning.
    Trimmed {
        /// The place of its message in the conversation.
        at: usize,
        /// The text that stands there from now on.
        text: String,
    },
    /// The turn is over.
    Ended {
        /// The status in which the turn ended.
        status: TurnStatus,
        /// Whether history goes back to where the turn began.
        roll_back: bool,
        /// The failure, if the turn ended in an error: stage and text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<(String, String)>,
        /// The text that the user read at the end.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reply: String,
    },
}

impl Fact {
    /// The arguments that stand in the place of the model's, with the place of their call, once it will not be cleared
    /// again: nobody needs what was there before.
    pub fn settles(&self) -> Option<(usize, &str)> {
        match self {
            Self::Used { place, rewritten, .. } | Self::Answered { place, answer: ModelAnswer { rewritten, .. } } => {
                rewritten.as_deref().map(|arguments| (*place, arguments))
            }
            Self::Recalled(_)
            | Self::Begun { .. }
            | Self::Equipped { .. }
            | Self::Planned { .. }
            | Self::Announced { .. }
            | Self::Queued(_)
            | Self::Injected { .. }
            | Self::Interrupted
            | Self::Replied { .. }
            | Self::Stopped { .. }
            | Self::TakenBack
            | Self::Rewritten { .. }
            | Self::Compacted { .. }
            | Self::Trimmed { .. }
            | Self::Ended { .. } => None,
        }
    }

    /// Puts `arguments` in the place of what the model wrote for its call at `place`. Says whether this is the answer
    /// of a model, and so the one that has such a call.
    pub fn settle(&mut self, place: usize, arguments: &str) -> bool {
        let Self::Replied { message: KeptMessage { message, private }, .. } = self else { return false };
        if message.rewrite_call(place, arguments) {
            private.clear();
        }
        true
    }
}

/// Gives calls without an id, or with that of an earlier call of the turn, one of their own: every tool message must
/// answer exactly one call. `earlier` are the ids of the rounds before. Says whether it had to.
pub(super) fn repair_ids(parts: &mut [CallPart], earlier: BTreeSet<&str>, iteration: u32) -> bool {
    let taken: BTreeSet<String> = parts.iter().map(|part| part.id.clone()).collect();
    let mut seen = BTreeSet::new();
    let mut repaired = false;
    for (i, part) in parts.iter_mut().enumerate() {
        if part.id.is_empty() || seen.contains(&part.id) || earlier.contains(part.id.as_str()) {
            let free = |id: &String| !taken.contains(id) && !seen.contains(id) && !earlier.contains(id.as_str());
            let fresh = (0..).map(|n| format!("call_{iteration}_{}", i + n)).find(free);
            part.id = fresh.expect("only so many ids are taken");
            repaired = true;
        }
        seen.insert(part.id.clone());
    }
    repaired
}
