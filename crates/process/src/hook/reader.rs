//! Reads what a child writes, to the end, whatever it is.
//!
//! Whoever holds the ear reads, and settles every call that a line answers. As a rule that is the reader's task, which
//! the runtime wakes. A lone caller whose child answers promptly reads itself, before it goes to sleep: to fall asleep,
//! to be woken by way of another task and perhaps of another core takes longer than such an answer.

use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::task::coop::consume_budget;
use tokio::task::yield_now;
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

use super::frame_writer::FrameWriter;
use super::lines::Lines;
use super::session::{Outcome, Session, State};
use crate::platform;

/// How long a caller reads itself at most: about as long as it takes to be woken on another core of a virtual machine,
/// and less than other tasks of its worker notice.
const PATIENCE: Duration = Duration::from_micros(50);
/// How fast a reply is prompt that was waited for asleep: the same, and time for two tasks to be woken.
const PROMPT: Duration = Duration::from_micros(200);
/// After so many prompt replies in a row a lone caller reads itself; one that waited in vain begins the count anew. So
/// a slow child costs a moment of waiting once at most, and one that is fast and slow in turn hardly ever.
const PROMPT_REPLIES: u32 = 16;
/// After so many replies that callers have read themselves, one of them lets other tasks of its worker run. Left alone,
/// the runtime would see to that after four times as many.
const IN_A_ROW: u32 = 32;
/// What a caller reads at once: more than an answer has as a rule that comes promptly. Longer ones it leaves alone.
const PIECE_BYTES: usize = 1 << 10;
/// How long the reader's task sleeps when it was woken for what a caller is reading; longer while callers go on. Each
/// of its wake-ups would delay the child. So late at most is heard what answers nobody.
const NAP: Duration = Duration::from_millis(10);

impl State {
    /// The lines for a caller that is the only one, has said everything, and can expect a prompt reply.
    fn lend_lines(&mut self) -> Option<Lines> {
        let alone = self.pending.len() == 1 && matches!(self.frame_writer, FrameWriter::Free(_));
        if alone && self.hearing.prompt >= PROMPT_REPLIES { self.hearing.lines.take() } else { None }
    }
}

/// The lines in a caller's hands. They are given back whatever happens.
struct BorrowedLines<'a> {
    session: &'a Session,
    lines: Lines,
}

impl Drop for BorrowedLines<'_> {
    fn drop(&mut self) {
        let mut state = self.session.lock();
        let lines = std::mem::replace(&mut self.lines, Lines::new(0));
        state.hearing.lines = Some(lines);
        state.hearing.used = true;
        let others_wait = !state.pending.is_empty();
        drop(state);
        if others_wait {
            self.session.rouse_reader();
        }
    }
}

impl Session {
    /// Waits for the reply to a call that was just made, and reads it if it `may_read` and that promises to be short.
    pub(super) async fn reply(
        &self,
        mut told: oneshot::Receiver<Outcome>,
        may_read: bool,
    ) -> Result<Outcome, oneshot::error::RecvError> {
        if may_read && self.listen(&mut told) {
            if self.has_read_for_long() {
                yield_now().await;
            }
            return told.await;
        }
        self.rouse_reader();
        if !may_read {
            return told.await;
        }
        let start = Instant::now();
        let outcome = told.await;
        let mut state = self.lock();
        state.hearing.prompt = if start.elapsed() <= PROMPT { state.hearing.prompt.saturating_add(1) } else { 0 };
        outcome
    }

    /// Reads for a moment, if that promises a reply.
    fn listen(&self, told: &mut oneshot::Receiver<Outcome>) -> bool {
        let Some(lines) = self.lock().lend_lines() else { return false };
        let mut lent = BorrowedLines { session: self, lines };
        let mut piece = [0; PIECE_BYTES];
        // An answer that is there at once costs no look at the clock.
        let mut start = None;
        loop {
            match (&*self.frame_reader.stdout).read(&mut piece) {
                Ok(read @ 1..) => {
                    lent.lines.room().extend_from_slice(&piece[..read]);
                    self.hear_all(&mut lent.lines);
                    if !told.is_empty() {
                        return true;
                    }
                    if read == PIECE_BYTES {
                        // The reader's task reads much at once.
                        break;
                    }
                }
                // The child may be waiting for this very core.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => thread::yield_now(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The reader's task meets it, too, and says so.
                Ok(0) | Err(_) => break,
            }
            if start.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                break;
            }
        }
        self.lock().hearing.prompt = 0;
        false
    }

    /// Whether callers have read so many replies that other tasks of this worker may have waited for long.
    fn has_read_for_long(&self) -> bool {
        let mut state = self.lock();
        state.hearing.in_a_row = (state.hearing.in_a_row + 1) % IN_A_ROW;
        state.hearing.in_a_row == 0
    }

    /// Ends the nap of the reader's task. Called by whoever made a call and does not read, and when others are pending
    /// by whoever gives the lines back.
    fn rouse_reader(&self) {
        // A nap begins only while the lines are lent. If that was before this caller's call became pending, it sees the
        // mark; if later, whoever has the lines sees the call.
        if self.frame_reader.naps.load(Ordering::Relaxed) {
            self.frame_reader.wake.notify_one();
        }
    }

    fn hear_all(&self, lines: &mut Lines) {
        while let Some(line) = lines.next() {
            self.hear(line);
        }
    }

    /// The lines for the reader's task. If a caller has them, the task is to take a nap: from now on it is woken for
    /// everybody who waits without reading.
    fn claim_lines(&self) -> Option<Lines> {
        let mut state = self.lock();
        let lines = state.hearing.lines.take();
        self.frame_reader.naps.store(lines.is_none(), Ordering::Relaxed);
        lines
    }

    /// Whether the nap goes on, because callers have read meanwhile.
    fn sleep_on(&self) -> bool {
        let mut state = self.lock();
        let on = std::mem::take(&mut state.hearing.used);
        self.frame_reader.naps.store(on, Ordering::Relaxed);
        on
    }
}

