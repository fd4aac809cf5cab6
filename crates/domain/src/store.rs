//! The port to what is kept. Machines do not know it; the engine's evidence writes through it, listings read through it.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::record::EventRecord;

/// Called once the records handed over are as durable as the store promises, or cannot be.
pub type Done = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// Keeps what hooks did, and finds it again.
pub trait RecordStore: Send + Sync {
    /// Hands `records` over, in order, as one transaction. Never blocks; `done` says how it went.
    fn keep(&self, records: Vec<EventRecord>, done: Done);

    /// The events that `query` asks for, newest last. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn find(&self, query: &RecordQuery) -> Result<Vec<StoredEvent>, StoreError>;
}

/// Which events are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordQuery {
    /// One event by its id, or by the beginning of it.
    pub event_id: Option<String>,
    /// Events about this tool, canonical or raw.
    pub tool: Option<String>,
    /// Events of the newest turn that is not a test.
    pub last_turn: bool,
    /// At most this many, the newest.
    pub limit: usize,
}

/// An event as it was kept. This is also its JSON in listings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredEvent {
    /// Which occurrence.
    pub event_id: String,
    /// RFC 3339, UTC.
    pub at: String,
    /// The checkpoint's name; for runtime events, theirs.
    pub event: String,
    /// The checkpoint's name.
    pub checkpoint: String,
    /// Whose.
    pub tenant_id: String,
    /// Whose.
    pub agent_id: String,
    /// Which conversation.
    pub session_id: String,
    /// Which turn.
    pub turn_id: String,
    /// Which round, from 1.
    pub iteration: u32,
    /// Which call of the model, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The tool, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Whether `doctor` or `hooks test` made it.
    pub is_test: bool,
    /// The word of the ruling.
    pub ruling: String,
    /// The text of the ruling, as the model or the user read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The digest of the permit, for a cleared call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permit: Option<String>,
    /// Whether the result came from a hook in the tool's place.
    pub substituted: bool,
    /// One line for every registered hook, in running order.
    pub hooks: Vec<StoredRecord>,
}

/// What was kept of one hook at one event. This is also its JSON in listings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoredRecord {
    /// Which hook.
    pub hook: String,
    /// Its family.
    pub family: String,
    /// The checkpoint it was asked at.
    pub checkpoint: String,
    /// Whether it ran.
    pub ran: bool,
    /// Why it did not run, a word of the closed list; or the reason that it gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The hook that had decided already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What a matcher compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compared: Option<Compared>,
    /// The word of its verdict, or of what its fault became.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// Its fault's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Its fault in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault_detail: Option<String>,
    /// How long it took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
    /// What it changed, as a JSON Patch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<Value>,
    /// Likely mistakes in its answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Whether it was asked once more because a later hook changed the value.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
}

/// The two sides of a comparison that said no.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// The pattern of the hook.
    pub pattern: String,
    /// The names it was compared with.
    pub value: String,
}

/// Why the store did not do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// It cannot be reached, opened or written.
    Unavailable(String),
    /// What it holds cannot be read.
    Corrupt(String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(why) => write!(f, "the store is unavailable: {why}"),
            Self::Corrupt(why) => write!(f, "the store holds something unreadable: {why}"),
        }
    }
}

impl std::error::Error for StoreError {}
