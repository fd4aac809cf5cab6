//! One timer for everything that must end in time.
//!
//! The deadlines of hooks are far away, and nearly none is ever reached; but a timer of the runtime may wake its reactor
//! each time that one is set, which is a call of the system and often a change of thread, in the middle of a question.
//! So they stand in a list, and one task keeps one timer for the nearest of them. That timer is left alone when its
//! deadline goes: one after the other of calls that all end in time sets none.

use std::collections::BTreeMap;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::future::{Either, select};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use tokio_util::task::TaskTracker;

/// Deadlines that share a timer. Clones share it too.
#[derive(Clone, Debug, Default)]
pub struct Deadlines {
    shared: Arc<Shared>,
}

/// The time was over first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed;

#[derive(Debug, Default)]
struct Shared {
    list: Mutex<List>,
    /// Told when a deadline is nearer than the timer, or when nobody can wait any more.
    look: Arc<Notify>,
}

#[derive(Debug, Default)]
struct List {
    waiting: BTreeMap<Place, Waker>,
    /// Makes two deadlines at one instant two.
    number: u64,
    /// When the timer is due.
    timer: Option<Instant>,
    /// The task that keeps the timer, once there was something to wait for.
    keeper: Option<JoinHandle<()>>,
}

type Place = (Instant, u64);

impl Deadlines {
    /// The output of `future`, if it is ready within `time`.
    ///
    /// # Errors
    /// It did not. The future is dropped.
    pub async fn within<F: Future>(&self, time: Duration, future: F) -> Result<F::Output, Elapsed> {
        self.until(Instant::now() + time, future).await
    }

    /// The output of `future`, if it is ready before `deadline`. One that is ready at once sets nothing.
    ///
    /// # Errors
    /// It did not. The future is dropped.
    pub async fn until<F: Future>(&self, deadline: Instant, future: F) -> Result<F::Output, Elapsed> {
        match select(pin!(future), self.at(deadline)).await {
            Either::Left((output, _)) => Ok(output),
            Either::Right(((), _)) => Err(Elapsed),
        }
    }

    /// Comes back at `deadline`. Needs a runtime with time.
    pub fn at(&self, deadline: Instant) -> DeadlineWait {
        DeadlineWait { shared: self.shared.clone(), deadline, number: None }
    }

    /// Ends the task that keeps the timer, unless somebody still waits: then it ends when the last clone does.
    pub async fn close(&self) {
        let keeper = {
            let mut list = self.shared.list();
            if list.waiting.is_empty() { list.keeper.take() } else { None }
        };
        if let Some(keeper) = keeper {
            keeper.abort();
            // Being aborted is how it ends.
            drop(keeper.await);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.look.notify_one();
    }
}

impl Shared {
    fn list(&self) -> MutexGuard<'_, List> {
        // Every change under this lock is complete before anything could panic.
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes everything out that is due, and says when the next one is.
    fn due(&self, now: Instant) -> (Vec<Waker>, Option<Instant>) {
        let mut list = self.list();
        let mut due = Vec::new();
        while let Some(first) = list.waiting.first_entry().filter(|first| first.key().0 <= now) {
            due.push(first.remove());
        }
        list.timer = list.waiting.first_key_value().map(|((next, _), _)| *next);
        (due, list.timer)
    }

