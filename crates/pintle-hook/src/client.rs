//! The client: one question, and one document in answer, before the host's deadline.

use std::io::{self, Read as _, Write as _};
use std::process::exit;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};

use crate::asking::{self, AskOutcome};
use crate::frame::{MAX_PAYLOAD_BYTES, Question, Ruled};
use crate::key;
use crate::options::Options;

/// How long the daemon has until its first word, whatever the deadline: one that says nothing for so long is stuck.
const FIRST_WORD: Duration = Duration::from_secs(28);

/// The exit code for a wrong command line: with a text on standard error, most hosts refuse the call then.
const WRONG_USE: i32 = 2;

/// The refusal of this host at this event, once they are known.
static REFUSAL: OnceLock<&str> = OnceLock::new();

/// Held by whoever writes the document; never given back.
static LAST_WORD: Mutex<()> = Mutex::new(());

/// Answers the host: asks the daemon of `options`, and ends this process. No other thread may run yet: each one would hear
/// the signals that this one waits for. `payload` is what the host says, where somebody has read it already.
pub fn run(options: Options, payload: Option<Vec<u8>>, began: Instant) -> ! {
    let signals = caught();
    let blocked = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&signals), None);
    let refusal = REFUSAL.get_or_init(|| guard::panic_deny(&options.host, &options.event));
    let objects_to_nothing = guard::no_objection(&options.host).filter(|_| options.allows_away);
    std::panic::set_hook(Box::new(|_| end(0, REFUSAL.get().map_or(b"", |text| text.as_bytes()), b"")));
    let ruled = match blocked {
        Ok(()) => wait(options, payload, signals, began),
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

/// Why there is no ruling.
enum Unanswered {
    /// No daemon can be reached or started.
    Away(String),
    /// For any other reason.
    Otherwise(String),
}

impl From<&str> for Unanswered {
    fn from(why: &str) -> Self {
        Self::Otherwise(why.to_owned())
    }
}

/// The signals that somebody may end a hook with.
fn caught() -> SigSet {
    use Signal::{
        SIGABRT, SIGALRM, SIGHUP, SIGINT, SIGPIPE, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU,
    };
    [SIGABRT, SIGALRM, SIGHUP, SIGINT, SIGPIPE, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU]
        .into_iter()
        .collect()
}

/// Waits for the ruling, but not beyond the deadline.
fn wait(options: Options, payload: Option<Vec<u8>>, signals: SigSet, began: Instant) -> Result<Ruled, Unanswered> {
    let (tell, heard) = mpsc::channel();
    let end = began + options.deadline;
    let mut until = began + options.deadline.min(FIRST_WORD);
    let signalled = tell.clone();
    start(move || {
        if signals.wait().is_ok() {
            drop(signalled.send(AskOutcome::Signal));
        }
    })?;
    start(move || work(&options, payload, &tell))?;
    loop {
        match heard.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(AskOutcome::Held) => until = end,
            Ok(AskOutcome::Ruled(ruled)) => return Ok(ruled),
            Ok(AskOutcome::Nobody(why)) => return Err(Unanswered::Otherwise(why)),
            Ok(AskOutcome::Away(why)) => return Err(Unanswered::Away(why)),
            Ok(AskOutcome::Signal) => return Err("the host wants no answer any more".into()),
            Err(RecvTimeoutError::Timeout) => return Err("the guard did not answer in time".into()),
            Err(RecvTimeoutError::Disconnected) => return Err("the guard cannot be asked".into()),
        }
    }
}

fn start(work: impl FnOnce() + Send + 'static) -> Result<(), Unanswered> {
    let started = thread::Builder::new().spawn(work).map(drop);
    started.map_err(|error| Unanswered::Otherwise(format!("no thread can be started: {error}")))
}

/// Reads what the host says, and asks.
fn work(options: &Options, payload: Option<Vec<u8>>, tell: &Sender<AskOutcome>) {
    match question(options, payload) {
        Ok(question) => asking::ask(options, &question, tell),
        Err(error) => drop(tell.send(AskOutcome::Nobody(error.to_string()))),
    }
}

/// All that the host says.
///
/// # Errors
/// It cannot be read, or is longer than what is read.
pub fn said() -> io::Result<Vec<u8>> {
    let payload = heard()?;
    if payload.len() > MAX_PAYLOAD_BYTES {
        return Err(io::Error::other("the host says more than the guard reads"));
    }
    Ok(payload)
}

/// What the host says, or one byte more of it than is read: the daemon then refuses it, and keeps that it did.
fn heard() -> io::Result<Vec<u8>> {
    let mut payload = Vec::new();
    io::stdin().lock().take(MAX_PAYLOAD_BYTES as u64 + 1).read_to_end(&mut payload)?;
    Ok(payload)
}

fn question(options: &Options, payload: Option<Vec<u8>>) -> io::Result<Question> {
    let payload = payload.map_or_else(heard, Ok)?;
    let wanted = guard::host(&options.host).map_or(&[][..], |host| host.environment);
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

/// Writes the document in one piece, and ends. Whoever comes second waits for the end.
fn end(code: i32, stdout: &[u8], stderr: &[u8]) -> ! {
    let _last = LAST_WORD.lock().unwrap_or_else(PoisonError::into_inner);
    // Straight to the descriptor: the handle of the library would keep what stands behind the last line break.
    nix::unistd::write(io::stderr(), stderr).ok();
    let mut rest = stdout;
    while !rest.is_empty() {
        match nix::unistd::write(io::stdout(), rest) {
            Ok(written) => rest = &rest[written..],
            Err(nix::errno::Errno::EINTR) => {}
            // Without a document only the exit code is left, and this one means no.
            Err(error) => {
                let said = format!("pintle-hook: the answer cannot be written: {error}\n");
                nix::unistd::write(io::stderr(), said.as_bytes()).ok();
                exit(WRONG_USE);
            }
        }
    }
    exit(code)
}
