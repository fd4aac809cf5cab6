//! Which reply counts, and what the child is told of calls that nobody waits for.

use std::time::Duration;

use futures_util::StreamExt as _;
use pintle_domain::fault::Fault;
use tokio_util::sync::CancellationToken;

use super::stage::{LONG, Stage, ask, ask_about, ask_until, continues, denied, fault, within};

#[tokio::test]
async fn noise_before_the_answer_is_skipped() {
    let stage = Stage::new();
    let hook = stage
        .hook(
            r#"read -r line; echo; echo 'loading model'; echo '[1]'; echo '{"jsonrpc":"2.0","method":"log","params":{}}'
            printf '\377\376\n'; echo '{"id":77,"result":{}}'
            echo '{"id":2,"result":{"action":"deny_tool","reason":"no"}}'; read -r line"#,
        )
        .await;
    assert_eq!(denied(&ask(&hook).await), "no");
    let status = hook.status();
    assert_eq!((status.stray_lines, status.unknown_replies, status.late_replies), (4, 1, 0));
}

#[tokio::test]
async fn the_first_reply_wins_and_replies_come_in_any_order() {
    let stage = Stage::new();
    let hook = stage
        .hook(
            r#"read -r line; read -r line
            for n in 3 2 3; do echo "{\"id\":$n,\"result\":{\"action\":\"deny_tool\",\"reason\":\"$n\"}}"; done
            read -r line; echo '{"id":4}'; read -r line"#,
        )
        .await;
    let (first, second) = within(futures_util::future::join(ask(&hook), ask(&hook))).await;
    assert_eq!((denied(&first), denied(&second)), ("2", "3"));
    assert!(continues(&ask(&hook).await));
    assert_eq!(hook.status().late_replies, 1);
}

#[tokio::test]
async fn a_call_that_timed_out_is_withdrawn_and_its_late_reply_dropped() {
    let stage = Stage::new();
    let hook = stage
        .hook(
            r#"read -r line; read -r line; echo "$line" >told
            echo '{"id":2,"result":{"action":"deny_tool"}}'; read -r line; echo '{"id":3}'; read -r line"#,
        )
        .await;
    let short = Duration::from_millis(100);
    assert_eq!(fault(ask_about(&hook, 1, short).await), Fault::TimedOut { after: short });
    assert!(continues(&ask(&hook).await));
    assert_eq!(hook.status().late_replies, 1);
    assert_eq!(stage.text("told"), "{\"jsonrpc\":\"2.0\",\"method\":\"hook.cancel\",\"params\":{\"id\":2}}\n");
}

#[tokio::test]
async fn a_cancelled_call_is_told_to_the_child_and_one_that_never_began_is_not() {
    let stage = Stage::new();
    let mut seen = stage.fifo("seen");
    let hook = stage.hook(r#"exec 9>seen; while read -r line; do echo "$line" >&9; done"#).await;
    let cancel = CancellationToken::new();
    let (reply, ()) = within(futures_util::future::join(ask_until(&hook, 1, LONG, &cancel), async {
        assert!(seen.line().await.unwrap().contains(r#""id":2,"method":"hook.before_tool""#));
        cancel.cancel();
    }))
    .await;
    assert_eq!(fault(reply), Fault::Cancelled);
    assert_eq!(seen.line().await.unwrap(), "{\"jsonrpc\":\"2.0\",\"method\":\"hook.cancel\",\"params\":{\"id\":2}}\n");
    assert_eq!(fault(ask_until(&hook, 1, LONG, &cancel).await), Fault::Cancelled);
    stage.close(&hook).await;
    assert_eq!(seen.rest().await, "");
}

#[tokio::test]
async fn a_call_that_waits_in_the_queue_is_withdrawn_silently() {
    let stage = Stage::new();
    stage.fifo("go");
    // It reads nothing before it is let go; then it keeps what it was sent.
    let hook = stage.hook("read -r go <go; exec cat >all").await;
    let short = Duration::from_millis(200);
    let replies = within(futures_util::future::join_all((0..4).map(|_| ask_about(&hook, 900 << 10, short)))).await;
    assert_eq!(replies.into_iter().map(fault).collect::<Vec<_>>(), vec![Fault::TimedOut { after: short }; 4]);
    // Three timeouts in a row have closed the child; what it had not been sent before is not sent any more.
    let path = stage.path("go");
    let letting_go = tokio::task::spawn_blocking(move || std::fs::write(path, "go\n").map_err(|e| e.kind()));
    within(letting_go).await.unwrap().unwrap();
    stage.close(&hook).await;
    let all = stage.text("all");
    let calls: Vec<&str> = all.lines().map(|line| line.get(..line.len().min(27)).unwrap()).collect();
    assert!(calls.len() <= 3, "{calls:?}");
    assert!(!all.contains(r#""id":5,"method""#), "the last call was still in the queue");
}

#[tokio::test]
async fn a_reply_just_before_the_exit_counts() {
    const TIMES: usize = 1000;
    let stage = Stage::new();
    let script = r#"read -r line; echo '{"id":2,"result":{"action":"deny_tool","reason":"last words"}}'; exit 0"#;
    let heard = futures_util::stream::iter(0..TIMES)
        .map(async |_| {
            let hook = stage.hook(script).await;
            let reply = ask(&hook).await;
            pintle_engine::handler::Handler::close(&*hook).await;
            denied(&reply) == "last words"
        })
        .buffer_unordered(8)
        .filter(|heard| std::future::ready(*heard))
        .count();
    assert_eq!(heard.await, TIMES);
}

#[tokio::test]
async fn whoever_else_holds_the_output_open_does_not_hold_the_verdict() {
    let stage = Stage::new();
    let held = stage.fifo("held");
    let hook = stage.hook("exec 9>held; sleep 1000 & read -r line; exit 3").await;
    // The writer of the fifo is there once the call has been read, which its answer shows.
    let started = tokio::time::Instant::now();
    assert_eq!(fault(ask(&hook).await), Fault::exited(3));
    assert!(started.elapsed() < LONG / 4, "one second, and what a busy machine adds");
    // The one who held it was of the child's group and went with it.
    assert_eq!(held.rest().await, "");
}
