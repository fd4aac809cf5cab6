//! A provider that plays a file of replies: for demos, and for testing hooks without tokens.
//!
//! ```json
//! {"replies": [
//!   {"when": {"tool": "weather"}, "tool_calls": [{"name": "weather", "arguments": {"city": "Paris"}}]},
//!   {"when": {"tool_result": "15 °C"}, "text": ["It is ", "15 °C."], "usage": {"prompt_tokens": 9, "completion_tokens": 4}},
//!   {"error": {"kind": "rate_limit", "message": "slow down", "retry_after_ms": 100}},
//!   {"text": "…", "repeat": true}
//! ]}
//! ```
//!
//! Each request takes the first reply that is left and whose `when` holds. A reply is used once, with `repeat: true`
//! any number of times. Every member is optional:
//!
//! | member | meaning |
//! |---|---|
//! | `when` | all that is named must hold: `contains` (in the last message), `anywhere` (in any message), `tool_result` (the last message is a tool's and contains it), `tool` (a tool of this name is offered), `no_tools` (none is, or some are), `model` |
//! | `text` | the answer, in one piece or as a list of pieces |
//! | `reasoning` | what the model thinks, likewise |
//! | `tool_calls` | `name`, `arguments` (an object, or JSON text as it is), `id` (default `scripted_N`, counted over all replies) |
//! | `finish_reason` | default `stop`, or `tool_calls` |
//! | `usage` | `prompt_tokens`, `completion_tokens`, `total_tokens` |
//! | `delay_ms` | wait before each piece, and before the end if there is none |
//! | `error` | after the pieces: `kind` (`rate_limit`, `server_error`, `timeout`, `network`, `context_limit`, `final`), `message`, `retry_after_ms` |
//! | `cut` | the connection breaks after the pieces |
//!
//! Every answer says that it is scripted: `reasoning_details` is `{"scripted": true}` and its private data hold a
//! block of type `scripted`.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use pintle_domain::checkpoint::runtime::RetryReason;
use pintle_domain::json::json;
use pintle_domain::llm::{LlmReply, LlmRequest};
use pintle_domain::message::{CallPart, ProviderData};

use crate::scripted::file::{ErrorKind, Failure, Reply, Script};
use crate::spec::{ProviderSpec, WireKind};
use crate::wire::{Sight, WireRow};
use crate::{Delta, OnDelta, Provider, ProviderError};

mod file;

/// Its row.
pub(crate) const ROW: WireRow = WireRow {
    kind: WireKind::Scripted,
    word: "scripted",
    about: "plays a file of replies",
    has_tool_modes: false,
    sight: Sight::Never,
    connect: |spec| Ok(Arc::new(scripted(spec)?)),
    server: None,
};

/// Largest script, in bytes: they are written by hand.
pub const MAX_SCRIPT_BYTES: u64 = 16 << 20;

/// Why a script cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("cannot read the script `{origin}`: {source}")]
    Unreadable {
        /// Where it was looked for.
        origin: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// It is not a script. The message holds the line and the column.
    #[error("the script `{origin}` is not a list of replies: {source}")]
    Malformed {
        /// Where it came from.
        origin: String,
        /// The error, with its place.
        source: serde_json::Error,
    },
}

fn scripted(spec: &ProviderSpec) -> Result<Scripted, ProviderError> {
    let Some(file) = &spec.script else {
        return Err(ProviderError::fatal("a scripted provider needs a file of replies, and none is set"));
    };
    Scripted::from_file(file).map_err(|e| ProviderError::fatal(e.to_string()))
}

/// A script that is being played.
pub struct Scripted {
    origin: String,
    replies: Vec<Reply>,
    /// Whether each reply is used up.
    used: Mutex<Vec<bool>>,
}

impl Scripted {
    /// Reads a script. `origin` names it in messages.
    ///
    /// # Errors
    /// What is wrong with the text, with line and column.
    pub fn from_json(text: &str, origin: &str) -> Result<Self, ScriptError> {
        let script: Script = serde_json::from_str(text)
            .map_err(|source| ScriptError::Malformed { origin: origin.to_owned(), source })?;
        let mut replies = script.replies;
        let calls = replies.iter_mut().flat_map(|reply| &mut reply.tool_calls);
        for (number, call) in (1..).zip(calls) {
            call.id.get_or_insert_with(|| format!("scripted_{number}"));
        }
        let used = Mutex::new(vec![false; replies.len()]);
        Ok(Self { origin: origin.to_owned(), replies, used })
    }

    /// Reads the script in the file `path`.
    ///
    /// # Errors
    /// A file that cannot be read, is too large, or is not a script.
    pub fn from_file(path: &Path) -> Result<Self, ScriptError> {
        let origin = path.display().to_string();
        let text = read(path).map_err(|source| ScriptError::Unreadable { origin: origin.clone(), source })?;
        Self::from_json(&text, &origin)
    }

