//! One line of evidence per hook per event: ran or not, and why.

use std::time::Duration;

use serde_json::Value;

use crate::checkpoint::{CheckpointKind, Snapshot};
use crate::fault::Fault;
use crate::hook::Family;
use crate::id::{EventId, HookName};
use crate::identity::Identity;
use crate::tool::Digest;
use crate::verdict::Word;

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
    /// Whose.
    pub who: Identity,
    /// The tool it is about, if any.
    pub tool: Option<String>,
    /// What the loop did after the whole chain.
    pub ruling: Ruled,
    /// One line for every hook that is registered for the checkpoint, in running order.
    pub hooks: Vec<Record>,
}

/// What came of a whole event.
#[derive(Clone, Debug, PartialEq)]
pub struct Ruled {
    /// The ruling's word.
    pub word: Word,
    /// Its text, as the model or the user read it.
    pub text: Option<String>,
    /// The digest of the permit, for a call that was cleared.
    pub permit: Option<Digest>,
    /// Whether the result came from a hook in the tool's place.
    pub substituted: bool,
}

impl Ruled {
    /// A ruling with nothing but its word.
    pub fn word(word: Word) -> Self {
        Self { word, text: None, permit: None, substituted: false }
    }
}

/// What is kept of one hook at one event.
#[derive(Clone, Debug)]
pub struct Record {
    /// Which hook.
    pub hook: HookName,
    /// Its family.
    pub family: Family,
    /// The checkpoint; a tool call's event has hooks of several.
    pub checkpoint: CheckpointKind,
    /// Ran or did not.
    pub outcome: Outcome,
    /// Likely mistakes in its answer.
    pub warnings: Vec<String>,
    /// What it changed.
    pub change: Option<Change>,
    /// Whether it was asked once more because a later hook changed the value.
    pub again: bool,
}

/// Whether a hook ran.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It ran and answered.
    Said {
        /// Its answer's word.
        word: Word,
        /// Its reason, if it gave one.
        reason: Option<String>,
        /// How long it took.
        took: Duration,
    },
    /// It was asked and gave no verdict.
    Failed {
        /// Why.
        fault: Fault,
        /// What that became.
        became: Word,
        /// How long it took.
        took: Duration,
    },
    /// It was told; nothing is expected of it.
    Told,
    /// It did not run.
    NotRun(NotRun),
}

/// Why a hook did not run: a closed list.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum NotRun {
    /// Switched off.
    Disabled,
    /// Not registered for this kind of event, tenant or agent.
    OutOfScope,
    /// Its matcher said no.
    Matcher {
        /// The pattern.
        pattern: String,
        /// The names it was compared with.
        value: String,
    },
    /// An earlier hook ended the chain.
    Decided {
        /// Which one.
        by: HookName,
    },
    /// From a configuration that nobody accepted.
    Untrusted,
    /// Its queue was full; the event was dropped and counted.
    Dropped,
}

/// A change, kept as two snapshots so that the patch is computed off the hot path.
#[derive(Clone, Debug)]
pub struct Change {
    /// The value that the hook was given.
    pub before: Snapshot,
    /// The value that it left.
    pub after: Snapshot,
}

impl Change {
    /// The change as a JSON Patch (RFC 6902).
    pub fn patch(&self) -> Value {
        let patch = json_patch::diff(&self.before.to_json(), &self.after.to_json());
        serde_json::to_value(patch).expect("a patch is plain JSON")
    }
}

impl Snapshot {
    /// The value as JSON.
    pub fn to_json(&self) -> Value {
        match self {
            Self::Prompt(text) => serde_json::json!({ "prompt": text }),
            Self::Request(request) => serde_json::json!({
                "model": request.model,
                "messages": request.messages,
                "tools": request.tools,
                "options": request.options,
            }),
            Self::Reply(reply) => serde_json::json!(reply),
            Self::Call { tool, arguments } => serde_json::json!({ "tool": tool, "arguments": arguments }),
            Self::Output(output) => serde_json::json!(output),
            Self::Task { agent, task } => serde_json::json!({ "agent": agent, "task": task }),
        }
    }
}
