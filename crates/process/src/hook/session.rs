//! The conversation with one child: which calls are pending, what still has to be written, what came back.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use pintle_dialects::process::frame::{Incoming, RpcReply, read_line};
use pintle_domain::fault::{Direction, Fault};
use tokio::net::unix::pipe;
use tokio::sync::{Notify, Semaphore, TryAcquireError, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use pintle_engine::deadlines::{Deadlines, Elapsed};

use super::events::EventQueue;
use super::frame_reader::{FrameReader, ReadState};
use super::frame_writer::{BegunFrame, Frame, FrameWriter};
use super::lines::Line;
use super::spec::ProcessSpec;
use super::tally::Tally;
use crate::restart::Silence;

/// Calls that wait to be written; above it callers wait for room. More than a host has turns at once.
const WAITING_CALLS: usize = 256;
/// From so many pending calls on, the writer's task joins what is queued instead of each caller writing by itself.
/// With fewer, its change of task costs more than the writes that it saves.
const COMPANY: usize = 8;
/// Longest call that may be answered promptly: a child takes a while to read more.
const BRIEF_BYTES: usize = 32 << 10;
/// How many withdrawn calls are remembered, to tell a late reply from a second one in the log.
const REMEMBERED: usize = 1024;
/// Lines about one child that the log takes word for word, enough to see what it prints; the rest is counted, since
/// a child that prints for ever must fill neither the disk nor a person's terminal.
const LOGGED_LINES: u32 = 5;
/// Longest text of the child in one line of the log, in bytes.
const LOGGED_BYTES: usize = 512;
/// Warnings of different text that are remembered as logged.
const LOGGED_WARNINGS: usize = 64;

/// What a call ends in.
pub(super) type Outcome = Result<RpcReply, Fault>;

/// A call to be made.
pub(super) struct Request<'a> {
    pub(super) method: &'a str,
    pub(super) params: Bytes,
    pub(super) timeout: Duration,
    pub(super) deadline: Instant,
    /// Whether running into the deadline may mean that the child hangs; approvals may wait for people.
    pub(super) prompt: bool,
}

/// Why a call got no answer.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// It was never begun: the child is gone. Another one may take it.
    Gone,
    /// It failed.
    Fault(Fault),
}

/// Why a child that still runs is of no more use.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Trouble {
    /// It does not read its input any more.
    Deaf,
    /// Call after call timed out, the last one after this time.
    Hung(Duration),
}

/// What of a hook outlives its children.
#[derive(Debug)]
pub(super) struct LastingState {
    pub(super) spec: Arc<ProcessSpec>,
    pub(super) events: Arc<Mutex<EventQueue>>,
    pub(super) tally: Arc<Tally>,
    pub(super) deadlines: Deadlines,
}

/// The conversation with one child.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) spec: Arc<ProcessSpec>,
    pub(super) events: Arc<Mutex<EventQueue>>,
    pub(super) tally: Arc<Tally>,
    pub(super) state: Mutex<State>,
    /// Places in the queue of calls.
    pub(super) room: Semaphore,
    /// Wakes the writer's task.
    pub(super) wake: Notify,
    /// Told whenever everything has been written.
    pub(super) idle: Notify,
    /// The handshake passed: notifications may go out.
    pub(super) greeted: AtomicBool,
    /// Ends the writer's task.
    pub(super) hush: CancellationToken,
    pub(super) trouble: watch::Sender<Option<Trouble>>,
    /// For callers that hear the child themselves.
    pub(super) frame_reader: FrameReader,
    deadlines: Deadlines,
    log: Mutex<Log>,
}

#[derive(Debug)]
pub(super) struct State {
    /// The number of the next call, from 1.
    next_id: u64,
    /// Who waits for which reply, by rising numbers. Most replies come in about that order, so the first entries are
    /// the ones that leave.
    pub(super) pending: VecDeque<(u64, oneshot::Sender<Outcome>)>,
    /// No new calls: the child is of no more use, or gone.
    refuses: bool,
    withdrawn: VecDeque<u64>,
    silence: Silence,
    pub(super) cancels: VecDeque<u64>,
    pub(super) calls: VecDeque<(u64, Frame)>,
    pub(super) begun: Option<BegunFrame>,
    pub(super) frame_writer: FrameWriter,
    /// The writer's task came while the pen was taken.
    pub(super) writer_waits: bool,
    pub(super) hearing: ReadState,
}

#[derive(Debug, Default)]
struct Log {
    lines: u32,
    warnings: BTreeSet<String>,
}

impl State {
    fn take_pending(&mut self, id: u64) -> Option<oneshot::Sender<Outcome>> {
        let at = self.pending.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        self.pending.remove(at).map(|(_, tell)| tell)
    }
}

