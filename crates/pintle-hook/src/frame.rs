//! What a hook and the daemon say to each other: one question, then `held` at most once, then one ruling.
//!
//! Every frame is its length as four bytes, most significant first, and then so many bytes. A question and the answers to
//! it carry one nonce, and each answer a code over the question, so that it can be no other one's.

use std::io::{self, Read, Write};

use hmac::{Hmac, Mac as _};
use sha2::Sha256;

/// The version of what is said here. A daemon of another one does not understand the hook, and is not understood.
pub const VERSION: u16 = 1;

/// The first bytes of each frame.
const MAGIC: &[u8; 4] = b"PNTL";

/// Longest payload that a host may hand over, in bytes: a tool's result may be a file of some megabytes.
pub const MAX_PAYLOAD_BYTES: usize = 16 << 20;

/// Longest frame, in bytes: a payload, and room for everything beside it.
pub const MAX_FRAME_BYTES: usize = MAX_PAYLOAD_BYTES + (1 << 20);

/// The longest frame for which room is made at once, in bytes: more is reserved only as it comes in.
const SMALL_BYTES: usize = 64 << 10;

/// Most variables, or words of a command line, in one question.
const MAX_LISTED: usize = 256;

/// The bytes of a nonce: no two questions of one daemon's life have the same one.
pub const NONCE_BYTES: usize = 16;

const MAC_BYTES: usize = 32;

/// One event of a host, as the hook found it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// Names this question.
    pub nonce: [u8; NONCE_BYTES],
    /// The host, as the installation wrote it.
    pub host: String,
    /// The host's name of the event.
    pub event: String,
    /// How long the hook waits for the ruling in all, in milliseconds.
    pub deadline_ms: u64,
    /// The process id of the hook's parent: the host, or a shell of it.
    pub parent: u32,
    /// What the hook was started with.
    pub argv: Vec<String>,
    /// Those variables of its environment that are let through.
    pub env: Vec<(String, String)>,
    /// The folder that it was started in.
    pub cwd: String,
    /// What stood on standard input.
    pub payload: Vec<u8>,
}

/// What the daemon says to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DaemonAnswer {
    /// A person is asked: the ruling may take until the deadline.
    Held,
    /// What the hook says to the host, and ends with.
    Ruled(Ruled),
}

/// What a hook leaves its host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ruled {
    /// The exit code.
    pub exit: u8,
    /// Everything on standard output.
    pub stdout: Vec<u8>,
    /// Everything on standard error.
    pub stderr: Vec<u8>,
}

/// Why bytes are not a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadFrame {
    /// They begin otherwise.
    NotOurs,
    /// They are of another version.
    Version(u16),
    /// They end too early, go on too long, or say something impossible.
    Malformed,
    /// The code is not that of the key: somebody else says so.
    Forged,
}

impl std::fmt::Display for BadFrame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotOurs => f.write_str("it is not a frame of Pintle"),
            Self::Version(other) => write!(f, "it has version {other}, and this program has {VERSION}"),
            Self::Malformed => f.write_str("it is malformed"),
            Self::Forged => f.write_str("its code is wrong"),
        }
    }
}

impl std::error::Error for BadFrame {}

