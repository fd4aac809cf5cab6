//! One call of a tool: the request, its digest, its result.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::id::CallId;
use crate::identity::Identity;
use crate::json::{Object, canonical};

/// A request to run a tool, after its name was made canonical.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// Pairs the call with its tool message.
    pub id: CallId,
    /// The canonical name.
    pub tool: String,
    /// The name as the model wrote it.
    pub raw_tool: String,
    /// The arguments, digits as they came.
    pub arguments: Object,
}

/// What a tool call left behind. All members are always present in its JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolOutput {
    /// What the model reads.
    pub for_llm: String,
    /// What the user reads at once; empty for nothing.
    pub for_user: String,
    /// Whether `for_user` is kept from the user.
    pub silent: bool,
    /// Whether the tool failed.
    pub is_error: bool,
    /// Whether the work goes on in the background; only reported.
    #[serde(rename = "async")]
    pub is_async: bool,
    /// `media://` references.
    pub media: Vec<String>,
    /// Paths of files that the tool made.
    pub artifact_tags: Vec<String>,
    /// Whether the user's request is answered by this result.
    pub response_handled: bool,
}

impl ToolOutput {
    /// A good result.
    pub fn ok(for_llm: impl Into<String>) -> Self {
        Self { for_llm: for_llm.into(), ..Self::default() }
    }

    /// A failed one.
    pub fn error(for_llm: impl Into<String>) -> Self {
        Self { for_llm: for_llm.into(), is_error: true, ..Self::default() }
    }
}

/// What the text of a result gains when the user has it already.
const DELIVERED_NOTE: &str = "The output above was already delivered to the user in this chat.";

impl ToolOutput {
    /// The result as the model reads it, once it is known which of its media could not be used, and `why`.
    ///
    /// A result that was to answer the user and could not be delivered is an error, and answers nobody.
    #[must_use]
    pub fn delivered(mut self, unusable: &[String], why: &str) -> Self {
        if self.response_handled && !unusable.is_empty() {
            self.response_handled = false;
            self.is_error = true;
            self.for_llm = format!("failed to deliver attachment: {why}");
        } else {
            unusable.iter().for_each(|entry| self.append(&format!("media unavailable: {entry}: {why}")));
        }
        if self.response_handled {
            self.append(DELIVERED_NOTE);
        }
        if !self.artifact_tags.is_empty() {
            self.append(&format!("Local artifact paths: {}", self.artifact_tags.join(", ")));
        }
        self.media.retain(|entry| !unusable.contains(entry));
        self
    }

    fn append(&mut self, note: &str) {
        if !self.for_llm.is_empty() {
            self.for_llm.push_str("\n\n");
        }
        self.for_llm.push_str(note);
    }
}

/// SHA-256 over everything that makes a call this call and no other.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of `call` made by `who`.
    ///
    /// Source: RFC 8785 canonical JSON of the array
    /// `[tenant, agent, session, turn, tool_call_id, tool, arguments]`, digits as they came.
    pub fn of(who: &Identity, call: &ToolCall) -> Self {
        let subject = serde_json::json!([
            who.tenant_id,
            who.agent_id,
            who.session_id,
            who.turn_id,
            call.id,
            call.tool,
            call.arguments,
        ]);
        Self(Sha256::digest(canonical(&subject).as_bytes()).into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl Serialize for Digest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivered_result_says_what_became_of_it() {
        let check = |handled: bool, media: &[&str], unusable: &[&str], tags: &[&str]| {
            let own = |entries: &[&str]| entries.iter().map(|entry| (*entry).to_owned()).collect::<Vec<_>>();
            let output = ToolOutput {
                response_handled: handled,
                media: own(media),
                artifact_tags: own(tags),
                ..ToolOutput::ok("x")
            };
            let output = output.delivered(&own(unusable), "gone");
            format!("{:?} {:?} {} {}", output.for_llm, output.media, output.response_handled, output.is_error)
        };
        assert_eq!(check(false, &[], &[], &[]), r#""x" [] false false"#);
        assert_eq!(check(false, &["a", "b"], &["b"], &[]), r#""x\n\nmedia unavailable: b: gone" ["a"] false false"#);
        assert_eq!(check(false, &[], &[], &["/p", "/q"]), r#""x\n\nLocal artifact paths: /p, /q" [] false false"#);
        assert_eq!(check(true, &["a"], &["a"], &[]), r#""failed to deliver attachment: gone" [] false true"#);
        let note = "The output above was already delivered to the user in this chat.";
        assert_eq!(check(true, &["a"], &[], &[]), format!(r#""x\n\n{note}" ["a"] true false"#));
        let paths = "Local artifact paths: /p";
        assert_eq!(check(true, &[], &[], &["/p"]), format!(r#""x\n\n{note}\n\n{paths}" [] true false"#));
    }
}