/// A call under way. Dropping it withdraws the call.
struct Ticket<'a> {
    session: &'a Session,
    id: u64,
    /// Whether it may read its reply itself: no other call was pending, and the child has little to read.
    reads: bool,
    /// Whether so many others wait for the child too that its time is better spent on many calls at once.
    in_company: bool,
    /// Whether there is nothing left to withdraw.
    settled: bool,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if !self.settled {
            self.session.withdraw(self.id);
        }
    }
}

impl Session {
    /// A conversation over `stdin` and `ear`, nothing said yet.
    pub(super) fn new(lasting: LastingState, stdin: pipe::Sender, frame_reader: FrameReader) -> Self {
        let LastingState { spec, events, tally, deadlines } = lasting;
        let state = State {
            next_id: 1,
            pending: VecDeque::new(),
            refuses: false,
            withdrawn: VecDeque::new(),
            silence: Silence::default(),
            cancels: VecDeque::new(),
            calls: VecDeque::new(),
            begun: None,
            frame_writer: FrameWriter::Free(stdin),
            writer_waits: false,
            hearing: ReadState::new(spec.max_frame_bytes),
        };
        Self {
            spec,
            events,
            tally,
            state: Mutex::new(state),
            room: Semaphore::new(WAITING_CALLS),
            wake: Notify::new(),
            idle: Notify::new(),
            greeted: AtomicBool::new(false),
            hush: CancellationToken::new(),
            trouble: watch::Sender::new(None),
            frame_reader,
            deadlines,
            log: Mutex::default(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // Every change under this lock is complete before anything could panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a call and waits for its reply, at most until its deadline. Dropping the future withdraws the call.
    pub(super) async fn call(&self, request: Request<'_>) -> Result<RpcReply, Unanswered> {
        let late = |_: Elapsed| self.timed_out(&request);
        // The place is given back by whoever takes the frame out of the queue.
        match self.room.try_acquire() {
            Ok(place) => place.forget(),
            Err(TryAcquireError::Closed) => return Err(Unanswered::Gone),
            Err(TryAcquireError::NoPermits) => {
                let place = self.deadlines.until(request.deadline, self.room.acquire()).await.map_err(late)?;
                place.map_err(|_closed| Unanswered::Gone)?.forget();
            }
        }
        let (mut ticket, reply) = self.enqueue(request.method, request.params.clone()).inspect_err(|_| {
            self.room.add_permits(1);
        })?;
        if ticket.in_company {
            self.wake.notify_one();
        } else {
            self.pump();
        }
        let told = self.deadlines.until(request.deadline, self.reply(reply, ticket.reads)).await.map_err(late)?;
        ticket.settled = true;
        // The sender is only dropped unused when the session goes with all that it holds.
        told.map_err(|_dropped| Unanswered::Gone)?.map_err(Unanswered::Fault)
    }

    fn enqueue(&self, method: &str, params: Bytes) -> Result<(Ticket<'_>, oneshot::Receiver<Outcome>), Unanswered> {
        let (tell, told) = oneshot::channel();
        let limit = self.spec.max_frame_bytes;
        let mut state = self.lock();
        if state.refuses {
            return Err(Unanswered::Gone);
        }
        // Numbered under the lock, so that numbers leave in order and a call that is not sent takes none.
        let id = state.next_id;
        let frame = Frame::call(id, method, params);
        if frame.line_len() > limit {
            drop(state);
            self.tally.oversized_calls.up();
            return Err(Unanswered::Fault(Fault::TooLarge { way: Direction::Call, limit }));
        }
        let brief = frame.line_len() <= BRIEF_BYTES;
        state.next_id += 1;
        state.pending.push_back((id, tell));
        state.calls.push_back((id, frame));
        let (reads, in_company) = (brief && state.pending.len() == 1, state.pending.len() >= COMPANY);
        drop(state);
        Ok((Ticket { session: self, id, reads, in_company, settled: false }, told))
    }

    fn timed_out(&self, request: &Request<'_>) -> Unanswered {
        if request.prompt && self.lock().silence.goes_on() {
            self.complain_of(Trouble::Hung(request.timeout));
        }
        Unanswered::Fault(Fault::TimedOut { after: request.timeout })
    }

    /// The child is of no more use: no new calls, and the supervisor is told why.
    pub(super) fn complain_of(&self, what: Trouble) {
        self.lock().refuses = true;
        self.trouble.send_if_modified(|trouble| {
            let first = trouble.is_none();
            trouble.get_or_insert(what);
            first
        });
    }

    /// Takes back a call that nobody waits for any more: unsent if it still can be, else the child is told.
    fn withdraw(&self, id: u64) {
        let mut state = self.lock();
        if state.take_pending(id).is_none() {
            return;
        }
        if let Some(at) = state.calls.iter().position(|(queued, _)| *queued == id) {
            state.calls.remove(at);
            self.room.add_permits(1);
            return;
        }
        // Before the child has answered `hook.hello` it is sent nothing else.
        if self.greeted.load(Ordering::Acquire) {
            state.cancels.push_back(id);
        }
        state.withdrawn.push_back(id);
        if state.withdrawn.len() > REMEMBERED {
            state.withdrawn.pop_front();
        }
        drop(state);
        self.pump();
    }

    /// The handshake passed.
    pub(super) fn open(&self) {
        self.greeted.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    /// No call is answered any more: those that are pending end in `fault`.
    pub(super) fn end(&self, fault: &Fault) {
        let mut state = self.lock();
        state.refuses = true;
        state.calls.clear();
        let pending = std::mem::take(&mut state.pending);
        drop(state);
        self.room.close();
        for (_, tell) in pending {
            // An error means that the caller has just given up.
            tell.send(Err(fault.clone())).unwrap_or_else(drop);
        }
    }

    /// Takes a line from the child.
    pub(super) fn hear(&self, line: Line) {
        match line {
            Line::TooLong(Some(id)) => {
                let limit = self.spec.max_frame_bytes;
                self.settle(id, Err(Fault::TooLarge { way: Direction::Reply, limit }));
            }
            Line::TooLong(None) => self.stray("a line above the limit without an id", b""),
            Line::Whole(line) => {
                let start = line[..line.len().min(LOGGED_BYTES)].to_vec();
                self.read(line, &start);
            }
        }
    }

    fn read(&self, line: Vec<u8>, start: &[u8]) {
        match read_line(line) {
            Incoming::Reply(reply) => self.settle(reply.id, Ok(reply)),
            Incoming::Bad { id: Some(id), detail } => self.settle(id, Err(Fault::Unreadable { cause: detail.into() })),
            Incoming::Bad { id: None, detail } => self.stray(&detail, start),
            Incoming::Noise { why } if why.is_empty() => self.lock().silence.broken(),
            Incoming::Noise { why } => self.stray(&why, start),
        }
    }

    fn settle(&self, id: u64, outcome: Outcome) {
        let mut state = self.lock();
        state.silence.broken();
        if let Some(tell) = state.take_pending(id) {
            drop(state);
            // An error means that the caller has just given up.
            return tell.send(outcome).unwrap_or_else(drop);
        }
        let known = id > 0 && id < state.next_id;
        let place = state.withdrawn.iter().position(|withdrawn| *withdrawn == id);
        let late = place.and_then(|at| state.withdrawn.remove(at)).is_some();
        drop(state);
        let (count, what) = match (known, late) {
            (true, true) => (&self.tally.late_replies, "a reply to a call that is no longer waiting"),
            (true, false) => (&self.tally.late_replies, "another reply to a call that was answered"),
            (false, _) => (&self.tally.unknown_replies, "a reply to a call that was never made"),
        };
        count.up();
        self.complain(|name| tracing::warn!(hook = name, id, "{what}"));
    }

    fn stray(&self, why: &str, start: &[u8]) {
        self.lock().silence.broken();
        self.tally.stray_lines.up();
        let line = String::from_utf8_lossy(start);
        self.complain(|name| tracing::warn!(hook = name, ?why, ?line, "a line that answers nothing"));
    }

    /// Logs, unless this child has filled its share of the log.
    fn complain(&self, say: impl FnOnce(&str)) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.lines = log.lines.saturating_add(1);
        let lines = log.lines;
        drop(log);
        if lines <= LOGGED_LINES {
            say(self.spec.name.as_str());
        }
    }

    /// Logs how many lines of the child were only counted. Once, when nothing more comes from it.
    pub(super) fn sum_up(&self) {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = std::mem::take(&mut log.lines);
        drop(log);
        if let Some(more) = lines.checked_sub(LOGGED_LINES).filter(|more| *more > 0) {
            tracing::warn!(hook = %self.spec.name, more, "further lines of this child answered nothing");
        }
    }

    /// Logs likely mistakes, each once per child.
    pub(super) fn warn_once(&self, warnings: &[String]) {
        if warnings.is_empty() {
            return;
        }
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh: Vec<&String> = warnings
            .iter()
            .filter(|text| log.warnings.len() < LOGGED_WARNINGS && log.warnings.insert((*text).clone()))
            .collect();
        drop(log);
        for text in fresh {
            tracing::warn!(hook = %self.spec.name, warning = ?text, "a likely mistake in a reply");
        }
    }
}
