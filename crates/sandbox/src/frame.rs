//! What host and child say to each other: frames of a length and that many bytes, over the child's own pipes.

use std::io::{self, Read};

use crate::fault::SyntaxError;
use crate::limits;

/// Longest request: source, event, and the few bytes around them.
const REQUEST_BYTES: usize = limits::SOURCE_BYTES + limits::EVENT_BYTES + 64;
/// Longest reply: a returned text and what the console said, which may be cut in the middle of a character.
pub(crate) const REPLY_BYTES: usize = limits::RETURN_BYTES + 2 * limits::CONSOLE_BYTES + 64;
/// The length that begins a frame.
pub(crate) const HEAD_BYTES: usize = 4;

/// What the child is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request<'a> {
    /// After how many seconds the child may think that its host is gone.
    pub(crate) orphan_s: u32,
    pub(crate) source: &'a str,
    /// The event as JSON; none when the source is only checked.
    pub(crate) event: Option<&'a str>,
}

/// What the child answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    /// What the script wrote to its console.
    pub(crate) console: String,
    pub(crate) said: ReplyBody,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReplyBody {
    /// The JSON of a plain object.
    Returned(String),
    /// The source can be used.
    Checked,
    Syntax(SyntaxError),
    NoHandle,
    NotObject,
    Threw(String),
    OutOfMemory,
    TooDeep,
    ReturnTooLarge(usize),
    /// The child cannot serve.
    Unable(String),
}

const RUN: u8 = b'r';
const CHECK: u8 = b'c';

impl Request<'_> {
    /// The whole frame.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let event = self.event.unwrap_or_default();
        let size = 9 + self.source.len() + event.len();
        let mut frame = Vec::with_capacity(HEAD_BYTES + size);
        put_length(&mut frame, size);
        frame.push(if self.event.is_some() { RUN } else { CHECK });
        frame.extend_from_slice(&self.orphan_s.to_le_bytes());
        put_length(&mut frame, self.source.len());
        frame.extend_from_slice(self.source.as_bytes());
        frame.extend_from_slice(event.as_bytes());
        frame
    }
}

/// Reads what [`Request::encode`] wrote, without its head.
pub(crate) fn decode_request(bytes: &[u8]) -> Option<Request<'_>> {
    let (kind, rest) = bytes.split_first()?;
    let (orphan_s, rest) = rest.split_first_chunk()?;
    let (source, event) = take_text(rest)?;
    let event = std::str::from_utf8(event).ok()?;
    let event = match *kind {
        RUN => Some(event),
        CHECK => None,
        _ => return None,
    };
    Some(Request { orphan_s: u32::from_le_bytes(*orphan_s), source, event })
}

impl Reply {
    /// The whole frame.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let number;
        let (kind, text) = match &self.said {
            ReplyBody::Returned(text) => (b'v', text.as_str()),
            ReplyBody::Checked => (b'c', ""),
            ReplyBody::Syntax(error) => {
                number = format!("{}:{}:{}", error.line, error.column, error.message);
                (b's', number.as_str())
            }
            ReplyBody::NoHandle => (b'h', ""),
            ReplyBody::NotObject => (b'o', ""),
            ReplyBody::Threw(text) => (b't', text.as_str()),
            ReplyBody::OutOfMemory => (b'm', ""),
            ReplyBody::TooDeep => (b'd', ""),
            ReplyBody::ReturnTooLarge(bytes) => {
                number = bytes.to_string();
                (b'l', number.as_str())
            }
            ReplyBody::Unable(text) => (b'u', text.as_str()),
        };
        let size = 5 + self.console.len() + text.len();
        let mut frame = Vec::with_capacity(HEAD_BYTES + size);
        put_length(&mut frame, size);
        frame.push(kind);
        put_length(&mut frame, self.console.len());
        frame.extend_from_slice(self.console.as_bytes());
        frame.extend_from_slice(text.as_bytes());
        frame
    }
}

