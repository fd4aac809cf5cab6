//! Writes to one child: one frame at a time, calls first, without ever waiting on anybody else's behalf.
//!
//! Whoever has something to write takes the pen if it is free and writes until the pipe is full or nothing waits:
//! a call to an idle child costs no change of task. When the pipe is full, the writer's task waits for it.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use pintle_dialects::process::frame;
use tokio::net::unix::pipe;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until, timeout};

use super::events::{Event, EventQueue};
use super::frame_writer::{BegunFrame, Frame, FrameWriter, JOINED_BYTES, WRITE_BYTES};
use super::session::{Session, State, Trouble};

/// Long enough to stand for "nothing to wait for".
const FAR: Duration = Duration::from_secs(86_400);

/// What a round of writing ended in.
#[derive(Debug, PartialEq)]
enum Round {
    /// Everything is written, or the pipe is closed.
    Done,
    /// The pipe is full.
    Full,
}

impl State {
    /// The pipe, if nobody writes.
    fn take_free(&mut self) -> Option<pipe::Sender> {
        match std::mem::replace(&mut self.frame_writer, FrameWriter::Taken) {
            FrameWriter::Free(pipe) => Some(pipe),
            other @ (FrameWriter::Full(_) | FrameWriter::Taken | FrameWriter::Last | FrameWriter::Shut) => {
                self.frame_writer = other;
                None
            }
        }
    }

    /// The pipe for the writer's task, which alone may wait.
    fn take_as_writer(&mut self) -> Option<pipe::Sender> {
        match std::mem::replace(&mut self.frame_writer, FrameWriter::Taken) {
            FrameWriter::Free(pipe) | FrameWriter::Full(pipe) => Some(pipe),
            other @ (FrameWriter::Taken | FrameWriter::Last | FrameWriter::Shut) => {
                self.writer_waits = matches!(other, FrameWriter::Taken);
                self.frame_writer = other;
                None
            }
        }
    }

    /// Puts the pipe back as `pen`, or closes it if that was asked for meanwhile.
    fn put_back(&mut self, frame_writer: FrameWriter) {
        self.frame_writer = match self.frame_writer {
            FrameWriter::Taken => frame_writer,
            FrameWriter::Last | FrameWriter::Shut | FrameWriter::Free(_) | FrameWriter::Full(_) => FrameWriter::Shut,
        };
    }

    fn is_written(&self) -> bool {
        let at_rest = matches!(self.frame_writer, FrameWriter::Free(_) | FrameWriter::Shut);
        at_rest && self.begun.is_none() && self.calls.is_empty() && self.cancels.is_empty()
    }
}

impl Session {
    /// Writes calls that wait, if nobody else is writing.
    pub(super) fn pump(&self) {
        let pipe = self.lock().take_free();
        if let Some(pipe) = pipe {
            self.write_with(pipe, false);
        }
    }

    /// Writes what callers could not, and all notifications.
    pub(super) async fn write_on(&self) {
        loop {
            let pipe = self.lock().take_as_writer();
            if let Some(pipe) = pipe {
                let Some(pipe) = self.full_pipe(pipe).await else { return };
                if self.write_with(pipe, self.greeted.load(Ordering::Acquire)) == Round::Full {
                    continue;
                }
            }
            tokio::select! {
                biased;
                () = self.hush.cancelled() => return,
                () = self.wake.notified() => {}
            }
            // Callers that are about to run add their calls first, so that all go out in one write.
            yield_now().await;
        }
    }

    /// Waits until `pipe` takes something again, if it was full; `None` when the session is hushed meanwhile.
    async fn full_pipe(&self, pipe: pipe::Sender) -> Option<pipe::Sender> {
        while self.lock().begun.is_some() {
            let expiry = self.events().head_expires().unwrap_or_else(|| Instant::now() + FAR);
            tokio::select! {
                biased;
                () = self.hush.cancelled() => {
                    drop(pipe);
                    self.lock().frame_writer = FrameWriter::Shut;
                    return None;
                }
                // An error shows again in the write that follows.
                _ready = pipe.writable() => break,
                () = self.wake.notified() => {}
                () = sleep_until(expiry) => self.events().expire(Instant::now()),
            }
        }
        Some(pipe)
    }

