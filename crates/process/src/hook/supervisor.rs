//! Keeps one child of a hook alive: starts it, shakes hands, notices its end, starts the next one.

use std::ffi::OsString;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use pintle_domain::fault::{Cause, Fault, Phrase};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::frame_reader::FrameReader;
use super::hello;
use super::inner::Inner;
use super::reader;
use super::session::{Session, Trouble};
use super::spec::StillSame;
use crate::group::{ChildGuard, TERM_GRACE};
use crate::platform::{Lead, Start};
use crate::restart::Restarts;
use crate::starters::in_turn;
use crate::supervision::Supervisor;
use crate::{spawn, stderr};

/// How long the output of a child that ended is still read: a reply written before the end counts, and whoever
/// else holds the pipe open does not delay the verdict any longer.
const DRAIN: Duration = Duration::from_secs(1);
/// How long the last words on standard error are waited for, within [`DRAIN`].
const LAST_WORDS: Duration = Duration::from_millis(100);
/// How long a child whose input was closed may take to leave by itself.
const LEAVE: Duration = Duration::from_secs(2);
/// About the longest time that closing a child takes: leaving, then TERM and KILL. A call that meets a hook whose
/// child is being closed waits only if its deadline lies beyond.
const CLOSING: Duration = Duration::from_secs(3);

/// Keeps the child of one hook alive.
pub(super) struct HookSupervisor {
    hook: Arc<Inner>,
    restarts: Restarts,
    was_up: bool,
    /// What was logged last of a fault, unless a child came up since.
    told: Option<Phrase>,
}

/// How the use of a child ended.
#[derive(Debug)]
enum ChildEnd {
    /// It ended.
    Left,
    /// It runs, but is of no use.
    Useless(Fault),
    /// The hook is being closed.
    Closing,
}

impl Supervisor for HookSupervisor {
    /// The whole life of one child.
    async fn one_life(&mut self) -> Option<Instant> {
        let closing = self.hook.child.closing().clone();
        let started = tokio::select! {
            biased;
            () = closing.cancelled() => return None,
            started = Running::start(&self.hook) => started,
        };
        let mut child = match started {
            Ok(child) => child,
            Err(detail) => {
                return Some(Instant::now() + self.fell(&Fault::CannotStart { cause: detail.into() }, Duration::ZERO));
            }
        };
        match self.use_child(&mut child).await {
            ChildEnd::Left => {
                child.drain().await;
                let words = self.hook.tail.last_words().map(Cause::from);
                let fault = self.named(child.child_guard.fault()).with_last_words(words);
                let due = Instant::now() + self.fell(&fault, Duration::ZERO);
                child.reap(&fault).await;
                Some(due)
            }
            ChildEnd::Useless(fault) => {
                let delay = self.fell(&fault, CLOSING);
                child.session.end(&fault);
                child.close().await;
                child.reap(&fault).await;
                let due = Instant::now() + delay;
                self.hook.child.fall(fault, due);
                Some(due)
            }
            ChildEnd::Closing => {
                self.hook.child.shut();
                child.session.flush(self.hook.spec.observer_timeout).await;
                child.close().await;
                child.drain().await;
                let fault = child.child_guard.fault();
                child.reap(&fault).await;
                None
            }
        }
    }
}

impl HookSupervisor {
    pub(super) fn new(hook: Arc<Inner>) -> Self {
        Self { hook, restarts: Restarts::default(), was_up: false, told: None }
    }

    /// Shakes hands, then lets the child work until something happens to it.
    async fn use_child(&mut self, child: &mut Running) -> ChildEnd {
        let (hook, session) = (self.hook.clone(), child.session.clone());
        let mut greeting = pin!(hello::greet(&session));
        let end = tokio::select! {
            biased;
            () = hook.child.closing().cancelled() => return ChildEnd::Closing,
            greeted = &mut greeting => match greeted {
                Ok(()) => None,
                Err(detail) => return ChildEnd::Useless(Fault::CannotStart { cause: detail.into() }),
            },
            end = child.until_end() => Some(end),
        };
        if let Some(end) = end {
            child.drain().await;
            // Its greeting may have been among the last that it wrote.
            self.was_up |= matches!(greeting.now_or_never(), Some(Ok(())));
            return match end {
                ChildEnd::Useless(fault) => ChildEnd::Useless(self.named(fault)),
                ChildEnd::Left | ChildEnd::Closing => end,
            };
        }
        if let Err(why) = child.is_same().await {
            return ChildEnd::Useless(Fault::CannotStart { cause: why.into() });
        }
        (self.was_up, self.told) = (true, None);
        self.restarts.came_up(Instant::now());
        session.open();
        hook.child.rise(session.clone());
        tokio::select! {
            biased;
            () = hook.child.closing().cancelled() => ChildEnd::Closing,
            end = child.until_end() => end,
        }
    }

    /// A hook that never came up could not start, whatever its child did instead.
    fn named(&self, fault: Fault) -> Fault {
        if self.was_up {
            fault
        } else {
            let ended = format!("{} before it answered hook.hello", fault.explained());
            let cause = match self.hook.tail.last_line() {
                Some(line) => format!("{ended}: {line}"),
                None => ended,
            };
            Fault::CannotStart { cause: cause.into() }
        }
    }

    /// The hook is down; answers how long to wait with the next child once `closing` is over.
    fn fell(&mut self, fault: &Fault, closing: Duration) -> Duration {
        let delay = self.restarts.went_down(Instant::now(), fastrand::f64());
        self.tell(fault);
        self.hook.child.fall(fault.clone(), Instant::now() + closing + delay);
        delay
    }

