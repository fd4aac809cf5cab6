//! Asks the daemon once: connects, proves both sides, sends the question, hears the answer.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::Sender;

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::geteuid;

use crate::frame::{self, DaemonAnswer, Question, Ruled};
use crate::key;
use crate::options::Options;
use crate::start;

/// What is heard while a hook asks.
#[derive(Debug)]
pub enum AskOutcome {
    /// A person is asked.
    Held,
    /// The daemon has ruled.
    Ruled(Ruled),
    /// Nobody will answer, and why.
    Nobody(String),
    /// Somebody wants the hook to end.
    Signal,
}

/// Asks `question`, and tells what is heard. Returns when nothing more will be.
pub fn ask(options: &Options, question: &Question, told: &Sender<AskOutcome>) {
    let heard = match answered(options, question, told) {
        Ok(ruled) => AskOutcome::Ruled(ruled),
        Err(error) => AskOutcome::Nobody(error.to_string()),
    };
    // The hook has ended by itself if nobody listens.
    drop(told.send(heard));
}

fn answered(options: &Options, question: &Question, told: &Sender<AskOutcome>) -> io::Result<Ruled> {
    let mut stream = connect(options)?;
    let asked = question.to_bytes();
    frame::write(&mut stream, &asked)?;
    if !question.wants_answer() {
        return Ok(Ruled::default());
    }
    // Read as late as this: a daemon that was started just now may have made it.
    let key = key::read(&options.key_file)?;
    loop {
        let bytes = frame::read(&mut stream)?;
        match DaemonAnswer::of_bytes(&bytes, &key, &asked).map_err(io::Error::other)? {
            DaemonAnswer::Held => drop(told.send(AskOutcome::Held)),
            DaemonAnswer::Ruled(ruled) => return Ok(ruled),
        }
    }
}

/// Connects to the daemon, which is started if nobody listens.
fn connect(options: &Options) -> io::Result<UnixStream> {
    match to(&options.socket) {
        Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::ConnectionRefused].contains(&error.kind()) => {
            start::start(options)?;
            start::wait(|| to(&options.socket))
        }
        connected => connected,
    }
}

fn to(socket: &Path) -> io::Result<UnixStream> {
    let stream = UnixStream::connect(socket)?;
    let peer = getsockopt(&stream, PeerCredentials)?;
    if peer.uid() == geteuid().as_raw() { Ok(stream) } else { Err(io::Error::other("another user listens there")) }
}
