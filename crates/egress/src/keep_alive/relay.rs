//! Waking that stays inside.
//!
//! A connection and the request that waits for it wake each other when one of them has something for the other. Both
//! live in one task here, so that would wake the task that runs: it would be queued again, and a thread be woken to
//! take it over. A relay keeps such wakes to itself; only what comes while nobody polls goes on to the task.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

/// How often a wake from inside is followed before the task gives way. An exchange needs two or three; a future that
/// wakes itself for ever, as one does that has used up its task's share of the runtime, must not keep its thread.
const ROUNDS: usize = 8;

/// Nobody polls: a wake goes on to the task.
const IDLE: u8 = 0;
/// Somebody polls: a wake is noted.
const POLLING: u8 = 1;
/// Woken since.
const WOKEN: u8 = 2;

/// Where the wakes of one connection come together.
#[derive(Default)]
pub(super) struct Relay {
    state: AtomicU8,
    task: AtomicWaker,
}

impl Wake for Relay {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(WOKEN, Ordering::AcqRel) == IDLE {
            self.task.wake();
        }
    }
}

impl Relay {
    /// Waits for what `poll` comes to. Until then its wakes come here.
    pub(super) async fn drive<T>(self: Arc<Self>, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> T {
        let inside = Waker::from(self.clone());
        let rounds = std::future::poll_fn(move |cx| {
            self.task.register(cx.waker());
            for _ in 0..ROUNDS {
                self.state.store(POLLING, Ordering::Release);
                if let Poll::Ready(output) = poll(&mut Context::from_waker(&inside)) {
                    return Poll::Ready(output);
                }
                if self.state.compare_exchange(POLLING, IDLE, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                    return Poll::Pending;
                }
            }
            self.state.store(IDLE, Ordering::Release);
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        pin!(rounds).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::task::{ArcWake, waker};
    use std::sync::atomic::AtomicUsize;

    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl ArcWake for Counted {
        fn wake_by_ref(arc: &Arc<Self>) {
            arc.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn wakes(counted: &Counted) -> usize {
        counted.0.load(Ordering::Relaxed)
    }

    #[test]
    fn a_wake_from_inside_is_another_round_and_wakes_nobody() {
        let (counted, mut polls) = (Arc::new(Counted::default()), 0);
        let driven = Arc::<Relay>::default().drive(|cx| {
            polls += 1;
            cx.waker().wake_by_ref();
            if polls == 3 { Poll::Ready(polls) } else { Poll::Pending }
        });
        let seen = pin!(driven).poll(&mut Context::from_waker(&waker(counted.clone())));
        assert_eq!((seen, wakes(&counted)), (Poll::Ready(3), 0));
    }

    #[test]
    fn a_wake_while_nobody_polls_goes_on() {
        let (counted, mut polls) = (Arc::new(Counted::default()), 0);
        let relay = Arc::<Relay>::default();
        let mut driven = pin!(relay.clone().drive(|_| {
            polls += 1;
            if polls == 2 { Poll::Ready(()) } else { Poll::Pending }
        }));
        let waker = waker(counted.clone());
        assert_eq!(driven.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Pending);
        assert_eq!(wakes(&counted), 0);
        relay.wake_by_ref();
        assert_eq!(wakes(&counted), 1);
        assert_eq!(driven.as_mut().poll(&mut Context::from_waker(&waker)), Poll::Ready(()));
    }

    #[test]
    fn one_that_wakes_itself_for_ever_gives_way() {
        let (counted, mut polls) = (Arc::new(Counted::default()), 0);
        let driven = Arc::<Relay>::default().drive(|cx| {
            polls += 1;
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        });
        assert_eq!(pin!(driven).poll(&mut Context::from_waker(&waker(counted.clone()))), Poll::Pending);
        assert_eq!((polls, wakes(&counted)), (ROUNDS, 1));
    }
}