    /// Puts a deadline on the list.
    fn put(self: &Arc<Self>, deadline: Instant, waker: &Waker) -> u64 {
        let mut list = self.list();
        list.number += 1;
        let number = list.number;
        list.waiting.insert((deadline, number), waker.clone());
        // A runtime that ended has taken the task with it.
        if list.keeper.as_ref().is_none_or(JoinHandle::is_finished) {
            list.keeper = Some(TaskTracker::new().spawn(keep(Arc::downgrade(self), self.look.clone())));
            list.timer = None;
        }
        if list.timer.is_none_or(|timer| deadline < timer) {
            // Told once for all that come before the task has looked.
            list.timer = Some(deadline);
            self.look.notify_one();
        }
        number
    }
}

/// Wakes whoever is due, as long as there is a list.
async fn keep(shared: Weak<Shared>, look: Arc<Notify>) {
    loop {
        let Some(list) = shared.upgrade() else { return };
        let (due, next) = list.due(Instant::now());
        drop(list);
        due.into_iter().for_each(Waker::wake);
        let told = look.notified();
        match next {
            // Whichever comes first: both are reasons to look again.
            Some(next) => match select(pin!(told), pin!(sleep_until(next))).await {
                Either::Left(_) | Either::Right(_) => {}
            },
            None => told.await,
        }
    }
}

/// Waits for a deadline. Dropping it takes it from the list.
#[derive(Debug)]
pub struct DeadlineWait {
    shared: Arc<Shared>,
    deadline: Instant,
    /// Its number on the list, once it is there.
    number: Option<u64>,
}

impl Future for DeadlineWait {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(number) = self.number else {
            if self.deadline <= Instant::now() {
                return Poll::Ready(());
            }
            self.number = Some(self.shared.put(self.deadline, cx.waker()));
            return Poll::Pending;
        };
        let mut list = self.shared.list();
        // What is no longer on the list was due.
        let Some(waker) = list.waiting.get_mut(&(self.deadline, number)) else { return Poll::Ready(()) };
        if !waker.will_wake(cx.waker()) {
            waker.clone_from(cx.waker());
        }
        Poll::Pending
    }
}

impl Drop for DeadlineWait {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            drop(self.shared.list().waiting.remove(&(self.deadline, number)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use std::future::{pending, ready};
    use tokio::time::{advance, sleep};

    const SECOND: Duration = Duration::from_secs(1);

    fn waiting(deadlines: &Deadlines) -> usize {
        deadlines.shared.list().waiting.len()
    }

    #[tokio::test(start_paused = true)]
    async fn each_ends_at_its_own_time() {
        let deadlines = Deadlines::default();
        let began = Instant::now();
        let one = |seconds: u32| {
            let deadlines = deadlines.clone();
            async move {
                let ended = deadlines.within(SECOND * seconds, pending::<()>()).await;
                (ended, began.elapsed().as_secs())
            }
        };
        let ended = futures_util::future::join_all([5, 1, 3, 1].map(one)).await;
        assert_eq!(ended, [5, 1, 3, 1].map(|seconds| (Err(Elapsed), seconds)));
        assert_eq!(waiting(&deadlines), 0);
        deadlines.close().await;
    }

    #[tokio::test(start_paused = true)]
    async fn what_ends_in_time_counts_and_leaves_the_list() {
        let deadlines = Deadlines::default();
        assert_eq!(deadlines.within(SECOND, ready(7)).await, Ok(7));
        assert!(deadlines.shared.list().keeper.is_none(), "what is ready needs no timer");
        assert_eq!(deadlines.within(SECOND * 2, sleep(SECOND)).await, Ok(()));
        assert_eq!(waiting(&deadlines), 0);
        // The timer of the one before is still set, for nobody; the next one is later and still ends.
        let began = Instant::now();
        assert_eq!(deadlines.within(SECOND * 2, pending::<()>()).await, Err(Elapsed));
        assert_eq!(began.elapsed(), SECOND * 2);
        assert_eq!(deadlines.until(began, pending::<()>()).now_or_never(), Some(Err(Elapsed)));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_is_nearer_than_the_timer_is_not_late() {
        let deadlines = Deadlines::default();
        let far = deadlines.at(Instant::now() + SECOND * 60);
        let mut far = pin!(far);
        assert_eq!(far.as_mut().now_or_never(), None);
        advance(SECOND).await;
        let began = Instant::now();
        deadlines.at(began + SECOND).await;
        assert_eq!(began.elapsed(), SECOND);
        far.await;
        assert_eq!(began.elapsed(), SECOND * 59);
    }

    #[test]
    fn a_list_outlives_a_runtime() {
        let deadlines = Deadlines::default();
        for _ in 0..2 {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
            let ended = runtime.unwrap().block_on(deadlines.within(SECOND, pending::<()>()));
            assert_eq!(ended, Err(Elapsed));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_task_ends_with_the_list() {
        let deadlines = Deadlines::default();
        assert_eq!(deadlines.within(SECOND, pending::<()>()).await, Err(Elapsed));
        let keeper = deadlines.shared.list().keeper.take().unwrap();
        drop(deadlines);
        keeper.await.unwrap();
    }
}