/// Reads one frame.
///
/// # Errors
/// The stream ends or fails, or the frame is longer than [`MAX_FRAME_BYTES`].
pub fn read(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    if length > MAX_FRAME_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the frame is too long"));
    }
    let mut frame = Vec::with_capacity(length.min(SMALL_BYTES));
    let got = from.take(length as u64).read_to_end(&mut frame)?;
    if got == length { Ok(frame) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Writes one frame.
///
/// # Errors
/// The stream fails, or the frame is longer than [`MAX_FRAME_BYTES`].
pub fn write(to: &mut impl Write, frame: &[u8]) -> io::Result<()> {
    let length = u32::try_from(frame.len()).ok().filter(|_| frame.len() <= MAX_FRAME_BYTES);
    let length = length.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the frame is too long"))?;
    to.write_all(&[&length.to_be_bytes()[..], frame].concat())?;
    to.flush()
}

impl Question {
    /// Whether the host takes an answer at this event: if not, nobody waits for one.
    pub fn wants_answer(&self) -> bool {
        pintle_guard::host(&self.host).and_then(|host| host.event(&self.event)).is_none_or(|row| row.answers)
    }

    /// As bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = head();
        out.extend(self.nonce);
        out.extend(self.deadline_ms.to_be_bytes());
        out.extend(self.parent.to_be_bytes());
        [&self.host, &self.event, &self.cwd].into_iter().for_each(|text| put(&mut out, text.as_bytes()));
        put_count(&mut out, self.argv.len());
        self.argv.iter().for_each(|word| put(&mut out, word.as_bytes()));
        put_count(&mut out, self.env.len());
        self.env.iter().flat_map(|(name, value)| [name, value]).for_each(|text| put(&mut out, text.as_bytes()));
        put(&mut out, &self.payload);
        out
    }

    /// From bytes.
    ///
    /// # Errors
    /// They are not a question.
    pub fn of_bytes(bytes: &[u8]) -> Result<Self, BadFrame> {
        let mut rest = Rest::of(bytes)?;
        let nonce = rest.array()?;
        let deadline_ms = u64::from_be_bytes(rest.array()?);
        let parent = u32::from_be_bytes(rest.array()?);
        let (host, event, cwd) = (rest.text()?, rest.text()?, rest.text()?);
        let argv = (0..rest.count()?).map(|_| rest.text()).collect::<Result<_, _>>()?;
        let env = (0..rest.count()?).map(|_| Ok((rest.text()?, rest.text()?))).collect::<Result<_, _>>()?;
        let payload = rest.bytes()?.to_vec();
        rest.end()?;
        Ok(Self { nonce, host, event, deadline_ms, parent, argv, env, cwd, payload })
    }
}

impl DaemonAnswer {
    /// As bytes, with the code of `key` over this answer to `question`, which is a question's bytes.
    pub fn to_bytes(&self, key: &[u8], question: &[u8]) -> Vec<u8> {
        let mut out = head();
        match self {
            Self::Held => out.push(0),
            Self::Ruled(ruled) => {
                out.extend([1, ruled.exit]);
                put(&mut out, &ruled.stdout);
                put(&mut out, &ruled.stderr);
            }
        }
        let code = code(key, question, &out).finalize().into_bytes();
        out.extend(code);
        out
    }

    /// From bytes, if `key` made their code for `question`, which is a question's bytes.
    ///
    /// # Errors
    /// They are not an answer to it.
    pub fn of_bytes(bytes: &[u8], key: &[u8], question: &[u8]) -> Result<Self, BadFrame> {
        // The version first: of a daemon that is newer nothing else may be known.
        Rest::of(bytes)?;
        let at = bytes.len().checked_sub(MAC_BYTES).ok_or(BadFrame::Malformed)?;
        let (said, proof) = bytes.split_at(at);
        code(key, question, said).verify_slice(proof).map_err(|_| BadFrame::Forged)?;
        let mut rest = Rest::of(said)?;
        let [kind] = rest.array()?;
        let answer = match kind {
            0 => Self::Held,
            1 => {
                let [exit] = rest.array()?;
                let (stdout, stderr) = (rest.bytes()?.to_vec(), rest.bytes()?.to_vec());
                Self::Ruled(Ruled { exit, stdout, stderr })
            }
            _ => return Err(BadFrame::Malformed),
        };
        rest.end()?;
        Ok(answer)
    }
}

/// The code over an answer; the question has the nonce in it.
fn code(key: &[u8], question: &[u8], said: &[u8]) -> Hmac<Sha256> {
    let mut code = Hmac::<Sha256>::new_from_slice(key).expect("this code takes keys of every length");
    code.update(&(question.len() as u64).to_be_bytes());
    code.update(question);
    code.update(said);
    code
}

fn head() -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend(VERSION.to_be_bytes());
    out
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    put_count(out, bytes.len());
    out.extend(bytes);
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    // What is longer is refused by `write`: the whole frame would be.
    out.extend(u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes());
}