/// Reads what [`Reply::encode`] wrote, without its head. A child is trusted with nothing, so this may fail.
pub(crate) fn decode_reply(bytes: &[u8]) -> Option<Reply> {
    let (kind, rest) = bytes.split_first()?;
    let (console, text) = take_text(rest)?;
    let text = std::str::from_utf8(text).ok()?;
    let said = match *kind {
        b'v' => ReplyBody::Returned(text.to_owned()),
        b'c' => ReplyBody::Checked,
        b's' => ReplyBody::Syntax(place(text)?),
        b'h' => ReplyBody::NoHandle,
        b'o' => ReplyBody::NotObject,
        b't' => ReplyBody::Threw(text.to_owned()),
        b'm' => ReplyBody::OutOfMemory,
        b'd' => ReplyBody::TooDeep,
        b'l' => ReplyBody::ReturnTooLarge(text.parse().ok()?),
        b'u' => ReplyBody::Unable(text.to_owned()),
        _ => return None,
    };
    Some(Reply { console: console.to_owned(), said })
}

/// How many bytes follow a reply's head; none where a child says nonsense.
pub(crate) fn reply_size(head: [u8; HEAD_BYTES]) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(head)).ok().filter(|size| *size <= REPLY_BYTES)
}

/// Reads one request of the host into `into`; false when the host has closed the pipe.
pub(crate) fn read_request(from: &mut impl Read, into: &mut Vec<u8>) -> io::Result<bool> {
    let mut head = [0; HEAD_BYTES];
    if from.read(&mut head[..1])? == 0 {
        return Ok(false);
    }
    from.read_exact(&mut head[1..])?;
    let size = usize::try_from(u32::from_le_bytes(head)).unwrap_or(usize::MAX);
    if size > REQUEST_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a request of {size} bytes")));
    }
    into.resize(size, 0);
    from.read_exact(into)?;
    Ok(true)
}

fn put_length(frame: &mut Vec<u8>, size: usize) {
    let size = u32::try_from(size).expect("every part is bounded to a few MiB before it is put into a frame");
    frame.extend_from_slice(&size.to_le_bytes());
}

/// A length, so many bytes of text, and the rest.
fn take_text(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (size, rest) = bytes.split_first_chunk()?;
    let (text, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*size)).ok()?)?;
    Some((std::str::from_utf8(text).ok()?, rest))
}

fn place(text: &str) -> Option<SyntaxError> {
    let (line, rest) = text.split_once(':')?;
    let (column, message) = rest.split_once(':')?;
    Some(SyntaxError { line: line.parse().ok()?, column: column.parse().ok()?, message: message.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_through() {
        for event in [None, Some(""), Some(r#"{"a":"ü"}"#)] {
            let request = Request { orphan_s: 7, source: "ß()", event };
            let frame = request.encode();
            let mut read = Vec::new();
            assert!(read_request(&mut frame.as_slice(), &mut read).unwrap());
            assert_eq!(decode_request(&read), Some(request));
        }
    }

    #[test]
    fn replies_come_through() {
        let syntax = SyntaxError { line: 3, column: 14, message: "a: b".into() };
        let all = [
            ReplyBody::Returned("{}".into()),
            ReplyBody::Checked,
            ReplyBody::Syntax(syntax),
            ReplyBody::NoHandle,
            ReplyBody::NotObject,
            ReplyBody::Threw("ö".into()),
            ReplyBody::OutOfMemory,
            ReplyBody::TooDeep,
            ReplyBody::ReturnTooLarge(12),
            ReplyBody::Unable("x".into()),
        ];
        for said in all {
            let reply = Reply { console: "log: ä\n".into(), said };
            let frame = reply.encode();
            let (head, body) = frame.split_first_chunk().unwrap();
            assert_eq!(reply_size(*head), Some(body.len()));
            assert_eq!(decode_reply(body), Some(reply));
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let texts: [&[u8]; 7] =
            [b"", b"x", b"v\xff\xff\xff\xff", b"v\0\0\0\0\xff", b"s\0\0\0\0x", b"l\0\0\0\0x", b"?\0\0\0\0"];
        for bytes in texts {
            assert_eq!(decode_reply(bytes), None, "{bytes:?}");
        }
        assert_eq!(decode_request(b"r\0\0\0\0\x09\0\0\0x"), None);
        assert_eq!(reply_size(u32::MAX.to_le_bytes()), None);
        assert!(read_request(&mut [0xff_u8; 8].as_slice(), &mut Vec::new()).is_err());
        assert!(read_request(&mut [9_u8, 0, 0, 0, 1].as_slice(), &mut Vec::new()).is_err());
        assert!(!read_request(&mut [].as_slice(), &mut Vec::new()).unwrap());
    }
}
