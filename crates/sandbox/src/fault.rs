//! Why a script gave no answer.

use crate::limits;

/// Why a run gave nothing. None of these is an answer: what follows is for the hook's own settings to say.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptFault {
    /// It did not end within its time.
    #[error("the script did not answer within {after_ms} ms")]
    Timeout {
        /// Its time in milliseconds, counted from when it had its slot.
        after_ms: u64,
    },
    /// All slots were taken for as long as the caller could wait. The script did not run, so this says nothing of it.
    #[error("no slot for a script became free within {waited_ms} ms")]
    NoSlot {
        /// How long the caller waited, in milliseconds.
        waited_ms: u64,
    },
    /// The source does not parse.
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    /// There is no global function `handle` for one event.
    #[error("script: export function handle(event)")]
    NoHandle,
    /// It returned something else than a plain object, a promise for instance.
    #[error("script return: must be object with decision")]
    NotObject,
    /// It threw; the first line of what it threw.
    #[error("script threw: {0}")]
    Threw(String),
    /// It used up its heap.
    #[error("script: out of memory, at most {} MiB are allowed", limits::HEAP_BYTES >> 20)]
    OutOfMemory,
    /// Its calls were nested too deeply.
    #[error("script: calls are nested too deeply, at most {} frames are allowed", limits::FRAMES)]
    TooDeep,
    /// It returned too much.
    #[error("script return: {bytes} bytes of JSON, at most {} are allowed", limits::RETURN_BYTES)]
    ReturnTooLarge {
        /// The size of what it returned.
        bytes: usize,
    },
    /// It returned an object that cannot be read, one that is nested too deeply for instance; what is wrong with it.
    #[error("script return: {0}")]
    Unreadable(String),
    /// The event is larger than scripts take.
    #[error("script: the event has {bytes} bytes of JSON, at most {} are allowed", limits::EVENT_BYTES)]
    EventTooLarge {
        /// The size of the event.
        bytes: usize,
    },
    /// The source is larger than the engine takes.
    #[error("script: the source has {bytes} bytes, at most {} are allowed", limits::SOURCE_BYTES)]
    SourceTooLarge {
        /// The size of the source.
        bytes: usize,
    },
    /// Its process ended in the middle of the run; how.
    #[error("script: its process ended: {0}")]
    Ended(String),
    /// The engine itself could not do its part; what is wrong with it.
    #[error("script engine: {0}")]
    Engine(String),
}

/// Where a source does not parse.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("script compile error: SyntaxError: Line {line}:{column} {message}")]
pub struct SyntaxError {
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// What the engine says.
    pub message: String,
}

/// Why a source cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// It does not parse.
    #[error(transparent)]
    Syntax(SyntaxError),
    /// Loading it fails: what stands outside of its functions throws, loops or takes too much, or `handle` is missing.
    #[error(transparent)]
    Load(ScriptFault),
    /// Nothing is known of the source: the engine could not look at it.
    #[error(transparent)]
    Unchecked(ScriptFault),
}

impl From<ScriptFault> for CompileError {
    fn from(fault: ScriptFault) -> Self {
        match fault {
            ScriptFault::Syntax(error) => Self::Syntax(error),
            ScriptFault::Engine(_) | ScriptFault::Ended(_) | ScriptFault::NoSlot { .. } => Self::Unchecked(fault),
            ScriptFault::Timeout { .. }
            | ScriptFault::NoHandle
            | ScriptFault::NotObject
            | ScriptFault::Threw(_)
            | ScriptFault::OutOfMemory
            | ScriptFault::TooDeep
            | ScriptFault::ReturnTooLarge { .. }
            | ScriptFault::Unreadable(_)
            | ScriptFault::EventTooLarge { .. }
            | ScriptFault::SourceTooLarge { .. } => Self::Load(fault),
        }
    }
}
