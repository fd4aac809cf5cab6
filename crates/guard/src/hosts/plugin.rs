//! What our own plugins are told inside of hosts that load plugins: one document of one of three forms.
//!
//! `{"allow":true}`, with `args` (all arguments of the call), `output` (the text of the result) or `context` (a text behind
//! the prompt) beside it, `{"prompt":TEXT}` (another prompt in the place of what was said), or `{"deny":REASON}`. A plugin
//! lets nothing pass after any other text.

use pintle_domain::json::{Object, Value, json};

use crate::event::{HostEvent, HostWhat};
use crate::host::ClientEntry;
use crate::speech::{self, Speech};

/// The text of a plugin with the client's command line in it.
pub(super) fn filled(text: &str, hook: &ClientEntry<'_>) -> String {
    let word = |word: &str| Value::from(word).to_string();
    let arguments = Value::from(hook.arguments("EVENT").into_iter().map(Value::from).collect::<Vec<_>>());
    let deadline_ms = u64::from(hook.timeout_s.saturating_sub(1).max(1)) * 1000;
    text.replace("\"PROGRAM\"", &word(hook.program))
        .replace("[\"ARGUMENTS\"]", &arguments.to_string())
        .replace("\"DEADLINE\"", &deadline_ms.to_string())
}

/// What a plugin takes at an event.
pub(super) struct Plugin<'a>(pub(super) &'a HostEvent);

impl Speech for Plugin<'_> {
    fn nothing(&self) -> Option<Value> {
        Some(json!({"allow": true}))
    }

    fn deny(&self, reason: &str) -> Option<Value> {
        let what = &self.0.what;
        (what.is_done() || matches!(what, HostWhat::Tool(_) | HostWhat::Prompt { .. })).then(|| json!({"deny": reason}))
    }

    fn abort(&self, reason: &str) -> Option<Value> {
        // A prompt that is refused ends the run.
        matches!(self.0.what, HostWhat::Prompt { .. }).then(|| json!({"deny": reason}))
    }

    fn input(&self, arguments: &Object, _context: Option<&str>) -> Option<Value> {
        matches!(self.0.what, HostWhat::Tool(_)).then(|| json!({"allow": true, "args": arguments}))
    }

    fn prompt(&self, text: &str) -> Option<Value> {
        // Without `allow`: a plugin of an earlier version would send the prompt as it was.
        matches!(self.0.what, HostWhat::Prompt { .. }).then(|| json!({"prompt": text}))
    }

    fn context(&self, text: &str) -> Option<Value> {
        matches!(self.0.what, HostWhat::Prompt { .. }).then(|| json!({"allow": true, "context": text}))
    }

    fn result(&self, text: &str, _shaped: Option<&Value>) -> Option<Value> {
        let text = speech::reason(text, usize::MAX);
        self.0.what.is_done().then(|| json!({"allow": true, "output": text}))
    }
}
