//! Whether something that ends now and then is there: what its handle and its supervisor share, and the loop around its
//! lives. Process hooks and tool servers are kept alive in the same way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

/// Whether there is somebody to talk to.
#[derive(Clone, Debug)]
pub enum Phase<U, C> {
    /// It is being started; the cause is what the last life ended in, if there was one.
    Starting(Option<C>),
    /// There is.
    Up(U),
    /// The last life ended for this cause; the next is due at that time.
    Down(C, Instant),
    /// There never will be again.
    Closed,
}

/// How long a caller holds out for somebody to talk to, within its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// As long as the next start is due before its deadline, for what was up before. What never was is waited for until
    /// its first start has ended, and no longer: whoever starts it has been told then.
    OnceUp,
    /// For the next start alone.
    OneStart,
}

/// Something that is kept alive, as its handle and its supervisor see it: `U` is the way to talk to it while it is up,
/// `C` the cause for which it is down.
#[derive(Debug)]
pub struct Supervised<U, C> {
    phase: watch::Sender<Phase<U, C>>,
    /// The outcome of the first start.
    first: watch::Sender<Option<Result<(), C>>>,
    /// Set when it is to be closed.
    closing: CancellationToken,
    /// Set when nothing of it runs any more.
    done: CancellationToken,
    restarts: AtomicU64,
    /// Whether it was ever up.
    was_up: AtomicBool,
    /// The cause that callers get once it is closed.
    closed: C,
}

impl<U: Clone, C: Clone> Supervised<U, C> {
    /// Something that is about to be started; once it is closed, callers get the cause `closed`.
    pub fn new(closed: C) -> Self {
        Self {
            phase: watch::Sender::new(Phase::Starting(None)),
            first: watch::Sender::new(None),
            closing: CancellationToken::new(),
            done: CancellationToken::new(),
            restarts: AtomicU64::new(0),
            was_up: AtomicBool::new(false),
            closed,
        }
    }

    /// It can be talked to by way of `up`.
    pub fn rise(&self, up: U) {
        self.was_up.store(true, Ordering::Release);
        self.phase.send_replace(Phase::Up(up));
        self.tell_first(Ok(()));
    }

    /// Nobody can talk to it; `cause` is why, and what comes next is not known yet.
    pub fn sink(&self, cause: C) {
        self.phase.send_replace(Phase::Starting(Some(cause)));
    }

    /// It is down for `cause` until `due`.
    pub fn fall(&self, cause: C, due: Instant) {
        self.phase.send_replace(Phase::Down(cause.clone(), due));
        self.tell_first(Err(cause));
    }

    /// Nobody can talk to it any more.
    pub fn shut(&self) {
        self.phase.send_replace(Phase::Closed);
        self.tell_first(Err(self.closed.clone()));
    }

    fn restarting(&self) {
        self.restarts.fetch_add(1, Ordering::Relaxed);
        self.phase.send_modify(|phase| {
            if let Phase::Down(cause, _) = phase {
                *phase = Phase::Starting(Some(cause.clone()));
            }
        });
    }

    fn tell_first(&self, outcome: Result<(), C>) {
        self.first.send_if_modified(|first| {
            let fresh = first.is_none();
            first.get_or_insert(outcome);
            fresh
        });
    }

    /// Set when it is to be closed.
    pub fn closing(&self) -> &CancellationToken {
        &self.closing
    }

    /// Waits until nothing of it runs any more.
    pub async fn done(&self) {
        self.done.cancelled().await;
    }

    /// Whether it was ever up or down; before that, whoever starts it is told in words of its own.
    pub fn has_begun(&self) -> bool {
        self.first.borrow().is_some()
    }

    /// Waits for the outcome of the first start.
    ///
    /// # Errors
    /// Why it could not be used.
    pub async fn first(&self) -> Result<(), C> {
        let mut first = self.first.subscribe();
        let outcome = first.wait_for(Option::is_some).await.ok().and_then(|first| first.clone());
        outcome.unwrap_or_else(|| Err(self.closed.clone()))
    }

    /// The number of starts after the first one.
    pub fn restarts(&self) -> u64 {
        self.restarts.load(Ordering::Relaxed)
    }

    /// The way to talk to it, if there is one now.
    pub fn up(&self) -> Option<U> {
        if let Phase::Up(up) = &*self.phase.borrow() { Some(up.clone()) } else { None }
    }

    /// Why it is down, or was when it was seen last; none while it is up.
    pub fn cause(&self) -> Option<C> {
        match &*self.phase.borrow() {
            Phase::Starting(cause) => cause.clone(),
            Phase::Down(cause, _) => Some(cause.clone()),
            Phase::Up(_) | Phase::Closed => None,
        }
    }

    /// Its phases from now on.
    pub fn phases(&self) -> watch::Receiver<Phase<U, C>> {
        self.phase.subscribe()
    }