    /// How many replies are left, those that repeat included.
    pub fn remaining(&self) -> usize {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).iter().filter(|used| !**used).count()
    }

    /// The reply to `request` to `model`, at once and as a whole.
    ///
    /// # Errors
    /// No reply is left that fits, or the script says that the call fails.
    pub fn reply(&self, model: &str, request: &LlmRequest) -> Result<LlmReply, ProviderError> {
        self.take(model, request)?.outcome()
    }

    /// Takes the reply to `request`.
    fn take(&self, model: &str, request: &LlmRequest) -> Result<&Reply, ProviderError> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        for (reply, used) in self.replies.iter().zip(used.iter_mut()) {
            if !*used && reply.when.as_ref().is_none_or(|when| when.holds(model, request)) {
                *used = !reply.repeat;
                return Ok(reply);
            }
        }
        let left = used.iter().filter(|used| !**used).count();
        Err(ProviderError::fatal(match left {
            0 => format!("the script `{}` has no reply left: all {} are used", self.origin, self.replies.len()),
            1 => format!(
                "the script `{}` has no reply for this request: its one that is left does not match",
                self.origin
            ),
            left => format!(
                "the script `{}` has no reply for this request: none of its {left} that are left matches",
                self.origin
            ),
        }))
    }

    async fn play(&self, model: &str, request: &LlmRequest, on_delta: OnDelta<'_>) -> Result<LlmReply, ProviderError> {
        let reply = self.take(model, request)?;
        on_delta(Delta::Sent);
        let thoughts = reply.reasoning.0.iter().map(|piece| Delta::Reasoning(piece));
        let pieces = thoughts.chain(reply.text.0.iter().map(|piece| Delta::Text(piece)));
        let mut silent = true;
        for piece in pieces {
            pause(reply.delay_ms).await;
            on_delta(piece);
            silent = false;
        }
        if silent {
            pause(reply.delay_ms).await;
        }
        reply.outcome()
    }
}

impl Provider for Scripted {
    fn call<'a>(
        &'a self,
        model: &'a str,
        request: &'a LlmRequest,
        on_delta: &'a (dyn Fn(Delta<'_>) + Send + Sync),
    ) -> BoxFuture<'a, Result<LlmReply, ProviderError>> {
        self.play(model, request, on_delta).boxed()
    }
}

async fn pause(millis: u64) {
    if millis > 0 {
        tokio::time::sleep(Duration::from_millis(millis)).await;
    }
}

/// The text of `path`, a regular file of bounded size.
fn read(path: &Path) -> std::io::Result<String> {
    let about = std::fs::metadata(path)?;
    if !about.is_file() {
        return Err(std::io::Error::other("it is not a file"));
    }
    if about.len() > MAX_SCRIPT_BYTES {
        return Err(std::io::Error::other(format!("it is larger than {} MiB", MAX_SCRIPT_BYTES >> 20)));
    }
    std::fs::read_to_string(path)
}

impl Reply {
    /// The outcome in which the call ends.
    fn outcome(&self) -> Result<LlmReply, ProviderError> {
        if let Some(failure) = &self.error {
            return Err(failure.to_error());
        }
        if self.cut {
            return Err(ProviderError::cut("its last piece (scripted)"));
        }
        Ok(self.to_llm_reply())
    }

    fn to_llm_reply(&self) -> LlmReply {
        let calls: Vec<CallPart> = self
            .tool_calls
            .iter()
            .map(|call| CallPart::new(call.id.as_deref().unwrap_or_default(), &call.name, &call.arguments.0))
            .collect();
        let usual = if calls.is_empty() { "stop" } else { "tool_calls" };
        LlmReply {
            reasoning_content: self.reasoning.0.concat(),
            tool_calls: calls,
            finish_reason: self.finish_reason.clone().unwrap_or_else(|| usual.into()),
            usage: self.usage.as_ref().map(file::Tokens::to_usage),
            reasoning_details: json!({"scripted": true}),
            private: ProviderData::of(vec![json!({"type": "scripted"})]),
            ..LlmReply::text(self.text.0.concat())
        }
    }
}

impl Failure {
    fn to_error(&self) -> ProviderError {
        let (reason, usual) = match self.kind {
            ErrorKind::RateLimit => (Some(RetryReason::RateLimit), "scripted rate limit"),
            ErrorKind::ServerError => (Some(RetryReason::ServerError), "scripted server error"),
            ErrorKind::Timeout => (Some(RetryReason::Timeout), "scripted timeout"),
            ErrorKind::Network => (Some(RetryReason::Network), "scripted network failure"),
            ErrorKind::ContextLimit => (Some(RetryReason::ContextLimit), "scripted context limit"),
            ErrorKind::Final => (None, "scripted error"),
        };
        let message = self.message.clone().unwrap_or_else(|| usual.into());
        let retry_after = self.retry_after_ms.map(Duration::from_millis);
        match reason {
            Some(reason) => ProviderError::Transient { reason, message, retry_after },
            None => ProviderError::Final { message },
        }
    }
}

#[cfg(test)]
mod tests;
