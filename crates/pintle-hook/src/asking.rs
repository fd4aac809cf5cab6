//! Asks the daemon once: connects, proves both sides, sends the question, hears the answer.

use std::io::{self, Read as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::Sender;
use std::time::Duration;

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::geteuid;

use crate::account;
use crate::frame::{self, DaemonAnswer, Question, Ruled};
use crate::key;
use crate::options::{AskedDaemon, Options};
use crate::start::{self, FoundDaemon, is_away};

/// How long a hook that wants no answer stays so that the daemon sees which agent started it: many times what a daemon
/// takes that has something else to do, and little for an agent that waits for its hook.
const SEEN_TIME: Duration = Duration::from_millis(500);

/// What is heard while a hook asks.
#[derive(Debug)]
pub enum AskOutcome {
    /// A person is asked.
    Held,
    /// The daemon has ruled.
    Ruled(Ruled),
    /// Nobody will answer, and why.
    Nobody(String),
    /// No daemon can be reached or started, and why.
    Away(String),
    /// Somebody wants the hook to end.
    Signal,
}

/// Asks `question`, and tells what is heard. Returns when nothing more will be.
pub fn ask(options: &Options, question: &Question, told: &Sender<AskOutcome>) {
    let heard = match find(options).and_then(|daemon| Ok((connect(&daemon)?, daemon))) {
        Ok((Connected::To(stream), daemon)) => match answered(stream, &daemon, question, told) {
            Ok(ruled) => AskOutcome::Ruled(ruled),
            Err(error) => AskOutcome::Nobody(error.to_string()),
        },
        Ok((Connected::Away(error), _)) => AskOutcome::Away(error.to_string()),
        Err(error) => AskOutcome::Nobody(error.to_string()),
    };
    // The hook has ended by itself if nobody listens.
    drop(told.send(heard));
}

fn find(options: &Options) -> io::Result<FoundDaemon> {
    match &options.daemon {
        AskedDaemon::Named { socket, key_file } => {
            Ok(FoundDaemon { socket: socket.clone(), key_file: key_file.clone(), first: None })
        }
        AskedDaemon::Account => account::find(),
    }
}

fn answered(
    mut stream: UnixStream,
    daemon: &FoundDaemon,
    question: &Question,
    told: &Sender<AskOutcome>,
) -> io::Result<Ruled> {
    let asked = question.to_bytes();
    frame::write(&mut stream, &asked)?;
    if !question.wants_answer() {
        stream.set_read_timeout(Some(SEEN_TIME))?;
        // The daemon closes the connection once it has seen who asks, and says nothing.
        stream.read_exact(&mut [0]).ok();
        return Ok(Ruled::default());
    }
    // Read as late as this: a daemon that was started just now may have made it.
    let key = key::read(&daemon.key_file)?;
    loop {
        let bytes = frame::read(&mut stream)?;
        match DaemonAnswer::of_bytes(&bytes, &key, &asked).map_err(io::Error::other)? {
            DaemonAnswer::Held => drop(told.send(AskOutcome::Held)),
            DaemonAnswer::Ruled(ruled) => return Ok(ruled),
        }
    }
}

/// Whether a daemon listens.
enum Connected {
    To(UnixStream),
    /// None does, and none could be started.
    Away(io::Error),
}

/// Connects to the daemon, which is started if nobody listens.
fn connect(daemon: &FoundDaemon) -> io::Result<Connected> {
    match to(&daemon.socket) {
        Err(error) if is_away(&error) => {
            if let Err(error) = start::start(daemon) {
                return Ok(Connected::Away(error));
            }
            match start::wait(|| to(&daemon.socket)) {
                Err(error) if is_away(&error) => Ok(Connected::Away(error)),
                connected => connected.map(Connected::To),
            }
        }
        connected => connected.map(Connected::To),
    }
}

fn to(socket: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(socket)?;
    let peer = getsockopt(&stream, PeerCredentials)?;
    if peer.uid() == geteuid().as_raw() { Ok(stream) } else { Err(io::Error::other("another user listens there")) }
}