    /// Logs that the hook is down: once, not for every child that ends in the same way. Of the first start
    /// [`super::ProcessHook::ready`] tells, and who starts a hook says it in words of its own.
    fn tell(&mut self, fault: &Fault) {
        let (name, phrase) = (&self.hook.spec.name, fault.phrase());
        let text = phrase.to_string();
        if !self.hook.child.has_begun() {
            tracing::info!(hook = %name, fault = ?text, "the hook did not start");
        } else if self.told.as_ref() == Some(&phrase) {
            tracing::debug!(hook = %name, fault = ?text, "the hook is still down");
        } else {
            tracing::warn!(hook = %name, fault = ?text, "the hook is down");
        }
        self.told = Some(phrase);
    }
}

/// A child that runs, and the tasks that serve it.
struct Running {
    child_guard: ChildGuard,
    session: Arc<Session>,
    reader: JoinHandle<()>,
    writer: JoinHandle<()>,
    stderr: JoinHandle<()>,
    stop_reading: CancellationToken,
    /// Looks once more at what it was started from.
    still_same: Option<StillSame>,
}

impl Running {
    async fn start(hook: &Arc<Inner>) -> Result<Self, String> {
        let check = hook.spec.before_spawn.clone();
        // The check reads files.
        let checked = in_turn(move || check()).await;
        let still_same = Some(checked.ok_or("the check before its start panicked")??);
        let spec = &hook.spec;
        let argv: Vec<OsString> = spec.argv.iter().map(OsString::from).collect();
        let start = Start { argv: &argv, dir: spec.dir.as_deref(), env: &spec.env, lead: Lead::Group };
        let spawned = spawn::spawn(start).await?;
        let child_guard =
            ChildGuard::new(spawned.child).map_err(|error| format!("its end could not be watched: {error}"))?;
        tracing::debug!(hook = %hook.spec.name, pid = child_guard.id(), "a child runs");
        let frame_reader =
            FrameReader::at(spawned.stdout).map_err(|error| format!("its output could not be read: {error}"))?;
        let session = Arc::new(Session::new(hook.lasting(), spawned.stdin, frame_reader));
        let stop_reading = CancellationToken::new();
        let (heard, stop) = (session.clone(), stop_reading.clone());
        let reader = hook.tracker.spawn(async move { reader::read_on(&heard, &stop).await });
        let written = session.clone();
        let writer = hook.tracker.spawn(async move { written.write_on().await });
        hook.tail.begin();
        let (tail, name, stop) = (hook.tail.clone(), hook.spec.name.clone(), stop_reading.clone());
        let pipe = spawned.stderr;
        let stderr = hook.tracker.spawn(async move { stderr::listen(pipe, name, &tail, &stop).await });
        Ok(Self { child_guard, session, reader, writer, stderr, stop_reading, still_same })
    }

    /// Whether it is what was looked at before its start: it has read its files now.
    async fn is_same(&mut self) -> Result<(), String> {
        match self.still_same.take() {
            Some(still_same) => in_turn(still_same).await.ok_or("the check behind its start panicked")?,
            None => Ok(()),
        }
    }

    /// Waits until the child ended or is of no more use.
    async fn until_end(&mut self) -> ChildEnd {
        let mut trouble = self.session.trouble.subscribe();
        let what = tokio::select! {
            biased;
            () = self.child_guard.ended() => return ChildEnd::Left,
            () = finished(&mut self.reader) => Fault::broke("closed its output and stayed"),
            trouble = trouble.wait_for(Option::is_some) => match trouble.ok().and_then(|trouble| trouble.clone()) {
                Some(Trouble::Hung(after)) => return ChildEnd::Useless(Fault::TimedOut { after }),
                Some(Trouble::Deaf) | None => Fault::broke("closed its input and stayed"),
            },
        };
        // A child that is ending closes its pipes first.
        match timeout(DRAIN, self.child_guard.ended()).await {
            Ok(()) => ChildEnd::Left,
            Err(_elapsed) => ChildEnd::Useless(what),
        }
    }

    /// Reads what a child that ended has left in its pipes.
    async fn drain(&mut self) {
        let until = Instant::now() + DRAIN;
        if timeout_at(until, finished(&mut self.reader)).await.is_err() {
            tracing::debug!(hook = %self.session.spec.name, "somebody else holds the child's output open");
            self.stop_reading.cancel();
            finished(&mut self.reader).await;
        }
        let words = until.min(Instant::now() + LAST_WORDS);
        if timeout_at(words, finished(&mut self.stderr)).await.is_err() {
            tracing::debug!(hook = %self.session.spec.name, "somebody else holds the child's standard error open");
        }
    }

    /// Closes the child's input and sees off the child and what it started.
    async fn close(&mut self) {
        self.session.shut();
        if timeout(LEAVE, self.child_guard.ended()).await.is_err() {
            tracing::info!(hook = %self.session.spec.name, "the child did not leave and is killed");
        }
        self.child_guard.end_all(TERM_GRACE).await;
    }

    /// Ends everything that served the child; calls that are still pending end in `fault`.
    async fn reap(mut self, fault: &Fault) {
        self.session.end(fault);
        self.session.shut();
        self.child_guard.end_all(TERM_GRACE).await;
        self.stop_reading.cancel();
        finished(&mut self.reader).await;
        finished(&mut self.stderr).await;
        finished(&mut self.writer).await;
        self.session.sum_up();
    }
}

/// Waits for a task. One that panicked has finished, too: the panic was reported where it happened.
async fn finished(task: &mut JoinHandle<()>) {
    if !task.is_finished() && task.await.is_err() {
        tracing::error!("a task that served a child panicked");
    }
}