/// What is left to read of a frame.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    /// What follows the head.
    fn of(bytes: &'a [u8]) -> Result<Self, BadFrame> {
        let mut rest = Self(bytes.strip_prefix(MAGIC).ok_or(BadFrame::NotOurs)?);
        match u16::from_be_bytes(rest.array()?) {
            VERSION => Ok(rest),
            other => Err(BadFrame::Version(other)),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], BadFrame> {
        let (first, rest) = self.0.split_first_chunk().ok_or(BadFrame::Malformed)?;
        self.0 = rest;
        Ok(*first)
    }

    fn length(&mut self) -> Result<usize, BadFrame> {
        usize::try_from(u32::from_be_bytes(self.array()?)).map_err(|_| BadFrame::Malformed)
    }

    fn count(&mut self) -> Result<usize, BadFrame> {
        self.length().and_then(|count| if count <= MAX_LISTED { Ok(count) } else { Err(BadFrame::Malformed) })
    }

    fn bytes(&mut self) -> Result<&'a [u8], BadFrame> {
        let length = self.length()?;
        let (first, rest) = self.0.split_at_checked(length).ok_or(BadFrame::Malformed)?;
        self.0 = rest;
        Ok(first)
    }

    fn text(&mut self) -> Result<String, BadFrame> {
        String::from_utf8(self.bytes()?.to_vec()).map_err(|_| BadFrame::Malformed)
    }

    fn end(&self) -> Result<(), BadFrame> {
        if self.0.is_empty() { Ok(()) } else { Err(BadFrame::Malformed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> Question {
        Question {
            nonce: [7; NONCE_BYTES],
            host: "claude".into(),
            event: "PreToolUse".into(),
            deadline_ms: 28_000,
            parent: 4711,
            argv: vec!["pintle-hook".into(), "--host".into()],
            env: vec![("CLAUDE_PID".into(), "12".into())],
            cwd: "/läden".into(),
            payload: b"{\"a\": \xff}".to_vec(),
        }
    }

    fn ruled() -> DaemonAnswer {
        DaemonAnswer::Ruled(Ruled { exit: 0, stdout: b"{}".to_vec(), stderr: b"why".to_vec() })
    }

    #[test]
    fn what_is_written_is_read() {
        let asked = question().to_bytes();
        assert_eq!(Question::of_bytes(&asked), Ok(question()));
        for answer in [DaemonAnswer::Held, ruled()] {
            let bytes = answer.to_bytes(b"key", &asked);
            assert_eq!(DaemonAnswer::of_bytes(&bytes, b"key", &asked), Ok(answer));
        }
        let mut stream = Vec::new();
        write(&mut stream, &asked).unwrap();
        assert_eq!(read(&mut stream.as_slice()).unwrap(), asked);
    }

    #[test]
    fn an_answer_is_to_one_question_and_from_who_has_the_key() {
        let asked = question().to_bytes();
        let bytes = ruled().to_bytes(b"key", &asked);
        let other = Question { nonce: [8; NONCE_BYTES], ..question() }.to_bytes();
        assert_eq!(DaemonAnswer::of_bytes(&bytes, b"key", &other), Err(BadFrame::Forged));
        assert_eq!(DaemonAnswer::of_bytes(&bytes, b"another", &asked), Err(BadFrame::Forged));
        for at in 6..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(DaemonAnswer::of_bytes(&changed, b"key", &asked), Err(BadFrame::Forged), "{at}");
        }
    }

    #[test]
    fn whatever_is_cut_short_or_of_another_version_is_refused() {
        let asked = question().to_bytes();
        for end in 0..asked.len() {
            assert!(Question::of_bytes(&asked[..end]).is_err(), "{end}");
        }
        assert_eq!(Question::of_bytes(&[&asked[..], b"x"].concat()), Err(BadFrame::Malformed));
        let mut newer = asked.clone();
        newer[5] = 9;
        assert_eq!(Question::of_bytes(&newer), Err(BadFrame::Version(9)));
        assert_eq!(Question::of_bytes(b"GET / HTTP/1.1"), Err(BadFrame::NotOurs));
        let bytes = ruled().to_bytes(b"key", &asked);
        for end in 0..bytes.len() {
            assert!(DaemonAnswer::of_bytes(&bytes[..end], b"key", &asked).is_err(), "{end}");
        }
    }

    #[test]
    fn a_frame_that_promises_too_much_is_not_waited_for() {
        let error = read(&mut [0xff; 8].as_slice()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let error = read(&mut [0, 0, 0, 9, 1].as_slice()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