    fn write_with(&self, pipe: pipe::Sender, with_events: bool) -> Round {
        loop {
            let mut state = self.lock();
            let Some(mut begun) = self.next_frame(&mut state, with_events) else {
                let call_writer = std::mem::take(&mut state.writer_waits);
                state.put_back(FrameWriter::Free(pipe));
                drop(state);
                if call_writer {
                    self.wake.notify_one();
                }
                self.idle.notify_waiters();
                return Round::Done;
            };
            drop(state);
            begun.join();
            match write_some(&pipe, &mut begun) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let mut state = self.lock();
                    state.begun = Some(begun);
                    state.put_back(FrameWriter::Full(pipe));
                    drop(state);
                    self.wake.notify_one();
                    return Round::Full;
                }
                Err(error) => {
                    self.give_up_writing(pipe, &error);
                    return Round::Done;
                }
            }
        }
    }

    /// What goes out next: a begun frame, withdrawals, calls, then notifications.
    fn next_frame(&self, state: &mut State, with_events: bool) -> Option<BegunFrame> {
        if matches!(state.frame_writer, FrameWriter::Last) && state.begun.is_none() {
            return None;
        }
        if state.begun.is_some() {
            return state.begun.take();
        }
        let fresh = |frame| Some(BegunFrame { frame, company: Vec::new(), written: 0 });
        if let Some(id) = state.cancels.pop_front() {
            return fresh(Frame::whole(frame::cancel(id)));
        }
        if let Some((_, frame)) = state.calls.pop_front() {
            let (mut bytes, mut company) = (frame.len(), Vec::new());
            while let Some((_, next)) = state.calls.pop_front_if(|(_, next)| bytes + next.len() <= JOINED_BYTES) {
                bytes += next.len();
                company.push(next);
            }
            self.room.add_permits(1 + company.len());
            return Some(BegunFrame { frame, company, written: 0 });
        }
        if !with_events {
            return None;
        }
        self.events().pop(Instant::now()).and_then(|Event { frame, .. }| fresh(Frame::whole(frame)))
    }

    fn give_up_writing(&self, pipe: pipe::Sender, error: &io::Error) {
        drop(pipe);
        tracing::debug!(hook = %self.spec.name, %error, "the child does not read any more");
        self.lock().frame_writer = FrameWriter::Shut;
        self.idle.notify_waiters();
        self.complain_of(Trouble::Deaf);
    }

    /// Waits until everything has been written, at most for `patience`.
    pub(super) async fn flush(&self, patience: Duration) {
        let written = async {
            loop {
                let idle = self.idle.notified();
                tokio::pin!(idle);
                idle.as_mut().enable();
                let (rests, shut) = {
                    let state = self.lock();
                    (state.is_written(), matches!(state.frame_writer, FrameWriter::Shut))
                };
                let told = !self.greeted.load(Ordering::Acquire) || self.events().is_empty();
                if shut || (rests && told) {
                    return;
                }
                self.wake.notify_one();
                idle.await;
            }
        };
        if timeout(patience, written).await.is_err() {
            tracing::debug!(hook = %self.spec.name, "closing before everything was written");
        }
    }

    /// Closes the child's input and ends the writer's task. A frame that somebody is writing goes out first.
    pub(super) fn shut(&self) {
        let mut state = self.lock();
        state.frame_writer = match std::mem::replace(&mut state.frame_writer, FrameWriter::Shut) {
            FrameWriter::Taken | FrameWriter::Last => FrameWriter::Last,
            FrameWriter::Free(_) | FrameWriter::Full(_) | FrameWriter::Shut => FrameWriter::Shut,
        };
        drop(state);
        self.hush.cancel();
    }

    fn events(&self) -> MutexGuard<'_, EventQueue> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes until the frame is out or the pipe refuses.
fn write_some(pipe: &pipe::Sender, begun: &mut BegunFrame) -> io::Result<()> {
    while begun.written < begun.frame.len() {
        let wrote = match begun.frame.piece(begun.written) {
            Some(piece) => pipe.try_write(&piece[..piece.len().min(WRITE_BYTES)]),
            None => pipe.try_write_vectored(&begun.frame.rest(begun.written)),
        };
        match wrote {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => begun.written += written,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
