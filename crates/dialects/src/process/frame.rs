//! Lines to and from a child: one JSON object each.
//!
//! Out: [`request_head`], params as [`wire`](super::wire) writes them, [`FRAME_TAIL`]; or [`notification`].
//! In: [`read_line`]; for a line above the limit [`IdScanner`].

use std::fmt;
use std::ops::Range;

use pintle_domain::json::{MAX_DEPTH, depth};
use pintle_domain::verdict::Reason;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

pub use scanner::IdScanner;
use scanner::{IdMember, named};
pub(crate) use text::{escape, excerpt};

mod scanner;
pub(crate) mod skim;
mod text;

/// A line from the child, read as far as its envelope.
#[derive(Debug)]
pub enum Incoming {
    /// A reply to the pending call `id`.
    Reply(RpcReply),
    /// No reply to anything: blank, an event, a request of the hook's own. `why` is for the log; empty for silence.
    Noise {
        /// What it was, for the log.
        why: String,
    },
    /// A line that cannot be decoded.
    Bad {
        /// The call that it would have answered, if that can still be read.
        id: Option<u64>,
        /// What is wrong.
        detail: String,
    },
}

/// A reply, its result still as text inside its line.
#[derive(Debug)]
pub struct RpcReply {
    /// Which call it answers.
    pub id: u64,
    /// What it carries.
    pub body: RpcBody,
    /// Likely mistakes in the envelope.
    pub warnings: Vec<String>,
}

/// What a reply carries.
#[derive(Debug)]
pub enum RpcBody {
    /// A result that is not null: the bytes of `line` in `range` are one JSON value in valid UTF-8.
    Result {
        /// The whole line, cleaned of invalid text.
        line: String,
        /// Where the result stands in it.
        range: Range<usize>,
    },
    /// No result, `null` or neither member: an empty answer.
    Empty,
    /// The hook's own error.
    Error {
        /// Its message.
        message: String,
    },
}