    /// The way to talk to it. Waits for a start that goes on, or is due before `deadline`.
    ///
    /// # Errors
    /// The cause for which there is none; `None` if the time is up and there was no cause yet.
    pub async fn reach(&self, deadline: Instant, patience: Patience) -> Result<U, Option<C>> {
        if let Some(up) = self.up() {
            return Ok(up);
        }
        let mut phases = self.phase.subscribe();
        let mut was_down = false;
        loop {
            let last = match &*phases.borrow_and_update() {
                Phase::Up(up) => return Ok(up.clone()),
                Phase::Closed => return Err(Some(self.closed.clone())),
                Phase::Starting(Some(cause)) if self.is_given_up(patience) => return Err(Some(cause.clone())),
                Phase::Down(cause, due) => {
                    let is_last = was_down && patience == Patience::OneStart;
                    if *due >= deadline || is_last || self.is_given_up(patience) {
                        return Err(Some(cause.clone()));
                    }
                    was_down = true;
                    Some(cause.clone())
                }
                Phase::Starting(last) => last.clone(),
            };
            match timeout_at(deadline, phases.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_gone)) => return Err(Some(self.closed.clone())),
                Err(_elapsed) => return Err(last),
            }
        }
    }

    /// Whether something whose first start has ended is not waited for any more.
    fn is_given_up(&self, patience: Patience) -> bool {
        patience == Patience::OnceUp && !self.was_up.load(Ordering::Acquire)
    }

    /// Waits until the one that `is_it` knows is no longer the one to talk to; `false` if it is still at `deadline`.
    pub async fn gone(&self, is_it: impl Fn(&U) -> bool, deadline: Instant) -> bool {
        let mut phases = self.phase.subscribe();
        let left = phases.wait_for(|phase| !matches!(phase, Phase::Up(now) if is_it(now)));
        timeout_at(deadline, left).await.is_ok()
    }
}

/// Lives one life after the other.
pub trait Supervisor: Send {
    /// One whole life. Answers when the next one is due; `None` when there shall be none.
    fn one_life(&mut self) -> impl Future<Output = Option<Instant>> + Send;
}

/// Runs `supervisor` until `shared` is closed.
pub fn supervise<U, C, S>(shared: Arc<Supervised<U, C>>, mut supervisor: S) -> impl Future<Output = ()> + Send
where
    U: Clone + Send + Sync + 'static,
    C: Clone + Send + Sync + 'static,
    S: Supervisor,
{
    // Made before the first poll: a task may be dropped without ever having run.
    let exit_notifier = ExitNotifier(shared);
    async move {
        let shared = exit_notifier.0.clone();
        while let Some(due) = supervisor.one_life().await {
            tokio::select! {
                biased;
                () = shared.closing.cancelled() => break,
                () = sleep_until(due) => {}
            }
            shared.restarting();
        }
    }
}

/// Says when supervision is over, also when its task panics or goes down with its runtime: whoever waits for somebody
/// to talk to or for the close must not wait for ever.
struct ExitNotifier<U: Clone, C: Clone>(Arc<Supervised<U, C>>);

impl<U: Clone, C: Clone> Drop for ExitNotifier<U, C> {
    fn drop(&mut self) {
        self.0.closing.cancel();
        self.0.shut();
        self.0.done.cancel();
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio_util::task::TaskTracker;

    use super::*;

    fn after(millis: u64) -> Instant {
        Instant::now() + Duration::from_millis(millis)
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_waits_only_for_a_start_before_its_deadline() {
        let it = Supervised::<u8, &str>::new("closed");
        assert_eq!(it.reach(after(5), Patience::OnceUp).await, Err(None), "no start has ended yet");
        it.rise(0);
        it.fall("fell", after(10));
        assert_eq!(it.reach(after(10), Patience::OnceUp).await, Err(Some("fell")));
        let (waited, ()) = tokio::join!(it.reach(after(20), Patience::OnceUp), async {
            it.restarting();
            it.fall("fell again", after(11));
            it.restarting();
            it.rise(1);
        });
        assert_eq!((waited, it.restarts(), it.cause()), (Ok(1), 2, None));
        it.shut();
        assert_eq!(it.reach(after(20), Patience::OnceUp).await, Err(Some("closed")));
        assert_eq!(it.first().await, Ok(()), "the first start is told as it was");
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_never_up_is_waited_for_until_its_first_start_has_ended() {
        let it = Supervised::<u8, &str>::new("closed");
        let (waited, ()) = tokio::join!(it.reach(after(20), Patience::OnceUp), async { it.fall("fell", after(1)) });
        assert_eq!(waited, Err(Some("fell")));
        it.restarting();
        let began = Instant::now();
        assert_eq!(it.reach(after(20), Patience::OnceUp).await, Err(Some("fell")));
        assert_eq!((began.elapsed(), it.first().await), (Duration::ZERO, Err("fell")));
        it.rise(1);
        it.fall("fell again", after(1));
        it.restarting();
        assert_eq!(it.reach(after(2), Patience::OnceUp).await, Err(Some("fell again")), "it waited: it was up before");
        assert_eq!(began.elapsed(), Duration::from_millis(2));
    }

    #[tokio::test(start_paused = true)]
    async fn the_impatient_wait_for_one_start() {
        let it = Arc::new(Supervised::<u8, &str>::new("closed"));
        it.fall("fell", after(10));
        let waits = TaskTracker::new().spawn({
            let it = it.clone();
            async move { it.reach(after(100), Patience::OneStart).await }
        });
        tokio::task::yield_now().await;
        it.restarting();
        tokio::task::yield_now().await;
        it.fall("fell again", after(10));
        assert_eq!(waits.await.unwrap(), Err(Some("fell again")));
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_is_dropped_or_panics_leaves_nobody_waiting() {
        struct Panics;
        impl Supervisor for Panics {
            async fn one_life(&mut self) -> Option<Instant> {
                panic!("on purpose")
            }
        }
        for is_run in [false, true] {
            let it = Arc::new(Supervised::<u8, &str>::new("closed"));
            let supervision = supervise(it.clone(), Panics);
            if is_run {
                assert!(TaskTracker::new().spawn(supervision).await.is_err());
            } else {
                drop(supervision);
            }
            it.done().await;
            assert_eq!(it.reach(after(1), Patience::OnceUp).await, Err(Some("closed")));
        }
    }
}
