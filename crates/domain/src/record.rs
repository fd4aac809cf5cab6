//! One line of evidence per hook per event: ran or not, and why.

use std::sync::Arc;
use std::time::Duration;

use crate::account::Account;
use crate::checkpoint::{CheckpointKind, Snapshot};
use crate::fault::Fault;
use crate::hook::{Family, Hook};
use crate::id::{EventId, HookName};
use crate::identity::Identity;
use crate::json::{Object, Value, diff, json};
use crate::reason::VerdictKind;
use crate::rule::RuleDetails;
use crate::tool::Digest;

mod counted;
mod lines;
pub(crate) mod not_run;
mod stopper;

pub use counted::counted;
pub(crate) use lines::Why;
pub use lines::{PassedOver, RecordLines};
pub use not_run::{BudgetLeft, BudgetNeed, NotRun};
pub use stopper::stopper;

/// Everything that is kept of one event.
#[derive(Clone, Debug)]
pub struct EventRecord {
    /// Which occurrence.
    pub event_id: EventId,
    /// When.
    pub at: jiff::Timestamp,
    /// At which checkpoint.
    pub checkpoint: CheckpointKind,
    /// The runtime event's name, where it is one.
    pub kind: Option<&'static str>,
    /// The identity of the turn that the event belongs to.
    pub who: Identity,
    /// The tool it is about, if any.
    pub tool: Option<String>,
    /// The arguments of that tool as the last hook left them, where the record of a rule or of a decision needs them.
    /// Shared by the records of one clearing.
    pub input: Option<Arc<Object>>,
    /// The ruling that the loop followed after the whole chain.
    pub ruling: EventRuling,
    /// One line for every hook that is registered for the checkpoint, in running order.
    pub hooks: RecordLines,
}

impl EventRecord {
    /// Whether it says what became of a call: it has the permit, the answer that came in the tool's place, or the
    /// refusal.
    pub fn decides(&self) -> bool {
        self.ruling.permit.is_some() || self.ruling.substituted || self.ruling.stops()
    }
}

/// The ruling on a whole event.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRuling {
    /// The ruling's word.
    pub word: VerdictKind,
    /// Its text, as the model or the user read it.
    pub text: Option<String>,
    /// The digest of the permit, for a call that was cleared.
    pub permit: Option<Digest>,
    /// Whether the result came from a hook in the tool's place.
    pub substituted: bool,
}

impl EventRuling {
    /// Whether it stopped something, or left it to a person.
    pub fn stops(&self) -> bool {
        match self.word {
            VerdictKind::Ask | VerdictKind::Deny | VerdictKind::AbortTurn | VerdictKind::HardAbort => true,
            VerdictKind::Inject | VerdictKind::Continue | VerdictKind::Modify | VerdictKind::Respond => false,
        }
    }

    /// A ruling with nothing but its word.
    pub fn word(word: VerdictKind) -> Self {
        Self { word, text: None, permit: None, substituted: false }
    }
}

/// The record that is kept of one hook at one event.
#[derive(Clone, Debug)]
pub struct Record {
    /// Which hook.
    pub hook: HookName,
    /// Its family.
    pub family: Family,
    /// The checkpoint; a tool call's event has hooks of several.
    pub checkpoint: CheckpointKind,
    /// Ran or did not.
    pub outcome: HookOutcome,
    /// Likely mistakes in its answer.
    pub warnings: Vec<String>,
    /// The change that the hook made. In a box: few hooks change anything, and an event may have fifty lines.
    pub change: Option<Box<Change>>,
    /// Whether it was asked once more because a later hook changed the value.
    pub again: bool,
    /// The account of how the hook came to its answer, where its handler tells.
    pub account: Option<Box<Account>>,
    /// The details that its store has of the hook, if it is kept in one.
    pub stored: Option<Arc<RuleDetails>>,
}

impl Record {
    /// The time that the hook took, where it ran and its answer was waited for.
    pub fn took(&self) -> Option<Duration> {
        match self.outcome {
            HookOutcome::Said { took, .. } | HookOutcome::Failed { took, .. } => Some(took),
            HookOutcome::Told | HookOutcome::NotRun(_) => None,
        }
    }

    /// How long the hook waited for a place to run.
    pub fn slot_wait(&self) -> Duration {
        self.account.as_ref().map_or(Duration::ZERO, |account| account.slot_wait)
    }

    /// A line about `hook` at `checkpoint`, with nothing but what became of it.
    pub fn of(hook: &Hook, checkpoint: CheckpointKind, outcome: HookOutcome) -> Self {
        Self {
            hook: hook.name.clone(),
            family: hook.family,
            checkpoint,
            outcome,
            warnings: Vec::new(),
            change: None,
            again: false,
            account: None,
            stored: hook.stored.clone(),
        }
    }
}

/// Whether a hook ran.
#[derive(Clone, Debug, PartialEq)]
pub enum HookOutcome {
    /// It ran and answered.
    Said {
        /// Its answer's word.
        word: VerdictKind,
        /// Its reason, if it gave one.
        reason: Option<String>,
        /// The time that the call took.
        took: Duration,
    },
    /// It was asked and gave no verdict.
    Failed {
        /// Why.
        fault: Fault,
        /// The verdict that the fault became.
        became: VerdictKind,
        /// The time that the call took.
        took: Duration,
    },
    /// It was told; nothing is expected of it.
    Told,
    /// It did not run.
    NotRun(NotRun),
}

impl HookOutcome {
    /// The word of its verdict, or of what its fault became, where it was asked.
    pub fn word(&self) -> Option<VerdictKind> {
        match self {
            Self::Said { word, .. } => Some(*word),
            Self::Failed { became, .. } => Some(*became),
            Self::Told | Self::NotRun(_) => None,
        }
    }
}

/// A change, kept as two snapshots so that the patch is computed off the hot path.
#[derive(Clone, Debug)]
pub struct Change {
    /// The value that the hook was given.
    pub before: Snapshot,
    /// The value that it left.
    pub after: Snapshot,
    /// Whether only the places are kept: a later hook put something else there, which is what may be read.
    pub places_only: bool,
}

impl Change {
    /// The places that were changed, as JSON Pointers.
    pub fn paths(&self) -> Vec<String> {
        let patch = self.patch();
        let operations = patch.as_array().into_iter().flatten();
        operations.filter_map(|operation| operation["path"].as_str().map(str::to_owned)).collect()
    }

    /// The change as a JSON Patch (RFC 6902).
    pub fn patch(&self) -> Value {
        let mut patch = diff(&self.before.to_json(), &self.after.to_json());
        if self.places_only {
            let operations = patch.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut);
            operations.for_each(|operation| drop(operation.shift_remove("value")));
        }
        patch
    }
}

impl Snapshot {
    /// The value as JSON.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Prompt(text) => json!({ "prompt": text }),
            Self::Request(request) => json!({
                "model": request.model,
                "messages": request.messages,
                "tools": request.tools,
                "options": request.options,
            }),
            Self::Reply(reply) => json!(reply),
            Self::Call { tool, arguments } => json!({ "tool": tool, "arguments": arguments }),
            Self::Output(output) => json!(output),
            Self::Task { agent, task } => json!({ "agent": agent, "task": task }),
        }
    }
}
