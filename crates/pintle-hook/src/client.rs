//! The client: one question, and one document in answer, before the host's deadline.

use std::io::{self, Read, Write as _};
use std::os::fd::AsFd;
use std::process::exit;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::asking::{Unanswered, ask};
use crate::frame::{MAX_PAYLOAD_BYTES, Question, Ruled};
use crate::key;
use crate::options::Options;
use crate::waiting::{WaitedInput, Waiting};

/// How much of the input is read at once, in bytes: most calls are shorter.
const CHUNK_BYTES: usize = 8 << 10;

/// The exit code for a wrong command line: with a text on standard error, most hosts refuse the call then.
const WRONG_USE: i32 = 2;

/// How long the host may take to read a piece of the document, once nothing more of it fits into the pipe.
const TAKEN_TIME: Duration = Duration::from_secs(2);

/// So much is written without waiting to a pipe that has room. Source: `PIPE_BUF` of pipe(7).
const PIPE_BUF: usize = 4096;

/// The refusal of this host at this event, once they are known.
static REFUSAL: OnceLock<&str> = OnceLock::new();

/// Answers the host: asks the daemon of `options`, and ends this process. No other thread may run yet: each one would hear
/// the signals that this one waits for. `payload` is what the host says, where somebody has read it already.
pub fn run(options: Options, payload: Option<Vec<u8>>, began: Instant) -> ! {
    // Other processes of the user find no way into this one: into its output they could write another answer. Where the
    // system does not know it, they do as before.
    nix::sys::prctl::set_dumpable(false).ok();
    let refusal = REFUSAL.get_or_init(|| pintle_guard::panic_deny(&options.host, &options.event));
    let objects_to_nothing = pintle_guard::no_objection(&options.host).filter(|_| options.allows_away);
    std::panic::set_hook(Box::new(|_| end(0, REFUSAL.get().map_or(b"", |text| text.as_bytes()), b"")));
    let ruled = match Waiting::until(began, options.deadline) {
        Ok(waiting) => answer(&options, payload, &waiting),
        Err(error) => Err(Unanswered::Otherwise(format!("signals cannot be caught: {error}"))),
    };
    match (ruled, objects_to_nothing) {
        (Ok(Ruled { exit, stdout, stderr }), _) => end(exit.into(), &stdout, &stderr),
        (Err(Unanswered::Away(why)), Some(text)) => {
            end(0, text.as_bytes(), format!("pintle-hook: allowed unguarded: {why}\n").as_bytes())
        }
        (Err(Unanswered::Away(why) | Unanswered::Otherwise(why)), _) => {
            end(0, refusal.as_bytes(), format!("pintle-hook: refused: {why}\n").as_bytes())
        }
    }
}

/// Says `text` to a person.
pub fn say(text: &str) {
    drop(io::stdout().write_all(text.as_bytes()));
}

/// Says why the command line is wrong, and ends this process.
pub fn wrong_use(why: &str) -> ! {
    drop(writeln!(io::stderr(), "pintle-hook: {why}; `pintle guard install` writes this command line"));
    exit(WRONG_USE);
}

/// Reads what the host says, and asks.
fn answer(options: &Options, payload: Option<Vec<u8>>, waiting: &Waiting) -> Result<Ruled, Unanswered> {
    let payload = payload.map_or_else(|| heard(WaitedInput::of(waiting)), Ok)?;
    ask(options, &question(options, payload)?, waiting)
}

/// All that the host says, before the `deadline` after `began`. [`run`] goes on from there.
///
/// # Errors
/// It cannot be read, or not in time, or is longer than what is read.
pub fn said(began: Instant, deadline: Duration) -> io::Result<Vec<u8>> {
    let waiting = Waiting::until(began, deadline)?;
    let payload = heard(WaitedInput::of(&waiting))?;
    if payload.len() > MAX_PAYLOAD_BYTES {
        return Err(io::Error::other("the host says more than the guard reads"));
    }
    Ok(payload)
}

/// What the host says, or one byte more of it than is read: the daemon then refuses it, and keeps that it did.
fn heard(input: impl Read) -> io::Result<Vec<u8>> {
    let mut payload = Vec::with_capacity(CHUNK_BYTES);
    input.take(MAX_PAYLOAD_BYTES as u64 + 1).read_to_end(&mut payload)?;
    Ok(payload)
}

fn question(options: &Options, payload: Vec<u8>) -> io::Result<Question> {
    let wanted = pintle_guard::host(&options.host).map_or(&[][..], |host| host.environment);
    let variable = |name: &&str| Some(((*name).to_owned(), std::env::var(name).ok()?));
    Ok(Question {
        nonce: key::random()?,
        host: options.host.clone(),
        event: options.event.clone(),
        deadline_ms: u64::try_from(options.deadline.as_millis()).unwrap_or(u64::MAX),
        parent: std::os::unix::process::parent_id(),
        argv: std::env::args().collect(),
        env: wanted.iter().filter_map(variable).collect(),
        cwd: std::env::current_dir()?.to_string_lossy().into_owned(),
        payload,
    })
}

/// Writes the document, then what people may read, and ends.
fn end(code: i32, stdout: &[u8], stderr: &[u8]) -> ! {
    if let Err(error) = leave(io::stdout(), stdout, TAKEN_TIME) {
        let said = format!("pintle-hook: the answer cannot be written: {error}\n");
        leave(io::stderr(), said.as_bytes(), Duration::ZERO).ok();
        // Without a document only the exit code is left, and this one means no.
        exit(WRONG_USE);
    }
    // Beside a document nobody has to read it; without one, it is what the host reads.
    let time = if code == 0 { Duration::ZERO } else { TAKEN_TIME };
    leave(io::stderr(), stderr, time).ok();
    exit(code)
}

/// Writes all `bytes` to `output`, each piece of them within `time`.
fn leave(output: impl AsFd, mut bytes: &[u8], time: Duration) -> io::Result<()> {
    while !bytes.is_empty() {
        let mut file = [PollFd::new(output.as_fd(), PollFlags::POLLOUT)];
        match poll(&mut file, PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX)) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::TimedOut, "nobody reads it")),
            Err(Errno::EINTR) => continue,
            Err(error) => return Err(error.into()),
            Ok(_) => {}
        }
        // Straight to the descriptor: the handle of the library would keep what stands behind the last line break.
        match nix::unistd::write(&output, &bytes[..bytes.len().min(PIPE_BUF)]) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
