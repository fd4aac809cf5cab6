//! A command's answer: its exit code and what it printed. Also what printed text and the body of an answer share.

use pintle_domain::json::Object;

use super::members::{self, Read};
use super::{Decision, HandlerReply, MAX_REPLY_BYTES, ReplyFault, spelling, text};

/// How a command left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// The exit code of a command that has no objection.
const ALLOWS: i32 = 0;
/// The exit code of a command that blocks.
pub const BLOCKS: i32 = 2;

/// Said of output that is not a JSON object.
const NO_REPLY: &str =
    "what it prints is not a JSON object, which allows; exit code 2 blocks, and so does {\"decision\":\"block\"}";

/// The members that are known in a reply. Another one, such as any of the payload's own, is ignored.
pub(super) const KNOWN: [&str; 5] = ["decision", "continue", "reason", "additionalContext", "updatedInput"];

/// Reads the answer of a command that left with `exit`.
///
/// With exit code 0 the whole of standard output is the reply or, if that is not JSON, its last non-empty line. A reply
/// over several lines that other text precedes is found too. Text that is not a reply says nothing, which allows. Exit
/// code 2 blocks, whatever is printed.
///
/// # Errors
/// A fault for any other exit and for a reply that is broken.
pub fn stdout(exit: Exit, stdout: &[u8], stderr: &[u8]) -> Result<HandlerReply, ReplyFault> {
    let printed = || reply_text(stdout).map(|printed| printed.into_owned());
    match exit {
        Exit::Code(ALLOWS) => said_by_output(&printed()?),
        Exit::Code(BLOCKS) => {
            // The code alone blocks, so a broken reply costs no more than its reason.
            let said = printed().and_then(|printed| said_by_output(&printed)).unwrap_or_default();
            Ok(HandlerReply {
                decision: Decision::Block,
                reason: said.reason.or_else(|| complaint(stderr)),
                ..HandlerReply::default()
            })
        }
        Exit::Code(code) => Err(ReplyFault::Exited { code, stderr: complaint(stderr).unwrap_or_default() }),
        Exit::Signal(signal) => Err(ReplyFault::Killed { signal, stderr: complaint(stderr).unwrap_or_default() }),
    }
}

/// Whether what a command printed is JSON, whole or in its last line.
pub fn is_json(stdout: &[u8]) -> bool {
    let is = |text: &str| pintle_domain::json::parse(text).is_ok();
    reply_text(stdout).is_ok_and(|text| is(&text) || text.lines().next_back().is_some_and(is))
}

/// The text of a reply without its margins. Bytes that are not text are shown as such, so that they hide nothing.
pub(super) fn reply_text(bytes: &[u8]) -> Result<std::borrow::Cow<'_, str>, ReplyFault> {
    if bytes.len() > MAX_REPLY_BYTES {
        return Err(ReplyFault::TooLarge { got: bytes.len() });
    }
    if let Some(encoding) = encoding(bytes) {
        return Err(unreadable(format!("it looks like {encoding}; send JSON in UTF-8")));
    }
    // Some systems put a byte order mark before all text.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    Ok(String::from_utf8_lossy(bytes.trim_ascii()))
}

/// The encoding of bytes that hold no UTF-8: read as text they would be none of JSON, which allows.
fn encoding(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Some("UTF-32"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("UTF-16"),
        // Each sign of JSON is ASCII at its beginning: zeros stand beside it where signs have two bytes or four.
        [first, 0, ..] | [0, first, ..] if *first != 0 => Some("UTF-16 without a byte order mark"),
        [0, 0, 0, first, ..] if *first != 0 => Some("UTF-32 without a byte order mark"),
        [0x1f, 0x8b, ..] => Some("gzip"),
        _ => None,
    }
}

/// Reads `text` as a reply's JSON.
pub(super) fn read(text: &str) -> Result<Read, ReplyFault> {
    members::read(text, &KNOWN).map_err(unreadable)
}

/// The reply that these members make.
pub(super) fn said(mut members: Object) -> Result<HandlerReply, ReplyFault> {
    said_by(&mut members).map_err(unreadable)
}

pub(super) fn unreadable(why: impl std::fmt::Display) -> ReplyFault {
    ReplyFault::Unreadable(format!("reply: {why}"))
}

fn said_by(members: &mut Object) -> Result<HandlerReply, String> {
    let decision = match members::string(members, "decision")? {
        None => Decision::Allow,
        Some(word) => Decision::of(&word).ok_or_else(|| unknown(&word))?,
    };
    let goes_on = members::flag(members, "continue")?.unwrap_or(true);
    let warnings = spelling::near_misses(members, &KNOWN);
    Ok(HandlerReply {
        warnings,
        decision: if goes_on { decision } else { Decision::Block },
        reason: members::reason(members, "reason")?,
        context: members::context(members, "additionalContext")?,
        updated_input: members::object(members, "updatedInput")?,
        injection_detected: false,
    })
}

fn unknown(word: &str) -> String {
    let words = Decision::ALL.map(|decision| format!("\"{}\"", decision.word())).join(", ");
    format!("decision must be one of {words}, got {}", text::quoted(word))
}

fn said_by_output(printed: &str) -> Result<HandlerReply, ReplyFault> {
    let why = match read(printed)? {
        Read::Object(members) => return said(members),
        Read::Other(_) => return Ok(unsaid(printed)),
        Read::NotJson(why) => why,
    };
    let last = printed.lines().next_back().unwrap_or_default().trim();
    if let Read::Object(members) = read(last)? {
        return said(members);
    }
    if let Some(members) = last_block(printed)? {
        return said(members);
    }
    if printed.starts_with('{') || last.starts_with('{') {
        return Err(unreadable(format!("it begins with `{{` but is not JSON: {why}")));
    }
    Ok(unsaid(printed))
}

/// The answer of text that is not a reply: it says nothing, which allows. Whoever printed any may have meant a decision.
fn unsaid(printed: &str) -> HandlerReply {
    let warnings = if printed.is_empty() { Vec::new() } else { vec![NO_REPLY.to_owned()] };
    HandlerReply { warnings, ..HandlerReply::default() }
}

/// The object that begins with the last line that begins with a brace and reaches to the end: a reply printed over
/// several lines after other text.
fn last_block(printed: &str) -> Result<Option<Object>, ReplyFault> {
    let Some(at) = printed.rfind("\n{") else { return Ok(None) };
    match read(&printed[at + 1..])? {
        Read::Object(members) => Ok(Some(members)),
        Read::Other(_) | Read::NotJson(_) => Ok(None),
    }
}

/// The complaint of a command, as one line.
fn complaint(stderr: &[u8]) -> Option<String> {
    text::line(&String::from_utf8_lossy(stderr))
}
