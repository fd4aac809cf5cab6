//! What a turn tells its user, on its way to those who hear of its run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pintle_agent::UserOutput;
use pintle_domain::id::TurnId;
use pintle_domain::json::{Object, Value, json};
use pintle_domain::ledger::HookChunk;

use crate::heard::Heard;
use crate::run::Run;
use crate::runs::Runs;

/// What a run tells of the turn that it works.
pub(crate) struct RunOutput {
    pub(crate) run: Arc<Run>,
    pub(crate) runs: Arc<Runs>,
    /// The conversation of whoever sends all of it each time.
    pub(crate) conversation: Option<String>,
    /// Where files for the user stand until they are kept.
    pub(crate) folder: PathBuf,
}

impl UserOutput for RunOutput {
    fn begins(&self, turn_id: &TurnId) {
        self.run.begins(turn_id);
        self.runs.remember(turn_id, &self.run);
    }

    fn streams(&self) -> bool {
        self.run.stream
    }

    fn delta(&self, text: &str) {
        self.run.piece(text);
        self.run.event("chunk", Some(json!({ "content": text })));
    }

    fn said(&self, text: &str) {
        if !text.is_empty() {
            self.run.piece(text);
            self.run.answered(None);
        }
    }

    fn thought(&self, text: &str) {
        self.run.thinks(text);
        self.run.event("thinking", Some(json!({ "content": text })));
    }

    fn answered(&self) {
        self.run.answered(None);
    }

    fn rewritten(&self, text: &str) {
        // What clients keep is what `run.completed` or `block.reply` has.
        self.run.answered(Some(text));
    }

    fn for_user(&self, text: &str) {
        self.run.for_user(text);
    }

    fn folder(&self) -> Option<PathBuf> {
        Some(self.folder.clone())
    }

    fn file(&self, path: &Path) {
        self.run.brings(path.to_owned());
    }

    fn hook(&self, chunk: &HookChunk, sig: &str) -> bool {
        let mut hook = Object::new();
        let mut put = |name: &str, value: Value| drop(hook.insert(name.to_owned(), value));
        put("name", json!(chunk.name));
        put("role", json!(chunk.role));
        put("content", json!(chunk.content));
        put("skill", json!(chunk.skill));
        put("timing", json!(chunk.timing));
        put("id", json!(chunk.id));
        put("sig", json!(sig));
        self.run.keeps(hook)
    }

    fn acknowledges(&self) -> bool {
        true
    }

    fn conversation(&self) -> Option<&str> {
        self.conversation.as_deref()
    }

    fn started(&self, text: &str, sig: &str) {
        self.run.hears(Heard::Started { content: text.to_owned(), sig: sig.to_owned() });
        self.run.event("run.started", Some(json!({ "message": text, "sig": sig })));
    }
}
