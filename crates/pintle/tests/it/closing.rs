//! Closing has bounds, and says what it leaves.

use std::sync::Arc;

use pintle::Left;
use pintle::prelude::*;

use crate::host::{open, refund, turn};

/// Ignores everything.
struct Deaf(Arc<tokio::sync::Notify>);

impl Executor for Deaf {
    type Error = String;

    fn runs(&self, tool: &str) -> bool {
        tool == "refund"
    }

    async fn execute(&self, _permit: Permit, _cancel: &Cancel) -> Result<Output, String> {
        self.0.notify_one();
        std::future::pending().await
    }
}

/// Waits for the end of the turn.
struct Polite(Arc<tokio::sync::Notify>);

impl Executor for Polite {
    type Error = String;

    fn runs(&self, tool: &str) -> bool {
        tool == "refund"
    }

    async fn execute(&self, _permit: Permit, cancel: &Cancel) -> Result<Output, String> {
        self.0.notify_one();
        cancel.cancelled().await;
        Ok(Output::ok("stopped"))
    }
}

async fn closed_around(tool: impl Executor<Error = String> + Send + 'static, runs: Arc<tokio::sync::Notify>) -> Left {
    let pintle = open();
    let turn = turn(&pintle);
    let working = tokio_util::task::TaskTracker::new().spawn(async move { drop(turn.call(refund("c1"), &tool).await) });
    runs.notified().await;
    let left = pintle.close(Duration::from_millis(200)).await;
    working.abort();
    left
}

#[tokio::test(start_paused = true)]
async fn closing_is_bounded_by_a_tool_that_hangs_and_waits_for_one_that_listens() {
    let runs = Arc::new(tokio::sync::Notify::new());
    let left = closed_around(Deaf(runs.clone()), runs.clone()).await;
    assert_eq!(left, Left { calls: 1, ..Left::default() });
    let left = closed_around(Polite(runs.clone()), runs).await;
    assert_eq!(left, Left::default());
}

#[tokio::test(start_paused = true)]
async fn closing_is_bounded_by_an_observer_and_a_gate_that_hang() {
    struct Hangs(Arc<tokio::sync::Notify>);

    impl HookAt<PreToolUse> for Hangs {
        fn answer<'a>(&'a self, _cx: &'a HookCx<'a>, _at: &'a PreToolUse) -> Fut<'a, Verdict<PreToolUse>> {
            self.0.notify_one();
            Box::pin(std::future::pending())
        }
    }

    impl Observer for Hangs {
        fn hear<'a>(&'a self, _notice: &'a pintle::checkpoint::Notice) -> Fut<'a, ()> {
            Box::pin(std::future::pending())
        }
    }

    let asked = Arc::new(tokio::sync::Notify::new());
    let pintle = open();
    pintle.hook("gate", "", Hangs(asked.clone())).unwrap();
    pintle.observer("ears", Hangs(asked.clone())).unwrap();
    let turn = turn(&pintle);
    let _begun = turn.begin("p", InputKind::First).await.unwrap();
    let working = tokio_util::task::TaskTracker::new()
        .spawn(async move { turn.call(refund("c1"), &Polite(Arc::default())).await });
    asked.notified().await;
    let began = tokio::time::Instant::now();
    let left = pintle.close(Duration::from_secs(2)).await;
    assert!(began.elapsed() <= Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!((left.calls, left.lost_records), (0, 0));
    assert!(matches!(working.await.unwrap(), Err(Stop::Cancelled)));
}

#[tokio::test]
async fn a_closed_host_runs_nothing() {
    let pintle = open();
    let before = turn(&pintle);
    assert_eq!(pintle.close(Duration::from_secs(5)).await, Left::default());
    let after = turn(&pintle);
    for turn in [before, after] {
        assert!(matches!(turn.call(refund("c1"), &crate::host::Till::default()).await, Err(Stop::Cancelled)));
    }
}
