//! The child's side: asks nothing, reads a script and an event, answers, and forgets both.

use std::fs::File;
use std::io::{self, BufReader, Write as _};
use std::os::fd::AsFd as _;
use std::process::ExitCode;
use std::thread;

use nix::unistd::alarm;

use crate::frame::{Reply, ReplyBody, Request};
use crate::stage::Stage;
use crate::{confine, depth, frame, peak};

/// What a pipe holds.
const READ_BYTES: usize = 64 << 10;

/// Serves scripts to the host at the other end of the standard input and output, until the host closes them.
///
/// A program calls this before it starts any thread or opens any file: the process gives up nearly all that it may do,
/// for good.
#[must_use]
pub fn worker_main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        // The host is gone, or speaks something else. Nobody is left to tell.
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve() -> io::Result<()> {
    confine::close_others();
    // One read takes a request of the usual size whole.
    let mut requests = BufReader::with_capacity(READ_BYTES, File::from(io::stdin().as_fd().try_clone_to_owned()?));
    let mut replies = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    peak::watch();
    let ready = confine::confine().and_then(|()| depth::stack_bytes());
    let mut bytes = Vec::new();
    loop {
        // Made before it is needed, and its remains are cleared away after the answer: neither costs the caller.
        let stage = ready.clone().and_then(|stack_bytes| Ok((Stage::new()?, stack_bytes)));
        if !frame::read_request(&mut requests, &mut bytes)? {
            return Ok(());
        }
        let Some(request) = frame::decode_request(&bytes) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "an invalid request"));
        };
        let reply = answer(&stage, request);
        replies.write_all(&reply.encode())?;
        // Where both sides have one core, whoever waits goes on with the answer before this tidies up for the next.
        thread::yield_now();
    }
}

fn answer(stage: &Result<(Stage, usize), String>, request: Request<'_>) -> Reply {
    match stage {
        Ok((stage, stack_bytes)) => {
            // A host that is gone kills nobody. This does, and even where the engine looks at no clock.
            alarm::set(request.orphan_s.max(1));
            let reply = stage.run(request, *stack_bytes);
            alarm::cancel();
            reply
        }
        Err(why) => Reply { console: String::new(), said: ReplyBody::Unable(why.clone()) },
    }
}