/// Hands every line to `session` until the child's output ends or `stop` is set; a last line without its newline
/// counts.
pub(super) async fn read_on(session: &Session, stop: &CancellationToken) {
    let stopped = pin!(stop.cancelled());
    if let Err(error) = read_to_end(session, stopped).await {
        tracing::warn!(hook = %session.spec.name, %error, "the child's output cannot be read");
    }
    let lines = loop {
        match session.claim_lines() {
            Some(lines) => break lines,
            // A caller never keeps them for long.
            None => yield_now().await,
        }
    };
    if let Some(line) = lines.finish() {
        session.hear(line);
    }
}

type Stopped<'a, 'b> = Pin<&'a mut WaitForCancellationFuture<'b>>;

async fn read_to_end(session: &Session, mut stopped: Stopped<'_, '_>) -> io::Result<()> {
    let mut stdout = platform::watched(session.frame_reader.stdout.clone())?;
    loop {
        let mut ready = tokio::select! {
            biased;
            () = &mut stopped => return Ok(()),
            ready = stdout.readable() => ready?,
        };
        let Some(mut lines) = session.claim_lines() else {
            drop(ready);
            drop(stdout);
            nap(session, stopped.as_mut()).await;
            stdout = platform::watched(session.frame_reader.stdout.clone())?;
            continue;
        };
        let room = lines.room();
        let offered = room.capacity() - room.len();
        // A caller may have read it all; then there is nothing to wait for with the lines in hand.
        let read = ready.try_io(|pipe| platform::read_into(pipe.get_ref().as_fd(), room));
        if matches!(read, Ok(Ok(read)) if 0 < read && read < offered) {
            // It is empty now, which asking once more would say at a price.
            ready.clear_ready();
        }
        session.hear_all(&mut lines);
        session.lock().hearing.lines = Some(lines);
        match read {
            Ok(Ok(0)) => return Ok(()),
            Ok(Err(error)) => return Err(error),
            // An error of the attempt is that nothing is there.
            Ok(Ok(_)) | Err(_) => {}
        }
        // A child that never pauses must not keep a worker for itself.
        consume_budget().await;
    }
}

