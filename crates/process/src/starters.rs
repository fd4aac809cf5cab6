//! The threads on which children are started: a few, and none where nothing is to be started.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use tokio::sync::oneshot;

/// How many steps are done at once: each takes about a millisecond, of which a host with hundreds of hooks waits for
/// few at a time.
const AT_ONCE: usize = 4;

type Step = Box<dyn FnOnce() + Send>;

/// What is to be done, and how many threads do it.
struct Starters {
    waiting: VecDeque<Step>,
    threads: usize,
}

static STARTERS: Mutex<Starters> = Mutex::new(Starters { waiting: VecDeque::new(), threads: 0 });

fn starters() -> MutexGuard<'static, Starters> {
    STARTERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does a step of a start on a thread where others need not wait for it, when it is its turn. None if it panicked.
///
/// The runtime's own threads for this would be as many as steps are asked for at once, and stay for a while.
pub(crate) async fn in_turn<T: Send + 'static>(step: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (tell, told) = oneshot::channel();
    // Where nobody waits any more, what comes of it goes.
    begin(Box::new(move || drop(tell.send(step()))));
    told.await.ok()
}

fn begin(step: Step) {
    let mut starters = starters();
    starters.waiting.push_back(step);
    if starters.threads == AT_ONCE {
        return;
    }
    starters.threads += 1;
    drop(starters);
    if thread::Builder::new().name("pintle-starter".into()).spawn(work).is_err() {
        // No thread can be had; it is done here, and what waits with it.
        work();
    }
}

/// Does what is to be done until nothing is.
fn work() {
    while let Some(step) = next() {
        // Whoever waits for it is told by the end of the channel.
        catch_unwind(AssertUnwindSafe(step)).unwrap_or_default();
    }
}

fn next() -> Option<Step> {
    let mut starters = starters();
    let step = starters.waiting.pop_front();
    if step.is_none() {
        starters.threads -= 1;
    }
    step
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;

    use super::*;

    #[tokio::test]
    async fn steps_are_done_by_a_few_threads_and_a_panic_ends_none() {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let step = |number: usize| {
            let (now, most) = (now.clone(), most.clone());
            in_turn(move || {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                thread::yield_now();
                now.fetch_sub(1, Ordering::SeqCst);
                assert!(number % 10 != 3, "this step panics");
                number
            })
        };
        let done = join_all((0..50).map(step)).await;
        let wanted: Vec<_> = (0..50).map(|number| (number % 10 != 3).then_some(number)).collect();
        assert_eq!(done, wanted);
        assert!(most.load(Ordering::SeqCst) <= AT_ONCE, "{most:?}");
    }
}
