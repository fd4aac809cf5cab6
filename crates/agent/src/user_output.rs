//! Where words for the user go while a turn runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pintle_domain::id::TurnId;
use pintle_domain::ledger::HookChunk;

/// Said before what a hook made of an answer that was shown already.
pub const REWRITTEN: &str = "(a hook rewrote this answer; in the conversation stands:)";

/// Said where a hook left nothing of an answer that was shown already.
pub const TAKEN_OUT: &str = "(a hook took this answer out of the conversation)";

/// Takes what the user reads before the turn is over. Must not block for long.
pub trait UserOutput: Send + Sync {
    /// What follows happens in the turn `_turn_id`, which begins or goes on. Not told of sub-agents.
    fn begins(&self, _turn_id: &TurnId) {}

    /// Whether answers are shown while the turn runs, through [`UserOutput::delta`]: then everything that the model
    /// says arrives there once, in pieces as they come, or whole after its ruling where `after_llm` hooks wait for it.
    /// What was shown cannot be taken back, so a call that showed something is not tried again.
    fn streams(&self) -> bool;

    /// A piece of an answer.
    fn delta(&self, text: &str);

    /// What the model thought before the answer that comes now, or before the calls that it asks for: told once, whole,
    /// and under the same conditions as [`UserOutput::delta`]. It is not part of the answer.
    fn thought(&self, _text: &str) {}

    /// An answer as its hooks left it, or the text beside calls of tools: told once, whole, where nothing is shown in
    /// pieces.
    fn said(&self, _text: &str) {}

    /// The answer that the last pieces belong to is complete; what follows is another one.
    fn answered(&self) {}

    /// The pieces that were shown are not what stands in the conversation: a hook at `after_llm`, which was not waited
    /// for, left `text` of them.
    fn rewritten(&self, text: &str) {
        self.answered();
        self.for_user(if text.is_empty() { TAKEN_OUT } else { REWRITTEN });
        if !text.is_empty() {
            self.delta(text);
        }
    }

    /// Takes the text that a tool or a hook wants the user to read now.
    fn for_user(&self, text: &str);

    /// The folder that files for the user are copied into; none where files cannot be handed over.
    fn folder(&self) -> Option<PathBuf> {
        None
    }

    /// A file for the user, which stands in [`UserOutput::folder`] now.
    fn file(&self, _path: &Path) {}

    /// A text of a skill that stays, for whoever keeps the conversation: it belongs between the pieces before and after
    /// it, and is nothing that is said. Whether somebody keeps it.
    ///
    /// `sig` is the host's signature on it, empty where there is no key. With it the text comes back in a history as
    /// what it is.
    fn hook(&self, _chunk: &HookChunk, _sig: &str) -> bool {
        false
    }

    /// The turn begins with the user's message `_text`, as the gates left it, and the host's signature on it, empty where
    /// there is no key: whoever keeps the conversation keeps these, and not what was typed.
    fn started(&self, _text: &str, _sig: &str) {}

    /// Whether the user's message counts as taken once [`UserOutput::started`] was told: then that waits until the session
    /// has it.
    fn acknowledges(&self) -> bool {
        false
    }

    /// The conversation that signatures are for, where whoever keeps it has another session for each turn.
    fn conversation(&self) -> Option<&str> {
        None
    }

    /// A message of the user's went no further, and why.
    fn refused(&self, text: &str) {
        self.for_user(text);
    }
}

/// Shows nothing.
pub struct NullOutput;

impl UserOutput for NullOutput {
    fn streams(&self) -> bool {
        false
    }

    fn delta(&self, _text: &str) {}

    fn for_user(&self, _text: &str) {}
}

/// The output of a sub-agent: only what its tools want the user to read.
pub(crate) struct SubagentOutput(pub(crate) Arc<dyn UserOutput>);

impl UserOutput for SubagentOutput {
    fn streams(&self) -> bool {
        false
    }

    fn delta(&self, _text: &str) {}

    fn for_user(&self, text: &str) {
        self.0.for_user(text);
    }

    fn folder(&self) -> Option<PathBuf> {
        self.0.folder()
    }

    fn file(&self, path: &Path) {
        self.0.file(path);
    }
}