impl RpcBody {
    /// What came, as JSON text: the whole line; for an empty answer and for an error only what was read of it.
    pub fn text(&self) -> String {
        match self {
            Self::Result { line, .. } => line.clone(),
            Self::Empty => r#"{"result":null}"#.to_owned(),
            Self::Error { message } => format!(r#"{{"error":{{"message":{}}}}}"#, quoted(message)),
        }
    }
}

/// Room for what stands in every head, with the longest number.
const HEAD_BYTES: usize = 64;

/// What follows the params of a frame.
pub const FRAME_TAIL: &[u8] = b"}\n";

/// What comes before the params of the call `id`; [`FRAME_TAIL`] follows them.
pub fn request_head(id: u64, method: &str) -> Vec<u8> {
    let mut head = Vec::with_capacity(HEAD_BYTES + method.len());
    head.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    // In a fraction of the time that `write!` takes. Methods are our own words, without anything to escape.
    serde_json::to_writer(&mut head, &id).expect("memory takes every write");
    for part in [r#","method":""#, method, r#"","params":"#] {
        head.extend_from_slice(part.as_bytes());
    }
    head
}

/// A whole frame that expects no reply.
pub fn notification(method: &str, params: &[u8]) -> Vec<u8> {
    let head = format!(r#"{{"jsonrpc":"2.0","method":{},"params":"#, quoted(method));
    [head.as_bytes(), params, FRAME_TAIL].concat()
}

/// The frame that withdraws the call `id`.
pub fn cancel(id: u64) -> Vec<u8> {
    notification("hook.cancel", format!(r#"{{"id":{id}}}"#).as_bytes())
}

/// The params of `hook.hello`, the first call to a child.
pub fn hello(name: &str, modes: &[&str]) -> Vec<u8> {
    let modes: Vec<String> = modes.iter().map(|mode| quoted(mode)).collect();
    escape(format!(r#"{{"name":{},"version":1,"modes":[{}]}}"#, quoted(name), modes.join(",")).into_bytes())
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string always serialises")
}

/// Reads one line from a child, without its newline, as far as its envelope. The result stays text.
pub fn read_line(mut line: Vec<u8>) -> Incoming {
    if line.ends_with(b"\r") {
        line.pop();
    }
    if line.iter().all(u8::is_ascii_whitespace) {
        return Incoming::Noise { why: String::new() };
    }
    let mut warnings = Vec::new();
    let line = clean(line, &mut warnings);
    let body = match weigh(&line, &mut warnings) {
        IncomingKind::Result { id, range } => (id, RpcBody::Result { line, range }),
        IncomingKind::Empty { id } => (id, RpcBody::Empty),
        IncomingKind::Error { id, message } => (id, RpcBody::Error { message }),
        IncomingKind::Noise { why } => return Incoming::Noise { why },
        IncomingKind::Bad { id, detail } => return Incoming::Bad { id, detail },
    };
    let (id, body) = body;
    Incoming::Reply(RpcReply { id, body, warnings })
}

/// The line as text; what is no Unicode becomes U+FFFD. A good line is not copied.
fn clean(mut line: Vec<u8>, warnings: &mut Vec<String>) -> String {
    if text::mend_surrogates(&mut line) > 0 {
        warnings.push("a lone surrogate became U+FFFD; write both halves of a pair".into());
    }
    String::from_utf8(line).unwrap_or_else(|broken| {
        warnings.push("invalid UTF-8 became U+FFFD; write lines in UTF-8".into());
        String::from_utf8_lossy(broken.as_bytes()).into_owned()
    })
}

/// [`Incoming`], before it takes the line.
enum IncomingKind {
    Result { id: u64, range: Range<usize> },
    Empty { id: u64 },
    Error { id: u64, message: String },
    Noise { why: String },
    Bad { id: Option<u64>, detail: String },
}

fn weigh(line: &str, warnings: &mut Vec<String>) -> IncomingKind {
    if !line.trim_ascii_start().starts_with('{') {
        return IncomingKind::Bad {
            id: None,
            detail: format!("expected a JSON object, got `{}`", excerpt(line.trim())),
        };
    }
    let unreadable = |detail| {
        let mut scanner = IdScanner::new();
        scanner.feed(line.as_bytes());
        IncomingKind::Bad { id: scanner.id(), detail }
    };
    if line.len() > MAX_DEPTH && depth(line.as_bytes()) > MAX_DEPTH {
        return unreadable(format!("nested deeper than {MAX_DEPTH} levels"));
    }
    let envelope = match serde_json::from_str::<Envelope<'_>>(line) {
        Ok(envelope) => envelope,
        Err(error) => return unreadable(error.to_string()),
    };
    let shown = |id: &str| IncomingKind::Noise { why: format!("the id `{}` names no call", excerpt(id)) };
    match envelope.id.map(|id| (id.get(), named(id.get()))) {
        Some((_, IdMember::Call(id, warning))) => {
            warnings.extend(warning);
            envelope.weigh(id, line, warnings)
        }
        Some((id, IdMember::Stranger)) => shown(id),
        Some((id, IdMember::Wrong)) => {
            IncomingKind::Bad { id: None, detail: format!("id: expected a number, got {}", skim::kind(id)) }
        }
        Some((_, IdMember::Nothing)) | None if envelope.method.is_some() => {
            IncomingKind::Noise { why: "hooks send no requests and no events".into() }
        }
        Some((_, IdMember::Nothing)) | None => {
            IncomingKind::Noise { why: "a line without an `id` answers nothing".into() }
        }
    }
}

/// The members of a line. `None` where one is missing.
#[derive(Default)]
struct Envelope<'a> {
    jsonrpc: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    method: Option<&'a RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
}

impl Envelope<'_> {
    /// What a line that answers the call `id` says.
    fn weigh(&self, id: u64, line: &str, warnings: &mut Vec<String>) -> IncomingKind {
        for (name, member) in [("jsonrpc", self.jsonrpc), ("method", self.method)] {
            if let Some(text) = present(member).filter(|text| !text.starts_with('"')) {
                return wrong(id, name, "a string", text);
            }
        }
        if let Some(error) = present(self.error) {
            return told_error(id, error);
        }
        if let Some(result) = present(self.result) {
            let start = result.as_ptr() as usize - line.as_ptr() as usize;
            return IncomingKind::Result { id, range: start..start + result.len() };
        }
        if self.result.is_none() && present(self.method).is_some() {
            return IncomingKind::Noise { why: "hooks send no requests".into() };
        }
        if self.result.is_none()
            && let Some(member) = decides(line)
        {
            let detail =
                format!("`{member}` stands beside `id`; it belongs into `result`: \"result\":{{\"{member}\":…}}");
            return IncomingKind::Bad { id: Some(id), detail };
        }
        let said = if self.result.is_some() { "`result` is null" } else { "the line has no `result` and no `error`" };
        warnings.push(format!("{said}; an empty answer is written \"result\":{{}}"));
        IncomingKind::Empty { id }
    }
}

/// The member by which a line without a result decides all the same: the result was left out around it.
fn decides(line: &str) -> Option<&'static str> {
    const DECIDING: [&str; 5] = ["action", "approved", "decision", "permissionDecision", "hookSpecificOutput"];
    let mut members = skim::members(line, &skim::NOTHING)?;
    members.find_map(|(name, _)| DECIDING.into_iter().find(|word| word.eq_ignore_ascii_case(&name)))
}

/// The text of a member that is there and not null.
fn present(member: Option<&RawValue>) -> Option<&str> {
    member.map(RawValue::get).filter(|text| *text != "null")
}

fn wrong(id: u64, name: &str, expected: &str, text: &str) -> IncomingKind {
    IncomingKind::Bad { id: Some(id), detail: format!("{name}: expected {expected}, got {}", skim::kind(text)) }
}

/// Reads the `error` of a reply. Its `code` may be anything.
fn told_error(id: u64, error: &str) -> IncomingKind {
    let Some(members) = skim::members(error, &skim::NOTHING) else { return wrong(id, "error", "an object", error) };
    let (mut code, mut message) = (None, None);
    for (name, value) in members {
        if name.eq_ignore_ascii_case("code") {
            code = Some(value);
        } else if name.eq_ignore_ascii_case("message") {
            message = Some(value).filter(|value| *value != "null");
        }
    }
    let message = match (message.map(serde_json::from_str::<String>), code) {
        (Some(Ok(message)), _) => Reason::new(&message).to_string(),
        (Some(Err(_)), _) => return wrong(id, "error.message", "a string", message.unwrap_or_default()),
        (None, Some(code)) => format!("code {} without a message", excerpt(code)),
        (None, None) => "no message".into(),
    };
    IncomingKind::Error { id, message }
}

/// A known member of an envelope.
enum Slot {
    Jsonrpc,
    Id,
    Method,
    Result,
    Error,
    Unknown,
}

impl<'de> Deserialize<'de> for Slot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(SlotName)
    }
}

struct SlotName;

impl Visitor<'_> for SlotName {
    type Value = Slot;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Slot, E> {
        let known = [
            ("jsonrpc", Slot::Jsonrpc),
            ("id", Slot::Id),
            ("method", Slot::Method),
            ("result", Slot::Result),
            ("error", Slot::Error),
        ];
        let found = known.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        Ok(found.map_or(Slot::Unknown, |(_, slot)| slot))
    }
}

impl<'de> Deserialize<'de> for Envelope<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(EnvelopeMembers)
    }
}

struct EnvelopeMembers;

impl<'de> Visitor<'de> for EnvelopeMembers {
    type Value = Envelope<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Envelope<'de>, A::Error> {
        let mut envelope = Envelope::default();
        while let Some(slot) = map.next_key()? {
            let place = match slot {
                Slot::Jsonrpc => &mut envelope.jsonrpc,
                Slot::Id => &mut envelope.id,
                Slot::Method => &mut envelope.method,
                Slot::Result => &mut envelope.result,
                Slot::Error => &mut envelope.error,
                Slot::Unknown => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            // The last of duplicates wins.
            *place = Some(map.next_value()?);
        }
        Ok(envelope)
    }
}

#[cfg(test)]
mod tests;