/// Sleeps while callers read by themselves. Whatever was written meanwhile is still there.
async fn nap(session: &Session, mut stopped: Stopped<'_, '_>) {
    loop {
        tokio::select! {
            biased;
            () = &mut stopped => break,
            () = session.frame_reader.wake.notified() => break,
            () = sleep(NAP) => if !session.sleep_on() { break },
        }
    }
    session.frame_reader.naps.store(false, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use bytes::Bytes;
    use futures_util::{FutureExt as _, join, poll};
    use pintle_dialects::process::config::EventForm;
    use pintle_dialects::process::frame::RpcReply;
    use pintle_domain::id::HookName;
    use tokio::net::unix::pipe;

    use super::super::events::EventQueue;
    use super::super::frame_reader::FrameReader;
    use super::super::session::{LastingState, Request, Unanswered};
    use super::super::spec::{ProcessSpec, unchecked};
    use super::*;
    use pintle_engine::deadlines::Deadlines;

    /// A bound for what must happen: only a failing test ever waits that long.
    const LONG: Duration = Duration::from_secs(60);

    /// A session, and the child's ends of both pipes.
    async fn stage() -> (Session, pipe::Sender, pipe::Receiver) {
        let (stdin, heard) = pipe::pipe().unwrap();
        let (say, stdout) = pipe::pipe().unwrap();
        for pipe in [&stdin, &say] {
            // The runtime has to have seen once that there is room.
            pipe.writable().await.unwrap();
        }
        let spec = ProcessSpec {
            name: HookName::from("h"),
            argv: Vec::new(),
            dir: None,
            env: Vec::new(),
            modes: Vec::new(),
            start_timeout: LONG,
            max_frame_bytes: 1 << 20,
            observer_timeout: LONG,
            strict: false,
            event_form: EventForm::Hook,
            events: None,
            before_spawn: unchecked(),
        };
        let frame_reader = FrameReader::at(stdout).unwrap();
        let lasting = LastingState {
            spec: Arc::new(spec),
            events: Arc::new(Mutex::new(EventQueue::new(LONG))),
            tally: Arc::default(),
            deadlines: Deadlines::default(),
        };
        (Session::new(lasting, stdin, frame_reader), say, heard)
    }

    async fn ask(session: &Session) -> Result<RpcReply, Unanswered> {
        let (params, deadline) = (Bytes::from_static(b"{}"), tokio::time::Instant::now() + LONG);
        session.call(Request { method: "hook.x", params, timeout: LONG, deadline, prompt: true }).await
    }

    fn say(pipe: &pipe::Sender, text: &str) {
        assert_eq!(pipe.try_write(text.as_bytes()).unwrap(), text.len());
    }

    /// The lines, as a caller has them that reads.
    fn lent(session: &Session) -> BorrowedLines<'_> {
        let lines = session.lock().hearing.lines.take().unwrap();
        BorrowedLines { session, lines }
    }

    fn is_roused(session: &Session) -> bool {
        session.frame_reader.wake.notified().now_or_never().is_some()
    }

    #[tokio::test]
    async fn a_lone_caller_of_a_prompt_child_reads_its_reply_itself() {
        let (session, out, _heard) = stage().await;
        session.lock().hearing.prompt = PROMPT_REPLIES;
        say(&out, "{\"id\":1,\"result\":{}}\n{\"id\":2,\"res");
        assert_eq!(ask(&session).await.unwrap().id, 1);
        say(&out, "ult\":{}}\n");
        assert_eq!(ask(&session).await.unwrap().id, 2);
        assert!(session.lock().pending.is_empty());
    }

    #[tokio::test]
    async fn a_long_reply_is_read_whole_whoever_reads_its_end() {
        let (session, out, _heard) = stage().await;
        session.lock().hearing.prompt = PROMPT_REPLIES;
        let (long, stop) = ("x".repeat(3 * PIECE_BYTES), CancellationToken::new());
        say(&out, &format!("{{\"id\":1,\"result\":\"{long}\"}}\n"));
        drop(out);
        let (reply, ()) = join!(ask(&session), read_on(&session, &stop));
        assert!(reply.unwrap().body.text().contains(&long));
    }

    #[tokio::test]
    async fn lines_are_lent_only_to_a_lone_caller_of_a_prompt_child() {
        let (session, _out, _heard) = stage().await;
        let (mut first, mut second) = (pin!(ask(&session)), pin!(ask(&session)));
        assert!(poll!(&mut first).is_pending());
        assert!(session.lock().lend_lines().is_none(), "nothing is known of the child");
        session.lock().hearing.prompt = PROMPT_REPLIES;
        assert!(poll!(&mut second).is_pending());
        assert!(session.lock().lend_lines().is_none(), "two wait");
        drop(session.lock().pending.pop_back());
        assert!(session.lock().lend_lines().is_some());
        assert!(session.lock().lend_lines().is_none(), "they are lent");
    }

    #[tokio::test]
    async fn a_caller_that_reads_in_vain_leaves_it_to_the_readers_task() {
        let (session, out, _heard) = stage().await;
        session.lock().hearing.prompt = PROMPT_REPLIES;
        let stop = CancellationToken::new();
        let mut call = pin!(ask(&session));
        assert!(poll!(&mut call).is_pending());
        assert_eq!(session.lock().hearing.prompt, 0);
        say(&out, "{\"id\":1,\"result\":{}}\n");
        drop(out);
        let (reply, ()) = join!(call, read_on(&session, &stop));
        assert_eq!(reply.unwrap().id, 1);
    }

    #[tokio::test]
    async fn whoever_waits_without_reading_ends_the_nap() {
        let (session, _out, _heard) = stage().await;
        let reading = lent(&session);
        assert!(session.claim_lines().is_none());
        assert!(!is_roused(&session));
        let mut call = Box::pin(ask(&session));
        assert!(poll!(&mut call).is_pending());
        assert!(is_roused(&session), "by the second caller");
        drop(reading);
        assert!(is_roused(&session), "by the first one, who goes while the second one waits");
        drop(call);
        let reading = lent(&session);
        assert!(session.claim_lines().is_none());
        drop(reading);
        assert!(!is_roused(&session), "nobody waits");
        assert!(session.sleep_on(), "a caller has read");
        assert!(!session.sleep_on(), "none has read since");
    }

    #[tokio::test]
    async fn what_was_written_during_a_nap_is_read_after_it() {
        let (session, out, _heard) = stage().await;
        let stop = CancellationToken::new();
        let reading = lent(&session);
        say(&out, "{\"id\":1,\"result\":{}}\n");
        let caller = async {
            while !session.frame_reader.naps.load(Ordering::Relaxed) {
                yield_now().await;
            }
            say(&out, "{\"id\":2,\"result\":{}}\n");
            let (first, second, ()) = join!(ask(&session), ask(&session), async { drop(reading) });
            assert_eq!((first.unwrap().id, second.unwrap().id), (1, 2));
            drop(out);
        };
        join!(caller, read_on(&session, &stop));
    }
}
