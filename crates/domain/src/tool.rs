//! One call of a tool: the request, its digest, its result.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::hex::hex;
use crate::id::CallId;
use crate::identity::Identity;
use crate::json::{Object, Value, canonical};

mod mcp_names;
mod named_paths;
mod place;

pub use mcp_names::{MAX_TOOL_NAME_BYTES, mcp_tool_names};
pub use place::{CallPlace, ServerEntry};

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

impl ToolCall {
    /// A call of `tool` with these arguments, as a model made it under this name.
    pub fn new<K: Into<String>, V: Into<Value>>(
        id: &str,
        tool: &str,
        arguments: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let arguments = arguments.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { id: CallId::from(id), tool: tool.to_owned(), raw_tool: tool.to_owned(), arguments }
    }

    /// The argument `name`, if it is a number that a double holds.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.arguments.get(name).and_then(Value::as_f64)
    }

    /// The argument `name`, if it is a text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.arguments.get(name).and_then(Value::as_str)
    }
}

/// The output that a tool call left behind. All members are always present in its JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolOutput {
    /// The text that the model reads.
    pub for_llm: String,
    /// The text that the user reads at once; empty for nothing.
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

/// The annotations that a tool has about itself, as far as it says anything. Facts for hooks; whether calls may
/// overlap does not depend on it. Source: `annotations` of the Model Context Protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Annotations {
    /// Whether it changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Whether what it changes may be lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
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

/// The note that the text of a result gains when the user has it already.
const DELIVERED_NOTE: &str = "The output above was already delivered to the user in this chat.";

/// The length of the part that is repeated of an entry that cannot be used, in characters: enough for a path.
const SHOWN_CHARS: usize = 200;

/// An entry of `media` that cannot be used, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusableMedia {
    /// As it came: a reference, a path or a URL.
    pub entry: String,
    /// In words.
    pub why: String,
}

/// `ENTRY: WHY` on one line, without the contents of a `data:` URL.
impl fmt::Display for UnusableMedia {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_data = self.entry.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"));
        let head = if is_data { self.entry.split(',').next().unwrap_or_default() } else { &self.entry };
        let shown: String = head.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN_CHARS).collect();
        let cut = if self.entry.chars().nth(shown.chars().count()).is_some() { "…" } else { "" };
        write!(f, "{shown}{cut}: {}", self.why)
    }
}

impl std::error::Error for UnusableMedia {}

impl ToolOutput {
    /// The result without media that cannot be used, and with a word on each.
    ///
    /// A result that was to answer the user and cannot be delivered is an error, and answers nobody.
    #[must_use]
    pub fn lacking(mut self, unusable: &[UnusableMedia]) -> Self {
        if self.response_handled && !unusable.is_empty() {
            self.response_handled = false;
            self.is_error = true;
            self.for_llm = format!("failed to deliver attachment: {}", reasons(unusable));
        } else {
            unusable.iter().for_each(|unusable| self.append(&format!("media unavailable: {unusable}")));
        }
        self.media.retain(|entry| unusable.iter().all(|unusable| unusable.entry != *entry));
        self
    }

    /// The result as the model reads it, once it is known which of its media could not be used.
    #[must_use]
    pub fn delivered(self, unusable: &[UnusableMedia]) -> Self {
        let mut delivered = self.lacking(unusable);
        if delivered.response_handled {
            delivered.append(DELIVERED_NOTE);
        }
        if !delivered.artifact_tags.is_empty() {
            delivered.append(&format!("Local artifact paths: {}", delivered.artifact_tags.join(", ")));
        }
        delivered
    }

    fn append(&mut self, note: &str) {
        if !self.for_llm.is_empty() {
            self.for_llm.push_str("\n\n");
        }
        self.for_llm.push_str(note);
    }
}

/// Why a delivery failed: what kept the only entry from it, or each of several by name.
fn reasons(unusable: &[UnusableMedia]) -> String {
    match unusable {
        [only] => only.why.clone(),
        several => several.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
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
        let subject = crate::json::json!([
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
        f.write_str(&hex(&self.0))
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
            let gone = |entry: &&str| UnusableMedia { entry: (*entry).into(), why: "gone".into() };
            let unusable: Vec<_> = unusable.iter().map(gone).collect();
            let output = ToolOutput {
                response_handled: handled,
                media: own(media),
                artifact_tags: own(tags),
                ..ToolOutput::ok("x")
            };
            let output = output.delivered(&unusable);
            format!("{:?} {:?} {} {}", output.for_llm, output.media, output.response_handled, output.is_error)
        };
        assert_eq!(check(false, &[], &[], &[]), r#""x" [] false false"#);
        assert_eq!(check(false, &["a", "b"], &["b"], &[]), r#""x\n\nmedia unavailable: b: gone" ["a"] false false"#);
        assert_eq!(check(false, &[], &[], &["/p", "/q"]), r#""x\n\nLocal artifact paths: /p, /q" [] false false"#);
        assert_eq!(check(true, &["a"], &["a"], &[]), r#""failed to deliver attachment: gone" [] false true"#);
        let both = r#""failed to deliver attachment: a: gone; b: gone" ["c"] false true"#;
        assert_eq!(check(true, &["a", "b", "c"], &["a", "b"], &[]), both);
        let note = "The output above was already delivered to the user in this chat.";
        assert_eq!(check(true, &["a"], &[], &[]), format!(r#""x\n\n{note}" ["a"] true false"#));
        let paths = "Local artifact paths: /p";
        assert_eq!(check(true, &[], &[], &["/p"]), format!(r#""x\n\n{note}\n\n{paths}" [] true false"#));
    }

    #[test]
    fn an_entry_is_shown_on_one_line_and_not_whole() {
        let shown = |entry: &str| UnusableMedia { entry: entry.into(), why: "gone".into() }.to_string();
        assert_eq!(shown("media://1"), "media://1: gone");
        assert_eq!(shown("/a\n[file:/b]\u{85}"), "/a [file:/b] : gone");
        assert_eq!(shown("DATA:image/png;base64,AAAA"), "DATA:image/png;base64…: gone");
        assert_eq!(shown("data:"), "data:: gone");
        assert_eq!(shown(&"é".repeat(300)), format!("{}…: gone", "é".repeat(200)));
        assert_eq!(shown(""), ": gone");
    }
}
