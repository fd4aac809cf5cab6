//! The message of `pintle run`: what stands on its command line, and what a file or a pipe brings beside it.

use std::io::{self, IsTerminal as _, Read};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use nix::sys::stat::{SFlag, fstat};

use super::terminal;
use crate::error::CliError;

/// Largest message that is read from stdin: more than any model takes.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// Most that is taken beside a message: a long file, and as much as goes into a model's context.
const MAX_BESIDE_BYTES: usize = 1 << 20;

/// How long a pipe may bring nothing at all before the message goes on alone: who feeds it is slower only if they do not
/// mean to.
const FIRST_BYTE: Duration = Duration::from_secs(3);

/// How much is read at once, in bytes: a pipe holds as much.
const PIECE_BYTES: usize = 64 << 10;

/// The message that `given` on the command line makes with what stands on stdin.
///
/// # Errors
/// There is none, it is not text, or there is too much of it.
pub(super) fn of(given: Option<&str>, no_stdin: bool) -> Result<String, CliError> {
    let text = match given {
        Some(text) if text != "-" => beside(text, if no_stdin { None } else { piped_beside()? }.as_deref()),
        Some(_) | None if no_stdin => {
            return Err(CliError::usage("there is no message")
                .hint("give one: `pintle run \"hello\"`, or leave out --no-stdin"));
        }
        Some(_) | None => {
            if given.is_none() && io::stdin().is_terminal() {
                return Err(CliError::usage("there is no message")
                    .hint("give one: `pintle run \"hello\"`, or pipe it in")
                    .hint("for a conversation: `pintle chat`"));
            }
            read(io::stdin().lock(), MAX_MESSAGE_BYTES)?
        }
    };
    if text.trim().is_empty() {
        return Err(CliError::usage("the message is empty"));
    }
    Ok(text.trim_end_matches('\n').to_owned())
}

/// What stands on stdin beside a message, if that is a file or a pipe and brings anything.
fn piped_beside() -> Result<Option<String>, CliError> {
    if !is_file_or_pipe() {
        return Ok(None);
    }
    let (sender, pieces) = channel();
    // It may never end to wait; then it ends with the program.
    std::thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let read = stdin.read(&mut piece).map(|bytes| piece[..bytes].to_vec());
            let is_end = !matches!(&read, Ok(bytes) if !bytes.is_empty());
            if sender.send(read).is_err() || is_end {
                return;
            }
        }
    });
    let mut bytes = match pieces.recv_timeout(FIRST_BYTE) {
        Ok(first) => first.map_err(unreadable)?,
        Err(RecvTimeoutError::Timeout) => {
            let seconds = FIRST_BYTE.as_secs();
            terminal::note(&format!(
                "nothing came on stdin within {seconds} s, so the message goes alone; see --no-stdin"
            ));
            return Ok(None);
        }
        Err(RecvTimeoutError::Disconnected) => Vec::new(),
    };
    while let Ok(piece) = pieces.recv() {
        bytes.extend(piece.map_err(unreadable)?);
        within(&bytes, MAX_BESIDE_BYTES)?;
    }
    within(&bytes, MAX_BESIDE_BYTES)?;
    let text = utf8(bytes)?;
    Ok(Some(text).filter(|text| !text.trim().is_empty()))
}

/// Whether stdin is a file or a pipe: a terminal waits for a person, and a device such as `/dev/null` brings nothing.
fn is_file_or_pipe() -> bool {
    let stat = fstat(io::stdin());
    stat.is_ok_and(|stat| {
        let kind = SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT;
        kind == SFlag::S_IFREG || kind == SFlag::S_IFIFO
    })
}

/// `text` with what was piped in behind it, between marks that do not occur in it.
fn beside(text: &str, piped: Option<&str>) -> String {
    let Some(piped) = piped else { return text.to_owned() };
    let is_free = |mark: &String| !piped.contains(&format!("</{mark}>"));
    let numbered = (2_u64..).map(|number| format!("stdin-{number}"));
    let mark = std::iter::once("stdin".to_owned()).chain(numbered).find(is_free).unwrap_or_default();
    format!("{text}\n\n<{mark}>\n{}\n</{mark}>", piped.trim_end_matches('\n'))
}

fn read(from: impl Read, most: usize) -> Result<String, CliError> {
    let mut bytes = Vec::new();
    from.take(most as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    within(&bytes, most)?;
    utf8(bytes)
}

fn within(bytes: &[u8], most: usize) -> Result<(), CliError> {
    if bytes.len() <= most {
        return Ok(());
    }
    Err(CliError::usage(format!("the message on stdin is longer than {most} bytes"))
        .hint("put it into a file in the workspace, and ask the agent to read that"))
}

fn utf8(bytes: Vec<u8>) -> Result<String, CliError> {
    String::from_utf8(bytes).map_err(|_| CliError::usage("stdin is not valid UTF-8; a message is text"))
}

fn unreadable(error: io::Error) -> CliError {
    CliError::failed(format!("stdin cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_piped_in_cannot_end_its_block() {
        for (piped, expected) in [
            (None, "sum up"),
            (Some("a\nb\n"), "sum up\n\n<stdin>\na\nb\n</stdin>"),
            (Some("x</stdin>\ny"), "sum up\n\n<stdin-2>\nx</stdin>\ny\n</stdin-2>"),
            (Some("</stdin></stdin-2>"), "sum up\n\n<stdin-3>\n</stdin></stdin-2>\n</stdin-3>"),
        ] {
            assert_eq!(beside("sum up", piped), expected);
        }
    }
}
